//! Differences between policies, paired by seed; of spending until a target the differences of restricted means, to the
//! common horizon.

use super::{Comparison, Look, Meaning, Measured, Measurement, Other, Student, number, sample};
use crate::laboratory::Context;
use crate::margin::{Margin, margin_of};
use fedgenie_core::math::statistics::{Miss, paired_difference_at};
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
    /// This policy …
    policy: String,
    /// … minus each of these.
    against: Vec<String>,
    /// Another scenario, and a point of its sweep, with the runs of the others; of the same seeds.
    #[serde(default)]
    other: Option<Other>,
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
        let place = self.other.as_ref().and_then(|other| other.beside((&self.scenario, self.point)));
        Meaning { value: self.value.clone(), of, others: self.against.clone(), less: None, place }
    }

    pub(super) fn looks(&self) -> Vec<Look> {
        if self.at_s.is_some() {
            return Vec::new();
        }
        let own = (self.scenario.as_str(), self.point);
        let places = std::iter::once(own).chain(self.other.as_ref().map(Other::place));
        places.map(|(scenario, point)| Look::new(scenario, point, &self.value)).collect()
    }

    pub(super) fn measure(&self, context: &Context<'_>) -> Result<Measurement, Error> {
        super::some(&self.against, "against")?;
        let own = (self.scenario.as_str(), self.point);
        let (other, point) = self.other.as_ref().map_or(own, Other::place);
        if (other, point) == own && self.against.contains(&self.policy) {
            return super::usage(format!("{} is compared with itself", self.policy));
        }
        let (completed, others) = (context.runs(&self.scenario)?, context.runs(other)?);
        let mine = completed.of(&self.policy, self.point)?;
        let of = |against: &String| {
            let theirs = others.of(against, point)?;
            let seeds = |runs: &[&RunSummary]| runs.iter().map(|run| run.seed).collect::<Vec<_>>();
            if seeds(&mine) != seeds(&theirs) {
                return super::usage(format!("{} and {against} have runs of different seeds", self.policy));
            }
            match is_until(&self.value) && self.at_s.is_none() {
                true => self.of_spending(&mine, (against, &theirs), context.miss()),
                false => self.of_numbers(&mine, (against, &theirs), context.miss()),
            }
        };
        let measured = self.against.iter().map(of).collect::<Result<Vec<_>, Error>>()?;
        Ok(Measurement::new(measured, Vec::new()))
    }

    fn of_spending(&self, mine: &[&RunSummary], theirs: Theirs<'_>, miss: Miss) -> Result<Measured, Error> {
        let (against, theirs) = theirs;
        let (mine, theirs): (Sample, Sample) = (sample(&self.value, mine)?, sample(&self.value, theirs)?);
        let follow_up = Sample::follow_up([&mine, &theirs]).cut();
        let compared = theirs.estimate(follow_up).map_or(f64::NAN, |found| found.mean);
        match mine.minus_at(&theirs, follow_up, miss) {
            Some(found) => Ok(Measured { none: self.none(compared), ..Measured::estimate(against, found) }),
            None => super::usage(format!("{} of {} and {against}: no run gets there", self.value, self.policy)),
        }
    }

    fn of_numbers(&self, mine: &[&RunSummary], theirs: Theirs<'_>, miss: Miss) -> Result<Measured, Error> {
        let (against, theirs) = theirs;
        let values = |runs: &[&RunSummary]| -> Result<Vec<f64>, Error> {
            runs.iter().map(|run| number(run, &self.value, self.at_s)).collect()
        };
        let theirs = values(theirs)?;
        let Some(found) = paired_difference_at(&values(mine)?, &theirs, miss) else {
            return super::usage(format!("{} is not finite in every run of {against}", self.value));
        };
        let compared = theirs.iter().sum::<f64>() / theirs.len() as f64;
        let found = Measured::estimate(against, found).student(Student::OfValues);
        Ok(Measured { none: self.none(compared), ..found })
    }
}

/// A policy that is compared with, and its runs.
type Theirs<'a> = (&'a str, &'a [&'a RunSummary]);
