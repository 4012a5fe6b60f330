//! Asynchronous aggregation: see [`crate::protocol::buffered`].

use super::RunError;
use super::engine::{Engine, Event, THE_SERVER, Timer};
use super::hindsight::{HindsightMeter, Window};
use super::jobs::{JobId, Names, Terms};
use super::learning::{Intake, Work};
use super::probe::{Answered, Asked, Asking, Pending, carry_out, price};
use super::question::{Asker, Question, SelectionStreams, forecaster, view};
use super::server::{Closing, RoundUnderWay, Server, Told, numbered};
use crate::policy::{Feedback, JobReport, Policy, Selection, Waited};
use crate::population::Forecaster;
use crate::protocol::BufferedRule;
use crate::recorder::RoundJobs;
use crate::world::World;
use fedgenie_core::id::{ClientId, JobNumber, Round, Turn};
use fedgenie_core::record::{Outcome, Record};
use fedgenie_core::state::State;
use fedgenie_core::time::VirtualTime;
use fedgenie_learning::model::weights::Tensor;
use serde_json::Value;

/// Jobs in a row that may end without an update, beside a hundred for each client at work.
const MOST_WITHOUT_UPDATE: usize = 10_000;

/// The state of the protocol.
pub(super) struct Buffered<'w> {
    rule: &'w BufferedRule,
    policy: Box<dyn Policy>,
    /// Jobs that the server waits for.
    at_work: usize,
    /// The policy's last selection.
    turn: Turn,
    /// Number of each client's last job.
    numbers: Vec<JobNumber>,
    buffer: Vec<JobId>,
    /// Jobs that ended without an update since one was last taken.
    without_update: u32,
    choice: Selection,
    /// What answers the policy's questions about availability, if it asks any.
    forecaster: Option<Forecaster<'w>>,
    /// The selection that waits for answers.
    asked: Option<Pending>,
    /// The budget did not pay for a selection: there are no more.
    is_out: bool,
    /// Of the round under way.
    jobs: RoundJobs,
    /// The regret in hindsight of its selections, where it is metered.
    pub hindsight: Option<HindsightMeter<'w>>,
}

impl<'w> Buffered<'w> {
    pub fn new(world: &'w World, rule: &'w BufferedRule, policy: Box<dyn Policy>) -> Self {
        let forecaster = forecaster(world, &*policy, None);
        Self {
            rule,
            policy,
            at_work: 0,
            turn: Turn(0),
            numbers: vec![JobNumber(0); world.population.len()],
            buffer: Vec::new(),
            without_update: 0,
            choice: Selection::default(),
            forecaster,
            asked: None,
            is_out: false,
            jobs: RoundJobs::default(),
            hindsight: HindsightMeter::new(world, Window::of_one(rule)),
        }
    }

    /// Between rounds; jobs and a question may be under way.
    pub fn exchange(&mut self, world: &World, state: &mut State<'_>) {
        let Self {
            rule: _,
            policy,
            at_work,
            turn,
            numbers,
            buffer,
            without_update,
            choice: _,
            forecaster: _,
            asked,
            is_out,
            jobs: _,
            hindsight,
        } = self;
        assert!(buffer.is_empty(), "a round has settled its updates");
        state.field(&mut **policy);
        state.field(at_work);
        state.field(turn);
        state.fields(numbers);
        state.field(without_update);
        state.field(is_out);
        let mut is_asked = asked.is_some();
        state.field(&mut is_asked);
        if state.is_loading() {
            let streams = || SelectionStreams::new(world, Asker::Server, *turn);
            let (answered, until) = (Answered::default(), VirtualTime::START);
            *asked = is_asked.then(|| Pending { streams: streams(), answered, until });
        }
        asked.iter_mut().for_each(|asked| state.field(asked));
        hindsight.iter_mut().for_each(|meter| state.field(meter));
    }

    /// What the policy says of the run so far.
    pub fn warning(&self) -> Option<String> {
        self.policy.warning()
    }

    /// What the policy has worked out for parameters that are left open.
    pub fn effective(&self) -> Vec<(&'static str, Value)> {
        self.policy.effective()
    }

    /// The weights of the policy's networks.
    pub fn tensors(&self) -> Vec<Tensor> {
        self.policy.tensors()
    }

    /// Plays until the model has changed once.
    pub fn step(&mut self, engine: &mut Engine<'_>, server: &mut Server<'w>) -> Result<(), RunError> {
        let round = server.open_round(engine);
        self.jobs.clear();
        loop {
            if self.buffer.len() >= self.rule.buffer {
                return self.close(engine, server, round, false);
            }
            if self.is_out && self.at_work == 0 {
                return self.run_out(engine, server, round);
            }
            if server.settings.evaluate.end.time.is_some_and(|end| engine.now() >= end) {
                return self.close(engine, server, round, true);
            }
            if self.without_update as usize > MOST_WITHOUT_UPDATE + 100 * self.rule.concurrency {
                return Err(RunError::NoUpdates { time: engine.now(), jobs: self.without_update });
            }
            // Everything of this instant comes before a selection.
            if !engine.has_more_now() {
                self.fill(engine, server)?;
                if self.is_out && self.at_work == 0 {
                    continue;
                }
            }
            let Some(event) = engine.next()? else { return Err(RunError::NoClients { time: engine.now() }) };
            match event {
                Event::Progress | Event::Lost(_) => {}
                Event::Delivered(id) => self.deliver(engine, server, id)?,
                Event::Rang(Timer::Patience(id)) => self.time_out(engine, server, id)?,
                Event::Rang(_) => {}
                Event::Travelled(_) => unreachable!("there are no edge servers"),
            }
        }
    }

    /// Selects one client after the other until enough are at work, there are no candidates, or those who are asked
    /// take time to answer; then a timer rings.
    fn fill(&mut self, engine: &mut Engine<'_>, server: &mut Server<'w>) -> Result<(), RunError> {
        if self.at_work == self.rule.concurrency || self.is_out {
            return Ok(());
        }
        while self.at_work < self.rule.concurrency {
            if self.asked.as_ref().is_some_and(|asked| asked.until > engine.now()) {
                return Ok(());
            }
            if !engine.has_candidates(THE_SERVER) {
                if let Some(time) = engine.next_candidate(THE_SERVER) {
                    engine.set_timer(Timer::Wake(THE_SERVER), time);
                }
                return Ok(());
            }
            let Some(client) = self.select(engine, server)? else {
                if self.is_out {
                    break;
                }
                continue;
            };
            self.judge(engine, server, client)?;
            let number = &mut self.numbers[client.index()];
            number.0 += 1;
            let (turn, round, number, terms) = (self.turn, server.round(), *number, Terms::of(&self.choice, 0));
            let id = engine.prepare(Names { client, turn, round, number, terms })?;
            let sent = server.learning.as_ref().map(|learning| learning.sent(0, client));
            engine.begin(id, sent, self.rule.concurrency + self.buffer.len())?;
            self.at_work += 1;
            if let Some(timeout) = self.rule.timeout {
                engine.set_timer(Timer::Patience(id), engine.now() + timeout);
            }
        }
        engine.clear_timer(Timer::Wake(THE_SERVER));
        Ok(())
    }

    fn question<'a>(&self, engine: &'a Engine<'_>, server: &'a Server<'_>) -> Question<'a> {
        Question {
            world: engine.world,
            label: &server.label,
            asker: Asker::Server,
            turn: self.turn,
            round: server.round(),
            now: engine.now(),
            least: 1,
            cohort: 1,
            most: 1,
            take: 1,
            bounds: engine.world.bounds_of_one(self.rule),
            has_rounds: false,
            candidates: engine.candidates(THE_SERVER),
            explain: server.settings.explain,
        }
    }

    /// Selects a client; none if those who were asked take time to answer, or the budget does not pay for it.
    fn select(&mut self, engine: &mut Engine<'_>, server: &mut Server<'w>) -> Result<Option<ClientId>, RunError> {
        let (world, time) = (engine.world, engine.now());
        let pending = match self.asked.take() {
            Some(pending) => pending,
            None => match self.ask_clients(engine, server)? {
                Some(pending) => pending,
                None => return Ok(None),
            },
        };
        if pending.until > time {
            engine.set_timer(Timer::Probe(THE_SERVER), pending.until);
            self.asked = Some(pending);
            return Ok(None);
        }
        // Others may be there now, whose jobs are dearer.
        if !self.is_payable(engine, 0) {
            return self.give_up(engine, server, 0);
        }
        let Pending { mut streams, answered, .. } = pending;
        let trained = answered.trained(&*self.policy);
        let question = self.question(engine, server);
        let forecaster = self.forecaster.as_ref().map(|forecaster| forecaster.at(time));
        let view = view(world, &server.counts, &*self.policy, question.bounds, forecaster);
        let view = answered.view(view, &trained);
        let offer = question.offer();
        let explained = question.ask(&mut *self.policy, &view, &mut streams, &mut self.choice)?;
        question.check_alike(&engine.jobs, &self.choice)?;
        server.offers.add(offer);
        server.explanations.extend(explained.map(|object| numbered(object, self.turn, None)));
        let selected = &self.choice;
        engine.note(&Record::Selected { round: server.round(), time, selected })?;
        server.count(world, selected);
        self.jobs.select(selected);
        Ok(Some(selected[0]))
    }

    /// Whether the budget pays for the next job, whose it may be, after so many bytes for what is asked before.
    fn is_payable(&self, engine: &Engine<'_>, asked: u64) -> bool {
        let number = |client: ClientId| JobNumber(self.numbers[client.index()].0 + 1);
        engine.payable(THE_SERVER, 1, asked, number) == 1
    }

    /// The budget does not pay for a selection: those at work are the last.
    fn give_up(
        &mut self,
        engine: &Engine<'_>,
        server: &mut Server<'w>,
        asked: u64,
    ) -> Result<Option<ClientId>, RunError> {
        server.give_up(engine, self.turn, asked)?;
        self.turn = Turn(self.turn.0 - 1);
        (self.is_out, server.is_spent) = (true, false);
        Ok(None)
    }

    /// Nobody is at work any more, and the budget pays for nobody else.
    fn run_out(
        &mut self,
        engine: &mut Engine<'_>,
        server: &mut Server<'w>,
        round: RoundUnderWay,
    ) -> Result<(), RunError> {
        let RoundJobs { selected, late, dropped, .. } = &self.jobs;
        let is_nothing = selected.is_empty() && late.is_empty() && dropped.is_empty() && self.buffer.is_empty();
        if !is_nothing || engine.now() > round.opened() {
            return self.close(engine, server, round, true);
        }
        server.take_back(round);
        server.is_spent = true;
        Ok(())
    }

    /// Begins the next selection: asks whom the policy wants to ask. None if the budget does not pay for that.
    fn ask_clients(&mut self, engine: &mut Engine<'_>, server: &mut Server<'w>) -> Result<Option<Pending>, RunError> {
        let world = engine.world;
        self.turn = self.turn.next();
        let mut streams = SelectionStreams::new(world, Asker::Server, self.turn);
        let question = self.question(engine, server);
        let forecaster = self.forecaster.as_ref().map(|forecaster| forecaster.at(engine.now()));
        let view = view(world, &server.counts, &*self.policy, question.bounds, forecaster);
        let probe = question.probe(&mut *self.policy, &view, &mut streams)?;
        let asked = price(engine, server, self.turn, &probe);
        if !self.is_payable(engine, asked) {
            self.give_up(engine, server, asked)?;
            return Ok(None);
        }
        let asking = Asking {
            asker: Asker::Server,
            turn: self.turn,
            round: server.round(),
            policy: &*self.policy,
            model: server.learning.as_ref().map(|learning| learning.model(0)),
        };
        let Asked { answered, span, .. } = carry_out(engine, server, &asking, probe)?;
        Ok(Some(Pending { streams, answered, until: engine.now() + span }))
    }

    /// Compares a selection with the best, if its round is judged: of one client, from the model it will be sent.
    fn judge(&mut self, engine: &Engine<'_>, server: &mut Server<'w>, client: ClientId) -> Result<(), RunError> {
        let Self { hindsight, numbers, turn, .. } = self;
        let (Some(meter), Some(learning)) = (hindsight, &server.learning) else { return Ok(()) };
        if meter.is_due(server.round()) {
            let number = |client: ClientId| JobNumber(numbers[client.index()].0 + 1);
            let parallel = server.settings.parallel;
            let open = meter.open(engine, (server.round(), *turn), 1, number, (learning, parallel), None)?;
            server.hindsight.add(meter.close(&open, (learning, &[]), &[client], parallel));
        }
        Ok(())
    }

    /// An update arrived: its client is free.
    fn deliver(&mut self, engine: &mut Engine<'_>, server: &Server<'_>, id: JobId) -> Result<(), RunError> {
        let job = &engine.jobs[id];
        let (client, waited) = (job.client, Waited::Arrived(engine.now() - job.dispatched));
        engine.audit.age(client, job.round, server.round())?;
        let is_used = server.round().since(job.round) <= self.rule.max_staleness;
        engine.accounts.arrived += u64::from(is_used);
        let outcome = if is_used { Outcome::Arrived } else { Outcome::Late };
        self.end(engine, server.round(), id, outcome, waited)?;
        if is_used {
            self.without_update = 0;
            self.jobs.arrived.push(client);
            self.buffer.push(id);
            Ok(())
        } else {
            self.without_update += 1;
            self.jobs.late.push(client);
            engine.waste(id);
            engine.settle(id)
        }
    }

    /// The server stops waiting for a job.
    fn time_out(&mut self, engine: &mut Engine<'_>, server: &Server<'_>, id: JobId) -> Result<(), RunError> {
        let waited = Waited::TimedOut(engine.now() - engine.jobs[id].dispatched);
        let outcome = engine.jobs[id].outcome();
        match engine.jobs[id].dropped() {
            Some(job) => self.jobs.dropped.push(job),
            None => {
                self.jobs.late.push(engine.jobs[id].client);
                engine.call_off(id)?;
            }
        }
        self.without_update += 1;
        self.end(engine, server.round(), id, outcome, waited)?;
        engine.settle(id)
    }

    /// A job is over: its client is free, and the policy is told.
    fn end(
        &mut self,
        engine: &mut Engine<'_>,
        now: Round,
        id: JobId,
        outcome: Outcome,
        waited: Waited,
    ) -> Result<(), RunError> {
        engine.release(engine.jobs[id].client);
        engine.clear_timer(Timer::Patience(id));
        self.at_work -= 1;
        engine.conclude(id, outcome)?;
        let report = JobReport { outcome, ..engine.jobs[id].report(waited, now, engine.now()) };
        self.policy.observe(&Feedback::Job(report));
        Ok(())
    }

    /// The round is over: with a new model if the buffer is full, or without one if virtual time is over before.
    fn close(
        &mut self,
        engine: &mut Engine<'_>,
        server: &mut Server<'w>,
        round: RoundUnderWay,
        is_abandoned: bool,
    ) -> Result<(), RunError> {
        let work = self.buffer.iter().filter_map(|&id| {
            let age = server.round().since(engine.jobs[id].round);
            Work::of(&engine.jobs[id], age, self.rule.staleness.weight(age))
        });
        let intake = match is_abandoned {
            true => Intake::Nothing,
            false => Intake::Updates(work.collect(), self.rule.combine),
        };
        let policy =
            Some(Told { policy: &mut *self.policy, turn: self.turn, selected: &self.jobs.selected, server: None });
        let (jobs, scopes) = (&self.jobs, &[]);
        let is_spent = self.at_work == 0 && (self.is_out || engine.is_spent());
        let (hindsight, clusters) = (None, None);
        server.close(
            engine,
            Closing { round, jobs, is_abandoned, is_spent, intake, hindsight, policy, scopes, clusters },
        )?;
        for id in self.buffer.drain(..) {
            if is_abandoned {
                engine.waste(id);
            }
            engine.settle(id)?;
        }
        engine.check_jobs(self.at_work)
    }
}
