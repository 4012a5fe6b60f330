//! Local training of many clients at once.
//!
//! # Definition
//! Each client starts from the model it was sent and makes steps of its optimizer on the mini-batches of
//! [`local`](crate::local); a client with fewer examples than a batch makes one full step an epoch.
//!
//! # Source
//! H. B. McMahan et al., "Communication-efficient learning of deep networks from decentralized data", AISTATS 2017,
//! Algorithm 1, ClientUpdate.
//!
//! # Cost
//! No allocation per step: a worker has one scratch, and an [`Update`] keeps its buffer from round to round. Memory: a
//! scratch for each thread, and the parameters of each job.
//!
//! # Determinism
//! Stream (BatchOrder, client, job), consumed epoch by epoch, and stream (TrainingNoise, client, job), consumed step by
//! step, layer by layer. Jobs are independent and write to their own update, so the
//! result does not depend on the number of threads. NaN has no unique bits: an update that diverged has its NaNs
//! replaced by one and the same.

mod dense_job;
pub mod optimizer;
pub mod schedule;

pub use crate::local::Length;
pub(crate) use dense_job::{Buffers, Slopes};
pub use dense_job::{Contrasted, DenseJob, Wanted};
pub use optimizer::{Optimizer, OptimizerConfig};
pub use schedule::Schedule;

use crate::data::Dataset;
use crate::lanes::Path;
pub use crate::layout::Update;
use crate::local::Told;
use crate::model::{Batch, Contrast, Model, Scratch};
use fedgenie_core::id::{ClientId, JobNumber, Round};
use fedgenie_core::rng::{Purpose, StreamRng, Streams};
use optimizer::{Decay, Step};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use thiserror::Error;

/// How a client trains; made by [`LocalTraining::new`], the other settings being public.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalTraining {
    /// When it stops.
    pub length: Length,
    /// How long each client trains, in the same unit, where clients differ.
    pub lengths: Option<Arc<[u32]>>,
    /// Examples in a mini-batch; at least 1. With `usize::MAX` each step is on all examples of a client.
    pub batch: usize,
    /// The rule of a step.
    pub optimizer: Optimizer,
    /// How the learning rate changes from round to round.
    pub schedule: Schedule,
    /// The largest norm of a gradient; larger ones are scaled down.
    pub clip: Option<f32>,
    /// Weight μ of the proximal term (FedProx); 0 without one.
    pub proximal: f32,
    /// Weight decay of parts of the model, beside the optimizer's; ascending and apart.
    pub decays: Vec<Decay>,
    /// Noise that a client adds to its update before it sends it, if any; for tasks that can.
    pub noise: Option<Noise>,
}

/// Normal noise on updates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Its standard deviation; above 0 and finite.
    pub sigma: f32,
    /// The numbers that get noise.
    pub scope: NoiseScope,
}

/// Which numbers of a table get noise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum NoiseScope {
    /// All of the table, which then travels whole.
    #[default]
    Table,
    /// Those rows that are sent anyway.
    Rows,
}

/// Why a client cannot train like this.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{key} = {found}: has to be {expected}")]
pub struct TrainingError {
    /// Name of the setting.
    pub key: &'static str,
    /// Its value.
    pub found: f64,
    /// The values that would be right.
    pub expected: &'static str,
}

impl LocalTraining {
    /// So many epochs of an optimizer at a constant learning rate, neither clipped nor pulled.
    ///
    /// # Errors
    /// Names the setting of the optimizer that is out of its range.
    pub fn new(epochs: u32, batch: usize, optimizer: &OptimizerConfig) -> Result<Self, TrainingError> {
        Ok(Self {
            length: Length::Epochs(epochs),
            lengths: None,
            batch,
            optimizer: Optimizer::new(optimizer)?,
            schedule: Schedule::default(),
            clip: None,
            proximal: 0.0,
            decays: Vec::new(),
            noise: None,
        })
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// Names the first setting out of its range. [`Trainer::train`] panics on such settings.
    pub fn check(&self) -> Result<(), TrainingError> {
        let refuse = |key| Err(TrainingError { key, found: 0.0, expected: "at least 1" });
        match self.length {
            Length::Epochs(0) => return refuse("epochs"),
            Length::Steps(0) => return refuse("steps"),
            Length::Epochs(_) | Length::Steps(_) => {}
        }
        if self.batch == 0 {
            return refuse("batch");
        }
        self.schedule.check()?;
        optimizer::check_regularisation(self.clip.map(f64::from), Some(f64::from(self.proximal)))
    }

    /// The learning rate η of the steps of a job that was dispatched in a round.
    pub fn rate(&self, round: Round) -> f32 {
        self.optimizer.rate(self.schedule.factor(round.0) as f32)
    }

    /// The epochs of every job; `None` if jobs are counted in steps, or differ.
    pub fn epochs(&self) -> Option<u32> {
        match self.length {
            Length::Epochs(epochs) if self.lengths.is_none() => Some(epochs),
            Length::Epochs(_) | Length::Steps(_) => None,
        }
    }

    /// Whether jobs are counted in steps.
    pub const fn counts_steps(&self) -> bool {
        matches!(self.length, Length::Steps(_))
    }

    /// The length of a client's jobs.
    pub fn length_of(&self, client: ClientId) -> Length {
        let Some(lengths) = &self.lengths else { return self.length };
        let own = lengths[client.index()];
        match self.length {
            Length::Epochs(_) => Length::Epochs(own),
            Length::Steps(_) => Length::Steps(own),
        }
    }

    /// The training of a client's job, which may have epochs of its own; `None` if it is this one.
    pub fn of_job(&self, client: ClientId, epochs: Option<u32>) -> Option<Self> {
        let own = || Self { length: self.length_of(client), lengths: None, ..self.clone() };
        epochs.map(|epochs| self.of_epochs(epochs)).or_else(|| self.lengths.is_some().then(own))
    }

    /// Examples that a client goes through that has this many.
    pub fn examples_of(&self, client: ClientId, size: usize) -> f64 {
        self.of_job(client, None).map_or_else(|| self.examples(size), |own| own.examples(size))
    }

    /// The same training, of so many epochs.
    #[must_use]
    pub fn of_epochs(&self, epochs: u32) -> Self {
        Self { length: Length::Epochs(epochs), lengths: None, ..self.clone() }
    }

    /// Examples that a client with this many goes through, the same ones several times if need be.
    pub fn examples(&self, size: usize) -> f64 {
        match self.length {
            Length::Epochs(epochs) => f64::from(epochs) * size as f64,
            // Full batches but for the last of each epoch.
            Length::Steps(steps) => {
                let per_epoch = size.div_ceil(self.batch).max(1);
                let (epochs, rest) = (steps as usize / per_epoch, steps as usize % per_epoch);
                epochs as f64 * size as f64 + (rest * self.batch).min(size) as f64
            }
        }
    }
}

/// A client's training.
#[derive(Clone, Copy, Debug)]
pub struct TrainingJob<'a> {
    /// The client that trains.
    pub client: ClientId,
    /// The server's round in which it was dispatched; decides the learning rate.
    pub round: Round,
    /// Number of the job; with the client, it selects the stream of random numbers.
    pub number: JobNumber,
    /// The model it was sent.
    pub start: &'a [f32],
    /// Its examples. Without any, the update is the start, its loss 0.
    pub examples: &'a [u32],
}

/// Buffers that a thread reuses from job to job.
#[derive(Default)]
pub struct Worker {
    /// Of the model.
    pub(crate) scratch: Scratch,
    order: Vec<u32>,
    buffers: Buffers,
}

impl Worker {
    /// With kernels compiled for a set of processor features.
    pub fn on(path: Path) -> Self {
        Self { scratch: Scratch::on(path), ..Self::default() }
    }
}

/// Trains clients; has the inputs that all jobs of a round share.
#[derive(Clone, Copy)]
pub struct Trainer<'a> {
    /// The model that learns.
    pub model: &'a dyn Model,
    /// The data of all clients.
    pub data: &'a Dataset,
    /// How each client trains.
    pub settings: &'a LocalTraining,
    /// The run's random numbers.
    pub streams: &'a Streams,
}

impl Trainer<'_> {
    /// Trains all jobs, on all cores of the current pool if `parallel`; update `i` is that of job `i`.
    ///
    /// # Panics
    /// If the numbers of jobs and updates differ, the settings are out of range, a start is not the model's length, or
    /// the model does not fit the data.
    pub fn train(&self, jobs: &[TrainingJob<'_>], parallel: bool, updates: &mut [Update]) {
        self.train_on(Path::detect(), jobs, parallel, updates);
    }

    /// As [`Trainer::train`], with kernels compiled for a given set of processor features.
    ///
    /// # Panics
    /// As [`Trainer::train`].
    pub fn train_on(&self, path: Path, jobs: &[TrainingJob<'_>], parallel: bool, updates: &mut [Update]) {
        assert_eq!(self.settings.check(), Ok(()), "settings are checked before");
        assert_eq!(self.model.fits(self.data), Ok(()), "model and data are checked before");
        let new = || Worker::on(path);
        let operations = jobs.iter().map(|job| self.operations(job.examples.len())).sum();
        spread(jobs, updates, parallel.then_some(operations), new, |worker: &mut Worker, job, update| {
            self.train_one(job, false, worker, update);
        });
    }

    /// Operations of a job with so many examples, roughly.
    pub fn operations(&self, examples: usize) -> f64 {
        self.settings.examples(examples) * 4.0 * self.model.parameters() as f64
    }

    /// Trains one client on the calling thread. With `loss_rms`, the loss of each example is also evaluated when the
    /// first epoch meets it: one more forward pass.
    ///
    /// # Panics
    /// As [`Trainer::train`].
    pub fn train_one(&self, job: &TrainingJob<'_>, loss_rms: bool, worker: &mut Worker, update: &mut Update) {
        let TrainingJob { client, round, number, start, examples } = *job;
        let sent = (start, self.model.trained());
        let job = DenseJob::new(self.settings, self.streams, (client, round, number), sent);
        let job = DenseJob { loss_rms, ..job };
        self.do_job(&job, (client, number), examples, worker, Wanted::Update(update));
    }

    /// Does a job of a client on these examples, or works out its mean gradient.
    pub(crate) fn do_job(
        &self,
        job: &DenseJob<'_>,
        (client, number): (ClientId, JobNumber),
        examples: &[u32],
        Worker { scratch, order, buffers }: &mut Worker,
        mut wanted: Wanted<'_>,
    ) {
        let Self { model, data, .. } = *self;
        assert_eq!(job.start.len(), model.parameters(), "{client} was sent a model of another length");
        order.clear();
        order.extend_from_slice(examples);
        let noise = self.streams.stream(Purpose::TrainingNoise, client.0, number.0);
        // A mean gradient is that of the loss alone.
        let contrast = job.contrast.filter(|_| matches!(wanted, Wanted::Update(_)));
        let (contrast, seen) = (contrast.map(|contrast| (contrast, job.start)), [Vec::new(), Vec::new()]);
        let mut rows = Rows { model, data, noise, squares: job.loss_rms, contrast, seen, scratch };
        if !job.run(order, &mut rows, buffers, &mut wanted) {
            // Numbers left in padding may not be finite; no later job should meet them.
            *scratch = Scratch::on(scratch.path());
        }
        if let Wanted::Update(update) = wanted {
            // In the precision of the losses that it is the mean of.
            update.first_loss = f64::from(update.first_loss as f32);
        }
    }
}

/// A model's loss on rows.
struct Rows<'a> {
    model: &'a dyn Model,
    data: &'a Dataset,
    noise: StreamRng,
    /// Whether the loss of each row is asked for: one more forward pass.
    squares: bool,
    /// A contrast, and the model that was sent.
    contrast: Option<(Contrasted<'a>, &'a [f32])>,
    /// Representations of a mini-batch under the model that was sent, and under the client's own last one.
    seen: [Vec<f32>; 2],
    scratch: &'a mut Scratch,
}

impl Slopes for Rows<'_> {
    fn slopes(&mut self, parameters: &mut [f32], batch: &[u32], gradient: &mut [f32], tally: Told<'_>) -> bool {
        let squares = self.squares(parameters, batch, &tally);
        let loss = match self.contrast {
            Some(contrast) => self.contrasted(contrast, parameters, batch, gradient, None),
            None => {
                let Self { model, data, noise, scratch, .. } = self;
                model.loss_and_gradient(parameters, Batch { data, examples: batch }, gradient, noise, scratch)
            }
        };
        tell(tally, batch.len(), loss, squares)
    }

    fn descend(
        &mut self,
        parameters: &mut [f32],
        batch: &[u32],
        gradient: &mut [f32],
        tally: Told<'_>,
        step: &mut Step<'_>,
    ) -> bool {
        let squares = self.squares(parameters, batch, &tally);
        let step = &mut |first, parameters: &mut [f32], slopes: &[f32]| step.take(first, parameters, slopes);
        let loss = match self.contrast {
            Some(contrast) => self.contrasted(contrast, parameters, batch, gradient, Some(step)),
            None => {
                let Self { model, data, noise, scratch, .. } = self;
                model.descend(parameters, Batch { data, examples: batch }, gradient, noise, scratch, step)
            }
        };
        tell(tally, batch.len(), loss, squares)
    }
}

impl Rows<'_> {
    /// A step with a contrast.
    fn contrasted(
        &mut self,
        (Contrasted { mu, temperature, previous }, start): (Contrasted<'_>, &[f32]),
        parameters: &mut [f32],
        batch: &[u32],
        gradient: &mut [f32],
        step: Option<crate::model::Step<'_>>,
    ) -> f32 {
        let Self { model, data, noise, scratch, seen: [near, far], .. } = self;
        let batch = Batch { data, examples: batch };
        for (seen, of) in [(&mut *near, start), (&mut *far, previous.unwrap_or(start))] {
            seen.clear();
            model.hidden_outputs(of, batch, scratch, seen);
        }
        let contrast = Contrast { mu, temperature, near, far };
        model.descend_contrasted(parameters, batch, gradient, (noise, scratch), &contrast, step)
    }

    /// The sum of the squared losses of a mini-batch, if somebody asks for it, else 0.
    fn squares(&mut self, parameters: &[f32], batch: &[u32], tally: &Told<'_>) -> f64 {
        if tally.is_none() || !self.squares {
            return 0.0;
        }
        squared_losses(self.model, parameters, Batch { data: self.data, examples: batch }, self.scratch)
    }
}

/// Tells the mean loss of a mini-batch; returns whether it is finite.
fn tell(tally: Told<'_>, examples: usize, loss: f32, squares: f64) -> bool {
    if let Some(tally) = tally {
        tally.tell_batch(examples, f64::from(loss) * examples as f64, squares);
    }
    loss.is_finite()
}

/// The sum of the squared losses of single examples.
pub(crate) fn squared_losses(model: &dyn Model, parameters: &[f32], batch: Batch<'_>, scratch: &mut Scratch) -> f64 {
    let square = |batch: Batch<'_>| {
        let loss = model.evaluate(parameters, batch, scratch).loss();
        loss * loss
    };
    batch.chunks(1).map(square).sum()
}

/// Does the work of each job on its update: in order, or on all cores of the current pool if `operations`, roughly all
/// that there is to do, are given. Every thread has a worker of its own, made by `new`.
///
/// # Panics
/// If the numbers of jobs and updates differ.
pub(crate) fn spread<J: Sync, W>(
    jobs: &[J],
    updates: &mut [Update],
    operations: Option<f64>,
    new: impl Fn() -> W + Sync + Send,
    one: impl Fn(&mut W, &J, &mut Update) + Sync + Send,
) {
    // A task that is worth handing to another thread takes some 100 µs.
    const OPERATIONS_PER_TASK: f64 = 1_000_000.0;
    assert_eq!(jobs.len(), updates.len(), "every job has its update");
    if let Some(operations) = operations {
        let per_job = operations / jobs.len().max(1) as f64;
        let least = ((OPERATIONS_PER_TASK / per_job.max(1.0)) as usize).max(1);
        let pairs = jobs.par_iter().zip(updates.par_iter_mut()).with_min_len(least);
        pairs.for_each_init(new, |worker, (job, update)| one(worker, job, update));
    } else {
        let mut worker = new();
        jobs.iter().zip(updates).for_each(|(job, update)| one(&mut worker, job, update));
    }
}

#[cfg(test)]
mod tests;
