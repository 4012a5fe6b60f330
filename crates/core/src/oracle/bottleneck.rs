//! Exact solver: the optimum, found by one walk over the bottlenecks.
//!
//! # Definition
//! Fix the bottleneck, take the best gains above it, and look at every bottleneck. For a threshold θ let
//! `P_θ = {k : speed_k ≥ θ}` and `M_θ` the largest sum of gains of a cohort of which at least `take` members are in
//! `P_θ`. The optimum is `V* = max_θ θ + M_θ` over the speeds θ that occur: a cohort counted at θ has a bottleneck of
//! at least θ, and the optimal cohort is counted at its own. With `take == cohort`, `M_θ` is the sum of the
//! `m = cohort` largest gains of the prefix, which a walk down the speeds keeps in a heap.
//!
//! *Ties.* The sets within [`TIE`] of `V*` are, for each θ with `θ + M_θ ≥ V* − TIE`, those counted at θ that lose at
//! most `slack = θ + M_θ − (V* − TIE)` of `M_θ`. The lexicographically smallest of each θ is found by an exchange (see
//! `ties.rs`), and the smallest set of all θ wins.
//!
//! # Inputs
//! As [`crate::oracle`]. Sums of gains must stay finite.
//!
//! # Source
//! This project; the problem is BSFL (6), (13). Running sums: Neumaier 1974, see [`crate::math::sum`].
//!
//! # Deviations
//! None: the maximum is exact up to the rounding of a compensated sum. A set whose distance from the maximum differs
//! from [`TIE`] by no more than that rounding may fall on either side.
//!
//! # Cost
//! `O(K log K)` time at worst and `O(K)` memory. Above a few dozen candidates two filters (`filter.rs`) drop almost all
//! of them before the sort, and the rest of the work is a few passes over the arrays. Up to ten thousand candidates
//! whose order is nearly that of the call before are not sorted at all (`recent.rs`). With `take < cohort`, always
//! `O(K log K)`. Buffers are reused: after the first calls nothing of size `K` is allocated.
//!
//! # Determinism
//! Draws nothing. The result does not depend on earlier calls.
//!
//! # Example
//! ```
//! use fedgenie_core::oracle::{Instance, bottleneck::Exact};
//!
//! // Over-selection: choose 3, wait for 2. The slow client 2 costs nothing, because the round does not wait for it.
//! let instance = Instance { speed: &[1.0, 0.75, 0.0, 0.5], gain: &[0.0, 0.0, 2.0, 0.0], cohort: 3, take: 2 };
//! let mut set = Vec::new();
//! assert_eq!(Exact::new().maximise(&instance, &mut set), 2.75);
//! assert_eq!(set, [0, 1, 2]);
//! ```
//! ```toml
//! [policy.bsfl]
//! solver = "exact"
//! ```

mod filter;
mod order;
mod overselect;
mod recent;
#[cfg(test)]
mod tests;
mod ties;
mod walk;

use super::reward::Reward;
use super::{Instance, Solver, SolverSettings, TIE};
use crate::rng::StreamRng;
use filter::Filter;
use order::{COUNT_UP_TO, Order, place_by_counting};
use overselect::OverSelection;
use recent::Recent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub(super) use ties::{Exchange, Item};
use walk::{Entry, Threshold, Walk};

/// From this many candidates on, the first filter pays for itself.
const FILTER_FROM: usize = 100;
/// From this many survivors on, the second filter pays for itself.
const REFINE_FROM: usize = 2_000;
/// Up to this many candidates, the order of the call before is worth its memory.
const RECENT_UP_TO: usize = 10_000;

/// A stretch of entries that are all faster than those of the next; only live ones may hold a best threshold.
#[derive(Clone, Copy, Debug)]
struct Segment {
    end: usize,
    live: bool,
}

/// `exact` has no parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Config {}

impl SolverSettings for Config {
    fn build(&self, _: &Reward) -> Result<Box<dyn Solver>, String> {
        Ok(Box::new(Exact::new()))
    }
}

/// The exact solver, with its reusable buffers.
#[derive(Clone, Debug)]
pub struct Exact {
    filter_from: usize,
    refine_from: usize,
    entries: Vec<Entry>,
    segments: Vec<Segment>,
    recent: Recent,
    filter: Filter,
    order: Order,
    walk: Walk,
    exchange: Exchange,
    items: Vec<Item>,
    rival: Vec<u32>,
    over_selection: OverSelection,
}

impl Default for Exact {
    fn default() -> Self {
        Self::new()
    }
}

impl Exact {
    /// A solver without any state yet.
    pub fn new() -> Self {
        Self { recent: Recent::up_to(RECENT_UP_TO), ..Self::with_filters(FILTER_FROM, REFINE_FROM) }
    }

    /// A solver that filters from other sizes on, and guesses nothing; the answer is the same.
    fn with_filters(filter_from: usize, refine_from: usize) -> Self {
        Self {
            filter_from,
            refine_from,
            entries: Vec::new(),
            segments: Vec::new(),
            recent: Recent::up_to(0),
            filter: Filter::default(),
            order: Order::default(),
            walk: Walk::default(),
            exchange: Exchange::default(),
            items: Vec::new(),
            rival: Vec::new(),
            over_selection: OverSelection::default(),
        }
    }

    /// Writes the best set to `set`, ascending, and returns its value; see [`Solver::solve`].
    ///
    /// # Panics
    /// As [`Solver::solve`].
    pub fn maximise(&mut self, instance: &Instance<'_>, set: &mut Vec<u32>) -> f64 {
        let census = instance.census();
        set.clear();
        if census.infinite >= instance.take {
            all_infinite(instance, set);
            return f64::INFINITY;
        }
        if census.reachable < instance.take {
            set.extend(0..instance.cohort as u32);
            return f64::NEG_INFINITY;
        }
        if instance.take < instance.cohort {
            self.over_selection.solve(instance, &mut self.exchange, set);
        } else {
            self.prepare(instance);
            let best = self.walk.run(&self.entries, &self.segments, instance.cohort);
            for index in 0..self.walk.thresholds.len() {
                let threshold = self.walk.thresholds[index];
                self.smallest_set(threshold, best, instance.cohort);
                keep_smaller(set, &self.rival);
            }
        }
        instance.value(set)
    }

    /// Fills the entries with the possible candidates, fastest first, and the segments.
    fn prepare(&mut self, instance: &Instance<'_>) {
        let candidates = instance.speed.len();
        self.segments.clear();
        if self.recent.sort(instance, &mut self.entries) {
            return self.segments.push(Segment { end: candidates, live: true });
        }
        if candidates < self.filter_from {
            if candidates <= COUNT_UP_TO {
                self.segments.push(Segment { end: candidates, live: true });
                return place_by_counting(instance, &mut self.entries);
            }
            self.entries.clear();
            let all = instance.speed.iter().zip(instance.gain).zip(0..);
            self.entries.extend(all.map(|((&speed, &gain), position)| Entry { speed, gain, position }));
        } else {
            self.filter.survivors(instance, &mut self.entries);
        }
        self.segments.push(Segment { end: self.entries.len(), live: true });
        if self.entries.len() >= self.refine_from {
            self.filter.refine(&mut self.entries, &mut self.segments, instance.cohort);
        } else if candidates >= self.filter_from {
            self.filter.split_head(&mut self.entries, &mut self.segments, instance.cohort);
        }
        let mut start = 0;
        for segment in &self.segments {
            if segment.live {
                self.order.sort(&mut self.entries[start..segment.end]);
            }
            start = segment.end;
        }
    }

    /// Writes to `rival` the lexicographically smallest set counted at a threshold that is within the tie of the best.
    fn smallest_set(&mut self, threshold: Threshold, best: f64, cohort: usize) {
        self.rival.clear();
        self.items.clear();
        // A candidate that gains less than the last of the best by more than the tie is in no set that counts, and one
        // that gains more than it by that much is in all of them. Twice the tie leaves room for rounding.
        let (low, high) = (threshold.last_gain - 2.0 * TIE, threshold.last_gain + 2.0 * TIE);
        for entry in &self.entries[..threshold.prefix] {
            if entry.gain > high {
                self.rival.push(entry.position);
            } else if entry.gain >= low {
                self.items.push(Item { position: entry.position, gain: entry.gain, outside: false, chosen: false });
            }
        }
        let open = cohort - self.rival.len();
        if self.items.len() > open {
            self.items.sort_unstable_by_key(|item| item.position);
            choose_best(&mut self.items, open, threshold.last_gain, |_| true);
            self.exchange.run(&mut self.items, 0, TIE - (best - threshold.value));
            self.items.retain(|item| item.chosen);
        }
        self.rival.extend(self.items.iter().map(|item| item.position));
        assert_eq!(self.rival.len(), cohort, "a threshold has a full cohort");
        self.rival.sort_unstable();
    }
}

impl Solver for Exact {
    fn solve(&mut self, instance: &Instance<'_>, _: &mut StreamRng, set: &mut Vec<u32>) -> f64 {
        self.maximise(instance, set)
    }
}

/// The smallest positions of which `take` are infinitely fast.
fn all_infinite(instance: &Instance<'_>, set: &mut Vec<u32>) {
    let mut others = instance.cohort - instance.take;
    for (position, &speed) in instance.speed.iter().enumerate() {
        if set.len() == instance.cohort {
            break;
        }
        if speed == f64::INFINITY {
            set.push(position as u32);
        } else if others > 0 {
            others -= 1;
            set.push(position as u32);
        }
    }
}

/// Marks the `count` largest gains of a kind, of which `last` is the smallest: the smallest positions among equals.
fn choose_best(items: &mut [Item], count: usize, last: f64, kind: impl Fn(&Item) -> bool) {
    let above = items.iter().filter(|item| kind(item) && item.gain > last).count();
    assert!(above <= count, "`last` is the count-th largest gain");
    let mut equal = count - above;
    for item in items.iter_mut().filter(|item| kind(item)) {
        let ties = item.gain == last && equal > 0;
        equal -= usize::from(ties);
        item.chosen |= ties || item.gain > last;
    }
}

/// Replaces `set` by `rival` if it has none yet or the rival is lexicographically smaller.
fn keep_smaller(set: &mut Vec<u32>, rival: &[u32]) {
    if set.is_empty() || *rival < set[..] {
        set.clear();
        set.extend_from_slice(rival);
    }
}
