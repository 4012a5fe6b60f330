//! Selections per group of clients over time.
//!
//! Groups are in the order of the scenario, from the fastest to the slowest; windows are the recorded rounds. With a
//! sweep, numbers are compared between its points, seed by seed.

use super::{Details, Measured, Measurement, runs_of, shown, usage};
use crate::laboratory::Context;
use fedgenie_core::math::statistics::{Estimate, estimate, paired_difference};
use fedgenie_core::record::Record;
use fedgenie_experiment::error::Error;
use fedgenie_experiment::scenario::{Point, points};
use fedgenie_simulator::metrics::gini;
use fedgenie_simulator::recorder::{RoundMark, RoundSummary, Sink};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    scenario: String,
    policy: String,
}

/// Selections per group in each window.
#[derive(Default)]
struct Windows(Vec<Vec<f64>>);

impl Sink for Windows {
    fn record(&mut self, _: &Record<'_>) -> io::Result<()> {
        Ok(())
    }

    fn round(&mut self, summary: &RoundSummary<'_>, is_recorded: bool, _: &RoundMark) -> io::Result<()> {
        if is_recorded {
            self.0.push(summary.group_selections.iter().map(|(_, count)| *count as f64).collect());
        }
        Ok(())
    }
}

/// Share of the selections that went to a group.
fn share_of(counts: &[f64], group: usize) -> f64 {
    counts[group] / counts.iter().sum::<f64>()
}

/// Share of the selections that went to the slower half of the groups.
fn slow_share(counts: &[f64]) -> f64 {
    counts[counts.len() / 2..].iter().sum::<f64>() / counts.iter().sum::<f64>()
}

/// The largest share of a group over the smallest; infinite where a group has none.
fn imbalance(counts: &[f64]) -> f64 {
    let (low, high) = counts.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), &n| (low.min(n), high.max(n)));
    high / low
}

/// The Gini index over groups.
fn inequality(counts: &[f64]) -> f64 {
    gini(&counts.iter().map(|&count| count as u32).collect::<Vec<u32>>())
}

/// The least and the largest change from point to point: the number rises all the way if the least is positive, and
/// falls all the way if the largest is negative.
fn extremes(label: &str, rises: &[Estimate]) -> Vec<Measured> {
    let by_mean = |one: &&Estimate, two: &&Estimate| one.mean.total_cmp(&two.mean);
    let ends = [("least", rises.iter().min_by(by_mean)), ("largest", rises.iter().max_by(by_mean))];
    let of = |(which, found): (&str, Option<&Estimate>)| {
        Some(Measured::estimate(format!("{label}: {which} rise from point to point"), *found?))
    };
    ends.into_iter().filter_map(of).collect()
}

impl Config {
    pub(super) fn measure(&self, context: &Context<'_>) -> Result<Measurement, Error> {
        let experiment = context.experiment(&self.scenario)?;
        let runs = runs_of(&experiment, &self.policy)?;
        let windows = context.map(&runs, |run| {
            let world = experiment.world_of(run, context.laboratory.cache())?;
            let mut sink = Windows::default();
            experiment.run_one(run, &world, &mut sink, context.laboratory.threads(), None)?;
            let Windows(windows) = sink;
            if windows.len() < 2 || windows[0].len() < 2 {
                return usage("the scenario needs named groups, and more rounds than two windows of record.every");
            }
            Ok(windows)
        })?;
        let of_point = |point: usize, number: &dyn Fn(&[Vec<f64>]) -> f64| -> Vec<f64> {
            let mine = runs.iter().zip(&windows).filter(|(run, _)| run.point == point);
            mine.map(|(_, windows)| number(windows)).collect()
        };
        let last = |windows: &[Vec<f64>]| windows[windows.len() - 1].clone();
        let total = |windows: &[Vec<f64>]| -> Vec<f64> {
            (0..windows[0].len()).map(|group| windows.iter().map(|window| window[group]).sum()).collect()
        };
        type Number<'n> = (&'n str, &'n dyn Fn(&[Vec<f64>]) -> f64);
        let numbers: [Number<'_>; 6] = [
            ("first window: most over least selected group", &|windows| imbalance(&windows[0])),
            ("last window: share of the fastest group", &|windows| share_of(&last(windows), 0)),
            ("last window: share of the slowest group", &|windows| {
                let counts = last(windows);
                share_of(&counts, counts.len() - 1)
            }),
            ("share of the fastest group: rise from the first window to the last", &|windows| {
                share_of(&last(windows), 0) - share_of(&windows[0], 0)
            }),
            ("share of the slower half", &|windows| slow_share(&total(windows))),
            ("Gini index over groups", &|windows| inequality(&total(windows))),
        ];
        let settings = |(point, _): &(Point, _)| point.settings.iter().cloned().collect::<BTreeMap<_, _>>();
        let names = points::names(&experiment.points.iter().map(settings).collect::<Vec<_>>());
        let mut measured = Vec::new();
        for (label, number) in &numbers {
            for (point, name) in names.iter().enumerate() {
                match estimate(&of_point(point, number)) {
                    Some(found) => measured.push(Measured::estimate(format!("{label} ({name})"), found)),
                    None => measured.push(Measured::exact(format!("{label} ({name})"), f64::INFINITY, 1)),
                }
            }
            let rises = (1..names.len())
                .filter_map(|point| paired_difference(&of_point(point, number), &of_point(point - 1, number)));
            measured.extend(extremes(label, &rises.collect::<Vec<_>>()));
        }
        let details = names.iter().enumerate().map(|(point, name)| {
            let groups: Vec<String> = (1..=windows[0][0].len()).map(|group| format!("group {group}")).collect();
            let mut columns = vec!["window"];
            columns.extend(groups.iter().map(String::as_str));
            let mut details = Details::new(format!("Selections per group and window, in percent ({name})"), &columns);
            let count = windows[0].len();
            for window in [0, 1, count / 4, count / 2, count - 1] {
                let share = |group: usize| {
                    let shares = of_point(point, &|windows| {
                        100.0 * windows[window][group] / windows[window].iter().sum::<f64>()
                    });
                    shares.iter().sum::<f64>() / shares.len() as f64
                };
                let cells = (0..groups.len()).map(|group| shown(share(group)));
                details.rows.push([format!("{}", window + 1)].into_iter().chain(cells).collect());
            }
            details
        });
        Ok(Measurement::new(measured, details.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_by_hand() {
        // Counts 0, 0, 3: (−2·0 + 0·0 + 2·3) / (3·3).
        assert_eq!(inequality(&[3.0, 0.0, 0.0]), 2.0 / 3.0);
        assert_eq!(imbalance(&[4.0, 2.0]), 2.0);
        assert_eq!(slow_share(&[3.0, 2.0, 1.0, 0.0]), 1.0 / 6.0);
    }
}
