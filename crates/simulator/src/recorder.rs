//! Destinations of records: digests, and the files of a run's folder.

mod decisions;
mod digest;
mod event;
mod files;
mod packed;
mod record_file;
mod timeline;

pub use decisions::RoundDecisions;
pub use digest::{Chain, Digests, RoundMark};
pub use event::event_json;
pub use files::{EVENTS_FILE, MARKS_FILE, ROUNDS_FILE, RunFileOptions, RunFiles, TIMELINE_FILE, read_marks};
pub use timeline::Timeline;

use crate::clusters::Weighed;
use crate::policy::Selection;
use fedgenie_core::id::{ClientId, EdgeId, Round, Turn};
use fedgenie_core::metric::MetricId;
use fedgenie_core::record::{DropReason, Phase, Record, Regret};
use fedgenie_core::state::{State, Stateful};
use fedgenie_core::time::VirtualTime;
use fedgenie_learning::algorithm::privacy::PrivacyEntry;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::io;

/// A job whose client was lost, and its cost by then.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DroppedJob {
    /// The job's client.
    pub client: ClientId,
    /// The phase in which the client was lost.
    pub phase: Phase,
    /// Why.
    pub reason: DropReason,
    /// Time at work in each phase, in seconds.
    pub spent_s: [f64; 3],
    /// Bytes that the client had received.
    pub down_bytes: u64,
    /// Bytes that the client had sent.
    pub up_bytes: u64,
}

/// The jobs of a round by their outcome.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoundJobs {
    /// The selected clients, in dispatch order.
    pub selected: Vec<ClientId>,
    /// Clients whose update arrived, in order of arrival.
    pub arrived: Vec<ClientId>,
    /// Clients still under way at the boundary, in dispatch order.
    pub late: Vec<ClientId>,
    /// Lost clients, in dispatch order.
    pub dropped: Vec<DroppedJob>,
    /// Late updates of earlier rounds that joined this aggregation: client and round of dispatch.
    pub joined: Vec<(ClientId, Round)>,
    /// Late jobs of earlier rounds whose client was lost since, and their round of dispatch.
    pub lost_late: Vec<(DroppedJob, Round)>,
    /// Edge servers that were sent a model, in dispatch order.
    pub edges: Vec<EdgeId>,
    /// Rounds of edge servers that closed.
    pub edge_rounds: u64,
    /// Edge servers one of whose rounds left their model as it was, in order of time.
    pub abandoned_edges: Vec<EdgeId>,
    /// Models of edge servers that arrived, where these do not wait for each other, in order of arrival.
    pub edge_models: Vec<ArrivedModel>,
    /// Policies' other decisions about the selected clients.
    pub decisions: RoundDecisions,
}

/// A model of an edge server at a cloud that takes in models as they arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ArrivedModel {
    /// The edge server.
    pub server: EdgeId,
    /// Models made by the cloud since the one sent to the server.
    pub staleness: u32,
    /// Whether it was too old to be used.
    pub late: bool,
}

impl RoundJobs {
    /// Empties all lists and keeps their memory.
    pub fn clear(&mut self) {
        let Self {
            selected,
            arrived,
            late,
            dropped,
            joined,
            lost_late,
            edges,
            edge_rounds,
            abandoned_edges,
            edge_models,
            decisions,
        } = self;
        selected.clear();
        arrived.clear();
        late.clear();
        dropped.clear();
        joined.clear();
        lost_late.clear();
        edges.clear();
        *edge_rounds = 0;
        abandoned_edges.clear();
        edge_models.clear();
        decisions.clear();
    }

    /// Adds a selection.
    pub fn select(&mut self, selection: &Selection) {
        let before = self.selected.len();
        self.selected.extend(&**selection);
        self.decisions.add(before, selection);
    }
}

/// Statistics of the updates of a round, in the order in which they were aggregated.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RoundUpdates {
    /// The updates' clients.
    pub clients: Vec<ClientId>,
    /// Examples that each trained on.
    pub examples: Vec<usize>,
    /// Mean loss over the first local epoch.
    pub loss: Vec<f64>,
    /// Root mean square of the losses of single examples; null if the task does not know it.
    pub loss_rms: Vec<Option<f64>>,
    /// From dispatch to arrival, in seconds.
    pub latency_s: Vec<f64>,
}

impl RoundUpdates {
    /// Empties all lists and keeps their memory.
    pub fn clear(&mut self) {
        let Self { clients, examples, loss, loss_rms, latency_s } = self;
        clients.clear();
        examples.clear();
        loss.clear();
        loss_rms.clear();
        latency_s.clear();
    }
}

/// Values of a selection and of the best set that could have been chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct HindsightRound {
    /// Number of the selection among its server's, where a round may have several.
    pub turn: Option<Turn>,
    /// The edge server; `None` where there is one server.
    pub server: Option<EdgeId>,
    /// The best set.
    pub best: Vec<ClientId>,
    /// Its value.
    pub best_value: f64,
    /// The value of the policy's set.
    pub own_value: f64,
    /// For a utility of sets: what each candidate adds to a set on average, if known.
    pub contributions: Vec<(ClientId, f64)>,
}

impl HindsightRound {
    /// The selections of a round: one object, of lists with an entry per selection where there may be several.
    fn to_json(selections: &[Self]) -> Value {
        let clients = |selection: &Self| json!(selection.contributions.iter().map(|of| of.0).collect::<Vec<_>>());
        let contributions = |selection: &Self| json!(selection.contributions.iter().map(|of| of.1).collect::<Vec<_>>());
        let has_contributions = selections.iter().any(|selection| !selection.contributions.is_empty());
        if let [selection @ Self { turn: None, best, best_value, own_value, .. }] = selections {
            let mut object = json!({ "best": best, "best_value": best_value, "own_value": own_value });
            if has_contributions {
                object["clients"] = clients(selection);
                object["contributions"] = contributions(selection);
            }
            return object;
        }
        let list = |of: &dyn Fn(&Self) -> Value| Value::Array(selections.iter().map(of).collect());
        let mut object = Map::new();
        if selections.iter().any(|selection| selection.server.is_some()) {
            object.insert("server".to_owned(), list(&|selection| json!(selection.server)));
        }
        object.insert("turn".to_owned(), list(&|selection| json!(selection.turn)));
        object.insert("best".to_owned(), list(&|selection| json!(selection.best)));
        object.insert("best_value".to_owned(), list(&|selection| json!(selection.best_value)));
        object.insert("own_value".to_owned(), list(&|selection| json!(selection.own_value)));
        if has_contributions {
            object.insert("clients".to_owned(), list(&clients));
            object.insert("contributions".to_owned(), list(&contributions));
        }
        Value::Object(object)
    }
}

/// The clusters of edge servers.
#[derive(Clone, Debug, Default, PartialEq, Stateful)]
pub struct ClusterState {
    /// The cluster of each edge server in the next round.
    #[state(each)]
    pub assignment: Vec<u32>,
    /// How many servers have moved so far, each move counted.
    pub reassignments: u64,
    /// The numbers behind the assignment, if one was due after this round.
    #[state(skip = "recorded with the round")]
    pub reassign: Option<Reassignment>,
}

/// A decision about all edge servers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reassignment {
    /// For each edge server, the loss of each cluster's model; `None` for losses that were not asked for. Empty if none
    /// was.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<Vec<Option<f64>>>,
    /// The rule's numbers.
    #[serde(flatten)]
    pub weighed: Weighed,
    /// The cluster of each edge server before.
    pub from: Vec<u32>,
}

impl ClusterState {
    /// Number of clusters with at least one server.
    pub fn active(&self) -> usize {
        self.assignment.iter().collect::<BTreeSet<_>>().len()
    }

    fn to_json(&self) -> Value {
        json!({ "assignment": self.assignment, "active": self.active(), "reassignments": self.reassignments })
    }

    /// The numbers behind the assignment, with the servers' moves.
    fn reassign_json(&self) -> Option<Value> {
        let mut object = json!(self.reassign.as_ref()?);
        object["to"] = json!(self.assignment);
        Some(object)
    }
}

/// A server in a round, where its models are measured on its own data. Numbers are NaN if unknown.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerRound {
    /// The server; 0 where there is one.
    pub server: EdgeId,
    /// The cluster of its model, where there are clusters.
    pub cluster: Option<u32>,
    /// Training examples of its clients.
    pub examples: usize,
    /// Its test examples, if the task deals them to servers.
    pub test_examples: Option<usize>,
    /// The main measure of its model after the round on its test examples, negated where smaller is better.
    pub accuracy: f64,
    /// Loss on the same data.
    pub loss: f64,
    /// As `accuracy`, for its own model before the cloud's average, on the data that its policy asks for.
    pub edge_accuracy: f64,
}

impl ServerRound {
    fn to_json(&self) -> Value {
        let Self { server, cluster, examples, test_examples, accuracy, loss, edge_accuracy } = self;
        json!({
            "server": server, "cluster": cluster, "examples": examples, "test_examples": test_examples,
            "accuracy": accuracy, "loss": loss, "edge_accuracy": edge_accuracy
        })
    }
}

/// One closed round, for `rounds.jsonl` and for summaries.
#[derive(Clone, Copy, Debug)]
pub struct RoundSummary<'a> {
    /// The round.
    pub round: Round,
    /// When it opened.
    pub opened: VirtualTime,
    /// When it closed.
    pub closed: VirtualTime,
    /// The outcomes of its jobs.
    pub jobs: &'a RoundJobs,
    /// Whether the round had fewer updates than its quorum: the model stayed as it was.
    pub is_abandoned: bool,
    /// The round's reward.
    pub reward: Option<f64>,
    /// Cumulative regret.
    pub regret: Regret,
    /// Metrics measured after the round.
    pub metrics: &'a [(MetricId, f64)],
    /// Bytes to clients so far.
    pub down_bytes: u64,
    /// Bytes from clients so far.
    pub up_bytes: u64,
    /// Bytes from and to the cloud so far, where there are edge servers.
    pub edge_bytes: (u64, u64),
    /// Selections per named group since the last recorded round.
    pub group_selections: &'a [(String, u64)],
    /// Values of the round's selections in hindsight, if they were judged.
    pub hindsight: &'a [HindsightRound],
    /// The clusters of the next round, where there are cluster models.
    pub clusters: Option<&'a ClusterState>,
    /// The servers, if they were evaluated or a policy asks for the accuracy of their models.
    pub servers: Option<&'a [ServerRound]>,
    /// Explanations of policies' decisions, one object for each selection, if recorded.
    pub explain: Option<&'a [Map<String, Value>]>,
    /// Statistics of updates, if recorded.
    pub updates: Option<&'a RoundUpdates>,
    /// How many changes of the data have taken place, where the scenario has a `shift`.
    pub shifts: Option<usize>,
    /// The hostile clients among the selected, ascending, where there are hostile clients.
    pub adversaries: Option<&'a [ClientId]>,
    /// What the accountant of privacy says, where there is one.
    pub privacy: Option<&'a PrivacyEntry>,
    /// The level of each client's battery in joules when the round closed, null without a battery, if recorded.
    pub levels_j: Option<&'a [Option<f64>]>,
}

impl RoundSummary<'_> {
    /// The round as one JSON object.
    pub fn to_json(&self) -> Value {
        let ids = |clients: &[ClientId]| clients.iter().map(|client| json!(client.0)).collect::<Vec<_>>();
        let RoundJobs { selected, arrived, late, dropped, joined, lost_late, edges, edge_models, decisions, .. } =
            self.jobs;
        let mut object = Map::new();
        object.insert("round".to_owned(), json!(self.round.0));
        object.insert("opened_s".to_owned(), json!(self.opened.seconds()));
        object.insert("closed_s".to_owned(), json!(self.closed.seconds()));
        object.insert("selected".to_owned(), json!(ids(selected)));
        object.extend(decisions.columns());
        object.extend(self.shifts.map(|shifts| ("shifts".to_owned(), json!(shifts))));
        object.extend(self.adversaries.map(|hostile| ("adversaries".to_owned(), json!(ids(hostile)))));
        object.extend(self.privacy.map(|privacy| ("privacy".to_owned(), json!(privacy))));
        object.insert("arrived".to_owned(), json!(ids(arrived)));
        object.insert("late".to_owned(), json!(ids(late)));
        object.insert("dropped".to_owned(), json!(dropped));
        if !joined.is_empty() {
            let joined: Vec<Value> =
                joined.iter().map(|(client, round)| json!({ "client": client.0, "round": round.0 })).collect();
            object.insert("joined".to_owned(), json!(joined));
        }
        if !lost_late.is_empty() {
            let lost: Vec<Value> =
                lost_late.iter().map(|(job, round)| json!({ "job": job, "round": round.0 })).collect();
            object.insert("lost_late".to_owned(), json!(lost));
        }
        if !edge_models.is_empty() {
            object.insert("edge_models".to_owned(), json!(edge_models));
        }
        if !edges.is_empty() || !edge_models.is_empty() {
            object.insert("edges".to_owned(), json!(edges));
            let (down_bytes, up_bytes) = self.edge_bytes;
            object.insert("edge_tier".to_owned(), json!({ "down_bytes": down_bytes, "up_bytes": up_bytes }));
        }
        let at_edges = &self.jobs.abandoned_edges;
        object.extend((!at_edges.is_empty()).then(|| ("abandoned_edges".to_owned(), json!(at_edges))));
        object.extend(self.is_abandoned.then(|| ("abandoned".to_owned(), json!(true))));
        if let Some(reward) = self.reward {
            object.insert("reward".to_owned(), json!(reward));
        }
        object.insert("regret".to_owned(), json!(self.regret));
        let metrics: Map<String, Value> =
            self.metrics.iter().map(|(id, value)| (id.to_string(), json!(value))).collect();
        object.insert("metrics".to_owned(), Value::Object(metrics));
        object.insert("down_bytes".to_owned(), json!(self.down_bytes));
        object.insert("up_bytes".to_owned(), json!(self.up_bytes));
        if !self.group_selections.is_empty() {
            let counts: Map<String, Value> =
                self.group_selections.iter().map(|(name, count)| (name.clone(), json!(count))).collect();
            object.insert("group_selections".to_owned(), Value::Object(counts));
        }
        if !self.hindsight.is_empty() {
            object.insert("hindsight".to_owned(), HindsightRound::to_json(self.hindsight));
        }
        if let Some(clusters) = self.clusters {
            object.insert("clusters".to_owned(), clusters.to_json());
            object.extend(clusters.reassign_json().map(|reassign| ("reassign".to_owned(), reassign)));
        }
        if let Some(servers) = self.servers {
            let servers = servers.iter().map(ServerRound::to_json).collect();
            object.insert("servers".to_owned(), Value::Array(servers));
        }
        object.extend(self.levels_j.map(|levels| ("battery".to_owned(), json!({ "level_j": levels }))));
        if let Some(explain) = self.explain {
            object.insert("explain".to_owned(), json!(explain));
        }
        if let Some(updates) = self.updates {
            object.insert("updates".to_owned(), json!(updates));
        }
        Value::Object(object)
    }
}

/// Receives all output of a run.
pub trait Sink: Send {
    /// One record, as it happens.
    ///
    /// # Errors
    /// If it cannot be kept; the run ends.
    fn record(&mut self, record: &Record<'_>) -> io::Result<()>;

    /// One closed round, after all its records. `is_recorded` tells whether it belongs in `rounds.jsonl`, and `mark`
    /// holds the digests up to here.
    ///
    /// # Errors
    /// If it cannot be kept; the run ends.
    fn round(&mut self, summary: &RoundSummary<'_>, is_recorded: bool, mark: &RoundMark) -> io::Result<()>;

    /// Whether the sink wants checksums of single records of a recorded round in its [`RoundMark`].
    fn wants_checksums(&self) -> bool {
        false
    }

    /// Waits until its output is on disk, and adds the state that it needs to go on in a later process: by default
    /// none.
    ///
    /// # Errors
    /// If something cannot be written out.
    fn save(&mut self, _: &mut State<'_>) -> io::Result<()> {
        Ok(())
    }
}

impl<S: Sink + ?Sized> Sink for &mut S {
    fn record(&mut self, record: &Record<'_>) -> io::Result<()> {
        (**self).record(record)
    }
    fn round(&mut self, summary: &RoundSummary<'_>, is_recorded: bool, mark: &RoundMark) -> io::Result<()> {
        (**self).round(summary, is_recorded, mark)
    }
    fn wants_checksums(&self) -> bool {
        (**self).wants_checksums()
    }
    fn save(&mut self, state: &mut State<'_>) -> io::Result<()> {
        (**self).save(state)
    }
}

/// Keeps nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSink;

impl Sink for NoSink {
    fn record(&mut self, _: &Record<'_>) -> io::Result<()> {
        Ok(())
    }
    fn round(&mut self, _: &RoundSummary<'_>, _: bool, _: &RoundMark) -> io::Result<()> {
        Ok(())
    }
}
