//! Feedback on a policy's decisions: jobs, updates, rounds. Statistics of updates are computed on request.

use fedgenie_core::id::{ClientId, Round, Turn};
use fedgenie_core::metric::MetricId;
use fedgenie_core::record::{Outcome, PhaseSpans};
use fedgenie_core::state::Stateful;
use fedgenie_core::time::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Feedback on a decision.
#[derive(Clone, Copy, Debug)]
pub enum Feedback<'a> {
    /// One job's outcome, told in the order of arrival; jobs that did not arrive follow in dispatch order.
    Job(JobReport),
    /// An update's report on its training, told when it is aggregated.
    Trained(TrainingReport<'a>),
    /// The round is closed.
    Round(RoundReport<'a>),
}

/// How one job went, as far as the server can tell.
#[derive(Clone, Copy, Debug)]
pub struct JobReport {
    /// The job's client; to the cloud's policy, an edge server.
    pub client: ClientId,
    /// The policy's selection that it belongs to.
    pub turn: Turn,
    /// The server's round in which it was dispatched; under `hierarchical`, the cloud's.
    pub round: Round,
    /// Models made by the server since the one sent to the client.
    pub staleness: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// How long the server waited for it.
    pub waited: Waited,
    /// Time in download, compute and upload until then, pauses included; for a job that arrived, their sum is the wait.
    /// To the cloud's policy: the model's way down, the edge server's rounds, and the way up.
    pub phases: PhaseSpans,
}

/// A server's wait for a job: its latency, or a bound on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// The update arrived after this time.
    Arrived(Span),
    /// It had not arrived when the deadline or timeout, this time after dispatch, was over.
    TimedOut(Span),
    /// It was called off after this time because enough others had arrived: its latency is longer, no more is known.
    CalledOff(Span),
}

impl Waited {
    /// The effective latency: the round's wait for this job. `None` for a job that was called off, which was not
    /// observed.
    pub const fn effective(self) -> Option<Span> {
        match self {
            Self::Arrived(span) | Self::TimedOut(span) => Some(span),
            Self::CalledOff(_) => None,
        }
    }

    /// The time waited, which is the latency itself if the flag is true and a lower bound of it otherwise (a censored
    /// observation).
    pub const fn observed(self) -> (Span, bool) {
        match self {
            Self::Arrived(span) => (span, true),
            Self::TimedOut(span) | Self::CalledOff(span) => (span, false),
        }
    }
}

/// An update's report on its training, and the server's statistics of it.
#[derive(Clone, Copy, Debug)]
pub struct TrainingReport<'a> {
    /// The update's client.
    pub client: ClientId,
    /// The policy's selection that it belongs to.
    pub turn: Turn,
    /// The server's round in which its job was dispatched; under `hierarchical`, the cloud's.
    pub round: Round,
    /// Models made by the server between the one sent and this aggregation.
    pub staleness: u32,
    /// From dispatch to arrival: download, compute and upload, pauses included.
    pub latency: Span,
    /// Examples that the client trained on.
    pub examples: usize,
    /// Mean loss over the first local epoch, each batch as met.
    pub loss: f64,
    /// Root mean square of the losses of single examples, each as first met; if wanted.
    pub loss_rms: Option<f64>,
    /// The task's main measure of the client's own model on validation data, or else test data, negated where smaller
    /// is better; if wanted.
    pub quality: Option<f64>,
    /// Mean absolute difference between the client's trained parameters and those of a model; if wanted.
    pub deviation: Option<f64>,
    /// Euclidean norm of the client's change of all trained parameters; if wanted.
    pub norm: Option<f64>,
    /// The dense parts of the client's model, then its moved rows; if wanted.
    pub update: Option<&'a [f32]>,
    /// The client's change of each trained parameter of the model that it was sent; if wanted.
    pub change: Option<&'a [f32]>,
}

/// Statistics of updates for a policy. Others are not computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// [`TrainingReport::loss_rms`]: one more forward pass over each client's examples.
    pub loss_rms: bool,
    /// [`TrainingReport::quality`]: an evaluation of each update.
    pub quality: bool,
    /// [`TrainingReport::deviation`], and from which model.
    pub deviation: Option<DeviationFrom>,
    /// [`TrainingReport::norm`].
    pub norm: bool,
    /// [`TrainingReport::update`].
    pub update: bool,
    /// [`TrainingReport::change`]: as many numbers as the whole model has, of each update.
    pub change: bool,
    /// [`RoundReport::quality`]: an evaluation of each model that the server makes.
    pub model_quality: bool,
    /// [`RoundReport::edge_accuracy`], and its data: an evaluation of each model that the server makes.
    pub edge_accuracy: Option<AccuracyOn>,
}

impl Wants {
    /// Whether anything of an update beside its losses is wanted.
    pub(crate) const fn looks_at_updates(&self) -> bool {
        self.quality || self.deviation.is_some() || self.norm || self.update || self.change
    }
}

/// The data on which a server's model is evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AccuracyOn {
    /// The server's test examples; all test data where there is one server.
    #[default]
    Test,
    /// The training examples of its clients.
    Train,
}

/// The model that an update is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviationFrom {
    /// The model sent to the client.
    Sent,
    /// The server's new model, made of all updates.
    Aggregated,
}

/// How one round went.
#[derive(Clone, Copy, Debug)]
pub struct RoundReport<'a> {
    /// The policy's last selection before the round closed.
    pub turn: Turn,
    /// The server's round; under `hierarchical`, the cloud's.
    pub round: Round,
    /// Selected clients, in dispatch order.
    pub selected: &'a [ClientId],
    /// From the end of the round before to closing: probes and waiting for a candidate are included. Of an edge server,
    /// from its selection to closing.
    pub duration: Span,
    /// Bytes to this policy's clients since its last report, probes included.
    pub down_bytes: u64,
    /// Bytes from them.
    pub up_bytes: u64,
    /// Metrics measured after the round, if any.
    pub metrics: &'a [(MetricId, f64)],
    /// The quality of the server's models, if wanted; `None` for an edge server.
    pub quality: Option<ModelQuality>,
    /// The accuracy of the server's own models, if wanted and known.
    pub edge_accuracy: Option<EdgeAccuracy>,
}

/// The accuracy of two models in a row of a server, on its own data: the task's main measure, negated where smaller is
/// better. An edge server's model is its average before the cloud's, of the cluster that it trains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Stateful)]
pub struct EdgeAccuracy {
    /// Of the model that it made in its round before; before the first, of the initial one.
    pub before: f64,
    /// Accuracy of the model that it made in this round.
    pub after: f64,
}

/// The task's main measure on validation data, or else test data, negated where smaller is better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelQuality {
    /// Of the model before the round's aggregation: the model sent, where rounds send one.
    pub before: f64,
    /// Quality of the model after it.
    pub after: f64,
}
