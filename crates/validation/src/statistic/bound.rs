//! The largest ratio of a policy's regret and the bound that a theorem states of it, over all rounds of all seeds.

use super::{Details, Measured, Measurement, shown};
use crate::laboratory::Context;
use fedgenie_experiment::error::Error;
use fedgenie_experiment::experiment::{BoundedRegret, RunSummary};
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
}

/// The largest regret over bound in a run.
fn ratio(bound: &BoundedRegret) -> f64 {
    bound.ratio.unwrap_or(f64::INFINITY)
}

impl Config {
    pub(super) fn measure(&self, context: &Context<'_>) -> Result<Measurement, Error> {
        super::some(&self.policies, "policies")?;
        let completed = context.runs(&self.scenario)?;
        let mut measurement = Measurement::default();
        for policy in &self.policies {
            let runs = completed.of(policy, self.point)?;
            let found = runs.iter().map(|run| Ok((*run, stated(run)?))).collect::<Result<Vec<_>, Error>>()?;
            let Some((run, largest)) = found.iter().max_by(|one, two| ratio(one.1).total_cmp(&ratio(two.1))) else {
                return super::usage(format!("{policy} has no runs"));
            };
            let mut note = format!("in seed {} after round {}", run.seed, largest.round);
            if let Some((run, round)) = found.iter().find_map(|(run, bound)| Some((run, bound.exceeded?))) {
                note.push_str(&format!("; exceeded in seed {} from round {round} on", run.seed));
            }
            let label =
                format!("{policy}: largest ratio of regret ({}) and the bound of {}", largest.meter, largest.name);
            let measured = Measured::exact(label, ratio(largest), found.len());
            measurement.measured.push(Measured { note: Some(note), ..measured });
            let title = format!("{policy}: regret and the bound of {}", largest.name);
            let rows = found.iter().map(|(run, bound)| row(run, bound)).collect();
            let columns =
                ["seed", "largest R/bound", "after round", "exceeded from round", "R at the end", "bound at the end"];
            measurement.details.push(Details { rows, ..Details::new(title, &columns) });
        }
        Ok(measurement)
    }
}

/// The bound of a run.
fn stated(run: &RunSummary) -> Result<&BoundedRegret, Error> {
    match &run.bound {
        Some(bound) => Ok(bound),
        None => super::usage(format!(
            "policy {} has no bound here: none is stated of it in this world, or [regret] has not its meter",
            run.arm
        )),
    }
}

fn row(run: &RunSummary, bound: &BoundedRegret) -> Vec<String> {
    let last = run.curve.last();
    let regret = last.and_then(|point| {
        point.regret.entries().into_iter().find(|(name, _)| *name == bound.meter).and_then(|(_, value)| value)
    });
    let number = |value: Option<f64>| value.map_or_else(String::new, shown);
    vec![
        run.seed.to_string(),
        shown(ratio(bound)),
        bound.round.to_string(),
        bound.exceeded.map_or_else(String::new, |round| round.to_string()),
        number(regret),
        number(last.and_then(|point| point.bound)),
    ]
}
