//! Folds over closed rounds: what is known of a run beside its course, in memory that does not grow with the number of rounds.
//!
//! [`Metered`] sits between a run and its sink and sees each [`RoundSummary`], the object that `rounds.jsonl` is written from,
//! recorded or not: what a report shows and what the file holds come from the same object.
//!
//! # Cost
//! Per round a look at the last bin of durations, per selected client an addition. Memory: a byte per client, at most
//! 64 windows of at most 64 counts.
//!
//! # Determinism
//! Counts are integers; no result depends on when a fold is looked at.

mod durations;
mod outcomes;
mod participation;
mod selections;

pub use durations::{BINS_PER_DECADE, Durations};
pub use outcomes::{Lost, Outcomes};
pub use participation::{Participation, gini};
pub use selections::{Bins, MOST_CLIENTS, MOST_WINDOWS, Row, Selections};

use crate::recorder::{RoundMark, RoundSummary, Sink};
use durations::DurationFold;
use fedgenie_core::record::Record;
use selections::SelectionFold;
use serde::{Deserialize, Serialize};
use std::io;

/// What the rounds of a run add up to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunMetrics {
    /// How long rounds took.
    pub durations: Durations,
    /// Who was selected, when.
    pub selections: Selections,
}

/// A sink that adds rounds up on their way to another.
pub struct Metered<'a> {
    sink: &'a mut dyn Sink,
    durations: DurationFold,
    selections: SelectionFold,
    outcomes: Outcomes,
}

impl<'a> Metered<'a> {
    /// Before the first round.
    pub fn new(sink: &'a mut dyn Sink, bins: Bins) -> Self {
        Self {
            sink,
            durations: DurationFold::default(),
            selections: SelectionFold::new(bins),
            outcomes: Outcomes::default(),
        }
    }

    /// Takes a round in.
    pub fn observe(&mut self, round: &RoundSummary<'_>) {
        self.durations.add(round.closed - round.opened);
        self.selections.add(round.round, &round.jobs.selected);
        self.outcomes.add(round);
    }

    /// What was found.
    pub fn finish(self) -> (RunMetrics, Outcomes) {
        let metrics = RunMetrics { durations: self.durations.finish(), selections: self.selections.finish() };
        (metrics, self.outcomes)
    }
}

impl Sink for Metered<'_> {
    fn record(&mut self, record: &Record<'_>) -> io::Result<()> {
        self.sink.record(record)
    }

    fn round(&mut self, summary: &RoundSummary<'_>, is_recorded: bool, mark: &RoundMark) -> io::Result<()> {
        self.observe(summary);
        self.sink.round(summary, is_recorded, mark)
    }

    fn wants_checksums(&self) -> bool {
        self.sink.wants_checksums()
    }
}
