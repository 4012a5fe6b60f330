//! Folds over closed rounds: totals of a run, in memory that does not grow with the number of rounds.
//!
//! [`Metered`] sits between a run and its sink and sees each [`RoundSummary`], recorded or not. `rounds.jsonl` is
//! written from the same object, so that a report and the file agree.
//!
//! # Cost
//! Per round a look at the last bin of durations, per selected client an addition; where decisions are explained, an
//! addition per candidate and number. Memory: a byte per client, five counts for each client of up to 1,000, at most
//! 64 windows of at most 64 counts, and of explanations those windows of at most 16 numbers and some thousand rows.
//!
//! # Determinism
//! Counts are integers; no result depends on when a fold is looked at.

mod clients;
mod durations;
mod explanations;
mod offers;
mod outcomes;
mod participation;
mod selections;

pub use clients::{Clients, MOST_TOLD};
pub use durations::{BINS_PER_DECADE, Durations};
pub use explanations::{Decision, Explained, Explanations, KeptRound, MOST_KEPT, MOST_ROWS, MOST_SELECTIONS, Spread};
pub use offers::Offers;
pub use outcomes::{Lost, Outcomes};
pub use participation::{Participation, gini};
pub use selections::{Bins, MOST_CLIENTS, MOST_WINDOWS, Row, Selections, Windows};

use crate::recorder::{RoundMark, RoundSummary, Sink};
use clients::ClientFold;
use durations::DurationFold;
use explanations::ExplanationFold;
use fedgenie_core::record::Record;
use fedgenie_core::state::{State, Stateful};
use selections::SelectionFold;
use serde::{Deserialize, Serialize};
use std::io;

/// Totals over the rounds of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunMetrics {
    /// How long rounds took.
    pub durations: Durations,
    /// Selections over time.
    pub selections: Selections,
    /// Each client's part, of a fleet of at most [`MOST_TOLD`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<Box<Clients>>,
    /// The numbers behind decisions, if policies explain them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanations: Option<Explanations>,
}

/// A sink that adds rounds up on their way to another.
#[derive(Stateful)]
pub struct Metered<'a> {
    #[state(skip = "keeps a state of its own")]
    sink: &'a mut dyn Sink,
    durations: DurationFold,
    selections: SelectionFold,
    outcomes: Outcomes,
    clients: ClientFold,
    /// Present if the scenario asks for explanations.
    #[state(each)]
    explanations: Option<ExplanationFold>,
}

impl<'a> Metered<'a> {
    /// Before the first round.
    pub fn new(sink: &'a mut dyn Sink, bins: Bins) -> Self {
        Self {
            sink,
            durations: DurationFold::default(),
            clients: ClientFold::new(bins.clients()),
            selections: SelectionFold::new(bins),
            outcomes: Outcomes::default(),
            explanations: None,
        }
    }

    /// Also folds explanations.
    pub fn explained(mut self) -> Self {
        self.explanations = Some(ExplanationFold::default());
        self
    }

    /// Adds a round.
    pub fn observe(&mut self, round: &RoundSummary<'_>) {
        self.durations.add(round.closed - round.opened);
        self.selections.add(round.round, &round.jobs.selected);
        self.outcomes.add(round);
        self.clients.add(round);
        if let Some(explanations) = &mut self.explanations {
            explanations.add(round);
        }
    }

    /// The totals; `clients` has selections and costs of each, if they are told.
    pub fn finish(self, clients: Option<Box<Clients>>) -> (RunMetrics, Outcomes) {
        let metrics = RunMetrics {
            durations: self.durations.finish(),
            selections: self.selections.finish(),
            clients: clients.map(|clients| self.clients.finish(*clients).into()),
            explanations: self.explanations.map(ExplanationFold::finish),
        };
        (metrics, self.outcomes)
    }
}

impl Sink for Metered<'_> {
    fn record(&mut self, record: &Record<'_>) -> io::Result<()> {
        if let Some(explanations) = &mut self.explanations {
            explanations.record(record);
        }
        self.sink.record(record)
    }

    fn round(&mut self, summary: &RoundSummary<'_>, is_recorded: bool, mark: &RoundMark) -> io::Result<()> {
        self.observe(summary);
        self.sink.round(summary, is_recorded, mark)
    }

    fn wants_checksums(&self) -> bool {
        self.sink.wants_checksums()
    }

    fn save(&mut self, state: &mut State<'_>) -> io::Result<()> {
        self.sink.save(state)?;
        state.field(self);
        Ok(())
    }
}
