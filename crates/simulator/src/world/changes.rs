//! Data that change while runs go on: the task from rounds on.

use super::{World, WorldError, WorldPlan};
use crate::protocol::Rule;
use crate::task::{Drift, Task};
use fedgenie_core::id::{EdgeId, Round};
use std::sync::{Arc, OnceLock};

/// The data from a round on.
#[derive(Debug)]
pub struct Change {
    /// The first round, of the cloud where there are edge servers.
    pub round: u32,
    /// The task with these data.
    pub task: Arc<dyn Task>,
    /// Where the data have moved between edge servers, how.
    pub drift: Option<Drift>,
    /// The test examples of each server, when they are asked for.
    server_tests: OnceLock<Vec<Vec<u32>>>,
}

impl Change {
    /// The task from a round on.
    pub const fn new(round: u32, task: Arc<dyn Task>, drift: Option<Drift>) -> Self {
        Self { round, task, drift, server_tests: OnceLock::new() }
    }
}

impl WorldPlan {
    /// How data change, by ascending round; nothing without a task.
    ///
    /// # Errors
    /// If data cannot move as they should, or something else is not defined where they change.
    pub(super) fn changes(&self, rule: &Rule, task: Option<&dyn Task>) -> Result<Vec<Change>, WorldError> {
        let drift = self.drift(rule, task)?;
        let about = self.task.about();
        if let Some(key) = self.controls.trained().filter(|_| about.shifts) {
            let message = "is trained on the data of the start, and shift changes them; take one of the two out";
            return Err(WorldError::scenario(&format!("controls.{key}"), message));
        }
        let shifts = task.and_then(|task| task.dealt()).map_or_else(Vec::new, |dealt| dealt.shifts());
        let shifts = shifts.into_iter().map(|(round, task)| Change::new(round, task, None));
        Ok(drift.into_iter().chain(shifts).collect())
    }
}

impl World {
    /// How many changes of the data have taken place by a round of the server or the cloud.
    pub fn changes_by(&self, round: Round) -> usize {
        self.changes.partition_point(|change| change.round <= round.0)
    }

    /// The task after so many changes of the data.
    pub fn task_after(&self, changes: usize) -> Option<&dyn Task> {
        match changes.checked_sub(1) {
            Some(last) => Some(&*self.changes[last].task),
            None => self.task.as_deref(),
        }
    }

    /// The task in a round of the server or the cloud.
    pub fn task_in(&self, round: Round) -> Option<&dyn Task> {
        self.task_after(self.changes_by(round))
    }

    /// With which data a client trains that was asked in a round, where it is `now` at its server: with those of then.
    /// An edge server has the data of the cloud's round in which it was asked itself.
    pub fn data_of<'a>(&'a self, asked: Round, now: &'a dyn Task) -> &'a dyn Task {
        match &self.protocol.rule {
            Rule::Hierarchical(_) => now,
            Rule::Rounds(_) | Rule::Buffered(_) if self.changes.is_empty() => now,
            Rule::Rounds(_) | Rule::Buffered(_) => self.task_in(asked).unwrap_or(now),
        }
    }

    /// The test examples of a server after so many changes of the data, where the task deals them to servers.
    pub fn test_after(&self, changes: usize, server: EdgeId) -> Option<&[u32]> {
        let Some(last) = changes.checked_sub(1) else { return self.test_of(server) };
        let change = &self.changes[last];
        if let Some(drift) = change.drift {
            return self.test_of(EdgeId::from_index(drift.source(server.index(), self.servers())));
        }
        let dealt = || Some(change.task.dealt()?.test_of_servers(&self.members(), &self.streams));
        let all = change.server_tests.get_or_init(|| dealt().unwrap_or_default());
        all.get(server.index()).map(|examples| &**examples)
    }
}
