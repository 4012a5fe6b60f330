//! Differences between policies, paired by seed; of spending until a target the differences of restricted means, to the
//! common horizon.

use super::{Comparison, Look, Meaning, Measured, Measurement, Student, number, sample};
use crate::laboratory::Context;
use crate::margin::{Margin, margin_of};
use fedgenie_core::math::statistics::paired_difference_at;
use fedgenie_experiment::error::Error;
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
    /// This policy …
    policy: String,
    /// … minus each of these.
    against: Vec<String>,
    /// Of `summary.json`: `regret.mean`, `final.test_loss`, ….
    value: String,
    /// At this virtual time in seconds instead of at the end.
    #[serde(default)]
    at_s: Option<f64>,
    /// The largest difference that counts as none, in place of that of [`margin_of`].
    #[serde(default)]
    margin: Option<f64>,
}

impl Config {
    /// The differences that count as none, to policies with this mean.
    fn none(&self, compared: f64) -> Option<[f64; 2]> {
        let margin = self.margin.map(Margin::Of).or_else(|| margin_of(&self.value))?;
        Some(margin.around_zero(compared)).filter(|none| none.iter().all(|end| end.is_finite()))
    }

    pub(super) fn meaning(&self) -> Meaning {
        let of = Some((self.policy.clone(), Comparison::Minus));
        Meaning { value: self.value.clone(), of, others: self.against.clone() }
    }

    pub(super) fn looks(&self) -> Vec<Look> {
        if self.at_s.is_some() { Vec::new() } else { vec![Look::new(&self.scenario, self.point, &self.value)] }
    }

    pub(super) fn measure(&self, context: &Context<'_>) -> Result<Measurement, Error> {
        super::some(&self.against, "against")?;
        if self.against.contains(&self.policy) {
            return super::usage(format!("{} is compared with itself", self.policy));
        }
        let completed = context.runs(&self.scenario)?;
        if is_until(&self.value) && self.at_s.is_none() {
            let sample = |policy: &str| sample(&self.value, &completed.of(policy, self.point)?);
            let mine: Sample = sample(&self.policy)?;
            let of = |against: &String| {
                let theirs = sample(against)?;
                let follow_up = Sample::follow_up([&mine, &theirs]).cut();
                let compared = theirs.estimate(follow_up).map_or(f64::NAN, |found| found.mean);
                match mine.minus_at(&theirs, follow_up, context.miss()) {
                    Some(found) => Ok(Measured { none: self.none(compared), ..Measured::estimate(against, found) }),
                    None => super::usage(format!("{} of {} and {against}: no run gets there", self.value, self.policy)),
                }
            };
            let measured = self.against.iter().map(of).collect::<Result<Vec<_>, Error>>()?;
            return Ok(Measurement::new(measured, Vec::new()));
        }
        let values = |policy: &str| -> Result<Vec<f64>, Error> {
            completed.of(policy, self.point)?.into_iter().map(|run| number(run, &self.value, self.at_s)).collect()
        };
        let mine = values(&self.policy)?;
        let mut measured = Vec::new();
        for against in &self.against {
            let theirs = values(against)?;
            match paired_difference_at(&mine, &theirs, context.miss()) {
                Some(found) => {
                    let compared = theirs.iter().sum::<f64>() / theirs.len() as f64;
                    let found = Measured::estimate(against, found).student(Student::OfValues);
                    measured.push(Measured { none: self.none(compared), ..found });
                }
                None => return super::usage(format!("{} is not finite in every run of {against}", self.value)),
            }
        }
        Ok(Measurement::new(measured, Vec::new()))
    }
}
