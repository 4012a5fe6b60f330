//! Spending of policies until they are as good as the final value of the worst, as ratios paired by seed.
//!
//! For each seed the level is the worst final value of a metric among the policies, so that every run reaches it by its
//! end. A run's spending is that of the first kept evaluated round that is at least as good. The number is the
//! geometric mean of the ratios, as of [`ratio`](super::ratio). The level is chosen after the runs, which the verdict
//! notes.

use super::ratio::ratio;
use super::{Comparison, Details, Meaning, Measured, Measurement, shown, shown_interval, some, usage};
use crate::laboratory::Context;
use fedgenie_core::math::statistics::Miss;
use fedgenie_core::metric::{Better, named};
use fedgenie_experiment::error::Error;
use fedgenie_experiment::experiment::RunSummary;
use serde::Deserialize;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    scenario: String,
    /// Of its sweep: 0 is the first point.
    #[serde(default)]
    point: usize,
    /// This policy …
    policy: String,
    /// … over each of these.
    against: Vec<String>,
    /// Further policies whose final values enter the choice of the level.
    #[serde(default)]
    beside: Vec<String>,
    /// A metric of rounds, such as `test_rmse`.
    metric: String,
    /// The kind of spending.
    of: Spent,
}

/// The kinds of spending of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Spent {
    /// Bytes of clients, both ways.
    Bytes,
    /// Virtual time.
    Time,
}

/// The evaluated rounds of a run: value, bytes, time.
fn course(run: &RunSummary, metric: &str) -> Vec<(f64, [f64; 2])> {
    let of_point = |point: &fedgenie_experiment::experiment::CurvePoint| {
        let found = point.metrics.iter().find(|(id, _)| id.is_called(metric))?.1;
        Some((found, [point.bytes as f64, point.time_s]))
    };
    run.curve.iter().filter_map(of_point).collect()
}

/// The spending at the first value that is at least as good as a level.
fn spent(course: &[(f64, [f64; 2])], better: Better, level: f64) -> Option<[f64; 2]> {
    let is_there = |value: f64| better.quality(value) >= better.quality(level);
    course.iter().find(|(value, _)| is_there(*value)).map(|(_, spent)| *spent)
}

impl Config {
    pub(super) fn meaning(&self) -> Meaning {
        let unit = if self.of == Spent::Bytes { "bytes" } else { "seconds" };
        let value = format!("{unit} to the worst end of {}", self.metric);
        let of = Some((self.policy.clone(), Comparison::Over));
        Meaning { value, of, others: self.against.clone(), less: None, place: None }
    }

    pub(super) fn measure(&self, context: &Context<'_>) -> Result<Measurement, Error> {
        some(&self.against, "against")?;
        let completed = context.runs(&self.scenario)?;
        let mut policies = vec![&self.policy];
        policies.extend(self.against.iter().chain(&self.beside).filter(|other| **other != self.policy));
        let mut courses = Vec::new();
        let mut better = None;
        for policy in &policies {
            let runs = completed.of(policy, self.point)?;
            let measured = named(&runs[0].measured, &self.metric);
            better = better.or(measured.map(|metric| metric.better));
            courses.push(runs.iter().map(|run| course(run, &self.metric)).collect::<Vec<_>>());
        }
        let Some(better) = better else { return usage(format!("there is no metric {:?}", self.metric)) };
        let seeds = courses[0].len();
        let mut levels = Vec::with_capacity(seeds);
        for seed in 0..seeds {
            let finals = courses.iter().map(|of_policy| of_policy[seed].last().map(|(value, _)| *value));
            let finals: Option<Vec<f64>> = finals.collect();
            let worst = finals.unwrap_or_default().into_iter().filter(|value| value.is_finite());
            match worst.min_by(|x, y| better.quality(*x).total_cmp(&better.quality(*y))) {
                Some(level) => levels.push(level),
                None => return usage(format!("{} is not known in every run", self.metric)),
            }
        }
        let index = match self.of {
            Spent::Bytes => 0,
            Spent::Time => 1,
        };
        let of_policy = |place: usize| -> Option<Vec<f64>> {
            let each = courses[place].iter().zip(&levels);
            each.map(|(course, &level)| spent(course, better, level).map(|spent| spent[index])).collect()
        };
        let unit = if self.of == Spent::Bytes { "bytes" } else { "seconds" };
        let title = format!("{unit} until {} is as good as the worst of the policies ends", self.metric);
        let mut details = Details::new(title, &["policy", unit, "over it", "levels by seed"]);
        let told: Vec<String> = levels.iter().map(|&level| shown(level)).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let Some(mine) = of_policy(0) else { return usage(format!("{} ends without a number", self.policy)) };
        details.rows.push(vec![self.policy.clone(), shown(mean(&mine)), String::new(), told.join(", ")]);
        let mut measured = Vec::new();
        for (place, against) in policies.iter().enumerate().skip(1).take(self.against.len()) {
            let found = of_policy(place).and_then(|theirs| Some((ratio(&mine, &theirs, Miss::USUAL)?, mean(&theirs))));
            let Some((found, theirs)) = found else { return usage(format!("{against} ends without a number")) };
            details.rows.push(vec![
                (*against).clone(),
                shown(theirs),
                shown_interval(found.mean, found.ci95),
                String::new(),
            ]);
            let note = Some("the level was chosen after the runs: the worst final value of each seed".to_owned());
            measured.push(Measured { note, ..Measured::estimate(*against, found) });
        }
        Ok(Measurement::new(measured, vec![details]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_reached_at_the_first_value_as_good() {
        let course = [(3.0, [10.0, 1.0]), (2.0, [20.0, 2.0]), (2.5, [30.0, 4.0]), (1.5, [40.0, 5.0])];
        assert_eq!(spent(&course, Better::Lower, 2.0), Some([20.0, 2.0]));
        assert_eq!(spent(&course, Better::Lower, 1.75), Some([40.0, 5.0]));
        assert_eq!(spent(&course, Better::Lower, 1.0), None);
        assert_eq!(spent(&course, Better::Higher, 2.6), Some([10.0, 1.0]));
        assert_eq!(spent(&course, Better::Higher, 3.1), None);
    }
}
