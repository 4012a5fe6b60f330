//! Feedback to rules about clusters on the cloud's rounds, and the numbers behind their decisions.

use crate::policy::{RoundReport, Waited};
use fedgenie_core::id::{EdgeId, Round, Turn};
use fedgenie_core::record::{Outcome, PhaseSpans};
use serde::Serialize;

/// How the part of an edge server in a round of the cloud went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EdgeReport {
    /// The edge server.
    pub edge: EdgeId,
    /// The selection of the cloud's policy; the cloud's round for rules about clusters.
    pub turn: Turn,
    /// The cloud's round in which it was sent a model.
    pub round: Round,
    /// Models made by the cloud since then.
    pub staleness: u32,
    /// How its part ended.
    pub outcome: Outcome,
    /// The cloud's wait for it.
    pub waited: Waited,
    /// The way down, its own rounds, the way up.
    pub phases: PhaseSpans,
}

/// Feedback to a rule about clusters.
#[derive(Clone, Copy, Debug)]
pub enum EdgeFeedback<'a> {
    /// An edge server's part in a round.
    Edge(EdgeReport),
    /// A closed round of the cloud.
    Round(RoundReport<'a>),
}

/// Numbers behind an assignment. Each list has an entry for each edge server, and is empty if the rule has no such
/// numbers; undefined numbers are null.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Weighed {
    /// The cluster with the smallest finite loss, the server's own excepted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alternative: Vec<Option<u32>>,
    /// Features.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<Option<Vec<f64>>>,
    /// Reward of the cluster that the server belonged to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reward: Vec<Option<f64>>,
    /// Scores of all clusters; NaN, written as null, for a cluster that cannot be chosen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scores: Vec<Option<Vec<f64>>>,
}
