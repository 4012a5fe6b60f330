//! Replaying a folder.

use crate::errors;
use crate::policy::Raised;
use crate::running::threads;
use crate::setup::kinds;
use crate::waiting::in_background;
use fedgenie::experiment::verify::{ReplayOptions, verify_within};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

/// The arguments, by name.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Arguments {
    folder: PathBuf,
    data: Option<PathBuf>,
    allow_paths: bool,
    threads: usize,
    /// Whether the last run is replayed first.
    backwards: bool,
}

/// Replays a folder with the policies and tasks of a program. Returns whether all is well, and the verdict as JSON.
#[pyfunction]
pub fn verify(py: Python<'_>, program: &Bound<'_, PyAny>) -> PyResult<(bool, String)> {
    let raised = Raised::default();
    let kinds = kinds(program, &raised)?;
    let Arguments { folder, data, allow_paths, threads: count, backwards } = program.extract()?;
    let options = ReplayOptions { data, allow_paths, kinds, backwards };
    let refused = |error| errors::of(py, &error, &raised);
    let threads = Arc::new(threads(count).map_err(refused)?);
    let work = {
        let threads = threads.clone();
        move || verify_within(&folder, &options, &threads)
    };
    let verdict = in_background(py, &threads, work, |_| Ok(()))?.map_err(refused)?;
    let told = serde_json::to_string(&verdict).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok((verdict.is_good(), told))
}
