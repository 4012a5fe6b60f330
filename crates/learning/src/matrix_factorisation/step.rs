//! One step on a mini-batch: losses, slopes, and the optimizer's pass over the rows that were met.

#![allow(clippy::needless_range_loop, reason = "loops over vectors are the same for all rows")]

use super::optimizer::RowStep;
use super::rows::LocalRows;
use crate::lanes::functions::{exp, ln};
use crate::lanes::{Kernel, LANES, Lanes, fold, keep_vectors_whole};

/// Slots of the rows of a user, a positive and a negative item.
#[derive(Clone, Copy, Debug)]
pub struct Slots {
    pub user: u32,
    pub positive: u32,
    pub negative: u32,
}

/// Losses, slopes and step of a mini-batch; `losses` gets one number for each triplet.
pub struct Step<'a> {
    pub triplets: &'a [Slots],
    pub losses: &'a mut [f32],
    pub rows: &'a mut LocalRows,
    pub rule: RowStep,
}

impl Kernel for Step<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { triplets, losses, rows, rule } = self;
        // Rows of one and two vectors have loops of known length.
        match rows.vectors {
            1 => step::<1>(triplets, losses, rows, rule),
            2 => step::<2>(triplets, losses, rows, rule),
            4 => step::<4>(triplets, losses, rows, rule),
            _ => step::<0>(triplets, losses, rows, rule),
        }
    }
}

/// The step on rows of `VECTORS` vectors; 0 stands for any other number.
#[inline(always)]
fn step<const VECTORS: usize>(triplets: &[Slots], losses: &mut [f32], local: &mut LocalRows, rule: RowStep) {
    let vectors = if VECTORS == 0 { local.vectors } else { VECTORS };
    let share = Lanes::splat(1.0 / triplets.len() as f32);
    let at = |slot: u32| slot as usize * vectors..(slot as usize + 1) * vectors;
    let mut square = [Lanes::ZERO; LANES];
    for (triplets, losses) in triplets.chunks(LANES).zip(losses.chunks_mut(LANES)) {
        let rows = &local.rows[..];
        for (place, &Slots { user, positive, negative }) in triplets.iter().enumerate() {
            let (user, positive, negative) = (&rows[at(user)], &rows[at(positive)], &rows[at(negative)]);
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
        let slopes = &mut local.slopes[..];
        for (place, &Slots { user, positive, negative }) in triplets.iter().enumerate() {
            let (down, up) = (Lanes::splat(-slope.0[place]), Lanes::splat(slope.0[place]));
            let (user, positive, negative) = (at(user).start, at(positive).start, at(negative).start);
            for vector in 0..vectors {
                keep_vectors_whole();
                let mine = rows[user + vector];
                let difference = rows[positive + vector] - rows[negative + vector];
                slopes[user + vector] = down.mul_add(difference, slopes[user + vector]);
                slopes[positive + vector] = down.mul_add(mine, slopes[positive + vector]);
                slopes[negative + vector] = up.mul_add(mine, slopes[negative + vector]);
            }
        }
    }
    rule.apply::<VECTORS>(local);
}

/// `−ln σ(x)` and `1/(1 + eˣ)` of 16 differences.
#[inline(always)]
fn losses_and_slopes(x: Lanes) -> (Lanes, Lanes) {
    let one = Lanes::splat(1.0);
    let small = (Lanes::ZERO - x.abs()).map(exp);
    let loss = (Lanes::ZERO - x).max(Lanes::ZERO) + (one + small).map(ln);
    (loss, one / (one + x.map(exp)))
}

/// The sum of each of 16 vectors.
///
/// Never inlined: seeing this, LLVM would shuffle lanes in the loop before it.
#[inline(never)]
fn fold_all(square: &[Lanes; LANES]) -> Lanes {
    let mut sums = Lanes::ZERO;
    for (sum, vector) in sums.0.iter_mut().zip(square) {
        *sum = fold(&vector.0);
    }
    sums
}
