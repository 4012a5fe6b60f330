//! Portable elementary functions: the same bits on every platform.

pub use libm::{
    acos, ceil, cos, cosh, erf, erfc, exp, expm1, floor, lgamma as ln_gamma, log as ln, log1p as ln_1p, log10,
    pow as power, sin, sinh, tgamma as gamma,
};

/// Natural exponential and logarithm in single precision.
pub use libm::{expf as exp_f32, logf as ln_f32};

/// Square root; exactly rounded by IEEE 754, hence portable.
pub fn sqrt(x: f64) -> f64 {
    x.sqrt()
}

/// Square root in single precision; exactly rounded by IEEE 754, hence portable.
#[inline]
pub fn sqrt_f32(x: f32) -> f32 {
    x.sqrt()
}

/// Rounds to a multiple of `quantum`, halves away from zero. What lies within 1e-9 steps of a half counts as one, so
/// that the rounding errors of `x` do not decide.
#[inline]
pub fn quantise(x: f64, quantum: f64) -> f64 {
    (quantum * floor_of_positive((x / quantum).abs() + (0.5 + 1e-9))).copysign(x)
}

/// [`floor`] of `x ≥ 0`, for vector instructions.
#[inline]
fn floor_of_positive(x: f64) -> f64 {
    /// 2^52, from which on all numbers are integers.
    const INTEGERS: f64 = 4_503_599_627_370_496.0;
    let nearest = (x + INTEGERS) - INTEGERS;
    let below = nearest - if nearest > x { 1.0 } else { 0.0 };
    if x < INTEGERS { below } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floors_of_positive_numbers() {
        let integers: [f64; 8] = [0.0, 1.0, 2.0, 3.0, 1e9, 4_503_599_627_370_495.0, 4_503_599_627_370_496.0, 1e300];
        for integer in integers {
            for x in [integer.next_down().abs(), integer, integer.next_up(), integer + 0.25, integer + 0.5] {
                assert_eq!(floor_of_positive(x), floor(x), "{x}");
            }
        }
        assert!(floor_of_positive(f64::NAN).is_nan() && floor_of_positive(f64::INFINITY) == f64::INFINITY);
    }

    #[test]
    fn halves_are_quantised_away_from_zero() {
        assert_eq!(quantise(0.125, 0.25), 0.25);
        assert_eq!(quantise(-0.125, 0.25), -0.25);
        assert_eq!(quantise(0.12, 0.25), 0.0);
        // 0.1 − 1/8 is −0.025 but for rounding: half a step of 0.05.
        assert_eq!(quantise(0.1 - 0.125, 0.05), -0.05);
        assert_eq!(quantise(0.1 - 0.075, 0.05), 0.05);
    }
}
