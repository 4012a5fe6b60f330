//! Softmax regression (multinomial logistic regression) on images or tables with classes.
//!
//! # Definition
//! Class scores `W x + b` of the features, pixels being scaled to [0, 1]; loss: mean cross-entropy; accuracy: share of
//! test examples whose highest score is their label.
//!
//! # Inputs
//! `data`: a folder of IDX or CIFAR-10 files, or a table such as
//! `{ csv = { train = "a.csv", test = "b.csv", label = "y" } }`; `fedgenie list data` names them all,
//! `fedgenie describe data/csv` explains one. A relative path is looked for in the folder given by `--data`, or else
//! beside the scenario. `normalize`: whether each channel gets mean 0 and deviation 1, those of the training examples.
//! `start`: a safetensors file with the weights to start from, beside the scenario; without it they are the model's
//! own. `partition`.
//!
//! `validation = 0.1` sets a share of the training rows aside before the rest goes to clients: of `n` rows `⌊share·n⌋`,
//! for `valid_loss` and its like; default 0. `held_out = 0.2` sets a share of each client's examples aside, of `n`
//! examples `⌊share·n⌋`, on which its own measures are made (`client_loss_mean` and its like). `metrics` adds metrics
//! behind those that are always measured: `["f1"]`.
//!
//! `shift` changes data from rounds on, as `describe task/classification` defines it.
//!
//! # Source
//! H. Xiao, K. Rasul, R. Vollgraf, "Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine Learning Algorithms",
//! 2017 (arXiv 1708.07747).
//!
//! # Determinism
//! The model starts at zero. Files are the same for all seeds; `synthetic` images, and the rows that a `test_fraction`
//! draws for testing, are each seed's own; so are the rows for validation, from stream (example, 0, 22).
//!
//! # Example
//! ```toml
//! [task.softmax-regression]
//! data = "fashion-mnist"
//! partition = { dirichlet = { alpha = 0.5 } }
//! ```

use super::TaskError;
use super::labelled::{Keys, KeysMut, LabelledSettings, Models, classes, is_none};
use super::shift::Shift;
use fedgenie_learning::data::Split;
use fedgenie_learning::data::partition::PartitionConfig;
use fedgenie_learning::data::source::DataConfig;
use fedgenie_learning::model::SoftmaxRegression;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// `[task.softmax-regression]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Folder, files or generator of the examples.
    pub data: DataConfig,
    /// Whether each channel is standardised with the mean and deviation of the training examples.
    #[serde(default)]
    pub normalize: bool,
    /// A safetensors file with the weights to start from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<PathBuf>,
    /// How training examples go to clients.
    #[serde(default)]
    pub partition: PartitionConfig,
    /// How data change over time, by ascending round.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shift: Vec<Shift>,
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

impl LabelledSettings for Config {
    const NAME: &'static str = "softmax-regression";
    const CLASSIFIES: bool = true;

    fn keys(&self) -> Keys<'_> {
        Keys {
            data: Some(&self.data),
            normalize: self.normalize,
            start: self.start.as_ref(),
            partition: &self.partition,
            drift: None,
            shift: &self.shift,
            validation: self.validation,
            held_out: self.held_out,
            metrics: &self.metrics,
        }
    }

    fn keys_mut(&mut self) -> KeysMut<'_> {
        let Self { data, start, partition, shift, .. } = self;
        KeysMut { data: Some(data), start: start.as_mut(), partition, shift }
    }

    fn models(&self, data: &Split) -> Result<Models, TaskError> {
        let classes = classes(data)?;
        let model = SoftmaxRegression::new(data.train.width(), classes);
        let additive = SoftmaxRegression::additive(data.train.shape(), classes);
        Ok((Box::new(model), Some(additive)))
    }
}
