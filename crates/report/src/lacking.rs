//! Policies without a complete run: every table names them.

use super::model::{Overview, Report, Table};
use super::study::{Arm, Study};
use fedgenie_experiment::experiment::counted;

/// The words for a policy without a complete run.
pub(super) const NO_RUN: &str = "no complete run";

/// Every policy (and point of a sweep) without a complete run, and the fate of its runs.
pub(super) fn lacking(study: &Study<'_>) -> Vec<[String; 2]> {
    let mut all = Vec::new();
    for (point, arm) in (0..study.points.len()).flat_map(|point| (0..study.arms.len()).map(move |arm| (point, arm))) {
        let Arm { folder, policy, runs, .. } = &study.arms[arm];
        let incomplete = study.results[*folder].summary.incomplete.iter();
        let words = counted(incomplete.filter(|run| run.arm == *policy && run.point == point));
        if runs[point].is_empty() && !words.is_empty() {
            all.push([study.words(arm, point), words]);
        }
    }
    all
}

/// Adds a row for each to a table whose first column is the policy and whose second says this.
pub(super) fn add_rows(lacking: &[[String; 2]], table: &mut Table, says: impl Fn(&str) -> String) {
    for [subject, words] in lacking {
        let mut row = vec![String::new(); table.columns.len()];
        (row[0], row[1]) = (subject.clone(), says(words));
        table.rows.push(row);
    }
}

/// Adds a row for each to the main comparisons.
pub(super) fn add_to_overview(lacking: &[[String; 2]], overview: &mut Overview) {
    let empty = vec![None; overview.columns.len()];
    overview.rows.extend(lacking.iter().map(|[subject, _]| (subject.clone(), NO_RUN.to_owned(), empty.clone())));
}

/// Adds a row for each to the table of verdicts.
pub(super) fn add_verdicts(report: &Report, verdicts: &mut Table) {
    let cell = |column: &String, subject: &str, words: &str| match column.as_str() {
        "policy" => subject.to_owned(),
        "verdict" => format!("{NO_RUN}: {words}"),
        _ => String::new(),
    };
    for [subject, words] in &report.lacking {
        verdicts.rows.push(verdicts.columns.iter().map(|column| cell(column, subject, words)).collect());
    }
}
