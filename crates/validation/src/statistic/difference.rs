//! Differences between policies, paired by seed.

use super::{Measured, Measurement, number};
use crate::laboratory::Context;
use fedgenie_core::math::statistics::paired_difference;
use fedgenie_experiment::error::Error;
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
    /// … minus each of these.
    against: Vec<String>,
    /// Of `summary.json`: `regret.mean`, `final.test_loss`, ….
    value: String,
    /// At this virtual time in seconds instead of at the end.
    #[serde(default)]
    at_s: Option<f64>,
}

impl Config {
    pub(super) fn measure(&self, context: &Context<'_>) -> Result<Measurement, Error> {
        super::some(&self.against, "against")?;
        if self.against.contains(&self.policy) {
            return super::usage(format!("{} is compared with itself", self.policy));
        }
        let completed = context.runs(&self.scenario)?;
        let values = |policy: &str| -> Result<Vec<f64>, Error> {
            completed.of(policy, self.point)?.into_iter().map(|run| number(run, &self.value, self.at_s)).collect()
        };
        let mine = values(&self.policy)?;
        let mut measured = Vec::new();
        for against in &self.against {
            let theirs = values(against)?;
            match paired_difference(&mine, &theirs) {
                Some(found) => measured.push(Measured::estimate(against, found)),
                None => return super::usage(format!("{} is not finite in every run of {against}", self.value)),
            }
        }
        Ok(Measurement { measured, details: Vec::new() })
    }
}
