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
    /// Virtual time that clients spent computing.
    pub compute: Span,
    /// The part of it whose result was never used.
    pub wasted_compute: Span,
}

impl Accounts {
    /// Accounts for a phase that lasted `spent` of its full duration.
    pub(super) fn spend(&mut self, phase: Phase, spent: Span, full: Span, payload_bytes: u64) {
        assert!(spent <= full, "a phase lasts no longer than drawn");
        let moved = if full == Span::ZERO {
            payload_bytes
        } else {
            (u128::from(payload_bytes) * u128::from(spent.0) / u128::from(full.0)) as u64
        };
        match phase {
            Phase::Download => self.down_bytes += moved,
            Phase::Compute => self.compute += spent,
            Phase::Upload => self.up_bytes += moved,
        }
    }
}
