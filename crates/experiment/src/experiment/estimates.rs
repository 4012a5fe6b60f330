//! Results over runs of several seeds: means and paired differences with intervals.

use super::heavy::{self, MedianOf};
use super::sample::Sample;
use super::until::{self, BySeed, FollowUp, Until};
use super::{ROUNDING, RunSummary};
use fedgenie_core::math::statistics::paired::paired_shares_at;
use fedgenie_core::math::statistics::{Estimate, Miss, estimate, paired_difference_at, proportion};
use std::collections::{BTreeMap, BTreeSet};

/// How the share of runs that reach a target begins.
const REACHED: &str = "reached.";

/// Watches of spending until targets, of runs that are shown side by side.
pub(super) struct FollowUps {
    of: BTreeMap<String, FollowUp>,
    /// Whether times have medians.
    are_heavy: bool,
}

impl FollowUps {
    pub fn of<'a>(runs: impl Iterator<Item = &'a RunSummary>) -> Self {
        let runs: Vec<&RunSummary> = runs.collect();
        let names: BTreeSet<String> = runs.iter().flat_map(|run| until::names(run)).collect();
        let follow_up = |name: String| (until::follow_up(&name, runs.iter().copied()), name);
        let of = names.into_iter().map(follow_up).map(|(follow_up, name)| (name, follow_up)).collect();
        Self { of, are_heavy: heavy::are_heavy(runs.iter().copied()) }
    }

    /// The quantities in which the runs are not fairly watched.
    pub fn unfair(self) -> impl Iterator<Item = String> {
        self.of.into_iter().filter(|(_, follow_up)| !follow_up.is_fair()).map(|(name, _)| name)
    }

    fn to(&self, name: &str) -> FollowUp {
        self.of.get(name).copied().unwrap_or(FollowUp::ENDLESS)
    }
}

/// The names of all quantities: numbers of the runs, and spending until targets.
fn names(runs: &BySeed<'_>, follow_ups: &FollowUps) -> Vec<String> {
    let mut names = BTreeSet::new();
    runs.values().for_each(|run| run.add_names(&mut names));
    names.into_iter().filter(|name| !until::is_until(name)).chain(follow_ups.of.keys().cloned()).collect()
}

/// A sample with means, also where medians stand beside them.
fn sample(name: &str, runs: &BySeed<'_>) -> Sample {
    Sample::of(name, runs).with_medians(false)
}

/// The estimate of every quantity over seeds.
pub(super) fn estimates(runs: &BySeed<'_>, follow_ups: &FollowUps) -> BTreeMap<String, Estimate> {
    let of = |name: String| Some((sample(&name, runs).estimate(follow_ups.to(&name))?, name));
    names(runs, follow_ups).into_iter().filter_map(of).map(|(found, name)| (name, found)).collect()
}

/// Medians of times, where runs met heavy tails.
pub(super) fn medians_of(runs: &BySeed<'_>, follow_ups: &FollowUps) -> BTreeMap<String, MedianOf> {
    medians(runs, follow_ups, |name| Sample::of(name, runs).median(follow_ups.to(name)))
}

/// Medians of the differences of times, where runs met heavy tails.
pub(super) fn median_differences(
    mine: &BySeed<'_>,
    theirs: &BySeed<'_>,
    follow_ups: &FollowUps,
) -> BTreeMap<String, MedianOf> {
    let difference = |name: &str| Sample::of(name, mine).median_minus(&Sample::of(name, theirs), follow_ups.to(name));
    medians(mine, follow_ups, difference)
}

fn medians(
    runs: &BySeed<'_>,
    follow_ups: &FollowUps,
    of: impl Fn(&str) -> Option<MedianOf>,
) -> BTreeMap<String, MedianOf> {
    if !follow_ups.are_heavy {
        return BTreeMap::new();
    }
    let times = names(runs, follow_ups).into_iter().filter(|name| heavy::is_time(name));
    times.filter_map(|name| Some((of(&name)?, name))).map(|(found, name)| (name, found)).collect()
}

/// Arrivals by quantity spent: their number, and the median.
pub(super) fn untils(runs: &BySeed<'_>, follow_ups: &FollowUps) -> BTreeMap<String, Until> {
    let found = |(name, follow_up): (&String, &FollowUp)| Some((name.clone(), until::until(name, runs, *follow_up)?));
    follow_ups.of.iter().filter_map(found).collect()
}

/// Mean over seeds of one of [`RunSummary::numbers`]. The share of runs that reach a target has Wilson's interval,
/// which stays between 0 and 1.
pub fn estimate_of(name: &str, values: &[f64]) -> Option<Estimate> {
    if values.len() < 2 || !name.starts_with(REACHED) {
        return estimate(values);
    }
    let reached = values.iter().filter(|&&value| value > 0.0).count();
    Some(proportion(reached as u64, values.len() as u64))
}

/// Difference of one of [`RunSummary::numbers`] over pairs of seeds. Values that differ by rounding are the same. The
/// difference of shares has Newcombe's interval, which has a width where all pairs agree.
pub fn difference_of(name: &str, pairs: &[(f64, f64)]) -> Option<Estimate> {
    difference_at(name, pairs, Miss::USUAL)
}

/// The same, with an interval that misses the difference more or less often.
pub(super) fn difference_at(name: &str, pairs: &[(f64, f64)], miss: Miss) -> Option<Estimate> {
    if pairs.len() > 1 && name.starts_with(REACHED) {
        let count = |left: bool, right: bool| {
            pairs.iter().filter(|pair| (pair.0 > 0.0, pair.1 > 0.0) == (left, right)).count() as u64
        };
        let counts = [count(true, true), count(true, false), count(false, true), count(false, false)];
        return Some(paired_shares_at(counts, miss));
    }
    let same = |&(left, right): &(f64, f64)| {
        let is_same = (left - right).abs() <= ROUNDING * left.abs().max(right.abs());
        (left, if is_same { left } else { right })
    };
    let (left, right): (Vec<f64>, Vec<f64>) = pairs.iter().map(same).unzip();
    let mut found = paired_difference_at(&left, &right, miss)?;
    // What sums of equal numbers leave is no difference.
    let largest = left.iter().chain(&right).map(|value| value.abs()).fold(0.0, f64::max);
    if found.mean.abs() <= ROUNDING * largest {
        found.mean = 0.0;
    }
    Some(found)
}

/// Difference of every quantity, paired by seed.
pub(super) fn differences(
    mine: &BySeed<'_>,
    theirs: &BySeed<'_>,
    follow_ups: &FollowUps,
) -> BTreeMap<String, Estimate> {
    let of = |name: String| {
        let found = sample(&name, mine).minus(&sample(&name, theirs), follow_ups.to(&name))?;
        Some((name, found))
    };
    names(mine, follow_ups).into_iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_runs_stays_between_none_and_all() {
        let [low, high] = estimate_of("reached.a", &[0.0, 1.0, 0.0]).unwrap().ci95.unwrap();
        assert!(0.0 < low && low < 1.0 / 3.0 && high < 1.0, "{low} to {high}");
        assert_eq!(estimate_of("reached.a", &[1.0]).unwrap().ci95, None);
    }

    /// 0.1 + 0.2 − 0.3 leaves 5.6e-17 of numbers that are equal in the mean.
    #[test]
    fn what_rounding_leaves_is_no_difference() {
        let found = difference_of("final.a", &[(0.1, 0.3), (0.2, 0.1), (0.3, 0.2)]).unwrap();
        assert!(found.mean == 0.0 && found.ci95.is_some_and(|[low, high]| low < -0.1 && high > 0.1));
        assert_eq!(difference_of("final.a", &[(1.0, 0.5), (2.0, 0.5)]).unwrap().mean, 1.0);
    }

    #[test]
    fn shares_that_agree_are_not_the_same_for_certain() {
        let [low, high] = difference_of("reached.a", &[(1.0, 1.0); 20]).unwrap().ci95.unwrap();
        assert!(low < -0.1 && high > 0.1, "{low} to {high}");
        assert_eq!(difference_of("rounds", &[(7.0, 7.0); 20]).unwrap().ci95, Some([0.0; 2]));
    }
}
