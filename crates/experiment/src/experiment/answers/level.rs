//! The time to the level of a metric that all runs reach, where a scenario names no target.
//!
//! # Definition
//! The *common level* of some candidates is the worst of the best values that their runs have in an evaluated round,
//! rounded to the easier side to a power of ten that is at most a hundredth of the way from the untrained model to the
//! best value of all. So every run reaches it, and no watch ends too early. It says nothing if a run hardly learns:
//! there is one only if it lies at least half of that way. Policies that are shown the truth are no candidates.

use super::super::answer::{Answer, Name, Question};
use super::super::compared::Aim;
use super::super::controls::INITIAL;
use super::super::sample::Sample;
use super::super::{RunSummary, Summary, heavy};
use super::Field;
use fedgenie_core::math::float::{floor, log10, power};
use fedgenie_core::math::statistics::survival::Arrival;
use fedgenie_core::metric::Better;
use std::collections::BTreeMap;

/// The least part of the way from the untrained model to the best value.
const LEAST_PART: f64 = 0.5;

/// Which candidate is fastest to the common level of a metric; `None` unless the quantity is a metric at the end of
/// runs whose values on the way are known.
pub(super) fn answer(summary: &Summary, aim: &Aim, field: &Field) -> Option<Answer> {
    let metric = aim.key.strip_prefix("final.")?;
    let runs: Vec<Vec<&RunSummary>> = field.names.iter().map(|name| runs_of(summary, field, name)).collect();
    let all = || runs.iter().flatten().copied();
    let best = |run: &RunSummary| values(run, metric).map(|(.., value)| aim.better.quality(value)).reduce(f64::max);
    let bests: Vec<f64> = all().map(best).collect::<Option<_>>()?;
    let untrained: Vec<f64> = all().filter_map(|run| run.controls.get(INITIAL)?.get(metric).copied()).collect();
    if bests.is_empty() || untrained.len() < bests.len() {
        return None;
    }
    let untrained = aim.better.quality(untrained.iter().sum::<f64>() / untrained.len() as f64);
    let (worst, most) = bests
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &quality| (low.min(quality), high.max(quality)));
    let way = most - untrained;
    if !(way > 0.0 && way.is_finite() && worst.is_finite()) {
        return None;
    }
    let level = rounded_down(worst, floor(log10(way / 100.0)))?;
    if level - untrained < LEAST_PART * way {
        return None;
    }
    let sign = if aim.better == Better::Higher { ">=" } else { "<=" };
    let shown = aim.better.quality(level);
    let key = format!("time_to.{metric} {sign} {shown}");
    let arrival = |run: &&RunSummary| Some((run.seed, arrival(run, metric, aim.better, level)?));
    let has_medians = heavy::are_heavy(all());
    let sample = |runs: &Vec<&RunSummary>| {
        let values: Option<BTreeMap<u64, Arrival>> = runs.iter().map(arrival).collect();
        Some(Sample::of_arrivals(&key, values?).with_medians(has_medians))
    };
    let samples = runs.iter().map(sample).collect::<Option<Vec<Sample>>>()?;
    let field = field.of(summary, field.names.iter().cloned().zip(samples));
    if field.candidates.len() < 2 {
        return None;
    }
    let words = format!("virtual time to {metric} {sign} {shown}");
    let aim = Aim { key, words, unit: "s", better: Better::Lower };
    Some(Answer { is_common_level: true, ..super::answer(summary, &aim, &field, None)? })
}

/// The largest multiple of `10^exponent` that is not above a value, as the decimal number that is written.
fn rounded_down(value: f64, exponent: f64) -> Option<f64> {
    let step = power(10.0, exponent);
    let multiple = floor(value / step);
    let written = |multiple: f64| format!("{:.*}", (-exponent).max(0.0) as usize, multiple * step).parse::<f64>();
    // The quotient of a number on a multiple may have been rounded to either side of it.
    let mut near = [multiple + 1.0, multiple, multiple - 1.0].into_iter().filter_map(|multiple| written(multiple).ok());
    near.find(|&level| level <= value)
}

/// The runs of a candidate.
fn runs_of<'a>(summary: &'a Summary, field: &Field, name: &Name) -> Vec<&'a RunSummary> {
    let is_its = |run: &&RunSummary| match (name, field.question) {
        (Name::Label(label), Question::Policy) => run.arm == *label && run.point == field.point.unwrap_or(0),
        (Name::Point(point), Question::Setting) => Some(&run.arm) == field.policy.as_ref() && run.point == *point,
        _ => false,
    };
    summary.runs.iter().filter(is_its).collect()
}

/// Round, time and value of a metric in each evaluated round that is kept.
fn values<'a>(run: &'a RunSummary, metric: &'a str) -> impl Iterator<Item = (u32, f64, f64)> + 'a {
    let value = move |metrics: &[(fedgenie_core::metric::MetricId, f64)]| {
        metrics.iter().find(|(id, _)| id.to_string() == metric).map(|(_, value)| *value)
    };
    let known = run.curve.iter().filter_map(move |point| Some((point.round, point.time_s, value(&point.metrics)?)));
    known.filter(|(.., value)| value.is_finite())
}

/// When a run first has the level.
fn arrival(run: &RunSummary, metric: &str, better: Better, level: f64) -> Option<Arrival> {
    // Before the first evaluation, all since the start.
    let mut before = (0, 0.0);
    for (round, time, value) in values(run, metric) {
        if better.quality(value) >= level {
            // As of a target: exact if the round before was evaluated.
            let (last, since) = before;
            let is_exact = u32::saturating_add(last, 1) >= round;
            return Some(Arrival { since: if is_exact { time } else { since }, ..Arrival::at(time) });
        }
        before = (round, time);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accuracies on a whole number of examples lie on the levels themselves: none may be rounded above.
    #[test]
    fn a_level_is_never_above_the_value() {
        for examples in [10_u32, 100, 1000, 7] {
            for right in 0..=examples {
                for exponent in [-4.0, -3.0, -2.0, -1.0] {
                    for sign in [1.0, -1.0] {
                        let value = sign * f64::from(right) / f64::from(examples);
                        let level = rounded_down(value, exponent).unwrap();
                        assert!(level <= value && value - level <= 1.001 * power(10.0, exponent), "{value}: {level}");
                    }
                }
            }
        }
        let cases = [((0.3, -1.0), 0.3), ((0.57, -2.0), 0.57), ((-0.252, -1.0), -0.3), ((1234.0, 2.0), 1200.0)];
        for ((value, exponent), level) in cases {
            assert_eq!(rounded_down(value, exponent), Some(level));
        }
    }
}
