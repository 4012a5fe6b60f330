//! `x^β` for many `x` at once: portable, and written for vector instructions.
//!
//! # Definition
//! `x^β = exp(β·ln x)` for `x ≥ 0` and `β > 0`; 0 where the result would be below 2^-1000. `ln` splits off the exponent
//! and takes the series of `artanh`, `exp` splits off a power of two and takes the Taylor polynomial of degree 13.
//!
//! # Accuracy
//! Relative error below `(2 + |β·ln x|)·2^-52`: for the generalisation function, where `x` is a difference of rates,
//! about 1e-15. [`crate::math::float::power`] is more accurate and several times slower.
//!
//! # Determinism
//! Additions, multiplications, divisions and bit operations on `f64` in a fixed order, without fused operations.

const LN_2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
const LN_2_LOW: f64 = f64::from_bits(0x3dea_39ef_3579_3c76);
const INVERSE_LN_2: f64 = std::f64::consts::LOG2_E;

/// Adding and subtracting this rounds a number of moderate size to an integer, which then stands in the lowest bits.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// `x^β` for one `x ≥ 0`, `β > 0`.
#[inline(always)]
pub fn power(x: f64, beta: f64) -> f64 {
    // x = 2^exponent · (1 + f) with 1 + f between √½ and √2.
    let bits = x.to_bits();
    let shifted = bits.wrapping_add(0x3ff0_0000_0000_0000 - 0x3fe6_a09e_667f_3bcd);
    let exponent = f64::from_bits((shifted >> 52) | 0x4330_0000_0000_0000) - (4_503_599_627_370_496.0 + 1023.0);
    let f = f64::from_bits((shifted & 0x000f_ffff_ffff_ffff) + 0x3fe6_a09e_667f_3bcd) - 1.0;
    // ln(1 + f) = 2·artanh(s), s = f/(2 + f), |s| < 0.1716.
    let s = f / (2.0 + f);
    let z = s * s;
    let mut series = 2.0 / 21.0;
    series = series * z + 2.0 / 19.0;
    series = series * z + 2.0 / 17.0;
    series = series * z + 2.0 / 15.0;
    series = series * z + 2.0 / 13.0;
    series = series * z + 2.0 / 11.0;
    series = series * z + 2.0 / 9.0;
    series = series * z + 2.0 / 7.0;
    series = series * z + 2.0 / 5.0;
    series = series * z + 2.0 / 3.0;
    let tail = s * z * series;
    let logarithm = exponent * LN_2_HIGH + (exponent * LN_2_LOW + (2.0 * s + tail));
    let y = beta * logarithm;
    let bounded = if y < -693.0 { -693.0 } else { y };
    // exp(y) = 2^k · exp(r), |r| ≤ ln(2)/2.
    let rounded = bounded * INVERSE_LN_2 + ROUNDER;
    let k = rounded - ROUNDER;
    let r = (bounded - k * LN_2_HIGH) - k * LN_2_LOW;
    let mut e = 1.0 / 6_227_020_800.0;
    e = e * r + 1.0 / 479_001_600.0;
    e = e * r + 1.0 / 39_916_800.0;
    e = e * r + 1.0 / 3_628_800.0;
    e = e * r + 1.0 / 362_880.0;
    e = e * r + 1.0 / 40_320.0;
    e = e * r + 1.0 / 5_040.0;
    e = e * r + 1.0 / 720.0;
    e = e * r + 1.0 / 120.0;
    e = e * r + 1.0 / 24.0;
    e = e * r + 1.0 / 6.0;
    e = e * r + 0.5;
    e = e * r + 1.0;
    e = e * r + 1.0;
    let scale = f64::from_bits(rounded.to_bits().wrapping_add(1023) << 52);
    if y < -693.0 { 0.0 } else { e * scale }
}

/// `sign(x)·|x|^β` of every `x`, in place.
pub fn signed_powers(values: &mut [f64], beta: f64) {
    if beta == 1.0 {
        return;
    }
    if beta == 2.0 {
        values.iter_mut().for_each(|x| *x *= x.abs());
        return;
    }
    for x in values {
        *x = power(x.abs(), beta).copysign(*x);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::float;
    use crate::rng::{Purpose, Streams};

    #[test]
    fn agrees_with_the_accurate_power() {
        let mut rng = Streams::new(1).stream(Purpose::Policy, 0, 0);
        for _ in 0..200_000 {
            let beta = 0.05 + 6.0 * rng.uniform();
            let x = float::exp(-35.0 * rng.uniform()) * 1.5;
            let exact = float::power(x, beta);
            let bound = (2.0 + (beta * float::ln(x)).abs()) * f64::EPSILON;
            let error = ((power(x, beta) - exact) / exact).abs();
            assert!(error <= bound, "{x}^{beta}: error {error:e}, bound {bound:e}");
        }
    }

    #[test]
    fn ends_of_the_range() {
        assert_eq!(power(0.0, 1.2), 0.0);
        assert_eq!(power(1.0, 1.2), 1.0);
        assert_eq!(power(1e-300, 5.0), 0.0, "too small to tell from zero");
        let mut values = [-0.25, 0.0, 0.25];
        signed_powers(&mut values, 2.0);
        assert_eq!(values, [-0.0625, 0.0, 0.0625]);
        signed_powers(&mut values, 1.0);
        assert_eq!(values, [-0.0625, 0.0, 0.0625]);
    }
}
