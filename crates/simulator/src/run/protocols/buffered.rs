//! Asynchronous aggregation: see [`crate::protocol::buffered`].

use crate::policy::{Feedback, JobReport, Policy, Selection, Waited};
use crate::protocol::BufferedRule;
use crate::recorder::RoundJobs;
use crate::run::error::{Failed, RunError};
use crate::run::learning::{Intake, Work};
use crate::run::meters::{HindsightMeter, Window};
use crate::run::round::Pending;
use crate::run::round::{Asker, Known, Limits, RoundUnderWay, Selector, Server, Told, price};
use crate::run::timeline::{Engine, Event, JobId, Names, THE_SERVER, Terms, Timer};
use crate::world::World;
use fedgenie_core::id::{ClientId, JobNumber};
use fedgenie_core::record::{Outcome, Record};
use fedgenie_core::state::Stateful;

/// Jobs in a row that may end without an update, beside a hundred for each client at work.
const MOST_WITHOUT_UPDATE: usize = 10_000;

/// The state of the protocol. Between rounds, jobs and a question may be under way.
#[derive(Stateful)]
pub(in crate::run) struct Buffered<'w> {
    #[state(skip = "from the scenario")]
    rule: &'w BufferedRule,
    pub selector: Selector<'w>,
    /// Jobs that the server waits for.
    at_work: usize,
    /// Number of each client's last job.
    #[state(each)]
    numbers: Vec<JobNumber>,
    #[state(empty = "a round has settled its updates")]
    buffer: Vec<JobId>,
    /// Jobs that ended without an update since one was last taken.
    without_update: u32,
    #[state(skip = "of the selection under way")]
    choice: Selection,
    /// The budget did not pay for a selection: there are no more.
    is_out: bool,
    #[state(skip = "of the round under way")]
    jobs: RoundJobs,
    /// The regret in hindsight of its selections, where it is metered.
    #[state(each)]
    pub hindsight: Option<HindsightMeter<'w>>,
}

impl<'w> Buffered<'w> {
    pub fn new(world: &'w World, rule: &'w BufferedRule, policy: Box<dyn Policy>) -> Self {
        Self {
            rule,
            selector: Selector::of_server(world, policy),
            at_work: 0,
            numbers: vec![JobNumber(0); world.population.len()],
            buffer: Vec::new(),
            without_update: 0,
            choice: Selection::default(),
            is_out: false,
            jobs: RoundJobs::default(),
            hindsight: HindsightMeter::new(world, Window::of_one(rule)),
        }
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

    /// Selects one client after the other until enough are at work, there are no candidates, or the clients that are
    /// asked take time to answer; then a timer rings.
    fn fill(&mut self, engine: &mut Engine<'_>, server: &mut Server<'w>) -> Result<(), RunError> {
        if self.at_work == self.rule.concurrency || self.is_out {
            return Ok(());
        }
        while self.at_work < self.rule.concurrency {
            if self.selector.asked.as_ref().is_some_and(|asked| asked.until > engine.now()) {
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
            let (turn, round, number, terms) =
                (self.selector.turn, server.round(), *number, Terms::of(&self.choice, 0));
            let id = engine.prepare(Names { client, turn, round, number, terms, selected: 1 })?;
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

    fn limits(&self, engine: &Engine<'_>, server: &Server<'_>) -> Limits {
        Limits {
            round: server.round(),
            least: 1,
            cohort: 1,
            most: 1,
            take: 1,
            bounds: engine.world.bounds_of_one(self.rule),
            has_rounds: false,
            mixes: true,
        }
    }

    /// Selects a client. `None` if the clients that were asked take time to answer, or the budget does not pay for it.
    fn select(&mut self, engine: &mut Engine<'_>, server: &mut Server<'w>) -> Result<Option<ClientId>, RunError> {
        let (world, time) = (engine.world, engine.now());
        let mut pending = match self.selector.asked.take() {
            Some(pending) => pending,
            None => match self.ask_clients(engine, server)? {
                Some(pending) => pending,
                None => return Ok(None),
            },
        };
        if pending.until > time {
            engine.set_timer(Timer::Probe(THE_SERVER), pending.until);
            self.selector.asked = Some(pending);
            return Ok(None);
        }
        // Others may be there now, whose jobs are dearer.
        if !self.is_payable(engine, 0) {
            return self.give_up(engine, server, 0);
        }
        let limits = self.limits(engine, server);
        self.selector.select(engine, server, (limits, Known::default()), &mut pending, &mut self.choice)?;
        let selected = &self.choice;
        engine.note(&Record::Selected { round: server.round(), time, selected })?;
        server.count(world, selected);
        self.jobs.select(selected);
        Ok(Some(selected[0]))
    }

    /// Whether the budget pays for any client's next job, after so many bytes for the probe before.
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
        server.give_up(engine, self.selector.turn, asked)?;
        self.selector.turn.0 -= 1;
        (self.is_out, server.is_spent) = (true, false);
        Ok(None)
    }

    /// No client is at work any more, and the budget pays for no further job.
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

    /// Begins the next selection: sends the policy's probe. `None` if the budget does not pay for that.
    fn ask_clients(&mut self, engine: &mut Engine<'_>, server: &mut Server<'w>) -> Result<Option<Pending>, RunError> {
        self.selector.turn = self.selector.turn.next();
        let limits = self.limits(engine, server);
        let (probe, streams) = self.selector.probe(engine, server, limits, Known::default())?;
        let asked = price(engine, server, self.selector.turn, &probe);
        if !self.is_payable(engine, asked) {
            self.give_up(engine, server, asked)?;
            return Ok(None);
        }
        let model = server.learning.as_ref().map(|learning| learning.model(0));
        let (pending, _) = self.selector.ask_clients(engine, server, (limits.round, model), (probe, streams))?;
        Ok(Some(pending))
    }

    /// Compares a selection with the best, if its round is judged: of one client, from the model it will be sent.
    fn judge(&mut self, engine: &Engine<'_>, server: &mut Server<'w>, client: ClientId) -> Result<(), RunError> {
        let Self { hindsight, numbers, selector: Selector { turn, .. }, .. } = self;
        let (Some(meter), Some(learning)) = (hindsight, &server.learning) else { return Ok(()) };
        if meter.is_due(server.round()) {
            let number = |client: ClientId| JobNumber(numbers[client.index()].0 + 1);
            let parallel = server.settings.parallel;
            let open = meter.open(engine, (server.round(), *turn), 1, number, (learning, parallel), None)?;
            server.hindsight.add(meter.close(&open, (learning, &[]), &[client], parallel)?);
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
        self.end(engine, server, id, outcome, waited)?;
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
        self.end(engine, server, id, outcome, waited)?;
        engine.settle(id)
    }

    /// A job is over: its client is free, and the policy is told.
    fn end(
        &mut self,
        engine: &mut Engine<'_>,
        server: &Server<'_>,
        id: JobId,
        outcome: Outcome,
        waited: Waited,
    ) -> Result<(), RunError> {
        engine.release(engine.jobs[id].client);
        engine.clear_timer(Timer::Patience(id));
        self.at_work -= 1;
        engine.conclude(id, outcome)?;
        let report = JobReport { outcome, ..engine.jobs[id].report(waited, server.round(), engine.now()) };
        let told = self.selector.policy.observe(&Feedback::Job(report)).map_err(Failed::of("observe"));
        server.check_told(told, Asker::Server, server.round())
    }

    /// The round is over: with a new model if the buffer is full and has enough for one, or without one if virtual time
    /// is over before (`is_cut`).
    fn close(
        &mut self,
        engine: &mut Engine<'_>,
        server: &mut Server<'w>,
        round: RoundUnderWay,
        is_cut: bool,
    ) -> Result<(), RunError> {
        let work = self.buffer.iter().filter_map(|&id| {
            let age = server.round().since(engine.jobs[id].round);
            Work::of(&engine.jobs[id], age, self.rule.staleness.weight(age))
        });
        let work: Vec<Work> = work.collect();
        // A buffer may have several updates of one client.
        let is_enough = server.learning.as_ref().is_none_or(|learning| learning.has_enough(&work));
        let is_abandoned = is_cut || !is_enough;
        let intake = match is_abandoned {
            true => Intake::Nothing,
            false => Intake::Updates(work, self.rule.combine),
        };
        let Self { selector: Selector { policy, turn, .. }, jobs, .. } = self;
        let sought = server.sought(&**policy);
        let round = server.aggregate(engine, round, intake, sought)?;
        let is_spent = self.at_work == 0 && (self.is_out || engine.is_spent());
        let round = server.measure(engine, round, &[], is_spent)?;
        let told = Told { policy: &mut **policy, turn: *turn, selected: &jobs.selected, asker: Asker::Server };
        server.tell(engine, &round, told)?;
        server.record(engine, round, jobs, is_abandoned, None)?;
        for id in self.buffer.drain(..) {
            if is_abandoned {
                engine.waste(id);
            }
            engine.settle(id)?;
        }
        engine.check_jobs(self.at_work)
    }
}
