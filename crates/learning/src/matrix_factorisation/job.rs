//! One client's training.

use super::optimizer::{Powers, RowRegularisation, RowStep};
use super::rows::LocalRows;
use super::step::{Step, Triple};
use super::{BprTraining, Moves};
use crate::lanes::{Path, run};
use crate::ratings::negatives::negative;
use crate::ratings::triplets::Triplet;
use crate::trainer::Length;
use fedgenie_core::math::float::sqrt;
use fedgenie_core::rng::StreamRng;

/// Where the negatives of a job come from.
#[derive(Clone, Copy, Debug)]
pub enum Negatives<'a> {
    /// Drawn anew in each epoch.
    Drawn,
    /// These triplets are the examples of each epoch; their users are numbered within the job, as its rows are.
    Given(&'a [Triplet]),
}

/// What a client trains on.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// The item table that it was sent, items × dimensions.
    pub table: &'a [f32],
    /// The rows of its users, users × dimensions.
    pub users: &'a [f32],
    /// Its positives, user after user; of each user ascending without repetition.
    pub positives: &'a [u32],
    /// Where in `positives` each user's end; as many as users.
    pub ends: &'a [u32],
    /// Where negatives come from.
    pub negatives: Negatives<'a>,
    /// Factor of the learning rate.
    pub lr_factor: f32,
    /// Puts examples in order, epoch by epoch: stream (BatchOrder, client, ticket).
    pub order: StreamRng,
    /// Draws negatives, example by example: stream (TrainingNoise, client, ticket).
    pub draws: StreamRng,
}

impl<'a> Job<'a> {
    /// The positives of a user, who is numbered within the job.
    pub fn positives_of(&self, user: u32) -> &'a [u32] {
        let begin = if user == 0 { 0 } else { self.ends[user as usize - 1] as usize };
        &self.positives[begin..self.ends[user as usize] as usize]
    }
}

/// What a job made. Keeps its buffers from job to job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Items whose rows moved, ascending.
    pub items: Vec<u32>,
    /// Their rows, in this order.
    pub rows: Vec<f32>,
    /// The rows of the job's users.
    pub users: Vec<f32>,
    /// Mean loss of the examples, each as first met in the first epoch; 0 without examples.
    pub loss: f64,
    /// Root mean square of these losses.
    pub loss_rms: f64,
    /// Triplets that the job went through, all epochs together.
    pub triplets: u64,
    /// Steps that it made.
    pub steps: u64,
    /// Examples without a negative, because their user rated everything.
    pub without_negative: usize,
    /// Whether a loss or a number of a row is not finite; training stops at the first such loss.
    pub diverged: bool,
}

/// What a step does to what was met.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    pub extra: RowRegularisation,
    pub rule: RowStep,
    /// Factor of the learning rate, which `rule` has already.
    pub lr_factor: f32,
}

/// What a step is: of products of rows, or of another model of them.
pub(crate) trait Stepper {
    /// Meets rows that a mini-batch needs beside those of its triplets; steps are counted from 1.
    fn meet(&mut self, _job: &Job<'_>, _triplets: &[Triple], _rows: (&mut LocalRows, usize), _step: u64) {}

    /// Writes the losses of a mini-batch, and moves rows.
    fn step(&mut self, path: Path, triplets: &[Triple], losses: &mut [f32], rows: &mut LocalRows, moment: Moment);
}

/// Scores are products of rows.
struct Products;

impl Stepper for Products {
    fn step(&mut self, path: Path, triplets: &[Triple], losses: &mut [f32], rows: &mut LocalRows, moment: Moment) {
        let Moment { extra, rule, .. } = moment;
        run(path, Step { triplets, losses, rows, extra, rule });
    }
}

/// What a thread reuses from job to job.
pub struct Worker {
    path: Path,
    rows: LocalRows,
    examples: Examples,
    batch: Vec<Triple>,
    losses: Vec<f32>,
}

impl Default for Worker {
    fn default() -> Self {
        Self::on(Path::detect())
    }
}

impl Worker {
    /// With kernels compiled for a set of processor features.
    pub fn on(path: Path) -> Self {
        let (batch, losses) = (Vec::new(), Vec::new());
        Self { path, rows: LocalRows::default(), examples: Examples::default(), batch, losses }
    }

    /// Trains one job.
    ///
    /// # Panics
    /// As [`BprTraining::train`].
    pub fn train(&mut self, settings: &BprTraining, job: &Job<'_>, outcome: &mut Outcome) {
        self.train_with(&mut Products, settings, job, outcome);
    }

    /// Trains one job by steps of another model of rows.
    ///
    /// # Panics
    /// As [`BprTraining::train`].
    pub(crate) fn train_with(
        &mut self,
        stepper: &mut impl Stepper,
        settings: &BprTraining,
        job: &Job<'_>,
        outcome: &mut Outcome,
    ) {
        let d = settings.dimensions;
        assert!(job.table.len().is_multiple_of(d) && job.users.len() == job.ends.len() * d, "tables have whole rows");
        assert_eq!(job.ends.last().map_or(0, |&end| end as usize), job.positives.len(), "each positive has its user");
        let items = job.table.len() / d;
        self.rows.begin(d, items, job.users, (settings.optimizer.moments(), settings.extra.needs_starts()));
        if settings.moves == Moves::Interacted {
            for &item in job.positives {
                self.rows.item(item, job.table, d);
            }
            self.rows.fix_others();
        }
        outcome.without_negative = self.examples.list(job, items);
        (outcome.triplets, outcome.steps, outcome.diverged) = (0, 0, false);
        let (mut sum, mut squares) = (0.0, 0.0);
        let (mut order, mut draws) = (job.order.clone(), job.draws.clone());
        let mut powers = Powers::ONE;
        let (epochs, most) = bounds(settings.length);
        let mut epoch = 0;
        let mut first_met = 0_u64;
        while epoch < epochs && outcome.steps < most && !self.examples.order.is_empty() && !outcome.diverged {
            order.shuffle(&mut self.examples.order);
            let mut begin = 0;
            while begin < self.examples.order.len() && outcome.steps < most && !outcome.diverged {
                let end = self.examples.order.len().min(begin + settings.batch);
                outcome.steps += 1;
                self.gather(begin..end, job, items, d, &mut draws, outcome.steps);
                begin = end;
                let rule = settings.optimizer.next(job.lr_factor, &mut powers);
                let moment = Moment { extra: settings.extra, rule, lr_factor: job.lr_factor };
                stepper.meet(job, &self.batch, (&mut self.rows, d), outcome.steps);
                stepper.step(self.path, &self.batch, &mut self.losses, &mut self.rows, moment);
                outcome.triplets += self.batch.len() as u64;
                if epoch == 0 {
                    first_met += self.batch.len() as u64;
                    for &loss in &self.losses {
                        sum += f64::from(loss);
                        squares += f64::from(loss) * f64::from(loss);
                    }
                }
                outcome.diverged = !self.losses.iter().all(|loss| loss.is_finite());
            }
            epoch += 1;
        }
        let count = first_met.max(1) as f64;
        (outcome.loss, outcome.loss_rms) = (sum / count, sqrt(squares / count));
        self.rows.write(d, &mut outcome.users, &mut outcome.items, &mut outcome.rows);
        outcome.settle();
    }

    /// Finds the rows of a mini-batch.
    fn gather(
        &mut self,
        places: std::ops::Range<usize>,
        job: &Job<'_>,
        items: usize,
        dimensions: usize,
        draws: &mut StreamRng,
        step: u64,
    ) {
        self.batch.clear();
        for &example in &self.examples.order[places] {
            let Triplet { user, positive, negative } = self.examples.triplet(example, job, items, draws);
            let positive = self.rows.item(positive, job.table, dimensions);
            let negative = self.rows.item(negative, job.table, dimensions);
            let slots = [user, positive, negative];
            let places = slots.map(|slot| self.rows.meet(slot, step));
            self.batch.push(Triple { slots, places });
        }
        self.losses.clear();
        self.losses.resize(self.batch.len(), 0.0);
    }
}

/// Most epochs and most steps of a job.
pub(super) fn bounds(length: Length) -> (u64, u64) {
    match length {
        Length::Epochs(epochs) => (u64::from(epochs), u64::MAX),
        Length::Steps(steps) => (u64::MAX, u64::from(steps)),
    }
}

/// The examples of a job.
#[derive(Debug, Default)]
pub(super) struct Examples {
    /// Places of examples in the order of the epoch.
    pub order: Vec<u32>,
    user_of: Vec<u32>,
}

impl Examples {
    /// Numbers the examples that have a negative; returns how many have none.
    pub fn list(&mut self, job: &Job<'_>, items: usize) -> usize {
        self.order.clear();
        self.user_of.clear();
        if let Negatives::Given(triplets) = job.negatives {
            self.order.extend(0..triplets.len() as u32);
            return 0;
        }
        let mut without = 0;
        let mut begin = 0;
        for (&end, user) in job.ends.iter().zip(0..) {
            self.user_of.resize(end as usize, user);
            if (end - begin) as usize == items {
                without += items;
            } else {
                self.order.extend(begin..end);
            }
            begin = end;
        }
        without
    }

    /// A user, numbered within the job, a positive of the user, and a negative.
    #[inline]
    pub fn triplet(&self, example: u32, job: &Job<'_>, items: usize, draws: &mut StreamRng) -> Triplet {
        match job.negatives {
            Negatives::Given(triplets) => triplets[example as usize],
            Negatives::Drawn => {
                let user = self.user_of[example as usize];
                let known = job.positives_of(user);
                let negative = negative(draws, items as u32, known).expect("such examples are left out");
                Triplet { user, positive: job.positives[example as usize], negative }
            }
        }
    }
}

/// Whether all numbers are finite, found without a branch for each, so that it becomes vector instructions.
pub(crate) fn is_finite(numbers: &[f32]) -> bool {
    let is_not = |number: &f32| u32::from(number.to_bits() & f32::INFINITY.to_bits() == f32::INFINITY.to_bits());
    numbers.iter().fold(0, |any, number| any | is_not(number)) == 0
}

impl Outcome {
    /// Notes what is not finite, and makes all NaNs one: their bits are not defined.
    fn settle(&mut self) {
        self.diverged |= !(is_finite(&self.users) && is_finite(&self.rows));
        if self.diverged {
            for number in self.users.iter_mut().chain(&mut self.rows).filter(|number| number.is_nan()) {
                *number = f32::NAN;
            }
            for number in [&mut self.loss, &mut self.loss_rms].into_iter().filter(|number| number.is_nan()) {
                *number = f64::NAN;
            }
        }
    }
}
