//! Why a task cannot be set up.

use crate::data::DataError;
use crate::data::partition::PartitionError;
use crate::model::ModelError;
use crate::model::weights::WeightsError;
use fedgenie_core::config::Complaint;
use fedgenie_core::failure::Failure;
use fedgenie_core::limits;

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
    /// A setting, or the file that it names; the path is below the task's table.
    #[error("{}", _0.message)]
    Setting(Complaint),
    /// The data cannot be partitioned as asked.
    #[error(transparent)]
    Partition(#[from] PartitionError),
    /// A task from outside, for a reason of its own.
    #[error("{0}")]
    Outside(#[source] Failure),
}

/// Checks that a run can hold a model of so many parameters.
///
/// # Errors
/// A sentence with the estimate.
pub fn check_parameters(parameters: usize) -> Result<(), String> {
    if parameters > limits::PARAMETERS {
        return Err(format!("found {parameters} parameters; expected at most {}", limits::PARAMETERS));
    }
    let needed = 4 * parameters as u128 * u128::from(limits::MODEL_COPIES);
    limits::afford(format!("a run with {parameters} parameters"), needed).map_err(|error| error.to_string())
}
