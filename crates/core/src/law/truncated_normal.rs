//! Normal distribution, truncated to an interval.
//!
//! # Definition
//! The law of `mean + sd·Z` given that it lies in [min, max]; `mean` and `sd` are those before truncation.
//!
//! # Inputs
//! `mean` finite; `sd` > 0, finite; 0 ≤ `min` < `max`, with `max` infinite when left out. The interval must not be more
//! than 30 `sd` away from the mean.
//!
//! # Source
//! Normal integrals as in [`crate::math::special::normal`]. The Laplace transform is
//! `exp(-mean·s + sd²s²/2)` times the mass of the interval moved up by sd²·s, over its mass. Each mass is held as a
//! power of e and a mantissa (a scaled complementary error function), and the powers are combined on paper, so that
//! nothing overflows and nothing cancels.
//!
//! # Cost
//! A variate is one normal quantile and up to four error functions, an expectation 80 to 300 evaluations.
//!
//! # Determinism
//! One uniform per variate, by inversion.
//!
//! # Example
//! ```
//! use fedgenie_core::law::{Law, TruncatedNormal};
//! let compute = TruncatedNormal::new(0.5, 0.1, 0.4, 0.6)?;
//! assert!((compute.quantile(0.5) - 0.5).abs() < 1e-15);
//! assert_eq!(compute.cdf(0.6), 1.0);
//! # Ok::<(), fedgenie_core::law::LawError>(())
//! ```
//! ```toml
//! latency.compute = { truncated-normal = { mean = "0.5 s", sd = "0.2 s", min = "0.1 s", max = "2 s" } }
//! ```

use super::{EXPECTATION_TOLERANCE, Law, LawError, Values, assert_factor, non_negative, parameters, positive};
use crate::math::float::{erf, exp, sqrt};
use crate::math::quadrature;
use crate::math::special::{erfcx, normal_cdf, normal_quantile, normal_tail, normal_upper_quantile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_PI_2};

/// The parameters in a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table { mean, sd, min, max }")]
#[schemars(inline)]
pub struct Config<V: Values> {
    /// The mean before truncation.
    pub mean: V::Quantity,
    /// The standard deviation before truncation.
    pub sd: V::Quantity,
    /// The smallest possible value.
    #[serde(default)]
    pub min: V::Quantity,
    /// The largest possible value; unbounded if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "V::Quantity")]
    pub max: Option<V::Quantity>,
}
parameters!(mean: quantity, sd: quantity, min: quantity, max: optional => TruncatedNormal::bounded);

/// See the [module](self).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TruncatedNormal {
    mean: f64,
    sd: f64,
    min: f64,
    max: f64,
}

/// On which side of the mode an interval of standardised values lies.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Above,
    Around,
    Below,
}

/// `∫ exp(-z²/2)` over [low, low + width], as `exp(-power) · mantissa`, where the power is `low²/2` above the mode,
/// `(low + width)²/2` below it and 0 around it.
fn mass(low: f64, width: f64) -> (Side, f64) {
    let high = low + width;
    if low >= 0.0 {
        (Side::Above, one_sided(low, width))
    } else if high <= 0.0 {
        (Side::Below, one_sided(-high, width))
    } else {
        (Side::Around, sqrt(FRAC_PI_2) * (erf(high * FRAC_1_SQRT_2) + erf(-low * FRAC_1_SQRT_2)))
    }
}

/// `∫₀^width exp(-low·t - t²/2) dt` for low ≥ 0.
fn one_sided(low: f64, width: f64) -> f64 {
    if width == f64::INFINITY {
        return sqrt(FRAC_PI_2) * erfcx(low * FRAC_1_SQRT_2);
    }
    let drop = width * (low + 0.5 * width);
    if drop < 0.5 {
        return quadrature::panel(0.0, width, &mut |t| exp(-t * (low + 0.5 * t)));
    }
    sqrt(FRAC_PI_2) * (erfcx(low * FRAC_1_SQRT_2) - exp(-drop) * erfcx((low + width) * FRAC_1_SQRT_2))
}

impl TruncatedNormal {
    /// The normal law of this mean and standard deviation, conditioned to [`min`, `max`].
    ///
    /// # Errors
    /// A NaN; an infinite parameter other than `max`; sd ≤ 0; min < 0; max ≤ min; an interval that is out of reach.
    pub fn new(mean: f64, sd: f64, min: f64, max: f64) -> Result<Self, LawError> {
        if !mean.is_finite() {
            return Err(LawError::new("mean", mean, "a finite number"));
        }
        let (sd, min) = (positive("sd", sd)?, non_negative("min", min)?);
        if max.is_nan() || max <= min {
            return Err(LawError::new("max", max, "above min"));
        }
        if min > mean + 30.0 * sd {
            return Err(LawError::new("min", min, "at most 30 sd above the mean"));
        }
        if max < mean - 30.0 * sd {
            return Err(LawError::new("max", max, "at most 30 sd below the mean"));
        }
        Ok(Self { mean, sd, min, max })
    }

    /// The same law, unbounded above if `max` is left out.
    fn bounded(mean: f64, sd: f64, min: f64, max: Option<f64>) -> Result<Self, LawError> {
        Self::new(mean, sd, min, max.unwrap_or(f64::INFINITY))
    }

    /// The lower bound in standard deviations from the mean, and the width of the interval.
    fn standardised(&self) -> (f64, f64) {
        ((self.min - self.mean) / self.sd, (self.max - self.min) / self.sd)
    }

    /// The share of [low, low + part] in [low, low + width].
    fn share(low: f64, part: f64, width: f64) -> f64 {
        let ((side, mantissa), (whole_side, whole)) = (mass(low, part), mass(low, width));
        let power = match (side, whole_side) {
            (Side::Below, Side::Below) => 0.5 * (width - part) * (2.0 * low + width + part),
            (Side::Below, _) => -0.5 * (low + part) * (low + part),
            _ => 0.0,
        };
        (exp(power) * mantissa / whole).min(1.0)
    }

    /// The quantile at u = 1 - v.
    fn at(&self, u: f64, v: f64) -> f64 {
        let (low, width) = self.standardised();
        if width < 0.1 {
            return self.narrow(low, width, u, v);
        }
        let high = low + width;
        let lower = normal_cdf(low) * v + normal_cdf(high) * u;
        let z = if lower <= 0.5 {
            normal_quantile(lower)
        } else {
            normal_upper_quantile(normal_tail(low) * v + normal_tail(high) * u)
        };
        (self.mean + self.sd * z).clamp(self.min, self.max)
    }

    /// Newton's method from the uniform law, which a narrow interval resembles; probabilities would cancel.
    fn narrow(&self, low: f64, width: f64, u: f64, v: f64) -> f64 {
        let (side, whole) = mass(low, width);
        let mut part = width * u;
        for _ in 0..30 {
            // Measured from the nearer end, to keep both tails accurate.
            let excess = if u <= 0.5 {
                Self::share(low, part, width) - u
            } else {
                v - Self::share(-low - width, width - part, width)
            };
            let z = low + part;
            let power = match side {
                Side::Above => -part * (low + 0.5 * part),
                Side::Around => -0.5 * z * z,
                Side::Below => 0.5 * (width - part) * (2.0 * low + width + part),
            };
            let step = excess * whole / exp(power);
            part = (part - step).clamp(0.0, width);
            if step.abs() <= 1e-15 * width * u.min(v) {
                break;
            }
        }
        (self.min + self.sd * part).min(self.max)
    }
}

impl Law for TruncatedNormal {
    fn quantile(&self, u: f64) -> f64 {
        self.at(u, 1.0 - u)
    }

    fn upper_quantile(&self, v: f64) -> f64 {
        self.at(1.0 - v, v)
    }

    fn cdf(&self, x: f64) -> f64 {
        if x <= self.min {
            return 0.0;
        }
        if x >= self.max {
            return 1.0;
        }
        let (low, width) = self.standardised();
        Self::share(low, (x - self.min) / self.sd, width)
    }

    fn tail(&self, x: f64) -> f64 {
        if x <= self.min {
            return 1.0;
        }
        if x >= self.max {
            return 0.0;
        }
        let (low, width) = self.standardised();
        if width == f64::INFINITY {
            // The part above x starts where `low` would, and both parts reach to infinity.
            let z = (x - self.mean) / self.sd;
            let ((side, part), (whole_side, whole)) = (mass(z, width), mass(low, width));
            let power = match (side, whole_side) {
                (Side::Above, Side::Above) => 0.5 * (low - z) * (low + z),
                (Side::Above, _) => -0.5 * z * z,
                _ => 0.0,
            };
            return (exp(power) * part / whole).min(1.0);
        }
        Self::share(-low - width, (self.max - x) / self.sd, width)
    }

    fn mean(&self) -> f64 {
        self.expect(&mut |x| x)
    }

    fn laplace(&self, s: f64) -> f64 {
        if s == 0.0 {
            return 1.0;
        }
        let (low, width) = self.standardised();
        let shift = self.sd * s;
        let ((side, mantissa), (whole_side, whole)) = (mass(low + shift, width), mass(low, width));
        let high = low + width;
        let power = match (whole_side, side) {
            (Side::Above, _) => -s * self.min,
            (Side::Around, Side::Above) => -s * self.min - 0.5 * low * low,
            (Side::Around, _) => s * (0.5 * self.sd * shift - self.mean),
            (Side::Below, Side::Above) => -s * self.min + 0.5 * width * (low + high),
            (Side::Below, Side::Around) => s * (0.5 * self.sd * shift - self.mean) + 0.5 * high * high,
            (Side::Below, Side::Below) => -s * self.max,
        };
        exp(power) * mantissa / whole
    }

    fn expect(&self, f: &mut dyn FnMut(f64) -> f64) -> f64 {
        const REACH: f64 = 9.5;
        let (low, width) = self.standardised();
        let high = low + width;
        if low < -REACH && high > REACH {
            let at = |z: f64| f((self.mean + self.sd * z).clamp(self.min, self.max));
            return quadrature::normal(at, EXPECTATION_TOLERANCE).value;
        }
        // Only values within reach of the mode matter.
        let mode = 0f64.clamp(low, high);
        let (from, to) = (low.max(mode - REACH), high.min(mode + REACH));
        let density = |p: f64| {
            let z = from + (to - from) * p;
            (z, exp(0.5 * (mode - z) * (mode + z)))
        };
        let weighted = |p: f64, _| {
            let (z, weight) = density(p);
            weight * f((self.mean + self.sd * z).clamp(self.min, self.max))
        };
        let value = quadrature::unit(weighted, EXPECTATION_TOLERANCE).value;
        value / quadrature::unit(|p, _| density(p).1, EXPECTATION_TOLERANCE).value
    }

    fn minimum(&self) -> f64 {
        self.min
    }

    fn maximum(&self) -> f64 {
        self.max
    }

    fn small_value_index(&self) -> f64 {
        if self.min > 0.0 { f64::INFINITY } else { 1.0 }
    }

    fn scaled(&self, factor: f64) -> Self {
        assert_factor(factor);
        Self { mean: self.mean * factor, sd: self.sd * factor, min: self.min * factor, max: self.max * factor }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::check;
    use approx::assert_relative_eq;

    fn law(mean: f64, sd: f64, min: f64, max: f64) -> TruncatedNormal {
        TruncatedNormal::new(mean, sd, min, max).expect("valid")
    }

    #[test]
    fn behaves_as_a_law() {
        check::continuous(&law(0.5, 0.1, 0.4, 0.6));
        check::continuous(&law(0.5, 0.1, 0.0, f64::INFINITY));
        check::continuous(&law(1.0, 0.01, 0.0, f64::INFINITY));
        check::continuous(&law(0.0, 1.0, 0.5, f64::INFINITY));
        check::continuous(&law(0.0, 1.0, 12.0, 13.0));
        check::continuous(&law(5.0, 1.0, 0.0, 2.0));
        check::continuous(&law(1.0, 1e6, 1.0, 2.0));
        check::continuous(&law(0.0, 1.0, 20.0, 20.05));
        check::continuous(&law(3.0, 0.1, 0.0, 3.0));
    }

    #[test]
    fn the_mean_is_the_textbook_one() {
        let density = |z: f64| exp(-0.5 * z * z) / sqrt(2.0 * std::f64::consts::PI);
        for (min, max) in [(0.4, 0.6), (0.1, 0.55), (0.45, 0.9), (0.0, f64::INFINITY)] {
            let (low, high) = ((min - 0.5) / 0.1, (max - 0.5) / 0.1);
            let textbook = 0.5 + 0.1 * (density(low) - density(high)) / (normal_cdf(high) - normal_cdf(low));
            assert_relative_eq!(law(0.5, 0.1, min, max).mean(), textbook, max_relative = 1e-13);
        }
    }

    #[test]
    fn laplace_transforms_computed_with_thirty_digits() {
        for ((mean, sd, min, max), s, expected) in [
            ((0.5, 0.1, 0.4, 0.6), 1e-3, 0.999_500_126_434_067),
            ((0.5, 0.1, 0.4, 0.6), 100.0, 1.653_150_395_665_614_7e-19),
            ((0.5, 0.1, 0.4, 0.6), 1500.0, 6.304_412_717_978_444e-264),
            ((1.0, 0.01, 0.0, f64::INFINITY), 600.0, 1.740_249_558_719_502_2e-253),
            ((0.0, 1.0, 12.0, 13.0), 50.0, 5.163_620_157_805_404e-262),
            ((5.0, 1.0, 0.0, 2.0), 1.0, 0.187_001_462_102_450_7),
            ((5.0, 1.0, 0.0, 2.0), 3.5, 0.005_312_903_626_743_02),
            ((5.0, 1.0, 0.0, 2.0), 300.0, 3.734_163_281_219_8e-6),
            ((1.0, 1e6, 1.0, 2.0), 100.0, 3.720_075_976_021_456e-46),
        ] {
            let found = law(mean, sd, min, max).laplace(s);
            assert!((found / expected - 1.0).abs() < 1e-11, "{found} instead of {expected}");
        }
    }

    #[test]
    fn bad_parameters_are_refused() {
        let parameter = |a, b, c, d| TruncatedNormal::new(a, b, c, d).expect_err("refused").parameter;
        assert_eq!(parameter(f64::NAN, 1.0, 0.0, 1.0), "mean");
        assert_eq!(parameter(0.0, 0.0, 0.0, 1.0), "sd");
        assert_eq!(parameter(0.0, 1.0, -1.0, 1.0), "min");
        assert_eq!(parameter(0.0, 1.0, 1.0, 1.0), "max");
        assert_eq!(parameter(0.0, 1.0, 31.0, 40.0), "min");
        assert_eq!(parameter(50.0, 1.0, 0.0, 10.0), "max");
    }

    #[test]
    fn variates_never_change() {
        let bits = [0x3fd9_9f22_277b_8e7a, 0x3fde_72d8_783e_5665, 0x3fe4_04ae_9946_c06f, 0x3fe6_6663_386c_cc48];
        check::stable(&law(0.5, 0.1, 0.4, 0.7), &bits);
    }
}
