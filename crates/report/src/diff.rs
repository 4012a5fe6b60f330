//! Two folders side by side: differences of their scenarios, then of their results.

use super::folders::{Pairing, notes};
use super::lacking::NO_RUN;
use super::settings::{differing, flat};
use super::source::Results;
use super::study::{Quantity, Study};
use super::verdicts::judged;
use fedgenie_core::math::statistics::Estimate;
use fedgenie_experiment::error::Error;
use fedgenie_experiment::experiment::compared::seeds_needed;
use fedgenie_experiment::experiment::sample::Sample;
use fedgenie_experiment::experiment::stored::{Changed, Reader, distinct};
use fedgenie_experiment::experiment::{Incomplete, number, show};
use serde::Serialize;
use std::path::PathBuf;

/// The differences between two result folders.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diff {
    /// Their names.
    pub folders: [String; 2],
    /// Settings that differ.
    pub settings: Vec<SettingDiff>,
    /// Notes on the comparison, in sentences.
    pub notes: Vec<String>,
    /// The main quantities of every policy, at every common point.
    pub results: Vec<ResultDiff>,
    /// Policies, at common points, with missing or failed runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub complete_runs: Vec<CompleteRuns>,
    /// The runs of each folder that are missing or failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub incomplete: Vec<InFolder<Incomplete>>,
    /// The changed files of each folder, which were accepted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<InFolder<Changed>>,
}

/// Something of one of the two folders.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InFolder<T> {
    /// The folder's name.
    pub folder: String,
    /// The item.
    #[serde(flatten)]
    pub of: T,
}

/// How many runs of a policy at a point are complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CompleteRuns {
    /// The policy; two labels if each folder has one policy, of another name.
    pub policy: String,
    /// The point of the sweep, by its short name; empty without a sweep.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub point: String,
    /// Of each folder.
    pub complete: [usize; 2],
    /// How many there should be.
    pub expected: [usize; 2],
}

/// A setting that differs between two resolved scenarios.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SettingDiff {
    /// Its dotted path; tables in lists are numbered from 1.
    pub path: String,
    /// Its value in each folder; `None` where it is missing.
    pub values: [Option<String>; 2],
}

/// A quantity of a policy in two folders.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResultDiff {
    /// The policy; two labels if each folder has one policy, of another name.
    pub policy: String,
    /// The point of the sweep, by its short name; empty without a sweep.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub point: String,
    /// The quantity, in words.
    pub quantity: String,
    /// Its unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<&'static str>,
    /// Its mean over seeds in each folder.
    pub values: [Option<Estimate>; 2],
    /// The second minus the first.
    pub difference: Option<Estimate>,
    /// Whether the difference is paired by seed; Welch's interval otherwise.
    pub is_paired: bool,
    /// "lower", "higher", "not told apart", "the same"; empty without a difference.
    pub verdict: &'static str,
    /// Whether the difference is good for the second folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_better: Option<bool>,
    /// About how many seeds would tell the two apart at this difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seeds_needed: Option<u64>,
}

impl Diff {
    /// Compares two result folders.
    ///
    /// # Errors
    /// As [`Reader::read`].
    pub fn load(folders: &[PathBuf; 2], reader: &Reader<'_>) -> Result<Self, Error> {
        let results = Results::load_all(folders, reader)?;
        Ok(Self::of(&results.try_into().expect("of two folders there are two")))
    }

    /// Compares two experiments.
    pub fn of(results: &[Results; 2]) -> Self {
        let folders = distinct(results.iter().map(|results| results.name.as_str()));
        let folders: [String; 2] = folders.try_into().expect("of two folders there are two names");
        let flat = results.each_ref().map(|results| flat(results.table()));
        let setting = |path: String| {
            let values = flat.each_ref().map(|settings| settings.get(&path).cloned());
            SettingDiff { path, values }
        };
        let mut diff = Self {
            settings: differing(&flat).into_iter().map(setting).collect(),
            notes: notes([&results[0], &results[1]], [&folders[0], &folders[1]]),
            results: Vec::new(),
            complete_runs: Vec::new(),
            incomplete: Vec::new(),
            changed: Vec::new(),
            folders,
        };
        diff.notes.extend(results.iter().flat_map(Results::warnings_of_runs));
        for (results, folder) in results.iter().zip(&diff.folders) {
            diff.notes.extend(results.warnings.iter().map(|warning| format!("{folder}: {warning}")));
            diff.incomplete.extend(in_folder(folder, results.summary.incomplete.iter().cloned()));
            diff.changed.extend(in_folder(folder, results.all_changed().cloned()));
        }
        diff.compare(results);
        diff
    }

    fn compare(&mut self, results: &[Results; 2]) {
        let labels = results.each_ref().map(|results| results.labels.clone());
        let studies = [0, 1].map(|folder| Study::new(results, &[folder], &labels));
        let policies: Vec<[usize; 2]> = match &labels {
            [one, other] if one.len() == 1 && other.len() == 1 => vec![[0, 0]],
            [one, other] => {
                let both = |(index, label)| Some([index, other.iter().position(|known| known == label)?]);
                one.iter().enumerate().filter_map(both).collect()
            }
        };
        let points: Vec<[usize; 2]> = (0..studies[0].points.len())
            .filter_map(|point| {
                Some([point, studies[1].points.iter().position(|other| *other == studies[0].points[point])?])
            })
            .collect();
        for (folder, name) in self.folders.iter().enumerate() {
            let is_alone = |index: &usize| !policies.iter().any(|pair| pair[folder] == *index);
            let alone: Vec<&str> =
                (0..labels[folder].len()).filter(is_alone).map(|index| labels[folder][index].as_str()).collect();
            if !alone.is_empty() {
                self.notes.push(format!("only in {name}: {}", alone.join(", ")));
            }
        }
        let alone = studies.each_ref().map(|study| study.points.len() - points.len());
        if alone != [0, 0] {
            self.notes.push(format!(
                "{} points of the sweep are in both; {} are only in {}, {} only in {}",
                points.len(),
                alone[0],
                self.folders[0],
                alone[1],
                self.folders[1]
            ));
        }
        let mut quantities: Vec<Quantity> = Vec::new();
        for quantity in studies.iter().flat_map(Study::quantities).filter(|quantity| quantity.is_main) {
            if quantities.iter().all(|known| known.key != quantity.key) {
                quantities.push(quantity);
            }
        }
        for pair in policies {
            for &at in &points {
                let rows = quantities.iter().filter_map(|quantity| compared(results, &studies, (pair, at), quantity));
                self.results.extend(rows);
                self.complete_runs.extend(complete_runs(results, &studies, (pair, at)));
            }
        }
        let is_metric = |row: &&ResultDiff| row.quantity.starts_with("final ");
        if self.results.iter().any(|row| is_metric(&row))
            && !self.results.iter().filter(is_metric).any(|row| row.difference.is_some())
        {
            self.notes.push("they have no metric in common".to_owned());
        }
    }

    /// The differences for a terminal.
    pub fn text(&self) -> String {
        let [one, other] = &self.folders;
        let mut text = String::new();
        if self.settings.is_empty() {
            text.push_str("the scenarios are the same\n");
        } else {
            let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "–".to_owned());
            let row = |setting: &SettingDiff| {
                vec![setting.path.clone(), value(&setting.values[0]), value(&setting.values[1])]
            };
            let heading = vec!["scenario".to_owned(), one.clone(), other.clone()];
            text.push_str(&aligned(std::iter::once(heading).chain(self.settings.iter().map(row)).collect(), 3));
        }
        text.push('\n');
        for note in &self.notes {
            text.push_str(&format!("{note}\n"));
        }
        if !self.notes.is_empty() {
            text.push('\n');
        }
        if self.results.is_empty() && self.complete_runs.is_empty() {
            text.push_str("there is no policy and point that both have: no results are compared\n");
            return text;
        }
        let mut rows = vec![vec![
            "results".to_owned(),
            String::new(),
            one.clone(),
            other.clone(),
            format!("{other} − {one}"),
            String::new(),
        ]];
        rows.extend(self.results.iter().map(ResultDiff::cells));
        rows.extend(self.complete_runs.iter().map(CompleteRuns::cells));
        text.push_str(&aligned(rows, 2));
        let pairs: Vec<usize> =
            self.results.iter().filter(|row| row.is_paired).filter_map(|row| Some(row.difference?.n)).collect();
        if let (Some(fewest), Some(most)) = (pairs.iter().min(), pairs.iter().max()) {
            let pairs = if fewest == most { most.to_string() } else { format!("{fewest} to {most}") };
            text.push_str(&format!(
                "\n± is half of the 95 % interval; differences are of {pairs} pairs of runs with the same seed\n"
            ));
        }
        text
    }
}

fn in_folder<T>(folder: &str, all: impl Iterator<Item = T>) -> impl Iterator<Item = InFolder<T>> {
    all.map(move |of| InFolder { folder: folder.to_owned(), of })
}

/// The label of a policy in both.
fn label_in(studies: &[Study<'_>; 2], arms: [usize; 2]) -> String {
    let [one, other] = [0, 1].map(|folder| &studies[folder].arms[arms[folder]].label);
    if one == other { one.clone() } else { format!("{one} | {other}") }
}

/// How many runs of a policy are complete at a point; `None` if all are.
fn complete_runs(
    results: &[Results; 2],
    studies: &[Study<'_>; 2],
    (arms, points): ([usize; 2], [usize; 2]),
) -> Option<CompleteRuns> {
    let complete = [0, 1].map(|folder| studies[folder].arms[arms[folder]].runs[points[folder]].len());
    let expected = results.each_ref().map(|results| results.seeds.len());
    let (policy, point) = (label_in(studies, arms), studies[0].point_words(points[0]).to_owned());
    (complete != expected).then_some(CompleteRuns { policy, point, complete, expected })
}

/// A quantity of a policy at a point in both; `None` if neither has it.
fn compared(
    results: &[Results; 2],
    studies: &[Study<'_>; 2],
    (arms, points): ([usize; 2], [usize; 2]),
    quantity: &Quantity,
) -> Option<ResultDiff> {
    let sample = |folder: usize| studies[folder].sample(arms[folder], points[folder], &quantity.key);
    let [one, other] = &Sample::alike(&[sample(0), sample(1)])[..] else { unreachable!("there are two") };
    let follow_up = Sample::follow_up([one, other]);
    let values = [one.estimate(follow_up), other.estimate(follow_up)];
    if values == [None, None] {
        return None;
    }
    let pairing = Pairing::of(&results[0], &results[1], &quantity.key);
    let difference = pairing.difference(other, one, follow_up);
    let (verdict, is_better) = difference.as_ref().map_or(("", None), |found| judged(found, quantity));
    Some(ResultDiff {
        policy: label_in(studies, arms),
        point: studies[0].point_words(points[0]).to_owned(),
        quantity: quantity.words.clone(),
        unit: quantity.unit,
        values,
        is_paired: difference.is_some() && pairing == Pairing::Paired,
        seeds_needed: difference.as_ref().and_then(seeds_needed),
        difference,
        verdict,
        is_better,
    })
}

/// A policy, and the point where there are several.
fn whose(policy: &str, point: &str) -> String {
    if point.is_empty() { policy.to_owned() } else { format!("{policy}, {point}") }
}

impl CompleteRuns {
    fn cells(&self) -> Vec<String> {
        let of = |folder: usize| format!("{} of {}", self.complete[folder], self.expected[folder]);
        let verdict = if self.complete.contains(&0) { NO_RUN } else { "" };
        let whose = whose(&self.policy, &self.point);
        vec![whose, "complete runs".to_owned(), of(0), of(1), String::new(), verdict.to_owned()]
    }
}

impl ResultDiff {
    fn cells(&self) -> Vec<String> {
        let value = |value: &Option<Estimate>| value.as_ref().map_or_else(|| "–".to_owned(), show);
        let unit = self.unit.map_or_else(String::new, |unit| format!(" [{unit}]"));
        let sign = if self.difference.is_some_and(|found| found.mean > 0.0) { "+" } else { "" };
        let mut verdict = vec![self.verdict.to_owned()];
        verdict.extend(self.is_better.map(|is| if is { "(better)" } else { "(worse)" }.to_owned()));
        verdict.extend(self.seeds_needed.map(|seeds| format!("(about {} seeds would tell)", number(seeds as f64))));
        if self.difference.is_some() && !self.is_paired {
            verdict.push("unpaired".to_owned());
        }
        let [one, other] = self.values.each_ref().map(value);
        vec![
            whose(&self.policy, &self.point),
            format!("{}{unit}", self.quantity),
            one,
            other,
            format!("{sign}{}", value(&self.difference)),
            verdict.join(" "),
        ]
    }
}

/// Rows with their cells below each other: the first `left` columns and the last on the left, the others on the right.
fn aligned(rows: Vec<Vec<String>>, left: usize) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in &rows {
        let cell = |(column, cell): (usize, &String)| {
            let padding = " ".repeat(widths[column] - cell.chars().count());
            if column < left || column + 1 == columns { format!("{cell}{padding}") } else { format!("{padding}{cell}") }
        };
        let line: Vec<String> = row.iter().enumerate().map(cell).collect();
        text.push_str(line.join("   ").trim_end());
        text.push('\n');
    }
    text
}
