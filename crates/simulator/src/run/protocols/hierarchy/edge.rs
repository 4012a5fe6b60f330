//! An edge server: its synchronous rounds among its own clients, between the arrival of the cloud's model and the
//! departure of its own.

mod saved;

pub(in crate::run) use saved::Between;

use crate::policy::{Policy, RoundReport};
use crate::protocol::HierarchicalRule;
use crate::recorder::RoundJobs;
use crate::run::error::RunError;
use crate::run::learning::{EdgeState, Work};
use crate::run::meters::{HindsightMeter, OpenRound, Window};
use crate::run::round::{Asker, Cohort, Known, Limits, Pending, Selector, Server, report_round};
use crate::run::timeline::{Cost, Engine, JobId, Timer};
use crate::world::World;
use fedgenie_core::id::{EdgeId, Round};
use fedgenie_core::kernel::Handle;
use fedgenie_core::record::{PhaseSpans, Record};
use fedgenie_core::state::Stateful;
use fedgenie_core::time::{Span, VirtualTime};
use fedgenie_learning::model::weights::Tensor;
use std::sync::Arc;

/// Stage of an edge server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Stateful)]
enum Stage {
    /// It takes no part in the cloud's round, or no longer.
    Idle,
    /// The model is on its way from the cloud.
    Down(Handle),
    /// It has no candidates, or the clients that it asked have not answered.
    Waiting,
    /// Its round is open.
    Open,
    /// Its model is on its way to the cloud.
    Up(Handle),
}

/// A model at a cloud that takes in models as they arrive.
pub(super) struct Arrival<'w> {
    /// The edge server and its part in the round.
    pub of: EdgeState<'w>,
    /// The cloud's round in which the server was sent its own.
    pub sent_in: Round,
    /// Since then.
    pub waited: Span,
    pub phases: PhaseSpans,
    /// Its cost for the clients.
    pub invested: Cost,
    /// The model that the server was sent.
    pub start: Option<Arc<[f32]>>,
    pub model: Option<Arc<[f32]>>,
}

/// An edge server.
pub(super) struct Edge<'w> {
    /// The server and its part in this round of the cloud.
    pub of: EdgeState<'w>,
    rule: &'w HierarchicalRule,
    /// One selection in each of its rounds.
    pub selector: Selector<'w>,
    stage: Stage,
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
    /// Where clients train.
    model: Option<Arc<[f32]>>,
    cohort: Cohort,
    /// Bytes down and up of the probe in its round.
    asked_bytes: [u64; 2],
    /// The regret in hindsight of its selections, where it is metered.
    pub hindsight: Option<HindsightMeter<'w>>,
    /// The cloud's round in which its clients were asked: they train on the data of that round.
    asked_in: Round,
    /// Of its round under way, where that is judged.
    judged: Option<OpenRound<'w>>,
    /// The cost of its model for its clients in this round of the cloud.
    invested: Cost,
    /// How long the model travels from the cloud and back in this round.
    link: [Span; 2],
}

impl<'w> Edge<'w> {
    pub fn new(world: &'w World, number: EdgeId, rule: &'w HierarchicalRule, policy: Box<dyn Policy>) -> Self {
        let members = &rule.members[number.index()];
        Self {
            of: EdgeState::new(number, members),
            rule,
            selector: Selector::of_edge(world, number, members, policy),
            stage: Stage::Idle,
            round: Round(0),
            sent_at: VirtualTime::START,
            sent: None,
            left: 0,
            opened: VirtualTime::START,
            has_returned: false,
            model: None,
            cohort: Cohort::default(),
            asked_bytes: [0; 2],
            hindsight: HindsightMeter::new(world, Window::of_edge(number, &rule.edge[number.index()])),
            asked_in: Round(0),
            judged: None,
            invested: Cost::default(),
            link: [Span::ZERO; 2],
        }
    }

    /// The weights of its policy's networks, under names that begin with its own.
    pub fn tensors(&self) -> impl Iterator<Item = Tensor> {
        let named = |tensor: Tensor| Tensor { name: format!("edge{}.{}", self.of.edge.0, tensor.name), ..tensor };
        self.selector.policy.tensors().into_iter().map(named)
    }

    /// Jobs of its clients that are not settled.
    pub const fn live(&self) -> usize {
        self.cohort.jobs.len()
    }

    /// The cost, for its clients, of updates that have not reached the cloud.
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
    pub fn hand_over(&mut self, now: VirtualTime) -> Arrival<'w> {
        self.rest();
        let (sent_in, waited) = (self.round, now - self.sent_at);
        let (phases, invested, start) = (self.phases(waited), std::mem::take(&mut self.invested), self.sent.take());
        let (of, model) = self.take_model();
        Arrival { of, sent_in, waited, phases, invested, start, model }
    }

    /// Its model and its part in the round, for the cloud.
    pub fn take_model(&mut self) -> (EdgeState<'w>, Option<Arc<[f32]>>) {
        let rests = EdgeState { cluster: self.of.cluster, ..EdgeState::new(self.of.edge, self.of.members) };
        (std::mem::replace(&mut self.of, rests), self.model.take())
    }

    /// The cloud's model of a round sets out; `link` is how long it travels down and up.
    pub fn send_down(&mut self, engine: &mut Engine<'_>, round: Round, link: [Span; 2], model: Option<Arc<[f32]>>) {
        self.stage = Stage::Down(engine.travel(self.of.edge, link[0]));
        self.round = round;
        self.sent_at = engine.now();
        self.sent = model.clone().filter(|_| self.rule.buffer.is_some());
        self.has_returned = false;
        self.left = self.rule.edge_rounds;
        self.model = model;
        self.invested = Cost::default();
        self.link = link;
        self.of.clear();
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
    /// edge server's data. Returns whether the round is over, since no client was selected.
    pub fn open(
        &mut self,
        engine: &mut Engine<'_>,
        server: &mut Server<'w>,
        shares: &[f64],
        jobs: &mut RoundJobs,
    ) -> Result<bool, RunError> {
        let (edge, now) = (self.of.edge, engine.now());
        let known = Known { shares: Some(shares), ..Known::default() };
        self.stage = Stage::Waiting;
        if !engine.has_candidates(edge) {
            if let Some(time) = engine.next_candidate(edge) {
                engine.set_timer(Timer::Wake(edge), time);
            }
            return Ok(false);
        }
        let mut pending = match self.selector.asked.take() {
            Some(pending) => pending,
            None => self.ask_clients(engine, server, known)?,
        };
        if pending.until > now {
            engine.set_timer(Timer::Probe(edge), pending.until);
            self.selector.asked = Some(pending);
            return Ok(false);
        }
        let limits = self.limits(engine);
        self.selector.select(engine, server, (limits, known), &mut pending, &mut self.cohort.selection)?;
        self.dispatch(engine, server, jobs)?;
        Ok(self.cohort.selection.is_empty())
    }

    fn limits(&self, engine: &Engine<'_>) -> Limits {
        let rule = &self.rule.edge[self.of.edge.index()];
        Limits {
            round: self.round,
            least: 1,
            cohort: rule.ask,
            most: rule.most,
            take: rule.take,
            bounds: engine.world.bounds(rule),
            has_rounds: true,
            mixes: false,
        }
    }

    /// Begins the next selection: sends the policy's probe.
    fn ask_clients(
        &mut self,
        engine: &mut Engine<'_>,
        server: &Server<'_>,
        known: Known<'_>,
    ) -> Result<Pending, RunError> {
        self.selector.turn = self.selector.turn.next();
        self.opened = engine.now();
        let limits = self.limits(engine);
        let probe = self.selector.probe(engine, server, limits, known)?;
        let (pending, bytes) = self.selector.ask_clients(engine, server, (self.round, self.model.clone()), probe)?;
        self.asked_bytes = bytes;
        Ok(pending)
    }

    fn dispatch(
        &mut self,
        engine: &mut Engine<'_>,
        server: &mut Server<'w>,
        jobs: &mut RoundJobs,
    ) -> Result<(), RunError> {
        let (world, edge, now) = (engine.world, self.of.edge, engine.now());
        let selected = &self.cohort.selection;
        engine.note(&Record::EdgeSelected { edge, turn: self.selector.turn, time: now, selected })?;
        server.count(world, selected);
        jobs.select(selected);
        self.cohort.prepare(engine, self.round, self.selector.turn)?;
        self.asked_in = server.round();
        self.judged = self.look_back(engine, server)?;
        let (learning, model, cluster) = (server.learning.as_ref(), self.model.as_ref(), self.of.cluster);
        let sent = |client| Some(learning?.sent_by(model?.clone(), cluster, client));
        self.cohort.begin(engine, sent, self.rule.largest() * self.rule.edges_per_round)?;
        self.stage = Stage::Open;
        if let Some(cut) = self.rule.cut().filter(|_| !self.cohort.selection.is_empty()) {
            engine.set_timer(Timer::Boundary(edge), now + cut);
        }
        Ok(())
    }

    /// Notes the state for the selection's judgement, if its round is judged.
    fn look_back(&self, engine: &Engine<'_>, server: &Server<'w>) -> Result<Option<OpenRound<'w>>, RunError> {
        let (Some(meter), Some(learning), Some(model)) = (&self.hindsight, &server.learning, &self.model) else {
            return Ok(None);
        };
        if !meter.is_due(self.round) {
            return Ok(None);
        }
        let numbers = (self.round, self.selector.turn);
        let most = self.rule.edge[self.of.edge.index()].ask;
        let learning = (learning, server.settings.parallel);
        let open = meter.open(
            engine,
            numbers,
            most,
            |_| self.selector.turn.into(),
            learning,
            Some((model.clone(), self.of.clone())),
        )?;
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
        let (edge, turn, round, now) = (self.of.edge, self.selector.turn, self.round, engine.now());
        engine.clear_timer(Timer::Boundary(edge));
        self.cohort.stop_waiting(engine, false, jobs)?;
        let is_abandoned = self.cohort.arrived.len() < self.rule.edge[edge.index()].least_of(self.cohort.jobs.len());
        jobs.edge_rounds += 1;
        if is_abandoned {
            jobs.abandoned_edges.push(edge);
            self.cohort.arrived.iter().for_each(|&id| engine.waste(id));
        }
        let used: &[JobId] = if is_abandoned { &[] } else { &self.cohort.arrived };
        let arrived = || used.iter().map(|&id| &engine.jobs[id]);
        arrived().for_each(|job| self.invested += job.cost());
        let mut cost = Cost::default();
        self.cohort.jobs.iter().for_each(|&id| cost += engine.jobs[id].cost());
        let (mut trained, mut edge_accuracy, mut before) = (Vec::new(), None, None);
        let sought = server.sought(&*self.selector.policy);
        if let (Some(learning), Some(model)) = (&mut server.learning, &mut self.model) {
            let parallel = server.settings.parallel;
            before = sought.subsets.then(|| learning.before(round, Some((model.clone(), self.of.clone()))));
            let work = arrived().filter_map(|job| Work::of(job, 0, 1.0)).collect();
            let own = (&mut *model, &mut self.of);
            let (judged, selected) = (self.hindsight.as_mut().zip(self.judged.take()), &self.cohort.selection);
            let found = learning.with_data_of(self.asked_in, |learning| {
                trained = learning.aggregate_at_edge(round, work, own, sought, parallel)?;
                let judge = |(meter, open): (&mut HindsightMeter<'w>, OpenRound<'w>)| {
                    meter.close(&open, (learning, &trained), selected, parallel)
                };
                judged.map(judge).transpose()
            })?;
            for (client, values) in learning.kept(&trained) {
                engine.note(&Record::Private { round, client, values })?;
            }
            found.into_iter().for_each(|found| server.hindsight.add(found));
            if let Some(accuracies) = &mut server.accuracies
                && let Some(on) = accuracies.asked(edge)
            {
                let found = learning.accuracy_at_edge(round, &self.of, model, on, server.settings.parallel)?;
                edge_accuracy = accuracies.note(edge, found);
            }
        }
        engine.note(&Record::EdgeClosed { edge, turn, time: now })?;
        let asker = Asker::Edge(edge);
        let told = self.cohort.report(engine, &mut *self.selector.policy, round, self.rule.cut());
        server.check_told(told, asker, round)?;
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
        let policy = &mut *self.selector.policy;
        let told = report_round(policy, server.learning.as_ref(), (&trained, before.as_ref(), parallel), report);
        server.note_updates(&trained);
        let told = told.and_then(|()| server.explain_after(policy, turn, asker, &self.cohort.selection));
        server.check_told(told, asker, round)?;
        self.cohort.settle(engine)?;
        self.left -= 1;
        if self.left == 0 {
            self.stage = Stage::Up(engine.travel(edge, self.link[1]));
        }
        Ok(self.left > 0)
    }

    /// The cloud stops waiting: jobs still under way are called off, and the model's cost is wasted.
    pub fn call_off(&mut self, engine: &mut Engine<'_>, jobs: &mut RoundJobs) -> Result<(), RunError> {
        match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Idle => return Ok(()),
            Stage::Down(handle) | Stage::Up(handle) => engine.stop_travel(handle),
            Stage::Waiting => {
                engine.clear_timer(Timer::Wake(self.of.edge));
                engine.clear_timer(Timer::Probe(self.of.edge));
                self.selector.asked = None;
            }
            Stage::Open => {
                engine.clear_timer(Timer::Boundary(self.of.edge));
                self.cohort.stop_waiting(engine, false, jobs)?;
                self.cohort.arrived.iter().for_each(|&id| engine.waste(id));
                self.cohort.settle(engine)?;
            }
        }
        engine.accounts.waste(self.invested);
        Ok(())
    }
}
