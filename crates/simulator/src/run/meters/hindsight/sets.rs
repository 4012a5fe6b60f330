//! The best set of a round where a set's value is not a sum: by enumeration, or by sorting where a task states each
//! client's contribution.

use super::{HindsightMeter, OpenRound, imagine};
use crate::run::error::RunError;
use crate::run::learning::{Before, Learning, Trained};
use crate::world::hindsight::direction;
use fedgenie_core::id::{ClientId, Turn};
use fedgenie_core::oracle::TIE;
use fedgenie_core::oracle::hindsight::{Hindsight, Judgement};
use fedgenie_core::oracle::top::top_m;
use fedgenie_learning::layout::Update;
use fedgenie_learning::task::JobKey;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Knowledge of a selection before it is made.
#[derive(Debug)]
pub(super) struct Foreseen {
    /// Which, and of how many clients sets could be.
    turn: Turn,
    sizes: RangeInclusive<usize>,
    best: Vec<u32>,
    pub best_value: f64,
    contributions: Vec<f64>,
}

/// Values of sets of the candidates of a round.
struct Valuer<'a> {
    hindsight: &'a Hindsight,
    open: &'a OpenRound<'a>,
    learning: &'a Learning<'a>,
    /// The start of the aggregation.
    before: &'a Before<'a>,
    /// Weights of the metrics in a model's value.
    weights: &'a BTreeMap<String, f64>,
    /// Updates that would arrive, ascending by client.
    updates: &'a [(ClientId, &'a Update)],
}

impl Valuer<'_> {
    fn update(&self, client: ClientId) -> Option<&Update> {
        let found = self.updates.binary_search_by_key(&client, |(client, _)| *client);
        found.ok().map(|found| self.updates[found].1)
    }

    /// Value of a set of positions of candidates, ascending.
    fn value(&self, set: &[u32]) -> f64 {
        let Self { hindsight, open, .. } = self;
        let arrived = |&index: &u32| {
            let (client, number) = (open.clients[index as usize], open.numbers[index as usize]);
            Some((JobKey { client, number }, self.update(client)?))
        };
        let members: Vec<(JobKey, &Update)> = set.iter().filter_map(arrived).collect();
        let slowest = set.iter().map(|&index| open.speeds[index as usize]).fold(f64::INFINITY, f64::min);
        let bytes = set.iter().fold(0, |sum: u64, &index| sum.saturating_add(open.bytes[index as usize]));
        self.learning.worth(self.before, self.weights, &members) + slowest + hindsight.worth_of(bytes)
    }

    /// Each candidate's contribution to a set, where only that and the set's size matter. `None` for a candidate whose
    /// update does not count.
    fn adds(&self) -> Option<Vec<Option<f64>>> {
        let Self { hindsight, open, learning, before, weights, .. } = self;
        let is_alike = hindsight.traffic.is_none() || open.bytes.iter().all(|bytes| *bytes == open.bytes[0]);
        let sign = direction(weights).filter(|_| is_alike)?;
        learning.adds(*open.clients.first()?)?;
        let of = |&client: &ClientId| match !before.has(client) && self.update(client).is_some() {
            true => learning.adds(client).map(|number| Some(sign * number)),
            false => Some(None),
        };
        open.clients.iter().map(of).collect()
    }
}

impl<'w> HindsightMeter<'w> {
    fn valuer<'a>(
        &'a self,
        open: &'a OpenRound<'_>,
        learning: &'a Learning<'_>,
        updates: &'a [(ClientId, &'a Update)],
    ) -> Valuer<'a> {
        let before = open.before.as_ref().expect("a utility of sets keeps what was before");
        let weights = self.hindsight.utility.of_sets().expect("only sets are judged");
        Valuer { hindsight: self.hindsight, open, learning, before, weights, updates }
    }

    /// The best set of the candidates of a selection that has not been made, and its value: with the updates that the
    /// candidates would return. The meter remembers it for its judgement.
    ///
    /// # Errors
    /// If the task fails, or the run is stopped.
    pub fn foresee(
        &mut self,
        open: &OpenRound<'_>,
        learning: &Learning<'_>,
        parallel: bool,
    ) -> Result<(Vec<ClientId>, f64), RunError> {
        let mut imagined = std::mem::take(&mut self.updates);
        let updates = imagine(open, (learning, &[]), parallel, &mut imagined)?;
        let (foreseen, _) = self.weigh(open, learning, &updates, &[], parallel);
        learning.check_work(open.round)?;
        drop(updates);
        self.updates = imagined;
        let best = foreseen.best.iter().map(|&index| open.clients[index as usize]).collect();
        let value = foreseen.best_value;
        self.foreseen = Some(foreseen);
        Ok((best, value))
    }

    /// The judgement of a selection, where the best set was known before and is of the same sets. The value of the
    /// chosen set is that of its updates that arrived.
    pub(super) fn recall(
        &mut self,
        open: &OpenRound<'_>,
        (learning, trained): (&Learning<'_>, &[Trained]),
        chosen: &[u32],
    ) -> Option<(Judgement, Vec<f64>)> {
        let known = self.foreseen.take()?;
        let Foreseen { turn, sizes, best, best_value, contributions } = known;
        if (turn, &sizes) != (open.turn, &self.hindsight.sizes(open.cohort)) {
            return None;
        }
        let update = |(index, trained): (usize, &Trained)| (trained.client, learning.update(index));
        let updates: Vec<(ClientId, &Update)> = trained.iter().enumerate().map(update).collect();
        let own_value = self.valuer(open, learning, &updates).value(chosen);
        let own_value = if own_value >= best_value - TIE { best_value } else { own_value };
        Some((Judgement { best, best_value, own_value }, contributions))
    }

    /// The best set of the candidates, and the chosen one; and each candidate's mean contribution to a set, where that
    /// is known. `updates` are of the clients that would arrive, ascending.
    pub(super) fn judge_sets(
        &self,
        open: &OpenRound<'_>,
        learning: &Learning<'_>,
        updates: &[(ClientId, &Update)],
        chosen: &[u32],
        parallel: bool,
    ) -> (Judgement, Vec<f64>) {
        let (found, own_value) = self.weigh(open, learning, updates, chosen, parallel);
        let Foreseen { best, best_value, contributions, .. } = found;
        (Judgement { best, best_value, own_value }, contributions)
    }

    /// The best set of the candidates, and the value of the chosen one; NaN if it is empty.
    fn weigh(
        &self,
        open: &OpenRound<'_>,
        learning: &Learning<'_>,
        updates: &[(ClientId, &Update)],
        chosen: &[u32],
        parallel: bool,
    ) -> (Foreseen, f64) {
        let valuer = self.valuer(open, learning, updates);
        let value = |set: &Vec<u32>| valuer.value(set);
        let sizes = self.hindsight.sizes(open.cohort);
        let adds = valuer.adds();
        let sets = match &adds {
            Some(adds) => promising(adds, &open.speeds, sizes.clone()),
            None => sets(open.clients.len(), sizes.clone()),
        };
        let values: Vec<f64> =
            if parallel { sets.par_iter().map(value).collect() } else { sets.iter().map(value).collect() };
        let best_value = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let is_best = |value: f64| value >= best_value - TIE;
        let best = sets.iter().zip(&values).filter(|(_, value)| is_best(**value)).map(|(set, _)| set).min();
        let best = best.cloned().unwrap_or_default();
        let own_value = match sets.iter().position(|set| set == chosen) {
            Some(own) if is_best(values[own]) => best_value,
            Some(own) => values[own],
            None if chosen.is_empty() => f64::NAN,
            None => valuer.value(chosen),
        };
        let contributions = match &adds {
            Some(adds) => contributions_of_sums(adds, &open.speeds, sizes.clone(), value),
            None => contributions(&sets, &values, open.clients.len()),
        };
        (Foreseen { turn: open.turn, sizes, best, best_value, contributions }, own_value)
    }
}

/// Each candidate's contribution to a set: the mean value of the sets of one size with it less that of those without.
/// Nothing if sets differ in size, if there is but one, or if a value is not finite.
fn contributions(sets: &[Vec<u32>], values: &[f64], candidates: usize) -> Vec<f64> {
    let size = sets.first().map_or(0, Vec::len);
    if size == candidates || sets.iter().any(|set| set.len() != size) || !values.iter().all(|value| value.is_finite()) {
        return Vec::new();
    }
    let with = sets.len() * size / candidates;
    let total: f64 = values.iter().sum();
    let mut sums = vec![0.0; candidates];
    for (set, value) in sets.iter().zip(values) {
        set.iter().for_each(|&member| sums[member as usize] += value);
    }
    let mean = |sum: f64, count: usize| sum / count as f64;
    sums.into_iter().map(|sum| mean(sum, with) - mean(total - sum, sets.len() - with)).collect()
}

/// The same where every client counts and a set's value is a constant plus a multiple of the sum of its members'
/// contributions: the mean over the sets of one size is in closed form. The multiple is that between the best and the
/// worst set.
fn contributions_of_sums(
    adds: &[Option<f64>],
    speeds: &[f64],
    sizes: RangeInclusive<usize>,
    value: impl Fn(&Vec<u32>) -> f64,
) -> Vec<f64> {
    let numbers: Option<Vec<f64>> = adds.iter().map(|number| number.filter(|number| number.is_finite())).collect();
    let is_sum = speeds.iter().all(|speed| *speed == speeds[0]);
    let cohort = *sizes.end();
    let Some(numbers) = numbers.filter(|_| is_sum && cohort < adds.len() && *sizes.start() == cohort) else {
        return Vec::new();
    };
    let (mut best, mut worst) = (Vec::new(), Vec::new());
    top_m(&numbers, cohort, &mut best);
    let turned: Vec<f64> = numbers.iter().map(|number| -number).collect();
    top_m(&turned, cohort, &mut worst);
    let sum = |set: &[u32]| set.iter().map(|&member| numbers[member as usize]).sum::<f64>();
    let between = sum(&best) - sum(&worst);
    let multiple = if between > 0.0 { (value(&best) - value(&worst)) / between } else { 0.0 };
    let (total, others) = (numbers.iter().sum::<f64>(), (numbers.len() - 1) as f64);
    numbers.iter().map(|number| multiple * (number - (total - number) / others)).collect()
}

/// Sets of candidates, each ascending, among which the best is. With so many members that count, a set is worth more
/// the larger the sum of their contributions, and its slowest member's `speed` in addition. `adds` is `None` for
/// clients whose update does not count. Beside the slowest member only the sum matters: for each speed and each number
/// of members that count, the largest sum of the clients that are at least so fast.
fn promising(adds: &[Option<f64>], speeds: &[f64], sizes: RangeInclusive<usize>) -> Vec<Vec<u32>> {
    let mut thresholds = speeds.to_vec();
    thresholds.sort_by(f64::total_cmp);
    thresholds.dedup();
    let (mut found, mut best) = (Vec::new(), Vec::new());
    for least in thresholds {
        let fast = (0..).zip(adds.iter().zip(speeds)).filter(|(_, (_, speed))| **speed >= least);
        let (counting, others): (Vec<_>, Vec<_>) =
            fast.map(|(index, (adds, _))| (index, *adds)).partition(|(_, adds): &(u32, Option<f64>)| adds.is_some());
        let number = |(_, adds): &(u32, Option<f64>)| adds.filter(|number| !number.is_nan());
        let numbers: Vec<f64> = counting.iter().map(|one| number(one).unwrap_or(f64::NEG_INFINITY)).collect();
        for size in sizes.clone() {
            for count in size.saturating_sub(others.len())..=size.min(counting.len()) {
                top_m(&numbers, count, &mut best);
                let members = best.iter().map(|&place| counting[place as usize].0);
                let mut set: Vec<u32> = members.chain(others.iter().map(|(index, _)| *index)).take(size).collect();
                set.sort_unstable();
                found.push(set);
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

/// All sets of candidates, each ascending.
fn sets(candidates: usize, sizes: RangeInclusive<usize>) -> Vec<Vec<u32>> {
    sizes.flat_map(|size| of_size(candidates as u32, size as u32)).collect()
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
    use fedgenie_core::rng::{Purpose, Streams};

    /// Members that count or not, numbers and speeds of which several are equal, one price for each member that counts:
    /// the best of all sets, the first of those that are equally good, is among the promising ones.
    #[test]
    fn the_best_set_is_promising() {
        let mut rng = Streams::new(8).stream(Purpose::Solver, 0, 0);
        for case in 0..600_u32 {
            let candidates = 1 + rng.below(7) as usize;
            let cohort = 1 + rng.below(candidates as u64) as usize;
            let least = [cohort, 1, 1 + rng.below(cohort as u64) as usize][case as usize % 3];
            // What a set of one size costs more than one of another.
            let traffic = (rng.below(3) as f64 - 1.0) / 16.0;
            let before = rng.below(3) as f64;
            let adds: Vec<Option<f64>> =
                (0..candidates).map(|_| (rng.below(4) > 0).then(|| rng.below(5) as f64 / 4.0 - 0.5)).collect();
            let price = rng.below(3) as f64 / 8.0;
            let speeds: Vec<f64> = (0..candidates).map(|_| -price * rng.below(4) as f64).collect();
            let shared = rng.below(3) as f64 / 2.0;
            let value = |set: &Vec<u32>| {
                let counting: Vec<f64> = set.iter().filter_map(|&index| adds[index as usize]).collect();
                let count = before + counting.len() as f64;
                let mean = if count > 0.0 { (counting.iter().sum::<f64>() + shared) / count } else { 0.0 };
                let slowest = set.iter().map(|&index| speeds[index as usize]).fold(f64::INFINITY, f64::min);
                mean + slowest + traffic * set.len() as f64
            };
            let first_best = |sets: &[Vec<u32>]| {
                let best = sets.iter().map(value).fold(f64::NEG_INFINITY, f64::max);
                sets.iter().filter(|set| value(set) >= best - TIE).min().unwrap().clone()
            };
            let promising = promising(&adds, &speeds, least..=cohort);
            let all = sets(candidates, least..=cohort);
            assert!(promising.iter().all(|set| all.contains(set)), "{promising:?}");
            assert_eq!(first_best(&promising), first_best(&all), "{adds:?}, {speeds:?}, {cohort}");
        }
    }

    /// Each member adds its number, divided by the size of the set, in the closed form as by enumeration.
    #[test]
    fn contributions_are_means_over_sets() {
        let numbers = [0.5, -0.25, 1.0, 0.0, 0.125];
        for cohort in 1..5 {
            let value =
                |set: &Vec<u32>| 2.0 + set.iter().map(|&member| numbers[member as usize]).sum::<f64>() / cohort as f64;
            let sets = sets(5, cohort..=cohort);
            let values: Vec<f64> = sets.iter().map(value).collect();
            let found = contributions(&sets, &values, 5);
            let mean = |has: bool| {
                let of: Vec<f64> = sets.iter().filter(|set| set.contains(&2) == has).map(value).collect();
                of.iter().sum::<f64>() / of.len() as f64
            };
            approx::assert_abs_diff_eq!(found[2], mean(true) - mean(false), epsilon = 1e-12);
            let adds = numbers.map(Some);
            let closed = contributions_of_sums(&adds, &[-0.5; 5], cohort..=cohort, value);
            for (found, closed) in found.iter().zip(&closed) {
                approx::assert_abs_diff_eq!(found, closed, epsilon = 1e-12);
            }
        }
        assert!(contributions(&sets(3, 3..=3), &[1.0], 3).is_empty(), "there is nobody else");
        assert!(contributions(&sets(3, 1..=2), &[1.0; 6], 3).is_empty());
        assert!(contributions(&sets(3, 2..=2), &[1.0, f64::NEG_INFINITY, 1.0], 3).is_empty());
        let none = contributions_of_sums(&[Some(1.0), None], &[0.0; 2], 1..=1, |_| 0.0);
        assert!(none.is_empty(), "one does not count");
    }

    #[test]
    fn every_set_comes_once() {
        assert_eq!(of_size(4, 2), [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]);
        for (candidates, cohort) in [(1, 1), (5, 5), (7, 3), (9, 1)] {
            let mut found = sets(candidates, 1..=cohort);
            let count: u64 = (1..=cohort).map(|size| subsets(candidates, size)).sum();
            found.sort();
            found.dedup();
            assert_eq!(found.len() as u64, count);
            assert_eq!(sets(candidates, cohort..=cohort).len() as u64, subsets(candidates, cohort));
        }
    }
}
