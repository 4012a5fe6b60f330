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
//! The clients of a round are `cohort`, the same number for all edge servers, or `participation`, a share of each one's
//! clients.
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
//! # Source
//! L. Liu, J. Zhang, S. H. Song, K. B. Letaief, "Client-Edge-Cloud Hierarchical Federated Learning", ICC 2020
//! (`HierFAVG`: κ₁ is the epochs of `[training]`, κ₂ is `edge_rounds`).

use super::rounds::SynchronousConfig;
use super::{ProtocolSettings, RoundRule, Rule, positive, within};
use crate::policy::{Known, PolicyConfig};
use crate::population::law::TimeLaw;
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::id::ClientId;
use fedgenie_core::time::Span;
use fedgenie_core::units::Duration;
use fedgenie_learning::data::partition::two_level::clients_of;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// Rounds of an edge server in a round of the cloud.
    #[serde(default = "one")]
    pub edge_rounds: u32,
    /// The longest a round of an edge server waits; needed where clients can be lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// How long a model travels between the cloud and an edge server; no time if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkConfig>,
    /// Which edge servers take part; all of them if left out.
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

/// Which edge servers take part in a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CloudConfig {
    /// Edge servers per round.
    pub cohort: usize,
    /// Who chooses them: any policy but the genie, which sees edge servers as clients.
    pub policy: PolicyConfig,
    /// The longest a round of the cloud waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
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
}

/// The cloud's policy with its defaults; it knows of no reward but its own.
fn resolved(policy: &PolicyConfig) -> Result<PolicyConfig, Complaint> {
    let mut policy = policy.clone();
    policy.resolve(Known::default()).map_err(|error| Complaint::new("cloud.policy", error.message))?;
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

    /// The longest that a round of an edge server waits.
    pub fn cut(&self) -> Option<Span> {
        self.edge.first().and_then(|rule| rule.cut)
    }
}

impl ProtocolSettings for Box<HierarchicalConfig> {
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
                SynchronousConfig { cohort, timeout: self.timeout, quorum: None }.rounds(members.len())
            })
            .collect::<Result<_, _>>()?;
        let cloud = self.cloud.as_ref();
        if cloud.is_some_and(|cloud| cloud.policy.needs_genie()) {
            return Err(Complaint::new(
                "cloud.policy",
                "the genie knows clients, not edge servers; take another policy",
            ));
        }
        let edges_per_round = match cloud {
            Some(cloud) => within("cloud.cohort", cloud.cohort, edges, "the number of edge servers")?,
            None => edges,
        };
        let cloud_timeout = cloud.and_then(|cloud| cloud.timeout);
        Ok(Rule::Hierarchical(Box::new(HierarchicalRule {
            members,
            edge,
            edge_rounds: self.edge_rounds,
            link: self.link.clone(),
            edges_per_round,
            cloud: cloud.map(|cloud| resolved(&cloud.policy)).transpose()?,
            cloud_timeout: cloud_timeout.map(|timeout| positive("cloud.timeout", timeout)).transpose()?,
        })))
    }
}
