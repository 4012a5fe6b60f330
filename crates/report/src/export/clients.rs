//! Clients of runs: of `run.json`, which has those of small fleets, or else counted in `rounds.jsonl`.

use super::column::{Cell, Column, Kind};
use super::rounds::read;
use super::rows::{OfRun, RunRow};
use super::table::{Failed, RUN_KEY, Table};
use fedgenie_experiment::error::Error;
use fedgenie_experiment::experiment::artefacts::RUN_FILE;
use fedgenie_experiment::experiment::shelf::Shelf;
use fedgenie_experiment::experiment::stored::Status;
use fedgenie_experiment::experiment::{RunSummary, clients_of};
use fedgenie_simulator::metrics::MOST_TOLD;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The clients of a recorded round.
#[derive(Deserialize)]
struct Round {
    round: u32,
    selected: Vec<u32>,
    arrived: Vec<u32>,
    late: Vec<u32>,
    dropped: Vec<DroppedJob>,
    #[serde(default)]
    joined: Vec<Joined>,
    #[serde(default)]
    lost_late: Vec<LostLate>,
}

/// A job whose client was lost.
#[derive(Deserialize)]
struct DroppedJob {
    client: u32,
}

/// A late update that joined.
#[derive(Deserialize)]
struct Joined {
    client: u32,
}

/// A late job whose client was lost.
#[derive(Deserialize)]
struct LostLate {
    job: DroppedJob,
}

/// A run and one of its clients.
#[derive(Clone)]
pub(super) struct ClientRow<'a> {
    of: OfRun<'a>,
    client: u32,
    group: Option<&'a str>,
    examples: Option<u64>,
    work: Option<u64>,
    selections: u64,
    arrived: u64,
    late: u64,
    joined: u64,
    dropped: u64,
    lost_late: u64,
    compute_s: Option<f64>,
    down_bytes: Option<u64>,
    up_bytes: Option<u64>,
}

impl<'a> RunRow<'a> for ClientRow<'a> {
    fn of(&self) -> OfRun<'a> {
        self.of
    }
}

impl<'a> ClientRow<'a> {
    /// A client without jobs.
    fn new(of: OfRun<'a>, run: &'a RunSummary, client: u32) -> Self {
        let sizes = run.partition.as_ref().map(|skew| &skew.sizes);
        Self {
            of,
            client,
            group: group(run, client),
            examples: sizes.and_then(|sizes| sizes.get(client as usize)).map(|&examples| examples as u64),
            work: None,
            selections: 0,
            arrived: 0,
            late: 0,
            joined: 0,
            dropped: 0,
            lost_late: 0,
            compute_s: None,
            down_bytes: None,
            up_bytes: None,
        }
    }
}

/// The named group of a client. Groups are of consecutive clients; selections are counted by them where they are named
/// and few.
fn group(run: &RunSummary, client: u32) -> Option<&str> {
    let rows = &run.metrics.selections.rows;
    run.group_selections.as_ref().filter(|groups| groups.len() == rows.len())?;
    let mut first = 0;
    let is_its = |row: &&fedgenie_simulator::metrics::Row| {
        first += row.clients;
        u64::from(client) < first
    };
    rows.iter().find(is_its).map(|row| row.label.as_str())
}

/// Hands out the rows of a run, in the order of clients: of all clients, where `run.json` has them, or else of those
/// that were selected, where every round is recorded.
pub(super) fn rows<'a>(of: OfRun<'a>, add: &mut dyn FnMut(&ClientRow<'a>) -> Result<(), Failed>) -> Result<(), Failed> {
    let Some(run) = of.run else { return Ok(()) };
    let read = match &run.metrics.clients {
        None if run.clients <= MOST_TOLD => clients_of(&of.results.files, &of.state.name).map_err(|source| {
            let path = of.results.folder.join(Shelf::name(&of.state.name, RUN_FILE));
            Failed::Other(Error::Read { path, source })
        })?,
        _ => None,
    };
    let Some(told) = run.metrics.clients.as_deref().or(read.as_ref()) else {
        return if of.state.status == Status::Complete { counted(of, run, add) } else { Ok(()) };
    };
    for client in 0..told.selections.len() {
        let of_outcome = |counts: &Vec<u64>| counts.get(client).copied().unwrap_or(0);
        add(&ClientRow {
            work: told.work.get(client).copied(),
            selections: told.selections[client],
            arrived: of_outcome(&told.arrived),
            late: of_outcome(&told.late),
            joined: of_outcome(&told.joined),
            dropped: of_outcome(&told.dropped),
            lost_late: of_outcome(&told.lost_late),
            compute_s: told.compute_s.get(client).copied(),
            down_bytes: told.down_bytes.get(client).copied(),
            up_bytes: told.up_bytes.get(client).copied(),
            ..ClientRow::new(of, run, client as u32)
        })?;
    }
    Ok(())
}

/// A count of a row.
type Counter<'a> = for<'b> fn(&'b mut ClientRow<'a>) -> &'b mut u64;

/// Selections and outcomes of the clients that were selected, counted in all rounds.
fn counted<'a>(
    of: OfRun<'a>,
    run: &'a RunSummary,
    add: &mut dyn FnMut(&ClientRow<'a>) -> Result<(), Failed>,
) -> Result<(), Failed> {
    let mut rows: BTreeMap<u32, ClientRow<'a>> = BTreeMap::new();
    let mut expected = 1;
    let mut is_whole = true;
    read(of, |round: Round| {
        is_whole &= round.round == expected;
        expected = round.round.saturating_add(1);
        if is_whole {
            let mut count = |client: u32, to: Counter<'a>| {
                *to(rows.entry(client).or_insert_with(|| ClientRow::new(of, run, client))) += 1;
            };
            round.selected.iter().for_each(|&client| count(client, |row| &mut row.selections));
            round.arrived.iter().for_each(|&client| count(client, |row| &mut row.arrived));
            round.late.iter().for_each(|&client| count(client, |row| &mut row.late));
            round.dropped.iter().for_each(|job| count(job.client, |row| &mut row.dropped));
            round.joined.iter().for_each(|job| count(job.client, |row| &mut row.joined));
            round.lost_late.iter().for_each(|lost| count(lost.job.client, |row| &mut row.lost_late));
        }
        Ok(())
    })?;
    if !is_whole || expected <= run.rounds {
        return Ok(());
    }
    rows.values().try_for_each(add)
}

/// The table of clients.
pub(super) fn table<'a>() -> Table<'a, ClientRow<'a>> {
    let jobs = |name, meaning: &str| Column::new(name, Kind::Integer, "jobs", meaning).required();
    let meaning = "A row for each client of each run with results, of fleets of at most 1,000 clients. Of larger ones a \
                   row for each client that was selected, without examples, compute_s and bytes, if every round was \
                   recorded (record.every = 1), else none.";
    Table::new("clients", meaning, RUN_KEY.into_iter().chain(["client"]))
        .of_runs()
        .with(
            Column::new("client", Kind::Integer, "", "number of the client, from 0").required(),
            |row: &ClientRow<'a>| Cell::Integer(row.client.into()),
        )
        .with(Column::text("group_name", "its group of the population, where groups are named"), |row| {
            Cell::text(row.group.unwrap_or_default())
        })
        .with(Column::new("examples", Kind::Integer, "examples", "its training examples, where clients train"), |row| {
            Cell::count(row.examples)
        })
        .with(
            Column::new("work", Kind::Integer, "", "epochs of its jobs, or steps, where clients have their own"),
            |row| Cell::count(row.work),
        )
        .with(Column::new("selections", Kind::Integer, "", "how often it was selected").required(), |row| {
            Cell::count(row.selections)
        })
        .with(jobs("arrived", "jobs whose update arrived in their round"), |row| Cell::count(row.arrived))
        .with(jobs("late", "jobs under way when their round closed, or with an update that was too stale"), |row| {
            Cell::count(row.late)
        })
        .with(jobs("joined", "late jobs whose update joined a later aggregation"), |row| Cell::count(row.joined))
        .with(jobs("dropped", "jobs lost before their round closed"), |row| Cell::count(row.dropped))
        .with(jobs("lost_late", "late jobs lost afterwards"), |row| Cell::count(row.lost_late))
        .with(Column::new("compute_s", Kind::Number, "s", "its computing in jobs"), |row| Cell::number(row.compute_s))
        .with(Column::new("down_bytes", Kind::Integer, "B", "bytes sent to it for jobs"), |row| {
            Cell::count(row.down_bytes)
        })
        .with(Column::new("up_bytes", Kind::Integer, "B", "bytes sent by it for jobs"), |row| Cell::count(row.up_bytes))
        .with_changed()
}
