//! Means with confidence intervals, for summaries.

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
        let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (n - 1) as f64;
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

#[cfg(test)]
mod tests {
    use super::*;

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
