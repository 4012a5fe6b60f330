//! What goes into an aggregation: work that is still to be trained, or the models of edge servers.

use crate::policy::{TrainingReport, Wants};
use crate::protocol::Combine;
use crate::run::jobs::{Job, Terms};
use fedgenie_core::id::{ClientId, EdgeId, JobNumber, Round, Turn};
use fedgenie_core::state::Stateful;
use fedgenie_core::time::Span;
use fedgenie_learning::algorithm::JobMemory;
use fedgenie_learning::layout::{Layout, Update};
use fedgenie_learning::learned::Arrival;
use fedgenie_learning::task::{Job as TaskJob, ProbeKind};
use fedgenie_learning::training::Assignment;
use std::sync::Arc;

/// What a client begins its job with.
#[derive(Clone, Debug)]
pub(in crate::run) struct Sent {
    /// The model it was sent.
    pub model: Arc<[f32]>,
    /// What it kept at that moment.
    pub private: Option<Arc<[f32]>>,
    /// What it was sent and remembered of the algorithm.
    pub memory: JobMemory,
    /// The cluster of the model.
    pub cluster: u32,
}

/// What a client has to compute.
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
    /// Size of the update that travelled.
    pub up_bytes: u64,
    /// From dispatch to arrival.
    pub latency: Span,
}

impl Work {
    /// The work of a job that was sent a model.
    pub fn of(job: &Job, staleness: u32, staleness_weight: f64) -> Option<Self> {
        let Job { client, turn, round, number, transfer: [_, up_bytes], .. } = *job;
        let sent = job.sent.clone()?;
        let latency = job.arrived_at.map_or(Span::ZERO, |arrived| arrived - job.dispatched);
        let Terms { weight, epochs } = job.terms;
        Some(Self { client, turn, round, number, sent, staleness, staleness_weight, weight, epochs, up_bytes, latency })
    }

    /// The work as the task and the algorithm see it.
    pub fn assignment(&self) -> Assignment<'_> {
        let Self { client, round, number, ref sent, epochs, .. } = *self;
        let private = sent.private.as_deref();
        let job = TaskJob { client, round, number, start: &sent.model, private, epochs, correction: None };
        Assignment { job, memory: sent.memory.clone() }
    }
}

/// What is to be found out about updates.
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

/// What an update said about its training, and what was found in it.
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
    pub change: Option<Vec<f32>>,
    /// What came with the update; empty if that is not wanted.
    pub answer: Vec<f64>,
    /// From dispatch to arrival.
    pub latency: Span,
}

impl Trained {
    /// What a policy is told, with the update if it is given.
    pub fn report<'a>(&'a self, update: Option<&'a [f32]>) -> TrainingReport<'a> {
        let Self { client, turn, round, staleness, examples, loss, loss_rms, quality, deviation, latency, .. } = *self;
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
            update,
            change,
        }
    }
}

/// An edge server's model, for the cloud.
#[derive(Debug)]
pub(in crate::run) struct EdgeModel {
    pub edge: EdgeId,
    pub cluster: u32,
    /// Of all its clients.
    pub examples: usize,
    pub model: Arc<[f32]>,
    /// The rows of tables that its clients moved.
    pub rows: Vec<u32>,
    /// The clients whose updates are in it, in their order in each of its rounds.
    pub arrived: Vec<ClientId>,
    /// Which of the server's models, where several may be taken in at once.
    pub number: JobNumber,
    /// The model that its changes are counted from; the present one if it is none.
    pub start: Option<Arc<[f32]>>,
    pub staleness_weight: f64,
}

impl EdgeModel {
    /// What of the model travels: its dense parts, and the rows that were moved.
    pub fn part(&self, layout: &Layout) -> Update {
        let mut part = Update { rows: self.rows.clone(), ..Update::default() };
        part.take(layout, &self.model);
        part
    }

    /// `part` of it, for folding. The cloud numbers edge servers as if they were clients.
    pub fn arrival<'a>(&'a self, part: &'a Update, starts: &'a [Arc<[f32]>]) -> Arrival<'a> {
        Arrival {
            client: ClientId(self.edge.0),
            number: self.number,
            cluster: self.cluster,
            examples: self.examples,
            age: self.staleness_weight,
            weight: None,
            rate: None,
            start: self.start.as_deref().unwrap_or(&*starts[self.cluster as usize]),
            update: part,
        }
    }
}

/// What a round takes into the global model.
#[derive(Debug)]
pub(in crate::run) enum Intake {
    Nothing,
    /// Updates that are still to be trained, and what of them is averaged.
    Updates(Vec<Work>, Combine),
    EdgeModels(Vec<EdgeModel>),
}
