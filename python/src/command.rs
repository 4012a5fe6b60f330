//! The command `fedgenie`, in the process of Python.

use crate::policy::Raised;
use crate::running;
use crate::setup::kinds;
use fedgenie::cli::Host;
use fedgenie::error::Error;
use fedgenie::experiment::Threads;
use fedgenie::scenario::Kinds;
use pyo3::prelude::*;
use std::ffi::OsString;

/// Python, which finds policies and tasks.
struct Interpreter;

impl Host for Interpreter {
    fn find(&self, named: &[(String, String)]) -> Result<Kinds, Error> {
        Python::attach(|py| {
            let found = py.import("fedgenie._kinds")?.getattr("named")?.call1((named.to_vec(),))?;
            kinds(&found, &Raised::default())
        })
        .map_err(|error: PyErr| Python::attach(|py| Error::Usage(format!("--with: {}", error.value(py)))))
    }

    fn threads(&self, count: usize) -> Result<Threads, Error> {
        running::threads(count)
    }
}

/// Carries out the command that these words are. Returns the exit code.
#[pyfunction]
pub fn command(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| fedgenie::cli::main(words.into_iter(), &Interpreter))
}
