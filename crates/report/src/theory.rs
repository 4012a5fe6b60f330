//! Fitted growth of the mean regret, and bounds that theorems state of a regret.

use super::courses::{Between, Course, value_at};
use super::model::{Line, LineKind};
use super::study::{Arm, Study, rounded, rounded_x};
use fedgenie_core::math::float;
use fedgenie_core::math::statistics::growth::{Fit, Model, exponent, fit, mean_curve};
use fedgenie_core::rng::Streams;
use fedgenie_experiment::experiment::{CurvePoint, RunSummary, number};

/// The meaning of the thin dashed lines.
pub(super) const FITS: &str = "Thin dashed lines are growth curves, fitted to the means over the last 90 % of the rounds: of \
                               a ln n + b, a n^p + b and a n + b, the one with the lowest Akaike information criterion. The fit \
                               minimises squared errors at 48 rounds, evenly spaced on a logarithmic axis. Each error is weighted by \
                               the inverse variance between seeds (with one seed, relative errors weigh alike), so early rounds, \
                               where seeds agree, weigh most. The points of a curve depend on each other, so the choice of the form \
                               is less certain than the criterion says. The interval of p is a bootstrap over seeds.";

/// The meaning of dotted lines.
pub(super) const BOUND: &str = "Dotted lines are bounds that theorems state of policies' regret, averaged over the seeds' worlds; \
                                they may lie far above the measurements.";

/// How many rounds of a curve are fitted.
const FITTED_ROUNDS: usize = 48;

/// The fewest rounds whose growth is fitted.
const LEAST_ROUNDS: f64 = 100.0;

const RESAMPLES: u32 = 200;

/// A power whose exponent is this near to 0 or 1 is a logarithm or a line, however well its last digits fit.
const SAME: f64 = 0.005;

/// Lines beside a regret over rounds, and sentences on them.
#[derive(Debug, Default)]
pub(super) struct Theory {
    pub lines: Vec<Line>,
    pub words: Vec<String>,
}

impl Theory {
    /// The meanings of its lines.
    pub fn meanings(&self) -> impl Iterator<Item = &'static str> {
        let has = |role| self.lines.iter().any(|line| line.role == role);
        [(LineKind::Fit, FITS), (LineKind::Bound, BOUND)].into_iter().filter(move |&(role, _)| has(role)).map(|of| of.1)
    }
}

/// Fitted growth of every policy's regret, where the meter is the mean regret, and the bound where one is stated.
pub(super) fn of_regret(study: &Study<'_>, meter: &str) -> Theory {
    let mut theory = Theory::default();
    for arm in &study.arms {
        let regrets = courses(arm, |point| point.regret.mean);
        if let Some(last) = common_end(&regrets).filter(|_| meter == "mean")
            && let Some((found, words)) = fitted(&regrets, last)
        {
            theory.lines.push(line(arm, LineKind::Fit, found.formula(), last / 10.0, last, |n| Some(found.value(n))));
            theory.words.push(format!("{}: grows like {words}", arm.label));
        }
        let stated = arm.all_runs().find_map(|run| run.bound.as_ref().filter(|bound| bound.meter == meter));
        let Some(stated) = stated else { continue };
        let bounds = courses(arm, |point| point.bound);
        let Some(last) = common_end(&bounds) else { continue };
        let first = bounds.iter().map(|course| course[0].0).fold(1.0, f64::max);
        let mean = |n| {
            let all = bounds.iter().map(|course| value_at(course, n, Between::Straight));
            Some(all.sum::<f64>() / bounds.len() as f64)
        };
        let name = format!("bound of {}", stated.name);
        theory.words.extend(mean(last).map(|at| format!("{}: {name} after {last} rounds: {}", arm.label, number(at))));
        let bound = line(arm, LineKind::Bound, name, first, last, mean);
        theory.lines.extend(Some(bound).filter(|bound| !bound.points.is_empty()));
    }
    theory
}

/// A quantity of each run over rounds, where it has it.
fn courses(arm: &Arm<'_>, value: impl Fn(&CurvePoint) -> Option<f64>) -> Vec<Course> {
    let course = |run: &RunSummary| -> Course {
        run.curve.iter().filter_map(|point| Some((f64::from(point.round), value(point)?))).collect()
    };
    arm.all_runs().map(course).filter(|course| !course.is_empty()).collect()
}

/// The last round of the shortest of several courses; `None` where there is no course of two rounds.
fn common_end(courses: &[Course]) -> Option<f64> {
    let last = courses.iter().filter_map(|course| course.last()).map(|point| point.0).fold(f64::INFINITY, f64::min);
    (last.is_finite() && last >= 2.0).then_some(last)
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
