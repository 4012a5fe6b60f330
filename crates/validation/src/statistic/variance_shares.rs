//! The shares of the parts of a policy's learning signal in its variance.
//!
//! The total, a reward for example, is a sum of parts, and each part a weight times numbers that the policy's
//! explanation has `after` a round (`[record] explain = true`). A part's share is `cov(part, total)/var(total)` over
//! the clients and rounds of a run, so that the shares add up to 1; a negative share belongs to a part that works
//! against the others. A number that an explanation leaves open (`null`: the client was late) counts as 0, as it does
//! in the total.

use super::{Details, Measured, Measurement, runs_of, shown, usage};
use crate::laboratory::Context;
use fedgenie_core::math::statistics::estimate;
use fedgenie_core::record::Record;
use fedgenie_experiment::error::Error;
use fedgenie_simulator::recorder::{RoundMark, RoundSummary, Sink};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    scenario: String,
    /// Of its sweep: 0 is the first point.
    #[serde(default)]
    point: usize,
    policy: String,
    /// The number of the explanation that is the sum of the parts.
    total: String,
    parts: BTreeMap<String, Part>,
}

/// A part of the total: a weight times a product.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    weight: f64,
    of: Vec<String>,
}

/// The parts may miss the total by this much, relative to 1 or the total.
const TOLERANCE: f64 = 1e-9;

/// Total and parts of every client, as explained after rounds.
struct Told<'a> {
    config: &'a Config,
    total: Vec<f64>,
    /// By part, in the order of their names.
    parts: Vec<Vec<f64>>,
    /// The first fault found.
    wrong: Option<String>,
}

impl Told<'_> {
    /// Adds a policy's explanation after a round.
    fn hear(&mut self, after: &Value) -> Result<(), String> {
        let column = |name: &str| {
            let column = after.get(name).and_then(Value::as_array);
            column.ok_or_else(|| format!("the explanation has no {name:?}"))
        };
        let at = |column: &[Value], place: usize| column.get(place).and_then(Value::as_f64).unwrap_or(0.0);
        let config = self.config;
        let total = column(&config.total)?;
        for place in 0..total.len() {
            let mut sum = 0.0;
            for (part, values) in config.parts.values().zip(&mut self.parts) {
                let mut value = part.weight;
                for name in &part.of {
                    value *= at(column(name)?, place);
                }
                sum += value;
                values.push(value);
            }
            let total = at(total, place);
            if (sum - total).abs() > TOLERANCE * total.abs().max(1.0) {
                return Err(format!("the parts add up to {sum}, but {} is {total}", config.total));
            }
            self.total.push(total);
        }
        Ok(())
    }
}

impl Sink for Told<'_> {
    fn record(&mut self, _: &Record<'_>) -> io::Result<()> {
        Ok(())
    }

    fn round(&mut self, summary: &RoundSummary<'_>, _: bool, _: &RoundMark) -> io::Result<()> {
        for after in summary.explain.unwrap_or_default().iter().filter_map(|explanation| explanation.get("after")) {
            let heard = self.hear(after);
            self.wrong = self.wrong.take().or(heard.err());
        }
        Ok(())
    }
}

/// `cov(part, total)/var(total)`, for two numbers of values or more that are not all alike.
fn share(part: &[f64], total: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (mean_part, mean_total) = (mean(part), mean(total));
    let covariance: f64 = part.iter().zip(total).map(|(x, y)| (x - mean_part) * (y - mean_total)).sum();
    covariance / total.iter().map(|y| (y - mean_total) * (y - mean_total)).sum::<f64>()
}

impl Config {
    pub(super) fn measure(&self, context: &Context<'_>) -> Result<Measurement, Error> {
        if self.parts.is_empty() {
            return usage("parts is empty: nothing would be checked");
        }
        let experiment = context.experiment(&self.scenario)?;
        let mut runs = runs_of(&experiment, &self.policy)?;
        runs.retain(|run| run.point == self.point);
        if runs.is_empty() {
            return usage(format!("there is no point {}", self.point));
        }
        let shares = context.map(&runs, |run| {
            let world = experiment.world_of(run, context.laboratory.cache())?;
            let mut told =
                Told { config: self, total: Vec::new(), parts: vec![Vec::new(); self.parts.len()], wrong: None };
            experiment.run_one(run, &world, &mut told, context.laboratory.threads(), None)?;
            match told.wrong {
                Some(wrong) => usage(format!("{}: {wrong}", run.name)),
                None if told.total.is_empty() => usage(format!("{}: nothing is explained after a round", run.name)),
                None => Ok(told.parts.iter().map(|part| share(part, &told.total)).collect::<Vec<f64>>()),
            }
        })?;
        let title = format!("Shares of the variance of {} of {}", self.total, self.policy);
        let mut details = Details::new(title, &["part", "mean share", "smallest", "largest"]);
        let mut measured = Vec::new();
        for (place, name) in self.parts.keys().enumerate() {
            let values: Vec<f64> = shares.iter().map(|shares| shares[place]).collect();
            let Some(found) = estimate(&values) else {
                return usage(format!("{} of {} does not vary in every run", self.total, self.policy));
            };
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            details.rows.push(vec![name.clone(), shown(found.mean), shown(least), shown(most)]);
            measured.push(Measured::estimate(name, found));
        }
        Ok(Measurement::new(measured, vec![details]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: the total 0, 3, 6 is 0, 2, 4 plus 0, 1, 2, of which the first has two thirds.
    #[test]
    fn shares_of_parts_add_up() {
        let total = [0.0, 3.0, 6.0];
        assert!((share(&[0.0, 2.0, 4.0], &total) - 2.0 / 3.0).abs() < 1e-12);
        assert!((share(&[0.0, 1.0, 2.0], &total) - 1.0 / 3.0).abs() < 1e-12);
        assert!((share(&[5.0, 5.0, 5.0], &total)).abs() < 1e-12);
    }

    #[test]
    fn parts_that_miss_the_total_are_noticed() {
        let part = |weight, of: &str| Part { weight, of: vec![of.to_owned()] };
        let parts = BTreeMap::from([("x".to_owned(), part(2.0, "x")), ("y".to_owned(), part(-1.0, "y"))]);
        let (scenario, policy, total) = (String::new(), String::new(), "r".to_owned());
        let config = Config { scenario, point: 0, policy, total, parts };
        let mut told = Told { config: &config, total: Vec::new(), parts: vec![Vec::new(); 2], wrong: None };
        told.hear(&serde_json::json!({ "r": [1.0, -3.0], "x": [2.0, null], "y": [3.0, 3.0] })).unwrap();
        assert_eq!((told.total.len(), told.parts[0].clone()), (2, vec![4.0, 0.0]));
        assert!(told.hear(&serde_json::json!({ "r": [1.0], "x": [2.0], "y": [2.0] })).is_err());
        assert!(told.hear(&serde_json::json!({ "r": [1.0], "x": [2.0] })).is_err());
    }
}
