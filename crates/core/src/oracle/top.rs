//! The `m` best scores: the selection rule of every policy whose reward is a plain sum.
//!
//! # Definition
//! Let `s` be the `m`-th largest score. Everyone above `s` + [`TIE`] is chosen; among those within [`TIE`] of `s` the
//! smallest positions win.
//!
//! # Inputs
//! Scores finite or ±∞, never NaN; `m` at most their number.
//!
//! # Source
//! Top-`m` selection as in CS-UCB, MAB-FRS (28), FedACS (17); the tie rule is [`crate::oracle`]'s.
//!
//! # Deviations
//! None; the sources do not say how ties break.
//!
//! # Cost
//! `O(K)` time, `O(m)` memory: a buffer of at most `2m` scores is cut back to the best `m` whenever it is full.
//!
//! # Determinism
//! Draws nothing; ties break by position.
//!
//! # Example
//! ```
//! let mut chosen = Vec::new();
//! fedgenie_core::oracle::top::top_m(&[0.5, 2.0, 1.0, 1.0], 2, &mut chosen);
//! assert_eq!(chosen, [1, 2]);
//! ```

use super::TIE;

/// Writes the positions of the `m` best scores to `out`, ascending.
///
/// # Panics
/// If there are fewer than `m` scores, or one of them is NaN.
pub fn top_m(scores: &[f64], m: usize, out: &mut Vec<u32>) {
    assert!(m <= scores.len(), "the best {m} of {} scores", scores.len());
    assert!(scores.iter().all(|score| !score.is_nan()), "a score is not a number (NaN)");
    out.clear();
    if m == 0 {
        return;
    }
    let mut largest = Largest::default();
    largest.reset(m);
    scores.iter().for_each(|&score| largest.offer(score));
    let last = largest.floor();
    let above = scores.iter().filter(|&&score| score > last + TIE).count();
    let mut tied = m - above;
    for (position, &score) in scores.iter().enumerate() {
        let ties = score <= last + TIE && score >= last - TIE && tied > 0;
        tied -= usize::from(ties);
        if ties || score > last + TIE {
            out.push(position as u32);
        }
    }
    assert_eq!(out.len(), m, "the m-th best score ties with itself");
}

/// The `count` largest of a stream of numbers, in no particular order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Largest {
    count: usize,
    floor: f64,
    values: Vec<f64>,
}

impl Largest {
    /// Forgets everything and keeps the `count` largest from now on.
    pub fn reset(&mut self, count: usize) {
        self.count = count;
        self.floor = f64::NEG_INFINITY;
        self.values.clear();
    }

    /// Considers one number; amortised constant time.
    #[inline]
    pub fn offer(&mut self, value: f64) {
        if value > self.floor {
            self.values.push(value);
            if self.values.len() >= 2 * self.count + 16 {
                self.trim();
            }
        }
    }

    /// The `count`-th largest number so far, −∞ while there are fewer.
    pub fn floor(&mut self) -> f64 {
        self.trim();
        self.floor
    }

    /// The at most `count` largest numbers so far; −∞ is never among them.
    pub fn values(&mut self) -> &[f64] {
        self.trim();
        &self.values
    }

    fn trim(&mut self) {
        if self.values.len() >= self.count {
            self.floor = *self.values.select_nth_unstable_by(self.count - 1, |a, b| b.total_cmp(a)).1;
            self.values.truncate(self.count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::brute;
    use crate::rng::{Purpose, Streams};

    fn top(scores: &[f64], m: usize) -> Vec<u32> {
        let mut out = vec![7];
        top_m(scores, m, &mut out);
        out
    }

    #[test]
    fn scores_within_the_tie_of_the_last_are_equal() {
        assert_eq!(top(&[1.0, 1.0 + 0.5e-12, 1.0 - 0.5e-12], 1), [0]);
        assert_eq!(top(&[1.0 - 0.5e-12, 1.0, 2.0], 2), [0, 2]);
        assert_eq!(top(&[1.0 - 2e-12, 1.0, 2.0], 2), [1, 2]);
    }

    #[test]
    fn infinite_scores_tie() {
        assert_eq!(top(&[0.0, f64::INFINITY, f64::INFINITY, f64::INFINITY], 2), [1, 2]);
        assert_eq!(top(&[0.0, 1.0, f64::INFINITY], 2), [1, 2]);
        assert_eq!(top(&[f64::NEG_INFINITY, f64::NEG_INFINITY, 0.0], 2), [0, 2]);
        assert_eq!(top(&[0.0], 0), [0; 0]);
    }

    #[test]
    #[should_panic(expected = "NaN")]
    fn a_score_that_is_not_a_number_is_a_broken_invariant() {
        top(&[0.0, f64::NAN], 1);
    }

    #[test]
    fn agrees_with_the_definition_by_sorting() {
        let mut rng = Streams::new(5).stream(Purpose::Solver, 0, 0);
        for _ in 0..2_000 {
            let count = 1 + rng.below(80) as usize;
            let (scores, _) = brute::arrays(count, &mut rng);
            let m = 1 + rng.below(count as u64) as usize;
            let mut sorted = scores.clone();
            sorted.sort_by(|a, b| b.total_cmp(a));
            let last = sorted[m - 1];
            let mut expected: Vec<u32> = (0..count as u32).filter(|&k| scores[k as usize] > last + TIE).collect();
            let tied = (0..count as u32).filter(|&k| (last - TIE..=last + TIE).contains(&scores[k as usize]));
            expected.extend(tied.take(m - expected.len()).collect::<Vec<_>>());
            expected.sort_unstable();
            assert_eq!(top(&scores, m), expected, "{scores:?}");
        }
    }
}
