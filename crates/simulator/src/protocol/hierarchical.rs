//! Hierarchical: clients train under edge servers, and a cloud averages the edge servers' models (HierFAVG).
//!
//! # Definition
//! Each client belongs to one of `edges` edge servers. In a round of the cloud, the cloud's policy chooses edge
//! servers; the model travels to each of them over its link; the edge server holds `edge_rounds` synchronous rounds
//! among its own clients, in which the scenario's policy chooses, and from each of which its model is the average of
//! the updates; its model travels back. The cloud's round is over when all models are there, or at the cloud's timeout,
//! when the edge servers that are missing and all their jobs are called off. The cloud averages the edge servers'
//! models, weighted by the examples of all their clients (`weighting = "uniform"`: all alike), and makes its step as
//! `[aggregation]` says.
//!
//! Each edge server has a policy of its own, which sees its clients alone: shares of data and numbers of rounds are the
//! edge server's. When none of them is available, it waits until one is. The cloud's policy sees an edge server as it
//! would a client: data size, and the time from the cloud's dispatch to the arrival of the model.
//!
//! *Asynchronous cloud*: with `cloud = { buffer = 4 }` edge servers work without waiting for each other, by the laws of
//! `buffered`; `buffer` is at most the number of edge servers. Whenever a server's model has arrived, the cloud sends
//! it the newest model, after everything else of that instant. With every `buffer`-th model that arrives the cloud's
//! model changes, and a round is over: rounds are aggregations. A server's model is as many rounds *stale* as the cloud
//! has made models since it sent that server its own. With base weights `b_m` of `[aggregation]` (the examples of all
//! clients of server `m`) and the weight `s` of `staleness`, the change is `Δ = Σ_m b_m s(stale_m) δ_m / Σ_m b_m` over
//! what arrived: what staleness takes away stays with the old model. `δ_m` is what the server changed in the model that
//! it was sent (`combine = "changes"`, the default), or its difference to the present one (`"models"`). A model older
//! than `max_staleness` is late and not used. A server may deliver several times in a round; the draws of its links are
//! numbered by the models that it was sent.
//!
//! With `[clusters]`, the segments of a cluster take in what arrived from servers that were sent that cluster's model.
//! Rules decide after each aggregation, and a server moves when it is next sent a model. When the run's virtual time is
//! over, the round under way is closed without a new model, and without a decision.
//!
//! The clients of a round are `cohort`, the same number for all edge servers, or `participation`, a share of each one's
//! clients; `most` is the largest round that a policy may choose. Weights that an edge server's policy gives are
//! coefficients in its server's model. An empty selection, of a policy that declares it, is a round of the edge server
//! that ends at once, or, of the cloud's policy, a round of the cloud. The cloud's policy gives no weights.
//!
//! # Example
//! ```toml
//! [protocol.hierarchical]
//! edges = 10
//! cohort = 3
//! edge_rounds = 2
//! timeout = "1 min"
//! link = { download = { exponential = { mean = "1 s" } }, upload = { exponential = { mean = "2 s" } } }
//! cloud = { cohort = 6, policy = { round-robin = {} }, timeout = "5 min" }
//! ```
//!
//! An asynchronous cloud:
//! ```toml
//! [protocol.hierarchical]
//! edges = 10
//! participation = 0.8
//! cloud = { buffer = 4, staleness = { polynomial = {} }, max_staleness = 20 }
//! ```
//!
//! # Source
//! L. Liu, J. Zhang, S. H. Song, K. B. Letaief, "Client-Edge-Cloud Hierarchical Federated Learning", ICC 2020
//! (`HierFAVG`: κ₁ is the epochs of `[training]`, κ₂ is `edge_rounds`). The asynchronous cloud is this project's:
//! FedBuff (`fedgenie describe protocol/buffered`) with edge servers for clients.

use super::rounds::SynchronousConfig;
use super::{Combine, ProtocolSettings, RoundRule, Rule, Staleness, positive, within};
use crate::policy::{Known, PolicyConfig};
use crate::population::law::TimeLaw;
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::id::ClientId;
use fedgenie_core::time::Span;
use fedgenie_core::units::Duration;
use fedgenie_learning::data::partition::two_level::clients_of;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// `[protocol.hierarchical]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HierarchicalConfig {
    /// Edge servers.
    pub edges: usize,
    /// Which clients belong to which edge server.
    #[serde(default)]
    pub assign: Assign,
    /// Clients per round of an edge server; or else `participation` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cohort: Option<usize>,
    /// The share of an edge server's clients in each of its rounds, above 0 and at most 1: ⌊p·N + 1e-9⌋ of N, at least
    /// one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub participation: Option<f64>,
    /// Most clients that a policy may choose in a round of an edge server; if left out, as many as it asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<usize>,
    /// Rounds of an edge server in a round of the cloud.
    #[serde(default = "one")]
    pub edge_rounds: u32,
    /// The longest a round of an edge server waits; needed where clients can be lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// How long a model travels between the cloud and an edge server; no time if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkConfig>,
    /// Which edge servers take part, or how models are taken in as they arrive; all take part in each round without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloud: Option<CloudConfig>,
}

const fn one() -> u32 {
    1
}

/// Which clients belong to which edge server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Assign {
    /// The first K/M clients to the first edge server, and so on, as evenly as can be: the servers of the partition
    /// `dirichlet-two-level`.
    #[default]
    Blocks,
    /// Client i to edge server i mod M.
    Cyclic,
}

/// How long a model travels between the cloud and an edge server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkConfig {
    /// From the cloud. A parameter may differ between edge servers.
    pub download: TimeLaw,
    /// To the cloud.
    pub upload: TimeLaw,
}

/// How the cloud takes in models: in rounds of edge servers that a policy chooses, or as they arrive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CloudConfig {
    /// Edge servers per round, where a policy chooses them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cohort: Option<usize>,
    /// Who chooses them: any policy but the genie, which sees edge servers as clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyConfig>,
    /// The longest a round of the cloud waits, where a policy chooses who takes part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// Models of edge servers per new model, where these work without waiting for each other; at most as many as there
    /// are edge servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<usize>,
    /// How much a model counts that is some rounds old, where they are taken in as they arrive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staleness: Option<Staleness>,
    /// Models older than this many rounds are not used, where they are taken in as they arrive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_staleness: Option<u32>,
    /// What is averaged, where models are taken in as they arrive; `changes` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub combine: Option<Combine>,
}

/// The protocol's rule, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct HierarchicalRule {
    /// The clients of each edge server, ascending.
    pub members: Vec<Vec<ClientId>>,
    /// The rounds of each edge server, which differ in the number of clients alone.
    pub edge: Vec<RoundRule>,
    /// How many of them make a round of the cloud.
    pub edge_rounds: u32,
    /// How long a model travels.
    pub link: Option<LinkConfig>,
    /// Edge servers per round of the cloud.
    pub edges_per_round: usize,
    /// Who chooses them; everyone takes part if nobody does.
    pub cloud: Option<PolicyConfig>,
    /// The longest a round of the cloud waits.
    pub cloud_timeout: Option<Span>,
    /// How the cloud takes in models as they arrive, if it does.
    pub buffer: Option<CloudBuffer>,
}

/// A cloud that takes in models as they arrive, checked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CloudBuffer {
    /// Models per new model.
    pub models: usize,
    /// How much a model counts that is some rounds old.
    pub staleness: Staleness,
    /// The oldest model that is used.
    pub max_staleness: u32,
    /// What is averaged.
    pub combine: Combine,
}

/// What a cloud does, checked.
struct CloudRule {
    edges_per_round: usize,
    policy: Option<PolicyConfig>,
    timeout: Option<Span>,
    buffer: Option<CloudBuffer>,
}

impl CloudConfig {
    /// The key of one kind of cloud that is given beside those of the other.
    fn misplaced(&self) -> Option<Complaint> {
        let Self { cohort, policy, timeout, buffer, staleness, max_staleness, combine } = self;
        let (keys, message) = match buffer {
            Some(_) => (
                [("cohort", cohort.is_some()), ("policy", policy.is_some()), ("timeout", timeout.is_some())],
                "is for a cloud that chooses edge servers in rounds; with buffer all of them work, and the cloud waits for \
                 none: take one of the two out",
            ),
            None => (
                [
                    ("staleness", staleness.is_some()),
                    ("max_staleness", max_staleness.is_some()),
                    ("combine", combine.is_some()),
                ],
                "is for a cloud that takes in models as they arrive; give buffer, the number of models per new model, or \
                 take it out",
            ),
        };
        let (key, _) = keys.into_iter().find(|(_, is_given)| *is_given)?;
        Some(Complaint::new(key, message))
    }

    fn rule(&self, edges: usize) -> Result<CloudRule, Complaint> {
        if let Some(complaint) = self.misplaced() {
            return Err(complaint);
        }
        if let Some(models) = self.buffer {
            let buffer = CloudBuffer {
                models: within("buffer", models, edges, "the number of edge servers")?,
                staleness: self.staleness.unwrap_or_default().checked("staleness")?,
                max_staleness: self.max_staleness.unwrap_or(u32::MAX),
                combine: self.combine.unwrap_or_default(),
            };
            return Ok(CloudRule { edges_per_round: edges, policy: None, timeout: None, buffer: Some(buffer) });
        }
        let missing = |key: &str, what: &str| {
            let message =
                format!("is missing: {what}; or give buffer, for a cloud that takes in models as they arrive");
            Complaint::new(key, message)
        };
        let cohort = self.cohort.ok_or_else(|| missing("cohort", "how many edge servers take part in a round"))?;
        let policy = self.policy.as_ref().ok_or_else(|| missing("policy", "who chooses edge servers"))?;
        if policy.sees_truth() {
            return Err(Complaint::new("policy", "the genie knows clients, not edge servers; take another policy"));
        }
        Ok(CloudRule {
            edges_per_round: within("cohort", cohort, edges, "the number of edge servers")?,
            policy: Some(resolved(policy)?),
            timeout: self.timeout.map(|timeout| positive("timeout", timeout)).transpose()?,
            buffer: None,
        })
    }
}

/// The cloud's policy with its defaults; it knows of no reward but its own.
fn resolved(policy: &PolicyConfig) -> Result<PolicyConfig, Complaint> {
    let mut policy = policy.clone();
    policy.resolve(Known::default()).map_err(|error| Complaint::new("policy", error.message))?;
    Ok(policy)
}

impl HierarchicalConfig {
    /// Clients per round of each edge server.
    fn cohorts(&self, members: &[Vec<ClientId>]) -> Result<Vec<usize>, Complaint> {
        match (self.cohort, self.participation) {
            (Some(cohort), None) => {
                let smallest = members.iter().map(Vec::len).min().unwrap_or(0);
                let cohort = within("cohort", cohort, smallest, "the clients of the smallest edge server")?;
                Ok(vec![cohort; members.len()])
            }
            (None, Some(share)) => {
                let expected = "a share of an edge server's clients, above 0 and at most 1";
                let share = check("participation", share, f64::MIN_POSITIVE..=1.0, expected)?;
                let part = |members: &Vec<ClientId>| ((share * members.len() as f64 + 1e-9) as usize).max(1);
                Ok(members.iter().map(part).collect())
            }
            (Some(cohort), Some(share)) => {
                let message = format!("found {share} beside cohort = {cohort}; expected one of the two");
                Err(Complaint::new("participation", message))
            }
            (None, None) => {
                let message = "is missing: how many clients take part in a round of an edge server; or give their share, \
                               participation";
                Err(Complaint::new("cohort", message))
            }
        }
    }
}

impl HierarchicalRule {
    /// Most clients that a round of an edge server asks.
    pub fn most_asked(&self) -> usize {
        self.edge.iter().map(|rule| rule.ask).max().unwrap_or(0)
    }

    /// Most clients that a policy may choose in a round of an edge server.
    pub fn largest(&self) -> usize {
        self.edge.iter().map(|rule| rule.most).max().unwrap_or(0)
    }

    /// The longest that a round of an edge server waits.
    pub fn cut(&self) -> Option<Span> {
        self.edge.first().and_then(|rule| rule.cut)
    }
}

impl ProtocolSettings for Box<HierarchicalConfig> {
    /// The cohorts of edge servers, where they follow from a share; one number if they are equal.
    fn effective(&self, rule: &Rule) -> Vec<(&'static str, Value)> {
        let (Rule::Hierarchical(rule), Some(_)) = (rule, self.participation) else { return Vec::new() };
        let cohorts: Vec<usize> = rule.edge.iter().map(|rule| rule.ask).collect();
        let is_same = cohorts.iter().all(|cohort| *cohort == cohorts[0]);
        vec![("cohort", if is_same { cohorts[0].into() } else { json!(cohorts) })]
    }

    fn rule(&self, clients: usize) -> Result<Rule, Complaint> {
        let edges = within("edges", self.edges, clients, "the number of clients")?;
        if self.edge_rounds == 0 {
            return Err(Complaint::new("edge_rounds", "found 0; expected at least 1"));
        }
        let of_edge = |edge: usize| -> Vec<ClientId> {
            match self.assign {
                Assign::Blocks => clients_of(edge, edges, clients).map(ClientId::from_index).collect(),
                Assign::Cyclic => (edge..clients).step_by(edges).map(ClientId::from_index).collect(),
            }
        };
        let members: Vec<Vec<ClientId>> = (0..edges).map(of_edge).collect();
        let edge = members
            .iter()
            .zip(self.cohorts(&members)?)
            .map(|(members, cohort)| {
                SynchronousConfig { cohort, most: self.most, timeout: self.timeout, quorum: None }.rounds(members.len())
            })
            .collect::<Result<_, _>>()?;
        let CloudRule { edges_per_round, policy, timeout, buffer } = match &self.cloud {
            Some(cloud) => cloud.rule(edges).map_err(|complaint| complaint.below("cloud"))?,
            None => CloudRule { edges_per_round: edges, policy: None, timeout: None, buffer: None },
        };
        Ok(Rule::Hierarchical(Box::new(HierarchicalRule {
            members,
            edge,
            edge_rounds: self.edge_rounds,
            link: self.link.clone(),
            edges_per_round,
            cloud: policy,
            cloud_timeout: timeout,
            buffer,
        })))
    }
}
