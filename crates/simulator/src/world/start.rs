//! The model that every run of a world starts from.

use super::World;
use fedgenie_core::failure::Failure;
use fedgenie_core::id::Round;
use fedgenie_core::rng::Streams;
use fedgenie_learning::task::{ModelState, On, PrivateTable, PrivateView, Task};

impl World {
    /// The measures, on test data, of the model that every run starts from.
    ///
    /// # Errors
    /// If the task fails.
    pub fn initial_measures(&self) -> Result<Vec<f64>, Failure> {
        let mut values = vec![f64::NAN; self.measures.of_data.len()];
        if let Some(task) = self.task.as_deref() {
            initially(task, &self.streams, self.servers(), |state| task.measure(On::Test, state, false, &mut values))?;
        }
        Ok(values)
    }
}

/// Looks at a task as it is before the first round.
pub(super) fn initially<T>(
    task: &dyn Task,
    streams: &Streams,
    servers: usize,
    look: impl FnOnce(&ModelState<'_>) -> T,
) -> T {
    let (model, private) = (task.initial_model(0, streams), PrivateTable::default());
    let moved = vec![Round(0); task.layout().rows()];
    let private = PrivateView::of(&private);
    let memories = vec![vec![0.0; task.memory_len()]; servers];
    look(&ModelState { model: &model, private, round: Round(0), moved: &moved, memories: &memories })
}
