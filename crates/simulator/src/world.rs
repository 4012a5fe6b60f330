//! A world: everything that is the same for all policies of one scenario, point and seed.

mod adversary;
mod budget;
mod changes;
mod checks;
pub mod controls;
mod effective;
mod first_updates;
mod foundation;
pub(crate) mod hindsight;
mod policies;
mod privacy;
mod secure;
mod servers;
mod start;
mod training;
mod truth;

pub use adversary::{ADVERSARY_SHARE, AdversaryConfig};
pub use budget::{Budget, BudgetPlan, Most};
pub use changes::Change;
use controls::Controls;
pub use controls::{Centralised, ControlsConfig, Local, TrainedControl};
pub(crate) use first_updates::{FirstJob, FirstUpdates};
use foundation::Foundation;
pub use policies::Evaluated;
pub(crate) use privacy::Ledger;
pub use privacy::{EPSILON, measures_of_run};
pub use training::Training;
pub use truth::Truth;

use crate::clusters::{Clusters, ClustersConfig};
use crate::population::count::CountPerClient;
use crate::population::law::{GroupClient, TimeLaw};
use crate::population::{Population, PopulationConfig, check_durations};
use crate::protocol::{LinkConfig, ProtocolConfig, Rule};
use crate::task::{DataCache, Planned, TaskError, TaskSettings};
use fedgenie_core::config::Complaint;
use fedgenie_core::halt::NEVER;
use fedgenie_core::id::{ClientId, EdgeId};
use fedgenie_core::kernel::Ties;
use fedgenie_core::law::AnyLaw;
use fedgenie_core::metric::{Measures, MetricId};
use fedgenie_core::oracle::hindsight::{Hindsight, HindsightPlan};
use fedgenie_core::oracle::regret::Meter;
use fedgenie_core::oracle::reward::Reward;
use fedgenie_core::rng::Streams;
use fedgenie_learning::adversary::Adversaries;
use fedgenie_learning::algorithm::privacy::DpFedAvgConfig;
use fedgenie_learning::algorithm::{AggregationConfig, AlgorithmsConfig, FoldRule};
use fedgenie_learning::compression::CompressionConfig;
use fedgenie_learning::data::partition::PartitionConfig;
use fedgenie_learning::secure_aggregation::SecureAggregationConfig;
use fedgenie_learning::task::{Context, On, Task};
use fedgenie_learning::trainer::LocalTraining;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, OnceLock};

/// A world's plan, checked as far as that is possible without building it.
#[derive(Clone, Debug)]
pub struct WorldPlan {
    /// The clients.
    pub population: PopulationConfig,
    /// The task.
    pub task: Arc<dyn TaskSettings>,
    /// The evaluated rounds, if the scenario alone tells.
    pub planned: Option<Planned>,
    /// Evaluations that policies may rely on.
    pub evaluated: Evaluated,
    /// How they train, for a task that trains.
    pub training: LocalTraining,
    /// How long each client trains, where clients differ.
    pub lengths: Option<CountPerClient>,
    /// Most epochs that a policy may choose for a job; `None` for those of `training`.
    pub most_epochs: Option<u32>,
    /// Duration of an inference pass over the local data as a share of one training epoch.
    pub inference_share: f64,
    /// When rounds close; its rule is checked when the number of clients is known.
    pub protocol: ProtocolConfig,
    /// Cluster models, where there are any.
    pub clusters: Option<ClustersConfig>,
    /// The order of simultaneous events of a class.
    pub ties: Ties,
    /// How updates are folded into the global model.
    pub aggregation: AggregationConfig,
    /// The entries of the algorithm.
    pub algorithm: AlgorithmsConfig,
    /// The server's step of a program, in the place of combination and `aggregation.server`.
    pub outside: Option<Arc<dyn FoldRule>>,
    /// The reward, where the scenario has a `[regret]` section.
    pub reward: Option<Reward>,
    /// The regret meters.
    pub meters: Vec<Meter>,
    /// The regret in hindsight, if it is asked for.
    pub hindsight: Option<HindsightPlan>,
    /// Whether the regret of assignments to clusters is metered; without cluster models there is none.
    pub assignment_regret: bool,
    /// Most rounds of a run, if `[stop]` limits them.
    pub rounds: Option<u32>,
    /// The budget, where there is one.
    pub budget: Option<BudgetPlan>,
    /// What the results of policies stand beside.
    pub controls: ControlsConfig,
    /// Hostile clients, if there are any.
    pub adversary: Option<AdversaryConfig>,
    /// How models and updates are encoded.
    pub compression: Option<CompressionConfig>,
    /// The private mean, if updates are combined by one.
    pub privacy: Option<DpFedAvgConfig>,
    /// What it costs clients that the server learns sums alone, if it is to.
    pub secure: Option<SecureAggregationConfig>,
}

/// Clients, data, and the truth about them.
#[derive(Debug)]
pub struct World {
    /// All random numbers of the seed.
    pub streams: Streams,
    /// The clients.
    pub population: Population,
    /// `d_k/Σd` per client.
    pub shares: Vec<f64>,
    /// The task, if clients learn anything.
    pub task: Option<Arc<dyn Task>>,
    /// The task's name in messages.
    pub task_name: &'static str,
    /// The task's measures.
    pub measures: Measures,
    /// Evaluations that policies may rely on.
    pub evaluated: Evaluated,
    /// Whether evaluations are charged as if clients made them.
    pub charges_evaluation: bool,
    /// How they train, and how the server aggregates.
    pub training: Training,
    /// When models travel and change.
    pub protocol: Protocol,
    /// The truth about speeds, where there is a reward.
    pub truth: Option<Truth>,
    /// The regret in hindsight, if it is metered.
    pub hindsight: Option<Hindsight>,
    /// Whether the regret of assignments to clusters is metered.
    pub assignment_regret: bool,
    /// The budget of a run.
    pub budget: Budget,
    /// Warnings to the user about this world.
    pub warnings: Vec<String>,
    /// How data change while runs go on, by ascending round.
    pub changes: Vec<Change>,
    /// Hostile clients, if the scenario has any.
    pub adversaries: Option<Adversaries>,
    /// The test examples of each server, when they are asked for.
    server_tests: OnceLock<Vec<Vec<u32>>>,
    /// The controls.
    pub(crate) controls: Controls,
    /// The metrics of the model that runs begin with, when they are asked for.
    pub(crate) initial: Mutex<Option<Metrics>>,
    /// What its runs have trained from the model that they begin with.
    pub(crate) first_updates: FirstUpdates,
}

/// Names and values of metrics.
pub type Metrics = Vec<(MetricId, f64)>;

/// When models travel and change.
#[derive(Debug)]
pub struct Protocol {
    /// When rounds close.
    pub rule: Rule,
    /// The order of simultaneous events of a class.
    pub ties: Ties,
    /// How long a model travels from the cloud to each edge server and back; empty if no time.
    pub edge_links: Vec<[AnyLaw; 2]>,
    /// Cluster models, where there are any.
    pub clusters: Option<Clusters>,
}

/// Why a world cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    /// Something in the scenario; the path begins at its root.
    #[error(transparent)]
    Scenario(#[from] Complaint),
    /// The task's data or partition.
    #[error("task: {0}")]
    Task(#[from] TaskError),
}

impl WorldError {
    fn scenario(path: &str, message: impl Into<String>) -> Self {
        Self::Scenario(Complaint::new(path, message))
    }
}

impl WorldPlan {
    /// Builds the world of one seed.
    ///
    /// # Errors
    /// If the population, the task or the reward do not fit together; nothing is kept.
    pub fn build(&self, seed: u64, cache: &DataCache) -> Result<World, WorldError> {
        let Foundation {
            streams,
            population,
            rule,
            task,
            payload_bytes,
            edge_links,
            hindsight,
            clusters,
            local,
            algorithm,
            budget,
            adversaries,
            mut warnings,
        } = self.foundation(seed, cache)?;
        let pooled = self.pooled(&population, &streams, cache)?;
        let divided = clusters.is_some() && pooled.is_some();
        let plain = if divided { self.without_clusters(&population, &streams, cache)? } else { None };
        let truth = match self.reward {
            Some(reward) => Some(Truth::new(reward, &self.meters, &population, &rule, &mut warnings)?),
            None => None,
        };
        let most_epochs = local.epochs().map(|epochs| self.most_epochs.unwrap_or(epochs));
        let training = Training {
            local,
            most_epochs,
            inference_share: self.inference_share,
            payload_bytes,
            aggregation: self.aggregation.clone(),
            algorithm,
        };
        let protocol = Protocol { rule, ties: self.ties, edge_links, clusters };
        let shares = population.shares();
        let measures = self.measures(task.as_deref());
        if task.is_some() && self.task.measures().has_valid && !measures.has_valid {
            let message = "the data have nothing for validation: metrics on it are not measured, and the quality of updates is \
                           judged by test data";
            warnings.push(message.to_owned());
        }
        let task_name = self.task.about().name;
        let changes = self.changes(&protocol.rule, task.as_deref())?;
        let is_late = |round: u32| self.rounds.is_some_and(|rounds| round > rounds);
        let never = changes.iter().filter(|change| change.drift.is_none() && is_late(change.round));
        warnings.extend(never.map(|change| {
            format!("data change in round {}, after the last round of [stop]: no run sees that", change.round)
        }));
        Ok(World {
            streams,
            population,
            shares,
            task,
            task_name,
            measures,
            evaluated: self.evaluated,
            charges_evaluation: self.task.about().charges_evaluation,
            training,
            protocol,
            truth,
            hindsight,
            assignment_regret: self.assignment_regret,
            budget,
            warnings,
            changes,
            adversaries,
            server_tests: OnceLock::new(),
            controls: Controls { config: self.controls.clone(), pooled, plain, ..Controls::default() },
            initial: Mutex::new(None),
            first_updates: FirstUpdates::default(),
        })
    }

    /// All measures of its runs, as far as the scenario alone tells.
    pub fn declared_measures(&self) -> Measures {
        measures_of_run(self.adversary.as_ref(), self.privacy.as_ref(), &self.algorithm, self.task.measures())
    }

    /// The measures of a task: those of validation data only if there are any.
    fn measures(&self, task: Option<&dyn Task>) -> Measures {
        let mut measures = self.declared_measures();
        measures.has_valid &= task.is_some_and(|task| task.describe().has_valid);
        measures
    }

    /// Checks a seed's world for faults that another seed's may not have, without working out the truth about it.
    ///
    /// # Errors
    /// As [`WorldPlan::build`].
    pub fn check(&self, seed: u64, cache: &DataCache) -> Result<(), WorldError> {
        let Foundation { population, streams, .. } = self.foundation(seed, cache)?;
        self.pooled(&population, &streams, cache).map(drop)
    }

    /// Whether clients have as many examples as the population declares.
    fn has_declared_sizes(&self) -> bool {
        let by_partition = self.task.partition().is_some_and(PartitionConfig::is_declared);
        by_partition || self.task.about().has_declared_sizes
    }

    /// The population, with the number of clients from the data, if they tell.
    fn counted(&self, clients: Option<usize>) -> Result<Cow<'_, PopulationConfig>, WorldError> {
        let Some(clients) = clients else { return Ok(Cow::Borrowed(&self.population)) };
        match self.population.clients {
            Some(given) if given != clients => {
                let message = format!(
                    "found {given}; the data say {clients} with this partition: write that, leave the key out, \
                     or take a partition that deals the data to so many clients, such as partition = \"iid\""
                );
                Err(WorldError::scenario("population.clients", message))
            }
            _ => Ok(Cow::Owned(PopulationConfig { clients: Some(clients), ..self.population.clone() })),
        }
    }

    fn cluster_models(&self, rule: &Rule) -> Result<Option<Clusters>, WorldError> {
        let Some(clusters) = &self.clusters else { return Ok(None) };
        let Rule::Hierarchical(rule) = rule else {
            let message = "cluster models belong to edge servers; take [clusters] out, or take [protocol.hierarchical]";
            return Err(WorldError::scenario("clusters", message));
        };
        let clusters =
            clusters.clusters(rule.members.len(), self.rounds).map_err(|complaint| complaint.below("clusters"))?;
        Ok(Some(clusters))
    }

    fn edge_links(&self, rule: &Rule, streams: &Streams) -> Result<Vec<[AnyLaw; 2]>, WorldError> {
        let Rule::Hierarchical(rule) = rule else { return Ok(Vec::new()) };
        let Some(LinkConfig { download, upload }) = &rule.link else { return Ok(Vec::new()) };
        let edges = rule.members.len();
        let build = |law: &TimeLaw, edge: usize, key: &str, index: u32| {
            let edge_client = GroupClient { client: edge as u32, in_group: edge, streams };
            let built = law.check_lengths(edges).and_then(|()| law.build(&edge_client, index));
            let checked = built.and_then(|law| check_durations(&law).map(|()| law));
            checked.map_err(|message| WorldError::scenario(&format!("protocol.hierarchical.link.{key}"), message))
        };
        let links = |edge| Ok([build(download, edge, "download", 4)?, build(upload, edge, "upload", 5)?]);
        (0..edges).map(links).collect()
    }
}

impl World {
    /// The common context of all jobs.
    pub const fn context(&self) -> Context<'_> {
        Context { settings: &self.training.local, streams: &self.streams, loss_rms: false, halt: &NEVER }
    }

    /// Several runs will share this world: what clients learn from the model that they begin with is kept, to be
    /// trained once. This changes no result.
    pub fn share(&self) {
        self.first_updates.share();
    }

    /// Number of cluster models.
    pub fn clusters(&self) -> u32 {
        self.protocol.clusters.as_ref().map_or(1, |clusters| clusters.count)
    }

    /// Number of servers that select clients.
    pub fn servers(&self) -> usize {
        servers(&self.protocol.rule)
    }

    /// The clients of each server that selects.
    pub fn members(&self) -> Vec<Vec<ClientId>> {
        match &self.protocol.rule {
            Rule::Rounds(_) | Rule::Buffered(_) => {
                vec![(0..self.population.len()).map(ClientId::from_index).collect()]
            }
            Rule::Hierarchical(rule) => rule.members.clone(),
        }
    }

    /// The data on which the model of each edge server is measured; none where there is one server.
    pub fn data_of_servers(&self) -> Vec<On<'_>> {
        let Rule::Hierarchical(rule) = &self.protocol.rule else { return Vec::new() };
        let servers = (0..).map(EdgeId).zip(&rule.members);
        servers.map(|(server, members)| On::of_server(server, members, self.test_of(server))).collect()
    }

    /// The test examples of a server, where the task deals them to servers.
    pub fn test_of(&self, server: EdgeId) -> Option<&[u32]> {
        let dealt = || Some(self.task.as_ref()?.dealt()?.test_of_servers(&self.members(), &self.streams));
        let all = self.server_tests.get_or_init(|| dealt().unwrap_or_default());
        all.get(server.index()).map(|examples| &**examples)
    }

    /// Sentences on latencies with an infinite mean or variance; empty if no round waits for them for ever.
    pub fn heavy_tails(&self) -> Vec<String> {
        heavy_tails(&self.population, &self.protocol.rule)
    }
}

/// Number of servers that select clients.
fn servers(rule: &Rule) -> usize {
    match rule {
        Rule::Rounds(_) | Rule::Buffered(_) => 1,
        Rule::Hierarchical(rule) => rule.members.len(),
    }
}

/// Sentences on latencies with an infinite mean or variance, if nothing limits how long rounds wait for them.
fn heavy_tails(population: &Population, rule: &Rule) -> Vec<String> {
    if rule.cut().is_none() { population.heavy_tails() } else { Vec::new() }
}
