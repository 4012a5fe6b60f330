//! Results as tidy tables for a data frame: a row is one observation, a column one number.
//!
//! Each row of `runs` is a run: `folder`, `policy`, `seed`, `point`, a column for each swept path, `ended`, both
//! digests, and every number of the run.
//!
//! Each row of `rounds` is a recorded round of a run: what the run is of, `round`, `opened_s`, `closed_s`, counts of
//! clients, `reward`, `down_bytes` and `up_bytes` so far, `regret.METER`, metrics.
//!
//! Each row of `comparisons` is a number of a policy at a point, or its difference to another policy: `folder`,
//! `point`, swept paths, `quantity`, `policy`, `against` (empty for the number itself), `statistic` (`mean` or
//! `median`), `value`, `low`, `high`, `n`.
//!
//! Numbers of runs and comparisons are named as in `summary.json`. A cell is empty where something is not known: a
//! metric of a round that was not evaluated, a time to a target that was not reached, an interval of too few seeds.

use super::csv::plain;
use super::source::Results;
use fedgenie_core::math::statistics::Estimate;
use fedgenie_core::record::Regret;
use fedgenie_experiment::error::Error;
use fedgenie_experiment::experiment::artefacts::{ROUNDS_FILE, RUNS_FOLDER};
use fedgenie_experiment::experiment::{RunSummary, below, run_name};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter};
use std::path::{Path, PathBuf};

/// The tables, in their order.
const TABLES: [&str; 3] = ["runs", "rounds", "comparisons"];

/// A table that is being written.
type Writer = ::csv::Writer<BufWriter<File>>;

/// Writes the tables of result folders into a folder as CSV. Returns what was written.
///
/// # Errors
/// If a folder holds no results, a round cannot be read, a file is there already, or cannot be written.
pub fn export(folders: &[PathBuf], into: &Path) -> Result<Vec<PathBuf>, Error> {
    let results = folders.iter().map(|folder| Results::load(folder)).collect::<Result<Vec<_>, _>>()?;
    let paths = TABLES.map(|table| into.join(format!("{table}.csv")));
    if let Some(there) = paths.iter().find(|path| path.symlink_metadata().is_ok()) {
        let message = format!("{} is there already; give -o another folder, or delete it", there.display());
        return Err(Error::Usage(message));
    }
    fs::create_dir_all(into).map_err(|source| Error::Write { path: into.to_owned(), source })?;
    let points = results.iter().flat_map(|results| &results.summary.points);
    let swept: BTreeSet<String> = points.flat_map(|point| point.keys().cloned()).collect();
    let export = Export { folders, results, swept: swept.into_iter().collect() };
    let [runs, rounds, comparisons] = &paths;
    write(runs, |writer| export.runs(writer))?;
    write(rounds, |writer| export.rounds(writer))?;
    write(comparisons, |writer| export.comparisons(writer))?;
    Ok(paths.to_vec())
}

/// Why a table was not finished.
enum Failed {
    Write(io::Error),
    Other(Error),
}

impl From<::csv::Error> for Failed {
    fn from(error: ::csv::Error) -> Self {
        Self::Write(error.into())
    }
}

/// Writes a table into a new file, which is there whole or not at all.
fn write(path: &Path, rows: impl FnOnce(&mut Writer) -> Result<(), Failed>) -> Result<(), Error> {
    let failed = |source| Error::Write { path: path.to_owned(), source };
    let file = OpenOptions::new().write(true).create_new(true).open(path).map_err(failed)?;
    let mut writer = ::csv::Writer::from_writer(BufWriter::new(file));
    let written = rows(&mut writer).and_then(|()| writer.flush().map_err(Failed::Write));
    written.map_err(|why| {
        drop(fs::remove_file(path));
        match why {
            Failed::Write(source) => failed(source),
            Failed::Other(error) => error,
        }
    })
}

/// What is exported.
struct Export<'a> {
    folders: &'a [PathBuf],
    results: Vec<Results>,
    /// The paths of all sweeps.
    swept: Vec<String>,
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

fn number(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map_or_else(String::new, |value| value.to_string())
}

impl Export<'_> {
    /// All runs, each with what it is of.
    fn all_runs(&self) -> impl Iterator<Item = (usize, &RunSummary)> {
        let indexed = self.results.iter().enumerate();
        indexed.flat_map(|(folder, results)| results.summary.runs.iter().map(move |run| (folder, run)))
    }

    /// The headings of what a row is of.
    fn keys(&self, first: &[&str]) -> Vec<String> {
        first.iter().map(|&key| key.to_owned()).chain(self.swept.iter().cloned()).collect()
    }

    /// The values of the swept paths at a point.
    fn settings(&self, folder: usize, point: usize) -> impl Iterator<Item = String> {
        let settings = &self.results[folder].summary.points[point];
        self.swept.iter().map(|path| settings.get(path).map_or_else(String::new, |value| plain(value).into_owned()))
    }

    fn of_run(&self, folder: usize, run: &RunSummary) -> Vec<String> {
        let name = &self.results[folder].name;
        let first =
            [plain(name).into_owned(), plain(&run.arm).into_owned(), run.seed.to_string(), run.point.to_string()];
        first.into_iter().chain(self.settings(folder, run.point)).collect()
    }

    fn runs(&self, writer: &mut Writer) -> Result<(), Failed> {
        let names: BTreeSet<String> = self.all_runs().flat_map(|(_, run)| run.numbers().into_keys()).collect();
        let mut header = self.keys(&["folder", "policy", "seed", "point"]);
        header.extend(["ended", "timeline", "model"].map(str::to_owned));
        header.extend(names.iter().cloned());
        writer.write_record(&header)?;
        for (folder, run) in self.all_runs() {
            let mut row = self.of_run(folder, run);
            let ended = serde_json::to_value(run.ended).unwrap_or_default();
            row.extend([
                ended.as_str().unwrap_or("").to_owned(),
                run.digest.timeline.clone(),
                run.digest.model.clone(),
            ]);
            let numbers = run.numbers();
            row.extend(names.iter().map(|name| number(numbers.get(name).copied())));
            writer.write_record(&row)?;
        }
        Ok(())
    }

    fn rounds(&self, writer: &mut Writer) -> Result<(), Failed> {
        let points = || self.all_runs().flat_map(|(_, run)| &run.curve);
        let metrics: BTreeSet<&str> = points().flat_map(|point| &point.metrics).map(|(name, _)| &**name).collect();
        let is_metered = |meter: usize| points().any(|point| point.regret.entries()[meter].1.is_some());
        let meters: Vec<usize> = (0..Regret::default().entries().len()).filter(|&meter| is_metered(meter)).collect();
        let mut header = self.keys(&["folder", "policy", "seed", "point"]);
        let fixed = ["round", "opened_s", "closed_s", "selected", "arrived", "late", "dropped", "reward"];
        header.extend(fixed.map(str::to_owned));
        header.extend(["down_bytes", "up_bytes"].map(str::to_owned));
        header.extend(meters.iter().map(|&meter| format!("regret.{}", Regret::default().entries()[meter].0)));
        header.extend(metrics.iter().map(|&name| name.to_owned()));
        writer.write_record(&header)?;
        for (folder, run) in self.all_runs() {
            let first = self.of_run(folder, run);
            let name = run_name(&run.arm, (run.point, self.results[folder].summary.points.len()), run.seed);
            let file = format!("{RUNS_FOLDER}/{name}/{ROUNDS_FILE}");
            let path = self.folders[folder].join(&file);
            let unread = |source| Failed::Other(Error::Read { path: path.clone(), source });
            let opened = below::open(&self.folders[folder], &file).map_err(unread)?;
            for (index, line) in BufReader::new(opened).lines().enumerate() {
                let line = line.map_err(unread)?;
                let round: Round = serde_json::from_str(&line).map_err(|error| {
                    let message = format!("{}:{}: this is no recorded round: {error}", path.display(), index + 1);
                    Failed::Other(Error::Usage(message))
                })?;
                let mut row = first.clone();
                row.extend([round.round.to_string(), round.opened_s.to_string(), round.closed_s.to_string()]);
                let lists = [&round.selected, &round.arrived, &round.late, &round.dropped];
                row.extend(lists.map(|clients| clients.len().to_string()));
                row.extend([number(round.reward), round.down_bytes.to_string(), round.up_bytes.to_string()]);
                let regrets = round.regret.entries();
                row.extend(meters.iter().map(|&meter| number(regrets[meter].1)));
                row.extend(metrics.iter().map(|&name| number(round.metrics.get(name).copied().flatten())));
                writer.write_record(&row)?;
            }
        }
        Ok(())
    }

    fn comparisons(&self, writer: &mut Writer) -> Result<(), Failed> {
        let mut header = self.keys(&["folder", "point"]);
        header.extend(["quantity", "policy", "against", "statistic", "value", "low", "high", "n"].map(str::to_owned));
        writer.write_record(&header)?;
        for (folder, results) in self.results.iter().enumerate() {
            for arm in &results.summary.arms {
                let first = [plain(&results.name).into_owned(), arm.point.to_string()];
                let first: Vec<String> = first.into_iter().chain(self.settings(folder, arm.point)).collect();
                let mut add = |against: &str, statistic: &str, name: &str, found: Estimate| {
                    let mut row = first.clone();
                    let texts = [name, &arm.arm, against].map(|text| plain(text).into_owned());
                    let [low, high] = [0, 1].map(|end| number(found.ci95.map(|ends| ends[end])));
                    row.extend(texts);
                    row.extend([statistic.to_owned(), number(Some(found.mean)), low, high, found.n.to_string()]);
                    writer.write_record(&row)
                };
                for (name, &found) in &arm.values {
                    add("", "mean", name, found)?;
                }
                for (name, &found) in &arm.medians {
                    add("", "median", name, found.into())?;
                }
                if let Some(paired) = &arm.paired {
                    for (name, &found) in &paired.differences {
                        add(&paired.against, "mean", name, found)?;
                    }
                    for (name, &found) in &paired.medians {
                        add(&paired.against, "median", name, found.into())?;
                    }
                }
            }
        }
        Ok(())
    }
}
