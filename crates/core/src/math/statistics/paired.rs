//! The difference of two shares of the same runs.
//!
//! # Definition
//! Of n pairs, `a` succeed on both sides, `b` on the left alone, `c` on the right alone, `d` on neither. The difference
//! is `(b − c)/n`. Its 95 % interval is Newcombe's tenth method: from Wilson's intervals of both shares, squared
//! and added with the correlation φ between the sides, which is corrected for continuity. Unlike Student's interval of
//! the differences it has a width where all pairs agree.
//!
//! # Source
//! R. G. Newcombe, *Improved confidence intervals for the difference between binomial proportions based on paired
//! data*, Statistics in Medicine 17 (1998) 2635–2650.
//!
//! # Deviations from the source
//! None.
//!
//! # Cost
//! Constant.
//!
//! # Determinism
//! A function of four counts.

use super::{Estimate, Miss, proportion_at};
use crate::math::float::sqrt;

/// The share of successes on the left minus that on the right. The counts are of pairs with a success on both sides, on
/// the left alone, on the right alone, on neither.
///
/// # Panics
/// If there is no pair.
pub fn paired_shares(counts: [u64; 4]) -> Estimate {
    paired_shares_at(counts, Miss::USUAL)
}

/// The same, with an interval that misses the difference more or less often.
///
/// # Panics
/// If there is no pair.
pub fn paired_shares_at([both, left, right, neither]: [u64; 4], miss: Miss) -> Estimate {
    let pairs = both + left + right + neither;
    let (one, other) = (proportion_at(both + left, pairs, miss), proportion_at(both + right, pairs, miss));
    let [a, b, c, d] = [both, left, right, neither].map(|count| count as f64);
    let n = pairs as f64;
    let agreement = a * d - b * c;
    let corrected = if agreement > 0.0 { (agreement - n / 2.0).max(0.0) } else { agreement };
    let spread = (a + b) * (c + d) * (a + c) * (b + d);
    let phi = if spread > 0.0 { corrected / sqrt(spread) } else { 0.0 };
    let ends = |found: &Estimate| found.ci95.map_or([0.0; 2], |[low, high]| [found.mean - low, high - found.mean]);
    let ([below, above], [other_below, other_above]) = (ends(&one), ends(&other));
    let width = |x: f64, y: f64| sqrt((x * x - 2.0 * phi * x * y + y * y).max(0.0));
    let mean = (b - c) / n;
    Estimate { mean, ci95: Some([mean - width(below, other_above), mean + width(above, other_below)]), n: one.n }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first of Newcombe's examples: 36, 12, 2 and 0 of 50 pairs give 0.0569 to 0.3404.
    #[test]
    fn an_interval_of_the_source() {
        let found = paired_shares([36, 12, 2, 0]);
        let [low, high] = found.ci95.unwrap();
        approx::assert_relative_eq!(found.mean, 0.2, max_relative = 1e-12);
        approx::assert_abs_diff_eq!(low, 0.0569, epsilon = 6e-5);
        approx::assert_abs_diff_eq!(high, 0.3404, epsilon = 6e-5);
    }

    /// Without any pair that differs, the ends are Wilson's of 20 of 20, `n/(n + z²)`, twice squared and added.
    #[test]
    fn pairs_that_agree_leave_a_width() {
        let z = 1.959_963_984_540_054_f64;
        let missed = 1.0 - 20.0 / (20.0 + z * z);
        let [low, high] = paired_shares([20, 0, 0, 0]).ci95.unwrap();
        approx::assert_relative_eq!(-low, missed, max_relative = 1e-12);
        approx::assert_relative_eq!(high, missed, max_relative = 1e-12);
    }

    #[test]
    fn sides_change_places() {
        let ([low, high], [turned_low, turned_high]) =
            (paired_shares([3, 5, 1, 4]).ci95.unwrap(), paired_shares([3, 1, 5, 4]).ci95.unwrap());
        approx::assert_relative_eq!(low, -turned_high, max_relative = 1e-12);
        approx::assert_relative_eq!(high, -turned_low, max_relative = 1e-12);
    }

    /// Three of three against none of three: three seeds decide nothing.
    #[test]
    fn three_pairs_decide_little() {
        let [low, high] = paired_shares([0, 3, 0, 0]).ci95.unwrap();
        assert!(low > 0.0 && low < 0.3 && high > 0.999, "{low} to {high}");
    }
}
