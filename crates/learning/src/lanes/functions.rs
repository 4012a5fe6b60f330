//! Elementary functions of single numbers, in arithmetic that compilers vectorise and that gives the same bits
//! everywhere.
//!
//! # Definition
//! Each function is within 2 ulp of the exact value for every `f32`; the tests measure it. Results below the smallest
//! normal number round to the nearest denormal one. Every NaN that goes in or comes out is the one `f32::NAN`.
//!
//! # Method
//! Polynomials after a reduction of the argument, both sides of a case computed and one selected: no branch, no table,
//! so that
//! [`Lanes::map`](super::Lanes::map) becomes vector instructions. GELU and its derivative are computed in `f64`, where
//! the square in `e^{−x²/2}` is exact and no rounding before the last one matters.
//!
//! # Source
//! Coefficients are minimax ones; `validation/functions/coefficients.py` makes them.

use super::{Lanes, keep_vectors_whole};
use std::f32::consts::LOG2_E;
// An `if` may become a branch, which keeps a loop from being vectorised; this never does.
use std::hint::select_unpredictable as select;

/// `(e^r − 1 − r) / r²` for |r| ≤ ln 2 / 2; error 3.1e-9.
const EXP: [f32; 5] = [0.49999994, 0.16666521, 0.04166839, 0.008368717, 0.00138146];
/// The same; error 3.1e-9.
const EXP_WIDE: [f64; 5] =
    [0.4999999344843399, 0.1666652063152779, 0.04166838797760826, 0.008368716919263029, 0.0013814600100147878];
/// `(ln(1 + f) − f + f²/2) / f³` for √½ ≤ 1 + f ≤ √2; error 7.3e-10.
const LN: [f32; 9] =
    [0.3333331, -0.24999987, 0.20002227, -0.16669251, 0.14218666, -0.123843364, 0.1187292, -0.117898546, 0.06915541];
/// `(tanh x − x) / x³` as a function of x², for |x| ≤ 1; error 3.4e-10.
const TANH: [f32; 8] =
    [-0.33333328, 0.1333321, -0.05395393, 0.021788117, -0.0086025, 0.003087451, -0.00084664416, 0.00012285804];
/// `erf x / x − 1` as a function of x², for |x| ≤ 1; error 1.2e-9.
const ERF: [f32; 7] = [0.12837917, -0.37612626, 0.112836, -0.026854444, 0.0051895357, -0.00080208434, 7.889126e-05];
/// `ln erfc y / y` for 1 ≤ y ≤ 4, weighted with `y erfc y`; error 2.3e-11.
const ERF_TAIL: [f32; 9] = [
    -1.128489,
    -0.63597834,
    -0.10441472,
    0.021539005,
    -0.0020040378,
    -0.00042187748,
    0.00019180567,
    -3.019772e-05,
    1.8607075e-06,
];
/// The zero of GELU′ is at minus this.
const GELU_ZERO: f64 = 0.7517915246935645;
/// `Φ(−y) e^{y²/2}` as a function of `(y − 4)/(y + 4)`, for 0 ≤ y ≤ 15; relative; error 1.9e-8.
const GELU: [f64; 10] = [
    0.0944106423966639,
    -0.17039774237214533,
    0.12437918203610586,
    -0.07170670659995726,
    0.030865751073245993,
    -0.008498101569632122,
    0.000501426565785142,
    0.0006577035649886574,
    -0.00016614568514014254,
    -6.428734844690503e-05,
];
/// `GELU′(−y) e^{y²/2} / (zero − y)` as a function of the same; relative; error 2.6e-10.
const GELU_DERIVATIVE: [f64; 11] = [
    0.46221124410193654,
    -0.10336590012264925,
    0.06046293113620696,
    -0.02808330395148858,
    0.00950506886173871,
    -0.0017887691440360365,
    -0.000155607277876171,
    0.00018734272990696013,
    -1.3869625975460323e-05,
    -1.8849903765700595e-05,
    -1.2522843034672274e-06,
];

/// Numbers from 2^23 on are whole: adding this rounds to the nearest whole number and leaves it in the lowest bits.
const ROUND: f32 = 12_582_912.0;
/// The same for `f64`.
const ROUND_WIDE: f64 = 6_755_399_441_055_744.0;

/// ln 2 in few enough bits that multiples of it up to 2^9 are exact, and the rest.
const LN_2_HIGH: f32 = 0.693_145_75;
const LN_2_LOW: f32 = 1.428_606_8e-6;

/// `Σ_k coefficients[k] x^k`.
#[inline(always)]
fn polynomial<const TERMS: usize>(coefficients: &[f32; TERMS], x: f32) -> f32 {
    let mut sum = coefficients[TERMS - 1];
    for term in 1..TERMS {
        sum = sum.mul_add(x, coefficients[TERMS - 1 - term]);
    }
    sum
}

/// `Σ_k coefficients[k] x^k`.
#[inline(always)]
fn polynomial_wide<const TERMS: usize>(coefficients: &[f64; TERMS], x: f64) -> f64 {
    let mut sum = coefficients[TERMS - 1];
    for term in 1..TERMS {
        sum = sum.mul_add(x, coefficients[TERMS - 1 - term]);
    }
    sum
}

/// The result, or the one NaN where the argument is NaN.
#[inline(always)]
fn unless_nan(x: f32, result: f32) -> f32 {
    select(x.is_nan(), f32::NAN, result)
}

/// `n` and `p` of `e^x = 2^n p` with `p` from about √½ to √2, for |x| below 2^7 or so.
#[inline(always)]
fn exp_parts(x: f32) -> (i32, f32) {
    let rounded = x.mul_add(LOG2_E, ROUND);
    let n = rounded - ROUND;
    let r = n.mul_add(-LN_2_LOW, n.mul_add(-LN_2_HIGH, x));
    let p = (r * r).mul_add(polynomial(&EXP, r), r) + 1.0;
    (rounded.to_bits().wrapping_sub(ROUND.to_bits()) as i32, p)
}

/// `2^n` for normal results.
#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

/// `e^x` for normal results.
#[inline(always)]
fn exp_normal(x: f32) -> f32 {
    let (n, p) = exp_parts(x);
    p * power_of_two(n)
}

/// `e^x`; 0 at −∞, ∞ from 88.73 on.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let below = select(x < 89.0, x, 89.0);
    let inside = select(below > -105.0, below, -105.0);
    let (n, p) = exp_parts(inside);
    // Two steps, of which only the second can leave the normal numbers, and therefore rounds.
    let half = n >> 1;
    unless_nan(x, p * power_of_two(half) * power_of_two(n - half))
}

/// `e^x` of an exponent that is not positive; below −87 that of −87, which is 1.6e-38.
#[inline(always)]
pub fn exp_to_one(x: f32) -> f32 {
    unless_nan(x, exp_normal(select(x > -87.0, x, -87.0)))
}

/// `1/x` of numbers from 2^-100 to 2^120, by three steps of Newton's from a guess within an eighth: faster than a
/// division. Each step is on whole vectors: of a function of single lanes, LLVM shuffles them.
#[inline(always)]
pub fn reciprocal(x: Lanes) -> Lanes {
    const GUESS: u32 = 0x7ef3_11c7;
    let (one, minus) = (Lanes::splat(1.0), x.map(|x| -x));
    let mut guess = x.map(|x| f32::from_bits(GUESS.wrapping_sub(x.to_bits())));
    for _ in 0..3 {
        keep_vectors_whole();
        let error = minus.mul_add(guess, one);
        guess = guess.mul_add(error, guess);
    }
    x.zip(guess, unless_nan)
}

/// The natural logarithm; −∞ at ±0, NaN below.
#[inline(always)]
pub fn ln(x: f32) -> f32 {
    let is_denormal = x < f32::MIN_POSITIVE;
    let normal = select(is_denormal, x * 16_777_216.0, x);
    let shift = select(is_denormal, -24.0, 0.0);
    // Exponent and fraction, the fraction from √½ to √2.
    const ROOT_HALF: i32 = 0x3f35_04f3;
    let bits = normal.to_bits() as i32;
    let exponent = bits.wrapping_sub(ROOT_HALF) >> 23;
    let f = f32::from_bits(bits.wrapping_sub(exponent << 23) as u32) - 1.0;
    let n = exponent as f32 + shift;
    let rest = f * f * f.mul_add(polynomial(&LN, f), -0.5);
    let result = n.mul_add(LN_2_HIGH, f) + n.mul_add(LN_2_LOW, rest);
    let finite = select(x < f32::INFINITY, result, f32::INFINITY);
    let not_negative = select(x == 0.0, f32::NEG_INFINITY, finite);
    select(x >= 0.0, not_negative, f32::NAN)
}

/// The hyperbolic tangent; odd, with tanh ±0 = ±0 and tanh ±∞ = ±1.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let y = x.abs();
    let u = y * y;
    let small = (y * u).mul_add(polynomial(&TANH, u), y);
    let inside = select(y < 10.0, y, 10.0);
    let large = 1.0 - 2.0 / (exp_normal(2.0 * inside) + 1.0);
    unless_nan(x, select(y < 1.0, small, large).copysign(x))
}

/// The error function `2/√π ∫₀ˣ e^{−t²} dt`; odd, with erf ±0 = ±0 and erf ±∞ = ±1.
#[inline(always)]
pub fn erf(x: f32) -> f32 {
    let y = x.abs();
    let small = y.mul_add(polynomial(&ERF, y * y), y);
    let inside = select(y < 4.0, y, 4.0);
    let large = 1.0 - exp_normal(inside * polynomial(&ERF_TAIL, inside));
    unless_nan(x, select(y < 1.0, small, large).copysign(x))
}

/// `y = |x|`, at most 15, `(y − 4)/(y + 4)` and `e^{−y²/2}`.
#[inline(always)]
fn normal_parts(x: f32) -> (f64, f64, f64) {
    let y = x.abs();
    let y = f64::from(select(y < 15.0, y, 15.0));
    let exponent = y * y * -0.5;
    let rounded = exponent.mul_add(std::f64::consts::LOG2_E, ROUND_WIDE);
    let r = (rounded - ROUND_WIDE).mul_add(-std::f64::consts::LN_2, exponent);
    let p = (r * r).mul_add(polynomial_wide(&EXP_WIDE, r), r) + 1.0;
    let scale = f64::from_bits(rounded.to_bits().wrapping_add(1023) << 52);
    (y, (y - 4.0) / (y + 4.0), p * scale)
}

/// The Gaussian error linear unit `x Φ(x)`; −0 at −0 and −∞, ∞ at ∞.
#[inline(always)]
pub fn gelu(x: f32) -> f32 {
    let (y, t, e) = normal_parts(x);
    let tail = y * e * polynomial_wide(&GELU, t);
    let linear = select(x < 0.0, -0.0, x);
    unless_nan(x, (f64::from(linear) - tail) as f32)
}

/// The derivative of [`gelu`], `Φ(x) + x φ(x)`; −0 at −∞, 1 at ∞.
#[inline(always)]
pub fn gelu_derivative(x: f32) -> f32 {
    let (y, t, e) = normal_parts(x);
    // The zero is a factor, so that no digit is lost beside it.
    let left = (GELU_ZERO - y) * e * polynomial_wide(&GELU_DERIVATIVE, t);
    unless_nan(x, select(x < 0.0, left, 1.0 - left) as f32)
}

#[cfg(test)]
mod tests;
