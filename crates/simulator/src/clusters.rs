//! Cluster models: which of several models each edge server trains.
//!
//! # Definition
//! With `[clusters]` there are `count` models with equal shared segments. In a round of the cloud an edge server
//! belongs to one cluster: it receives that cluster's model, and its update counts for that cluster's segments and for
//! the shared ones. A cluster without a server keeps its segments. After each round a [`ClusterPolicy`] decides the
//! clusters of the next one. Tasks say which of their segments belong to clusters; a task without such segments learns
//! one model all the same.
//!
//! Where the model gives scores of classes, it is by default *additive*: the scores of an example are the sum of those
//! of a network that all clusters share and of those of the cluster's own network, both of the task's kind. An
//! *isolated* model is the cluster's network alone. Both networks are trained at once, with one norm of the gradient
//! for clipping.
//!
//! # Inputs
//! `count`: number of models, that of the edge servers if left out. `initial`: the first assignment, `"round-robin"`
//! (server `m` in cluster `m mod count`), `"single"` (all in cluster 0), or a list with one cluster for each server.
//! `assign`: the rule; `fedgenie list clusters` has them.
//!
//! `model`: `"additive"` or `"isolated"`; if left out, additive where the model gives scores of classes, and one model
//! for all clusters where it does not. `networks`: whether each cluster's network starts from a draw of its own
//! (`"distinct"`) or all from the same (`"same"`); the shared network starts from the draw of a model without clusters,
//! as does that of cluster 0 among isolated ones. `l2`: weight decay of the clusters' networks beside that of the
//! optimizer, added to the gradient after clipping; 0.001 for additive models, 0 for isolated ones. `losses`: whether
//! rules compare losses on the training examples of an edge server's clients (`"train"`) or on its test examples
//! (`"test"`). `charge`: whether an assignment that compares losses costs traffic and time: the networks of the other
//! clusters travel to every edge server and, for losses on training examples, to every client, and models leave for the
//! next round when the slowest client has made an inference pass over its data.
//!
//! # Determinism
//! A rule draws from stream (policy, 2^32 − 2, round). How long a charged pass takes comes from the streams of a probe
//! with the number 2^32 − 1 − round. Networks start from stream (model-init, 0, 0) where they are shared; those of
//! cluster k from (model-init, k, 2) in additive models and (model-init, k, 0) in isolated ones.
//!
//! # Example
//! ```toml
//! [clusters]
//! count = 3
//! initial = "round-robin"
//! model = "additive"
//! assign = { random = { every = 5 } }
//! ```

mod feedback;
pub mod fixed;
pub mod linucb;
pub mod loss;
pub mod random;

pub use feedback::{EdgeFeedback, EdgeReport, Weighed};

use fedgenie_core::components;
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::failure::Failure;
use fedgenie_core::id::{EdgeId, Round};
use fedgenie_core::rng::StreamRng;
use fedgenie_core::state::Stateful;
use fedgenie_learning::layout::Layout;
use fedgenie_learning::task::ClusterNetworks;
use fedgenie_learning::trainer::optimizer::Decay;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Decides which cluster each edge server belongs to.
pub trait ClusterPolicy: Stateful + Send {
    /// Writes each edge server's cluster in the next round into `assignment`, which holds those of the round just
    /// closed.
    ///
    /// # Errors
    /// Whatever ends the run.
    fn assign(
        &mut self,
        ask: &AssignmentRequest<'_>,
        rng: &mut StreamRng,
        assignment: &mut [u32],
    ) -> Result<(), Failure>;

    /// Learns of each edge server's part in a round, then of the round, before `assign` is called.
    ///
    /// # Errors
    /// Whatever ends the run.
    fn observe(&mut self, _feedback: &EdgeFeedback<'_>) -> Result<(), Failure> {
        Ok(())
    }

    /// The numbers behind the last assignment, for the records; `None` if no server was assigned anew.
    fn weighed(&self) -> Option<&Weighed> {
        None
    }
}

/// A question to a cluster policy.
#[derive(Clone, Copy)]
pub struct AssignmentRequest<'a> {
    /// The round of the cloud that has just been closed.
    pub round: Round,
    /// Number of clusters.
    pub clusters: u32,
    /// Mean loss of a cluster's model on the training examples of an edge server's clients; NaN if the task has none.
    /// It is measured at the first call, and remembered.
    pub loss: &'a dyn Fn(EdgeId, u32) -> f64,
}

impl AssignmentRequest<'_> {
    /// Whether `every` divides the round.
    pub const fn is_due(&self, every: u32) -> bool {
        self.round.0.is_multiple_of(every)
    }

    /// The losses of all clusters' models for an edge server.
    pub fn losses(&self, edge: EdgeId, losses: &mut Vec<f64>) {
        losses.clear();
        losses.extend((0..self.clusters).map(|cluster| (self.loss)(edge, cluster)));
    }
}

/// The cluster with the smallest finite loss, one's own excepted; the smallest index among several.
fn best_other(losses: &[f64], own: u32) -> Option<u32> {
    let others = (0..).zip(losses).filter(|(cluster, loss)| *cluster != own && loss.is_finite());
    others.reduce(|best, other| if other.1 < best.1 { other } else { best }).map(|(cluster, _)| cluster)
}

/// Checks the rounds between assignments.
fn check_every(every: u32) -> Result<(), Complaint> {
    match every {
        0 => Err(Complaint::new("every", "found 0; expected a number of rounds of at least 1")),
        _ => Ok(()),
    }
}

impl std::fmt::Debug for AssignmentRequest<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { round, clusters, .. } = self;
        formatter.debug_struct("AssignmentRequest").field("round", round).field("clusters", clusters).finish()
    }
}

/// A rule's part of a scenario.
pub trait ClusterSettings {
    /// Checks the ranges, and the rule's demands on the scenario.
    ///
    /// # Errors
    /// A complaint with a path below the rule's table.
    fn check(&self, _context: &ClusterContext<'_>) -> Result<(), Complaint> {
        Ok(())
    }

    /// Whether the rule compares losses, so that the task must have some.
    fn needs_losses(&self) -> bool {
        false
    }

    /// Rounds between assignments; `None` if servers never move.
    fn every(&self) -> Option<u32>;

    /// The rule before the first round.
    fn build(&self, context: &ClusterContext<'_>) -> Box<dyn ClusterPolicy>;
}

components! {
    /// The rule that assigns edge servers to clusters for the next round: `{ fixed = {} }`,
    /// `{ random = { every = 20 } }`.
    #[schemars(transform = fedgenie_core::config::allow_bare_kinds)]
    pub enum AssignConfig: ClusterSettings = "clusters" {
        "fixed" => Fixed(fixed::Config) in "clusters/fixed.rs";
        "linucb" => Linucb(linucb::Config) in "clusters/linucb.rs";
        "loss" => Loss(loss::Config) in "clusters/loss.rs";
        "random" => Random(random::Config) in "clusters/random.rs";
    }
}

impl Default for AssignConfig {
    fn default() -> Self {
        Self::Fixed(fixed::Config::default())
    }
}

/// `[clusters]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClustersConfig {
    /// Number of cluster models; as many as edge servers if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// The first assignment.
    #[serde(default)]
    pub initial: Initial,
    /// The rule of later ones.
    #[serde(default)]
    pub assign: AssignConfig,
    /// The kind of cluster model; if left out, the task decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ClusterModel>,
    /// How the networks of clusters start.
    #[serde(default)]
    pub networks: Networks,
    /// Weight decay of the clusters' networks beside that of the optimizer; at least 0. 0.001 for additive models and 0
    /// for isolated ones if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l2: Option<f64>,
    /// The data on which rules compare losses.
    #[serde(default)]
    pub losses: LossesOn,
    /// Whether an assignment that compares losses costs traffic and time.
    #[serde(default)]
    pub charge: bool,
    /// A rule from a program that uses this library, instead of `assign`.
    #[serde(skip)]
    pub outside: Option<ClusterFactory>,
}

/// The kind of cluster model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClusterModel {
    /// A network that all clusters share and the cluster's own, whose scores are added.
    Additive,
    /// The cluster's own network.
    Isolated,
}

impl ClusterModel {
    /// The default weight decay of the cluster's network.
    const fn default_l2(self) -> f64 {
        match self {
            Self::Additive => 0.001,
            Self::Isolated => 0.0,
        }
    }
}

/// How the networks of clusters start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Networks {
    /// Each from a draw of its own.
    #[default]
    Distinct,
    /// All from the same.
    Same,
}

/// The data on which rules compare losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossesOn {
    /// The training examples of an edge server's clients.
    #[default]
    Train,
    /// The test examples of an edge server.
    Test,
}

/// Facts about the scenario from which a rule is made.
#[derive(Clone, Copy, Debug)]
pub struct ClusterContext<'a> {
    /// Number of clusters.
    pub clusters: u32,
    /// The first cluster of each edge server.
    pub initial: &'a [u32],
    /// Most rounds of a run, from `[stop]`; `None` if it sets no limit.
    pub rounds: Option<u32>,
}

/// Makes a rule, once for each run.
#[derive(Clone)]
pub struct ClusterFactory(pub Arc<MakesRule>);

type MakesRule = dyn Fn(&ClusterContext<'_>) -> Box<dyn ClusterPolicy> + Send + Sync;

impl std::fmt::Debug for ClusterFactory {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("ClusterFactory")
    }
}

/// Two factories are equal if they are the same object.
impl PartialEq for ClusterFactory {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// The first assignment of edge servers to clusters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "\"round-robin\", \"single\", or a list with one cluster for each edge server")]
pub enum Initial {
    /// By a rule.
    Rule(InitialRule),
    /// One for each server.
    List(Vec<u32>),
}

/// A rule for the first assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InitialRule {
    /// Server `m` in cluster `m mod count`.
    RoundRobin,
    /// All in cluster 0.
    Single,
}

impl Default for Initial {
    fn default() -> Self {
        Self::Rule(InitialRule::RoundRobin)
    }
}

/// Cluster models as a world has them.
#[derive(Clone, Debug, PartialEq)]
pub struct Clusters {
    /// Number of models.
    pub count: u32,
    /// The first cluster of each edge server.
    pub initial: Vec<u32>,
    /// The rule of later ones.
    pub assign: AssignConfig,
    /// A rule from a program that uses this library, instead of `assign`.
    pub outside: Option<ClusterFactory>,
    /// Most rounds of a run, by `[stop]`.
    pub rounds: Option<u32>,
    /// The kind of cluster model, if the scenario sets it.
    pub model: Option<ClusterModel>,
    /// How the networks of clusters start.
    pub networks: Networks,
    /// Weight decay of the clusters' networks, if the scenario sets it.
    pub l2: Option<f64>,
    /// The data on which rules compare losses.
    pub losses: LossesOn,
    /// Whether an assignment that compares losses costs traffic and time.
    pub charge: bool,
}

impl Clusters {
    fn context(&self) -> ClusterContext<'_> {
        ClusterContext { clusters: self.count, initial: &self.initial, rounds: self.rounds }
    }

    /// The networks of clusters.
    pub const fn networks(&self) -> ClusterNetworks {
        ClusterNetworks { count: self.count, distinct: matches!(self.networks, Networks::Distinct) }
    }

    /// The weight decay of the clusters' networks.
    pub fn l2(&self, model: ClusterModel) -> f64 {
        self.l2.unwrap_or_else(|| model.default_l2())
    }

    /// The weight decay of the clusters' parts of a layout.
    pub fn decays(&self, model: ClusterModel, layout: &Layout) -> Vec<Decay> {
        let rate = self.l2(model);
        if rate == 0.0 {
            return Vec::new();
        }
        layout.trained_of_clusters().map(|range| Decay { range, rate }).collect()
    }

    /// The policy before the first round.
    pub fn policy(&self) -> Box<dyn ClusterPolicy> {
        match &self.outside {
            Some(ClusterFactory(make)) => make(&self.context()),
            None => self.assign.settings().build(&self.context()),
        }
    }

    /// Whether the rule compares losses. A program's rule is taken not to need them.
    pub fn needs_losses(&self) -> bool {
        self.outside.is_none() && self.assign.settings().needs_losses()
    }

    /// Rounds between assignments; `None` if servers never move or a program supplies the rule.
    pub fn every(&self) -> Option<u32> {
        self.assign.settings().every().filter(|_| self.outside.is_none())
    }
}

impl ClustersConfig {
    /// Checks the parameters against the number of edge servers and, if `[stop]` limits them, of rounds.
    ///
    /// # Errors
    /// A complaint with a path below `clusters`.
    pub fn clusters(&self, edges: usize, rounds: Option<u32>) -> Result<Clusters, Complaint> {
        let count = self.count.unwrap_or(edges as u32);
        if count == 0 {
            return Err(Complaint::new("count", "found 0; expected at least one cluster"));
        }
        let initial: Vec<u32> = match &self.initial {
            Initial::Rule(InitialRule::RoundRobin) => (0..edges as u32).map(|edge| edge % count).collect(),
            Initial::Rule(InitialRule::Single) => vec![0; edges],
            Initial::List(list) => list.clone(),
        };
        if initial.len() != edges {
            let message = format!("found {} clusters for {edges} edge servers", initial.len());
            return Err(Complaint::new("initial", message));
        }
        if let Some(cluster) = initial.iter().find(|&&cluster| cluster >= count) {
            let message = format!("found cluster {cluster}; expected numbers from 0 to {}", count - 1);
            return Err(Complaint::new("initial", message));
        }
        if let Some(l2) = self.l2 {
            check("l2", l2, 0.0..=f64::from(f32::MAX), "a number of at least 0")?;
        }
        let (assign, outside) = (self.assign.clone(), self.outside.clone());
        let Self { model, networks, l2, losses, charge, .. } = *self;
        let clusters = Clusters { count, initial, assign, outside, rounds, model, networks, l2, losses, charge };
        if self.outside.is_none() {
            let checked = self.assign.settings().check(&clusters.context());
            checked.map_err(|complaint| complaint.below(self.assign.kind()).below("assign"))?;
        }
        Ok(clusters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedgenie_core::rng::{Purpose, Streams};

    /// A rule of `assign`.
    pub fn rule(assign: &str, initial: &[u32], count: u32, rounds: Option<u32>) -> Box<dyn ClusterPolicy> {
        let toml = format!("count = {count}\ninitial = {initial:?}\nassign = {assign}");
        let config: ClustersConfig = toml::from_str(&toml).unwrap();
        config.clusters(initial.len(), rounds).unwrap().policy()
    }

    /// Asks a rule after a round, with the losses of each server's clusters.
    pub fn asked<const K: usize>(
        rule: &mut dyn ClusterPolicy,
        round: u32,
        losses: &[[f64; K]],
        assignment: &mut [u32],
    ) -> Option<Weighed> {
        let loss = |edge: EdgeId, cluster: u32| losses[edge.index()][cluster as usize];
        let ask = AssignmentRequest { round: Round(round), clusters: K as u32, loss: &loss };
        let mut rng = Streams::new(7).stream(Purpose::Policy, u32::MAX - 1, round);
        rule.assign(&ask, &mut rng, assignment).unwrap();
        rule.weighed().cloned()
    }

    fn clusters(toml: &str, edges: usize) -> Result<Clusters, String> {
        let config: ClustersConfig = toml::from_str(toml).map_err(|error| error.to_string())?;
        config.clusters(edges, Some(40)).map_err(|complaint| complaint.to_string())
    }

    #[test]
    fn servers_begin_where_the_scenario_says() {
        assert_eq!(clusters("", 3).unwrap().initial, [0, 1, 2]);
        assert_eq!(clusters("count = 2", 5).unwrap().initial, [0, 1, 0, 1, 0]);
        assert_eq!(clusters("count = 2\ninitial = \"single\"", 3).unwrap().initial, [0, 0, 0]);
        assert_eq!(clusters("count = 4\ninitial = [3, 0]", 2).unwrap().initial, [3, 0]);
    }

    #[test]
    fn the_best_of_the_others() {
        assert_eq!(best_other(&[0.5, 0.25, 0.25, 1.0], 0), Some(1));
        assert_eq!(best_other(&[0.5, 0.25, 0.25, 1.0], 1), Some(2));
        assert_eq!(best_other(&[0.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY], 0), None);
        assert_eq!(best_other(&[f64::NAN, f64::NAN, 2.0], 0), Some(2));
        assert_eq!(best_other(&[1.0], 0), None);
    }

    #[test]
    fn a_rule_says_which_section_it_needs() {
        let config: ClustersConfig = toml::from_str("assign = { linucb = {} }").unwrap();
        let message = config.clusters(2, None).unwrap_err().to_string();
        assert_eq!(message, "assign.linucb: needs the number of rounds of a run; write rounds into [stop]");
        assert!(config.clusters(2, Some(1)).unwrap().needs_losses());
    }

    #[test]
    fn what_does_not_fit_is_named() {
        for (toml, part) in [
            ("count = 0", "at least one cluster"),
            ("initial = [0]", "found 1 clusters for 2 edge servers"),
            ("count = 2\ninitial = [0, 2]", "found cluster 2; expected numbers from 0 to 1"),
            ("assign = { random = { every = 0 } }", "assign.random.every"),
            ("assign = { loss = { every = 0 } }", "assign.loss.every"),
            ("assign = { loss = { threshold = 0.0 } }", "assign.loss.threshold: found 0; expected a number in (0, 1]"),
            (
                "assign = { loss = { threshold = 1.5 } }",
                "assign.loss.threshold: found 1.5; expected a number in (0, 1]",
            ),
            ("assign = { loss = { threshold = nan } }", "assign.loss.threshold: found NaN"),
            ("assign = { linucb = { every = 0 } }", "assign.linucb.every: found 0; expected a number of rounds"),
            (
                "assign = { linucb = { alpha = -0.1 } }",
                "assign.linucb.alpha: found -0.1; expected a number of at least 0",
            ),
            ("assign = { linucb = { epsilon = 0.0 } }", "assign.linucb.epsilon: found 0; expected a number above 0"),
            ("count = 1\nassign = { linucb = {} }", "assign.linucb: chooses among several clusters, and count is 1"),
        ] {
            let message = clusters(toml, 2).unwrap_err();
            assert!(message.contains(part), "{message}");
        }
    }
}
