//! The parts of a round, under every protocol: clients are asked, some are selected, their jobs are dispatched, and the
//! round is closed.

mod blamed;
mod clusters;
mod cohort;
mod probe;
mod question;
mod selector;
mod server;
mod settings;

pub(super) use blamed::{Blamed, Of};
pub(super) use clusters::ClusterDecision;
pub(super) use cohort::Cohort;
pub(super) use probe::{Pending, price};
pub(super) use question::{Asker, CLOUD, Explained, Question, SelectionStreams};
pub(super) use selector::{Known, Limits, Selector};
pub(super) use server::{RoundUnderWay, Server, Told, numbered, report_round};
pub use settings::RunSettings;
