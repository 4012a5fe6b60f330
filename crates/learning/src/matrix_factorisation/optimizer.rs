//! The optimizers of local training, applied to some rows of a table at a time.
//!
//! # Definition
//! A step takes the slopes of the rows that its mini-batch meets, and treats these rows as
//! [`trainer::optimizer`](crate::trainer::optimizer) treats parameters: weight decay, momentum, Adam, AdamW have the
//! same formulas. Rows that are not met keep their numbers and their moments: neither weight decay nor momentum reaches
//! them. The gradient whose norm is clipped is that of the rows that the step moves, and the proximal term pulls these
//! rows towards their values when the job first met them: items' rows as they were sent, users' rows as the client
//! kept them. Moments are zero when a job begins; a row's momentum buffer is its slopes when the job first meets it.
//! `t` in `β₁ᵗ` and `β₂ᵗ` is the number of the job's step, whichever rows it meets.
//!
//! # Source
//! torch.optim.SparseAdam in the documentation of PyTorch 2: Adam on the rows that have slopes.
//!
//! # Determinism
//! As in `trainer::optimizer`, which has the rules that both follow. The norm is added up in `f64`, row after row as
//! the step meets them, number `j` of a row in sum `j mod 16`, the 16 sums folded in halves.

#![allow(clippy::needless_range_loop, reason = "loops over vectors are the same for all rows")]

use super::rows::{LocalRows, Met};
use crate::lanes::{Kernel, Lanes, Path, keep_vectors_whole, run};
use crate::trainer::Optimizer;
use crate::trainer::optimizer::{Descent, Powers, Rule, Squares, clip_factor};
use fedgenie_core::math::float::sqrt;

/// The treatment of slopes before the optimizer sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RowRegularisation {
    /// The largest Euclidean norm of a step's slopes; larger ones are scaled down. Positive.
    pub clip: Option<f32>,
    /// Weight μ of the pull of rows towards their values before the job; not negative.
    pub proximal: f32,
}

impl RowRegularisation {
    /// Whether there is anything to do.
    pub(crate) fn is_some(self) -> bool {
        self != Self::default()
    }

    /// Whether rows must be kept as they were.
    pub(super) fn needs_starts(self) -> bool {
        self.proximal != 0.0
    }

    /// Adjusts the slopes of the rows that a step moves; `others` is the square of the norm of its other slopes.
    /// Returns the factor of all slopes.
    #[inline(always)]
    pub(crate) fn apply(self, local: &mut LocalRows, others: f64) -> f32 {
        let vectors = local.vectors;
        let LocalRows { rows, starts, slopes, met, .. } = local;
        let scale = match self.clip {
            Some(most) => clip_factor(norm(vectors, slopes, met, others), most),
            None => 1.0,
        };
        let (factor, pull) = (Lanes::splat(scale), Lanes::splat(self.proximal));
        let moving = met.iter().zip(slopes.chunks_exact_mut(vectors)).filter(|(met, _)| met.moves);
        for (&Met { slot, .. }, slopes) in moving {
            let range = slot as usize * vectors..(slot as usize + 1) * vectors;
            if self.needs_starts() {
                let (rows, starts) = (&rows[range.clone()], &starts[range]);
                for vector in 0..vectors {
                    keep_vectors_whole();
                    slopes[vector] = slopes[vector] * factor + pull * (rows[vector] - starts[vector]);
                }
            } else {
                for vector in 0..vectors {
                    keep_vectors_whole();
                    slopes[vector] = slopes[vector] * factor;
                }
            }
        }
        scale
    }
}

/// The Euclidean norm of the slopes of the rows that move, and of others, whose square is given.
#[inline(always)]
fn norm(vectors: usize, slopes: &[Lanes], met: &[Met], others: f64) -> f64 {
    let mut squares = Squares::default();
    let moving = met.iter().zip(slopes.chunks_exact(vectors)).filter(|(met, _)| met.moves);
    for slopes in moving.flat_map(|(_, slopes)| slopes) {
        squares.add(&slopes.0);
    }
    sqrt(squares.sum() + others)
}

/// One step on the rows that it meets.
#[derive(Clone, Copy, Debug)]
pub struct RowStep {
    decay: f32,
    rule: Rule,
}

impl RowStep {
    /// The next step of an optimizer.
    pub(super) fn next(optimizer: &Optimizer, lr_factor: f32, powers: &mut Powers) -> Self {
        Self { decay: optimizer.decay() as f32, rule: optimizer.next(lr_factor, powers) }
    }

    /// Moves the rows of a correction by it, whichever rows the step meets: a number added to a slope moves a parameter
    /// as much as that slope does, and plain descent may apply one after the other.
    ///
    /// # Panics
    /// If this is a step of another optimizer.
    pub fn correct(self, path: Path, rows: &mut LocalRows) {
        let Rule::Descent(rule) = self.rule else { panic!("rows are corrected in plain descent") };
        run(path, Corrected { rule, rows });
    }

    /// Moves the rows that were met and forgets that they were. `VECTORS` is the number of vectors of a row; 0 stands
    /// for any other than those that are compiled for it.
    #[inline(always)]
    pub fn apply<const VECTORS: usize>(self, local: &mut LocalRows) {
        self.move_rows::<VECTORS>(local);
        local.met.clear();
    }

    /// Moves the rows that were met; the step goes on.
    #[inline(always)]
    pub fn move_rows<const VECTORS: usize>(self, local: &mut LocalRows) {
        let vectors = if VECTORS == 0 { local.vectors } else { VECTORS };
        if self.decay == 0.0 {
            self.pass::<false>(vectors, local);
        } else {
            self.pass::<true>(vectors, local);
        }
    }

    #[inline(always)]
    fn pass<const DECAYS: bool>(self, vectors: usize, local: &mut LocalRows) {
        let LocalRows { rows, slopes, first, second, met, .. } = local;
        let decay = Lanes::splat(self.decay);
        let moving = met.iter().zip(slopes.chunks_exact(vectors)).filter(|(met, _)| met.moves);
        match self.rule {
            Rule::Descent(rule) => {
                let rule = rule.spread();
                for (&Met { slot, .. }, slopes) in moving {
                    let rows = &mut rows[slot as usize * vectors..(slot as usize + 1) * vectors];
                    for vector in 0..vectors {
                        keep_vectors_whole();
                        let row = rows[vector];
                        rows[vector] = rule.step(row, decayed::<DECAYS>(slopes[vector], decay, row));
                    }
                }
            }
            Rule::Momentum(rule) => {
                let rule = rule.spread();
                for (&Met { slot, is_first, .. }, slopes) in moving {
                    let range = slot as usize * vectors..(slot as usize + 1) * vectors;
                    let (rows, buffer) = (&mut rows[range.clone()], &mut first[range]);
                    let shares = rule.shares(is_first);
                    for vector in 0..vectors {
                        keep_vectors_whole();
                        let row = rows[vector];
                        let slope = decayed::<DECAYS>(slopes[vector], decay, row);
                        rows[vector] = rule.step(shares, row, slope, &mut buffer[vector]);
                    }
                }
            }
            Rule::Adam(rule) => {
                let rule = rule.spread();
                for (&Met { slot, .. }, slopes) in moving {
                    let range = slot as usize * vectors..(slot as usize + 1) * vectors;
                    let rows = &mut rows[range.clone()];
                    let (means, squares) = (&mut first[range.clone()], &mut second[range]);
                    for vector in 0..vectors {
                        keep_vectors_whole();
                        let row = rows[vector];
                        let slope = decayed::<DECAYS>(slopes[vector], decay, row);
                        rows[vector] = rule.step(row, slope, &mut means[vector], &mut squares[vector]);
                    }
                }
            }
        }
    }
}

struct Corrected<'a> {
    rule: Descent<f32>,
    rows: &'a mut LocalRows,
}

impl Kernel for Corrected<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { rule, rows: LocalRows { vectors, rows, corrected, corrections, .. } } = self;
        let (rule, vectors) = (rule.spread(), *vectors);
        for (&slot, corrections) in corrected.iter().zip(corrections.chunks_exact(vectors)) {
            let rows = &mut rows[slot as usize * vectors..(slot as usize + 1) * vectors];
            for vector in 0..vectors {
                keep_vectors_whole();
                rows[vector] = rule.step(rows[vector], corrections[vector]);
            }
        }
    }
}

#[inline(always)]
fn decayed<const DECAYS: bool>(slope: Lanes, decay: Lanes, row: Lanes) -> Lanes {
    if DECAYS { slope + decay * row } else { slope }
}
