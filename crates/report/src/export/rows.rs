//! Runs of the exported folders, and the columns that name a run.

use super::column::{Cell, Column, Kind};
use super::swept::{Settings, Swept};
use super::table::Table;
use crate::source::Results;
use fedgenie_experiment::experiment::RunSummary;
use fedgenie_experiment::experiment::stored::RunState;

/// A run in a folder, in any state.
#[derive(Clone, Copy)]
pub(super) struct OfRun<'a> {
    pub results: &'a Results,
    pub state: &'a RunState,
    /// Its summary, if there is one.
    pub run: Option<&'a RunSummary>,
}

impl OfRun<'_> {
    /// The values of the swept paths.
    pub fn settings(&self) -> &Settings {
        &self.results.summary.points[self.state.point]
    }

    /// The changed files behind the rows of the run.
    pub fn changed(&self) -> Cell {
        let all = self.results.changed.iter().chain(&self.state.changed);
        Cell::text(&all.map(|changed| changed.file.as_str()).collect::<Vec<_>>().join(" "))
    }
}

/// A row that is of a run.
pub(super) trait RunRow<'a> {
    /// The run.
    fn of(&self) -> OfRun<'a>;
}

impl<'a> RunRow<'a> for OfRun<'a> {
    fn of(&self) -> Self {
        *self
    }
}

/// All runs of the experiments, in any state.
pub(super) fn all(results: &[Results]) -> impl Iterator<Item = OfRun<'_>> {
    results.iter().flat_map(|results| {
        // They are in the same order.
        let mut runs = results.summary.runs.iter();
        results.states.iter().map(move |state| {
            let run = if state.status.has_summary() { runs.next() } else { None };
            let is_its = |run: &&RunSummary| (&run.arm, run.seed, run.point) == (&state.arm, state.seed, state.point);
            assert!(run.as_ref().is_none_or(is_its), "runs are in the order of what there should be");
            OfRun { results, state, run }
        })
    })
}

/// The column of the folder.
pub(super) fn folder() -> Column {
    Column::text("folder", "name of the result folder; of several of one name the second is NAME (2)").required()
}

/// The column of the point.
pub(super) fn point() -> Column {
    Column::new("point", Kind::Integer, "", "index of the point of the sweep; 0 where nothing is swept").required()
}

/// The column of changed files.
pub(super) fn changed() -> Column {
    Column::text("changed", "changed files behind the row, which --allow-changed let in")
}

impl<'s, T> Table<'s, T> {
    /// Adds the columns that tell a run: [`RUN_KEY`](super::table::RUN_KEY).
    pub fn of_runs<'a>(self) -> Self
    where
        T: RunRow<'a>,
    {
        self.with_runs(|row| std::ptr::from_ref(row.of().state))
            .with_same(folder(), |row| Cell::text(&row.of().results.name))
            .with_same(Column::text("policy", "label of the policy").required(), |row| Cell::text(&row.of().state.arm))
            .with_same(Column::new("seed", Kind::Integer, "", "seed of the run").required(), |row| {
                Cell::count(row.of().state.seed)
            })
            .with_same(point(), |row| Cell::count(row.of().state.point as u64))
    }

    /// Adds the swept paths.
    pub fn with_swept<'a>(self, swept: &'s [Swept]) -> Self
    where
        T: RunRow<'a>,
    {
        swept
            .iter()
            .fold(self, |table, one| table.with_same(one.column.clone(), |row: &T| one.cell(row.of().settings())))
    }

    /// Adds the column of changed files.
    pub fn with_changed<'a>(self) -> Self
    where
        T: RunRow<'a>,
    {
        self.with_same(changed(), |row| row.of().changed())
    }
}
