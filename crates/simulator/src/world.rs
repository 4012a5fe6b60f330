//! A world: everything that is the same for all policies of one scenario, point and seed.

mod counterfactual;

use crate::policy::{BuildContext, Cast, DeclaredDevice, Devices, Policy, PolicyConfig};
use crate::population::law::{GroupClient, TimeLaw};
use crate::population::{Population, PopulationConfig, PopulationError, Work};
use crate::protocol::{LinkConfig, Rule};
use crate::task::{DataCache, Learner, TaskConfig, TaskError};
use fedgenie_core::config::ConfigError;
use fedgenie_core::id::ClientId;
use fedgenie_core::kernel::Ties;
use fedgenie_core::law::{AnyLaw, ExpectedMinimum, Law};
use fedgenie_core::oracle::Genie;
use fedgenie_core::oracle::counterfactual::{Counterfactual, CounterfactualPlan};
use fedgenie_core::oracle::regret::{AllSets, MOST_SETS, Meter, subsets};
use fedgenie_core::oracle::reward::Reward;
use fedgenie_core::record::Phase;
use fedgenie_core::rng::Streams;
use fedgenie_core::time::Span;
use fedgenie_learning::aggregate::AggregationConfig;
use fedgenie_learning::trainer::LocalTraining;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a world is made of, checked as far as that is possible without building it.
#[derive(Clone, Debug)]
pub struct WorldPlan {
    /// The clients.
    pub population: PopulationConfig,
    /// What they learn.
    pub task: TaskConfig,
    /// How they train, for a task that trains.
    pub training: LocalTraining,
    /// Duration of an inference pass over the local data as a share of one training epoch.
    pub inference_share: f64,
    /// When rounds close.
    pub rule: Rule,
    /// The order of simultaneous events of a class.
    pub ties: Ties,
    /// How updates are folded into the global model.
    pub aggregation: AggregationConfig,
    /// The reward, where the scenario has a `[regret]` section.
    pub reward: Option<Reward>,
    /// The regret meters asked for.
    pub meters: Vec<Meter>,
    /// The regret in hindsight, if it is asked for.
    pub counterfactual: Option<CounterfactualPlan>,
}

/// Clients, data, and the truth about them.
#[derive(Debug)]
pub struct World {
    /// All random numbers of the seed.
    pub streams: Streams,
    /// The clients.
    pub population: Population,
    /// What they learn, if anything.
    pub learner: Option<Learner>,
    /// Bytes of the model, each way.
    pub payload_bytes: u64,
    /// How clients train.
    pub training: LocalTraining,
    /// Duration of an inference pass over the local data as a share of one training epoch.
    pub inference_share: f64,
    /// When rounds close.
    pub rule: Rule,
    /// The order of simultaneous events of a class.
    pub ties: Ties,
    /// How long a model travels from the cloud to each edge server and back; empty if no time.
    pub edge_links: Vec<[AnyLaw; 2]>,
    /// How updates are folded into the global model.
    pub aggregation: AggregationConfig,
    /// `d_k/Σd` per client.
    pub shares: Vec<f64>,
    /// The truth about speeds, where there is a reward.
    pub genie: Option<Genie>,
    /// The regret meters asked for.
    pub meters: Vec<Meter>,
    /// For the `expected` meters.
    pub expected: Option<Arc<ExpectedMinimum>>,
    /// For `expected-exact`.
    pub all_sets: Option<Arc<AllSets>>,
    /// The regret in hindsight, if it is metered.
    pub counterfactual: Option<Counterfactual>,
    /// What a careful user should know about this world.
    pub warnings: Vec<String>,
}

/// Why a world cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    /// Something in the scenario: path and sentence.
    #[error("{path}: {message}")]
    Scenario {
        /// Dotted path below the scenario's root.
        path: String,
        /// What was found and what would be right.
        message: String,
    },
    /// The task's data or partition.
    #[error("task: {0}")]
    Task(#[from] TaskError),
}

impl From<PopulationError> for WorldError {
    fn from(error: PopulationError) -> Self {
        Self::Scenario { path: error.path, message: error.message }
    }
}

impl WorldError {
    fn scenario(path: &str, message: impl Into<String>) -> Self {
        Self::Scenario { path: path.to_owned(), message: message.into() }
    }
}

impl WorldPlan {
    /// Builds the world of one seed.
    ///
    /// # Errors
    /// If the population, the task or the reward do not fit together; nothing is kept.
    pub fn build(&self, seed: u64, cache: &DataCache) -> Result<World, WorldError> {
        let mut world = self.prepare(seed, cache)?;
        if let Some(reward) = self.reward {
            world.know_the_truth(reward)?;
        }
        Ok(world)
    }

    /// Checks what can be wrong with one seed's world and right with another's, without working out the truth about it.
    ///
    /// # Errors
    /// As [`WorldPlan::build`].
    pub fn check(&self, seed: u64, cache: &DataCache) -> Result<(), WorldError> {
        self.prepare(seed, cache).map(|_| ())
    }

    /// The world without the truth about speeds.
    fn prepare(&self, seed: u64, cache: &DataCache) -> Result<World, WorldError> {
        let streams = Streams::new(seed);
        let clients = self.population.client_count()?;
        let material = self.task.material(&streams, cache)?;
        let payload_bytes = match (&material, &self.task) {
            (Some(material), _) => material.model.parameters() as u64 * 4,
            (None, TaskConfig::None(config)) => config.payload.0 as u64,
            (None, _) => 0,
        };
        let work = |data_sizes| Work { data_sizes, training: &self.training, payload_bytes };
        let (population, learner) = match material {
            None => (self.population.build(&work(None), &streams)?, None),
            Some(material) => {
                let declared = match material.partition.is_declared() {
                    true => Some(self.population.build(&work(None), &streams)?),
                    false => None,
                };
                let sizes = declared.as_ref().map_or(&[][..], Population::data_sizes);
                let partition = material
                    .partition
                    .build(&material.data.train, clients, sizes, &streams)
                    .map_err(TaskError::Partition)?;
                let population = match declared {
                    Some(population) => population,
                    None => {
                        let ids = (0..clients).map(ClientId::from_index);
                        let sizes: Vec<u32> = ids.map(|client| partition.size(client) as u32).collect();
                        self.population.build(&work(Some(&sizes)), &streams)?
                    }
                };
                let learner = Learner {
                    skew: partition.skew(&material.data.train),
                    data: material.data,
                    model: material.model,
                    partition,
                    classifies: material.classifies,
                    start: material.start,
                };
                (population, Some(learner))
            }
        };
        if population.can_lose() && self.rule.cut().is_none() {
            let message =
                "clients can be lost, and the round would wait for them for ever; give the protocol a timeout";
            return Err(WorldError::scenario("protocol", message));
        }
        if self.reward.is_some() && !self.rule.has_regret() {
            let message =
                "regret is defined for rounds of one server only; take [regret] out, or take another protocol";
            return Err(WorldError::scenario("regret", message));
        }
        let edge_links = self.edge_links(&streams)?;
        let warnings = population.notes().to_vec();
        let mut world = World {
            shares: population.shares(),
            streams,
            population,
            learner,
            payload_bytes,
            training: self.training.clone(),
            inference_share: self.inference_share,
            rule: self.rule.clone(),
            ties: self.ties,
            edge_links,
            aggregation: self.aggregation.clone(),
            genie: None,
            meters: self.meters.clone(),
            expected: None,
            all_sets: None,
            counterfactual: None,
            warnings,
        };
        if let Some(reward) = &self.reward {
            world.check_speeds_are_defined()?;
            world.check_tau_min(reward)?;
        }
        if let Some(plan) = &self.counterfactual {
            world.counterfactual = Some(world.with_hindsight(plan)?);
        }
        Ok(world)
    }

    fn edge_links(&self, streams: &Streams) -> Result<Vec<[AnyLaw; 2]>, WorldError> {
        let Rule::Hierarchical(rule) = &self.rule else { return Ok(Vec::new()) };
        let Some(LinkConfig { download, upload }) = &rule.link else { return Ok(Vec::new()) };
        let edges = rule.members.len();
        let build = |law: &TimeLaw, edge: usize, key: &str, place: u32| {
            let edge_place = GroupClient { client: edge as u32, in_group: edge, streams };
            let built = law.check_lengths(edges).and_then(|()| law.build(&edge_place, place));
            built.map_err(|message| WorldError::scenario(&format!("protocol.hierarchical.link.{key}"), message))
        };
        let links = |edge| Ok([build(download, edge, "download", 4)?, build(upload, edge, "upload", 5)?]);
        (0..edges).map(links).collect()
    }
}

impl World {
    /// Works out mean speeds and, where metered, expected minima.
    fn know_the_truth(&mut self, reward: Reward) -> Result<(), WorldError> {
        let tau_min = reward.tau_min.seconds();
        let mut known = BTreeMap::new();
        let ids = (0..self.population.len()).map(ClientId::from_index);
        let mean_speeds: Vec<f64> = ids
            .clone()
            .map(|client| {
                let mean = || self.population.job_latency(client, self.rule.cut()).mean_speed(tau_min);
                *known.entry(self.population.latency_key(client)).or_insert_with(mean)
            })
            .collect();
        let genie = Genie::new(reward, mean_speeds);
        if let Some(client) = genie.ambiguous_means().first() {
            self.warnings.push(format!(
                "the mean speed of {client} lies within 1e-6 of a half step of the quantum: which way it is rounded is \
                 a matter of the last digits"
            ));
        }
        if self.meters.iter().any(|meter| matches!(meter, Meter::Expected | Meter::ExpectedExact)) {
            if self.rule.take() < self.rule.ask() {
                let message = "`expected` is not defined under over-selection; take it out of the meters";
                return Err(WorldError::scenario("regret.meters", message));
            }
            let latencies: Vec<_> = ids.map(|client| self.population.job_latency(client, self.rule.cut())).collect();
            if latencies.iter().any(|latency| !latency.has_closed_form_cdf()) {
                self.warnings.push(
                    "the latency of some clients has no distribution function in closed form; the `expected` meter \
                     integrates it numerically"
                        .to_owned(),
                );
            }
            let expected = ExpectedMinimum::new(tau_min, &latencies, &genie.mean_speeds)
                .map_err(|error| WorldError::scenario("regret.meters", error.to_string()))?;
            if self.meters.contains(&Meter::ExpectedExact) {
                if subsets(self.population.len(), self.rule.ask()) > MOST_SETS {
                    let message =
                        format!("`expected-exact` enumerates at most {MOST_SETS} sets; take it out of the meters");
                    return Err(WorldError::scenario("regret.meters", message));
                }
                self.all_sets = Some(Arc::new(AllSets::new(self.population.len(), self.rule.ask(), &expected)));
            }
            self.expected = Some(Arc::new(expected));
        }
        self.genie = Some(genie);
        Ok(())
    }

    /// A mean speed is that of a client that is there all the time, on links that do not change.
    fn check_speeds_are_defined(&self) -> Result<(), WorldError> {
        if self.population.has_traced_links() {
            let message = "a client's link follows a trace, so that its latency depends on when it is asked for and its mean \
                           speed is not defined; leave [regret] out, or give downlink and uplink as rates";
            return Err(WorldError::scenario("regret", message));
        }
        if self.population.has_interruptions() {
            let message = "clients go away in the middle of their jobs, so that a job's latency depends on when it begins \
                           and a client's mean speed is not defined; leave [regret] out, or give interrupted = \"run-on\"";
            return Err(WorldError::scenario("regret", message));
        }
        Ok(())
    }

    /// Speeds must not exceed 1: no client's latency may fall below `tau_min`.
    fn check_tau_min(&self, reward: &Reward) -> Result<(), WorldError> {
        let tau_min = reward.tau_min.seconds();
        for client in (0..self.population.len()).map(ClientId::from_index) {
            let shortest: f64 = Phase::ALL.into_iter().map(|phase| self.population.law(client, phase).minimum()).sum();
            if shortest < tau_min * (1.0 - 1e-12) {
                let message = format!(
                    "found {tau_min} s, but the latency of {client} can fall to {shortest} s; tau_min is the shortest \
                     conceivable latency, so give at most that, or a latency law with a larger minimum"
                );
                return Err(WorldError::scenario("regret.tau_min", message));
            }
        }
        match self.rule.cut() {
            Some(cut) if cut < reward.tau_min => {
                let message = format!(
                    "found {tau_min} s, longer than the timeout or deadline of {} s, at which every round would end",
                    cut.seconds()
                );
                Err(WorldError::scenario("regret.tau_min", message))
            }
            _ => Ok(()),
        }
    }

    /// Duration of a client's inference pass as a share of a whole job's compute phase.
    pub fn inference_of_job(&self, client: ClientId) -> f64 {
        let size = self.population.data_sizes()[client.index()] as usize;
        let epochs = if size == 0 { 1.0 } else { self.training.examples(size) / size as f64 };
        self.inference_share / epochs
    }

    /// Makes a policy for a server that selects among all clients.
    ///
    /// # Errors
    /// Key and sentence, if the policy's parameters do not fit.
    pub fn policy(&self, config: &PolicyConfig) -> Result<Box<dyn Policy>, ConfigError> {
        self.with_context(|context| config.build(context))
    }

    /// Calls with what a policy may ask about a world in which one server selects among all clients.
    pub fn with_context<T>(&self, build: impl FnOnce(&BuildContext<'_>) -> T) -> T {
        self.with_context_of(self.population.len(), self.population.data_sizes(), build)
    }

    fn with_context_of<T>(&self, among: usize, data_sizes: &[u32], build: impl FnOnce(&BuildContext<'_>) -> T) -> T {
        build(&BuildContext {
            clients: self.population.len(),
            among,
            cohort: self.rule.ask(),
            take: self.rule.take(),
            data_sizes,
            trains: self.learner.is_some(),
            devices: &WorldDevices { population: &self.population, cut: self.rule.cut() },
        })
    }

    /// Makes a policy for this world: one for each server that selects clients, and the cloud's.
    ///
    /// # Errors
    /// Key and sentence, if the policy's parameters do not fit.
    pub fn cast(&self, config: &PolicyConfig) -> Result<Cast, ConfigError> {
        let Rule::Hierarchical(rule) = &self.rule else {
            let policy = self.policy(config)?;
            return match &self.rule {
                Rule::Buffered(_) => without_probes(policy).map(Cast::from),
                Rule::Rounds(_) | Rule::Hierarchical(_) => Ok(Cast::from(policy)),
            };
        };
        let all_sizes = self.population.data_sizes();
        let server = |members: &Vec<ClientId>| {
            // What others hold is none of this server's business.
            let mut sizes = vec![0; all_sizes.len()];
            for client in members {
                sizes[client.index()] = all_sizes[client.index()];
            }
            self.with_context_of(members.len(), &sizes, |context| config.build(context)).and_then(without_probes)
        };
        let servers = rule.members.iter().map(server).collect::<Result<_, _>>()?;
        let sizes: Vec<u32> =
            rule.members.iter().map(|members| members.iter().map(|client| all_sizes[client.index()]).sum()).collect();
        let cloud_context = BuildContext {
            clients: sizes.len(),
            among: sizes.len(),
            cohort: rule.edges_per_round,
            take: rule.edges_per_round,
            data_sizes: &sizes,
            trains: false,
            devices: &NoDevices,
        };
        let cloud = rule.cloud.as_ref().map(|policy| policy.build(&cloud_context).and_then(without_probes)).transpose();
        let cloud = cloud.map_err(|error| {
            ConfigError::new("", format!("the policy of the cloud: {}: {}", error.key, error.message))
        })?;
        Ok(Cast { servers, cloud })
    }
}

/// The policy, unless it asks clients before it selects.
fn without_probes(policy: Box<dyn Policy>) -> Result<Box<dyn Policy>, ConfigError> {
    if policy.probes() {
        let message = "asks clients before it selects, for which `buffered` and `hierarchical` have no time; take another policy, \
                       last-known losses or a context that takes no time";
        return Err(ConfigError::new("", message));
    }
    Ok(policy)
}

/// Edge servers declare nothing.
#[derive(Debug)]
struct NoDevices;

impl Devices for NoDevices {
    fn declared(&self, _: ClientId) -> DeclaredDevice {
        DeclaredDevice::default()
    }

    fn slowest_latency(&self, _: f64) -> f64 {
        0.0
    }
}

/// What clients declare: medians of their laws, quantiles of what rounds wait for them.
#[derive(Debug)]
struct WorldDevices<'a> {
    population: &'a Population,
    cut: Option<Span>,
}

impl Devices for WorldDevices<'_> {
    fn declared(&self, client: ClientId) -> DeclaredDevice {
        let median = |phase| self.population.law(client, phase).quantile(0.5);
        DeclaredDevice {
            compute_seconds: median(Phase::Compute),
            transfer_seconds: median(Phase::Download) + median(Phase::Upload),
        }
    }

    fn slowest_latency(&self, u: f64) -> f64 {
        let mut seen = std::collections::BTreeSet::new();
        (0..self.population.len())
            .map(ClientId::from_index)
            .filter(|&client| seen.insert(self.population.latency_key(client)))
            .map(|client| self.population.job_latency(client, self.cut).effective_quantile(u))
            .fold(0.0, f64::max)
    }
}
