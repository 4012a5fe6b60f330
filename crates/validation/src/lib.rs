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

mod because;
mod claim;
mod clock;
mod kept;
mod laboratory;
mod learns;
mod levels;
mod margin;
pub mod papers;
mod plan;
mod rejudge;
mod results;
mod states;
mod statistic;
mod together;
mod told;
pub mod tuning;
mod verdict;

pub use because::Because;
pub use claim::{Budget, Check, Claim, When, read_claims};
pub use clock::{seconds_of, today};
pub use kept::{KeptCheck, KeptClaim};
pub use laboratory::{Kept, Laboratory};
pub use learns::Learns;
pub use levels::{Level, Reached};
pub use margin::{Margin, margin_of};
pub use plan::{Plan, plan};
pub use results::{
    CheckResult, ClaimResult, HEADING, Looked, NotRun, Provenance, Row, markdown, seconds_of_all, table,
};
pub use statistic::{Look, Meaning, Measured, Measurement, StatisticConfig, Student};
pub use together::{Together, together};
pub use verdict::{Rule, Verdict};

use fedgenie_experiment::error::Error;
use fedgenie_experiment::scenario::UntilDecided;

/// Checks a claim.
///
/// # Errors
/// If a scenario is wrong, a run fails, or the claim does not fit its scenarios.
pub fn validate(claim: &Claim, laboratory: &Laboratory<'_>) -> Result<ClaimResult, Error> {
    laboratory.take_reused();
    let (found, seconds) = seconds_of(|| {
        let mut look = claim.first_look(laboratory.budget());
        loop {
            let (checks, levels) = at_look(claim, laboratory, look.as_ref())?;
            let is_open = |row: &Row| row.verdict == Verdict::Undecided;
            let has_open = checks.iter().flat_map(|check| &check.rows).any(is_open);
            match look.as_ref().and_then(UntilDecided::next).filter(|_| has_open) {
                Some(seeds) => look.iter_mut().for_each(|look| look.so_far = Some(seeds)),
                None => return Ok::<_, Error>((checks, levels, look)),
            }
        }
    });
    let (checks, levels, look) = found?;
    Ok(ClaimResult {
        name: claim.name.clone(),
        title: claim.title.clone(),
        source: claim.source.clone(),
        checks,
        levels,
        looked: look.map(|plan| Looked { seeds: plan.seeds(), looks: plan.looks }),
        // The time of reused runs belongs to another validation.
        seconds: (!laboratory.take_reused()).then_some(seconds),
    })
}

/// The checks of a claim and its levels; at a look, with the seeds that there are so far.
fn at_look(
    claim: &Claim,
    laboratory: &Laboratory<'_>,
    look: Option<&UntilDecided>,
) -> Result<(Vec<CheckResult>, Vec<Level>), Error> {
    let objections = laboratory.objections(claim, look).map_err(|error| claim.explain_whole(error))?;
    let miss = look.map(|plan| plan.miss(plan.seeds(), 1));
    let check = |check: &Check| {
        let measurement = laboratory.measure(claim, check, look).map_err(|error| claim.explain(check, error))?;
        let own = check.statistic(laboratory.budget()).looks().into_iter().next();
        let explain =
            |because: &Because| laboratory.with(claim, look, |context| told::told(because, own.as_ref(), context));
        let because = check.because.as_ref().map(explain).transpose().map_err(|error| claim.explain(check, error))?;
        CheckResult::new((claim, check), measurement, (laboratory.budget(), miss), &objections, because)
    };
    let checks = claim.checks.iter().map(check).collect::<Result<Vec<_>, Error>>()?;
    let levels = laboratory.with(claim, look, |context| levels::levels(claim, laboratory.budget(), context));
    Ok((checks, levels.map_err(|error| claim.explain_whole(error))?))
}
