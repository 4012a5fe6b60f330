//! What rules about clusters are told of the cloud's rounds, and what they say of their decisions.

use crate::policy::{RoundReport, Waited};
use fedgenie_core::id::{EdgeId, Round, Turn};
use fedgenie_core::record::{Outcome, PhaseSpans};
use serde::Serialize;

/// How the part of an edge server in a round of the cloud went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EdgeReport {
    /// Which edge server.
    pub edge: EdgeId,
    /// The selection of the cloud's policy; the cloud's round for rules about clusters.
    pub turn: Turn,
    /// The cloud's round in which it was sent a model.
    pub round: Round,
    /// Models that the cloud has made since.
    pub staleness: u32,
    /// How its part ended.
    pub outcome: Outcome,
    /// How long the cloud waited.
    pub waited: Waited,
    /// The way down, its own rounds, the way up.
    pub phases: PhaseSpans,
}

/// What a rule about clusters is told.
#[derive(Clone, Copy, Debug)]
pub enum EdgeFeedback<'a> {
    /// Of an edge server.
    Edge(EdgeReport),
    /// Of a round of the cloud that is over.
    Round(RoundReport<'a>),
}

/// What a rule weighed when it assigned servers anew. Each list has an entry for each edge server, and is empty if the
/// rule has no such numbers; null where they are not defined.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Weighed {
    /// The cluster with the smallest finite loss but the server's own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alternative: Vec<Option<u32>>,
    /// Features.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<Option<Vec<f64>>>,
    /// Reward of the cluster that the server belonged to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reward: Vec<Option<f64>>,
    /// Of each cluster; NaN of one that cannot be chosen, which is written as null.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scores: Vec<Option<Vec<f64>>>,
}
