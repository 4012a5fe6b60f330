//! The results of an experiment.

use crate::errors;
use crate::frames::Columns;
use crate::policy::Raised;
use fedgenie::error::Error;
use fedgenie::experiment::answers::{self, Told};
use fedgenie::experiment::stored::{Notice, Reader};
use fedgenie::experiment::{Experiment, Summary, artefacts, table, warnings};
use fedgenie::report::{Form, Layout, Report, Results as Found, exported, html, picture, write_page};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Results in memory, and the folder where they are, if there is one.
#[pyclass(module = "fedgenie._fedgenie", frozen)]
pub struct Results {
    found: Found,
    folder: Option<PathBuf>,
    /// Warnings about worlds, told when they were built.
    of_worlds: Vec<String>,
    report: OnceLock<Report>,
}

impl Results {
    /// Of runs that have just ended.
    pub fn of_runs(
        experiment: &Experiment,
        summary: &Summary,
        folder: &Path,
        (is_kept, of_worlds): (bool, Vec<String>),
    ) -> Self {
        let mut found = Found::of(experiment, summary, folder);
        if !is_kept {
            found.name.clone_from(&experiment.first().sections.name);
        }
        let folder = is_kept.then(|| folder.to_owned());
        Self { found, folder, of_worlds, report: OnceLock::new() }
    }

    fn drawn(&self) -> &Report {
        self.report.get_or_init(|| Report::of(std::slice::from_ref(&self.found)))
    }

    const fn summary(&self) -> &Summary {
        &self.found.summary
    }
}

fn raise(py: Python<'_>, error: &Error) -> PyErr {
    errors::of(py, error, &Raised::default())
}

/// Reads a folder of results.
#[pyfunction]
pub fn load(py: Python<'_>, folder: PathBuf, allow_changed: bool) -> PyResult<(Results, Vec<String>)> {
    let loaded = py.detach(|| {
        let notices = std::cell::RefCell::new(Vec::new());
        let say = |notice: &Notice| notices.borrow_mut().push(notice.sentence());
        let found = Found::load(&folder, &Reader::new(&say).using_rounds().allowing_changed(allow_changed));
        found.map(|found| (found, notices.into_inner()))
    });
    let (found, notices) = loaded.map_err(|error| raise(py, &error))?;
    let results = Results { found, folder: Some(folder), of_worlds: Vec::new(), report: OnceLock::new() };
    Ok((results, notices))
}

#[pymethods]
impl Results {
    #[getter]
    fn title(&self) -> &str {
        self.found.title()
    }

    #[getter]
    fn folder(&self) -> Option<PathBuf> {
        self.folder.clone()
    }

    #[getter]
    fn scenario(&self) -> &str {
        &self.found.scenario
    }

    /// Sentences.
    #[getter]
    fn answers(&self) -> Vec<String> {
        let Told { first, rest } = answers::told(self.summary());
        first.into_iter().chain(rest).collect()
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.of_worlds.iter().cloned().chain(warnings(self.summary())).collect()
    }

    /// A table of the export.
    fn frame(&self, py: Python<'_>, name: &str) -> PyResult<Columns> {
        let table =
            py.detach(|| exported(std::slice::from_ref(&self.found), name)).map_err(|error| raise(py, &error))?;
        table.map(Columns).ok_or_else(|| PyKeyError::new_err(format!("there is no table {name:?}")))
    }

    fn table(&self) -> String {
        table(self.summary())
    }

    /// The digest that the command prints.
    #[getter]
    fn digest(&self) -> String {
        let of_runs = self.summary().runs.iter();
        let all: Vec<u8> =
            of_runs.flat_map(|run| run.digest.timeline.bytes().chain(run.digest.model.bytes())).collect();
        artefacts::hash(&all)[..32].to_owned()
    }

    /// `summary.json`.
    fn summary_json(&self) -> PyResult<String> {
        serde_json::to_string(self.summary()).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Writes the page.
    fn write_report(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| write_page(self.drawn(), &path)).map_err(|error| raise(py, &error))
    }

    fn report_html(&self, py: Python<'_>) -> String {
        py.detach(|| html(self.drawn()))
    }

    /// Names of the figures.
    #[getter]
    fn figures(&self, py: Python<'_>) -> Vec<String> {
        py.detach(|| self.drawn().figures.iter().map(|figure| figure.id.clone()).collect())
    }

    /// A figure as SVG or PDF.
    fn figure(&self, py: Python<'_>, name: &str, as_pdf: bool) -> PyResult<Vec<u8>> {
        py.detach(|| {
            let report = self.drawn();
            let known = || report.figures.iter().map(|figure| figure.id.as_str()).collect::<Vec<_>>().join(", ");
            let figure = report.figures.iter().find(|figure| figure.id == name);
            let figure = figure.ok_or_else(|| {
                PyKeyError::new_err(format!("found the figure {name:?}; expected one of {}", known()))
            })?;
            let form = if as_pdf { Form::Pdf } else { Form::Svg };
            let drawn = picture(figure, &report.series, &report.title, Layout { form, ..Layout::default() });
            drawn.ok_or_else(|| PyKeyError::new_err(format!("the figure {name} has nothing to draw")))
        })
    }
}
