//! What updates contributed, (9) to (13), as the server of the round sees it: of everybody who was selected, with what
//! is remembered of each client.

use super::Reference;
use crate::policy::{JobReport, ModelQuality, TrainingReport};
use fedgenie_core::id::{ClientId, Turn};
use fedgenie_core::oracle::utility::contribution::{self, Config, min_max};
use fedgenie_core::record::PhaseSpans;
use fedgenie_core::state::Stateful;
use fedgenie_core::time::Span;

/// A selected client's job of one round.
#[derive(Clone, Debug)]
pub(super) struct Pull {
    pub client: ClientId,
    pub turn: Turn,
    /// The effective latency.
    pub waited: Span,
    /// Time in each phase, of a job that arrived.
    pub phases: Option<PhaseSpans>,
    /// What was found in its update, if one arrived.
    pub update: Option<Validated>,
    /// `S`; 0 without an update.
    pub score: f64,
    /// The parts of `S`: R, U, D, D̃; NaN without an update.
    pub parts: [f64; 4],
}

/// What an update said, and what its validation found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Validated {
    quality: f64,
    deviation: f64,
    data_quality: f64,
}

impl Pull {
    pub fn new(job: &JobReport, waited: Span) -> Self {
        let (_, has_arrived) = job.waited.observed();
        let phases = has_arrived.then_some(job.phases);
        Self { client: job.client, turn: job.turn, waited, phases, update: None, score: 0.0, parts: [f64::NAN; 4] }
    }

    /// Its update is aggregated.
    ///
    /// # Panics
    /// If a statistic is missing that the policy wants: a broken invariant.
    pub fn take(&mut self, report: &TrainingReport<'_>) {
        let wanted = "what a policy wants to know of updates is told";
        let loss_rms = report.loss_rms.expect(wanted);
        self.update = Some(Validated {
            quality: report.quality.expect(wanted),
            deviation: report.deviation.expect(wanted),
            data_quality: report.examples as f64 * loss_rms,
        });
    }
}

/// What is remembered of a client.
#[derive(Clone, Copy, Debug, Default, Stateful)]
pub(super) struct Known {
    /// `R`.
    pub reputation: f64,
    /// The last `Δ`.
    pub gain: f64,
    /// The last `U`.
    pub relevance: f64,
    /// The last `D`; none if it was never heard.
    data_quality: Option<f64>,
}

/// Of all clients.
#[derive(Debug, Stateful)]
pub(super) struct Utilities {
    #[state(skip = "from the scenario")]
    config: Config,
    known: Vec<Known>,
    /// The quality of the model that the last round sent.
    previous: Option<f64>,
}

impl Utilities {
    pub fn new(config: Config, clients: usize) -> Self {
        Self { config, known: vec![Known::default(); clients], previous: None }
    }

    pub fn of(&self, client: ClientId) -> &Known {
        &self.known[client.index()]
    }

    /// `D̃` of all clients: the smallest `D` that was heard of is 0, the largest 1; 0 of those never heard, and of all
    /// if they are alike.
    pub fn scaled(&self) -> Vec<f64> {
        let mut heard: Vec<f64> = self.known.iter().filter_map(|known| known.data_quality).collect();
        min_max(&mut heard);
        let mut heard = heard.into_iter();
        let scaled = |known: &Known| known.data_quality.and_then(|_| heard.next()).unwrap_or(0.0);
        self.known.iter().map(scaled).collect()
    }

    /// Scores the updates of a round.
    pub fn judge(&mut self, quality: ModelQuality, reference: Reference, pulls: &mut [Pull]) {
        let ModelQuality { before, after } = quality;
        let has_improved = match reference {
            Reference::Aggregated => after > before,
            Reference::Sent => self.previous.is_some_and(|previous| before > previous),
        };
        self.previous = Some(before);
        for pull in &*pulls {
            let Some(update) = &pull.update else { continue };
            let known = &mut self.known[pull.client.index()];
            let gain = update.quality - before;
            let reputation = contribution::reputation(self.config.gamma, gain, known.reputation);
            // What is no number is not held against the client for ever.
            if reputation.is_finite() {
                (known.reputation, known.gain) = (reputation, gain);
            }
            known.relevance = contribution::relevance(update.deviation, has_improved);
            if update.data_quality.is_finite() {
                known.data_quality = Some(update.data_quality);
            }
        }
        let scaled = self.scaled();
        for pull in pulls {
            let Some(update) = &pull.update else { continue };
            let known = &self.known[pull.client.index()];
            let scaled = scaled[pull.client.index()];
            let score = contribution::score(&self.config, known.relevance, known.reputation, scaled);
            pull.score = if score.is_finite() && update.quality.is_finite() { score } else { 0.0 };
            pull.parts = [known.reputation, known.relevance, update.data_quality, scaled];
        }
    }
}
