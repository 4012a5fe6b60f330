//! The order of the call before, as a guess: from round to round speeds change little, and a genie's not at all.
//!
//! An insertion sort that begins with the right order costs one pass, one that begins with nearly the right order
//! little more. Calls whose order is another, or whose candidates are others, are given up early, and longer and longer
//! pauses follow them. The order itself is the same whatever came before: by speed, then by position.

use super::walk::Entry;
use crate::oracle::Instance;

/// Moves per candidate after which a guess is given up.
const MOST_MOVES: usize = 4;
/// The longest pause is two to the power of this many calls.
const LONGEST_PAUSE: u32 = 10;

/// The order of the call before.
#[derive(Clone, Debug)]
pub(super) struct Recent {
    /// Of more candidates nothing is guessed.
    up_to: usize,
    /// Positions by descending speed; empty if there is no guess.
    order: Vec<u32>,
    /// Wrong guesses in a row.
    wrong: u32,
    /// Calls until the next guess.
    pause: u32,
}

impl Recent {
    /// Guesses for up to so many candidates.
    pub const fn up_to(candidates: usize) -> Self {
        Self { up_to: candidates, order: Vec::new(), wrong: 0, pause: 0 }
    }

    /// Fills the entries with all candidates, by descending speed; false if nothing was guessed, or wrongly.
    pub fn sort(&mut self, instance: &Instance<'_>, entries: &mut Vec<Entry>) -> bool {
        let candidates = instance.speed.len();
        if candidates > self.up_to {
            return false;
        }
        if self.pause > 0 {
            self.pause -= 1;
            return false;
        }
        let entry = |position: u32| {
            let place = position as usize;
            Entry { speed: instance.speed[place], gain: instance.gain[place], position }
        };
        entries.clear();
        if self.order.is_empty() {
            entries.extend((0..candidates as u32).map(entry));
            entries.sort_unstable_by(|a, b| b.speed.total_cmp(&a.speed).then(a.position.cmp(&b.position)));
        } else if self.order.len() != candidates || !insert(self.order.iter().map(|&position| entry(position)), entries)
        {
            self.order.clear();
            self.wrong += 1;
            self.pause = 1 << self.wrong.min(LONGEST_PAUSE);
            return false;
        } else {
            self.wrong = 0;
        }
        self.order.clear();
        self.order.extend(entries.iter().map(|entry| entry.position));
        true
    }
}

/// Puts each entry where it belongs among those before it; false if that takes too many moves.
fn insert(guessed: impl ExactSizeIterator<Item = Entry>, entries: &mut Vec<Entry>) -> bool {
    let mut moves = MOST_MOVES * guessed.len();
    for (end, entry) in guessed.enumerate() {
        entries.push(entry);
        let mut place = end;
        while place > 0 && is_before(&entry, &entries[place - 1]) {
            entries[place] = entries[place - 1];
            place -= 1;
        }
        entries[place] = entry;
        match moves.checked_sub(end - place) {
            Some(left) => moves = left,
            None => return false,
        }
    }
    true
}

fn is_before(a: &Entry, b: &Entry) -> bool {
    a.speed > b.speed || a.speed == b.speed && a.position < b.position
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::brute;
    use crate::rng::{Purpose, Streams};

    fn sorted(recent: &mut Recent, speed: &[f64]) -> Option<Vec<u32>> {
        let mut entries = Vec::new();
        let instance = Instance { speed, gain: speed, cohort: 1, take: 1 };
        let is_sorted = recent.sort(&instance, &mut entries);
        is_sorted.then(|| entries.iter().map(|entry| entry.position).collect())
    }

    #[test]
    fn wrong_guesses_are_followed_by_longer_and_longer_pauses() {
        let mut recent = Recent::up_to(100);
        let (up, down): (Vec<f64>, Vec<f64>) = (0..100).map(|k| (f64::from(k), f64::from(-k))).unzip();
        assert_eq!(sorted(&mut recent, &down), Some((0..100).collect()));
        assert_eq!(sorted(&mut recent, &down), Some((0..100).collect()));
        let is_sorted: Vec<bool> = (0..9).map(|_| sorted(&mut recent, &up).is_some()).collect();
        assert_eq!(is_sorted, [false, false, false, true, true, true, true, true, true], "a wrong one, a pause of two");
        assert_eq!(sorted(&mut recent, &[0.0; 101]), None, "too many");
        let alternating = (0..200).filter(|call| sorted(&mut recent, [&up, &down][call % 2]).is_some()).count();
        assert!(alternating < 10, "{alternating}");
    }

    #[test]
    fn the_order_is_by_speed_and_position_whatever_came_before() {
        let mut rng = Streams::new(4).stream(Purpose::Solver, 0, 0);
        let mut guessed = 0;
        for _ in 0..200 {
            let (mut speed, _) = brute::arrays(1 + rng.below(60) as usize, &mut rng);
            let mut recent = Recent::up_to(60);
            for _ in 0..20 {
                let changed = rng.below(speed.len() as u64) as usize;
                speed[changed] = speed[rng.below(speed.len() as u64) as usize] + [0.0, 0.125][rng.below(2) as usize];
                let mut expected: Vec<u32> = (0..speed.len() as u32).collect();
                expected.sort_by(|&a, &b| speed[b as usize].partial_cmp(&speed[a as usize]).unwrap());
                let found = sorted(&mut recent, &speed);
                guessed += u32::from(found.is_some());
                assert!(found.is_none_or(|found| found == expected), "{speed:?}");
            }
        }
        assert!(guessed > 3_500, "{guessed}");
    }
}
