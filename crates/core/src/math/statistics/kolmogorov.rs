//! The one-sample Kolmogorov–Smirnov test.
//!
//! # Definition
//! `D = sup |F_n − F|` of a sample and a distribution function. The p-value is Kolmogorov's limit law at
//! `(√n + 0.12 + 0.11/√n)·D`, good to a few thousandths from n = 20 on, and too large, which is the safe side, for laws
//! with atoms.
//!
//! # Source
//! M. A. Stephens, "Use of the Kolmogorov–Smirnov, Cramér–von Mises and related statistics without extensive tables",
//! J. Royal Statistical Society B 1970.

use crate::math::float::{exp, sqrt};

/// Statistic and p-value of a sample, which is sorted here.
///
/// # Panics
/// If the sample is empty.
pub fn test(sample: &mut [f64], cdf: impl Fn(f64) -> f64) -> (f64, f64) {
    assert!(!sample.is_empty(), "a sample has values");
    sample.sort_by(f64::total_cmp);
    let n = sample.len() as f64;
    let (mut distance, mut below) = (0.0_f64, 0);
    while below < sample.len() {
        let x = sample[below];
        let upto = below + sample[below..].partition_point(|&other| other <= x);
        let before = (cdf(x.next_down()) - below as f64 / n).abs();
        distance = distance.max(before).max((cdf(x) - upto as f64 / n).abs());
        below = upto;
    }
    let root = sqrt(n);
    (distance, upper_tail((root + 0.12 + 0.11 / root) * distance))
}

/// `P(K > x)` of Kolmogorov's law, `2 Σ (−1)^{k−1} exp(−2k²x²)`.
fn upper_tail(x: f64) -> f64 {
    // Below, the alternating series converges slowly, and the probability is 1 to 10 digits.
    if x < 0.2 {
        return 1.0;
    }
    let term = |k: i32| {
        let k = f64::from(k);
        let sign = if k % 2.0 == 1.0 { 1.0 } else { -1.0 };
        sign * exp(-2.0 * k * k * x * x)
    };
    (2.0 * (1..=100).map(term).sum::<f64>()).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Streams};

    /// Tables of Kolmogorov's law: P(K > 1.3581) = 0.05, P(K > 1.6276) = 0.01, P(K > 0.8276) = 0.5.
    #[test]
    fn the_limit_law_has_its_tabulated_quantiles() {
        for (x, tail) in [(1.3581, 0.05), (1.6276, 0.01), (0.8276, 0.5)] {
            approx::assert_relative_eq!(upper_tail(x), tail, max_relative = 1e-3);
        }
    }

    /// Values 0.1, 0.5, 0.6 against the uniform law: the largest step is at 0.6, where F_n jumps to 1.
    #[test]
    fn a_distance_by_hand() {
        let (distance, _) = test(&mut [0.6, 0.1, 0.5], |x| x);
        approx::assert_relative_eq!(distance, 0.4, max_relative = 1e-12);
    }

    /// A coin with values 1 and 2: of four throws three are 1, so that F_n(1) = 0.75 against 0.5.
    #[test]
    fn atoms_count_once() {
        let coin = |x: f64| {
            if x < 1.0 {
                0.0
            } else if x < 2.0 {
                0.5
            } else {
                1.0
            }
        };
        assert_eq!(test(&mut [1.0, 2.0, 1.0, 1.0], coin).0, 0.25);
    }

    #[test]
    fn under_the_null_one_test_in_twenty_rejects() {
        let streams = Streams::new(11);
        let rejects = (0..2_000).filter(|&k| {
            let mut rng = streams.stream(Purpose::Resampling, k, 0);
            let mut sample: Vec<f64> = (0..50).map(|_| rng.uniform()).collect();
            test(&mut sample, |x| x).1 < 0.05
        });
        let rejects = rejects.count();
        assert!((70..130).contains(&rejects), "found {rejects} of 2000");
    }
}
