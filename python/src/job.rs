//! The job of a client and its result, as Python meets them.

use crate::weights::{self, Parameter};
use fedgenie::rng::Purpose;
use fedgenie::task::{Context, Job};
use fedgenie::trainer::Length;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A client's job.
#[pyclass(module = "fedgenie", frozen, name = "Job", get_all)]
pub struct TaskJob {
    client: u32,
    round: u32,
    /// For random numbers of the job: from the scenario's seed, client and round alone.
    seed: u64,
    /// The model that was sent, by name.
    weights: Py<PyDict>,
    /// Numbers that an algorithm adds to every gradient, by name.
    correction: Option<Py<PyDict>>,
    /// The weight of the pull towards the model that was sent.
    proximal: f32,
    /// Passes over the client's examples; None where steps are counted.
    epochs: Option<u32>,
    /// Examples in a mini-batch.
    batch: usize,
    /// The learning rate of the round.
    lr: f32,
}

impl TaskJob {
    pub fn new(py: Python<'_>, job: &Job<'_>, context: &Context<'_>, parameters: &[Parameter]) -> PyResult<Self> {
        let Job { client, round, start, epochs, correction, .. } = *job;
        let settings = context.settings;
        let of_settings = match settings.length {
            Length::Epochs(epochs) => Some(epochs),
            Length::Steps(_) => None,
        };
        // 63 bits fit a signed number of NumPy and of PyTorch.
        let seed = context.streams.stream(Purpose::TrainingNoise, client.0, round.0).bits() >> 1;
        let correction =
            correction.map(|values| weights::named(py, values, parameters).map(Bound::unbind)).transpose()?;
        Ok(Self {
            client: client.0,
            round: round.0,
            seed,
            weights: weights::named(py, start, parameters)?.unbind(),
            correction,
            proximal: settings.proximal,
            epochs: epochs.or(of_settings),
            batch: settings.batch,
            lr: settings.rate(round),
        })
    }
}

/// A client's result.
#[pyclass(module = "fedgenie", frozen, name = "Update")]
pub struct TaskUpdate {
    pub weights: Py<PyAny>,
    pub loss: Option<f64>,
    pub steps: u64,
}

#[pymethods]
impl TaskUpdate {
    #[new]
    #[pyo3(signature = (weights, loss = None, *, steps = 1))]
    const fn new(weights: Py<PyAny>, loss: Option<f64>, steps: u64) -> Self {
        Self { weights, loss, steps }
    }
}
