//! Hit rate at a cutoff.
//!
//! # Definition
//! Of one user: 1 if one of the first `k` candidates is relevant, else 0. The metric is the mean over
//! the users with a relevant and an irrelevant candidate, in expectation over the order of equal scores, see `ranking`.

use super::{Definition, Formula};
use fedgenie_core::metric::Measure;

/// Hit rate at a cutoff.
pub static HR: Definition =
    Definition { measure: Measure::share("hr_k"), formula: Formula::Cutoff(|at| 1.0 - at.none) };
