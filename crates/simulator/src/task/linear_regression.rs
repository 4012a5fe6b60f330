//! Linear regression: predicts a number, from drawn examples or tables.
//!
//! # Definition
//! Prediction `w·x + b`; loss: mean squared error. Unless `data` is given, the examples are drawn: `features` inputs
//! uniform in [0, 1]; target `Σ_i (i/10)·x_i + √2 + N(0, noise²)`, so that the smallest expected loss is `noise²`. One
//! seventh of the examples is for testing.
//!
//! # Inputs
//! `features`, `examples` (train and test together), `noise` (standard deviation); or `data`: a table with numbers to
//! predict, such as `{ csv = { train = "a.csv", test = "b.csv", target = "y" } }` or `{ npy = { .. } }`, see
//! `fedgenie describe data/csv`. `normalize`: whether each feature gets mean 0 and deviation 1, those of the training
//! examples. `partition`.
//!
//! `validation = 0.1` sets a share of the training rows aside before the rest goes to clients: of `n` rows `⌊share·n⌋`,
//! for `valid_loss` and its like; default 0. `held_out = 0.2` sets a share of each client's examples aside, of `n`
//! examples `⌊share·n⌋`, on which its own measures are made (`client_loss_mean` and its like). `metrics` adds metrics
//! behind those that are always measured: `["rmse", "mae"]`.
//!
//! # Source
//! The synthetic experiments of Ben Ami, Cohen, Zhao, IEEE Access 2025, section VI.
//!
//! # Deviations from the source
//! None known; the paper names the data set only, its numbers are those of the authors' experiments.
//!
//! # Determinism
//! Stream (example, i, 0) for drawn example i, so that each seed has its own data; stream (example, 0, 22) for the rows
//! for validation; the model starts at zero.
//!
//! # Example
//! ```toml
//! [task.linear-regression]
//! features = 10
//! examples = 70_000
//! partition = "iid"
//! ```

use super::TaskError;
use super::labelled::{Keys, KeysMut, LabelledSettings, Models, is_none};
use fedgenie_core::config::Complaint;
use fedgenie_core::rng::Streams;
use fedgenie_learning::data::Split;
use fedgenie_learning::data::partition::PartitionConfig;
use fedgenie_learning::data::source::DataConfig;
use fedgenie_learning::data::synthetic::LinearData;
use fedgenie_learning::model::LinearRegression;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[task.linear-regression]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Number of input features.
    #[serde(default = "default_features")]
    pub features: usize,
    /// Number of examples, train and test together.
    #[serde(default = "default_examples")]
    pub examples: usize,
    /// Standard deviation of the target's noise.
    #[serde(default = "default_noise")]
    pub noise: f64,
    /// Files to learn from, instead of drawn examples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<DataConfig>,
    /// Whether each feature is standardised with the mean and deviation of the training examples.
    #[serde(default)]
    pub normalize: bool,
    /// How training examples go to clients.
    #[serde(default)]
    pub partition: PartitionConfig,
    /// The share of training rows that are set aside for validation before the rest goes to clients; 0 for none.
    #[serde(default, skip_serializing_if = "is_none")]
    pub validation: f64,
    /// The share of each client's examples on which its own measures are made, and nobody trains; 0 to measure on those
    /// that it trains on.
    #[serde(default, skip_serializing_if = "is_none")]
    pub held_out: f64,
    /// Metrics that are measured beside the others: see `fedgenie list metric`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<String>,
}

const fn default_features() -> usize {
    10
}
const fn default_examples() -> usize {
    70_000
}
const fn default_noise() -> f64 {
    0.5
}

impl LabelledSettings for Config {
    const NAME: &'static str = "linear-regression";
    const CLASSIFIES: bool = false;

    fn keys(&self) -> Keys<'_> {
        Keys {
            data: self.data.as_ref(),
            normalize: self.normalize,
            start: None,
            partition: &self.partition,
            drift: None,
            shift: &[],
            validation: self.validation,
            held_out: self.held_out,
            metrics: &self.metrics,
        }
    }

    fn keys_mut(&mut self) -> KeysMut<'_> {
        let Self { data, partition, .. } = self;
        KeysMut { data: data.as_mut(), start: None, partition, shift: &mut [] }
    }

    fn check_own(&self) -> Result<(), Complaint> {
        let drawn = [
            ("features", self.features == default_features()),
            ("examples", self.examples == default_examples()),
            ("noise", self.noise == default_noise()),
        ];
        match drawn.into_iter().find(|(_, is_default)| self.data.is_some() && !is_default) {
            Some((key, _)) => Err(Complaint::new(key, "is for drawn examples; leave it out where data is given")),
            None => Ok(()),
        }
    }

    fn drawn(&self, streams: &Streams) -> Result<Split, TaskError> {
        let Self { examples, features, noise, .. } = *self;
        Ok(LinearData { examples, features, noise }.generate(streams)?)
    }

    fn models(&self, data: &Split) -> Result<Models, TaskError> {
        Ok((Box::new(LinearRegression::new(data.train.width())), None))
    }
}
