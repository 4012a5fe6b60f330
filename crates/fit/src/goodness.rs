//! How far a fitted law is from the durations: the statistic of Kolmogorov and Smirnov.
//!
//! # Definition
//! The largest distance between the law's tail and the estimate of Kaplan and Meier, which without cuts is the share of
//! longer durations. Its p-value is that of a law that was fixed beforehand. The parameters were fitted to the same
//! durations, so that it is optimistic: a small one tells against the law, a large one tells little.
//!
//! # Source
//! E. L. Kaplan, P. Meier, "Nonparametric estimation from incomplete observations", JASA 53 (1958); N. Smirnov, "Table
//! for estimating the goodness of fit of empirical distributions", Annals of Mathematical Statistics 19 (1948).

use crate::law::{Family, LawFit};
use crate::sample::Sample;
use fedgenie_core::law::Law;
use fedgenie_core::math::float::{exp, sqrt};

/// Distance of a law from durations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goodness {
    /// The largest distance of the tails, from 0 to 1.
    pub distance: f64,
    /// The probability of such a distance or a larger one, were the law given beforehand.
    pub p_value: f64,
}

/// The distance of a law from a sample; `None` for constant laws.
pub(crate) fn goodness(sample: &Sample, fit: &LawFit) -> Option<Goodness> {
    if fit.family == Family::Constant || sample.exact.is_empty() {
        return None;
    }
    let mut cuts: Vec<f64> = sample.cuts.iter().map(|cut| cut.at).collect();
    cuts.sort_unstable_by(f64::total_cmp);
    let (mut tail, mut distance) = (1.0, 0.0_f64);
    let mut place = 0;
    while place < sample.exact.len() {
        let x = sample.exact[place];
        let alike = sample.exact[place..].iter().take_while(|other| **other == x).count();
        let at_risk = sample.exact.len() - place + cuts.len() - cuts.partition_point(|cut| *cut < x);
        let expected = fit.law.tail(x);
        distance = distance.max((tail - expected).abs());
        tail *= 1.0 - alike as f64 / at_risk as f64;
        distance = distance.max((tail - expected).abs());
        place += alike;
    }
    Some(Goodness { distance, p_value: p_value(distance, sample.exact.len() as f64) })
}

/// The limit law of the statistic, with Stephens' correction for small samples.
pub(crate) fn p_value(distance: f64, n: f64) -> f64 {
    let root = sqrt(n);
    let x = distance * (root + 0.12 + 0.11 / root);
    if x < 0.2 {
        return 1.0;
    }
    let term = |k: i32| {
        let sign = if k % 2 == 1 { 1.0 } else { -1.0 };
        2.0 * sign * exp(-2.0 * f64::from(k * k) * x * x)
    };
    (1..=100).map(term).sum::<f64>().clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::fitted;
    use crate::sample::Cut;

    #[test]
    fn distances_are_worked_out_by_hand() {
        let uniform = fitted(Family::Uniform, &Sample::new(vec![0.0, 1.0], Vec::new())).unwrap();
        // Durations at 0.2 and 0.3: after the second the sample's tail is 0, and the law's 0.7.
        let two = goodness(&Sample::new(vec![0.3, 0.2], Vec::new()), &uniform).unwrap();
        assert!((two.distance - 0.7).abs() < 1e-15, "{two:?}");
        // With two of four cut at 0.3, the tail after 0.2 is 3/4 and after 0.3 it is 3/4·2/3 = 1/2.
        let cut = Sample::new(vec![0.2, 0.3], vec![Cut::plain(0.3), Cut::plain(0.3)]);
        assert!((goodness(&cut, &uniform).unwrap().distance - 0.2).abs() < 1e-15);
    }

    /// Table values of Kolmogorov's limit law: 1.358 at 5 % and 1.628 at 1 %.
    #[test]
    fn p_values_are_those_of_the_table() {
        let at = |x: f64| p_value(x / (1000.0 + 0.12 + 0.11 / 1000.0), 1e6);
        assert!((at(1.358) - 0.05).abs() < 2e-4 && (at(1.628) - 0.01).abs() < 1e-4);
        assert_eq!(p_value(0.0, 10.0), 1.0);
    }
}
