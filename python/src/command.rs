//! The command `fedgenie`, in the process of Python.

use pyo3::prelude::*;
use std::ffi::OsString;

/// Carries out the command that these words are. Returns the exit code.
#[pyfunction]
pub fn command(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| fedgenie::cli::main(words.into_iter()))
}
