//! The folder that `fedgenie run --out` writes.
//!
//! ```text
//! DIR/manifest.json      tool, version, processor, scenario hash, policies, seeds, points, files with digests
//! DIR/scenario.toml      the resolved scenario
//! DIR/summary.json       all results
//! DIR/*.svg              figures
//! DIR/report.html        the report; like figures/, it can be made again and is no part of the manifest
//! DIR/runs/NAME/         rounds.jsonl, digests.bin, run.json, events.jsonl.gz; of a run that failed, failed.json
//!                        instead of run.json; many runs lie in packs, see `shelf.rs`
//! DIR/.fedgenie/         messages between processes while they write; see `folder.rs`
//! ```

use super::cpu::Cpu;
use super::program::Outside;
use super::shelf::Shelf;
use super::{Experiment, Summary, below, build, run_name};
use crate::error::Error;
use crate::scenario::Kinds;
use fedgenie_core::record::FORMAT_VERSION;
use fedgenie_core::text;
use fedgenie_simulator::run::RunError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub use super::names::{
    EVENTS_FILE, FAILURE_FILE, FIGURES_FOLDER, ID_FILES, MANIFEST_FILE, MARKS_FILE, MEMORY_FILE, MODEL_FILE, PAGE_FILE,
    POLICY_FILES, ROUNDS_FILE, RUN_FILE, RUNS_FOLDER, SCENARIO_FILE, STATE_FOLDER, SUMMARY_FILE, TIMELINE_FILE, TOOL,
};
pub(super) use super::names::{RECORD_FILES, RUN_FILES};

/// `manifest.json`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// `fedgenie`.
    pub tool: String,
    /// Version of the tool.
    pub version: String,
    /// The build that wrote this file, and made the runs that `other_builds` does not name; see
    /// [`build`](super::build()).
    #[serde(default)]
    pub build: String,
    /// Runs of other builds, and these builds: the first rounds were replayed by this one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub other_builds: BTreeMap<String, String>,
    /// Version of the record format.
    pub format: u32,
    /// BLAKE3 of `scenario.toml`.
    pub scenario_hash: String,
    /// BLAKE3 of the same without its seeds, which an experiment may extend; empty in files without it.
    #[serde(default)]
    pub experiment: String,
    /// The policies' labels.
    pub arms: Vec<String>,
    /// Settings that policies override outside the sweep: label, path, value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub with: BTreeMap<String, BTreeMap<String, String>>,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// Policies with fewer of them, and how many: those that were surely worse.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dropped: BTreeMap<String, u32>,
    /// The sweep's points.
    pub points: Vec<BTreeMap<String, String>>,
    /// Names of complete runs.
    pub runs: Vec<String>,
    /// Names of runs that failed and would fail again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
    /// BLAKE3 of every file, by path.
    pub files: BTreeMap<String, String>,
    /// BLAKE3 of every file that population and task were read from.
    #[serde(default)]
    pub data: BTreeMap<String, String>,
    /// Where the scenario's files were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The program whose policies or tasks took part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<Outside>,
    /// The processor of the process that wrote this file. It changes no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
}

impl Manifest {
    /// The manifest of an experiment, without its runs and files.
    pub(super) fn of(experiment: &Experiment, summary: &Summary) -> Result<Self, Error> {
        Ok(Self {
            tool: TOOL.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            build: build().to_owned(),
            other_builds: BTreeMap::new(),
            format: FORMAT_VERSION,
            scenario_hash: hash(experiment.resolved.as_bytes()),
            experiment: without_seeds(&experiment.resolved),
            arms: experiment.labels(),
            with: experiment.with.clone(),
            seeds: experiment.seeds.clone(),
            dropped: experiment.until.as_ref().map_or_else(BTreeMap::new, |until| until.dropped.clone()),
            points: summary.points.clone(),
            runs: Vec::new(),
            failed: Vec::new(),
            files: BTreeMap::new(),
            data: experiment.data_digests()?,
            origin: Some(Origin::of(experiment)),
            outside: Outside::of(experiment),
            cpu: Some(Cpu::detect()),
        })
    }
}

/// Folders that names of files in a scenario are relative to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The folder of the scenario.
    pub base: PathBuf,
    /// The folder of data sets, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<PathBuf>,
}

impl Origin {
    fn of(experiment: &Experiment) -> Self {
        Self { base: experiment.base.clone(), data: experiment.data.clone() }
    }
}

/// The experiment carried out in a folder; written before anything else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Marker {
    tool: String,
    version: String,
    #[serde(default)]
    build: String,
    arms: Vec<String>,
    seeds: Vec<u64>,
    /// How many points the sweep has.
    points: usize,
    origin: Origin,
    /// BLAKE3 of every file that population and task were read from.
    #[serde(default)]
    pub(super) data: BTreeMap<String, String>,
    /// As [`Manifest::experiment`].
    #[serde(default)]
    pub(super) experiment: String,
    /// The program whose policies or tasks take part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) outside: Option<Outside>,
}

impl Marker {
    /// Its name in the state's folder.
    pub(super) const FILE: &str = "experiment.json";

    /// The marker of an experiment.
    pub(super) fn of(experiment: &Experiment) -> Self {
        Self {
            tool: TOOL.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            build: build().to_owned(),
            arms: experiment.labels(),
            seeds: experiment.seeds.clone(),
            points: experiment.points.len(),
            origin: Origin::of(experiment),
            // An unreadable file ends the experiment before or after this, with its reason.
            data: experiment.data_digests().unwrap_or_default(),
            experiment: without_seeds(&experiment.resolved),
            outside: Outside::of(experiment),
        }
    }

    /// The code of the program's policies and tasks, as text; empty without any.
    pub(super) fn code(&self) -> String {
        let Some(Outside { policies, tasks, .. }) = &self.outside else { return String::new() };
        format!("\0{policies:?}\0{tasks:?}")
    }

    /// The marker of a folder, if it has one.
    pub(super) fn read(folder: &Path) -> Option<Self> {
        let text = below::read_to_string(folder, &format!("{STATE_FOLDER}/{}", Self::FILE)).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Names of all runs of the experiment.
    pub(super) fn runs(&self) -> impl Iterator<Item = String> {
        let of = move |point, seed| self.arms.iter().map(move |label| run_name(label, (point, self.points), seed));
        (0..self.points).flat_map(move |point| self.seeds.iter().flat_map(move |&seed| of(point, seed)))
    }
}

/// Whether FedGenie wrote the folder, or has begun to. A folder that a process left before it wrote the marker holds
/// nothing else.
pub fn is_result_folder(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().count();
    let is_begun = entries == 1 && below::is_own_folder(&folder.join(STATE_FOLDER));
    // In this order: a process that begins writes the marker before anything beside its folder.
    is_begun || Marker::read(folder).is_some() || read_manifest(folder).is_ok_and(|manifest| manifest.tool == TOOL)
}

/// What is recorded in a folder of the program that made it, by the marker if there is no manifest.
pub(super) fn outside_of(folder: &Path) -> Option<Outside> {
    read_manifest(folder).ok().map_or_else(|| Marker::read(folder)?.outside, |manifest| manifest.outside)
}

/// Refuses the folder of an experiment with policies or tasks of a program that are not here, and says how it can be
/// replayed.
pub(super) fn refuse_lacking(folder: &Path, kinds: &Kinds) -> Result<(), Error> {
    let Some((what, options)) = outside_of(folder).and_then(|outside| outside.lacking(kinds)) else { return Ok(()) };
    let folder = shell_quoted(&folder.to_string_lossy());
    Err(Error::Usage(match options.is_empty() {
        true => format!("{what}; verify the folder with that program"),
        false => format!("{what}; where Python is there, `fedgenie verify {folder}{options}` replays it"),
    }))
}

/// The origin of a scenario that lies in a result folder.
///
/// Returned with the BLAKE3 digests of the files that the scenario names: see [`crate::scenario::reach`].
pub(super) fn origin(scenario: &Path) -> Option<(Origin, BTreeMap<String, String>)> {
    if scenario.file_name()? != SCENARIO_FILE {
        return None;
    }
    let folder = scenario.parent()?;
    let marked = Marker::read(folder).map(|marker| (marker.origin, marker.data));
    marked.or_else(|| {
        let manifest = read_manifest(folder).ok()?;
        Some((manifest.origin?, manifest.data))
    })
}

/// `failed.json`: why a run failed, and would fail again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The sentence.
    pub error: String,
}

impl Failure {
    /// The failure, if the error belongs to the run and not to the machine.
    pub fn of(error: &Error) -> Option<Self> {
        match error {
            Error::Run { source: RunError::Io(_), .. } => None,
            Error::Run { source, .. } => Some(Self { error: source.to_string() }),
            Error::Lost { why, .. } => Some(Self { error: why.clone() }),
            Error::Panicked { message, .. } => Some(Self { error: format!("panicked: {message}") }),
            _ => None,
        }
    }

    /// The failure of a run in a folder, if it failed.
    pub(super) fn read(files: &Shelf, run: &str) -> Option<Self> {
        let text = files.read_to_string(&Shelf::name(run, FAILURE_FILE)).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// The reasons of the runs of an experiment that failed in a folder, by name.
    pub(super) fn all(files: &Shelf, experiment: &Experiment) -> BTreeMap<String, String> {
        let is_complete = |run: &str| files.is_there(&Shelf::name(run, RUN_FILE));
        let runs = experiment.runs().into_iter().map(|run| run.name).filter(|run| !is_complete(run));
        runs.filter_map(|run| Some((run.clone(), Self::read(files, &run)?.error))).collect()
    }
}

/// Files of a run that the manifest lists: all but the timeline, which a replay does not compare.
pub(super) fn listed() -> impl Iterator<Item = &'static str> {
    RUN_FILES.into_iter().filter(|&name| name != TIMELINE_FILE)
}

/// BLAKE3 of a resolved scenario without its seeds.
pub fn without_seeds(resolved: &str) -> String {
    let mut table: toml::Table = resolved.parse().unwrap_or_default();
    table.remove("seeds");
    hash(toml::to_string(&table).unwrap_or_default().as_bytes())
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

/// The command that completes the experiment in a folder. Data are read from the recorded folder.
pub fn completion(folder: &Path) -> String {
    completion_with(folder, None)
}

/// As [`completion`], with data in another folder.
pub(super) fn completion_with(folder: &Path, data: Option<&Path>) -> String {
    let quoted = |path: &Path| shell_quoted(&path.to_string_lossy());
    let (origin, files) = origin(&folder.join(SCENARIO_FILE)).unzip();
    let data = data.map(Path::to_owned).or_else(|| origin?.data);
    let data = data.map_or_else(String::new, |data| format!(" --data {}", quoted(&data)));
    // A file outside both folders has an absolute name.
    let is_outside = files.is_some_and(|files| files.keys().any(|name| Path::new(name).is_absolute()));
    let allowed = if is_outside { " --allow-paths" } else { "" };
    format!("fedgenie run {} --out {}{data}{allowed} --resume", quoted(&folder.join(SCENARIO_FILE)), quoted(folder))
}

/// A word quoted for a POSIX shell: by POSIX.1-2024 where it holds terminal controls, which are escaped.
pub fn shell_quoted(word: &str) -> String {
    if word.chars().any(text::is_control) {
        let letter = |letter: char| match letter {
            '\'' | '\\' => format!("\\{letter}"),
            _ if text::is_control(letter) => {
                letter.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("\\{byte:03o}")).collect()
            }
            _ => letter.to_string(),
        };
        return format!("$'{}'", word.chars().map(letter).collect::<String>());
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"@%+=:,./_-".contains(&byte);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// Reads a folder's manifest.
///
/// # Errors
/// If it is not there or is no manifest.
pub fn read_manifest(folder: &Path) -> Result<Manifest, Error> {
    let path = folder.join(MANIFEST_FILE);
    let text = below::read_to_string(folder, MANIFEST_FILE).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            Error::Usage(format!("there is no {}; give a folder that `fedgenie run --out` wrote", path.display()))
        }
        _ => Error::Read { path: path.clone(), source },
    })?;
    serde_json::from_str(&text)
        .map_err(|error| Error::Usage(format!("{} is not a manifest of FedGenie: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell_and_obeyed_by_no_terminal() {
        let cases = [
            ("out", "out"),
            ("my results", "'my results'"),
            ("", "''"),
            ("it's", "'it'\\''s'"),
            ("a\u{1b}[2J'\\b\n", r"$'a\033[2J\'\\b\012'"),
            ("abc\u{202e}txt", r"$'abc\342\200\256txt'"),
        ];
        for (word, quoted) in cases {
            assert_eq!(shell_quoted(word), quoted);
        }
        // Read back by a shell that knows the escapes, where there is one.
        for (word, quoted) in cases {
            let command = format!("printf %s {quoted}");
            let Ok(read) = std::process::Command::new("bash").args(["-c", &command]).output() else { return };
            assert_eq!(String::from_utf8(read.stdout).unwrap(), word);
        }
    }
}
