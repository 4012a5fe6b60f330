//! The end of a round: outcomes, training and aggregation, feedback, records.

use super::jobs::JobId;
use super::learning::Divergence;
use super::{Run, RunError, note};
use crate::id::{ClientId, Round};
use crate::policy::{Feedback, JobReport, RoundReport};
use crate::record::{Outcome, Record};
use crate::recorder::{RoundSummary, Sink};
use crate::time::VirtualTime;

impl<S: Sink> Run<'_, S> {
    pub(super) fn close(&mut self, opened: VirtualTime) -> Result<(), RunError> {
        let now = self.kernel.now();
        let dispatched = self.current.first().map_or(now, |&id| self.jobs[id].dispatched);
        let timed_out = self.world.rule.cut.is_some_and(|cut| now - dispatched >= cut)
            && self.arrived.len() < self.world.rule.take.min(self.current.len());
        let (mut late, mut dropped) = (Vec::new(), Vec::new());
        for place in 0..self.current.len() {
            let id = self.current[place];
            let job = &self.jobs[id];
            if job.arrived_at.is_some() {
                continue;
            }
            let (client, round) = (job.client, job.round);
            let outcome = job.outcome();
            match outcome {
                Outcome::Late => late.push(client),
                _ => dropped.push((client, outcome)),
            }
            note(&mut self.digests, &mut self.sink, &Record::JobEnded { client, round, outcome, time: now })?;
            if outcome == Outcome::Late {
                self.leave_behind(id);
            }
        }
        let joined: Vec<(ClientId, Round)> =
            self.joining.iter().map(|&id| (self.jobs[id].client, self.jobs[id].round)).collect();
        self.learn(opened)?;
        self.report(opened, timed_out);

        let (down_bytes, up_bytes) = (self.accounts.down_bytes, self.accounts.up_bytes);
        let (round, reward, regret) = (self.round, self.reward, self.regret);
        let record = Record::Closed { round, time: now, reward, regret, down_bytes, up_bytes };
        note(&mut self.digests, &mut self.sink, &record)?;
        let is_recorded = self.round.0.is_multiple_of(self.settings.record_every);
        self.digests.seal(is_recorded && self.sink.wants_checksums(), &mut self.mark);
        let arrived: Vec<ClientId> = self.arrived.iter().map(|&id| self.jobs[id].client).collect();
        let summary = RoundSummary {
            round,
            opened,
            closed: now,
            selected: &self.selection,
            arrived: &arrived,
            late: &late,
            dropped: &dropped,
            joined: &joined,
            reward,
            regret,
            metrics: &self.metrics,
            down_bytes,
            up_bytes,
            group_selections: &self.group_selections,
        };
        self.sink.round(&summary, is_recorded, &self.mark)?;
        if is_recorded {
            self.group_selections.iter_mut().for_each(|(_, count)| *count = 0);
        }
        self.settle();
        Ok(())
    }

    /// A late job is called off, or goes on without the round.
    fn leave_behind(&mut self, id: JobId) {
        let now = self.kernel.now();
        let job = &mut self.jobs[id];
        if self.world.rule.carry.is_some() {
            job.is_late = true;
            let client = job.client;
            let idle = self.idle.get_or_insert_with(|| self.everyone.clone());
            if let Ok(place) = idle.binary_search(&client) {
                idle.remove(place);
            }
            return;
        }
        if let Some(handle) = job.pending.take() {
            let was_pending = self.kernel.cancel(handle);
            assert!(was_pending, "a job under way has an event pending");
        }
        let (phase, spent) = (job.phase, now - job.phase_began);
        let full = job.draw.phases[phase.index()];
        self.accounts.spend(phase, spent, full, self.world.payload_bytes);
        self.accounts.wasted_compute += job.compute_spent(now);
    }

    /// Trains what counts, aggregates, evaluates.
    fn learn(&mut self, opened: VirtualTime) -> Result<(), RunError> {
        self.metrics.clear();
        let Some(learning) = &mut self.learning else { return Ok(()) };
        let staleness = self.world.rule.carry.unwrap_or_default();
        let changed = learning.aggregate(
            &mut self.jobs,
            self.arrived.iter().chain(&self.joining).copied(),
            self.round,
            staleness,
            self.settings.parallel,
        );
        let changed = changed.map_err(|divergence| match divergence {
            Divergence::Client(client) => RunError::Diverged { client, round: self.round },
            Divergence::Server => RunError::ServerDiverged { round: self.round },
        })?;
        if changed {
            let model = learning.model();
            note(&mut self.digests, &mut self.sink, &Record::Model { round: self.round, parameters: &model })?;
        }
        let (plan, now) = (&self.settings.evaluate, self.kernel.now());
        if plan.is_due(self.round, opened, now) || plan.end.is_reached(self.round, now, &self.accounts) {
            self.evaluate()?;
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<(), RunError> {
        let Some(learning) = &self.learning else { return Ok(()) };
        self.metrics = learning.evaluate(self.settings.evaluate.clients, self.settings.parallel);
        for &(name, value) in &self.metrics {
            note(&mut self.digests, &mut self.sink, &Record::Metric { round: self.round, name, value })?;
        }
        Ok(())
    }

    /// Feedback: arrivals in their order, then the others in dispatch order, then the round.
    fn report(&mut self, opened: VirtualTime, timed_out: bool) {
        let cut = self.world.rule.cut;
        for &id in &self.arrived {
            let job = &self.jobs[id];
            let waited = job.arrived_at.map(|time| time - job.dispatched);
            let report =
                JobReport { client: job.client, round: job.round, outcome: Outcome::Arrived, waited, loss: job.loss };
            self.policy.observe(&Feedback::Job(report));
        }
        for &id in &self.current {
            let job = &self.jobs[id];
            if job.arrived_at.is_some() {
                continue;
            }
            let waited = if timed_out { cut } else { None };
            let report = JobReport { client: job.client, round: job.round, outcome: job.outcome(), waited, loss: None };
            self.policy.observe(&Feedback::Job(report));
        }
        let report = RoundReport {
            round: self.round,
            selected: &self.selection,
            duration: self.kernel.now() - opened,
            metrics: &self.metrics,
        };
        self.policy.observe(&Feedback::Round(report));
    }

    /// Forgets the jobs that are over and checks that nothing else is under way.
    fn settle(&mut self) {
        self.accounts.rounds += 1;
        self.accounts.arrived += self.arrived.len() as u64;
        self.accounts.dispatched += self.current.len() as u64;
        for &id in &self.current {
            if !self.jobs[id].is_late {
                self.jobs.remove(id);
            }
        }
        for id in self.joining.drain(..) {
            self.jobs.remove(id);
        }
        assert_eq!(self.kernel.pending(), self.jobs.live(), "every job under way has exactly one event pending");
        let busy = self.idle.as_ref().map_or(0, |idle| self.everyone.len() - idle.len());
        assert_eq!(self.jobs.live(), busy, "every job under way keeps its client busy");
    }
}
