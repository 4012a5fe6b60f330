//! Statistics over clients or edge servers, each of which has the same weight.
//!
//! # Definition
//! Of `n` values: `mean`; `sd`, with divisor `n`; `p10`, the value at position `⌊n/10⌋` (from 0) in ascending order, so
//! that at most a tenth lie below; `min`; `max`. NaN without values.

use super::Better;
use crate::math::float::sqrt;

/// A statistic over clients or edge servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Statistic {
    /// The mean.
    Mean,
    /// The standard deviation, divisor n.
    Sd,
    /// The tenth percentile.
    P10,
    /// The smallest.
    Min,
    /// The largest.
    Max,
}

impl Statistic {
    /// All of them, in the order in which metrics have them.
    pub const ALL: [Self; 5] = [Self::Mean, Self::Sd, Self::P10, Self::Min, Self::Max];

    /// The suffix of a metric's name.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Sd => "sd",
            Self::P10 => "p10",
            Self::Min => "min",
            Self::Max => "max",
        }
    }

    /// Whether the statistic belongs to the `model` digest: mean and deviation do, and `p10` and `min` of a measure of
    /// which higher values are better.
    pub const fn is_digested(self, better: Better) -> bool {
        match (self, better) {
            (Self::Mean | Self::Sd, _) | (Self::P10 | Self::Min, Better::Higher) => true,
            (Self::Max, _) | (Self::P10 | Self::Min, Better::Lower) => false,
        }
    }

    /// All statistics of some values, in the order of [`Statistic::ALL`]; NaN without values.
    pub fn of(values: &[f64]) -> [f64; 5] {
        if values.is_empty() {
            return [f64::NAN; 5];
        }
        let count = values.len() as f64;
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let mean = between(values.iter().sum::<f64>() / count, values);
        let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / count;
        [mean, sqrt(variance), sorted[sorted.len() / 10], sorted[0], sorted[sorted.len() - 1]]
    }
}

/// A mean of values, clamped to their range: rounding may put it outside. Equal values have themselves as mean.
pub fn between(mean: f64, values: &[f64]) -> f64 {
    if mean.is_nan() {
        return mean;
    }
    let (low, high) = values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(*value), high.max(*value)));
    mean.max(low).min(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounding puts no mean outside the range of its values: 0.1 three times adds up to more than 0.3.
    #[test]
    fn equal_values_have_their_mean_and_no_deviation() {
        for count in 1..50 {
            let [mean, sd, p10, min, max] = Statistic::of(&vec![0.1; count]);
            assert_eq!([mean, sd, p10, min, max], [0.1, 0.0, 0.1, 0.1, 0.1], "{count}");
        }
        assert!(Statistic::of(&[f64::NAN, 1.0])[0].is_nan());
        assert_eq!(Statistic::of(&[1.0, 3.0]), [2.0, 1.0, 1.0, 1.0, 3.0]);
    }

    #[test]
    fn statistics_by_hand() {
        // Mean 2.5, deviations −1.5 … 1.5: variance 5/4.
        let found = Statistic::of(&[4.0, 1.0, 3.0, 2.0]);
        assert_eq!(found, [2.5, 1.25_f64.sqrt(), 1.0, 1.0, 4.0]);
        let many: Vec<f64> = (0..25).rev().map(f64::from).collect();
        assert_eq!(Statistic::of(&many)[2], 2.0);
        assert!(Statistic::of(&[]).iter().all(|value| value.is_nan()));
    }
}
