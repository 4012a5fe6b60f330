//! Rounds as `rounds.jsonl` has them.

use super::column::{Cell, Column, Kind};
use super::rows::{OfRun, RunRow, changed};
use super::swept::Swept;
use super::table::{Failed, RUN_KEY, Table};
use fedgenie_core::record::Regret;
use fedgenie_experiment::error::Error;
use fedgenie_experiment::experiment::artefacts::{ROUNDS_FILE, RUNS_FOLDER};
use fedgenie_experiment::experiment::below;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader};

/// A recorded round, as far as it is exported.
#[derive(Deserialize)]
pub(super) struct Round {
    pub round: u32,
    opened_s: f64,
    closed_s: f64,
    pub selected: Vec<u32>,
    pub arrived: Vec<u32>,
    pub late: Vec<u32>,
    pub dropped: Vec<DroppedJob>,
    #[serde(default)]
    pub joined: Vec<Joined>,
    #[serde(default)]
    pub lost_late: Vec<LostLate>,
    #[serde(default)]
    abandoned: bool,
    #[serde(default)]
    reward: Option<f64>,
    #[serde(default)]
    regret: Regret,
    down_bytes: u64,
    up_bytes: u64,
    #[serde(default)]
    metrics: BTreeMap<String, Option<f64>>,
    #[serde(default)]
    clusters: Option<Clusters>,
}

/// A job whose client was lost.
#[derive(Deserialize)]
pub(super) struct DroppedJob {
    pub client: u32,
}

/// A late update that joined.
#[derive(Deserialize)]
pub(super) struct Joined {
    pub client: u32,
}

/// A late job whose client was lost.
#[derive(Deserialize)]
pub(super) struct LostLate {
    pub job: DroppedJob,
}

#[derive(Deserialize)]
struct Clusters {
    active: u64,
    reassignments: u64,
}

/// A row of the table.
pub(super) struct RoundRow<'a> {
    pub of: OfRun<'a>,
    pub round: Round,
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
            .with(count("selected", "selected clients, each time counted"), |row| length(&row.round.selected))
            .with(count("arrived", "clients whose update arrived in the round"), |row| length(&row.round.arrived))
            .with(count("late", "clients still under way at its closing, or too stale"), |row| length(&row.round.late))
            .with(count("dropped", "clients lost before its closing"), |row| length(&row.round.dropped))
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
    table.with(changed(), |row| row.of.changed())
}

fn length<T>(list: &[T]) -> Cell {
    Cell::count(list.len() as u64)
}

/// Reads the lines of a run's `rounds.jsonl`; none if it is missing, which only changed files may be.
pub(super) fn read<T: DeserializeOwned>(
    of: OfRun<'_>,
    mut each: impl FnMut(T) -> Result<(), Failed>,
) -> Result<(), Failed> {
    let file = format!("{RUNS_FOLDER}/{}/{ROUNDS_FILE}", of.state.name);
    let path = of.results.folder.join(&file);
    let unread = |source| Failed::Other(Error::Read { path: path.clone(), source });
    let opened = match below::open(&of.results.folder, &file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !of.state.changed.is_empty() => return Ok(()),
        opened => opened.map_err(unread)?,
    };
    for (index, line) in BufReader::new(opened).lines().enumerate() {
        let round = serde_json::from_str(&line.map_err(unread)?).map_err(|error| {
            let message = format!("{}:{}: this is no recorded round: {error}", path.display(), index + 1);
            Failed::Other(Error::Usage(message))
        })?;
        each(round)?;
    }
    Ok(())
}
