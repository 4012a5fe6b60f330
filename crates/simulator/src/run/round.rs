//! The parts of a round, under every protocol: clients are asked, some are selected, their jobs are dispatched, and the
//! round is closed.

mod clusters;
mod cohort;
mod probe;
mod question;
mod selector;
mod server;
mod settings;

pub(super) use clusters::ClusterDecision;
pub(super) use cohort::Cohort;
pub(super) use probe::{Pending, price};
pub(super) use question::{Asker, Explained, Question, SelectionStreams};
pub(super) use selector::{Blamed, Known, Limits, Of, Selector};
pub(super) use server::{CLOUD, RoundUnderWay, Server, Told, numbered, report_round};
pub use settings::RunSettings;
