//! The exact round in which a target was reached between two evaluations, found afterwards.
//!
//! While a target is pending, the state of the run at its last evaluation is kept. When a target is reached at the
//! next, a second run continues from there, round by round, and its model is measured after each: draws belong to the
//! seed, so that its rounds are those of the run. The run itself is unaffected: its clock, records and digests are the
//! same with and without this search.
//!
//! The result is the first round after the last evaluation below the target. A metric that rose to the target and fell
//! back before that evaluation goes unnoticed, where evaluating every round would have noticed it.
//!
//! # Cost
//! A saved run per evaluation while a target is pending; the rounds between two evaluations, trained a second time and
//! measured each, per target reached.

use super::watch::Watch;
use fedgenie_core::state::StateError;
use fedgenie_core::state::Stateful;
use fedgenie_simulator::run::{Run, RunError};

/// The run as it was at its last evaluation, while targets are pending.
#[derive(Debug, Default, Stateful)]
pub(super) struct Refine {
    #[state(skip = "from the scenario")]
    is_asked: bool,
    /// Empty before the first evaluation.
    saved: Vec<u8>,
}

impl Refine {
    /// Before the first round.
    pub const fn new(is_asked: bool) -> Self {
        Self { is_asked, saved: Vec::new() }
    }

    /// Looks for targets that were reached between the last two evaluations of an observed run. `again` gives a new run
    /// of the same world, policies and settings; `step` plays a round of it.
    pub fn look<'a>(
        &mut self,
        run: &mut Run<'_>,
        watch: &mut Watch<'_>,
        again: impl FnOnce() -> Run<'a>,
        mut step: impl FnMut(&mut Run<'_>) -> Result<(), RunError>,
    ) -> Result<(), RunError> {
        if !self.is_asked || run.metrics().is_empty() {
            return Ok(());
        }
        let mut sought = watch.reached_between(run.round());
        if !sought.is_empty() {
            let mut again = again();
            if !self.saved.is_empty() {
                again.load(&self.saved).map_err(|error| match error {
                    StateError::Failed(failure) => RunError::of_state(failure),
                    other => panic!("a run loads what the same run has saved: {other}"),
                })?;
            }
            while !sought.is_empty() && again.round().0 + 1 < run.round().0 {
                step(&mut again)?;
                let metrics = again.measure()?;
                watch.refine(&mut sought, &metrics, &again);
            }
        }
        self.saved = if watch.is_pending() { run.save()? } else { Vec::new() };
        Ok(())
    }
}
