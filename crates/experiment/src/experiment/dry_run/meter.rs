//! The clock of a run that is tried out: what a round, an evaluation and the rest cost.

use super::super::Ended;
use super::super::clock::now;
use super::super::pace::{Pace, moved};
use super::sampler::{Sampler, Tried};
use fedgenie_simulator::run::{Run, RunError};
use std::sync::Arc;
use std::time::Instant;

/// Rounds that are tried at least, where they are not much longer than the time for the run.
const LEAST_ROUNDS: u32 = 2;
/// How much longer than its time a run may take, so that it has so many rounds.
const PATIENCE: f64 = 3.0;

/// Rounds of one kind, from the second on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    pub count: u32,
    /// All of them together.
    pub seconds: f64,
}

impl Rounds {
    /// Seconds of one; `None` without any.
    pub fn mean(self) -> Option<f64> {
        (self.count > 0).then(|| self.seconds / f64::from(self.count))
    }
}

/// Observations of a run that was tried out. Seconds are of wall time, those of training extrapolated to all jobs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    pub rounds: u32,
    /// The first round, its evaluation included.
    pub first_s: f64,
    pub is_first_evaluated: bool,
    /// Later rounds that were not evaluated.
    pub plain: Rounds,
    /// Later rounds that were.
    pub evaluated: Rounds,
    /// An evaluation by itself; 0 where nothing is learned.
    pub evaluation_s: f64,
    /// Of all rounds: training, and jobs.
    pub training: Tried,
    /// Rounds as they were played, without what was extrapolated.
    pub played_s: f64,
    /// Measurements beside the run.
    pub measuring_s: f64,
    /// Whether the last round was evaluated.
    pub is_last_evaluated: bool,
    /// Most jobs of a round that were not trained.
    pub left_out: usize,
    /// Jobs of a round at most.
    pub most_jobs: usize,
    /// Updates that arrived.
    pub arrived: u64,
    /// Virtual time at the end.
    pub virtual_s: f64,
    /// Bytes of clients moved.
    pub bytes: u64,
    /// Bytes of an update, as it travels.
    pub update_bytes: u64,
    /// Bytes of the model's file, if it is wanted.
    pub model_bytes: u64,
}

/// Times a run, and ends it when its time is over.
pub(super) struct Meter {
    /// Seconds for the run.
    time: f64,
    /// `None` if all jobs are trained.
    sampler: Option<Arc<Sampler>>,
    wants_model: bool,
    began: Instant,
    pub seen: Seen,
}

impl Meter {
    /// For a run that may take so many seconds.
    pub fn new(time: f64, sampler: Option<Arc<Sampler>>, wants_model: bool) -> Self {
        Self { time, sampler, wants_model, began: now(), seen: Seen::default() }
    }

    fn open(&mut self) {
        if let Some(sampler) = &self.sampler {
            sampler.open((self.time - self.seen.played_s).max(0.0));
        }
        self.began = now();
    }

    /// Notes a round that has just closed.
    fn note(&mut self, is_evaluated: bool) {
        let spent = self.began.elapsed().as_secs_f64();
        let tried = self.sampler.as_ref().map_or_else(Tried::default, |sampler| sampler.tried());
        let seconds = (spent - tried.spent_s).max(0.0) + tried.whole_s;
        let seen = &mut self.seen;
        seen.rounds += 1;
        seen.played_s += spent;
        seen.is_last_evaluated = is_evaluated;
        let rounds = if is_evaluated { &mut seen.evaluated } else { &mut seen.plain };
        if seen.rounds == 1 {
            (seen.first_s, seen.is_first_evaluated) = (seconds, is_evaluated);
        } else {
            rounds.count += 1;
            rounds.seconds += seconds;
        }
        let Tried { jobs, trained, spent_s, whole_s } = tried;
        seen.training.jobs += jobs;
        seen.training.trained += trained;
        seen.training.spent_s += spent_s;
        seen.training.whole_s += whole_s;
        seen.left_out = seen.left_out.max(jobs - trained);
        seen.most_jobs = seen.most_jobs.max(jobs);
    }

    fn is_enough(&self) -> bool {
        let Seen { rounds, played_s, .. } = self.seen;
        played_s >= self.time && (rounds >= LEAST_ROUNDS || played_s >= PATIENCE * self.time)
    }

    /// Measures what is known at the end alone.
    fn end(&mut self, run: &Run<'_>) -> Result<(), RunError> {
        let begin = now();
        let seen = &mut self.seen;
        if run.trains() {
            run.measure_again()?;
            seen.evaluation_s = begin.elapsed().as_secs_f64();
            // The first one may have met cold memory.
            if !seen.is_last_evaluated && seen.evaluation_s < self.time {
                let again = now();
                run.measure_again()?;
                seen.evaluation_s = again.elapsed().as_secs_f64();
            }
        }
        if self.wants_model {
            seen.model_bytes = run.model_file().map_or(0, |file| file.len() as u64);
        }
        seen.arrived = run.accounts().arrived;
        seen.update_bytes = run.accounts().up_bytes / seen.arrived.max(1);
        (seen.virtual_s, seen.bytes) = (run.now().seconds(), moved(run));
        seen.measuring_s = begin.elapsed().as_secs_f64();
        Ok(())
    }
}

impl Pace for Meter {
    fn begin(&mut self, run: &mut Run<'_>) {
        if let Some(sampler) = &self.sampler {
            run.try_out(sampler.clone());
        }
        self.open();
    }

    fn closed(&mut self, run: &Run<'_>, is_over: bool) -> Result<Option<Ended>, RunError> {
        self.note(!run.metrics().is_empty());
        if is_over || self.is_enough() {
            self.end(run)?;
            return Ok(Some(Ended::Rounds));
        }
        self.open();
        Ok(None)
    }
}
