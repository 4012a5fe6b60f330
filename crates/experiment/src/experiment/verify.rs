//! Replays a folder's runs and finds the first difference.
//!
//! The replay is compared, round by round, with the digests kept in `digests.bin`, with the lines of `rounds.jsonl`,
//! with `events.jsonl.gz` if it exists, and in the end with `run.json`. The first round that differs is played once
//! more to show its event. The manifest is not trusted: it is compared with the scenario (`listing.rs`), and
//! `summary.json` with the results of the replays. Runs that the folder or its summary lacks are named.

mod listing;
mod sinks;

use super::artefacts::{
    self, FAILURE_FILE, Failure, MANIFEST_FILE, Manifest, RUN_FILE, SCENARIO_FILE, SUMMARY_FILE, is_result_folder,
};
use super::execution::guarded;
use super::run_file::RunFile;
use super::shelf::Shelf;
use super::{Experiment, Overrides, RunId, RunSummary, Threads, below, build, kept};
use crate::error::Error;
use crate::scenario::Kinds;
use fedgenie_simulator::run::RunError;
use fedgenie_simulator::task::DataCache;
use fedgenie_simulator::world::World;
use serde::Serialize;
use serde_json::Value;
use sinks::{Capture, Captured, Comparison, FirstRounds, Mismatch, Same, describe};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The first difference between a replay and the stored files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The run; `None` if a file of the experiment differs.
    pub run: Option<String>,
    /// The first round that differs.
    pub round: Option<u32>,
    /// The first event of that round that differs, from 1, where it is known.
    pub event: Option<usize>,
    /// The stored value and the replayed one.
    pub what: String,
}

/// The result of a verification.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Verdict {
    /// Runs that were replayed.
    pub runs: usize,
    /// Runs among them that had failed, and whose replay failed in the same way.
    pub failed: usize,
    /// Runs among them that differ.
    pub differing: usize,
    /// The first difference, if any.
    pub difference: Option<Difference>,
    /// Another build that wrote the folder, or `unknown`. That alone is no difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_build: Option<String>,
    /// Notice that the scenario was edited after the runs, which then differ because of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edited: Option<String>,
    /// Runs of the experiment that the folder or its summary lacks.
    pub missing: Vec<String>,
    /// The command that makes them, or the summary where that alone is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion: Option<String>,
}

impl Verdict {
    /// Whether everything is there and as it was.
    pub const fn is_good(&self) -> bool {
        self.difference.is_none() && self.completion.is_none()
    }
}

/// Replays, in order, the runs of a folder that its manifest lists, or the complete ones where it has no manifest yet;
/// refuses if the data differ from the original ones.
///
/// # Errors
/// If the folder cannot be read or its scenario cannot be run.
pub fn verify(folder: &Path, data: Option<&Path>, threads: &Threads) -> Result<Verdict, Error> {
    verify_within(folder, &ReplayOptions { data: data.map(Path::to_owned), ..ReplayOptions::default() }, threads)
}

/// How a folder is replayed.
#[derive(Clone, Debug, Default)]
pub struct ReplayOptions {
    /// Folder that relative data paths start from; otherwise that of the folder's own run.
    pub data: Option<PathBuf>,
    /// Whether the folder's scenario may read every file that its user may.
    pub allow_paths: bool,
    /// Policies and tasks of a program.
    pub kinds: Kinds,
    /// Whether the last run is replayed first, which finds state that runs share.
    pub backwards: bool,
}

/// As [`verify`], with options.
///
/// # Errors
/// As [`verify`].
pub fn verify_within(folder: &Path, options: &ReplayOptions, threads: &Threads) -> Result<Verdict, Error> {
    let ReplayOptions { data, allow_paths, kinds, backwards } = options.clone();
    let manifest = manifest_of(folder)?;
    below::plain(folder, SCENARIO_FILE).map_err(|source| Error::Read { path: folder.join(SCENARIO_FILE), source })?;
    let overrides = Overrides { data: data.clone(), allow_paths, kinds, ..Overrides::default() };
    let experiment = Experiment::load_compared(&folder.join(SCENARIO_FILE), &overrides, manifest.as_ref());
    match (experiment, manifest.and_then(|manifest| listing::scenario_differs(folder, &manifest))) {
        (Ok(experiment), _) => compare(&experiment, (folder, data.as_deref()), backwards, threads),
        (Err(error), Some(edited)) => Err(Error::Usage(format!("{edited}: {error}"))),
        (Err(error), None) => Err(error),
    }
}

/// As [`verify`], for an experiment that is read already, such as one with a rule of clusters of a program's own.
///
/// # Errors
/// As [`verify`].
pub fn verify_with(
    experiment: &Experiment,
    folder: &Path,
    data: Option<&Path>,
    threads: &Threads,
) -> Result<Verdict, Error> {
    compare(experiment, (folder, data), false, threads)
}

fn compare(
    experiment: &Experiment,
    (folder, data): (&Path, Option<&Path>),
    backwards: bool,
    threads: &Threads,
) -> Result<Verdict, Error> {
    let manifest = manifest_of(folder)?;
    let (files, listed) = (Shelf::of(folder), manifest.as_ref().map(Listed::of));
    let mut verdict = Verdict::default();
    if let Some(manifest) = &manifest {
        if let Some(what) = listing::cannot_replay(experiment, manifest)? {
            return Ok(Verdict { difference: Some(of_experiment(what)), ..verdict });
        }
        verdict.edited = listing::scenario_differs(folder, manifest);
        verdict.other_build = match &*manifest.build {
            own if own == build() => None,
            "" => Some("unknown".to_owned()),
            other => Some(other.to_owned()),
        };
    }
    let replayed =
        match (replay(&files, experiment, (listed.as_ref(), backwards), threads, &mut verdict), &verdict.edited) {
            // An edited scenario explains the error.
            (Err(error), Some(edited)) => return Err(Error::Usage(format!("{edited}: {error}"))),
            (replayed, _) => replayed?,
        };
    if verdict.difference.is_none() {
        verdict.difference = verdict.edited.clone().map(of_experiment);
    }
    verdict.missing = missing(&files, experiment, listed.as_ref());
    if let (Some(manifest), None) = (&manifest, &verdict.difference) {
        let what = listing::differs(&files, experiment, manifest, &verdict.missing);
        let what = what.or_else(|| match verdict.missing.is_empty() {
            true => listing::summary_differs(&files, experiment, replayed),
            false => None,
        });
        verdict.difference = what.map(of_experiment);
    }
    if manifest.is_none() || !verdict.missing.is_empty() || summary_of(folder).is_none() {
        verdict.completion = Some(artefacts::completion_with(folder, data));
    }
    Ok(verdict)
}

/// The runs that a manifest lists.
struct Listed<'a> {
    runs: BTreeSet<&'a str>,
    failed: BTreeSet<&'a str>,
}

impl<'a> Listed<'a> {
    fn of(manifest: &'a Manifest) -> Self {
        let names = |names: &'a [String]| names.iter().map(String::as_str).collect();
        Self { runs: names(&manifest.runs), failed: names(&manifest.failed) }
    }
}

/// A folder's manifest; `None` if no process has ended its work in it yet.
fn manifest_of(folder: &Path) -> Result<Option<Manifest>, Error> {
    let has_scenario = below::is_there(folder, SCENARIO_FILE);
    let is_begun = is_result_folder(folder) && has_scenario && !below::is_there(folder, MANIFEST_FILE);
    if is_begun { Ok(None) } else { artefacts::read_manifest(folder).map(Some) }
}

/// Whether a run's files are complete: its summary is written last.
fn is_complete(files: &Shelf, run: &RunId) -> bool {
    files.is_there(&Shelf::name(&run.name, RUN_FILE))
}

/// Whether the folder has a run, by its manifest if there is one. A deleted run is not there.
fn is_there(files: &Shelf, run: &RunId, listed: Option<&Listed<'_>>) -> bool {
    match listed {
        Some(listed) => listed.runs.contains(&*run.name) && files.has(&run.name),
        None => is_complete(files, run),
    }
}

/// Replays the runs that are there. Returns the summaries of complete runs without a difference.
fn replay(
    files: &Shelf,
    experiment: &Experiment,
    (listed, backwards): (Option<&Listed<'_>>, bool),
    threads: &Threads,
    verdict: &mut Verdict,
) -> Result<Vec<RunSummary>, Error> {
    let (cache, mut summaries) = (DataCache::default(), Vec::new());
    let mut runs = experiment.runs();
    if backwards {
        runs.reverse();
    }
    for run in runs {
        let has_failed = listed.is_some_and(|listed| listed.failed.contains(&*run.name));
        if !has_failed && !is_there(files, &run, listed) {
            continue;
        }
        verdict.runs += 1;
        verdict.failed += usize::from(has_failed);
        match verify_run(files, experiment, &run, has_failed, &cache, threads)? {
            Ok(summary) => summaries.extend(summary),
            Err(difference) => {
                verdict.differing += 1;
                verdict.difference.get_or_insert(difference);
            }
        }
    }
    if backwards {
        summaries.reverse();
    }
    Ok(summaries)
}

/// Names of runs of the experiment that are not there, or that the summary lacks although there is a manifest. Failed
/// runs do not count as missing.
fn missing(files: &Shelf, experiment: &Experiment, listed: Option<&Listed<'_>>) -> Vec<String> {
    let summary = summary_of(files.folder());
    let key = |run: &Value| Some((run["point"].as_u64()?, run["seed"].as_u64()?, run["arm"].as_str()?.to_owned()));
    let of_summary = |summary: &Value| summary["runs"].as_array().map(|runs| runs.iter().filter_map(key).collect());
    let summarised: Option<BTreeSet<_>> = summary.as_ref().and_then(of_summary);
    let is_missing = |run: &RunId| {
        let label = experiment.points[run.point].1.arms[run.arm].label.clone();
        let has_failed = listed.is_some_and(|listed| listed.failed.contains(&*run.name));
        // A missing summary is reported by itself, and not as missing runs.
        let lists = |known: &BTreeSet<_>| known.contains(&(run.point as u64, run.seed, label));
        let is_summarised = listed.is_none() || summarised.as_ref().is_none_or(lists);
        !(has_failed || is_there(files, run, listed) && is_summarised)
    };
    experiment.runs().into_iter().filter(is_missing).map(|run| run.name).collect()
}

/// The contents of a folder's summary, if it exists.
fn summary_of(folder: &Path) -> Option<Value> {
    serde_json::from_str(&below::read_to_string(folder, SUMMARY_FILE).ok()?).ok()
}

const fn of_experiment(what: String) -> Difference {
    Difference { run: None, round: None, event: None, what }
}

/// Replays a run. Returns its summary, `None` for a run that failed again in the same way, or the first difference.
fn verify_run(
    files: &Shelf,
    experiment: &Experiment,
    run: &RunId,
    has_failed: bool,
    cache: &DataCache,
    threads: &Threads,
) -> Result<Result<Option<RunSummary>, Difference>, Error> {
    let differs = |round, event, what| Ok(Err(Difference { run: Some(run.name.clone()), round, event, what }));
    let failure = has_failed.then(|| Failure::read(files, &run.name)).flatten();
    if has_failed && failure.is_none() {
        return differs(None, None, format!("the manifest says that it failed, and there is no {FAILURE_FILE}"));
    }
    let mut comparison = match Comparison::open(files, &run.name) {
        Ok(comparison) => comparison,
        // A panic may come before the first file.
        Err(_) if failure.is_some() => Comparison::empty(),
        Err(error) => return differs(None, None, error.to_string()),
    };
    // Building the world may be the step that panics.
    let world = match guarded(run, || Ok(experiment.world_of(run, cache)?)) {
        Ok(world) => world,
        Err(error) => return ended(run, &error, failure.as_ref()).ok_or(error),
    };
    let summary = match guarded(run, || experiment.run_one(run, &world, &mut comparison, threads, None)) {
        Ok(summary) => summary,
        Err(Error::Run { source: RunError::Io(error), .. }) => {
            // The comparison ends the replay through this error; see below.
            let Some(mismatch) = error.get_ref().and_then(|inner| inner.downcast_ref::<Mismatch>()) else {
                return differs(Some(0), None, format!("the stored files cannot be read: {error}"));
            };
            let mut what = mismatch.what.clone();
            if let (Some(event), true) = (mismatch.event, mismatch.stored_event.is_none()) {
                let records = capture(experiment, run, &world, mismatch.round, threads)?;
                if let Some(record) = records.get(event) {
                    what = format!("{what}; the replay's event is: {record}");
                }
            }
            return differs(Some(mismatch.round), mismatch.event.map(|event| event + 1), what);
        }
        Err(error) => {
            let ended = ended(run, &error, failure.as_ref()).ok_or(error)?;
            return match (&ended, comparison.left_over()?) {
                (Ok(_), Some(what)) => differs(None, None, what),
                _ => Ok(ended),
            };
        }
    };
    if let Some(what) = comparison.left_over()? {
        return differs(Some(summary.rounds + 1), None, what);
    }
    if let Some(failure) = failure {
        let what = format!("the run had failed ({}), its replay did not", failure.error);
        return differs(Some(summary.rounds), None, what);
    }
    match run_file_differs(files, run, &summary) {
        Some(what) => differs(Some(summary.rounds), None, what),
        None => Ok(Ok(Some(summary))),
    }
}

/// Replays the first rounds of a run and compares them with its files. Returns the first difference.
pub(super) fn first_rounds(
    experiment: &Experiment,
    files: &Shelf,
    (run, world): (&RunId, &World),
    last: u32,
    threads: &Threads,
) -> Result<Result<(), String>, Error> {
    let comparison = match Comparison::open(files, &run.name) {
        Ok(comparison) => comparison,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let mut sink = FirstRounds { comparison, last };
    match experiment.run_one(run, world, &mut sink, threads, None) {
        Ok(summary) => Ok(Err(format!("the replay ends after round {}", summary.rounds))),
        Err(Error::Run { source: RunError::Io(error), .. }) => Ok(match error.get_ref() {
            Some(inner) if inner.is::<Same>() => Ok(()),
            inner => match inner.and_then(|inner| inner.downcast_ref::<Mismatch>()) {
                Some(Mismatch { round, what, .. }) => Err(format!("round {round}: {what}")),
                None => Err(format!("its files cannot be read: {error}")),
            },
        }),
        Err(error) => Err(error),
    }
}

/// The end of a replay that failed: as the run had failed, or not. `None` if the error is not a run's.
fn ended(run: &RunId, error: &Error, failure: Option<&Failure>) -> Option<Result<Option<RunSummary>, Difference>> {
    let again = Failure::of(error)?;
    if Some(&again) == failure {
        return Some(Ok(None));
    }
    let what = format!("the replay failed: {}", again.error);
    Some(Err(Difference { run: Some(run.name.clone()), round: None, event: None, what }))
}

/// The first difference between a run's `run.json` and its replay.
fn run_file_differs(files: &Shelf, run: &RunId, summary: &RunSummary) -> Option<String> {
    if files.is_there(&Shelf::name(&run.name, FAILURE_FILE)) {
        return Some(format!("there is a {FAILURE_FILE} beside {RUN_FILE}"));
    }
    let Some(stored) = RunFile::read(files, &run.name) else {
        return Some(format!("{RUN_FILE} cannot be read"));
    };
    let differing = kept::files_differ(files, &run.name, &stored);
    let (stored, replayed) = (stored.into_results(), listing::as_read(&summary.with_curve()));
    if stored != replayed { Some(describe(RUN_FILE, &stored, &replayed)) } else { differing }
}

/// The records of one round of a replay, as text.
fn capture(
    experiment: &Experiment,
    run: &RunId,
    world: &World,
    round: u32,
    threads: &Threads,
) -> Result<Vec<String>, Error> {
    match experiment.run_one(run, world, &mut Capture::of(round), threads, None) {
        Err(Error::Run { source: RunError::Io(error), .. }) => {
            let records = error.into_inner().and_then(|inner| inner.downcast::<Captured>().ok());
            Ok(records.map_or_else(Vec::new, |records| records.0))
        }
        Ok(_) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
