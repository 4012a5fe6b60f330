//! The set with the largest weighted mean: a sum over a sum, such as the share of updates in an average.
//!
//! # Definition
//! ```text
//! value(S) = Σ_{k∈S} n_k·a_k / Σ_{k∈S} n_k,     0 where the members of S weigh nothing
//! ```
//! is maximised over sets `S` of the sizes asked for. For a number `λ`, a set of one size is worth at least `λ` if and
//! only if its scores `n_k(a_k − λ)` add up to at least 0, and the largest such sum is that of the largest scores. So
//! [`maximise`] begins with the value of a set, takes the set with the largest scores at it, goes on with the value of
//! that one, and ends when no set is worth more. As everywhere in [`crate::oracle`], sets within [`TIE`] of the maximum
//! are equal, and the lexicographically smallest of all of them wins.
//!
//! # Inputs
//! Weights `n_k ≥ 0` and values `a_k`, one of each per candidate, finite; sizes between 1 and the number of candidates.
//!
//! # Source
//! W. Dinkelbach, "On nonlinear fractional programming", Management Science 13(7), 1967.
//!
//! # Deviations
//! The source has no ties, and no sets that weigh nothing.
//!
//! # Cost
//! `O(K log K)` for each step and size; the steps converge faster than linearly, and are fewer than ten in practice.
//!
//! # Determinism
//! Draws nothing; sums are compensated and run by ascending position.
//!
//! # Example
//! ```
//! // Three updates with 1, 1 and 8 examples. Alone the first is the best; of two, the last outweighs it.
//! let (weights, values) = ([1.0, 1.0, 8.0], [4.0, 1.0, 3.0]);
//! assert_eq!(fedgenie_core::oracle::ratio::maximise(&weights, &values, 1..=1), (4.0, vec![0]));
//! assert_eq!(fedgenie_core::oracle::ratio::maximise(&weights, &values, 2..=2), (28.0 / 9.0, vec![0, 2]));
//! ```

use super::TIE;
use super::bottleneck::{Exchange, Item};
use crate::math::sum::CompensatedSum;
use std::ops::RangeInclusive;

/// The share of the slack that is kept back, to tell a set that weighs nothing from one that is worth just enough.
const KEPT_BACK: f64 = 1e-9;

/// The value of a set of distinct positions, ascending.
pub fn value(weights: &[f64], values: &[f64], set: &[u32]) -> f64 {
    let weight: CompensatedSum = set.iter().map(|&k| weights[k as usize]).collect();
    let sum: CompensatedSum = set.iter().map(|&k| weights[k as usize] * values[k as usize]).collect();
    if weight.value() > 0.0 { sum.value() / weight.value() } else { 0.0 }
}

/// The best set of these sizes, ascending, and its value.
///
/// # Panics
/// If the lists differ in length, a number is not finite, a weight is negative, or no set has such a size: broken
/// invariants.
pub fn maximise(weights: &[f64], values: &[f64], sizes: RangeInclusive<usize>) -> (f64, Vec<u32>) {
    assert_eq!(weights.len(), values.len(), "a weight and a value per candidate");
    assert!(weights.iter().chain(values).all(|number| number.is_finite()), "weights and values are finite");
    assert!(weights.iter().all(|&weight| weight >= 0.0), "weights are not negative");
    assert!(1 <= *sizes.start() && sizes.start() <= sizes.end(), "sets have members");
    assert!(*sizes.end() <= weights.len(), "sets of {} of {} candidates", sizes.end(), weights.len());
    let found: Vec<(usize, f64)> =
        sizes.clone().filter_map(|size| Some((size, largest(weights, values, size)?))).collect();
    let weightless: Vec<u32> = (0..).zip(weights).filter(|(_, weight)| **weight == 0.0).map(|(k, _)| k).collect();
    let zero = *sizes.start() <= weightless.len();
    let values_found = found.iter().map(|(_, value)| *value).chain(zero.then_some(0.0));
    let best = values_found.fold(f64::NEG_INFINITY, f64::max);
    let tied = found.into_iter().filter(|(_, value)| *value >= best - TIE);
    let weighing = tied.map(|(size, _)| smallest(weights, values, size, best - TIE));
    // Of sets that weigh nothing, a shorter one comes before a longer one that begins with it.
    let weightless = (zero && 0.0 >= best - TIE).then(|| weightless[..*sizes.start()].to_vec());
    let set = weighing.chain(weightless).min().expect("there is a set of each size");
    (value(weights, values, &set), set)
}

/// The positions of the largest scores at `level`, the first of equal ones, in no particular order.
fn top(weights: &[f64], values: &[f64], size: usize, level: f64) -> Vec<u32> {
    let score = |k: u32| weights[k as usize] * (values[k as usize] - level);
    let mut order: Vec<u32> = (0..weights.len() as u32).collect();
    let by_score = |one: &u32, other: &u32| score(*other).total_cmp(&score(*one)).then(one.cmp(other));
    if size < order.len() {
        order.select_nth_unstable_by(size - 1, by_score);
        order.truncate(size);
    }
    order
}

/// The largest value of a set of one size that weighs something; `None` if no set does.
fn largest(weights: &[f64], values: &[f64], size: usize) -> Option<f64> {
    // A set that weighs something: with the heaviest candidate.
    let mut set = top(weights, &vec![1.0; values.len()], size, 0.0);
    set.sort_unstable();
    set.iter().any(|&k| weights[k as usize] > 0.0).then_some(())?;
    let mut level = value(weights, values, &set);
    loop {
        let mut next = top(weights, values, size, level);
        next.sort_unstable();
        let weighs = next.iter().any(|&k| weights[k as usize] > 0.0);
        let found = value(weights, values, &next);
        // Values rise until rounding stops them; a set that weighs nothing has the largest scores, all 0, only where
        // no other is worth more.
        if !weighs || found <= level {
            return Some(level);
        }
        level = found;
    }
}

/// The lexicographically smallest set of one size that weighs something and is worth at least `level`, which some set
/// surpasses.
fn smallest(weights: &[f64], values: &[f64], size: usize, level: f64) -> Vec<u32> {
    let score = |k: usize| weights[k] * (values[k] - level);
    let item = |k: usize| Item { position: k as u32, gain: score(k), outside: false, chosen: false };
    let mut items: Vec<Item> = (0..weights.len()).map(item).collect();
    let base = top(weights, values, size, level);
    base.iter().for_each(|&k| items[k as usize].chosen = true);
    let slack: CompensatedSum = items.iter().filter(|item| item.chosen).map(|item| item.gain).collect();
    Exchange::default().run(&mut items, 0, slack.value() * (1.0 - KEPT_BACK));
    items.iter().filter(|item| item.chosen).map(|item| item.position).collect()
}

#[cfg(test)]
mod tests {
    use super::super::brute::{STYLES, draw, subsets};
    use super::*;
    use crate::rng::{Purpose, Streams};

    fn enumerated(weights: &[f64], values: &[f64], sizes: RangeInclusive<usize>) -> (f64, Vec<u32>) {
        let mut sets: Vec<Vec<u32>> = sizes.flat_map(|size| subsets(weights.len(), size)).collect();
        sets.sort();
        let of: Vec<f64> = sets.iter().map(|set| value(weights, values, set)).collect();
        let best = of.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let first = of.iter().position(|&value| value >= best - TIE).unwrap();
        (of[first], sets.swap_remove(first))
    }

    #[test]
    fn the_best_set_is_that_of_enumeration() {
        let mut rng = Streams::new(17).stream(Purpose::Solver, 0, 0);
        for case in 0..20_000_u32 {
            let candidates = 1 + rng.below(8) as usize;
            let cohort = 1 + rng.below(candidates as u64) as usize;
            let style = rng.below(STYLES);
            let values: Vec<f64> = (0..candidates).map(|_| draw(style, &mut rng)).collect();
            let weight = |kind: u64, rng: &mut crate::rng::StreamRng| match kind {
                0 => 1.0,
                1 => rng.below(4) as f64,
                2 => rng.below(2) as f64 * 60.0,
                _ => 1.0 + rng.below(200) as f64,
            };
            let kind = rng.below(4);
            let weights: Vec<f64> = (0..candidates).map(|_| weight(kind, &mut rng)).collect();
            let sizes = if case.is_multiple_of(3) { 1..=cohort } else { cohort..=cohort };
            let (best, set) = maximise(&weights, &values, sizes.clone());
            let (expected, first) = enumerated(&weights, &values, sizes.clone());
            let tied = (value(&weights, &values, &set) - expected).abs() <= 2.0 * TIE;
            // Where a value lies at the very edge of the tie, rounding decides.
            let is_edge = style == 5 || style == 6 || style == 8;
            assert!(set == first || is_edge && tied, "{weights:?} {values:?} {sizes:?}: {set:?}, not {first:?}");
            assert_eq!(best, value(&weights, &values, &set));
        }
    }

    /// Two of many: heavy candidates with large values; checked by the condition that a best set fulfils.
    #[test]
    fn many_candidates() {
        let mut rng = Streams::new(18).stream(Purpose::Solver, 0, 0);
        let weights: Vec<f64> = (0..30_000).map(|_| (1 + rng.below(300)) as f64).collect();
        let values: Vec<f64> = (0..30_000).map(|_| rng.uniform() - 0.9).collect();
        for size in [1, 20, 100, 29_999, 30_000] {
            let (best, set) = maximise(&weights, &values, size..=size);
            assert!(set.len() == size && set.is_sorted());
            let mut scores: Vec<f64> =
                weights.iter().zip(&values).map(|(weight, value)| weight * (value - best)).collect();
            scores.sort_by(|one, other| other.total_cmp(one));
            let sum: CompensatedSum = scores[..size].iter().copied().collect();
            let weight: f64 = set.iter().map(|&k| weights[k as usize]).sum();
            approx::assert_abs_diff_eq!(sum.value() / weight, 0.0, epsilon = 1e-12);
        }
    }

    #[test]
    fn ties_go_to_the_smallest_positions_and_nothing_is_worth_nothing() {
        assert_eq!(maximise(&[2.0; 4], &[1.0; 4], 2..=2), (1.0, vec![0, 1]));
        assert_eq!(maximise(&[1.0, 9.0, 1.0], &[0.5, 0.25, 0.5], 1..=2), (0.5, vec![0]));
        // The last two weigh nothing: they dilute no mean.
        let (weights, values) = ([4.0, 2.0, 0.0, 0.0], [-1.0, 2.0, 0.0, 0.0]);
        assert_eq!(maximise(&weights, &values, 2..=2), (2.0, vec![1, 2]));
        assert_eq!(maximise(&weights, &[-1.0, -2.0, 0.0, 0.0], 2..=2), (0.0, vec![2, 3]));
        assert_eq!(maximise(&weights, &[-1.0, -2.0, 0.0, 0.0], 3..=3), (-1.0, vec![0, 2, 3]));
        assert_eq!(maximise(&[0.0; 3], &[0.0; 3], 1..=2), (0.0, vec![0]));
        assert_eq!(value(&weights, &values, &[0, 1]), 0.0);
    }

    #[test]
    #[should_panic(expected = "not negative")]
    fn a_negative_weight_is_a_broken_invariant() {
        maximise(&[-1.0], &[0.0], 1..=1);
    }
}
