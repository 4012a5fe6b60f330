//! The data of a run now, which may have changed since it began.

use super::{Learning, Work};
use fedgenie_core::id::{EdgeId, Round};

impl<'w> Learning<'w> {
    /// Data are those of a round, which begins or was the last one before a run goes on.
    pub fn take_data_of(&mut self, round: Round) {
        let changes = self.world.changes_by(round);
        if let Some(task) = self.world.task_after(changes) {
            (self.task, self.changes) = (task, changes);
        }
    }

    /// Does something with the data of a round that may be over by now.
    pub fn with_data_of<T>(&mut self, round: Round, work: impl FnOnce(&mut Self) -> T) -> T {
        let now = (self.task, self.changes);
        self.take_data_of(round);
        let done = work(self);
        (self.task, self.changes) = now;
        done
    }

    /// The test examples of a server now, where the task deals them to servers.
    pub fn test_of(&self, server: EdgeId) -> Option<&'w [u32]> {
        self.world.test_after(self.changes, server)
    }

    /// Number of examples that the client of a job has trained on: those of when it was asked.
    pub(super) fn examples_at(&self, work: &Work) -> usize {
        self.world.data_of(work.round, self.task).examples(work.client)
    }
}
