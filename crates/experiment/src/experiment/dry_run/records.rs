//! The files of a run that is tried out, in a temporary folder: their sizes, and what writing them costs.

use super::super::files::sync_file;
use super::super::names::{RECORD_FILES, RUN_FILE};
use super::super::{Curve, RunSummary, run_file};
use fedgenie_core::record::Record;
use fedgenie_simulator::recorder::{ROUNDS_FILE, RoundMark, RoundSummary, RunFileOptions, RunFiles, Sink};
use fedgenie_simulator::world::World;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

/// Recorded rounds that are written of a run whose real records nobody wants.
const SAMPLE: u32 = 8;

/// A folder of this process among the temporary files of the system, deleted when it is dropped.
#[derive(Debug)]
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// A new one; `None` if the system has no room for it.
    pub fn new() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("fedgenie-dry-run-{}-{number}", process::id()));
        fs::create_dir(&path).ok()?;
        Some(Self(path))
    }

    /// The folder of a run.
    pub fn of(&self, run: &str) -> PathBuf {
        self.0.join(run)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left there is the system's to delete.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Sizes of a run's files.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sizes {
    /// Bytes of a recorded round in `rounds.jsonl`.
    pub per_recorded: f64,
    /// Bytes of any round in other files.
    pub per_round: f64,
    /// Bytes of a round that `run.json` keeps.
    pub per_kept: f64,
    /// Bytes of a result without its course: in `run.json`, and as much in `summary.json`.
    pub summary: f64,
    /// Bytes of tables of users and items.
    pub tables: f64,
}

impl Sizes {
    /// Bytes of a run with so many rounds, of which every so many are recorded and so many are evaluated.
    pub fn of(&self, rounds: f64, every: u32, evaluated: f64) -> f64 {
        let recorded = (rounds / f64::from(every.max(1))).floor();
        let records = self.per_recorded * recorded + self.per_round * rounds;
        self.tables + records + self.summary + self.result(rounds, evaluated)
    }

    /// Bytes of its result, which is in `run.json`, and in memory until the summary is made.
    pub fn result(&self, rounds: f64, evaluated: f64) -> f64 {
        let most = Curve::MOST as f64;
        // Of evenly spaced ones between half of the most and all of them are kept.
        let thinned = |count: f64| if count > most { 0.75 * most } else { count };
        self.summary + self.per_kept * rounds.min(thinned(rounds).max(thinned(evaluated)))
    }
}

/// Writes the records of a run that is tried out, or those of its first rounds.
pub(super) struct Records {
    files: Option<RunFiles>,
    folder: PathBuf,
    /// Recorded rounds that are still written; `None` for all.
    left: Option<u32>,
    rounds: u32,
    recorded: u32,
}

impl Records {
    /// Of a run with a folder. `is_kept` says that the run itself would write all of them.
    pub fn new(folder: &Path, options: &RunFileOptions, is_kept: bool) -> Self {
        let files = RunFiles::create(folder, options).ok();
        let left = (!is_kept).then_some(SAMPLE);
        Self { files, folder: folder.to_owned(), left, rounds: 0, recorded: 0 }
    }

    fn is_writing(&self) -> bool {
        self.files.is_some() && self.left != Some(0)
    }

    /// Ends the files, as a run does. `None` if they could not be written.
    pub fn finish(self, summary: &RunSummary, world: &World) -> Option<Sizes> {
        let Self { files, folder, left, rounds, recorded } = self;
        files?.finish().ok()?;
        let length = |name: &str| fs::metadata(folder.join(name)).map_or(0, |file| file.len()) as f64;
        if left.is_none() {
            for name in RECORD_FILES {
                let _ = sync_file(&folder.join(name));
            }
        }
        run_file::write(&folder.join(RUN_FILE), summary, BTreeMap::new()).ok()?;
        let without = RunSummary { curve: Vec::new(), ..summary.clone() };
        let bare = serde_json::to_vec_pretty(&without.with_curve()).ok()?.len() as f64;
        let tables: usize =
            world.task.iter().flat_map(|task| task.appendix().tables).map(|(_, table)| table.len()).sum();
        let others: f64 = RECORD_FILES.into_iter().filter(|name| *name != ROUNDS_FILE).map(length).sum();
        let each = |bytes: f64, count: u32| bytes / f64::from(count.max(1));
        Some(Sizes {
            per_recorded: each(length(ROUNDS_FILE), recorded),
            per_round: each(others, rounds),
            per_kept: each((length(RUN_FILE) - bare).max(0.0), summary.curve.len() as u32),
            summary: bare,
            tables: tables as f64,
        })
    }
}

impl Sink for Records {
    fn record(&mut self, record: &Record<'_>) -> io::Result<()> {
        match &mut self.files {
            Some(files) if self.left != Some(0) => files.record(record),
            _ => Ok(()),
        }
    }

    fn round(&mut self, summary: &RoundSummary<'_>, is_recorded: bool, mark: &RoundMark) -> io::Result<()> {
        if !self.is_writing() {
            return Ok(());
        }
        self.rounds += 1;
        if is_recorded {
            self.recorded += 1;
            self.left = self.left.map(|left| left - 1);
        }
        self.files.iter_mut().try_for_each(|files| files.round(summary, is_recorded, mark))
    }

    fn wants_checksums(&self) -> bool {
        self.is_writing() && self.files.as_ref().is_some_and(Sink::wants_checksums)
    }
}
