//! What runs of several seeds come to: means and paired differences with intervals.

use super::RunSummary;
use fedgenie_core::math::statistics::{Estimate, estimate, paired_difference, proportion};
use std::collections::{BTreeMap, BTreeSet};

fn names(runs: &BTreeMap<u64, &RunSummary>) -> Vec<String> {
    let names: BTreeSet<String> = runs.values().flat_map(|run| run.numbers().into_keys()).collect();
    names.into_iter().collect()
}

/// Mean of every number over seeds.
pub(super) fn estimates(runs: &BTreeMap<u64, &RunSummary>) -> BTreeMap<String, Estimate> {
    let value = |name: &String| {
        let values: Vec<f64> = runs.values().filter_map(|run| run.numbers().get(name).copied()).collect();
        estimate_of(name, &values).map(|estimate| (name.clone(), estimate))
    };
    names(runs).iter().filter_map(value).collect()
}

/// Mean over seeds of one of [`RunSummary::numbers`]. The share of runs that reach a target has Wilson's interval,
/// which stays between 0 and 1.
pub fn estimate_of(name: &str, values: &[f64]) -> Option<Estimate> {
    if values.len() < 2 || !name.starts_with("reached.") {
        return estimate(values);
    }
    let reached = values.iter().filter(|&&value| value > 0.0).count();
    Some(proportion(reached as u64, values.len() as u64))
}

/// Difference of every number, paired by seed.
pub(super) fn differences(
    mine: &BTreeMap<u64, &RunSummary>,
    theirs: &BTreeMap<u64, &RunSummary>,
) -> BTreeMap<String, Estimate> {
    let pairs: Vec<_> =
        mine.iter().filter_map(|(seed, run)| theirs.get(seed).map(|other| (run.numbers(), other.numbers()))).collect();
    let value = |name: &String| {
        let (left, right): (Vec<f64>, Vec<f64>) =
            pairs.iter().filter_map(|(mine, theirs)| Some((*mine.get(name)?, *theirs.get(name)?))).unzip();
        paired_difference(&left, &right).map(|estimate| (name.clone(), estimate))
    };
    names(mine).iter().filter_map(value).collect()
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
}
