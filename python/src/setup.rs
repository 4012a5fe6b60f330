//! An experiment as Python describes it: a scenario by path or as text, changes, policies, a task.

use crate::algorithm::PyAlgorithm;
use crate::policy::{PyPolicy, Raised};
use crate::task::TaskClass;
use fedgenie::config::Complaint;
use fedgenie::error::Error;
use fedgenie::experiment::{Experiment, Overrides};
use fedgenie::scenario::{Details, Given, Kinds};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::Arc;

/// Where the scenario is.
pub enum Source {
    /// In a file.
    File(PathBuf),
    /// In a text, with a name for messages that ends in `.json` if it is JSON.
    Text(String, String),
}

/// A class of policies or tasks as Python describes it.
#[derive(FromPyObject)]
struct Described {
    name: String,
    make: Py<PyAny>,
    /// Parameters that a scenario can write, as JSON.
    defaults: String,
    /// The others.
    hidden: Py<PyDict>,
    required: Vec<String>,
    is_open: bool,
    fingerprint: String,
    found_at: Option<String>,
}

/// A class of policies or tasks.
pub struct Class {
    pub name: String,
    make: Py<PyAny>,
    hidden: Py<PyDict>,
}

impl Class {
    /// Calls it with these arguments and the parameters of a scenario.
    pub fn make<'py, A>(&self, py: Python<'py>, arguments: A, parameters: &str) -> PyResult<Bound<'py, PyAny>>
    where
        A: pyo3::call::PyCallArgs<'py>,
    {
        let named = py.import("json")?.getattr("loads")?.call1((parameters,))?.cast_into::<PyDict>()?;
        named.update(self.hidden.bind(py).as_mapping())?;
        self.make.bind(py).call(arguments, Some(&named))
    }

    /// The class itself.
    pub fn bind<'a, 'py>(&'a self, py: Python<'py>) -> &'a Bound<'py, PyAny> {
        self.make.bind(py)
    }
}

impl Described {
    fn split(self) -> PyResult<(Class, Details)> {
        let Self { name, make, defaults, hidden, required, is_open, fingerprint, found_at } = self;
        let defaults = serde_json::from_str(&defaults).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok((Class { name, make, hidden }, Details { defaults, required, is_open, fingerprint, found_at }))
    }
}

/// Python's policies and tasks.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Program {
    program: String,
    policies: Vec<Described>,
    tasks: Vec<Described>,
    /// The object that makes the server's step.
    algorithm: Option<Py<PyAny>>,
}

/// Parameters as JSON.
fn written(given: &Given<'_>) -> String {
    serde_json::Value::from(given.parameters.clone()).to_string()
}

/// The kinds of policies and tasks of a program in Python.
pub fn kinds(program: &Bound<'_, PyAny>, raised: &Raised) -> PyResult<Kinds> {
    let Program { program: name, policies, tasks, algorithm } = program.extract()?;
    let py = program.py();
    let refused = |error: Complaint| crate::errors::of(py, &Error::Usage(error.to_string()), raised);
    let mut kinds = Kinds::of(name);
    for described in policies {
        let (class, details) = described.split()?;
        let (name, raised) = (class.name.clone(), raised.clone());
        let make = move |context: &fedgenie::policy::BuildContext<'_>, given: Given<'_>| {
            PyPolicy::build(&class, context, (&written(&given), &given.point.settings), &raised)
        };
        kinds.policy(&name, details, make).map_err(refused)?;
    }
    for described in tasks {
        let (class, details) = described.split()?;
        let (name, raised) = (class.name.clone(), raised.clone());
        let measures = crate::task::measures(class.bind(py))?;
        let class = Arc::new(class);
        let make = move |given: Given<'_>| {
            Ok(TaskClass::new(class.clone(), written(&given), measures.clone(), raised.clone()).settings())
        };
        kinds.task(&name, details, make).map_err(refused)?;
    }
    if let Some(algorithm) = algorithm {
        kinds.algorithm(PyAlgorithm::of(algorithm.bind(py))?);
    }
    Ok(kinds)
}

/// The scenario and its changes, by name.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Written {
    /// The path, or the name of the text.
    path: PathBuf,
    text: Option<String>,
    set: Vec<(String, String)>,
    seeds: Option<u32>,
    reference: Option<String>,
    data: Option<PathBuf>,
    allow_paths: bool,
}

/// An experiment to be made.
pub struct Setup {
    source: Source,
    overrides: Overrides,
    pub raised: Raised,
}

impl<'a, 'py> FromPyObject<'a, 'py> for Setup {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let raised = Raised::default();
        let kinds = kinds(&object, &raised)?;
        let Written { path, text, set, seeds, reference, data, allow_paths } = object.extract()?;
        let source = match text {
            None => Source::File(path),
            Some(text) => Source::Text(path.to_string_lossy().into_owned(), text),
        };
        Ok(Self { source, overrides: Overrides { set, seeds, reference, data, allow_paths, kinds }, raised })
    }
}

impl Setup {
    /// Reads and checks the scenario.
    pub fn experiment(&self) -> Result<Experiment, Error> {
        let experiment = match &self.source {
            Source::File(path) => Experiment::load(path, &self.overrides)?,
            Source::Text(name, text) => Experiment::from_text(name, text, &self.overrides)?,
        };
        match experiment.unused_task() {
            None => Ok(experiment),
            Some((name, found)) => Err(Error::Usage(format!(
                "the scenario has [task.{found}], and task= gives {name}; take [task] out of the scenario, or task= out of \
                 the call"
            ))),
        }
    }
}
