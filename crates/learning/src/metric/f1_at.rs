//! F1 score of a ranking at a cutoff.
//!
//! # Definition
//! Of one user: `2·precision·recall / (precision + recall) = 2h / (k + R)`: `h` of the `R` relevant candidates are
//! among the first `k`; 0 where `h = 0`. The metric is the mean over the users with a relevant and an irrelevant
//! candidate, in expectation over the order of equal scores, see `ranking`.

use super::{Definition, Formula};
use fedgenie_core::metric::Measure;

/// F1 score of a ranking at a cutoff.
pub static F1: Definition = Definition {
    measure: Measure::share("f1_k"),
    formula: Formula::Cutoff(|at| 2.0 * at.hits / (at.cutoff as f64 + at.ranked.relevant as f64)),
};
