//! Gamma distribution.
//!
//! # Definition
//! Density `x^(shape-1) exp(-x/scale) / (Γ(shape) scale^shape)` for x > 0.
//!
//! # Inputs
//! `shape` in [0.01, 10000]; `scale` > 0, finite. The mean is shape × scale.
//!
//! # Source
//! Wireless transfer times; the incomplete gamma function and its inverse are those of
//! [`crate::math::special::incomplete_gamma`].
//!
//! # Cost
//! A variate is three or four incomplete gamma functions, a few microseconds. An expectation is about 100 evaluations.
//!
//! # Determinism
//! One uniform per variate, by inversion. Below 1e-300 a variate becomes zero.
//!
//! # Example
//! ```
//! use fedgenie_core::law::{Gamma, Law};
//! let upload = Gamma::new(2.0, 0.1)?;
//! assert_eq!(upload.mean(), 0.2);
//! assert!((upload.laplace(10.0) - 0.25).abs() < 1e-15);
//! # Ok::<(), fedgenie_core::law::LawError>(())
//! ```
//! ```toml
//! latency.compute = { gamma = { shape = 2.0, scale = "0.1 s" } }
//! ```

use super::{EXPECTATION_TOLERANCE, Law, LawError, Values, assert_factor, parameters, positive};
use crate::math::float::{cosh, exp, expm1, ln_1p, sinh, sqrt};
use crate::math::quadrature;
use crate::math::special::{gamma_lower, gamma_lower_inverse, gamma_upper, gamma_upper_inverse, stirling_ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// The parameters in a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table { shape, scale }")]
#[schemars(inline)]
pub struct Config<V: Values> {
    /// The shape.
    pub shape: V::Number,
    /// The mean divided by the shape.
    pub scale: V::Quantity,
}
parameters!(shape: number, scale: quantity => Gamma::new);

/// See the [module](self).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gamma {
    shape: f64,
    scale: f64,
}

impl Gamma {
    /// The gamma law of this shape and scale.
    ///
    /// # Errors
    /// A shape outside [0.01, 10000], or a scale that is not positive and finite.
    pub fn new(shape: f64, scale: f64) -> Result<Self, LawError> {
        if !(0.01..=1e4).contains(&shape) {
            return Err(LawError::new("shape", shape, "from 0.01 to 10000"));
        }
        Ok(Self { shape, scale: positive("scale", scale)? })
    }
}

impl Law for Gamma {
    fn quantile(&self, u: f64) -> f64 {
        self.scale * gamma_lower_inverse(self.shape, u)
    }

    fn upper_quantile(&self, v: f64) -> f64 {
        self.scale * gamma_upper_inverse(self.shape, v)
    }

    fn cdf(&self, x: f64) -> f64 {
        gamma_lower(self.shape, x / self.scale)
    }

    fn tail(&self, x: f64) -> f64 {
        gamma_upper(self.shape, x / self.scale)
    }

    fn mean(&self) -> f64 {
        self.shape * self.scale
    }

    fn laplace(&self, s: f64) -> f64 {
        exp(-self.shape * ln_1p(s * self.scale))
    }

    /// Integrates over ln X, whose density is log-concave with its peak at ln(shape × scale).
    fn expect(&self, f: &mut dyn FnMut(f64) -> f64) -> f64 {
        let (shape, width) = (self.shape, 1.0 / sqrt(self.shape));
        let integrand = |t: f64| {
            let d = width * sinh(t);
            let weight = exp(shape * (d - expm1(d)));
            if weight == 0.0 { 0.0 } else { weight * cosh(t) * f(self.mean() * exp(d)) }
        };
        let integral = quadrature::trapezoid(-7.0, 7.0, integrand, EXPECTATION_TOLERANCE).value;
        integral / (sqrt(2.0 * PI) * stirling_ratio(shape))
    }

    fn small_value_index(&self) -> f64 {
        self.shape
    }

    fn scaled(&self, factor: f64) -> Self {
        assert_factor(factor);
        Self { shape: self.shape, scale: self.scale * factor }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::check;

    #[test]
    fn behaves_as_a_law() {
        for shape in [0.1, 0.5, 1.0, 2.5, 40.0, 1e4] {
            check::continuous(&Gamma::new(shape, 0.1).expect("valid"));
        }
    }

    #[test]
    fn an_independent_library_agrees() {
        let oracle = statrs::distribution::Gamma::new(2.5, 10.0).expect("valid");
        check::against_statrs(&Gamma::new(2.5, 0.1).expect("valid"), &oracle, 1e-9);
    }

    #[test]
    fn bad_parameters_are_refused() {
        for bad in [0.0, 0.009, -1.0, 10_001.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Gamma::new(bad, 1.0).expect_err("refused").parameter, "shape");
        }
        assert_eq!(Gamma::new(1.0, 0.0).expect_err("refused").parameter, "scale");
    }

    #[test]
    fn variates_never_change() {
        let bits = [0x3f85_8698_e566_5a57, 0x3fc3_330c_ab07_bb8f, 0x3fdd_8e6c_6f3b_faf5, 0x3ffc_b5e6_9280_beb8];
        check::stable(&Gamma::new(2.5, 0.1).expect("valid"), &bits);
    }
}
