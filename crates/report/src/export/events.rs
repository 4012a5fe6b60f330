//! Events of runs as `events.jsonl.gz` has them, where they were recorded.

use super::column::{Cell, Column, Kind};
use super::rows::{OfRun, RunRow};
use super::table::{Failed, RUN_KEY, Table};
use fedgenie_core::record::{DropReason, Outcome, Phase};
use fedgenie_experiment::error::Error;
use fedgenie_experiment::experiment::artefacts::EVENTS_FILE;
use fedgenie_experiment::experiment::shelf::Shelf;
use fedgenie_experiment::experiment::stored::Status;
use flate2::read::MultiGzDecoder;
use serde::Deserialize;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

/// An event, as far as it is exported.
#[derive(Deserialize)]
pub(super) struct Event {
    pub event: String,
    pub round: u32,
    #[serde(default)]
    pub time_ns: Option<i64>,
    #[serde(default)]
    pub client: Option<u32>,
    #[serde(default)]
    edge: Option<u32>,
    #[serde(default)]
    pub selected: Option<Vec<u32>>,
    #[serde(default)]
    pub phase: Option<Phase>,
    #[serde(default)]
    pub outcome: Option<Outcome>,
    #[serde(default)]
    reason: Option<DropReason>,
    #[serde(default)]
    pub delivered: Option<bool>,
    #[serde(default)]
    from_ns: Option<i64>,
    #[serde(default)]
    until_ns: Option<i64>,
    #[serde(default)]
    reward: Option<f64>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    value: Option<f64>,
}

/// A row of the table.
pub(super) struct EventRow<'a> {
    of: OfRun<'a>,
    number: u64,
    event: Event,
}

impl<'a> RunRow<'a> for EventRow<'a> {
    fn of(&self) -> OfRun<'a> {
        self.of
    }
}

/// The name under which a value is written into files.
fn word<T: serde::Serialize>(value: Option<T>) -> Cell {
    let written = value.and_then(|value| serde_json::to_value(value).ok());
    Cell::text(written.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default())
}

impl Event {
    /// Phase, outcome and reason, which an outcome holds as well.
    fn end(&self) -> (Cell, Cell, Cell) {
        let outcome = |name| Cell::text(name);
        match (self.outcome, self.delivered) {
            (Some(Outcome::Dropped { phase, reason }), _) => {
                (word(Some(phase)), outcome("dropped"), word(Some(reason)))
            }
            (Some(Outcome::Arrived), _) => (word(self.phase), outcome("arrived"), Cell::Empty),
            (Some(Outcome::Late), _) => (word(self.phase), outcome("late"), Cell::Empty),
            (None, Some(true)) => (word(self.phase), outcome("delivered"), Cell::Empty),
            (None, Some(false)) => (word(self.phase), outcome("not-delivered"), Cell::Empty),
            (None, None) => (word(self.phase), Cell::Empty, word(self.reason)),
        }
    }
}

fn seconds(nanoseconds: Option<i64>) -> Cell {
    Cell::number(nanoseconds.map(|time| time as f64 / 1e9))
}

/// The table of events.
pub(super) fn table<'a>() -> Table<'a, EventRow<'a>> {
    let text = Column::text;
    let integer = |name, meaning: &str| Column::new(name, Kind::Integer, "", meaning);
    let time = |name, meaning: &str| Column::new(name, Kind::Number, "s", meaning);
    Table::new(
        "events",
        "A row for each event of each run whose events were recorded (--events).",
        RUN_KEY.into_iter().chain(["number"]),
    )
    .of_runs()
    .with(integer("number", "number of the event in its run, from 1").required(), |row: &EventRow<'a>| {
        Cell::count(row.number)
    })
    .with(text("event", "what happened").required(), |row| Cell::text(&row.event.event))
    .with(time("time_s", "virtual time; empty for models and metrics, which belong to a round"), |row| {
        seconds(row.event.time_ns)
    })
    .with(integer("round", "its round; of edge servers their own, counted by server").required(), |row| {
        Cell::Integer(row.event.round.into())
    })
    .with(integer("client", "the client, if it is of one"), |row| Cell::count(row.event.client.map(u64::from)))
    .with(integer("edge", "the edge server, if it is of one"), |row| Cell::count(row.event.edge.map(u64::from)))
    .with(text("clients", "ids of selected clients in the order of dispatch, with spaces between them"), |row| {
        let clients = row.event.selected.iter().flatten().map(u32::to_string);
        Cell::text(&clients.collect::<Vec<_>>().join(" "))
    })
    .with(text("phase", "download, compute or upload"), |row| row.event.end().0)
    .with(text("outcome", "of a job: arrived, late or dropped; of a late one: delivered or not-delivered"), |row| {
        row.event.end().1
    })
    .with(text("reason", "why a client was lost"), |row| row.event.end().2)
    .with(time("from_s", "begin of a pause"), |row| seconds(row.event.from_ns))
    .with(time("until_s", "end of a pause"), |row| seconds(row.event.until_ns))
    .with(Column::new("reward", Kind::Number, "reward", "of a closed round: reward of the selected set"), |row| {
        Cell::number(row.event.reward)
    })
    .with(text("metric", "name of a measured metric"), |row| Cell::text(row.event.name.as_deref().unwrap_or_default()))
    .with(Column::new("value", Kind::Number, "", "its value"), |row| Cell::number(row.event.value))
    .with_changed()
}

/// The file of a run's events.
fn file(of: OfRun<'_>) -> String {
    Shelf::name(&of.state.name, EVENTS_FILE)
}

/// Whether the events of a run were recorded.
pub(super) fn are_there(of: OfRun<'_>) -> bool {
    of.state.status == Status::Complete && of.results.files.is_there(&file(of))
}

/// Hands out the events of a run; none if they were not recorded.
pub(super) fn rows<'a>(of: OfRun<'a>, add: &mut dyn FnMut(&EventRow<'a>) -> Result<(), Failed>) -> Result<(), Failed> {
    each(of, &mut |number, event| add(&EventRow { of, number, event }))
}

/// Reads the events of a run, numbered from 1; none if they were not recorded.
pub(super) fn each(of: OfRun<'_>, take: &mut dyn FnMut(u64, Event) -> Result<(), Failed>) -> Result<(), Failed> {
    if !are_there(of) {
        return Ok(());
    }
    let path: PathBuf = of.results.folder.join(file(of));
    let unread = |source| Failed::Other(Error::Read { path: path.clone(), source });
    let opened = of.results.files.open(&file(of)).map_err(unread)?;
    for (number, line) in (1..).zip(BufReader::new(MultiGzDecoder::new(opened)).lines()) {
        let event = serde_json::from_str(&line.map_err(unread)?).map_err(|error| {
            Failed::Other(Error::Usage(format!("{}:{number}: this is no event: {error}", path.display())))
        })?;
        take(number, event)?;
    }
    Ok(())
}
