//! Controls: metrics that are reached without learning, beside which results of policies stand.
//!
//! # Definition
//! A control belongs to a world, so that all runs of a seed at a point have the same one; where runs differ, since
//! policies have tasks of their own, there is none for that metric. Its estimate is over the seeds of the point.

use super::{RunSummary, Summary, show};
use crate::scenario::points;
use fedgenie_core::math::statistics::{Estimate, estimate};
use fedgenie_core::metric::{Metric, Place};
use std::collections::{BTreeMap, BTreeSet};

/// The control that is the model before training.
pub const INITIAL: &str = "initial";

/// Estimates by the name of a control, then of a metric.
pub type Controls = BTreeMap<String, BTreeMap<String, Estimate>>;

/// The value of a control for a quantity of runs: that of a metric at the end, at its best or at convergence.
pub fn value<'a>(metrics: &'a BTreeMap<String, Estimate>, key: &str) -> Option<&'a Estimate> {
    let (what, metric) = key.split_once('.')?;
    metrics.get(metric).filter(|_| ["final", "best", "converged"].contains(&what))
}

/// The controls of the runs of a point.
pub fn of<'a>(runs: impl IntoIterator<Item = &'a RunSummary>) -> Controls {
    let mut found: BTreeMap<(&str, &str), BTreeMap<u64, Option<f64>>> = BTreeMap::new();
    for run in runs {
        for (name, metrics) in &run.controls {
            for (metric, &value) in metrics {
                let value = Some(value).filter(|value| value.is_finite());
                let known = found.entry((name, metric)).or_default().entry(run.seed).or_insert(value);
                *known = known.filter(|known| value == Some(*known));
            }
        }
    }
    let mut all = Controls::new();
    for ((name, metric), seeds) in found {
        let values: Option<Vec<f64>> = seeds.into_values().collect();
        if let Some(found) = values.and_then(|values| estimate(&values)) {
            all.entry(name.to_owned()).or_default().insert(metric.to_owned(), found);
        }
    }
    all
}

impl RunSummary {
    /// Adds the metrics of a control, if it has any.
    pub(super) fn add_control(&mut self, name: &str, metrics: BTreeMap<String, f64>) {
        if !metrics.is_empty() {
            self.controls.insert(name.to_owned(), metrics);
        }
    }
}

/// Warnings of controls that are better than every policy at its best, by a main metric on test data.
pub(super) fn unbeaten(summary: &Summary) -> Vec<String> {
    let Some(first) = summary.runs.first() else { return Vec::new() };
    let is_main = |metric: &&Metric| metric.main && metric.id.place == Place::Test;
    let names: BTreeSet<&String> =
        summary.controls.iter().flat_map(Controls::keys).filter(|name| *name != INITIAL).collect();
    let points = points::names(&summary.points);
    let mut all = Vec::new();
    for metric in first.measured.iter().filter(is_main) {
        let (id, key) = (metric.id.to_string(), format!("best.{}", metric.id));
        for name in &names {
            let unbeaten = |&(point, controls): &(usize, &Controls)| {
                let Some(control) = controls.get(*name).and_then(|metrics| metrics.get(&id)) else { return false };
                let mut best =
                    summary.arms.iter().filter(|arm| arm.point == point).filter_map(|arm| arm.values.get(&key));
                let is_worse = |best: &Estimate| metric.better.quality(control.mean) > metric.better.quality(best.mean);
                best.clone().next().is_some() && best.all(is_worse)
            };
            let at: Vec<(usize, &Controls)> = summary.controls.iter().enumerate().filter(unbeaten).collect();
            let Some((_, controls)) = at.first() else { continue };
            let places = match at.len() {
                1 if points.len() == 1 => String::new(),
                count if count == points.len() => " at every point".to_owned(),
                1 => format!(" at {}", points[at[0].0]),
                count => format!(" at {count} of {} points, {} first", points.len(), points[at[0].0]),
            };
            all.push(format!(
                "on average no policy is better, even at its best, than the control {name}{places}: {} {} without a trained model",
                metric.id.words(),
                show(&controls[*name][&id])
            ));
        }
    }
    all
}
