//! Results of validations, as a table for the terminal and as `RESULTS.md`.

use super::claim::{Budget, Check, Claim};
use super::learns::Objections;
use super::levels::Level;
use super::statistic::{Details, Measured, Measurement, Student, shown_interval};
use super::verdict::{Rule, Verdict};
use fedgenie_core::math::statistics::Miss;
use fedgenie_core::text::markdown::prose;
use fedgenie_experiment::error::Error;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt::{self, Write};
use std::sync::Arc;

/// One judged number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The claim.
    pub claim: String,
    /// The number's name; empty if there is one only.
    pub label: String,
    /// The paper's value.
    pub paper: Option<String>,
    /// The rule.
    pub rule: String,
    /// The number.
    #[serde(deserialize_with = "or_nan")]
    pub value: f64,
    /// Its 95 % interval; a deterministic number has none, nor has one of too few seeds.
    pub ci95: Option<[f64; 2]>,
    /// Number of seeds, instances or replications behind it.
    pub n: usize,
    /// The verdict of the data.
    pub verdict: Verdict,
    /// The expected verdict.
    pub expected: Option<Verdict>,
    /// The rule as numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds: Option<Rule>,
    /// Of what the interval is Student's, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub student: Option<Student>,
    /// The values that count as no difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub none: Option<[f64; 2]>,
    /// The share of intervals that may miss, where that is not 5 % since seeds were added until it was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub miss: Option<f64>,
    /// Note for readers of the verdict: runs that never reached a target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Whether the number is of the small budget, which may leave anything undecided.
    pub is_smoke: bool,
}

/// A number, which JSON has as null where it is none.
fn or_nan<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

impl Row {
    /// Whether the verdict is the expected one. With a small budget, a verdict that decides nothing, or finds no
    /// difference, is never unexpected, and neither is another one where such a verdict is expected.
    pub fn is_as_expected(&self) -> bool {
        let decides = |verdict: Verdict| matches!(verdict, Verdict::Supported | Verdict::NotSupported);
        let is_open = self.is_smoke && (!decides(self.verdict) || self.expected.is_some_and(|found| !decides(found)));
        self.expected == Some(self.verdict) || is_open
    }

    /// A row of tests.
    #[cfg(test)]
    pub(super) fn of_test() -> Self {
        let (claim, label, rule) = Default::default();
        let (verdict, expected) = (Verdict::Undecided, None);
        let (holds, student, none, note, paper, miss) = (None, None, None, None, None, None);
        let (value, ci95, n, is_smoke) = (0.0, None, 0, false);
        Self {
            claim,
            label,
            paper,
            rule,
            value,
            ci95,
            n,
            holds,
            student,
            none,
            verdict,
            expected,
            miss,
            note,
            is_smoke,
        }
    }

    pub(super) fn ours(&self) -> String {
        shown_interval(self.value, self.ci95)
    }
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckResult {
    /// The judged numbers.
    pub rows: Vec<Row>,
    /// The explanation.
    pub because: Option<String>,
    #[serde(skip)]
    measurement: Arc<Measurement>,
}

impl CheckResult {
    /// Judges a measurement, but for numbers that its runs cannot decide; `because` is the explanation with its
    /// numbers.
    ///
    /// # Errors
    /// If the check names a number that the statistic does not have.
    pub fn new(
        (claim, check): (&Claim, &Check),
        measurement: Arc<Measurement>,
        (budget, miss): (Budget, Option<Miss>),
        objections: &Objections,
        because: Option<String>,
    ) -> Result<Self, Error> {
        let has = |label: &String| measurement.measured.iter().any(|measured| measured.label == *label);
        if let Some(label) = check.measure.iter().find(|label| !has(label)) {
            let known: Vec<_> = measurement.measured.iter().map(|measured| measured.label.as_str()).collect();
            return Err(Error::Usage(format!(
                "claim {}: {:?}: there is no number {label:?}; there are {}",
                claim.name,
                check.claim,
                known.join("; ")
            )));
        }
        let judged: Vec<&Measured> = measurement
            .measured
            .iter()
            .filter(|measured| check.measure.is_empty() || check.measure.contains(&measured.label))
            .collect();
        let objection = |label: &str| check.learns.then(|| objections.to(&measurement, label)).flatten();
        let row = |measured: &&Measured| Row {
            claim: check.claim.clone(),
            label: if judged.len() > 1 { measured.label.clone() } else { String::new() },
            paper: check.paper.clone(),
            rule: check.holds.to_string(),
            value: measured.value,
            ci95: measured.ci95,
            n: measured.n,
            holds: Some(check.holds),
            student: measured.student,
            none: measured.none,
            miss: miss.map(Miss::share),
            verdict: match (measured.ci95, measured.is_exact) {
                _ if objection(&measured.label).is_some() => Verdict::NotJudged,
                (None, false) => Verdict::Undecided,
                (interval, _) => check.holds.judge_beside(measured.value, interval, measured.none),
            },
            expected: check.expected(&measured.label, budget),
            note: match (objection(&measured.label), &measured.note) {
                (Some(objection), Some(note)) => Some(format!("{objection}; {note}")),
                (objection, note) => objection.map(str::to_owned).or_else(|| note.clone()),
            },
            is_smoke: budget == Budget::Smoke,
        };
        let rows = judged.iter().map(row).collect();
        Ok(Self { rows, because, measurement })
    }
}

/// The result of a claim.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClaimResult {
    /// The claim's name.
    pub name: String,
    /// The claim.
    pub title: String,
    /// Where.
    pub source: String,
    /// Results of its checks.
    pub checks: Vec<CheckResult>,
    /// What all policies and controls have reached of the quantities that the checks look at.
    pub levels: Vec<Level>,
    /// How many seeds it took, where they were added until all numbers were decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looked: Option<Looked>,
    /// Duration of the check, wall time; `None` where runs were reused.
    pub seconds: Option<f64>,
}

/// Seeds that were added until all numbers of a claim were decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Looked {
    /// The seeds of the last look that was made.
    pub seeds: u32,
    /// The seeds of all looks.
    pub looks: Vec<u32>,
}

impl fmt::Display for Looked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let looks: Vec<String> = self.looks.iter().map(u32::to_string).collect();
        write!(formatter, "{} seeds, looked at after {}", self.seeds, looks.join(", "))
    }
}

/// The duration of all checks; `None` if that of any is unknown.
pub fn seconds_of_all(results: &[ClaimResult]) -> Option<f64> {
    results.iter().map(|result| result.seconds).sum()
}

impl ClaimResult {
    /// All judged numbers.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.checks.iter().flat_map(|check| &check.rows)
    }

    /// Tables of the measurements, each once.
    pub(super) fn details(&self) -> Vec<&Details> {
        let mut seen: Vec<*const Measurement> = Vec::new();
        let mut details = Vec::new();
        for check in &self.checks {
            let address = Arc::as_ptr(&check.measurement);
            if !seen.contains(&address) {
                seen.push(address);
                details.extend(&check.measurement.details);
            }
        }
        details
    }
}

/// Where and when results were found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// Version of FedGenie.
    pub version: String,
    /// The commit of the sources.
    pub commit: String,
    /// The date, as in 2026-01-31.
    pub date: String,
    /// Processor, threads, system.
    pub machine: String,
}

/// A claim that runs only when it is named, and was not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotRun {
    /// The claim's name.
    pub name: String,
    /// The claim.
    pub title: String,
    /// What it takes, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub takes: Option<String>,
}

impl NotRun {
    /// Of a claim.
    pub fn of(claim: &Claim) -> Self {
        Self { name: claim.name.clone(), title: claim.title.clone(), takes: claim.takes.clone() }
    }

    /// The claim and what it takes.
    fn told(&self) -> String {
        self.takes.iter().fold(self.title.clone(), |title, takes| format!("{title} ({takes})"))
    }
}

/// The widest columns of the terminal's table; longer texts are cut there, and not in RESULTS.md.
const WIDEST: [usize; 6] = [96, 24, 20, 40, 8, 400];

/// The table for a terminal: claim, the paper's value, where the claim puts the number, ours with its interval,
/// verdict.
pub fn table(results: &[ClaimResult], not_run: &[NotRun]) -> String {
    let mut lines: Vec<[String; 6]> = Vec::new();
    lines.push(["claim", "paper", "claimed", "ours [95 %]", "n", "verdict"].map(str::to_owned));
    let heading = |text: String| [text, String::new(), String::new(), String::new(), String::new(), String::new()];
    for result in results {
        lines.push(heading(String::new()));
        let looked = result.looked.as_ref().map_or_else(String::new, |looked| format!("; {looked}"));
        lines.push(heading(format!("{}: {}{looked}", result.name, result.title)));
        for check in &result.checks {
            let cells = |row: &Row, claim: String| {
                let [_, rest @ ..] = row_cells(row);
                let [paper, rule, ours, n, verdict] = rest;
                [claim, paper, rule, ours, n, verdict]
            };
            match &check.rows[..] {
                [row] => lines.push(cells(row, format!("  {}", row.claim))),
                rows => {
                    lines.extend(rows.first().map(|row| heading(format!("  {}", row.claim))));
                    lines.extend(rows.iter().map(|row| cells(row, format!("    {}", row.label))));
                }
            }
        }
    }
    // Headings may run on over the empty cells beside them.
    let has_more = |line: &[String; 6]| line[1..].iter().any(|cell| !cell.is_empty());
    let mut widths = [0; 6];
    for line in lines.iter().filter(|line| has_more(line)) {
        for ((width, cell), widest) in widths.iter_mut().zip(line).zip(WIDEST) {
            *width = (*width).max(cell.chars().count().min(widest));
        }
    }
    let mut text = String::new();
    for line in &lines {
        if has_more(line) {
            let padded = line.iter().zip(widths).map(|(cell, width)| fitted(cell, width));
            text.push_str(padded.collect::<Vec<_>>().join("  ").trim_end());
        } else {
            text.push_str(&line[0]);
        }
        text.push('\n');
    }
    if !not_run.is_empty() {
        text.push_str("\nnot run, because these claims run only when they are named:\n");
        text.extend(not_run.iter().map(|claim| format!("  {}: {}\n", claim.name, claim.told())));
    }
    text
}

/// A text cut or filled up to a width.
fn fitted(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return format!("{text}{}", " ".repeat(width - length));
    }
    text.chars().take(width - 1).chain(['…']).collect()
}

pub(super) fn row_cells(row: &Row) -> [String; 6] {
    let claim = if row.label.is_empty() { row.claim.clone() } else { format!("{}: {}", row.claim, row.label) };
    let verdict = match row.expected {
        _ if row.is_as_expected() => row.verdict.to_string(),
        Some(expected) => format!("{}, UNEXPECTED (expected: {expected})", row.verdict),
        None => format!("{}, UNEXPECTED (nothing is expected)", row.verdict),
    };
    let verdict = row.note.iter().fold(verdict, |verdict, note| format!("{verdict}; {note}"));
    [
        claim,
        row.paper.clone().unwrap_or_else(|| "–".to_owned()),
        row.rule.clone(),
        row.ours(),
        row.n.to_string(),
        verdict,
    ]
}

/// A text in a cell of a Markdown table.
fn cell(text: &str) -> String {
    prose(text).replace('|', "\\|").replace('\n', " ")
}

/// The first line of a file of verdicts.
pub const HEADING: &str = "# Verdicts on the claims";

/// `RESULTS.md`
pub fn markdown(results: &[ClaimResult], not_run: &[NotRun], provenance: &Provenance, budget: Budget) -> String {
    let mut text = format!("{HEADING}\n\n");
    let Provenance { version, commit, date, machine } = provenance;
    let budget = match budget {
        Budget::Smoke => "smoke (too small to decide)",
        Budget::Full => "full",
    };
    let took = seconds_of_all(results).map_or_else(String::new, |seconds| format!(", {seconds:.0} s"));
    let _ = write!(
        text,
        "Written by `fedgenie validate`: version {version}, commit {commit}, {date}, {machine}; budget {budget}{took}.\n\n\
         A verdict is *supported* if the whole 95 % interval lies where the claim puts the number, *not supported* if it lies elsewhere, and\n\
         *undecided* otherwise. Where a difference is claimed and the whole interval lies within the margin of its number, there is *no\n\
         difference*: 0.01 of hit ratios and the like, 0.005 of accuracies and RMSE, 2 % of times and bytes. *Not judged* is what a model\n\
         that has not learned, or not settled, cannot decide. A deterministic quantity has no interval; its value alone decides the verdict. An undecided number without an\n\
         interval has too few seeds for one. The claims are in [claims](claims): scenarios, statistics and rules.\n"
    );
    let count =
        |verdict: Verdict| results.iter().flat_map(ClaimResult::rows).filter(|row| row.verdict == verdict).count();
    let counts: Vec<String> = Verdict::ALL.iter().map(|&verdict| format!("{} {verdict}", count(verdict))).collect();
    let _ = write!(text, "\n{}.\n", counts.join(", "));
    if !not_run.is_empty() {
        text.push_str("\nNot run, because these claims run only when they are named:\n\n");
        for claim in not_run {
            let _ = writeln!(text, "- [{0}](claims/{0}.toml): {1}", claim.name, prose(&claim.told()));
        }
    }
    for result in results {
        let took = result.seconds.map_or_else(String::new, |seconds| format!(" · {seconds:.0} s"));
        let took = result.looked.iter().fold(took, |took, looked| format!("{took} · {looked}"));
        let _ = write!(
            text,
            "\n## {}\n\n{} · [{}](claims/{}.toml){took}\n\n",
            prose(&result.title),
            prose(&result.source),
            result.name,
            result.name
        );
        text.push_str("| claim | paper | claimed | ours [95 %] | n | verdict |\n|---|---|---|---|---|---|\n");
        for row in result.rows() {
            let [claim, paper, rule, ours, n, verdict] = row_cells(row).map(|text| cell(&text));
            let _ = writeln!(text, "| {claim} | {paper} | {rule} | {ours} | {n} | {verdict} |");
        }
        for check in &result.checks {
            if let (Some(because), Some(row)) = (&check.because, check.rows.first()) {
                let _ = write!(text, "\n*{}.* {}\n", prose(&row.claim), prose(because.trim()));
            }
        }
        for Details { title, columns, rows } in result.details() {
            if rows.is_empty() {
                continue;
            }
            let _ = write!(
                text,
                "\n{}:\n\n| {} |\n|{}\n",
                prose(title),
                columns.iter().map(|text| cell(text)).collect::<Vec<_>>().join(" | "),
                "---|".repeat(columns.len())
            );
            for row in rows {
                let _ = writeln!(text, "| {} |", row.iter().map(|text| cell(text)).collect::<Vec<_>>().join(" | "));
            }
        }
    }
    text
}
