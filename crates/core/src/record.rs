//! The closed vocabulary of everything observable in a run.
//!
//! A run is the sequence of its records. Files, digests and metrics are made from records alone, so that shown and
//! compared values cannot differ.

mod encode;
mod words;

use crate::id::{ClientId, EdgeId, Round, Turn};
use crate::metric::MetricId;
use crate::state::Stateful;
use crate::time::{Span, VirtualTime};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The version of this vocabulary and of its canonical bytes.
pub const FORMAT_VERSION: u32 = 2;

/// The three phases of a client's job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Stateful)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The model travels from the server to the client.
    #[default]
    Download,
    /// The client trains.
    Compute,
    /// The update travels from the client to the server.
    Upload,
}

impl Phase {
    /// All phases in their order.
    pub const ALL: [Self; 3] = [Self::Download, Self::Compute, Self::Upload];

    /// The phase's index in arrays by phase.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The phase after this one.
    pub const fn next(self) -> Option<Self> {
        match self {
            Self::Download => Some(Self::Compute),
            Self::Compute => Some(Self::Upload),
            Self::Upload => None,
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Download => "download",
            Self::Compute => "compute",
            Self::Upload => "upload",
        })
    }
}

/// Why a job was dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Stateful)]
#[serde(rename_all = "kebab-case")]
pub enum DropReason {
    /// The dropout hazard of the phase struck.
    #[default]
    Hazard,
    /// The device went away, and jobs of such devices are lost.
    Away,
    /// The phase would never end: the device is away for good, or nothing moves on its link any more.
    Stalled,
    /// The phone's battery was empty.
    Battery,
}

/// How a job ended. Every dispatched job ends in exactly one outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The update arrived before the round closed and counts.
    Arrived,
    /// The job was still under way when the round closed.
    Late,
    /// The client was lost.
    Dropped {
        /// In which phase.
        phase: Phase,
        /// Why.
        reason: DropReason,
    },
}

/// Cumulative regret under the meters that the scenario asks for, in units of reward.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, Stateful)]
pub struct Regret {
    /// Against mean speeds; never negative for a set of the size of the genie's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// With this round's actual latencies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub realised: Option<f64>,
    /// With the expected minimum of the speeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<f64>,
    /// As `expected`, against the best set for the expected minimum itself.
    #[serde(rename = "expected-exact", skip_serializing_if = "Option::is_none")]
    pub expected_exact: Option<f64>,
    /// Against the best set in hindsight, for which unselected clients train too. Depends on trained values and belongs
    /// to no digest.
    #[serde(default, rename = "counterfactual", skip_serializing_if = "Option::is_none")]
    pub hindsight: Option<f64>,
    /// Regret of assignments of edge servers to clusters against the smallest losses. Depends on trained values and
    /// belongs to no digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignment: Option<f64>,
}

impl Regret {
    /// The meters' names and values, in the order of the struct.
    pub fn entries(&self) -> [(&'static str, Option<f64>); 6] {
        [
            ("mean", self.mean),
            ("realised", self.realised),
            ("expected", self.expected),
            ("expected-exact", self.expected_exact),
            ("counterfactual", self.hindsight),
            ("assignment", self.assignment),
        ]
    }
}

/// One observable fact.
#[derive(Clone, Copy, Debug)]
pub enum Record<'a> {
    /// A round began, with its selection in dispatch order.
    Opened {
        /// The round.
        round: Round,
        /// When the selection was made.
        time: VirtualTime,
        /// The selection.
        selected: &'a [ClientId],
    },
    /// A server that keeps clients busy one by one selected clients.
    Selected {
        /// The round.
        round: Round,
        /// When.
        time: VirtualTime,
        /// The selection, in dispatch order.
        selected: &'a [ClientId],
    },
    /// An edge server chose clients.
    EdgeSelected {
        /// The edge server.
        edge: EdgeId,
        /// Its turn.
        turn: Turn,
        /// When.
        time: VirtualTime,
        /// The selection, in dispatch order.
        selected: &'a [ClientId],
    },
    /// A cloud round began: the edge servers that take part.
    CloudOpened {
        /// The round.
        round: Round,
        /// When.
        time: VirtualTime,
        /// The edge servers, in dispatch order.
        edges: &'a [EdgeId],
    },
    /// The model has travelled between the cloud and an edge server.
    Travelled {
        /// The edge server.
        edge: EdgeId,
        /// The cloud's round.
        round: Round,
        /// Whether it came from the cloud.
        down: bool,
        /// When it was there.
        time: VirtualTime,
    },
    /// An edge server closed one of its rounds.
    EdgeClosed {
        /// The edge server.
        edge: EdgeId,
        /// The edge server's turn.
        turn: Turn,
        /// When.
        time: VirtualTime,
    },
    /// A job's device was away. Recorded when the phase ends.
    Paused {
        /// Whose job.
        client: ClientId,
        /// The round in which the job was dispatched.
        round: Round,
        /// The phase that waited.
        phase: Phase,
        /// When the device went away.
        from: VirtualTime,
        /// When it was back, or the phase was cut.
        until: VirtualTime,
    },
    /// A client was lost with its job. The server learns of it when it stops waiting.
    Lost {
        /// Whose job.
        client: ClientId,
        /// The round in which the job was dispatched.
        round: Round,
        /// The phase it was in.
        phase: Phase,
        /// Why.
        reason: DropReason,
        /// When.
        time: VirtualTime,
    },
    /// A job finished a phase.
    PhaseEnded {
        /// Whose job.
        client: ClientId,
        /// The round in which the job was dispatched.
        round: Round,
        /// The phase that ended.
        phase: Phase,
        /// When.
        time: VirtualTime,
    },
    /// A job's outcome is settled.
    JobEnded {
        /// Whose job.
        client: ClientId,
        /// The round in which the job was dispatched.
        round: Round,
        /// How it ended.
        outcome: Outcome,
        /// When.
        time: VirtualTime,
    },
    /// A late job that the server went on waiting for delivered its update (or was lost: `delivered` is false).
    StaleEnded {
        /// Whose job.
        client: ClientId,
        /// The round in which the job was dispatched.
        round: Round,
        /// Whether the update arrived.
        delivered: bool,
        /// When.
        time: VirtualTime,
    },
    /// A round closed.
    Closed {
        /// The round.
        round: Round,
        /// When.
        time: VirtualTime,
        /// The reward of the round, where the scenario defines one.
        reward: Option<f64>,
        /// Cumulative regret including this round.
        regret: Regret,
        /// Bytes sent to clients so far.
        down_bytes: u64,
        /// Bytes sent by clients so far.
        up_bytes: u64,
    },
    /// A new global model: its parameters. Belongs to the `model` digest.
    Model {
        /// The round whose updates it contains.
        round: Round,
        /// The flat parameter vector.
        parameters: &'a [f32],
    },
    /// A client's private state after its update was aggregated. Belongs to the `model` digest.
    Private {
        /// The round of the aggregation.
        round: Round,
        /// Whose.
        client: ClientId,
        /// The state.
        values: &'a [f32],
    },
    /// A metric of the global model. Belongs to the `model` digest.
    Metric {
        /// The round after which it was measured.
        round: Round,
        /// The metric.
        metric: MetricId,
        /// Its value.
        value: f64,
    },
}

/// Which digest a record belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Events, selections, latencies and regret.
    Timeline,
    /// Records that depend on trained values.
    Model,
}

impl Record<'_> {
    /// The digest this record belongs to.
    pub const fn stream(&self) -> Stream {
        match self {
            Self::Model { .. } | Self::Private { .. } | Self::Metric { .. } => Stream::Model,
            _ => Stream::Timeline,
        }
    }

    /// When it became known; `None` for a record of the round as a whole.
    pub const fn time(&self) -> Option<VirtualTime> {
        match *self {
            Self::Opened { time, .. }
            | Self::Selected { time, .. }
            | Self::EdgeSelected { time, .. }
            | Self::CloudOpened { time, .. }
            | Self::Travelled { time, .. }
            | Self::EdgeClosed { time, .. }
            | Self::Lost { time, .. }
            | Self::PhaseEnded { time, .. }
            | Self::JobEnded { time, .. }
            | Self::StaleEnded { time, .. }
            | Self::Closed { time, .. } => Some(time),
            Self::Paused { .. } | Self::Model { .. } | Self::Private { .. } | Self::Metric { .. } => None,
        }
    }

    /// The record without its lists.
    pub const fn brief(&self) -> Record<'static> {
        match *self {
            Self::Opened { round, time, .. } => Record::Opened { round, time, selected: &[] },
            Self::Selected { round, time, .. } => Record::Selected { round, time, selected: &[] },
            Self::EdgeSelected { edge, turn, time, .. } => Record::EdgeSelected { edge, turn, time, selected: &[] },
            Self::CloudOpened { round, time, .. } => Record::CloudOpened { round, time, edges: &[] },
            Self::Model { round, .. } => Record::Model { round, parameters: &[] },
            Self::Private { round, client, .. } => Record::Private { round, client, values: &[] },
            Self::Travelled { edge, round, down, time } => Record::Travelled { edge, round, down, time },
            Self::EdgeClosed { edge, turn, time } => Record::EdgeClosed { edge, turn, time },
            Self::Paused { client, round, phase, from, until } => Record::Paused { client, round, phase, from, until },
            Self::Lost { client, round, phase, reason, time } => Record::Lost { client, round, phase, reason, time },
            Self::PhaseEnded { client, round, phase, time } => Record::PhaseEnded { client, round, phase, time },
            Self::JobEnded { client, round, outcome, time } => Record::JobEnded { client, round, outcome, time },
            Self::StaleEnded { client, round, delivered, time } => {
                Record::StaleEnded { client, round, delivered, time }
            }
            Self::Closed { round, time, reward, regret, down_bytes, up_bytes } => {
                Record::Closed { round, time, reward, regret, down_bytes, up_bytes }
            }
            Self::Metric { round, metric, value } => Record::Metric { round, metric, value },
        }
    }
}

/// Span of a job's phases, in the order of [`Phase::ALL`].
pub type PhaseSpans = [Span; 3];
