//! Results of an experiment, from its folder or straight from its runs.

use fedgenie_experiment::error::Error;
use fedgenie_experiment::experiment::answers::answers;
use fedgenie_experiment::experiment::shelf::Shelf;
use fedgenie_experiment::experiment::stored::{Changed, Notice, Reader, RunState, Status, Stored, name_of, of_runs};
use fedgenie_experiment::experiment::{Experiment, Incomplete, Summary, build, warnings};
use fedgenie_experiment::scenario::report::{ReportConfig, check_reference};
use fedgenie_experiment::scenario::{Point, Seeds, Sweep};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One experiment, ready for a report.
#[derive(Clone, Debug)]
pub struct Results {
    /// Name of its folder; of several of one name the second is `NAME (2)`.
    pub name: String,
    /// The folder.
    pub folder: PathBuf,
    /// The files of the folder.
    pub files: Arc<Shelf>,
    /// The version of the program that ran it.
    pub version: String,
    /// The build of that program.
    pub build: String,
    /// The resolved scenario, TOML.
    pub scenario: String,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// The policies' labels, in order.
    pub labels: Vec<String>,
    /// Every run of the experiment, with its state in the folder.
    pub states: Vec<RunState>,
    /// Changed files of the experiment itself.
    pub changed: Vec<Changed>,
    /// Runs with their courses, and statistics over them.
    pub summary: Summary,
    /// Warnings about the folder.
    pub warnings: Vec<String>,
    table: toml::Table,
}

impl Results {
    /// Results of runs that have just ended; `folder` is where they are.
    pub fn of(experiment: &Experiment, summary: &Summary, folder: &Path) -> Self {
        let labels = experiment.labels();
        let incomplete: BTreeMap<(usize, u64, &str), &Incomplete> =
            summary.incomplete.iter().map(|run| ((run.point, run.seed, &*run.arm), run)).collect();
        let state = |run: fedgenie_experiment::experiment::RunId| {
            let lacking = incomplete.get(&(run.point, run.seed, &*labels[run.arm]));
            RunState {
                name: run.name,
                arm: labels[run.arm].clone(),
                seed: run.seed,
                point: run.point,
                status: lacking.map_or(Status::Complete, |run| run.status),
                reason: lacking.and_then(|run| run.reason.clone()),
                changed: Vec::new(),
            }
        };
        let states: Vec<RunState> = experiment.runs().into_iter().map(state).collect();
        let notices = of_runs(&labels, &summary.points, &states);
        Self {
            name: name_of(folder),
            folder: folder.to_owned(),
            files: Arc::new(Shelf::of(folder)),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            build: build().to_owned(),
            scenario: experiment.resolved.clone(),
            seeds: experiment.seeds.clone(),
            labels,
            states,
            changed: Vec::new(),
            summary: summary.clone(),
            warnings: notices.into_iter().map(|notice| notice.text).collect(),
            table: experiment.resolved.parse().unwrap_or_default(),
        }
    }

    /// Warnings about the runs, with the folder's name.
    pub fn warnings_of_runs(&self) -> Vec<String> {
        warnings(&self.summary).into_iter().map(|warning| format!("{}: {warning}", self.name)).collect()
    }

    /// Reads a folder that `run --out` wrote.
    ///
    /// # Errors
    /// As [`Reader::read`].
    pub fn load(folder: &Path, reader: &Reader<'_>) -> Result<Self, Error> {
        let read = reader.read(&[folder.to_owned()])?.pop().expect("of one folder there is one");
        Ok(Self::of_stored(read))
    }

    /// Reads several folders.
    ///
    /// # Errors
    /// As [`Reader::read`].
    pub fn load_all(folders: &[PathBuf], reader: &Reader<'_>) -> Result<Vec<Self>, Error> {
        Ok(reader.read(folders)?.into_iter().map(Self::of_stored).collect())
    }

    /// Of a folder that was read.
    fn of_stored(stored: Stored) -> Self {
        let Stored { name, folder, files, manifest, scenario, table, states, runs, changed, notices } = stored;
        let points: Vec<Point> =
            manifest.points.into_iter().map(|settings| Point { settings: settings.into_iter().collect() }).collect();
        let text = |key: &str| table.get(key).and_then(toml::Value::as_str);
        let scenario_name = text("name").unwrap_or("without a name").to_owned();
        let settings: Vec<BTreeMap<String, String>> =
            points.iter().map(|point| point.settings.iter().cloned().collect()).collect();
        let sweep = Sweep::of(&table, &settings);
        let named = (scenario_name.as_str(), text("title"));
        let wishes = (&manifest.arms[..], ReportConfig::of(&table), Seeds::until_of(&table));
        let summary = Summary::new(named, (&points, sweep), wishes, runs, answers);
        let incomplete = states.iter().filter_map(Incomplete::of).collect();
        let mut warnings: Vec<String> = notices.into_iter().map(|Notice { text, .. }| text).collect();
        if summary.runs.iter().any(|run| run.metrics.selections.windows.is_empty()) {
            let what = "some runs come from a version without selection counts over rounds: their figures are left out";
            warnings.push(what.to_owned());
        }
        let (version, build, seeds, labels) = (manifest.version, manifest.build, manifest.seeds, manifest.arms);
        let summary = Summary { incomplete, ..summary };
        Self { name, folder, files, version, build, scenario, seeds, labels, states, changed, summary, warnings, table }
    }

    /// All changed files.
    pub(super) fn all_changed(&self) -> impl Iterator<Item = &Changed> {
        self.changed.iter().chain(self.states.iter().flat_map(|state| &state.changed))
    }

    /// Whether there are any.
    pub(super) fn has_changed(&self) -> bool {
        self.all_changed().next().is_some()
    }

    /// The names of the changed files that results of these policies at these points are made of.
    pub(super) fn changed_of(&self, of: &[(&str, usize)]) -> Vec<&str> {
        let is_of = |state: &&RunState| of.iter().any(|&(arm, point)| state.arm == arm && state.point == point);
        let of_runs = self.states.iter().filter(is_of).flat_map(|state| &state.changed);
        self.changed.iter().chain(of_runs).map(|changed| changed.file.as_str()).collect()
    }

    /// The state of the runs of a policy at a point: `complete` if there are all, `incomplete` if there are some, else
    /// `failed` or `missing`.
    pub(super) fn status_of(&self, arm: &str, point: usize) -> &'static str {
        let is_its = |state: &&RunState| state.arm == arm && state.point == point;
        let found: BTreeSet<&str> = self
            .states
            .iter()
            .filter(is_its)
            .map(|state| if state.status.has_summary() { "complete" } else { state.status.name() })
            .collect();
        match (found.contains("complete"), found.len()) {
            (true, 1) => "complete",
            (true, _) => "incomplete",
            (false, _) if found.contains("failed") => "failed",
            (false, _) => "missing",
        }
    }

    /// Title of the scenario, or else its name.
    pub fn title(&self) -> &str {
        self.summary.title.as_deref().unwrap_or(&self.summary.scenario)
    }

    /// Compares the policies with this one; `None` for the scenario's reference.
    ///
    /// # Errors
    /// If there is no such policy.
    pub fn refer_to(&mut self, reference: Option<&str>) -> Result<(), Error> {
        let Some(name) = reference else { return Ok(()) };
        let labels: Vec<&str> = self.labels.iter().map(String::as_str).collect();
        check_reference(name, &labels).map_err(|message| Error::Usage(format!("--reference: {message}")))?;
        self.summary.report.reference = Some(name.to_owned());
        Ok(())
    }

    /// Lets the page begin with a table of these columns, by their keys, and ratios, in place of the scenario's.
    pub fn show_first(&mut self, columns: &[String], ratio_to: Option<&str>) {
        let report = &mut self.summary.report;
        if !columns.is_empty() {
            report.columns = columns.to_vec();
        }
        report.ratio_to = ratio_to.map(str::to_owned).or(report.ratio_to.take());
    }

    /// Index of the policy that the others are compared with.
    pub(super) fn reference(&self) -> usize {
        let name = self.summary.report.reference.as_ref();
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

    /// The kind that a section names.
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
