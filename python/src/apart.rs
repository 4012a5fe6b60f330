//! Runs that other processes or machines carry out: what the ones that give them and the ones that make them need.

use crate::errors;
use crate::policy::Raised;
use crate::results::Results;
use crate::running::{Noted, earlier_of, threads};
use crate::setup::{Setup, kinds};
use crate::waiting::in_background;
use fedgenie::error::Error;
use fedgenie::experiment::apart::{Apart as Made, Gathering as Gathered, Ticket};
use fedgenie::experiment::merge::{MergeOptions, Merged, merge as put_together};
use fedgenie::experiment::{RunOptions, Summary};
use fedgenie::recorder::RunFileOptions;
use fedgenie::report::write_with_records;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

fn raise(py: Python<'_>, error: &Error, raised: &Raised) -> PyErr {
    errors::of(py, error, raised)
}

/// A folder that gathers runs.
#[pyclass(module = "fedgenie._fedgenie", frozen)]
pub struct Gathering {
    /// Until it is finished.
    open: Mutex<Option<Gathered>>,
    options: Wishes,
    warnings: Vec<String>,
}

/// Where results go, and how.
#[derive(Clone, FromPyObject)]
#[pyo3(from_item_all)]
struct Wishes {
    out: PathBuf,
    earlier: String,
    events: bool,
    models: bool,
}

impl Wishes {
    /// The options, for as long as the folder is looked at.
    fn with<R>(&self, noted: &Noted, work: impl FnOnce(&RunOptions<'_>) -> R) -> R {
        work(&RunOptions {
            folder: Some(&self.out),
            earlier: earlier_of(&self.earlier),
            files: RunFileOptions { events: self.events, timeline: None },
            models: self.models,
            progress: noted,
            draw: Some(&write_with_records),
            ..RunOptions::default()
        })
    }
}

/// Opens a folder that gathers runs of an experiment. Returns warnings about its worlds as well.
#[pyfunction]
pub fn gather(py: Python<'_>, setup: Setup, wishes: &Bound<'_, PyAny>, allow_paths: bool) -> PyResult<Gathering> {
    let options: Wishes = wishes.extract()?;
    let (raised, noted) = (setup.raised.clone(), Noted::default());
    let opened = py.detach(|| {
        let experiment = setup.experiment()?;
        options.with(&noted, |options| Gathered::open(experiment, options, allow_paths))
    });
    let open = Mutex::new(Some(opened.map_err(|error| raise(py, &error, &raised))?));
    Ok(Gathering { open, options, warnings: noted.all_warnings() })
}

impl Gathering {
    fn lock(&self) -> MutexGuard<'_, Option<Gathered>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the open folder while the interpreter is free.
    fn with<R: Send>(&self, py: Python<'_>, work: impl FnOnce(&Gathered) -> R + Send) -> PyResult<R> {
        py.detach(|| self.lock().as_ref().map(work)).ok_or_else(finished)
    }
}

fn finished() -> PyErr {
    PyRuntimeError::new_err("the folder has been finished")
}

#[pymethods]
impl Gathering {
    /// Names of the runs to be made, those of one point and seed together.
    #[getter]
    fn pending(&self, py: Python<'_>) -> PyResult<Vec<Vec<String>>> {
        self.with(py, |open| open.pending().to_vec())
    }

    /// Warnings about the worlds.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// How many runs the experiment has.
    #[getter]
    fn total(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |open| open.experiment().runs().len())
    }

    /// What the experiment must be elsewhere, as JSON.
    #[getter]
    fn ticket(&self, py: Python<'_>) -> PyResult<String> {
        let ticket = self.with(py, |open| serde_json::to_string(open.ticket()))?;
        ticket.map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The files that population and task read, by name.
    #[getter]
    fn files(&self, py: Python<'_>) -> PyResult<BTreeMap<String, PathBuf>> {
        self.with(py, Gathered::files)?.map_err(|error| raise(py, &error, &Raised::default()))
    }

    /// Takes the runs of a pack. Returns the names of those that failed, with the reason.
    fn admit(&self, py: Python<'_>, names: Vec<String>, pack: &[u8]) -> PyResult<Vec<(String, String)>> {
        let admitted = self.with(py, |open| open.admit(&names, pack))?;
        admitted.map_err(|error| raise(py, &error, &Raised::default()))
    }

    /// Notes that a run failed, and why.
    fn give_up(&self, py: Python<'_>, name: String, why: String) -> PyResult<()> {
        self.with(py, |open| open.give_up(&name, &why))?.map_err(|error| raise(py, &error, &Raised::default()))
    }

    /// The results of the runs that are there.
    fn so_far(&self, py: Python<'_>) -> PyResult<Results> {
        self.with(py, |open| {
            Results::of_runs(open.experiment(), &open.so_far(), open.path(), (true, self.warnings.clone()))
        })
    }

    /// Ends the work early: what is complete stays, and the folder is free for others.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.lock().take()));
    }

    /// Ends the work: writes the summary.
    fn finish(&self, py: Python<'_>) -> PyResult<Results> {
        let Some(open) = self.lock().take() else { return Err(finished()) };
        let (options, noted) = (self.options.clone(), Noted::default());
        let ended = py.detach(|| options.with(&noted, |options| open.finish(options)));
        let (experiment, summary) = ended.map_err(|error| raise(py, &error, &Raised::default()))?;
        let summary: Summary = summary.unwrap_or_else(|| experiment.so_far(&self.options.out));
        Ok(Results::of_runs(&experiment, &summary, &self.options.out, (true, self.warnings.clone())))
    }
}

/// An experiment of which runs are carried out here for a folder elsewhere.
#[pyclass(module = "fedgenie._fedgenie", frozen)]
pub struct Apart {
    made: Arc<Made>,
    raised: Raised,
}

#[pymethods]
impl Apart {
    /// The experiment of a ticket, with policies and a task; `files` is a folder with all files, if they were sent.
    #[new]
    #[pyo3(signature = (ticket, program, files))]
    fn new(py: Python<'_>, ticket: &str, program: &Bound<'_, PyAny>, files: Option<PathBuf>) -> PyResult<Self> {
        let raised = Raised::default();
        let kinds = kinds(program, &raised)?;
        let ticket: Ticket =
            serde_json::from_str(ticket).map_err(|error| PyValueError::new_err(format!("the ticket: {error}")))?;
        let ticket = match files {
            Some(folder) => ticket.with_files_in(&folder),
            None => ticket,
        };
        let made = py.detach(|| Made::new(&ticket, kinds)).map_err(|error| raise(py, &error, &raised))?;
        Ok(Self { made: Arc::new(made), raised })
    }

    /// The warning that this machine trains slowly, if it does.
    #[getter]
    fn warning(&self) -> Option<String> {
        self.made.warning()
    }

    /// Carries out runs on so many threads, in an empty folder. Returns their files.
    fn carry_out<'py>(
        &self,
        py: Python<'py>,
        names: Vec<String>,
        folder: PathBuf,
        count: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let threads = Arc::new(threads(count).map_err(|error| raise(py, &error, &self.raised))?);
        let work = {
            let (made, threads) = (self.made.clone(), threads.clone());
            move || made.carry_out(&names, &folder, &threads)
        };
        let pack = in_background(py, &threads, work, |_| Ok(()))?;
        pack.map(|pack| PyBytes::new(py, &pack)).map_err(|error| raise(py, &error, &self.raised))
    }
}

/// The results of the runs that a folder has by now.
#[pyfunction]
pub fn so_far(py: Python<'_>, setup: Setup, folder: PathBuf) -> PyResult<Results> {
    let found = py.detach(|| {
        let experiment = setup.experiment()?;
        let summary = experiment.so_far(&folder);
        Ok(Results::of_runs(&experiment, &summary, &folder, (true, Vec::new())))
    });
    found.map_err(|error| raise(py, &error, &setup.raised))
}

/// Puts folders of parts of an experiment together. Returns the results, and the names of missing runs.
#[pyfunction]
pub fn merge(
    py: Python<'_>,
    out: PathBuf,
    folders: Vec<PathBuf>,
    data: Option<PathBuf>,
    program: &Bound<'_, PyAny>,
) -> PyResult<(Results, Vec<String>)> {
    let raised = Raised::default();
    let kinds = kinds(program, &raised)?;
    let draw = |into: &Path, of: &Path, experiment: &_, summary: &_| write_with_records(into, of, experiment, summary);
    let merged = py.detach(|| put_together(&out, &folders, &MergeOptions { data, kinds, draw: Some(&draw) }));
    let Merged { experiment, summary, missing } = merged.map_err(|error| raise(py, &error, &raised))?;
    Ok((Results::of_runs(&experiment, &summary, &out, (true, Vec::new())), missing))
}
