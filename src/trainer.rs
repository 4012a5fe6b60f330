//! Local training of many clients at once.
//!
//! # Definition
//! Each client starts from the model it was sent and makes `epochs` passes over its examples by plain stochastic
//! gradient descent: `w ← w − η ∇(mean loss of the mini-batch)`. Mini-batches are consecutive pieces of a fresh random
//! order of its examples in each epoch; the last one may be smaller, and a client with fewer examples than a batch makes
//! one full step an epoch.
//!
//! # Source
//! H. B. McMahan et al., "Communication-efficient learning of deep networks from decentralized data", AISTATS 2017,
//! Algorithm 1, ClientUpdate.
//!
//! # Cost
//! No allocation per step: a worker has one scratch, and an [`Update`] keeps its buffer from round to round.
//!
//! # Determinism
//! Stream (BatchOrder, client, round of dispatch), consumed epoch by epoch. Jobs are independent and write to their own
//! place, so the result does not depend on the number of threads. NaN has no unique bits: an update that diverged has
//! its NaNs replaced by one and the same.

pub mod optimizer;
pub mod schedule;

use crate::data::Dataset;
use crate::id::{ClientId, Round};
use crate::model::{Model, Scratch};
use crate::rng::{Purpose, StreamRng, Streams};
use rayon::prelude::*;
use thiserror::Error;

/// How a client trains.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalTraining {
    /// Passes over the client's examples; at least 1.
    pub epochs: u32,
    /// Examples in a mini-batch; at least 1.
    pub batch: usize,
    /// Step size η; finite and positive.
    pub learning_rate: f64,
}

/// Why a client cannot train like this.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{key} = {found}: has to be {expected}")]
pub struct TrainingError {
    /// Name of the setting.
    pub key: &'static str,
    /// Its value.
    pub found: f64,
    /// What would be right.
    pub expected: &'static str,
}

impl LocalTraining {
    /// Checks the ranges.
    ///
    /// # Errors
    /// Names the first setting out of its range. [`train`] panics on such settings.
    pub fn check(&self) -> Result<(), TrainingError> {
        let refuse = |key, found, expected| Err(TrainingError { key, found, expected });
        // The step size is used in single precision, where it must not vanish or overflow either.
        let learning_rate = self.learning_rate as f32;
        if self.epochs == 0 {
            refuse("epochs", 0.0, "at least 1")
        } else if self.batch == 0 {
            refuse("batch", 0.0, "at least 1")
        } else if !(learning_rate.is_finite() && learning_rate > 0.0) {
            refuse("learning_rate", self.learning_rate, "positive and finite in single precision")
        } else {
            Ok(())
        }
    }
}

/// A client's training.
#[derive(Clone, Copy, Debug)]
pub struct TrainingJob<'a> {
    /// Who trains.
    pub client: ClientId,
    /// The round in which it was dispatched.
    pub round: Round,
    /// The model it was sent.
    pub start: &'a [f32],
    /// Its examples. Without any, the update is the start, its loss 0.
    pub examples: &'a [u32],
}

/// What a client sends back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Update {
    /// Its model after training. Not to be aggregated if it diverged.
    pub parameters: Vec<f32>,
    /// Mean loss of its examples during the first epoch, each batch as seen before its step.
    pub first_loss: f32,
    /// Whether a parameter or a loss is not finite; training stops at the first such loss.
    pub diverged: bool,
}

/// What a worker reuses from job to job.
#[derive(Default)]
struct Worker {
    scratch: Scratch,
    gradient: Vec<f32>,
    order: Vec<u32>,
}

/// Trains all jobs, on all cores of the current pool if `parallel`; update `i` is that of job `i`.
///
/// # Panics
/// If the numbers of jobs and updates differ, the settings are out of range, a start is not the model's length, or the
/// model does not fit the data.
pub fn train(
    jobs: &[TrainingJob<'_>],
    model: &dyn Model,
    data: &Dataset,
    settings: &LocalTraining,
    streams: &Streams,
    parallel: bool,
    updates: &mut [Update],
) {
    assert_eq!(jobs.len(), updates.len(), "every job has its update");
    assert_eq!(settings.check(), Ok(()), "settings are checked before");
    assert_eq!(model.fits(data), Ok(()), "model and data are checked before");
    let one = |worker: &mut Worker, (job, update): (&TrainingJob<'_>, &mut Update)| {
        let mut rng = streams.stream(Purpose::BatchOrder, job.client.0, job.round.0);
        train_client(job, model, data, settings, &mut rng, worker, update);
    };
    if parallel {
        jobs.par_iter()
            .zip(updates.par_iter_mut())
            .with_min_len(jobs_per_task(jobs, model.parameters(), settings.epochs))
            .for_each_init(Worker::default, one);
    } else {
        let mut worker = Worker::default();
        jobs.iter().zip(updates).for_each(|pair| one(&mut worker, pair));
    }
}

/// How many jobs make a task that is worth handing to another thread: some 100 µs.
fn jobs_per_task(jobs: &[TrainingJob<'_>], parameters: usize, epochs: u32) -> usize {
    const OPERATIONS_PER_TASK: usize = 1_000_000;
    let examples = jobs.iter().map(|job| job.examples.len()).sum::<usize>() / jobs.len().max(1);
    let operations = examples.saturating_mul(4 * parameters).saturating_mul(epochs as usize).max(1);
    (OPERATIONS_PER_TASK / operations).max(1)
}

fn train_client(
    job: &TrainingJob<'_>,
    model: &dyn Model,
    data: &Dataset,
    settings: &LocalTraining,
    rng: &mut StreamRng,
    worker: &mut Worker,
    update: &mut Update,
) {
    assert_eq!(job.start.len(), model.parameters(), "{} was sent a model of another length", job.client);
    let learning_rate = settings.learning_rate as f32;
    update.parameters.clear();
    update.parameters.extend_from_slice(job.start);
    update.first_loss = 0.0;
    worker.gradient.resize(model.parameters(), 0.0);
    worker.order.clear();
    worker.order.extend_from_slice(job.examples);
    let mut loss_sum = 0.0;
    let mut is_finite = true;
    'training: for epoch in 0..settings.epochs {
        rng.shuffle(&mut worker.order);
        for batch in worker.order.chunks(settings.batch) {
            let Worker { scratch, gradient, .. } = worker;
            let loss = model.loss_and_gradient(&update.parameters, data, batch, gradient, scratch);
            if epoch == 0 {
                loss_sum += f64::from(loss) * batch.len() as f64;
            }
            is_finite = loss.is_finite();
            if !is_finite {
                break 'training;
            }
            for (parameter, slope) in update.parameters.iter_mut().zip(gradient.iter()) {
                *parameter -= learning_rate * slope;
            }
        }
    }
    if !job.examples.is_empty() {
        update.first_loss = (loss_sum / job.examples.len() as f64) as f32;
    }
    update.diverged = !is_finite
        || !update.first_loss.is_finite()
        || !update.parameters.iter().all(|parameter| parameter.is_finite());
    if update.diverged {
        let numbers = update.parameters.iter_mut().chain(std::iter::once(&mut update.first_loss));
        numbers.filter(|number| number.is_nan()).for_each(|number| *number = f32::NAN);
    }
}

#[cfg(test)]
mod tests;
