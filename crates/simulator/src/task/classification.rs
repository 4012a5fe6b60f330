//! Classification by a neural network (MLP, LeNet-5, simple CNN, ResNet-18) on images or tables.
//!
//! # Definition
//! The network's outputs are scores of the classes; loss: mean cross-entropy of their softmax; accuracy: share of test
//! examples whose highest score is their label.
//!
//! # Inputs
//! `data`: as for `softmax-regression`: a folder of IDX or CIFAR-10 files, or a table such as `{ csv = { .. } }` or
//! `{ synthetic = {} }`. `model`: `"lenet5"`, `{ lenet5 = { width = 1.5 } }`, `"simple-cnn"`, `"resnet18"`, or
//! `{ mlp = { hidden = [200, 200], activation = "relu" } }`. `normalize`: whether each channel gets mean 0 and
//! deviation 1, those of the training examples. `start`: a safetensors file with the weights to start from, beside the
//! scenario; without it they are the model's own. `partition`.
//!
//! `drift = { round = 51, rotate = 3 }`, under `hierarchical` with equally many clients at each of `M` edge servers:
//! from round 51 of the cloud, server `m` has the test data of server `(m + 3) mod M`, and its clients have, in order,
//! the training data of that server's. All that is trained, measured, averaged or weighed by examples follows; a client
//! trains on what it has when it is asked, so that a cloud with `buffer` may take in models of the data before. Nobody
//! is told: what policies know of amounts of data, and how long devices take, stays as it was at the start, as do the
//! figures of the partition in `summary.json`.
//!
//! # Source
//! Those of the families.
//!
//! # Cost
//! A thread holds, for the examples of a batch, two numbers for each output of each layer; each job its parameters.
//!
//! # Determinism
//! The model starts from stream (model-init, 0, 0) of the seed, the same for every policy; dropout draws from stream
//! (training-noise, client, round).
//!
//! # Example
//! ```toml
//! [task.classification]
//! data = "fashion-mnist"
//! model = "lenet5"
//! partition = { dirichlet = { alpha = 0.5 } }
//! ```

use super::{DataCache, Drift, Material, Rows, TaskError, TaskSettings, classes};
use fedgenie_core::config::Complaint;
use fedgenie_core::metric::Measures;
use fedgenie_core::rng::Streams;
use fedgenie_learning::data::partition::PartitionConfig;
use fedgenie_learning::data::source::DataConfig;
use fedgenie_learning::model::families::Family;
use fedgenie_learning::task::Labelled;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// `[task.classification]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Folder, files or generator of the examples.
    pub data: DataConfig,
    /// The network.
    pub model: Family,
    /// Whether each channel is standardised with the mean and deviation of the training examples.
    #[serde(default)]
    pub normalize: bool,
    /// A safetensors file with the weights to start from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<PathBuf>,
    /// How training examples go to clients.
    #[serde(default)]
    pub partition: PartitionConfig,
    /// When edge servers and their clients get the data of others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<Drift>,
}

impl TaskSettings for Config {
    fn name(&self) -> &'static str {
        "classification"
    }

    fn measures(&self) -> Measures {
        Labelled::measures(true)
    }

    fn trains(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), Complaint> {
        self.data.check().map_err(|complaint| complaint.below("data"))?;
        self.model.check().map_err(|error| {
            let message = format!("{}, {}: {}", self.model.kind(), error.path, error.message);
            Complaint::new("model", message)
        })?;
        match self.drift {
            Some(Drift { round: 0, .. }) => Err(Complaint::new("drift.round", "found 0; rounds are numbered from 1")),
            _ => Ok(()),
        }
    }

    fn drift(&self) -> Option<Drift> {
        self.drift
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
        let (shape, classes) = (data.train.shape(), classes(&data)?);
        let refused = |error: Complaint| TaskError::Network(error.message);
        let model = self.model.build(shape, classes).map_err(refused)?;
        let additive = self.model.additive(shape, classes).map_err(refused)?;
        Rows::of(data, model, Some(additive), &self.partition, self.start.as_ref())
    }
}
