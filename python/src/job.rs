//! The job of a client and its result, as Python meets them.

use crate::kept;
use crate::weights::{self, Parameter};
use fedgenie::halt::Halt;
use fedgenie::rng::Purpose;
use fedgenie::task::{Context, Job};
use fedgenie::trainer::Length;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// A client's job.
#[pyclass(module = "fedgenie", frozen, name = "Job")]
pub struct TaskJob {
    #[pyo3(get)]
    client: u32,
    #[pyo3(get)]
    round: u32,
    /// For random numbers of the job: from the scenario's seed, client and round alone.
    #[pyo3(get)]
    seed: u64,
    /// The model that was sent, by name.
    #[pyo3(get)]
    weights: Py<PyDict>,
    /// Numbers that an algorithm adds to every gradient, by name.
    #[pyo3(get)]
    correction: Option<Py<PyDict>>,
    /// The weight of the pull towards the model that was sent.
    #[pyo3(get)]
    proximal: f32,
    /// Passes over the client's examples; None where steps are counted.
    #[pyo3(get)]
    epochs: Option<u32>,
    /// Epochs that the policy asked for.
    #[pyo3(get)]
    work: Option<u32>,
    /// Examples in a mini-batch.
    #[pyo3(get)]
    batch: usize,
    /// The learning rate of the round.
    #[pyo3(get)]
    lr: f32,
    /// What the client keeps to itself, since its last update that was aggregated.
    #[pyo3(get)]
    state: Option<Py<PyBytes>>,
    halt: Halt,
}

#[pymethods]
impl TaskJob {
    /// Whether the run was interrupted, and its round is over. Before that, in the half second that a round has to end,
    /// updates are used.
    #[getter]
    fn is_cancelled(&self) -> bool {
        self.halt.is_due()
    }
}

impl TaskJob {
    pub fn new(py: Python<'_>, job: &Job<'_>, context: &Context<'_>, parameters: &[Parameter]) -> PyResult<Self> {
        let Job { client, round, start, epochs, correction, private, .. } = *job;
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
            work: epochs,
            batch: settings.batch,
            lr: settings.rate(round),
            state: private.and_then(kept::unpack).map(|bytes| PyBytes::new(py, &bytes).unbind()),
            halt: context.halt.clone(),
        })
    }
}

/// A client's result.
#[pyclass(module = "fedgenie", frozen, name = "Update", get_all)]
pub struct TaskUpdate {
    pub weights: Py<PyAny>,
    pub loss: Option<f64>,
    /// Bytes that it moved, if it says so.
    pub payload_bytes: Option<u64>,
    pub steps: u64,
    /// What its client keeps to itself from now on, if it says so.
    pub state: Option<Py<PyBytes>>,
}

#[pymethods]
impl TaskUpdate {
    #[new]
    #[pyo3(signature = (weights, loss = None, payload_bytes = None, *, steps = 1, state = None))]
    const fn new(
        weights: Py<PyAny>,
        loss: Option<f64>,
        payload_bytes: Option<u64>,
        steps: u64,
        state: Option<Py<PyBytes>>,
    ) -> Self {
        Self { weights, loss, payload_bytes, steps, state }
    }
}
