//! Rank correlation, over the points of a sweep, of a number of runs with the overlap of the last client's graph with
//! the others'.
//!
//! For each seed, Kendall's τ-b between the two over all points: `|N ∩ V|/|N|`, `N` the nodes of all clients but the
//! last, `V` those of the last (`graph.prefix_intersection` of `summary.json`), and the number. The mean over seeds has
//! Student's t interval.

use super::{Details, Measured, Measurement, number, shown, usage};
use crate::laboratory::Context;
use fedgenie_core::math::statistics::{estimate, kendall};
use fedgenie_experiment::error::Error;
use fedgenie_experiment::experiment::RunSummary;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    scenario: String,
    policy: String,
    /// Of `summary.json`: `best.test_rmse`, ….
    value: String,
}

/// The share of the others' nodes that the last client has.
fn overlap(run: &RunSummary) -> Option<f64> {
    run.graph.as_ref()?.get("prefix_intersection")?.as_array()?.last()?.as_f64()
}

impl Config {
    pub(super) fn measure(&self, context: &Context<'_>) -> Result<Measurement, Error> {
        let completed = context.runs(&self.scenario)?;
        let mut of_seeds: BTreeMap<u64, Vec<(f64, f64)>> = BTreeMap::new();
        for point in 0..completed.experiment.points.len() {
            for run in completed.of(&self.policy, point)? {
                let Some(overlap) = overlap(run) else {
                    return usage(format!("{}: clients have no graphs, or there is but one", self.policy));
                };
                of_seeds.entry(run.seed).or_default().push((overlap, number(run, &self.value, None)?));
            }
        }
        let title =
            format!("Kendall's τ between overlap and {} over {} points", self.value, completed.experiment.points.len());
        let mut details = Details::new(title, &["seed", "τ", "least overlap", "largest overlap"]);
        let mut found = Vec::new();
        for (seed, pairs) in &of_seeds {
            let Some(tau) = kendall(pairs) else {
                return usage(format!("seed {seed}: all overlaps, or all values, are equal"));
            };
            let least = pairs.iter().map(|pair| pair.0).fold(f64::INFINITY, f64::min);
            let most = pairs.iter().map(|pair| pair.0).fold(f64::NEG_INFINITY, f64::max);
            details.rows.push(vec![seed.to_string(), shown(tau), shown(least), shown(most)]);
            found.push(tau);
        }
        match estimate(&found) {
            Some(found) => Ok(Measurement::new(vec![Measured::estimate(&*self.policy, found)], vec![details])),
            None => usage(format!("{} has no runs", self.policy)),
        }
    }
}
