//! Weibull distribution.
//!
//! # Definition
//! `P(X > x) = exp(-(x/scale)^shape)` for x ≥ 0.
//!
//! # Inputs
//! `shape` in [0.01, 1000]; `scale` > 0, finite.
//!
//! # Source
//! W. Weibull, "A statistical distribution function of wide applicability", Journal of Applied Mechanics 18 (1951).
//!
//! # Cost
//! A variate is one logarithm and one power. A Laplace transform or an expectation is about 100 evaluations.
//!
//! # Determinism
//! One uniform per variate, by inversion.
//!
//! # Example
//! ```
//! use fedgenie_core::law::{Law, Weibull};
//! let session = Weibull::new(1.0, 3.0)?;
//! assert!((session.laplace(1.0) - 0.25).abs() < 1e-13, "with shape 1 it is exponential");
//! # Ok::<(), fedgenie_core::law::LawError>(())
//! ```
//! ```toml
//! latency.compute = { weibull = { shape = 1.5, scale = "0.3 s" } }
//! ```

use super::{EXPECTATION_TOLERANCE, Law, LawError, Values, assert_factor, parameters, positive};
use crate::math::float::{cosh, exp, expm1, gamma, ln, ln_1p, power, sinh, sqrt};
use crate::math::quadrature;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The parameters in a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table { shape, scale }")]
#[schemars(inline)]
pub struct Config<V: Values> {
    /// The shape.
    pub shape: V::Number,
    /// The 63rd percentile, 1 - 1/e.
    pub scale: V::Quantity,
}
parameters!(shape: number, scale: quantity => Weibull::new);

/// See the [module](self).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weibull {
    shape: f64,
    scale: f64,
}

impl Weibull {
    /// The Weibull law of this shape and scale.
    ///
    /// # Errors
    /// A shape outside [0.01, 1000], or a scale that is not positive and finite.
    pub fn new(shape: f64, scale: f64) -> Result<Self, LawError> {
        if !(0.01..=1e3).contains(&shape) {
            return Err(LawError::new("shape", shape, "from 0.01 to 1000"));
        }
        Ok(Self { shape, scale: positive("scale", scale)? })
    }

    /// (x/scale)^shape, an exponential variate of mean one.
    fn hazard(&self, x: f64) -> f64 {
        if x <= 0.0 { 0.0 } else { power(x / self.scale, self.shape) }
    }
}

impl Law for Weibull {
    fn quantile(&self, u: f64) -> f64 {
        self.scale * power(-ln_1p(-u), 1.0 / self.shape)
    }

    fn upper_quantile(&self, v: f64) -> f64 {
        self.scale * power(-ln(v), 1.0 / self.shape)
    }

    fn cdf(&self, x: f64) -> f64 {
        -expm1(-self.hazard(x))
    }

    fn tail(&self, x: f64) -> f64 {
        exp(-self.hazard(x))
    }

    /// Infinite where it exceeds the largest number, for shapes below about 0.006 only.
    fn mean(&self) -> f64 {
        self.scale * gamma(1.0 + 1.0 / self.shape)
    }

    fn small_value_index(&self) -> f64 {
        self.shape
    }

    /// `∫ exp(w - exp(w) - c exp(w/shape)) dw` with c = s·scale: a log-concave integrand, integrated from its peak.
    fn laplace(&self, s: f64) -> f64 {
        let c = s * self.scale;
        if c == 0.0 {
            return 1.0;
        }
        // The slope of the exponent, 1 - exp(w) - (c/shape) exp(w/shape), is concave and falling: Newton's method from
        // the right of its root stays there and converges.
        let mut peak = (self.shape * ln(self.shape / c)).min(0.0);
        for _ in 0..100 {
            let (first, second) = (exp(peak), c / self.shape * exp(peak / self.shape));
            let step = (1.0 - first - second) / (first + second / self.shape);
            peak += step;
            if step.abs() < 1e-12 {
                break;
            }
        }
        let (first, second) = (exp(peak), c * exp(peak / self.shape));
        let width = 1.0 / sqrt(first + second / (self.shape * self.shape));
        // scale · (exp(d) - 1), where the scale may have underflowed and the exponential may overflow.
        let rise = |scale: f64, logarithm: f64, d: f64| {
            if d < 1.0 { scale * expm1(d) } else { exp(logarithm + d) - scale }
        };
        let integrand = |t: f64| {
            let d = width * sinh(t);
            let rises = rise(first, peak, d) + rise(second, ln(c) + peak / self.shape, d / self.shape);
            cosh(t) * exp(d - rises)
        };
        let integral = quadrature::trapezoid(-7.0, 7.0, integrand, EXPECTATION_TOLERANCE).value;
        width * integral * exp(peak - first - second)
    }

    fn expect(&self, f: &mut dyn FnMut(f64) -> f64) -> f64 {
        let at = |_, ln_y: f64| f(self.scale * exp(ln_y / self.shape));
        quadrature::exponential(at, EXPECTATION_TOLERANCE).value
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
    fn laplace_transforms_computed_with_thirty_digits() {
        for (shape, s, expected) in [
            (0.2, 1e-4, 0.992_144_832_274_917_9),
            (0.2, 1e8, 0.022_785_788_091_630_51),
            (0.7, 1e6, 5.732_875_570_668_032e-5),
            (2.0, 1e5, 1.999_999_998_8e-10),
            (2.0, 1e100, 2e-200),
            (10.0, 1e6, 3.6288e-54),
            (10.0, 1e25, 3.6288e-244),
            (300.0, 600.0, 1.097_559_134_841_377_4e-219),
            (300.0, 0.01, 0.990_068_775_433_013_9),
        ] {
            let found = Weibull::new(shape, 1.0).expect("valid").laplace(s);
            assert!((found / expected - 1.0).abs() < 1e-11, "{found} instead of {expected}");
        }
    }

    #[test]
    fn behaves_as_a_law() {
        for shape in [0.2, 0.7, 1.0, 2.0, 10.0, 300.0] {
            check::continuous(&Weibull::new(shape, 0.4).expect("valid"));
        }
    }

    #[test]
    fn an_independent_library_agrees() {
        let oracle = statrs::distribution::Weibull::new(1.7, 0.4).expect("valid");
        check::against_statrs(&Weibull::new(1.7, 0.4).expect("valid"), &oracle, 1e-12);
    }

    #[test]
    fn bad_parameters_are_refused() {
        for bad in [0.0, -1.0, 1001.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Weibull::new(bad, 1.0).expect_err("refused").parameter, "shape");
        }
        assert_eq!(Weibull::new(1.0, f64::INFINITY).expect_err("refused").parameter, "scale");
    }

    #[test]
    fn variates_never_change() {
        let bits = [0x3f7c_2c6e_ec01_ac70, 0x3fcb_eb47_fbf1_85aa, 0x3fe4_e805_f043_a230, 0x3ffd_fd92_fd4c_cd7d];
        check::stable(&Weibull::new(1.7, 0.4).expect("valid"), &bits);
    }
}
