//! One client's training.

use super::footprint::Footprint;
use super::optimizer::RowStep;
use super::rows::LocalRows;
use super::step::{Step, Triple};
use super::{BprTraining, Moves};
use crate::lanes::{Path, run};
use crate::local::{self, Course, Told};
use crate::ratings::negatives::{negative, unknown};
use crate::ratings::triplets::Triplet;
use crate::trainer::Length;
use crate::trainer::optimizer::Powers;
use fedgenie_core::halt::Halt;
use fedgenie_core::rng::StreamRng;

/// Where the negatives of a job come from.
#[derive(Clone, Copy, Debug)]
pub enum Negatives<'a> {
    /// Drawn anew in each epoch.
    Drawn,
    /// These triplets are the examples of each epoch; their users are numbered within the job, as its rows are.
    Given(&'a [Triplet]),
}

/// Numbers added to the slopes of travelling parameters, in every step of plain descent. Users have none.
#[derive(Clone, Copy, Debug)]
pub struct Correction<'a> {
    /// One addend for each weight of the networks that travel.
    pub weights: &'a [f32],
    /// One addend for each number of the item table.
    pub table: &'a [f32],
    /// Whether all rows of the table have addends, and move; else the rows that the job's steps move, each of them in
    /// every step, whether its mini-batch meets it or not.
    pub is_whole: bool,
}

/// A client's examples.
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
    /// The addends to slopes in every step.
    pub correction: Option<Correction<'a>>,
    /// Puts examples in order, epoch by epoch: stream (BatchOrder, client, job).
    pub order: StreamRng,
    /// Draws negatives, example by example: stream (TrainingNoise, client, job).
    pub draws: StreamRng,
    /// When it ends early, with an outcome that is not used.
    pub halt: &'a Halt,
}

impl<'a> Job<'a> {
    /// The positives of a user, given by its number within the job.
    pub fn positives_of(&self, user: u32) -> &'a [u32] {
        let begin = if user == 0 { 0 } else { self.ends[user as usize - 1] as usize };
        &self.positives[begin..self.ends[user as usize] as usize]
    }
}

/// A job's result. Keeps its buffers from job to job.
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
    /// Steps that it made, with finite losses.
    pub steps: u64,
    /// Examples without a negative, because their user rated everything.
    pub without_negative: usize,
    /// Whether a loss or a number of a row is not finite; training stops at the first such loss.
    pub diverged: bool,
}

/// A step's treatment of the rows that were met.
#[derive(Clone, Copy)]
pub(crate) struct Moment<'a> {
    pub settings: &'a BprTraining,
    pub rule: RowStep,
    /// Factor of the learning rate, which `rule` has already.
    pub lr_factor: f32,
}

/// A model that makes scores of rows, during a job.
pub(crate) trait RowModel {
    /// Finds the rows that a job moves.
    fn footprint(&self) -> Footprint {
        Footprint::default()
    }

    /// Meets rows that a mini-batch needs beside those of its triplets; steps are counted from 1.
    fn meet(&mut self, _job: &Job<'_>, _triplets: &[Triple], _rows: (&mut LocalRows, usize), _step: u64) {}

    /// Writes the losses of a mini-batch, and moves rows.
    fn step(&mut self, path: Path, triplets: &[Triple], losses: &mut [f32], rows: &mut LocalRows, moment: Moment<'_>);
}

/// Scores are products of rows.
struct Products;

impl RowModel for Products {
    fn step(&mut self, path: Path, triplets: &[Triple], losses: &mut [f32], rows: &mut LocalRows, moment: Moment<'_>) {
        let Moment { settings, rule, .. } = moment;
        run(path, Step { triplets, losses, rows, extra: settings.extra, rule });
    }
}

/// A thread's buffers from job to job.
pub struct Worker {
    path: Path,
    rows: LocalRows,
    examples: Examples,
    order: Vec<u32>,
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
        let (rows, examples) = (LocalRows::default(), Examples::default());
        Self { path, rows, examples, order: Vec::new(), batch: Vec::new(), losses: Vec::new() }
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
        model: &mut dyn RowModel,
        settings: &BprTraining,
        job: &Job<'_>,
        outcome: &mut Outcome,
    ) {
        let d = settings.dimensions;
        assert!(job.table.len().is_multiple_of(d) && job.users.len() == job.ends.len() * d, "tables have whole rows");
        assert_eq!(job.ends.last().map_or(0, |&end| end as usize), job.positives.len(), "each positive has its user");
        let Self { path, rows, examples, order: places, batch, losses } = self;
        let items = job.table.len() / d;
        rows.begin(d, items, job.users, (settings.optimizer.moments(), settings.extra.needs_starts()));
        if settings.moves == Moves::Interacted {
            for &item in job.positives {
                rows.item(item, job.table, d);
            }
            rows.fix_others();
        }
        if let Some(Correction { table, is_whole, .. }) = job.correction {
            let mut footprint = model.footprint();
            let moved = if is_whole { (0..items as u32).collect() } else { footprint.moved(settings, job, items) };
            rows.correct(&moved, (job.table, table), d);
        }
        outcome.without_negative = examples.list(job, items, (settings.length, settings.batch), places);
        let (path, draws, powers) = (*path, job.draws.clone(), Powers::default());
        let mut steps =
            Steps { path, settings, job, items, draws, powers, triplets: 0, model, rows, examples, batch, losses };
        let (length, size, order, halt) = (settings.length, settings.batch, job.order.clone(), job.halt);
        let course = Course { length, batch: size, order, keeps_whole: false, halt };
        let local::Outcome { tally, steps: made, is_finite } = course.run(places, &mut steps);
        (outcome.triplets, outcome.steps, outcome.diverged) = (steps.triplets, made, !is_finite);
        [outcome.loss, outcome.loss_rms] = tally.means();
        steps.rows.write(d, &mut outcome.users, &mut outcome.items, &mut outcome.rows);
        outcome.settle();
    }
}

/// The steps of a job.
struct Steps<'a> {
    path: Path,
    settings: &'a BprTraining,
    job: &'a Job<'a>,
    items: usize,
    draws: StreamRng,
    powers: Powers,
    triplets: u64,
    model: &'a mut dyn RowModel,
    rows: &'a mut LocalRows,
    examples: &'a Examples,
    batch: &'a mut Vec<Triple>,
    losses: &'a mut Vec<f32>,
}

impl local::Stepper for Steps<'_> {
    fn step(&mut self, chosen: &[u32], number: u64, tally: Told<'_>) -> bool {
        self.gather(chosen, number);
        let Self { path, settings, job, powers, model, rows, batch, losses, .. } = self;
        let rule = RowStep::next(&settings.optimizer, job.lr_factor, powers);
        model.meet(job, batch, (rows, settings.dimensions), number);
        model.step(*path, batch, losses, rows, Moment { settings, rule, lr_factor: job.lr_factor });
        if job.correction.is_some() {
            rule.correct(*path, rows);
        }
        self.triplets += batch.len() as u64;
        if let Some(tally) = tally {
            losses.iter().for_each(|&loss| tally.tell(loss.into()));
        }
        losses.iter().all(|loss| loss.is_finite())
    }
}

impl Steps<'_> {
    /// Finds the rows of a mini-batch.
    fn gather(&mut self, chosen: &[u32], step: u64) {
        let Self { settings, job, items, draws, rows, examples, batch, losses, .. } = self;
        batch.clear();
        for &example in chosen {
            let Triplet { user, positive, negative } = examples.triplet(example, job, *items, draws);
            let positive = rows.item(positive, job.table, settings.dimensions);
            let negative = rows.item(negative, job.table, settings.dimensions);
            let slots = [user, positive, negative];
            let places = slots.map(|slot| rows.meet(slot, step));
            batch.push(Triple { slots, places });
        }
        losses.clear();
        losses.resize(batch.len(), 0.0);
    }
}

/// The examples of a job.
#[derive(Debug, Default)]
pub(super) struct Examples {
    user_of: Vec<u32>,
    /// What the one user of a job does not know, ascending; empty where it is not worked out.
    unknown: Vec<u32>,
}

/// Draws for which it is worth while to write down what a user does not know: one for so many items.
const ITEMS_PER_DRAW: u64 = 16;

impl Examples {
    /// Numbers the examples that have a negative in `order`, for training of a length in mini-batches of a size;
    /// returns how many have none.
    pub fn list(
        &mut self,
        job: &Job<'_>,
        items: usize,
        (length, batch): (Length, usize),
        order: &mut Vec<u32>,
    ) -> usize {
        order.clear();
        self.user_of.clear();
        self.unknown.clear();
        if let Negatives::Given(triplets) = job.negatives {
            order.extend(0..triplets.len() as u32);
            return 0;
        }
        let mut without = 0;
        let mut begin = 0;
        for (&end, user) in job.ends.iter().zip(0..) {
            self.user_of.resize(end as usize, user);
            if (end - begin) as usize == items {
                without += items;
            } else {
                order.extend(begin..end);
            }
            begin = end;
        }
        let (epochs, steps) = length.bounds();
        let draws = (order.len() as u64).saturating_mul(epochs).min(steps.saturating_mul(batch as u64));
        if job.ends.len() == 1 && draws > 0 && draws.saturating_mul(ITEMS_PER_DRAW) >= items as u64 {
            unknown(items as u32, job.positives, &mut self.unknown);
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
                if !self.unknown.is_empty() {
                    let chosen = draws.below(self.unknown.len() as u64);
                    let negative = self.unknown[chosen as usize];
                    return Triplet { user, positive: job.positives[example as usize], negative };
                }
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
    /// Notes numbers that are not finite, and makes all NaNs one: their bits are not defined.
    fn settle(&mut self) {
        self.diverged |= !(is_finite(&self.users) && is_finite(&self.rows));
        if self.diverged {
            for number in self.users.iter_mut().chain(&mut self.rows).filter(|number| number.is_nan()) {
                *number = f32::NAN;
            }
        }
    }
}
