//! An edge server: its synchronous rounds among its own clients, between the arrival of the cloud's model and the
//! departure of its own.

mod saved;

pub(in crate::run) use saved::Between;

use crate::policy::{Policy, RoundReport, ServerView};
use crate::population::Forecaster;
use crate::protocol::HierarchicalRule;
use crate::recorder::RoundJobs;
use crate::run::RunError;
use crate::run::accounts::Cost;
use crate::run::cohort::Cohort;
use crate::run::engine::{Engine, Timer};
use crate::run::hindsight::{HindsightMeter, OpenRound, Window};
use crate::run::jobs::JobId;
use crate::run::learning::{EdgeState, Work};
use crate::run::probe::{Asked, Asking, Pending, carry_out};
use crate::run::question::{Asker, Question, SelectionStreams, forecaster, view};
use crate::run::server::{Server, numbered, report_round};
use crate::world::World;
use fedgenie_core::id::{ClientId, EdgeId, Round, Turn};
use fedgenie_core::kernel::Handle;
use fedgenie_core::record::{PhaseSpans, Record};
use fedgenie_core::state::Stateful;
use fedgenie_core::time::{Span, VirtualTime};
use fedgenie_learning::model::weights::Tensor;
use serde_json::Value;
use std::sync::Arc;

/// What an edge server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Stateful)]
enum Stage {
    /// It takes no part in the cloud's round, or no longer.
    Idle,
    /// The model is on its way from the cloud.
    Down(Handle),
    /// None of its clients can be chosen, or those who were asked have not answered.
    Waiting,
    /// Its round is open.
    Open,
    /// Its model is on its way to the cloud.
    Up(Handle),
}

/// A model at a cloud that takes in models as they arrive.
pub(super) struct Arrival {
    pub edge: EdgeId,
    pub cluster: u32,
    /// The cloud's round in which the server was sent its own.
    pub sent_in: Round,
    /// Since then.
    pub waited: Span,
    pub phases: PhaseSpans,
    /// What it cost the clients.
    pub invested: Cost,
    /// What the server was sent.
    pub start: Option<Arc<[f32]>>,
    pub model: Option<Arc<[f32]>>,
    pub rows: Vec<u32>,
    /// The clients whose updates it has.
    pub arrived: Vec<ClientId>,
}

/// An edge server.
pub(super) struct Edge<'w> {
    number: EdgeId,
    rule: &'w HierarchicalRule,
    policy: Box<dyn Policy>,
    stage: Stage,
    /// Its policy's last selection: one in each of its rounds.
    turn: Turn,
    /// The cloud's round in which it was sent its model.
    round: Round,
    /// When that was.
    sent_at: VirtualTime,
    /// The model that it was sent, where the cloud does not wait for it.
    sent: Option<Arc<[f32]>>,
    /// How many of them are left in this round of the cloud.
    left: u32,
    opened: VirtualTime,
    /// Whether its model has reached the cloud in this round.
    has_returned: bool,
    /// The cluster whose model it trains; 0 where there is one.
    pub cluster: u32,
    /// Where clients train.
    pub model: Option<Arc<[f32]>>,
    /// The rows of tables that its clients moved in this round of the cloud.
    pub rows: Vec<u32>,
    /// The clients whose updates its model has of this round of the cloud.
    pub aggregated: Vec<ClientId>,
    cohort: Cohort,
    /// What answers the policy's questions about availability, if it asks any.
    forecaster: Option<Forecaster<'w>>,
    /// The selection that waits for answers, or for a client that can be chosen.
    asked: Option<Pending>,
    /// Bytes down and up of what was asked in its round.
    asked_bytes: [u64; 2],
    /// The regret in hindsight of its selections, where it is metered.
    pub hindsight: Option<HindsightMeter<'w>>,
    /// The cloud's round in which its clients were asked: they train on the data of that round.
    asked_in: Round,
    /// Of its round under way, where that is judged.
    judged: Option<OpenRound<'w>>,
    /// What its model cost its clients in this round of the cloud.
    invested: Cost,
    /// How long the model travels from the cloud and back in this round.
    link: [Span; 2],
}

impl<'w> Edge<'w> {
    pub fn new(world: &'w World, number: EdgeId, rule: &'w HierarchicalRule, policy: Box<dyn Policy>) -> Self {
        let forecaster = forecaster(world, &*policy, Some(&rule.members[number.index()]));
        Self {
            number,
            rule,
            policy,
            stage: Stage::Idle,
            turn: Turn(0),
            round: Round(0),
            sent_at: VirtualTime::START,
            sent: None,
            left: 0,
            opened: VirtualTime::START,
            has_returned: false,
            cluster: 0,
            model: None,
            rows: Vec::new(),
            aggregated: Vec::new(),
            cohort: Cohort::default(),
            forecaster,
            asked: None,
            asked_bytes: [0; 2],
            hindsight: HindsightMeter::new(world, Window::of_edge(number, &rule.edge[number.index()])),
            asked_in: Round(0),
            judged: None,
            invested: Cost::default(),
            link: [Span::ZERO; 2],
        }
    }

    /// What its policy says of the run so far.
    pub fn warning(&self) -> Option<String> {
        self.policy.warning()
    }

    /// What its policy has worked out for parameters that are left open.
    pub fn effective(&self) -> Vec<(&'static str, Value)> {
        self.policy.effective()
    }

    /// The weights of its policy's networks, under names that begin with its own.
    pub fn tensors(&self) -> impl Iterator<Item = Tensor> {
        let named = |tensor: Tensor| Tensor { name: format!("edge{}.{}", self.number.0, tensor.name), ..tensor };
        self.policy.tensors().into_iter().map(named)
    }

    /// Jobs of its clients that are not settled.
    pub const fn live(&self) -> usize {
        self.cohort.jobs.len()
    }

    /// What its model has cost its clients that the cloud does not have: their jobs that are over.
    pub fn unused(&self, engine: &Engine<'_>) -> Cost {
        let mut cost = if self.stage == Stage::Idle { Cost::default() } else { self.invested };
        self.cohort.arrived.iter().for_each(|&id| cost += engine.jobs[id].cost());
        cost
    }

    /// Whether it waits for a model of the cloud.
    pub fn is_idle(&self) -> bool {
        self.stage == Stage::Idle
    }

    /// Its model has arrived at the cloud, which does not wait for it.
    pub fn hand_over(&mut self, now: VirtualTime) -> Arrival {
        self.rest();
        let waited = now - self.sent_at;
        Arrival {
            edge: self.number,
            cluster: self.cluster,
            sent_in: self.round,
            waited,
            phases: self.phases(waited),
            invested: std::mem::take(&mut self.invested),
            start: self.sent.take(),
            model: self.model.take(),
            rows: std::mem::take(&mut self.rows),
            arrived: std::mem::take(&mut self.aggregated),
        }
    }

    /// The cloud's model of a round sets out; `link` is how long it travels down and up.
    pub fn send_down(&mut self, engine: &mut Engine<'_>, round: Round, link: [Span; 2], model: Option<Arc<[f32]>>) {
        self.stage = Stage::Down(engine.travel(self.number, link[0]));
        self.round = round;
        self.sent_at = engine.now();
        self.sent = model.clone().filter(|_| self.rule.buffer.is_some());
        self.has_returned = false;
        self.left = self.rule.edge_rounds;
        self.model = model;
        self.invested = Cost::default();
        self.link = link;
        self.rows.clear();
        self.aggregated.clear();
    }

    /// The cloud's round in which it was sent its model.
    pub const fn round(&self) -> Round {
        self.round
    }

    /// Whether the cloud's model is on its way.
    pub const fn is_receiving(&self) -> bool {
        matches!(self.stage, Stage::Down(_))
    }

    /// How a round of the cloud that it took part in went, of which the cloud waited for so long: the way down, its own
    /// rounds, the way up.
    pub fn phases(&self, waited: Span) -> PhaseSpans {
        let [down, up] = self.link;
        let down = down.min(waited);
        let up = if self.has_returned { up } else { Span::ZERO };
        [down, Span((waited.0 - down.0).saturating_sub(up.0)), up]
    }

    /// Its part in the cloud's round is over.
    pub const fn rest(&mut self) {
        self.stage = Stage::Idle;
        self.has_returned = true;
    }

    /// Opens a round, or waits for a client that can be chosen, or for answers. `shares` is each client's share of its
    /// edge server's data. Returns whether the round is over, since nobody was selected.
    pub fn open(
        &mut self,
        engine: &mut Engine<'_>,
        server: &mut Server<'w>,
        shares: &[f64],
        jobs: &mut RoundJobs,
    ) -> Result<bool, RunError> {
        let (edge, now) = (self.number, engine.now());
        self.stage = Stage::Waiting;
        if !engine.has_candidates(edge) {
            if let Some(time) = engine.next_candidate(edge) {
                engine.set_timer(Timer::Wake(edge), time);
            }
            return Ok(false);
        }
        let pending = match self.asked.take() {
            Some(pending) => pending,
            None => self.ask_clients(engine, server, shares)?,
        };
        if pending.until > now {
            engine.set_timer(Timer::Probe(edge), pending.until);
            self.asked = Some(pending);
            return Ok(false);
        }
        self.select(engine, server, shares, pending)?;
        self.dispatch(engine, server, jobs)?;
        Ok(self.cohort.selection.is_empty())
    }

    fn question<'a>(&self, engine: &'a Engine<'_>, server: &'a Server<'_>) -> Question<'a> {
        let rule = &self.rule.edge[self.number.index()];
        Question {
            world: engine.world,
            label: &server.label,
            asker: Asker::Edge(self.number),
            turn: self.turn,
            round: self.round,
            now: engine.now(),
            least: 1,
            cohort: rule.ask,
            most: rule.most,
            take: rule.take,
            bounds: engine.world.bounds(rule),
            has_rounds: true,
            candidates: engine.candidates(self.number),
            explain: server.settings.explain,
        }
    }

    /// Begins the next selection: asks whom the policy wants to ask.
    fn ask_clients(
        &mut self,
        engine: &mut Engine<'_>,
        server: &Server<'_>,
        shares: &[f64],
    ) -> Result<Pending, RunError> {
        let (world, asker) = (engine.world, Asker::Edge(self.number));
        self.turn = self.turn.next();
        self.opened = engine.now();
        let mut streams = SelectionStreams::new(world, asker, self.turn);
        let question = self.question(engine, server);
        let forecaster = self.forecaster.as_ref().map(|forecaster| forecaster.at(engine.now()));
        let view = view(world, &server.counts, &*self.policy, question.bounds, forecaster);
        let view = ServerView { shares, ..view };
        let probe = question.probe(&mut *self.policy, &view, &mut streams)?;
        let (turn, round, model) = (self.turn, self.round, self.model.clone());
        let asking = Asking { asker, turn, round, policy: &*self.policy, model };
        let Asked { answered, span, bytes } = carry_out(engine, server, &asking, probe)?;
        self.asked_bytes = bytes;
        Ok(Pending { streams, answered, until: engine.now() + span })
    }

    fn select(
        &mut self,
        engine: &mut Engine<'_>,
        server: &mut Server<'w>,
        shares: &[f64],
        pending: Pending,
    ) -> Result<(), RunError> {
        let Pending { mut streams, answered, .. } = pending;
        let trained = answered.trained(&*self.policy);
        let question = self.question(engine, server);
        let forecaster = self.forecaster.as_ref().map(|forecaster| forecaster.at(engine.now()));
        let view = view(engine.world, &server.counts, &*self.policy, question.bounds, forecaster);
        let view = answered.view(ServerView { shares, ..view }, &trained);
        let offer = question.offer();
        let explained = question.ask(&mut *self.policy, &view, &mut streams, &mut self.cohort.selection)?;
        server.offers.add(offer);
        let explained = explained.map(|object| numbered(object, self.turn, Some(self.number.0.into())));
        server.explanations.extend(explained);
        Ok(())
    }

    fn dispatch(
        &mut self,
        engine: &mut Engine<'_>,
        server: &mut Server<'w>,
        jobs: &mut RoundJobs,
    ) -> Result<(), RunError> {
        let (world, edge, now) = (engine.world, self.number, engine.now());
        let selected = &self.cohort.selection;
        engine.note(&Record::EdgeSelected { edge, turn: self.turn, time: now, selected })?;
        server.count(world, selected);
        jobs.select(selected);
        self.cohort.prepare(engine, self.round, self.turn)?;
        self.asked_in = server.round();
        self.judged = self.look_back(engine, server)?;
        let (learning, model, cluster) = (server.learning.as_ref(), self.model.as_ref(), self.cluster);
        let sent = |client| Some(learning?.sent_by(model?.clone(), cluster, client));
        self.cohort.begin(engine, sent, self.rule.largest() * self.rule.edges_per_round)?;
        self.stage = Stage::Open;
        if let Some(cut) = self.rule.cut().filter(|_| !self.cohort.selection.is_empty()) {
            engine.set_timer(Timer::Boundary(edge), now + cut);
        }
        Ok(())
    }

    /// Notes what the selection is to be compared with, if its round is judged.
    fn look_back(&self, engine: &Engine<'_>, server: &Server<'w>) -> Result<Option<OpenRound<'w>>, RunError> {
        let (Some(meter), Some(learning), Some(model)) = (&self.hindsight, &server.learning, &self.model) else {
            return Ok(None);
        };
        if !meter.is_due(self.round) {
            return Ok(None);
        }
        let state = EdgeState {
            edge: self.number,
            members: &self.rule.members[self.number.index()],
            cluster: self.cluster,
            rows: self.rows.clone(),
            aggregated: self.aggregated.clone(),
        };
        let numbers = (self.round, self.turn);
        let most = self.rule.edge[self.number.index()].ask;
        let learning = (learning, server.settings.parallel);
        let open = meter.open(engine, numbers, most, |_| self.turn.into(), learning, Some((model.clone(), state)))?;
        Ok(Some(open))
    }

    /// An update arrived. Returns whether it is the last.
    pub fn deliver(&mut self, id: JobId) -> bool {
        self.cohort.arrived.push(id);
        self.cohort.arrived.len() == self.cohort.jobs.len()
    }

    /// Closes a round: averages, and tells the policy. Returns whether another round follows; if not, the model sets
    /// out.
    pub fn close(
        &mut self,
        engine: &mut Engine<'_>,
        server: &mut Server<'w>,
        jobs: &mut RoundJobs,
    ) -> Result<bool, RunError> {
        let (edge, turn, round, now) = (self.number, self.turn, self.round, engine.now());
        engine.clear_timer(Timer::Boundary(edge));
        self.cohort.stop_waiting(engine, false, jobs)?;
        let arrived = || self.cohort.arrived.iter().map(|&id| &engine.jobs[id]);
        arrived().for_each(|job| self.invested += job.cost());
        let mut cost = Cost::default();
        self.cohort.jobs.iter().for_each(|&id| cost += engine.jobs[id].cost());
        let (mut trained, mut edge_accuracy, mut before) = (Vec::new(), None, None);
        let members = &self.rule.members[edge.index()];
        let sought = server.sought(&*self.policy);
        if let (Some(learning), Some(model)) = (&mut server.learning, &mut self.model) {
            let parallel = server.settings.parallel;
            before = sought.subsets.then(|| {
                let (rows, aggregated) = (self.rows.clone(), self.aggregated.clone());
                let state = EdgeState { edge, members, cluster: self.cluster, rows, aggregated };
                learning.before(round, Some((model.clone(), state)))
            });
            let work = arrived().filter_map(|job| Work::of(job, 0, 1.0)).collect();
            let (own, rows) = ((&mut *model, self.cluster), &mut self.rows);
            let (judged, selected) = (self.hindsight.as_mut().zip(self.judged.take()), &self.cohort.selection);
            let found = learning.with_data_of(self.asked_in, |learning| {
                trained = learning.aggregate_at_edge(round, work, own, rows, sought, parallel)?;
                let judge = |(meter, open): (&mut HindsightMeter<'w>, OpenRound<'w>)| {
                    meter.close(&open, (learning, &trained), selected, parallel)
                };
                Ok::<_, RunError>(judged.map(judge))
            })?;
            self.aggregated.extend(trained.iter().map(|trained| trained.client));
            for (client, values) in learning.kept(&trained) {
                engine.note(&Record::Private { round, client, values })?;
            }
            found.into_iter().for_each(|found| server.hindsight.add(found));
            if let Some(accuracies) = &mut server.accuracies
                && let Some(on) = accuracies.asked(edge)
            {
                let (rows, aggregated) = (self.rows.clone(), self.aggregated.clone());
                let state = EdgeState { edge, members, cluster: self.cluster, rows, aggregated };
                let found = learning.accuracy_at_edge(round, &state, model, on, server.settings.parallel)?;
                edge_accuracy = accuracies.note(edge, found);
            }
        }
        engine.note(&Record::EdgeClosed { edge, turn, time: now })?;
        self.cohort.report(engine, &mut *self.policy, round, self.rule.cut());
        let report = RoundReport {
            turn,
            round,
            selected: &self.cohort.selection,
            duration: now - self.opened,
            down_bytes: cost.down_bytes.saturating_add(self.asked_bytes[0]),
            up_bytes: cost.up_bytes.saturating_add(self.asked_bytes[1]),
            metrics: &[],
            quality: None,
            edge_accuracy,
        };
        let parallel = server.settings.parallel;
        report_round(&mut *self.policy, server.learning.as_ref(), (&trained, before.as_ref(), parallel), report);
        server.note_updates(&trained);
        server.explain_after(&*self.policy, turn, Some(edge.0.into()), &self.cohort.selection);
        self.cohort.settle(engine)?;
        self.left -= 1;
        if self.left == 0 {
            self.stage = Stage::Up(engine.travel(edge, self.link[1]));
        }
        Ok(self.left > 0)
    }

    /// The cloud stops waiting: what is still under way is called off, and what the model cost is wasted.
    pub fn call_off(&mut self, engine: &mut Engine<'_>, jobs: &mut RoundJobs) -> Result<(), RunError> {
        match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Idle => return Ok(()),
            Stage::Down(handle) | Stage::Up(handle) => engine.stop_travel(handle),
            Stage::Waiting => {
                engine.clear_timer(Timer::Wake(self.number));
                engine.clear_timer(Timer::Probe(self.number));
                self.asked = None;
            }
            Stage::Open => {
                engine.clear_timer(Timer::Boundary(self.number));
                self.cohort.stop_waiting(engine, false, jobs)?;
                self.cohort.arrived.iter().for_each(|&id| engine.waste(id));
                self.cohort.settle(engine)?;
            }
        }
        engine.accounts.waste(self.invested);
        Ok(())
    }
}
