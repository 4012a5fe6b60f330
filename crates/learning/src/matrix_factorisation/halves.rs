//! Steps in two halves: first the rows of users, then, at their new numbers, those of items.
//!
//! # Definition
//! A user's row is a private score function `w`: an item's score is `w · v + b`, of which `b` cancels between two items
//! and is left out. A step takes the slopes of its users' rows and moves these, takes the slopes of items' rows where
//! users are now, and moves those. Each half is clipped and pulled by itself; the loss that counts is that of the
//! first.
//!
//! # Source
//! C. Zhang et al., "Dual personalization on federated recommendation", IJCAI 2023 (PFedRec).
//!
//! # Deviations from the source
//! Bayesian personalised ranking in the place of cross-entropy. Halves alternate mini-batch by mini-batch.

use super::job::{Job, Moment, Outcome, RowModel, Worker};
use super::rows::LocalRows;
use super::step::{Triple, slopes};
use super::{BprTraining, RowRegularisation, RowStep};
use crate::lanes::{Kernel, Lanes, Path, run};

/// The steps of private score functions.
#[derive(Debug, Default)]
pub struct Halves {
    /// Losses of the second half, which nobody reads.
    losses: Vec<f32>,
}

impl Halves {
    /// Trains one job.
    ///
    /// # Panics
    /// As [`BprTraining::train`].
    pub fn train(&mut self, worker: &mut Worker, settings: &BprTraining, job: &Job<'_>, outcome: &mut Outcome) {
        worker.train_with(self, settings, job, outcome);
    }
}

impl RowModel for Halves {
    fn step(&mut self, path: Path, triplets: &[Triple], losses: &mut [f32], rows: &mut LocalRows, moment: Moment<'_>) {
        let Moment { settings: &BprTraining { extra, .. }, rule, .. } = moment;
        self.losses.resize(triplets.len(), 0.0);
        let ignored = &mut self.losses[..triplets.len()];
        run(path, BothHalves { triplets, losses: [losses, ignored], rows, extra, rule });
    }
}

struct BothHalves<'a> {
    triplets: &'a [Triple],
    losses: [&'a mut [f32]; 2],
    rows: &'a mut LocalRows,
    extra: RowRegularisation,
    rule: RowStep,
}

impl Kernel for BothHalves<'_> {
    type Output = ();
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        match self.rows.vectors {
            1 => both::<1>(self),
            2 => both::<2>(self),
            4 => both::<4>(self),
            _ => both::<0>(self),
        }
    }
}

#[inline(always)]
fn both<const VECTORS: usize>(step: BothHalves<'_>) {
    let BothHalves { triplets, losses: [losses, ignored], rows, extra, rule } = step;
    let users = rows.users();
    let moved: Vec<bool> = rows.met.iter().map(|met| met.moves).collect();
    for (losses, of_users) in [(losses, true), (ignored, false)] {
        for (met, &moves) in rows.met.iter_mut().zip(&moved) {
            met.moves = moves && ((met.slot as usize) < users) == of_users;
        }
        let numbers = rows.met.len() * rows.vectors;
        rows.slopes[..numbers].fill(Lanes::ZERO);
        slopes::<VECTORS>(triplets, losses, rows);
        if extra.is_some() {
            extra.apply(rows, 0.0);
        }
        rule.move_rows::<VECTORS>(rows);
    }
    rows.met.clear();
}
