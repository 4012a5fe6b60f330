//! What carrying out a claim would cost on this machine, and what it may decide.
//!
//! Costs are those of `run --dry-run` for each of its scenarios; what may be decided follows from the results that are
//! kept: verdicts that are open, and the seeds that they would take at the mean and the spread found.

use super::claim::Claim;
use super::kept::KeptClaim;
use super::laboratory::Laboratory;
use super::results::Row;
use super::verdict::Verdict;
use fedgenie_experiment::error::Error;
use serde::Serialize;

/// A claim before it is carried out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// The claim's name.
    pub name: String,
    /// The claim.
    pub title: String,
    /// Runs to be made.
    pub runs: usize,
    /// Runs that the folder of kept runs has.
    pub there: usize,
    /// Wall time of the runs to be made; of a claim without scenarios that of its last validation. `None` where nothing
    /// is known.
    pub seconds: Option<f64>,
    /// How many numbers have each verdict by the results that are kept, in the order of [`Verdict::ALL`]; `None` where
    /// none are.
    pub verdicts: Option<[usize; 5]>,
    /// The fewest seeds by which one of the undecided numbers would be decided.
    pub seeds: Option<u64>,
    /// Why a scenario cannot be carried out here.
    pub refused: Vec<String>,
}

/// The most seeds that are looked at.
const SEEDS_MAX: u64 = 100_000;

/// The number of seeds by which an undecided number would be decided at the mean and the spread found: at 95 %, with
/// the quantile of its own number of seeds, so that it is slightly too large. `None` of any other number, and above
/// 100,000 seeds.
fn needed(row: &Row) -> Option<u64> {
    let (Some([low, high]), Some(holds), Some(student)) = (row.ci95, row.holds, row.student) else { return None };
    let decided = |seeds: &u64| {
        let interval = student.narrowed([low, high], (row.n as f64 / *seeds as f64).sqrt());
        holds.judge_beside(row.value, Some(interval), row.none) != Verdict::Undecided
    };
    (row.verdict == Verdict::Undecided).then_some(row.n as u64 + 1..SEEDS_MAX)?.find(decided)
}

/// The plan of a claim; nothing is carried out but a trial of each scenario, and nothing is written.
///
/// # Errors
/// If the trials are cancelled. A scenario that cannot be carried out is part of the plan.
pub fn plan(claim: &Claim, laboratory: &Laboratory<'_>, kept: &[KeptClaim]) -> Result<Plan, Error> {
    let known = kept.iter().find(|known| known.name == claim.name);
    let rows: Vec<&Row> = known.iter().flat_map(|known| &known.checks).flat_map(|check| &check.rows).collect();
    let (name, title) = (claim.name.clone(), claim.title.clone());
    let mut plan =
        Plan { name, title, runs: 0, there: 0, seconds: Some(0.0), verdicts: None, seeds: None, refused: Vec::new() };
    for scenario in claim.scenarios.keys() {
        match laboratory.forecast(claim, scenario) {
            Ok(forecast) => {
                plan.runs += forecast.runs;
                plan.there += forecast.kept;
                plan.seconds = plan.seconds.map(|seconds| seconds + forecast.wall_s);
            }
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            Err(error) => {
                plan.seconds = None;
                plan.refused.push(format!("{scenario}: {error}"));
            }
        }
    }
    if claim.scenarios.is_empty() {
        plan.seconds = known.and_then(|known| known.seconds);
    }
    let count = |verdict: Verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    plan.verdicts = known.map(|_| Verdict::ALL.map(count));
    plan.seeds = rows.iter().filter_map(|row| needed(row)).min();
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistic::Student;
    use crate::verdict::Rule;

    /// A mean of 1 ± 2 with four seeds: ± 1 takes 16 of them, so that the lower end is at 0.
    #[test]
    fn four_times_the_seeds_halve_the_interval() {
        let holds = Some(Rule { at_least: Some(0.0), at_most: None });
        let row = Row { value: 1.0, ci95: Some([-1.0, 3.0]), n: 4, holds, ..Row::of_test() };
        assert_eq!(needed(&row), None, "of what kind its interval is, is not known");
        let row = Row { student: Some(Student::OfValues), ..row };
        assert_eq!(needed(&row), Some(16));
        // Within a margin of 1.5 once the interval is ± 0.5.
        assert_eq!(needed(&Row { none: Some([-1.5, 1.5]), ..row.clone() }), Some(16));
        assert_eq!(
            needed(&Row { value: 0.0, ci95: Some([-2.0, 2.0]), none: Some([-0.5, 0.5]), ..row.clone() }),
            Some(64)
        );
        assert_eq!(needed(&Row { value: 0.0, ci95: Some([-2.0, 2.0]), ..row.clone() }), None);
        assert_eq!(needed(&Row { verdict: Verdict::Supported, ..row.clone() }), None);
        // A ratio of 2 within a factor of 4, of which at least 1 is claimed: a factor of 2 takes 16 seeds.
        let holds = Some(Rule { at_least: Some(1.0), at_most: None });
        let ratio = Row { value: 2.0, ci95: Some([0.5, 8.0]), student: Some(Student::OfLogarithms), holds, ..row };
        assert!((16..=17).contains(&needed(&ratio).unwrap()));
    }
}
