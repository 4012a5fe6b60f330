//! Settings that a paper leaves open, chosen before policies are compared.
//!
//! ```toml
//! title = "Batch and rate of FedNCF on MovieLens-100K"
//! scenario = "../../scenarios/proxyrl/ml100k.toml"             # relative to this file
//! policy = "fedncf"                                           # alone, so that no selection is favoured
//! seeds = [101, 102, 103]                                     # of no claim: these begin at 1
//! by = "best.valid_hr_20"                                     # on validation data
//! open = ["pow-d", "fedfast"]                                 # optional: policies that get a choice of their own as well
//! set = { "stop.rounds" = 60 }                                # optional, as `--set`
//!
//! [grid]
//! "training.batch" = [8, 32, 128]
//! "training.optimizer.adam.lr" = [0.001, 0.01]
//! ```
//!
//! # Definition
//! Each combination of the grid is run with each seed. The choice is the one with the best mean; of equal ones the
//! first. `by = "controls.centralised.valid_hr_20"` chooses for the control that is trained in one place, which takes no
//! rounds (`set = { "stop.rounds" = 1 }`). A combination with a run that fails, such as one that diverges, is no choice.
//! Every policy of a claim gets the same settings (*closed*). Each policy that is named in `open` is tried by the same
//! combinations, seeds and number, and gets the best for itself where a claim's scenario says `open = "NAME"`. The
//! choices and all values are in `NAME.chosen.toml` beside the grid.

use fedgenie_core::math::statistics::estimate;
use fedgenie_core::metric::Place;
use fedgenie_experiment::error::Error;
use fedgenie_experiment::experiment::{
    Conclusion, Experiment, Overrides, RunId, RunOptions, RunSummary, Threads, number,
};
use fedgenie_experiment::scenario::{Point, Scenario};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Seeds up to this one may be a claim's.
const OF_CLAIMS: u64 = 100;

/// A grid.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Grid {
    title: String,
    scenario: PathBuf,
    policy: String,
    seeds: Vec<u64>,
    by: String,
    #[serde(default)]
    open: Vec<String>,
    #[serde(default)]
    set: toml::Table,
    grid: toml::Table,
}

/// The choice, and what it was chosen from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chosen {
    /// The grid's title.
    pub title: String,
    /// The number that decides.
    pub by: String,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// Where and when, in words.
    pub made: String,
    /// Paths and values, the same for every policy.
    pub choice: toml::Table,
    /// All combinations.
    pub tried: Vec<Tried>,
    /// The choices of policies for themselves.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub open: BTreeMap<String, Own>,
}

/// The choice of a policy for itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Own {
    /// Paths and values.
    pub choice: toml::Table,
    /// All combinations.
    pub tried: Vec<Tried>,
}

/// A combination.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tried {
    /// Paths and values.
    pub settings: toml::Table,
    /// The mean over seeds; none where a run failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// The values, seed by seed.
    pub values: Vec<f64>,
    /// Why it is no choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// The file of a choice.
fn file_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.chosen.toml"))
}

fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T, Error> {
    let text = fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    let wrong = |error: toml::de::Error| Error::Usage(format!("{}: {}", path.display(), error.to_string().trim_end()));
    toml::from_str(&text).map_err(wrong)
}

/// The settings of a point, as values.
fn settings_of(settings: &[(String, String)]) -> toml::Table {
    let value = |text: &String| {
        let read = toml::from_str::<toml::Table>(&format!("value = {text}")).ok();
        read.and_then(|table| table.get("value").cloned()).unwrap_or_else(|| text.clone().into())
    };
    settings.iter().map(|(path, text)| (path.clone(), value(text))).collect()
}

impl Grid {
    fn check(&self, path: &Path) -> Result<(), Error> {
        let wrong = |message: String| Err(Error::Usage(format!("{}: {message}", path.display())));
        if self.seeds.is_empty() || self.grid.is_empty() {
            return wrong("seeds and grid are needed, or nothing could be chosen".to_owned());
        }
        if self.open.contains(&self.policy) || (1..self.open.len()).any(|at| self.open[..at].contains(&self.open[at])) {
            return wrong(format!(
                "open: name each policy once, and {} not at all: its choice is that of all",
                self.policy
            ));
        }
        match self.seeds.iter().find(|&&seed| seed <= OF_CLAIMS) {
            Some(seed) => wrong(format!("seeds: found {seed}; expected seeds above {OF_CLAIMS}, which no claim uses")),
            None => Ok(()),
        }
    }

    /// The experiment: the policy, and those that get a choice of their own, at every point of the grid.
    fn experiment(&self, folder: &Path, data: Option<PathBuf>) -> Result<Experiment, Error> {
        let scenario = folder.join(&self.scenario);
        let own = self.set.iter().map(|(path, value)| (path.clone(), value.to_string()));
        let mut set: Vec<(String, String)> = own.collect();
        let overrides = |set: &[(String, String)]| Overrides {
            set: set.to_vec(),
            data: data.clone(),
            allow_paths: true,
            ..Overrides::default()
        };
        let labels = Experiment::load(&scenario, &overrides(&set))?.labels();
        let mine = || std::iter::once(&self.policy).chain(&self.open);
        if let Some(unknown) = mine().find(|policy| !labels.contains(policy)) {
            return Err(Error::Usage(format!(
                "policy: there is no {unknown:?} in {}; there are {}",
                scenario.display(),
                labels.join(", ")
            )));
        }
        // What a report is to show may be about the others.
        set.push(("report".to_owned(), "{}".to_owned()));
        let others = labels.iter().filter(|label| mine().all(|policy| policy != *label));
        set.extend(others.map(|label| (format!("policy.{label}"), String::new())));
        let seeds: Vec<String> = self.seeds.iter().map(u64::to_string).collect();
        set.push(("seeds".to_owned(), format!("[{}]", seeds.join(", "))));
        set.push(("sweep".to_owned(), toml::Value::Table(self.grid.clone()).to_string()));
        Experiment::load(&scenario, &overrides(&set))
    }
}

/// The number of a run, or of a control of its world, that decides.
fn value_of(run: &RunSummary, by: &str) -> Option<f64> {
    match by.strip_prefix("controls.").and_then(|rest| rest.split_once('.')) {
        Some((control, metric)) => run.controls.get(control)?.get(metric).copied(),
        None => run.number(by),
    }
}

/// Tries the combinations of a grid, and writes the choice. With a folder, runs are kept there, and those that are
/// there are not made again.
///
/// # Errors
/// If the grid or its scenario is wrong, or nothing can be chosen.
pub fn tune(
    folder: &Path,
    name: &str,
    (data, kept): (Option<PathBuf>, Option<&Path>),
    options: &RunOptions<'_>,
    threads: &Threads,
    made: String,
) -> Result<(PathBuf, Chosen), Error> {
    let path = folder.join(format!("{name}.toml"));
    let grid: Grid = read(&path)?;
    grid.check(&path)?;
    let experiment = grid.experiment(folder, data)?;
    let kept = kept.map(|kept| kept.join(name));
    let options = RunOptions { folder: kept.as_deref(), files: options.files.clone(), ..*options };
    let outcome = experiment.run_with(&options, threads)?;
    if let Conclusion::Cancelled = outcome.conclusion {
        return Err(Error::Cancelled);
    }
    let runs = &outcome.summary.runs;
    let metric = grid.by.rsplit_once('.').and_then(|(_, metric)| {
        runs.iter().flat_map(|run| &run.measured).find(|found| found.id.is_called(metric)).cloned()
    });
    let Some(metric) = metric.filter(|metric| metric.id.place == Place::Valid) else {
        let message = format!("{}: by: {:?} is no metric on validation data", path.display(), grid.by);
        return Err(Error::Usage(message));
    };
    let tried = |policy: &str, (point, (settings, scenario)): (usize, &(Point, Scenario))| {
        let mine = runs.iter().filter(|run| run.point == point && run.arm == policy);
        let values: Vec<f64> = mine.filter_map(|run| value_of(run, &grid.by)).collect();
        let is_mine = |run: &RunId| run.point == point && scenario.arms[run.arm].label == policy;
        let failed = outcome.failures.iter().find(|(run, _)| is_mine(run)).map(|(_, error)| error.to_string());
        let lacks = (values.len() < grid.seeds.len()).then(|| format!("a run has no {}", grid.by));
        let failed = failed.or(lacks);
        let mean = estimate(&values).filter(|_| failed.is_none()).map(|found| found.mean);
        Tried { settings: settings_of(&settings.settings), mean, values, failed }
    };
    let own = |policy: &String| {
        let tried: Vec<Tried> = experiment.points.iter().enumerate().map(|point| tried(policy, point)).collect();
        let quality = |tried: &Tried| tried.mean.map(|mean| metric.better.quality(mean));
        let better = |best: &Tried, next: &Tried| quality(next) > quality(best);
        let best = tried.iter().filter(|tried| tried.mean.is_some());
        match best.reduce(|best, next| if better(best, next) { next } else { best }) {
            Some(best) => Ok(Own { choice: best.settings.clone(), tried }),
            None => {
                Err(Error::Usage(format!("{}: no combination of {policy} has a run of every seed", path.display())))
            }
        }
    };
    let Own { choice, tried } = own(&grid.policy)?;
    let open = grid.open.iter().map(|policy| Ok((policy.clone(), own(policy)?))).collect::<Result<_, Error>>()?;
    let chosen = Chosen { title: grid.title, by: grid.by, seeds: grid.seeds, made, choice, tried, open };
    let file = file_of(folder, name);
    let text = toml::to_string_pretty(&chosen).expect("a choice has only values that TOML can write");
    let text = format!("# Written by `fedgenie validate --tune {name}`.\n\n{text}");
    fs::write(&file, text).map_err(|source| Error::Write { path: file.clone(), source })?;
    Ok((file, chosen))
}

/// Why a scenario does not have the settings of a choice; `None` if it has.
///
/// # Errors
/// If the file of the choice cannot be read.
pub(super) fn objection(folder: &Path, name: &str, experiment: &Experiment) -> Result<Option<String>, Error> {
    let file = file_of(folder, name);
    if !file.is_file() {
        return Ok(Some(format!(
            "its settings were not chosen by a declared grid: there is no tuning/{name}.chosen.toml"
        )));
    }
    let chosen: Chosen = read(&file)?;
    let resolved: toml::Table = experiment.resolved.parse().unwrap_or_default();
    let found = |path: &str| {
        let mut parts = path.split('.');
        let first = resolved.get(parts.next()?)?;
        parts.try_fold(first, |value, part| value.get(part))
    };
    // A choice may leave out what the scenario writes out: it has the settings if setting them changes nothing.
    let written = |set: Vec<(String, String)>| {
        let overrides = Overrides { set, data: experiment.data.clone(), allow_paths: true, ..Overrides::default() };
        Experiment::from_text("scenario.toml", &experiment.resolved, &overrides).ok().map(|same| same.resolved)
    };
    let as_it_is = written(Vec::new());
    let same = |path: &str, value: &toml::Value| {
        let number = |value: &toml::Value| value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
        let is_written =
            |found: &toml::Value| value == found || number(value).is_some_and(|it| number(found) == Some(it));
        found(path).is_some_and(is_written)
            || as_it_is.is_some() && as_it_is == written(vec![(path.to_owned(), value.to_string())])
    };
    let other = chosen.choice.iter().find(|(path, value)| !same(path, value));
    Ok(other.map(|(path, value)| {
        let here = found(path).map_or_else(|| "nothing".to_owned(), ToString::to_string);
        format!("it has {path} = {here}, and tuning/{name}.chosen.toml chose {value}")
    }))
}

/// The settings of policies that have a choice of their own, as paths and values of a scenario.
///
/// # Errors
/// If the file of the choice cannot be read, or has none for a policy.
pub(super) fn open(folder: &Path, name: &str) -> Result<Vec<(String, String)>, Error> {
    let file = file_of(folder, name);
    if !file.is_file() {
        let message =
            format!("open: there is no tuning/{name}.chosen.toml; `fedgenie validate --tune {name}` makes it");
        return Err(Error::Usage(message));
    }
    let chosen: Chosen = read(&file)?;
    if chosen.open.is_empty() {
        let message = format!("{}: no policy has a choice of its own; name some in open of the grid", file.display());
        return Err(Error::Usage(message));
    }
    let of = |(policy, own): (&String, &Own)| -> Vec<(String, String)> {
        let path = |path: &String| format!("policy.{policy}.with.{path:?}");
        own.choice.iter().map(|(setting, value)| (path(setting), value.to_string())).collect()
    };
    Ok(chosen.open.iter().flat_map(of).collect())
}

/// Choices in tables for people.
pub fn told(chosen: &Chosen) -> String {
    let line = |choice: &toml::Table, tried: &Tried| {
        let settings: Vec<String> = tried.settings.iter().map(|(path, value)| format!("{path} = {value}")).collect();
        let mark = if tried.settings == *choice { "*" } else { " " };
        let value = match (&tried.failed, tried.mean) {
            (Some(why), _) => why.clone(),
            (None, mean) => mean.map_or_else(String::new, number),
        };
        format!("{mark} {}: {value}\n", settings.join(", "))
    };
    let Chosen { title, by, seeds, choice, tried, open, .. } = chosen;
    let lines = |choice: &toml::Table, tried: &[Tried]| tried.iter().map(|one| line(choice, one)).collect::<String>();
    let own =
        |(policy, Own { choice, tried }): (&String, &Own)| format!("{policy} for itself\n{}", lines(choice, tried));
    let open: String = open.iter().map(own).collect();
    format!("{title}, by {by}, mean of {} seeds; * is the choice\n{}{open}", seeds.len(), lines(choice, tried))
}
