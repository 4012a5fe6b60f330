//! NumPy arrays that nobody can write to.

use fedgenie::id::ClientId;
use numpy::ndarray::Array2;
use numpy::{Element, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;

/// A vector as an array, without a copy.
pub fn array<'py, T: Element>(py: Python<'py>, values: Vec<T>) -> PyResult<Bound<'py, PyAny>> {
    Ok(PyArray1::from_vec(py, values).try_readwrite()?.make_nonwriteable().as_any().clone())
}

/// A vector as an array that its reader may change, which is made faster.
pub fn own<T: Element>(py: Python<'_>, values: Vec<T>) -> Bound<'_, PyAny> {
    PyArray1::from_vec(py, values).into_any()
}

/// A copy of a slice.
pub fn copy<'py, T: Element + Copy>(py: Python<'py>, values: &[T]) -> PyResult<Bound<'py, PyAny>> {
    array(py, values.to_vec())
}

/// Clients as their numbers.
pub fn ids<'py>(py: Python<'py>, clients: &[ClientId]) -> PyResult<Bound<'py, PyAny>> {
    array(py, clients.iter().map(|client| client.0).collect())
}

/// Rows of equal length, one after the other.
pub fn rows<'py, T: Element>(py: Python<'py>, values: Vec<T>, columns: usize) -> PyResult<Bound<'py, PyAny>> {
    let count = values.len().checked_div(columns).unwrap_or(0);
    let values = Array2::from_shape_vec((count, columns), values);
    let values = values.map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
    Ok(PyArray2::from_owned_array(py, values).try_readwrite()?.make_nonwriteable().as_any().clone())
}

/// A copy of a slice in a shape.
pub fn shaped<'py>(py: Python<'py>, values: &[f32], shape: &[usize]) -> PyResult<Bound<'py, PyAny>> {
    let values = numpy::ndarray::ArrayD::from_shape_vec(shape, values.to_vec());
    let values = values.map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
    Ok(numpy::PyArrayDyn::from_owned_array(py, values).try_readwrite()?.make_nonwriteable().as_any().clone())
}
