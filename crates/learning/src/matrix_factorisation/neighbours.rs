//! Users who are seen with what they rated: one layer of a graph network over a user and the user's items.
//!
//! # Definition
//! A user's score of an item is `r_u · v` with `r_u = u + Σ_{i ∈ V_u} v_i / √|V_u|` over the positives `V_u` that the
//! job has of the user. With `s` as in [`matrix_factorisation`](crate::matrix_factorisation), and `g` the slope of a
//! mini-batch's loss by `r_u`, the slope by `u` is `g`, and each `v_i` has `g/√|V_u|` beside its own. So a step that
//! meets a user meets the rows of all the user's positives.
//!
//! # Source
//! C. Wu, F. Wu, L. Lyu, T. Qi, Y. Huang, X. Xie, "A federated graph neural network framework for privacy-preserving
//! personalization", Nature Communications 13, 2022 (FedPerGNN).
//!
//! # Deviations from the source
//! No pseudo-items and no expansion of the graph by other users; the weights of the sum are fixed.
//!
//! # Determinism
//! `r_u` begins at `u` and takes one fused multiply-add for each positive, ascending, where scores are asked for a
//! rounded product and a sum; slopes take fused multiply-adds in the same order.

#![allow(clippy::needless_range_loop, reason = "loops over vectors are the same for all rows")]

use super::footprint::Footprint;
use super::job::{Job, Moment, Outcome, RowModel, Worker};
use super::rows::LocalRows;
use super::step::{Triple, fold_all, losses_and_slopes};
use super::{BprTraining, RowRegularisation, RowStep};
use crate::lanes::{Kernel, LANES, Lanes, Path, keep_vectors_whole, run};
use fedgenie_core::math::float::sqrt;

/// The weight of each of so many positives.
fn weight(positives: usize) -> f32 {
    (1.0 / sqrt(positives as f64)) as f32
}

/// Turns a user's row into what the user is seen as, from the rows of the user's positives in the item table.
pub fn with_neighbours(positives: &[u32], table: &[f32], row: &mut [f32]) {
    let weight = weight(positives.len());
    for &item in positives {
        let of_item = &table[item as usize * row.len()..][..row.len()];
        row.iter_mut().zip(of_item).for_each(|(number, &of_item)| *number += weight * of_item);
    }
}

/// A user that a step meets.
#[derive(Clone, Copy, Debug)]
struct Seen {
    slot: u32,
    place: u32,
    /// Where the user's positives end among all.
    end: usize,
    weight: f32,
}

/// The steps of users who are seen with their items.
#[derive(Debug, Default)]
pub struct Neighbours {
    seen: Vec<Seen>,
    /// For each place of a step's rows its user's number among those seen.
    of_place: Vec<u32>,
    /// Slots and places of the positives, user after user.
    positives: Vec<[u32; 2]>,
    /// What users are seen as, and the slopes of that.
    values: Vec<Lanes>,
    slopes: Vec<Lanes>,
}

impl Neighbours {
    /// Trains one job.
    ///
    /// # Panics
    /// As [`BprTraining::train`].
    pub fn train(&mut self, worker: &mut Worker, settings: &BprTraining, job: &Job<'_>, outcome: &mut Outcome) {
        worker.train_with(self, settings, job, outcome);
    }
}

impl RowModel for Neighbours {
    fn footprint(&self) -> Footprint {
        Footprint::default().with_neighbours()
    }

    fn meet(&mut self, job: &Job<'_>, triplets: &[Triple], (rows, dimensions): (&mut LocalRows, usize), step: u64) {
        self.seen.clear();
        self.positives.clear();
        for &Triple { slots: [slot, ..], places: [place, ..] } in triplets {
            if self.seen.iter().any(|seen| seen.slot == slot) {
                continue;
            }
            let positives = job.positives_of(slot);
            for &item in positives {
                let slot = rows.item(item, job.table, dimensions);
                self.positives.push([slot, rows.meet(slot, step)]);
            }
            self.seen.push(Seen { slot, place, end: self.positives.len(), weight: weight(positives.len()) });
        }
        self.of_place.clear();
        self.of_place.resize(rows.met.len(), 0);
        for (number, seen) in (0..).zip(&self.seen) {
            self.of_place[seen.place as usize] = number;
        }
    }

    fn step(&mut self, path: Path, triplets: &[Triple], losses: &mut [f32], rows: &mut LocalRows, moment: Moment<'_>) {
        let Moment { settings: &BprTraining { extra, .. }, rule, .. } = moment;
        run(path, Step { graph: self, triplets, losses, rows, extra, rule });
    }
}

struct Step<'a> {
    graph: &'a mut Neighbours,
    triplets: &'a [Triple],
    losses: &'a mut [f32],
    rows: &'a mut LocalRows,
    extra: RowRegularisation,
    rule: RowStep,
}

impl Kernel for Step<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { graph, triplets, losses, rows, extra, rule } = self;
        graph.values(rows);
        graph.slopes_of(triplets, losses, rows);
        graph.spread(rows);
        if extra.is_some() {
            extra.apply(rows, 0.0);
        }
        match rows.vectors {
            1 => rule.apply::<1>(rows),
            2 => rule.apply::<2>(rows),
            _ => rule.apply::<0>(rows),
        }
    }
}

impl Neighbours {
    /// What users are seen as.
    #[inline(always)]
    fn values(&mut self, local: &LocalRows) {
        let vectors = local.vectors;
        for numbers in [&mut self.values, &mut self.slopes] {
            numbers.clear();
            numbers.resize(self.seen.len() * vectors, Lanes::ZERO);
        }
        let mut begin = 0;
        for (seen, value) in self.seen.iter().zip(self.values.chunks_exact_mut(vectors)) {
            value.copy_from_slice(&local.rows[seen.slot as usize * vectors..][..vectors]);
            let weight = Lanes::splat(seen.weight);
            for &[slot, _] in &self.positives[begin..seen.end] {
                let row = &local.rows[slot as usize * vectors..][..vectors];
                for vector in 0..vectors {
                    keep_vectors_whole();
                    value[vector] = weight.mul_add(row[vector], value[vector]);
                }
            }
            begin = seen.end;
        }
    }

    /// Losses, and slopes of items' rows and of what users are seen as.
    #[inline(always)]
    fn slopes_of(&mut self, triplets: &[Triple], losses: &mut [f32], local: &mut LocalRows) {
        let vectors = local.vectors;
        let share = Lanes::splat(1.0 / triplets.len() as f32);
        let at = |row: u32| row as usize * vectors..(row as usize + 1) * vectors;
        for (triplets, losses) in triplets.chunks(LANES).zip(losses.chunks_mut(LANES)) {
            let mut square = [Lanes::ZERO; LANES];
            for (place, &Triple { slots: [_, positive, negative], places }) in triplets.iter().enumerate() {
                let user = &self.values[at(self.of_place[places[0] as usize])];
                let (positive, negative) = (&local.rows[at(positive)], &local.rows[at(negative)]);
                let mut sum = Lanes::ZERO;
                for vector in 0..vectors {
                    keep_vectors_whole();
                    sum = user[vector].mul_add(positive[vector] - negative[vector], sum);
                }
                square[place] = sum;
            }
            let (loss, slope) = losses_and_slopes(fold_all(&square));
            losses.copy_from_slice(&loss.0[..losses.len()]);
            let slope = slope * share;
            for (place, &Triple { slots: [_, positive, negative], places }) in triplets.iter().enumerate() {
                let (down, up) = (Lanes::splat(-slope.0[place]), Lanes::splat(slope.0[place]));
                let user = self.of_place[places[0] as usize];
                let (positive, negative) = (&local.rows[at(positive)], &local.rows[at(negative)]);
                for vector in 0..vectors {
                    keep_vectors_whole();
                    let value = self.values[at(user)][vector];
                    let of_user = &mut self.slopes[at(user)][vector];
                    *of_user = down.mul_add(positive[vector] - negative[vector], *of_user);
                    let of_positive = &mut local.slopes[at(places[1])][vector];
                    *of_positive = down.mul_add(value, *of_positive);
                    let of_negative = &mut local.slopes[at(places[2])][vector];
                    *of_negative = up.mul_add(value, *of_negative);
                }
            }
        }
    }

    /// From what users are seen as to their rows and those of their positives.
    #[inline(always)]
    fn spread(&self, local: &mut LocalRows) {
        let vectors = local.vectors;
        let mut begin = 0;
        for (seen, slopes) in self.seen.iter().zip(self.slopes.chunks_exact(vectors)) {
            let of_user = &mut local.slopes[seen.place as usize * vectors..][..vectors];
            for vector in 0..vectors {
                keep_vectors_whole();
                of_user[vector] = of_user[vector] + slopes[vector];
            }
            let weight = Lanes::splat(seen.weight);
            for &[_, place] in &self.positives[begin..seen.end] {
                let of_item = &mut local.slopes[place as usize * vectors..][..vectors];
                for vector in 0..vectors {
                    keep_vectors_whole();
                    of_item[vector] = weight.mul_add(slopes[vector], of_item[vector]);
                }
            }
            begin = seen.end;
        }
    }
}
