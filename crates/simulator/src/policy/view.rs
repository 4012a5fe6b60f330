//! What a policy is asked, and what it sees when it decides.

use super::{Bounds, Candidates, TrainingReport};
#[cfg(doc)]
use super::{Policy, Probe};
use crate::population::forecast::{ForecastError, Forecaster};
use fedgenie_core::id::{ClientId, Round, Turn};
use fedgenie_core::oracle::Genie;
use fedgenie_core::oracle::reward::{History, Reward};
use fedgenie_core::time::VirtualTime;
use fedgenie_learning::layout::Layout;

/// A selection request.
#[derive(Clone, Copy, Debug)]
pub struct SelectionRequest<'a> {
    /// Which of the policy's selections this is, from 1.
    pub turn: Turn,
    /// The server's round under way: the version of the model that its updates make.
    pub round: Round,
    /// The current virtual time.
    pub now: VirtualTime,
    /// The usual size of a selection; fewer candidates than that may be available.
    pub cohort: usize,
    /// At most this many clients may be chosen: `cohort`, unless the protocol gives `most`.
    pub most: usize,
    /// The round closes when this many updates have arrived; less than `cohort` under over-selection.
    pub take: usize,
    /// Who can be chosen.
    pub available: Candidates<'a>,
}

impl SelectionRequest<'_> {
    /// How many to choose out of a list of candidates, and how many of them the round waits for.
    pub fn sizes(&self, candidates: &[ClientId]) -> (usize, usize) {
        let cohort = self.cohort.min(candidates.len());
        (cohort, self.take.min(cohort))
    }
}

/// What a server could know about its clients.
#[derive(Clone, Copy, Debug)]
pub struct ServerView<'a> {
    /// Examples per client.
    pub data_sizes: &'a [u32],
    /// `d_k/Σd` per client, `d_k` = quality × size.
    pub shares: &'a [f64],
    /// Times each client was selected before this selection.
    pub counts: &'a [u32],
    /// Answers to [`Probe::Losses`], in the order of the clients asked.
    pub probed: &'a [(ClientId, f64)],
    /// Answers to [`Probe::Answers`], in the order of the clients asked: as many numbers each as the kind has.
    pub answers: &'a [f64],
    /// Answers to [`Probe::Training`], ascending by client; of one whose training diverged there is none.
    pub trained: &'a [TrainingReport<'a>],
    /// The scenario's reward and `(α/m)·g_k` of the available clients, where the round works them out anyway. Nothing
    /// that a policy could not compute itself from the history: it saves doing so twice.
    pub gains: Option<(&'a Reward, &'a [f64])>,
    /// The truth, for a policy that [sees it](Policy::sees_truth).
    pub genie: Option<&'a Genie>,
    /// The best set in hindsight, ascending, and what it is worth, for a policy that [foresees](Policy::foresees) it.
    pub foreseen: Option<(&'a [ClientId], f64)>,
    /// The layout of the model, for a policy that [declares](Policy::capabilities) that it knows it.
    pub layout: Option<&'a Layout>,
    /// What may be decided, for a policy that [declares](Policy::capabilities) that it knows it.
    pub bounds: Option<Bounds>,
    /// What answers [`ServerView::forecast`], for a policy that [declares](Policy::capabilities) that it asks.
    pub forecaster: Option<&'a Forecaster<'a>>,
}

/// What a client declares about its device, in seconds of a typical job.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DeclaredDevice {
    /// Median duration of the compute phase.
    pub compute_seconds: f64,
    /// Sum of the median durations of download and upload.
    pub transfer_seconds: f64,
}

impl<'a> ServerView<'a> {
    /// `(α/m)·g_k` of the available clients under a reward: those of the round if it is the scenario's reward, or else
    /// worked out into `buffer`.
    pub fn gains<'b>(
        &self,
        reward: &Reward,
        ask: &SelectionRequest<'_>,
        cohort: usize,
        buffer: &'b mut Vec<f64>,
    ) -> &'b [f64]
    where
        'a: 'b,
    {
        match self.gains {
            Some((known, gains)) if known == reward => gains,
            _ => {
                reward.gains(&self.history(ask, cohort), ask.available.list(), buffer);
                buffer
            }
        }
    }

    /// Whether a client will be online throughout `[from, to)`, of a policy that declares forecasts: right with the
    /// probability `[population.forecast] accuracy`, each question by itself; the same question has the same answer.
    ///
    /// # Errors
    /// If the interval reaches beyond the horizon, ends before it begins, or the client is another server's: then the
    /// run fails. If the policy does not declare forecasts.
    pub fn forecast(&self, client: ClientId, from: VirtualTime, to: VirtualTime) -> Result<bool, ForecastError> {
        self.forecaster.ok_or(ForecastError::Undeclared)?.ask(client, from, to)
    }

    /// The view's part that the generalisation function needs.
    pub const fn history(&self, ask: &SelectionRequest<'_>, cohort: usize) -> History<'a> {
        History { turn: ask.turn, cohort, shares: self.shares, counts: self.counts }
    }
}
