//! The updates of a round, any subset of which a policy may have averaged and evaluated.

use crate::{arrays, choice};
use fedgenie::id::ClientId;
use fedgenie::policy::Subsets as Judged;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use scoped_tls_hkt::scoped_thread_local;

scoped_thread_local!(static JUDGED: for<'a> &'a Judged<'a>);

/// Lets a policy judge.
pub fn during<R>(judged: &Judged<'_>, judge: impl FnOnce() -> R) -> R {
    JUDGED.set(judged, judge)
}

/// Updates of a round.
#[pyclass(module = "fedgenie", frozen, name = "Subsets")]
pub struct Subsets;

fn with<R>(read: impl FnOnce(&Judged<'_>) -> PyResult<R>) -> PyResult<R> {
    if !JUDGED.is_set() {
        return Err(PyRuntimeError::new_err("the updates of a round are there while judge runs; keep the numbers"));
    }
    JUDGED.with(read)
}

#[pymethods]
impl Subsets {
    #[getter]
    fn clients<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        with(|judged| arrays::ids(py, judged.clients()))
    }

    /// The quality of the average of the updates of these clients.
    fn quality(&self, members: &Bound<'_, PyAny>) -> PyResult<f64> {
        let members: Vec<ClientId> = choice::clients(members)?.0.into_iter().map(ClientId).collect();
        with(|judged| match members.iter().find(|member| judged.clients().binary_search(member).is_err()) {
            Some(stranger) => Err(PyValueError::new_err(format!("{stranger} has no update in this round"))),
            None => Ok(judged.quality(&members)),
        })
    }
}
