//! Intake of an aggregation: work to be trained, or the models of edge servers.

use super::EdgeState;
use crate::policy::{TrainingReport, Wants};
use crate::protocol::Combine;
use crate::run::timeline::{Job, Terms};
use fedgenie_core::id::{ClientId, JobNumber, Round, Turn};
use fedgenie_core::state::Stateful;
use fedgenie_core::time::Span;
use fedgenie_learning::algorithm::Algorithm;
use fedgenie_learning::layout::{Layout, Parcel, Update};
use fedgenie_learning::learned::{Arrival, Sent};
use fedgenie_learning::task::{Job as TaskJob, ProbeKind};
use fedgenie_learning::training::Assignment;
use std::sync::Arc;

/// A client's training work.
#[derive(Clone, Debug)]
pub(in crate::run) struct Work {
    pub client: ClientId,
    pub turn: Turn,
    pub round: Round,
    pub number: JobNumber,
    pub sent: Sent,
    /// Models that were made since.
    pub staleness: u32,
    pub staleness_weight: f64,
    /// The coefficient that the policy gave its change.
    pub weight: Option<f64>,
    /// The epochs that the policy chose.
    pub epochs: Option<u32>,
    /// How many clients were selected together.
    pub selected: u32,
    /// Size of the update that travelled.
    pub up_bytes: u64,
    /// From dispatch to arrival.
    pub latency: Span,
}

impl Work {
    /// The work of a job that was sent a model.
    pub fn of(job: &Job, staleness: u32, staleness_weight: f64) -> Option<Self> {
        let Job { client, turn, round, number, selected, transfer: [_, up_bytes], .. } = *job;
        let sent = job.sent.clone()?;
        let latency = job.arrived_at.map_or(Span::ZERO, |arrived| arrived - job.dispatched);
        let Terms { weight, epochs } = job.terms;
        Some(Self {
            client,
            turn,
            round,
            number,
            sent,
            staleness,
            staleness_weight,
            weight,
            epochs,
            selected,
            up_bytes,
            latency,
        })
    }

    /// The bytes that its update moves, if it is such a one.
    pub fn bytes_of(&self, algorithm: &Algorithm, update: Parcel) -> u64 {
        let [_, up] = algorithm.bytes([update.bytes(); 2], [update.numbers; 2], self.selected as usize);
        up
    }

    /// The work as the task and the algorithm see it.
    pub fn assignment(&self) -> Assignment<'_> {
        let Self { client, round, number, ref sent, epochs, .. } = *self;
        let private = sent.private.as_deref();
        let job =
            TaskJob { client, round, number, start: &sent.model, private, epochs, correction: None, contrast: None };
        Assignment { job, memory: sent.memory.clone() }
    }
}

/// Statistics of updates that somebody wants.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::run) struct Sought {
    pub wants: Wants,
    /// The question that each brings the answer to.
    pub answer: Option<ProbeKind>,
    /// Whether subsets of them are evaluated.
    pub subsets: bool,
}

impl Sought {
    /// Bytes of the numbers that each update brings.
    pub fn bytes(self) -> u64 {
        self.answer.map_or(0, |kind| 8 * kind.numbers as u64)
    }
}

/// An update's report of its training, and its statistics.
#[derive(Clone, Debug, Default, Stateful)]
pub(in crate::run) struct Trained {
    pub client: ClientId,
    pub turn: Turn,
    pub round: Round,
    pub staleness: u32,
    pub examples: usize,
    /// Mean loss over the first local epoch.
    pub loss: f64,
    pub loss_rms: Option<f64>,
    pub quality: Option<f64>,
    pub deviation: Option<f64>,
    pub norm: Option<f64>,
    pub change: Option<Vec<f32>>,
    /// The answer that came with the update; empty if none is wanted.
    pub answer: Vec<f64>,
    /// From dispatch to arrival.
    pub latency: Span,
}

impl Trained {
    /// The report to a policy, with the update if it is given.
    pub fn report<'a>(&'a self, update: Option<&'a [f32]>) -> TrainingReport<'a> {
        let Self {
            client, turn, round, staleness, examples, loss, loss_rms, quality, deviation, norm, latency, ..
        } = *self;
        let change = self.change.as_deref();
        TrainingReport {
            client,
            turn,
            round,
            staleness,
            latency,
            examples,
            loss,
            loss_rms,
            quality,
            deviation,
            norm,
            update,
            change,
        }
    }
}

/// An edge server's model, for the cloud.
#[derive(Debug)]
pub(in crate::run) struct EdgeModel<'w> {
    /// The server and its part in the round.
    pub of: EdgeState<'w>,
    /// Of all its clients.
    pub examples: usize,
    pub model: Arc<[f32]>,
    /// Which of the server's models, where several may be taken in at once.
    pub number: JobNumber,
    /// The model that its changes are counted from; the present one if `None`.
    pub start: Option<Arc<[f32]>>,
    pub staleness_weight: f64,
}

impl EdgeModel<'_> {
    /// The part that travels: dense parts, and the rows that were moved.
    pub fn part(&self, layout: &Layout) -> Update {
        let mut part = Update { rows: self.of.rows.clone(), ..Update::default() };
        part.take(layout, &self.model);
        part
    }

    /// `part` of it, for folding. The cloud numbers edge servers as if they were clients.
    pub fn arrival<'a>(&'a self, part: &'a Update, starts: &'a [Arc<[f32]>]) -> Arrival<'a> {
        let EdgeState { edge, cluster, .. } = self.of;
        Arrival {
            client: ClientId(edge.0),
            number: self.number,
            cluster,
            examples: self.examples,
            age: self.staleness_weight,
            weight: None,
            rate: None,
            start: self.start.as_deref().unwrap_or(&*starts[cluster as usize]),
            update: part,
        }
    }
}

/// Intake of a round.
#[derive(Debug)]
pub(in crate::run) enum Intake<'w> {
    Nothing,
    /// Updates to be trained, and the part of them that is averaged.
    Updates(Vec<Work>, Combine),
    EdgeModels(Vec<EdgeModel<'w>>),
}
