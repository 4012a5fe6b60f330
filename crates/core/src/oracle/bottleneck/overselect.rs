//! The exact solver under over-selection: the round waits for the first `t = take` of `m = cohort` clients.
//!
//! For a threshold θ a cohort counts if at least `t` members are in the prefix `P_θ`, that is, at most `m − t` outside.
//! Let `a` be the `m`-th largest gain of all. If some choice of the `m` largest gains counts, that is best. Otherwise
//! the largest sum is that of the `t` largest gains inside and the `m − t` largest outside: the sum is concave in the
//! number taken from outside, and its free maximum lies above the quota. Some choice of the `m` largest counts exactly
//! when at most `m − t` gains outside exceed `a` and at least `t` inside reach it.

use super::ties::{Exchange, Item};
use super::walk::{Entry, LargestSum};
use super::{choose_best, keep_smaller};
use crate::math::sum::CompensatedSum;
use crate::oracle::{Instance, TIE};

/// The candidates outside a prefix: the sum of their `m − t` largest gains, the smallest of these, and the number above
/// `a`.
#[derive(Clone, Copy, Debug, Default)]
struct Outside {
    sum: f64,
    last: f64,
    above: usize,
}

/// The composition of the best cohort of a threshold.
#[derive(Clone, Copy, Debug)]
enum Base {
    /// The largest gains of all, down to this one.
    Free(f64),
    /// The largest gains inside and outside, down to these.
    Split { inside: f64, outside: f64 },
}

#[derive(Clone, Copy, Debug)]
struct Threshold {
    speed: f64,
    value: f64,
    base: Base,
}

/// Buffers of the solver.
#[derive(Clone, Debug, Default)]
pub(super) struct OverSelection {
    entries: Vec<Entry>,
    gains: Vec<f64>,
    outside: Vec<Outside>,
    largest: LargestSum,
    thresholds: Vec<Threshold>,
    items: Vec<Item>,
    rival: Vec<u32>,
}

impl OverSelection {
    /// Writes the best set; some threshold is finite.
    pub fn solve(&mut self, instance: &Instance<'_>, exchange: &mut Exchange, set: &mut Vec<u32>) {
        self.entries.clear();
        let all = instance.speed.iter().zip(instance.gain).zip(0..);
        self.entries.extend(all.map(|((&speed, &gain), position)| Entry { speed, gain, position }));
        self.entries.sort_unstable_by(|a, b| b.speed.total_cmp(&a.speed));
        let best = self.find_thresholds(instance);
        for index in 0..self.thresholds.len() {
            let threshold = self.thresholds[index];
            if threshold.value >= best - TIE {
                self.smallest_set(instance, threshold, best, exchange);
                keep_smaller(set, &self.rival);
            }
        }
    }

    fn find_thresholds(&mut self, instance: &Instance<'_>) -> f64 {
        let (cohort, take) = (instance.cohort, instance.take);
        self.gains.clear();
        self.gains.extend_from_slice(instance.gain);
        let limit = *self.gains.select_nth_unstable_by(cohort - 1, |a, b| b.total_cmp(a)).1;
        let free_sum = self.gains[..cohort].iter().copied().collect::<CompensatedSum>().value();
        self.look_outside(cohort - take, limit);
        self.thresholds.clear();
        self.largest.reset(take);
        let (mut best, mut reaching) = (f64::NEG_INFINITY, 0);
        for (place, &Entry { speed, gain, .. }) in self.entries.iter().enumerate() {
            reaching += usize::from(gain >= limit);
            let enough = self.largest.offer(gain);
            let last_of_its_speed = self.entries.get(place + 1).is_none_or(|next| next.speed != speed);
            if !enough || !last_of_its_speed || speed == f64::NEG_INFINITY {
                continue;
            }
            let outside = self.outside[place + 1];
            let (sum, base) = if outside.above <= cohort - take && reaching >= take {
                (free_sum, Base::Free(limit))
            } else {
                (self.largest.sum() + outside.sum, Base::Split { inside: self.largest.last(), outside: outside.last })
            };
            let value = speed + sum;
            if value >= best - TIE {
                best = if value > best { value } else { best };
                self.thresholds.push(Threshold { speed, value, base });
            }
        }
        best
    }

    /// Fills `outside[place]` for the entries from `place` on; the sum and the last gain only where there are enough.
    fn look_outside(&mut self, quota: usize, limit: f64) {
        self.outside.clear();
        self.outside.resize(self.entries.len() + 1, Outside::default());
        self.largest.reset(quota);
        let mut above = 0;
        for (place, entry) in self.entries.iter().enumerate().rev() {
            above += usize::from(entry.gain > limit);
            let (sum, last) =
                if self.largest.offer(entry.gain) { (self.largest.sum(), self.largest.last()) } else { (0.0, 0.0) };
            self.outside[place] = Outside { sum, last, above };
        }
    }

    /// Writes to `rival` the lexicographically smallest set counted at a threshold that is within the tie of the best.
    fn smallest_set(&mut self, instance: &Instance<'_>, threshold: Threshold, best: f64, exchange: &mut Exchange) {
        let (cohort, quota) = (instance.cohort, instance.cohort - instance.take);
        self.items.clear();
        let all = instance.speed.iter().zip(instance.gain).zip(0..);
        self.items.extend(all.map(|((&speed, &gain), position)| Item {
            position,
            gain,
            outside: speed < threshold.speed,
            chosen: false,
        }));
        match threshold.base {
            Base::Free(limit) => {
                let inside = self.items.iter().filter(|item| !item.outside && item.gain >= limit).count();
                let above = self.items.iter().filter(|item| item.outside && item.gain > limit).count();
                let inside = inside.min(cohort - above);
                choose_best(&mut self.items, inside, limit, |item| !item.outside);
                choose_best(&mut self.items, cohort - inside, limit, |item| item.outside);
            }
            Base::Split { inside, outside } => {
                choose_best(&mut self.items, instance.take, inside, |item| !item.outside);
                choose_best(&mut self.items, quota, outside, |item| item.outside);
            }
        }
        exchange.run(&mut self.items, quota, TIE - (best - threshold.value));
        self.rival.clear();
        self.rival.extend(self.items.iter().filter(|item| item.chosen).map(|item| item.position));
        assert_eq!(self.rival.len(), cohort, "a threshold has a full cohort");
    }
}
