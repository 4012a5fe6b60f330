//! Checks that every law must pass; the tests of each law call them.

use super::Law;
use crate::math::float::{exp, power};
use crate::math::quadrature::unit;
use crate::math::statistics::kolmogorov;
use crate::rng::{Purpose, Streams};
use approx::assert_relative_eq;
use statrs::distribution::ContinuousCDF;
use std::fmt::Debug;

const LEVELS: [f64; 13] = [1e-9, 1e-6, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999, 0.999_999, 0.999_999_999];

/// Checks a law without atoms against itself: inverses, transforms against quadrature of the quantile, and a sample.
pub fn continuous<L: Law + Debug + Clone>(law: &L) {
    quantile_and_cdf_invert_each_other(law);
    transform_is_its_integral(law);
    expectation_is_its_integral(law);
    scaling_scales(law);
    sample_passes_kolmogorov_smirnov(law);
}

/// The part of [`continuous`] that does not integrate the quantile, for laws whose quantile is not smooth.
pub fn inverses_and_sample<L: Law + Debug + Clone>(law: &L) {
    quantile_and_cdf_invert_each_other(law);
    scaling_scales(law);
    sample_passes_kolmogorov_smirnov(law);
}

fn quantile_and_cdf_invert_each_other<L: Law + Debug>(law: &L) {
    let mut last = law.minimum();
    assert_eq!(law.cdf(last * (1.0 - 1e-12) - 1e-300), 0.0, "{law:?}");
    for u in LEVELS {
        let x = law.quantile(u);
        assert!(x >= last && x <= law.maximum(), "{law:?}: quantile({u}) = {x} falls below {last}");
        // The rounding of x itself moves the cdf by its density.
        let rounding = (law.cdf(x * (1.0 + 4e-16)) - law.cdf(x * (1.0 - 4e-16))).abs();
        if x > 0.0 && rounding < 1e-3 * u {
            let error = (law.cdf(x) - u).abs();
            assert!(
                error <= 1e-12 * u + 4.0 * rounding + 1e-16,
                "{law:?}: cdf(quantile({u})) is {error} off, rounding {rounding}"
            );
            assert_relative_eq!(law.cdf(x) + law.tail(x), 1.0, max_relative = 1e-12);
        }
        if u < 0.9999 && x > 0.0 && x < law.maximum() {
            let back = law.quantile(law.cdf(x));
            assert_relative_eq!(back, x, max_relative = 1e-10);
        }
        let v = 1.0 - u;
        assert_relative_eq!(law.upper_quantile(v), x, max_relative = 1e-6);
        last = x;
    }
    let far = law.upper_quantile(1e-12);
    let rounding = (law.tail(far * (1.0 + 4e-16)) - law.tail(far * (1.0 - 4e-16))).abs();
    if rounding < 1e-15 {
        assert_relative_eq!(law.tail(far), 1e-12, max_relative = 1e-9, epsilon = 4.0 * rounding);
    }
}

/// E f(X - minimum), by tanh-sinh over the quantile, independent of the law's own `expect`.
fn brute(law: &impl Law, mut f: impl FnMut(f64) -> f64) -> f64 {
    let minimum = law.minimum();
    unit(|p, q| f(if p < 0.5 { law.quantile(p) } else { law.upper_quantile(q) } - minimum), 1e-13).value
}

fn transform_is_its_integral<L: Law + Debug>(law: &L) {
    assert_relative_eq!(law.laplace(0.0), 1.0, max_relative = 1e-12);
    let (median, minimum) = (law.quantile(0.5), law.minimum());
    let mut last = 1.0 + 1e-12;
    for k in -24..=24 {
        let s = power(10.0, f64::from(k) / 4.0) / median;
        let transform = law.laplace(s);
        assert!(transform <= last, "{law:?}: laplace({s}) = {transform} rises above {last}");
        last = transform;
        let integral = brute(law, |x| exp(-s * x)) * exp(-s * minimum);
        // Further down the peak of the integrand is too narrow for this quadrature.
        if integral > 1e-40 {
            let conditioning = 1.0 + s * minimum / 50.0;
            let difference = (transform / integral - 1.0).abs();
            assert!(difference < 1e-10 * conditioning, "{law:?}: laplace({s}) = {transform}, integral {integral}");
        }
    }
    let mean = law.mean();
    if mean == f64::INFINITY {
        return;
    }
    let s = 1e-7 / mean;
    let slope = (1.0 - law.laplace(s)) / s;
    let spread = brute(law, |x| (x * x).min(1e100)) / (mean * mean);
    if spread < 1e3 {
        assert_relative_eq!(slope, mean, max_relative = 1e-5 * (1.0 + spread));
    }
}

fn expectation_is_its_integral<L: Law + Debug>(law: &L) {
    let (median, minimum) = (law.quantile(0.5), law.minimum());
    assert_relative_eq!(law.expect(&mut |_| 1.0), 1.0, max_relative = 1e-12);
    for a in [0.01, 0.1, 1.0, 30.0] {
        let mut speed = |x: f64| median / (a * median + x);
        let direct = law.expect(&mut speed);
        let integral = brute(law, |x| speed(x + minimum));
        let difference = (direct / integral - 1.0).abs();
        assert!(difference < 1e-11, "{law:?}: E {median}/({a} {median} + X) = {direct}, integral {integral}");
    }
}

fn scaling_scales<L: Law + Debug>(law: &L) {
    let scaled = law.scaled(3.0);
    for u in [0.01, 0.5, 0.99] {
        assert_relative_eq!(scaled.quantile(u), 3.0 * law.quantile(u), max_relative = 1e-12);
    }
    let s = 1.0 / law.quantile(0.5);
    assert_relative_eq!(scaled.laplace(s), law.laplace(3.0 * s), max_relative = 1e-11);
    assert_eq!(scaled.minimum(), 3.0 * law.minimum());
}

fn sample_passes_kolmogorov_smirnov<L: Law + Debug>(law: &L) {
    let size = 100_000;
    let mut rng = Streams::new(2024).stream(Purpose::Latency, 17, 42);
    let mut sample: Vec<f64> = (0..size).map(|_| law.quantile(rng.uniform())).collect();
    let (distance, p) = kolmogorov::test(&mut sample, |x| law.cdf(x));
    assert!(p > 0.001, "{law:?}: the sample is {distance} away, p = {p}");
}

/// Compares cdf and quantile with the same law of an independent library.
pub fn against_statrs(law: &impl Law, oracle: &impl ContinuousCDF<f64, f64>, tolerance: f64) {
    for u in [0.001, 0.1, 0.5, 0.9, 0.999] {
        let x = law.quantile(u);
        assert_relative_eq!(law.cdf(x), oracle.cdf(x), max_relative = tolerance);
        assert_relative_eq!(x, oracle.inverse_cdf(u), max_relative = tolerance.max(1e-7));
    }
}

/// Value stability: the bits of four quantiles, which are part of the replay contract.
pub fn stable(law: &impl Law, expected: &[u64]) {
    let values = [law.quantile(0.001), law.quantile(0.3), law.quantile(0.9), law.upper_quantile(1e-6)];
    let found: Vec<String> = values.iter().map(|x| format!("{:#018x}", x.to_bits())).collect();
    let expected: Vec<String> = expected.iter().map(|bits| format!("{bits:#018x}")).collect();
    assert_eq!(found, expected, "variates of this law have changed: {values:?}");
}
