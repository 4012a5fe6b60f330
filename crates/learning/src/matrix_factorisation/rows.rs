//! The rows that a job has met, side by side: copied when first met, moved by steps, written back in the order of
//! items.

use crate::lanes::{LANES, Lanes};

/// No slot yet.
const NONE: u32 = u32::MAX;

/// A row that the present step meets. Its place among them is that of its slopes.
#[derive(Clone, Copy, Debug)]
pub struct Met {
    pub slot: u32,
    /// Whether no earlier step met it.
    pub is_first: bool,
    pub moves: bool,
}

/// Rows and moments by slot, slopes of the present step; users come first, then items in the order in which they are
/// met.
#[derive(Debug, Default)]
pub struct LocalRows {
    /// Vectors of a row.
    pub vectors: usize,
    pub rows: Vec<Lanes>,
    /// Rows as they were before the job; empty where nothing is pulled there.
    pub starts: Vec<Lanes>,
    /// Of the rows that the present step meets, by place: few enough to stay in the first-level cache.
    pub slopes: Vec<Lanes>,
    /// Empty where the optimizer has no such moments.
    pub first: Vec<Lanes>,
    pub second: Vec<Lanes>,
    /// The step that met a row last, 0 before any, and the row's place in it.
    steps: Vec<(u64, u32)>,
    /// The rows of the present step, in the order in which it meets them.
    pub met: Vec<Met>,
    /// Slots from here on do not move.
    fixed: u32,
    users: usize,
    slot_of_item: Vec<u32>,
    item_of_slot: Vec<u32>,
    /// Slots of rows that every step corrects, and the numbers added to their slopes.
    pub corrected: Vec<u32>,
    pub corrections: Vec<Lanes>,
    moments: usize,
    keeps_starts: bool,
    /// A bit for each item.
    marks: Vec<u64>,
}

impl LocalRows {
    /// Forgets the last job and takes over the users' rows. `moments` and `keeps_starts` size the numbers beside rows.
    pub fn begin(&mut self, dimensions: usize, items: usize, users: &[f32], (moments, keeps_starts): (usize, bool)) {
        for item in self.item_of_slot.drain(..) {
            self.slot_of_item[item as usize] = NONE;
        }
        if self.slot_of_item.len() != items {
            self.slot_of_item.clear();
            self.slot_of_item.resize(items, NONE);
        }
        for numbers in [&mut self.rows, &mut self.starts, &mut self.first, &mut self.second, &mut self.corrections] {
            numbers.clear();
        }
        self.steps.clear();
        self.corrected.clear();
        self.vectors = dimensions.div_ceil(LANES);
        self.moments = moments;
        self.keeps_starts = keeps_starts;
        self.fixed = u32::MAX;
        self.users = users.len() / dimensions;
        users.chunks_exact(dimensions).for_each(|row| self.push(row));
    }

    /// How many users there are; their slots come first.
    pub fn users(&self) -> usize {
        self.users
    }

    /// Rows that are met from here on do not move.
    pub fn fix_others(&mut self) {
        self.fixed = self.steps.len() as u32;
    }

    fn push(&mut self, row: &[f32]) {
        fill_up(row, &mut self.rows);
        // Rows that do not move come last, and have neither.
        if self.steps.len() < self.fixed as usize {
            let length = self.rows.len();
            if self.keeps_starts {
                self.starts.extend_from_slice(&self.rows[self.starts.len()..]);
            }
            for moments in [&mut self.first, &mut self.second].into_iter().take(self.moments) {
                moments.resize(length, Lanes::ZERO);
            }
        }
        self.steps.push((0, 0));
    }

    /// Corrects the rows of some items, ascending, in every step; these are the items that the job is then said to
    /// move.
    pub fn correct(&mut self, items: &[u32], (table, corrections): (&[f32], &[f32]), dimensions: usize) {
        for &item in items {
            let slot = self.item(item, table, dimensions);
            self.corrected.push(slot);
            fill_up(&corrections[item as usize * dimensions..][..dimensions], &mut self.corrections);
        }
    }

    /// The slot of an item, whose row is copied from the table if it is new.
    #[inline]
    pub fn item(&mut self, item: u32, table: &[f32], dimensions: usize) -> u32 {
        let slot = self.slot_of_item[item as usize];
        if slot != NONE {
            return slot;
        }
        let slot = self.steps.len() as u32;
        self.slot_of_item[item as usize] = slot;
        self.item_of_slot.push(item);
        self.push(&table[item as usize * dimensions..][..dimensions]);
        slot
    }

    /// The place of a row in a step, counted from 1, that meets it; its slopes begin at zero.
    #[inline]
    pub fn meet(&mut self, slot: u32, step: u64) -> u32 {
        let (last, place) = self.steps[slot as usize];
        if last == step {
            return place;
        }
        let place = self.met.len();
        self.steps[slot as usize] = (step, place as u32);
        self.met.push(Met { slot, is_first: last == 0, moves: slot < self.fixed });
        let (begin, end) = (place * self.vectors, (place + 1) * self.vectors);
        if self.slopes.len() < end {
            self.slopes.resize(2 * end, Lanes::ZERO);
        }
        self.slopes[begin..end].fill(Lanes::ZERO);
        place as u32
    }

    /// Writes users' rows, and numbers and rows of the items that moved, in ascending order.
    pub fn write(&mut self, dimensions: usize, users: &mut Vec<f32>, items: &mut Vec<u32>, rows: &mut Vec<f32>) {
        users.resize(self.users * dimensions, 0.0);
        for (row, out) in self.rows.chunks_exact(self.vectors).zip(users.chunks_exact_mut(dimensions)) {
            copy(row, out);
        }
        let has_moved = |slot: usize| self.steps[slot].0 > 0 && slot < self.fixed as usize;
        let met = self.item_of_slot.iter().zip(self.users..);
        items.clear();
        if self.corrected.is_empty() {
            items.extend(met.filter(|&(_, slot)| has_moved(slot)).map(|(&item, _)| item));
        } else {
            items.extend(self.corrected.iter().map(|&slot| self.item_of_slot[slot as usize - self.users]));
        }
        ascending(items, &mut self.marks, self.slot_of_item.len());
        rows.resize(items.len() * dimensions, 0.0);
        for (&item, out) in items.iter().zip(rows.chunks_exact_mut(dimensions)) {
            let slot = self.slot_of_item[item as usize] as usize;
            copy(&self.rows[slot * self.vectors..][..self.vectors], out);
        }
    }
}

/// Appends a row, with zeros up to whole vectors.
fn fill_up(row: &[f32], vectors: &mut Vec<Lanes>) {
    let (whole, rest) = row.as_chunks::<LANES>();
    // Not `extend`, which calls a routine to copy a few vectors.
    for chunk in whole {
        vectors.push(Lanes(*chunk));
    }
    if !rest.is_empty() {
        vectors.push(Lanes::load_partial(rest));
    }
}

/// Puts different numbers below `count` in ascending order: by marking them, unless they are few among many.
fn ascending(numbers: &mut Vec<u32>, marks: &mut Vec<u64>, count: usize) {
    if count / 64 > 8 * numbers.len() {
        numbers.sort_unstable();
        return;
    }
    marks.clear();
    marks.resize(count.div_ceil(64), 0);
    numbers.iter().for_each(|&number| marks[number as usize / 64] |= 1 << (number % 64));
    numbers.clear();
    for (mut word, first) in marks.iter().copied().zip((0..).step_by(64)) {
        while word != 0 {
            numbers.push(first + word.trailing_zeros());
            word &= word - 1;
        }
    }
}

/// Writes the numbers of a row, without the padding of its last vector.
#[inline]
fn copy(row: &[Lanes], out: &mut [f32]) {
    let (whole, rest) = out.as_chunks_mut::<LANES>();
    whole.iter_mut().zip(row).for_each(|(out, vector)| *out = vector.0);
    if let Some(last) = row.get(whole.len()) {
        rest.copy_from_slice(&last.0[..rest.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_put_in_order_either_way() {
        for (count, step) in [(1, 1), (64, 3), (65, 1), (1_000, 7), (1_000_000, 99_999)] {
            let expected: Vec<u32> = (0..count).step_by(step).collect();
            let mut numbers: Vec<u32> = expected.iter().rev().copied().collect();
            ascending(&mut numbers, &mut vec![7; 3], count as usize);
            assert_eq!(numbers, expected);
        }
    }
}
