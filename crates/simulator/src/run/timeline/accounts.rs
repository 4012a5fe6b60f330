//! Costs of a run: traffic, computing, jobs, and the wasted part of each.

use crate::population::{Energy, EnergyUse};
use crate::run::error::RunError;
use fedgenie_core::record::Phase;
use fedgenie_core::state::Stateful;
use fedgenie_core::time::{Span, TotalTime};
use std::ops::AddAssign;

/// Totals of a run so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Stateful)]
pub struct Accounts {
    /// Rounds closed.
    pub rounds: u64,
    /// Jobs dispatched in closed rounds.
    pub dispatched: u64,
    /// Of the jobs dispatched where clients replay a log, those that the log does not have.
    pub drawn: u64,
    /// Jobs whose update arrived in its round.
    pub arrived: u64,
    /// Bytes sent to clients; of a transfer that was cut, the part that its share of the time moved.
    pub down_bytes: u64,
    /// Bytes sent by clients.
    pub up_bytes: u64,
    /// Bytes from the cloud to edge servers, where there are any.
    pub edge_down_bytes: u64,
    /// Bytes from edge servers to the cloud.
    pub edge_up_bytes: u64,
    /// Virtual time that clients spent computing in jobs.
    pub compute: TotalTime,
    /// Virtual time that clients spent computing for probes, all of them together; no part of `compute`.
    pub probe_compute: TotalTime,
    /// The part of `compute` whose result was never used.
    pub wasted_compute: TotalTime,
    /// Bytes sent to clients for jobs whose update was never used: lost, called off, late without being carried, too
    /// stale, of an abandoned round, or under way when the run ends.
    pub wasted_down_bytes: u64,
    /// Bytes that such jobs' clients sent.
    pub wasted_up_bytes: u64,
    /// What such jobs drew from batteries.
    pub wasted_energy: Energy,
    /// Energy of the whole run, where clients have batteries; known when it ends.
    #[state(skip = "worked out when the run ends")]
    pub energy: Option<EnergyUse>,
}

/// Cost of a job, or of a client's jobs, so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Stateful)]
pub(in crate::run) struct Cost {
    /// Time spent computing.
    pub compute: TotalTime,
    /// Bytes from the server.
    pub down_bytes: u64,
    /// Bytes to the server.
    pub up_bytes: u64,
    /// Drawn from the battery.
    pub energy: Energy,
}

/// Clients' work for a server outside jobs: answers to a probe, an evaluation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::run) struct Charge {
    /// How long the slowest of them takes.
    pub span: Span,
    /// Their cost together.
    pub cost: Cost,
}

/// Adds bytes to a sum, which stays at the end of its range: [`Accounts::check`] sees it there.
pub(in crate::run) fn add(sum: &mut u64, bytes: u64) {
    *sum = sum.saturating_add(bytes);
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.compute += other.compute;
        add(&mut self.down_bytes, other.down_bytes);
        add(&mut self.up_bytes, other.up_bytes);
        self.energy += other.energy;
    }
}

impl Accounts {
    /// Accounts for a phase: time at work, and bytes moved.
    pub(in crate::run) fn spend(&mut self, phase: Phase, active: Span, moved: u64) {
        match phase {
            Phase::Download => add(&mut self.down_bytes, moved),
            Phase::Compute => self.compute += active,
            Phase::Upload => add(&mut self.up_bytes, moved),
        }
    }

    /// Accounts for costs outside jobs.
    pub(in crate::run) fn probe(&mut self, cost: Cost) {
        self.probe_compute += cost.compute;
        add(&mut self.down_bytes, cost.down_bytes);
        add(&mut self.up_bytes, cost.up_bytes);
    }

    /// Counts a cost as wasted.
    pub(in crate::run) fn waste(&mut self, cost: Cost) {
        self.wasted_compute += cost.compute;
        add(&mut self.wasted_down_bytes, cost.down_bytes);
        add(&mut self.wasted_up_bytes, cost.up_bytes);
        self.wasted_energy += cost.energy;
    }

    /// Checks that no sum has left its range.
    ///
    /// # Errors
    /// The sum that has.
    pub(in crate::run) fn check(&self) -> Result<(), RunError> {
        let sums = [
            (self.down_bytes, "sent to clients"),
            (self.up_bytes, "sent by clients"),
            (self.edge_down_bytes, "sent from the cloud to edge servers"),
            (self.edge_up_bytes, "sent from edge servers to the cloud"),
        ];
        match sums.into_iter().find(|&(sum, _)| sum == u64::MAX) {
            Some((_, what)) => Err(RunError::TooManyBytes { what }),
            None => Ok(()),
        }
    }
}
