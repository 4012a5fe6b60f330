//! The rest of a budget, and the number of clients that it pays for.
//!
//! A job that is under way is paid in full: the bytes that it has yet to move are reserved. A lost or cancelled job
//! returns the bytes that it did not move. So a run never moves more than its budget.

use super::engine::Engine;
use super::jobs::Job;
use fedgenie_core::id::{ClientId, EdgeId, JobNumber};

impl Engine<'_> {
    /// The bytes that the budget has left, if there is a budget.
    pub fn rest(&self) -> Option<u64> {
        let budget = self.world.budget.bytes?;
        let both = |down: u64, up: u64| down.saturating_add(up);
        let under_way = self.jobs.iter().filter(|job| job.pending.is_some());
        let whole = |job: &Job| both(job.transfer[0], job.transfer[1]).saturating_add(job.brings);
        let owed = under_way.map(|job| whole(job) - both(job.bytes.0, job.bytes.1));
        let moved = both(self.accounts.down_bytes, self.accounts.up_bytes);
        Some(owed.fold(budget.saturating_sub(moved), u64::saturating_sub))
    }

    /// How many of a server's candidates the rest of the budget pays for, at most `ask`, for any choice among them,
    /// after `spent` bytes for something else. `number` is that of the job of each.
    pub fn payable(&self, server: EdgeId, ask: usize, spent: u64, number: impl Fn(ClientId) -> JobNumber) -> usize {
        let Some(rest) = self.rest() else { return ask };
        let Some(rest) = rest.checked_sub(spent) else { return 0 };
        let price = match self.world.one_price() {
            Some(price) => price,
            None => self.world.dearest(self.candidates(server).list(), number),
        };
        let price = price.saturating_add(self.brings[server.index()]);
        rest.checked_div(price).map_or(ask, |count| ask.min(usize::try_from(count).unwrap_or(ask)))
    }

    /// Whether the budget pays for no further round, as far as that is known before its candidates are.
    pub fn is_spent(&self) -> bool {
        let price = self.world.one_price().map(|price| price.saturating_add(self.brings[0]));
        let round = price.map(|price| price.saturating_mul(self.world.budget.least as u64));
        self.rest().zip(round).is_some_and(|(rest, round)| rest < round)
    }
}
