//! Integrals of smooth functions to nearly full precision, in a fixed order of operations.
//!
//! # Definition
//! - [`Rule`]: `Σ h·x'(kh)·f(x(kh))`, the trapezoidal rule after a substitution `x(t)` under which the integrand decays
//!   at both ends; the step is halved until the sum settles. Four substitutions are tabulated: [`unit()`] (tanh-sinh),
//!   [`half_line`] (exp-sinh), [`normal`] and [`exponential`] (expectations of those variates).
//! - [`trapezoid`]: the same for an integrand that brings its own substitution.
//! - [`piecewise`]: 16-point Gauss–Legendre panels between breakpoints, bisected where halving a panel changes it.
//!
//! # Source
//! H. Takahasi and M. Mori, "Double exponential formulas for numerical integration", Publ. RIMS 9 (1974); the error
//! estimate is that of D. H. Bailey, K. Jeyabalan and X. S. Li, Experimental Mathematics 14 (2005).
//!
//! # Cost
//! About 30 to 200 evaluations for an analytic integrand. The tables are computed once per process, about 0.5 ms each.

use super::float::{cosh, exp, ln, sinh, sqrt};
use super::sum::CompensatedSum;
use std::f64::consts::{FRAC_PI_2, PI};
use std::sync::LazyLock;

/// The number of points of a Gauss–Legendre panel.
pub const POINTS: usize = 16;

/// Abscissas of the 16-point Gauss–Legendre rule on [-1, 1], ascending.
pub const ABSCISSAS: [f64; POINTS] = [
    -0.989_400_934_991_649_9,
    -0.944_575_023_073_232_6,
    -0.865_631_202_387_831_7,
    -0.755_404_408_355_003,
    -0.617_876_244_402_643_7,
    -0.458_016_777_657_227_4,
    -0.281_603_550_779_258_9,
    -0.095_012_509_837_637_44,
    0.095_012_509_837_637_44,
    0.281_603_550_779_258_9,
    0.458_016_777_657_227_4,
    0.617_876_244_402_643_7,
    0.755_404_408_355_003,
    0.865_631_202_387_831_7,
    0.944_575_023_073_232_6,
    0.989_400_934_991_649_9,
];

/// Weights of the 16-point Gauss–Legendre rule on [-1, 1]; they sum to 2.
pub const WEIGHTS: [f64; POINTS] = [
    0.027_152_459_411_754_095,
    0.062_253_523_938_647_89,
    0.095_158_511_682_492_78,
    0.124_628_971_255_533_87,
    0.149_595_988_816_576_73,
    0.169_156_519_395_002_54,
    0.182_603_415_044_923_6,
    0.189_450_610_455_068_5,
    0.189_450_610_455_068_5,
    0.182_603_415_044_923_6,
    0.169_156_519_395_002_54,
    0.149_595_988_816_576_73,
    0.124_628_971_255_533_87,
    0.095_158_511_682_492_78,
    0.062_253_523_938_647_89,
    0.027_152_459_411_754_095,
];

/// An integral with its error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The value of the integral.
    pub value: f64,
    /// An estimate of its absolute error, usually pessimistic.
    pub error: f64,
}

/// How often a step may be halved; the finest step is then 2^-10 of the coarsest.
const LEVELS: usize = 11;

fn step(level: usize) -> f64 {
    1.0 / (1u32 << level) as f64
}

/// Terms below this share of the sum are outside the range that finer levels visit.
const NEGLIGIBLE: f64 = 1e-19;

struct Node {
    t: f64,
    x: f64,
    complement: f64,
    weight: f64,
}

/// A tabulated substitution `t ↦ (x, complement of x)` with weights `dx/dt`.
pub struct Rule {
    levels: Vec<Vec<Node>>,
    low: f64,
    high: f64,
}

impl Rule {
    fn tabulate(low: i32, high: i32, substitution: impl Fn(f64) -> (f64, f64, f64)) -> Self {
        let node = |t: f64| {
            let (x, complement, weight) = substitution(t);
            Node { t, x, complement, weight }
        };
        let levels = (0..LEVELS)
            .map(|level| {
                let (step, stride) = (step(level), if level == 0 { 1 } else { 2 });
                let (first, last) = (low << level, high << level);
                let offset = i32::from(level > 0);
                (first + offset..=last).step_by(stride).map(|k| node(f64::from(k) * step)).collect()
            })
            .collect();
        Self { levels, low: f64::from(low), high: f64::from(high) }
    }

    /// The integral of `f(x, complement)` to a relative tolerance.
    pub fn integrate(&self, mut f: impl FnMut(f64, f64) -> f64, tolerance: f64) -> Estimate {
        refine(self.low, self.high, tolerance, |level, low, high, sink| {
            let nodes = &self.levels[level];
            let first = nodes.partition_point(|node| node.t < low);
            for node in nodes[first..].iter().take_while(|node| node.t <= high) {
                sink.add(node.t, node.weight * f(node.x, node.complement));
            }
        })
    }
}

/// Tanh-sinh on (0, 1): `f` receives `p` and `1 - p`, each to full relative precision down to 1e-300.
pub static UNIT: LazyLock<Rule> = LazyLock::new(|| {
    Rule::tabulate(-6, 6, |t| {
        let twice = PI * sinh(t);
        let (p, q) = (1.0 / (1.0 + exp(-twice)), 1.0 / (1.0 + exp(twice)));
        (p, q, PI * cosh(t) * p * q)
    })
});

/// Exp-sinh on (0, ∞): `f` receives `x` and `1 / x`, from 1e-137 to 1e137.
pub static HALF_LINE: LazyLock<Rule> = LazyLock::new(|| {
    Rule::tabulate(-6, 6, |t| {
        let exponent = FRAC_PI_2 * sinh(t);
        let x = exp(exponent);
        (x, exp(-exponent), FRAC_PI_2 * cosh(t) * x)
    })
});

/// The standard normal variate: `f` receives `z` and `-z`.
pub static NORMAL: LazyLock<Rule> =
    LazyLock::new(|| Rule::tabulate(-38, 38, |t| (t, -t, exp(-0.5 * t * t) / sqrt(2.0 * PI))));

/// The exponential variate of mean one: `f` receives `y` and `ln y`.
pub static EXPONENTIAL: LazyLock<Rule> = LazyLock::new(|| {
    Rule::tabulate(-6, 7, |t| {
        let logarithm = t - exp(-t);
        let y = exp(logarithm);
        (y, logarithm, (1.0 + exp(-t)) * exp(logarithm - y))
    })
});

/// `∫₀¹ f(p, 1-p) dp` by tanh-sinh; integrable singularities at either end do no harm.
pub fn unit(f: impl FnMut(f64, f64) -> f64, tolerance: f64) -> Estimate {
    UNIT.integrate(f, tolerance)
}

/// `∫₀^∞ f(x) dx` by exp-sinh, for an `f` that decays faster than 1/x and whose scale is about one.
pub fn half_line(mut f: impl FnMut(f64) -> f64, tolerance: f64) -> Estimate {
    HALF_LINE.integrate(|x, _| f(x), tolerance)
}

/// `E f(Z)` for a standard normal `Z`.
pub fn normal(mut f: impl FnMut(f64) -> f64, tolerance: f64) -> Estimate {
    NORMAL.integrate(|z, _| f(z), tolerance)
}

/// `E f(Y, ln Y)` for an exponential `Y` of mean one.
pub fn exponential(f: impl FnMut(f64, f64) -> f64, tolerance: f64) -> Estimate {
    EXPONENTIAL.integrate(f, tolerance)
}

/// `∫ f(t) dt` from `low` to `high` for an analytic `f` that has decayed to nothing at both ends and is resolved by
/// steps between 1 and 2^-10.
pub fn trapezoid(low: f64, high: f64, mut f: impl FnMut(f64) -> f64, tolerance: f64) -> Estimate {
    let (low, high) = (libm::floor(low), libm::ceil(high));
    refine(low, high, tolerance, |level, from, to, sink| {
        let step = step(level);
        let (offset, stride) = if level == 0 { (0.0, step) } else { (step, 2.0 * step) };
        let mut k = libm::ceil((from - low - offset) / stride).max(0.0);
        loop {
            let t = low + offset + k * stride;
            if t > to {
                break;
            }
            sink.add(t, f(t));
            k += 1.0;
        }
    })
}

#[derive(Default)]
struct Sink {
    sum: f64,
    terms: Option<Vec<(f64, f64)>>,
}

impl Sink {
    fn add(&mut self, t: f64, term: f64) {
        self.sum += term;
        if let Some(terms) = &mut self.terms {
            terms.push((t, term.abs()));
        }
    }
}

/// Halves the step until the sum settles. The first two levels visit everything and show where the integrand lives.
fn refine(low: f64, high: f64, tolerance: f64, mut visit: impl FnMut(usize, f64, f64, &mut Sink)) -> Estimate {
    let mut sink = Sink { sum: 0.0, terms: Some(Vec::with_capacity(64)) };
    visit(0, low, high, &mut sink);
    let mut values = [0.0, sink.sum];
    visit(1, low, high, &mut sink);
    let mut value = 0.5 * sink.sum;
    let terms = sink.terms.take().unwrap_or_default();
    let total: f64 = terms.iter().map(|term| term.1).sum();
    let kept = || terms.iter().filter(|term| term.1 > NEGLIGIBLE * total).map(|term| term.0);
    let from = kept().fold(high, f64::min) - 1.0;
    let to = kept().fold(low, f64::max) + 1.0;
    let mut error = f64::INFINITY;
    for level in 2..LEVELS {
        values = [values[1], value];
        visit(level, from.max(low), to.min(high), &mut sink);
        value = sink.sum * step(level);
        error = estimated_error(value, values);
        if error <= tolerance * value.abs() {
            break;
        }
    }
    Estimate { value, error }
}

/// The step from the last value squares the error of an analytic integrand: extrapolates that, cautiously.
fn estimated_error(value: f64, [before_last, last]: [f64; 2]) -> f64 {
    let scale = value.abs();
    let (near, far) = ((value - last).abs() / scale, (value - before_last).abs() / scale);
    // Two values may be close by chance: the last step is not believed to have more than squared the error.
    let near = near.max(far * far);
    if near == 0.0 || near <= 4.0 * f64::EPSILON {
        return near * scale;
    }
    if !(near < 0.1 && far < 0.5) {
        return (value - last).abs();
    }
    let exponent = (ln(near) / ln(far)).clamp(1.0, 1.5);
    10.0 * scale * exp(exponent * ln(near))
}

/// One 16-point panel: `∫ f` over [a, b] when `f` is smooth there.
pub fn panel(a: f64, b: f64, f: &mut impl FnMut(f64) -> f64) -> f64 {
    let (middle, half) = (0.5 * (a + b), 0.5 * (b - a));
    let mut sum = 0.0;
    for (abscissa, weight) in ABSCISSAS.iter().zip(&WEIGHTS) {
        sum += weight * f(middle + half * abscissa);
    }
    half * sum
}

/// `∫ f` over [a, b], bisecting panels until halving one changes it by at most `tolerance` of the whole integral.
///
/// Panels start between those of the `breakpoints` (any order) that lie inside; put every jump and kink of `f` there.
pub fn piecewise(a: f64, b: f64, breakpoints: &[f64], f: impl FnMut(f64) -> f64, tolerance: f64) -> Estimate {
    piecewise_beside(0.0, a, b, breakpoints, f, tolerance)
}

/// [`piecewise`] for an integral that is to be added to something of size `beside`: the tolerance is relative to both.
pub fn piecewise_beside(
    beside: f64,
    a: f64,
    b: f64,
    breakpoints: &[f64],
    mut f: impl FnMut(f64) -> f64,
    tolerance: f64,
) -> Estimate {
    let mut edges: Vec<f64> = breakpoints.iter().copied().filter(|edge| a < *edge && *edge < b).chain([a, b]).collect();
    edges.sort_by(f64::total_cmp);
    edges.dedup();
    let whole: Vec<f64> = edges.windows(2).map(|edge| panel(edge[0], edge[1], &mut f)).collect();
    let mut scale = beside + whole.iter().map(|part| part.abs()).sum::<f64>();
    let mut pending: Vec<_> =
        edges.windows(2).zip(whole).map(|(edge, part)| (edge[0], edge[1], part, 0u32)).rev().collect();
    let (mut value, mut error) = (CompensatedSum::default(), 0.0);
    while let Some((low, high, coarse, depth)) = pending.pop() {
        let middle = 0.5 * (low + high);
        let (left, right) = (panel(low, middle, &mut f), panel(middle, high, &mut f));
        let change = (left + right - coarse).abs();
        scale = scale.max(beside + value.value().abs() + left.abs() + right.abs());
        if change <= tolerance * scale || depth >= 60 || !(low < middle && middle < high) {
            value.add(left + right);
            error += change;
        } else {
            pending.push((middle, high, right, depth + 1));
            pending.push((low, middle, left, depth + 1));
        }
    }
    Estimate { value: value.value(), error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::float::power;
    use approx::assert_relative_eq;

    #[test]
    fn gauss_legendre_is_exact_for_polynomials_of_degree_31() {
        assert_relative_eq!(
            panel(0.0, 2.0, &mut |x: f64| power(x, 31.0)),
            power(2.0, 32.0) / 32.0,
            max_relative = 1e-14
        );
        assert_relative_eq!(WEIGHTS.iter().sum::<f64>(), 2.0, max_relative = 1e-15);
    }

    #[test]
    fn end_singularities_on_the_unit_interval_are_integrated() {
        let logarithm = unit(|p, _| ln(p), 1e-14);
        assert_relative_eq!(logarithm.value, -1.0, max_relative = 1e-14);
        assert!(logarithm.error < 1e-13);
        let roots = unit(|p, q| 1.0 / sqrt(p * q), 1e-13);
        assert_relative_eq!(roots.value, PI, max_relative = 1e-13);
    }

    #[test]
    fn half_line_handles_exponential_and_algebraic_decay() {
        assert_relative_eq!(half_line(|x| exp(-x), 1e-14).value, 1.0, max_relative = 1e-14);
        assert_relative_eq!(half_line(|x| 1.0 / (1.0 + x * x), 1e-14).value, FRAC_PI_2, max_relative = 1e-14);
        assert_relative_eq!(half_line(|x| 1.0 / ((1.0 + x) * sqrt(1.0 + x)), 1e-13).value, 2.0, max_relative = 1e-13);
    }

    #[test]
    fn moments_of_the_tabulated_variates() {
        assert_relative_eq!(normal(|z| z * z, 1e-14).value, 1.0, max_relative = 1e-14);
        assert_relative_eq!(normal(|z| exp(3.0 * z), 1e-14).value, exp(4.5), max_relative = 1e-13);
        assert_relative_eq!(exponential(|y, _| y * y * y, 1e-14).value, 6.0, max_relative = 1e-14);
        assert_relative_eq!(exponential(|_, ln_y| ln_y, 1e-14).value, -0.577_215_664_901_532_9, max_relative = 1e-13);
    }

    #[test]
    fn an_integrand_with_its_own_substitution() {
        assert_relative_eq!(trapezoid(-9.3, 9.1, |t| exp(-t * t), 1e-14).value, sqrt(PI), max_relative = 1e-14);
    }

    #[test]
    fn kinks_at_breakpoints_cost_nothing_and_elsewhere_little() {
        let kink = |x: f64| (x - 0.3).abs();
        assert_relative_eq!(piecewise(0.0, 1.0, &[0.3], kink, 1e-14).value, 0.29, max_relative = 1e-14);
        assert_relative_eq!(piecewise(0.0, 1.0, &[], kink, 1e-12).value, 0.29, max_relative = 1e-11);
        assert_relative_eq!(piecewise(0.0, 1.0, &[], sqrt, 1e-13).value, 2.0 / 3.0, max_relative = 1e-12);
    }
}
