//! The metrics of the model that the runs of a world begin with: of a task with a model, measured once.

use crate::protocol::Rule;
use crate::run::error::RunError;
use crate::run::learning::{Learning, ServerScope};
use crate::run::meters::Evaluations;
use crate::world::Metrics;
use crate::world::World;
use std::sync::PoisonError;

impl World {
    /// The metrics of the model that every run of this world begins with, as its rounds measure them; empty where no
    /// model is learned. They are measured when they are first asked for, and belong to no run: they cost no virtual
    /// time and no traffic.
    ///
    /// # Errors
    /// If the task lacks a number that it measures.
    pub fn initial_metrics(&self, evaluate: &Evaluations) -> Result<Metrics, RunError> {
        let mut initial = self.initial.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*initial {
            return Ok(known.clone());
        }
        Ok(initial.insert(self.measure_first_model(evaluate)?).clone())
    }

    fn measure_first_model(&self, evaluate: &Evaluations) -> Result<Metrics, RunError> {
        let Some(task) = self.task.as_deref().filter(|task| !task.layout().is_empty()) else {
            return Ok(Metrics::new());
        };
        let of = |edge: usize| self.protocol.clusters.as_ref().map_or(0, |clusters| clusters.initial[edge]);
        let scopes: Vec<ServerScope<'_>> = match &self.protocol.rule {
            Rule::Rounds(_) | Rule::Buffered(_) => Vec::new(),
            Rule::Hierarchical(rule) => {
                (0..).zip(&rule.members).map(|(edge, members)| (&**members, of(edge))).collect()
            }
        };
        let learning = Learning::new(self, task, self.clusters(), None);
        // Other runs may wait for this one, on the threads that it would spread clients over.
        Ok(learning.evaluate(evaluate.evaluated(&scopes, false))?.metrics)
    }
}
