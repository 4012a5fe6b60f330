//! The optimizers of local training, applied to some rows of a table at a time.
//!
//! # Definition
//! A step takes the slopes of the rows that its mini-batch meets, and treats these rows as
//! [`trainer::optimizer`](crate::trainer::optimizer) treats parameters: weight decay, momentum, Adam, AdamW have the
//! same formulas. Rows that are not met keep their numbers and their moments: neither weight decay nor momentum reaches
//! them. The gradient whose norm is clipped is that of the rows that the step moves, and the proximal term pulls these
//! rows towards what they were when the job first met them: items' rows as they were sent, users' rows as the client
//! kept them. Moments are zero when a job begins; a row's momentum buffer is its slopes when the job first meets it.
//! `t` in `β₁ᵗ` and `β₂ᵗ` is the number of the job's step, whichever rows it meets.
//!
//! # Source
//! torch.optim.SparseAdam in the documentation of PyTorch 2: Adam on the rows that have slopes.
//!
//! # Determinism
//! As in `trainer::optimizer`: rounded operations in the same order that are never fused, settings rounded once. The
//! norm is added up in `f64`, row after row as the step meets them, number `j` of a row in sum `j mod 16`, the 16 sums
//! folded in halves.

#![allow(clippy::needless_range_loop, reason = "loops over vectors are the same for all rows")]

use super::rows::{LocalRows, Met};
use crate::lanes::{LANES, Lanes, keep_vectors_whole};
use crate::trainer::optimizer::clip_factor;
use crate::trainer::{OptimizerConfig, TrainingError};
use fedgenie_core::math::float::sqrt;

/// Checked settings of an optimizer for rows.
#[derive(Clone, Debug, PartialEq)]
pub struct RowOptimizer {
    config: OptimizerConfig,
}

/// β₁ᵗ and β₂ᵗ of a job.
#[derive(Clone, Copy, Debug)]
pub struct Powers([f64; 2]);

impl Powers {
    /// Those before the first step.
    pub const ONE: Self = Self([1.0; 2]);
}

impl RowOptimizer {
    /// Checks the settings and takes them over.
    ///
    /// # Errors
    /// As [`OptimizerConfig::check`].
    pub fn new(config: &OptimizerConfig) -> Result<Self, TrainingError> {
        config.check()?;
        Ok(Self { config: config.clone() })
    }

    /// How many moments each number has: 0 to 2.
    pub fn moments(&self) -> usize {
        match self.config {
            OptimizerConfig::Sgd { momentum, .. } => usize::from(momentum as f32 != 0.0),
            OptimizerConfig::Adam { .. } | OptimizerConfig::AdamW { .. } => 2,
        }
    }

    /// The rule of the next step.
    pub(super) fn next(&self, lr_factor: f32, powers: &mut Powers) -> RowStep {
        match self.config {
            OptimizerConfig::Sgd { lr, momentum, nesterov, weight_decay, dampening } => {
                let lr = (lr * f64::from(lr_factor)) as f32;
                let decay = weight_decay as f32;
                if momentum as f32 == 0.0 {
                    return RowStep { decay, rule: Rule::Descent { lr } };
                }
                let (momentum, take) = (momentum as f32, (1.0 - dampening) as f32);
                RowStep { decay, rule: Rule::Momentum { lr, momentum, take, nesterov } }
            }
            OptimizerConfig::Adam { lr, beta1, beta2, epsilon, weight_decay } => {
                adam([lr, epsilon], [beta1, beta2], [weight_decay, 0.0], lr_factor, powers)
            }
            OptimizerConfig::AdamW { lr, beta1, beta2, epsilon, weight_decay } => {
                adam([lr, epsilon], [beta1, beta2], [0.0, weight_decay], lr_factor, powers)
            }
        }
    }
}

fn adam(
    [lr, epsilon]: [f64; 2],
    betas: [f64; 2],
    [decay, decoupled]: [f64; 2],
    lr_factor: f32,
    Powers(powers): &mut Powers,
) -> RowStep {
    powers.iter_mut().zip(&betas).for_each(|(power, beta)| *power *= beta);
    let lr = lr * f64::from(lr_factor);
    let rule = Rule::Adam {
        shrink: (1.0 - lr * decoupled) as f32,
        lr: (lr / (1.0 - powers[0])) as f32,
        keep: betas.map(|beta| beta as f32),
        take: betas.map(|beta| (1.0 - beta) as f32),
        root: (1.0 / sqrt(1.0 - powers[1])) as f32,
        epsilon: epsilon as f32,
    };
    RowStep { decay: decay as f32, rule }
}

/// What is done to slopes before the optimizer sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RowRegularisation {
    /// The largest Euclidean norm of a step's slopes; larger ones are scaled down. Positive.
    pub clip: Option<f32>,
    /// Weight μ of the pull of rows towards what they were before the job; not negative.
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

    /// Adjusts the slopes of the rows that a step moves; `others` is the square of the norm of what else it moves.
    /// Returns what slopes were scaled with.
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
    let mut sums = [0.0_f64; LANES];
    let moving = met.iter().zip(slopes.chunks_exact(vectors)).filter(|(met, _)| met.moves);
    for slopes in moving.flat_map(|(_, slopes)| slopes) {
        for lane in 0..LANES {
            let slope = f64::from(slopes.0[lane]);
            sums[lane] += slope * slope;
        }
    }
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for lane in 0..width {
            sums[lane] += sums[lane + width];
        }
    }
    sqrt(sums[0] + others)
}

/// What one step does to the rows that it meets.
#[derive(Clone, Copy, Debug)]
pub struct RowStep {
    decay: f32,
    rule: Rule,
}

#[derive(Clone, Copy, Debug)]
enum Rule {
    Descent { lr: f32 },
    Momentum { lr: f32, momentum: f32, take: f32, nesterov: bool },
    Adam { shrink: f32, lr: f32, keep: [f32; 2], take: [f32; 2], root: f32, epsilon: f32 },
}

impl RowStep {
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

    // Every number is spread over a vector by name: `array::map` may be compiled for the oldest processor.
    #[inline(always)]
    fn pass<const DECAYS: bool>(self, vectors: usize, local: &mut LocalRows) {
        let LocalRows { rows, slopes, first, second, met, .. } = local;
        let decay = Lanes::splat(self.decay);
        let moving = met.iter().zip(slopes.chunks_exact(vectors)).filter(|(met, _)| met.moves);
        match self.rule {
            Rule::Descent { lr } => {
                let lr = Lanes::splat(lr);
                for (&Met { slot, .. }, slopes) in moving {
                    let range = slot as usize * vectors..(slot as usize + 1) * vectors;
                    let rows = &mut rows[range];
                    for vector in 0..vectors {
                        keep_vectors_whole();
                        let row = rows[vector];
                        rows[vector] = row - lr * decayed::<DECAYS>(slopes[vector], decay, row);
                    }
                }
            }
            Rule::Momentum { lr, momentum, take, nesterov } => {
                let (lr, look_ahead) = (Lanes::splat(lr), Lanes::splat(momentum));
                for (&Met { slot, is_first, .. }, slopes) in moving {
                    let range = slot as usize * vectors..(slot as usize + 1) * vectors;
                    let rows = &mut rows[range.clone()];
                    let buffer = &mut first[range];
                    let keep = Lanes::splat(if is_first { 0.0 } else { momentum });
                    let take = Lanes::splat(if is_first { 1.0 } else { take });
                    for vector in 0..vectors {
                        keep_vectors_whole();
                        let row = rows[vector];
                        let slope = decayed::<DECAYS>(slopes[vector], decay, row);
                        let velocity = keep * buffer[vector] + take * slope;
                        buffer[vector] = velocity;
                        let direction = if nesterov { slope + look_ahead * velocity } else { velocity };
                        rows[vector] = row - lr * direction;
                    }
                }
            }
            Rule::Adam { shrink, lr, keep, take, root, epsilon } => {
                let (shrink, lr) = (Lanes::splat(shrink), Lanes::splat(lr));
                let (root, epsilon) = (Lanes::splat(root), Lanes::splat(epsilon));
                let (keep_mean, keep_square) = (Lanes::splat(keep[0]), Lanes::splat(keep[1]));
                let (take_mean, take_square) = (Lanes::splat(take[0]), Lanes::splat(take[1]));
                for (&Met { slot, .. }, slopes) in moving {
                    let range = slot as usize * vectors..(slot as usize + 1) * vectors;
                    let rows = &mut rows[range.clone()];
                    let (means, squares) = (&mut first[range.clone()], &mut second[range]);
                    for vector in 0..vectors {
                        keep_vectors_whole();
                        let row = rows[vector];
                        let slope = decayed::<DECAYS>(slopes[vector], decay, row);
                        let mean = keep_mean * means[vector] + take_mean * slope;
                        let square = keep_square * squares[vector] + take_square * (slope * slope);
                        means[vector] = mean;
                        squares[vector] = square;
                        rows[vector] = shrink * row - lr * mean / (square.sqrt() * root + epsilon);
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn decayed<const DECAYS: bool>(slope: Lanes, decay: Lanes, row: Lanes) -> Lanes {
    if DECAYS { slope + decay * row } else { slope }
}
