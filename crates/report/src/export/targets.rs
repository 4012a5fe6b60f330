//! Targets of runs: when each was first seen, and what the run had spent by then.

use super::column::{Cell, Column, Kind};
use super::rows::{OfRun, RunRow};
use super::table::{RUN_KEY, Table};
use fedgenie_experiment::experiment::{CONVERGENCE, Reached};
use std::collections::BTreeSet;

/// A run and one of its targets.
pub(super) struct TargetRow<'a> {
    of: OfRun<'a>,
    target: String,
    metric: Option<&'a str>,
    at_least: Option<f64>,
    at_most: Option<f64>,
    round: Option<u32>,
    time_s: Option<f64>,
    down_bytes: Option<u64>,
    up_bytes: Option<u64>,
    compute_s: Option<f64>,
    probe_compute_s: Option<f64>,
    energy_j: Option<f64>,
    since_round: Option<u32>,
    since_s: Option<f64>,
    since_bytes: Option<u64>,
    since_energy_j: Option<f64>,
}

impl<'a> RunRow<'a> for TargetRow<'a> {
    fn of(&self) -> OfRun<'a> {
        self.of
    }
}

/// The rows of a run.
pub(super) fn rows(of: OfRun<'_>) -> Vec<TargetRow<'_>> {
    let Some(run) = of.run else { return Vec::new() };
    let mut rows: Vec<TargetRow<'_>> = run.reached.iter().map(|reached| of_target(of, reached)).collect();
    if let Some(converged) = &run.converged {
        let found = converged.as_ref();
        rows.push(TargetRow {
            of,
            target: CONVERGENCE.to_owned(),
            metric: found.map(|found| found.metric.as_str()),
            at_least: None,
            at_most: None,
            round: found.map(|found| found.round),
            time_s: found.map(|found| found.time_s),
            down_bytes: found.map(|found| found.down_bytes),
            up_bytes: found.map(|found| found.up_bytes),
            compute_s: found.map(|found| found.compute_s),
            probe_compute_s: found.map(|found| found.probe_compute_s),
            energy_j: None,
            since_round: None,
            since_s: None,
            since_bytes: None,
            since_energy_j: None,
        });
    }
    // A target that a scenario states twice is one.
    let mut known = BTreeSet::new();
    rows.retain(|row| known.insert(row.target.clone()));
    rows
}

fn of_target<'a>(of: OfRun<'a>, reached: &'a Reached) -> TargetRow<'a> {
    TargetRow {
        of,
        target: reached.name(),
        metric: Some(&reached.target.metric),
        at_least: reached.target.at_least,
        at_most: reached.target.at_most,
        round: reached.round,
        time_s: reached.time_s,
        down_bytes: reached.down_bytes,
        up_bytes: reached.up_bytes,
        compute_s: reached.compute_s,
        probe_compute_s: reached.probe_compute_s,
        energy_j: reached.energy_j,
        since_round: reached.since_round,
        since_s: reached.since_s,
        since_bytes: reached.since_bytes,
        since_energy_j: reached.since_energy_j,
    }
}

/// The table of targets.
pub(super) fn table<'a>() -> Table<'a, TargetRow<'a>> {
    let count = |name, unit, meaning: &str| Column::new(name, Kind::Integer, unit, meaning);
    let number = |name, unit, meaning: &str| Column::new(name, Kind::Number, unit, meaning);
    let meaning = "A row for each target of each run with results, and one for convergence where runs are asked for it. \
                   A target that the run never reached has empty time, round and costs; the run was watched until its \
                   virtual_time_s in runs.";
    Table::new("targets", meaning, RUN_KEY.into_iter().chain(["target"]))
        .of_runs()
        .with(
            Column::text("target", "the target, as test_loss <= 1.8, or convergence").required(),
            |row: &TargetRow<'a>| Cell::text(&row.target),
        )
        .with(Column::text("metric", "its metric"), |row| Cell::text(row.metric.unwrap_or_default()))
        .with(number("at_least", "", "the value to reach, where more is better"), |row| Cell::number(row.at_least))
        .with(number("at_most", "", "the value to reach, where less is better"), |row| Cell::number(row.at_most))
        .with(number("time_s", "s", "virtual time at the evaluation that first saw it"), |row| Cell::number(row.time_s))
        .with(count("round", "", "round of that evaluation"), |row| Cell::count(row.round.map(u64::from)))
        .with(count("bytes", "B", "bytes of clients by then, both ways"), |row| {
            Cell::count(row.down_bytes.zip(row.up_bytes).map(|(down, up)| down.saturating_add(up)))
        })
        .with(count("down_bytes", "B", "bytes sent to clients by then"), |row| Cell::count(row.down_bytes))
        .with(count("up_bytes", "B", "bytes sent by clients by then"), |row| Cell::count(row.up_bytes))
        .with(number("compute_s", "s", "computing of all clients by then"), |row| Cell::number(row.compute_s))
        .with(number("probe_compute_s", "s", "computing of all clients for probes by then"), |row| {
            Cell::number(row.probe_compute_s)
        })
        .with(number("energy_j", "J", "drawn by jobs from batteries by then"), |row| Cell::number(row.energy_j))
        .with(
            count("since_round", "", "round of the last evaluation before that; of the last of all, if never reached"),
            |row| Cell::count(row.since_round.map(u64::from)),
        )
        .with(number("since_s", "s", "virtual time of that evaluation"), |row| Cell::number(row.since_s))
        .with(count("since_bytes", "B", "bytes of clients by then, both ways"), |row| Cell::count(row.since_bytes))
        .with(number("since_energy_j", "J", "drawn by jobs by then"), |row| Cell::number(row.since_energy_j))
        .with_changed()
}
