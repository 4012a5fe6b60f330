//! The policies of a run in a world: one for each server that selects, built from facts about the world.

use super::{Training, World};
use crate::policy::{
    Bounds, BuildContext, Capabilities, DeclaredDevice, Devices, Policies, Policy, PolicyConfig, PolicySource, Wants,
};
use crate::population::{Population, Recording};
use crate::protocol::{BufferedRule, HierarchicalRule, RoundRule, Rule};
use crate::task::Task;
use fedgenie_core::config::Complaint;
use fedgenie_core::id::ClientId;
use fedgenie_core::law::Law;
use fedgenie_core::metric::Place;
use fedgenie_core::record::Phase;
use fedgenie_core::time::Span;
use std::sync::Arc;

/// Evaluations of a run that policies may rely on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evaluated {
    /// Whether the model is evaluated after every round.
    pub every_round: bool,
    /// Whether it is then evaluated on each client's own data.
    pub clients: bool,
    /// Whether edge servers' models are then evaluated on their data.
    pub servers: bool,
    /// Whether those are too that they have made before the cloud combines them.
    pub edges: bool,
}

impl Evaluated {
    /// The places of statistics that are evaluated, in the order in which rounds have them.
    pub fn places(&self) -> Vec<Place> {
        let all = [(self.clients, Place::Clients), (self.servers, Place::Servers), (self.edges, Place::Edges)];
        all.into_iter().filter(|(is_evaluated, _)| *is_evaluated).map(|(_, place)| place).collect()
    }
}

impl World {
    /// Whether updates are combined by weights, so that a policy may give them.
    pub(crate) fn takes_weights(&self) -> bool {
        let has_own = self.task.as_ref().is_some_and(|task| task.combination().is_some());
        !has_own && self.training.algorithm.takes_weights()
    }

    /// Makes a policy for a server that selects among all clients.
    ///
    /// # Errors
    /// Key and sentence, if the policy's parameters do not fit.
    pub fn policy(&self, source: &PolicySource) -> Result<Box<dyn Policy>, Complaint> {
        self.with_context(|context| source.build(context))
    }

    /// Calls with the context of a policy in a world in which one server selects among all clients.
    pub fn with_context<T>(&self, build: impl FnOnce(&BuildContext<'_>) -> T) -> T {
        let rule = &self.protocol.rule;
        let bounds = match rule {
            Rule::Rounds(rule) => self.bounds(rule),
            Rule::Buffered(rule) => self.bounds_of_one(rule),
            Rule::Hierarchical(rule) => {
                Bounds { cohort: rule.most_asked(), most: rule.largest(), ..self.bounds(&rule.edge[0]) }
            }
        };
        self.with_context_of(self.population.len(), (bounds, rule.take()), self.population.data_sizes(), build)
    }

    /// The bounds of a policy's decisions in the rounds of a server.
    pub(crate) fn bounds(&self, rule: &RoundRule) -> Bounds {
        let RoundRule { ask: cohort, most, cut: deadline, cut_least: deadline_least, .. } = *rule;
        let Training { local, most_epochs, .. } = &self.training;
        Bounds { cohort, most, deadline, deadline_least, epochs: local.epochs(), most_epochs: *most_epochs }
    }

    /// The same bounds where clients are selected one by one.
    pub(crate) fn bounds_of_one(&self, rule: &BufferedRule) -> Bounds {
        let Training { local, most_epochs, .. } = &self.training;
        let (epochs, most_epochs) = (local.epochs(), *most_epochs);
        Bounds { cohort: 1, most: 1, deadline: rule.timeout, deadline_least: None, epochs, most_epochs }
    }

    fn with_context_of<T>(
        &self,
        among: usize,
        (bounds, take): (Bounds, usize),
        data_sizes: &[u32],
        build: impl FnOnce(&BuildContext<'_>) -> T,
    ) -> T {
        build(&BuildContext {
            seed: self.streams.seed(),
            clients: self.population.len(),
            among,
            cohort: bounds.cohort,
            take,
            per_model: if let Rule::Buffered(rule) = &self.protocol.rule { rule.buffer } else { take },
            bounds,
            data_sizes,
            in_rounds: matches!(self.protocol.rule, Rule::Rounds(_)),
            trains: self.task.as_ref().is_some_and(|task| task.describe().has_losses),
            probes: self.task.as_ref().map_or(&[], |task| task.probe_kinds()),
            devices: &WorldDevices {
                population: &self.population,
                task: self.task.as_deref(),
                cut: self.protocol.rule.cut(),
            },
            metrics: &self.measures.metrics(&self.evaluated.places()),
            evaluates_every_round: self.evaluated.every_round,
            budget: self.budget.bytes,
            least: self.budget.least,
            has_empty_rounds: self.training.algorithm.privacy.is_some()
                && matches!(self.protocol.rule, Rule::Rounds(_)),
        })
    }

    /// Makes the policies of this world: one for each server that selects clients, and the cloud's.
    ///
    /// # Errors
    /// Key and sentence, if the policy's parameters do not fit.
    pub fn policies(&self, source: &PolicySource) -> Result<Policies, Complaint> {
        self.check_limit(source)?;
        match &self.protocol.rule {
            Rule::Rounds(_) | Rule::Buffered(_) => {
                self.policy(source).and_then(|policy| self.content(policy)).map(Policies::Server)
            }
            Rule::Hierarchical(rule) => self.policies_of_tiers(source, rule),
        }
    }

    /// Refuses a policy's own limit that limits nothing.
    fn check_limit(&self, source: &PolicySource) -> Result<(), Complaint> {
        let asked = self.protocol.rule.most();
        match source {
            PolicySource::Limited(_, most) if *most as usize > asked => {
                let message = format!(
                    "found {most}; expected between 1 and {asked}, the most clients that this protocol selects at \
                     once: raise that, or take the key out"
                );
                Err(Complaint::new("cohort", message))
            }
            _ => Ok(()),
        }
    }

    /// The policy, unless it needs knowledge that this task does not have.
    fn content(&self, policy: Box<dyn Policy>) -> Result<Box<dyn Policy>, Complaint> {
        let (task, name) = (self.task.as_deref(), self.task_name);
        let has_model = task.is_some_and(|task| !task.layout().is_empty());
        let has_losses = task.is_some_and(|task| task.describe().has_losses);
        self.check_wants(&*policy, has_losses)?;
        self.check_private_mean(&*policy)?;
        self.check_sums(&*policy)?;
        let Capabilities { layout, bounds: _, subsets, forecast, level } = policy.capabilities();
        let is_judged = has_model && self.measures.judged().is_some();
        let lacking = [
            ("the layout of the model", layout && !has_model, "this task has no model; take another task"),
            (
                "the quality of subsets of updates",
                subsets && !is_judged,
                match self.measures.is_personal {
                    true => "clients keep a part of each model; take another algorithm",
                    false => "this task has no model that is measured; take another task",
                },
            ),
            (
                "forecasts of availability",
                forecast && self.population.forecast().is_none(),
                "the scenario gives none; give [population.forecast] horizon",
            ),
            ("levels of batteries", level && !self.population.batteries().are_seen(), self.why_no_levels()),
        ];
        if let Some((what, _, why)) = lacking.into_iter().find(|(_, lacks, _)| *lacks) {
            return Err(Complaint::new("", format!("declares {what}, and {why} or another policy")));
        }
        if policy.needs_losses() && !has_losses {
            let message = format!("compares losses of clients, and this task ({name}) has none; take another task");
            return Err(Complaint::new("", message));
        }
        let has_batches = task.and_then(|task| task.losses()).is_some_and(|losses| losses.has_batch_losses());
        if policy.needs_batch_losses() && !has_batches {
            let message = format!(
                "asks clients for the loss on a mini-batch, and this task ({name}) has losses of all of a client's data \
                 alone; take other losses or another task"
            );
            return Err(Complaint::new("", message));
        }
        let known: Vec<&str> = task.map_or(&[][..], |task| task.probe_kinds()).iter().map(|kind| kind.name).collect();
        let brought = policy.wants_answer();
        if let Some(kind) = policy.probe_kinds().iter().chain(&brought).find(|kind| !known.contains(kind)) {
            let known = if known.is_empty() { "nothing".to_owned() } else { known.join(", ") };
            let message = format!(
                "asks clients for {kind:?}, which this task ({name}) does not know; its clients answer to {known}"
            );
            return Err(Complaint::new("", message));
        }
        Ok(policy)
    }

    /// Refuses a policy that wants of updates what the task does not have.
    fn check_wants(&self, policy: &dyn Policy, has_losses: bool) -> Result<(), Complaint> {
        let (name, has_model) = (self.task_name, self.task.as_deref().is_some_and(|task| !task.layout().is_empty()));
        let Wants { loss_rms, quality, deviation, norm, update, change, model_quality, edge_accuracy } = policy.wants();
        let wanted = [
            ("loss_rms", loss_rms, has_losses),
            ("quality", quality, has_model && self.measures.judged().is_some()),
            ("deviation", deviation.is_some(), has_model),
            ("the norm", norm, has_model),
            ("the parameters", update, has_model),
            ("the changes", change, has_model),
            ("the quality of models", model_quality, self.measures.judged().is_some()),
        ];
        let missing: Vec<&str> =
            wanted.iter().filter(|(_, is_wanted, has)| *is_wanted && !has).map(|&(what, ..)| what).collect();
        if !missing.is_empty() {
            let missing = missing.join(", ");
            let message = match self.measures.is_personal {
                true => format!(
                    "wants {missing} of updates, and clients keep a part of each model, so that no server can judge one; take \
                     another algorithm or policy"
                ),
                false => format!(
                    "wants {missing} of updates, and this task ({name}) has no such thing; take another task or policy"
                ),
            };
            return Err(Complaint::new("", message));
        }
        if edge_accuracy.is_some() && self.measures.judged().is_none() {
            let message = match self.measures.is_personal {
                true => {
                    "wants the accuracy of models, and clients keep a part of each; take another algorithm or policy"
                        .to_owned()
                }
                false => format!(
                    "wants the accuracy of models, and this task ({name}) measures nothing; take another task or policy"
                ),
            };
            return Err(Complaint::new("", message));
        }
        Ok(())
    }

    /// Why policies see no levels of batteries, with the remedy.
    fn why_no_levels(&self) -> &'static str {
        match self.population.batteries().is_empty() {
            true => "clients have none; give [population.battery]",
            false => "the scenario hides some; give every client a battery with level = \"seen\"",
        }
    }

    fn policies_of_tiers(&self, source: &PolicySource, rule: &HierarchicalRule) -> Result<Policies, Complaint> {
        let all_sizes = self.population.data_sizes();
        let of_edge = |(members, rule): (&Vec<ClientId>, &RoundRule)| {
            // A server does not see the data sizes of other servers' clients.
            let mut sizes = vec![0; all_sizes.len()];
            for client in members {
                sizes[client.index()] = all_sizes[client.index()];
            }
            let sizes_of_rounds = (self.bounds(rule), rule.take.min(rule.ask));
            let policy = self.with_context_of(members.len(), sizes_of_rounds, &sizes, |context| source.build(context));
            policy.and_then(|policy| self.content(policy))
        };
        let edges = rule.members.iter().zip(&rule.edge).map(of_edge).collect::<Result<_, _>>()?;
        let sizes: Vec<u32> =
            rule.members.iter().map(|members| members.iter().map(|client| all_sizes[client.index()]).sum()).collect();
        let cloud_context = BuildContext {
            seed: self.streams.seed(),
            clients: sizes.len(),
            among: sizes.len(),
            cohort: rule.edges_per_round,
            take: rule.edges_per_round,
            per_model: rule.edges_per_round,
            bounds: Bounds { deadline: rule.cloud_timeout, ..Bounds::of_size(rule.edges_per_round) },
            data_sizes: &sizes,
            in_rounds: false,
            trains: false,
            probes: &[],
            devices: &NoDevices,
            metrics: &[],
            evaluates_every_round: false,
            budget: None,
            least: 1,
            has_empty_rounds: false,
        };
        let of_cloud = |source: &PolicyConfig| {
            let policy = source.build(&cloud_context).and_then(without_probes)?;
            if let Some(what) = policy.capabilities().of_clients() {
                let message = format!("declares {what}, which edge servers have not; take another policy");
                return Err(Complaint::new("", message));
            }
            if policy.wants() != Wants::default() || policy.needs_losses() {
                let message = "wants to know of training, of which the cloud's policy is told nothing; take another";
                return Err(Complaint::new("", message));
            }
            Ok(policy)
        };
        let cloud = rule.cloud.as_ref().map(of_cloud).transpose();
        let cloud = cloud.map_err(|error| {
            let at = if error.path.is_empty() { String::new() } else { format!("{}: ", error.path) };
            Complaint::new("", format!("the policy of the cloud: {at}{}", error.message))
        })?;
        Ok(Policies::Tiers { edges, cloud })
    }
}

/// The policy of the cloud, unless it probes: edge servers give no answers.
fn without_probes(policy: Box<dyn Policy>) -> Result<Box<dyn Policy>, Complaint> {
    if policy.probes() {
        let message = "asks clients before it selects, and edge servers have no answers; take another policy, last-known losses \
                       or a context that takes no time";
        return Err(Complaint::new("", message));
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

    fn usual_latency(&self) -> f64 {
        0.0
    }
}

/// Clients' declarations: medians of their laws, quantiles of rounds' waits for them.
#[derive(Debug)]
struct WorldDevices<'a> {
    population: &'a Population,
    task: Option<&'a dyn Task>,
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

    fn links(&self, client: ClientId) -> Option<[f64; 2]> {
        Some([Phase::Download, Phase::Upload].map(|phase| self.population.law(client, phase).quantile(0.5)))
    }

    fn slowest_latency(&self, u: f64) -> f64 {
        let mut seen = std::collections::BTreeSet::new();
        (0..self.population.len())
            .map(ClientId::from_index)
            .filter(|&client| seen.insert(self.population.latency_key(client)))
            .map(|client| self.population.job_latency(client, self.cut).effective_quantile(u))
            .fold(0.0, f64::max)
    }

    fn usual_latency(&self) -> f64 {
        self.population.usual_latency()
    }

    fn recording(&self) -> Option<Arc<Recording>> {
        self.population.recording().cloned()
    }

    fn categories(&self) -> Option<Vec<Vec<u64>>> {
        self.task?.dealt()?.categories()
    }

    fn features(&self) -> Option<Vec<Vec<f64>>> {
        self.task?.describe().user_features.clone()
    }
}
