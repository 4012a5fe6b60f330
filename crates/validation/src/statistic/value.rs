//! A number of runs, as a mean over seeds; spending until a target as a restricted mean, in which runs that never
//! arrive count with the horizon.

use super::{Look, Meaning, Measured, Measurement, Student, number, sample};
use crate::laboratory::Context;
use fedgenie_core::math::statistics::estimate_at;
use fedgenie_experiment::error::Error;
use fedgenie_experiment::experiment::RunSummary;
use fedgenie_experiment::experiment::sample::Sample;
use fedgenie_experiment::experiment::until::is_until;
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
    /// Of `summary.json`: `regret.mean`, `final.test_loss`, ….
    value: String,
    /// Less this number of the same run, such as `controls.bias.test_rmse`.
    #[serde(default)]
    less: Option<String>,
    /// At this virtual time in seconds instead of at the end.
    #[serde(default)]
    at_s: Option<f64>,
}

impl Config {
    /// Shares of runs and restricted means have intervals of 95 % alone.
    pub(super) fn suits_looks(&self) -> bool {
        !is_until(&self.value)
    }

    pub(super) fn meaning(&self) -> Meaning {
        let (value, others, less) = (self.value.clone(), self.policies.clone(), self.less.clone());
        Meaning { value, of: None, others, less, place: None }
    }

    pub(super) fn looks(&self) -> Vec<Look> {
        // Of less another number, or of another time, there is no level.
        if self.less.is_some() || self.at_s.is_some() || self.value.starts_with("controls.") {
            return Vec::new();
        }
        vec![Look::new(&self.scenario, self.point, &self.value)]
    }

    pub(super) fn measure(&self, context: &Context<'_>) -> Result<Measurement, Error> {
        super::some(&self.policies, "policies")?;
        let completed = context.runs(&self.scenario)?;
        if is_until(&self.value) && self.at_s.is_none() && self.less.is_none() {
            let sample = |policy: &String| sample(&self.value, &completed.of(policy, self.point)?);
            let samples = self.policies.iter().map(sample).collect::<Result<Vec<Sample>, Error>>()?;
            let follow_up = Sample::follow_up(&samples).cut();
            let of = |(policy, sample): (&String, &Sample)| match sample.estimate(follow_up) {
                Some(found) => Ok(Measured::estimate(policy, found)),
                None => super::usage(format!("{} of {policy}: no run gets there", self.value)),
            };
            let measured = self.policies.iter().zip(&samples).map(of).collect::<Result<Vec<_>, Error>>()?;
            return Ok(Measurement::new(measured, Vec::new()));
        }
        let mut measured = Vec::new();
        for policy in &self.policies {
            let runs = completed.of(policy, self.point)?;
            let of = |run: &&RunSummary| {
                let less = self.less.as_ref().map_or(Ok(0.0), |less| number(run, less, None))?;
                Ok(number(run, &self.value, self.at_s)? - less)
            };
            let values = runs.iter().map(of).collect::<Result<Vec<_>, Error>>()?;
            let Some(found) = estimate_at(&values, context.miss()) else {
                return super::usage(format!("{} of {policy} is not finite", self.value));
            };
            // Values that are the same for all of several seeds are deterministic.
            measured.push(match values.len() > 1 && values.windows(2).all(|pair| pair[0] == pair[1]) {
                true => Measured::exact(policy, found.mean, found.n),
                false => Measured::estimate(policy, found).student(Student::OfValues),
            });
        }
        Ok(Measurement::new(measured, Vec::new()))
    }
}
