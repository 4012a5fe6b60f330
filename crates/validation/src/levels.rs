//! Levels: what every policy and every control of a scenario has reached, of the quantities that checks compare.
//!
//! # Definition
//! A check compares some policies; a paper's table has the levels of all. For each quantity, scenario and point that a
//! claim's checks look at there are the means of all policies over seeds, with the intervals of `summary.json`, and the
//! values of the controls that have that metric, with their names in parentheses.

use super::claim::{Budget, Claim};
use super::laboratory::{ClaimRuns, Context};
use super::statistic::Look;
use fedgenie_core::math::statistics::Estimate;
use fedgenie_experiment::error::Error;
use fedgenie_experiment::experiment::RunSummary;
use fedgenie_experiment::experiment::controls;
use fedgenie_experiment::experiment::sample::Sample;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What all have reached of a quantity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// The quantity.
    #[serde(flatten)]
    pub look: Look,
    /// The name of the point; empty where there is one.
    pub at: String,
    /// Policies in the scenario's order, then controls.
    pub reached: Vec<Reached>,
}

/// What one has reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reached {
    /// The policy, or the control in parentheses.
    pub by: String,
    /// Mean over seeds.
    pub mean: f64,
    /// Its 95 % interval; none of too few seeds, or where seeds do not differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
    /// Number of seeds.
    pub n: usize,
}

impl Reached {
    fn of(by: String, estimate: Estimate) -> Self {
        let Estimate { mean, ci95, n } = estimate;
        Self { by, mean, ci95, n }
    }
}

/// The levels that the checks of a claim look at, each once.
///
/// # Errors
/// If a scenario is wrong, or a run fails.
pub(super) fn levels(claim: &Claim, budget: Budget, context: &Context<'_>) -> Result<Vec<Level>, Error> {
    let looks: BTreeSet<Look> = claim.checks.iter().flat_map(|check| check.statistic(budget).looks()).collect();
    let of = |look: Look| {
        let completed = context.runs(&look.scenario)?;
        let reached = reached(&completed, &look)?;
        let at = completed.name_of(look.point);
        Ok(Level { look, at, reached })
    };
    looks.into_iter().map(of).collect()
}

/// What policies and controls of a scenario have reached of a quantity; without those whose runs do not get there.
///
/// # Errors
/// If there is no such point.
pub(super) fn reached(completed: &ClaimRuns<'_>, look: &Look) -> Result<Vec<Reached>, Error> {
    let policies = completed.policies();
    let runs = policies.iter().map(|policy| completed.of(policy, look.point)).collect::<Result<Vec<_>, Error>>()?;
    let sample = |runs: &Vec<&RunSummary>| Sample::of(&look.value, &runs.iter().map(|&run| (run.seed, run)).collect());
    let samples: Vec<Sample> = Sample::alike(&runs.iter().map(sample).collect::<Vec<_>>());
    let follow_up = Sample::follow_up(&samples).cut();
    let of_policies = policies.into_iter().zip(&samples);
    let of_policies = of_policies.filter_map(|(policy, sample)| Some(Reached::of(policy, sample.estimate(follow_up)?)));
    let controls = controls::of(runs.iter().flatten().copied());
    let of_controls = controls
        .iter()
        .filter_map(|(name, metrics)| Some(Reached::of(format!("({name})"), *controls::value(metrics, &look.value)?)));
    Ok(of_policies.chain(of_controls).collect())
}
