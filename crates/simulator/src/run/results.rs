//! Results of a run, and its end.

use crate::metrics::{Clients, MOST_TOLD, Offers, Participation};
use crate::policy::{BoundWorld, Policy, RegretBound};
use crate::population::{Energy, Group};
use crate::protocol::Rule;
use crate::recorder::{ClusterState, Digests};
use crate::run::Protocol;
use crate::run::Run;
use crate::run::error::{Failed, RunError};
use crate::run::learning::{Learning, Trial, Tuned};
use crate::run::round::{Asker, Server};
use crate::run::timeline::Accounts;
use crate::world::Metrics;
use fedgenie_core::failure::Failure;
use fedgenie_core::halt::Halt;
use fedgenie_core::id::{ClientId, EdgeId, Round};
use fedgenie_core::metric::MetricId;
use fedgenie_core::record::Regret;
use fedgenie_core::time::VirtualTime;
use fedgenie_learning::algorithm::privacy::PrivacyEntry;
use fedgenie_learning::data::partition::Skew;
use fedgenie_learning::data::partition::skew::MOST_SIZES;
use fedgenie_learning::model::weights::to_safetensors;
use serde_json::Value;
use std::sync::Arc;

fn named(found: Vec<(&'static str, Value)>) -> Vec<(String, Value)> {
    found.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

impl Run<'_> {
    /// The round played last.
    pub const fn round(&self) -> Round {
        self.server.round()
    }

    /// What the accountant of privacy says of the run so far; `None` without a private mean.
    pub fn privacy(&mut self) -> Option<PrivacyEntry> {
        self.server.privacy()
    }

    /// Whether the budget pays for no further round.
    pub const fn is_spent(&self) -> bool {
        self.server.is_spent
    }

    /// Warnings of the policies about the run so far, and one on jobs that a replayed log does not have.
    pub fn warnings(&self) -> Vec<String> {
        let Accounts { dispatched, drawn, .. } = self.engine.accounts;
        let drawn = (drawn > 0).then(|| {
            format!(
                "{drawn} of {dispatched} jobs are not in the log of population.recorded: each is one of its client's own \
                 jobs, drawn at random"
            )
        });
        let of = |policy: &dyn Policy| {
            policy.warning().into_iter().chain(self.engine.world.beside_sums(policy)).collect::<Vec<String>>()
        };
        let mut warnings = match &self.protocol {
            Protocol::Rounds(rounds) => of(&*rounds.selector.policy),
            Protocol::Buffered(buffered) => of(&*buffered.selector.policy),
            Protocol::Hierarchy(hierarchy) => hierarchy.warnings(&of),
        };
        warnings.extend(drawn);
        warnings
    }

    /// Jobs so far that the log does not have which clients replay; `None` if they replay none.
    pub fn drawn(&self) -> Option<u64> {
        self.engine.world.population.recording().map(|_| self.engine.accounts.drawn)
    }

    /// The bound that a theorem states of the policy's regret in this world, where its meter is in use.
    ///
    /// # Errors
    /// If the policy fails.
    pub fn bound(&self) -> Result<Option<RegretBound>, RunError> {
        let world = self.engine.world;
        let (Protocol::Rounds(rounds), Rule::Rounds(rule), Some(truth)) =
            (&self.protocol, &world.protocol.rule, &world.truth)
        else {
            return Ok(None);
        };
        let seen = BoundWorld {
            cohort: rule.ask,
            take: rule.take,
            waits_for_all: rule.ask == rule.take && rule.cut.is_none(),
            is_always_available: world.population.availability().is_always(),
            shares: &world.shares,
            genie: &truth.genie,
        };
        let found = rounds.selector.policy.bound(&seen).map_err(|failure| self.bound_failed(failure))?;
        Ok(found.filter(|bound| truth.meters.contains(&bound.meter)))
    }

    /// The error of a policy that failed to state its bound.
    pub fn bound_failed(&self, failure: Failure) -> RunError {
        Failed::of("bound")(failure).told(Asker::Server.role(&self.server.label), self.round())
    }

    /// The current virtual time.
    pub const fn now(&self) -> VirtualTime {
        self.engine.now()
    }

    /// How unevenly the training examples are spread over clients, where clients train; with each edge server's
    /// distribution.
    pub fn skew(&self) -> Option<Skew> {
        let world = self.engine.world;
        let task = world.task.as_ref()?;
        let skew = task.describe().skew.clone()?;
        let members = match &world.protocol.rule {
            Rule::Hierarchical(rule) if rule.members.len() <= MOST_SIZES => &rule.members[..],
            Rule::Hierarchical(_) | Rule::Rounds(_) | Rule::Buffered(_) => return Some(skew),
        };
        let one = |(server, members): (usize, &Vec<ClientId>)| {
            task.dealt()?.class_counts(members, world.test_of(EdgeId::from_index(server)).unwrap_or_default())
        };
        Some(Skew { servers: members.iter().enumerate().filter_map(one).collect(), ..skew })
    }

    /// Cumulative regret.
    pub const fn regret(&self) -> Regret {
        self.server.regret
    }

    /// Reward of the last round, where there is one.
    pub const fn reward(&self) -> Option<f64> {
        self.server.reward
    }

    /// The clusters of the next round, where there are cluster models.
    pub fn clusters(&self) -> Option<&ClusterState> {
        match &self.protocol {
            Protocol::Hierarchy(hierarchy) => hierarchy.clusters(),
            Protocol::Rounds(_) | Protocol::Buffered(_) => None,
        }
    }

    /// Metrics of the last round, empty if it was not evaluated.
    pub fn metrics(&self) -> &[(MetricId, f64)] {
        &self.server.metrics
    }

    /// The measures of data of each edge server after the last round, in the order in which the task declares them, if
    /// servers were evaluated; `None` for a server without data to measure on.
    pub fn server_measures(&self) -> &[Option<Vec<f64>>] {
        &self.server.server_measures
    }

    /// The accuracy of the model that each server begins with, where its policy asks for it; `None` for other servers,
    /// or where it is unknown.
    pub fn initial_edge_accuracy(&self) -> Option<Vec<Option<f64>>> {
        let known = |accuracy: &f64| Some(*accuracy).filter(|accuracy| !accuracy.is_nan());
        self.server.accuracies.as_ref().map(|accuracies| accuracies.initial.iter().map(known).collect())
    }

    /// Traffic, waste and counts so far.
    pub const fn accounts(&self) -> &Accounts {
        &self.engine.accounts
    }

    /// Energy that jobs drew so far, phases under way included; `None` where no client has a battery.
    pub fn energy_of_jobs(&self) -> Option<Energy> {
        self.engine.energy_of_jobs()
    }

    /// Phones whose level is 0 now; `None` of more than [`MOST_TOLD`] clients, or without batteries.
    pub fn empty_phones(&self) -> Option<u64> {
        if self.counts().len() > MOST_TOLD { None } else { self.engine.energy().map(|energy| energy.empty) }
    }

    /// Times each client was selected.
    pub fn counts(&self) -> &[u32] {
        &self.server.counts
    }

    /// Selections and costs of each client so far, phases under way included; `None` of more than [`MOST_TOLD`].
    pub fn clients(&self) -> Option<Clients> {
        if self.counts().len() > MOST_TOLD {
            return None;
        }
        let (costs, lengths) = (self.engine.by_client(), self.engine.world.training.local.lengths.as_ref());
        Some(Clients {
            selections: self.counts().iter().map(|&count| count.into()).collect(),
            work: lengths.map_or_else(Vec::new, |lengths| lengths.iter().map(|&length| length.into()).collect()),
            compute_s: costs.iter().map(|cost| cost.compute.seconds()).collect(),
            down_bytes: costs.iter().map(|cost| cost.down_bytes).collect(),
            up_bytes: costs.iter().map(|cost| cost.up_bytes).collect(),
            ..Clients::default()
        })
    }

    /// How evenly clients were selected so far.
    pub const fn participation(&self) -> &Participation {
        &self.server.participation
    }

    /// How many clients selections were to have so far, and how many could have been asked.
    pub const fn offers(&self) -> &Offers {
        &self.server.offers
    }

    /// Values that policies derive for parameters that their scenario leaves open, by key: a list of edge servers'
    /// where they differ.
    pub fn effective(&self) -> Vec<(String, Value)> {
        match &self.protocol {
            Protocol::Rounds(rounds) => named(rounds.selector.policy.effective()),
            Protocol::Buffered(buffered) => named(buffered.selector.policy.effective()),
            Protocol::Hierarchy(hierarchy) => hierarchy.effective(),
        }
    }

    /// The same of the cloud's policy, where there is one.
    pub fn effective_in_cloud(&self) -> Vec<(String, Value)> {
        match &self.protocol {
            Protocol::Hierarchy(hierarchy) => named(hierarchy.effective_in_cloud()),
            Protocol::Rounds(_) | Protocol::Buffered(_) => Vec::new(),
        }
    }

    /// The digests so far.
    pub const fn digests(&self) -> &Digests {
        &self.engine.digests
    }

    /// The global model as the contents of a safetensors file, where clients train.
    pub fn model_file(&self) -> Option<Vec<u8>> {
        self.server.learning.as_ref().map(Learning::file)
    }

    /// The algorithm's memory as the contents of a safetensors file, if it has any.
    pub fn memory_file(&self) -> Option<Vec<u8>> {
        self.server.learning.as_ref().and_then(Learning::memory_file)
    }

    /// The weights of the policy's networks now as the contents of a safetensors file, where it has networks: of edge
    /// servers, under names that begin with `edge0.` and so on.
    pub fn policy_file(&self) -> Option<Vec<u8>> {
        let tensors = match &self.protocol {
            Protocol::Rounds(rounds) => rounds.selector.policy.tensors(),
            Protocol::Buffered(buffered) => buffered.selector.policy.tensors(),
            Protocol::Hierarchy(hierarchy) => hierarchy.tensors(),
        };
        (!tensors.is_empty()).then(|| to_safetensors(&tensors))
    }

    /// Whether clients train.
    pub const fn trains(&self) -> bool {
        self.server.learning.is_some()
    }

    /// Whether the next rounds spread the clients over the current rayon pool; changes no result.
    pub const fn set_parallel(&mut self, parallel: bool) {
        self.server.settings.parallel = parallel;
    }

    /// Lets a round end early once the flag is due, with [`RunError::Halted`]: between batches of training, blocks of
    /// an evaluation and events. The run cannot go on then; one that is never stopped does not notice the flag.
    pub fn set_halt(&mut self, halt: Halt) {
        if let Some(learning) = &mut self.server.learning {
            learning.halt = halt.clone();
        }
        self.engine.halt = halt;
    }

    /// Lets only some jobs train from here on, to find out what a round costs. The run has no results then.
    pub fn try_out(&mut self, trial: Arc<dyn Trial>) {
        if let Some(learning) = &mut self.server.learning {
            learning.trial = Some(trial);
        }
    }

    /// Selections per group so far, where groups are named.
    pub fn total_group_selections(&self) -> Option<serde_json::Map<String, serde_json::Value>> {
        if self.server.group_selections.is_empty() {
            return None;
        }
        let groups = self.engine.world.population.groups();
        let total = |group: &Group| -> u64 {
            let first = group.first.index();
            self.server.counts[first..first + group.count].iter().map(|&count| u64::from(count)).sum()
        };
        let names = self.server.group_selections.iter().map(|(name, _)| name.clone());
        Some(names.zip(groups.iter().map(|group| total(group).into())).collect())
    }

    /// The metrics of the model that the last round left, measured now; empty where nothing is learned. It changes
    /// nothing, and costs no virtual time.
    ///
    /// # Errors
    /// If the task lacks a number that it measures.
    pub fn measure(&self) -> Result<Metrics, RunError> {
        if self.server.metrics.is_empty() { self.measure_again() } else { Ok(self.server.metrics.clone()) }
    }

    /// Lets each client train its model further, for so many epochs, and measures the results on clients' data; nothing
    /// where nothing is learned. It changes nothing, and costs no virtual time.
    ///
    /// # Errors
    /// If the task fails, or the run is stopped.
    pub fn tuned(&self, epochs: u32) -> Result<Tuned, RunError> {
        let Server { learning, settings, .. } = &self.server;
        learning.as_ref().map_or(Ok(Tuned::default()), |learning| learning.tuned(epochs, settings.parallel))
    }

    /// As [`Self::measure`], also where the last round was evaluated.
    ///
    /// # Errors
    /// If the task lacks a number that it measures.
    pub fn measure_again(&self) -> Result<Metrics, RunError> {
        let Server { learning, settings, .. } = &self.server;
        let Some(learning) = learning else { return Ok(Metrics::new()) };
        let scopes = self.protocol.scopes();
        Ok(learning.evaluate(settings.evaluate.evaluated(&scopes, settings.parallel))?.metrics)
    }

    /// Ends the run: the final metrics (measured now if the last round was not evaluated) and the accounts.
    ///
    /// # Errors
    /// If one of the checks that every run passes does not hold, or the task lacks a number that it measures.
    pub fn finish(mut self) -> Result<(Metrics, Accounts), RunError> {
        match &self.protocol {
            Protocol::Rounds(rounds) => rounds.finish(&mut self.engine),
            Protocol::Buffered(_) => {}
            Protocol::Hierarchy(hierarchy) => hierarchy.finish(&mut self.engine),
        }
        let scopes = self.protocol.scopes();
        let Server { mut metrics, learning, settings, .. } = self.server;
        if metrics.is_empty()
            && let Some(learning) = &learning
        {
            metrics = learning.evaluate(settings.evaluate.evaluated(&scopes, settings.parallel))?.metrics;
        }
        Ok((metrics, self.engine.finish()?))
    }
}
