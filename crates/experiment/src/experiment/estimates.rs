//! Results over runs of several seeds: means and paired differences with intervals.

use super::heavy::{self, MedianOf};
use super::sample::Sample;
use super::until::{self, BySeed, Until};
use super::{ROUNDING, RunSummary};
use fedgenie_core::math::statistics::paired::paired_shares;
use fedgenie_core::math::statistics::{Estimate, estimate, paired_difference, proportion};
use std::collections::{BTreeMap, BTreeSet};

/// How the share of runs that reach a target begins.
const REACHED: &str = "reached.";

/// Horizons of spending until targets, for runs that are shown side by side.
pub(super) struct Horizons {
    of: BTreeMap<String, f64>,
    /// Whether times have medians.
    are_heavy: bool,
}

impl Horizons {
    pub fn of<'a>(runs: impl Iterator<Item = &'a RunSummary>) -> Self {
        let runs: Vec<&RunSummary> = runs.collect();
        let names: BTreeSet<String> = runs.iter().flat_map(|run| until::names(run)).collect();
        let horizon = |name: String| (until::horizon(&name, runs.iter().copied()), name);
        let of = names.into_iter().map(horizon).map(|(horizon, name)| (name, horizon)).collect();
        Self { of, are_heavy: heavy::are_heavy(runs.iter().copied()) }
    }

    fn to(&self, name: &str) -> f64 {
        self.of.get(name).copied().unwrap_or(f64::INFINITY)
    }
}

/// The names of all quantities: numbers of the runs, and spending until targets.
fn names(runs: &BySeed<'_>, horizons: &Horizons) -> Vec<String> {
    let names: BTreeSet<String> = runs.values().flat_map(|run| run.numbers().into_keys()).collect();
    names.into_iter().filter(|name| !until::is_until(name)).chain(horizons.of.keys().cloned()).collect()
}

/// A sample with means, also where medians stand beside them.
fn sample(name: &str, runs: &BySeed<'_>) -> Sample {
    Sample::of(name, runs).with_medians(false)
}

/// The estimate of every quantity over seeds.
pub(super) fn estimates(runs: &BySeed<'_>, horizons: &Horizons) -> BTreeMap<String, Estimate> {
    let of = |name: String| Some((sample(&name, runs).estimate(horizons.to(&name))?, name));
    names(runs, horizons).into_iter().filter_map(of).map(|(found, name)| (name, found)).collect()
}

/// Medians of times, where runs met heavy tails.
pub(super) fn medians_of(runs: &BySeed<'_>, horizons: &Horizons) -> BTreeMap<String, MedianOf> {
    medians(runs, horizons, |name| Sample::of(name, runs).median(horizons.to(name)))
}

/// Medians of the differences of times, where runs met heavy tails.
pub(super) fn median_differences(
    mine: &BySeed<'_>,
    theirs: &BySeed<'_>,
    horizons: &Horizons,
) -> BTreeMap<String, MedianOf> {
    let difference = |name: &str| Sample::of(name, mine).median_minus(&Sample::of(name, theirs), horizons.to(name));
    medians(mine, horizons, difference)
}

fn medians(
    runs: &BySeed<'_>,
    horizons: &Horizons,
    of: impl Fn(&str) -> Option<MedianOf>,
) -> BTreeMap<String, MedianOf> {
    let times = names(runs, horizons).into_iter().filter(|name| horizons.are_heavy && heavy::is_time(name));
    times.filter_map(|name| Some((of(&name)?, name))).map(|(found, name)| (name, found)).collect()
}

/// Arrivals by quantity spent: their number, and the median.
pub(super) fn untils(runs: &BySeed<'_>, horizons: &Horizons) -> BTreeMap<String, Until> {
    let found = |(name, horizon): (&String, &f64)| Some((name.clone(), until::until(name, runs, *horizon)?));
    horizons.of.iter().filter_map(found).collect()
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
    if pairs.len() > 1 && name.starts_with(REACHED) {
        let count = |left: bool, right: bool| {
            pairs.iter().filter(|pair| (pair.0 > 0.0, pair.1 > 0.0) == (left, right)).count() as u64
        };
        return Some(paired_shares([count(true, true), count(true, false), count(false, true), count(false, false)]));
    }
    let same = |&(left, right): &(f64, f64)| {
        let is_same = (left - right).abs() <= ROUNDING * left.abs().max(right.abs());
        (left, if is_same { left } else { right })
    };
    let (left, right): (Vec<f64>, Vec<f64>) = pairs.iter().map(same).unzip();
    paired_difference(&left, &right)
}

/// Difference of every quantity, paired by seed.
pub(super) fn differences(mine: &BySeed<'_>, theirs: &BySeed<'_>, horizons: &Horizons) -> BTreeMap<String, Estimate> {
    let of = |name: String| {
        let found = sample(&name, mine).minus(&sample(&name, theirs), horizons.to(&name))?;
        Some((name, found))
    };
    names(mine, horizons).into_iter().filter_map(of).collect()
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

    #[test]
    fn shares_that_agree_are_not_the_same_for_certain() {
        let [low, high] = difference_of("reached.a", &[(1.0, 1.0); 20]).unwrap().ci95.unwrap();
        assert!(low < -0.1 && high > 0.1, "{low} to {high}");
        assert_eq!(difference_of("rounds", &[(7.0, 7.0); 20]).unwrap().ci95, Some([0.0; 2]));
    }
}
