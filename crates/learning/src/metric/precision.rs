//! Precision at a cutoff.
//!
//! # Definition
//! Of one user: `h / k`: `h` of the first `k` candidates are relevant; also where there are fewer than `k`. The metric
//! is the mean over the users with a relevant and an irrelevant candidate, in expectation over the order of equal
//! scores, see `ranking`.

use super::{Definition, Formula};
use fedgenie_core::metric::Measure;

/// Precision at a cutoff.
pub static PRECISION: Definition =
    Definition { measure: Measure::share("precision_k"), formula: Formula::Cutoff(|at| at.hits / at.cutoff as f64) };
