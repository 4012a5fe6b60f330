//! Jobs whose steps move all parameters of a model: labelled rows, graphs, attention over items.
//!
//! # Definition
//! [`Slopes`] gives a model's loss on a mini-batch and its slopes by the parameters. A [`DenseJob`] turns them into a
//! client's update, by steps of the optimizer of `[training]` in the course of [`local`](crate::local); or into the
//! *mean gradient*: the mean of the slopes of the mini-batches of the job's first epoch, weighted by their examples,
//! all at the model that was sent, without clipping, correction, proximal term or decay. It draws the random numbers
//! of the first epoch. Parameters that a pass updates by itself, such as running means, are put back after each
//! mini-batch. Parameters that are *frozen* have no slope, and stay as they are.
//!
//! # Determinism
//! Stream (BatchOrder, client, job). The mean gradient is added up in `f64`, in the order of mini-batches. NaN has no
//! unique bits: all NaNs of an update or a mean gradient are one and the same.

use super::optimizer::{Moments, Proximal, Regularisation, Step};
use super::{Length, LocalTraining};
use crate::layout::Update;
use crate::local::{Course, Stepper, Told};
use fedgenie_core::halt::{Halt, NEVER};
use fedgenie_core::id::{ClientId, JobNumber, Round};
use fedgenie_core::rng::{Purpose, StreamRng, Streams};
use std::ops::Range;

/// A model's loss, and its slopes by the parameters.
pub(crate) trait Slopes {
    /// Overwrites `gradient` by the slopes of the mean loss of a mini-batch by the trained parameters. It may change
    /// other parameters, if a pass updates them by itself. Tells the losses of the examples to `tally`, if there is
    /// one. Returns whether the loss is finite.
    fn slopes(&mut self, parameters: &mut [f32], batch: &[u32], gradient: &mut [f32], tally: Told<'_>) -> bool;

    /// The same, and moves the trained parameters if the loss is finite; the gradient means nothing afterwards.
    fn descend(
        &mut self,
        parameters: &mut [f32],
        batch: &[u32],
        gradient: &mut [f32],
        tally: Told<'_>,
        step: &mut Step<'_>,
    ) -> bool {
        let is_finite = self.slopes(parameters, batch, gradient, tally);
        if is_finite {
            step.take(0, &mut parameters[..gradient.len()], gradient);
        }
        is_finite
    }
}

/// A job whose steps move all parameters.
#[derive(Clone, Debug)]
pub struct DenseJob<'a> {
    /// How clients train.
    pub settings: &'a LocalTraining,
    /// The model it was sent.
    pub start: &'a [f32],
    /// The model that the proximal term pulls towards; that one if `None`.
    pub anchor: Option<&'a [f32]>,
    /// How many parameters, at its beginning, are trained.
    pub trained: usize,
    /// Parameters that an update leaves as they are, in ascending ranges.
    pub frozen: &'a [Range<usize>],
    /// Factor of the learning rate.
    pub lr_factor: f32,
    /// Whole epochs in place of those of the settings.
    pub epochs: Option<u32>,
    /// Numbers added to every gradient, one for each trained parameter.
    pub correction: Option<&'a [f32]>,
    /// A contrast that is added to the loss.
    pub contrast: Option<Contrasted<'a>>,
    /// Puts examples in order, epoch by epoch: stream (BatchOrder, client, job).
    pub order: StreamRng,
    /// Whether a batch of all examples has their own order.
    pub keeps_whole: bool,
    /// Whether the update has the root mean square of its losses.
    pub loss_rms: bool,
    /// When it ends early, with an update that is not used.
    pub halt: &'a Halt,
}

/// A contrast of representations in a job: see [`crate::model::contrast`].
#[derive(Clone, Copy, Debug)]
pub struct Contrasted<'a> {
    /// Its weight in the loss.
    pub mu: f64,
    /// Its temperature.
    pub temperature: f64,
    /// The model to be far from; `None` for the one that was sent, which is the one to be near to.
    pub previous: Option<&'a [f32]>,
}

/// The result wanted of a job, and where it goes.
#[derive(Debug)]
pub enum Wanted<'a> {
    /// The client's update.
    Update(&'a mut Update),
    /// The mean gradient, zeros behind the trained parameters; zeros without examples.
    Gradient(&'a mut Vec<f32>),
}

/// Buffers that a thread reuses from job to job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffers {
    gradient: Vec<f32>,
    moments: Moments,
}

/// A step of the optimizer.
struct Steps<'a> {
    job: &'a DenseJob<'a>,
    extra: Regularisation<'a>,
    model: &'a mut dyn Slopes,
    buffers: &'a mut Buffers,
    parameters: &'a mut [f32],
}

impl Stepper for Steps<'_> {
    fn step(&mut self, batch: &[u32], _number: u64, tally: Told<'_>) -> bool {
        let Self { job, extra, model, buffers: Buffers { gradient, moments }, parameters } = self;
        if extra.is_by_parts() && job.frozen.is_empty() {
            let step = &mut job.settings.optimizer.next_step(job.lr_factor, extra, moments);
            return model.descend(parameters, batch, gradient, tally, step);
        }
        let is_finite = model.slopes(parameters, batch, gradient, tally);
        for range in job.frozen {
            gradient[range.start.min(job.trained)..range.end.min(job.trained)].fill(0.0);
        }
        if is_finite {
            let trained = &mut parameters[..job.trained];
            job.settings.optimizer.step(trained, gradient, job.lr_factor, extra, moments);
        }
        // Decay, a pull, or a pass may have moved them.
        for range in job.frozen {
            parameters[range.clone()].copy_from_slice(&job.start[range.clone()]);
        }
        is_finite
    }
}

/// Adds up slopes without moving anything.
struct Sums<'a> {
    start: &'a [f32],
    model: &'a mut dyn Slopes,
    gradient: &'a mut [f32],
    parameters: Vec<f32>,
    sums: Vec<f64>,
}

impl Stepper for Sums<'_> {
    fn step(&mut self, batch: &[u32], _number: u64, _tally: Told<'_>) -> bool {
        self.model.slopes(&mut self.parameters, batch, self.gradient, None);
        let trained = self.sums.len();
        self.parameters[trained..].copy_from_slice(&self.start[trained..]);
        let examples = batch.len() as f64;
        self.sums.iter_mut().zip(&*self.gradient).for_each(|(sum, &slope)| *sum += examples * f64::from(slope));
        true
    }
}

impl<'a> DenseJob<'a> {
    /// A client's job of some number, in a round, that starts from a model; as the settings say in all else.
    pub fn new(
        settings: &'a LocalTraining,
        streams: &Streams,
        (client, round, number): (ClientId, Round, JobNumber),
        (start, trained): (&'a [f32], usize),
    ) -> Self {
        let lr_factor = settings.schedule.factor(round.0) as f32;
        let order = streams.stream(Purpose::BatchOrder, client.0, number.0);
        let (epochs, correction, contrast, keeps_whole, loss_rms) = (None, None, None, false, false);
        let halt = &NEVER;
        let (anchor, frozen) = (None, &[][..]);
        Self {
            settings,
            start,
            anchor,
            trained,
            frozen,
            lr_factor,
            epochs,
            correction,
            contrast,
            order,
            keeps_whole,
            loss_rms,
            halt,
        }
    }

    fn course(&self, length: Length) -> Course<'a> {
        let Self { keeps_whole, halt, .. } = *self;
        Course { length, batch: self.settings.batch, order: self.order.clone(), keeps_whole, halt }
    }

    /// Makes the wanted result from some examples; returns whether all of it is finite. Sets no private state.
    pub(crate) fn run(
        &self,
        examples: &mut [u32],
        model: &mut dyn Slopes,
        buffers: &mut Buffers,
        wanted: &mut Wanted<'_>,
    ) -> bool {
        buffers.gradient.resize(self.trained, 0.0);
        match wanted {
            Wanted::Update(update) => self.train(examples, model, buffers, update),
            Wanted::Gradient(gradient) => self.gradient(examples, model, &mut buffers.gradient, gradient),
        }
    }

    fn train(&self, examples: &mut [u32], model: &mut dyn Slopes, buffers: &mut Buffers, update: &mut Update) -> bool {
        let Self { settings, start, trained, .. } = *self;
        update.clear();
        update.parameters.extend_from_slice(start);
        settings.optimizer.begin(trained, &mut buffers.moments);
        let extra = Regularisation {
            clip: settings.clip,
            correction: self.correction.map(|numbers| &numbers[..trained]),
            proximal: Some(Proximal { mu: settings.proximal, start: &self.anchor.unwrap_or(start)[..trained] }),
            decays: &settings.decays,
        };
        let parameters = &mut update.parameters[..];
        let mut steps = Steps { job: self, extra, model, buffers, parameters };
        let outcome = self.course(settings.length.or_epochs(self.epochs)).run(examples, &mut steps);
        outcome.settle(self.loss_rms, update);
        !update.diverged
    }

    fn gradient(
        &self,
        examples: &mut [u32],
        model: &mut dyn Slopes,
        slopes: &mut [f32],
        gradient: &mut Vec<f32>,
    ) -> bool {
        let (start, sums) = (self.start, vec![0.0; self.trained]);
        let mut steps = Sums { start, model, gradient: slopes, parameters: start.to_vec(), sums };
        self.course(Length::Epochs(1)).run(examples, &mut steps);
        let count = examples.len().max(1) as f64;
        let mean = |sum: f64| if sum.is_nan() { f32::NAN } else { (sum / count) as f32 };
        gradient.clear();
        gradient.extend(steps.sums.into_iter().map(mean));
        gradient.resize(start.len(), 0.0);
        gradient.iter().all(|slope| slope.is_finite())
    }
}
