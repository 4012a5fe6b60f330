//! What validations found, as a table for the terminal and as `RESULTS.md`.

use super::claim::{Budget, Check, Claim};
use super::statistic::{Details, Measured, Measurement, shown_interval};
use super::verdict::Verdict;
use crate::error::Error;
use serde::Serialize;
use std::fmt::Write;
use std::sync::Arc;

/// One judged number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// What is claimed.
    pub claim: String,
    /// Which of several numbers; empty if there is one.
    pub label: String,
    /// The paper's value.
    pub paper: Option<String>,
    /// Where the claim puts the number.
    pub rule: String,
    /// The number.
    pub value: f64,
    /// Its 95 % interval.
    pub ci95: Option<[f64; 2]>,
    /// On how many seeds, instances or replications it rests.
    pub n: usize,
    /// What the data say.
    pub verdict: Verdict,
    /// What they are known to say.
    pub expected: Option<Verdict>,
}

impl Row {
    /// Whether the data say what they are known to say.
    pub fn is_as_expected(&self) -> bool {
        self.expected == Some(self.verdict)
    }

    fn ours(&self) -> String {
        shown_interval(self.value, self.ci95)
    }
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckResult {
    /// The judged numbers.
    pub rows: Vec<Row>,
    /// Why it is so.
    pub because: Option<String>,
    #[serde(skip)]
    measurement: Arc<Measurement>,
}

impl CheckResult {
    /// Judges a measurement.
    ///
    /// # Errors
    /// If the check names a number that the statistic does not have.
    pub fn new(claim: &Claim, check: &Check, measurement: Arc<Measurement>, budget: Budget) -> Result<Self, Error> {
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
        let row = |measured: &&Measured| Row {
            claim: check.claim.clone(),
            label: if judged.len() > 1 { measured.label.clone() } else { String::new() },
            paper: check.paper.clone(),
            rule: check.holds.to_string(),
            value: measured.value,
            ci95: measured.ci95,
            n: measured.n,
            verdict: check.holds.judge(measured.value, measured.ci95),
            expected: check.expected(&measured.label, budget),
        };
        let rows = judged.iter().map(row).collect();
        Ok(Self { rows, because: check.because.clone(), measurement })
    }
}

/// What became of a claim.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClaimResult {
    /// The claim's name.
    pub name: String,
    /// What is claimed.
    pub title: String,
    /// Where.
    pub source: String,
    /// What was found.
    pub checks: Vec<CheckResult>,
    /// How long it took.
    pub seconds: f64,
}

impl ClaimResult {
    /// All judged numbers.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.checks.iter().flat_map(|check| &check.rows)
    }

    /// Tables of the measurements, each once.
    fn details(&self) -> Vec<&Details> {
        let mut seen: Vec<*const Measurement> = Vec::new();
        let mut details = Vec::new();
        for check in &self.checks {
            let place = Arc::as_ptr(&check.measurement);
            if !seen.contains(&place) {
                seen.push(place);
                details.extend(&check.measurement.details);
            }
        }
        details
    }
}

/// Where and when results were found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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

/// The table for a terminal: claim, the paper's value, ours with its interval, verdict.
pub fn table(results: &[ClaimResult]) -> String {
    let headings = ["claim", "paper", "claimed", "ours [95 %]", "n", "verdict"];
    let mut text = String::new();
    let mut cells: Vec<Vec<[String; 6]>> = Vec::new();
    for result in results {
        cells.push(result.rows().map(row_cells).collect());
    }
    let mut widths = headings.map(|heading| heading.chars().count());
    for row in cells.iter().flatten() {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    // Long claims are cut here and not in RESULTS.md.
    widths[0] = widths[0].min(72);
    widths[1] = widths[1].min(28);
    let mut line = |row: &[String; 6]| {
        let padded = row.iter().zip(widths).map(|(cell, width)| {
            let cut: String = if cell.chars().count() > width {
                cell.chars().take(width - 1).chain(['…']).collect()
            } else {
                cell.clone()
            };
            let padding = width - cut.chars().count();
            format!("{cut}{}", " ".repeat(padding))
        });
        let joined = padded.collect::<Vec<_>>().join("  ");
        text.push_str(joined.trim_end());
        text.push('\n');
    };
    line(&headings.map(str::to_owned));
    for (result, rows) in results.iter().zip(&cells) {
        line(&[
            format!("# {} ({})", result.title, result.name),
            String::new(),
            String::new(),
            String::new(),
            String::new(),
            String::new(),
        ]);
        rows.iter().for_each(&mut line);
    }
    text
}

fn row_cells(row: &Row) -> [String; 6] {
    let claim = if row.label.is_empty() { row.claim.clone() } else { format!("{}: {}", row.claim, row.label) };
    let verdict = match row.expected {
        _ if row.is_as_expected() => row.verdict.to_string(),
        Some(expected) => format!("{}, UNEXPECTED ({expected} is known)", row.verdict),
        None => format!("{}, UNEXPECTED (nothing is known)", row.verdict),
    };
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
    text.replace('|', "\\|").replace('\n', " ")
}

/// `RESULTS.md`
pub fn markdown(results: &[ClaimResult], provenance: &Provenance, budget: Budget) -> String {
    let mut text = String::from("# What the claims came to\n\n");
    let Provenance { version, commit, date, machine } = provenance;
    let budget = match budget {
        Budget::Smoke => "smoke (too small to decide)",
        Budget::Full => "full",
    };
    let seconds: f64 = results.iter().map(|result| result.seconds).sum();
    let _ = write!(
        text,
        "Written by `fedgenie validate`: version {version}, commit {commit}, {date}, {machine}; budget {budget}, {seconds:.0} s.\n\n\
         A verdict is *supported* if the whole 95 % interval lies where the claim puts the number, *not supported* if it lies elsewhere, and\n\
         *undecided* otherwise. Numbers without an interval are exact. The claims are in [claims](claims): scenarios, statistics and rules.\n"
    );
    let count =
        |verdict: Verdict| results.iter().flat_map(ClaimResult::rows).filter(|row| row.verdict == verdict).count();
    let _ = write!(
        text,
        "\n{} supported, {} not supported, {} undecided.\n",
        count(Verdict::Supported),
        count(Verdict::NotSupported),
        count(Verdict::Undecided)
    );
    for result in results {
        let _ = write!(
            text,
            "\n## {}\n\n{} · [{}](claims/{}.toml) · {:.0} s\n\n",
            result.title, result.source, result.name, result.name, result.seconds
        );
        text.push_str("| claim | paper | claimed | ours [95 %] | n | verdict |\n|---|---|---|---|---|---|\n");
        for row in result.rows() {
            let [claim, paper, rule, ours, n, verdict] = row_cells(row).map(|text| cell(&text));
            let _ = writeln!(text, "| {claim} | {paper} | {rule} | {ours} | {n} | {verdict} |");
        }
        for check in &result.checks {
            if let (Some(because), Some(row)) = (&check.because, check.rows.first()) {
                let _ = write!(text, "\n*{}.* {}\n", row.claim, because.trim());
            }
        }
        for Details { title, columns, rows } in result.details() {
            if rows.is_empty() {
                continue;
            }
            let _ = write!(
                text,
                "\n{title}:\n\n| {} |\n|{}\n",
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
