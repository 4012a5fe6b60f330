//! The regret in hindsight of a run: the sum of the losses of its selections.

use super::Found;
use crate::recorder::HindsightRound;
use fedgenie_core::id::EdgeId;
use fedgenie_core::math::sum::CompensatedSum;
use fedgenie_core::state::Stateful;
use std::collections::BTreeSet;

/// Losses of selections in hindsight.
#[derive(Default, Stateful)]
pub(in crate::run) struct Judged {
    /// Of the round under way.
    #[state(empty = "judgements are recorded at the end of their round")]
    of_round: Vec<HindsightRound>,
    lost: f64,
    /// Of all rounds; none before the first that was judged.
    total: Option<CompensatedSum>,
}

impl Judged {
    pub fn add(&mut self, found: Found) {
        self.lost += found.lost;
        self.of_round.push(found.judged);
    }

    /// The regret up to the end of this round: with edge servers, the mean over the servers that selected.
    pub fn close_round(&mut self) -> Option<f64> {
        if !self.of_round.is_empty() {
            let servers: BTreeSet<Option<EdgeId>> = self.of_round.iter().map(|judged| judged.server).collect();
            let lost = std::mem::take(&mut self.lost) / servers.len() as f64;
            self.total.get_or_insert_default().add(lost);
        }
        self.total.as_ref().map(CompensatedSum::value)
    }

    /// The judgements of the round under way.
    pub fn of_round(&self) -> &[HindsightRound] {
        &self.of_round
    }

    /// The next round begins.
    pub fn clear_round(&mut self) {
        self.of_round.clear();
    }
}
