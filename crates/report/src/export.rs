//! Results as tidy tables for a data frame: a row is one observation, a column one number.
//!
//! Each row of `runs` is a run of the experiment in any state: `folder`, `policy`, `seed`, `point`, a column for each
//! swept path, `status` (`complete`, `failed`, `missing`, or `summary-only` where only its `run.json` is left),
//! `reason` (why it failed, or cannot be used), `ended`, both digests, and every number of the run.
//!
//! Each row of `rounds` is a recorded round of a run: the run's keys, `round`, `opened_s`, `closed_s`, counts of
//! clients, `reward`, `down_bytes` and `up_bytes` so far, `regret.METER`, metrics.
//!
//! Each row of `comparisons` is a number of a policy at a point, or its difference to another policy, or to itself at
//! another point: `folder`, `point`, swept paths, `quantity`, `policy`, `against` (empty for the number itself),
//! `against_point` (empty for the same point), `statistic` (`mean` or `median`), `value`, `low`, `high`, `n`, `status`
//! (`complete`, or `incomplete` where runs of a policy are missing or failed). A policy without a complete run has a
//! row without a quantity, `failed` or `missing`.
//!
//! `changed` in all tables names the changed files behind a row.
//!
//! Numbers of runs and comparisons are named as in `summary.json`. A cell is empty where a number is unknown: a metric
//! of a round that was not evaluated, a time to a target that was not reached, an interval of too few seeds.
//!
//! Parquet tells texts, whole numbers and numbers apart; a swept path whose values are all numbers is one.

mod parquet;
mod sheet;

use super::source::Results;
use fedgenie_core::math::statistics::Estimate;
use fedgenie_core::metric::MetricId;
use fedgenie_core::record::Regret;
use fedgenie_experiment::error::Error;
use fedgenie_experiment::experiment::artefacts::{ROUNDS_FILE, RUNS_FOLDER};
use fedgenie_experiment::experiment::stored::{Reader, RunState, Status};
use fedgenie_experiment::experiment::{ArmSummary, RunSummary, below};
use serde::Deserialize;
use serde::de::IgnoredAny;
use sheet::{Cell, Column, Kind, Row, Sheet};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

/// The tables, in their order.
const TABLES: [&str; 3] = ["runs", "rounds", "comparisons"];

/// File formats of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// Comma-separated values, as RFC 4180 has them.
    Csv,
    /// Apache Parquet, compressed by Snappy.
    Parquet,
}

impl ExportFormat {
    const fn ending(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Parquet => "parquet",
        }
    }
}

/// The result of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// The tables.
    pub paths: Vec<PathBuf>,
    /// Warnings about the runs, in sentences.
    pub warnings: Vec<String>,
}

/// Writes the tables of result folders into a folder. Returns their paths and warnings.
///
/// # Errors
/// As [`Reader::read`]; if a round cannot be read, a file is there already, or cannot be written.
pub fn export(folders: &[PathBuf], into: &Path, format: ExportFormat, reader: &Reader<'_>) -> Result<Exported, Error> {
    let results = Results::load_all(folders, &reader.using_rounds())?;
    let paths = TABLES.map(|table| into.join(format!("{table}.{}", format.ending())));
    if let Some(there) = paths.iter().find(|path| path.symlink_metadata().is_ok()) {
        let message = format!("{} is there already; give -o another folder, or delete it", there.display());
        return Err(Error::Usage(message));
    }
    if into.is_file() {
        return Err(Error::Usage(format!("{} is a file; give -o a folder for the tables", into.display())));
    }
    fs::create_dir_all(into).map_err(|source| Error::Write { path: into.to_owned(), source })?;
    let points = results.iter().flat_map(|results| &results.summary.points);
    let swept: BTreeSet<String> = points.flat_map(|point| point.keys().cloned()).collect();
    let swept = swept.into_iter().map(|path| Column::new(&path, kind_of(&results, &path))).collect();
    let export = Export { results, swept };
    let [runs, rounds, comparisons] = &paths;
    let (run, round, comparison) = (export.run_columns(), export.round_columns(), export.comparison_columns());
    write(runs, format, run, |sheet| export.runs(sheet))?;
    write(rounds, format, round, |sheet| export.rounds(sheet))
        .and_then(|()| write(comparisons, format, comparison, |sheet| export.comparisons(sheet)))
        .inspect_err(|_| [runs, rounds].into_iter().for_each(|path| drop(fs::remove_file(path))))?;
    let warnings = export.results.iter().flat_map(Results::warnings_of_runs).collect();
    Ok(Exported { paths: paths.to_vec(), warnings })
}

/// The type of the values of a swept path.
fn kind_of(results: &[Results], path: &str) -> Kind {
    let mut values = results.iter().flat_map(|results| &results.summary.points).filter_map(|point| point.get(path));
    let is_number = |value: &String| value.parse::<f64>().is_ok_and(f64::is_finite);
    if values.all(is_number) { Kind::Number } else { Kind::Text }
}

/// Why a table was not finished.
enum Failed {
    Write(io::Error),
    Other(Error),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

/// Writes a table into a new file, which appears whole or not at all.
fn write(
    path: &Path,
    format: ExportFormat,
    columns: Vec<Column>,
    rows: impl FnOnce(&mut dyn Sheet) -> Result<(), Failed>,
) -> Result<(), Error> {
    let failed = |source| Error::Write { path: path.to_owned(), source };
    // A table gets its name when it is whole: a killed process leaves no truncated table.
    let part = path.with_added_extension("part");
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(&part).map_err(failed)?;
    let written = (|| {
        let mut sheet: Box<dyn Sheet> = match format {
            ExportFormat::Csv => Box::new(sheet::Csv::new(file, &columns)?),
            ExportFormat::Parquet => Box::new(parquet::Parquet::new(file, &columns)?),
        };
        rows(&mut *sheet)?;
        sheet.finish()?;
        Ok(fs::rename(&part, path)?)
    })();
    written.map_err(|why| {
        drop(fs::remove_file(&part));
        match why {
            Failed::Write(source) => failed(source),
            Failed::Other(error) => error,
        }
    })
}

/// The results to export.
struct Export {
    results: Vec<Results>,
    /// The paths of all sweeps.
    swept: Vec<Column>,
}

/// A round as recorded, as far as it is exported.
#[derive(Deserialize)]
struct Round {
    round: u32,
    opened_s: f64,
    closed_s: f64,
    selected: Vec<IgnoredAny>,
    arrived: Vec<IgnoredAny>,
    late: Vec<IgnoredAny>,
    dropped: Vec<IgnoredAny>,
    #[serde(default)]
    reward: Option<f64>,
    #[serde(default)]
    regret: Regret,
    down_bytes: u64,
    up_bytes: u64,
    #[serde(default)]
    metrics: BTreeMap<String, Option<f64>>,
}

fn columns(names: &[&str], kind: Kind) -> impl Iterator<Item = Column> {
    names.iter().map(move |name| Column::new(name, kind))
}

/// A row of comparisons: its keys, quantity, policy, other policy and statistic, the other point.
fn compared(first: &[Cell], [name, arm, against, statistic]: [&str; 4], point: Option<u64>, found: Estimate) -> Row {
    let mut row = first.to_vec();
    row.extend([name, arm, against].map(Cell::text));
    row.push(point.map_or(Cell::Empty, Cell::Count));
    row.push(Cell::text(statistic));
    row.push(Cell::number(Some(found.mean)));
    row.extend([0, 1].map(|end| Cell::number(found.ci95.map(|ends| ends[end]))));
    row.push(Cell::Count(found.n as u64));
    row
}

impl Export {
    /// All runs with a summary, with their folders.
    fn all_runs(&self) -> impl Iterator<Item = (usize, &RunSummary)> {
        let indexed = self.results.iter().enumerate();
        indexed.flat_map(|(folder, results)| results.summary.runs.iter().map(move |run| (folder, run)))
    }

    /// All runs of the experiments, with their folders, states and summaries.
    fn all_states(&self) -> impl Iterator<Item = (usize, &RunState, Option<&RunSummary>)> {
        self.results.iter().enumerate().flat_map(|(folder, results)| {
            // They are in the same order.
            let mut runs = results.summary.runs.iter();
            results.states.iter().map(move |state| {
                let run = if state.status.has_summary() { runs.next() } else { None };
                let is_its =
                    |run: &&RunSummary| (&run.arm, run.seed, run.point) == (&state.arm, state.seed, state.point);
                assert!(run.as_ref().is_none_or(is_its), "runs are in the order of what there should be");
                (folder, state, run)
            })
        })
    }

    /// The values of the swept paths at a point.
    fn settings(&self, folder: usize, point: usize) -> impl Iterator<Item = Cell> {
        let settings = &self.results[folder].summary.points[point];
        self.swept.iter().map(|column| match settings.get(&column.name) {
            None => Cell::Empty,
            Some(value) if column.kind == Kind::Number => Cell::number(value.parse().ok()),
            Some(value) => Cell::text(value),
        })
    }

    /// The keys of a run's row.
    fn run_keys(&self) -> Vec<Column> {
        columns(&["folder", "policy"], Kind::Text)
            .chain(columns(&["seed", "point"], Kind::Count))
            .chain(self.swept.iter().cloned())
            .collect()
    }

    fn of_run(&self, folder: usize, run: &RunState) -> Row {
        let first = [Cell::text(&self.results[folder].name), Cell::text(&run.arm)];
        let numbers = [Cell::Count(run.seed), Cell::Count(run.point as u64)];
        first.into_iter().chain(numbers).chain(self.settings(folder, run.point)).collect()
    }

    /// The names of all numbers of runs.
    fn numbers(&self) -> BTreeSet<String> {
        self.all_runs().flat_map(|(_, run)| run.numbers().into_keys()).collect()
    }

    fn run_columns(&self) -> Vec<Column> {
        let mut all = self.run_keys();
        all.extend(columns(&["status", "reason", "changed", "ended", "timeline", "model"], Kind::Text));
        all.extend(self.numbers().iter().map(|name| Column::new(name, Kind::Number)));
        all
    }

    fn runs(&self, sheet: &mut dyn Sheet) -> Result<(), Failed> {
        let names = self.numbers();
        for (folder, state, run) in self.all_states() {
            let mut row = self.of_run(folder, state);
            row.extend([state.status.name(), state.reason.as_deref().unwrap_or("")].map(Cell::text));
            row.push(self.changed(folder, state));
            let ended = run.map(|run| serde_json::to_value(run.ended).unwrap_or_default()).unwrap_or_default();
            let digests = run.map_or([""; 2], |run| [&run.digest.timeline, &run.digest.model]);
            row.extend(std::iter::once(ended.as_str().unwrap_or("")).chain(digests).map(Cell::text));
            let numbers = run.map(RunSummary::numbers).unwrap_or_default();
            row.extend(names.iter().map(|name| Cell::number(numbers.get(name).copied())));
            sheet.row(row)?;
        }
        Ok(())
    }

    /// The changed files behind a run's rows.
    fn changed(&self, folder: usize, run: &RunState) -> Cell {
        let all = self.results[folder].changed.iter().chain(&run.changed);
        Cell::text(&all.map(|changed| changed.file.as_str()).collect::<Vec<_>>().join(" "))
    }

    /// Metrics of rounds, and indices of the meters in use.
    fn measured(&self) -> (BTreeSet<String>, Vec<usize>) {
        let points = || self.all_runs().flat_map(|(_, run)| &run.curve);
        let is_metered = |meter: usize| points().any(|point| point.regret.entries()[meter].1.is_some());
        let meters = (0..Regret::default().entries().len()).filter(|&meter| is_metered(meter)).collect();
        let metrics: BTreeSet<MetricId> =
            points().flat_map(|point| &point.metrics).map(|&(metric, _)| metric).collect();
        (metrics.iter().map(MetricId::to_string).collect(), meters)
    }

    fn round_columns(&self) -> Vec<Column> {
        let (metrics, meters) = self.measured();
        let mut all = self.run_keys();
        all.extend(columns(&["round"], Kind::Count));
        all.extend(columns(&["opened_s", "closed_s"], Kind::Number));
        all.extend(columns(&["selected", "arrived", "late", "dropped"], Kind::Count));
        all.extend(columns(&["reward"], Kind::Number));
        all.extend(columns(&["down_bytes", "up_bytes"], Kind::Count));
        let regret = |&meter: &usize| format!("regret.{}", Regret::default().entries()[meter].0);
        all.extend(meters.iter().map(|meter| Column::new(&regret(meter), Kind::Number)));
        all.extend(metrics.iter().map(|name| Column::new(name, Kind::Number)));
        all.extend(columns(&["changed"], Kind::Text));
        all
    }

    fn rounds(&self, sheet: &mut dyn Sheet) -> Result<(), Failed> {
        let (metrics, meters) = self.measured();
        for (folder, state, _) in self.all_states().filter(|(_, state, _)| state.status == Status::Complete) {
            let (first, changed) = (self.of_run(folder, state), self.changed(folder, state));
            let file = format!("{RUNS_FOLDER}/{}/{ROUNDS_FILE}", state.name);
            let path = self.results[folder].folder.join(&file);
            let unread = |source| Failed::Other(Error::Read { path: path.clone(), source });
            let opened = match below::open(&self.results[folder].folder, &file) {
                // The missing file is among the changed ones, which are allowed then.
                Err(error) if error.kind() == io::ErrorKind::NotFound && !state.changed.is_empty() => continue,
                opened => opened.map_err(unread)?,
            };
            for (index, line) in BufReader::new(opened).lines().enumerate() {
                let line = line.map_err(unread)?;
                let round: Round = serde_json::from_str(&line).map_err(|error| {
                    let message = format!("{}:{}: this is no recorded round: {error}", path.display(), index + 1);
                    Failed::Other(Error::Usage(message))
                })?;
                let mut row = first.clone();
                row.push(Cell::Count(u64::from(round.round)));
                row.extend([round.opened_s, round.closed_s].map(|time| Cell::number(Some(time))));
                let lists = [&round.selected, &round.arrived, &round.late, &round.dropped];
                row.extend(lists.map(|clients| Cell::Count(clients.len() as u64)));
                row.push(Cell::number(round.reward));
                row.extend([round.down_bytes, round.up_bytes].map(Cell::Count));
                let regrets = round.regret.entries();
                row.extend(meters.iter().map(|&meter| Cell::number(regrets[meter].1)));
                row.extend(metrics.iter().map(|name| Cell::number(round.metrics.get(name).copied().flatten())));
                row.push(changed.clone());
                sheet.row(row)?;
            }
        }
        Ok(())
    }

    fn comparison_columns(&self) -> Vec<Column> {
        let mut all: Vec<Column> = columns(&["folder"], Kind::Text).chain(columns(&["point"], Kind::Count)).collect();
        all.extend(self.swept.iter().cloned());
        all.extend(columns(&["quantity", "policy", "against"], Kind::Text));
        all.extend(columns(&["against_point"], Kind::Count));
        all.extend(columns(&["statistic"], Kind::Text));
        all.extend(columns(&["value", "low", "high"], Kind::Number));
        all.extend(columns(&["n"], Kind::Count));
        all.extend(columns(&["status", "changed"], Kind::Text));
        all
    }

    /// The end of a row of comparisons: the status of its runs, and their changed files.
    fn states_of(&self, folder: usize, of: &[(&str, usize)]) -> [Cell; 2] {
        let results = &self.results[folder];
        let mut found: Vec<&str> = of.iter().map(|&(arm, point)| results.status_of(arm, point)).collect();
        found.dedup();
        let status = if let [only] = found[..] { only } else { "incomplete" };
        let mut changed = results.changed_of(of);
        changed.dedup();
        [Cell::text(status), Cell::text(&changed.join(" "))]
    }

    fn comparisons(&self, sheet: &mut dyn Sheet) -> Result<(), Failed> {
        for (folder, results) in self.results.iter().enumerate() {
            let first = |point: usize| -> Row {
                let first = [Cell::text(&results.name), Cell::Count(point as u64)];
                first.into_iter().chain(self.settings(folder, point)).collect()
            };
            for (point, label) in (0..results.summary.points.len())
                .flat_map(|point| results.labels.iter().map(move |label| (point, label)))
            {
                let Some(arm) = results.summary.arms.iter().find(|arm| arm.point == point && arm.arm == *label) else {
                    let mut row = first(point);
                    row.extend([Cell::Empty, Cell::text(label)]);
                    row.extend(vec![Cell::Empty; 6]);
                    row.push(Cell::Count(0));
                    row.extend(self.states_of(folder, &[(label, point)]));
                    sheet.row(row)?;
                    continue;
                };
                self.comparisons_of(folder, (arm, &first(point)), sheet)?;
            }
            for pair in &results.summary.compared {
                let (first, against) = (first(pair.point), Some(pair.against as u64));
                let end = self.states_of(folder, &[(&pair.arm, pair.point), (&pair.arm, pair.against)]);
                let means = pair.differences.iter().map(|(name, &found)| ("mean", name, found));
                let medians = pair.medians.iter().map(|(name, &found)| ("median", name, Estimate::from(found)));
                for (statistic, name, found) in means.chain(medians) {
                    let row = compared(&first, [name, &pair.arm, &pair.arm, statistic], against, found);
                    sheet.row(row.into_iter().chain(end.clone()).collect())?;
                }
            }
        }
        Ok(())
    }

    /// The rows of a policy at a point: its numbers, and their differences to those of another policy.
    fn comparisons_of(
        &self,
        folder: usize,
        (arm, first): (&ArmSummary, &[Cell]),
        sheet: &mut dyn Sheet,
    ) -> Result<(), Failed> {
        let own = (arm.arm.as_str(), arm.point);
        let end = self.states_of(folder, &[own]);
        let mut add = |against: &str, statistic: &str, name: &str, found: Estimate, end: &[Cell; 2]| {
            let row = compared(first, [name, &arm.arm, against, statistic], None, found);
            sheet.row(row.into_iter().chain(end.clone()).collect())
        };
        for (name, &found) in &arm.values {
            add("", "mean", name, found, &end)?;
        }
        for (name, &found) in &arm.medians {
            add("", "median", name, found.into(), &end)?;
        }
        if let Some(paired) = &arm.paired {
            let end = self.states_of(folder, &[own, (&paired.against, arm.point)]);
            for (name, &found) in &paired.differences {
                add(&paired.against, "mean", name, found, &end)?;
            }
            for (name, &found) in &paired.medians {
                add(&paired.against, "median", name, found.into(), &end)?;
            }
        }
        Ok(())
    }
}
