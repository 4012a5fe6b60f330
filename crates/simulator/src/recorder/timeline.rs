//! A run as a picture in virtual time: the trace format of Chrome's profiler, which Perfetto opens.
//!
//! # Definition
//! One JSON object with `traceEvents`, gzip. Processes: 1 the server (or the cloud), 2 the edge servers, 3 the clients,
//! with a thread each. Times are virtual microseconds with three decimals, so that no nanosecond is lost.
//!
//! | event | where | what |
//! |---|---|---|
//! | span `round N` | server, edge server | from selection to aggregation |
//! | span `download`, `compute`, `upload` | client | a phase, complete or cut |
//! | span `away` | client, inside a phase | the device was away |
//! | span `model down`, `model up` | edge server | the model travels from or to the cloud |
//! | instant `selection`, `aggregation`, `abandoned`, `deadline` | server, edge server | `deadline`: the missing updates are late |
//! | instant `arrived`, `late`, `lost` | client | the job's end, with phase and reason |
//!
//! # Source
//! "Trace Event Format", Google, 2016: complete events (`X`), instants (`i`), metadata (`M`).

use super::packed::Packed;
use fedgenie_core::id::{ClientId, Round};
use fedgenie_core::record::{Outcome, Phase, Record};
use fedgenie_core::state::Stateful;
use fedgenie_core::time::VirtualTime;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::ops::RangeInclusive;

const SERVER: u32 = 1;
const EDGES: u32 = 2;
const CLIENTS: u32 = 3;

/// A job that is drawn.
#[derive(Clone, Copy, Debug, Default, Stateful)]
struct Open {
    round: u32,
    /// The edge server whose job it is.
    edge: Option<u32>,
    phase: Phase,
    since: VirtualTime,
    /// Its server stopped waiting; whether the client stopped as well is seen from what comes next.
    late: Option<VirtualTime>,
}

/// Writes a timeline.
#[derive(Debug, Stateful)]
pub struct Timeline<W: Write> {
    out: Packed<W>,
    #[state(skip = "from the scenario")]
    rounds: RangeInclusive<u32>,
    current: u32,
    clock: VirtualTime,
    has_events: bool,
    named: BTreeSet<(u32, u32)>,
    jobs: BTreeMap<ClientId, Open>,
    /// When the round under way began, of the server.
    opened: VirtualTime,
    /// When an edge server's model set out, and its round began.
    edges: BTreeMap<u32, (VirtualTime, VirtualTime)>,
    /// The last instant at which a server stopped waiting, so that it is drawn once.
    deadline: Option<((u32, u32), VirtualTime)>,
}

/// Microseconds with three decimals, as JSON: exact, which a binary fraction would not be.
fn microseconds(nanoseconds: u64) -> Value {
    let text = format!("{}.{:03}", nanoseconds / 1_000, nanoseconds % 1_000);
    serde_json::from_str(&text).expect("digits, a point and digits are a JSON number")
}

impl<W: Write> Timeline<W> {
    /// Begins a timeline of the given rounds.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(out: W, rounds: RangeInclusive<u32>) -> io::Result<Self> {
        let mut timeline = Self::of(Packed::new(out)?, rounds);
        timeline.out.write_all(b"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n")?;
        for (pid, name) in [(SERVER, "server"), (EDGES, "edge servers"), (CLIENTS, "clients")] {
            let value = json!({ "ph": "M", "pid": pid, "tid": 0, "name": "process_name", "args": { "name": name } });
            timeline.write(&value)?;
            let value =
                json!({ "ph": "M", "pid": pid, "tid": 0, "name": "process_sort_index", "args": { "sort_index": pid } });
            timeline.write(&value)?;
        }
        Ok(timeline)
    }

    /// Goes on with a timeline that has been begun, as soon as its state is loaded.
    pub(super) fn going_on(out: W, rounds: RangeInclusive<u32>) -> Self {
        Self::of(Packed::going_on(out), rounds)
    }

    const fn of(out: Packed<W>, rounds: RangeInclusive<u32>) -> Self {
        Self {
            out,
            rounds,
            current: 1,
            clock: VirtualTime::START,
            has_events: false,
            named: BTreeSet::new(),
            jobs: BTreeMap::new(),
            opened: VirtualTime::START,
            edges: BTreeMap::new(),
            deadline: None,
        }
    }

    /// Where packed bytes go.
    pub(super) const fn inner_mut(&mut self) -> &mut W {
        self.out.inner_mut()
    }

    /// The first and the last round that are drawn.
    pub(super) const fn ends(&self) -> (u32, u32) {
        (*self.rounds.start(), *self.rounds.end())
    }

    fn write(&mut self, event: &Value) -> io::Result<()> {
        if self.has_events {
            self.out.write_all(b",\n")?;
        }
        self.has_events = true;
        serde_json::to_writer(&mut self.out, event).map_err(io::Error::from)
    }

    /// Names a thread when it is first used.
    fn name(&mut self, pid: u32, tid: u32) -> io::Result<()> {
        if !self.named.insert((pid, tid)) {
            return Ok(());
        }
        let name = match pid {
            SERVER => "rounds".to_owned(),
            EDGES => format!("edge {tid}"),
            _ => format!("client {tid}"),
        };
        self.write(&json!({ "ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": { "name": name } }))
    }

    fn span(
        &mut self,
        (pid, tid): (u32, u32),
        name: &str,
        (from, until): (VirtualTime, VirtualTime),
        args: &Value,
    ) -> io::Result<()> {
        if !self.rounds.contains(&self.current) {
            return Ok(());
        }
        self.name(pid, tid)?;
        let (ts, dur) = (microseconds(from.0), microseconds((until - from).0));
        self.write(&json!({ "ph": "X", "pid": pid, "tid": tid, "name": name, "ts": ts, "dur": dur, "args": args }))
    }

    fn instant(&mut self, (pid, tid): (u32, u32), name: &str, time: VirtualTime, args: &Value) -> io::Result<()> {
        if !self.rounds.contains(&self.current) {
            return Ok(());
        }
        self.name(pid, tid)?;
        let ts = microseconds(time.0);
        self.write(&json!({ "ph": "i", "s": "t", "pid": pid, "tid": tid, "name": name, "ts": ts, "args": args }))
    }

    /// Draws what a record says. What happens outside the rounds that are wanted is followed, so that jobs that reach
    /// into them are drawn whole, but not drawn.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn record(&mut self, record: &Record<'_>) -> io::Result<()> {
        if let Some(time) = record.time() {
            self.clock = time;
        }
        match *record {
            Record::Opened { round, time, selected } => {
                self.opened = time;
                self.begin((SERVER, 0), round.0, time, selected)
            }
            Record::Selected { round, time, selected } => self.begin((SERVER, 0), round.0, time, selected),
            Record::EdgeSelected { edge, turn, time, selected } => {
                self.edges.entry(edge.0).or_insert((time, time)).1 = time;
                self.begin((EDGES, edge.0), turn.0, time, selected)
            }
            Record::CloudOpened { round, time, edges } => {
                self.opened = time;
                self.edges.extend(edges.iter().map(|edge| (edge.0, (time, time))));
                self.instant((SERVER, 0), "selection", time, &json!({ "round": round, "edges": edges }))
            }
            Record::Travelled { edge, round, down, time } => {
                let from = self.edges.get(&edge.0).map_or(time, |&(from, _)| from);
                let name = if down { "model down" } else { "model up" };
                self.span((EDGES, edge.0), name, (from, time), &json!({ "round": round }))
            }
            Record::EdgeClosed { edge, turn, time } => {
                let edge = edge.0;
                let from = self.edges.get(&edge).map_or(time, |&(_, opened)| opened);
                self.edges.insert(edge, (time, time));
                self.span((EDGES, edge), &format!("round {}", turn.0), (from, time), &json!({}))?;
                self.instant((EDGES, edge), "aggregation", time, &json!({ "round": turn }))
            }
            Record::PhaseEnded { client, phase, time, round } => {
                let Some(job) = self.jobs.get_mut(&client) else { return Ok(()) };
                let from = std::mem::replace(&mut job.since, time);
                job.late = None;
                job.phase = phase.next().unwrap_or(phase);
                self.span((CLIENTS, client.0), &phase.to_string(), (from, time), &json!({ "round": round }))
            }
            Record::Paused { client, round, from, until, .. } => {
                self.span((CLIENTS, client.0), "away", (from, until), &json!({ "round": round }))
            }
            Record::Lost { client, round, phase, reason, time } => {
                if let Some(job) = self.jobs.get_mut(&client) {
                    let since = std::mem::replace(&mut job.since, time);
                    let args = json!({ "round": round, "cut": true });
                    self.span((CLIENTS, client.0), &phase.to_string(), (since, time), &args)?;
                }
                let args = json!({ "round": round, "phase": phase, "reason": reason });
                self.instant((CLIENTS, client.0), "lost", time, &args)
            }
            Record::JobEnded { client, round, outcome, time } => self.ended(client, round, outcome, time),
            Record::StaleEnded { client, round, delivered, time } => {
                self.jobs.remove(&client);
                if !delivered {
                    return Ok(());
                }
                self.instant((CLIENTS, client.0), "arrived", time, &json!({ "round": round, "late": true }))
            }
            Record::Closed { round, time, .. } => {
                self.span((SERVER, 0), &round.to_string(), (self.opened, time), &json!({}))?;
                self.opened = time;
                Ok(())
            }
            Record::Model { .. } | Record::Private { .. } | Record::Metric { .. } => Ok(()),
        }
    }

    /// Ends a round: a new model, unless it was abandoned.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn closed(&mut self, round: Round, is_abandoned: bool) -> io::Result<()> {
        let name = if is_abandoned { "abandoned" } else { "aggregation" };
        self.instant((SERVER, 0), name, self.clock, &json!({ "round": round }))?;
        if self.current == *self.rounds.end() {
            // Jobs that go on are cut where the timeline ends.
            let open: Vec<ClientId> = self.jobs.keys().copied().collect();
            open.into_iter().try_for_each(|client| self.cut(client))?;
        }
        self.current = round.0 + 1;
        Ok(())
    }

    fn begin(&mut self, at: (u32, u32), round: u32, time: VirtualTime, selected: &[ClientId]) -> io::Result<()> {
        for &client in selected {
            self.cut(client)?;
            let edge = (at.0 == EDGES).then_some(at.1);
            self.jobs.insert(client, Open { round, edge, phase: Phase::Download, since: time, late: None });
        }
        self.instant(at, "selection", time, &json!({ "round": round, "clients": selected.len() }))
    }

    /// Draws what is left of a job that was called off.
    fn cut(&mut self, client: ClientId) -> io::Result<()> {
        let Some(Open { round, phase, since, late, .. }) = self.jobs.remove(&client) else { return Ok(()) };
        let until = late.unwrap_or(self.clock);
        let args = json!({ "round": round, "cut": true });
        self.span((CLIENTS, client.0), &phase.to_string(), (since, until), &args)
    }

    fn ended(&mut self, client: ClientId, round: Round, outcome: Outcome, time: VirtualTime) -> io::Result<()> {
        let at = (CLIENTS, client.0);
        if outcome == Outcome::Arrived {
            self.jobs.remove(&client);
            return self.instant(at, "arrived", time, &json!({ "round": round }));
        }
        let server = self.jobs.get(&client).and_then(|job| job.edge).map_or((SERVER, 0), |edge| (EDGES, edge));
        if self.deadline != Some((server, time)) {
            self.deadline = Some((server, time));
            self.instant(server, "deadline", time, &json!({ "round": self.current }))?;
        }
        if let Some(job) = self.jobs.get_mut(&client) {
            job.late = Some(time);
        }
        match outcome {
            Outcome::Late => self.instant(at, "late", time, &json!({ "round": round })),
            _ => {
                self.jobs.remove(&client);
                Ok(())
            }
        }
    }

    /// Draws what is still under way, and ends the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        let open: Vec<ClientId> = self.jobs.keys().copied().collect();
        open.into_iter().try_for_each(|client| self.cut(client))?;
        self.out.write_all(b"\n]}\n")?;
        self.out.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use std::io::Read;

    fn drawn(records: &[Record<'_>], rounds: RangeInclusive<u32>) -> Vec<Value> {
        let mut timeline = Timeline::new(Vec::new(), rounds).unwrap();
        records.iter().for_each(|record| timeline.record(record).unwrap());
        unpacked(timeline)
    }

    fn unpacked(timeline: Timeline<Vec<u8>>) -> Vec<Value> {
        let (packed, mut text) = (timeline.finish().unwrap(), String::new());
        GzDecoder::new(&*packed).read_to_string(&mut text).unwrap();
        let whole: Value = serde_json::from_str(&text).unwrap();
        whole["traceEvents"].as_array().unwrap().clone()
    }

    fn seconds(seconds: u64) -> VirtualTime {
        VirtualTime(seconds * 1_000_000_000)
    }

    /// Client 4 delivers after a pause, client 7 is called off while computing.
    #[test]
    fn a_round_by_hand() {
        let (round, one, two) = (Round(1), ClientId(4), ClientId(7));
        let ended = |client, phase, time| Record::PhaseEnded { client, round, phase, time: seconds(time) };
        let records = [
            Record::Opened { round, time: seconds(1), selected: &[one, two] },
            ended(one, Phase::Download, 2),
            ended(two, Phase::Download, 3),
            Record::Paused { client: one, round, phase: Phase::Compute, from: seconds(3), until: seconds(4) },
            ended(one, Phase::Compute, 5),
            ended(one, Phase::Upload, 6),
            Record::JobEnded { client: one, round, outcome: Outcome::Arrived, time: seconds(6) },
            Record::JobEnded { client: two, round, outcome: Outcome::Late, time: seconds(8) },
        ];
        let events = drawn(&records, 1..=u32::MAX);
        let spans: Vec<(u64, &str, f64, f64)> = events
            .iter()
            .filter(|event| event["ph"] == "X")
            .map(|event| {
                let number = |key: &str| event[key].as_f64().unwrap() / 1e6;
                (event["tid"].as_u64().unwrap(), event["name"].as_str().unwrap(), number("ts"), number("dur"))
            })
            .collect();
        assert_eq!(
            spans,
            [
                (4, "download", 1.0, 1.0),
                (7, "download", 1.0, 2.0),
                (4, "away", 3.0, 1.0),
                (4, "compute", 2.0, 3.0),
                (4, "upload", 5.0, 1.0),
                (7, "compute", 3.0, 5.0),
            ]
        );
        let instants: Vec<&str> =
            events.iter().filter(|event| event["ph"] == "i").map(|event| event["name"].as_str().unwrap()).collect();
        assert_eq!(instants, ["selection", "arrived", "deadline", "late"]);
        assert!(drawn(&records, 2..=3).iter().all(|event| event["ph"] == "M"), "another round was asked for");
        // A job that reaches into the rounds wanted is drawn in them.
        let mut timeline = Timeline::new(Vec::new(), 2..=2).unwrap();
        records[..5].iter().for_each(|record| timeline.record(record).unwrap());
        timeline.closed(round, false).unwrap();
        records[5..7].iter().for_each(|record| timeline.record(record).unwrap());
        timeline.closed(Round(2), true).unwrap();
        let events = unpacked(timeline);
        let names: Vec<&str> =
            events.iter().filter(|event| event["ph"] != "M").map(|event| event["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["upload", "arrived", "abandoned", "compute"], "client 7 computes at the end");
    }

    #[test]
    fn no_nanosecond_is_lost() {
        assert_eq!(microseconds(1_234_567).to_string(), "1234.567");
        assert_eq!(microseconds(5).to_string(), "0.005");
    }
}
