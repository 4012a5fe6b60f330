//! Tasks: what the clients learn. A task is data, its partition over clients, a model and its metrics; `none` is a task.
//!
//! | task | data | metrics |
//! |---|---|---|
//! | `none` | none: a pure bandit | — |
//! | `linear-regression` | drawn, 6:1 train and test, or tables of numbers, see [`source`] | `test_loss` |
//! | `softmax-regression` | any with classes, see [`source`] | `test_loss`, `test_accuracy` |
//! | `classification` | any with classes, see [`source`], by a network | `test_loss`, `test_accuracy` |

pub mod classification;
pub mod linear_regression;
pub mod none;
pub mod partition;
pub mod softmax_regression;
pub mod source;

pub use source::DataCache;

use fedgenie_core::config::Complaint;
use fedgenie_core::rng::{Purpose, Streams};
use fedgenie_learning::data::partition::{Partition, Skew};
use fedgenie_learning::data::{DataError, Split};
use fedgenie_learning::model::Model;
use fedgenie_learning::model::weights::WeightsError;
use partition::PartitionConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The `[task]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum TaskConfig {
    /// Nothing is learned.
    None(none::Config),
    /// Linear regression on drawn examples or on tables.
    LinearRegression(linear_regression::Config),
    /// Softmax regression on examples of classes.
    SoftmaxRegression(softmax_regression::Config),
    /// Classification by a network.
    Classification(classification::Config),
}

/// A task of the catalogue.
#[derive(Clone, Copy, Debug)]
pub struct TaskEntry {
    /// The kind's name in scenarios.
    pub name: &'static str,
    /// The source file, whose opening comment is the documentation.
    pub source: &'static str,
}

/// All tasks.
pub static CATALOGUE: &[TaskEntry] = &[
    TaskEntry { name: "none", source: include_str!("task/none.rs") },
    TaskEntry { name: "linear-regression", source: include_str!("task/linear_regression.rs") },
    TaskEntry { name: "softmax-regression", source: include_str!("task/softmax_regression.rs") },
    TaskEntry { name: "classification", source: include_str!("task/classification.rs") },
];

/// Data and model of a task that trains, before they are spread over clients.
pub struct Material {
    /// Train and test examples.
    pub data: Arc<Split>,
    /// What is learned.
    pub model: Box<dyn Model>,
    /// How the training examples go to clients.
    pub partition: PartitionConfig,
    /// Whether `test_accuracy` is a metric.
    pub classifies: bool,
    /// The model to start from, if it is not drawn.
    pub start: Option<Vec<f32>>,
}

/// A task that trains, spread over clients.
pub struct Learner {
    /// Train and test examples.
    pub data: Arc<Split>,
    /// What is learned.
    pub model: Box<dyn Model>,
    /// Which training examples each client holds.
    pub partition: Partition,
    /// How uneven that is.
    pub skew: Skew,
    /// Whether `test_accuracy` is a metric.
    pub classifies: bool,
    /// The model to start from, if it is not drawn.
    pub start: Option<Vec<f32>>,
}

impl std::fmt::Debug for Learner {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Learner").field("parameters", &self.model.parameters()).finish_non_exhaustive()
    }
}

impl Learner {
    /// What a careful user should know about the data.
    pub fn warnings(&self) -> Vec<String> {
        let Some((labels, classes)) = self.data.train.classes() else { return Vec::new() };
        let mut counts = vec![0_usize; classes];
        labels.iter().for_each(|&label| counts[usize::from(label)] += 1);
        let without: Vec<usize> = (0..classes).filter(|&class| counts[class] == 0).collect();
        let [first, ..] = without[..] else { return Vec::new() };
        vec![format!(
            "{} of {classes} classes have no training example, class {first} first; is a label wrong?",
            without.len()
        )]
    }

    /// The model that every run of a seed starts from.
    pub fn initial_model(&self, streams: &Streams) -> Vec<f32> {
        if let Some(start) = &self.start {
            return start.clone();
        }
        let mut parameters = vec![0.0; self.model.parameters()];
        self.model.init(&mut streams.stream(Purpose::ModelInit, 0, 0), &mut parameters);
        parameters
    }
}

impl TaskConfig {
    /// The kind's name.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::None(_) => "none",
            Self::LinearRegression(_) => "linear-regression",
            Self::SoftmaxRegression(_) => "softmax-regression",
            Self::Classification(_) => "classification",
        }
    }

    /// Whether clients train.
    pub const fn trains(&self) -> bool {
        !matches!(self, Self::None(_))
    }

    /// Whether examples have classes, so that there is an accuracy.
    pub const fn classifies(&self) -> bool {
        !matches!(self, Self::None(_) | Self::LinearRegression(_))
    }

    /// How training examples go to clients, for a task that trains.
    pub const fn partition(&self) -> Option<&PartitionConfig> {
        match self {
            Self::None(_) => None,
            Self::LinearRegression(config) => Some(&config.partition),
            Self::SoftmaxRegression(config) => Some(&config.partition),
            Self::Classification(config) => Some(&config.partition),
        }
    }

    /// Makes file names relative to `base`, the folder of the scenario, or to `data`, the folder given by the user.
    pub fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        match self {
            Self::None(_) => {}
            Self::LinearRegression(config) => config.resolve_paths(base, data),
            Self::SoftmaxRegression(config) => config.resolve_paths(base, data),
            Self::Classification(config) => config.resolve_paths(base, data),
        }
        if let Some(partition) = self.partition_mut() {
            partition.resolve_paths(base, data);
        }
    }

    /// The files that are read, as far as they are there; names are those of [`TaskConfig::resolve_paths`].
    pub fn files(&self) -> Vec<PathBuf> {
        let (data, start) = match self {
            Self::None(_) => (None, None),
            Self::LinearRegression(config) => (config.data.as_ref(), None),
            Self::SoftmaxRegression(config) => (Some(&config.data), None),
            Self::Classification(config) => (Some(&config.data), config.start.as_ref()),
        };
        let counts = match self.partition() {
            Some(PartitionConfig::ClassCounts { file, .. }) => Some(file),
            _ => None,
        };
        let data = data.map_or_else(Vec::new, source::DataConfig::files);
        data.into_iter().chain([start, counts].into_iter().flatten().cloned()).collect()
    }

    const fn partition_mut(&mut self) -> Option<&mut PartitionConfig> {
        match self {
            Self::None(_) => None,
            Self::LinearRegression(config) => Some(&mut config.partition),
            Self::SoftmaxRegression(config) => Some(&mut config.partition),
            Self::Classification(config) => Some(&mut config.partition),
        }
    }

    /// Checks what can be checked without data.
    ///
    /// # Errors
    /// Key and sentence.
    pub fn check(&self) -> Result<(), Complaint> {
        match self {
            Self::None(config) => config.check()?,
            Self::LinearRegression(config) => config.check()?,
            Self::SoftmaxRegression(config) => config.check()?,
            Self::Classification(config) => config.check()?,
        }
        self.partition().map_or(Ok(()), PartitionConfig::check)
    }

    /// Data and model of one seed; none for a task that does not train.
    ///
    /// # Errors
    /// If the data cannot be had or do not fit.
    pub fn material(&self, streams: &Streams, cache: &DataCache) -> Result<Option<Material>, TaskError> {
        match self {
            Self::None(_) => Ok(None),
            Self::LinearRegression(config) => config.material(streams, cache).map(Some),
            Self::SoftmaxRegression(config) => config.material(streams, cache).map(Some),
            Self::Classification(config) => config.material(streams, cache).map(Some),
        }
    }
}

/// Why a task cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// The data.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The data do not fit the model.
    #[error(transparent)]
    Model(#[from] fedgenie_learning::model::ModelError),
    /// The network cannot be built for such examples.
    #[error("{0}")]
    Network(String),
    /// The weights to start from.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// The data cannot be partitioned as asked.
    #[error(transparent)]
    Partition(#[from] fedgenie_learning::data::partition::PartitionError),
}
