//! Replays a folder's runs and finds the first difference.
//!
//! The replay is compared, round by round, with the digests kept in `digests.bin`, with the lines of `rounds.jsonl`,
//! and with `events.jsonl.gz` where it is there. The first round that differs is played once more to show its event.
//! Runs that the folder or its summary lacks are named.

mod sinks;

use super::artefacts::{
    self, Failure, MANIFEST_FILE, Manifest, RUN_FILE, RUNS_FOLDER, SCENARIO_FILE, SUMMARY_FILE, is_result_folder,
};
use super::{Experiment, Overrides, RunId, Threads};
use crate::error::Error;
use fedgenie_simulator::run::RunError;
use fedgenie_simulator::task::DataCache;
use fedgenie_simulator::world::World;
use serde::Serialize;
use serde_json::Value;
use sinks::{Capture, Captured, Comparison, Mismatch};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The first thing in which a replay differs from what is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The run, or none if a file of the experiment differs.
    pub run: Option<String>,
    /// The first round that differs.
    pub round: Option<u32>,
    /// The first event of that round that differs, from 1, where it is known.
    pub event: Option<usize>,
    /// What was stored and what the replay gave.
    pub what: String,
}

/// What a verification found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Verdict {
    /// Runs that were replayed.
    pub runs: usize,
    /// Those of them that had failed, and whose replay failed in the same way.
    pub failed: usize,
    /// Those of them that differ.
    pub differing: usize,
    /// The first difference, if any.
    pub difference: Option<Difference>,
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

/// Replays, in order, the runs of a folder that its manifest lists, or that are complete where it has none so far;
/// unless the data are others than those that were learned from.
///
/// # Errors
/// If the folder cannot be read or its scenario cannot be run.
pub fn verify(folder: &Path, data: Option<&Path>, threads: &Threads) -> Result<Verdict, Error> {
    verify_within(folder, data, false, threads)
}

/// As [`verify`]; with `allow_paths` the folder's scenario may read everything that its user may.
///
/// # Errors
/// As [`verify`].
pub fn verify_within(
    folder: &Path,
    data: Option<&Path>,
    allow_paths: bool,
    threads: &Threads,
) -> Result<Verdict, Error> {
    let manifest = manifest_of(folder)?;
    let overrides = Overrides { data: data.map(Path::to_owned), allow_paths, ..Overrides::default() };
    let experiment = Experiment::load_compared(&folder.join(SCENARIO_FILE), &overrides, manifest.as_ref())?;
    verify_with(&experiment, folder, data, threads)
}

/// As [`verify`], for an experiment that the folder's scenario alone does not describe: one with policies or a task of
/// a program's own.
///
/// # Errors
/// As [`verify`].
pub fn verify_with(
    experiment: &Experiment,
    folder: &Path,
    data: Option<&Path>,
    threads: &Threads,
) -> Result<Verdict, Error> {
    let manifest = manifest_of(folder)?;
    if let Some(manifest) = &manifest
        && let Some(label) = manifest.arms.iter().find(|label| !experiment.labels().contains(label))
    {
        let message = format!("the policy {label} is a program's own; verify the folder with that program");
        return Err(Error::Usage(message));
    }
    let mut verdict = Verdict::default();
    if let Some(manifest) = &manifest
        && let Some(difference) = data_differ(experiment, manifest)?
    {
        return Ok(Verdict { difference: Some(difference), ..verdict });
    }
    replay(folder, experiment, manifest.as_ref(), threads, &mut verdict)?;
    verdict.missing = missing(folder, experiment, manifest.as_ref());
    if let Some(manifest) = &manifest {
        let difference = verdict.difference.take();
        verdict.difference = difference.or_else(|| files_differ(folder, experiment, manifest, &verdict.missing));
    }
    if manifest.is_none() || !verdict.missing.is_empty() {
        let data = data.map(|data| format!(" --data {}", artefacts::shell_quoted(&data.to_string_lossy())));
        verdict.completion = Some(artefacts::completion(folder) + &data.unwrap_or_default());
    }
    Ok(verdict)
}

/// A folder's manifest; none of a folder in which no process has ended its work so far.
fn manifest_of(folder: &Path) -> Result<Option<Manifest>, Error> {
    let has_scenario = folder.join(SCENARIO_FILE).is_file();
    let is_begun = is_result_folder(folder) && has_scenario && !folder.join(MANIFEST_FILE).exists();
    if is_begun { Ok(None) } else { artefacts::read_manifest(folder).map(Some) }
}

/// Whether a run's files are complete: its summary is written last.
fn is_complete(folder: &Path, run: &RunId) -> bool {
    folder.join(RUNS_FOLDER).join(&run.name).join(RUN_FILE).is_file()
}

/// Whether the folder has a run, by its manifest if there is one. A run that somebody deleted is not there.
fn is_there(folder: &Path, run: &RunId, manifest: Option<&Manifest>) -> bool {
    match manifest {
        Some(manifest) => manifest.runs.contains(&run.name) && folder.join(RUNS_FOLDER).join(&run.name).exists(),
        None => is_complete(folder, run),
    }
}

/// Replays the runs that are there.
fn replay(
    folder: &Path,
    experiment: &Experiment,
    manifest: Option<&Manifest>,
    threads: &Threads,
    verdict: &mut Verdict,
) -> Result<(), Error> {
    let cache = DataCache::default();
    for run in experiment.runs() {
        let has_failed = manifest.is_some_and(|manifest| manifest.failed.contains(&run.name));
        if !has_failed && !is_there(folder, &run, manifest) {
            continue;
        }
        verdict.runs += 1;
        verdict.failed += usize::from(has_failed);
        let failure = has_failed.then(|| Failure::read(folder, &run.name)).flatten();
        if let Some(difference) = verify_run(folder, experiment, &run, failure.as_ref(), &cache, threads)? {
            verdict.differing += 1;
            verdict.difference.get_or_insert(difference);
        }
    }
    Ok(())
}

/// Names of runs of the experiment that are not there, or that the summary lacks although there is a manifest; of those
/// that failed nothing is missing.
fn missing(folder: &Path, experiment: &Experiment, manifest: Option<&Manifest>) -> Vec<String> {
    let summary: Value = fs::read_to_string(folder.join(SUMMARY_FILE))
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let key = |run: &Value| Some((run["point"].as_u64()?, run["seed"].as_u64()?, run["arm"].as_str()?.to_owned()));
    let summarised: BTreeSet<_> = summary["runs"].as_array().into_iter().flatten().filter_map(key).collect();
    let is_missing = |run: &RunId| {
        let label = experiment.points[run.point].1.arms[run.arm].label.clone();
        let has_failed = manifest.is_some_and(|manifest| manifest.failed.contains(&run.name));
        let is_summarised = manifest.is_none() || summarised.contains(&(run.point as u64, run.seed, label));
        !(has_failed || is_there(folder, run, manifest) && is_summarised)
    };
    experiment.runs().into_iter().filter(is_missing).map(|run| run.name).collect()
}

const fn of_experiment(what: String) -> Difference {
    Difference { run: None, round: None, event: None, what }
}

/// A file of data that is not the one that was read.
fn data_differ(experiment: &Experiment, manifest: &Manifest) -> Result<Option<Difference>, Error> {
    let found = experiment.data_digests()?;
    let differs = |(name, digest): (&String, &String)| found.get(name).is_some_and(|found| found != digest);
    let name = manifest.data.iter().find(|&entry| differs(entry)).map(|(name, _)| name);
    Ok(name.map(|name| {
        of_experiment(format!("the data differ: {name} is not the file that was learned from; nothing was replayed"))
    }))
}

/// What the replays did not look at: files whose contents no longer are what the manifest says, but for those of
/// missing runs.
fn files_differ(folder: &Path, experiment: &Experiment, manifest: &Manifest, missing: &[String]) -> Option<Difference> {
    let known: BTreeSet<String> = experiment.runs().into_iter().map(|run| run.name).collect();
    if let Some(name) = manifest.runs.iter().chain(&manifest.failed).find(|&name| !known.contains(name)) {
        return Some(of_experiment(format!("the manifest lists {name}, which is no run of the scenario")));
    }
    let folders = missing.iter().map(|run| Path::new(RUNS_FOLDER).join(run));
    let deleted: Vec<_> = folders.filter(|run| !folder.join(run).exists()).collect();
    let is_deleted = |name: &str| deleted.iter().any(|run| Path::new(name).starts_with(run));
    manifest.files.iter().filter(|(name, _)| !is_deleted(name)).find_map(|(name, digest)| {
        match artefacts::hash_file(&folder.join(name)) {
            Ok(found) if found == *digest => None,
            Ok(_) => Some(of_experiment(format!("{name} is not the file that was written: its BLAKE3 digest differs"))),
            Err(error) => Some(of_experiment(format!("{name}: {error}"))),
        }
    })
}

fn verify_run(
    folder: &Path,
    experiment: &Experiment,
    run: &RunId,
    failure: Option<&Failure>,
    cache: &DataCache,
    threads: &Threads,
) -> Result<Option<Difference>, Error> {
    let world = experiment.world_of(run, cache)?;
    let found =
        |round, event, what| Ok(Some(Difference { run: Some(run.name.clone()), round: Some(round), event, what }));
    let mut comparison = match Comparison::open(&folder.join(RUNS_FOLDER).join(&run.name)) {
        Ok(comparison) => comparison,
        Err(error) => {
            let run = Some(run.name.clone());
            return Ok(Some(Difference { run, round: None, event: None, what: error.to_string() }));
        }
    };
    let summary = match experiment.run_one(run, &world, &mut comparison, threads, None) {
        Ok(result) => result,
        Err(Error::Run { source: RunError::Io(error), .. }) => {
            // The comparison ends the replay through this error; see below.
            let Some(mismatch) = error.get_ref().and_then(|inner| inner.downcast_ref::<Mismatch>()) else {
                return found(0, None, format!("the stored files cannot be read: {error}"));
            };
            let mut what = mismatch.what.clone();
            if let (Some(event), true) = (mismatch.event, mismatch.stored_event.is_none()) {
                let records = capture(experiment, run, &world, mismatch.round, threads)?;
                if let Some(record) = records.get(event) {
                    what = format!("{what}; the replay's event is: {record}");
                }
            }
            return found(mismatch.round, mismatch.event.map(|event| event + 1), what);
        }
        Err(error) => {
            let again = Failure::of(&error);
            if again.is_some() && again.as_ref() == failure {
                return Ok(None);
            }
            return match again {
                Some(again) => {
                    let run = Some(run.name.clone());
                    let what = format!("the replay failed: {}", again.error);
                    Ok(Some(Difference { run, round: None, event: None, what }))
                }
                None => Err(error),
            };
        }
    };
    if let Some(what) = comparison.left_over()? {
        return found(summary.rounds + 1, None, what);
    }
    match (artefacts::completed(folder, &run.name), failure) {
        (_, Some(failure)) => {
            found(summary.rounds, None, format!("the run had failed ({}), its replay did not", failure.error))
        }
        (Some(stored), _) if stored.digest == summary.digest => Ok(None),
        (Some(stored), _) => {
            let what = format!(
                "{RUN_FILE} holds the digest {}, the replay gave {}",
                stored.digest.timeline, summary.digest.timeline
            );
            found(summary.rounds, None, what)
        }
        (None, _) => found(summary.rounds, None, format!("{RUN_FILE} cannot be read")),
    }
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
