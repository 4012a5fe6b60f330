//! Means with confidence intervals, quantiles, tests, fits of growth.

pub mod growth;
pub mod kolmogorov;
pub mod paired;
pub mod survival;

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// A sample mean and its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The sample mean.
    pub mean: f64,
    /// Lower and upper end of the interval; none for fewer than two values.
    pub ci95: Option<[f64; 2]>,
    /// Number of values.
    pub n: usize,
}

impl Estimate {
    /// Half the width of the interval.
    pub fn half_width(&self) -> Option<f64> {
        self.ci95.map(|[low, high]| (high - low) / 2.0)
    }
}

/// Mean and Student's t interval of independent values; none if there are no values or one is not finite.
///
/// The interval is `mean ± t_{0.975, n−1}·s/√n` with the unbiased sample variance `s²`.
pub fn estimate(values: &[f64]) -> Option<Estimate> {
    if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let n = values.len();
    let mean = values.iter().sum::<f64>() / n as f64;
    let ci95 = (n > 1).then(|| {
        let variance = variance(values);
        let student = StudentsT::new(0.0, 1.0, (n - 1) as f64).expect("at least one degree of freedom");
        let half = student.inverse_cdf(0.975) * (variance / n as f64).sqrt();
        [mean - half, mean + half]
    });
    Some(Estimate { mean, ci95, n })
}

/// Mean and t interval of the differences of paired values, `left − right`.
///
/// # Panics
/// If the two have different lengths.
pub fn paired_difference(left: &[f64], right: &[f64]) -> Option<Estimate> {
    assert_eq!(left.len(), right.len(), "values come in pairs");
    let differences: Vec<f64> = left.iter().zip(right).map(|(left, right)| left - right).collect();
    estimate(&differences)
}

/// The `u`-quantile of ascending values, interpolated between order statistics (R's type 7).
///
/// # Panics
/// If there is no value or `u` is not in `[0, 1]`.
pub fn quantile(ascending: &[f64], u: f64) -> f64 {
    assert!(!ascending.is_empty() && (0.0..=1.0).contains(&u), "the {u}-quantile of {} values", ascending.len());
    let place = u * (ascending.len() - 1) as f64;
    let below = place as usize;
    let above = (below + 1).min(ascending.len() - 1);
    ascending[below] + (place - below as f64) * (ascending[above] - ascending[below])
}

/// The share of successes with Wilson's 95 % interval (E. B. Wilson, JASA 1927).
///
/// # Panics
/// If there are more successes than trials, or no trial.
pub fn proportion(successes: u64, trials: u64) -> Estimate {
    assert!(successes <= trials && trials > 0, "{successes} successes in {trials} trials");
    const Z: f64 = 1.959_963_984_540_054;
    let (n, share) = (trials as f64, successes as f64 / trials as f64);
    let middle = (share + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z / (1.0 + Z * Z / n) * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    Estimate { mean: share, ci95: Some([(middle - half).max(0.0), (middle + half).min(1.0)]), n: trials as usize }
}

/// Unbiased sample variance; 0 for fewer than two values.
pub fn variance(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (values.len() - 1) as f64
}

/// Kendall's τ-b of pairs of numbers: of all pairs of pairs, those in the same order less those in opposite order, over
/// the geometric mean of the pairs that differ in the one and in the other. None where all numbers of one are equal, or
/// one is NaN.
pub fn kendall(pairs: &[(f64, f64)]) -> Option<f64> {
    let (mut balance, mut first, mut second) = (0_i64, 0_u64, 0_u64);
    for (index, one) in pairs.iter().enumerate() {
        for other in &pairs[index + 1..] {
            let x = one.0.partial_cmp(&other.0)? as i64;
            let y = one.1.partial_cmp(&other.1)? as i64;
            balance += x * y;
            first += x.unsigned_abs();
            second += y.unsigned_abs();
        }
    }
    (first > 0 && second > 0).then(|| balance as f64 / ((first as f64) * (second as f64)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five pairs by hand: eight of ten pairs differ in both, seven in the same order; one is tied in the first alone,
    /// one in the second alone: (7 − 1)/√(9·9).
    #[test]
    fn ranks_agree_by_hand() {
        let pairs = [(1.0, 1.0), (2.0, 3.0), (2.0, 2.0), (3.0, 4.0), (4.0, 3.0)];
        approx::assert_relative_eq!(kendall(&pairs).unwrap(), 6.0 / 9.0, max_relative = 1e-15);
        let up: Vec<(f64, f64)> = (0..6).map(|step| (f64::from(step), f64::from(step * step))).collect();
        let down: Vec<(f64, f64)> = up.iter().map(|&(x, y)| (x, -y)).collect();
        assert_eq!([kendall(&up), kendall(&down)], [Some(1.0), Some(-1.0)]);
        assert_eq!(kendall(&[(1.0, 2.0), (1.0, 3.0)]), None);
        assert_eq!(kendall(&[(1.0, 2.0), (2.0, f64::NAN)]), None);
        assert_eq!(kendall(&[]), None);
    }

    /// Values 1, 2, 3, 4: mean 2.5, s² = 5/3, s/√4 = 0.6454972; t(0.975, 3) = 3.1824463.
    #[test]
    fn an_interval_by_hand() {
        let found = estimate(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!(found.mean, 2.5);
        approx::assert_relative_eq!(
            found.half_width().unwrap(),
            3.182_446_305_284 * 0.645_497_224_368,
            max_relative = 1e-9
        );
    }

    /// 8 of 10: R's `prop.test(8, 10, correct = FALSE)` gives 0.4901625 to 0.9433178.
    #[test]
    fn a_proportion_by_an_independent_program() {
        let [low, high] = proportion(8, 10).ci95.unwrap();
        approx::assert_relative_eq!(low, 0.490_162_5, max_relative = 1e-6);
        approx::assert_relative_eq!(high, 0.943_317_8, max_relative = 1e-6);
        assert!(proportion(10, 10).ci95.unwrap()[1] > 1.0 - 1e-12);
    }

    #[test]
    fn quantiles_interpolate() {
        let values = [1.0, 2.0, 4.0];
        assert_eq!([0.0, 0.25, 0.5, 0.75, 1.0].map(|u| quantile(&values, u)), [1.0, 1.5, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn pairing_removes_what_both_share() {
        let found = paired_difference(&[10.0, 20.0, 31.0], &[9.0, 19.0, 30.0]).unwrap();
        assert_eq!(found.ci95, Some([1.0, 1.0]));
    }

    #[test]
    fn one_value_has_no_interval_and_a_nan_no_mean() {
        assert_eq!(estimate(&[2.0]).unwrap().ci95, None);
        assert_eq!(estimate(&[2.0, f64::NAN]), None);
        assert_eq!(estimate(&[]), None);
    }
}
