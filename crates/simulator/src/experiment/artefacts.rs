//! The folder that `fedgenie run --out` writes.
//!
//! ```text
//! DIR/manifest.json      tool, version, scenario hash, policies, seeds, points, files with digests
//! DIR/scenario.toml      the resolved scenario
//! DIR/summary.json       all results
//! DIR/*.svg              figures
//! DIR/report.html        the report; like figures/, it can be made again and is no part of the manifest
//! DIR/runs/NAME/         rounds.jsonl, digests.bin, run.json, events.jsonl.gz
//! ```

use super::files::{write_file, write_json};
use super::{CurvePoint, Experiment, RunPlace, RunSummary, Summary};
use crate::error::Error;
use crate::recorder::{EVENTS_FILE, MARKS_FILE, ROUNDS_FILE};
use fedgenie_core::record::FORMAT_VERSION;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The list of everything in the folder, written last.
pub const MANIFEST_FILE: &str = "manifest.json";
/// The resolved scenario, written first.
pub const SCENARIO_FILE: &str = "scenario.toml";
/// All results.
pub const SUMMARY_FILE: &str = "summary.json";
/// The report.
pub const PAGE_FILE: &str = "report.html";
/// Figures of a report, where they are written into files.
pub const FIGURES_FOLDER: &str = "figures";
/// The folder of runs.
pub const RUNS_FOLDER: &str = "runs";
/// A complete run's summary and course.
pub const RUN_FILE: &str = "run.json";
/// The final model of a run, where asked for.
pub const MODEL_FILE: &str = "model.safetensors";

/// `manifest.json`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// `fedgenie`.
    pub tool: String,
    /// Version of the tool.
    pub version: String,
    /// Version of the record format.
    pub format: u32,
    /// BLAKE3 of `scenario.toml`.
    pub scenario_hash: String,
    /// The policies' labels.
    pub arms: Vec<String>,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// The sweep's points.
    pub points: Vec<BTreeMap<String, String>>,
    /// Names of complete runs.
    pub runs: Vec<String>,
    /// BLAKE3 of every file, by path.
    pub files: BTreeMap<String, String>,
    /// BLAKE3 of every file that examples, partition or weights were read from.
    #[serde(default)]
    pub data: BTreeMap<String, String>,
    /// Where the scenario's files were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

/// Where names of files in a scenario lead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The folder of the scenario.
    pub base: PathBuf,
    /// The folder of data sets, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<PathBuf>,
}

/// The origin of a scenario that lies in a result folder.
pub(super) fn origin(scenario: &Path) -> Option<Origin> {
    if scenario.file_name()? != SCENARIO_FILE {
        return None;
    }
    let text = fs::read_to_string(scenario.with_file_name(MANIFEST_FILE)).ok()?;
    serde_json::from_str::<Manifest>(&text).ok()?.origin
}

/// BLAKE3 in hexadecimal.
pub fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// BLAKE3 of a file.
pub(super) fn hash_file(path: &Path) -> Result<String, Error> {
    let mut hasher = blake3::Hasher::new();
    let failed = |source| Error::Read { path: path.to_owned(), source };
    let mut file = fs::File::open(path).map_err(failed)?;
    io::copy(&mut file, &mut hasher).map_err(failed)?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// What becomes of an experiment that the folder already holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Earlier {
    /// It stays, and nothing is written.
    Refuse,
    /// It is continued, if it is the same one.
    Resume,
    /// It goes.
    Overwrite,
}

/// Prepares the folder: makes it, continues the experiment in it, or empties it of its files.
///
/// # Errors
/// If the folder holds something else, cannot be written, or holds an experiment that is neither to be resumed nor to be
/// overwritten; nothing is touched then.
pub fn prepare(folder: &Path, experiment: &Experiment, earlier: Earlier) -> Result<(), Error> {
    let failed = |source| Error::Write { path: folder.to_owned(), source };
    let scenario = folder.join(SCENARIO_FILE);
    let is_empty = match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            let message =
                format!("cannot write {}: a file is in the way; give a new folder to --out", folder.display());
            return Err(Error::Usage(message));
        }
        Err(error) => return Err(failed(error)),
    };
    if !is_empty && !scenario.is_file() {
        let message =
            format!("{} is not empty and holds no FedGenie experiment; give a new folder to --out", folder.display());
        return Err(Error::Usage(message));
    }
    fs::create_dir_all(folder).map_err(failed)?;
    if scenario.is_file() && earlier != Earlier::Overwrite {
        let found = fs::read_to_string(&scenario).map_err(|source| Error::Read { path: scenario.clone(), source })?;
        let is_same = found == experiment.resolved;
        return match (is_same, earlier) {
            (true, Earlier::Resume) => Ok(()),
            (true, _) => Err(Error::Usage(format!(
                "{} holds this very experiment; choose a new folder, --resume to complete it, or --overwrite to run it again",
                folder.display()
            ))),
            (false, _) => Err(Error::Usage(format!(
                "{} holds another experiment ({}); choose a new folder, --resume to continue the same one, or --overwrite",
                folder.display(),
                name_in(&found)
            ))),
        };
    }
    empty(folder)?;
    write_file(&scenario, experiment.resolved.as_bytes())
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

/// Takes an earlier experiment's files away.
fn empty(folder: &Path) -> Result<(), Error> {
    let failed = |source| Error::Write { path: folder.to_owned(), source };
    for name in [MANIFEST_FILE, SUMMARY_FILE, PAGE_FILE] {
        match fs::remove_file(folder.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
    }
    remove_files(folder, &["svg"])?;
    let figures = folder.join(FIGURES_FOLDER);
    if figures.is_dir() {
        remove_files(&figures, &["svg", "csv"])?;
        // What somebody else put there stays, and the folder with it.
        let _ = fs::remove_dir(figures);
    }
    match fs::remove_dir_all(folder.join(RUNS_FOLDER)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
        _ => Ok(()),
    }
}

/// Removes files with certain endings.
fn remove_files(folder: &Path, endings: &[&str]) -> Result<(), Error> {
    let failed = |source| Error::Write { path: folder.to_owned(), source };
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|found| endings.iter().any(|ending| found == *ending)) {
            fs::remove_file(&path).map_err(|source| Error::Write { path, source })?;
        }
    }
    Ok(())
}

/// The summary and course of a run that is already complete in the folder.
pub fn completed(folder: &Path, place: &RunPlace) -> Option<RunSummary> {
    let text = fs::read_to_string(folder.join(RUNS_FOLDER).join(&place.name).join(RUN_FILE)).ok()?;
    let written: Value = serde_json::from_str(&text).ok()?;
    let points: Vec<CurvePoint<Map<String, Value>>> = Deserialize::deserialize(&written["curve"]).ok()?;
    let point = |point: CurvePoint<Map<String, Value>>| {
        // JSON has no NaN: the loss of a model that diverged is null.
        let metric = |(name, value): (String, Value)| (name.into(), value.as_f64().unwrap_or(f64::NAN));
        let metrics = point.metrics.into_iter().map(metric).collect();
        let CurvePoint { round, time_s, regret, unique_clients, jain, .. } = point;
        CurvePoint { round, time_s, regret, metrics, unique_clients, jain }
    };
    let summary: RunSummary = serde_json::from_value(written).ok()?;
    Some(RunSummary { curve: points.into_iter().map(point).collect(), ..summary })
}

/// Writes summary and manifest, which also lists pictures that are there already.
///
/// # Errors
/// If a file cannot be read back or written.
pub fn finish(folder: &Path, experiment: &Experiment, summary: &Summary, pictures: Vec<PathBuf>) -> Result<(), Error> {
    write_json(&folder.join(SUMMARY_FILE), summary)?;
    let mut files = BTreeMap::new();
    let mut add = |path: PathBuf| -> Result<(), Error> {
        let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().replace('\\', "/");
        files.insert(name, hash_file(&path)?);
        Ok(())
    };
    pictures.into_iter().try_for_each(&mut add)?;
    add(folder.join(SCENARIO_FILE))?;
    add(folder.join(SUMMARY_FILE))?;
    let mut runs = Vec::new();
    for place in experiment.runs() {
        let run_folder = folder.join(RUNS_FOLDER).join(&place.name);
        if !run_folder.join(RUN_FILE).is_file() {
            continue;
        }
        runs.push(place.name);
        for name in [ROUNDS_FILE, MARKS_FILE, RUN_FILE, EVENTS_FILE, MODEL_FILE] {
            let path = run_folder.join(name);
            if path.is_file() {
                add(path)?;
            }
        }
    }
    let manifest = Manifest {
        tool: "fedgenie".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        format: FORMAT_VERSION,
        scenario_hash: hash(experiment.resolved.as_bytes()),
        arms: experiment.first().arms.iter().map(|arm| arm.label.clone()).collect(),
        seeds: experiment.seeds.clone(),
        points: summary.points.clone(),
        runs,
        files,
        data: experiment.data_digests()?,
        origin: Some(Origin { base: experiment.base.clone(), data: experiment.data.clone() }),
    };
    write_json(&folder.join(MANIFEST_FILE), &manifest)
}

/// Reads a folder's manifest.
///
/// # Errors
/// If it is not there or is no manifest.
pub fn read_manifest(folder: &Path) -> Result<Manifest, Error> {
    let path = folder.join(MANIFEST_FILE);
    let text = fs::read_to_string(&path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            Error::Usage(format!("there is no {}; give a folder that `fedgenie run --out` wrote", path.display()))
        }
        _ => Error::Read { path: path.clone(), source },
    })?;
    serde_json::from_str(&text)
        .map_err(|error| Error::Usage(format!("{} is not a manifest of FedGenie: {error}", path.display())))
}
