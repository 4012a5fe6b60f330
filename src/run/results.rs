//! What can be read off a run, and its end.

use super::{Accounts, Run};
use crate::data::partition::Skew;
use crate::id::Round;
use crate::model::weights::to_safetensors;
use crate::population::Group;
use crate::record::{Phase, Regret};
use crate::recorder::{Digests, Sink};
use crate::time::VirtualTime;

impl<S: Sink> Run<'_, S> {
    /// The round played last.
    pub const fn round(&self) -> Round {
        self.round
    }

    /// The current virtual time.
    pub const fn now(&self) -> VirtualTime {
        self.kernel.now()
    }

    /// How unevenly the training examples are spread over clients, where clients train.
    pub fn skew(&self) -> Option<&Skew> {
        self.world.learner.as_ref().map(|learner| &learner.skew)
    }

    /// Cumulative regret.
    pub const fn regret(&self) -> Regret {
        self.regret
    }

    /// Reward of the last round, where there is one.
    pub const fn reward(&self) -> Option<f64> {
        self.reward
    }

    /// Metrics of the last round, empty if it was not evaluated.
    pub fn metrics(&self) -> &[(&'static str, f64)] {
        &self.metrics
    }

    /// Traffic, waste and counts so far.
    pub const fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// Times each client was selected.
    pub fn counts(&self) -> &[u32] {
        &self.counts
    }

    /// The digests so far.
    pub const fn digests(&self) -> &Digests {
        &self.digests
    }

    /// The global model as the contents of a safetensors file, where clients train.
    pub fn model_file(&self) -> Option<Vec<u8>> {
        let (learning, learner) = (self.learning.as_ref()?, self.world.learner.as_ref()?);
        Some(to_safetensors(&*learner.model, &learning.model()))
    }

    /// Whether clients train.
    pub const fn trains(&self) -> bool {
        self.learning.is_some()
    }

    /// Whether the next rounds spread the clients over the current rayon pool; changes no result.
    pub const fn set_parallel(&mut self, parallel: bool) {
        self.settings.parallel = parallel;
    }

    /// Selections per group so far, where groups are named.
    pub fn total_group_selections(&self) -> Option<serde_json::Map<String, serde_json::Value>> {
        if self.group_selections.is_empty() {
            return None;
        }
        let groups = self.world.population.groups();
        let total = |group: &Group| -> u64 {
            let first = group.first.index();
            self.counts[first..first + group.count].iter().map(|&count| u64::from(count)).sum()
        };
        let names = self.group_selections.iter().map(|(name, _)| name.clone());
        Some(names.zip(groups.iter().map(|group| total(group).into())).collect())
    }

    /// Ends the run: the final metrics (measured now if the last round was not evaluated) and the sink.
    pub fn finish(mut self) -> (Vec<(&'static str, f64)>, Accounts, S) {
        if self.metrics.is_empty()
            && let Some(learning) = &self.learning
        {
            self.metrics = learning.evaluate(self.settings.evaluate.clients, self.settings.parallel);
        }
        let now = self.kernel.now();
        for job in self.jobs.iter() {
            if job.phase == Phase::Compute {
                self.accounts.compute += job.compute_spent(now);
            }
            self.accounts.wasted_compute += job.compute_spent(now);
        }
        (self.metrics, self.accounts, self.sink)
    }
}
