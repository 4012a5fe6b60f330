//! The server's step as an object of Python.

use crate::arrays;
use crate::policy::refused;
use fedgenie::algorithm::{Contribution, FoldRule};
use fedgenie::failure::Failure;
use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::fmt;

/// An algorithm of Python; one object for all runs, which keeps nothing from round to round but the memory.
pub struct PyAlgorithm {
    fold: Py<PyAny>,
    /// Numbers of memory for each parameter.
    memory: usize,
}

impl fmt::Debug for PyAlgorithm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PyAlgorithm").field("memory", &self.memory).finish_non_exhaustive()
    }
}

impl PyAlgorithm {
    /// Of an object with the method `fold`, and `memory` if it remembers anything.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let fold = object
            .getattr_opt("fold")?
            .ok_or_else(|| PyTypeError::new_err(format!("{} has no method fold(self, updates)", object.get_type())))?;
        let memory = object.getattr_opt("memory")?.map_or(Ok(0), |memory| memory.extract())?;
        Ok(Self { fold: fold.unbind(), memory })
    }
}

/// The updates of a round, one row of each array for each.
#[pyclass(module = "fedgenie", frozen, name = "Updates", get_all)]
pub struct Updates {
    /// The model before the step.
    model: Py<PyAny>,
    client: Py<PyAny>,
    examples: Py<PyAny>,
    /// The policy's coefficients; none if `[aggregation]` weighs updates.
    weight: Option<Py<PyAny>>,
    staleness_weight: Py<PyAny>,
    /// The models that were sent.
    start: Py<PyAny>,
    /// The models that came back.
    parameters: Py<PyAny>,
    /// Numbers from round to round; may be written to.
    memory: Py<PyArray1<f64>>,
}

impl Updates {
    fn of(py: Python<'_>, model: &[f32], contributions: &[Contribution<'_>], memory: &[f64]) -> PyResult<Self> {
        let all = || contributions.iter();
        let weight: Option<Vec<f64>> = all().map(|one| one.weight).collect();
        let rows = |of: fn(&Contribution<'_>) -> Vec<f32>| arrays::rows(py, all().flat_map(of).collect(), model.len());
        Ok(Self {
            model: arrays::copy(py, model)?.unbind(),
            client: arrays::array(py, all().map(|one| one.client.0).collect())?.unbind(),
            examples: arrays::array(py, all().map(|one| one.examples as i64).collect())?.unbind(),
            weight: weight.map(|weight| arrays::array(py, weight).map(Bound::unbind)).transpose()?,
            staleness_weight: arrays::array(py, all().map(|one| one.staleness_weight).collect())?.unbind(),
            start: rows(|one| one.start.to_vec())?.unbind(),
            parameters: rows(|one| one.parameters.to_vec())?.unbind(),
            memory: PyArray1::from_slice(py, memory).unbind(),
        })
    }
}

/// The model that was returned.
fn take(found: &Bound<'_, PyAny>, model: &mut [f32]) -> PyResult<()> {
    let wanted = || format!("expected an array of {} numbers of float32, the new model", model.len());
    let array = found.cast::<PyArray1<f32>>().map_err(|_| {
        let kind = found.getattr("dtype").map_or_else(|_| found.get_type().to_string(), |kind| kind.to_string());
        PyTypeError::new_err(format!("found {kind}; {}", wanted()))
    })?;
    let array = array.try_readonly()?;
    let array = array.as_array();
    if array.len() != model.len() {
        return Err(PyValueError::new_err(format!("found {} numbers; {}", array.len(), wanted())));
    }
    model.iter_mut().zip(array).for_each(|(parameter, &found)| *parameter = found);
    Ok(())
}

impl FoldRule for PyAlgorithm {
    fn memory_len(&self, parameters: usize) -> usize {
        self.memory * parameters
    }

    fn fold(&self, model: &mut [f32], contributions: &[Contribution<'_>], memory: &mut [f64]) -> Result<(), Failure> {
        // Rows of tables are a part of the model only.
        if contributions.iter().any(|one| one.parameters.len() != model.len()) {
            return Err("updates of rows of tables cannot be folded in Python".into());
        }
        Python::attach(|py| {
            let updates = Updates::of(py, model, contributions, memory)?;
            let kept = updates.memory.clone_ref(py);
            let found = self.fold.bind(py).call1((updates,))?;
            take(&found, model).map_err(|error| refused(py, &error))?;
            let kept = kept.bind(py).try_readonly()?;
            memory.iter_mut().zip(kept.as_array()).for_each(|(number, &kept)| *number = kept);
            Ok(())
        })
    }
}
