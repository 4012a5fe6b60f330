//! How fast a curve grows: `a ln n + b`, `a n^p + b` or `a n + b`.
//!
//! # Definition
//! Weighted least squares on points `(n, value, weight)`. The power law is fitted in the form
//! `b' + a'·((n/n₀)^p − 1)/p`, whose limit at `p = 0` is the logarithm: `p` tells apart, in one number, curves that
//! become flat (`p < 0`), logarithmic ones (0), powers, and lines (1). `p` minimises the sum of squares over `[−1, 2]`:
//! a grid of steps of
//! 0.05, then golden sections around the best.
//!
//! Models are compared by Akaike's criterion with unknown scale of the errors, `N ln(Σ w r²/N) + 2k`, `k` counting `p`
//! and the scale; smaller is better. Points of one curve depend on each other, so that differences look more certain
//! than they are; the interval of `p` is therefore a bootstrap over whole curves (one block per seed), by percentiles
//! that are expanded for few seeds: with `n` of them the levels are `Φ(∓ t_{0.975, n−1}·√(n/(n−1)))` in the place of
//! 2.5 % and 97.5 %.
//!
//! # Source
//! H. Akaike, "A new look at the statistical model identification", IEEE Trans. Automatic Control 1974; B. Efron,
//! "Bootstrap methods", Annals of Statistics 1979; T. Hesterberg, "What teachers should know about the bootstrap",
//! American Statistician 2015.

use crate::math::float::{floor, ln, log10, power, sqrt};
use crate::math::special::normal_tail;
use crate::rng::{Purpose, Streams};
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// One point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Place, above 0.
    pub n: f64,
    /// Value there.
    pub value: f64,
    /// Weight of its squared residual, above 0.
    pub weight: f64,
}

/// A form of growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// `a ln n + b`
    Logarithmic,
    /// `a n^p + b`
    Power,
    /// `a n + b`
    Linear,
}

/// A fitted model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// The form.
    pub model: Model,
    /// The exponent: 0 for the logarithm, 1 for a line.
    pub p: f64,
    /// Akaike's criterion, up to a term that all models of the same points share.
    pub aic: f64,
    level: f64,
    slope: f64,
    scale: f64,
}

impl Fit {
    /// The fitted value at a place.
    pub fn value(&self, n: f64) -> f64 {
        self.level + self.slope * basis(n / self.scale, self.p)
    }

    /// `a` and `b` of the model's formula.
    pub fn coefficients(&self) -> (f64, f64) {
        if self.p.abs() < FLAT {
            return (self.slope, self.level - self.slope * ln(self.scale));
        }
        (self.slope / self.p / power(self.scale, self.p), self.level - self.slope / self.p)
    }

    /// The formula with its numbers, to four significant digits, or to more where they nearly cancel: worked out by
    /// hand it gives the fitted values.
    pub fn formula(&self) -> String {
        let digits = (4..12).find(|&digits| self.is_given_by(digits)).unwrap_or(12);
        let (a, b) = self.coefficients();
        let sign = if b < 0.0 { "−" } else { "+" };
        let text = |value: f64| significant(value, digits);
        let (a, b) = (text(a), text(b.abs()));
        match self.model {
            Model::Logarithmic => format!("{a} ln n {sign} {b}"),
            Model::Power => format!("{a} n^{} {sign} {b}", text(self.p)),
            Model::Linear => format!("{a} n {sign} {b}"),
        }
    }

    /// Whether coefficients of so many digits give the fitted values to half a percent, over two decades of places.
    fn is_given_by(&self, digits: usize) -> bool {
        let few = |value: f64| format!("{value:.*e}", digits - 1).parse().unwrap_or(value);
        let (a, b) = self.coefficients();
        let (a, b, p): (f64, f64, f64) = (few(a), few(b), few(self.p));
        (-10..=10).all(|tenth| {
            let n = self.scale * power(10.0, 0.1 * f64::from(tenth));
            let growth = if self.model == Model::Logarithmic { ln(n) } else { power(n, p) };
            let value = self.value(n);
            (a * growth + b - value).abs() <= 5e-3 * value.abs().max(0.1 * self.slope.abs())
        })
    }
}

/// A number to so many significant digits; powers of ten only where zeros would fill a line.
fn significant(value: f64, digits: usize) -> String {
    let magnitude = value.abs();
    if value == 0.0 || !(1e-9..1e12).contains(&magnitude) {
        return if value == 0.0 { "0".to_owned() } else { format!("{value:.*e}", digits - 1) };
    }
    // Rounding may add a digit: 9.9999 becomes 10.00.
    let rounded: f64 = format!("{value:.*e}", digits - 1).parse().unwrap_or(value);
    let after = digits as i32 - 1 - floor(log10(rounded.abs())) as i32;
    format!("{rounded:.*}", after.max(0) as usize)
}

/// Exponents nearer to 0 than this are 0.
const FLAT: f64 = 1e-9;
const RANGE: [f64; 2] = [-1.0, 2.0];
const GRID: usize = 60;

/// `(x^p − 1)/p`, at `p = 0` the logarithm.
fn basis(x: f64, p: f64) -> f64 {
    if p.abs() < FLAT { ln(x) } else { (power(x, p) - 1.0) / p }
}

/// All three models, in the order of [`Model`]; `None` if there are fewer than five points or all values are the same.
///
/// # Panics
/// If a place or weight is not positive, or anything is not finite.
pub fn fit(points: &[Point]) -> Option<[Fit; 3]> {
    for Point { n, value, weight } in points {
        assert!(*n > 0.0 && *weight > 0.0, "places and weights are positive, found {n} and {weight}");
        assert!(n.is_finite() && value.is_finite() && weight.is_finite(), "points are finite");
    }
    if points.len() < 5 || points.windows(2).all(|pair| pair[0].value == pair[1].value) {
        return None;
    }
    let scale = centre(points);
    let model = |model, p| {
        let Line { level, slope, squares } = line(points, |n| basis(n / scale, p));
        let aic = criterion(squares, points.len(), if model == Model::Power { 4.0 } else { 3.0 });
        Fit { model, p, aic, level, slope, scale }
    };
    let p = best_exponent(points, scale);
    Some([model(Model::Logarithmic, 0.0), model(Model::Power, p), model(Model::Linear, 1.0)])
}

/// Akaike's criterion of `a √(n ln n) + b`, comparable with those of [`fit`] on the same points: the rate of upper
/// confidence bounds whose gaps may be arbitrarily small.
///
/// # Panics
/// If a place is not above 1.
pub fn gap_free_aic(points: &[Point]) -> f64 {
    assert!(points.iter().all(|point| point.n > 1.0), "√(n ln n) needs n > 1");
    let scale = centre(points);
    let squares = line(points, |n| sqrt(n / scale * ln(n))).squares;
    criterion(squares, points.len(), 3.0)
}

fn criterion(squares: f64, count: usize, parameters: f64) -> f64 {
    let count = count as f64;
    // A perfect fit has no logarithm.
    count * ln((squares / count).max(f64::MIN_POSITIVE)) + 2.0 * parameters
}

/// The geometric mean of the places, for conditioning.
fn centre(points: &[Point]) -> f64 {
    libm::exp(points.iter().map(|point| ln(point.n)).sum::<f64>() / points.len() as f64)
}

struct Line {
    level: f64,
    slope: f64,
    /// Weighted sum of squared residuals.
    squares: f64,
}

/// Weighted least squares of the values on a function of the place.
fn line(points: &[Point], basis: impl Fn(f64) -> f64) -> Line {
    let (mut weights, mut x_mean, mut y_mean) = (0.0, 0.0, 0.0);
    let places: Vec<f64> = points.iter().map(|point| basis(point.n)).collect();
    for (point, x) in points.iter().zip(&places) {
        weights += point.weight;
        x_mean += point.weight * x;
        y_mean += point.weight * point.value;
    }
    (x_mean, y_mean) = (x_mean / weights, y_mean / weights);
    let (mut xx, mut xy) = (0.0, 0.0);
    for (point, x) in points.iter().zip(&places) {
        xx += point.weight * (x - x_mean) * (x - x_mean);
        xy += point.weight * (x - x_mean) * (point.value - y_mean);
    }
    let slope = if xx > 0.0 { xy / xx } else { 0.0 };
    let level = y_mean - slope * x_mean;
    let residual = |(point, x): (&Point, &f64)| {
        let residual = point.value - level - slope * x;
        point.weight * residual * residual
    };
    Line { level, slope, squares: points.iter().zip(&places).map(residual).sum() }
}

fn best_exponent(points: &[Point], scale: f64) -> f64 {
    let squares = |p: f64| line(points, |n| basis(n / scale, p)).squares;
    let step = (RANGE[1] - RANGE[0]) / GRID as f64;
    let place = |index: usize| RANGE[0] + step * index as f64;
    let best = (0..=GRID).map(|index| (squares(place(index)), place(index)));
    let (_, best) = best.min_by(|one, two| one.0.total_cmp(&two.0)).expect("the grid has points");
    let (mut low, mut high) = ((best - step).max(RANGE[0]), (best + step).min(RANGE[1]));
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    while high - low > 1e-7 {
        let (left, right) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
        if squares(left) <= squares(right) { high = right } else { low = left }
    }
    0.5 * (low + high)
}

/// The mean of several curves at the same places as points to be fitted, weighted by the inverse variance between
/// curves.
///
/// `curves` holds one list of values per seed, as long as `places`. Of a single curve all relative errors count alike.
///
/// # Panics
/// If a curve is not as long as `places`, or there is none.
pub fn mean_curve(places: &[f64], curves: &[Vec<f64>]) -> Vec<Point> {
    assert!(
        !curves.is_empty() && curves.iter().all(|curve| curve.len() == places.len()),
        "a value per curve and place"
    );
    let count = curves.len() as f64;
    let point = |(index, &n): (usize, &f64)| {
        let mean = curves.iter().map(|curve| curve[index]).sum::<f64>() / count;
        let square = |curve: &Vec<f64>| (curve[index] - mean) * (curve[index] - mean);
        let variance = match curves.len() {
            1 => mean * mean,
            _ => curves.iter().map(square).sum::<f64>() / (count - 1.0),
        };
        // Curves that agree to the last digits do not weigh infinitely much.
        let floor = (1e-6 * mean) * (1e-6 * mean) + 1e-24;
        Point { n, value: mean, weight: 1.0 / variance.max(floor) }
    };
    places.iter().enumerate().map(point).collect()
}

/// The exponent of the mean curve, and its 95 % interval by bootstrap over curves; `None` where [`fit`] gives none. The
/// interval needs at least three curves.
pub fn exponent(
    places: &[f64],
    curves: &[Vec<f64>],
    resamples: u32,
    streams: &Streams,
) -> Option<(f64, Option<[f64; 2]>)> {
    let mut points = mean_curve(places, curves);
    let [_, fitted, _] = fit(&points)?;
    if curves.len() < 3 {
        return Some((fitted.p, None));
    }
    let scale = centre(&points);
    let mut found: Vec<f64> = (0..resamples)
        .map(|resample| {
            let mut rng = streams.stream(Purpose::Resampling, resample, 0);
            let chosen: Vec<usize> = curves.iter().map(|_| rng.below(curves.len() as u64) as usize).collect();
            for (index, point) in points.iter_mut().enumerate() {
                point.value = chosen.iter().map(|&curve| curves[curve][index]).sum::<f64>() / curves.len() as f64;
            }
            best_exponent(&points, scale)
        })
        .collect();
    found.sort_by(f64::total_cmp);
    let level = expanded_level(curves.len());
    Some((fitted.p, Some([super::quantile(&found, level), super::quantile(&found, 1.0 - level)])))
}

/// The lower level of an expanded percentile interval of `n` values: plain percentiles would be those of a normal law
/// with the divisor n, too narrow on both counts.
fn expanded_level(n: usize) -> f64 {
    let degrees = (n - 1) as f64;
    let student = StudentsT::new(0.0, 1.0, degrees).expect("at least one degree of freedom").inverse_cdf(0.975);
    normal_tail(student * sqrt(n as f64 / degrees))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Vec<f64> {
        (0..60).map(|k| power(10.0, 3.0 + f64::from(k) / 20.0)).collect()
    }

    fn of(value: impl Fn(f64) -> f64) -> [Fit; 3] {
        let curve: Vec<f64> = places().into_iter().map(value).collect();
        fit(&mean_curve(&places(), &[curve])).unwrap()
    }

    #[test]
    fn exact_curves_give_their_own_parameters() {
        let [_, fitted, _] = of(|n| 0.5 * power(n, 0.6) + 7.0);
        approx::assert_relative_eq!(fitted.p, 0.6, max_relative = 1e-5);
        let (a, b) = fitted.coefficients();
        approx::assert_relative_eq!(a, 0.5, max_relative = 1e-4);
        approx::assert_relative_eq!(b, 7.0, max_relative = 1e-3);
        approx::assert_relative_eq!(fitted.value(1e5), 507.0, max_relative = 1e-6);

        let [log, fitted, _] = of(|n| 3.0 * ln(n) - 2.0);
        assert!(fitted.p.abs() < 1e-4, "{fitted:?}");
        approx::assert_relative_eq!(log.coefficients().0, 3.0, max_relative = 1e-9);
        approx::assert_relative_eq!(log.coefficients().1, -2.0, max_relative = 1e-7);

        let [_, fitted, line] = of(|n| 0.25 * n + 4.0);
        approx::assert_relative_eq!(fitted.p, 1.0, max_relative = 1e-5);
        approx::assert_relative_eq!(line.coefficients().0, 0.25, max_relative = 1e-9);
        approx::assert_relative_eq!(line.coefficients().1, 4.0, max_relative = 1e-6);

        let [_, fitted, _] = of(|n| 5.0 - 100.0 * power(n, -0.5));
        approx::assert_relative_eq!(fitted.p, -0.5, max_relative = 1e-4);
    }

    /// Two lines through three points with weights 1, 1, 2: by the normal equations by hand.
    #[test]
    fn weights_count_as_repetitions() {
        let point = |n: f64, value: f64, weight: f64| Point { n, value, weight };
        let weighted = [
            point(1.0, 1.0, 1.0),
            point(2.0, 3.0, 1.0),
            point(3.0, 2.0, 2.0),
            point(4.0, 5.0, 1.0),
            point(5.0, 5.0, 3.0),
        ];
        let mut repeated = Vec::new();
        for point in weighted {
            repeated.extend((0..point.weight as usize).map(|_| Point { weight: 1.0, ..point }));
        }
        let [_, _, one] = fit(&weighted).unwrap();
        let [_, _, two] = fit(&repeated).unwrap();
        let (one, two) = (one.coefficients(), two.coefficients());
        approx::assert_relative_eq!(one.0, two.0, max_relative = 1e-9);
        approx::assert_relative_eq!(one.1, two.1, max_relative = 1e-9, epsilon = 1e-12);
    }

    #[test]
    fn the_criterion_prefers_the_true_model_under_noise() {
        let streams = Streams::new(7);
        let noisy = |value: fn(f64) -> f64| {
            let curve = |seed: u32| -> Vec<f64> {
                let mut rng = streams.stream(Purpose::Resampling, seed, 1);
                places().into_iter().map(|n| value(n) * (1.0 + 0.01 * (rng.uniform() - 0.5))).collect()
            };
            let curves: Vec<Vec<f64>> = (0..20).map(curve).collect();
            let fits = fit(&mean_curve(&places(), &curves)).unwrap();
            let best = fits.iter().min_by(|one, two| one.aic.total_cmp(&two.aic)).unwrap();
            (best.model, exponent(&places(), &curves, 200, &streams).unwrap())
        };
        let (model, (p, interval)) = noisy(|n| power(n, 0.6));
        let [low, high] = interval.unwrap();
        assert!(model == Model::Power && low < p && p < high && low > 0.55 && high < 0.65, "{p} {interval:?}");
        assert_eq!(noisy(|n| n).0, Model::Linear);
        assert_eq!(noisy(ln).0, Model::Logarithmic);
    }

    #[test]
    fn the_gap_free_rate_fits_its_own_curve_best() {
        let curve: Vec<f64> = places().into_iter().map(|n| 2.0 * sqrt(n * ln(n)) + 1.0).collect();
        let points = mean_curve(&places(), &[curve]);
        let others = fit(&points).unwrap().map(|fit| fit.aic);
        assert!(others.iter().all(|aic| *aic > gap_free_aic(&points) + 100.0), "{others:?}");
    }

    /// t(0.975, 19) = 2.0930, times √(20/19) is 2.1474, beyond which a normal law has 0.01588; of many seeds 0.025.
    #[test]
    fn percentiles_are_expanded_for_few_seeds() {
        approx::assert_relative_eq!(expanded_level(20), 0.015_88, max_relative = 1e-3);
        approx::assert_relative_eq!(expanded_level(100_000), 0.025, max_relative = 1e-3);
    }

    /// `a n^p + b` or one of the others, as it is printed.
    fn evaluated(formula: &str, n: f64) -> f64 {
        let words: Vec<&str> = formula.split(' ').collect();
        let number = |text: &str| text.parse::<f64>().unwrap_or_else(|_| panic!("{text} of {formula}"));
        let growth = match words[1] {
            "ln" => ln(n),
            "n" => n,
            power_of => power(n, number(power_of.strip_prefix("n^").unwrap())),
        };
        let [sign, b] = words[words.len() - 2..] else { unreachable!() };
        number(words[0]) * growth + if sign == "−" { -number(b) } else { number(b) }
    }

    #[test]
    fn a_printed_formula_gives_the_fitted_values() {
        let curves: [fn(f64) -> f64; 7] = [
            |n| 2e-5 * n + 0.01,
            |n| 3.0 * ln(n) - 2.0,
            |n| 4e-7 * power(n, 1.3) + 2e-4,
            |n| 0.5 * power(n, 0.62) + 7.0,
            |n| 700.0 * power(n, 0.012) - 650.0,
            |n| 5.0 - 100.0 * power(n, -0.5),
            |n| 12_345.678 * n - 1e6,
        ];
        for curve in curves {
            for found in of(curve) {
                let formula = found.formula();
                assert!(!formula.contains('e'), "{formula}");
                for n in [4e3, 1e4, 3e4, 3e5] {
                    let (printed, value) = (evaluated(&formula, n), found.value(n));
                    let slack = 0.01 * value.abs().max(0.1 * found.slope.abs());
                    assert!((printed - value).abs() <= slack, "{formula} at {n}: {printed}, fitted {value}");
                }
            }
        }
        assert_eq!(
            [1.5, 99_996.0, 0.000_123_456, -2.0].map(|value| significant(value, 4)),
            ["1.500", "100000", "0.0001235", "-2.000"]
        );
    }

    #[test]
    fn what_does_not_grow_has_no_exponent() {
        assert_eq!(fit(&mean_curve(&places(), &[vec![0.0; 60]])), None);
    }
}
