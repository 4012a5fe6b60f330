//! A population that replays a log of jobs: `population.recorded`.
//!
//! # Definition
//! The clients of a [log], numbered ascending, and always available. Job r of a client is its job in round
//! r of the log: exactly its phases, to the nanosecond, and its end. A round of which the log has no job of the client
//! draws one of the client's own jobs, each with the same probability, by one uniform of (seed, latency, client,
//! round). A job that the log has as late was not awaited to its end: it takes a nanosecond longer than it was awaited,
//! the shortest duration that the log allows; a transfer that was cut counts as nearly whole in the traffic. A job that
//! was dropped is lost after the same time in the same phase. Probes draw likewise, and are not lost.
//!
//! The policy `recorded` selects in round r the clients of the log's round r. Under the protocol of the log it replays
//! the log's run; other policies meet jobs of the same clients, drawn where the log has none. A run counts both in
//! `exact_jobs` and `drawn_jobs`, and a warning tells that jobs were drawn.
//!
//! # Inputs
//! A file, and of a log of several runs which one: by the texts of its columns `policy`, `seed` and `point`. Errors:
//! those of the log; a client with two jobs in a round; a job that arrived or was late without its time. Phases that
//! the log does not tell apart count as computing. A job whose work a policy changes takes its share of the computing.
//!
//! # Source
//! Ours.
//!
//! # Example
//! ```toml
//! recorded = "log.csv"
//! recorded = { file = "jobs.csv", policy = "random", seed = 1 }
//! ```

use super::log::{self, Course, Ending, JobLog, LoggedJob, RunOfLog};
use super::trace::Memo;
use super::{JobDraw, LatencyError, scaled};
use fedgenie_core::id::{ClientId, JobNumber};
use fedgenie_core::record::{Phase, PhaseSpans};
use fedgenie_core::rng::{Purpose, Streams};
use fedgenie_core::time::Span;
use fedgenie_learning::data::located;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A log that clients replay: a file, or a table with the file and the run that is meant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecordedConfig {
    /// The log.
    pub file: PathBuf,
    /// Which of several runs.
    #[serde(flatten)]
    pub run: RunOfLog,
    #[serde(skip)]
    recording: Memo<Recording>,
}

/// A log as its clients' jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// All jobs, by client and then by round.
    jobs: Vec<JobDraw>,
    /// The round of each.
    round_of: Vec<u32>,
    /// Where a client's jobs begin, and at last where they end.
    first: Vec<usize>,
    /// The clients of each round, from round 1 on.
    choices: Vec<Vec<ClientId>>,
    /// Warnings about the log.
    notes: Vec<String>,
    has_losses: bool,
}

impl RecordedConfig {
    /// Makes the name of the file relative to the folder of data or of the scenario.
    pub(super) fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        self.recording = Memo::default();
        self.file = located(&self.file, base, data);
    }

    /// The log, read once.
    pub(super) fn recording(&self) -> Result<Arc<Recording>, String> {
        let read = || {
            let log = log::read(&self.file, &self.run).map_err(|error| error.to_string())?;
            Recording::new(&log).map_err(|message| format!("{}:{message}", self.file.display()))
        };
        self.recording.get(read)
    }
}

impl Recording {
    /// The jobs of a log.
    ///
    /// # Errors
    /// Line and sentence of the first job that cannot be replayed.
    pub fn new(log: &JobLog) -> Result<Self, String> {
        let mut order: Vec<&LoggedJob> = log.jobs.iter().collect();
        order.sort_by_key(|job| (job.client, job.round, job.line));
        let twice = order.windows(2).find(|pair| (pair[0].client, pair[0].round) == (pair[1].client, pair[1].round));
        if let Some(pair) = twice {
            let (client, round) = (log.clients[pair[0].client.index()], log.rounds[pair[0].round.0 as usize - 1]);
            return Err(format!(
                "{}: client {client} has a job in round {round} on line {} already; expected one job of a client in a \
                 round, as servers that ask clients in rounds have it",
                pair[1].line, pair[0].line
            ));
        }
        let mut first = vec![0; log.clients.len() + 1];
        order.iter().for_each(|job| first[job.client.index() + 1] += 1);
        for client in 0..log.clients.len() {
            first[client + 1] += first[client];
        }
        let mut choices = vec![Vec::new(); log.rounds.len()];
        log.jobs.iter().for_each(|job| choices[job.round.0 as usize - 1].push(job.client));
        Ok(Self {
            jobs: order.iter().map(|job| replayed(job)).collect::<Result<_, _>>()?,
            round_of: order.iter().map(|job| job.round.0).collect(),
            first,
            choices,
            notes: log.notes.iter().cloned().chain(late(log)).collect(),
            has_losses: log.jobs.iter().any(|job| job.ending == Ending::Dropped),
        })
    }

    /// How many clients it has.
    pub const fn clients(&self) -> usize {
        self.first.len() - 1
    }

    /// The clients of each round, in the order in which they were sent the model; the first round has the number 1.
    pub fn choices(&self) -> &[Vec<ClientId>] {
        &self.choices
    }

    /// Warnings about the log.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Whether any client was lost.
    pub const fn has_losses(&self) -> bool {
        self.has_losses
    }

    /// The durations of a client's phase in all of its jobs, in seconds.
    pub fn seconds(&self, client: ClientId, phase: Phase) -> Vec<f64> {
        self.own(client).iter().map(|job| job.phases[phase.index()].seconds()).collect()
    }

    fn own(&self, client: ClientId) -> &[JobDraw] {
        &self.jobs[self.first[client.index()]..self.first[client.index() + 1]]
    }

    /// The place of a client's job in a round among its own, if the log has it.
    fn place(&self, client: ClientId, job: JobNumber) -> Option<usize> {
        let range = self.first[client.index()]..self.first[client.index() + 1];
        self.round_of[range].binary_search(&job.0).ok()
    }

    /// Whether the log has a client's job in a round.
    pub fn has(&self, client: ClientId, job: JobNumber) -> bool {
        self.place(client, job).is_some()
    }

    /// A client's job; see the [module](self). `shares` of the transfers do not count: durations are recorded.
    pub(super) fn draw(
        &self,
        streams: &Streams,
        purpose: Purpose,
        (client, job): (ClientId, JobNumber),
        work: [u32; 2],
    ) -> Result<JobDraw, LatencyError> {
        let own = self.own(client);
        let place = if purpose == Purpose::Latency { self.place(client, job) } else { None };
        let place = place.unwrap_or_else(|| {
            let uniform = streams.draw(purpose, client.0, job.0).uniform();
            ((uniform * own.len() as f64) as usize).min(own.len() - 1)
        });
        let JobDraw { mut phases, mut loss } = own[place];
        let share =
            |span| scaled(span, work).map_err(|source| LatencyError { client, job, phase: Phase::Compute, source });
        let compute = &mut phases[Phase::Compute.index()];
        *compute = share(*compute)?;
        if let Some((Phase::Compute, after)) = &mut loss {
            *after = share(*after)?.min(Span(compute.0.saturating_sub(1)));
        }
        Ok(JobDraw { phases, loss: loss.filter(|_| purpose == Purpose::Latency) })
    }
}

/// A logged job as a draw.
fn replayed(job: &LoggedJob) -> Result<JobDraw, String> {
    let lasting = |mut phases: PhaseSpans, phase: Phase| {
        phases[phase.index()] += Span(1);
        phases
    };
    match (job.ending, job.course()) {
        (Ending::Arrived | Ending::Late, None) => Err(format!(
            "{}: the job {} and has neither total_s nor all phases; expected how long it took, or was awaited",
            job.line,
            if job.ending == Ending::Arrived { "arrived" } else { "is late" }
        )),
        (_, Some(Course { phases, cut: None, .. })) => Ok(JobDraw { phases, loss: None }),
        (Ending::Dropped, Some(Course { phases, cut: Some(phase), .. })) => {
            let loss = Some((phase, phases[phase.index()]));
            Ok(JobDraw { phases: lasting(phases, phase), loss })
        }
        (_, Some(Course { phases, cut: Some(phase), .. })) => {
            Ok(JobDraw { phases: lasting(phases, phase), loss: None })
        }
        // Of which is not known when: at once.
        (Ending::Dropped, None) => {
            Ok(JobDraw { phases: lasting([Span::ZERO; 3], Phase::Download), loss: Some((Phase::Download, Span::ZERO)) })
        }
    }
}

/// A sentence on late jobs, if there are any.
fn late(log: &JobLog) -> Option<String> {
    let late = log.jobs.iter().filter(|job| job.ending == Ending::Late).count();
    (late > 0).then(|| {
        format!(
            "population.recorded: {late} of {} jobs are late in the log, which does not say how long they would have \
             taken: they take a nanosecond longer than they were awaited",
            log.jobs.len()
        )
    })
}

impl<'de> Deserialize<'de> for RecordedConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RecordedVisitor)
    }
}

/// Reads a name, or a table.
struct RecordedVisitor;

impl<'de> de::Visitor<'de> for RecordedVisitor {
    type Value = RecordedConfig;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a file such as \"log.csv\", or { file, policy, seed, point }")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<RecordedConfig, E> {
        Ok(RecordedConfig { file: text.into(), run: RunOfLog::default(), recording: Memo::default() })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RecordedConfig, A::Error> {
        let Table { file, policy, seed, point } = Table::deserialize(MapAccessDeserializer::new(map))?;
        Ok(RecordedConfig { file, run: RunOfLog { policy, seed, point }, recording: Memo::default() })
    }
}

/// The table of a scenario.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
struct Table {
    /// The log.
    file: PathBuf,
    /// Of several runs, those of this policy.
    #[serde(default)]
    policy: Option<String>,
    /// Of several runs, those of this seed.
    #[serde(default)]
    seed: Option<u64>,
    /// Of several runs, those of this point of the sweep.
    #[serde(default)]
    point: Option<u64>,
}

impl JsonSchema for RecordedConfig {
    fn schema_name() -> Cow<'static, str> {
        "RecordedConfig".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "string" }, Table::json_schema(generator)] })
    }
}

#[cfg(test)]
mod tests;
