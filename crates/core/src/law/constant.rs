//! Constant: every draw is the same value.
//!
//! # Definition
//! `P(X = value) = 1`.
//!
//! # Inputs
//! `value`: the quantity, at least 0, finite. In a scenario a quantity alone is a constant: `download = "2 s"`.
//!
//! # Source
//! Elementary.
//!
//! # Cost
//! O(1), no transcendental function but in the Laplace transform.
//!
//! # Determinism
//! A variate consumes its uniform and ignores it.
//!
//! # Example
//! ```
//! use fedgenie_core::law::{Constant, Law};
//! let download = Constant::new(0.025)?;
//! assert_eq!(download.quantile(0.9), 0.025);
//! # Ok::<(), fedgenie_core::law::LawError>(())
//! ```
//! ```toml
//! latency.compute = { constant = "250 ms" }
//! ```

use super::{Law, LawError, Values, assert_factor, non_negative, parameters};
use crate::math::float::exp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The quantity itself: `constant = "25 ms"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, title = "value")]
pub struct Config<V: Values>(pub V::Quantity);
parameters!(0: quantity => Constant::new);

/// See the [module](self).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constant {
    value: f64,
}

impl Constant {
    /// The law of the constant `value` ≥ 0.
    ///
    /// # Errors
    /// A value that is negative, infinite or NaN.
    pub fn new(value: f64) -> Result<Self, LawError> {
        Ok(Self { value: non_negative("value", value)? })
    }

    /// The constant.
    pub fn value(&self) -> f64 {
        self.value
    }
}

impl Law for Constant {
    fn quantile(&self, _u: f64) -> f64 {
        self.value
    }

    fn cdf(&self, x: f64) -> f64 {
        if x >= self.value { 1.0 } else { 0.0 }
    }

    fn mean(&self) -> f64 {
        self.value
    }

    fn laplace(&self, s: f64) -> f64 {
        exp(-s * self.value)
    }

    fn expect(&self, f: &mut dyn FnMut(f64) -> f64) -> f64 {
        f(self.value)
    }

    fn minimum(&self) -> f64 {
        self.value
    }

    fn maximum(&self) -> f64 {
        self.value
    }

    fn breakpoints(&self, out: &mut Vec<f64>) {
        out.push(self.value);
    }

    fn small_value_index(&self) -> f64 {
        if self.value > 0.0 { f64::INFINITY } else { 0.0 }
    }

    fn scaled(&self, factor: f64) -> Self {
        assert_factor(factor);
        Self { value: self.value * factor }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_about_a_constant_is_elementary() {
        let law = Constant::new(2.0).expect("valid");
        assert_eq!((law.quantile(0.1), law.upper_quantile(0.1), law.mean()), (2.0, 2.0, 2.0));
        assert_eq!((law.cdf(1.999), law.cdf(2.0), law.tail(2.0)), (0.0, 1.0, 0.0));
        assert_eq!((law.laplace(0.0), law.laplace(0.5)), (1.0, exp(-1.0)));
        assert_eq!(law.expect(&mut |x| x * x), 4.0);
        assert_eq!(law.scaled(3.0), Constant::new(6.0).expect("valid"));
        let mut breakpoints = vec![];
        law.breakpoints(&mut breakpoints);
        assert_eq!(breakpoints, [2.0]);
    }

    #[test]
    fn zero_is_a_constant_and_bad_values_are_refused() {
        assert_eq!(Constant::new(0.0).expect("valid").small_value_index(), 0.0);
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Constant::new(bad).expect_err("refused").parameter, "value");
        }
    }
}
