//! Measurements beside the rounds of a run. None changes the course of the run, but for the time and traffic of an
//! evaluation that clients are charged for.

mod accuracies;
mod evaluations;
mod hindsight;

pub(super) use accuracies::Accuracies;
pub(super) use evaluations::charge;
pub use evaluations::{End, Evaluations};
pub(super) use hindsight::{HindsightMeter, Judged, OpenRound, Window};
