//! The reader of logs; see the [module above](super).

use super::{Ending, JobLog, LoggedJob};
use crate::population::trace::columns::{Columns, Others};
use fedgenie_core::id::{ClientId, Round};
use fedgenie_core::text::quoted;
use fedgenie_core::time::Span;
use fedgenie_learning::data::DataError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The columns of a log, in the order in which `fedgenie export` writes them.
pub const COLUMNS: [&str; 8] =
    ["client", "round", "sent_s", "download_s", "compute_s", "upload_s", "total_s", "outcome"];

/// By how much the phases of a job may exceed its total: four numbers that were each rounded to the millisecond.
pub const ROUNDING: Span = Span(2_000_000);

/// The columns that tell runs apart.
const RUN: [&str; 4] = ["folder", "policy", "seed", "point"];

/// Which of several runs of a log is meant; keys that are left out do not choose.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunOfLog {
    /// The text of the column `policy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The number in the column `seed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The number in the column `point`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point: Option<u64>,
}

/// Why a log was not read. Nothing of it is kept.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file cannot be read, or a row of it is no job.
    #[error(transparent)]
    Data(#[from] DataError),
    /// It has jobs of several runs, and which is meant is open.
    #[error("{}: found jobs of several runs ({found}); expected those of one: choose it by policy, seed or point", path.display())]
    SeveralRuns {
        /// The file.
        path: PathBuf,
        /// The first runs found.
        found: String,
    },
    /// It has no job, or none of the chosen run.
    #[error("{}: found no job{of}; expected at least one", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
        /// Of which run, if one was chosen, and which there are.
        of: String,
    },
}

/// A row before clients and rounds are numbered.
struct Row {
    client: u64,
    round: u64,
    job: LoggedJob,
}

/// Reads a log; see the [module above](super).
///
/// # Errors
/// File, line, column, found and expected value; a log of several runs none of which is chosen.
pub fn read(path: &Path, run: &RunOfLog) -> Result<JobLog, LogError> {
    let mut columns = Columns::open(path, &COLUMNS, Others::Ignored)?;
    let of_run = RUN.map(|name| columns.header().iter().position(|known| known == name));
    let ignored = ignored(columns.header());
    let mut runs: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    let (mut rows, mut others) = (Vec::new(), 0_u64);
    while columns.next()? {
        // A row is checked even if it is another run's.
        let row = row(&columns)?;
        let told: Vec<String> = of_run.iter().flatten().map(|&index| columns.field(index).to_owned()).collect();
        if !is_of(run, &columns, of_run) {
            others += 1;
            remember(&mut runs, told, 0);
            continue;
        }
        remember(&mut runs, told, 1);
        columns.keep(size_of::<Row>() as u64)?;
        rows.push(row);
    }
    let named = |runs: Vec<&Vec<String>>| -> String {
        let more = if runs.len() > 3 { format!(" and {} more", runs.len() - 3) } else { String::new() };
        let first = runs.iter().take(3).map(|told| describe(of_run, told)).collect::<Vec<_>>();
        format!("{}{more}", first.join("; "))
    };
    if rows.is_empty() {
        let there = if runs.is_empty() {
            String::new()
        } else {
            match named(runs.keys().collect()) {
                there if there.is_empty() => " of the chosen run, and no columns that tell runs apart".to_owned(),
                there => format!(" of the chosen run; there is {there}"),
            }
        };
        return Err(LogError::Empty { path: path.to_owned(), of: there });
    }
    let chosen: Vec<&Vec<String>> = runs.iter().filter(|(_, jobs)| **jobs > 0).map(|(told, _)| told).collect();
    if chosen.len() > 1 {
        return Err(LogError::SeveralRuns { path: path.to_owned(), found: named(chosen) });
    }
    let mut notes = Vec::new();
    if !ignored.is_empty() {
        notes.push(format!("{}: columns that do not count: {ignored}", path.display()));
    }
    if others > 0 {
        notes.push(format!("{}: {others} jobs of other runs were left out", path.display()));
    }
    numbered(path, rows, notes)
}

/// Counts a job of a run; of runs that are not chosen, a few are enough for a message.
fn remember(runs: &mut BTreeMap<Vec<String>, u64>, told: Vec<String>, jobs: u64) {
    if let Some(count) = runs.get_mut(&told) {
        *count += jobs;
    } else if runs.len() < 1000 {
        runs.insert(told, jobs);
    }
}

/// A run in words.
fn describe(of_run: [Option<usize>; 4], told: &[String]) -> String {
    let names = RUN.iter().zip(of_run).filter(|(_, index)| index.is_some()).map(|(name, _)| name);
    let parts: Vec<String> = names.zip(told).map(|(name, text)| format!("{name} {}", quoted(text))).collect();
    parts.join(", ")
}

/// Whether the current row is of the chosen run.
fn is_of(run: &RunOfLog, columns: &Columns<'_>, [_, policy, seed, point]: [Option<usize>; 4]) -> bool {
    let text = |column: Option<usize>, wanted: &Option<String>| {
        wanted.as_ref().is_none_or(|wanted| column.is_some_and(|index| columns.field(index) == wanted))
    };
    let number = |column: Option<usize>, wanted: Option<u64>| {
        wanted.is_none_or(|wanted| column.is_some_and(|index| columns.field(index).parse() == Ok(wanted)))
    };
    text(policy, &run.policy) && number(seed, run.seed) && number(point, run.point)
}

/// Further columns of the table that `fedgenie export` writes.
const EXPORTED: [&str; 2] = ["number", "changed"];

/// The columns that do not count, in words, but for those of exports.
fn ignored(header: &[String]) -> String {
    let is_known = |name: &String| [&COLUMNS[..], &RUN, &EXPORTED].concat().contains(&&**name);
    let names: Vec<String> = header.iter().filter(|name| !is_known(name)).map(|name| quoted(name)).collect();
    let more = if names.len() > 10 { format!(" and {} more", names.len() - 10) } else { String::new() };
    format!("{}{more}", names[..names.len().min(10)].join(", "))
}

/// The job of the current row, with its own number of client and round.
fn row(columns: &Columns<'_>) -> Result<Row, DataError> {
    let whole = |column: usize| {
        let parsed = columns.text(column).parse::<u64>();
        parsed.map_err(|_| columns.wrong_field(column, "a whole number of at least 0"))
    };
    let seconds = |column: usize| {
        if columns.text(column).is_empty() { Ok(None) } else { columns.seconds(column).map(Some) }
    };
    let outcome = columns.text(7);
    let ending = Ending::ALL.into_iter().find(|(word, _)| *word == outcome).map(|(_, ending)| ending);
    let job = LoggedJob {
        client: ClientId(0),
        round: Round(0),
        sent: seconds(2)?,
        phases: [seconds(3)?, seconds(4)?, seconds(5)?],
        total: seconds(6)?,
        ending: ending.ok_or_else(|| columns.wrong_field(7, "arrived, late or dropped"))?,
        line: columns.line(),
    };
    let known = job.known();
    if let Some(total) = job.total
        && known.0 > total.0.saturating_add(ROUNDING.0)
    {
        let expected = format!("at least the phases of the job together, {} s", known.seconds());
        return Err(columns.wrong_field(6, expected));
    }
    Ok(Row { client: whole(0)?, round: whole(1)?, job })
}

/// Numbers clients and rounds, and sorts the jobs.
fn numbered(path: &Path, rows: Vec<Row>, mut notes: Vec<String>) -> Result<JobLog, LogError> {
    let ascending =
        |of: fn(&Row) -> u64| rows.iter().map(of).collect::<BTreeSet<u64>>().into_iter().collect::<Vec<_>>();
    let (clients, rounds) = (ascending(|row| row.client), ascending(|row| row.round));
    let place = |all: &[u64], one: u64| all.binary_search(&one).expect("every number is in the list");
    let too_many = |what| DataError::TooMany { path: path.to_owned(), limit: u32::MAX as usize - 1, what };
    if rounds.len() >= u32::MAX as usize {
        return Err(too_many("rounds").into());
    }
    let mut jobs: Vec<LoggedJob> = rows
        .iter()
        .map(|row| LoggedJob {
            client: ClientId::from_index(place(&clients, row.client)),
            round: Round(place(&rounds, row.round) as u32 + 1),
            ..row.job
        })
        .collect();
    jobs.sort_by_key(|job| (job.round, job.sent, job.line));
    at_once(path, &jobs, &clients)?;
    let name = path.display();
    let (first, last) = (clients[0], clients[clients.len() - 1]);
    if last != clients.len() as u64 - 1 {
        notes.push(format!(
            "{name}: {} clients, {first} to {last}, were numbered anew from 0, ascending",
            clients.len()
        ));
    }
    if rounds[0] != 1 || rounds[rounds.len() - 1] != rounds.len() as u64 {
        let (first, last) = (rounds[0], rounds[rounds.len() - 1]);
        notes.push(format!("{name}: {} rounds, {first} to {last}, were numbered anew from 1, ascending", rounds.len()));
    }
    notes.extend(assumed(path, &jobs));
    Ok(JobLog { clients, rounds, jobs, notes })
}

/// Refuses two jobs of a client that were sent at the same instant: a log that was written twice.
fn at_once(path: &Path, jobs: &[LoggedJob], clients: &[u64]) -> Result<(), DataError> {
    let mut sent: Vec<_> = jobs.iter().filter_map(|job| Some((job.client, job.sent?, job.line))).collect();
    sent.sort_unstable();
    match sent.windows(2).find(|pair| (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1)) {
        None => Ok(()),
        Some(pair) => {
            let client = clients[pair[0].0.index()];
            let message = format!(
                "client {client} is sent a job at {} s, and line {} sends it one at the same time; expected one job of a \
                 client at a time",
                pair[1].1.seconds(),
                pair[0].2
            );
            Err(DataError::Table { path: path.to_owned(), line: pair[1].2, message })
        }
    }
}

/// Sentences on jobs of which the log says too little, or something else than their phases.
fn assumed(path: &Path, jobs: &[LoggedJob]) -> Vec<String> {
    let count = |is: &dyn Fn(&LoggedJob) -> bool| jobs.iter().filter(|job| is(job)).count();
    let arrived = |job: &LoggedJob| job.ending == Ending::Arrived;
    let is_total = |job: &LoggedJob| arrived(job) && job.total.is_some() && job.phases == [None; 3];
    let has_rest = |job: &LoggedJob| {
        let left = job.total.map_or(0, |total| total.0.saturating_sub(job.known().0));
        arrived(job) && job.phases.iter().all(Option::is_some) && left > ROUNDING.0
    };
    let is_partly = |job: &LoggedJob| {
        let known = job.phases.iter().flatten().count();
        arrived(job) && job.total.is_some() && (known == 1 || known == 2)
    };
    [
        (count(&|job| job.course().is_none()), "jobs say too little to tell how long they took"),
        (count(&is_total), "jobs have a total and no phases: all of it counts as computing"),
        (count(&is_partly), "jobs have some of their phases: the rest of the total belongs to the first unknown one of compute, upload, download"),
        (count(&has_rest), "jobs took longer than their phases together: the rest belongs to the upload"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{}: {count} {what}", path.display()))
    .collect()
}
