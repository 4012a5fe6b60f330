//! Carrying an experiment out while Python waits: signals are looked at, and the interpreter is free meanwhile.

use crate::errors;
use crate::results::Results;
use crate::setup::Setup;
use crate::waiting::in_background;
use fedgenie::error::Error;
use fedgenie::experiment::artefacts::Failure;
use fedgenie::experiment::{
    Earlier, Experiment, Outputs, Progress, ResultFolder, RunId, Shard, Summary, Threads, execute,
};
use fedgenie::recorder::RunFileOptions;
use fedgenie::report::write_with_records;
use fedgenie::task::DataCache;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Where results go, and how.
#[derive(Clone)]
pub struct Wishes {
    pub folder: Option<PathBuf>,
    pub is_kept: bool,
    pub earlier: Earlier,
    pub events: bool,
    pub models: bool,
}

/// How an experiment ended.
pub struct Ended {
    pub experiment: Experiment,
    pub summary: Summary,
    pub failures: Vec<(RunId, Error)>,
    pub is_cancelled: bool,
    pub full: Option<Error>,
    pub warnings: Vec<String>,
}

/// News for the thread that waits.
#[derive(Default)]
struct News {
    ended: Vec<(usize, usize, String)>,
    warnings: Vec<String>,
}

/// Keeps news until they are asked for: threads of runs do not call Python for them.
#[derive(Clone, Default)]
struct Noted(Arc<Mutex<News>>);

impl Noted {
    fn with<R>(&self, work: impl FnOnce(&mut News) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Progress for Noted {
    fn run_ended(&self, run: &RunId, done: usize, total: usize) {
        self.with(|news| news.ended.push((done, total, run.name.clone())));
    }
    fn rounds_played(&self, _: u64) {}
    fn warned(&self, warning: &str) {
        self.with(|news| news.warnings.push(warning.to_owned()));
    }
}

/// Carries all runs out.
fn conduct(setup: &Setup, wishes: &Wishes, threads: &Threads, noted: &Noted) -> Result<Ended, Error> {
    let experiment = setup.experiment()?;
    let (runs, cache) = (experiment.runs(), DataCache::default());
    let warnings = experiment.check_worlds(&runs, &cache)?;
    let open = |path: &PathBuf| ResultFolder::open(path, &experiment, wishes.earlier, Shard::WHOLE);
    let folder = wishes.folder.as_ref().map(open).transpose()?;
    let files = RunFileOptions { events: wishes.events, timeline: None };
    let outputs = folder.as_ref().map(|folder| Outputs { folder, files: &files, models: wishes.models });
    let results = execute(&experiment, &runs, outputs, threads, &cache, noted);
    let (mut complete, mut failures, mut is_cancelled, mut full) = (Vec::new(), Vec::new(), false, None);
    for (run, result) in runs.into_iter().zip(results) {
        match result {
            Ok(summary) => complete.push(summary),
            Err(Error::Cancelled) => is_cancelled = true,
            Err(error) if error.is_of_output() => full = full.or(Some(error)),
            Err(error) if Failure::of(&error).is_some() => failures.push((run, error)),
            Err(error) => return Err(error),
        }
    }
    let reason = |(run, error): &(RunId, Error)| Some((run.name.clone(), Failure::of(error)?.error));
    let failed: BTreeMap<String, String> = failures.iter().filter_map(reason).collect();
    let written = match folder.filter(|_| !is_cancelled && full.is_none()) {
        None => None,
        Some(folder) => {
            let path = folder.path().to_owned();
            folder.finish(&experiment, &complete, |summary, into: &Path| {
                if wishes.is_kept { write_with_records(into, &path, &experiment, summary) } else { Ok(()) }
            })?
        }
    };
    let summary = written.unwrap_or_else(|| experiment.summarise(complete, &failed));
    Ok(Ended { experiment, summary, failures, is_cancelled, full, warnings })
}

/// Python's wishes, by name.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Arguments {
    out: Option<PathBuf>,
    /// Whether the folder is kept, with pictures.
    is_kept: bool,
    earlier: String,
    events: bool,
    models: bool,
    threads: usize,
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
    let earlier = match &*earlier {
        "resume" => Earlier::Resume,
        "overwrite" => Earlier::Overwrite,
        _ => Earlier::Refuse,
    };
    let wishes = Wishes { folder, is_kept, earlier, events, models };
    let raised = setup.raised.clone();
    let threads = Arc::new(Threads::new(threads).map_err(|error| errors::of(py, &error, &raised))?);
    let noted = Noted::default();
    let work = {
        let (threads, noted, wishes) = (threads.clone(), noted.clone(), wishes.clone());
        move || conduct(&setup, &wishes, &threads, &noted)
    };
    let ended = in_background(py, &threads, work, |py| tell(py, &noted, progress.as_ref()))?;
    let Ended { experiment, summary, failures, full, is_cancelled, warnings } =
        ended.map_err(|error| errors::of(py, &error, &raised))?;
    if let Some(error) = full {
        return Err(errors::of(py, &error, &raised));
    }
    if is_cancelled {
        return Err(pyo3::exceptions::PyKeyboardInterrupt::new_err(()));
    }
    let labels = experiment.labels();
    let of_run = |(run, error): &(RunId, Error)| errors::of_run(py, run, &labels[run.arm], error, &raised);
    let failed = failures.iter().map(of_run).collect();
    Ok((Results::of_runs(&experiment, &summary, wishes.folder.as_deref(), (wishes.is_kept, warnings)), failed))
}

/// Tells Python how many runs have ended.
fn tell(py: Python<'_>, noted: &Noted, progress: Option<&Py<PyAny>>) -> PyResult<()> {
    let News { ended, warnings } = noted.with(std::mem::take);
    if !warnings.is_empty() {
        let warn = py.import("fedgenie._notices")?.getattr("warn")?;
        warnings.iter().try_for_each(|warning| warn.call1((warning,)).map(drop))?;
    }
    let Some(progress) = progress else { return Ok(()) };
    ended.into_iter().try_for_each(|(done, total, run)| progress.bind(py).call1((done, total, run)).map(drop))
}
