//! Jobs of runs, gathered from their events: a log as `fedgenie fit` and `population.recorded` read it.
//!
//! A job that arrived after its round closed, under `late = "carry"` or from an edge server, has `arrived` with all of
//! its time. A job that was still under way when the run ended is `late` at that time.

use super::column::{Cell, Column, Kind};
use super::events::{self, Event};
use super::rows::{OfRun, RunRow};
use super::table::{Failed, RUN_KEY, Table};
use fedgenie_core::record::{Outcome, Phase};
use std::collections::BTreeMap;

/// A job, as far as its events have told.
#[derive(Clone, Copy, Debug)]
struct Job {
    /// Its number among all jobs, in the order of dispatch.
    number: u64,
    client: u32,
    round: u32,
    sent_ns: i64,
    /// Ends of the phases that ended.
    ends_ns: [Option<i64>; 3],
    /// When its outcome was settled as late.
    late_ns: Option<i64>,
    /// When its client was lost.
    lost_ns: Option<i64>,
}

/// How a job ended, with the time of its end.
#[derive(Clone, Copy, Debug)]
enum End {
    Arrived,
    Late(i64),
    Dropped(i64),
}

/// A row of the table.
pub(super) struct JobRow<'a> {
    of: OfRun<'a>,
    job: Job,
    end: End,
}

impl<'a> RunRow<'a> for JobRow<'a> {
    fn of(&self) -> OfRun<'a> {
        self.of
    }
}

impl Job {
    const fn new(number: u64, client: u32, round: u32, sent_ns: i64) -> Self {
        Self { number, client, round, sent_ns, ends_ns: [None; 3], late_ns: None, lost_ns: None }
    }

    /// The time in a phase: all of it, or until the job was cut.
    fn phase_ns(&self, phase: Phase, end: End) -> Option<i64> {
        let index = phase.index();
        let began = if index == 0 { Some(self.sent_ns) } else { self.ends_ns[index - 1] };
        let cut = match end {
            End::Arrived => None,
            End::Late(at) | End::Dropped(at) => Some(at),
        };
        Some(self.ends_ns[index].or(cut)? - began?)
    }

    /// All of its time, if it is known.
    fn total_ns(&self, end: End) -> Option<i64> {
        let at = match end {
            End::Arrived => self.ends_ns[Phase::Upload.index()],
            End::Late(at) | End::Dropped(at) => Some(at),
        };
        Some(at? - self.sent_ns)
    }

    /// The end of a job of which nothing more will be told. Without an outcome it was under way at the `last` time.
    fn end(&self, last: i64) -> End {
        match (self.lost_ns, self.late_ns) {
            (Some(at), _) => End::Dropped(at),
            // One that goes on after its round was observed until the last time.
            (None, Some(at)) if self.ends_ns.iter().flatten().any(|end| *end > at) => End::Late(last),
            (None, Some(at)) => End::Late(at),
            (None, None) => End::Late(last),
        }
    }
}

/// The jobs under way, one a client, and those that ended and wait for jobs that were dispatched before them.
#[derive(Default)]
struct UnderWay {
    jobs: BTreeMap<u32, Job>,
    ended: BTreeMap<u64, (Job, End)>,
    dispatched: u64,
    handed_out: u64,
    /// The cloud's round, where there is a cloud.
    cloud: Option<u32>,
    last_ns: i64,
}

impl UnderWay {
    /// Follows an event.
    fn follow(&mut self, event: &Event) {
        let Some(now) = event.time_ns else { return };
        self.last_ns = self.last_ns.max(now);
        if event.event == "cloud-opened" {
            self.cloud = Some(event.round);
        }
        // An edge server's selection has its own turn.
        let round = self.cloud.unwrap_or(event.round);
        for &client in event.selected.iter().flatten() {
            self.dispatched += 1;
            // The server stopped waiting for an earlier job of the client, if there is one.
            let before = self.jobs.insert(client, Job::new(self.dispatched, client, round, now));
            self.ended.extend(before.map(|job| (job.number, (job, job.end(now)))));
        }
        let Some(job) = event.client.and_then(|client| self.jobs.get_mut(&client)) else { return };
        let end = match (event.event.as_str(), event.outcome, event.delivered) {
            ("phase-ended", ..) => {
                job.round = event.round;
                job.ends_ns[event.phase.unwrap_or_default().index()] = Some(now);
                None
            }
            ("lost", ..) => {
                (job.round, job.lost_ns) = (event.round, Some(now));
                None
            }
            ("job-ended", Some(Outcome::Late), _) => {
                (job.round, job.late_ns) = (event.round, Some(now));
                None
            }
            ("job-ended", Some(Outcome::Arrived), _) | ("stale-ended", _, Some(true)) => Some(End::Arrived),
            ("job-ended", Some(Outcome::Dropped { .. }), _) | ("stale-ended", _, Some(false)) => Some(job.end(now)),
            _ => None,
        };
        if let Some(end) = end {
            self.ended.insert(job.number, (*job, end));
            let client = job.client;
            self.jobs.remove(&client);
        }
    }

    /// The next job in the order of dispatch, if it has ended.
    fn next(&mut self) -> Option<(Job, End)> {
        let ended = self.ended.remove(&(self.handed_out + 1))?;
        self.handed_out += 1;
        Some(ended)
    }
}

fn seconds(nanoseconds: Option<i64>) -> Cell {
    Cell::number(nanoseconds.map(|time| time as f64 / 1e9))
}

/// The table of jobs.
pub(super) fn table<'a>() -> Table<'a, JobRow<'a>> {
    let integer = |name, meaning: &str| Column::new(name, Kind::Integer, "", meaning).required();
    let time = |name, meaning: &str| Column::new(name, Kind::Number, "s", meaning);
    let phase = |row: &JobRow<'a>, phase| seconds(row.job.phase_ns(phase, row.end));
    let meaning = "A row for each job of each run whose events were recorded (--events), in the order of dispatch: a \
                   log that fedgenie fit and population.recorded read.";
    Table::new("jobs", meaning, RUN_KEY.into_iter().chain(["number"]))
        .of_runs()
        .with(integer("number", "number of the job in its run, from 1"), |row: &JobRow<'a>| Cell::count(row.job.number))
        .with(integer("client", "number of the client, from 0"), |row| Cell::Integer(row.job.client.into()))
        .with(integer("round", "the round in which it was dispatched; under hierarchical, the cloud's"), |row| {
            Cell::Integer(row.job.round.into())
        })
        .with(time("sent_s", "virtual time at which the model was sent"), |row| seconds(Some(row.job.sent_ns)))
        .with(time("download_s", "how long the download took, pauses included, or until the job was cut"), move |row| {
            phase(row, Phase::Download)
        })
        .with(time("compute_s", "the same of computing; empty if it did not begin"), move |row| {
            phase(row, Phase::Compute)
        })
        .with(time("upload_s", "the same of the upload; empty if it did not begin"), move |row| {
            phase(row, Phase::Upload)
        })
        .with(time("total_s", "all phases together"), |row| seconds(row.job.total_ns(row.end)))
        .with(
            Column::text(
                "outcome",
                "arrived: the update reached the server, in its round or later; late: the server stopped waiting, or \
                 the run ended; dropped: the client was lost",
            )
            .required(),
            |row| {
                Cell::text(match row.end {
                    End::Arrived => "arrived",
                    End::Late(_) => "late",
                    End::Dropped(_) => "dropped",
                })
            },
        )
        .with_changed()
}

/// Hands out the jobs of a run; none if its events were not recorded.
pub(super) fn rows<'a>(of: OfRun<'a>, add: &mut dyn FnMut(&JobRow<'a>) -> Result<(), Failed>) -> Result<(), Failed> {
    let mut under_way = UnderWay::default();
    events::each(of, &mut |_, event| {
        under_way.follow(&event);
        while let Some((job, end)) = under_way.next() {
            add(&JobRow { of, job, end })?;
        }
        Ok(())
    })?;
    let UnderWay { jobs, mut ended, last_ns, .. } = under_way;
    ended.extend(jobs.into_values().map(|job| (job.number, (job, job.end(last_ns)))));
    ended.into_values().try_for_each(|(job, end)| add(&JobRow { of, job, end }))
}
