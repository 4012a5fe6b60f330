//! How many jobs of a round are trained in a trial, and what all of them would have cost.

use super::super::clock::now;
use fedgenie_simulator::run::Trial;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Lets as many jobs of a round train as fit into its allowance. What a job costs is known from those before it; of the
/// first batch of a run only a few train.
#[derive(Debug)]
pub(super) struct Sampler {
    state: Mutex<State>,
    /// Fewest jobs of a batch that are trained: one for each thread that they are spread over.
    least: usize,
}

#[derive(Debug, Default)]
struct State {
    /// Seconds that the round may still train for.
    allowance: f64,
    /// Seconds per operation so far.
    rate: Option<f64>,
    tried: Tried,
    batch: Option<Batch>,
}

/// Jobs that are being trained.
#[derive(Debug)]
struct Batch {
    began: Instant,
    /// Operations of all jobs.
    all: f64,
    /// Operations of those that were chosen.
    part: f64,
    /// The share of jobs that were.
    shares: f64,
}

/// The training of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Tried {
    /// Jobs of the round, with examples to train on.
    pub jobs: usize,
    /// Jobs that were trained.
    pub trained: usize,
    /// Seconds that took.
    pub spent_s: f64,
    /// Seconds that all jobs would have taken.
    pub whole_s: f64,
}

impl Sampler {
    /// For a run whose jobs are spread over so many threads.
    pub fn new(threads: usize) -> Self {
        Self { state: Mutex::default(), least: threads }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a round that may train for so many seconds.
    pub fn open(&self, allowance: f64) {
        let mut state = self.state();
        (state.allowance, state.tried) = (allowance, Tried::default());
    }

    /// The training of the round so far.
    pub fn tried(&self) -> Tried {
        self.state().tried
    }
}

impl Trial for Sampler {
    fn choose(&self, operations: &[f64]) -> usize {
        let mut state = self.state();
        let (jobs, all) = (operations.len(), operations.iter().sum::<f64>());
        let share = state.rate.map_or(0.0, |rate| state.allowance / (rate * all).max(f64::MIN_POSITIVE));
        let most = ((jobs as f64 * share) as usize).max(self.least).min(jobs);
        state.tried.jobs += jobs;
        state.tried.trained += most;
        state.batch = Some(Batch { began: now(), all, part: 0.0, shares: most as f64 / jobs as f64 });
        most
    }

    fn begin(&self, operations: f64) {
        if let Some(batch) = &mut self.state().batch {
            (batch.part, batch.began) = (operations, now());
        }
    }

    fn end(&self) {
        let mut state = self.state();
        let Some(Batch { began, all, part, shares }) = state.batch.take() else { return };
        let spent = began.elapsed().as_secs_f64();
        // Tasks that do nothing have jobs without operations.
        let share = if part > 0.0 { part / all } else { shares };
        state.allowance = (state.allowance - spent).max(0.0);
        state.rate = (part > 0.0).then_some(spent / part);
        state.tried.spent_s += spent;
        state.tried.whole_s += spent / share;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn train(sampler: &Sampler, operations: &[f64]) -> usize {
        let most = sampler.choose(operations);
        sampler.begin(operations[..most].iter().sum());
        sampler.end();
        most
    }

    #[test]
    fn the_first_batch_trains_few_and_a_known_one_as_many_as_fit() {
        let sampler = Sampler::new(2);
        sampler.open(1e9);
        assert_eq!(train(&sampler, &[5.0; 10]), 2);
        assert_eq!(train(&sampler, &[5.0; 10]), 10, "the allowance is long");
        sampler.open(0.0);
        assert_eq!(train(&sampler, &[1.0, 3.0, 8.0, 4.0]), 2, "and is over");
        let Tried { jobs, trained, spent_s, whole_s } = sampler.tried();
        assert_eq!((jobs, trained), (4, 2));
        assert!((whole_s - 4.0 * spent_s).abs() <= 1e-9 * whole_s, "4 of 16 operations");
        assert_eq!(train(&sampler, &[5.0]), 1);
        sampler.open(0.0);
        assert_eq!(train(&sampler, &[0.0; 6]), 2);
        let Tried { spent_s, whole_s, .. } = sampler.tried();
        assert!((whole_s - 3.0 * spent_s).abs() <= 1e-9 * whole_s, "without operations, jobs count");
        sampler.open(1.0);
        sampler.end();
        assert_eq!(sampler.tried(), Tried::default(), "an end without a beginning is none");
    }
}
