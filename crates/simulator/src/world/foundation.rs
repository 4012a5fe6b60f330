//! A world without the truth about it: clients, data, and the rest of the scenario checked against them.

use super::checks::check_rounds;
use super::{Truth, WorldError, WorldPlan, adversary, hindsight, servers};
use crate::clusters::Clusters;
use crate::population::{Population, PopulationConfig, Work};
use crate::protocol::Rule;
use crate::task::{DataCache, Material, Outline, TaskError};
use crate::world::Budget;
use crate::world::heavy_tails;
use fedgenie_core::config::Complaint;
use fedgenie_core::law::AnyLaw;
use fedgenie_core::oracle::hindsight::Hindsight;
use fedgenie_core::rng::Streams;
use fedgenie_learning::adversary::Adversaries;
use fedgenie_learning::algorithm::{Algorithm, personal_layers};
use fedgenie_learning::task::Task;
use fedgenie_learning::trainer::LocalTraining;
use std::sync::Arc;

/// A world without the truth, which takes long to work out.
pub(super) struct Foundation {
    pub streams: Streams,
    pub population: Population,
    pub rule: Rule,
    pub task: Option<Arc<dyn Task>>,
    pub payload_bytes: u64,
    pub edge_links: Vec<[AnyLaw; 2]>,
    pub hindsight: Option<Hindsight>,
    pub clusters: Option<Clusters>,
    pub local: LocalTraining,
    pub algorithm: Algorithm,
    pub budget: Budget,
    pub adversaries: Option<Adversaries>,
    pub warnings: Vec<String>,
}

/// Clients, and what they learn.
type People = (Population, Option<Arc<dyn Task>>);

/// Who is hostile, and the task with the labels that they train on.
type Hostile = (Option<Adversaries>, Option<Arc<dyn Task>>);

impl WorldPlan {
    pub(super) fn foundation(&self, seed: u64, cache: &DataCache) -> Result<Foundation, WorldError> {
        let streams = Streams::new(seed);
        let mut material = self.task.material(&streams, cache)?;
        let plan = self.counted(material.as_ref().and_then(|material| material.clients()))?;
        let clients = plan.client_count()?;
        if let Some(plan) = self.with_lengths(clients, &streams)? {
            return plan.foundation(seed, cache);
        }
        let (protocol, kind) = (&self.protocol, self.protocol.kind());
        let mut rule = protocol.rule(clients).map_err(|complaint| complaint.below(kind).below("protocol"))?;
        let outline = Outline { clients, servers: servers(&rule), planned: self.planned };
        self.task.check_outline(&outline).map_err(TaskError::Setting)?;
        self.check_servers(&rule)?;
        self.changes(&rule, None)?;
        let mut clusters = self.cluster_models(&rule)?;
        let made = clusters.as_ref().zip(material.as_mut()).and_then(|(clusters, material)| {
            let model = clusters.model;
            material.clustered(model, clusters.networks())
        });
        self.leave_with_clients(material.as_deref_mut())?;
        let unlearned = || self.task.about().payload_bytes;
        let payload_bytes = material.as_ref().map_or_else(unlearned, |material| material.whole_bytes());
        let (population, task) = self.people((&plan, clients), (material, payload_bytes), &streams)?;
        check_rounds(&population, &rule)?;
        self.check_regret(&rule)?;
        let algorithm = self.algorithm(&mut rule, task.as_deref(), &streams)?;
        let (adversaries, task) = self.hostile((&population, task), &algorithm, &streams)?;
        let task = with_own_models(task, &algorithm, &streams)?;
        self.check_meters(&population, task.as_deref(), &algorithm)?;
        self.check_noise(task.as_deref())?;
        self.check_charge(&rule)?;
        let edge_links = self.edge_links(&rule, &streams)?;
        let mut warnings = self.notes((&population, &rule), task.as_deref(), adversaries.as_ref());
        if let Some(clusters) = &clusters {
            self.check_losses(clusters, task.as_deref())?;
            self.check_told_losses(clusters, task.as_deref(), &rule)?;
            warnings.extend(self.check_networks(clusters, task.as_deref())?);
        }
        let mut local = self.local_training(task.is_some(), &algorithm);
        if let (Some(clusters), Some(model), Some(task)) = (&clusters, made, &task) {
            local.decays = clusters.decays(model, task.layout());
        }
        if let Some(clusters) = &mut clusters {
            clusters.model = made.or(clusters.model);
        }
        if let Some(reward) = &self.reward {
            Truth::check(reward, &population, &rule)?;
        }
        let budget = self.budget(
            (&rule, population.len()),
            (task.as_deref(), payload_bytes, &algorithm),
            (&local, &streams),
            &mut warnings,
        )?;
        let hindsight = self.judged((&population, &rule), task.as_deref(), budget)?;
        self.check_slope(task.as_deref(), &streams, &rule)?;
        Ok(Foundation {
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
            warnings,
        })
    }

    /// Leaves a part of the model with clients, if the algorithm says so.
    fn leave_with_clients(&self, material: Option<&mut (dyn Material + '_)>) -> Result<(), WorldError> {
        let layers = personal_layers(&self.algorithm);
        let Some(((name, layers), material)) = layers.as_ref().zip(material) else { return Ok(()) };
        let below = |complaint: Complaint| complaint.below(name).below("algorithm");
        material.personal(layers).map_err(|complaint| WorldError::Scenario(below(complaint)))
    }

    /// The plan with the epochs or steps of each client; `None` where clients do not differ in these.
    fn with_lengths(&self, clients: usize, streams: &Streams) -> Result<Option<Self>, WorldError> {
        let Some(count) = &self.lengths else { return Ok(None) };
        let key = if self.training.counts_steps() { "training.steps" } else { "training.epochs" };
        let lengths = count.of_clients(clients, streams).map_err(|message| WorldError::scenario(key, message))?;
        let training = LocalTraining { lengths: Some(lengths), ..self.training.clone() };
        Ok(Some(Self { training, lengths: None, ..self.clone() }))
    }

    /// The clients, with data dealt to them.
    fn people(
        &self,
        (plan, clients): (&PopulationConfig, usize),
        (material, payload_bytes): (Option<Box<dyn Material>>, u64),
        streams: &Streams,
    ) -> Result<People, WorldError> {
        let work = |data_sizes| Work { data_sizes, training: &self.training, payload_bytes };
        let Some(material) = material else { return Ok((plan.build(&work(None), streams)?, None)) };
        let declared = self.has_declared_sizes().then(|| plan.build(&work(None), streams)).transpose()?;
        let sizes = declared.as_ref().map_or(&[][..], Population::data_sizes);
        let task = material.deal(clients, sizes, streams)?;
        assert_eq!(task.describe().examples.len(), clients, "a task describes each of its clients");
        let population = match declared {
            Some(population) => population,
            None => plan.build(&work(Some(&task.describe().examples)), streams)?,
        };
        Ok((population, Some(task)))
    }

    /// Warnings about clients and data.
    fn notes(
        &self,
        (population, rule): (&Population, &Rule),
        task: Option<&dyn Task>,
        hostile: Option<&Adversaries>,
    ) -> Vec<String> {
        let mut warnings = population.notes().to_vec();
        warnings.extend(heavy_tails(population, rule));
        let among = self.adversary.as_ref().zip(hostile);
        warnings.extend(among.and_then(|(config, hostile)| config.warning(hostile, population.len())));
        warnings.extend(task.iter().flat_map(|task| task.describe().warnings.iter().cloned()));
        warnings
    }

    /// Checks that regret is defined under a protocol.
    fn check_regret(&self, rule: &Rule) -> Result<(), WorldError> {
        if self.reward.is_some() && !rule.has_regret() {
            let message =
                "regret is defined for rounds of one server only; take [regret] out, or take another protocol";
            return Err(WorldError::scenario("regret", message));
        }
        let is_compared = self.reward.is_some() || self.hindsight.is_some();
        if let Some(key) = rule.decided().filter(|_| is_compared) {
            let message = format!(
                "is defined for rounds of one size and deadline, and {key} of the protocol lets policies decide that; take one \
                 of the two out"
            );
            return Err(WorldError::scenario("regret", message));
        }
        Ok(())
    }

    /// Checks that clients have mean speeds, where meters need them.
    fn check_meters(
        &self,
        population: &Population,
        task: Option<&dyn Task>,
        algorithm: &Algorithm,
    ) -> Result<(), WorldError> {
        let sends_parts = task.is_some_and(|task| task.partial().is_some()) || algorithm.sends_more();
        let message = match () {
            () if self.meters.is_empty() => return Ok(()),
            () if algorithm.secure.is_some() && (population.has_links() || algorithm.works_more()) => {
                "mean speeds are those of usual jobs, and secure aggregation adds bytes and computing to each; take the \
                 meters, or [privacy.secure-aggregation], out"
            }
            () if sends_parts && population.has_links() => {
                "mean speeds are not defined where transfers over links take as long as the rows of a job need, \
                 which differ from job to job; give latency instead of device, send whole tables, or take the meters out"
            }
            () if algorithm.works_more() => {
                "mean speeds are those of usual jobs, and an inference pass, the training of another model or encoding is \
                 added to each; take the meters, or that, out"
            }
            () => return Ok(()),
        };
        Err(WorldError::scenario("regret.meters", message))
    }

    /// Who is hostile, and the task with the labels that they train on.
    fn hostile(
        &self,
        (population, task): (&Population, Option<Arc<dyn Task>>),
        algorithm: &Algorithm,
        streams: &Streams,
    ) -> Result<Hostile, WorldError> {
        let Some(config) = &self.adversary else { return Ok((None, task)) };
        let others = adversary::Others {
            task: self.task.about().name,
            meters_speeds: !self.meters.is_empty(),
            is_hindsight: self.hindsight.is_some(),
            drifts: self.task.about().drift.is_some(),
            shifts: self.task.about().shifts,
        };
        let (adversaries, task) = config.found(population, (task, algorithm), streams, others)?;
        Ok((Some(adversaries), task))
    }

    /// The regret in hindsight, where it is metered.
    fn judged(
        &self,
        (population, rule): (&Population, &Rule),
        task: Option<&dyn Task>,
        budget: Budget,
    ) -> Result<Option<Hindsight>, WorldError> {
        let plan = self.hindsight.as_ref();
        if plan.is_some() && self.declared_measures().is_personal {
            let message = "compares models that a server judges, and clients keep a part of each; take the regret out, or \
                           the algorithm's private layers";
            return Err(WorldError::scenario("regret.counterfactual", message));
        }
        // A sum over clients needs models to be scored; the value of a set may come from a script.
        let needs_models = plan.is_some_and(|plan| plan.utility.of_sets().is_none());
        let learns = task.is_some_and(|task| !needs_models || !task.layout().is_empty());
        let measures = learns.then(|| self.measures(task));
        let learned = (measures.as_ref(), task);
        plan.map(|plan| hindsight::define(plan, population, rule, learned, budget)).transpose()
    }
}

/// The task, where clients have models of their own if the algorithm says so.
fn with_own_models(
    task: Option<Arc<dyn Task>>,
    algorithm: &Algorithm,
    streams: &Streams,
) -> Result<Option<Arc<dyn Task>>, WorldError> {
    let Some((task, own)) = task.as_ref().zip(algorithm.own_models) else { return Ok(task) };
    let found = task.with_own_models(own, streams);
    found.map(Some).map_err(|message| WorldError::scenario("algorithm.ditto", message))
}
