//! Jobs under way: a slab, so that an event can name its job by a small number.

use crate::id::{ClientId, Round};
use crate::kernel::Handle;
use crate::population::JobDraw;
use crate::record::{DropReason, Outcome, Phase};
use crate::time::{Span, VirtualTime};
use std::ops::{Index, IndexMut};
use std::sync::Arc;

/// The place of a job in [`Jobs`]; reused once the job is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JobId(u32);

/// One client's job in one round.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub client: ClientId,
    /// The round of dispatch.
    pub round: Round,
    pub draw: JobDraw,
    pub dispatched: VirtualTime,
    pub phase: Phase,
    pub phase_began: VirtualTime,
    /// The event that ends the current phase.
    pub pending: Option<Handle>,
    /// The model the client was sent.
    pub start: Option<Arc<[f32]>>,
    pub arrived_at: Option<VirtualTime>,
    /// The client was lost before its round closed.
    pub is_lost: bool,
    /// The round closed without it, and the job goes on.
    pub is_late: bool,
    /// Mean loss of the first local epoch, once trained.
    pub loss: Option<f64>,
}

impl Job {
    pub const fn new(client: ClientId, round: Round, draw: JobDraw, now: VirtualTime) -> Self {
        Self {
            client,
            round,
            draw,
            dispatched: now,
            phase: Phase::Download,
            phase_began: now,
            pending: None,
            start: None,
            arrived_at: None,
            is_lost: false,
            is_late: false,
            loss: None,
        }
    }

    /// How the job stands when its round closes.
    pub const fn outcome(&self) -> Outcome {
        match self.draw.loss {
            _ if self.arrived_at.is_some() => Outcome::Arrived,
            Some((phase, _)) if self.is_lost => Outcome::Dropped { phase, reason: DropReason::Hazard },
            _ => Outcome::Late,
        }
    }

    /// Time spent computing until `now`, for a job under way.
    pub fn compute_spent(&self, now: VirtualTime) -> Span {
        match self.phase {
            Phase::Download => Span::ZERO,
            Phase::Compute => now - self.phase_began,
            Phase::Upload => self.draw.phases[Phase::Compute.index()],
        }
    }
}

/// All jobs that are not settled.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    slots: Vec<Option<Job>>,
    free: Vec<u32>,
}

impl Jobs {
    pub fn add(&mut self, job: Job) -> JobId {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u32
        });
        self.slots[slot as usize] = Some(job);
        JobId(slot)
    }

    pub fn remove(&mut self, id: JobId) {
        let was_there = self.slots[id.0 as usize].take().is_some();
        assert!(was_there, "a job is settled once");
        self.free.push(id.0);
    }

    pub const fn live(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Job> {
        self.slots.iter().flatten()
    }
}

impl Index<JobId> for Jobs {
    type Output = Job;
    fn index(&self, id: JobId) -> &Job {
        self.slots[id.0 as usize].as_ref().expect("an event names a job that is under way")
    }
}

impl IndexMut<JobId> for Jobs {
    fn index_mut(&mut self, id: JobId) -> &mut Job {
        self.slots[id.0 as usize].as_mut().expect("an event names a job that is under way")
    }
}
