//! Controls of runs: metrics without learning, or without a federation.

use super::column::{Cell, Column, Kind};
use super::rows::{OfRun, RunRow};
use super::table::{RUN_KEY, Table};

/// A run, one of its controls and a metric of it.
pub(super) struct ControlRow<'a> {
    of: OfRun<'a>,
    control: &'a str,
    metric: &'a str,
    value: f64,
}

impl<'a> RunRow<'a> for ControlRow<'a> {
    fn of(&self) -> OfRun<'a> {
        self.of
    }
}

/// The rows of a run.
pub(super) fn rows(of: OfRun<'_>) -> impl Iterator<Item = ControlRow<'_>> {
    let controls = of.run.into_iter().flat_map(|run| &run.controls);
    controls.flat_map(move |(control, metrics)| {
        metrics.iter().map(move |(metric, &value)| ControlRow { of, control, metric, value })
    })
}

/// The table of controls.
pub(super) fn table<'a>() -> Table<'a, ControlRow<'a>> {
    let meaning = "A row for each metric of each control of each run with results: the value without learning, or without a \
                   federation, with which metric_… of runs and rounds compare.";
    Table::new("controls", meaning, RUN_KEY.into_iter().chain(["control", "metric"]))
        .of_runs()
        .with(
            Column::text(
                "control",
                "initial: the model before training; majority: the most frequent class of the training data; mean: the \
                 mean of the training data; own-majority, own-mean: those of a client's or a server's own; bias: mean, user and item biases; popularity: items by their number of \
                 training interactions; centralised: the model trained on everybody's data in one place; local: by each \
                 client alone",
            )
            .required(),
            |row: &ControlRow<'a>| Cell::text(row.control),
        )
        .with(Column::text("metric", "its metric, as test_accuracy").required(), |row| Cell::text(row.metric))
        .with(Column::new("value", Kind::Number, "", "value of the metric; empty where it is not finite"), |row| {
            Cell::number(Some(row.value))
        })
        .with_changed()
}
