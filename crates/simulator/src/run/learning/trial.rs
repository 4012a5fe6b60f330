//! A trial of a run: of the jobs of a round only some train, so that the cost of a whole round is known soon.
//!
//! A run that is tried out has no results: its models lack the updates of the other jobs. Its clock, its jobs and its
//! traffic are those of the run, as far as no policy looks at trained values.

use super::{EdgeState, Intake, Learning, Sought, Trained, Work};
use crate::run::error::RunError;
use fedgenie_core::id::Round;
use std::fmt::Debug;
use std::sync::Arc;

/// Decides how many jobs train, and is told when they have.
pub trait Trial: Debug + Send + Sync {
    /// How many of these jobs are to train, at least one; they are spread evenly over the list. Each has the number of
    /// its operations, roughly.
    fn choose(&self, operations: &[f64]) -> usize;

    /// Those that were chosen, with so many operations together, are about to be trained and taken in.
    fn begin(&self, operations: f64);

    /// They have been; without a beginning, there was no job.
    fn end(&self);
}

impl Learning<'_> {
    /// Folds a round's arrivals into the models, or the part of them that a trial lets through. Returns the updates'
    /// training reports, ascending by client, and whether there is a new model.
    ///
    /// # Errors
    /// The first client whose update is not finite, or the server; the models stay as they were.
    pub fn aggregate(
        &mut self,
        round: Round,
        intake: Intake<'_>,
        sought: Sought,
        parallel: bool,
    ) -> Result<(Vec<Trained>, bool), RunError> {
        let intake = match intake {
            Intake::Updates(work, combine) => Intake::Updates(self.tried(work), combine),
            other @ (Intake::Nothing | Intake::EdgeModels(_)) => other,
        };
        let folded = self.take_in(round, intake, sought, parallel);
        self.has_tried();
        folded
    }

    /// Trains the given work for an edge server, or the part of it that a trial lets through, and averages the updates
    /// into its model, which stays as it is if there is nothing to average. Adds the rows and the clients to `edge`.
    /// Returns the updates' training reports.
    ///
    /// # Errors
    /// The first client whose update is not finite.
    pub fn aggregate_at_edge(
        &mut self,
        round: Round,
        work: Vec<Work>,
        own: (&mut Arc<[f32]>, &mut EdgeState<'_>),
        sought: Sought,
        parallel: bool,
    ) -> Result<Vec<Trained>, RunError> {
        let work = self.tried(work);
        let trained = self.take_in_at_edge(round, work, own, sought, parallel);
        self.has_tried();
        trained
    }

    /// The part of the work that a trial lets through: all of it without one.
    fn tried(&self, mut work: Vec<Work>) -> Vec<Work> {
        let Some(trial) = &self.trial else { return work };
        work.retain(|work| self.examples_at(work) > 0);
        if work.is_empty() {
            return work;
        }
        let settings = &self.world.training.local;
        let of = |work: &Work| match settings.of_job(work.client, work.epochs) {
            Some(own) => self.task.operations(work.client, &own),
            None => self.task.operations(work.client, settings),
        };
        let mut operations: Vec<f64> = work.iter().map(of).collect();
        let (all, most) = (work.len(), trial.choose(&operations).clamp(1, work.len()));
        let is_chosen = |place: usize| (place + 1) * most / all > place * most / all;
        let (mut place, mut of_operations) = (0.., 0..);
        work.retain(|_| place.next().is_some_and(is_chosen));
        operations.retain(|_| of_operations.next().is_some_and(is_chosen));
        trial.begin(operations.iter().sum());
        work
    }

    /// What was let through is in the model.
    fn has_tried(&self) {
        self.trial.iter().for_each(|trial| trial.end());
    }
}
