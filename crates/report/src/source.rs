//! Results of an experiment, from its folder or straight from its runs.

use fedgenie_core::record::FORMAT_VERSION;
use fedgenie_experiment::error::Error;
use fedgenie_experiment::experiment::artefacts::{
    self, MANIFEST_FILE, Manifest, RUN_FILE, RUNS_FOLDER, SCENARIO_FILE, SUMMARY_FILE, TOOL,
};
use fedgenie_experiment::experiment::{Experiment, RunSummary, Summary, below, run_name, warnings};
use fedgenie_experiment::scenario::report::check_reference;
use fedgenie_experiment::scenario::{Point, Sweep};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

/// One experiment, ready for a report.
#[derive(Clone, Debug)]
pub struct Results {
    /// Name of its folder.
    pub name: String,
    /// The version of the program that ran it.
    pub version: String,
    /// The resolved scenario, TOML.
    pub scenario: String,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// The policies' labels, in order.
    pub labels: Vec<String>,
    /// Runs with their courses, and statistics over them.
    pub summary: Summary,
    /// Warnings about the folder.
    pub warnings: Vec<String>,
    table: toml::Table,
}

impl Results {
    /// Results of runs that have just ended; `folder` is where they are.
    pub fn of(experiment: &Experiment, summary: &Summary, folder: &Path) -> Self {
        let mut results = Self {
            name: name_of(folder),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            scenario: experiment.resolved.clone(),
            seeds: experiment.seeds.clone(),
            labels: experiment.first().arms.iter().map(|arm| arm.label.clone()).collect(),
            summary: summary.clone(),
            warnings: Vec::new(),
            table: experiment.resolved.parse().unwrap_or_default(),
        };
        results.note_missing();
        results
    }

    /// What a careful user should know about the runs, with the folder's name.
    pub fn warnings_of_runs(&self) -> Vec<String> {
        warnings(&self.summary).into_iter().map(|warning| format!("{}: {warning}", self.name)).collect()
    }

    /// Reads a folder that `run --out` wrote; of a run only its summary and course are read.
    ///
    /// # Errors
    /// If the folder is not there, holds no complete run or was written by a newer version of the records.
    pub fn load(folder: &Path) -> Result<Self, Error> {
        if !folder.is_dir() {
            let message = format!("there is no folder {}; give one that `fedgenie run --out` wrote", folder.display());
            return Err(Error::Usage(message));
        }
        if !below::is_there(folder, MANIFEST_FILE) && artefacts::is_result_folder(folder) {
            return Err(Error::Usage(unfinished(folder)));
        }
        let manifest = artefacts::read_manifest(folder)?;
        let warnings = changed(folder, &manifest)?;
        let Manifest { version, format, arms, seeds, .. } = manifest;
        if format != FORMAT_VERSION {
            return Err(Error::Usage(format!(
                "{} was written by fedgenie {version} with records of format {format}; this is fedgenie {} and reads format \
                 {FORMAT_VERSION}: run the scenario again",
                folder.display(),
                env!("CARGO_PKG_VERSION")
            )));
        }
        let path = folder.join(SCENARIO_FILE);
        let scenario = below::read_to_string(folder, SCENARIO_FILE)
            .map_err(|source| Error::Read { path: path.clone(), source })?;
        let table: toml::Table =
            scenario.parse().map_err(|error| Error::Usage(format!("{} is not TOML: {error}", path.display())))?;
        let read: Vec<(&String, Option<RunSummary>)> =
            manifest.runs.par_iter().map(|name| (name, artefacts::completed(folder, name))).collect();
        let unreadable = read.iter().filter(|(_, run)| run.is_none()).count();
        let points = manifest.points.len();
        let is_known = |run: &RunSummary| run.point < points && arms.contains(&run.arm);
        let is_in_place = |name: &str, run: &RunSummary| run_name(&run.arm, (run.point, points), run.seed) == name;
        let (mut runs, mut misplaced) = (Vec::new(), 0);
        for (name, run) in read {
            match run {
                Some(run) if is_known(&run) && is_in_place(name, &run) => runs.push(run),
                Some(_) => misplaced += 1,
                None => {}
            }
        }
        if runs.is_empty() && unreadable == 0 && misplaced == 0 {
            return Err(Error::Usage(format!(
                "{}: no run succeeded, so there is nothing to report; run the scenario again to see why",
                folder.display()
            )));
        }
        if runs.is_empty() {
            return Err(Error::Usage(format!("{} holds no complete run; {}", folder.display(), completion(folder))));
        }
        runs.sort_by_key(|run| (run.point, run.seed, arms.iter().position(|arm| *arm == run.arm)));
        let points: Vec<Point> =
            manifest.points.into_iter().map(|settings| Point { settings: settings.into_iter().collect() }).collect();
        let text = |key: &str| table.get(key).and_then(toml::Value::as_str);
        let name = text("name").unwrap_or("without a name").to_owned();
        let settings: Vec<BTreeMap<String, String>> =
            points.iter().map(|point| point.settings.iter().cloned().collect()).collect();
        let reference = table.get("report").and_then(|report| report.get("reference")?.as_str());
        let sweep = Sweep::of(&table, &settings);
        let summary = Summary::new((&name, text("title")), (&points, sweep), (&arms, reference), runs);
        let mut results =
            Self { name: name_of(folder), version, scenario, seeds, labels: arms, summary, warnings, table };
        if misplaced > 0 {
            let what = format!("{misplaced} of the runs are of another policy, seed or point than their folder says");
            results.warnings.push(format!("{what}: they are left out"));
        }
        if unreadable > 0 {
            results.warnings.push(format!("{unreadable} of the runs that the manifest lists cannot be read"));
        }
        if results.version != env!("CARGO_PKG_VERSION") {
            let own = env!("CARGO_PKG_VERSION");
            results.warnings.push(format!("the runs are of fedgenie {}, the report is of {own}", results.version));
        }
        if results.summary.runs.iter().any(|run| run.metrics.selections.windows.is_empty()) {
            let what = "some runs come from a version without selection counts over rounds: their figures are left out";
            results.warnings.push(what.to_owned());
        }
        results.note_missing();
        Ok(results)
    }

    fn note_missing(&mut self) {
        let expected = self.summary.points.len() * self.seeds.len() * self.labels.len();
        let missing = expected.saturating_sub(self.summary.runs.len());
        if missing > 0 {
            self.warnings.push(format!("{missing} of {expected} runs are missing: means are over the others"));
        }
    }

    /// Title of the scenario, or else its name.
    pub fn title(&self) -> &str {
        self.summary.title.as_deref().unwrap_or(&self.summary.scenario)
    }

    /// Compares the policies with this one; none for what the scenario says.
    ///
    /// # Errors
    /// If there is no such policy.
    pub fn refer_to(&mut self, reference: Option<&str>) -> Result<(), Error> {
        let Some(name) = reference else { return Ok(()) };
        let labels: Vec<&str> = self.labels.iter().map(String::as_str).collect();
        check_reference(name, &labels).map_err(|message| Error::Usage(format!("--reference: {message}")))?;
        let mut report = toml::Table::new();
        report.insert("reference".to_owned(), name.into());
        self.table.insert("report".to_owned(), report.into());
        Ok(())
    }

    /// Index of the policy that the others are compared with.
    pub(super) fn reference(&self) -> usize {
        let name = self.section("report").and_then(|report| report.get("reference")?.as_str());
        name.and_then(|name| self.labels.iter().position(|label| label == name)).unwrap_or(0)
    }

    /// The resolved scenario.
    pub(super) const fn table(&self) -> &toml::Table {
        &self.table
    }

    /// A section of the scenario, if it is there.
    pub(super) fn section(&self, name: &str) -> Option<&toml::Value> {
        self.table.get(name)
    }

    /// Which of several kinds a section names.
    pub(super) fn kind(&self, section: &str) -> Option<String> {
        match self.section(section)? {
            toml::Value::String(kind) => Some(kind.clone()),
            toml::Value::Table(table) => table.keys().next().cloned(),
            _ => None,
        }
    }

    /// Whether draws of equal seeds are the same in both: clients, task and protocol are.
    pub(super) fn shares_world(&self, other: &Self) -> bool {
        ["population", "task", "protocol"].into_iter().all(|name| self.section(name) == other.section(name))
    }
}

/// What is read for a report and is not what the manifest says.
///
/// # Errors
/// If the manifest is not of FedGenie, or names what lies elsewhere or is no file.
fn changed(folder: &Path, manifest: &Manifest) -> Result<Vec<String>, Error> {
    let Manifest { tool, runs, files, .. } = manifest;
    if tool != TOOL {
        let message = format!("{} is of the tool {tool:?}, not of {TOOL}", folder.join(MANIFEST_FILE).display());
        return Err(Error::Usage(message));
    }
    if let Some(name) = runs.iter().find(|name| !below::is_below(name) || name.contains(['/', '\\'])) {
        let message =
            format!("{} lists the run {name:?}, which is no name of a run", folder.join(MANIFEST_FILE).display());
        return Err(Error::Usage(message));
    }
    let of_runs: Vec<String> = runs.iter().map(|run| format!("{RUNS_FOLDER}/{run}/{RUN_FILE}")).collect();
    let read = [SCENARIO_FILE, SUMMARY_FILE].into_iter().map(str::to_owned).chain(of_runs).collect::<Vec<_>>();
    let is_changed = |name: &&String| match (below::digest(folder, name), files.get(*name)) {
        (Ok((_, found)), Some(digest)) => Ok(found != *digest),
        (Ok(_), None) => Ok(true),
        // What cannot be read is told where it is read.
        (Err(error), _) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        (Err(source), _) => Err(Error::Read { path: folder.join(name), source }),
    };
    let looked: Vec<(&String, bool)> =
        read.par_iter().map(|name| Ok((name, is_changed(&name)?))).collect::<Result<_, Error>>()?;
    let changed: Vec<&str> = looked.iter().filter(|(_, is)| *is).map(|(name, _)| name.as_str()).collect();
    let Some(first) = changed.first() else { return Ok(Vec::new()) };
    let others = match changed.len() {
        1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    Ok(vec![format!(
        "{first}{others} is not the file that was written; `fedgenie verify` compares the folder with a replay"
    )])
}

/// The error for a folder whose experiment was interrupted.
fn unfinished(folder: &Path) -> String {
    let runs = fs::read_dir(folder.join(RUNS_FOLDER)).into_iter().flatten().flatten();
    let complete = match runs.filter(|run| run.path().join(RUN_FILE).is_file()).count() {
        1 => "1 run is".to_owned(),
        count => format!("{count} runs are"),
    };
    format!("{} is unfinished: {complete} complete; {}", folder.display(), completion(folder))
}

fn completion(folder: &Path) -> String {
    format!("`{}` completes it", artefacts::completion(folder))
}

fn name_of(folder: &Path) -> String {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    absolute.file_name().map_or_else(|| "results".to_owned(), |name| name.to_string_lossy().into_owned())
}
