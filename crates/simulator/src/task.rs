//! Tasks: what the clients learn. A task is data, its partition over clients, a model and its metrics; `none` is a
//! task.
//!
//! | task | data | metrics |
//! |---|---|---|
//! | `none` | none: a pure bandit | — |
//! | `linear-regression` | drawn, 6:1 train and test, or tables of numbers, see [`fedgenie_learning::data::source`] | `test_loss` |
//! | `softmax-regression` | any with classes, see [`fedgenie_learning::data::source`] | `test_loss`, `test_accuracy` |
//! | `classification` | any with classes, see [`fedgenie_learning::data::source`], by a network | `test_loss`, `test_accuracy` |

pub mod classification;
pub mod linear_regression;
pub mod none;
pub mod softmax_regression;

pub use fedgenie_learning::data::source::DataCache;

use fedgenie_core::components;
use fedgenie_core::config::Complaint;
use fedgenie_core::rng::{Purpose, Streams};
use fedgenie_learning::data::partition::{Partition, PartitionConfig, Skew};
use fedgenie_learning::data::{DataError, Split};
use fedgenie_learning::model::weights::WeightsError;
use fedgenie_learning::model::{Model, ModelError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A task's part of a scenario. What a task does not declare, it has not: by default nothing is learned.
pub trait TaskSettings {
    /// What clients learn to predict.
    fn target(&self) -> Target {
        Target::Nothing
    }

    /// Bytes of the model each way, where there is none.
    fn payload_bytes(&self) -> u64 {
        0
    }

    /// How training examples go to clients, for a task that trains.
    fn partition(&self) -> Option<&PartitionConfig> {
        None
    }

    /// The same, to be changed.
    fn partition_mut(&mut self) -> Option<&mut PartitionConfig> {
        None
    }

    /// Makes file names relative to `base`, the folder of the scenario, or to `data`, the folder given by the user; the
    /// partition's apart.
    fn resolve_paths(&mut self, _base: &Path, _data: Option<&Path>) {}

    /// The files that are read, as far as they are there; the partition's apart.
    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Checks what can be checked without data; the partition apart.
    ///
    /// # Errors
    /// A complaint with a path below the task's table.
    fn check(&self) -> Result<(), Complaint>;

    /// Data and model of one seed; none for a task that does not train.
    ///
    /// # Errors
    /// If the data cannot be had or do not fit.
    fn material(&self, _streams: &Streams, _cache: &DataCache) -> Result<Option<Material>, TaskError> {
        Ok(None)
    }
}

/// What clients learn to predict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// They do not train.
    Nothing,
    /// A number: there is a loss.
    Number,
    /// A class: there are a loss and an accuracy.
    Class,
}

components! {
    /// The `[task]` section.
    pub enum TaskConfig: TaskSettings = "task" {
        "none" => None(none::Config) in "task/none.rs";
        "linear-regression" => LinearRegression(linear_regression::Config) in "task/linear_regression.rs";
        "softmax-regression" => SoftmaxRegression(softmax_regression::Config) in "task/softmax_regression.rs";
        "classification" => Classification(classification::Config) in "task/classification.rs";
    }
}

/// Data and model of a task that trains, before they are spread over clients.
pub struct Material {
    /// Train and test examples.
    pub data: Arc<Split>,
    /// What is learned.
    pub model: Box<dyn Model>,
    /// How the training examples go to clients.
    pub partition: PartitionConfig,
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
    /// Whether clients train.
    pub fn trains(&self) -> bool {
        matches!(self.settings().target(), Target::Number | Target::Class)
    }

    /// Whether examples have classes, so that there is an accuracy.
    pub fn classifies(&self) -> bool {
        self.settings().target() == Target::Class
    }

    /// Bytes of the model each way, where there is none.
    pub fn payload_bytes(&self) -> u64 {
        self.settings().payload_bytes()
    }

    /// How training examples go to clients, for a task that trains.
    pub fn partition(&self) -> Option<&PartitionConfig> {
        self.settings().partition()
    }

    /// Makes file names relative to `base`, the folder of the scenario, or to `data`, the folder given by the user.
    pub fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        self.settings_mut().resolve_paths(base, data);
        if let Some(partition) = self.settings_mut().partition_mut() {
            partition.resolve_paths(base, data);
        }
    }

    /// The files that are read, as far as they are there; names are those of [`TaskConfig::resolve_paths`].
    pub fn files(&self) -> Vec<PathBuf> {
        let counts = self.partition().map_or_else(Vec::new, PartitionConfig::files);
        self.settings().files().into_iter().chain(counts).collect()
    }

    /// Checks what can be checked without data.
    ///
    /// # Errors
    /// A complaint with a path below the task's table.
    pub fn check(&self) -> Result<(), Complaint> {
        self.settings().check()?;
        self.partition().map_or(Ok(()), |partition| partition.check().map_err(|complaint| complaint.below("partition")))
    }

    /// Data and model of one seed; none for a task that does not train.
    ///
    /// # Errors
    /// If the data cannot be had or do not fit.
    pub fn material(&self, streams: &Streams, cache: &DataCache) -> Result<Option<Material>, TaskError> {
        self.settings().material(streams, cache)
    }
}

/// Number of classes of both parts.
///
/// # Errors
/// If the examples have numbers as targets.
fn classes(split: &Split) -> Result<usize, ModelError> {
    let refused = ModelError::Targets { found: "numbers", expected: "classes" };
    split.train.classes().map(|(_, classes)| classes).ok_or(refused)
}

/// Why a task cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// The data.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The data do not fit the model.
    #[error(transparent)]
    Model(#[from] ModelError),
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

#[cfg(test)]
mod tests {
    use super::*;
    use fedgenie_learning::data::{Dataset, Targets};
    use ndarray::Array2;

    #[test]
    fn numbers_are_no_classes() {
        let numbers = Dataset::new(Array2::zeros((2, 1)), Targets::Values(vec![0.5, 1.5]));
        let error = classes(&Split { train: numbers.clone(), test: numbers }).unwrap_err().to_string();
        assert_eq!(error, "the model predicts classes, the data has numbers as targets");
    }
}
