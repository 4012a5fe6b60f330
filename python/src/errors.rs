//! FedGenie's errors as exceptions of `fedgenie.errors`.

use crate::policy::Raised;
use fedgenie::error::Error;
use fedgenie::run::{Role, RunError};
use fedgenie::scenario::ScenarioError;
use fedgenie::text::message;
use pyo3::exceptions::{PyFileNotFoundError, PyOSError};
use pyo3::prelude::*;

/// An exception of `fedgenie.errors`, made of these arguments.
pub fn exception<'py, A>(py: Python<'py>, name: &str, arguments: A) -> PyErr
where
    A: pyo3::call::PyCallArgs<'py>,
{
    let made = || py.import("fedgenie.errors")?.getattr(name)?.call1(arguments);
    made().map_or_else(|error| error, PyErr::from_value)
}

/// The exception for a fault of a scenario.
pub fn of_scenario(py: Python<'_>, error: &ScenarioError) -> PyErr {
    let origin = error.origin.as_ref();
    let (path, line) = (origin.map(|origin| origin.source.to_string()), origin.and_then(|origin| origin.line));
    let complaint = &error.complaint;
    exception(py, "ScenarioError", (message(&error.to_string()), path, line, &complaint.path, &complaint.message))
}

/// The round in which a run failed, where the error knows it.
fn round_of(error: &RunError) -> Option<u32> {
    match error {
        RunError::BadSelection { round, .. }
        | RunError::EdgeLink { round, .. }
        | RunError::Diverged { round, .. }
        | RunError::ServerDiverged { round }
        | RunError::Task { round, .. }
        | RunError::Probe { round, .. }
        | RunError::Budget { round, .. }
        | RunError::Outside { round, .. } => Some(round.0),
        _ => None,
    }
}

/// The exception for a run that failed.
pub fn of_run(py: Python<'_>, run: &str, error: &Error) -> PyErr {
    let text = message(&error.to_string());
    let Error::Run { source, .. } = error else {
        return exception(py, "RunError", (text, run, None::<u32>));
    };
    let round = round_of(source);
    let name = match source {
        RunError::BadSelection { .. } | RunError::Outside { role: Role::Policy(_), .. } => "PolicyError",
        RunError::Outside { role: Role::Task, .. } => "TaskError",
        _ => "RunError",
    };
    let told = exception(py, name, (text, run, round));
    if let RunError::Outside { source, .. } = source
        && let Some(cause) = source.downcast_ref::<PyErr>()
    {
        told.set_cause(py, Some(cause.clone_ref(py)));
    }
    told
}

/// The exception for any other error.
pub fn of(py: Python<'_>, error: &Error, raised: &Raised) -> PyErr {
    let text = message(&error.to_string());
    if error.is_of_output() {
        return PyOSError::new_err(text);
    }
    match error {
        Error::Scenario(scenario) => match raised.any() {
            Some((name, cause)) => {
                let error = exception(py, name, (text, None::<String>, None::<u32>));
                error.set_cause(py, Some(cause));
                error
            }
            None => of_scenario(py, scenario),
        },
        Error::Read { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            PyFileNotFoundError::new_err(text)
        }
        Error::Read { .. } | Error::Write { .. } => PyOSError::new_err(text),
        Error::Changed(_) => exception(py, "ChangedError", (text,)),
        Error::Run { run, .. } | Error::Panicked { run, .. } | Error::Lost { run, .. } => of_run(py, run, error),
        Error::Usage(_) | Error::Threads(_) | Error::Cancelled => exception(py, "UsageError", (text,)),
    }
}
