//! Two cheap filters that drop candidates of no winning set before anything is sorted.
//!
//! *Dominance.* Let at least `m` candidates be faster than candidate `k`, and let φ be the `m`-th largest gain of such
//! a group. If `gain_k < φ − 2·TIE`, then `k` is in no set within [`TIE`] of the best: of the `m` candidates with gain
//! at least φ one is not in the set (it has only `m − 1` other members), and swapping `k` for that one does not lower
//! the bottleneck and adds more than `2·TIE`, so the set would be worse than the best by more than `2·TIE`.
//!
//! *Bound.* A threshold θ with prefix sum `M_θ` is worth `θ + M_θ`. When a lower bound `V` of the optimum exceeds an
//! upper bound of `θ + M_θ` by more than the tie, θ is not among the best thresholds. If that holds for all θ below
//! some speed, no slower candidate is in a winning set, since it would be the bottleneck there. The bounds are widened
//! by a relative 1e-9, far beyond the rounding of the sums in them.
//!
//! Where the cuts are made is guessed from evenly spaced samples. A bad guess costs time, never correctness.

use super::{Segment, walk::Entry};
use crate::math::sum::CompensatedSum;
use crate::oracle::{Instance, TIE, top::Largest};

/// Buckets of [`Filter::refine`]; the sample has [`SAMPLES_PER_BUCKET`] speeds for each.
const BUCKETS: usize = 32;
const SAMPLES_PER_BUCKET: usize = 16;

/// Buffers of the filters.
#[derive(Clone, Debug, Default)]
pub(super) struct Filter {
    sample: Vec<f64>,
    gains: Vec<f64>,
    bucket_of: Vec<u8>,
    grouped: Vec<Entry>,
    largest: Largest,
    /// A speed that about half as many candidates exceed as θ₁, and a lower bound of the value of the sets above θ₁.
    head: Option<(f64, f64)>,
    edges: Vec<f64>,
    /// For each bucket, bounds of the value of its thresholds: lower, if it has any, and upper.
    bounds: Vec<(f64, f64)>,
}

/// A bound that is safe although it was computed from rounded numbers.
fn widened(bound: f64, scale: f64) -> f64 {
    bound - 2.0 * TIE - 1e-9 * scale.abs()
}

impl Filter {
    /// Copies the candidates of possible winning sets to `entries`, in ascending position.
    ///
    /// One threshold θ₁ on the speeds, such that about `sqrt(K·m)` candidates pass it: a slower candidate needs a gain
    /// of the `m`-th largest of those. About `2·sqrt(K·m)` candidates survive when speeds and gains are independent.
    pub fn survivors(&mut self, instance: &Instance<'_>, entries: &mut Vec<Entry>) {
        let (cut, floor, slowest) =
            self.first_cut(instance).unwrap_or((f64::NEG_INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY));
        entries.resize(instance.speed.len(), Entry::default());
        let mut kept = 0;
        for (position, (&speed, &gain)) in instance.speed.iter().zip(instance.gain).enumerate() {
            entries[kept] = Entry { speed, gain, position: position as u32 };
            kept += usize::from((speed >= cut) | ((gain >= floor) & (speed >= slowest)));
        }
        entries.truncate(kept);
    }

    /// θ₁, the gain that slower candidates need, and the speed below which no candidate is needed.
    fn first_cut(&mut self, instance: &Instance<'_>) -> Option<(f64, f64, f64)> {
        let (candidates, cohort) = (instance.speed.len(), instance.cohort);
        let size = if candidates > 8192 { 1024 } else { 64 };
        self.head = None;
        self.sample.clear();
        self.sample.extend((0..size).map(|place| instance.speed[place * candidates / size]));
        let share = (cohort as f64 / candidates as f64).sqrt();
        let mut rank = (size as f64 * share) as usize + 1;
        // With 3/4 of everyone above the cut there is nothing to gain from it.
        while rank * 4 < size * 3 {
            let cut = *self.sample.select_nth_unstable_by(rank, |a, b| b.total_cmp(a)).1;
            let mut best_gain = f64::NEG_INFINITY;
            let mut faster = 0;
            self.gains.resize(candidates + 1, 0.0);
            for (&speed, &gain) in instance.speed.iter().zip(instance.gain) {
                self.gains[faster] = gain;
                faster += usize::from(speed >= cut);
                best_gain = if gain > best_gain { gain } else { best_gain };
            }
            if faster >= cohort {
                let gains = &mut self.gains[..faster];
                let floor = *gains.select_nth_unstable_by(cohort - 1, |a, b| b.total_cmp(a)).1;
                let sum = gains[..cohort].iter().copied().collect::<CompensatedSum>().value();
                let head = *self.sample[..=rank].select_nth_unstable_by(rank / 2, |a, b| b.total_cmp(a)).1;
                self.head = Some((head, widened(cut + sum, cut.abs() + sum.abs())));
                // The sets above the cut are worth at least cut + sum; those below, at most their speed + bound.
                let bound = cohort as f64 * best_gain;
                let slowest = widened(cut + sum - bound, cut.abs() + sum.abs() + bound.abs());
                return Some((cut, floor - 2.0 * TIE, if slowest.is_nan() { f64::NEG_INFINITY } else { slowest }));
            }
            rank *= 2;
        }
        None
    }

    /// For few survivors: moves the fastest to the front and, if none of them is the best bottleneck, spares them the
    /// sort.
    pub fn split_head(&mut self, entries: &mut Vec<Entry>, segments: &mut Vec<Segment>, cohort: usize) {
        let Some((head, lower)) = self.head else { return };
        let (mut front, mut back, mut fastest) = (0, 0, f64::NEG_INFINITY);
        self.grouped.resize(entries.len(), Entry::default());
        self.gains.resize(entries.len(), 0.0);
        for place in 0..entries.len() {
            let entry = entries[place];
            let ahead = entry.speed >= head;
            self.grouped[back] = entry;
            self.gains[front] = entry.gain;
            entries[front] = entry;
            front += usize::from(ahead);
            back += usize::from(!ahead);
            fastest = if entry.speed > fastest { entry.speed } else { fastest };
        }
        let (mut live, mut floor) = (true, f64::NEG_INFINITY);
        if front >= cohort {
            let gains = &mut self.gains[..front];
            floor = *gains.select_nth_unstable_by(cohort - 1, |a, b| b.total_cmp(a)).1 - 2.0 * TIE;
            live = fastest + gains[..cohort].iter().copied().collect::<CompensatedSum>().value() >= lower;
        }
        let mut kept = front;
        for &entry in &self.grouped[..back] {
            entries[kept] = entry;
            kept += usize::from(entry.gain >= floor);
        }
        entries.truncate(kept);
        segments.clear();
        if !live {
            segments.push(Segment { end: front, live });
        }
        segments.push(Segment { end: kept, live: true });
    }

    /// Groups the entries into buckets of descending speed, applies both filters bucket by bucket, and says which
    /// buckets may hold a best threshold and therefore must be sorted.
    pub fn refine(&mut self, entries: &mut Vec<Entry>, segments: &mut Vec<Segment>, cohort: usize) {
        self.sample.clear();
        let size = (BUCKETS * SAMPLES_PER_BUCKET).min(entries.len());
        self.sample.extend((0..size).map(|place| entries[place * entries.len() / size].speed));
        self.sample.sort_unstable_by(|a, b| b.total_cmp(a));
        self.edges.clear();
        self.edges.extend(self.sample.iter().skip(SAMPLES_PER_BUCKET / 2).step_by(SAMPLES_PER_BUCKET));
        self.edges.retain(|edge| edge.is_finite());
        self.edges.dedup();
        self.group(entries, segments);
        self.thin(entries, segments, cohort);
        let best = self.bounds.iter().map(|bound| bound.0).fold(f64::NEG_INFINITY, f64::max);
        for (segment, bound) in segments.iter_mut().zip(&self.bounds) {
            segment.live = bound.1 >= best;
        }
        let used = segments.iter().rposition(|segment| segment.live).map_or(segments.len(), |last| last + 1);
        segments.truncate(used);
        entries.truncate(segments[used - 1].end);
    }

    /// A stable counting sort by bucket: bucket `b` is as fast as edge `b` and slower than edge `b − 1`.
    fn group(&mut self, entries: &mut Vec<Entry>, segments: &mut Vec<Segment>) {
        let mut ends = [0usize; BUCKETS + 1];
        self.bucket_of.clear();
        self.bucket_of.extend(entries.iter().map(|entry| {
            let bucket = self.edges.partition_point(|&edge| entry.speed < edge);
            ends[bucket] += 1;
            bucket as u8
        }));
        let mut total = 0;
        segments.clear();
        for end in &mut ends[..=self.edges.len()] {
            let start = total;
            total += *end;
            *end = start;
            segments.push(Segment { end: total, live: true });
        }
        self.grouped.resize(entries.len(), Entry::default());
        for (entry, &bucket) in entries.iter().zip(&self.bucket_of) {
            self.grouped[ends[bucket as usize]] = *entry;
            ends[bucket as usize] += 1;
        }
        std::mem::swap(entries, &mut self.grouped);
    }

    /// Drops dominated candidates, bucket by bucket, and bounds the value of the rest.
    fn thin(&mut self, entries: &mut Vec<Entry>, segments: &mut [Segment], cohort: usize) {
        self.largest.reset(cohort);
        let (mut start, mut kept) = (0, 0);
        self.bounds.clear();
        for (bucket, segment) in segments.iter_mut().enumerate() {
            let floor = self.largest.floor() - 2.0 * TIE;
            let mut fastest = f64::NEG_INFINITY;
            for place in start..segment.end {
                let entry = entries[place];
                if entry.gain >= floor {
                    entries[kept] = entry;
                    kept += 1;
                    fastest = if entry.speed > fastest { entry.speed } else { fastest };
                    self.largest.offer(entry.gain);
                }
            }
            start = segment.end;
            segment.end = kept;
            let gains = self.largest.values();
            self.bounds.push(if gains.len() < cohort {
                (f64::NEG_INFINITY, f64::NEG_INFINITY)
            } else {
                let sum = gains.iter().copied().collect::<CompensatedSum>().value();
                let slowest = self.edges.get(bucket).copied().unwrap_or(f64::NEG_INFINITY);
                let scale = gains.iter().fold(fastest.abs(), |scale, gain| scale + gain.abs());
                (widened(slowest + sum, slowest.abs() + scale), fastest + sum)
            });
        }
        entries.truncate(kept);
    }
}
