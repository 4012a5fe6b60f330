//! Aggregate: the joint value of a set of clients, by metrics of the model that its updates make.
//!
//! # Definition
//! The value of a set is `Σ_j c_j·M_j`: metrics `M_j` of the model after the updates of the set have been aggregated,
//! by the server's own step, with the clients' private state, weighted by the numbers given. A member that would be
//! lost or late contributes no update. A set without arrivals leaves the model as it is. With a `[budget]` the name
//! `traffic` stands for `b_S/B`: the bytes of the set's jobs, down and up and whether they arrive or not, as a share of
//! the budget's. A weight below 0 is a price.
//!
//! The *contribution* of a candidate is the mean value of the sets with it less that of the sets without it, among all
//! sets of the cohort's size; `hindsight` in `rounds.jsonl` has it beside the best set. It is left out where sets
//! differ in size, a value is not finite, or all candidates take part. In a script it is also left out where a
//! candidate does not count or time has a price.
//!
//! # Inputs
//! Names of the task's metrics on test data, validation data or none, and their weights: positive where more is better;
//! and `traffic`.
//! Under `hierarchical` the sets are of an edge server's clients, the model is the server's average, and
//! `{ server_accuracy = 1.0 }` measures it on the server's own test examples: those that the task deals to it, and all
//! test data where there is one server. On a server without test examples all sets are worth the same, and the regret
//! is 0. Sets are enumerated: at most 20,000 in a round, and more are refused with their number. In a script the best
//! set is found by sorting, among any number of clients, if the weights of all metrics have the same sign.
//!
//! # Source
//! This project. The reward (17) of ProxyRL-FRS has this form: λ times a hit ratio less (1 − λ) times the staleness of
//! items, of a task that measures both.
//!
//! # Deviations from the source
//! κ is 0 if it is left out: time has no price unless the scenario says so.
//!
//! # Cost
//! An aggregation and an evaluation of each set, beside the training of all candidates. In a script, those of one set,
//! times the number of different latencies where κ is not 0.
//!
//! # Determinism
//! Draws nothing. Sets within 1e-12 of the best are equal; the lexicographically smallest wins.
//!
//! # Example
//! ```toml
//! [regret]
//! counterfactual = true
//! utility = { aggregate = { test_accuracy = 1.0 } }
//! meters = []
//! ```

use super::{Nothing, UtilityRun, UtilitySettings};
use crate::config::Complaint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The name whose weight prices a set's share of the budget.
pub const TRAFFIC: &str = "traffic";

/// Names of metrics and their weights, with that of [`TRAFFIC`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Config(pub BTreeMap<String, f64>);

impl UtilitySettings for Config {
    fn check(&self) -> Result<(), Complaint> {
        if self.0.is_empty() {
            return Err(Complaint::new("", "names no metric; write for example { test_accuracy = 1.0 }"));
        }
        match self.0.iter().find(|(_, weight)| !weight.is_finite()) {
            Some((name, weight)) => Err(Complaint::new(name.as_str(), format!("found {weight}; expected a number"))),
            None => Ok(()),
        }
    }

    fn of_sets(&self) -> Option<&BTreeMap<String, f64>> {
        Some(&self.0)
    }

    fn begin(&self, _: usize) -> Box<dyn UtilityRun> {
        Box::new(Nothing)
    }
}
