//! Rounds as `rounds.jsonl` has them.

use super::column::{Cell, Column, Kind};
use super::rows::{OfRun, RunRow};
use super::swept::Swept;
use super::table::{Failed, RUN_KEY, Table};
use fedgenie_experiment::error::Error;
use fedgenie_experiment::experiment::artefacts::ROUNDS_FILE;
use fedgenie_experiment::experiment::recorded::RecordedRound;
use fedgenie_experiment::experiment::shelf::Shelf;
use rayon::prelude::*;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read};

/// A row of the table.
pub(super) struct RoundRow<'a> {
    of: OfRun<'a>,
    round: Cow<'a, RecordedRound>,
}

impl<'a> RunRow<'a> for RoundRow<'a> {
    fn of(&self) -> OfRun<'a> {
        self.of
    }
}

/// Columns of rounds whose number depends on the runs.
pub(super) struct Measured {
    /// Metrics by their names in the file, and their columns.
    pub metrics: Vec<(String, Column)>,
    /// Meters in use by their index, and their columns.
    pub meters: Vec<(usize, Column)>,
    /// Whether there are cluster models.
    pub has_clusters: bool,
    /// Whether data change at rounds.
    pub has_shifts: bool,
}

/// The table of rounds.
pub(super) fn table<'a>(swept: &'a [Swept], measured: &'a Measured) -> Table<'a, RoundRow<'a>> {
    let count = |name, meaning: &str| Column::new(name, Kind::Integer, "clients", meaning).required();
    let seconds = |name, meaning: &str| Column::new(name, Kind::Number, "s", meaning).required();
    let bytes = |name, meaning: &str| Column::new(name, Kind::Integer, "B", meaning).required();
    let mut table =
        Table::new("rounds", "A row for each recorded round of a run.", RUN_KEY.into_iter().chain(["round"]))
            .of_runs()
            .with_swept(swept)
            .with(
                Column::new("round", Kind::Integer, "", "number of the round, from 1").required(),
                |row: &RoundRow<'a>| Cell::Integer(row.round.round.into()),
            )
            .with(seconds("opened_s", "virtual time of its opening"), |row| Cell::number(row.round.opened_s))
            .with(seconds("closed_s", "virtual time of its closing"), |row| Cell::number(row.round.closed_s))
            .with(count("selected", "selected clients, each time counted"), |row| Cell::count(row.round.selected))
            .with(count("arrived", "clients whose update arrived in the round"), |row| Cell::count(row.round.arrived))
            .with(count("late", "clients still under way at its closing, or too stale"), |row| {
                Cell::count(row.round.late)
            })
            .with(count("dropped", "clients lost before its closing"), |row| Cell::count(row.round.dropped))
            .with(
                Column::new("abandoned", Kind::Integer, "", "1 if the round left the model as it was, else 0")
                    .required(),
                |row| Cell::count(u64::from(row.round.abandoned)),
            )
            .with(Column::new("reward", Kind::Number, "reward", "reward of the selected set"), |row| {
                Cell::number(row.round.reward)
            })
            .with(bytes("down_bytes", "bytes sent to clients so far"), |row| Cell::count(row.round.down_bytes))
            .with(bytes("up_bytes", "bytes sent by clients so far"), |row| Cell::count(row.round.up_bytes));
    for (meter, column) in &measured.meters {
        table = table.with(column.clone(), |row| Cell::number(row.round.regret.entries()[*meter].1));
    }
    for (name, column) in &measured.metrics {
        table = table
            .with(column.clone(), |row| Cell::of_kind(column.kind, row.round.metrics.get(name).copied().flatten()));
    }
    if measured.has_clusters {
        let clusters = |name, unit, meaning: &str| Column::new(name, Kind::Integer, unit, meaning);
        table = table
            .with(clusters("active_clusters", "clusters", "clusters that an edge server belongs to"), |row| {
                Cell::count(row.round.clusters.as_ref().map(|clusters| clusters.active))
            })
            .with(clusters("reassignments", "", "moves of edge servers to another cluster so far"), |row| {
                Cell::count(row.round.clusters.as_ref().map(|clusters| clusters.reassignments))
            });
    }
    if measured.has_shifts {
        let shifts = Column::new("shifts", Kind::Integer, "", "entries of `shift` that are in force");
        table = table.with(shifts, |row| Cell::count(row.round.shifts));
    }
    table.with_changed()
}

/// Hands out the recorded rounds of a run: those in memory, where they are, or else of its file.
pub(super) fn rows<'a>(of: OfRun<'a>, add: &mut dyn FnMut(&RoundRow<'a>) -> Result<(), Failed>) -> Result<(), Failed> {
    match of.run.and_then(|run| run.recorded.as_deref()) {
        Some(rounds) => rounds.iter().try_for_each(|round| add(&RoundRow { of, round: Cow::Borrowed(round) })),
        None => read(of, |round| add(&RoundRow { of, round: Cow::Owned(round) })),
    }
}

/// About as many bytes of lines are parsed side by side.
const BATCH: u64 = 1 << 20;

/// Lines in eight parts of about the same length.
fn parts(mut text: &[u8]) -> Vec<&[u8]> {
    let length = text.len() / 8 + 1;
    let mut parts = Vec::new();
    while !text.is_empty() {
        let after = text.get(length..).unwrap_or_default().iter().position(|&byte| byte == b'\n');
        let (part, rest) = text.split_at(after.map_or(text.len(), |after| length + after + 1));
        parts.push(part);
        text = rest;
    }
    parts
}

/// Reads the lines of a run's `rounds.jsonl`; none if it is missing, which only changed files may be.
pub(super) fn read<T: DeserializeOwned + Send>(
    of: OfRun<'_>,
    mut each: impl FnMut(T) -> Result<(), Failed>,
) -> Result<(), Failed> {
    let file = Shelf::name(&of.state.name, ROUNDS_FILE);
    let path = of.results.folder.join(&file);
    let unread = |source| Failed::Other(Error::Read { path: path.clone(), source });
    let opened = match of.results.files.open(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !of.state.changed.is_empty() => return Ok(()),
        opened => opened.map_err(unread)?,
    };
    let (mut file, mut number) = (BufReader::new(opened), 0);
    loop {
        let mut text = Vec::new();
        file.by_ref().take(BATCH).read_to_end(&mut text).map_err(unread)?;
        if text.is_empty() {
            return Ok(());
        }
        file.read_until(b'\n', &mut text).map_err(unread)?;
        let parse = |lines: &&[u8]| serde_json::Deserializer::from_slice(lines).into_iter().collect::<Vec<_>>();
        for round in parts(&text).par_iter().map(parse).collect::<Vec<Vec<Result<T, _>>>>().into_iter().flatten() {
            number += 1;
            each(round.map_err(|error| {
                let message = format!("{}:{number}: this is no recorded round: {error}", path.display());
                Failed::Other(Error::Usage(message))
            })?)?;
        }
    }
}
