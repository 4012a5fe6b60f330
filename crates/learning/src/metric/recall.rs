//! Recall at a cutoff.
//!
//! # Definition
//! Of one user: `h / R`: `h` of the `R` relevant candidates are among the first `k`. The metric is the mean over
//! the users with a relevant and an irrelevant candidate, in expectation over the order of equal scores, see `ranking`.

use super::{Definition, Formula};
use fedgenie_core::metric::Measure;

/// Recall at a cutoff.
pub static RECALL: Definition = Definition {
    measure: Measure::share("recall_k"),
    formula: Formula::Cutoff(|at| at.hits / at.ranked.relevant as f64),
};
