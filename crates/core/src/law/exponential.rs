//! Exponential distribution above a fixed shift.
//!
//! # Definition
//! `P(X > x) = exp(-(x - shift) / mean)` for x ≥ shift. `mean` is that of the part above the shift.
//!
//! # Inputs
//! `mean` > 0, finite; `shift` ≥ 0, finite, 0 when left out.
//!
//! # Source
//! The shifted exponential is the usual model of a compute time: K. Lee et al., "Speeding up distributed machine
//! learning using codes", IEEE Transactions on Information Theory 64 (2018), Section II.
//!
//! # Cost
//! One logarithm per variate; an expectation is about 60 evaluations.
//!
//! # Determinism
//! One uniform per variate, by inversion.
//!
//! # Example
//! ```
//! use fedgenie_core::law::{Exponential, Law};
//! let compute = Exponential::new(0.4, 0.1)?;
//! assert_eq!(compute.mean(), 0.5);
//! assert!((compute.cdf(0.5) - 0.632).abs() < 1e-3);
//! # Ok::<(), fedgenie_core::law::LawError>(())
//! ```
//! ```toml
//! latency.compute = { exponential = { mean = "0.8 s", shift = "0.2 s" } }
//! ```

use super::{EXPECTATION_TOLERANCE, Law, LawError, Values, assert_factor, non_negative, parameters, positive};
use crate::math::float::{exp, expm1, ln, ln_1p};
use crate::math::quadrature;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The parameters in a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table { mean, shift }")]
#[schemars(inline)]
pub struct Config<V: Values> {
    /// The mean of the part above the shift.
    pub mean: V::Quantity,
    /// The smallest possible value.
    #[serde(default)]
    pub shift: V::Quantity,
}
parameters!(mean: quantity, shift: quantity => Exponential::new);

/// See the [module](self).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exponential {
    mean: f64,
    shift: f64,
}

impl Exponential {
    /// The exponential law of the given mean, moved up by `shift`.
    ///
    /// # Errors
    /// A mean that is not positive and finite, or a shift that is negative, infinite or NaN.
    pub fn new(mean: f64, shift: f64) -> Result<Self, LawError> {
        Ok(Self { mean: positive("mean", mean)?, shift: non_negative("shift", shift)? })
    }

    /// E[exp(-hX); X ≤ x] for h ≥ 0, in closed form.
    pub(super) fn tilted_cdf(&self, h: f64, x: f64) -> f64 {
        if x <= self.shift {
            return 0.0;
        }
        let rate = 1.0 + h * self.mean;
        -expm1(-rate * (x - self.shift) / self.mean) * exp(-h * self.shift) / rate
    }
}

impl Law for Exponential {
    fn quantile(&self, u: f64) -> f64 {
        self.shift - self.mean * ln_1p(-u)
    }

    fn upper_quantile(&self, v: f64) -> f64 {
        self.shift - self.mean * ln(v)
    }

    fn cdf(&self, x: f64) -> f64 {
        if x <= self.shift { 0.0 } else { -expm1((self.shift - x) / self.mean) }
    }

    fn tail(&self, x: f64) -> f64 {
        if x <= self.shift { 1.0 } else { exp((self.shift - x) / self.mean) }
    }

    fn mean(&self) -> f64 {
        self.mean + self.shift
    }

    fn laplace(&self, s: f64) -> f64 {
        1.0 / (1.0 + s * self.mean) * exp(-s * self.shift)
    }

    fn expect(&self, f: &mut dyn FnMut(f64) -> f64) -> f64 {
        quadrature::exponential(|y, _| f(self.shift + self.mean * y), EXPECTATION_TOLERANCE).value
    }

    fn minimum(&self) -> f64 {
        self.shift
    }

    fn small_value_index(&self) -> f64 {
        if self.shift > 0.0 { f64::INFINITY } else { 1.0 }
    }

    fn scaled(&self, factor: f64) -> Self {
        assert_factor(factor);
        Self { mean: self.mean * factor, shift: self.shift * factor }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::check;
    use approx::assert_relative_eq;

    #[test]
    fn behaves_as_a_law() {
        check::continuous(&Exponential::new(0.4, 0.1).expect("valid"));
        check::continuous(&Exponential::new(1e-6, 0.0).expect("valid"));
        check::continuous(&Exponential::new(1e4, 3.0).expect("valid"));
    }

    #[test]
    fn the_tilted_cdf_is_its_integral() {
        let law = Exponential::new(0.4, 0.1).expect("valid");
        assert_eq!(law.tilted_cdf(0.0, 0.7), law.cdf(0.7));
        let density = |x: f64| exp(-0.3 * x) * exp(-(x - 0.1) / 0.4) / 0.4;
        let integral = quadrature::piecewise(0.1, 0.7, &[], density, 1e-14).value;
        assert_relative_eq!(law.tilted_cdf(0.3, 0.7), integral, max_relative = 1e-14);
        assert_relative_eq!(law.tilted_cdf(0.3, 1e9), law.laplace(0.3), max_relative = 1e-14);
    }

    #[test]
    fn an_independent_library_agrees() {
        let oracle = statrs::distribution::Exp::new(2.5).expect("valid");
        check::against_statrs(&Exponential::new(0.4, 0.0).expect("valid"), &oracle, 1e-13);
    }

    #[test]
    fn bad_parameters_are_refused() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Exponential::new(bad, 0.0).expect_err("refused").parameter, "mean");
        }
        assert_eq!(Exponential::new(1.0, -0.1).expect_err("refused").parameter, "shift");
    }

    #[test]
    fn variates_never_change() {
        let bits = [0x3fb9_b3d3_d815_bf5f, 0x3fcf_0fcf_50b4_32a5, 0x3ff0_5627_c95d_ddac, 0x4016_813b_ae0c_cc80];
        check::stable(&Exponential::new(0.4, 0.1).expect("valid"), &bits);
    }
}
