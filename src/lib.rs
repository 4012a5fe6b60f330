//! FedGenie: a deterministic discrete-event simulator of federated learning under client selection.

pub use fedgenie_core::{catalogue, config, id, kernel, law, math, metric, oracle, record, rng, state, time, units};
pub use fedgenie_experiment::{error, experiment, scenario};
pub use fedgenie_learning::{
    aggregate, data, dense, lanes, layout, matrix_factorisation, model, ranking, ratings, trainer,
};
#[cfg(feature = "report")]
pub use fedgenie_report as report;
pub use fedgenie_simulator::{metrics, policy, population, protocol, recorder, run, task, world};
#[cfg(feature = "validation")]
pub use fedgenie_validation as validation;
