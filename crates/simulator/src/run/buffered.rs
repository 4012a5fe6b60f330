//! Asynchronous aggregation: see [`crate::protocol::buffered`].

use super::RunError;
use super::engine::{Engine, Event, Timer};
use super::jobs::JobId;
use super::learning::{Intake, Learning, Work};
use super::question::{Question, SelectionStreams, view};
use super::server::{Closing, Server};
use crate::policy::{Feedback, JobReport, Policy, Waited};
use crate::protocol::BufferedRule;
use crate::recorder::RoundJobs;
use crate::world::World;
use fedgenie_core::id::{ClientId, Round};
use fedgenie_core::record::{Outcome, Record};
use fedgenie_core::time::VirtualTime;

/// Jobs in a row that may end without an update, beside a hundred for each client at work.
const MOST_WITHOUT_UPDATE: usize = 10_000;

/// The state of the protocol.
pub(super) struct Buffered<'w> {
    rule: &'w BufferedRule,
    policy: Box<dyn Policy>,
    /// Jobs that the server waits for.
    at_work: usize,
    /// Selections made so far.
    selections: Round,
    /// Number of each client's last job.
    tickets: Vec<u32>,
    buffer: Vec<JobId>,
    /// Jobs that ended without an update since one was last taken.
    without_update: u32,
    choice: Vec<ClientId>,
    /// Of the round under way.
    jobs: RoundJobs,
}

impl<'w> Buffered<'w> {
    pub fn new(world: &World, rule: &'w BufferedRule, policy: Box<dyn Policy>) -> Self {
        Self {
            rule,
            policy,
            at_work: 0,
            selections: Round(0),
            tickets: vec![0; world.population.len()],
            buffer: Vec::new(),
            without_update: 0,
            choice: Vec::new(),
            jobs: RoundJobs::default(),
        }
    }

    /// Plays until the model has changed once.
    pub fn step(&mut self, engine: &mut Engine<'_>, server: &mut Server<'_>) -> Result<(), RunError> {
        let opened = engine.now();
        server.round = server.round.next();
        self.jobs.clear();
        loop {
            if self.buffer.len() >= self.rule.buffer {
                return self.close(engine, server, opened, false);
            }
            if server.settings.evaluate.end.time.is_some_and(|end| engine.now() >= end) {
                return self.close(engine, server, opened, true);
            }
            if self.without_update as usize > MOST_WITHOUT_UPDATE + 100 * self.rule.concurrency {
                return Err(RunError::NoUpdates { time: engine.now(), jobs: self.without_update });
            }
            // Everything of this instant comes before a selection.
            if !engine.has_more_now() {
                self.fill(engine, server)?;
            }
            let Some(event) = engine.next()? else { return Err(RunError::NoClients { time: engine.now() }) };
            match event {
                Event::Progress | Event::Lost(_) => {}
                Event::Delivered(id) => self.deliver(engine, server, id)?,
                Event::Rang(Timer::Patience(id)) => self.time_out(engine, id)?,
                Event::Rang(_) => {}
                Event::Travelled(_) => unreachable!("there are no edge servers"),
            }
        }
    }

    /// Selects one client after the other until enough are at work or there are no candidates; then a timer rings when there may
    /// be.
    fn fill(&mut self, engine: &mut Engine<'_>, server: &mut Server<'_>) -> Result<(), RunError> {
        if self.at_work == self.rule.concurrency {
            return Ok(());
        }
        let model = server.learning.as_ref().map(Learning::model);
        while self.at_work < self.rule.concurrency {
            if !engine.has_candidates(0) {
                if let Some(time) = engine.next_candidate(0) {
                    engine.set_timer(Timer::Wake(0), time);
                }
                return Ok(());
            }
            let client = self.select(engine, server)?;
            let ticket = &mut self.tickets[client.index()];
            *ticket += 1;
            let id = engine.prepare(client, server.round, Round(*ticket))?;
            engine.begin(id, model.clone(), self.rule.concurrency + self.buffer.len())?;
            self.at_work += 1;
            if let Some(timeout) = self.rule.timeout {
                engine.set_timer(Timer::Patience(id), engine.now() + timeout);
            }
        }
        engine.clear_timer(Timer::Wake(0));
        Ok(())
    }

    fn select(&mut self, engine: &mut Engine<'_>, server: &mut Server<'_>) -> Result<ClientId, RunError> {
        let (world, time) = (engine.world, engine.now());
        self.selections = self.selections.next();
        let question = Question {
            label: &server.label,
            number: self.selections,
            now: time,
            cohort: 1,
            take: 1,
            candidates: engine.candidates(0),
        };
        let streams = SelectionStreams::new(world, 0, self.selections);
        question.ask_at_once(&mut *self.policy, &view(world, &server.counts), streams, &mut self.choice)?;
        let selected = &self.choice;
        engine.note(&Record::Selected { edge: None, round: server.round, time, selected })?;
        server.count(world, selected);
        self.jobs.selected.extend(selected);
        Ok(selected[0])
    }

    /// An update arrived: its client is free.
    fn deliver(&mut self, engine: &mut Engine<'_>, server: &Server<'_>, id: JobId) -> Result<(), RunError> {
        let job = &engine.jobs[id];
        let (client, waited) = (job.client, Waited::Arrived(engine.now() - job.dispatched));
        engine.audit.age(client, job.round, server.round)?;
        let is_used = server.round.0 - job.round.0 <= self.rule.max_staleness;
        engine.accounts.arrived += u64::from(is_used);
        let outcome = if is_used { Outcome::Arrived } else { Outcome::Late };
        self.end(engine, id, outcome, waited)?;
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
    fn time_out(&mut self, engine: &mut Engine<'_>, id: JobId) -> Result<(), RunError> {
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
        self.end(engine, id, outcome, waited)?;
        engine.settle(id)
    }

    /// A job is over: its client is free, and the policy is told.
    fn end(&mut self, engine: &mut Engine<'_>, id: JobId, outcome: Outcome, waited: Waited) -> Result<(), RunError> {
        let (client, round) = (engine.jobs[id].client, engine.jobs[id].round);
        engine.release(client);
        engine.clear_timer(Timer::Patience(id));
        self.at_work -= 1;
        engine.conclude(id, outcome)?;
        self.policy.observe(&Feedback::Job(JobReport { client, round, outcome, waited }));
        Ok(())
    }

    /// The round is over: with a new model if the buffer is full, or without one if virtual time is over before.
    fn close(
        &mut self,
        engine: &mut Engine<'_>,
        server: &mut Server<'_>,
        opened: VirtualTime,
        is_abandoned: bool,
    ) -> Result<(), RunError> {
        let weight = |round: Round| self.rule.staleness.weight(server.round.0 - round.0);
        let work = self.buffer.iter().filter_map(|&id| Work::of(&engine.jobs[id], weight(engine.jobs[id].round)));
        let intake = match is_abandoned {
            true => Intake::Nothing,
            false => Intake::Updates(work.collect(), self.rule.combine),
        };
        let policy = Some((&mut *self.policy, &*self.jobs.selected));
        server.close(engine, Closing { opened, jobs: &self.jobs, is_abandoned, intake, hindsight: None, policy })?;
        for id in self.buffer.drain(..) {
            if is_abandoned {
                engine.waste(id);
            }
            engine.settle(id)?;
        }
        engine.check_jobs(self.at_work)
    }
}
