//! A client's training: steps on batches of its ratings, messages over its whole graph.

use super::{Network, Pairs, Scratch};
use crate::lanes::Path;
use crate::trainer::optimizer::{Moments, Proximal, Regularisation};
use crate::trainer::{Length, LocalTraining};
use fedgenie_core::math::float::sqrt;
use fedgenie_core::rng::StreamRng;

/// What a client trains, and with what.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// The model it was sent.
    pub start: &'a [f32],
    /// Its training ratings.
    pub pairs: &'a Pairs,
    /// Factor of the learning rate.
    pub lr_factor: f32,
    /// Puts ratings in order, epoch by epoch: stream (BatchOrder, client, job). A batch of all of them has their own
    /// order.
    pub order: StreamRng,
}

/// What a job says of its training.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Mean loss of the ratings, each as first met in the first epoch; 0 without ratings.
    pub loss: f64,
    /// Root mean square of these losses.
    pub loss_rms: f64,
    /// Whether a loss or a parameter is not finite; training stops at the first such loss.
    pub diverged: bool,
    /// Steps that it made.
    pub steps: u64,
}

/// What a thread reuses from job to job.
#[derive(Debug, Default)]
pub struct Worker {
    /// Of the network.
    pub scratch: Scratch,
    gradient: Vec<f32>,
    losses: Vec<f32>,
    order: Vec<u32>,
    moments: Moments,
}

impl Worker {
    /// With kernels compiled for a set of processor features.
    pub fn on(path: Path) -> Self {
        Self { scratch: Scratch::on(path), ..Self::default() }
    }

    /// Trains one job; `parameters` becomes its model.
    ///
    /// # Panics
    /// If a length does not fit, or a setting is out of its range.
    pub fn train(
        &mut self,
        network: &Network<'_>,
        settings: &LocalTraining,
        job: &Job<'_>,
        parameters: &mut Vec<f32>,
    ) -> Outcome {
        let Self { scratch, gradient, losses, order, moments } = self;
        parameters.clear();
        parameters.extend_from_slice(job.start);
        gradient.resize(parameters.len(), 0.0);
        settings.optimizer.begin(parameters.len(), moments);
        let proximal = Proximal { mu: settings.proximal, start: job.start };
        let extra = Regularisation { clip: settings.clip, proximal: Some(proximal), decays: &settings.decays };
        order.clear();
        order.extend(0..job.pairs.ends.len() as u32);
        let mut draws = job.order.clone();
        let (epochs, mut steps_left) = match settings.length {
            _ if order.is_empty() => (0, 0),
            Length::Epochs(epochs) => (epochs, u32::MAX),
            Length::Steps(steps) => (u32::MAX, steps),
        };
        let (mut sum, mut squares, mut met) = (0.0, 0.0, 0_usize);
        let (mut is_finite, mut steps) = (true, 0);
        'training: for epoch in 0..epochs {
            if settings.batch < order.len() {
                draws.shuffle(order);
            }
            for batch in order.chunks(settings.batch) {
                if steps_left == 0 {
                    break 'training;
                }
                let loss = network.loss_and_gradient(parameters, (job.pairs, batch), gradient, losses, scratch);
                if epoch == 0 {
                    for loss in losses.iter().map(|&loss| f64::from(loss)) {
                        sum += loss;
                        squares += loss * loss;
                    }
                    met += losses.len();
                }
                is_finite = loss.is_finite();
                if !is_finite {
                    break 'training;
                }
                settings.optimizer.step(parameters, gradient, job.lr_factor, &extra, moments);
                steps += 1;
                steps_left -= u32::from(steps_left != u32::MAX);
            }
        }
        let count = met.max(1) as f64;
        let mut outcome = Outcome { loss: sum / count, loss_rms: sqrt(squares / count), diverged: false, steps };
        outcome.diverged = !(is_finite && outcome.loss.is_finite() && parameters.iter().all(|x| x.is_finite()));
        if outcome.diverged {
            // All NaNs become one.
            parameters.iter_mut().filter(|number| number.is_nan()).for_each(|number| *number = f32::NAN);
            for number in [&mut outcome.loss, &mut outcome.loss_rms] {
                *number = if number.is_nan() { f64::NAN } else { *number };
            }
        }
        outcome
    }
}
