//! Share of the pairs of a relevant and an irrelevant candidate in which the relevant one stands higher.
//!
//! # Definition
//! Of one user; a pair with equal scores counts one half. The metric is the mean over the users with a relevant and an
//! irrelevant candidate, see `ranking`.

use super::{Definition, Formula, Ranked};
use fedgenie_core::metric::Measure;

/// Share of ordered pairs.
pub static AUC: Definition = Definition { measure: Measure::share("auc"), formula: Formula::Ranking(auc) };

fn auc(&Ranked { ties, candidates, relevant, .. }: &Ranked<'_>) -> f64 {
    let irrelevant = candidates - relevant;
    // Twice the number of such pairs: whole, so that no order of summation matters. At most 2·2^32·2^32 in u128.
    let mut doubled = 0_u128;
    let mut relevant_above = 0;
    for tie in ties {
        let irrelevant_above = tie.above - relevant_above;
        let beside = tie.equal - tie.relevant;
        let below = irrelevant - irrelevant_above - beside;
        doubled += tie.relevant as u128 * (2 * below + beside) as u128;
        relevant_above += tie.relevant;
    }
    doubled as f64 / (2.0 * relevant as f64 * irrelevant as f64)
}
