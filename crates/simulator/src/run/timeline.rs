//! The course of virtual time: jobs and their phases, who can be chosen, what has been moved and computed.
//!
//! A job carries what its client was sent without looking at it: nothing here knows a model.

mod accounts;
mod audit;
mod budget;
mod candidates;
mod engine;
mod jobs;

pub use accounts::Accounts;
pub(super) use accounts::{Charge, Cost, add};
pub(super) use engine::{Engine, Event, THE_SERVER, Timer};
pub(super) use jobs::{Job, JobId, Jobs, Names, Terms};
