//! From results to a report: comparable experiments, labels, colours, tables.

use super::controls::controls;
use super::figures::{figures, lead, points as of_points};
use super::folders::notes;
use super::groups::{blocks, labels, prefixes};
use super::headline::brief::brief;
use super::lacking::{add_rows, add_to_overview, lacking};
use super::model::{CHANGED, Experiment, Figure, Report, Series, Table, Why};
use super::settings::add_differing;
use super::source::Results;
use super::study::{Quantity, Study, counted};
use super::style::{self, Labelled};
use super::verdicts::{overview, overview_of_points, verdicts, verdicts_of_points};
use super::why;
use fedgenie_core::math::statistics::Estimate;
use fedgenie_core::text;
use fedgenie_experiment::error::Error;
use fedgenie_experiment::experiment::answers::{Told, told};
use fedgenie_experiment::experiment::artefacts;
use fedgenie_experiment::experiment::stored::{Reader, Status};
use fedgenie_experiment::experiment::{CONVERGENCE, INTERVAL_SEEDS, overridden, show, warnings as of_runs};
use fedgenie_experiment::scenario::points;
use fedgenie_simulator::policy;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

impl Report {
    /// The report on one or several result folders.
    ///
    /// # Errors
    /// As [`Reader::read`], and if no folder is given, or none holds a complete run.
    pub fn load(folders: &[PathBuf], reader: &Reader<'_>) -> Result<Self, Error> {
        Self::load_against(folders, None, reader)
    }

    /// As [`Self::load`]; policies are compared with the one of this label, in folders that have it.
    ///
    /// # Errors
    /// As [`Self::load`], and if no folder has such a policy.
    pub fn load_against(folders: &[PathBuf], reference: Option<&str>, reader: &Reader<'_>) -> Result<Self, Error> {
        Self::results(folders, reference, reader).map(|results| Self::of(&results))
    }

    /// The results that [`Self::load_against`] makes its report of.
    ///
    /// # Errors
    /// As [`Self::load_against`].
    pub fn results(folders: &[PathBuf], reference: Option<&str>, reader: &Reader<'_>) -> Result<Vec<Results>, Error> {
        let mut results = Results::load_all(folders, reader)?;
        let is_known =
            results.iter().any(|results| results.labels.iter().any(|label| Some(label.as_str()) == reference));
        for results in &mut results {
            match results.refer_to(reference) {
                Err(_) if is_known => {}
                result => result?,
            }
        }
        if results.is_empty() {
            return Err(Error::Usage("give a folder that `fedgenie run --out` wrote".to_owned()));
        }
        if let Some(first) = results.first().filter(|_| results.iter().all(|results| results.summary.runs.is_empty())) {
            let (folder, command) = (text::path(&first.folder), artefacts::completion(&first.folder));
            let remedy = match first.states.iter().all(|state| state.status == Status::Failed) {
                true => "all its runs failed, and fail again unless scenario, program or data are others".to_owned(),
                false => format!("`{command}` completes it"),
            };
            let message = format!("{folder} holds no complete run, so there is nothing to report; {remedy}");
            return Err(Error::Usage(message));
        }
        Ok(results)
    }

    /// The report on one or several experiments.
    ///
    /// Policies of several experiments are labelled `FOLDER: policy`. Experiments with the same points of a sweep (or
    /// with none) are drawn together; policies are compared across experiments, by seed as far as
    /// they share draws.
    ///
    /// # Panics
    /// If there is no experiment.
    pub fn of(results: &[Results]) -> Self {
        assert!(!results.is_empty(), "a report is about something");
        let prefixes = prefixes(results);
        let labels = labels(results, &prefixes);
        let mut report = Self {
            title: match results {
                [only] => only.title().to_owned(),
                _ => prefixes.join(", "),
            },
            experiments: results.iter().zip(&prefixes).map(|(results, prefix)| experiment(results, prefix)).collect(),
            answers: found(results, &prefixes, |told| told.first),
            more: found(results, &prefixes, |told| told.rest),
            warnings: warnings(results, &prefixes),
            series: series(results, &labels),
            ..Self::default()
        };
        if report.series.len() > style::STYLES {
            report.warnings.push(format!(
                "{} policies share {} styles of lines: some look the same",
                report.series.len(),
                style::STYLES
            ));
        }
        if results.len() > 1 {
            add_differing(&mut report.experiments, results);
        }
        let (blocks, mut explained) = (blocks(results), Vec::new());
        if blocks.len() > 1 {
            let message =
                "the folders have different points of the sweep: only folders with the same points share figures";
            report.warnings.push(message.to_owned());
        }
        for (number, folders) in blocks.iter().enumerate() {
            let study = Study::new(results, folders, &labels);
            report.compare_across(&study, folders, &prefixes);
            report.verdicts.extend(verdicts(&study));
            report.verdicts.extend(verdicts_of_points(&study));
            let lacking = lacking(&study);
            let mut overview = overview(&study);
            overview.iter_mut().for_each(|overview| add_to_overview(&lacking, overview));
            report.overviews.extend(overview);
            report.overviews.extend(overview_of_points(&study));
            table(&study, &mut report.results);
            add_rows(&lacking, &mut report.results, |words| format!("0 ({words})"));
            report.lacking.extend(lacking);
            report.brief = brief(&study).filter(|_| blocks.len() == 1).unwrap_or_default();
            for series in of_points::series(&study) {
                if report.series.iter().all(|known| known.label != series.label) {
                    report.series.push(series);
                }
            }
            let drawn = figures(&study, &mut report.warnings);
            if number == 0 {
                report.lead = lead(&study, &drawn).map(|figure| figure.id.clone()).unwrap_or_default();
            }
            for mut figure in drawn {
                if number > 0 {
                    figure.id = format!("{}-{}", figure.id, number + 1);
                    figure.title = format!("{} ({})", figure.title, prefixes[folders[0]]);
                }
                report.figures.push(figure);
            }
            explained.extend(why::why(&study, &mut report.warnings));
        }
        report.explain(explained);
        // Cells of later kinds of experiments may have widened the table.
        let width = report.results.columns.len();
        report.results.rows.iter_mut().for_each(|row| row.resize(width, String::new()));
        report.tidy();
        report.mark_changed(results, &prefixes);
        report
    }

    /// Marks the results that were made of changed files.
    fn mark_changed(&mut self, results: &[Results], prefixes: &[String]) {
        for (results, prefix) in results.iter().zip(prefixes) {
            let of = |file: &str| if prefix.is_empty() { file.to_owned() } else { format!("{prefix}/{file}") };
            self.changed.extend(results.all_changed().map(|changed| of(&changed.file)));
        }
        if !self.changed.is_empty() {
            let titles = self.figures.iter_mut().map(|figure| &mut figure.title).chain([&mut self.title]);
            titles.for_each(|title| title.push_str(" (of changed files)"));
        }
    }

    /// Adds the policies' explanations of their decisions, after all other figures.
    fn explain(&mut self, explained: Vec<(Why, Vec<Figure>)>) {
        for (mut why, figures) in explained {
            why.figures = (self.figures.len()..self.figures.len() + figures.len()).collect();
            self.figures.extend(figures);
            self.why.push(why);
        }
        let has_others = self.why.iter().any(|why| !why.figures.is_empty());
        if has_others && self.series.iter().all(|series| series.label != why::OTHERS) {
            self.series.push(Series { label: why::OTHERS.to_owned(), style: style::GREY });
        }
    }

    /// Notes how experiments are compared with the first.
    fn compare_across(&mut self, study: &Study<'_>, folders: &[usize], prefixes: &[String]) {
        let Some((&first, others)) = folders.split_first() else { return };
        for &other in others {
            let results = [first, other].map(|folder| &study.results[folder]);
            self.warnings.extend(notes(results, [&prefixes[first], &prefixes[other]]));
        }
    }

    /// Each warning once, each name of a figure once.
    fn tidy(&mut self) {
        let mut warnings: Vec<String> = Vec::new();
        for warning in std::mem::take(&mut self.warnings) {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        self.warnings = warnings;
        let mut names: BTreeSet<String> = BTreeSet::new();
        let figures = self.figures.iter_mut().map(|figure| &mut figure.id);
        for name in figures.chain(self.why.iter_mut().map(|why| &mut why.id)) {
            let (first, mut number) = (name.clone(), 2);
            while !names.insert(name.clone()) {
                *name = format!("{first}_{number}");
                number += 1;
            }
        }
    }
}

/// The series of all policies that have runs.
fn series(results: &[Results], labels: &[Vec<String>]) -> Vec<Series> {
    let mut policies = Vec::new();
    for (folder, (results, labels)) in results.iter().zip(labels).enumerate() {
        let has_runs = |name: &String| results.summary.runs.iter().any(|run| run.arm == *name);
        for (name, label) in results.labels.iter().zip(labels).filter(|(name, _)| has_runs(name)) {
            policies.push(Labelled { folder, name, label });
        }
    }
    style::series(&policies, |name| policy::CATALOGUE.entries.iter().position(|entry| entry.name == name))
}

/// Findings of all folders, each under its folder's name.
fn found(results: &[Results], prefixes: &[String], which: impl Fn(Told) -> Vec<String>) -> Vec<String> {
    let of = |(results, prefix): (&Results, &String)| {
        let name = |line| if prefix.is_empty() { line } else { format!("{prefix}: {line}") };
        which(told(&results.summary)).into_iter().map(name).collect::<Vec<_>>()
    };
    results.iter().zip(prefixes).flat_map(of).collect()
}

/// The facts of an experiment.
fn experiment(results: &Results, prefix: &str) -> Experiment {
    let summary = &results.summary;
    let mut facts: Vec<[String; 2]> = Vec::new();
    let mut add = |name: &str, value: Option<String>| facts.extend(value.map(|value| [name.to_owned(), value]));
    add("clients", clients(results));
    add("protocol", results.kind("protocol"));
    add("task", Some(results.kind("task").unwrap_or_else(|| "none".to_owned())));
    add("policies", Some(results.labels.join(", ")));
    for (label, words) in overridden(summary) {
        add(&format!("{label} overrides"), Some(words));
    }
    let seeds: Vec<String> = results.seeds.iter().map(u64::to_string).collect();
    let are_counted = results.seeds.iter().copied().eq(1..=results.seeds.len() as u64);
    add(
        "seeds",
        Some(match seeds.len() {
            0..=2 => seeds.join(", "),
            count if are_counted => format!("1 to {count}"),
            _ => seeds.join(", "),
        }),
    );
    let range = |values: &mut dyn Iterator<Item = f64>, unit: &str| {
        let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        let words = fedgenie_experiment::experiment::number;
        if low < high { format!("{} to {}{unit}", words(low), words(high)) } else { format!("{}{unit}", words(high)) }
    };
    if !summary.runs.is_empty() {
        add("rounds per run", Some(range(&mut summary.runs.iter().map(|run| f64::from(run.rounds)), "")));
        add("virtual time per run", Some(range(&mut summary.runs.iter().map(|run| run.virtual_time_s), " s")));
    }
    if summary.points.len() > 1 {
        let paths: Vec<&str> = summary.points[0].keys().map(String::as_str).collect();
        add("sweep", Some(format!("{} points over {}", summary.points.len(), paths.join(" and "))));
    }
    let of_all = match summary.incomplete.len() {
        0 => String::new(),
        _ => format!(" of {}", results.states.len()),
    };
    add("runs", Some(format!("{}{of_all}", summary.runs.len())));
    add("version", Some(format!("fedgenie {}, build {}", results.version, results.build)));
    let hash = blake3::hash(results.scenario.as_bytes()).to_hex();
    add("scenario digest", Some(hash[..16].to_owned()));
    let all: Vec<u8> =
        summary.runs.iter().flat_map(|run| run.digest.timeline.bytes().chain(run.digest.model.bytes())).collect();
    add("digest of all runs", Some(blake3::hash(&all).to_hex()[..32].to_owned()));
    Experiment {
        prefix: prefix.to_owned(),
        scenario: summary.scenario.clone(),
        title: summary.title.clone(),
        facts,
        points: points::legend(&summary.points),
        source: results.scenario.clone(),
    }
}

/// How many clients the scenario has.
fn clients(results: &Results) -> Option<String> {
    let rows = &results.summary.runs.first()?.metrics.selections.rows;
    if !rows.is_empty() {
        return Some(rows.iter().map(|row| row.clients).sum::<u64>().to_string());
    }
    let population = results.section("population")?;
    let integer = |table: &toml::Value, key: &str| table.get(key).and_then(toml::Value::as_integer);
    let groups = || population.get("group").and_then(toml::Value::as_array);
    let of_groups = || groups()?.iter().map(|group| integer(group, "count")).sum::<Option<i64>>();
    integer(population, "clients").or_else(of_groups).map(|count| count.to_string())
}

fn warnings(results: &[Results], prefixes: &[String]) -> Vec<String> {
    let mut all = Vec::new();
    for (results, prefix) in results.iter().zip(prefixes) {
        let of = |what: &str| if prefix.is_empty() { what.to_owned() } else { format!("{prefix}: {what}") };
        all.extend(results.warnings.iter().map(|warning| of(warning)));
        for run in results.summary.runs.iter() {
            all.extend(run.heavy_tails.iter().map(|tail| of(tail)));
        }
        all.extend(of_runs(&results.summary).iter().map(|warning| of(warning)));
        let seeds = results.seeds.len();
        if seeds < INTERVAL_SEEDS {
            all.push(of(&format!(
                "{seeds} seed{} too few for an interval: no difference is decided",
                if seeds == 1 { " is" } else { "s are" }
            )));
        }
        let mut missed: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for run in results.summary.runs.iter() {
            let targets = run.reached.iter().map(|reached| (reached.name(), reached.round.is_none()));
            let converged = run.converged.iter().map(|found| (CONVERGENCE.to_owned(), found.is_none()));
            for (name, is_missed) in targets.chain(converged) {
                let (missed, runs) = missed.entry(name).or_default();
                *missed += usize::from(is_missed);
                *runs += 1;
            }
        }
        for (name, (missed, runs)) in missed.into_iter().filter(|(_, (missed, _))| *missed > 0) {
            all.push(of(&format!(
                "{missed} of {runs} runs did not reach {name}: they count with the earliest end of such a run, as the least that they \
                 would have spent"
            )));
        }
    }
    all
}

/// A mean, or the number of runs that reach a target.
fn cell(key: &str, found: &Estimate) -> String {
    counted(key, found).unwrap_or_else(|| show(found))
}

/// The heading of a quantity's column.
fn title(study: &Study<'_>, quantity: &Quantity) -> String {
    let is_median = (0..study.points.len()).any(|point| study.is_median(point, &quantity.key));
    if is_median { format!("median {}", quantity.heading()) } else { quantity.heading() }
}

/// The value of a quantity of a policy at a point; `None` if no run has it.
fn result(study: &Study<'_>, (arm, point): (usize, usize), quantity: &Quantity) -> Option<String> {
    if let Some(cell) = study.until_cell(arm, point, &quantity.key) {
        return Some(cell);
    }
    let runs = study.arms[arm].runs[point].len();
    let found = study.estimate(arm, point, &quantity.key)?;
    let few = if found.n < runs { format!(" ({}/{runs})", found.n) } else { String::new() };
    Some(cell(&quantity.key, &found) + &few)
}

/// The column of this heading, which is added if there is none.
fn match_column(table: &mut Table, heading: &str) -> usize {
    table.columns.iter().position(|known| known == heading).unwrap_or_else(|| {
        table.columns.push(heading.to_owned());
        table.columns.len() - 1
    })
}

/// Adds a row for each policy and point.
fn table(study: &Study<'_>, table: &mut Table) {
    if table.columns.is_empty() {
        table.columns = vec!["policy".to_owned(), "seeds".to_owned()];
    }
    let quantities = study.quantities();
    let columns: Vec<usize> = quantities.iter().map(|quantity| match_column(table, &title(study, quantity))).collect();
    let changed = study.results.iter().any(Results::has_changed).then(|| match_column(table, CHANGED));
    for (arm, point) in study.combinations() {
        let runs = study.arms[arm].runs[point].len();
        let mut row = vec![String::new(); table.columns.len()];
        if let Some(column) = changed {
            let of = &study.arms[arm];
            row[column] = study.results[of.folder].changed_of(&[(&of.policy, point)]).join(" ");
        }
        (row[0], row[1]) = (study.words(arm, point), runs.to_string());
        for (quantity, &column) in quantities.iter().zip(&columns) {
            if let Some(cell) = result(study, (arm, point), quantity) {
                row[column] = cell;
            }
        }
        table.rows.push(row);
    }
    for control in controls(study) {
        let mut row = vec![String::new(); table.columns.len()];
        (row[0], row[1]) = (control.label.clone(), control.seeds().to_string());
        for (quantity, &column) in quantities.iter().zip(&columns) {
            row[column] = control.value(quantity).map_or_else(String::new, show);
        }
        if row[2..].iter().any(|cell| !cell.is_empty()) {
            table.rows.push(row);
        }
    }
}
