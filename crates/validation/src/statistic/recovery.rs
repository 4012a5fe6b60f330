//! Rounds that a metric takes to recover after a round at which it falls.
//!
//! For a metric of rounds, the number of a run is that of the rounds from `round` to the first evaluated one in which
//! the metric is at most `within` below its mean over the last `before` evaluated rounds before `round`. A run that
//! never recovers counts with its rounds from there on; the number of these runs stands beside the verdict. The mean
//! over seeds has Student's t interval.

use super::{Measured, Measurement};
use crate::laboratory::Context;
use fedgenie_core::math::statistics::estimate;
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
    policies: Vec<String>,
    /// A metric of rounds of which more is better, such as `server_accuracy_mean`.
    metric: String,
    /// The first round in which it may have fallen.
    round: u32,
    /// Evaluated rounds before that it is compared with.
    #[serde(default = "ten")]
    before: usize,
    /// Largest distance below the mean that counts as recovered.
    within: f64,
}

const fn ten() -> usize {
    10
}

/// Rounds until the metric has recovered, and whether it did; `None` if it is not known before the round and from it
/// on.
fn rounds(points: &[(u32, f64)], config: &Config) -> Option<(u32, bool)> {
    let Config { round, before, within, .. } = *config;
    let start = points.partition_point(|(at, _)| *at < round);
    let (earlier, later) = points.split_at(start);
    let known = &earlier[earlier.len().saturating_sub(before)..];
    let (last, _) = *later.last()?;
    if known.is_empty() {
        return None;
    }
    let level = known.iter().map(|(_, value)| value).sum::<f64>() / known.len() as f64 - within;
    let back = later.iter().find(|(_, value)| *value >= level);
    Some((back.map_or(last, |(at, _)| *at) - round + 1, back.is_some()))
}

impl Config {
    fn of(&self, run: &RunSummary) -> Result<(u32, bool), Error> {
        let points: Vec<(u32, f64)> = run
            .curve
            .iter()
            .filter_map(|point| {
                let found = point.metrics.iter().find(|(id, _)| id.is_called(&self.metric));
                found.map(|(_, value)| (point.round, *value))
            })
            .collect();
        rounds(&points, self).ok_or_else(|| {
            let Self { metric, round, .. } = self;
            Error::Usage(format!("{metric} of {} is not known before round {round} and after it", run.arm))
        })
    }

    pub(super) fn measure(&self, context: &Context<'_>) -> Result<Measurement, Error> {
        super::some(&self.policies, "policies")?;
        let completed = context.runs(&self.scenario)?;
        let mut measured = Vec::new();
        for policy in &self.policies {
            let runs = completed.of(policy, self.point)?;
            let found = runs.iter().map(|run| self.of(run)).collect::<Result<Vec<_>, _>>()?;
            let values: Vec<f64> = found.iter().map(|(rounds, _)| f64::from(*rounds)).collect();
            let Some(mean) = estimate(&values) else { return super::usage(format!("{policy} has no runs")) };
            let missed = found.iter().filter(|(_, is_back)| !is_back).count();
            let note = (missed > 0).then(|| format!("never back: {missed} of {}", found.len()));
            measured.push(Measured { note, ..Measured::estimate(policy, mean) });
        }
        Ok(Measurement::new(measured, Vec::new()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_until_it_is_back() {
        let config = |round, before, within| Config {
            scenario: String::new(),
            point: 0,
            policies: Vec::new(),
            metric: String::new(),
            round,
            before,
            within,
        };
        let points = [(2, 0.5), (4, 0.7), (6, 0.8), (8, 0.2), (10, 0.6), (12, 0.74), (14, 0.9)];
        // The mean of 0.7 and 0.8 is back in round 14, in round 12 but for 0.05.
        assert_eq!(rounds(&points, &config(7, 2, 0.0)), Some((8, true)));
        assert_eq!(rounds(&points, &config(7, 2, 0.05)), Some((6, true)));
        assert_eq!(rounds(&points, &config(8, 2, 0.05)), Some((5, true)));
        assert_eq!(rounds(&points[..6], &config(7, 2, 0.0)), Some((6, false)), "it is not back at the end");
        assert_eq!(rounds(&points, &config(7, 1, 0.7)), Some((2, true)), "it never fell so far");
        assert_eq!(rounds(&points, &config(2, 2, 0.0)), None);
        assert_eq!(rounds(&points, &config(15, 2, 0.0)), None);
    }
}
