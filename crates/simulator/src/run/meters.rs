//! What is measured of a run beside its rounds, and when: nothing here changes what a run does next, but for the
//! time and traffic of an evaluation that clients are charged for.

mod accuracies;
mod evaluations;
mod hindsight;

pub(super) use accuracies::Accuracies;
pub(super) use evaluations::charge;
pub use evaluations::{End, Evaluations};
pub(super) use hindsight::{HindsightMeter, Judged, OpenRound, Window};
