//! Outcomes of jobs, added up over rounds.

use crate::recorder::{DroppedJob, RoundSummary};
use fedgenie_core::record::{DropReason, Phase};
use fedgenie_core::state::Stateful;
use serde::{Deserialize, Serialize};

/// Jobs lost in one phase for one reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Stateful)]
pub struct Lost {
    /// The phase in which the client was lost.
    pub phase: Phase,
    /// Why.
    pub reason: DropReason,
    /// How many.
    pub jobs: u64,
}

/// Jobs of closed rounds by outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Stateful)]
pub struct Outcomes {
    /// Arrived in their round.
    pub arrived: u64,
    /// Still under way when their round closed, or too stale when they arrived.
    pub late: u64,
    /// Late, and joined a later aggregation.
    #[serde(default)]
    pub joined: u64,
    /// Lost, by phase and reason.
    #[serde(default)]
    pub dropped: Vec<Lost>,
    /// Late, and lost afterwards.
    #[serde(default)]
    pub lost_late: Vec<Lost>,
    /// Rounds that left the model as it was.
    #[serde(default)]
    pub abandoned_rounds: u64,
    /// Rounds of edge servers.
    #[serde(default, skip_serializing_if = "is_none")]
    pub edge_rounds: u64,
    /// Those of them that left the edge server's model as it was.
    #[serde(default, skip_serializing_if = "is_none")]
    pub abandoned_edge_rounds: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_none(count: &u64) -> bool {
    *count == 0
}

impl Outcomes {
    pub(super) fn add(&mut self, round: &RoundSummary<'_>) {
        self.arrived += round.jobs.arrived.len() as u64;
        self.late += round.jobs.late.len() as u64;
        self.joined += round.jobs.joined.len() as u64;
        self.abandoned_rounds += u64::from(round.is_abandoned);
        self.edge_rounds += round.jobs.edge_rounds;
        self.abandoned_edge_rounds += round.jobs.abandoned_edges.len() as u64;
        round.jobs.dropped.iter().for_each(|job| add(&mut self.dropped, job));
        round.jobs.lost_late.iter().for_each(|(job, _)| add(&mut self.lost_late, job));
    }

    /// The share of jobs whose client dropped out, by a hazard or a probability, before or after their round closed; 0
    /// if there was no job.
    pub fn dropout_share(&self) -> f64 {
        let lost = self.dropped.iter().chain(&self.lost_late).filter(|lost| lost.reason == DropReason::Hazard);
        let lost: u64 = lost.map(|lost| lost.jobs).sum();
        match self.arrived + self.late + self.dropped_jobs() {
            0 => 0.0,
            jobs => lost as f64 / jobs as f64,
        }
    }

    /// Jobs that were lost before their round closed.
    pub fn dropped_jobs(&self) -> u64 {
        self.dropped.iter().map(|lost| lost.jobs).sum()
    }
}

fn add(list: &mut Vec<Lost>, job: &DroppedJob) {
    let &DroppedJob { phase, reason, .. } = job;
    match list.iter_mut().find(|lost| (lost.phase, lost.reason) == (phase, reason)) {
        Some(lost) => lost.jobs += 1,
        None => list.push(Lost { phase, reason, jobs: 1 }),
    }
}
