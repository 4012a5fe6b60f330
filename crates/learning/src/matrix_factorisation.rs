//! Matrix factorisation: a user's score of an item is the product of two rows; trained by Bayesian personalised
//! ranking.
//!
//! # Definition
//! User `u` has a row `w_u` and item `i` a row `w_i` of `d` numbers; the score is `w_u · w_i`. An example is a pair of
//! a user and an item that the user rated, the positive `p`. Its loss, with a negative `n`, is `−ln σ(x)` for
//! `x = w_u · (w_p − w_n)`, and with `s = 1/(1 + eˣ)` its gradient is
//!
//! `∂w_u: −s (w_p − w_n)`, `∂w_p: −s w_u`, `∂w_n: s w_u`.
//!
//! A job makes steps on mini-batches, consecutive pieces of a fresh random order of its examples in each epoch; the
//! loss of a mini-batch is the mean over its examples. Negatives are drawn anew in each epoch ([`negatives`]), in the
//! order in which examples come, uniform over the items that the job's examples do not say the user has rated; or a
//! table of triplets gives them. Examples of a user who rated everything have no negative: they are counted and left
//! out.
//!
//! A step moves the rows of its mini-batch and no other, and a [`Correction`]. [`Optimizer`] has the rules,
//! [`RowRegularisation`] what comes before them: clipping, and a pull towards what rows were before the job. With
//! [`Moves::Interacted`] only rows of users and of items that are positives of the job move; negatives of a mini-batch
//! then pull the user alone.
//!
//! Rows begin with numbers from `N(0, deviation²)`.
//!
//! # Inputs
//! The item table that the job was sent, its users' rows, its positives. Everything is `f32`.
//!
//! # Source
//! S. Rendle, C. Freudenthaler, Z. Gantner, L. Schmidt-Thieme, "BPR: Bayesian personalized ranking from implicit
//! feedback", UAI 2009; Y. Koren, R. Bell, C. Volinsky, "Matrix factorization techniques for recommender systems", 2009.
//!
//! # Deviations from the source
//! Mini-batches instead of single triplets; examples in random order instead of drawn with replacement; no biases;
//! regularisation is the optimizer's weight decay, on the rows that a step moves.
//!
//! # Cost
//! A job copies the rows that it meets, once. A step costs about 20·d operations for each triplet, and a pass of the
//! optimizer for each row that it moves. Nothing is allocated per step; a worker's scratch has 4 bytes for each item,
//! and the rows, slopes and moments of one job.
//!
//! # Determinism
//! Stream (ModelInit, 0, 0): item rows, one after the other. Stream (ModelInit, user, 1): the row of a user. A job's
//! two streams are given: one is shuffled with, one draws negatives.
//!
//! Rows are filled up with zeros to whole vectors of 16. `w_p − w_n` is rounded; a product keeps 16 sums, term `j` goes
//! to sum `j mod 16` by a fused multiply-add, and these are folded in halves. The loss is
//! `max(−x, 0) + ln(1 + e^{−|x|})`. Slopes begin at zero and take one fused multiply-add for each example, in their
//! order, with the factor `∓s·(1/B)`. Jobs are independent. So neither path nor threads change a bit.
//!
//! [`negatives`]: crate::ratings::negatives

mod footprint;
mod halves;
mod job;
mod neighbours;
mod optimizer;
mod rows;
mod score;
mod step;

pub use footprint::{Extent, Footprint, first_epoch};
pub use halves::Halves;
pub use job::{Correction, Job, Negatives, Outcome, Worker};
pub use neighbours::{Neighbours, with_neighbours};
pub use optimizer::RowRegularisation;
pub use score::{FactorScores, ItemPanels, UserRows, UserTable};

pub(crate) use job::{Moment, RowModel, is_finite};
pub(crate) use optimizer::RowStep;
pub(crate) use rows::LocalRows;
pub(crate) use score::store_some;
pub(crate) use step::{Triple, fold_all, losses_and_slopes};

use crate::lanes::Path;
use crate::trainer::{Length, Optimizer};
use fedgenie_core::math::special::normal_quantile as standard_normal;
use fedgenie_core::rng::{Purpose, StreamRng, Streams};
use rayon::prelude::*;

/// Which item rows a job moves and sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Moves {
    /// All rows that a step meets.
    #[default]
    Touched,
    /// Rows of the job's positives alone.
    Interacted,
}

/// How clients train.
#[derive(Clone, Debug, PartialEq)]
pub struct BprTraining {
    /// Length of a row; at least 1.
    pub dimensions: usize,
    /// When a job stops.
    pub length: Length,
    /// Examples in a mini-batch; at least 1.
    pub batch: usize,
    /// What a step makes of slopes.
    pub optimizer: Optimizer,
    /// What is done to slopes before.
    pub extra: RowRegularisation,
    /// Which item rows move.
    pub moves: Moves,
}

impl BprTraining {
    /// Trains all jobs, on all cores of the current pool if `parallel`; outcome `i` is that of job `i` and keeps its
    /// buffers.
    ///
    /// # Panics
    /// If the numbers of jobs and outcomes differ, a setting is 0, a table has not whole rows, or an item is not there.
    pub fn train(&self, jobs: &[Job<'_>], parallel: bool, outcomes: &mut [Outcome]) {
        self.train_on(Path::detect(), jobs, parallel, outcomes);
    }

    /// As [`BprTraining::train`], with kernels compiled for a given set of processor features.
    ///
    /// # Panics
    /// As [`BprTraining::train`].
    pub fn train_on(&self, path: Path, jobs: &[Job<'_>], parallel: bool, outcomes: &mut [Outcome]) {
        assert_eq!(jobs.len(), outcomes.len(), "every job has its outcome");
        assert!(self.dimensions > 0 && self.batch > 0, "settings are checked before");
        let new = || Worker::on(path);
        let one = |worker: &mut Worker, (job, outcome): (&Job<'_>, &mut Outcome)| worker.train(self, job, outcome);
        if parallel {
            jobs.par_iter().zip(outcomes.par_iter_mut()).for_each_init(new, one);
        } else {
            let mut worker = new();
            jobs.iter().zip(outcomes).for_each(|pair| one(&mut worker, pair));
        }
    }
}

/// The first rows of all items, row by row.
pub fn initial_items(items: usize, dimensions: usize, deviation: f64, streams: &Streams) -> Vec<f32> {
    let mut table = vec![0.0; items * dimensions];
    fill(&mut streams.stream(Purpose::ModelInit, 0, 0), deviation, &mut table);
    table
}

/// The first row of a user, whose length is that of `row`.
pub fn initial_user(user: u32, deviation: f64, streams: &Streams, row: &mut [f32]) {
    fill(&mut streams.stream(Purpose::ModelInit, user, 1), deviation, row);
}

fn fill(rng: &mut StreamRng, deviation: f64, numbers: &mut [f32]) {
    numbers.iter_mut().for_each(|number| *number = (deviation * standard_normal(rng.uniform())) as f32);
}

#[cfg(test)]
mod tests;
