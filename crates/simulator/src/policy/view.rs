//! A policy's question, and its view when it decides.

use super::{Bounds, Busy, Candidates, TrainingReport};
#[cfg(doc)]
use super::{Policy, Probe};
use crate::population::forecast::{ForecastError, Forecaster};
use crate::population::{Levels, Seen};
use fedgenie_core::id::{ClientId, Round, Turn};
use fedgenie_core::oracle::Genie;
use fedgenie_core::oracle::reward::{History, Reward};
use fedgenie_core::time::VirtualTime;
use fedgenie_learning::layout::Layout;

/// A selection request.
#[derive(Clone, Copy, Debug)]
pub struct SelectionRequest<'a> {
    /// Number of this selection among the policy's, from 1.
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
    /// The clients that can be chosen.
    pub available: Candidates<'a>,
}

impl SelectionRequest<'_> {
    /// How many to choose out of a list of candidates, and how many of them the round waits for.
    pub fn sizes(&self, candidates: &[ClientId]) -> (usize, usize) {
        let cohort = self.cohort.min(candidates.len());
        (cohort, self.take.min(cohort))
    }
}

/// The knowledge that a server could have of its clients.
#[derive(Clone, Copy, Debug)]
pub struct ServerView<'a> {
    /// Examples per client.
    pub data_sizes: &'a [u32],
    /// `d_k/Σd` per client, `d_k` = quality × size.
    pub shares: &'a [f64],
    /// Times each client was selected before this selection.
    pub counts: &'a [u32],
    /// Answers to [`Probe::Losses`] or [`Probe::Qualities`], in the order of the clients asked.
    pub probed: &'a [(ClientId, f64)],
    /// Answers to [`Probe::Answers`], in the order of the clients asked: as many numbers each as the kind has.
    pub answers: &'a [f64],
    /// Answers to [`Probe::Training`], ascending by client; without jobs whose training diverged as far as it went.
    pub trained: &'a [TrainingReport<'a>],
    /// The scenario's reward and `(α/m)·g_k` of the available clients, where the round works them out anyway. A policy
    /// could compute them from the history; this saves the second computation.
    pub gains: Option<(&'a Reward, &'a [f64])>,
    /// The truth, for a policy that [sees it](Policy::sees_truth).
    pub genie: Option<&'a Genie>,
    /// The best set in hindsight, ascending, and its value, for a policy that [foresees](Policy::foresees) it.
    pub foreseen: Option<(&'a [ClientId], f64)>,
    /// The layout of the model, for a policy that [declares](Policy::capabilities) that it knows it.
    pub layout: Option<&'a Layout>,
    /// The decisions open to a policy that [declares](Policy::capabilities) `bounds`.
    pub bounds: Option<Bounds>,
    /// The source of [`ServerView::forecast`], for a policy that [declares](Policy::capabilities) `forecast`.
    pub forecaster: Option<&'a Forecaster<'a>>,
    /// The source of [`ServerView::battery`], for a policy that [declares](Policy::capabilities) `level`.
    pub batteries: Option<SeenBatteries<'a>>,
}

/// Batteries at an instant, as a policy may see them.
#[derive(Clone, Copy, Debug)]
pub struct SeenBatteries<'a> {
    /// Their levels.
    pub levels: &'a Levels<'a>,
    /// Clients with a job, whose levels are not seen.
    pub busy: &'a Busy,
    /// The instant.
    pub now: VirtualTime,
}

/// A client's declaration of its device, in seconds of a typical job.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DeclaredDevice {
    /// Median duration of the compute phase.
    pub compute_seconds: f64,
    /// Sum of the median durations of download and upload.
    pub transfer_seconds: f64,
}

impl DeclaredDevice {
    /// Seconds of the whole job.
    pub fn seconds(self) -> f64 {
        self.compute_seconds + self.transfer_seconds
    }
}

impl<'a> ServerView<'a> {
    /// `(α/m)·g_k` of the available clients under a reward: those of the round for the scenario's reward, or else
    /// computed into `buffer`.
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

    /// Whether a client will be online throughout `[from, to)`, for a policy that declares forecasts: right with the
    /// probability `[population.forecast] accuracy`, independently for each question; the same question has the same
    /// answer.
    ///
    /// # Errors
    /// If the interval reaches beyond the horizon, ends before it begins, or the client is another server's: then the
    /// run fails. If the policy does not declare forecasts.
    pub fn forecast(&self, client: ClientId, from: VirtualTime, to: VirtualTime) -> Result<bool, ForecastError> {
        self.forecaster.ok_or(ForecastError::Undeclared)?.ask(client, from, to)
    }

    /// The battery of a client without a job, for a policy that declares levels; `None` of others, and undeclared.
    pub fn battery(&self, client: ClientId) -> Option<Seen> {
        let SeenBatteries { levels, busy, now } = self.batteries?;
        if busy.contains(client) { None } else { levels.seen(client, now) }
    }

    /// The view's part that the generalisation function needs.
    pub const fn history(&self, ask: &SelectionRequest<'_>, cohort: usize) -> History<'a> {
        History { turn: ask.turn, cohort, shares: self.shares, counts: self.counts }
    }
}
