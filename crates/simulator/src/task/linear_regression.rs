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
//! # Source
//! The synthetic experiments of Ben Ami, Cohen, Zhao, IEEE Access 2025, section VI.
//!
//! # Deviations from the source
//! None known; the paper names the data set only, its numbers are those of the authors' experiments.
//!
//! # Determinism
//! Stream (example, i, 0) for drawn example i, so that each seed has its own data; the model starts at zero.
//!
//! # Example
//! ```toml
//! [task.linear-regression]
//! features = 10
//! examples = 70_000
//! partition = "iid"
//! ```

use super::{DataCache, Material, Rows, TaskError, TaskSettings};
use fedgenie_core::config::Complaint;
use fedgenie_core::metric::Measures;
use fedgenie_core::rng::Streams;
use fedgenie_learning::data::partition::PartitionConfig;
use fedgenie_learning::data::source::DataConfig;
use fedgenie_learning::data::synthetic::LinearData;
use fedgenie_learning::model::LinearRegression;
use fedgenie_learning::task::Labelled;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
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
    /// Files to learn from, instead of drawn examples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<DataConfig>,
    /// Whether each feature is standardised with the mean and deviation of the training examples.
    #[serde(default)]
    pub normalize: bool,
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

impl TaskSettings for Config {
    fn name(&self) -> &'static str {
        "linear-regression"
    }

    fn measures(&self) -> Measures {
        Labelled::measures(false)
    }

    fn trains(&self) -> bool {
        true
    }

    fn partition(&self) -> Option<&PartitionConfig> {
        Some(&self.partition)
    }

    fn partition_mut(&mut self) -> Option<&mut PartitionConfig> {
        Some(&mut self.partition)
    }

    fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        if let Some(files) = &mut self.data {
            files.resolve_paths(base, data);
        }
    }

    fn files(&self) -> Vec<PathBuf> {
        self.data.as_ref().map_or_else(Vec::new, DataConfig::files)
    }

    fn check(&self) -> Result<(), Complaint> {
        let Some(data) = &self.data else { return Ok(()) };
        let drawn = [
            ("features", self.features == default_features()),
            ("examples", self.examples == default_examples()),
            ("noise", self.noise == default_noise()),
        ];
        if let Some((key, _)) = drawn.into_iter().find(|(_, as_default)| !as_default) {
            return Err(Complaint::new(key, "is for drawn examples; leave it out where data is given"));
        }
        data.check().map_err(|complaint| complaint.below("data"))
    }

    fn material(&self, streams: &Streams, cache: &DataCache) -> Result<Option<Box<dyn Material>>, TaskError> {
        let data = match &self.data {
            Some(data) => data.load(self.normalize, streams, cache)?,
            None => {
                let Self { examples, features, noise, .. } = *self;
                let drawn = LinearData { examples, features, noise }.generate(streams)?;
                Arc::new(if self.normalize { drawn.normalized()? } else { drawn })
            }
        };
        let model = LinearRegression::new(data.train.width());
        Rows::of(data, model, None, &self.partition, None)
    }
}
