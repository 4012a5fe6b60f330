//! Results as tidy tables for a data frame: a row is one observation, a column one number.
//!
//! | table | a row is |
//! |---|---|
//! | `runs` | a run of the experiment in any state: its status, digests and numbers |
//! | `rounds` | a recorded round of a run |
//! | `targets` | a target of a run |
//! | `controls` | a metric of a control of a run |
//! | `clients` | a client of a run |
//! | `comparisons` | a statistic over seeds: a number of a policy at a point, or a difference |
//! | `events` | an event of a run, where events were recorded |
//! | `jobs` | a job of a run, where events were recorded |
//!
//! `datapackage.json` is the dictionary: type, unit and meaning of each column, and the keys that join tables. Each
//! column is defined once ([`column::Column`]), with its cell beside it ([`table::Table::with`]): CSV, Parquet and the
//! dictionary have the same names and types.
//!
//! A cell is empty where a number is unknown: a metric of a round that was not evaluated, a time to a target that was
//! not reached, an interval of too few seeds.

mod clients;
mod column;
mod comparisons;
mod controls;
mod events;
mod jobs;
mod memory;
mod names;
mod package;
mod parquet;
mod quantities;
mod rounds;
mod rows;
mod sheet;
mod swept;
mod table;
mod targets;

use super::settings::flat;
use super::source::Results;
pub use memory::{Cells, ExportedColumn, ExportedTable, Texts};

use column::{Cell, Column, Kind};
use fedgenie_core::metric::MetricId;
use fedgenie_core::record::Regret;
use fedgenie_core::text;
use fedgenie_experiment::error::Error;
use fedgenie_experiment::experiment::stored::{Reader, Status};
use fedgenie_experiment::experiment::{ACTIVE_CLUSTERS, REASSIGNMENTS, RunSummary};
use names::{Names, identifier};
use package::{PACKAGE_FILE, package};
use quantities::Metrics;
pub(super) use quantities::column_name;
use rounds::{Measured, RoundRow};
use rows::{OfRun, RunRow};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use swept::{Swept, swept};
use table::{Failed, RUN_KEY, Table};

/// The tables, in their order; the last two where events were recorded.
const TABLES: [&str; 8] = ["runs", "rounds", "targets", "controls", "clients", "comparisons", "events", "jobs"];

/// Whether a table is made of events.
fn is_of_events(table: &str) -> bool {
    ["events", "jobs"].contains(&table)
}

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
    /// The tables, and the data dictionary.
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
    let is_made = |table: &&&str| !is_of_events(table) || rows::all(&results).any(events::are_there);
    let tables = TABLES.iter().filter(is_made).map(|table| format!("{table}.{}", format.ending()));
    let names = tables.chain([PACKAGE_FILE.to_owned()]);
    let paths: Vec<PathBuf> = names.map(|name| into.join(name)).collect();
    if let Some(there) = paths.iter().find(|path| path.symlink_metadata().is_ok()) {
        let message = format!("{} is there already; give -o another folder, or delete it", there.display());
        return Err(Error::Usage(message));
    }
    if into.is_file() {
        return Err(Error::Usage(format!("{} is a file; give -o a folder for the tables", into.display())));
    }
    fs::create_dir_all(into).map_err(|source| Error::Write { path: into.to_owned(), source })?;
    write_all(&Export::new(&results), into, format)
        .inspect_err(|_| paths.iter().for_each(|path| drop(fs::remove_file(path))))?;
    let warnings = results.iter().flat_map(Results::warnings_of_runs).collect();
    Ok(Exported { paths, warnings })
}

/// One of the tables of results in memory: `runs`, `rounds`, `targets`, `controls`, `clients`, `comparisons`, or
/// `events` and `jobs`, which have no rows where events were not recorded; `None` if it is called otherwise. Rounds,
/// clients and events are read from the folders.
///
/// # Errors
/// If a round cannot be read.
pub fn exported(results: &[Results], table: &str) -> Result<Option<ExportedTable>, Error> {
    let export = Export::new(results);
    Ok(Some(match table {
        "runs" => export.run_table().gather(|add| export.each_run(add))?,
        "rounds" => rounds::table(&export.swept, &export.measured).gather(|add| export.each_round(add))?,
        "targets" => {
            targets::table().gather(|add| export.runs().flat_map(targets::rows).try_for_each(|row| add(&row)))?
        }
        "controls" => {
            controls::table().gather(|add| export.runs().flat_map(controls::rows).try_for_each(|row| add(&row)))?
        }
        "clients" => clients::table().gather(|add| export.runs().try_for_each(|of| clients::rows(of, add)))?,
        "comparisons" => comparisons::table(&export.swept, &export.numbers, &export.metrics)
            .gather(|add| comparisons::rows(results, add))?,
        "events" => events::table().gather(|add| export.runs().try_for_each(|of| events::rows(of, add)))?,
        "jobs" => jobs::table().gather(|add| export.runs().try_for_each(|of| jobs::rows(of, add)))?,
        _ => return Ok(None),
    }))
}

/// Writes all tables, and the dictionary when they are whole.
fn write_all(export: &Export<'_>, into: &Path, format: ExportFormat) -> Result<(), Error> {
    let mut tables = vec![
        export.run_table().write(into, format, |add| export.each_run(add))?,
        rounds::table(&export.swept, &export.measured).write(into, format, |add| export.each_round(add))?,
        targets::table()
            .write(into, format, |add| export.runs().flat_map(targets::rows).try_for_each(|row| add(&row)))?,
        controls::table()
            .write(into, format, |add| export.runs().flat_map(controls::rows).try_for_each(|row| add(&row)))?,
        clients::table().write(into, format, |add| export.runs().try_for_each(|of| clients::rows(of, add)))?,
        comparisons::table(&export.swept, &export.numbers, &export.metrics)
            .write(into, format, |add| comparisons::rows(export.results, add))?,
    ];
    if export.runs().any(events::are_there) {
        tables.push(events::table().write(into, format, |add| export.runs().try_for_each(|of| events::rows(of, add)))?);
        tables.push(jobs::table().write(into, format, |add| export.runs().try_for_each(|of| jobs::rows(of, add)))?);
    }
    let path = into.join(PACKAGE_FILE);
    let text = format!("{:#}\n", package(export.results, &tables, format));
    fs::write(&path, text::escaped_json(&text).as_bytes()).map_err(|source| Error::Write { path, source })
}

/// The results to export, and the columns that depend on them.
struct Export<'a> {
    results: &'a [Results],
    metrics: Metrics,
    /// The paths of all sweeps.
    swept: Vec<Swept>,
    /// Numbers of runs.
    numbers: Vec<Column>,
    measured: Measured,
}

/// A run with its numbers.
struct NumbersRow<'a> {
    of: OfRun<'a>,
    numbers: BTreeMap<String, f64>,
}

impl<'a> RunRow<'a> for NumbersRow<'a> {
    fn of(&self) -> OfRun<'a> {
        self.of
    }
}

impl<'a> Export<'a> {
    fn new(results: &'a [Results]) -> Self {
        let runs = || rows::all(results).filter_map(|of| of.run);
        let metrics = Metrics::new(runs().flat_map(|run| &run.measured));
        // Columns that are always there keep their names.
        let taken = |all: Vec<String>| {
            let mut names = Names::default();
            all.into_iter().for_each(|name| drop(names.take(&[name])));
            names
        };
        let [run_names, round_names, ..] = fixed();
        let (mut of_runs, mut of_rounds) = (taken(run_names), taken(round_names));
        let mut keys = BTreeSet::new();
        runs().for_each(|run| run.add_names(&mut keys));
        let numbers = quantities::columns(keys, &metrics, &mut of_runs);
        let measured = measured(results, &metrics, &mut of_rounds);
        let of_measured = measured.metrics.iter().map(|(_, column)| column);
        let of_meters = measured.meters.iter().map(|(_, column)| column);
        let of_results = numbers.iter().chain(of_measured).chain(of_meters).map(|column| column.name.clone());
        let all: BTreeSet<String> = fixed().into_iter().flatten().chain(of_results).collect();
        let mut names = taken(all.into_iter().collect());
        let swept = swept(results.iter().flat_map(|results| &results.summary.points), &mut names);
        Self { results, metrics, swept, numbers, measured }
    }

    /// All runs, in any state.
    fn runs(&self) -> impl Iterator<Item = OfRun<'a>> + use<'a> {
        rows::all(self.results)
    }

    /// The table of runs, with their numbers.
    fn run_table(&self) -> Table<'_, NumbersRow<'a>> {
        run_table(&self.swept).with_all(&self.numbers, |row, index| {
            let column = &self.numbers[index];
            let value = column.quantity.as_ref().and_then(|quantity| row.numbers.get(quantity));
            Cell::of_kind(column.kind, value.copied())
        })
    }

    fn each_run(&self, add: &mut dyn FnMut(&NumbersRow<'a>) -> Result<(), Failed>) -> Result<(), Failed> {
        let numbers = |run: Option<&RunSummary>| run.map(RunSummary::numbers).unwrap_or_default();
        self.runs().try_for_each(|of| add(&NumbersRow { of, numbers: numbers(of.run) }))
    }

    fn each_round(&self, add: &mut dyn FnMut(&RoundRow<'a>) -> Result<(), Failed>) -> Result<(), Failed> {
        let mut recorded = self.runs().filter(|of| of.state.status == Status::Complete);
        recorded.try_for_each(|of| rounds::rows(of, add))
    }
}

/// The table of runs, without their numbers.
fn run_table<'s, 'a>(swept: &'s [Swept]) -> Table<'s, NumbersRow<'a>>
where
    'a: 's,
{
    let meaning = "A row for each run of the experiments, in any state; numbers are of runs with results.";
    let text = |name, meaning: &str| Column::text(name, meaning);
    Table::new("runs", meaning, RUN_KEY)
        .of_runs()
        .with_swept(swept)
        .with(
            text("status", "complete, failed, missing, or summary-only where only run.json is left").required(),
            |row: &NumbersRow<'a>| Cell::text(row.of.state.status.name()),
        )
        .with(text("reason", "why it failed, or cannot be used"), |row| {
            Cell::text(row.of.state.reason.as_deref().unwrap_or_default())
        })
        .with_changed()
        .with(text("ended", "why it ended: rounds, virtual_time, target, plateau, traffic or budget"), |row| {
            let ended = row.of.run.map(|run| serde_json::to_value(run.ended).unwrap_or_default());
            Cell::text(ended.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default())
        })
        .with(text("timeline", "digest of events, selections, latencies and regret: BLAKE3, hexadecimal"), |row| {
            Cell::text(row.of.run.map_or("", |run| &run.digest.timeline))
        })
        .with(text("model", "digest of parameters and metrics: BLAKE3, hexadecimal"), |row| {
            Cell::text(row.of.run.map_or("", |run| &run.digest.model))
        })
}

/// The names of the columns of each table that do not depend on the results.
fn fixed() -> [Vec<String>; TABLES.len()] {
    let none = Measured { metrics: Vec::new(), meters: Vec::new(), has_clusters: true, has_shifts: true };
    [
        run_table(&[]).names(),
        rounds::table(&[], &none).names(),
        targets::table().names(),
        controls::table().names(),
        clients::table().names(),
        comparisons::table(&[], &[], &Metrics::default()).names(),
        events::table().names(),
        jobs::table().names(),
    ]
}

/// Metrics of rounds, and meters in use.
fn measured(results: &[Results], metrics: &Metrics, names: &mut Names) -> Measured {
    let points = || rows::all(results).filter_map(|of| of.run).flat_map(|run| &run.curve);
    let is_metered = |meter: &usize| points().any(|point| point.regret.entries()[*meter].1.is_some());
    let of_meter = |meter: usize| {
        let name = Regret::default().entries()[meter].0;
        let column = names.take(&[identifier(&format!("regret.{name}"))]);
        (meter, Column::new(&column, Kind::Number, "reward", quantities::of_regret(name)))
    };
    let meters = (0..Regret::default().entries().len()).filter(is_metered).map(of_meter).collect();
    let found: BTreeSet<MetricId> = points().flat_map(|point| &point.metrics).map(|&(metric, _)| metric).collect();
    let (of_clusters, found): (Vec<String>, Vec<String>) =
        found.iter().map(MetricId::to_string).partition(|name| [ACTIVE_CLUSTERS, REASSIGNMENTS].contains(&&**name));
    let metrics = found.into_iter().map(|name| (name.clone(), quantities::of_metric(&name, metrics, names))).collect();
    Measured { metrics, meters, has_clusters: !of_clusters.is_empty(), has_shifts: results.iter().any(has_shifts) }
}

/// Whether a scenario has `shift` in the section of its task, in a sweep over it or for a policy.
fn has_shifts(results: &Results) -> bool {
    flat(results.table()).iter().any(|(path, value)| {
        let keys: Vec<&str> = path.split(['.', '[']).collect();
        value != "[]" && keys.windows(3).any(|three| three[0] == "task" && three[2] == "shift")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_columns_need_no_quoting() {
        let is_plain = |name: &String| *name == identifier(name) && !names::is_reserved(name);
        let wrong: Vec<String> = fixed().into_iter().flatten().filter(|name| !is_plain(name)).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }
}
