//! Sorting entries by descending speed, in the way that is fastest for their number.

use super::walk::Entry;
use crate::oracle::Instance;

/// Up to this many candidates, counting the faster ones beats every sort.
pub(super) const COUNT_UP_TO: usize = 32;
/// Up to this many entries, their places fit in the low bits of a key.
const PACK_UP_TO: usize = 1 << PLACE_BITS;
const PLACE_BITS: u32 = 10;

/// Buffers of the sort.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    keys: Vec<u64>,
    copy: Vec<Entry>,
}

impl Order {
    /// Sorts by descending speed; the order of the equally fast is not specified.
    pub fn sort(&mut self, entries: &mut [Entry]) {
        if entries.len() <= PACK_UP_TO {
            self.sort_packed(entries);
            // Speeds that differ only in the bits given to the place are rare, and may now be out of order.
            if entries.is_sorted_by(|a, b| a.speed >= b.speed) {
                return;
            }
        }
        entries.sort_unstable_by(|a, b| b.speed.total_cmp(&a.speed));
    }

    /// Sorts integers that hold the leading bits of the speed and the place of the entry.
    fn sort_packed(&mut self, entries: &mut [Entry]) {
        self.keys.clear();
        self.keys.extend(
            entries.iter().zip(0..).map(|(entry, place)| descending(entry.speed) >> PLACE_BITS << PLACE_BITS | place),
        );
        self.keys.sort_unstable();
        self.copy.clear();
        self.copy.extend_from_slice(entries);
        for (entry, key) in entries.iter_mut().zip(&self.keys) {
            *entry = self.copy[*key as usize % PACK_UP_TO];
        }
    }
}

/// An integer that is the smaller, the larger the number.
fn descending(x: f64) -> u64 {
    let bits = x.to_bits();
    if bits >> 63 == 0 { !bits ^ 1 << 63 } else { bits }
}

/// Puts every candidate behind all faster ones, and behind equally fast ones of smaller position; no branch depends on
/// data.
pub(super) fn place_by_counting(instance: &Instance<'_>, entries: &mut Vec<Entry>) {
    let speed = instance.speed;
    entries.resize(speed.len(), Entry::default());
    for (position, (&own, &gain)) in speed.iter().zip(instance.gain).enumerate() {
        let before: u64 = speed[..position].iter().map(|&other| u64::from(other >= own)).sum();
        let after: u64 = speed[position + 1..].iter().map(|&other| u64::from(other > own)).sum();
        entries[(before + after) as usize] = Entry { speed: own, gain, position: position as u32 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::brute;
    use crate::rng::{Purpose, Streams};

    #[test]
    fn keys_reverse_the_order_of_the_numbers() {
        let ascending = [f64::NEG_INFINITY, -2.0, -1.0, -1e-300, 0.0, 1e-300, 1.0, 2.0, f64::INFINITY];
        assert!(ascending.is_sorted_by(|&a, &b| descending(a) > descending(b)));
    }

    #[test]
    fn every_way_of_sorting_is_a_sort() {
        let mut rng = Streams::new(4).stream(Purpose::Solver, 0, 0);
        let (mut order, mut counted) = (Order::default(), Vec::new());
        for case in 0..600 {
            let (speed, gain) = brute::arrays(1 + rng.below([30, 1_500][case % 2]) as usize, &mut rng);
            let instance = Instance { speed: &speed, gain: &gain, cohort: 1, take: 1 };
            let entry =
                |position: usize| Entry { speed: speed[position], gain: gain[position], position: position as u32 };
            let mut entries: Vec<Entry> = (0..speed.len()).map(entry).collect();
            order.sort(&mut entries);
            place_by_counting(&instance, &mut counted);
            for sorted in [&entries, &counted] {
                assert!(sorted.is_sorted_by(|a, b| a.speed >= b.speed));
                let mut positions: Vec<u32> = sorted.iter().map(|entry| entry.position).collect();
                positions.sort_unstable();
                assert!(positions.iter().copied().eq(0..speed.len() as u32));
            }
        }
    }
}
