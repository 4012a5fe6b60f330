//! What a run has cost: traffic, computing that came to nothing, jobs.

use crate::record::Phase;
use crate::time::Span;

/// Totals of a run so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accounts {
    /// Rounds closed.
    pub rounds: u64,
    /// Jobs dispatched in closed rounds.
    pub dispatched: u64,
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
    /// Virtual time that clients spent computing.
    pub compute: Span,
    /// The part of it whose result was never used.
    pub wasted_compute: Span,
}

impl Accounts {
    /// Accounts for a phase: time at work, and bytes moved.
    pub(super) fn spend(&mut self, phase: Phase, active: Span, moved: u64) {
        match phase {
            Phase::Download => self.down_bytes += moved,
            Phase::Compute => self.compute += active,
            Phase::Upload => self.up_bytes += moved,
        }
    }
}
