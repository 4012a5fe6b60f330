//! The regularised incomplete gamma functions and their inverses.
//!
//! # Definition
//! `P(a, x) = ∫₀^x t^(a-1) e^(-t) dt / Γ(a)` and `Q = 1 - P`. Power series for x < a + 1, Legendre's continued fraction
//! above, and for a ≤ 1 with x < 1 a series for Q itself, which is small there. The common factor
//! `x^a e^(-x) / Γ(a+1)` is formed from `x/a - 1 - ln(x/a)` when a is large, so that nothing cancels.
//!
//! # Source
//! NIST DLMF 8.7.1, 8.9.2; W. Gautschi, "A computational procedure for incomplete gamma functions", TOMS 5 (1979); the
//! starting value of the inverse is E. B. Wilson and M. M. Hilferty, PNAS 17 (1931).
//!
//! # Cost
//! O(√a) steps near x = a, otherwise a few tens; an inverse needs three or four evaluations.

use super::normal::{normal_quantile, normal_upper_quantile};
use crate::math::float::{exp, expm1, gamma, ln, ln_1p, ln_gamma, power, sqrt};
use std::f64::consts::PI;

const LARGE: f64 = 10.0;
const STEPS: usize = 100_000;
const TINY_SHAPE: f64 = 0.01;

/// `Γ(a) / (√(2π/a) (a/e)^a)`, the correction factor of Stirling's formula, which tends to 1. For a > 0.
pub fn stirling_ratio(a: f64) -> f64 {
    if a < LARGE {
        return gamma(a) * sqrt(a / (2.0 * PI)) * exp(a) / power(a, a);
    }
    let r = 1.0 / (a * a);
    let series = 1.0 / 12.0
        + r * (-1.0 / 360.0
            + r * (1.0 / 1260.0 + r * (-1.0 / 1680.0 + r * (1.0 / 1188.0 + r * (-691.0 / 360_360.0 + r / 156.0)))));
    exp(series / a)
}

/// `ln(1 + x) - x` without cancellation.
fn ln_1p_minus(x: f64) -> f64 {
    if !(-0.4..0.6).contains(&x) {
        return ln_1p(x) - x;
    }
    // ln(1 + x) = 2 artanh(r), and the first term of its series is 2r = x - x r.
    let r = x / (2.0 + x);
    let square = r * r;
    let (mut term, mut sum, mut odd) = (2.0 * r * square, 0.0, 3.0);
    while term.abs() > 1e-18 * x.abs() * r.abs() {
        sum += term / odd;
        term *= square;
        odd += 2.0;
    }
    sum - x * r
}

/// `x^a e^(-x) / Γ(a + 1)`.
fn factor(a: f64, x: f64) -> f64 {
    if a >= LARGE {
        return exp(a * ln_1p_minus((x - a) / a)) / (sqrt(2.0 * PI * a) * stirling_ratio(a));
    }
    if x < 600.0 { power(x, a) * exp(-x) / gamma(a + 1.0) } else { exp(a * ln(x) - x) / gamma(a + 1.0) }
}

fn lower_series(a: f64, x: f64) -> f64 {
    let (mut term, mut sum, mut n) = (1.0, 1.0, a);
    for _ in 0..STEPS {
        n += 1.0;
        term *= x / n;
        sum += term;
        if term < 1e-17 * sum {
            break;
        }
    }
    sum * factor(a, x)
}

fn upper_fraction(a: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let mut b = x + 1.0 - a;
    let (mut c, mut d) = (1.0 / TINY, 1.0 / b);
    let mut fraction = d;
    for step in 1..STEPS {
        let i = step as f64;
        let numerator = -i * (i - a);
        b += 2.0;
        d = 1.0 / nonzero(numerator * d + b, TINY);
        c = nonzero(b + numerator / c, TINY);
        fraction *= d * c;
        if (d * c - 1.0).abs() < 1e-16 {
            break;
        }
    }
    fraction * a * factor(a, x)
}

fn nonzero(x: f64, tiny: f64) -> f64 {
    if x.abs() < tiny { tiny } else { x }
}

/// Q for a ≤ 1 and x < 1, where it may be far below 1: `1 - x^a/Γ(a+1)` and the rest of P's alternating series.
fn upper_series(a: f64, x: f64) -> f64 {
    let leading = expm1(a * ln(x) - ln_gamma(a + 1.0));
    let (mut term, mut sum) = (1.0, 0.0);
    for n in 1..60 {
        let n = f64::from(n);
        term *= -x / n;
        sum += term / (a + n);
        if term.abs() < 1e-18 {
            break;
        }
    }
    -leading - (1.0 + leading) * a * sum
}

/// P(a, x), the cdf of a gamma variate of shape `a` > 0 and scale 1 at x ≥ 0.
pub fn gamma_lower(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        0.0
    } else if x == f64::INFINITY {
        1.0
    } else if x < a + 1.0 {
        lower_series(a, x).min(1.0)
    } else {
        1.0 - upper_fraction(a, x)
    }
}

/// Q(a, x) = 1 - P(a, x), to full relative precision where it is small.
pub fn gamma_upper(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        1.0
    } else if x == f64::INFINITY {
        0.0
    } else if x >= a + 1.0 {
        upper_fraction(a, x)
    } else if a <= 1.0 && x < 1.0 {
        upper_series(a, x)
    } else {
        1.0 - lower_series(a, x)
    }
}

/// The x with P(a, x) = p, for p in (0, 1).
pub fn gamma_lower_inverse(a: f64, p: f64) -> f64 {
    if p > 0.5 { solve_upper(a, 1.0 - p) } else { solve_lower(a, p) }
}

/// The x with Q(a, x) = q, for q in (0, 1).
pub fn gamma_upper_inverse(a: f64, q: f64) -> f64 {
    if q > 0.5 { solve_lower(a, 1.0 - q) } else { solve_upper(a, q) }
}

/// Newton's method on `ln P` as a function of `ln x`. That function is concave and increasing (the density of the
/// logarithm of a gamma variate is log-concave), so the iteration converges from every starting point.
fn solve_lower(a: f64, p: f64) -> f64 {
    let small = (ln(p) + ln_gamma(a + 1.0)) / a;
    if small < -40.0 {
        return exp(small);
    }
    let guess = wilson_hilferty(a, normal_quantile(p));
    let start = if a < 0.5 || small < -1.5 - 0.02 * a || guess <= 0.0 { small.min(ln(a + 1.0)) } else { ln(guess) };
    newton(a, start, |x| {
        let value = gamma_lower(a, x);
        (ln(p / value), value)
    })
}

/// The same for `-ln Q`, which is convex and increasing in `ln x`.
fn solve_upper(a: f64, q: f64) -> f64 {
    // A law of tiny shape has its median hundreds of steps below; there `P = x^a / Γ(a+1)`, as in `solve_lower`.
    let small = if a < TINY_SHAPE { (ln_1p(-q) + ln_gamma(a + 1.0)) / a } else { 0.0 };
    if small < -40.0 {
        return exp(small);
    }
    let guess = wilson_hilferty(a, normal_upper_quantile(q));
    let start = if guess > 0.01 * a { ln(guess) } else { (ln(a) - 1.0).max(small - 3.0) };
    newton(a, start, |x| {
        let value = gamma_upper(a, x);
        (ln(value / q), value)
    })
}

fn wilson_hilferty(a: f64, z: f64) -> f64 {
    let cube_root = 1.0 - 1.0 / (9.0 * a) + z / (3.0 * sqrt(a));
    a * cube_root * cube_root * cube_root
}

fn newton(a: f64, start: f64, mut residual: impl FnMut(f64) -> (f64, f64)) -> f64 {
    let mut logarithm = start;
    for _ in 0..200 {
        let x = exp(logarithm);
        let (difference, value) = residual(x);
        let slope = a * factor(a, x) / value;
        // Far in a tail the slope may underflow; a bounded step brings the iterate back.
        let step = if slope > 0.0 && difference.is_finite() { (difference / slope).clamp(-3.0, 3.0) } else { -0.5 };
        logarithm += step;
        if step.abs() * sqrt(a + 1.0) < 1e-8 {
            break;
        }
    }
    exp(logarithm)
}

#[cfg(test)]
mod tests {
    use super::*;
    use approx::assert_relative_eq;

    const SHAPES: [f64; 13] = [0.001, 0.003, 0.01, 0.1, 0.5, 0.99, 1.0, 2.5, 9.99, 30.0, 1e3, 1e4, 1e5];

    #[test]
    fn closed_forms_of_integer_and_half_integer_shape() {
        for k in -30..9 {
            let x = power(2.0, f64::from(k));
            assert_relative_eq!(gamma_upper(1.0, x), exp(-x), max_relative = 1e-14);
            assert_relative_eq!(gamma_lower(1.0, x), -expm1(-x), max_relative = 1e-14);
            assert_relative_eq!(gamma_lower(0.5, x), crate::math::float::erf(sqrt(x)), max_relative = 1e-14);
            assert_relative_eq!(gamma_upper(0.5, x), crate::math::float::erfc(sqrt(x)), max_relative = 2e-13);
            let poisson = exp(-x) * (1.0 + x + x * x / 2.0 + x * x * x / 6.0);
            assert_relative_eq!(gamma_upper(4.0, x), poisson, max_relative = 2e-14);
        }
    }

    #[test]
    fn the_two_tails_sum_to_one_and_the_regions_meet() {
        for a in SHAPES {
            for k in -40..40 {
                let x = a * power(1.2, f64::from(k));
                assert_relative_eq!(gamma_lower(a, x) + gamma_upper(a, x), 1.0, max_relative = 1e-14);
            }
            let edge = a + 1.0;
            let (below, above) = (lower_series(a, edge), upper_fraction(a, edge));
            assert_relative_eq!(below + above, 1.0, max_relative = 2e-14);
        }
    }

    #[test]
    fn inverses_return_to_the_probability() {
        for a in SHAPES {
            for u in [1e-12, 1e-6, 1e-3, 0.01, 0.1, 0.3, 0.499, 0.5, 0.501, 0.7, 0.9, 0.99] {
                let x = gamma_lower_inverse(a, u);
                if x > 1e-300 {
                    assert_relative_eq!(gamma_lower(a, x), u, max_relative = 1e-13 * (1.0 + sqrt(a) / 10.0));
                }
                let y = gamma_upper_inverse(a, u);
                if y > 1e-300 {
                    assert_relative_eq!(gamma_upper(a, y), u, max_relative = 1e-12 * (1.0 + sqrt(a) / 10.0));
                }
            }
        }
        assert!(gamma_upper_inverse(1e4, 1e-300) < 1.5e4 && gamma_upper_inverse(0.01, 1e-300) < 1e3);
        assert_relative_eq!(gamma_upper_inverse(1.0, 1e-300), -ln(1e-300), max_relative = 1e-14);
    }

    #[test]
    fn values_computed_with_forty_digits() {
        for (a, x, lower, upper) in [
            (1e4, 9900.0, 0.158_651_192_193_564_66, 0.841_348_807_806_435_4),
            (1e4, 10100.0, 0.841_348_750_447_179_6, 0.158_651_249_552_820_38),
            (1e3, 800.0, 5.501_419_776_179_228e-12, 0.999_999_999_994_498_6),
            (1e3, 1200.0, 0.999_999_998_711_839_4, 1.288_160_608_628_143_3e-9),
            (0.001, 1e-200, 0.631_321_129_085_828_7, 0.368_678_870_914_171_23),
            (0.001, 1e-10, 0.977_800_656_598_625_8, 0.022_199_343_401_374_194),
            (0.001, 4.0, 0.999_996_212_546_521, 3.787_453_478_910_333_6e-6),
            (0.01, 0.5, 0.994_373_243_806_032_9, 0.005_626_756_193_967_184),
            (0.01, 0.001, 0.938_570_652_526_129, 0.061_429_347_473_871_015),
            (0.01, 5.0, 0.999_988_246_480_587_3, 1.175_351_941_275_085e-5),
            (30.0, 10.0, 2.509_951_201_527_907_8e-7, 0.999_999_749_004_879_9),
            (30.0, 80.0, 0.999_999_999_950_967_7, 4.903_229_555_810_753e-11),
            (9.99, 3.0, 0.001_116_730_794_537_766, 0.998_883_269_205_462_2),
            (12.0, 12.0, 0.538_402_666_936_381_8, 0.461_597_333_063_618_2),
            (100.0, 200.0, 0.999_999_999_999_998_1, 1.843_893_649_711_574e-15),
        ] {
            assert_relative_eq!(gamma_lower(a, x), lower, max_relative = 3e-14);
            assert_relative_eq!(gamma_upper(a, x), upper, max_relative = 3e-14);
        }
    }

    #[test]
    fn the_bounds_of_partitions_are_inverted() {
        for (a, x, lower, upper) in [
            (0.001, 1e-200, 0.631_321_129_085_828_7, 0.368_678_870_914_171_23),
            (0.001, 1e-10, 0.977_800_656_598_625_8, 0.022_199_343_401_374_194),
            (1e5, 99_000.0, 7.574_199_211_747_68e-4, 0.999_242_580_078_825_2),
            (1e5, 100_500.0, 0.942_896_730_023_971_3, 0.057_103_269_976_028_714),
        ] {
            assert_relative_eq!(gamma_lower(a, x), lower, max_relative = 1e-12);
            assert_relative_eq!(gamma_lower_inverse(a, lower), x, max_relative = 1e-11);
            assert_relative_eq!(gamma_upper_inverse(a, upper), x, max_relative = 1e-11);
        }
    }

    #[test]
    fn an_independent_library_agrees() {
        for a in [0.1, 0.5, 1.0, 2.5, 9.99, 30.0, 100.0] {
            for ratio in [0.1, 0.5, 0.9, 1.0, 1.1, 2.0, 3.0] {
                let oracle = statrs::function::gamma::gamma_lr(a, a * ratio);
                assert_relative_eq!(gamma_lower(a, a * ratio), oracle, max_relative = 1e-11, epsilon = 1e-14);
            }
        }
    }
}
