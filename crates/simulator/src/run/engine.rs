//! Jobs on the kernel: each goes through download, compute and upload, waits while its device is away, and is delivered or
//! lost. What jobs are begun, and when the server stops waiting for them, is the protocol's business.

use super::accounts::Cost;
use super::audit::Audit;
use super::jobs::{Job, JobId, Jobs};
use super::{Accounts, RunError};
use crate::policy::{Busy, Candidates};
use crate::population::{Cursors, Interruption, JobDraw, LatencyError};
use crate::recorder::{Digests, Sink};
use crate::world::World;
use fedgenie_core::id::{ClientId, Round};
use fedgenie_core::kernel::{Fired, Handle, Kernel};
use fedgenie_core::record::{DropReason, Outcome, Phase, Record};
use fedgenie_core::rng::Purpose;
use fedgenie_core::time::{Span, VirtualTime};
use std::cell::OnceCell;
use std::sync::Arc;

/// Phase completions and arrivals of models, before everything else of the same instant.
const CLASS_PHASE: u8 = 0;
/// Losses of clients.
const CLASS_LOSS: u8 = 1;
/// Deadlines, timeouts and the end of probes.
const CLASS_TIMER: u8 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    PhaseEnded(JobId),
    Lost(JobId, DropReason),
    Travelled(u32),
}

/// What a protocol waits for beside its jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Timer {
    /// The round has to close; of an edge server, where there are any.
    Boundary(u32),
    /// The answers to a probe are there.
    ProbeEnd,
    /// A device comes back; of an edge server, where there are any.
    Wake(u32),
    /// The server stops waiting for a job.
    Patience(JobId),
    /// The cloud stops waiting.
    Cloud,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Happening {
    /// A phase ended and the next one began.
    Progress,
    /// An update is there.
    Delivered(JobId),
    /// A client was lost, which no server can see.
    Lost(JobId),
    /// A model has travelled between the cloud and this edge server.
    Travelled(u32),
    /// A timer rang.
    Rang(Timer),
}

/// All jobs under way, the clock, and the records of what happens.
pub(super) struct Engine<'w, S> {
    pub world: &'w World,
    pub sink: S,
    pub digests: Digests,
    pub accounts: Accounts,
    pub jobs: Jobs,
    pub audit: Audit,
    kernel: Kernel<Event, Timer>,
    busy: Busy,
    everyone: Vec<ClientId>,
    cursors: Cursors<'w>,
    /// The candidates of this instant, once a policy has asked for their list.
    list: OnceCell<Vec<ClientId>>,
}

impl<'w, S: Sink> Engine<'w, S> {
    pub fn new(world: &'w World, sink: S) -> Self {
        let clients = world.population.len();
        Self {
            world,
            sink,
            digests: Digests::default(),
            accounts: Accounts::default(),
            jobs: Jobs::default(),
            audit: Audit::new(clients),
            kernel: Kernel::with_ties(world.ties),
            busy: Busy::nobody(clients),
            everyone: (0..clients).map(ClientId::from_index).collect(),
            cursors: world.population.availability().cursors(&world.streams),
            list: OnceCell::new(),
        }
    }

    pub const fn now(&self) -> VirtualTime {
        self.kernel.now()
    }

    /// Who can be chosen now, of everyone or of an edge server's clients. [`Engine::forget_candidates`] comes first wherever
    /// something may have changed.
    pub fn candidates<'a>(&'a self, members: Option<&'a [ClientId]>) -> Candidates<'a> {
        let scope = members.unwrap_or(&self.everyone);
        Candidates::new(scope, &self.busy, &self.cursors, self.now(), &self.list)
    }

    /// The list of candidates is made anew when it is asked for again.
    pub fn forget_candidates(&mut self) {
        self.list.take();
    }

    /// Whether anybody can be chosen now.
    pub fn has_candidates(&self, members: Option<&[ClientId]>) -> bool {
        let candidates = self.candidates(members);
        if self.cursors.is_always() {
            // Whoever has no job is there: nobody has to be asked.
            return candidates.at_most() > 0;
        }
        candidates.at_most() > 0 && (0..candidates.scope().len()).any(|place| candidates.at(place).is_some())
    }

    /// When the first device comes back that has no job; none if none ever will.
    pub fn next_candidate(&self, members: Option<&[ClientId]>) -> Option<VirtualTime> {
        let scope = members.unwrap_or(&self.everyone);
        let idle = scope.iter().filter(|&&client| !self.busy.contains(client));
        idle.filter_map(|&client| self.cursors.next_available(client, self.now())).min()
    }

    /// Hands a record to the digests, the checks and the sink.
    pub fn note(&mut self, record: &Record<'_>) -> Result<(), RunError> {
        self.audit.see(record)?;
        self.digests.add(record);
        self.sink.record(record).map_err(RunError::from)
    }

    pub fn draw(&self, purpose: Purpose, client: ClientId, ticket: Round) -> Result<JobDraw, LatencyError> {
        self.world.population.draw(&self.world.streams, purpose, client, ticket)
    }

    /// A job that has not begun.
    pub fn prepare(&mut self, client: ClientId, round: Round, ticket: Round) -> Result<JobId, RunError> {
        let draw = self.draw(Purpose::Latency, client, ticket)?;
        Ok(self.jobs.add(Job::new(client, round, ticket, draw, self.now())))
    }

    /// Sends the client its model. `bound` is the most jobs that may be under way.
    pub fn begin(&mut self, id: JobId, start: Option<Arc<[f32]>>, bound: usize) -> Result<(), RunError> {
        let now = self.now();
        let job = &mut self.jobs[id];
        (job.start, job.dispatched) = (start, now);
        self.busy.insert(job.client);
        self.accounts.dispatched += 1;
        self.audit.under_way(self.jobs.live(), bound)?;
        self.begin_phase(id, Phase::Download);
        Ok(())
    }

    fn begin_phase(&mut self, id: JobId, phase: Phase) {
        let now = self.now();
        let population = &self.world.population;
        let job = &mut self.jobs[id];
        (job.phase, job.phase_began) = (phase, now);
        let interruption = population.interruption(job.client);
        let end = population.finish(&self.cursors, job.client, phase, &job.draw, now, interruption);
        let until_loss = population.need_until_loss(&job.draw, job.client, phase);
        let struck = until_loss.and_then(|need| population.reach(&self.cursors, job.client, need, now, interruption));
        let gone = match interruption {
            Interruption::Lose => Some(self.cursors.stretch(job.client, now).until),
            Interruption::Pause | Interruption::RunOn => None,
        };
        let losses = [(struck, DropReason::Hazard), (gone, DropReason::Away)];
        let lost = losses.into_iter().filter_map(|(time, reason)| Some((time?, reason))).min_by_key(|&(time, _)| time);
        let (time, class, event) = match (end, lost) {
            (Some(end), Some((time, reason))) if time < end => (time, CLASS_LOSS, Event::Lost(id, reason)),
            (Some(end), _) => (end, CLASS_PHASE, Event::PhaseEnded(id)),
            (None, Some((time, reason))) if time < VirtualTime::MAX => (time, CLASS_LOSS, Event::Lost(id, reason)),
            (None, _) => (now, CLASS_LOSS, Event::Lost(id, DropReason::Stalled)),
        };
        job.pending = Some(self.kernel.schedule(time, class, event));
    }

    /// The next thing that happens, if anything is under way.
    pub fn next(&mut self) -> Result<Option<Happening>, RunError> {
        let Some(fired) = self.kernel.next() else { return Ok(None) };
        let now = self.now();
        let happening = match fired {
            Fired::Timer(timer) => Happening::Rang(timer),
            Fired::Event(Event::Travelled(edge)) => Happening::Travelled(edge),
            Fired::Event(Event::PhaseEnded(id)) => {
                self.jobs[id].pending = None;
                self.leave_phase(id, true)?;
                let Job { client, round, phase, .. } = self.jobs[id];
                self.note(&Record::PhaseEnded { client, round, phase, time: now })?;
                match phase.next() {
                    Some(next) => {
                        self.begin_phase(id, next);
                        Happening::Progress
                    }
                    None => {
                        self.jobs[id].arrived_at = Some(now);
                        Happening::Delivered(id)
                    }
                }
            }
            Fired::Event(Event::Lost(id, reason)) => {
                self.jobs[id].pending = None;
                self.leave_phase(id, false)?;
                let job = &mut self.jobs[id];
                let (client, round, phase) = (job.client, job.round, job.phase);
                job.lost = Some((phase, reason));
                self.accounts.waste(job.cost());
                self.note(&Record::Lost { client, round, phase, reason, time: now })?;
                Happening::Lost(id)
            }
        };
        Ok(Some(happening))
    }

    /// Whether something is pending at this very instant.
    pub fn has_more_now(&mut self) -> bool {
        self.kernel.peek() == Some(self.now())
    }

    /// Accounts for a phase that ends now, complete or not.
    fn leave_phase(&mut self, id: JobId, is_complete: bool) -> Result<(), RunError> {
        let now = self.now();
        let population = &self.world.population;
        let job = &mut self.jobs[id];
        let Job { client, round, phase, phase_began, .. } = *job;
        let pauses = !self.cursors.is_always() && population.interruption(client) == Interruption::Pause;
        let away = if pauses { self.cursors.time_away(client, phase_began, now) } else { Span::ZERO };
        let active = Span((now - phase_began).0 - away.0);
        let moved = match (phase, is_complete) {
            (Phase::Compute, _) => 0,
            (_, true) => self.world.payload_bytes,
            (_, false) => {
                population.moved(&self.cursors, client, phase, &job.draw, phase_began, now, self.world.payload_bytes)
            }
        };
        job.active[phase.index()] = active;
        job.paused += away;
        match phase {
            Phase::Download => job.bytes.0 += moved,
            Phase::Compute => {}
            Phase::Upload => job.bytes.1 += moved,
        }
        self.accounts.spend(phase, active, moved);
        self.audit.phase_left(job, is_complete, population.is_traced(client, phase))?;
        if away > Span::ZERO {
            let mut from = phase_began;
            while from < now {
                let stretch = self.cursors.stretch(client, from);
                let until = stretch.until.min(now);
                if !stretch.available {
                    self.note(&Record::Paused { client, round, phase, from, until })?;
                }
                from = until;
            }
        }
        Ok(())
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
    }

    /// Forgets a job that is over.
    pub fn settle(&mut self, id: JobId) -> Result<(), RunError> {
        let job = self.jobs.remove(id);
        self.audit.settled(&job, self.world.payload_bytes)?;
        Ok(())
    }

    pub fn set_timer(&mut self, timer: Timer, time: VirtualTime) {
        self.kernel.set_timer(timer, time, CLASS_TIMER);
    }

    pub fn clear_timer(&mut self, timer: Timer) {
        self.kernel.clear_timer(&timer);
    }

    /// A model sets out between the cloud and an edge server.
    pub fn travel(&mut self, edge: u32, span: Span) -> Handle {
        self.kernel.schedule(self.now() + span, CLASS_PHASE, Event::Travelled(edge))
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
        self.audit.pending(self.kernel.pending(), jobs)?;
        self.check_jobs(jobs)
    }

    /// Ends the run: jobs under way have come to nothing.
    pub fn finish(mut self) -> Result<(Accounts, S), RunError> {
        let now = self.now();
        let under_way: Vec<&Job> = self.jobs.iter().filter(|job| job.pending.is_some()).collect();
        let (mut computing, mut wasted) = (Span::ZERO, Cost::default());
        for job in under_way {
            let mut cost = job.cost();
            if job.phase == Phase::Compute {
                let away = match self.world.population.interruption(job.client) {
                    Interruption::Pause => self.cursors.time_away(job.client, job.phase_began, now),
                    Interruption::Lose | Interruption::RunOn => Span::ZERO,
                };
                cost.compute = Span((now - job.phase_began).0 - away.0);
                computing += cost.compute;
            }
            wasted += cost;
        }
        self.audit.finished(&self.accounts, self.jobs.iter())?;
        self.accounts.compute += computing;
        self.accounts.waste(wasted);
        Ok((self.accounts, self.sink))
    }
}
