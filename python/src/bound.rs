//! The bound that a policy of Python states of its regret.

use crate::arrays;
use fedgenie::failure::Failure;
use fedgenie::id::Round;
use fedgenie::oracle::regret::Meter;
use fedgenie::policy::{self, RegretBound};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const METERS: [Meter; 4] = [Meter::Mean, Meter::Realised, Meter::Expected, Meter::ExpectedExact];

/// The world of a run as theorems see it.
#[pyclass(module = "fedgenie", frozen, name = "BoundWorld", get_all)]
pub struct BoundWorld {
    clients: usize,
    cohort: usize,
    take: usize,
    waits_for_all: bool,
    is_always_available: bool,
    shares: Py<PyAny>,
    /// Mean speeds, on the grid of the quantum where there is one.
    means: Py<PyAny>,
    mean_speeds: Py<PyAny>,
    tau_min_s: f64,
    alpha: f64,
    beta: f64,
    quantum: Option<f64>,
}

impl BoundWorld {
    fn new(py: Python<'_>, world: &policy::BoundWorld<'_>) -> PyResult<Self> {
        let policy::BoundWorld { cohort, take, waits_for_all, is_always_available, shares, genie } = *world;
        let array = |values: &[f64]| Ok::<_, PyErr>(arrays::copy(py, values)?.unbind());
        Ok(Self {
            clients: world.clients(),
            cohort,
            take,
            waits_for_all,
            is_always_available,
            shares: array(shares)?,
            means: array(&genie.means)?,
            mean_speeds: array(&genie.mean_speeds)?,
            tau_min_s: genie.reward.tau_min.seconds(),
            alpha: genie.reward.alpha,
            beta: genie.reward.beta,
            quantum: genie.reward.quantum,
        })
    }
}

/// The bound that the method states; the class may name its meter (`bound_meter`) and itself (`bound_name`).
pub fn stated(
    py: Python<'_>,
    object: &Bound<'_, PyAny>,
    method: &Py<PyAny>,
    world: &policy::BoundWorld<'_>,
    is_compared: Arc<AtomicBool>,
) -> PyResult<RegretBound> {
    let text = |name: &str| object.getattr_opt(name)?.map(|found| found.extract::<String>()).transpose();
    let meter = match text("bound_meter")? {
        None => Meter::Mean,
        Some(name) => METERS.into_iter().find(|meter| meter.name() == name).ok_or_else(|| {
            let known = METERS.map(Meter::name).join(", ");
            PyValueError::new_err(format!("bound_meter: found {name:?}; expected one of {known}"))
        })?,
    };
    let name = match text("bound_name")? {
        Some(name) => name,
        None => object.get_type().name()?.to_string(),
    };
    let (method, world) = (method.clone_ref(py), Py::new(py, BoundWorld::new(py, world)?)?);
    let at = move |round: Round| -> Result<Option<f64>, Failure> {
        is_compared.store(true, Ordering::Relaxed);
        Python::attach(|py| Ok(method.bind(py).call1((round.0, &world))?.extract()?))
    };
    Ok(RegretBound { meter, name, at: Box::new(at) })
}
