//! Recorded rounds in memory, as far as tables of rounds need them.

use fedgenie_core::record::{Record, Regret};
use fedgenie_core::state::State;
use fedgenie_simulator::recorder::{RoundMark, RoundSummary, Sink};
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A recorded round: a line of `rounds.jsonl`, with numbers in the place of lists.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct RecordedRound {
    /// Its number, from 1.
    pub round: u32,
    /// Virtual time of its opening, in seconds.
    pub opened_s: f64,
    /// Virtual time of its closing, in seconds.
    pub closed_s: f64,
    /// Selected clients, each time counted.
    #[serde(deserialize_with = "length")]
    pub selected: u64,
    /// Clients whose update arrived in the round.
    #[serde(deserialize_with = "length")]
    pub arrived: u64,
    /// Clients still under way at its closing, or too stale.
    #[serde(deserialize_with = "length")]
    pub late: u64,
    /// Clients lost before its closing.
    #[serde(deserialize_with = "length")]
    pub dropped: u64,
    /// Whether it left the model as it was.
    #[serde(default)]
    pub abandoned: bool,
    /// Reward of the selected set.
    #[serde(default)]
    pub reward: Option<f64>,
    /// Cumulative regret.
    #[serde(default)]
    pub regret: Regret,
    /// Bytes sent to clients so far.
    pub down_bytes: u64,
    /// Bytes sent by clients so far.
    pub up_bytes: u64,
    /// Metrics by name, if it was evaluated; `None` is not finite.
    #[serde(default)]
    pub metrics: BTreeMap<String, Option<f64>>,
    /// Cluster models, where there are any.
    #[serde(default)]
    pub clusters: Option<ClusterCounts>,
    /// Changes of the data that have taken place, where the scenario has a `shift`.
    #[serde(default)]
    pub shifts: Option<u64>,
}

/// Numbers of cluster models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct ClusterCounts {
    /// Clusters that an edge server belongs to.
    pub active: u64,
    /// Moves of edge servers to another cluster so far.
    pub reassignments: u64,
}

/// The length of a list, whose items are passed over.
fn length<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    struct Length;

    impl<'de> Visitor<'de> for Length {
        type Value = u64;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<u64, A::Error> {
            let mut length = 0;
            while items.next_element::<IgnoredAny>()?.is_some() {
                length += 1;
            }
            Ok(length)
        }
    }

    deserializer.deserialize_seq(Length)
}

impl RecordedRound {
    fn of(summary: &RoundSummary<'_>) -> Self {
        let jobs = &summary.jobs;
        let metrics = summary.metrics.iter();
        Self {
            round: summary.round.0,
            opened_s: summary.opened.seconds(),
            closed_s: summary.closed.seconds(),
            selected: jobs.selected.len() as u64,
            arrived: jobs.arrived.len() as u64,
            late: jobs.late.len() as u64,
            dropped: jobs.dropped.len() as u64,
            abandoned: summary.is_abandoned,
            reward: summary.reward,
            regret: summary.regret,
            down_bytes: summary.down_bytes,
            up_bytes: summary.up_bytes,
            metrics: metrics
                .map(|(id, value)| (id.to_string(), Some(*value).filter(|value| value.is_finite())))
                .collect(),
            clusters: summary.clusters.map(|clusters| ClusterCounts {
                active: clusters.active() as u64,
                reassignments: clusters.reassignments,
            }),
            shifts: summary.shifts.map(|shifts| shifts as u64),
        }
    }
}

/// Room for rounds of runs that are carried out together. Rounds of runs for which none is left are in their files
/// alone.
#[derive(Debug)]
pub struct Memory {
    left: AtomicUsize,
}

impl Memory {
    /// Room for so many rounds, of about 200 bytes.
    pub const fn of_rounds(most: usize) -> Self {
        Self { left: AtomicUsize::new(most) }
    }

    fn takes_one(&self) -> bool {
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}

/// A sink that keeps rounds as well, from the first to the last or none.
pub(super) struct Keeper<'a, S> {
    sink: &'a mut S,
    memory: Option<&'a Memory>,
    rounds: Vec<RecordedRound>,
}

impl<'a, S> Keeper<'a, S> {
    pub const fn new(sink: &'a mut S, memory: Option<&'a Memory>) -> Self {
        Self { sink, memory, rounds: Vec::new() }
    }

    /// The rounds, if all of them were kept.
    pub fn rounds(self) -> Option<Vec<RecordedRound>> {
        self.memory.map(|_| self.rounds)
    }
}

impl<S: Sink> Sink for Keeper<'_, S> {
    fn record(&mut self, record: &Record<'_>) -> io::Result<()> {
        self.sink.record(record)
    }

    fn round(&mut self, summary: &RoundSummary<'_>, is_recorded: bool, mark: &RoundMark) -> io::Result<()> {
        if let Some(memory) = self.memory.filter(|_| is_recorded) {
            if memory.takes_one() {
                self.rounds.push(RecordedRound::of(summary));
            } else {
                memory.left.fetch_add(self.rounds.len(), Ordering::Relaxed);
                (self.memory, self.rounds) = (None, Vec::new());
            }
        }
        self.sink.round(summary, is_recorded, mark)
    }

    fn wants_checksums(&self) -> bool {
        self.sink.wants_checksums()
    }

    fn save(&mut self, state: &mut State<'_>) -> io::Result<()> {
        self.sink.save(state)
    }
}
