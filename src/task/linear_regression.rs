//! Linear regression on synthetic data.
//!
//! # Definition
//! `features` inputs uniform in [0, 1]; target `Σ_i (i/10)·x_i + √2 + N(0, noise²)`; loss: mean squared error, whose smallest
//! expected value is `noise²`. One seventh of the examples is for testing.
//!
//! # Inputs
//! `features`, `examples` (train and test together), `noise` (standard deviation), `partition`.
//!
//! # Source
//! The synthetic experiments of Ben Ami, Cohen, Zhao, IEEE Access 2025, section VI.
//!
//! # Deviations from the source
//! None known; the paper names the data set only, its numbers are those of the authors' experiments.
//!
//! # Determinism
//! Stream (example, i, 0) for example i, so that each seed has its own data; the model starts at zero.
//!
//! # Example
//! ```toml
//! [task.linear-regression]
//! features = 10
//! examples = 70_000
//! partition = "iid"
//! ```

use super::partition::PartitionConfig;
use super::{Material, TaskError};
use crate::data::synthetic::LinearData;
use crate::model::{LinearRegression, Model};
use crate::rng::Streams;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

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
    /// How training examples go to clients.
    #[serde(default)]
    pub partition: PartitionConfig,
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

impl Config {
    pub(super) fn material(&self, streams: &Streams) -> Result<Material, TaskError> {
        let data =
            LinearData { examples: self.examples, features: self.features, noise: self.noise }.generate(streams)?;
        let model = LinearRegression::new(self.features);
        model.fits(&data.train)?;
        Ok(Material {
            data: Arc::new(data),
            model: Box::new(model),
            partition: self.partition.clone(),
            classifies: false,
        })
    }
}
