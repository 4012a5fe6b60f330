//! Means with confidence intervals, quantiles, tests, fits of growth.

pub mod growth;
pub mod kolmogorov;
pub mod paired;
pub mod survival;

use super::special::normal_quantile;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// A sample mean and its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The sample mean.
    pub mean: f64,
    /// Lower and upper end of the interval; `None` for fewer than two values.
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

/// The share of intervals that may miss what they are about: 5 %, of [`Estimate::ci95`], unless a function is asked for
/// another.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Miss(f64);

impl Miss {
    /// 5 %, as everywhere but where values are looked at several times or compared with many others.
    pub const USUAL: Self = Self(0.05);

    /// This share.
    ///
    /// # Panics
    /// If it is not between 0 and 1.
    pub fn of(share: f64) -> Self {
        assert!(share > 0.0 && share < 1.0, "a share of intervals, not {share}");
        Self(share)
    }

    /// The share.
    pub const fn share(self) -> f64 {
        self.0
    }

    /// The quantile at the upper end of an interval: 0.975 where 5 % miss.
    fn upper(self) -> f64 {
        if self == Self::USUAL { 0.975 } else { 1.0 - self.0 / 2.0 }
    }

    /// That of the standard normal distribution.
    fn normal(self) -> f64 {
        if self == Self::USUAL { Z } else { normal_quantile(self.upper()) }
    }
}

/// Mean and Student's t interval of independent values; `None` if there are no values or one is not finite.
///
/// The interval is `mean ± t_{0.975, n−1}·s/√n` with the unbiased sample variance `s²`.
pub fn estimate(values: &[f64]) -> Option<Estimate> {
    estimate_at(values, Miss::USUAL)
}

/// The same, with an interval that misses the mean more or less often.
pub fn estimate_at(values: &[f64], miss: Miss) -> Option<Estimate> {
    if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let n = values.len();
    let mean = values.iter().sum::<f64>() / n as f64;
    let ci95 = (n > 1).then(|| {
        let variance = variance(values);
        let student = StudentsT::new(0.0, 1.0, (n - 1) as f64).expect("at least one degree of freedom");
        let half = student.inverse_cdf(miss.upper()) * (variance / n as f64).sqrt();
        [mean - half, mean + half]
    });
    Some(Estimate { mean, ci95, n })
}

/// Mean and t interval of the differences of paired values, `left − right`.
///
/// # Panics
/// If the two have different lengths.
pub fn paired_difference(left: &[f64], right: &[f64]) -> Option<Estimate> {
    paired_difference_at(left, right, Miss::USUAL)
}

/// The same, with an interval that misses the mean more or less often.
///
/// # Panics
/// If the two have different lengths.
pub fn paired_difference_at(left: &[f64], right: &[f64], miss: Miss) -> Option<Estimate> {
    assert_eq!(left.len(), right.len(), "values come in pairs");
    let differences: Vec<f64> = left.iter().zip(right).map(|(left, right)| left - right).collect();
    estimate_at(&differences, miss)
}

/// Mean and t interval of the difference of independent samples, `left − right`, after B. L. Welch (Biometrika 1947);
/// `n` is the size of the smaller one.
///
/// With `v = s²/n` of each, the interval is `mean ± t_{0.975, ν}·√(v₁ + v₂)` and
/// `ν = (v₁ + v₂)²/(v₁²/(n₁ − 1) + v₂²/(n₂ − 1))`. `None` if a sample is empty or not finite.
pub fn independent_difference(left: &[f64], right: &[f64]) -> Option<Estimate> {
    let mean = estimate(left)?.mean - estimate(right)?.mean;
    let part = |values: &[f64]| variance(values) / values.len() as f64;
    let (one, two, n) = (part(left), part(right), left.len().min(right.len()));
    let of_freedom = |v: f64, values: &[f64]| v * v / (values.len() - 1) as f64;
    let ci95 = (n > 1).then(|| {
        if one + two == 0.0 {
            return [mean; 2];
        }
        let freedom = (one + two) * (one + two) / (of_freedom(one, left) + of_freedom(two, right));
        let student = StudentsT::new(0.0, 1.0, freedom).expect("at least one degree of freedom");
        let half = student.inverse_cdf(0.975) * (one + two).sqrt();
        [mean - half, mean + half]
    });
    Some(Estimate { mean, ci95, n })
}

/// The number of values that would tell a mean from 0, at the mean and spread found: the smallest `n` with
/// `t_{0.975, n−1}·s/√n < |mean|`. `None` where the mean is 0 or the spread is not known, and for more than 10⁹.
///
/// `s` is taken from the interval. Of a difference of independent samples, `n` is the size of each.
pub fn values_needed(found: &Estimate) -> Option<u64> {
    let half = found.half_width().filter(|half| half.is_finite() && *half > 0.0 && found.n > 1)?;
    let deviations = half * (found.n as f64).sqrt() / student(found.n - 1) / found.mean.abs();
    // Student's t is above the normal quantile and falls with its degrees of freedom: few steps are left.
    let fewest = (Z * deviations) * (Z * deviations);
    if !fewest.is_finite() || fewest > 1e9 {
        return None;
    }
    let mut n = (fewest as usize).max(2);
    while student(n - 1) * deviations >= (n as f64).sqrt() {
        n += 1;
    }
    Some(n as u64)
}

/// The 0.975-quantile of the standard normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// The 0.975-quantile of Student's t: with many degrees of freedom Hill's expansion (Abramowitz and Stegun, 26.7.5),
/// which is right to 1e-8 from 100 on.
fn student(freedom: usize) -> f64 {
    let degrees = freedom as f64;
    if freedom < 100 {
        return StudentsT::new(0.0, 1.0, degrees).expect("at least one degree of freedom").inverse_cdf(0.975);
    }
    let (z, square) = (Z, Z * Z);
    let first = z * (square + 1.0) / 4.0;
    let second = z * ((5.0 * square + 16.0) * square + 3.0) / 96.0;
    let third = z * (((3.0 * square + 19.0) * square + 17.0) * square - 15.0) / 384.0;
    z + (first + (second + third / degrees) / degrees) / degrees
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
    proportion_at(successes, trials, Miss::USUAL)
}

/// The same, with an interval that misses the share more or less often.
///
/// # Panics
/// If there are more successes than trials, or no trial.
pub fn proportion_at(successes: u64, trials: u64, miss: Miss) -> Estimate {
    assert!(successes <= trials && trials > 0, "{successes} successes in {trials} trials");
    let (n, share, z) = (trials as f64, successes as f64 / trials as f64, miss.normal());
    let middle = (share + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let half = z / (1.0 + z * z / n) * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
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

/// Kendall's τ-b of pairs of numbers: the pairs of pairs in the same order less those in opposite order, over the
/// geometric mean of the pairs that differ in the first and in the second number. `None` where all first or all second
/// numbers are equal, or one is NaN.
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

    /// 1, 2, 3, 4 and 2, 4: v₁ = (5/3)/4 = 5/12, v₂ = 2/2 = 1; √(17/12) = 1.1902381; ν = (17/12)²/((5/12)²/3 + 1) =
    /// (289/144)/(457/432) = 867/457; that quantile of Student's t is found by its definition below.
    #[test]
    fn independent_samples_by_hand() {
        let found = independent_difference(&[1.0, 2.0, 3.0, 4.0], &[2.0, 4.0]).unwrap();
        assert_eq!((found.mean, found.n), (-0.5, 2));
        let freedom = (17.0_f64 / 12.0).powi(2) / ((5.0_f64 / 12.0).powi(2) / 3.0 + 1.0);
        approx::assert_relative_eq!(freedom, 867.0 / 457.0, max_relative = 1e-14);
        let t = found.half_width().unwrap() / (17.0_f64 / 12.0).sqrt();
        approx::assert_relative_eq!(StudentsT::new(0.0, 1.0, freedom).unwrap().cdf(t), 0.975, max_relative = 1e-9);
        // Equal sizes and variances: 2(n − 1) degrees of freedom, t(0.975, 6) = 2.4469119.
        let found = independent_difference(&[1.0, 2.0, 3.0, 4.0], &[3.0, 4.0, 5.0, 6.0]).unwrap();
        approx::assert_relative_eq!(
            found.half_width().unwrap(),
            2.446_911_9 * (10.0_f64 / 12.0).sqrt(),
            max_relative = 1e-7
        );
        assert_eq!(independent_difference(&[1.0, 1.0], &[2.0, 2.0]).unwrap().ci95, Some([-1.0; 2]));
        assert_eq!(independent_difference(&[1.0], &[2.0, 3.0]).unwrap().ci95, None);
        assert_eq!(independent_difference(&[], &[2.0, 3.0]), None);
    }

    /// Standard deviation 2: at a mean of 1, t(0.975, 17)·2/√18 = 2.1098156·0.4714045 = 0.9945766 is the first below 1
    /// (t(0.975, 16)·2/√17 = 2.1199053·0.4850713 = 1.0283051).
    #[test]
    fn values_needed_by_hand() {
        // 1 ± 2/√1.5: four values with s² = 4.
        let values = [1.0 - 6.0_f64.sqrt(), 1.0, 1.0, 1.0 + 6.0_f64.sqrt()];
        approx::assert_relative_eq!(variance(&values), 4.0, max_relative = 1e-12);
        assert_eq!(values_needed(&estimate(&values).unwrap()), Some(18));
        let centred: Vec<f64> = values.iter().map(|value| value - 1.0).collect();
        let mut none = estimate(&centred).unwrap();
        none.mean = 0.0;
        assert_eq!(values_needed(&none), None);
        assert_eq!(values_needed(&estimate(&[3.0]).unwrap()), None);
        assert_eq!(values_needed(&estimate(&[3.0, 3.0]).unwrap()), None, "told apart already");
        assert_eq!(values_needed(&estimate(&[1e-9 - 1.0, 1e-9 + 1.0]).unwrap()), None);
        // Many: (1.96/0.001)² and z²/2 more.
        let far = Estimate {
            mean: 0.001,
            ci95: Some([0.001 - student(9) / 10.0_f64.sqrt(), 0.001 + student(9) / 10.0_f64.sqrt()]),
            n: 10,
        };
        assert_eq!(values_needed(&far), Some(3_841_462));
        let exact = StudentsT::new(0.0, 1.0, 100.0).unwrap().inverse_cdf(0.975);
        approx::assert_relative_eq!(student(100), exact, max_relative = 1e-8);
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
