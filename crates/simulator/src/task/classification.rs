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
//! `validation = 0.1` sets a share of the training rows aside before the rest goes to clients: of `n` rows `⌊share·n⌋`,
//! for `valid_loss` and its like; default 0. `held_out = 0.2` sets a share of each client's examples aside, of `n`
//! examples `⌊share·n⌋`, on which its own measures are made (`client_loss_mean` and its like). `metrics` adds metrics
//! behind those that are always measured: `["f1"]`.
//!
//! `drift = { round = 51, rotate = 3 }`, under `hierarchical` with equally many clients at each of `M` edge servers:
//! from round 51 of the cloud, server `m` has the test data of server `(m + 3) mod M`, and its clients have, in order,
//! the training data of that server's. Training, measures, averages and weights by examples follow the data. A client
//! trains on the data that it has when it is asked, so that a cloud with `buffer` may take in models of earlier data.
//! The drift is announced to nobody: policies' knowledge of amounts of data, the durations of devices, and the figures
//! of the partition in `summary.json` stay as they were at the start.
//!
//! `shift = [{ round = 51, .. }, ..]`, by ascending round, under every protocol: from that round on data are others,
//! for everybody or for some. An entry has one or several of:
//!
//! | key | from its round on |
//! |---|---|
//! | `labels` | label shift: the same training examples are dealt anew by this partition, `{ dirichlet = { alpha = 0.1 } }` |
//! | `features` | covariate shift: `rotation`, `noise` and `colour = { contrast, brightness }`, as numbers, with the meaning of `describe partition/feature-skew`, on top of all changes before |
//! | `concept` | concept shift: of each pair `[a, b]`, what was said to be of class `a` is said to be of class `b`, all pairs at once |
//!
//! `features` and `concept` are of all clients, or of those of `clients = [1, 4]`, or of `share = 0.3` of them, drawn
//! by the seed: of what they train on, and of what they hold out. Test examples, and rows for validation, change as
//! well where all clients' do; `test = true` or `false` says otherwise. Each entry goes on from those before it. A
//! change is the client's: examples that are dealt anew are seen and said as by the client that they go to. Rows for
//! validation stay. A client trains on the data of the round in which it was asked, also if its update comes later.
//! Under `hierarchical` rounds are the cloud's, and test examples are divided among servers by the classes that the
//! data have.
//!
//! As with drift, policies are not told, and their knowledge of amounts of data, the durations of devices, and the
//! figures of the partition stay as they were; weights of updates have the amounts of the data that they were trained
//! on. Controls without training are those of the start. Each round of `rounds.jsonl` has `shifts`, how many entries
//! are in force. Not defined beside `drift`, `label-flip`, trained controls and the partition `overlapping`, nor
//! `labels` beside `held_out`, whose examples somebody may have trained on. Each entry that changes features, or deals
//! anew what clients see differently, keeps one more copy of the features of a seed.
//!
//! # Source
//! Those of the families.
//!
//! # Cost
//! A thread holds, for the examples of a batch, two numbers for each output of each layer; each job its parameters.
//!
//! # Determinism
//! The model starts from stream (model-init, 0, 0) of the seed, the same for every policy; dropout draws from stream
//! (training-noise, client, round), rows for validation from stream (example, 0, 22).
//!
//! Of entry `i` of `shift`, from 0: (Partition, i, 24) draws the clients of `share`, (Partition, i, 25) the seed of the
//! streams by which `labels` deals, (Partition, row, 64 + 2i) and (Partition, row, 65 + 2i) the noise of training rows
//! and test examples.
//!
//! # Example
//! ```toml
//! [task.classification]
//! data = "fashion-mnist"
//! model = "lenet5"
//! partition = { dirichlet = { alpha = 0.5 } }
//! ```

use super::labelled::{Keys, KeysMut, LabelledSettings, Models, classes, is_none};
use super::shift::Shift;
use super::{Drift, TaskError};
use fedgenie_core::config::Complaint;
use fedgenie_learning::data::Split;
use fedgenie_learning::data::partition::PartitionConfig;
use fedgenie_learning::data::source::DataConfig;
use fedgenie_learning::model::families::Family;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

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
    const NAME: &'static str = "classification";
    const CLASSIFIES: bool = true;

    fn keys(&self) -> Keys<'_> {
        Keys {
            data: Some(&self.data),
            normalize: self.normalize,
            start: self.start.as_ref(),
            partition: &self.partition,
            drift: self.drift,
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

    fn check_own(&self) -> Result<(), Complaint> {
        self.model.check().map_err(|error| {
            let message = format!("{}, {}: {}", self.model.kind(), error.path, error.message);
            Complaint::new("model", message)
        })
    }

    fn models(&self, data: &Split) -> Result<Models, TaskError> {
        let (shape, classes) = (data.train.shape(), classes(data)?);
        let refused = |error: Complaint| TaskError::Network(error.message);
        let model = self.model.build(shape, classes).map_err(refused)?;
        let additive = self.model.additive(shape, classes).map_err(refused)?;
        Ok((Box::new(model), Some(additive)))
    }
}
