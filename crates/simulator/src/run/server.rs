//! The server of a run, or its cloud: the global model, what is known of the clients, and how a round ends.

mod opening;

pub(super) use opening::RoundUnderWay;

use super::checkpoint::Shared;
use super::clusters::ClusterDecision;
use super::engine::{Engine, THE_SERVER};
use super::hindsight::{Found, HindsightMeter, OpenRound};
use super::learning::{Accuracies, Before, Intake, Learning, Measured, ServerScope, Sought, Trained};
use super::{Accounts, Metrics, RunError, RunSettings, evaluations};
use crate::metrics::{Offers, Participation};
use crate::policy::{AccuracyOn, Explanation, Feedback, ModelQuality, Policy, RoundReport};
use crate::recorder::{ClusterState, HindsightRound, RoundJobs, RoundMark, RoundSummary, RoundUpdates, ServerRound};
use crate::world::World;
use fedgenie_core::id::{ClientId, EdgeId, Round, Turn};
use fedgenie_core::math::sum::CompensatedSum;
use fedgenie_core::record::{Record, Regret};
use fedgenie_core::state::{State, Stateful};
use fedgenie_core::time::VirtualTime;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The round, the global model, how often clients were selected, and what was measured.
pub(super) struct Server<'w> {
    pub label: String,
    pub settings: RunSettings,
    /// The round under way, or the last one.
    round: Round,
    /// Times each client was selected.
    pub counts: Vec<u32>,
    /// How evenly clients were selected.
    pub participation: Participation,
    /// How many clients selections were to have.
    pub offers: Offers,
    pub learning: Option<Learning<'w>>,
    /// Of the last round, if it was evaluated.
    pub metrics: Metrics,
    /// The measures of each edge server, if servers were evaluated in the last round.
    pub server_measures: Vec<Option<Vec<f64>>>,
    /// Of the last round, where there is a reward.
    pub reward: Option<f64>,
    /// Cumulative.
    pub regret: Regret,
    /// Per named group since the last recorded round.
    pub group_selections: Vec<(String, u64)>,
    mark: RoundMark,
    /// Bytes down and up at the end of the last round, of clients or of edge servers.
    told_bytes: (u64, u64),
    /// Of the current model, where the policy wants to know it.
    quality: Option<f64>,
    /// Of the models of servers, where their policies want to know it.
    pub accuracies: Option<Accuracies>,
    /// What was judged in hindsight.
    pub hindsight: Judged,
    /// Of the selections of the round, where they are recorded.
    pub explanations: Vec<Map<String, Value>>,
    /// Of the round, where they are recorded.
    updates: RoundUpdates,
    /// Whether the budget pays for no further round.
    pub is_spent: bool,
    /// When clients have answered to the last evaluation, where they are charged for it.
    pub evaluated: VirtualTime,
}

/// How a round ends.
pub(super) struct Closing<'a, 'w> {
    /// The round.
    pub round: RoundUnderWay,
    pub jobs: &'a RoundJobs,
    /// The round had too few updates to count.
    pub is_abandoned: bool,
    /// The budget pays for no further round.
    pub is_spent: bool,
    pub intake: Intake,
    /// The meter of regret in hindsight, with the round that it opened.
    pub hindsight: Option<(&'a mut HindsightMeter<'w>, OpenRound<'w>)>,
    /// The policy of this tier.
    pub policy: Option<Told<'a>>,
    /// The edge servers; none where there is one server.
    pub scopes: &'a [ServerScope<'a>],
    /// Who decides about clusters, where there are cluster models.
    pub clusters: Option<&'a mut ClusterDecision>,
}

/// What selections lost in hindsight.
#[derive(Default, Stateful)]
pub(super) struct Judged {
    /// Of the round under way.
    #[state(empty = "judgements are recorded at the end of their round")]
    of_round: Vec<HindsightRound>,
    lost: f64,
    /// Of all rounds; none before the first that was judged.
    total: Option<CompensatedSum>,
}

impl Judged {
    pub fn add(&mut self, found: Found) {
        self.lost += found.lost;
        self.of_round.push(found.judged);
    }

    /// The regret up to the end of this round: of edge servers, the mean over those that selected.
    fn close_round(&mut self) -> Option<f64> {
        if !self.of_round.is_empty() {
            let servers: BTreeSet<Option<EdgeId>> = self.of_round.iter().map(|judged| judged.server).collect();
            let lost = std::mem::take(&mut self.lost) / servers.len() as f64;
            self.total.get_or_insert_default().add(lost);
        }
        self.total.as_ref().map(CompensatedSum::value)
    }
}

/// A policy that is told of a round.
pub(super) struct Told<'a> {
    pub policy: &'a mut (dyn Policy + 'static),
    /// Its last selection.
    pub turn: Turn,
    /// Whom it has selected since it was told of a round.
    pub selected: &'a [ClientId],
    /// Whose it is in explanations, where there are several.
    pub server: Option<Value>,
}

/// The cloud among the servers of explanations.
pub(super) const CLOUD: &str = "cloud";

/// An explanation with the numbers that tell the selections of a round apart.
pub(super) fn numbered(object: Map<String, Value>, turn: Turn, server: Option<Value>) -> Map<String, Value> {
    let server = server.map(|server| ("server".to_owned(), server));
    let numbers = [("turn".to_owned(), turn.0.into())].into_iter().chain(server);
    numbers.chain(object).collect()
}

impl<'w> Server<'w> {
    pub fn new(world: &'w World, label: &str, settings: RunSettings) -> Self {
        let groups = world.population.groups();
        let named = groups.iter().any(|group| group.name.is_some());
        let name = |(index, group): (usize, &crate::population::Group)| {
            (group.name.clone().unwrap_or_else(|| format!("group {}", index + 1)), 0)
        };
        Self {
            label: label.to_owned(),
            settings,
            round: Round(0),
            counts: vec![0; world.population.len()],
            participation: Participation::new(world.population.len()),
            offers: Offers::default(),
            learning: world.task.as_deref().map(|task| Learning::new(world, task, world.clusters())),
            metrics: Vec::new(),
            server_measures: Vec::new(),
            reward: None,
            regret: Regret::default(),
            group_selections: if named { groups.iter().enumerate().map(name).collect() } else { Vec::new() },
            mark: RoundMark::default(),
            told_bytes: (0, 0),
            quality: None,
            accuracies: None,
            hindsight: Judged::default(),
            explanations: Vec::new(),
            updates: RoundUpdates::default(),
            is_spent: false,
            evaluated: VirtualTime::START,
        }
    }

    /// Between rounds: all but what belongs to a round under way.
    pub fn exchange(&mut self, state: &mut State<'_>, models: &mut Shared) {
        let Self {
            label: _,
            settings: _,
            round,
            counts,
            participation,
            offers,
            learning,
            metrics,
            server_measures,
            reward,
            regret,
            group_selections,
            mark: _,
            told_bytes,
            quality,
            accuracies,
            hindsight,
            explanations: _,
            updates: _,
            is_spent: _,
            evaluated,
        } = self;
        state.field(round);
        state.fields(counts);
        state.field(participation);
        state.field(offers);
        if let Some(learning) = learning {
            learning.exchange(state, models);
            learning.take_data_of(*round);
        }
        state.field(metrics);
        state.field(server_measures);
        state.field(reward);
        state.field(regret);
        group_selections.iter_mut().for_each(|(_, count)| state.field(count));
        state.field(told_bytes);
        state.field(quality);
        accuracies.iter_mut().for_each(|accuracies| state.field(accuracies));
        state.field(hindsight);
        state.field(evaluated);
    }

    /// Before the first round: measures the models that servers begin with, of those whose policies ask.
    pub fn measure_accuracies(&mut self, world: &World, wanted: Vec<Option<AccuracyOn>>) {
        let parallel = self.settings.parallel;
        let learning = self.learning.as_ref();
        self.accuracies = learning.and_then(|learning| Accuracies::new(world, learning, wanted, parallel));
    }

    /// What is to be found out about updates for a policy and for the records.
    pub fn sought(&self, policy: &dyn Policy) -> Sought {
        let probe = |kind| self.learning.as_ref()?.probe(kind);
        let answer = policy.wants_answer().and_then(probe);
        Sought { wants: self.settings.wants(policy), answer, subsets: policy.capabilities().subsets }
    }

    /// Counts a selection that is being carried out.
    pub fn count(&mut self, world: &World, selection: &[ClientId]) {
        for &client in selection {
            let count = &mut self.counts[client.index()];
            self.participation.count(*count);
            *count += 1;
            if let Some((_, count)) = self.group_selections.get_mut(world.population.group_of(client)) {
                *count += 1;
            }
        }
    }

    /// Ends a round: trains and aggregates what it took in, evaluates where that is due, tells the policy, and records
    /// it.
    pub fn close(&mut self, engine: &mut Engine<'_>, closing: Closing<'_, 'w>) -> Result<(), RunError> {
        let Closing { round, jobs, is_abandoned, is_spent, intake, hindsight, policy, scopes, clusters } = closing;
        let opened = round.opened();
        let sought = policy.as_ref().map_or_else(Sought::default, |told| self.sought(&*told.policy));
        let wants = sought.wants;
        let (now, round, parallel) = (engine.now(), self.round, self.settings.parallel);
        self.is_spent = is_spent;
        self.metrics.clear();
        self.server_measures.clear();
        let (mut trained, mut quality, mut edge_accuracy, mut before) = (Vec::new(), None, None, None);
        if let Some(learning) = &mut self.learning {
            before = sought.subsets.then(|| learning.before(round, None));
            if wants.model_quality && self.quality.is_none() {
                self.quality = Some(learning.quality(None, parallel)?);
            }
            let aggregated = learning.aggregate(round, intake, sought, parallel)?;
            if aggregated.is_new_model {
                for parameters in &aggregated.learning.digested() {
                    engine.note(&Record::Model { round, parameters })?;
                }
            }
            for (client, values) in aggregated.learning.kept(&aggregated.trained) {
                engine.note(&Record::Private { round, client, values })?;
            }
            if let Some((meter, open)) = hindsight {
                let updates = (aggregated.learning, &*aggregated.trained);
                self.hindsight.add(meter.close(&open, updates, &jobs.selected, parallel));
            }
            let is_new_model = aggregated.is_new_model;
            trained = aggregated.trained;
            let plan = &self.settings.evaluate;
            let is_last = is_spent || plan.end.is_reached(round, now, &engine.accounts);
            let is_due = plan.is_due(round, opened, now) || is_last;
            if is_due {
                let Measured { metrics, servers } = learning.evaluate(plan.evaluated(scopes, parallel))?;
                (self.metrics, self.server_measures) = (metrics, servers);
                if engine.world.charges_evaluation {
                    self.evaluated = now + evaluations::charge(engine, round)?;
                }
            }
            if let Some(before) = self.quality {
                let measured = is_due.then_some(&self.metrics[..]);
                let after = if is_new_model { learning.quality(measured, parallel)? } else { before };
                (quality, self.quality) = (Some(ModelQuality { before, after }), Some(after));
            }
            if let Some(accuracies) = &mut self.accuracies
                && let (Some(on), true) = (accuracies.asked(THE_SERVER), scopes.is_empty())
            {
                let found = learning.accuracy(on, &self.metrics, parallel)?;
                edge_accuracy = accuracies.note(THE_SERVER, found);
            }
        }
        self.regret.hindsight = self.hindsight.close_round();
        for &(metric, value) in &self.metrics {
            if engine.world.measures.is_digested(metric) {
                engine.note(&Record::Metric { round, metric, value })?;
            }
        }
        self.note_updates(&trained);
        let tier_bytes = self.bytes_since(&engine.accounts, !scopes.is_empty());
        if let Some(Told { policy, turn, selected, server }) = policy {
            let (duration, metrics) = (now - opened, &*self.metrics);
            let (down_bytes, up_bytes) = tier_bytes;
            let report =
                RoundReport { turn, round, selected, duration, down_bytes, up_bytes, metrics, quality, edge_accuracy };
            report_round(policy, self.learning.as_ref(), (&trained, before.as_ref(), parallel), report);
            self.explain_after(policy, turn, server, selected);
        }
        let clusters = match clusters {
            Some(decision) => {
                let (turn, duration, metrics) = (Turn(round.0), now - opened, &*self.metrics);
                let (down_bytes, up_bytes) = tier_bytes;
                let report = RoundReport {
                    turn,
                    round,
                    selected: &[],
                    duration,
                    down_bytes,
                    up_bytes,
                    metrics,
                    quality,
                    edge_accuracy: None,
                };
                decision.decide(engine, self.learning.as_ref(), &report, scopes, parallel)?;
                self.regret.assignment = decision.regret();
                Some(decision.state())
            }
            None => None,
        };
        let servers = self.servers(engine.world, scopes);
        self.record(engine, opened, jobs, (is_abandoned, clusters, servers.as_deref()))
    }

    /// Bytes down and up since the last round: of clients, or of edge servers where there are any.
    fn bytes_since(&mut self, accounts: &Accounts, has_edges: bool) -> (u64, u64) {
        let Accounts { down_bytes, up_bytes, edge_down_bytes, edge_up_bytes, .. } = *accounts;
        let now = if has_edges { (edge_down_bytes, edge_up_bytes) } else { (down_bytes, up_bytes) };
        let before = std::mem::replace(&mut self.told_bytes, now);
        (now.0 - before.0, now.1 - before.1)
    }

    /// Keeps what updates said of their training, where that is recorded.
    pub fn note_updates(&mut self, trained: &[Trained]) {
        if self.settings.updates {
            let RoundUpdates { clients, examples, loss, loss_rms, latency_s } = &mut self.updates;
            clients.extend(trained.iter().map(|trained| trained.client));
            examples.extend(trained.iter().map(|trained| trained.examples));
            loss.extend(trained.iter().map(|trained| trained.loss));
            loss_rms.extend(trained.iter().map(|trained| trained.loss_rms));
            latency_s.extend(trained.iter().map(|trained| trained.latency.seconds()));
        }
    }

    /// Adds what a policy has learned to the explanation of its last selection.
    pub fn explain_after(&mut self, policy: &dyn Policy, turn: Turn, server: Option<Value>, clients: &[ClientId]) {
        if !self.settings.explain {
            return;
        }
        let mut after = Explanation::default();
        policy.explain_after(clients, &mut after);
        let after = after.into_json();
        if after.is_empty() {
            return;
        }
        let is_its = |object: &&mut Map<String, Value>| object.get("server") == server.as_ref();
        match self.explanations.iter_mut().rev().find(is_its) {
            Some(object) => drop(object.insert("after".to_owned(), after.into())),
            // Nobody was selected since the last round.
            None => {
                let object = [("after".to_owned(), after.into())].into_iter().collect();
                self.explanations.push(numbered(object, turn, server));
            }
        }
    }

    /// What is known of each server in this round, where servers are evaluated or a policy asks for the accuracy of its
    /// models.
    fn servers(&self, world: &World, scopes: &[ServerScope<'_>]) -> Option<Vec<ServerRound>> {
        let learning = self.learning.as_ref()?;
        if self.accuracies.is_none() && self.server_measures.is_empty() {
            return None;
        }
        // The one server of protocols without edge servers has all test data.
        let of_all = learning.on_test(&self.metrics).filter(|_| scopes.is_empty());
        let one = |(index, members): (usize, Vec<ClientId>)| {
            let server = EdgeId::from_index(index);
            let cluster = scopes.get(index).filter(|_| world.protocol.clusters.is_some()).map(|(_, cluster)| *cluster);
            let measures = self.server_measures.get(index).and_then(Option::as_ref).or(of_all.as_ref());
            let [accuracy, loss] = measures.map_or([f64::NAN; 2], |values| learning.quality_and_loss(values));
            ServerRound {
                server,
                cluster,
                examples: learning.examples_of(&members),
                test_examples: learning.test_of(server).map(<[u32]>::len),
                accuracy,
                loss,
                edge_accuracy: self.accuracies.as_ref().map_or(f64::NAN, |known| known.of_round()[index]),
            }
        };
        Some(world.members().into_iter().enumerate().map(one).collect())
    }

    fn record(
        &mut self,
        engine: &mut Engine<'_>,
        opened: VirtualTime,
        jobs: &RoundJobs,
        (is_abandoned, clusters, servers): (bool, Option<&ClusterState>, Option<&[ServerRound]>),
    ) -> Result<(), RunError> {
        let Self { round, reward, regret, .. } = *self;
        let (closed, accounts) = (engine.now(), engine.accounts);
        accounts.check()?;
        engine.audit.within(engine.world.budget.bytes, &accounts)?;
        let (down_bytes, up_bytes) = (accounts.down_bytes, accounts.up_bytes);
        engine.note(&Record::Closed { round, time: closed, reward, regret, down_bytes, up_bytes })?;
        let is_recorded = round.0.is_multiple_of(self.settings.record_every);
        engine.digests.seal(is_recorded && engine.sink.wants_checksums(), &mut self.mark);
        let summary = RoundSummary {
            round,
            opened,
            closed,
            jobs,
            is_abandoned,
            reward,
            regret,
            metrics: &self.metrics,
            down_bytes,
            up_bytes,
            edge_bytes: (accounts.edge_down_bytes, accounts.edge_up_bytes),
            group_selections: &self.group_selections,
            hindsight: &self.hindsight.of_round,
            clusters,
            servers,
            explain: self.settings.explain.then_some(&*self.explanations),
            updates: self.settings.updates.then_some(&self.updates),
        };
        engine.sink.round(&summary, is_recorded, &self.mark)?;
        if is_recorded {
            self.group_selections.iter_mut().for_each(|(_, count)| *count = 0);
        }
        self.hindsight.of_round.clear();
        self.accuracies.iter_mut().for_each(Accuracies::close_round);
        self.explanations.clear();
        self.updates.clear();
        engine.accounts.rounds += 1;
        Ok(())
    }
}

/// Tells a policy how its updates were trained, what subsets of them are worth if it evaluates that, and how its round
/// went.
pub(super) fn report_round(
    policy: &mut dyn Policy,
    learning: Option<&Learning<'_>>,
    (trained, before, parallel): (&[Trained], Option<&Before<'_>>, bool),
    report: RoundReport<'_>,
) {
    let (wants_updates, kind) = (policy.wants().update, policy.wants_answer().unwrap_or_default());
    for (index, trained) in trained.iter().enumerate() {
        let update = learning.filter(|_| wants_updates).map(|learning| &*learning.update(index).parameters);
        if !trained.answer.is_empty() {
            policy.told_answer(trained.client, kind, &trained.answer);
        }
        policy.observe(&Feedback::Trained(trained.report(update)));
    }
    if let Some((learning, before)) = learning.zip(before) {
        learning.tell_subsets(policy, before, parallel);
    }
    policy.observe(&Feedback::Round(report));
}
