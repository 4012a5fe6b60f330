//! Spearman's rank correlation of the losses that a proxy predicts with the true ones.
//!
//! # Definition
//! Over all clients with examples, with mean ranks of equal numbers: Pearson's correlation of the ranks. A client's
//! numbers are sums over the triplets of the first epoch of the next round's job. NaN where one of them does not vary.

use super::{Definition, Formula};
use fedgenie_core::math::float::sqrt;
use fedgenie_core::metric::{Better, Measure};

/// Spearman's correlation.
pub static PROXY_RANK_CORRELATION: Definition = Definition {
    measure: Measure { better: Better::Higher, ..Measure::error("proxy_rank_correlation") }.within(-1.0, 1.0),
    formula: Formula::Pairs(|one, other| correlation(&ranks(one), &ranks(other))),
};

/// The rank of each number, from 1; equal ones have the mean of their ranks.
fn ranks(numbers: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_by(|&one, &other| numbers[one].total_cmp(&numbers[other]));
    let mut ranks = vec![0.0; numbers.len()];
    let mut begin = 0;
    for equal in order.chunk_by(|&one, &other| numbers[one] == numbers[other]) {
        let mean = begin as f64 + (equal.len() + 1) as f64 / 2.0;
        equal.iter().for_each(|&index| ranks[index] = mean);
        begin += equal.len();
    }
    ranks
}

/// Pearson's correlation; NaN where one of both does not vary, or is not a number.
fn correlation(one: &[f64], other: &[f64]) -> f64 {
    let mean = |numbers: &[f64]| numbers.iter().sum::<f64>() / numbers.len() as f64;
    let (of_one, of_other) = (mean(one), mean(other));
    let (mut products, mut squares) = (0.0, [0.0; 2]);
    for (one, other) in one.iter().zip(other) {
        let (one, other) = (one - of_one, other - of_other);
        products += one * other;
        squares[0] += one * one;
        squares[1] += other * other;
    }
    let deviation = sqrt(squares[0]) * sqrt(squares[1]);
    if deviation > 0.0 { (products / deviation).clamp(-1.0, 1.0) } else { f64::NAN }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spearmans_correlation_by_hand() {
        // Ranks 1, 2.5, 2.5, 4 and 4, 2, 3, 1.
        let (one, other) = (ranks(&[0.1, 0.5, 0.5, 7.0]), ranks(&[9.0, 2.0, 3.0, 1.0]));
        assert_eq!((&*one, &*other), (&[1.0, 2.5, 2.5, 4.0][..], &[4.0, 2.0, 3.0, 1.0][..]));
        // Deviations −1.5, 0, 0, 1.5 and 1.5, −0.5, 0.5, −1.5.
        let expected = -4.5 / (4.5_f64.sqrt() * 5.0_f64.sqrt());
        assert!((correlation(&one, &other) - expected).abs() < 1e-15);
        assert!(correlation(&[1.0, 1.0], &[1.0, 2.0]).is_nan());
        assert_eq!(correlation(&one, &one), 1.0);
    }
}
