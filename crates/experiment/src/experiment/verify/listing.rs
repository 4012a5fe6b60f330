//! Compares a manifest with the scenario and with the existing files, and the summary with the runs.

use super::super::artefacts::{
    Failure, MANIFEST_FILE, Manifest, RUNS_FOLDER, SCENARIO_FILE, SUMMARY_FILE, TOOL, hash, listed, without_seeds,
};
use super::super::folder::{is_picture, written};
use super::super::program::Outside;
use super::super::run_file::RunFile;
use super::super::shelf::Shelf;
use super::super::{Experiment, RunSummary, below, build};
use super::sinks::describe;
use crate::error::Error;
use fedgenie_core::record::FORMAT_VERSION;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A value after it was written as JSON and read back.
pub(super) fn as_read(value: &impl Serialize) -> Value {
    let text = serde_json::to_vec(value).expect("summaries can be written as JSON");
    serde_json::from_slice(&text).expect("what was written can be read")
}

/// Why a replay would prove nothing: the format of records or the data differ.
pub(super) fn cannot_replay(experiment: &Experiment, manifest: &Manifest) -> Result<Option<String>, Error> {
    let Manifest { tool, version, format, .. } = manifest;
    if tool != TOOL {
        return Ok(Some(format!("{MANIFEST_FILE} is of the tool {tool:?}, not of {TOOL}; nothing was replayed")));
    }
    if *format != FORMAT_VERSION {
        return Ok(Some(format!(
            "the records are of format {format} (fedgenie {version}), and this is format {FORMAT_VERSION} (fedgenie {}); \
             nothing was replayed",
            env!("CARGO_PKG_VERSION")
        )));
    }
    if let Some(what) = manifest.outside.as_ref().and_then(|outside| outside.differs(Outside::of(experiment).as_ref()))
    {
        return Ok(Some(format!("{what}; nothing was replayed")));
    }
    let found = experiment.data_digests()?;
    let differs = |(name, digest): (&String, &String)| found.get(name).is_some_and(|found| found != digest);
    if let Some((name, _)) = manifest.data.iter().find(|&entry| differs(entry)) {
        let what = format!("the data differ: {name} is not the file that was learned from; nothing was replayed");
        return Ok(Some(what));
    }
    // Names change with the folder of data, contents do not.
    let listed: BTreeSet<&String> = manifest.data.values().collect();
    let unlisted = found.iter().find(|(_, digest)| !listed.contains(digest));
    Ok(unlisted.map(|(name, _)| format!("the data differ: {name} is not in {MANIFEST_FILE}; nothing was replayed")))
}

/// The notice about a scenario that was edited after the runs.
pub(super) fn scenario_differs(folder: &Path, manifest: &Manifest) -> Option<String> {
    let read = below::read_to_string(folder, SCENARIO_FILE).unwrap_or_default();
    let is_as_written = manifest.files.get(SCENARIO_FILE).is_none_or(|digest| *digest == hash(read.as_bytes()));
    (!is_as_written).then(|| was_changed(SCENARIO_FILE))
}

fn was_changed(name: &str) -> String {
    format!("{name} is not the file that was written: its BLAKE3 digest differs")
}

/// The first wrong entry of a manifest; missing runs do not count.
pub(super) fn differs(
    files: &Shelf,
    experiment: &Experiment,
    manifest: &Manifest,
    missing: &[String],
) -> Option<String> {
    let runs = experiment.runs();
    let known: BTreeSet<&String> = runs.iter().map(|run| &run.name).collect();
    if let Some(name) = manifest.runs.iter().chain(&manifest.failed).find(|name| !known.contains(name)) {
        return Some(format!("the manifest lists {name}, which is no run of the scenario"));
    }
    let ordered = |names: &[String]| {
        let listed: BTreeSet<&String> = names.iter().collect();
        runs.iter().map(|run| &run.name).filter(|name| listed.contains(name)).eq(names)
    };
    let points = experiment.summarise(Vec::new(), &BTreeMap::new()).points;
    let hashes = [&manifest.scenario_hash, &hash(experiment.resolved.as_bytes())];
    // Earlier builds did not write it.
    let own = without_seeds(&experiment.resolved);
    let is_same_experiment = manifest.experiment == own || manifest.experiment.is_empty() && manifest.build != build();
    let agreed = [
        ("scenario_hash", hashes[0] == hashes[1]),
        ("experiment", is_same_experiment),
        ("arms", manifest.arms == experiment.labels()),
        ("seeds", manifest.seeds == experiment.seeds),
        ("points", manifest.points == points),
        ("with", manifest.with == experiment.with),
        ("runs", ordered(&manifest.runs)),
        ("failed", ordered(&manifest.failed)),
    ];
    if let Some((key, _)) = agreed.iter().find(|(_, is_same)| !is_same) {
        return Some(format!("{key} of {MANIFEST_FILE} differs from {SCENARIO_FILE}"));
    }
    if manifest.other_builds != other_builds(files, manifest) {
        return Some(format!("other_builds of {MANIFEST_FILE} differs from the builds that the runs name"));
    }
    files_differ(files, manifest, missing)
}

/// Complete runs of a folder by other builds than the manifest's.
fn other_builds(files: &Shelf, manifest: &Manifest) -> BTreeMap<String, String> {
    let of = |run: &String| {
        let made_by = RunFile::read(files, run)?.build().to_owned();
        (made_by != manifest.build).then(|| (run.clone(), made_by))
    };
    manifest.runs.iter().filter_map(of).collect()
}

/// The first file that the manifest lists and that was changed, or that exists and is not listed.
fn files_differ(shelf: &Shelf, manifest: &Manifest, missing: &[String]) -> Option<String> {
    let mut expected: BTreeSet<String> = [SCENARIO_FILE, SUMMARY_FILE].map(str::to_owned).into();
    for run in manifest.runs.iter().chain(&manifest.failed) {
        let files = listed().map(|name| Shelf::name(run, name));
        expected.extend(files.filter(|name| shelf.is_there(name)));
    }
    let pictures = written(shelf.folder()).into_iter().filter(|name| is_picture(name) && shelf.is_there(name));
    expected.extend(pictures);
    let missing: BTreeSet<&str> = missing.iter().map(String::as_str).collect();
    let is_deleted = |name: &str| run_of(name).is_some_and(|run| missing.contains(run) && !shelf.has(run));
    for (name, digest) in manifest.files.iter().filter(|(name, _)| !is_deleted(name)) {
        match shelf.digest(name) {
            Ok((_, found)) if found == *digest => {}
            Ok(_) => return Some(was_changed(name)),
            Err(error) => return Some(format!("{name}: cannot read it: {error}")),
        }
        if !expected.remove(name) && !is_picture(name) {
            return Some(format!("{MANIFEST_FILE} lists {name}, which is no file of the experiment"));
        }
    }
    let unlisted = expected.into_iter().find(|name| !run_of(name).is_some_and(|run| missing.contains(run)));
    unlisted.map(|name| format!("{MANIFEST_FILE} does not list {name}"))
}

/// The run that a file belongs to.
fn run_of(name: &str) -> Option<&str> {
    Some(name.strip_prefix(RUNS_FOLDER)?.strip_prefix('/')?.split_once('/')?.0)
}

/// The first difference between `summary.json` and the runs.
pub(super) fn summary_differs(files: &Shelf, experiment: &Experiment, runs: Vec<RunSummary>) -> Option<String> {
    let replayed = as_read(&experiment.summarise(runs, &Failure::all(files, experiment)));
    let stored = files.read_to_string(SUMMARY_FILE).ok();
    let stored = stored.and_then(|text| serde_json::from_str::<Value>(&text).ok()).unwrap_or_default();
    (stored != replayed).then(|| describe(SUMMARY_FILE, &stored, &replayed))
}
