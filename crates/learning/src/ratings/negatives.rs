//! Negatives: items that a user is not known to have rated.
//!
//! # Definition
//! A negative is uniform over the items that are not known, with replacement. A user with all items known has none.
//!
//! # Source
//! S. Rendle et al., "BPR: Bayesian personalized ranking from implicit feedback", UAI 2009.
//!
//! # Cost
//! One draw and O(ln n) comparisons for `n` known items, however many they are: nothing is drawn in vain.
//!
//! # Determinism
//! A uniform integer `j` below the number of items that are not known; the negative is the (j+1)-th of these in
//! ascending order.

use fedgenie_core::rng::StreamRng;

/// Draws an item below `items` that is not in `known`, which is ascending without repetition. `None` without such an
/// item; then nothing is drawn.
///
/// # Panics
/// If more items are known than there are.
#[inline]
pub fn negative(rng: &mut StreamRng, items: u32, known: &[u32]) -> Option<u32> {
    let unknown = items as usize - known.len();
    if unknown == 0 {
        return None;
    }
    let chosen = rng.below(unknown as u64) as u32;
    Some(chosen + known_before(chosen, known))
}

/// Writes the items below `items` that are not in `known`, ascending: the `j`-th is the negative that [`negative`] makes
/// of the draw `j`.
pub fn unknown(items: u32, known: &[u32], found: &mut Vec<u32>) {
    found.clear();
    let mut begin = 0;
    for &item in known {
        found.extend(begin..item);
        begin = item + 1;
    }
    found.extend(begin..items);
}

/// How many of the known items stand before the unknown item number `chosen`: before known item `i` there are
/// `known[i] − i` unknown ones.
#[inline]
fn known_before(chosen: u32, known: &[u32]) -> u32 {
    // Halving without a branch that could be mispredicted.
    let (mut first, mut left) = (0, known.len());
    while left > 0 {
        let half = left - left / 2;
        let place = first + half - 1;
        let is_before = known[place] - place as u32 <= chosen;
        first = std::hint::select_unpredictable(is_before, first + half, first);
        left /= 2;
    }
    first as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedgenie_core::rng::{Purpose, Streams};

    #[test]
    fn the_unknown_items_are_found_in_their_order() {
        for bits in 0_u32..1 << 10 {
            let known: Vec<u32> = (0..10).filter(|item| bits >> item & 1 == 1).collect();
            let others: Vec<u32> = (0..10).filter(|item| bits >> item & 1 == 0).collect();
            for (chosen, &item) in (0..).zip(&others) {
                assert_eq!(chosen + known_before(chosen, &known), item, "{known:?}");
            }
            let mut written = vec![7];
            unknown(10, &known, &mut written);
            assert_eq!(written, others);
        }
    }

    #[test]
    fn every_unknown_item_is_drawn_equally_often() {
        let known = [0, 3, 4, 9];
        let mut rng = Streams::new(1).stream(Purpose::Example, 0, 0);
        let mut counts = [0.0_f64; 10];
        for _ in 0..60_000 {
            counts[negative(&mut rng, 10, &known).unwrap() as usize] += 1.0;
        }
        assert!(known.iter().all(|&item| counts[item as usize] == 0.0));
        // Pearson's statistic with 5 degrees of freedom; 20.5 is its 99.9 % point.
        let unknown = (0..10).filter(|item| !known.contains(item));
        let statistic: f64 = unknown.map(|item| (counts[item as usize] - 1e4).powi(2) / 1e4).sum();
        assert!(statistic < 20.5, "{counts:?}");
    }

    #[test]
    fn who_rated_everything_has_no_negative_and_draws_nothing() {
        let mut rng = Streams::new(1).stream(Purpose::Example, 0, 0);
        assert_eq!(negative(&mut rng, 3, &[0, 1, 2]), None);
        assert_eq!(rng.bits(), Streams::new(1).stream(Purpose::Example, 0, 0).bits());
        assert_eq!(negative(&mut rng, 3, &[0, 2]), Some(1));
    }
}
