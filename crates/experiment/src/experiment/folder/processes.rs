//! Processes that write into one result folder: their runs, and whether they are alive.

use super::super::artefacts::{RECORD_FILES, STATE_FOLDER};
use super::super::files::is_part;
use super::super::{Experiment, RunId, below, checkpoint};
use crate::error::Error;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// Locked while its process lives.
const ALIVE_FILE: &str = "alive";
/// Says which part of the experiment a process carries out.
const SHARD_FILE: &str = "shard";
/// What the folder of a process is called, before its number.
const PROCESS: &str = "process-";
/// The folder of unfinished runs without a process.
const LEFT: &str = "left";

/// A part of an experiment's runs: all policies of those pairs of point and seed whose number is `index` modulo
/// `count`. Runs that are compared, and share a world, are made together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: usize,
    count: usize,
}

impl Shard {
    /// All runs.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// Part `index` of `count`, from 0; `None` if there is no such part.
    pub const fn new(index: usize, count: usize) -> Option<Self> {
        if index < count { Some(Self { index, count }) } else { None }
    }

    /// Reads `I/N`; `None` if that is no part.
    pub fn parse(text: &str) -> Option<Self> {
        let (index, count) = text.split_once('/')?;
        Self::new(index.parse().ok()?, count.parse().ok()?)
    }

    /// The runs of this part, in their order.
    pub fn of(self, experiment: &Experiment) -> Vec<RunId> {
        let policies = experiment.first().arms.len();
        let numbered = experiment.runs().into_iter().enumerate();
        numbered.filter(|(number, _)| self.has(number / policies)).map(|(_, run)| run).collect()
    }

    /// Whether the pair of this number, point by point and seed by seed from 0, belongs to this part.
    const fn has(self, number: usize) -> bool {
        number % self.count == self.index
    }

    /// Whether a long list of pairs has one that belongs to both parts: some number has the index of each modulo its
    /// count.
    const fn overlaps(self, other: Self) -> bool {
        let (mut divisor, mut rest) = (self.count, other.count);
        while rest > 0 {
            (divisor, rest) = (rest, divisor % rest);
        }
        self.index % divisor == other.index % divisor
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

/// The folder of messages between processes; made if it does not exist.
///
/// # Errors
/// If it cannot be made, or leads elsewhere.
pub(super) fn state_of(folder: &Path) -> Result<PathBuf, Error> {
    let state = folder.join(STATE_FOLDER);
    let made = match below::is_own_folder(&state) {
        true => Ok(()),
        // Links are not followed: making a folder where one is fails.
        false => fs::create_dir_all(folder).and_then(|()| fs::create_dir(&state)),
    };
    match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && !below::is_own_folder(&state) => {
            let message = format!("{} is no folder of FedGenie's but a link or a file; delete it", state.display());
            Err(Error::Usage(message))
        }
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(Error::Write { path: folder.to_owned(), source: error })
        }
        _ => Ok(state),
    }
}

/// The place of this process in a result folder, locked until the process has ended its work or its life.
#[derive(Debug)]
pub(super) struct Process {
    /// Unfinished files of this process.
    pub(super) path: PathBuf,
    /// Open, and so locked.
    alive: Option<File>,
}

impl Process {
    /// Takes the first number that is free. The caller holds the lock.
    pub(super) fn enter(state: &Path, shard: Shard) -> io::Result<Self> {
        let path = free(state)?;
        fs::write(path.join(SHARD_FILE), shard.to_string())?;
        let alive = File::create_new(path.join(ALIVE_FILE))?;
        let entered = Self { path, alive: Some(alive) };
        match entered.alive.as_ref().map_or(Ok(()), File::lock) {
            Err(error) if error.kind() != io::ErrorKind::Unsupported => Err(error),
            _ => Ok(entered),
        }
    }
}

/// Deletes unfinished files, except those of runs that can continue. Files of a killed process are left to the next
/// one.
impl Drop for Process {
    fn drop(&mut self) {
        // The next process finds files that cannot be moved now.
        let is_left = leave(&self.path);
        self.alive = None;
        if is_left.is_ok() {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Moves the runs of a process that have a checkpoint to the folder where the next process looks for them.
fn leave(process: &Path) -> io::Result<()> {
    let left = process.with_file_name(LEFT);
    for entry in fs::read_dir(process)? {
        let run = entry?.path();
        if !below::is_own_folder(&run) || !checkpoint::has_one(&run) {
            continue;
        }
        if !below::is_own_folder(&left) {
            fs::create_dir(&left)?;
        }
        let place = left.join(run.file_name().unwrap_or_default());
        below::remove_folder(&place)?;
        fs::rename(&run, &place)?;
    }
    Ok(())
}

/// Takes over the unfinished files of a run that an earlier process has left, if there are any: from here on they are
/// in `to`, for this process alone. Unusable files are deleted, and so are planted links.
pub(super) fn take_over(folder: &Path, run: &str, to: &Path) -> io::Result<()> {
    let left = folder.join(STATE_FOLDER).join(LEFT);
    if !below::is_own_folder(&left) || !below::is_own_folder(&left.join(run)) {
        return Ok(());
    }
    fs::rename(left.join(run), to)?;
    for entry in fs::read_dir(to)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_known = RECORD_FILES.iter().chain(&checkpoint::FILES).any(|known| name == *known);
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else if !(is_known && entry.file_type()?.is_file()) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Deletes temporary files that killed processes have left here. The caller holds the lock, under which alone such
/// files are written.
pub(super) fn forget_parts(state: &Path) -> io::Result<()> {
    for entry in fs::read_dir(state)? {
        let entry = entry?;
        if is_part(&entry.file_name().to_string_lossy()) && entry.file_type()?.is_file() {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Deletes all unfinished files of earlier processes. The caller holds the lock.
pub(super) fn forget_left(folder: &Path) -> io::Result<()> {
    below::remove_folder(&folder.join(STATE_FOLDER).join(LEFT))
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

/// The parts of the other processes at work in the folder. Moves the runs of killed processes that have a checkpoint to
/// the folder of unfinished runs, and deletes the others. The caller holds the lock.
pub(super) fn others(folder: &Path, own: Option<&Path>) -> Result<Vec<Shard>, Error> {
    let state = folder.join(STATE_FOLDER);
    let failed = |source| Error::Write { path: state.clone(), source };
    let mut working = Vec::new();
    for entry in fs::read_dir(&state).map_err(failed)? {
        let process = entry.map_err(failed)?.path();
        let is_process = process.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PROCESS));
        if own == Some(&process) || !is_process || !below::is_own_folder(&process) {
            continue;
        }
        let alive = match below::open(&process, ALIVE_FILE) {
            Ok(file) => match file.try_lock() {
                Ok(()) => false,
                Err(TryLockError::WouldBlock) => true,
                // A file system without locks does not tell: the files stay, and no process waits for the other.
                Err(TryLockError::Error(_)) => continue,
            },
            Err(_) => false,
        };
        if alive {
            let shard = below::read_to_string(&process, SHARD_FILE).ok();
            working.push(shard.and_then(|shard| Shard::parse(&shard)).unwrap_or(Shard::WHOLE));
            continue;
        }
        match leave(&process).and_then(|()| fs::remove_dir_all(&process)) {
            // The process itself has done it while it ended.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => result.map_err(failed)?,
        }
    }
    Ok(working)
}

/// Whether a process writes into a folder.
///
/// # Errors
/// If the folder cannot be read.
pub(in super::super) fn is_at_work(folder: &Path) -> Result<bool, Error> {
    let state = folder.join(STATE_FOLDER);
    if !below::is_own_folder(&state) {
        return Ok(false);
    }
    let failed = |source| Error::Read { path: state.clone(), source };
    for entry in fs::read_dir(&state).map_err(failed)? {
        let process = entry.map_err(failed)?.path();
        let is_locked = |file: File| matches!(file.try_lock(), Err(TryLockError::WouldBlock));
        if below::open(&process, ALIVE_FILE).is_ok_and(is_locked) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Refuses runs that another process is carrying out.
pub(super) fn refuse_overlap(folder: &Path, shard: Shard, others: &[Shard]) -> Result<(), Error> {
    let Some(&other) = others.iter().find(|other| other.overlaps(shard)) else { return Ok(()) };
    let what = if other == Shard::WHOLE { "this experiment".to_owned() } else { format!("shard {other}") };
    let folder = folder.display();
    let message = format!("another process carries out {what} in {folder}; wait for its end, or stop it");
    Err(Error::Usage(message))
}

/// The folder's lock, until dropped. The operating system releases it when a process is killed.
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock of a folder whose state folder exists.
    pub(super) fn of(folder: &Path) -> Result<Self, Error> {
        let name = format!("{STATE_FOLDER}/lock");
        let path = folder.join(&name);
        if below::is_there(folder, &name) && !fs::symlink_metadata(&path).is_ok_and(|found| found.is_file()) {
            let message = format!("{} is no file of FedGenie's but a link or a device; delete it", path.display());
            return Err(Error::Usage(message));
        }
        let failed = |source| Error::Write { path: path.clone(), source };
        // Windows locks no file that is open for appending alone.
        let file = File::options().create(true).read(true).append(true).open(&path).map_err(failed)?;
        match file.lock() {
            // On a file system without locks, processes that run one after the other are still safe.
            Err(error) if error.kind() != io::ErrorKind::Unsupported => Err(failed(error)),
            _ => Ok(Self { _file: file }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counted out over all runs of a list that is long enough.
    #[test]
    fn parts_overlap_if_a_run_belongs_to_both() {
        let parts: Vec<Shard> =
            (1..=6).flat_map(|count| (0..count).filter_map(move |i| Shard::new(i, count))).collect();
        assert_eq!(parts.len(), 21);
        for &one in &parts {
            for &other in &parts {
                let shared = (0..60).any(|number| one.has(number) && other.has(number));
                assert_eq!(one.overlaps(other), shared, "{one} and {other}");
            }
        }
        assert_eq!((Shard::parse("3/4"), Shard::parse("1/0")), (Shard::new(3, 4), None));
        assert_eq!(Shard::parse("2/5").map(|shard| shard.to_string()).as_deref(), Some("2/5"));
    }
}
