//! The walk down the speeds, keeping the largest gains in a heap and their sum beside it.

use super::Segment;
use crate::math::sum::CompensatedSum;
use crate::oracle::TIE;
use std::ops::Range;

/// A candidate, copied together so that a sort moves the fields of the walk.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry {
    pub speed: f64,
    pub gain: f64,
    pub position: u32,
}

/// A bottleneck that is best, or within the tie of the best.
#[derive(Clone, Copy, Debug)]
pub(super) struct Threshold {
    /// How many entries are at least this fast.
    pub prefix: usize,
    /// Its speed plus the `cohort` largest gains of the prefix.
    pub value: f64,
    /// The `cohort`-th largest gain of the prefix.
    pub last_gain: f64,
}

/// Buffers and result of the walk.
#[derive(Clone, Debug, Default)]
pub(super) struct Walk {
    largest: LargestSum,
    /// All thresholds within the tie of the best.
    pub thresholds: Vec<Threshold>,
}

impl Walk {
    /// Finds the best thresholds. Live segments are sorted by descending speed; all of a segment is faster than the
    /// next.
    pub fn run(&mut self, entries: &[Entry], segments: &[Segment], cohort: usize) -> f64 {
        self.largest.reset(cohort);
        self.thresholds.clear();
        let (mut start, mut best) = (0, f64::NEG_INFINITY);
        for segment in segments {
            if segment.live {
                best = self.descend(entries, start..segment.end, best);
            } else {
                self.largest.absorb(&entries[start..segment.end]);
            }
            start = segment.end;
        }
        let floor = best - TIE;
        self.thresholds.retain(|threshold| threshold.value >= floor);
        best
    }

    /// Walks a live segment and notes the thresholds that may be best.
    fn descend(&mut self, entries: &[Entry], part: Range<usize>, mut best: f64) -> f64 {
        let end = part.end;
        for place in part {
            let Entry { speed, gain, .. } = entries[place];
            if !self.largest.offer(gain) {
                continue;
            }
            let value = speed + self.largest.sum();
            // Equally fast candidates are one threshold, worth most at the last of them; to note it earlier as well
            // would only cost time.
            if value >= best - TIE && (place + 1 == end || entries[place + 1].speed != speed) {
                if value > best + TIE {
                    self.thresholds.clear();
                }
                best = if value > best { value } else { best };
                self.thresholds.push(Threshold { prefix: place + 1, value, last_gain: self.largest.last() });
            }
        }
        best
    }
}

/// The `size` largest of the gains offered, in a min-heap, and their sum.
#[derive(Clone, Debug, Default)]
pub(super) struct LargestSum {
    size: usize,
    heap: Vec<f64>,
    sum: CompensatedSum,
}

impl LargestSum {
    pub fn reset(&mut self, size: usize) {
        self.size = size;
        self.heap.clear();
        self.sum = CompensatedSum::default();
    }

    /// Considers one gain and says whether there are now `size` of them; `O(log size)`.
    #[inline]
    pub fn offer(&mut self, gain: f64) -> bool {
        if self.heap.len() == self.size {
            if gain > self.heap[0] {
                self.sum.add(gain);
                self.sum.add(-self.heap[0]);
                self.heap[0] = gain;
                sift_down(&mut self.heap, 0);
            }
            return true;
        }
        self.heap.push(gain);
        self.sum.add(gain);
        let full = self.heap.len() == self.size;
        if full {
            heapify(&mut self.heap);
        }
        full
    }

    /// Considers many gains at once; linear in their number and `size`.
    fn absorb(&mut self, entries: &[Entry]) {
        let floor = if self.heap.len() == self.size { self.heap[0] } else { f64::NEG_INFINITY };
        self.heap.extend(entries.iter().map(|entry| entry.gain).filter(|&gain| gain > floor));
        if self.heap.len() >= self.size {
            self.heap.select_nth_unstable_by(self.size - 1, |a, b| b.total_cmp(a));
            self.heap.truncate(self.size);
            heapify(&mut self.heap);
        }
        self.sum = self.heap.iter().copied().collect();
    }

    /// The sum of the gains kept.
    pub fn sum(&self) -> f64 {
        self.sum.value()
    }

    /// The smallest gain kept, once there are `size`.
    pub fn last(&self) -> f64 {
        self.heap[0]
    }
}

fn heapify(heap: &mut [f64]) {
    for place in (0..heap.len() / 2).rev() {
        sift_down(heap, place);
    }
}

/// Restores the min-heap below a place whose number grew.
fn sift_down(heap: &mut [f64], mut place: usize) {
    let moving = heap[place];
    loop {
        let mut child = 2 * place + 1;
        if child >= heap.len() {
            break;
        }
        if child + 1 < heap.len() {
            child += usize::from(heap[child + 1] < heap[child]);
        }
        if heap[child] >= moving {
            break;
        }
        heap[place] = heap[child];
        place = child;
    }
    heap[place] = moving;
}
