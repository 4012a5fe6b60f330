//! The families of laws that are fitted, and their densities.

use crate::sample::{SHORTEST, Sample};
use fedgenie_core::law::{AnyLaw, Constant, Exponential, Gamma, Lognormal, Pareto, TruncatedNormal, Uniform, Weibull};
use fedgenie_core::math::float::{exp, ln, ln_gamma};
use fedgenie_core::math::special::normal::normal_cdf;
use std::f64::consts::TAU;

/// A family of laws. `mixture` and `empirical` are not among them: their parameters have no number that a penalty could
/// count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// All durations alike.
    Constant,
    /// Exponential from 0.
    Exponential,
    /// Exponential from its shift on.
    ShiftedExponential,
    /// Lognormal.
    Lognormal,
    /// Gamma.
    Gamma,
    /// Weibull.
    Weibull,
    /// Normal, truncated at 0.
    TruncatedNormal,
    /// Uniform.
    Uniform,
    /// Pareto.
    Pareto,
}

impl Family {
    /// All but `constant`.
    pub const VARYING: [Self; 8] = [
        Self::Exponential,
        Self::ShiftedExponential,
        Self::Lognormal,
        Self::Gamma,
        Self::Weibull,
        Self::TruncatedNormal,
        Self::Uniform,
        Self::Pareto,
    ];

    /// Its name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Exponential | Self::ShiftedExponential => "exponential",
            Self::Lognormal => "lognormal",
            Self::Gamma => "gamma",
            Self::Weibull => "weibull",
            Self::TruncatedNormal => "truncated-normal",
            Self::Uniform => "uniform",
            Self::Pareto => "pareto",
        }
    }

    /// Its name for people, which tells the two exponentials apart.
    pub const fn title(self) -> &'static str {
        match self {
            Self::ShiftedExponential => "shifted exponential",
            other => other.name(),
        }
    }

    /// How many parameters are free.
    pub const fn free(self) -> usize {
        match self {
            Self::Constant | Self::Exponential => 1,
            _ => 2,
        }
    }

    /// The law with two parameters in the order of a scenario (a family with one ignores the second); `None` if they
    /// are out of range.
    pub fn law(self, [one, other]: [f64; 2]) -> Option<AnyLaw> {
        match self {
            Self::Constant => Constant::new(one).ok().map(AnyLaw::from),
            Self::Exponential => Exponential::new(one, 0.0).ok().map(AnyLaw::from),
            Self::ShiftedExponential => Exponential::new(one, other).ok().map(AnyLaw::from),
            Self::Lognormal => Lognormal::new(one, other).ok().map(AnyLaw::from),
            Self::Gamma => Gamma::new(one, other).ok().map(AnyLaw::from),
            Self::Weibull => Weibull::new(one, other).ok().map(AnyLaw::from),
            Self::TruncatedNormal => TruncatedNormal::new(one, other, 0.0, f64::INFINITY).ok().map(AnyLaw::from),
            Self::Uniform => Uniform::new(one, other).ok().map(AnyLaw::from),
            Self::Pareto => Pareto::new(one, other).ok().map(AnyLaw::from),
        }
    }

    /// The logarithm of the density at a duration.
    pub fn log_density(self, numbers: [f64; 2], x: f64) -> f64 {
        self.log_densities(numbers, &Sample::new(vec![x], Vec::new()))
    }

    /// The sum of the logarithms of the density over the durations that were seen.
    pub(crate) fn log_densities(self, [one, other]: [f64; 2], sample: &Sample) -> f64 {
        let n = sample.exact.len() as f64;
        let outside = |least: f64, most: f64| {
            let (shortest, longest) = sample.range();
            shortest < least || longest > most
        };
        match self {
            Self::Constant => f64::INFINITY,
            Self::Exponential => -n * ln(one) - sample.sum / one,
            Self::ShiftedExponential if outside(other, f64::INFINITY) => f64::NEG_INFINITY,
            Self::ShiftedExponential => -n * ln(one) - (sample.sum - n * other) / one,
            Self::Lognormal => {
                let centre = ln(one);
                let squares: f64 = sample.exact.iter().map(|x| ln(x.max(SHORTEST)) - centre).map(|z| z * z).sum();
                -sample.sum_ln - n * (ln(other) + 0.5 * ln(TAU)) - 0.5 * squares / (other * other)
            }
            Self::Gamma => (one - 1.0) * sample.sum_ln - sample.sum / other - n * (ln_gamma(one) + one * ln(other)),
            Self::Weibull => {
                let powers: f64 = sample.exact.iter().map(|x| exp(one * ln(x.max(SHORTEST) / other))).sum();
                n * (ln(one) - one * ln(other)) + (one - 1.0) * sample.sum_ln - powers
            }
            Self::TruncatedNormal => {
                let squares: f64 = sample.exact.iter().map(|x| (x - one) / other).map(|z| z * z).sum();
                -0.5 * squares - n * (ln(other) + 0.5 * ln(TAU) + ln(normal_cdf(one / other)))
            }
            Self::Uniform if outside(one, other) => f64::NEG_INFINITY,
            Self::Uniform => -n * ln(other - one),
            Self::Pareto if outside(other, f64::INFINITY) => f64::NEG_INFINITY,
            Self::Pareto => n * (ln(one) + one * ln(other)) - (one + 1.0) * sample.sum_ln,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedgenie_core::law::Law;

    /// The density is the slope of the cdf, which the core tests by itself.
    #[test]
    fn densities_are_slopes_of_distribution_functions() {
        let parameters = [
            (Family::Exponential, [2.0, 0.0]),
            (Family::ShiftedExponential, [2.0, 0.5]),
            (Family::Lognormal, [1.5, 0.7]),
            (Family::Gamma, [2.5, 0.6]),
            (Family::Weibull, [1.7, 1.3]),
            (Family::TruncatedNormal, [0.8, 1.1]),
            (Family::Uniform, [0.5, 4.0]),
            (Family::Pareto, [2.5, 0.6]),
        ];
        for (family, numbers) in parameters {
            let law = family.law(numbers).unwrap();
            for x in [0.7, 1.0, 1.9, 3.0] {
                let slope = (law.cdf(x + 1e-5) - law.cdf(x - 1e-5)) / 2e-5;
                let density = exp(family.log_density(numbers, x));
                assert!((slope - density).abs() < 1e-7, "{family:?} at {x}: {slope}, {density}");
            }
        }
    }
}
