//! Uniform distribution between two ends.
//!
//! # Definition
//! Density `1 / (high - low)` on [low, high].
//!
//! # Inputs
//! `low` ≥ 0 and `high` > `low`, both finite.
//!
//! # Source
//! Elementary.
//!
//! # Cost
//! O(1); an expectation is a few Gauss–Legendre panels.
//!
//! # Determinism
//! One uniform per variate.
//!
//! # Example
//! ```
//! use fedgenie_core::law::{Law, Uniform};
//! let compute = Uniform::new(0.1, 1.1)?;
//! assert_eq!(compute.quantile(0.5), 0.6);
//! # Ok::<(), fedgenie_core::law::LawError>(())
//! ```
//! ```toml
//! latency.compute = { uniform = ["0.1 s", "0.3 s"] }
//! ```

use super::{EXPECTATION_TOLERANCE, Law, LawError, Values, assert_factor, non_negative, parameters};
use crate::math::float::{exp, expm1};
use crate::math::quadrature;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The parameters in a scenario: `uniform = ["0.1 s", "1 s"]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(expecting = "a list [low, high]")]
#[schemars(inline)]
pub struct Config<V: Values>(
    /// The lower end.
    #[schemars(title = "low")]
    pub V::Quantity,
    /// The upper end.
    #[schemars(title = "high")]
    pub V::Quantity,
);
parameters!(0: quantity, 1: quantity => Uniform::new);

/// See the [module](self).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Uniform {
    low: f64,
    high: f64,
}

impl Uniform {
    /// The uniform law on [`low`, `high`].
    ///
    /// # Errors
    /// An end that is negative, infinite or NaN, or ends in the wrong order or equal.
    pub fn new(low: f64, high: f64) -> Result<Self, LawError> {
        let (low, high) = (non_negative("low", low)?, non_negative("high", high)?);
        if low >= high {
            return Err(LawError::new("high", high, "above low; use `constant` for a single value"));
        }
        Ok(Self { low, high })
    }
}

impl Law for Uniform {
    fn quantile(&self, u: f64) -> f64 {
        (self.low + (self.high - self.low) * u).min(self.high)
    }

    fn upper_quantile(&self, v: f64) -> f64 {
        (self.high - (self.high - self.low) * v).max(self.low)
    }

    fn cdf(&self, x: f64) -> f64 {
        ((x - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    fn tail(&self, x: f64) -> f64 {
        ((self.high - x) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    fn mean(&self) -> f64 {
        0.5 * (self.low + self.high)
    }

    fn laplace(&self, s: f64) -> f64 {
        let width = s * (self.high - self.low);
        exp(-s * self.low) * if width > 0.0 { -expm1(-width) / width } else { 1.0 }
    }

    fn expect(&self, f: &mut dyn FnMut(f64) -> f64) -> f64 {
        let integral = quadrature::piecewise(self.low, self.high, &[], &mut *f, EXPECTATION_TOLERANCE);
        integral.value / (self.high - self.low)
    }

    fn minimum(&self) -> f64 {
        self.low
    }

    fn maximum(&self) -> f64 {
        self.high
    }

    fn small_value_index(&self) -> f64 {
        if self.low > 0.0 { f64::INFINITY } else { 1.0 }
    }

    fn scaled(&self, factor: f64) -> Self {
        assert_factor(factor);
        Self { low: self.low * factor, high: self.high * factor }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::check;

    #[test]
    fn behaves_as_a_law() {
        check::continuous(&Uniform::new(0.1, 1.0).expect("valid"));
        check::continuous(&Uniform::new(0.0, 1e-6).expect("valid"));
        check::continuous(&Uniform::new(1e6, 1.001e6).expect("valid"));
    }

    #[test]
    fn an_independent_library_agrees() {
        let oracle = statrs::distribution::Uniform::new(0.1, 1.0).expect("valid");
        check::against_statrs(&Uniform::new(0.1, 1.0).expect("valid"), &oracle, 1e-13);
    }

    #[test]
    fn bad_ends_are_refused() {
        assert_eq!(Uniform::new(-0.1, 1.0).expect_err("refused").parameter, "low");
        for high in [0.5, 0.2, f64::NAN, f64::INFINITY] {
            assert_eq!(Uniform::new(0.5, high).expect_err("refused").parameter, "high");
        }
    }

    #[test]
    fn variates_never_change() {
        let bits = [0x3fb9_d495_182a_9931, 0x3fd7_ae14_7ae1_47ae, 0x3fed_1eb8_51eb_851f, 0x3fef_fffe_1cd0_f11f];
        check::stable(&Uniform::new(0.1, 1.0).expect("valid"), &bits);
    }
}
