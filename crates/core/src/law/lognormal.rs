//! Log-normal distribution.
//!
//! # Definition
//! `X = median · exp(sigma · Z)` with a standard normal Z.
//!
//! # Inputs
//! `median` > 0, finite; `sigma` > 0, at most 10, the standard deviation of ln X.
//!
//! # Source
//! Device response times in FedScale (F. Lai et al., ICML 2022) and in AI Benchmark traces are close to log-normal. The
//! Laplace transform has no closed form; the trapezoidal rule is centred at the saddle point −W(cσ²)/σ, with
//! c = s·median and Lambert's W: S. Asmussen, J. L. Jensen and L. Rojas-Nandayapa, Methodology and Computing in Applied
//! Probability 18 (2016).
//!
//! # Cost
//! A variate is one normal quantile and one exponential. An expectation is about 80 evaluations.
//!
//! # Determinism
//! One uniform per variate, by inversion.
//!
//! # Example
//! ```
//! use fedgenie_core::law::{Law, Lognormal};
//! let compute = Lognormal::new(0.4, 0.3)?;
//! assert!((compute.mean() - 0.4184).abs() < 1e-4);
//! # Ok::<(), fedgenie_core::law::LawError>(())
//! ```
//! ```toml
//! latency.compute = { lognormal = { median = "0.3 s", sigma = 0.5 } }
//! ```

use super::{EXPECTATION_TOLERANCE, Law, LawError, Values, assert_factor, parameters, positive};
use crate::math::float::{exp, expm1, ln, sqrt};
use crate::math::quadrature;
use crate::math::special::{normal_cdf, normal_quantile, normal_tail, normal_upper_quantile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// The parameters in a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table { median, sigma }")]
#[schemars(inline)]
pub struct Config<V: Values> {
    /// The median.
    pub median: V::Quantity,
    /// The standard deviation of the logarithm.
    pub sigma: V::Number,
}
parameters!(median: quantity, sigma: number => Lognormal::new);

/// See the [module](self).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lognormal {
    median: f64,
    sigma: f64,
}

impl Lognormal {
    /// The log-normal law with this median and standard deviation of the logarithm.
    ///
    /// # Errors
    /// A parameter that is not positive and finite, or a sigma above 10.
    pub fn new(median: f64, sigma: f64) -> Result<Self, LawError> {
        let (median, sigma) = (positive("median", median)?, positive("sigma", sigma)?);
        if sigma > 10.0 {
            return Err(LawError::new("sigma", sigma, "at most 10; it is the standard deviation of the logarithm"));
        }
        Ok(Self { median, sigma })
    }

    fn standardised(&self, x: f64) -> f64 {
        ln(x / self.median) / self.sigma
    }
}

/// Lambert's W: the y ≥ 0 with y exp(y) = x, for x ≥ 0, by Newton's method on the convex left-hand side's logarithm.
fn lambert_w(x: f64) -> f64 {
    if x < 1e-300 {
        return x;
    }
    let mut y = if x < 1.0 { x / (1.0 + x) } else { ln(1.0 + x) * 0.75 };
    for _ in 0..30 {
        let step = y * (ln(x / y) - y) / (1.0 + y);
        y += step;
        if step.abs() <= 1e-15 * y {
            break;
        }
    }
    y
}

impl Law for Lognormal {
    fn quantile(&self, u: f64) -> f64 {
        self.median * exp(self.sigma * normal_quantile(u))
    }

    fn upper_quantile(&self, v: f64) -> f64 {
        self.median * exp(self.sigma * normal_upper_quantile(v))
    }

    fn cdf(&self, x: f64) -> f64 {
        if x <= 0.0 { 0.0 } else { normal_cdf(self.standardised(x)) }
    }

    fn tail(&self, x: f64) -> f64 {
        if x <= 0.0 { 1.0 } else { normal_tail(self.standardised(x)) }
    }

    fn mean(&self) -> f64 {
        self.median * exp(0.5 * self.sigma * self.sigma)
    }

    fn laplace(&self, s: f64) -> f64 {
        let (c, sigma) = (s * self.median, self.sigma);
        let y = lambert_w(c * sigma * sigma);
        // At z = -y/σ + d the exponent -z²/2 - c exp(σz) is that at the saddle point plus the one below.
        let saddle = y / (sigma * sigma);
        let at_saddle = exp(-saddle * (1.0 + 0.5 * y));
        if at_saddle == 0.0 {
            return 0.0;
        }
        let width = 1.0 / sqrt(1.0 + y);
        let integrand = |t: f64| {
            let d = width * t;
            let x = sigma * d;
            exp(saddle * (x - expm1(x)) - 0.5 * d * d)
        };
        let range = 9.3 / width;
        let integral = quadrature::trapezoid(-range, range, integrand, EXPECTATION_TOLERANCE).value;
        at_saddle * width * integral / sqrt(2.0 * PI)
    }

    fn expect(&self, f: &mut dyn FnMut(f64) -> f64) -> f64 {
        quadrature::normal(|z| f(self.median * exp(self.sigma * z)), EXPECTATION_TOLERANCE).value
    }

    fn small_value_index(&self) -> f64 {
        f64::INFINITY
    }

    fn scaled(&self, factor: f64) -> Self {
        assert_factor(factor);
        Self { median: self.median * factor, sigma: self.sigma }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::check;
    use crate::math::float::power;
    use approx::assert_relative_eq;

    #[test]
    fn behaves_as_a_law() {
        for sigma in [1e-3, 0.05, 0.3, 1.0, 2.0, 5.0] {
            check::continuous(&Lognormal::new(0.4, sigma).expect("valid"));
        }
    }

    #[test]
    fn lambert_w_inverts_its_definition() {
        assert_relative_eq!(lambert_w(1.0), 0.567_143_290_409_784, max_relative = 1e-15);
        for k in -100..100 {
            let x = power(10.0, f64::from(k));
            let y = lambert_w(x);
            assert_relative_eq!(y * exp(y), x, max_relative = 1e-13);
        }
    }

    #[test]
    fn an_independent_library_agrees() {
        let oracle = statrs::distribution::LogNormal::new(ln(0.4), 0.3).expect("valid");
        check::against_statrs(&Lognormal::new(0.4, 0.3).expect("valid"), &oracle, 1e-9);
    }

    #[test]
    fn laplace_transforms_computed_with_thirty_digits() {
        for (median, sigma, s, expected) in [
            (0.4, 0.3, 1.0, 0.663_328_297_532_814_4),
            (0.4, 0.3, 1e4, 3.938_999_368_066_08e-69),
            (0.4, 0.3, 1e5, 8.640_004_569_477_679e-129),
            (0.4, 0.001, 1500.0, 3.171_807_540_336_196e-261),
            (1.0, 5.0, 1e8, 1.048_095_205_147_23e-4),
            (1.0, 2.0, 1e12, 2.797_335_008_483_714_8e-40),
            (1.0, 1.0, 1e9, 3.101_540_572_015_394e-78),
        ] {
            let found = Lognormal::new(median, sigma).expect("valid").laplace(s);
            assert!((found / expected - 1.0).abs() < 1e-11, "{found} instead of {expected}");
        }
    }

    #[test]
    fn bad_parameters_are_refused() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Lognormal::new(bad, 1.0).expect_err("refused").parameter, "median");
            assert_eq!(Lognormal::new(1.0, bad).expect_err("refused").parameter, "sigma");
        }
        assert_eq!(Lognormal::new(1.0, 10.1).expect_err("refused").parameter, "sigma");
    }

    #[test]
    fn variates_never_change() {
        let bits = [0x3fc4_42ab_b24e_a008, 0x3fd5_df98_72c1_2574, 0x3fe2_cd0f_0d2d_b267, 0x3ffa_a33c_6d5a_0c64];
        check::stable(&Lognormal::new(0.4, 0.3).expect("valid"), &bits);
    }
}
