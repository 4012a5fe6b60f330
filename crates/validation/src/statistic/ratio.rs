//! Ratios between policies, paired by seed.
//!
//! For values `x_s` of the policy and `y_s` of another over seeds, the number is their geometric mean ratio
//! `exp(mean ln(x_s/y_s))`, and its interval the exponential of Student's t interval of the logarithms. So the ratio of
//! B to A is one over that of A to B, ends of the interval included. A ratio needs positive values: where one is zero,
//! negative or not finite there is no number, and the verdict is undecided.
//!
//! *Targets.* A run that never reaches the target of `time_to.TARGET`, `rounds_to.TARGET` or `bytes_to.TARGET`, or
//! never converges (`time_to.convergence`, …), counts with its spending up to its end. It would have needed more: the
//! ratio is too small where the policy fails, and too large where the other one does. So the interval has no upper end
//! where the policy fails in a run, 0 for its lower end where the other one does, and there is none where both do: what
//! runs to the end do not show decides nothing. The number of these runs stands beside the verdict.

use super::{
    Comparison, Details, Look, Meaning, Measured, Measurement, NO_END, Other, Student, number, shown, shown_interval,
    usage,
};
use crate::laboratory::Context;
use crate::margin::{Margin, margin_of};
use fedgenie_core::math::float::{exp, ln};
use fedgenie_core::math::statistics::{Estimate, Miss, paired_difference_at};
use fedgenie_experiment::error::Error;
use fedgenie_experiment::experiment::{CONVERGENCE, Reached, RunSummary};
use serde::Deserialize;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    scenario: String,
    /// Of its sweep: 0 is the first point.
    #[serde(default)]
    point: usize,
    /// This policy …
    policy: String,
    /// … over each of these.
    against: Vec<String>,
    /// Another scenario, and a point of its sweep, with the runs of the others; of the same seeds.
    #[serde(default)]
    other: Option<Other>,
    /// Of `summary.json`: `virtual_time_s`, `time_to.test_accuracy >= 0.8`, ….
    value: String,
    /// The part by which a ratio may differ from 1 and count as none, in place of that of [`margin_of`].
    #[serde(default)]
    margin: Option<f64>,
}

/// A policy's values by seed.
struct Values {
    values: Vec<f64>,
    seeds: Vec<u64>,
    /// Number of runs that count with their spending at the end, because they never reached the target.
    missed: usize,
    /// The first value that has no logarithm, with its seed.
    bad: Option<(u64, f64)>,
}

impl Values {
    fn of(runs: &[&RunSummary], value: &str) -> Result<Self, Error> {
        let mut found = Self { values: Vec::new(), seeds: Vec::new(), missed: 0, bad: None };
        for run in runs {
            found.seeds.push(run.seed);
            let spent = spent_in_vain(run, value);
            found.missed += usize::from(spent.is_some());
            let number = spent.map_or_else(|| number(run, value, None), Ok)?;
            if !(number > 0.0 && number.is_finite()) {
                found.bad.get_or_insert((run.seed, number));
            }
            found.values.push(number);
        }
        Ok(found)
    }
}

/// The spending of a run at its end, if the value is about a target that it never reached.
fn spent_in_vain(run: &RunSummary, value: &str) -> Option<f64> {
    let (what, target) = value.split_once('.')?;
    let spent = match what {
        "time_to" => run.virtual_time_s,
        "rounds_to" => f64::from(run.rounds),
        "compute_to" => run.compute_s,
        "probe_compute_to" => run.probe_compute_s,
        "joules_to" => run.energy.as_ref()?.of_jobs_j(),
        "bytes_to" => (run.traffic.down_bytes + run.traffic.up_bytes) as f64,
        _ => return None,
    };
    let is_missed = |reached: &Reached| reached.name() == target && reached.round.is_none();
    let has_not_converged = target == CONVERGENCE && run.converged == Some(None);
    (has_not_converged || run.reached.iter().any(is_missed)).then_some(spent)
}

/// The ends of an interval that hold where the policy, or the other one, never reaches the target in a run.
fn without_ends([low, high]: [f64; 2], missed: [bool; 2]) -> Option<[f64; 2]> {
    match missed {
        [false, false] => Some([low, high]),
        [true, false] => Some([low, NO_END]),
        [false, true] => Some([0.0, high]),
        [true, true] => None,
    }
}

/// The geometric mean of the ratios, with its interval.
pub(super) fn ratio(left: &[f64], right: &[f64], miss: Miss) -> Option<Estimate> {
    let logarithms = |values: &[f64]| values.iter().map(|&value| ln(value)).collect::<Vec<f64>>();
    let found = paired_difference_at(&logarithms(left), &logarithms(right), miss)?;
    Some(Estimate { mean: exp(found.mean), ci95: found.ci95.map(|ends| ends.map(exp)), n: found.n })
}

impl Config {
    pub(super) fn meaning(&self) -> Meaning {
        let of = Some((self.policy.clone(), Comparison::Over));
        let place = self.other.as_ref().and_then(|other| other.beside((&self.scenario, self.point)));
        Meaning { value: self.value.clone(), of, others: self.against.clone(), less: None, place }
    }

    pub(super) fn looks(&self) -> Vec<Look> {
        let own = (self.scenario.as_str(), self.point);
        let places = std::iter::once(own).chain(self.other.as_ref().map(Other::place));
        places.map(|(scenario, point)| Look::new(scenario, point, &self.value)).collect()
    }

    pub(super) fn measure(&self, context: &Context<'_>) -> Result<Measurement, Error> {
        super::some(&self.against, "against")?;
        if self.other.is_none() && self.against.contains(&self.policy) {
            return usage(format!("{} is compared with itself", self.policy));
        }
        let completed = context.runs(&self.scenario)?;
        let at = completed.at(self.point);
        let mine = Values::of(&completed.of(&self.policy, self.point)?, &self.value)?;
        let (other, point) = self.other.as_ref().map_or((self.scenario.as_str(), self.point), Other::place);
        let others = context.runs(other)?;
        let values = |policy: &str| -> Result<Values, Error> {
            let theirs = Values::of(&others.of(policy, point)?, &self.value)?;
            match theirs.seeds == mine.seeds {
                true => Ok(theirs),
                false => usage(format!("{} and {policy} have runs of different seeds", self.policy)),
            }
        };
        let title = format!("Ratios of {}: {} over others, paired by seed{at}", self.value, self.policy);
        let columns = ["over", "geometric mean", "pairs", "runs of the policy that never reach it", "of the other"];
        let mut details = Details::new(title, &columns);
        let mut measured = Vec::new();
        let none = self.margin.map(Margin::Share).or_else(|| margin_of(&self.value)).and_then(Margin::around_one);
        for against in &self.against {
            let theirs = values(against)?;
            let pairs = mine.values.len();
            let bad = [(&self.policy, &mine), (against, &theirs)].into_iter().find_map(|(policy, values)| {
                values.bad.map(|(seed, value)| format!("{} of {policy} is {} in seed {seed}", self.value, shown(value)))
            });
            let found = match bad {
                Some(bad) => Measured {
                    note: Some(format!("no ratio: {bad}")),
                    ..Measured::estimate(against, Estimate { mean: f64::NAN, ci95: None, n: pairs })
                },
                None => {
                    let Some(found) = ratio(&mine.values, &theirs.values, context.miss()) else {
                        return usage(format!("{} has no runs", self.policy));
                    };
                    let missed = [(&self.policy, mine.missed), (against, theirs.missed)];
                    let of = |(policy, missed): (&String, usize)| format!("{policy} {missed} of {pairs}");
                    let is_missed = missed.iter().any(|(_, missed)| *missed > 0);
                    let note = is_missed.then(|| format!("never reached: {}", missed.map(of).join(", ")));
                    let ci95 = found.ci95.and_then(|ends| without_ends(ends, [mine.missed > 0, theirs.missed > 0]));
                    let student = (!is_missed).then_some(Student::OfLogarithms);
                    Measured { none, note, student, ..Measured::estimate(against, Estimate { ci95, ..found }) }
                }
            };
            details.rows.push(vec![
                against.clone(),
                shown_interval(found.value, found.ci95),
                pairs.to_string(),
                mine.missed.to_string(),
                theirs.missed.to_string(),
            ]);
            measured.push(found);
        }
        Ok(Measurement::new(measured, vec![details]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a run would have spent beyond its end makes a ratio larger, or smaller, by no one knows how much.
    #[test]
    fn runs_that_never_arrive_leave_an_interval_without_an_end() {
        let of = |missed| without_ends([0.5, 0.75], missed);
        assert_eq!(of([false, false]), Some([0.5, 0.75]));
        assert_eq!(of([true, false]), Some([0.5, NO_END]));
        assert_eq!(of([false, true]), Some([0.0, 0.75]));
        assert_eq!(of([true, true]), None);
        assert_eq!(shown_interval(0.6, of([true, false])), "0.6000 [0.5000, ∞]");
    }

    /// Ratios 2, 1/2, 4: the mean of their logarithms is that of 4^(1/3). By hand, the standard deviation of the
    /// logarithms is 1.058800, and t with two degrees of freedom 4.302653.
    #[test]
    fn a_ratio_is_a_geometric_mean_and_turns_over_with_its_interval() {
        let (left, right) = ([2.0, 3.0, 8.0], [1.0, 6.0, 2.0]);
        let is_near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 1e-5;
        let found = ratio(&left, &right, Miss::USUAL).unwrap();
        let half = exp(4.302_653 * 1.058_800 / 3.0_f64.sqrt());
        let [low, high] = found.ci95.unwrap();
        assert!(is_near(found.mean, 4.0_f64.cbrt()) && is_near(high, found.mean * half), "{found:?}");
        let turned = ratio(&right, &left, Miss::USUAL).unwrap();
        let [turned_low, turned_high] = turned.ci95.unwrap();
        assert!(is_near(turned.mean, 1.0 / found.mean) && is_near(turned_low, 1.0 / high), "{turned:?}");
        assert!(is_near(turned_high, 1.0 / low), "{turned:?}");
    }
}
