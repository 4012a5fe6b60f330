//! One step on a mini-batch: losses, slopes, and the optimizer's pass over the rows that were met.

#![allow(clippy::needless_range_loop, reason = "loops over vectors are the same for all rows")]

use super::optimizer::{RowRegularisation, RowStep};
use super::rows::LocalRows;
use crate::lanes::functions::{exp, ln};
use crate::lanes::{Kernel, LANES, Lanes, fold, keep_vectors_whole};

/// The rows of a user, a positive and a negative item, in this order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Triple {
    pub slots: [u32; 3],
    /// Their places among the rows that the step meets.
    pub places: [u32; 3],
}

/// Losses, slopes and step of a mini-batch; `losses` gets one number for each triplet.
pub struct Step<'a> {
    pub triplets: &'a [Triple],
    pub losses: &'a mut [f32],
    pub rows: &'a mut LocalRows,
    pub extra: RowRegularisation,
    pub rule: RowStep,
}

impl Kernel for Step<'_> {
    type Output = ();
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { triplets, losses, rows, extra, rule } = self;
        // Rows of one and two vectors have loops of known length.
        match rows.vectors {
            _ if extra.is_some() => step::<0, true>(triplets, losses, rows, extra, rule),
            1 => step::<1, false>(triplets, losses, rows, extra, rule),
            2 => step::<2, false>(triplets, losses, rows, extra, rule),
            4 => step::<4, false>(triplets, losses, rows, extra, rule),
            _ => step::<0, false>(triplets, losses, rows, extra, rule),
        }
    }
}

/// The step on rows of `VECTORS` vectors; 0 stands for any other number. Whether slopes are regularised is known when
/// compiled: plain steps do not look.
#[inline(always)]
fn step<const VECTORS: usize, const REGULARISED: bool>(
    triplets: &[Triple],
    losses: &mut [f32],
    local: &mut LocalRows,
    extra: RowRegularisation,
    rule: RowStep,
) {
    slopes::<VECTORS>(triplets, losses, local);
    if REGULARISED {
        extra.apply(local, 0.0);
    }
    rule.apply::<VECTORS>(local);
}

/// Losses of triplets, and their addends to the slopes of their rows.
#[inline(always)]
pub(super) fn slopes<const VECTORS: usize>(triplets: &[Triple], losses: &mut [f32], local: &mut LocalRows) {
    let vectors = if VECTORS == 0 { local.vectors } else { VECTORS };
    let share = Lanes::splat(1.0 / triplets.len() as f32);
    let at = |row: u32| row as usize * vectors..(row as usize + 1) * vectors;
    let mut square = [Lanes::ZERO; LANES];
    for (triplets, losses) in triplets.chunks(LANES).zip(losses.chunks_mut(LANES)) {
        let rows = &local.rows[..];
        for (place, &Triple { slots: [user, positive, negative], .. }) in triplets.iter().enumerate() {
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
        for (place, &Triple { slots, places }) in triplets.iter().enumerate() {
            let (down, up) = (Lanes::splat(-slope.0[place]), Lanes::splat(slope.0[place]));
            let [user, positive, negative] = slots;
            let (user, positive, negative) = (&rows[at(user)], &rows[at(positive)], &rows[at(negative)]);
            let of_user = &mut slopes[at(places[0])];
            for vector in 0..vectors {
                keep_vectors_whole();
                of_user[vector] = down.mul_add(positive[vector] - negative[vector], of_user[vector]);
            }
            let of_positive = &mut slopes[at(places[1])];
            for vector in 0..vectors {
                keep_vectors_whole();
                of_positive[vector] = down.mul_add(user[vector], of_positive[vector]);
            }
            let of_negative = &mut slopes[at(places[2])];
            for vector in 0..vectors {
                keep_vectors_whole();
                of_negative[vector] = up.mul_add(user[vector], of_negative[vector]);
            }
        }
    }
}

/// `−ln σ(x)` and `1/(1 + eˣ)` of 16 differences.
#[inline(always)]
pub(crate) fn losses_and_slopes(x: Lanes) -> (Lanes, Lanes) {
    let one = Lanes::splat(1.0);
    let small = (Lanes::ZERO - x.abs()).map(exp);
    let loss = (Lanes::ZERO - x).max(Lanes::ZERO) + (one + small).map(ln);
    (loss, one / (one + x.map(exp)))
}

/// The sum of each of 16 vectors.
///
/// Never inlined: seeing this, LLVM would shuffle lanes in the loop before it.
#[inline(never)]
pub(crate) fn fold_all(square: &[Lanes; LANES]) -> Lanes {
    let mut sums = Lanes::ZERO;
    for (sum, vector) in sums.0.iter_mut().zip(square) {
        *sum = fold(&vector.0);
    }
    sums
}
