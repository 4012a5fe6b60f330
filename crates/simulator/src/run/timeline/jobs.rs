//! Jobs under way: a slab, so that an event can name its job by a small number.

use super::accounts::Cost;
use crate::policy::{JobReport, Selection, Waited};
use crate::population::{Energy, JobDraw};
use crate::recorder::DroppedJob;
use fedgenie_core::id::{ClientId, JobNumber, Round, Turn};
use fedgenie_core::kernel::Handle;
use fedgenie_core::record::{DropReason, Outcome, Phase, PhaseSpans};
use fedgenie_core::state::{State, Stateful};
use fedgenie_core::time::{Span, VirtualTime};
use fedgenie_learning::learned::Sent;
use fedgenie_learning::learned::SharedModels;
use std::ops::{Index, IndexMut};

/// The slot of a job in [`Jobs`]; reused once the job is removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Stateful)]
pub(in crate::run) struct JobId(u32);

/// A policy's decisions about one job; `None` for those left to the scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Stateful)]
pub(in crate::run) struct Terms {
    /// The coefficient of the client's change.
    pub weight: Option<f64>,
    /// Epochs of its training.
    pub epochs: Option<u32>,
}

impl Terms {
    /// The terms of the client at a place of a selection.
    pub fn of(selection: &Selection, place: usize) -> Self {
        Self { weight: selection.weights.get(place).copied(), epochs: selection.work.get(place).copied() }
    }
}

/// A job's identity, and the terms that its draws depend on.
#[derive(Clone, Copy, Debug, Default, Stateful)]
pub(in crate::run) struct Names {
    pub client: ClientId,
    /// The selection of the client's policy that it belongs to.
    pub turn: Turn,
    /// The server's round; under `hierarchical`, the cloud's.
    pub round: Round,
    /// With the client, the key of its draws.
    pub number: JobNumber,
    pub terms: Terms,
    /// How many clients were selected together with it, itself included.
    pub selected: u32,
}

/// One client's job.
#[derive(Clone, Debug)]
pub(in crate::run) struct Job {
    pub client: ClientId,
    /// The selection of the client's policy that it belongs to.
    pub turn: Turn,
    /// The server's round at dispatch; under `hierarchical`, the cloud's.
    pub round: Round,
    /// With the client, the key of its draws.
    pub number: JobNumber,
    pub terms: Terms,
    /// How many clients were selected together with it, itself included.
    pub selected: u32,
    /// Bytes that it moves down and up.
    pub transfer: [u64; 2],
    /// Bytes of the numbers that its update brings beside itself, which travel in no time.
    pub brings: u64,
    pub draw: JobDraw,
    pub dispatched: VirtualTime,
    pub phase: Phase,
    pub phase_began: VirtualTime,
    /// The event that ends the current phase; `None` if the job is over.
    pub pending: Option<Handle>,
    /// The client's start of training, where anything is learned.
    pub sent: Option<Sent>,
    pub arrived_at: Option<VirtualTime>,
    /// Where and why the client was lost.
    pub lost: Option<(Phase, DropReason)>,
    /// The round closed without it, and the job goes on.
    pub is_late: bool,
    /// Its outcome is recorded.
    pub is_concluded: bool,
    /// Time at work in each phase so far, without that under way.
    pub active: PhaseSpans,
    /// Time in each phase so far, pauses included, without that under way.
    pub elapsed: PhaseSpans,
    /// Time in which the device was away so far, without the phase under way.
    pub paused: Span,
    /// Bytes from and to the server so far.
    pub bytes: (u64, u64),
    /// Drawn from the battery so far, without the phase under way.
    pub energy: Energy,
}

impl Job {
    pub const fn new(names: Names, transfer: [u64; 2], draw: JobDraw, now: VirtualTime) -> Self {
        let Names { client, turn, round, number, terms, selected } = names;
        Self {
            client,
            turn,
            round,
            number,
            terms,
            selected,
            transfer,
            brings: 0,
            draw,
            dispatched: now,
            phase: Phase::Download,
            phase_began: now,
            pending: None,
            sent: None,
            arrived_at: None,
            lost: None,
            is_late: false,
            is_concluded: false,
            active: [Span::ZERO; 3],
            elapsed: [Span::ZERO; 3],
            paused: Span::ZERO,
            bytes: (0, 0),
            energy: Energy::ZERO,
        }
    }

    /// The course of the job. Its identity and its draws are known.
    fn exchange(&mut self, state: &mut State<'_>, models: &mut SharedModels) {
        let Self {
            client: _,
            turn: _,
            round: _,
            number: _,
            terms: _,
            selected: _,
            transfer: _,
            brings,
            draw: _,
            dispatched,
            phase,
            phase_began,
            pending,
            sent,
            arrived_at,
            lost,
            is_late,
            is_concluded,
            active,
            elapsed,
            paused,
            bytes,
            energy,
        } = self;
        state.field(brings);
        state.field(dispatched);
        state.field(phase);
        state.field(phase_began);
        state.field(pending);
        models.exchange_sent(sent, state);
        state.field(arrived_at);
        state.field(lost);
        state.field(is_late);
        state.field(is_concluded);
        state.field(active);
        state.field(elapsed);
        state.field(paused);
        state.field(bytes);
        state.field(energy);
    }

    /// Time in each phase until `now`, pauses included.
    pub fn elapsed_by(&self, now: VirtualTime) -> PhaseSpans {
        let mut elapsed = self.elapsed;
        if self.pending.is_some() {
            elapsed[self.phase.index()] += now - self.phase_began;
        }
        elapsed
    }

    /// How the job stands when the server stops waiting for it.
    pub const fn outcome(&self) -> Outcome {
        match self.lost {
            _ if self.arrived_at.is_some() => Outcome::Arrived,
            Some((phase, reason)) => Outcome::Dropped { phase, reason },
            None => Outcome::Late,
        }
    }

    /// The job's report to a policy in the server's round `now`. Phases end with the time waited: a server does not
    /// know the fate of a lost client.
    pub fn report(&self, waited: Waited, now: Round, time: VirtualTime) -> JobReport {
        let Self { client, turn, round, .. } = *self;
        let mut left = waited.observed().0;
        let mut phases = self.elapsed_by(time);
        for phase in &mut phases {
            *phase = (*phase).min(left);
            left = Span(left.0 - phase.0);
        }
        JobReport { client, turn, round, staleness: now.since(round), outcome: self.outcome(), waited, phases }
    }

    /// The server's record of a lost client.
    pub fn dropped(&self) -> Option<DroppedJob> {
        let (phase, reason) = self.lost?;
        let (down_bytes, up_bytes) = self.bytes;
        Some(DroppedJob {
            client: self.client,
            phase,
            reason,
            spent_s: self.active.map(Span::seconds),
            down_bytes,
            up_bytes,
        })
    }

    /// Its cost so far, without a phase under way.
    pub fn cost(&self) -> Cost {
        let (down_bytes, up_bytes) = self.bytes;
        let (compute, energy) = (self.active[Phase::Compute.index()].into(), self.energy);
        Cost { compute, down_bytes, up_bytes, energy }
    }
}

/// All jobs that are not settled.
#[derive(Debug, Default)]
pub(in crate::run) struct Jobs {
    slots: Vec<Option<Job>>,
    free: Vec<u32>,
    /// How many of them have weights.
    weighed: usize,
}

impl Jobs {
    #[inline]
    pub fn add(&mut self, job: Job) -> JobId {
        self.weighed += usize::from(job.terms.weight.is_some());
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u32
        });
        self.slots[slot as usize] = Some(job);
        JobId(slot)
    }

    /// Forgets a job, where it stands: jobs are large, and moving one costs more than its last checks.
    pub fn remove(&mut self, id: JobId) {
        self.weighed -= usize::from(self[id].terms.weight.is_some());
        self.free.push(id.0);
        self.slots[id.0 as usize] = None;
    }

    /// All jobs. The draws of a job, and its bytes, follow from its identity.
    pub fn exchange(
        &mut self,
        state: &mut State<'_>,
        models: &mut SharedModels,
        drawn: impl Fn(Names) -> Option<(JobDraw, [u64; 2])>,
    ) {
        let Self { slots, free, weighed } = self;
        state.field(free);
        let count = state.length(slots.len());
        if state.is_loading() {
            slots.clear();
            slots.resize_with(count, || None);
        }
        for slot in &mut *slots {
            let mut names = slot.as_ref().map(|job| Names {
                client: job.client,
                turn: job.turn,
                round: job.round,
                number: job.number,
                terms: job.terms,
                selected: job.selected,
            });
            state.field(&mut names);
            let Some(names) = names else { continue };
            if state.is_loading() {
                *slot = drawn(names).map(|(draw, transfer)| Job::new(names, transfer, draw, VirtualTime::START));
                state.require(slot.is_some());
            }
            if let Some(job) = slot {
                job.exchange(state, models);
            }
        }
        *weighed = slots.iter().flatten().filter(|job| job.terms.weight.is_some()).count();
        let empty = slots.iter().filter(|slot| slot.is_none()).count();
        let is_empty = |&slot: &u32| slots.get(slot as usize).is_some_and(Option::is_none);
        state.require(free.len() == empty && free.iter().all(is_empty));
    }

    /// A job, if it is there.
    pub fn get(&self, id: JobId) -> Option<&Job> {
        self.slots.get(id.0 as usize)?.as_ref()
    }

    pub const fn live(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// A job that has a weight where new ones have none, or the other way round.
    pub fn unlike(&self, has_weights: bool) -> Option<&Job> {
        let unlike = if has_weights { self.live() - self.weighed } else { self.weighed };
        let differs = |job: &&Job| job.terms.weight.is_some() != has_weights;
        if unlike > 0 { self.iter().find(differs) } else { None }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Job> {
        self.slots.iter().flatten()
    }
}

impl Index<JobId> for Jobs {
    type Output = Job;
    fn index(&self, id: JobId) -> &Job {
        self.slots[id.0 as usize].as_ref().expect("an event names a job that is not settled")
    }
}

impl IndexMut<JobId> for Jobs {
    fn index_mut(&mut self, id: JobId) -> &mut Job {
        self.slots[id.0 as usize].as_mut().expect("an event names a job that is not settled")
    }
}
