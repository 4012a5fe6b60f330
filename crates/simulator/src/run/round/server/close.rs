//! How a round ends: its updates are aggregated, its selection is judged, the model is measured, policies are told, the
//! round is recorded.
//!
//! Aggregating, measuring and recording each take the result of the step before: without these, or in another order, a
//! round is not recorded. Judging, reports and clusters come in between, where there is a meter, a policy or a rule.

use super::{RoundUnderWay, Server, numbered};
use crate::metrics::MOST_TOLD;
use crate::policy::{EdgeAccuracy, Explanation, Feedback, ModelQuality, Policy, RoundReport};
use crate::recorder::{ClusterState, RoundJobs, RoundSummary, RoundUpdates, ServerRound};
use crate::run::error::{Failed, RunError};
use crate::run::learning::{Before, Intake, Learning, Measured, ServerScope, Sought, Trained};
use crate::run::meters::{Accuracies, HindsightMeter, OpenRound, charge};
use crate::run::round::clusters::ClusterDecision;
use crate::run::round::question::Asker;
use crate::run::timeline::{Accounts, Engine, THE_SERVER};
use crate::world::{ADVERSARY_SHARE, EPSILON, World};
use fedgenie_core::id::{ClientId, EdgeId, Round, Turn};
use fedgenie_core::metric::Place;
use fedgenie_core::record::Record;
use fedgenie_core::time::VirtualTime;
use fedgenie_learning::algorithm::privacy::PrivacyEntry;
use serde_json::Map;

/// A round whose updates are in the model.
#[must_use]
pub(in crate::run) struct AggregatedRound<'w> {
    opened: VirtualTime,
    trained: Vec<Trained>,
    /// The start of its aggregation, where subsets of its updates are evaluated.
    before: Option<Before<'w>>,
    is_new_model: bool,
}

/// A round whose model has been measured, if that was due.
#[must_use]
pub(in crate::run) struct MeasuredRound<'a, 'w> {
    opened: VirtualTime,
    trained: Vec<Trained>,
    before: Option<Before<'w>>,
    /// The edge servers; empty where there is one server.
    scopes: &'a [ServerScope<'a>],
    quality: Option<ModelQuality>,
    edge_accuracy: Option<EdgeAccuracy>,
    /// Bytes down and up since the round before.
    bytes: (u64, u64),
}

/// A policy that is told of a round.
pub(in crate::run) struct Told<'a> {
    pub policy: &'a mut (dyn Policy + 'static),
    /// Its last selection.
    pub turn: Turn,
    /// The clients selected since its last report of a round.
    pub selected: &'a [ClientId],
    /// The server whose policy it is.
    pub asker: Asker,
}

impl<'w> Server<'w> {
    /// Trains the intake of a round, and folds it into the model. `sought` has the statistics that its policy wants.
    pub fn aggregate(
        &mut self,
        engine: &mut Engine<'_>,
        round: RoundUnderWay,
        intake: Intake<'_>,
        sought: Sought,
    ) -> Result<AggregatedRound<'w>, RunError> {
        let (opened, round, parallel) = (round.opened(), self.round(), self.settings.parallel);
        let Some(learning) = &mut self.learning else {
            return Ok(AggregatedRound { opened, trained: Vec::new(), before: None, is_new_model: false });
        };
        let before = sought.subsets.then(|| learning.before(round, None));
        if sought.wants.model_quality && self.quality.is_none() {
            self.quality = Some(learning.quality(None, parallel)?);
        }
        let (trained, is_new_model) = learning.aggregate(round, intake, sought, parallel)?;
        if is_new_model {
            for parameters in &learning.digested() {
                engine.note(&Record::Model { round, parameters })?;
            }
        }
        for (client, values) in learning.kept(&trained) {
            engine.note(&Record::Private { round, client, values })?;
        }
        Ok(AggregatedRound { opened, trained, before, is_new_model })
    }

    /// Judges the selection of a round in hindsight.
    pub fn judge(
        &mut self,
        round: &AggregatedRound<'w>,
        (meter, open): (&mut HindsightMeter<'w>, &OpenRound<'w>),
        selected: &[ClientId],
    ) -> Result<(), RunError> {
        if let Some(learning) = &self.learning {
            let updates = (learning, &*round.trained);
            self.hindsight.add(meter.close(open, updates, selected, self.settings.parallel)?);
        }
        Ok(())
    }

    /// Measures the model, where that is due. `is_spent` says that the budget pays for no further round.
    pub fn measure<'a>(
        &mut self,
        engine: &mut Engine<'_>,
        round: AggregatedRound<'w>,
        scopes: &'a [ServerScope<'a>],
        is_spent: bool,
    ) -> Result<MeasuredRound<'a, 'w>, RunError> {
        let AggregatedRound { opened, trained, before, is_new_model } = round;
        let (round, now, parallel) = (self.round(), engine.now(), self.settings.parallel);
        self.is_spent = is_spent;
        self.metrics.clear();
        self.server_measures.clear();
        let (mut quality, mut edge_accuracy) = (None, None);
        let hostile = engine.world.adversaries.as_ref().map(|hostile| self.share_of(&hostile.clients));
        if let Some(learning) = &mut self.learning {
            let plan = &self.settings.evaluate;
            let is_last = is_spent || plan.end.is_reached(round, now, &engine.accounts);
            let is_due = plan.is_due(round, opened, now) || is_last;
            if is_due {
                let Measured { metrics, servers } = learning.evaluate(plan.evaluated(scopes, parallel))?;
                (self.metrics, self.server_measures) = (metrics, servers);
                self.metrics.extend(hostile.map(|share| (ADVERSARY_SHARE.at(Place::Model), share)));
                if let Some((ledger, released)) = self.ledger.as_mut().zip(learning.released()) {
                    let epsilon = ledger.epsilon(released.models);
                    self.metrics.extend(epsilon.map(|epsilon| (EPSILON.at(Place::Model), epsilon)));
                }
                if engine.world.charges_evaluation {
                    self.evaluated = now + charge(engine, round)?;
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
        for &(metric, value) in &self.metrics {
            if engine.world.measures.is_digested(metric) {
                engine.note(&Record::Metric { round, metric, value })?;
            }
        }
        self.note_updates(&trained);
        let bytes = self.bytes_since(&engine.accounts, !scopes.is_empty());
        Ok(MeasuredRound { opened, trained, before, scopes, quality, edge_accuracy, bytes })
    }

    /// Tells a policy of a round.
    pub fn tell(&mut self, engine: &Engine<'_>, round: &MeasuredRound<'_, 'w>, told: Told<'_>) -> Result<(), RunError> {
        let Told { policy, turn, selected, asker } = told;
        let MeasuredRound { trained, before, edge_accuracy, .. } = round;
        let report = RoundReport { selected, edge_accuracy: *edge_accuracy, ..self.report(engine, round, turn) };
        let trained = (&**trained, before.as_ref(), self.settings.parallel);
        let told = report_round(policy, self.learning.as_ref(), trained, report);
        let told = told.and_then(|()| self.explain_after(policy, turn, asker, selected));
        self.check_told(told, asker, self.round())
    }

    /// How a policy took the end of a round: the task's failure comes first, since it may be why.
    pub fn check_told(&self, told: Result<(), Failed>, asker: Asker, round: Round) -> Result<(), RunError> {
        self.learning.as_ref().map_or(Ok(()), |learning| learning.check_work(round))?;
        told.map_err(|failed| failed.told(asker.role(&self.label), round))
    }

    /// Decides which cluster each edge server belongs to in the next round.
    pub fn assign(
        &mut self,
        engine: &mut Engine<'_>,
        round: &MeasuredRound<'_, 'w>,
        decision: &mut ClusterDecision,
    ) -> Result<(), RunError> {
        let report = self.report(engine, round, Turn(self.round().0));
        let parallel = self.settings.parallel;
        decision.decide(engine, self.learning.as_ref(), &report, round.scopes, parallel)?;
        self.regret.assignment = decision.regret();
        Ok(())
    }

    /// The report of a round without its selection.
    fn report<'a>(&'a self, engine: &Engine<'_>, round: &MeasuredRound<'_, '_>, turn: Turn) -> RoundReport<'a> {
        let MeasuredRound { opened, quality, bytes: (down_bytes, up_bytes), .. } = *round;
        RoundReport {
            turn,
            round: self.round(),
            selected: &[],
            duration: engine.now() - opened,
            down_bytes,
            up_bytes,
            metrics: &self.metrics,
            quality,
            edge_accuracy: None,
        }
    }

    /// Bytes down and up since the last round: of clients, or of edge servers where there are any.
    fn bytes_since(&mut self, accounts: &Accounts, has_edges: bool) -> (u64, u64) {
        let Accounts { down_bytes, up_bytes, edge_down_bytes, edge_up_bytes, .. } = *accounts;
        let now = if has_edges { (edge_down_bytes, edge_up_bytes) } else { (down_bytes, up_bytes) };
        let before = std::mem::replace(&mut self.told_bytes, now);
        (now.0 - before.0, now.1 - before.1)
    }

    /// Keeps the updates' reports of their training, where these are recorded.
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

    /// Adds a policy's state after a round to the explanation of its last selection.
    pub fn explain_after(
        &mut self,
        policy: &dyn Policy,
        turn: Turn,
        asker: Asker,
        clients: &[ClientId],
    ) -> Result<(), Failed> {
        if !self.settings.explain {
            return Ok(());
        }
        let mut after = Explanation::default();
        policy.explain_after(clients, &mut after).map_err(Failed::of("explain_after"))?;
        let after = after.into_json();
        if after.is_empty() {
            return Ok(());
        }
        let server = asker.in_explanations();
        let is_its = |object: &&mut Map<_, _>| object.get("server") == server.as_ref();
        match self.explanations.iter_mut().rev().find(is_its) {
            Some(object) => drop(object.insert("after".to_owned(), after.into())),
            // Nobody was selected since the last round.
            None => {
                let object = [("after".to_owned(), after.into())].into_iter().collect();
                self.explanations.push(numbered(object, turn, server));
            }
        }
        Ok(())
    }

    /// Each server's numbers in this round, where servers are evaluated or a policy asks for the accuracy of its
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

    /// What the accountant of privacy says now.
    pub fn privacy(&mut self) -> Option<PrivacyEntry> {
        let released = self.learning.as_ref()?.released()?;
        self.ledger.as_mut().map(|ledger| ledger.entry(released))
    }

    /// Records a round, which is over then.
    pub fn record(
        &mut self,
        engine: &mut Engine<'_>,
        round: MeasuredRound<'_, '_>,
        jobs: &RoundJobs,
        is_abandoned: bool,
        clusters: Option<&ClusterState>,
    ) -> Result<(), RunError> {
        let MeasuredRound { opened, scopes, .. } = round;
        self.regret.hindsight = self.hindsight.close_round();
        let servers = self.servers(engine.world, scopes);
        let Self { round, reward, regret, .. } = *self;
        let (closed, accounts) = (engine.now(), engine.accounts);
        accounts.check()?;
        engine.audit.within(engine.world.budget.bytes, &accounts)?;
        let (down_bytes, up_bytes) = (accounts.down_bytes, accounts.up_bytes);
        engine.note(&Record::Closed { round, time: closed, reward, regret, down_bytes, up_bytes })?;
        let is_recorded = round.0.is_multiple_of(self.settings.record_every);
        engine.digests.seal(is_recorded && engine.sink.wants_checksums(), &mut self.mark);
        let has_shifts = engine.world.changes.iter().any(|change| change.drift.is_none());
        let hostile = engine.world.adversaries.as_ref().map(|hostile| {
            let mut found = jobs.selected.clone();
            found.retain(|&client| hostile.has(client));
            found.sort_unstable();
            found.dedup();
            found
        });
        // What nobody reads is not worked out.
        let privacy = if is_recorded { self.privacy() } else { None };
        let has_levels = is_recorded && self.settings.battery && engine.world.population.len() <= MOST_TOLD;
        let levels = if has_levels { engine.levels_j() } else { None };
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
            hindsight: self.hindsight.of_round(),
            clusters,
            servers: servers.as_deref(),
            explain: self.settings.explain.then_some(&*self.explanations),
            updates: self.settings.updates.then_some(&self.updates),
            shifts: has_shifts.then(|| engine.world.changes_by(round)),
            adversaries: hostile.as_deref(),
            privacy: privacy.as_ref(),
            levels_j: levels.as_deref(),
        };
        engine.sink.round(&summary, is_recorded, &self.mark)?;
        if is_recorded {
            self.group_selections.iter_mut().for_each(|(_, count)| *count = 0);
        }
        self.hindsight.clear_round();
        self.accuracies.iter_mut().for_each(Accuracies::close_round);
        self.explanations.clear();
        self.updates.clear();
        engine.accounts.rounds += 1;
        Ok(())
    }
}

/// Tells a policy how its updates were trained, the values of their subsets if it evaluates them, and how its round
/// went.
pub(in crate::run) fn report_round(
    policy: &mut dyn Policy,
    learning: Option<&Learning<'_>>,
    (trained, before, parallel): (&[Trained], Option<&Before<'_>>, bool),
    report: RoundReport<'_>,
) -> Result<(), Failed> {
    let (wants_updates, kind) = (policy.wants().update, policy.wants_answer().unwrap_or_default());
    for (index, trained) in trained.iter().enumerate() {
        let update = learning.filter(|_| wants_updates).map(|learning| &*learning.update(index).parameters);
        if !trained.answer.is_empty() {
            policy.told_answer(trained.client, kind, &trained.answer).map_err(Failed::of("told_answer"))?;
        }
        policy.observe(&Feedback::Trained(trained.report(update))).map_err(Failed::of("observe"))?;
    }
    if let Some((learning, before)) = learning.zip(before) {
        learning.tell_subsets(policy, before, parallel).map_err(Failed::of("judge"))?;
    }
    policy.observe(&Feedback::Round(report)).map_err(Failed::of("observe"))
}
