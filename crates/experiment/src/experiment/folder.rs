//! A result folder while a process writes into it, alone or beside others.
//!
//! ```text
//! DIR/.fedgenie/lock               held by whoever prepares the folder or writes its summary
//! DIR/.fedgenie/experiment.json    what is being run; written first, so that an unfinished folder is known as well
//! DIR/.fedgenie/written            names of pictures written so far
//! DIR/.fedgenie/process-N/         one for each process: `alive`, locked while it lives, and its unfinished files
//! ```
//!
//! *Runs* are written below the folder of their process and renamed when they are complete, `run.json` last, so that
//! processes never write the same file and a run with a `run.json` is whole. *The summary* is of the whole folder. A
//! process that ends while others are still at work leaves it to them, so that the last one writes it once, with the
//! runs of all. Whoever opens the folder removes the unfinished files of processes that were killed.

mod erase;
mod finish;

use super::artefacts::{
    EVENTS_FILE, FAILURE_FILE, Failure, ID_FILES, MARKS_FILE, MODEL_FILE, Marker, ROUNDS_FILE, RUN_FILE, RUNS_FOLDER,
    SCENARIO_FILE, STATE_FOLDER, TIMELINE_FILE, is_result_folder,
};
use super::execution::{Outputs, Threads};
use super::files::{write_file, write_json};
use super::{Experiment, RunId, RunSummary};
use crate::error::Error;
use fedgenie_simulator::recorder::RunFiles;
use fedgenie_simulator::world::World;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

pub use erase::note_written;

/// Files of a run's folder in the order in which they get their names.
const RUN_FILES: [&str; 9] =
    [ROUNDS_FILE, MARKS_FILE, EVENTS_FILE, TIMELINE_FILE, MODEL_FILE, ID_FILES[0], ID_FILES[1], FAILURE_FILE, RUN_FILE];
/// Locked while its process lives.
const ALIVE_FILE: &str = "alive";
/// What the folder of a process is called, before its number.
const PROCESS: &str = "process-";

/// What becomes of an experiment that the folder already holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Earlier {
    /// It stays, and nothing is written.
    Refuse,
    /// It is continued, if it is the same one.
    Resume,
    /// Its files are deleted.
    Overwrite,
}

/// A folder of results that this process writes into.
#[derive(Debug)]
pub struct ResultFolder {
    path: PathBuf,
    /// Unfinished files of this process.
    process: PathBuf,
    /// Open, and so locked, until this process has finished with the folder.
    alive: Option<File>,
}

impl ResultFolder {
    /// Opens the folder: makes it, continues the experiment in it, or deletes the experiment in it.
    ///
    /// # Errors
    /// If the folder holds something else, cannot be written, holds an experiment that is neither to be resumed nor to
    /// be overwritten, or another process writes into what is to be overwritten. Nothing is deleted then.
    pub fn open(path: &Path, experiment: &Experiment, earlier: Earlier) -> Result<Self, Error> {
        look(path)?;
        let state = path.join(STATE_FOLDER);
        let failed = |source| Error::Write { path: path.to_owned(), source };
        // The first thing in a new folder: from here on others know it as a result folder.
        fs::create_dir_all(&state).map_err(failed)?;
        let _lock = Lock::of(path)?;
        let is_shared = others(path, None)? > 0;
        let scenario = path.join(SCENARIO_FILE);
        match fs::read_to_string(&scenario) {
            _ if earlier == Earlier::Overwrite && is_shared => {
                let message = format!("another process writes into {}; wait for its end, or stop it", path.display());
                return Err(Error::Usage(message));
            }
            _ if earlier == Earlier::Overwrite => erase::erase(path)?,
            Ok(found) => compare(path, &found, experiment, earlier)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !path.join(RUNS_FOLDER).exists() => {}
            Err(source) => return Err(Error::Read { path: scenario, source }),
        }
        let process = free(&state).map_err(failed)?;
        let alive = File::create(process.join(ALIVE_FILE)).map_err(failed)?;
        let opened = Self { path: path.to_owned(), process, alive: Some(alive) };
        match opened.alive.as_ref().map_or(Ok(()), File::lock) {
            Err(error) if error.kind() != io::ErrorKind::Unsupported => return Err(failed(error)),
            _ => {}
        }
        let marker = opened.process.join(Marker::FILE);
        write_json(&marker, &Marker::of(experiment))?;
        fs::rename(marker, state.join(Marker::FILE)).map_err(failed)?;
        opened.put(SCENARIO_FILE, |file| write_file(file, experiment.resolved.as_bytes()))?;
        Ok(opened)
    }

    /// Has a file written and gives it its name in the folder.
    fn put(&self, name: &str, write: impl FnOnce(&Path) -> Result<(), Error>) -> Result<(), Error> {
        let (unfinished, path) = (self.process.join(name), self.path.join(name));
        write(&unfinished)?;
        fs::rename(unfinished, &path).map_err(|source| Error::Write { path, source })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Carries out a run that writes its files, all of which appear when it is complete. Of a run that fails, and would
    /// fail again, what it wrote stays beside the reason.
    pub(super) fn carry_out(
        &self,
        experiment: &Experiment,
        run: &RunId,
        world: &World,
        outputs: Outputs<'_>,
        threads: &Threads,
    ) -> Result<RunSummary, Error> {
        let unfinished = self.process.join(&run.name);
        let failed = |source| Error::Write { path: unfinished.clone(), source };
        let mut files = RunFiles::create(&unfinished, outputs.files).map_err(failed)?;
        let model_file = outputs.models.then(|| unfinished.join(MODEL_FILE));
        let result = experiment.run_one(run, world, &mut files, threads, model_file.as_deref());
        let summary = match result {
            Ok(summary) => {
                files.finish().map_err(failed)?;
                for (name, table) in world.task.iter().flat_map(|task| task.tables()) {
                    assert!(ID_FILES.contains(&name), "a run has no file {name}");
                    write_file(&unfinished.join(name), table.as_bytes())?;
                }
                write_json(&unfinished.join(RUN_FILE), &summary.with_curve())?;
                Ok(summary)
            }
            Err(error) => {
                // Writes what is still in memory.
                drop(files);
                let Some(failure) = Failure::of(&error) else {
                    fs::remove_dir_all(&unfinished).map_err(failed)?;
                    return Err(error);
                };
                write_json(&unfinished.join(FAILURE_FILE), &failure)?;
                Err(error)
            }
        };
        self.publish(run).map_err(failed)?;
        summary
    }

    /// Gives a run's files their names; those of an earlier try are deleted.
    fn publish(&self, run: &RunId) -> io::Result<()> {
        let (from, to) = (self.process.join(&run.name), self.path.join(RUNS_FOLDER).join(&run.name));
        fs::create_dir_all(&to)?;
        for name in RUN_FILES {
            match fs::rename(from.join(name), to.join(name)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => remove_file(&to.join(name))?,
                result => result?,
            }
        }
        fs::remove_dir(from)
    }
}

/// Unfinished files are deleted. Those of a killed process are deleted by the next one.
impl Drop for ResultFolder {
    fn drop(&mut self) {
        self.alive = None;
        let _ = fs::remove_dir_all(&self.process);
    }
}

/// Refuses a folder that holds something else than results, before anything is made in it.
fn look(path: &Path) -> Result<(), Error> {
    let is_empty = match fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            let message = format!("cannot write {}: a file is in the way; give a new folder to --out", path.display());
            return Err(Error::Usage(message));
        }
        Err(source) => return Err(Error::Write { path: path.to_owned(), source }),
    };
    if !is_empty && !is_result_folder(path) {
        let message =
            format!("{} is not empty and holds no FedGenie experiment; give a new folder to --out", path.display());
        return Err(Error::Usage(message));
    }
    Ok(())
}

/// Whether the experiment in a folder may be continued.
fn compare(path: &Path, found: &str, experiment: &Experiment, earlier: Earlier) -> Result<(), Error> {
    let is_same = found == experiment.resolved;
    match (is_same, earlier) {
        (true, Earlier::Resume) => Ok(()),
        (true, _) => Err(Error::Usage(format!(
            "{} holds this very experiment; choose a new folder, --resume to complete it, or --overwrite to run it again",
            path.display()
        ))),
        (false, _) => Err(Error::Usage(format!(
            "{} holds another experiment ({}){}; choose a new folder, --resume to continue the same one, or --overwrite",
            path.display(),
            name_in(found),
            first_difference(found, &experiment.resolved)
        ))),
    }
}

/// The first line in which two resolved scenarios differ.
fn first_difference(there: &str, here: &str) -> String {
    let (mut there, mut here) = (there.lines(), here.lines());
    loop {
        match (there.next(), here.next()) {
            (None, None) => return String::new(),
            (there, here) if there == here => {}
            (there, here) => {
                let shown = |line: Option<&str>| line.map_or_else(|| "nothing".to_owned(), |line| format!("`{line}`"));
                return format!(": {} there, {} here", shown(there), shown(here));
            }
        }
    }
}

/// The name that a scenario gives itself, and its title.
fn name_in(scenario: &str) -> String {
    let table: toml::Table = scenario.parse().unwrap_or_default();
    let text = |key: &str| table.get(key).and_then(toml::Value::as_str);
    match (text("name"), text("title")) {
        (Some(name), Some(title)) => format!("{name}: {title}"),
        (name, _) => name.unwrap_or("without a name").to_owned(),
    }
}

/// Makes the folder of a process, with the first number that is free.
fn free(state: &Path) -> io::Result<PathBuf> {
    let mut number = 0;
    loop {
        let path = state.join(format!("{PROCESS}{number}"));
        match fs::create_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            result => return result.map(|()| path),
        }
    }
}

/// Counts the processes at work in the folder but for one, and deletes what those left that were killed. The caller
/// holds the lock.
fn others(path: &Path, own: Option<&Path>) -> Result<usize, Error> {
    let state = path.join(STATE_FOLDER);
    let failed = |source| Error::Write { path: state.clone(), source };
    let mut working = 0;
    for entry in fs::read_dir(&state).map_err(failed)? {
        let process = entry.map_err(failed)?.path();
        if own == Some(&process) || !process.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PROCESS))
        {
            continue;
        }
        let alive = match File::open(process.join(ALIVE_FILE)) {
            Ok(file) => match file.try_lock() {
                Ok(()) => false,
                Err(TryLockError::WouldBlock) => true,
                // A file system without locks does not say: the files stay, and nobody waits for the process.
                Err(TryLockError::Error(_)) => continue,
            },
            Err(_) => false,
        };
        if alive {
            working += 1;
            continue;
        }
        match fs::remove_dir_all(&process) {
            // The process that was about to end has done it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => result.map_err(failed)?,
        }
    }
    Ok(working)
}

/// Removes a file that may not be there.
fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// The folder's lock, until dropped. The operating system releases it when a process is killed.
struct Lock {
    _file: File,
}

impl Lock {
    fn of(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(STATE_FOLDER).join("lock");
        let failed = |source| Error::Write { path: path.clone(), source };
        let file = File::options().create(true).append(true).open(&path).map_err(failed)?;
        match file.lock() {
            // On a file system without locks, processes that run one after the other are safe all the same.
            Err(error) if error.kind() != io::ErrorKind::Unsupported => Err(failed(error)),
            _ => Ok(Self { _file: file }),
        }
    }
}
