//! Jobs on the kernel: each goes through download, compute and upload, waits while its device is away, and is delivered
//! or lost. The protocol decides which jobs are begun, and when the server stops waiting for them.

mod energy;
mod phases;

use super::accounts::Accounts;
use super::accounts::Cost;
use super::audit::Audit;
use super::candidates::Scopes;
use super::jobs::{Job, JobId, Jobs, Names, Terms};
use crate::policy::{Busy, Candidates};
use crate::population::{Cursors, Energy, EnergyUse, Interruption, JobDraw, LatencyError, Levels, Load};
use crate::recorder::{Digests, Sink};
use crate::run::error::RunError;
use crate::world::World;
use fedgenie_core::halt::Halt;
use fedgenie_core::id::{ClientId, EdgeId, JobNumber};
use fedgenie_core::kernel::{Handle, Kernel, Occurrence};
use fedgenie_core::limits::CLOCK_SECONDS;
use fedgenie_core::record::{DropReason, Outcome, Phase, Record};
use fedgenie_core::rng::Purpose;
use fedgenie_core::state::{State, Stateful};
use fedgenie_core::time::{Span, TotalTime, VirtualTime};
use fedgenie_learning::learned::Sent;
use fedgenie_learning::learned::SharedModels;
use std::ops::Add;

/// Phase completions and arrivals of models, before everything else of the same instant.
const CLASS_PHASE: u8 = 0;
/// Losses of clients.
const CLASS_LOSS: u8 = 1;
/// Deadlines, timeouts and the end of probes.
const CLASS_TIMER: u8 = 2;

/// The latest time that a run may reach: durations beyond it still fit.
const LATEST: VirtualTime = VirtualTime(CLOCK_SECONDS * 1_000_000_000);

/// The one server, where there are no edge servers: it has the place of the first.
pub(in crate::run) const THE_SERVER: EdgeId = EdgeId(0);

/// An event of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Stateful)]
enum Scheduled {
    PhaseEnded(JobId),
    Lost(JobId, DropReason),
    Travelled(EdgeId),
}

/// Until it is loaded.
impl Default for Scheduled {
    fn default() -> Self {
        Self::Travelled(THE_SERVER)
    }
}

/// A timer of a protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Stateful)]
pub(in crate::run) enum Timer {
    /// The round has to close; of an edge server, where there are any.
    Boundary(EdgeId),
    /// The answers to a probe are there.
    Probe(EdgeId),
    /// A device comes back; of an edge server, where there are any.
    Wake(EdgeId),
    /// The server stops waiting for a job.
    Patience(JobId),
    /// The cloud stops waiting.
    #[default]
    Cloud,
}

/// An event, as a protocol sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::run) enum Event {
    /// A phase ended and the next one began.
    Progress,
    /// An update arrived.
    Delivered(JobId),
    /// A client was lost, which no server can see.
    Lost(JobId),
    /// A model has travelled between the cloud and this edge server.
    Travelled(EdgeId),
    /// A timer rang.
    Rang(Timer),
}

/// All jobs under way, the clock, and the records of events.
pub(in crate::run) struct Engine<'w> {
    pub world: &'w World,
    pub sink: Box<dyn Sink + 'w>,
    pub digests: Digests,
    pub accounts: Accounts,
    pub jobs: Jobs,
    pub audit: Audit,
    /// Bytes of the numbers that each update brings beside itself, by server.
    pub brings: Vec<u64>,
    /// When the run ends early.
    pub halt: Halt,
    kernel: Kernel<Scheduled, Timer>,
    busy: Busy,
    scopes: Scopes<'w>,
    cursors: Cursors<'w>,
    /// The levels of batteries, where clients have any.
    levels: Option<Levels<'w>>,
}

impl<'w> Engine<'w> {
    pub fn new(world: &'w World, sink: Box<dyn Sink + 'w>) -> Self {
        let clients = world.population.len();
        Self {
            world,
            sink,
            digests: Digests::default(),
            accounts: Accounts::default(),
            jobs: Jobs::default(),
            audit: Audit::new(clients),
            brings: vec![0; world.servers()],
            halt: Halt::default(),
            kernel: Kernel::with_ties(world.protocol.ties),
            busy: Busy::nobody(clients),
            scopes: Scopes::new(world),
            cursors: world.population.availability().cursors(&world.streams),
            levels: world.population.batteries().levels(),
        }
    }

    /// The course of the run. Draws follow from streams, and candidates from the rest.
    pub fn exchange(&mut self, state: &mut State<'_>, models: &mut SharedModels) {
        let Self {
            world,
            sink: _,
            digests,
            accounts,
            jobs,
            audit,
            brings: _,
            halt: _,
            kernel,
            busy,
            scopes: _,
            cursors: _,
            levels,
        } = self;
        state.field(digests);
        state.field(accounts);
        let drawn = |Names { client, number, terms: Terms { epochs, .. }, selected, .. }: Names| {
            let is_there = client.index() < world.population.len();
            is_there.then(|| job_of(world, Purpose::Latency, (client, number), (epochs, selected)).ok()).flatten()
        };
        jobs.exchange(state, models, drawn);
        state.field(audit);
        state.field(kernel);
        state.field(busy);
        levels.iter_mut().for_each(|levels| state.field(levels));
    }

    pub const fn now(&self) -> VirtualTime {
        self.kernel.now()
    }

    /// The clients of a server that can be chosen now; see [`THE_SERVER`].
    pub fn candidates(&self, server: EdgeId) -> Candidates<'_> {
        self.scopes.candidates(server, &self.busy, (&self.cursors, self.levels.as_ref()), self.now())
    }

    /// Whether any client of a server can be chosen now.
    pub fn has_candidates(&self, server: EdgeId) -> bool {
        let candidates = self.candidates(server);
        if self.cursors.is_always() && self.levels.is_none() {
            // Every client without a job is available: no device has to be asked.
            return candidates.at_most() > 0;
        }
        candidates.at_most() > 0 && (0..candidates.scope().len()).any(|index| candidates.at(index).is_some())
    }

    /// The next time when a server's device without a job is available; `None` if there is no such time.
    pub fn next_candidate(&self, server: EdgeId) -> Option<VirtualTime> {
        let idle = self.scopes.members(server).iter().filter(|&&client| !self.busy.contains(client));
        idle.filter_map(|&client| self.next_available(client)).min()
    }

    /// The next time when the device of a client without a job is there, and its level allows a job.
    fn next_available(&self, client: ClientId) -> Option<VirtualTime> {
        let mut time = self.cursors.next_available(client, self.now())?;
        let Some(levels) = &self.levels else { return Some(time) };
        while time < LATEST {
            let ready = levels.next_ready(client, time)?;
            let there = self.cursors.next_available(client, ready)?;
            if there == time {
                return Some(time);
            }
            time = there;
        }
        None
    }

    /// The server that a client belongs to.
    pub fn server_of(&self, client: ClientId) -> EdgeId {
        self.scopes.server_of(client)
    }

    /// Hands a record to the digests, the checks and the sink.
    pub fn note(&mut self, record: &Record<'_>) -> Result<(), RunError> {
        self.audit.see(record)?;
        self.digests.add(record);
        self.sink.record(record).map_err(RunError::from)
    }

    /// The random part of a job that moves the whole model both ways.
    pub fn draw(&self, purpose: Purpose, client: ClientId, number: JobNumber) -> Result<JobDraw, LatencyError> {
        self.world.population.draw(&self.world.streams, purpose, client, number, [1.0; 2])
    }

    /// The random part of a job of the usual work whose update is of no sum, and the bytes that it moves down and up.
    pub fn job(
        &self,
        purpose: Purpose,
        client: ClientId,
        number: JobNumber,
    ) -> Result<(JobDraw, [u64; 2]), LatencyError> {
        job_of(self.world, purpose, (client, number), (None, 0))
    }

    /// A job that has not begun.
    pub fn prepare(&mut self, names: Names) -> Result<JobId, RunError> {
        let Names { client, number, terms: Terms { epochs, .. }, selected, .. } = names;
        let (draw, transfer) = job_of(self.world, Purpose::Latency, (client, number), (epochs, selected))?;
        let mut job = Job::new(names, transfer, draw, self.now());
        job.brings = self.brings[self.server_of(names.client).index()];
        Ok(self.jobs.add(job))
    }

    /// Sends the client its model. `bound` is the most jobs that may be under way.
    pub fn begin(&mut self, id: JobId, sent: Option<Sent>, bound: usize) -> Result<(), RunError> {
        let now = self.now();
        let job = &mut self.jobs[id];
        (job.sent, job.dispatched) = (sent, now);
        self.busy.insert(job.client);
        self.scopes.job_changed(job.client);
        self.accounts.dispatched += 1;
        let (client, number) = (job.client, job.number);
        let is_drawn = self.world.population.recording().is_some_and(|log| !log.has(client, number));
        self.accounts.drawn += u64::from(is_drawn);
        self.audit.under_way(self.jobs.live(), bound)?;
        self.begin_phase(id, Phase::Download);
        Ok(())
    }

    /// The next event, if anything is under way.
    pub fn next(&mut self) -> Result<Option<Event>, RunError> {
        if self.halt.is_due() {
            return Err(RunError::Halted);
        }
        let before = self.now();
        let Some(occurrence) = self.kernel.next() else { return Ok(None) };
        let now = self.now();
        if now > LATEST {
            return Err(RunError::TooLate { time: now });
        }
        if now > before && !(self.cursors.is_always() && self.levels.is_none()) {
            self.scopes.clock_moved();
        }
        let event = match occurrence {
            Occurrence::Timer(timer) => Event::Rang(timer),
            Occurrence::Event(Scheduled::Travelled(edge)) => Event::Travelled(edge),
            Occurrence::Event(Scheduled::PhaseEnded(id)) => {
                self.jobs[id].pending = None;
                self.leave_phase(id, true)?;
                let Job { client, round, phase, .. } = self.jobs[id];
                self.note(&Record::PhaseEnded { client, round, phase, time: now })?;
                match phase.next() {
                    Some(next) => {
                        self.begin_phase(id, next);
                        Event::Progress
                    }
                    None => {
                        self.jobs[id].arrived_at = Some(now);
                        Event::Delivered(id)
                    }
                }
            }
            Occurrence::Event(Scheduled::Lost(id, reason)) => {
                self.jobs[id].pending = None;
                self.leave_phase(id, false)?;
                let job = &mut self.jobs[id];
                let (client, round, phase) = (job.client, job.round, job.phase);
                job.lost = Some((phase, reason));
                self.accounts.waste(job.cost());
                self.note(&Record::Lost { client, round, phase, reason, time: now })?;
                Event::Lost(id)
            }
        };
        Ok(Some(event))
    }

    /// Whether something is pending at this very instant.
    pub fn has_more_now(&mut self) -> bool {
        self.kernel.peek() == Some(self.now())
    }

    /// The server no longer waits for a job that is under way: the client stops.
    pub fn call_off(&mut self, id: JobId) -> Result<(), RunError> {
        let handle = self.jobs[id].pending.take().expect("a job under way has an event pending");
        let was_pending = self.kernel.cancel(handle);
        assert!(was_pending, "an event that has not fired can be withdrawn");
        self.leave_phase(id, false)?;
        self.accounts.waste(self.jobs[id].cost());
        Ok(())
    }

    /// An update that arrived is not used.
    pub fn waste(&mut self, id: JobId) {
        self.accounts.waste(self.jobs[id].cost());
    }

    /// Records how a job ended, as far as its server is concerned.
    pub fn conclude(&mut self, id: JobId, outcome: Outcome) -> Result<(), RunError> {
        self.audit.concluded(&self.jobs[id])?;
        self.jobs[id].is_concluded = true;
        let Job { client, round, .. } = self.jobs[id];
        self.note(&Record::JobEnded { client, round, outcome, time: self.now() })
    }

    /// The client is free for another job.
    pub fn release(&mut self, client: ClientId) {
        self.busy.remove(client);
        self.scopes.job_changed(client);
    }

    /// Forgets a job that is over.
    pub fn settle(&mut self, id: JobId) -> Result<(), RunError> {
        self.audit.settled(&self.jobs[id])?;
        self.jobs.remove(id);
        Ok(())
    }

    pub fn set_timer(&mut self, timer: Timer, time: VirtualTime) {
        self.kernel.set_timer(timer, time, CLASS_TIMER);
    }

    pub fn clear_timer(&mut self, timer: Timer) {
        self.kernel.clear_timer(&timer);
    }

    /// A model sets out between the cloud and an edge server.
    pub fn travel(&mut self, edge: EdgeId, span: Span) -> Handle {
        self.kernel.schedule(self.now() + span, CLASS_PHASE, Scheduled::Travelled(edge))
    }

    /// A model that has not arrived never will.
    pub fn stop_travel(&mut self, handle: Handle) {
        let was_pending = self.kernel.cancel(handle);
        assert!(was_pending, "an event that has not fired can be withdrawn");
    }

    /// Checks that so many jobs, and no others, keep their clients busy.
    pub fn check_jobs(&self, expected: usize) -> Result<(), RunError> {
        self.audit.busy(self.busy.count(), self.jobs.live(), expected)
    }

    /// Checks that nothing is pending but one event for each of so many jobs.
    pub fn check_pending(&self, jobs: usize) -> Result<(), RunError> {
        self.check_pending_of(jobs, 0)
    }

    /// As [`Engine::check_pending`], where so many other jobs have arrived and are not settled.
    pub fn check_pending_of(&self, jobs: usize, arrived: usize) -> Result<(), RunError> {
        self.audit.pending(self.kernel.pending(), jobs)?;
        self.audit.busy(self.busy.count(), self.jobs.live() - arrived, jobs)
    }

    /// Time at work in a compute phase under way.
    fn computing(&self, job: &Job) -> Span {
        if job.phase != Phase::Compute || job.pending.is_none() {
            return Span::ZERO;
        }
        let now = self.now();
        let away = match self.world.population.interruption(job.client) {
            Interruption::Pause => self.cursors.time_away(job.client, job.phase_began, now),
            Interruption::Lose | Interruption::RunOn => Span::ZERO,
        };
        Span((now - job.phase_began).0 - away.0)
    }

    /// The cost of each client's jobs, those under way included; energy apart.
    pub fn by_client(&self) -> Vec<Cost> {
        let mut all = self.audit.by_client();
        for job in self.jobs.iter() {
            let cost = &mut all[job.client.index()];
            *cost += job.cost();
            cost.compute += self.computing(job);
        }
        all
    }

    /// Ends the run: the cost of jobs under way is wasted.
    pub fn finish(mut self) -> Result<Accounts, RunError> {
        let (mut computing, mut wasted) = (TotalTime::ZERO, Cost::default());
        for job in self.jobs.iter().filter(|job| job.pending.is_some()) {
            computing += self.computing(job);
            wasted += job.cost();
            wasted.compute += self.computing(job);
            wasted.energy += self.drawing(job);
        }
        self.audit.finished(&self.accounts, self.jobs.iter())?;
        self.accounts.compute += computing;
        self.accounts.waste(wasted);
        self.accounts.check()?;
        // What jobs under way drew is among the wasted by now.
        self.accounts.energy = self.energy().map(|energy| EnergyUse { wasted: self.accounts.wasted_energy, ..energy });
        if let (Some(levels), Some(energy)) = (&self.levels, &self.accounts.energy) {
            let of_job = |job: &Job| match job.pending {
                Some(_) => job.energy + self.drawing(job),
                None => job.energy,
            };
            let of_jobs = self.jobs.iter().map(of_job).fold(self.audit.energy(), Energy::add);
            self.audit.stored(levels.stored(self.now(), self.modes()), &energy.energies, of_jobs)?;
        }
        Ok(self.accounts)
    }
}

/// The random part of a job of so many epochs, or of the usual work, and the bytes that it moves down and up, if its
/// update is one of so many that are summed; 0 if it is of none.
fn job_of(
    world: &World,
    purpose: Purpose,
    (client, number): (ClientId, JobNumber),
    (epochs, selected): (Option<u32>, u32),
) -> Result<(JobDraw, [u64; 2]), LatencyError> {
    let World { population, streams, training, .. } = world;
    let selected = selected as usize;
    let transfer = world.transfer(client, number, (epochs, selected));
    let shares = match world.one_price() {
        Some(_) if !training.algorithm.sends_more() => [1.0; 2],
        _ => transfer.map(|bytes| bytes as f64 / training.payload_bytes.max(1) as f64),
    };
    let is_trained = purpose == Purpose::Latency;
    let beside = if is_trained { world.beside_job(client, epochs) } else { 0.0 };
    let slowness = world.adversaries.as_ref().map_or(1.0, |hostile| hostile.slowness(client));
    let after = if is_trained { world.seconds_after(selected) } else { 0.0 };
    let load = Load { work: training.share_of(epochs), beside, after, slowness };
    Ok((population.draw_work(streams, purpose, (client, number), shares, load)?, transfer))
}
