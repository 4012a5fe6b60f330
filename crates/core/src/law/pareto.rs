//! Pareto distribution.
//!
//! # Definition
//! `P(X > x) = (minimum/x)^shape` for x ≥ minimum.
//!
//! # Inputs
//! `shape` in [0.01, 10000]; `minimum` > 0, finite. The mean is infinite for shape ≤ 1.
//!
//! # Source
//! V. Pareto, Cours d'économie politique (1896). The Laplace transform is shape · E_{shape+1}(s·minimum), with the
//! generalised exponential integral by its continued fraction, NIST DLMF 8.19.17.
//!
//! # Cost
//! A variate is one power. A Laplace transform takes a few tens of steps, an expectation about 100 evaluations.
//!
//! # Determinism
//! One uniform per variate, by inversion.
//!
//! # Example
//! ```
//! use fedgenie_core::law::{Law, Pareto};
//! let straggler = Pareto::new(1.5, 0.2)?;
//! assert!((straggler.mean() - 0.6).abs() < 1e-15);
//! assert_eq!(Pareto::new(1.0, 0.2)?.mean(), f64::INFINITY);
//! # Ok::<(), fedgenie_core::law::LawError>(())
//! ```
//! ```toml
//! latency.compute = { pareto = { shape = 2.5, minimum = "0.1 s" } }
//! ```

use super::{EXPECTATION_TOLERANCE, Law, LawError, Values, assert_factor, parameters, positive};
use crate::math::float::{exp, expm1, ln, ln_1p};
use crate::math::quadrature;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The parameters in a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table { shape, minimum }")]
#[schemars(inline)]
pub struct Config<V: Values> {
    /// The exponent of the tail.
    pub shape: V::Number,
    /// The smallest possible value.
    pub minimum: V::Quantity,
}
parameters!(shape: number, minimum: quantity => Pareto::new);

/// See the [module](self).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pareto {
    shape: f64,
    minimum: f64,
}

impl Pareto {
    /// The Pareto law of this shape above `minimum`.
    ///
    /// # Errors
    /// A shape outside [0.01, 10000], or a minimum that is not positive and finite.
    pub fn new(shape: f64, minimum: f64) -> Result<Self, LawError> {
        if !(0.01..=1e4).contains(&shape) {
            return Err(LawError::new("shape", shape, "from 0.01 to 10000"));
        }
        Ok(Self { shape, minimum: positive("minimum", minimum)? })
    }
}

/// E_n(x), the generalised exponential integral, for x ≥ 1 and n > 0.
fn exponential_integral(n: f64, x: f64) -> f64 {
    let mut b = x + n;
    let (mut c, mut d) = (1e300, 1.0 / b);
    let mut fraction = d;
    for step in 1..10_000 {
        let i = f64::from(step);
        let numerator = -i * (n - 1.0 + i);
        b += 2.0;
        d = 1.0 / (numerator * d + b);
        c = b + numerator / c;
        fraction *= c * d;
        if (c * d - 1.0).abs() < 1e-16 {
            break;
        }
    }
    fraction * exp(-x)
}

impl Law for Pareto {
    fn quantile(&self, u: f64) -> f64 {
        self.minimum * exp(-ln_1p(-u) / self.shape)
    }

    fn upper_quantile(&self, v: f64) -> f64 {
        self.minimum * exp(-ln(v) / self.shape)
    }

    fn cdf(&self, x: f64) -> f64 {
        if x <= self.minimum { 0.0 } else { -expm1(self.shape * ln(self.minimum / x)) }
    }

    fn tail(&self, x: f64) -> f64 {
        if x <= self.minimum { 1.0 } else { exp(self.shape * ln(self.minimum / x)) }
    }

    fn mean(&self) -> f64 {
        if self.shape > 1.0 { self.minimum * self.shape / (self.shape - 1.0) } else { f64::INFINITY }
    }

    fn laplace(&self, s: f64) -> f64 {
        let x = s * self.minimum;
        if s == 0.0 {
            1.0
        } else if x >= 1.0 {
            self.shape * exponential_integral(self.shape + 1.0, x)
        } else {
            quadrature::exponential(|y, _| exp(-x * exp(y / self.shape)), EXPECTATION_TOLERANCE).value
        }
    }

    /// Infinity is among the arguments of `f` for shapes below 1.5.
    fn expect(&self, f: &mut dyn FnMut(f64) -> f64) -> f64 {
        quadrature::exponential(|y, _| f(self.minimum * exp(y / self.shape)), EXPECTATION_TOLERANCE).value
    }

    fn minimum(&self) -> f64 {
        self.minimum
    }

    fn small_value_index(&self) -> f64 {
        f64::INFINITY
    }

    fn tail_index(&self) -> f64 {
        self.shape
    }

    fn scaled(&self, factor: f64) -> Self {
        assert_factor(factor);
        Self { shape: self.shape, minimum: self.minimum * factor }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::check;
    use approx::assert_relative_eq;

    #[test]
    fn behaves_as_a_law() {
        for shape in [0.3, 0.9, 1.5, 3.0, 100.0] {
            check::continuous(&Pareto::new(shape, 0.2).expect("valid"));
        }
    }

    #[test]
    fn the_two_forms_of_the_laplace_transform_meet() {
        for shape in [0.01, 0.5, 1.0, 2.0, 30.0, 1e4] {
            let law = Pareto::new(shape, 1.0).expect("valid");
            assert_relative_eq!(law.laplace(1.0 - 1e-15), law.laplace(1.0), max_relative = 1e-12);
        }
    }

    #[test]
    fn an_independent_library_agrees() {
        let oracle = statrs::distribution::Pareto::new(0.2, 3.0).expect("valid");
        check::against_statrs(&Pareto::new(3.0, 0.2).expect("valid"), &oracle, 1e-12);
    }

    #[test]
    fn laplace_transforms_computed_with_thirty_digits() {
        for (shape, s, expected) in [
            (0.3, 1e-6, 0.979_427_637_969_830_7),
            (0.3, 0.5, 0.139_997_548_349_000_7),
            (1.0, 0.001, 0.992_668_960_469_238_8),
            (1.5, 0.9, 0.218_679_228_055_346_7),
            (100.0, 0.3, 0.738_580_167_948_988),
            (100.0, 600.0, 3.781_654_903_243_03e-262),
            (0.01, 0.01, 0.039_500_476_354_272_01),
            (1e4, 0.5, 0.606_500_331_663_397),
        ] {
            let found = Pareto::new(shape, 1.0).expect("valid").laplace(s);
            assert!((found / expected - 1.0).abs() < 1e-11, "{found} instead of {expected}");
        }
    }

    #[test]
    fn bad_parameters_are_refused() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Pareto::new(bad, 1.0).expect_err("refused").parameter, "shape");
            assert_eq!(Pareto::new(1.0, bad).expect_err("refused").parameter, "minimum");
        }
    }

    #[test]
    fn variates_never_change() {
        let bits = [0x3fc9_9df9_0393_1c70, 0x3fd0_3c67_cd3f_7cea, 0x3fed_b4c7_760b_cff4, 0x409f_3fff_ffff_fff8];
        check::stable(&Pareto::new(1.5, 0.2).expect("valid"), &bits);
    }
}
