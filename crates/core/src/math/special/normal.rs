//! The standard normal distribution.
//!
//! # Source
//! Quantile: M. J. Wichura, "Algorithm AS 241: The percentage points of the normal distribution", Applied Statistics
//! 37 (1988), routine PPND16, relative error about 1e-16. Scaled error function: Laplace's continued fraction, NIST
//! DLMF 7.9.2.

use crate::math::float::{erfc, exp, ln, sqrt};
use std::f64::consts::{FRAC_1_SQRT_2, PI};

const CENTRE_NUMERATOR: [f64; 8] = [
    3.387_132_872_796_366_5,
    133.141_667_891_784_38,
    1_971.590_950_306_551_3,
    13_731.693_765_509_46,
    45_921.953_931_549_87,
    67_265.770_927_008_7,
    33_430.575_583_588_13,
    2_509.080_928_730_122_7,
];
const CENTRE_DENOMINATOR: [f64; 8] = [
    1.0,
    42.313_330_701_600_91,
    687.187_007_492_057_9,
    5_394.196_021_424_751,
    21_213.794_301_586_597,
    39_307.895_800_092_71,
    28_729.085_735_721_943,
    5_226.495_278_852_854,
];
const MIDDLE_NUMERATOR: [f64; 8] = [
    1.423_437_110_749_683_5,
    4.630_337_846_156_546,
    5.769_497_221_460_691,
    3.647_848_324_763_204_5,
    1.270_458_252_452_368_4,
    0.241_780_725_177_450_6,
    0.022_723_844_989_269_184,
    7.745_450_142_783_414e-4,
];
const MIDDLE_DENOMINATOR: [f64; 8] = [
    1.0,
    2.053_191_626_637_759,
    1.676_384_830_183_803_8,
    0.689_767_334_985_1,
    0.148_103_976_427_480_08,
    0.015_198_666_563_616_457,
    5.475_938_084_995_345e-4,
    1.050_750_071_644_416_9e-9,
];
const FAR_NUMERATOR: [f64; 8] = [
    6.657_904_643_501_103,
    5.463_784_911_164_114,
    1.784_826_539_917_291_3,
    0.296_560_571_828_504_87,
    0.026_532_189_526_576_124,
    0.001_242_660_947_388_078_4,
    2.711_555_568_743_487_6e-5,
    2.010_334_399_292_288_1e-7,
];
const FAR_DENOMINATOR: [f64; 8] = [
    1.0,
    0.599_832_206_555_888,
    0.136_929_880_922_735_8,
    0.014_875_361_290_850_615,
    7.868_691_311_456_133e-4,
    1.846_318_317_510_054_8e-5,
    1.421_511_758_316_446e-7,
    2.044_263_103_389_939_8e-15,
];

fn polynomial(coefficients: &[f64; 8], x: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |value, coefficient| value * x + coefficient)
}

/// The `z` with P(Z ≤ z) = u, for u in (0, 1); accurate for u down to 1e-300.
pub fn normal_quantile(u: f64) -> f64 {
    let centred = u - 0.5;
    if centred.abs() <= 0.425 {
        let r = 0.180_625 - centred * centred;
        return centred * polynomial(&CENTRE_NUMERATOR, r) / polynomial(&CENTRE_DENOMINATOR, r);
    }
    if centred < 0.0 { -tail_quantile(u) } else { tail_quantile(1.0 - u) }
}

/// The `z` with P(Z > z) = v, for v in (0, 1); accurate for v down to 1e-300.
pub fn normal_upper_quantile(v: f64) -> f64 {
    -normal_quantile(v)
}

fn tail_quantile(tail: f64) -> f64 {
    let r = sqrt(-ln(tail));
    if r <= 5.0 {
        polynomial(&MIDDLE_NUMERATOR, r - 1.6) / polynomial(&MIDDLE_DENOMINATOR, r - 1.6)
    } else {
        polynomial(&FAR_NUMERATOR, r - 5.0) / polynomial(&FAR_DENOMINATOR, r - 5.0)
    }
}

/// P(Z ≤ z).
pub fn normal_cdf(z: f64) -> f64 {
    0.5 * erfc(-z * FRAC_1_SQRT_2)
}

/// P(Z > z).
pub fn normal_tail(z: f64) -> f64 {
    0.5 * erfc(z * FRAC_1_SQRT_2)
}

/// `exp(x²) erfc(x)` for x ≥ -5, without underflow for any large x.
pub fn erfcx(x: f64) -> f64 {
    if x < 2.0 {
        return exp(x * x) * erfc(x);
    }
    // The fraction converges in about 4 + (30 / x)² / 4 steps.
    let steps = 8 + (260.0 / (x * x)) as u32;
    let mut fraction = x;
    for k in (1..=steps).rev() {
        fraction = x + 0.5 * f64::from(k) / fraction;
    }
    1.0 / (sqrt(PI) * fraction)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::float::power;
    use approx::assert_relative_eq;

    #[test]
    fn quantiles_of_the_source() {
        assert_relative_eq!(normal_quantile(0.25), -0.674_489_750_196_081_7, max_relative = 2e-16);
        assert_relative_eq!(normal_quantile(0.001), -3.090_232_306_167_813, max_relative = 3e-16);
        assert_relative_eq!(normal_quantile(1e-20), -9.262_340_089_798_408, max_relative = 5e-16);
        assert_eq!(normal_quantile(0.5), 0.0);
    }

    #[test]
    fn quantile_and_cdf_invert_each_other_in_both_tails() {
        for k in 1..300 {
            let u = power(10.0, -f64::from(k));
            let z = normal_quantile(u);
            assert_relative_eq!(normal_cdf(z), u, max_relative = 4e-16 * (4.0 + z * z));
            assert_relative_eq!(normal_tail(normal_upper_quantile(u)), u, max_relative = 4e-16 * (4.0 + z * z));
        }
        for k in 1..1000 {
            let u = f64::from(k) / 1000.0;
            assert_relative_eq!(normal_cdf(normal_quantile(u)), u, max_relative = 4e-15);
        }
    }

    #[test]
    fn scaled_error_function_agrees_with_erfc_and_with_its_asymptote() {
        for k in -20..200 {
            let x = f64::from(k) * 0.1;
            assert_relative_eq!(erfcx(x), exp(x * x) * erfc(x), max_relative = 4e-16 * (3.0 + x * x));
        }
        assert_relative_eq!(erfcx(1e8), 1.0 / (sqrt(PI) * 1e8), max_relative = 1e-15);
        // R. M. Corless et al. tabulate erfcx(2) = 0.25539567631050574…
        assert_relative_eq!(erfcx(2.0), 0.255_395_676_310_505_74, max_relative = 1e-15);
    }
}
