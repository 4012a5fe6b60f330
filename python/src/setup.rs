//! An experiment as Python describes it: a scenario by path or as text, changes, policies.

use crate::policy::{Class, PyPolicy, Raised};
use fedgenie::error::Error;
use fedgenie::experiment::{Experiment, Overrides};
use fedgenie::scenario::{Reach, ScenarioError, tree};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A policy as Python gives it: label, class, parameters.
pub type Given = (String, Py<PyAny>, Py<PyDict>);

/// Where the scenario is.
pub enum Source {
    /// In a file.
    File(PathBuf),
    /// In a text, with a name for messages that ends in `.json` if it is JSON.
    Text(String, String),
}

/// Python's description, by name.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Described {
    /// The path, or the name of the text.
    path: PathBuf,
    text: Option<String>,
    set: Vec<(String, String)>,
    seeds: Option<u32>,
    reference: Option<String>,
    data: Option<PathBuf>,
    allow_paths: bool,
    policies: Vec<Given>,
}

/// An experiment to be made.
pub struct Setup {
    pub source: Source,
    pub overrides: Overrides,
    pub policies: Vec<Arc<Class>>,
    pub raised: Raised,
}

impl<'a, 'py> FromPyObject<'a, 'py> for Setup {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let Described { path, text, set, seeds, reference, data, allow_paths, policies } = object.extract()?;
        let source = match text {
            None => Source::File(path),
            Some(text) => Source::Text(path.to_string_lossy().into_owned(), text),
        };
        let class = |(label, class, parameters)| Arc::new(Class { label, class, parameters });
        Ok(Self {
            source,
            overrides: Overrides { set, seeds, reference, data, allow_paths },
            policies: policies.into_iter().map(class).collect(),
            raised: Raised::default(),
        })
    }
}

impl Setup {
    /// Reads and checks the scenario, and adds the policies.
    pub fn experiment(&self) -> Result<Experiment, Error> {
        let mut experiment = match &self.source {
            Source::File(path) => Experiment::load(path, &self.overrides)?,
            Source::Text(name, text) => self.of_text(name, text)?,
        };
        for class in &self.policies {
            let (class, raised) = (class.clone(), self.raised.clone());
            let label = class.label.clone();
            experiment.add_policy(&label, move |context| PyPolicy::build(&class, context, &raised))?;
        }
        Ok(experiment)
    }

    /// A scenario that is no file has the current folder as its base.
    fn of_text(&self, name: &str, text: &str) -> Result<Experiment, Error> {
        let Overrides { set, seeds, reference, data, allow_paths } = &self.overrides;
        let mut root = tree::parse(Path::new(name), text).map_err(ScenarioError::from)?;
        for (key, value) in set {
            let changed = match value.is_empty() {
                true => root.remove(key, "set"),
                false => root.set(key, tree::parse_value(value, "set")),
            };
            changed.map_err(ScenarioError::from)?;
        }
        if let Some(seeds) = seeds {
            root.set("seeds", tree::parse_value(&seeds.to_string(), "seeds")).map_err(ScenarioError::from)?;
        }
        if let Some(reference) = reference {
            root.set("report.reference", tree::Node::text(reference, "reference")).map_err(ScenarioError::from)?;
        }
        let absolute = |folder: &Path| {
            std::path::absolute(folder).map_err(|source| Error::Read { path: folder.to_owned(), source })
        };
        let (base, data) = (absolute(Path::new("."))?, data.as_deref().map(absolute).transpose()?);
        let reach = Reach { anywhere: *allow_paths, ..Reach::below(&base, data.as_deref()) };
        Experiment::from_tree_within(&root, &reach)
    }
}
