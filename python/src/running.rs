//! Carrying an experiment out while Python waits: signals are looked at, and the interpreter is free meanwhile.

use crate::errors;
use crate::results::Results;
use crate::setup::Setup;
use crate::waiting::in_background;
use fedgenie::error::Error;
use fedgenie::experiment::recorded::Memory;
use fedgenie::experiment::{Conclusion, Earlier, Experiment, Outcome, Progress, RunId, RunOptions, Summary, Threads};
use fedgenie::recorder::RunFileOptions;
use fedgenie::report::write_with_records;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Rounds that are kept in memory, about 200 MB; tables read those of other runs from their files.
const ROUNDS_IN_MEMORY: usize = 1_000_000;

/// Where results go, and how.
#[derive(Clone)]
struct Wishes {
    folder: PathBuf,
    /// Whether the folder is kept, with pictures.
    is_kept: bool,
    earlier: Earlier,
    events: bool,
    models: bool,
}

/// News for the thread that waits.
#[derive(Default)]
pub struct News {
    ended: Vec<(usize, usize, String)>,
    warnings: Vec<String>,
    all_warnings: Vec<String>,
}

/// Keeps news until they are asked for: threads of runs do not call Python for them.
#[derive(Clone, Default)]
pub struct Noted(Arc<Mutex<News>>);

impl Noted {
    /// Warnings so far.
    pub fn all_warnings(&self) -> Vec<String> {
        self.with(|news| std::mem::take(&mut news.all_warnings))
    }

    fn with<R>(&self, work: impl FnOnce(&mut News) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Progress for Noted {
    fn run_ended(&self, run: &RunId, done: usize, total: usize) {
        self.with(|news| news.ended.push((done, total, run.name.clone())));
    }

    fn warned(&self, warning: &str) {
        self.with(|news| {
            news.warnings.push(warning.to_owned());
            news.all_warnings.push(warning.to_owned());
        });
    }

    fn runs_repeated(&self, why: &[String]) {
        why.iter().for_each(|why| self.warned(&format!("{why}; it is repeated")));
    }
}

/// Threads that enter Python once: then a call from them costs no more than from Python's own.
pub fn threads(count: usize) -> Result<Threads, Error> {
    // A thread that begins when the interpreter ends has no work that needs it.
    let around = |work: &mut (dyn FnMut() + Send)| {
        if Python::try_attach(|py| py.detach(&mut *work)).is_none() {
            work();
        }
    };
    Threads::with(count, Arc::new(around))
}

/// Carries all runs out.
fn conduct(setup: &Setup, wishes: &Wishes, threads: &Threads, noted: &Noted) -> Result<(Experiment, Outcome), Error> {
    let experiment = setup.experiment()?;
    let draw = |into: &Path, of: &Path, experiment: &Experiment, summary: &Summary| {
        write_with_records(into, of, experiment, summary)
    };
    let memory = Memory::of_rounds(ROUNDS_IN_MEMORY);
    let options = RunOptions {
        folder: Some(&wishes.folder),
        earlier: wishes.earlier,
        files: RunFileOptions { events: wishes.events, timeline: None },
        models: wishes.models,
        memory: Some(&memory),
        progress: noted,
        draw: if wishes.is_kept { Some(&draw) } else { None },
        ..RunOptions::default()
    };
    let mut outcome = experiment.run_with(&options, threads)?;
    let grown = outcome.grown.take();
    Ok((grown.map_or(experiment, |grown| *grown), outcome))
}

/// Python's wishes, by name.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Arguments {
    out: PathBuf,
    /// Whether the folder is kept, with pictures.
    is_kept: bool,
    earlier: String,
    events: bool,
    models: bool,
    threads: usize,
}

/// What becomes of an experiment that the folder holds, by name.
pub fn earlier_of(name: &str) -> Earlier {
    match name {
        "resume" => Earlier::Resume,
        "overwrite" => Earlier::Overwrite,
        _ => Earlier::Refuse,
    }
}

/// Carries out an experiment. `progress` is called with the number of runs that ended, of all, and the name of the
/// last.
#[pyfunction]
#[pyo3(signature = (setup, wishes, progress))]
pub fn run(
    py: Python<'_>,
    setup: Setup,
    wishes: &Bound<'_, PyAny>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Results, Vec<PyErr>)> {
    let Arguments { out: folder, is_kept, earlier, events, models, threads } = wishes.extract()?;
    let earlier = earlier_of(&earlier);
    let wishes = Wishes { folder, is_kept, earlier, events, models };
    let raised = setup.raised.clone();
    let threads = Arc::new(self::threads(threads).map_err(|error| errors::of(py, &error, &raised))?);
    let noted = Noted::default();
    let work = {
        let (threads, noted, wishes) = (threads.clone(), noted.clone(), wishes.clone());
        move || conduct(&setup, &wishes, &threads, &noted)
    };
    let ended = in_background(py, &threads, work, |py| tell(py, &noted, progress.as_ref()))?;
    let (experiment, outcome) = ended.map_err(|error| errors::of(py, &error, &raised))?;
    let Outcome { summary, failures, conclusion, .. } = outcome;
    match conclusion {
        Conclusion::Full(error) => return Err(errors::of(py, &error, &raised)),
        Conclusion::Cancelled if wishes.is_kept => {
            let how = "stopped; runs under way are saved, and the same call with resume=True goes on";
            return Err(PyKeyboardInterrupt::new_err(how));
        }
        Conclusion::Cancelled => return Err(PyKeyboardInterrupt::new_err("stopped")),
        Conclusion::InMemory | Conclusion::Written | Conclusion::LeftToOthers => {}
    }
    let failed = failures.iter().map(|(run, error)| errors::of_run(py, &run.name, error)).collect();
    let warnings = noted.all_warnings();
    Ok((Results::of_runs(&experiment, &summary, &wishes.folder, (wishes.is_kept, warnings)), failed))
}

/// Tells Python how many runs have ended.
fn tell(py: Python<'_>, noted: &Noted, progress: Option<&Py<PyAny>>) -> PyResult<()> {
    let (ended, warnings) = noted.with(|news| (std::mem::take(&mut news.ended), std::mem::take(&mut news.warnings)));
    if !warnings.is_empty() {
        let warn = py.import("fedgenie._notices")?.getattr("warn")?;
        warnings.iter().try_for_each(|warning| warn.call1((warning,)).map(drop))?;
    }
    let Some(progress) = progress else { return Ok(()) };
    ended.into_iter().try_for_each(|(done, total, run)| progress.bind(py).call1((done, total, run)).map(drop))
}
