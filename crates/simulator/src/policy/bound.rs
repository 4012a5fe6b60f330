//! What a theorem says of a policy's regret: a bound, in the world of a run.

use fedgenie_core::failure::Failure;
use fedgenie_core::id::Round;
use fedgenie_core::oracle::Genie;
use fedgenie_core::oracle::regret::Meter;
use std::fmt;

/// The world of a run as theorems see it. Bounds alone are made from it; no selection is.
#[derive(Clone, Copy, Debug)]
pub struct BoundWorld<'a> {
    /// Clients asked in each round, `m`.
    pub cohort: usize,
    /// Updates that each round waits for.
    pub take: usize,
    /// Whether each round lasts until all clients that were asked have answered, however long that takes.
    pub waits_for_all: bool,
    /// Whether all clients can be asked at any time.
    pub is_always_available: bool,
    /// The share of the data of each client.
    pub shares: &'a [f64],
    /// The reward and the mean speed of each client.
    pub genie: &'a Genie,
}

/// A bound on the cumulative regret of a policy in a world.
pub struct RegretBound {
    /// The meter whose regret is bounded.
    pub meter: Meter,
    /// What states it: `Theorem 1`.
    pub name: String,
    /// The largest regret after a round; `None` where nothing is said of that round.
    ///
    /// # Errors
    /// Whatever ends the run.
    pub at: Box<dyn Fn(Round) -> Result<Option<f64>, Failure> + Send>,
}

impl fmt::Debug for RegretBound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "bound of {} on the regret {}", self.name, self.meter.name())
    }
}

impl BoundWorld<'_> {
    /// Number of clients, `K`.
    pub const fn clients(&self) -> usize {
        self.shares.len()
    }
}
