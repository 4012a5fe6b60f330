//! Weights of a model: arrays by name in Python, a vector in Rust.

use crate::arrays;
use numpy::{PyArrayDyn, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A parameter: its name and shape.
#[derive(Clone, Debug)]
pub struct Parameter {
    pub name: String,
    pub shape: Vec<usize>,
}

impl Parameter {
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }
}

/// Weights by name, in the order of the parameters, one after the other.
pub fn read(weights: &Bound<'_, PyAny>, parameters: &[Parameter], what: &str, values: &mut Vec<f32>) -> PyResult<()> {
    let weights = weights.cast::<PyDict>().map_err(|_| {
        PyTypeError::new_err(format!(
            "{what}: found a {}; expected a dict of float32 arrays by name",
            weights.get_type()
        ))
    })?;
    for (name, _) in weights {
        let name: String = name.extract()?;
        if !parameters.iter().any(|parameter| parameter.name == name) {
            let known: Vec<&str> = parameters.iter().map(|parameter| parameter.name.as_str()).collect();
            let message = format!("{what}: found the weight {name:?}; the parameters are {}", known.join(", "));
            return Err(PyValueError::new_err(message));
        }
    }
    for Parameter { name, shape } in parameters {
        let array = weights.get_item(name)?;
        let array = array.ok_or_else(|| PyValueError::new_err(format!("{what}: the weight {name:?} is missing")))?;
        // Arithmetic on an array without dimensions gives a number of NumPy.
        let is_number = !array.is_instance_of::<PyUntypedArray>() && array.hasattr("dtype")?;
        let array = if is_number { array.py().import("numpy")?.call_method1("asarray", (array,))? } else { array };
        let array = array.cast_into::<PyArrayDyn<f32>>().map_err(|error| {
            let found = error.into_inner();
            let kind = found.getattr("dtype").map_or_else(|_| found.get_type().to_string(), |kind| kind.to_string());
            PyTypeError::new_err(format!("{what}: the weight {name:?} is {kind}; expected an array of float32"))
        })?;
        if array.shape() != &shape[..] {
            let found = array.shape();
            let message = format!("{what}: the weight {name:?} has the shape {found:?}; expected {shape:?}");
            return Err(PyValueError::new_err(message));
        }
        values.extend(array.try_readonly()?.as_array());
    }
    Ok(())
}

/// A vector as weights by name, which cannot be written to.
pub fn named<'py>(py: Python<'py>, values: &[f32], parameters: &[Parameter]) -> PyResult<Bound<'py, PyDict>> {
    let weights = PyDict::new(py);
    let mut rest = values;
    for parameter in parameters {
        let (part, after) = rest.split_at(parameter.len());
        rest = after;
        weights.set_item(&parameter.name, arrays::shaped(py, part, &parameter.shape)?)?;
    }
    Ok(weights)
}
