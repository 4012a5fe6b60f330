//! Normalised discounted cumulative gain at a cutoff.
//!
//! # Definition
//! Of one user: `Σ 1/log₂(1 + place)` over the relevant ones among the first `k`, places from 1, divided by the same
//! sum over places 1 … min(k, R) of `R` relevant ones. The metric is the mean over the users with a relevant and an
//! irrelevant candidate, in expectation over the order of equal scores, see `ranking`.

use super::{Definition, Formula};
use fedgenie_core::metric::Measure;

/// Normalised discounted cumulative gain at a cutoff.
pub static NDCG: Definition = Definition {
    measure: Measure::share("ndcg_k"),
    formula: Formula::Cutoff(|at| at.gain / at.ranked.discounts[at.cutoff.min(at.ranked.relevant)]),
};
