//! The phases of a job: their ends and their costs.

use super::energy::mode_of;
use super::{CLASS_LOSS, CLASS_PHASE, Engine, Scheduled};
use crate::population::{Interruption, Mode};
use crate::run::error::RunError;
use crate::run::timeline::jobs::{Job, JobId};
use fedgenie_core::record::{DropReason, Phase, Record};
use fedgenie_core::time::{Span, VirtualTime};

impl Engine<'_> {
    /// Begins a phase of a job and schedules its end: complete, or with the loss of the client.
    pub(super) fn begin_phase(&mut self, id: JobId, phase: Phase) {
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
        // A job that stands still has an end only where something else ends it.
        let empty = self.levels.as_ref().and_then(|levels| {
            levels.bring(job.client, now, Mode::Idle);
            let until = [end, struck, gone].into_iter().flatten().min()?;
            levels.first_empty(job.client, until, mode_of(population, &self.cursors, job))
        });
        let losses = [(struck, DropReason::Hazard), (gone, DropReason::Away), (empty, DropReason::Battery)];
        let lost = losses.into_iter().filter_map(|(time, reason)| Some((time?, reason))).min_by_key(|&(time, _)| time);
        // A phase that takes no time can lose its client as well, where losses have a probability.
        let is_certain = job.draw.loss == Some((phase, Span::ZERO)) && job.draw.phases[phase.index()] == Span::ZERO;
        let (time, class, event) = match (end, lost) {
            (Some(end), Some((time, reason))) if time < end || is_certain => {
                (time, CLASS_LOSS, Scheduled::Lost(id, reason))
            }
            (Some(end), _) => (end, CLASS_PHASE, Scheduled::PhaseEnded(id)),
            (None, Some((time, reason))) if time < VirtualTime::MAX => (time, CLASS_LOSS, Scheduled::Lost(id, reason)),
            (None, _) => (now, CLASS_LOSS, Scheduled::Lost(id, DropReason::Stalled)),
        };
        job.pending = Some(self.kernel.schedule(time, class, event));
    }

    /// Accounts for a phase that ends now, complete or not.
    pub(super) fn leave_phase(&mut self, id: JobId, is_complete: bool) -> Result<(), RunError> {
        let now = self.now();
        let population = &self.world.population;
        let job = &mut self.jobs[id];
        let Job { client, round, phase, phase_began, .. } = *job;
        let pauses = !self.cursors.is_always() && population.interruption(client) == Interruption::Pause;
        if let Some(levels) = &self.levels {
            let mode = mode_of(population, &self.cursors, job);
            job.energy += levels.bring(client, now, mode);
        }
        let payload = match phase {
            Phase::Download => job.transfer[0],
            Phase::Compute => 0,
            Phase::Upload => job.transfer[1],
        };
        let away = if pauses { self.cursors.time_away(client, phase_began, now) } else { Span::ZERO };
        let active = Span((now - phase_began).0 - away.0);
        let moved = match (phase, is_complete) {
            (Phase::Upload, true) => payload.saturating_add(job.brings),
            (_, true) | (Phase::Compute, _) => payload,
            (_, false) => population.moved(&self.cursors, client, phase, &job.draw, phase_began, now, payload),
        };
        job.active[phase.index()] = active;
        job.elapsed[phase.index()] = now - phase_began;
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
}
