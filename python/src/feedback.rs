//! Feedback, gathered as the run tells it and given to Python at once.

use crate::arrays;
use fedgenie::policy::{EdgeAccuracy, Feedback as Told, JobReport, ModelQuality, RoundReport, TrainingReport};
use fedgenie::record::{Outcome, Phase};
use fedgenie::state::Stateful;
use fedgenie::time::Span;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Feedback that Python was not told yet.
#[derive(Default, Stateful)]
pub struct Gathered {
    jobs: Vec<Job>,
    trained: Vec<Update>,
    rounds: Vec<Round>,
}

impl Gathered {
    pub fn add(&mut self, feedback: &Told<'_>) {
        match feedback {
            Told::Job(job) => self.jobs.push(Job::of(job)),
            Told::Trained(trained) => self.trained.push(Update::of(trained)),
            Told::Round(round) => self.rounds.push(Round::of(round)),
        }
    }

    pub const fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.trained.is_empty() && self.rounds.is_empty()
    }

    /// All of it as Python's object.
    pub fn take(&mut self, py: Python<'_>) -> PyResult<Feedback> {
        let Self { jobs, trained, rounds } = std::mem::take(self);
        let rounds = rounds.into_iter().map(|round| Py::new(py, round)).collect::<PyResult<_>>()?;
        Ok(Feedback { jobs: Py::new(py, Jobs(jobs))?, trained: Py::new(py, Trained(trained))?, rounds })
    }
}

/// A job's report, in seconds.
#[derive(Default, Stateful)]
struct Job {
    client: u32,
    turn: u32,
    round: u32,
    staleness: u32,
    /// Its place in [`OUTCOMES`].
    outcome: u8,
    waited_s: f64,
    censored: bool,
    called_off: bool,
    phases: [f64; Phase::ALL.len()],
}

const OUTCOMES: [&str; 3] = ["arrived", "late", "dropped"];

impl Job {
    fn of(report: &JobReport) -> Self {
        let JobReport { client, turn, round, staleness, outcome, waited, phases } = *report;
        let (span, is_observed) = waited.observed();
        Self {
            client: client.0,
            turn: turn.0,
            round: round.0,
            staleness,
            outcome: match outcome {
                Outcome::Arrived => 0,
                Outcome::Late => 1,
                Outcome::Dropped { .. } => 2,
            },
            waited_s: span.seconds(),
            censored: !is_observed,
            called_off: waited.effective().is_none(),
            phases: phases.map(Span::seconds),
        }
    }
}

/// News of jobs, updates and rounds since the last time.
#[pyclass(module = "fedgenie", frozen, name = "Feedback")]
pub struct Feedback {
    #[pyo3(get)]
    jobs: Py<Jobs>,
    #[pyo3(get)]
    trained: Py<Trained>,
    rounds: Vec<Py<Round>>,
}

#[pymethods]
impl Feedback {
    #[getter]
    fn rounds<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyTuple>> {
        pyo3::types::PyTuple::new(py, &self.rounds)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let (jobs, trained) = (self.jobs.borrow(py).0.len(), self.trained.borrow(py).0.len());
        format!("<fedgenie.Feedback: {jobs} jobs, {trained} updates, {} rounds>", self.rounds.len())
    }
}

/// Jobs that ended, one per place of each array.
#[pyclass(module = "fedgenie", frozen, name = "Jobs")]
pub struct Jobs(Vec<Job>);

impl Jobs {
    fn each<'py, T: numpy::Element>(&self, py: Python<'py>, of: impl Fn(&Job) -> T) -> PyResult<Bound<'py, PyAny>> {
        arrays::array(py, self.0.iter().map(of).collect())
    }
}

#[pymethods]
impl Jobs {
    #[getter]
    fn client<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.each(py, |job| job.client)
    }
    #[getter]
    fn turn<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.each(py, |job| job.turn)
    }
    #[getter]
    fn round<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.each(py, |job| job.round)
    }
    #[getter]
    fn staleness<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.each(py, |job| job.staleness)
    }
    /// Seconds in download, compute and upload.
    #[getter]
    fn phases<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let seconds = self.0.iter().flat_map(|job| job.phases).collect();
        arrays::rows(py, seconds, Phase::ALL.len())
    }
    #[getter]
    fn waited_s<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.each(py, |job| job.waited_s)
    }
    /// Whether the wait is only a lower bound of the latency.
    #[getter]
    fn censored<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.each(py, |job| job.censored)
    }
    /// Whether the job was called off, because enough others had arrived: it was not observed.
    #[getter]
    fn called_off<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.each(py, |job| job.called_off)
    }
    #[getter]
    fn outcome<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let words: Vec<&str> = self.0.iter().map(|job| OUTCOMES[usize::from(job.outcome).min(2)]).collect();
        py.import("numpy")?.call_method1("array", (words, "U7"))
    }
    const fn __len__(&self) -> usize {
        self.0.len()
    }
}

/// An update's report, kept.
#[derive(Default, Stateful)]
struct Update {
    client: u32,
    turn: u32,
    round: u32,
    staleness: u32,
    latency_s: f64,
    examples: u64,
    loss: f64,
    loss_rms: Option<f64>,
    quality: Option<f64>,
    deviation: Option<f64>,
    norm: Option<f64>,
    update: Option<Vec<f32>>,
    change: Option<Vec<f32>>,
}

impl Update {
    fn of(report: &TrainingReport<'_>) -> Self {
        let TrainingReport { client, turn, round, staleness, latency, examples, loss, loss_rms, .. } = *report;
        let TrainingReport { quality, deviation, norm, update, change, .. } = *report;
        let (client, turn, round, latency_s) = (client.0, turn.0, round.0, latency.seconds());
        let (update, change) = (update.map(<[f32]>::to_vec), change.map(<[f32]>::to_vec));
        Self {
            client,
            turn,
            round,
            staleness,
            latency_s,
            examples: examples as u64,
            loss,
            loss_rms,
            quality,
            deviation,
            norm,
            update,
            change,
        }
    }
}

/// Updates that were aggregated, one per place of each array. What was not asked for by `wants` is None.
#[pyclass(module = "fedgenie", frozen, name = "Trained")]
pub struct Trained(Vec<Update>);

impl Trained {
    /// Of a probe.
    pub fn of<'a>(reports: impl Iterator<Item = &'a TrainingReport<'a>>) -> Self {
        Self(reports.map(Update::of).collect())
    }

    fn each<'py, T: numpy::Element>(&self, py: Python<'py>, of: impl Fn(&Update) -> T) -> PyResult<Bound<'py, PyAny>> {
        arrays::array(py, self.0.iter().map(of).collect())
    }

    fn wanted<'py>(&self, py: Python<'py>, of: impl Fn(&Update) -> Option<f64>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let values: Option<Vec<f64>> = self.0.iter().map(of).collect();
        values.filter(|values| !values.is_empty()).map(|values| arrays::array(py, values)).transpose()
    }
}

/// Vectors as a list of arrays, whose lengths may differ.
fn vectors<'py>(py: Python<'py>, vectors: Option<Vec<&Vec<f32>>>) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
    let Some(vectors) = vectors.filter(|vectors| !vectors.is_empty()) else { return Ok(None) };
    vectors.into_iter().map(|vector| arrays::copy(py, vector)).collect::<PyResult<_>>().map(Some)
}

#[pymethods]
impl Trained {
    #[getter]
    fn client<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.each(py, |update| update.client)
    }
    #[getter]
    fn turn<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.each(py, |update| update.turn)
    }
    #[getter]
    fn round<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.each(py, |update| update.round)
    }
    #[getter]
    fn staleness<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.each(py, |update| update.staleness)
    }
    #[getter]
    fn latency_s<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.each(py, |update| update.latency_s)
    }
    #[getter]
    fn examples<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.each(py, |update| update.examples as i64)
    }
    #[getter]
    fn loss<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.each(py, |update| update.loss)
    }
    #[getter]
    fn loss_rms<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.wanted(py, |update| update.loss_rms)
    }
    #[getter]
    fn quality<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.wanted(py, |update| update.quality)
    }
    #[getter]
    fn deviation<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.wanted(py, |update| update.deviation)
    }
    #[getter]
    fn norm<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.wanted(py, |update| update.norm)
    }
    #[getter]
    fn update<'py>(&self, py: Python<'py>) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        vectors(py, self.0.iter().map(|update| update.update.as_ref()).collect())
    }
    #[getter]
    fn change<'py>(&self, py: Python<'py>) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        vectors(py, self.0.iter().map(|update| update.change.as_ref()).collect())
    }
    const fn __len__(&self) -> usize {
        self.0.len()
    }
}

/// A closed round.
#[pyclass(module = "fedgenie", frozen, name = "Round")]
#[derive(Default, Stateful)]
pub struct Round {
    #[pyo3(get)]
    turn: u32,
    #[pyo3(get)]
    round: u32,
    selected: Vec<u32>,
    #[pyo3(get)]
    duration_s: f64,
    #[pyo3(get)]
    down_bytes: u64,
    #[pyo3(get)]
    up_bytes: u64,
    metrics: Vec<(String, f64)>,
    quality: Option<(f64, f64)>,
    edge_accuracy: Option<(f64, f64)>,
}

impl Round {
    fn of(report: &RoundReport<'_>) -> Self {
        let RoundReport { turn, round, selected, duration, down_bytes, up_bytes, metrics, quality, edge_accuracy } =
            *report;
        Self {
            turn: turn.0,
            round: round.0,
            selected: selected.iter().map(|client| client.0).collect(),
            duration_s: duration.seconds(),
            down_bytes,
            up_bytes,
            metrics: metrics.iter().map(|(metric, value)| (metric.to_string(), *value)).collect(),
            quality: quality.map(|ModelQuality { before, after }| (before, after)),
            edge_accuracy: edge_accuracy.map(|EdgeAccuracy { before, after }| (before, after)),
        }
    }
}

#[pymethods]
impl Round {
    #[getter]
    fn selected<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        arrays::copy(py, &self.selected)
    }
    #[getter]
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let metrics = PyDict::new(py);
        self.metrics.iter().try_for_each(|(name, value)| metrics.set_item(name, value))?;
        Ok(metrics)
    }
    /// Quality of the model before and after the round.
    #[getter]
    const fn quality(&self) -> Option<(f64, f64)> {
        self.quality
    }
    /// Accuracy of the server's own model before and after the round.
    #[getter]
    const fn edge_accuracy(&self) -> Option<(f64, f64)> {
        self.edge_accuracy
    }
    fn __repr__(&self) -> String {
        format!("<fedgenie.Round {} of {} clients, {:.3} s>", self.round, self.selected.len(), self.duration_s)
    }
}
