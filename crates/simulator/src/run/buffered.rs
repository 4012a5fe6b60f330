//! Asynchronous aggregation: see [`crate::protocol::buffered`].

use super::RunError;
use super::engine::{Engine, Happening, Timer};
use super::jobs::JobId;
use super::learning::{Learning, Work};
use super::server::{Question, RoundFacts, Server, Tally, plain_view};
use crate::policy::{Feedback, JobReport, Waited};
use crate::protocol::BufferedRule;
use crate::recorder::Sink;
use crate::world::World;
use fedgenie_core::id::{ClientId, Round};
use fedgenie_core::record::{Outcome, Record};
use fedgenie_core::time::VirtualTime;

/// Jobs that may come to nothing one after the other, beside a hundred for each place.
const FRUITLESS: usize = 10_000;

/// The state of the protocol.
pub(super) struct Buffered<'w> {
    rule: &'w BufferedRule,
    /// Places that are taken: jobs that the server waits for.
    taken: usize,
    /// Selections made so far.
    selections: Round,
    /// Number of each client's last job.
    tickets: Vec<u32>,
    buffer: Vec<JobId>,
    /// Jobs that came to nothing since an update was last taken.
    fruitless: u32,
    choice: Vec<ClientId>,

    // Of the round under way.
    tally: Tally,
}

impl<'w> Buffered<'w> {
    pub fn new(world: &World, rule: &'w BufferedRule) -> Self {
        Self {
            rule,
            taken: 0,
            selections: Round(0),
            tickets: vec![0; world.population.len()],
            buffer: Vec::new(),
            fruitless: 0,
            choice: Vec::new(),
            tally: Tally::default(),
        }
    }

    /// Plays until the model has changed once.
    pub fn step<S: Sink>(&mut self, engine: &mut Engine<'_, S>, server: &mut Server<'_>) -> Result<(), RunError> {
        let opened = engine.now();
        server.round = server.round.next();
        self.tally.clear();
        loop {
            if self.buffer.len() >= self.rule.buffer {
                return self.aggregate(engine, server, opened);
            }
            if server.settings.evaluate.end.time.is_some_and(|end| engine.now() >= end) {
                return self.give_out(engine, server, opened);
            }
            if self.fruitless as usize > FRUITLESS + 100 * self.rule.concurrency {
                return Err(RunError::Fruitless { time: engine.now(), jobs: self.fruitless });
            }
            // Everything of this instant comes before a place is filled.
            if !engine.has_more_now() {
                self.fill(engine, server)?;
            }
            let Some(happening) = engine.next()? else { return Err(RunError::Deserted { time: engine.now() }) };
            match happening {
                Happening::Progress | Happening::Lost(_) => {}
                Happening::Delivered(id) => self.deliver(engine, server, id)?,
                Happening::Rang(Timer::Patience(id)) => self.give_up(engine, server, id)?,
                Happening::Rang(_) => {}
                Happening::Travelled(_) => unreachable!("there are no edge servers"),
            }
        }
    }

    /// One client for each free place, as long as there are candidates; if there are none, a timer rings when there may be.
    fn fill<S: Sink>(&mut self, engine: &mut Engine<'_, S>, server: &mut Server<'_>) -> Result<(), RunError> {
        if self.taken == self.rule.concurrency {
            return Ok(());
        }
        let world = engine.world;
        let model = server.learning.as_ref().map(Learning::model);
        while self.taken < self.rule.concurrency {
            engine.forget_candidates();
            if !engine.has_candidates(None) {
                if let Some(time) = engine.next_candidate(None) {
                    engine.set_timer(Timer::Wake(0), time);
                }
                return Ok(());
            }
            self.selections = self.selections.next();
            let question = Question {
                label: &server.label,
                number: self.selections,
                server: 0,
                now: engine.now(),
                cohort: 1,
                take: 1,
                candidates: engine.candidates(None),
                view: plain_view(world.population.data_sizes(), &world.shares, &server.counts),
            };
            question.ask(world, &mut *server.policies[0], &mut self.choice)?;
            let client = self.choice[0];
            engine.note(&Record::Selected {
                edge: None,
                round: server.round,
                time: engine.now(),
                selected: &self.choice,
            })?;
            server.count(world, &self.choice);
            self.tally.selected.push(client);
            let ticket = &mut self.tickets[client.index()];
            *ticket += 1;
            let id = engine.prepare(client, server.round, Round(*ticket))?;
            engine.begin(id, model.clone(), self.rule.concurrency + self.buffer.len())?;
            self.taken += 1;
            if let Some(timeout) = self.rule.timeout {
                engine.set_timer(Timer::Patience(id), engine.now() + timeout);
            }
        }
        engine.clear_timer(Timer::Wake(0));
        Ok(())
    }

    /// An update is there: its client's place is free.
    fn deliver<S: Sink>(
        &mut self,
        engine: &mut Engine<'_, S>,
        server: &mut Server<'_>,
        id: JobId,
    ) -> Result<(), RunError> {
        let job = &engine.jobs[id];
        let (client, waited) = (job.client, Waited::Arrived(engine.now() - job.dispatched));
        engine.audit.age(client, job.round, server.round)?;
        let is_used = server.round.0 - job.round.0 <= self.rule.max_staleness;
        self.leave(engine, id);
        engine.accounts.arrived += u64::from(is_used);
        let outcome = if is_used { Outcome::Arrived } else { Outcome::Late };
        self.conclude(engine, server, id, outcome, waited)?;
        self.fruitless = if is_used { 0 } else { self.fruitless + 1 };
        if is_used {
            self.tally.arrived.push(client);
            self.buffer.push(id);
            Ok(())
        } else {
            self.tally.late.push(client);
            engine.waste(id);
            engine.settle(id)
        }
    }

    /// The server stops waiting for a job.
    fn give_up<S: Sink>(
        &mut self,
        engine: &mut Engine<'_, S>,
        server: &mut Server<'_>,
        id: JobId,
    ) -> Result<(), RunError> {
        let waited = Waited::TimedOut(engine.now() - engine.jobs[id].dispatched);
        let outcome = engine.jobs[id].outcome();
        match engine.jobs[id].dropped() {
            Some(job) => self.tally.dropped.push(job),
            None => {
                self.tally.late.push(engine.jobs[id].client);
                engine.call_off(id)?;
            }
        }
        self.leave(engine, id);
        self.fruitless += 1;
        self.conclude(engine, server, id, outcome, waited)?;
        engine.settle(id)
    }

    /// Virtual time is over before the buffer is full: the round is closed without a new model.
    fn give_out<S: Sink>(
        &mut self,
        engine: &mut Engine<'_, S>,
        server: &mut Server<'_>,
        opened: VirtualTime,
    ) -> Result<(), RunError> {
        server.metrics.clear();
        let trained = match server.learning {
            None => Vec::new(),
            Some(_) => server.learned(engine, Ok(None), opened)?,
        };
        let facts = RoundFacts { is_abandoned: true, ..self.tally.facts(opened) };
        server.close(engine, &trained, &facts)?;
        for id in self.buffer.drain(..) {
            engine.waste(id);
            engine.settle(id)?;
        }
        engine.check_jobs(self.taken)
    }

    fn leave<S: Sink>(&mut self, engine: &mut Engine<'_, S>, id: JobId) {
        engine.release(engine.jobs[id].client);
        engine.clear_timer(Timer::Patience(id));
        self.taken -= 1;
    }

    fn conclude<S: Sink>(
        &self,
        engine: &mut Engine<'_, S>,
        server: &mut Server<'_>,
        id: JobId,
        outcome: Outcome,
        waited: Waited,
    ) -> Result<(), RunError> {
        engine.conclude(id, outcome)?;
        let job = &engine.jobs[id];
        server.policies[0].observe(&Feedback::Job(JobReport { client: job.client, round: job.round, outcome, waited }));
        Ok(())
    }

    /// The buffer is full: a new model, and the round is over.
    fn aggregate<S: Sink>(
        &mut self,
        engine: &mut Engine<'_, S>,
        server: &mut Server<'_>,
        opened: VirtualTime,
    ) -> Result<(), RunError> {
        server.metrics.clear();
        let round = server.round;
        let mut work = Vec::new();
        for &id in &self.buffer {
            let job = &engine.jobs[id];
            work.extend(Work::of(job, self.rule.staleness.weight(round.0 - job.round.0)));
        }
        let parallel = server.settings.parallel;
        let trained = match &mut server.learning {
            None => Vec::new(),
            Some(learning) => {
                let trained = learning.aggregate(work, self.rule.combine, parallel);
                server.learned(engine, trained, opened)?
            }
        };
        let facts = self.tally.facts(opened);
        server.close(engine, &trained, &facts)?;
        for id in self.buffer.drain(..) {
            engine.settle(id)?;
        }
        engine.check_jobs(self.taken)
    }
}
