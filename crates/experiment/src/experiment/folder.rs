//! A result folder while a process writes into it, alone or beside others.
//!
//! ```text
//! DIR/.fedgenie/lock               held by the process that prepares the folder or writes its summary
//! DIR/.fedgenie/experiment.json    the experiment; written first, so that an unfinished folder is recognised too
//! DIR/.fedgenie/written            names of page and pictures written so far
//! DIR/.fedgenie/process-N/         one for each process: `alive`, locked while it lives, `shard`, the part of the
//!                                  runs that it carries out, and its unfinished files: RUN/ with records so far and
//!                                  checkpoints
//! DIR/.fedgenie/left/RUN/          unfinished files of a process that has ended or was killed, with a checkpoint
//! ```
//!
//! *Processes.* Several may be at work in a folder if their shards have no run in common.
//!
//! *Runs* are written below the folder of their process and renamed when they are complete, `run.json` last, so that
//! processes never write the same file and a run with a `run.json` is whole. Many runs go into packs instead
//! (`packing.rs`). A process that opens the folder moves unfinished runs of killed processes to `left/` if they have a
//! checkpoint, and deletes the others; a process that carries out such a run takes it from there, by renaming as well,
//! and continues it.
//!
//! *The summary* covers the whole
//! folder. A process that ends while others are still at work leaves it to them, so that the last one writes it once,
//! with the runs of all.

mod erase;
mod finish;
mod packing;
mod processes;
mod runs;

use super::artefacts::{
    Marker, RUNS_FOLDER, SCENARIO_FILE, STATE_FOLDER, hash, is_result_folder, outside_of, read_manifest, without_seeds,
};
use super::below;
use super::files::{sync_folder, write_file, write_json};
use super::program::Outside;
use super::{Experiment, Interval};
use crate::error::Error;
use packing::Journal;
use processes::{Lock, Process, forget_parts, others, refuse_overlap, state_of};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

pub use erase::note_written;
pub(super) use erase::written;
pub(super) use finish::is_picture;
pub use processes::Shard;
pub(super) use processes::is_at_work;

/// Whether the disk must have a run before it counts as complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// It must.
    ForDisk,
    /// It need not: the run is somewhere else as well.
    No,
}

/// Treatment of an experiment that the folder already holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Earlier {
    /// It stays, and nothing is written.
    Refuse,
    /// It is continued, if it is the same one: complete runs are kept.
    Resume,
    /// Runs are added to it, if it is the same one: those of a shard, beside other shards'. Of complete runs, the
    /// shard's own are made anew.
    Join,
    /// Its files are deleted.
    Overwrite,
}

/// A folder of results that this process writes into.
#[derive(Debug)]
pub struct ResultFolder {
    path: PathBuf,
    process: Process,
    /// BLAKE3 of the resolved scenario and of the data that it reads.
    experiment: String,
    /// How often runs are saved on their way.
    interval: Interval,
    /// The pack of the runs that this process has completed, where runs are packed.
    journal: Mutex<Option<Journal>>,
    is_packed: bool,
}

impl ResultFolder {
    /// Opens the folder for some of the experiment's runs: makes it, continues the experiment in it, or deletes the
    /// experiment in it.
    ///
    /// # Errors
    /// If the folder holds anything else, cannot be written, or holds an experiment without leave to resume or
    /// overwrite it; or if another process is at work on these runs, or on an experiment to overwrite. Nothing is
    /// deleted then.
    pub fn open(path: &Path, experiment: &Experiment, earlier: Earlier, shard: Shard) -> Result<Self, Error> {
        look(path, earlier)?;
        // The first file in a new folder: it marks the folder as a result folder for other processes.
        let state = state_of(path)?;
        let failed = |source| Error::Write { path: path.to_owned(), source };
        let _lock = Lock::of(path)?;
        let others = others(path, None)?;
        if earlier != Earlier::Overwrite {
            refuse_others(path, experiment, earlier)?;
        } else if others.is_empty() {
            erase::erase(path)?;
        } else {
            let message = format!("another process writes into {}; wait for its end, or stop it", path.display());
            return Err(Error::Usage(message));
        }
        refuse_overlap(path, shard, &others)?;
        forget_parts(&state).map_err(failed)?;
        unfinished_scenarios(path)?.iter().try_for_each(|part| remove_file(part)).map_err(failed)?;
        erase::note_listed(path)?;
        let known = Marker::of(experiment);
        let made_of = format!("{}\0{:?}{}", experiment.resolved, known.data, known.code());
        let process = Process::enter(&state, shard).map_err(failed)?;
        let opened = Self {
            path: path.to_owned(),
            process,
            experiment: hash(made_of.as_bytes()),
            interval: Interval::default(),
            journal: Mutex::default(),
            is_packed: experiment.is_packed(),
        };
        let marker = opened.process.path.join(Marker::FILE);
        write_json(&marker, &known)?;
        fs::rename(marker, state.join(Marker::FILE)).and_then(|()| sync_folder(&state)).map_err(failed)?;
        opened.put(SCENARIO_FILE, |file| write_file(file, experiment.resolved.as_bytes()))?;
        Ok(opened)
    }

    /// A folder for packs alone, which is deleted when they are read; nothing tells its experiment.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn for_packs(path: &Path) -> Result<Self, Error> {
        let state = state_of(path)?;
        let failed = |source| Error::Write { path: path.to_owned(), source };
        let process = Process::enter(&state, Shard::WHOLE).map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            process,
            experiment: String::new(),
            interval: Interval::Off,
            journal: Mutex::default(),
            is_packed: true,
        })
    }

    /// A place among the unfinished files of this process.
    pub(super) fn place_for(&self, number: usize) -> PathBuf {
        self.process.path.join(format!("arrived-{number}"))
    }

    /// Has a file written and gives it its name in the folder.
    fn put(&self, name: &str, write: impl FnOnce(&Path) -> Result<(), Error>) -> Result<(), Error> {
        let (unfinished, path) = (self.process.path.join(name), self.path.join(name));
        write(&unfinished)?;
        let named = fs::rename(unfinished, &path).and_then(|()| sync_folder(&self.path));
        named.map_err(|source| Error::Write { path, source })
    }

    /// Has runs saved at other intervals.
    #[must_use]
    pub const fn saving(mut self, interval: Interval) -> Self {
        self.interval = interval;
        self
    }

    /// Deletes an experiment that was not finished, and the folder if nothing else is in it.
    ///
    /// # Errors
    /// If a file cannot be deleted.
    pub(super) fn erase(path: &Path) -> Result<(), Error> {
        let lock = Lock::of(path)?;
        erase::erase(path)?;
        drop(lock);
        let state = path.join(STATE_FOLDER);
        let failed = |source| Error::Write { path: state.clone(), source };
        remove_file(&path.join(SCENARIO_FILE)).map_err(failed)?;
        below::remove_folder(&state).map_err(failed)?;
        // Foreign files stay.
        let _ = fs::remove_dir(path);
        Ok(())
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Refuses a folder that [`ResultFolder::open`] refuses for what lies in it. Writes nothing.
pub(super) fn refuse_unfit(path: &Path, experiment: &Experiment, earlier: Earlier) -> Result<(), Error> {
    look(path, earlier)?;
    if earlier == Earlier::Overwrite { Ok(()) } else { refuse_others(path, experiment, earlier) }
}

/// Refuses a folder whose experiment may not be continued.
fn refuse_others(path: &Path, experiment: &Experiment, earlier: Earlier) -> Result<(), Error> {
    match below::read_to_string(path, SCENARIO_FILE) {
        Ok(found) => {
            compare(path, &found, experiment, earlier)?;
            refuse_edited(path, experiment)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.join(RUNS_FOLDER).exists() => Ok(()),
        Err(source) => Err(Error::Read { path: path.join(SCENARIO_FILE), source }),
    }
}

/// Refuses a folder that holds other files than results, before anything is made in it.
fn look(path: &Path, earlier: Earlier) -> Result<(), Error> {
    let is_empty = match fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            let message = format!("cannot write {}: a file is in the way; give a new folder to --out", path.display());
            return Err(Error::Usage(message));
        }
        Err(source) => return Err(Error::Write { path: path.to_owned(), source }),
    };
    if !is_empty && !is_result_folder(path) && (earlier == Earlier::Refuse || !is_only_begun(path)?) {
        let message =
            format!("{} is not empty and holds no FedGenie experiment; give a new folder to --out", path.display());
        return Err(Error::Usage(message));
    }
    Ok(())
}

/// Unfinished scenario files of a process that was killed while it wrote the first file of the folder.
fn unfinished_scenarios(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |source| Error::Read { path: path.to_owned(), source };
    let is_part = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let number = name.strip_prefix(SCENARIO_FILE).and_then(|rest| rest.strip_suffix("part"));
        number.is_some_and(|number| number.bytes().all(|byte| byte == b'.' || byte.is_ascii_digit()))
    };
    let paths = fs::read_dir(path).map_err(failed)?.map(|entry| entry.map(|entry| entry.path()));
    Ok(paths.collect::<io::Result<Vec<_>>>().map_err(failed)?.into_iter().filter(is_part).collect())
}

/// Whether the folder holds such files alone.
fn is_only_begun(path: &Path) -> Result<bool, Error> {
    let entries = fs::read_dir(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    Ok(entries.count() == unfinished_scenarios(path)?.len())
}

/// Whether the experiment in a folder may be continued.
fn compare(path: &Path, found: &str, experiment: &Experiment, earlier: Earlier) -> Result<(), Error> {
    // A plan adds seeds to those that are there.
    let adds_seeds = || experiment.until.is_some() && without_seeds(found) == without_seeds(&experiment.resolved);
    let is_same = found == experiment.resolved || adds_seeds();
    match (is_same, earlier) {
        (true, Earlier::Resume | Earlier::Join) => Ok(()),
        (true, _) => Err(Error::Usage(format!(
            "{} holds this very experiment; choose a new folder, --resume to complete it, or --overwrite to run it again",
            path.display()
        ))),
        (false, _) => {
            let (name, differs) = (name_in(found), first_difference(found, &experiment.resolved, ["there", "here"]));
            let or = match earlier {
                Earlier::Resume | Earlier::Join => {
                    "or --overwrite; more seeds are written into the scenario.toml that lies there"
                }
                Earlier::Refuse | Earlier::Overwrite => "--resume to continue the same one, or --overwrite",
            };
            let folder = path.display();
            Err(Error::Usage(format!("{folder} holds another experiment ({name}){differs}; choose a new folder, {or}")))
        }
    }
}

/// Refuses a folder whose scenario was edited beyond its seeds after runs of it were made.
pub(super) fn refuse_edited(path: &Path, experiment: &Experiment) -> Result<(), Error> {
    let differs = outside_of(path).and_then(|outside| outside.differs(Outside::of(experiment).as_ref()));
    if let Some(what) = differs {
        return Err(Error::Usage(format!("{}: {what}; choose a new folder, or --overwrite", path.display())));
    }
    // The hidden files may be missing in a copied folder.
    let marked = Marker::read(path).map(|marker| marker.experiment).filter(|written| !written.is_empty());
    let written = marked.or_else(|| read_manifest(path).ok().map(|manifest| manifest.experiment));
    match written.is_some_and(|written| !written.is_empty() && written != without_seeds(&experiment.resolved)) {
        false => Ok(()),
        true => Err(Error::Usage(format!(
            "{} was edited after runs of it were made, and they are of the scenario as it was; choose a new folder, or \
             --overwrite",
            path.join(SCENARIO_FILE).display()
        ))),
    }
}

/// The first line in which two resolved scenarios differ.
fn first_difference(there: &str, here: &str, [at, by]: [&str; 2]) -> String {
    let (mut there, mut here) = (there.lines(), here.lines());
    loop {
        match (there.next(), here.next()) {
            (None, None) => return String::new(),
            (there, here) if there == here => {}
            (there, here) => {
                let shown = |line: Option<&str>| {
                    let line = line.map(str::trim).filter(|line| !line.is_empty());
                    line.map_or_else(|| "nothing".to_owned(), |line| format!("`{line}`"))
                };
                return format!(": {} {at}, {} {by}", shown(there), shown(here));
            }
        }
    }
}

/// The first line in which a resolved scenario differs from that of another folder, if any does.
pub(super) fn differs_from(this: &str, other: &str) -> Option<String> {
    (this != other).then(|| format!(" ({}){}", name_in(this), first_difference(this, other, ["in it", "in the other"])))
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

/// Removes a file that may not be there.
fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
