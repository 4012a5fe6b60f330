//! Fitted growth of the mean regret, and the bound of Theorem 1.

use super::courses::{Between, Course, value_at};
use super::model::{Line, LineKind};
use super::study::{Arm, Study, rounded, rounded_x};
use fedgenie_core::math::float;
use fedgenie_core::math::statistics::growth::{Fit, Model, exponent, fit, mean_curve};
use fedgenie_core::oracle::bound::Bound;
use fedgenie_core::rng::Streams;
use fedgenie_experiment::experiment::{RunSummary, number};

/// The meaning of the thin dashed lines.
pub(super) const FITS: &str = "Thin dashed lines are growth curves, fitted to the means over the last 90 % of the rounds: of \
                               a ln n + b, a n^p + b and a n + b, the one with the lowest Akaike information criterion. The fit \
                               minimises squared errors at 48 rounds, evenly spaced on a logarithmic axis. Each error is weighted by \
                               the inverse variance between seeds (with one seed, relative errors weigh alike), so early rounds, \
                               where seeds agree, weigh most. The points of a curve depend on each other, so the choice of the form \
                               is less certain than the criterion says. The interval of p is a bootstrap over seeds.";

/// The meaning of the dotted line.
pub(super) const BOUND: &str = "The dotted line is the bound of Theorem 1 (Ben Ami, Cohen, Zhao, 2025), averaged over the seeds' \
                                worlds; it may lie far above the measurements.";

/// How many rounds of a curve are fitted.
const FITTED_ROUNDS: usize = 48;

/// The fewest rounds whose growth is fitted.
const LEAST_ROUNDS: f64 = 100.0;

const RESAMPLES: u32 = 200;

/// A power whose exponent is this near to 0 or 1 is a logarithm or a line, however well its last digits fit.
const SAME: f64 = 0.005;

/// Lines beside the mean regret over rounds, and sentences on them.
#[derive(Debug, Default)]
pub(super) struct Theory {
    pub lines: Vec<Line>,
    pub words: Vec<String>,
    pub has_bound: bool,
}

/// Fitted growth of every policy's mean regret, and the bound where it is known.
pub(super) fn of_mean_regret(study: &Study<'_>) -> Theory {
    let mut theory = Theory::default();
    for arm in &study.arms {
        let course = |run: &RunSummary| -> Course {
            run.curve.iter().filter_map(|point| Some((f64::from(point.round), point.regret.mean?))).collect()
        };
        let courses: Vec<Course> = arm.all_runs().map(course).filter(|course| !course.is_empty()).collect();
        let last = courses.iter().filter_map(|course| course.last()).map(|point| point.0).fold(f64::INFINITY, f64::min);
        if !last.is_finite() || last < 2.0 {
            continue;
        }
        if let Some((found, words)) = fitted(&courses, last) {
            theory.lines.push(line(arm, LineKind::Fit, found.formula(), last / 10.0, last, |n| Some(found.value(n))));
            theory.words.push(format!("{}: grows like {words}", arm.label));
        }
        let bounds: Vec<Bound> = arm.all_runs().filter_map(|run| run.bound).collect();
        if !bounds.is_empty() {
            let mean = |n| Some(bounds.iter().map(|bound| bound.at(n)).sum::<Option<f64>>()? / bounds.len() as f64);
            let bound = line(arm, LineKind::Bound, "bound of Theorem 1".to_owned(), 1.0, last, mean);
            theory.has_bound |= !bound.points.is_empty();
            let words = |value| format!("{}: bound of Theorem 1 after {last} rounds: {}", arm.label, number(value));
            theory.words.extend(mean(last).map(words));
            theory.lines.extend(Some(bound).filter(|bound| !bound.points.is_empty()));
        }
    }
    theory
}

/// The form that fits best, and a sentence on it; `None` for a short or a constant curve.
fn fitted(courses: &[Course], last: f64) -> Option<(Fit, String)> {
    if last < LEAST_ROUNDS {
        return None;
    }
    let rounds = spaced(last / 10.0, last);
    let at_rounds = |course: &Course| rounds.iter().map(|&n| value_at(course, n, Between::Straight)).collect();
    let curves: Vec<Vec<f64>> = courses.iter().map(at_rounds).collect();
    if curves.iter().flatten().any(|value| !value.is_finite()) {
        return None;
    }
    let forms = fit(&mean_curve(&rounds, &curves))?;
    let is_other = |found: &Fit| found.model == Model::Power && [0.0, 1.0].iter().any(|p| (found.p - p).abs() < SAME);
    let best = forms.into_iter().filter(|found| !is_other(found)).min_by(|one, two| one.aic.total_cmp(&two.aic))?;
    let (p, interval) = exponent(&rounds, &curves, RESAMPLES, &Streams::new(1))?;
    let interval = interval.map_or_else(String::new, |[low, high]| format!(", 95 % interval {low:.3} to {high:.3}"));
    Some((best, format!("{}; as a power, p = {p:.3}{interval}", best.formula())))
}

/// Rounds evenly spread on a logarithmic axis.
fn spaced(first: f64, last: f64) -> Vec<f64> {
    (0..FITTED_ROUNDS)
        .map(|step| first * float::power(last / first, step as f64 / (FITTED_ROUNDS - 1) as f64))
        .collect()
}

fn line(
    arm: &Arm<'_>,
    role: LineKind,
    label: String,
    first: f64,
    last: f64,
    value: impl Fn(f64) -> Option<f64>,
) -> Line {
    let points = spaced(first.max(1.0), last).into_iter().filter_map(|n| Some((rounded_x(n), rounded(value(n)?))));
    Line {
        series: arm.label.clone(),
        role,
        label: Some(label),
        points: points.filter(|point| point.1.is_finite()).collect(),
        band: Vec::new(),
        is_staircase: false,
        has_dots: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_told_from_its_curve() {
        let course =
            |value: fn(f64) -> f64| -> Course { (1..=5_000).map(|n| (f64::from(n), value(f64::from(n)))).collect() };
        let (best, words) = fitted(&[course(|n| 3.0 * float::ln(n) + 2.0)], 5_000.0).unwrap();
        assert!((best.value(2_500.0) - (3.0 * float::ln(2_500.0) + 2.0)).abs() < 0.01, "{words}");
        assert!(words.contains("ln n") && words.contains("p = ") && !words.contains("interval"), "{words}");
        let (best, words) = fitted(&vec![course(|n| 2.0 * n); 3], 5_000.0).unwrap();
        assert!((best.value(100.0) - 200.0).abs() < 0.1 && words.contains("interval"), "{words}");
        assert!(fitted(&[course(|_| 0.0)], 5_000.0).is_none() && fitted(&[course(|n| n)], 99.0).is_none());
    }
}
