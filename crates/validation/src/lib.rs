//! Claims, and verdicts of the data on them.
//!
//! ```text
//! validation/claims/*.toml ─▶ Claim { scenarios, checks } ─▶ laboratory: runs ─▶ statistic
//!                                       verdict ◀─ rule ◀─ value, interval ◀───────┘
//! ```
//!
//! A claim is a file: the claim and its source, scenarios, a statistic, a rule, and the expected verdict. A claim that
//! does not hold is a result: it stays, with its explanation.
//!
//! Statistics are components: one file each in `validation/statistic`, and one line in [`StatisticConfig`]'s list.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests compare with the platform's functions"))]

mod claim;
mod clock;
mod kept;
mod laboratory;
mod learns;
mod margin;
pub mod papers;
mod plan;
mod results;
mod statistic;
mod together;
pub mod tuning;
mod verdict;

pub use claim::{Budget, Check, Claim, When, read_claims};
pub use clock::{seconds_of, today};
pub use kept::{KeptCheck, KeptClaim};
pub use laboratory::{Kept, Laboratory};
pub use learns::Learns;
pub use margin::{Margin, margin_of};
pub use plan::{Plan, plan};
pub use results::{CheckResult, ClaimResult, HEADING, NotRun, Provenance, Row, markdown, seconds_of_all, table};
pub use statistic::{Measured, Measurement, StatisticConfig, Student};
pub use together::{Together, together};
pub use verdict::{Rule, Verdict};

use fedgenie_experiment::error::Error;

/// Checks a claim.
///
/// # Errors
/// If a scenario is wrong, a run fails, or the claim does not fit its scenarios.
pub fn validate(claim: &Claim, laboratory: &Laboratory<'_>) -> Result<ClaimResult, Error> {
    laboratory.take_reused();
    let (checks, seconds) = seconds_of(|| {
        let objections = laboratory.objections(claim).map_err(|error| claim.explain_whole(error))?;
        let check = |check: &Check| {
            let measurement = laboratory.measure(claim, check).map_err(|error| claim.explain(check, error))?;
            CheckResult::new((claim, check), measurement, laboratory.budget(), &objections)
        };
        claim.checks.iter().map(check).collect::<Result<Vec<_>, Error>>()
    });
    Ok(ClaimResult {
        name: claim.name.clone(),
        title: claim.title.clone(),
        source: claim.source.clone(),
        checks: checks?,
        // The time of reused runs belongs to another validation.
        seconds: (!laboratory.take_reused()).then_some(seconds),
    })
}
