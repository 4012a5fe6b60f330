//! The only access to the contents of a result folder, for `report`, `diff`, `export`, `validate` and programs.
//!
//! ```text
//! folders ─▶ Reader ─▶ every run that the manifest's policies, seeds and points make, each with its Status
//!                 ├──▶ its sink: missing, failed and changed runs, with the command that makes them
//!                 └──▶ Error::Changed, unless changed files are allowed
//! ```
//!
//! Runs are read through a [`Reader`] only, and a reader needs a sink for its notices.
//!
//! *Digests.* The digests of `scenario.toml`, `summary.json`, `failed.json` and `run.json` are compared with the
//! manifest's, and that of `run.json` with its own too; digests of rounds where these are read. A file of a run that is
//! not read must exist with the length in `run.json`: a report's cost does not grow with the number of rounds. Pictures
//! and timelines are no input and are not checked. `verify` compares everything.

mod agree;
mod look;
mod notice;

pub use notice::{Notice, of_runs};

use super::artefacts::{self, MANIFEST_FILE, Manifest, RUN_FILE, SCENARIO_FILE, SUMMARY_FILE, TOOL};
use super::kept::Found;
use super::shelf::Shelf;
use super::summary::Common;
use super::{Experiment, RunId, RunSummary, below, check_runs, run_name};
use crate::error::Error;
use crate::scenario::is_name;
use fedgenie_core::record::FORMAT_VERSION;
use fedgenie_core::text;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Runs that are read side by side before the next are.
const AT_ONCE: usize = 1024;

/// The state of a run in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// The summary, and all files that it names.
    Complete,
    /// The summary without the other files: the run was put aside.
    SummaryOnly,
    /// The reason why it failed.
    Failed,
    /// Nothing usable.
    Missing,
}

impl Status {
    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::SummaryOnly => "summary-only",
            Self::Failed => "failed",
            Self::Missing => "missing",
        }
    }

    /// Whether there is a summary.
    pub const fn has_summary(self) -> bool {
        matches!(self, Self::Complete | Self::SummaryOnly)
    }
}

/// A file that was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// Its name below the folder.
    pub file: String,
    /// The sign of the change.
    pub how: String,
}

impl Changed {
    fn new(file: &str, how: impl Into<String>) -> Self {
        Self { file: file.to_owned(), how: how.into() }
    }

    fn altered(file: &str) -> Self {
        Self::new(file, "is not the file that was written")
    }
}

impl fmt::Display for Changed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.file, self.how)
    }
}

/// A run of an experiment, and its state in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunState {
    /// Its name.
    pub name: String,
    /// The policy's label.
    pub arm: String,
    /// The seed.
    pub seed: u64,
    /// Index of the sweep's point.
    pub point: usize,
    /// The state.
    pub status: Status,
    /// Why it failed, or why it is unusable.
    pub reason: Option<String>,
    /// Its changed files.
    pub changed: Vec<Changed>,
}

/// The contents of a folder.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The folder's name; of several of one name the second is `NAME (2)`.
    pub name: String,
    /// The folder.
    pub folder: PathBuf,
    /// Its files.
    pub files: Arc<Shelf>,
    /// The manifest, which is of this program and of its records' format.
    pub manifest: Manifest,
    /// The resolved scenario.
    pub scenario: String,
    /// The same as a table.
    pub table: toml::Table,
    /// Every run of the experiment: point by point, seed by seed, policy by policy.
    pub states: Vec<RunState>,
    /// The summaries of the runs that have one, in the same order.
    pub runs: Vec<RunSummary>,
    /// Changed files of the experiment.
    pub changed: Vec<Changed>,
    /// The notices about it.
    pub notices: Vec<Notice>,
}

/// Reads result folders, and reports notices about them.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    say: &'a dyn Fn(&Notice),
    allows_changed: bool,
    uses_rounds: bool,
}

impl fmt::Debug for Reader<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { say: _, allows_changed, uses_rounds } = self;
        let mut shown = formatter.debug_struct("Reader");
        shown.field("allows_changed", allows_changed).field("uses_rounds", uses_rounds).finish_non_exhaustive()
    }
}

impl<'a> Reader<'a> {
    /// A reader that refuses changed files, and reports all notices before it returns results.
    pub const fn new(say: &'a dyn Fn(&Notice)) -> Self {
        Self { say, allows_changed: false, uses_rounds: false }
    }

    /// Whether it accepts changed files as they are, and names them.
    #[must_use]
    pub const fn allowing_changed(self, allows_changed: bool) -> Self {
        Self { allows_changed, ..self }
    }

    /// A reader for uses of `rounds.jsonl` as well, and of events where they were recorded.
    #[must_use]
    pub const fn using_rounds(self) -> Self {
        Self { uses_rounds: true, ..self }
    }

    /// Reads folders that `run --out` wrote.
    ///
    /// # Errors
    /// If a folder does not exist, is unfinished, is of another program or another format of records, or lists an
    /// unknown run; if a file was changed and that is not allowed.
    pub fn read(&self, folders: &[PathBuf]) -> Result<Vec<Stored>, Error> {
        let mut all = folders.iter().map(|folder| self.read_one(folder)).collect::<Result<Vec<_>, _>>()?;
        let names = distinct(all.iter().map(|stored| stored.name.as_str()));
        for (stored, name) in all.iter_mut().zip(names) {
            stored.name = name;
        }
        if !self.allows_changed {
            refuse_changed(&all)?;
        }
        let is_alone = all.len() == 1;
        for stored in &mut all {
            stored.notices = notice::of(stored, is_alone, self.uses_rounds);
            stored.notices.iter().for_each(self.say);
        }
        Ok(all)
    }

    fn read_one(&self, folder: &Path) -> Result<Stored, Error> {
        let manifest = manifest_of(folder)?;
        let scenario_file = folder.join(SCENARIO_FILE);
        let scenario = below::read_to_string(folder, SCENARIO_FILE)
            .map_err(|source| Error::Read { path: scenario_file.clone(), source })?;
        let table: toml::Table = scenario
            .parse()
            .map_err(|error| Error::Usage(format!("{} is not TOML: {error}", text::path(&scenario_file))))?;
        let mut changed = Vec::new();
        let digest = artefacts::hash(scenario.as_bytes());
        if manifest.files.get(SCENARIO_FILE) != Some(&digest) || manifest.scenario_hash != digest {
            changed.push(Changed::altered(SCENARIO_FILE));
        }
        let files = Shelf::of(folder);
        changed.extend(files.damaged().iter().map(|(pack, why)| Changed::new(pack, format!("cannot be read: {why}"))));
        let listed = look::Listed::of(&files, &manifest, self.uses_rounds);
        changed.extend(listed.altered(SUMMARY_FILE)?);
        changed.extend(agree::disagreement(&scenario, &table, &manifest));
        let mut expected = expected(folder, &manifest)?.into_iter();
        let mut common = Common::default();
        let (mut states, mut runs) = (Vec::with_capacity(expected.len()), Vec::with_capacity(expected.len()));
        // Some at a time: of many runs there is not room for two lists.
        while expected.len() > 0 {
            let some: Vec<RunState> = expected.by_ref().take(AT_ONCE).collect();
            let looked = some.into_par_iter().map(|state| listed.look(state)).collect::<Result<Vec<_>, _>>()?;
            for (state, run) in looked {
                states.push(state);
                runs.extend(run.map(|mut run| {
                    common.share(&mut run);
                    run
                }));
            }
        }
        Ok(Stored {
            name: name_of(folder),
            folder: folder.to_owned(),
            files: Arc::new(files),
            manifest,
            scenario,
            table,
            states,
            runs,
            changed,
            notices: Vec::new(),
        })
    }
}

/// Names made unique: the second of one name is `NAME (2)`.
pub fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for name in names {
        let (mut own, mut number) = (name.to_owned(), 2);
        while all.contains(&own) {
            own = format!("{name} ({number})");
            number += 1;
        }
        all.push(own);
    }
    all
}

/// The name of a folder.
pub fn name_of(folder: &Path) -> String {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    absolute.file_name().map_or_else(|| "results".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// The manifest of a folder that can be read.
fn manifest_of(folder: &Path) -> Result<Manifest, Error> {
    if !folder.is_dir() {
        let message = format!("there is no folder {}; give one that `fedgenie run --out` wrote", folder.display());
        return Err(Error::Usage(message));
    }
    if !below::is_there(folder, MANIFEST_FILE) && artefacts::is_result_folder(folder) {
        return Err(Error::Usage(unfinished(folder)));
    }
    let manifest = artefacts::read_manifest(folder)?;
    let Manifest { tool, version, format, .. } = &manifest;
    if tool != TOOL {
        let message = format!("{} is of the tool {tool:?}, not of {TOOL}", folder.join(MANIFEST_FILE).display());
        return Err(Error::Usage(message));
    }
    if *format != FORMAT_VERSION {
        return Err(Error::Usage(format!(
            "{} was written by fedgenie {version} with records of format {format}; this is fedgenie {} and reads format \
             {FORMAT_VERSION}: run the scenario again",
            folder.display(),
            env!("CARGO_PKG_VERSION")
        )));
    }
    Ok(manifest)
}

/// The error for a folder whose experiment was interrupted.
fn unfinished(folder: &Path) -> String {
    let files = Shelf::of(folder);
    let is_complete = |run: &&String| files.is_there(&Shelf::name(run, RUN_FILE));
    let complete = match files.runs().iter().filter(is_complete).count() {
        1 => "1 run is".to_owned(),
        count => format!("{count} runs are"),
    };
    format!("{} is unfinished: {complete} complete; `{}` completes it", folder.display(), artefacts::completion(folder))
}

/// Every run of a manifest's policies, seeds and points, in an unknown state.
///
/// # Errors
/// If they are too many or some are the same, or if the manifest lists another one.
fn expected(folder: &Path, manifest: &Manifest) -> Result<Vec<RunState>, Error> {
    let Manifest { arms, seeds, dropped, points, runs, failed, .. } = manifest;
    let path = folder.join(MANIFEST_FILE);
    let wrong = |what: String| Error::Usage(format!("{} {what}", path.display()));
    if let Some(label) = arms.iter().find(|label| !is_name(label)) {
        return Err(wrong(format!("lists the policy {label:?}, which is no name of a policy")));
    }
    let count = [points.len(), seeds.len(), arms.len()].into_iter().map(|count| count as u128).product();
    check_runs(count).map_err(|message| wrong(format!("lists too much: {message}")))?;
    let mut states = Vec::new();
    for point in 0..points.len() {
        for &seed in seeds {
            let has = |arm: &&String| dropped.get(*arm).is_none_or(|&last| seed <= u64::from(last));
            states.extend(arms.iter().filter(has).map(|arm| RunState {
                name: run_name(arm, (point, points.len()), seed),
                arm: arm.clone(),
                seed,
                point,
                status: Status::Missing,
                reason: None,
                changed: Vec::new(),
            }));
        }
    }
    let known: BTreeSet<&String> = states.iter().map(|state| &state.name).collect();
    if known.len() < states.len() {
        return Err(wrong("lists a policy or a seed twice".to_owned()));
    }
    match runs.iter().chain(failed).find(|name| !known.contains(name)) {
        Some(name) => {
            Err(wrong(format!("lists the run {name:?}, which is no name of a run of its policies and seeds")))
        }
        None => Ok(states),
    }
}

/// Most changed files that an error names.
const NAMED: usize = 5;

/// Refuses changed files, by name.
fn refuse_changed(all: &[Stored]) -> Result<(), Error> {
    let changed = |stored: &'_ Stored| -> Vec<(PathBuf, String)> {
        let of_runs = stored.states.iter().flat_map(|state| &state.changed);
        let all = stored.changed.iter().chain(of_runs);
        all.map(|Changed { file, how }| (stored.folder.join(file), how.clone())).collect()
    };
    let found: Vec<(PathBuf, String)> = all.iter().flat_map(changed).collect();
    if found.is_empty() {
        return Ok(());
    }
    let named: Vec<String> =
        found.iter().take(NAMED).map(|(path, how)| format!("{} {how}", text::path(path))).collect();
    let more = match found.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let folder = all.iter().find(|stored| found[0].0.starts_with(&stored.folder));
    let folder = folder.map(|stored| artefacts::shell_quoted(&stored.folder.to_string_lossy())).unwrap_or_default();
    Err(Error::Changed(format!(
        "{}{more}; `fedgenie verify {folder}` compares everything with a replay, and --allow-changed takes files as they \
         are and says so in what it writes",
        named.join(", ")
    )))
}

impl Experiment {
    /// The state in a folder of each run of this experiment, to continue it. A run that was put aside is complete:
    /// statistics read its summary only.
    pub fn stored(&self, folder: &Path) -> Vec<(RunId, Found)> {
        let kept = self.kept(folder, &[]);
        let found = |run: RunId| {
            let found = match kept.find(&run) {
                Found::Damaged(why) => {
                    match kept.summary(&run).filter(|_| look::is_put_aside(&kept.files, &run.name)) {
                        Some(summary) => Found::Complete(Box::new(summary)),
                        None => Found::Damaged(why),
                    }
                }
                found => found,
            };
            (run, found)
        };
        self.runs().into_iter().map(found).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_one_name_are_told_apart() {
        let names = ["r", "other", "r", "r (2)", "r"];
        assert_eq!(distinct(names.into_iter()), ["r", "other", "r (2)", "r (2) (2)", "r (3)"]);
    }
}
