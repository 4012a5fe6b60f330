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
//! # Source
//! H. Xiao, K. Rasul, R. Vollgraf, "Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine Learning Algorithms",
//! 2017 (arXiv 1708.07747).
//!
//! # Determinism
//! The model starts at zero. Files are the same for all seeds; `synthetic` images, and the rows that a `test_fraction`
//! draws for testing, are each seed's own.
//!
//! # Example
//! ```toml
//! [task.softmax-regression]
//! data = "fashion-mnist"
//! partition = { dirichlet = { alpha = 0.5 } }
//! ```

use super::{DataCache, Material, Rows, TaskError, TaskSettings, classes};
use fedgenie_core::config::Complaint;
use fedgenie_core::metric::Measures;
use fedgenie_core::rng::Streams;
use fedgenie_learning::data::partition::PartitionConfig;
use fedgenie_learning::data::source::DataConfig;
use fedgenie_learning::model::SoftmaxRegression;
use fedgenie_learning::task::Labelled;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

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
}

impl TaskSettings for Config {
    fn name(&self) -> &'static str {
        "softmax-regression"
    }

    fn measures(&self) -> Measures {
        Labelled::measures(true)
    }

    fn trains(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), Complaint> {
        self.data.check().map_err(|complaint| complaint.below("data"))
    }

    fn partition(&self) -> Option<&PartitionConfig> {
        Some(&self.partition)
    }

    fn partition_mut(&mut self) -> Option<&mut PartitionConfig> {
        Some(&mut self.partition)
    }

    fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        self.data.resolve_paths(base, data);
        self.start = self.start.as_ref().map(|start| base.join(start));
    }

    fn files(&self) -> Vec<PathBuf> {
        self.data.files().into_iter().chain(self.start.clone()).collect()
    }

    fn material(&self, streams: &Streams, cache: &DataCache) -> Result<Option<Box<dyn Material>>, TaskError> {
        let data = self.data.load(self.normalize, streams, cache)?;
        let classes = classes(&data)?;
        let model = SoftmaxRegression::new(data.train.width(), classes);
        let additive = SoftmaxRegression::additive(data.train.shape(), classes);
        Rows::of(data, model, Some(additive), &self.partition, self.start.as_ref())
    }
}
