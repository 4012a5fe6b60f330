//! The course of virtual time: jobs and their phases, candidates, bytes and computing time.
//!
//! A job carries its client's start of training unread: nothing here knows a model.

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
