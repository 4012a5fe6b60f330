//! The facts that a policy is built from.

use crate::arrays;
use fedgenie::id::ClientId;
use fedgenie::layout::Layout;
use fedgenie::policy::{Bounds, BuildContext, DeclaredDevice};
use fedgenie::time::Span;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use scoped_tls_hkt::scoped_thread_local;
use std::collections::BTreeMap;

scoped_thread_local!(static BUILT: for<'a> &'a BuildContext<'a>);

/// Builds a policy, which may ask for the devices meanwhile.
pub fn during<R>(context: &BuildContext<'_>, build: impl FnOnce() -> R) -> R {
    BUILT.set(context, build)
}

fn with<R>(read: impl FnOnce(&BuildContext<'_>) -> PyResult<R>) -> PyResult<R> {
    if !BUILT.is_set() {
        return Err(PyRuntimeError::new_err(
            "devices and their data can be asked for in __init__ alone; keep the arrays",
        ));
    }
    BUILT.with(read)
}

/// Facts about the scenario.
#[pyclass(module = "fedgenie", frozen, name = "Context", get_all)]
pub struct Context {
    seed: u64,
    /// Values of the swept settings, by path.
    point: BTreeMap<String, String>,
    clients: usize,
    among: usize,
    cohort: usize,
    take: usize,
    in_rounds: bool,
    trains: bool,
    evaluates_every_round: bool,
    budget: Option<u64>,
    least: usize,
    /// Names of questions that clients can answer.
    probes: Vec<&'static str>,
    /// Names of the metrics that rounds may measure.
    metrics: Vec<String>,
    bounds: Py<PyAny>,
    data_sizes: Py<PyAny>,
}

impl Context {
    pub fn new(py: Python<'_>, context: &BuildContext<'_>, point: &[(String, String)]) -> PyResult<Self> {
        let BuildContext { seed, clients, among, cohort, take, in_rounds, trains, evaluates_every_round, .. } =
            *context;
        let BuildContext { budget, least, .. } = *context;
        Ok(Self {
            seed,
            point: point.iter().cloned().collect(),
            clients,
            among,
            cohort,
            take,
            in_rounds,
            trains,
            evaluates_every_round,
            budget,
            least,
            probes: context.probes.iter().map(|kind| kind.name).collect(),
            metrics: context.metrics.iter().map(|metric| metric.id.to_string()).collect(),
            bounds: self::bounds(py, &context.bounds)?.unbind(),
            data_sizes: arrays::copy(py, context.data_sizes)?.unbind(),
        })
    }
}

#[pymethods]
impl Context {
    /// Seconds of computing and of transfer that each client declares of a typical job.
    fn declared<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let clients = u32::try_from(self.clients).unwrap_or(u32::MAX);
        let (compute, transfer): (Vec<f64>, Vec<f64>) = with(|context| {
            let of = |client| {
                let DeclaredDevice { compute_seconds, transfer_seconds } = context.devices.declared(ClientId(client));
                (compute_seconds, transfer_seconds)
            };
            Ok((0..clients).map(of).unzip())
        })?;
        Ok((arrays::array(py, compute)?, arrays::array(py, transfer)?))
    }

    /// The largest quantile `u` of the effective latency over all clients, in seconds.
    fn slowest_latency(&self, u: f64) -> PyResult<f64> {
        if !(u > 0.0 && u < 1.0) {
            return Err(PyValueError::new_err(format!("found u = {u}; expected a number between 0 and 1")));
        }
        with(|context| Ok(context.devices.slowest_latency(u)))
    }

    /// The 80th percentile over clients of the sum of the mean durations of their phases, in seconds.
    fn usual_latency(&self) -> PyResult<f64> {
        with(|context| Ok(context.devices.usual_latency()))
    }

    /// Number of training examples of each class or category, a row for each client.
    fn categories<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        table(py, with(|context| Ok(context.devices.categories()))?)
    }

    /// Features of the user, a row for each client.
    fn features<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        table(py, with(|context| Ok(context.devices.features()))?)
    }
}

fn table<T: numpy::Element>(py: Python<'_>, found: Option<Vec<Vec<T>>>) -> PyResult<Option<Bound<'_, PyAny>>> {
    let Some(found) = found else { return Ok(None) };
    let columns = found.first().map_or(0, Vec::len);
    arrays::rows(py, found.into_iter().flatten().collect(), columns).map(Some)
}

/// Bounds of a decision, durations in seconds.
pub fn bounds<'py>(py: Python<'py>, bounds: &Bounds) -> PyResult<Bound<'py, PyAny>> {
    let Bounds { cohort, most, deadline, deadline_least, epochs, most_epochs } = *bounds;
    let [deadline, deadline_least] = [deadline, deadline_least].map(|span| span.map(Span::seconds));
    let made = py.import("fedgenie._views")?.getattr("Bounds")?;
    made.call1((cohort, most, deadline, deadline_least, epochs, most_epochs))
}

/// The segments of a model.
pub fn layout<'py>(py: Python<'py>, layout: &Layout) -> PyResult<Bound<'py, PyAny>> {
    let made = py.import("fedgenie._views")?.getattr("Segment")?;
    let segments = layout.segments().iter();
    let segments = segments.map(|part| made.call1((&part.name, part.len, part.table, part.trained)));
    Ok(pyo3::types::PyTuple::new(py, segments.collect::<PyResult<Vec<_>>>()?)?.into_any())
}
