//! The pull of a client's items towards rows that the server holds for it.
//!
//! # Definition
//! For the `n` items `V` of a job's positives, each once, with target rows `t_v`, the loss of every mini-batch has
//! `λ/(n·d) Σ_{v ∈ V} ‖v − t_v‖²` beside its examples: `λ` times the mean squared error. So a step moves the rows of
//! all these items, with the slopes `2λ/(n·d) (v − t_v)` added to their own. Losses that are reported are those of
//! examples alone.
//!
//! # Determinism
//! `2λ/(n·d)` is worked out in `f64` and rounded once; differences, products and sums are rounded one after the other.

#![allow(clippy::needless_range_loop, reason = "loops over vectors are the same for all rows")]

use super::losses::pack;
use crate::lanes::{Kernel, Lanes, keep_vectors_whole};
use crate::matrix_factorisation::{Job, LocalRows};

/// What the rows of a job's positives are pulled to.
#[derive(Clone, Copy, Debug)]
pub struct Pull<'a> {
    /// `λ`, not negative.
    pub weight: f32,
    /// One row for each item of the positives, ascending; without them, the rows that were sent.
    pub targets: Option<&'a [f32]>,
}

/// The items of a job's positives, each once, ascending.
pub fn items_of(positives: &[u32]) -> Vec<u32> {
    let mut items = positives.to_vec();
    items.sort_unstable();
    items.dedup();
    items
}

/// A pull during a job.
#[derive(Debug, Default)]
pub(super) struct Pulled {
    /// None where nothing is pulled.
    factor: Option<f32>,
    items: Vec<u32>,
    targets: Vec<Lanes>,
    slots: Vec<u32>,
    /// The number of the step, from 1.
    step: u64,
}

impl Pulled {
    /// # Panics
    /// If there are targets, but not one for each item.
    pub fn begin(&mut self, pull: Option<Pull<'_>>, job: &Job<'_>, dimensions: usize) {
        let Some(Pull { weight, targets }) = pull else {
            self.factor = None;
            return;
        };
        self.items = items_of(job.positives);
        let count = self.items.len() * dimensions;
        self.factor = Some((2.0 * f64::from(weight) / count.max(1) as f64) as f32);
        match targets {
            Some(targets) => {
                assert_eq!(targets.len(), count, "every item has its target");
                pack(targets.chunks_exact(dimensions), &mut self.targets);
            }
            None => {
                let row = |&item: &u32| &job.table[item as usize * dimensions..][..dimensions];
                pack(self.items.iter().map(row), &mut self.targets);
            }
        }
    }

    /// Whether anything is pulled.
    pub const fn is_some(&self) -> bool {
        self.factor.is_some()
    }

    /// A step begins.
    pub fn meet(&mut self, job: &Job<'_>, (rows, dimensions): (&mut LocalRows, usize), step: u64) {
        self.step = step;
        self.slots.clear();
        if self.factor.is_some() {
            self.slots.extend(self.items.iter().map(|&item| rows.item(item, job.table, dimensions)));
        }
    }
}

/// Adds the slopes of a pull to those of a step; rows that no example of it met are met here.
pub(super) struct AddPull<'a> {
    pub pulled: &'a Pulled,
    pub rows: &'a mut LocalRows,
}

impl Kernel for AddPull<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { pulled: Pulled { factor: Some(factor), targets, slots, step, .. }, rows } = self else {
            return;
        };
        let (factor, vectors) = (Lanes::splat(*factor), rows.vectors);
        for (&slot, target) in slots.iter().zip(targets.chunks_exact(vectors)) {
            let place = rows.meet(slot, *step) as usize;
            let LocalRows { rows, slopes, .. } = &mut *rows;
            let (row, slopes) = (&rows[slot as usize * vectors..], &mut slopes[place * vectors..]);
            for vector in 0..vectors {
                keep_vectors_whole();
                slopes[vector] = slopes[vector] + factor * (row[vector] - target[vector]);
            }
        }
    }
}
