//! One client's training.

use super::{Batch, Features, Network, Objective, Scratch, Shape};
use crate::lanes::Path;
use crate::ratings::negatives::negative;
use crate::ratings::triplets::Triplet;
use crate::trainer::optimizer::{Moments, Proximal, Regularisation};
use crate::trainer::{Length, LocalTraining};
use fedgenie_core::math::float::sqrt;
use fedgenie_core::rng::StreamRng;

/// The positive pairs of a client, and where their negatives come from.
#[derive(Clone, Copy, Debug)]
pub struct Pairs<'a> {
    /// Its users, ascending.
    pub users: &'a [u32],
    /// Its positives, user after user; of each user ascending without repetition.
    pub positives: &'a [u32],
    /// Where in `positives` each user's end; as many as users.
    pub ends: &'a [u32],
    /// The negatives, if they are given: as many triplets for each example as it has negatives, one after the other;
    /// their users are numbered within the client. Else they are drawn, uniform over the items that are none of the
    /// user's positives here.
    pub given: Option<&'a [Triplet]>,
}

/// The examples of a client, in some order.
#[derive(Debug, Default)]
pub struct Examples {
    /// Places of examples.
    pub order: Vec<u32>,
    user_of: Vec<u32>,
    users: Vec<u32>,
    positives: Vec<u32>,
    negatives: Vec<u32>,
}

impl Examples {
    /// Numbers the examples: those whose users have not rated everything.
    pub fn list(&mut self, pairs: &Pairs<'_>, items: usize, negatives: usize) {
        self.order.clear();
        self.user_of.clear();
        if let Some(given) = pairs.given {
            self.order.extend(0..(given.len() / negatives) as u32);
            return;
        }
        let mut begin = 0;
        for (&end, user) in pairs.ends.iter().zip(0..) {
            self.user_of.resize(end as usize, user);
            if ((end - begin) as usize) < items {
                self.order.extend(begin..end);
            }
            begin = end;
        }
    }

    /// The examples at some places of the order, with their negatives: drawn example by example.
    pub fn batch(
        &mut self,
        pairs: &Pairs<'_>,
        items: usize,
        count: usize,
        places: std::ops::Range<usize>,
        draws: &mut StreamRng,
    ) -> Batch<'_> {
        let Self { order, user_of, users, positives, negatives } = self;
        let order = &order[places];
        users.clear();
        positives.clear();
        negatives.clear();
        negatives.resize(order.len() * count, 0);
        for (place, &example) in order.iter().enumerate() {
            let mut into = negatives[place..].iter_mut().step_by(order.len());
            match pairs.given {
                Some(given) => {
                    let given = &given[example as usize * count..][..count];
                    users.push(pairs.users[given[0].user as usize]);
                    positives.push(given[0].positive);
                    into.zip(given).for_each(|(into, triplet)| *into = triplet.negative);
                }
                None => {
                    let user = user_of[example as usize] as usize;
                    let begin = if user == 0 { 0 } else { pairs.ends[user - 1] as usize };
                    let known = &pairs.positives[begin..pairs.ends[user] as usize];
                    users.push(pairs.users[user]);
                    positives.push(pairs.positives[example as usize]);
                    into.by_ref().for_each(|into| {
                        *into = negative(draws, items as u32, known).expect("such examples are left out");
                    });
                }
            }
        }
        Batch { users, positives, negatives }
    }
}

/// What a client trains, and with what.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// The model it was sent.
    pub start: &'a [f32],
    /// Its examples.
    pub pairs: Pairs<'a>,
    /// Factor of the learning rate.
    pub lr_factor: f32,
    /// Puts examples in order, epoch by epoch: stream (BatchOrder, client, ticket).
    pub order: StreamRng,
    /// Draws the negatives of a batch, then what it drops: stream (TrainingNoise, client, ticket).
    pub draws: StreamRng,
}

/// What a job says of its training.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Mean loss of the examples, each as first met in the first epoch; 0 without examples.
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
    /// Of the examples.
    pub examples: Examples,
    /// Losses of a batch.
    pub losses: Vec<f32>,
    gradient: Vec<f32>,
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
        (shape, features): (&Shape, &Features),
        objective: &Objective,
        settings: &LocalTraining,
        job: &Job<'_>,
        parameters: &mut Vec<f32>,
    ) -> Outcome {
        let Self { scratch, examples, losses, gradient, moments } = self;
        let network = Network { shape, features };
        assert_eq!(job.start.len(), shape.parameters(), "a client was sent a model of another length");
        parameters.clear();
        parameters.extend_from_slice(job.start);
        gradient.resize(parameters.len(), 0.0);
        settings.optimizer.begin(parameters.len(), moments);
        let proximal = Proximal { mu: settings.proximal, start: job.start };
        let extra = Regularisation { clip: settings.clip, proximal: Some(proximal), decays: &[] };
        examples.list(&job.pairs, shape.items, objective.negatives);
        let (mut order, mut draws) = (job.order.clone(), job.draws.clone());
        let (epochs, mut steps_left) = match settings.length {
            _ if examples.order.is_empty() => (0, 0),
            Length::Epochs(epochs) => (epochs, u32::MAX),
            Length::Steps(steps) => (u32::MAX, steps),
        };
        let (mut sum, mut squares, mut met) = (0.0, 0.0, 0_usize);
        let (mut is_finite, mut steps) = (true, 0);
        'training: for epoch in 0..epochs {
            order.shuffle(&mut examples.order);
            let mut begin = 0;
            while begin < examples.order.len() {
                if steps_left == 0 {
                    break 'training;
                }
                let end = examples.order.len().min(begin + settings.batch);
                let batch = examples.batch(&job.pairs, shape.items, objective.negatives, begin..end, &mut draws);
                begin = end;
                let to = (&mut *losses, &mut *scratch);
                let loss = network.loss_and_gradient(parameters, batch, objective, gradient, &mut draws, to);
                if epoch == 0 {
                    for &loss in &*losses {
                        sum += f64::from(loss);
                        squares += f64::from(loss) * f64::from(loss);
                    }
                    met += losses.len();
                }
                is_finite = (loss.ranking + loss.correlation).is_finite();
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
            // What is left in padding may not be finite, which no later job should meet; and all NaNs become one.
            *scratch = Scratch::on(scratch.path());
            parameters.iter_mut().filter(|number| number.is_nan()).for_each(|number| *number = f32::NAN);
            for number in [&mut outcome.loss, &mut outcome.loss_rms] {
                *number = if number.is_nan() { f64::NAN } else { *number };
            }
        }
        outcome
    }
}
