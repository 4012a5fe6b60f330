//! The state of an annealing run, and uniform draws from its neighbours.
//!
//! A neighbour of `S` is `U = S − x + y` with one member `x` swapped for one non-member `y`. Plain annealing allows all
//! `m(K − m)` swaps (18). The accelerated one (19) allows those in which `x` is the slowest or the least gaining member
//! of `S`, or `y` is the slowest or the least gaining member of `U`. "The slowest" is one member: the smallest position
//! among equals. This makes both relations total orders, and the neighbourhood exactly symmetric.
//!
//! *Drawing from (19).* Let `a` be the slowest and `b` the least gaining member of `S`, `d ∈ {1, 2}` their number.
//! The forward swaps are `x ∈ {a, b}` with any `y`: `d(K − m)`. For any other `x`, both `a` and `b` stay, so that `y`
//! is the slowest of `U` iff it is slower than `a`, and the least gaining iff it gains less than `b`. With `A` all
//! candidates before `a` in ascending speed and `B` all before `b` in ascending gain (none of them is a member), the
//! other reverse swaps are `(m − d)·|A ∪ B|`. A draw is uniform over `d(K − m) + (m − d)(|A| + |B|)` tickets, and is
//! repeated when it hits a `y ∈ B` that is also in `A`: every neighbour then has exactly one ticket, and at most half
//! the tickets are void.

use super::Search;
use crate::oracle::Instance;
use crate::rng::StreamRng;

/// A swap: the place of a member in the list of all candidates, and the place of a non-member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Swap {
    pub member: usize,
    pub other: usize,
}

/// The current set, with the orders that draw a neighbour.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// All candidates; the first `cohort` are the members.
    pub list: Vec<u32>,
    /// Where each candidate is in `list`.
    place: Vec<u32>,
    /// Candidates by ascending speed, and the rank of each in that order.
    by_speed: Vec<u32>,
    speed_rank: Vec<u32>,
    by_gain: Vec<u32>,
    gain_rank: Vec<u32>,
}

fn rank(values: &[f64], order: &mut Vec<u32>, ranks: &mut Vec<u32>) {
    order.clear();
    order.extend(0..values.len() as u32);
    // `+ 0.0` makes −0 and 0 the same number to the order, as they are to every comparison of speeds.
    order.sort_unstable_by(|&a, &b| (values[a as usize] + 0.0).total_cmp(&(values[b as usize] + 0.0)).then(a.cmp(&b)));
    ranks.clear();
    ranks.resize(values.len(), 0);
    for (rank, &candidate) in order.iter().enumerate() {
        ranks[candidate as usize] = rank as u32;
    }
}

impl State {
    /// Starts from a uniformly random set.
    pub fn start(&mut self, instance: &Instance<'_>, search: Search, rng: &mut StreamRng) {
        let candidates = instance.speed.len();
        self.list.clear();
        self.list.extend(0..candidates as u32);
        self.place.clear();
        self.place.extend(0..candidates as u32);
        for first in 0..instance.cohort {
            let chosen = first + rng.below((candidates - first) as u64) as usize;
            self.exchange(Swap { member: first, other: chosen });
        }
        if search != Search::Plain {
            rank(instance.speed, &mut self.by_speed, &mut self.speed_rank);
            rank(instance.gain, &mut self.by_gain, &mut self.gain_rank);
        }
    }

    /// Applies a swap; applying it again undoes it.
    pub fn exchange(&mut self, swap: Swap) {
        self.list.swap(swap.member, swap.other);
        self.place[self.list[swap.member] as usize] = swap.member as u32;
        self.place[self.list[swap.other] as usize] = swap.other as u32;
    }

    /// A uniformly random neighbour; there must be a non-member.
    pub fn draw(&self, cohort: usize, search: Search, rng: &mut StreamRng) -> Swap {
        let others = self.list.len() - cohort;
        let mut below = |bound: usize| rng.below(bound as u64) as usize;
        if search == Search::Plain {
            let ticket = below(cohort * others);
            return Swap { member: ticket / others, other: cohort + ticket % others };
        }
        let (slowest, least) = self.weakest(cohort);
        let weak = 1 + usize::from(slowest != least);
        let forward = weak * others;
        let (slower, lesser) = match search {
            Search::Symmetric => (self.speed_rank_at(slowest), self.gain_rank_at(least)),
            _ => (0, 0),
        };
        let strong = cohort - weak;
        loop {
            let ticket = below(forward + strong * (slower + lesser));
            if ticket < forward {
                let member = if ticket < others { slowest } else { least };
                return Swap { member, other: cohort + ticket % others };
            }
            let (member, candidate) = ((ticket - forward) % strong, (ticket - forward) / strong);
            let entering = if candidate < slower {
                self.by_speed[candidate]
            } else {
                let entering = self.by_gain[candidate - slower];
                if (self.speed_rank[entering as usize] as usize) < slower {
                    continue;
                }
                entering
            };
            let other = self.place[entering as usize] as usize;
            return Swap { member: skip(member, slowest, least), other };
        }
    }

    /// The places of the slowest and of the least gaining member.
    fn weakest(&self, cohort: usize) -> (usize, usize) {
        let (mut slowest, mut least) = (0, 0);
        for place in 1..cohort {
            slowest = if self.speed_rank_at(place) < self.speed_rank_at(slowest) { place } else { slowest };
            least = if self.gain_rank_at(place) < self.gain_rank_at(least) { place } else { least };
        }
        (slowest, least)
    }

    fn speed_rank_at(&self, place: usize) -> usize {
        self.speed_rank[self.list[place] as usize] as usize
    }

    fn gain_rank_at(&self, place: usize) -> usize {
        self.gain_rank[self.list[place] as usize] as usize
    }
}

/// The `index`-th of the places other than two given ones, which may be the same.
fn skip(index: usize, one: usize, two: usize) -> usize {
    let (first, second) = (one.min(two), one.max(two));
    let place = index + usize::from(index >= first);
    place + usize::from(first != second && place >= second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::brute;
    use crate::rng::{Purpose, Streams};
    use std::collections::BTreeMap;

    /// Definition (19), word for word, with "the arg-min" the smallest position among equals.
    fn neighbours_by_definition(instance: &Instance<'_>, set: &[u32], forward_only: bool) -> Vec<Vec<u32>> {
        let weakest = |set: &[u32]| {
            [instance.speed, instance.gain].map(|values| {
                *set.iter()
                    .min_by(|&&a, &&b| values[a as usize].partial_cmp(&values[b as usize]).expect("no NaN"))
                    .expect("a member")
            })
        };
        let all = brute::subsets(instance.speed.len(), set.len());
        let is_neighbour = |next: &Vec<u32>| {
            let leaving: Vec<u32> = set.iter().copied().filter(|k| !next.contains(k)).collect();
            let entering: Vec<u32> = next.iter().copied().filter(|k| !set.contains(k)).collect();
            leaving.len() == 1
                && (weakest(set).contains(&leaving[0]) || !forward_only && weakest(next).contains(&entering[0]))
        };
        all.into_iter().filter(is_neighbour).collect()
    }

    fn state_at(instance: &Instance<'_>, set: &[u32], search: Search, rng: &mut StreamRng) -> State {
        let mut state = State::default();
        state.start(instance, search, rng);
        for (member, &candidate) in set.iter().enumerate() {
            let other = state.place[candidate as usize] as usize;
            state.exchange(Swap { member, other });
        }
        state
    }

    fn next_set(state: &State, set: &[u32], swap: Swap) -> Vec<u32> {
        let (leaving, entering) = (state.list[swap.member], state.list[swap.other]);
        let mut next: Vec<u32> = set.iter().copied().filter(|&k| k != leaving).chain([entering]).collect();
        next.sort_unstable();
        next
    }

    #[test]
    fn draws_reach_exactly_the_neighbours_of_the_definition_and_equally_often() {
        let mut rng = Streams::new(9).stream(Purpose::Solver, 0, 0);
        for case in 0..60 {
            let (speed, gain) = brute::arrays(2 + case % 5, &mut rng);
            let cohort = 1 + rng.below(speed.len() as u64 - 1) as usize;
            let instance = Instance { speed: &speed, gain: &gain, cohort, take: cohort };
            for search in [Search::Forward, Search::Symmetric] {
                for set in brute::subsets(speed.len(), cohort) {
                    let state = state_at(&instance, &set, search, &mut rng);
                    let expected = neighbours_by_definition(&instance, &set, search == Search::Forward);
                    let mut counts: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
                    let draws = 200 * expected.len();
                    for _ in 0..draws {
                        let swap = state.draw(cohort, search, &mut rng);
                        *counts.entry(next_set(&state, &set, swap)).or_default() += 1;
                    }
                    assert_eq!(counts.keys().cloned().collect::<Vec<_>>(), expected);
                    // 200 expected each, standard deviation at most 14.2: six of them either way.
                    assert!(counts.values().all(|count| (114..=286).contains(count)), "{counts:?}");
                }
            }
        }
    }

    #[test]
    fn the_symmetric_neighbourhood_is_symmetric_and_the_forward_one_is_not() {
        let mut rng = Streams::new(10).stream(Purpose::Solver, 0, 0);
        let mut one_way = 0;
        for case in 0..120 {
            let (speed, gain) = brute::arrays(2 + case % 6, &mut rng);
            let cohort = 1 + rng.below(speed.len() as u64 - 1) as usize;
            let instance = Instance { speed: &speed, gain: &gain, cohort, take: cohort };
            for set in brute::subsets(speed.len(), cohort) {
                for next in neighbours_by_definition(&instance, &set, false) {
                    assert!(neighbours_by_definition(&instance, &next, false).contains(&set));
                }
                let forward = neighbours_by_definition(&instance, &set, true);
                let back = |next: &&Vec<u32>| !neighbours_by_definition(&instance, next, true).contains(&set);
                one_way += forward.iter().filter(back).count();
            }
        }
        assert!(one_way > 0);
    }

    #[test]
    fn plain_draws_reach_all_swaps() {
        let mut rng = Streams::new(11).stream(Purpose::Solver, 0, 0);
        let instance = Instance { speed: &[0.5; 6], gain: &[0.0; 6], cohort: 2, take: 2 };
        let state = state_at(&instance, &[1, 4], Search::Plain, &mut rng);
        let swaps: std::collections::BTreeSet<Swap> =
            (0..400).map(|_| state.draw(2, Search::Plain, &mut rng)).collect();
        assert_eq!(swaps.len(), 2 * 4);
    }
}
