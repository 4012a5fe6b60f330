//! The best set of a round where what a set is worth is not a sum: by enumeration.

use super::{HindsightMeter, OpenRound};
use crate::run::learning::{Learning, Past};
use fedgenie_core::id::ClientId;
use fedgenie_core::oracle::TIE;
use fedgenie_core::oracle::hindsight::{Judgement, SetSize};
use fedgenie_learning::layout::Update;
use fedgenie_learning::task::JobKey;
use rayon::prelude::*;

impl HindsightMeter<'_> {
    /// The best set of the candidates, and the chosen one. `updates` are of those who would arrive, ascending.
    pub(super) fn judge_sets(
        &self,
        open: &OpenRound<'_>,
        learning: &Learning<'_>,
        updates: &[(ClientId, &Update)],
        chosen: &[u32],
        parallel: bool,
    ) -> Judgement {
        let before = open.before.as_ref().expect("a utility of sets keeps what was before");
        let weights = self.hindsight.utility.of_sets().expect("only sets are judged");
        let past = Past { round: open.round, start: &open.start, before, weights };
        let value = |set: &Vec<u32>| -> f64 {
            let arrived = |&index: &u32| {
                let (client, number) = (open.clients[index as usize], open.numbers[index as usize]);
                let found = updates.binary_search_by_key(&client, |(client, _)| *client).ok()?;
                Some((JobKey { client, number }, updates[found].1))
            };
            let members: Vec<(JobKey, &Update)> = set.iter().filter_map(arrived).collect();
            let slowest = set.iter().map(|&index| open.speeds[index as usize]).fold(f64::INFINITY, f64::min);
            learning.worth(&past, &members) + slowest
        };
        let sets = sets(open.clients.len(), open.cohort, self.hindsight.size);
        let values: Vec<f64> =
            if parallel { sets.par_iter().map(value).collect() } else { sets.iter().map(value).collect() };
        let best_value = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let is_best = |value: f64| value >= best_value - TIE;
        let best = sets.iter().zip(&values).filter(|(_, value)| is_best(**value)).map(|(set, _)| set).min();
        let best = best.cloned().unwrap_or_default();
        let own_value = match sets.iter().position(|set| set == chosen) {
            Some(own) if is_best(values[own]) => best_value,
            Some(own) => values[own],
            None => value(&chosen.to_vec()),
        };
        Judgement { best, best_value, own_value }
    }
}

/// All sets of candidates, each ascending.
fn sets(candidates: usize, cohort: usize, size: SetSize) -> Vec<Vec<u32>> {
    let least = match size {
        SetSize::Exactly => cohort,
        SetSize::AtMost => 1,
    };
    (least..=cohort).flat_map(|size| of_size(candidates as u32, size as u32)).collect()
}

/// All sets of one size, in lexicographic order.
fn of_size(candidates: u32, size: u32) -> Vec<Vec<u32>> {
    let mut set: Vec<u32> = (0..size).collect();
    let mut sets = Vec::new();
    loop {
        sets.push(set.clone());
        // The last member that can move on does, and those behind it follow it.
        let Some(place) = (0..size).rev().find(|&place| set[place as usize] < candidates - size + place) else {
            return sets;
        };
        let next = set[place as usize] + 1;
        for (offset, member) in (0..).zip(&mut set[place as usize..]) {
            *member = next + offset;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedgenie_core::oracle::regret::subsets;

    #[test]
    fn every_set_comes_once() {
        assert_eq!(of_size(4, 2), [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]);
        for (candidates, cohort) in [(1, 1), (5, 5), (7, 3), (9, 1)] {
            let mut found = sets(candidates, cohort, SetSize::AtMost);
            let count: u64 = (1..=cohort).map(|size| subsets(candidates, size)).sum();
            found.sort();
            found.dedup();
            assert_eq!(found.len() as u64, count);
            assert_eq!(sets(candidates, cohort, SetSize::Exactly).len() as u64, subsets(candidates, cohort));
        }
    }
}
