//! Local optimizers: gradient descent with momentum, Adam, AdamW.
//!
//! # Definition
//! A step takes the gradient `g` of the mini-batch's loss at the parameters `w` and first adjusts it, in this order:
//!
//! 1. clipping at norm `c`: `g ← g · min(1, c/(‖g‖ + 1e-6))`;
//! 2. a correction `h` that the job was given: `g ← g + h`;
//! 3. the proximal term, with the model `s` that the client was sent: `g ← g + μ(w − s)`;
//! 4. weight decay `λ` of `sgd` and `adam`: `g ← g + λw`;
//! 5. further decay of parts of the model, such as `l2` of cluster networks, whatever the optimizer: `g ← g + λ'w`.
//!
//! With learning rate `η = lr ·` the schedule's factor and `t` the number of the step in the job, from 1:
//!
//! | optimizer | step |
//! |---|---|
//! | `sgd`, momentum 0 | `w ← w − ηg` |
//! | `sgd`, momentum `m`, dampening `d` | `b ← g` if `t = 1`, else `b ← mb + (1 − d)g`; `w ← w − ηb` |
//! | `sgd`, `nesterov` | `b` as above; `w ← w − η(g + mb)` |
//! | `adam` | `a ← β₁a + (1 − β₁)g`, `v ← β₂v + (1 − β₂)g²`; `w ← w − η/(1 − β₁ᵗ) · a/(√v/√(1 − β₂ᵗ) + ε)` |
//! | `adamw` | `w ← (1 − ηλ)w`, then as `adam` without 4. |
//!
//! # Inputs
//! Parameters and gradient of the same length; the model that was sent, for the proximal term.
//!
//! # Source
//! The update rules of torch.optim.SGD, Adam and AdamW and of torch.nn.utils.clip_grad_norm_ in the documentation of
//! PyTorch 2. Adam: D. P. Kingma, J. Ba, ICLR 2015. AdamW: I. Loshchilov, F. Hutter, "Decoupled weight decay
//! regularization", ICLR 2019. Proximal term: T. Li et al., "Federated optimization in heterogeneous networks", MLSys
//! 2020 (FedProx).
//!
//! # Deviations from the source
//! Ranges are narrower than PyTorch's: the learning rate and `epsilon` are positive, momentum and dampening below 1.
//! `√v` is multiplied by the reciprocal of `√(1 − β₂ᵗ)`. A gradient whose norm is NaN is not clipped.
//!
//! # Cost
//! One pass over the parameters for everything but the norm, which is another pass over the gradient. It reads the
//! gradient and, if there is a proximal term, the start, and reads and writes the parameters and, with momentum, one
//! buffer of their length (`adam`, `adamw`: two). A step allocates nothing.
//!
//! # Determinism
//! Settings that combine several numbers (`η/(1 − β₁ᵗ)`, `1 − β₂` …) are worked out in `f64` and rounded to `f32` once;
//! each parameter is then treated alone, in `f32`, by rounded operations that are never fused. The norm is added up
//! in `f64`, square `j` in sum `j mod 16`, the 16 sums folded in halves. So neither the width of vectors nor the number
//! of threads changes a bit.
//!
//! # Example
//! ```toml
//! [training]
//! optimizer = { sgd = { lr = 0.01, momentum = 0.9 } }
//! # optimizer = { adam = { lr = 0.001 } }
//! # optimizer = { adamw = { lr = 0.001 } }
//! ```

mod pass;
mod rule;
mod step;

pub(crate) use rule::{Descent, Powers, Rule};
pub(crate) use step::Step;

use super::TrainingError;
use crate::lanes::{Kernel, LANES, Path, run};
use fedgenie_core::catalogue::Catalogue;
use fedgenie_core::math::float::sqrt;
use rule::{Adam, Momentum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Optimizers that scenarios can name.
pub static CATALOGUE: Catalogue =
    Catalogue { kind: "optimizer", definition: "OptimizerConfig", entries: &[], shared: include_str!("optimizer.rs") };

/// An optimizer as a scenario writes it, for example `{ sgd = { lr = 5e-3, momentum = 0.9 } }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum OptimizerConfig {
    /// Stochastic gradient descent, plain or with momentum.
    Sgd {
        /// Learning rate; positive.
        lr: f64,
        /// Share of the buffer that a step keeps; at least 0 and below 1.
        #[serde(default)]
        momentum: f64,
        /// Nesterov's momentum; needs a positive momentum and no dampening.
        #[serde(default)]
        nesterov: bool,
        /// Weight decay, added to the gradient; at least 0.
        #[serde(default)]
        weight_decay: f64,
        /// Share of the gradient that does not enter the buffer after the first step; at least 0 and below 1.
        #[serde(default)]
        dampening: f64,
    },
    /// Adam, with weight decay added to the gradient.
    Adam {
        /// Learning rate; positive.
        lr: f64,
        /// Share of the mean gradient that a step keeps; at least 0 and below 1.
        #[serde(default = "default_beta1")]
        beta1: f64,
        /// Share of the mean squared gradient that a step keeps; at least 0 and below 1.
        #[serde(default = "default_beta2")]
        beta2: f64,
        /// Added to the root; positive.
        #[serde(default = "default_epsilon")]
        epsilon: f64,
        /// Weight decay, added to the gradient; at least 0.
        #[serde(default)]
        weight_decay: f64,
    },
    /// AdamW: Adam with decoupled weight decay.
    #[serde(rename = "adamw")]
    AdamW {
        /// Learning rate; positive.
        lr: f64,
        /// Share of the mean gradient that a step keeps; at least 0 and below 1.
        #[serde(default = "default_beta1")]
        beta1: f64,
        /// Share of the mean squared gradient that a step keeps; at least 0 and below 1.
        #[serde(default = "default_beta2")]
        beta2: f64,
        /// Added to the root; positive.
        #[serde(default = "default_epsilon")]
        epsilon: f64,
        /// Weight decay, a share of the parameters in units of the learning rate; at least 0.
        #[serde(default = "default_decoupled_decay")]
        weight_decay: f64,
    },
}

const fn default_beta1() -> f64 {
    0.9
}
const fn default_beta2() -> f64 {
    0.999
}
const fn default_epsilon() -> f64 {
    1e-8
}
const fn default_decoupled_decay() -> f64 {
    0.01
}

/// Settings are used in single precision, where they must not vanish or overflow either.
pub(super) fn positive(key: &'static str, found: f64) -> Result<(), TrainingError> {
    let single = found as f32;
    let is_fine = single.is_finite() && single > 0.0;
    is_fine.then_some(()).ok_or(TrainingError { key, found, expected: "positive and finite in single precision" })
}

fn not_negative(key: &'static str, found: f64) -> Result<(), TrainingError> {
    let is_fine = (found as f32).is_finite() && found >= 0.0;
    is_fine.then_some(()).ok_or(TrainingError { key, found, expected: "a finite number of at least 0" })
}

fn below_one(key: &'static str, found: f64) -> Result<(), TrainingError> {
    let is_fine = found >= 0.0 && (found as f32) < 1.0;
    is_fine.then_some(()).ok_or(TrainingError { key, found, expected: "at least 0 and below 1 in single precision" })
}

impl OptimizerConfig {
    /// The kind's name, as a scenario writes it.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Sgd { .. } => "sgd",
            Self::Adam { .. } => "adam",
            Self::AdamW { .. } => "adamw",
        }
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// Names the first setting out of its range by its key below [`OptimizerConfig::kind`].
    pub fn check(&self) -> Result<(), TrainingError> {
        match *self {
            Self::Sgd { lr, momentum, nesterov, weight_decay, dampening } => {
                positive("lr", lr)?;
                below_one("momentum", momentum)?;
                not_negative("weight_decay", weight_decay)?;
                below_one("dampening", dampening)?;
                if nesterov && momentum as f32 == 0.0 {
                    let expected = "positive for nesterov's momentum";
                    return Err(TrainingError { key: "momentum", found: momentum, expected });
                }
                if nesterov && dampening != 0.0 {
                    let expected = "0 for nesterov's momentum";
                    return Err(TrainingError { key: "dampening", found: dampening, expected });
                }
                Ok(())
            }
            Self::Adam { lr, beta1, beta2, epsilon, weight_decay }
            | Self::AdamW { lr, beta1, beta2, epsilon, weight_decay } => {
                positive("lr", lr)?;
                below_one("beta1", beta1)?;
                below_one("beta2", beta2)?;
                positive("epsilon", epsilon)?;
                not_negative("weight_decay", weight_decay)
            }
        }
    }
}

/// Changes to the gradient of the loss before the optimizer sees it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Regularisation<'a> {
    /// The largest Euclidean norm of a gradient over all parameters; larger ones are scaled down. Positive.
    pub clip: Option<f32>,
    /// Numbers added to it, one for each parameter.
    pub correction: Option<&'a [f32]>,
    /// Pull towards the model that the client was sent.
    pub proximal: Option<Proximal<'a>>,
    /// Decay of parts, beside the optimizer's of all parameters; ascending and apart.
    pub decays: &'a [Decay],
}

impl Regularisation<'_> {
    /// Whether the slopes of a part of the parameters are enough to move it.
    pub const fn is_by_parts(&self) -> bool {
        self.clip.is_none() && self.correction.is_none()
    }
}

/// Weight decay of a part of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Decay {
    /// Where the part lies.
    pub range: Range<usize>,
    /// Its rate, added to the optimizer's; not negative.
    pub rate: f64,
}

/// The term `μ/2 ‖w − s‖²` of FedProx, added to the loss.
#[derive(Clone, Copy, Debug)]
pub struct Proximal<'a> {
    /// Its weight μ; not negative.
    pub mu: f32,
    /// The model `s` that the client was sent.
    pub start: &'a [f32],
}

/// Checks the settings of [`Regularisation`] as a scenario gives them.
///
/// # Errors
/// Names `clip` or `proximal`.
pub fn check_regularisation(clip: Option<f64>, mu: Option<f64>) -> Result<(), TrainingError> {
    clip.map_or(Ok(()), |clip| positive("clip", clip))?;
    mu.map_or(Ok(()), |mu| not_negative("proximal", mu))
}

/// Squares of numbers, number `j` in sum `j mod 16`; see *Determinism* above.
#[derive(Clone, Copy, Default)]
pub(crate) struct Squares([f64; LANES]);

impl Squares {
    /// Adds the squares of up to 16 numbers, each to its sum.
    #[inline(always)]
    pub fn add(&mut self, numbers: &[f32]) {
        for (sum, &number) in self.0.iter_mut().zip(numbers) {
            *sum += f64::from(number) * f64::from(number);
        }
    }

    /// The sum of all, folded in halves.
    #[inline(always)]
    pub fn sum(mut self) -> f64 {
        let mut width = LANES;
        while width > 1 {
            width /= 2;
            for lane in 0..width {
                self.0[lane] += self.0[lane + width];
            }
        }
        self.0[0]
    }
}

/// The Euclidean norm.
pub fn norm(gradient: &[f32]) -> f64 {
    sqrt(run(Path::detect(), SumOfSquares(gradient)))
}

struct SumOfSquares<'a>(&'a [f32]);

impl Kernel for SumOfSquares<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<const WIDE: bool>(self) -> f64 {
        let mut squares = Squares::default();
        let (blocks, rest) = self.0.as_chunks::<LANES>();
        for block in blocks {
            squares.add(block);
        }
        squares.add(rest);
        squares.sum()
    }
}

/// The factor that clips a gradient of norm `norm`.
pub(crate) fn clip_factor(norm: f64, most: f32) -> f32 {
    let factor = f64::from(most) / (norm + 1e-6);
    if factor < 1.0 { factor as f32 } else { 1.0 }
}

/// An optimizer's state from step to step of one job; reusable from job to job.
#[derive(Clone, Debug, Default)]
pub struct Moments {
    first: Vec<f32>,
    second: Vec<f32>,
    steps: u64,
    powers: Powers,
}

/// Checked settings of an optimizer; see the module.
#[derive(Clone, Debug, PartialEq)]
pub struct Optimizer {
    config: OptimizerConfig,
    lr: f64,
    /// Of the gradient.
    weight_decay: f64,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Descent,
    Momentum { momentum: f32, take: f32, nesterov: bool },
    Adam { betas: [f64; 2], epsilon: f32, decoupled_decay: f64 },
}

impl Optimizer {
    /// Checks the settings and takes them over.
    ///
    /// # Errors
    /// As [`OptimizerConfig::check`].
    pub fn new(config: &OptimizerConfig) -> Result<Self, TrainingError> {
        config.check()?;
        let (lr, weight_decay, kind) = match *config {
            OptimizerConfig::Sgd { lr, momentum, nesterov, weight_decay, dampening } => {
                let momentum = momentum as f32;
                let with_momentum = Kind::Momentum { momentum, take: (1.0 - dampening) as f32, nesterov };
                let kind = if momentum == 0.0 { Kind::Descent } else { with_momentum };
                (lr, weight_decay, kind)
            }
            OptimizerConfig::Adam { lr, beta1, beta2, epsilon, weight_decay } => {
                let kind = Kind::Adam { betas: [beta1, beta2], epsilon: epsilon as f32, decoupled_decay: 0.0 };
                (lr, weight_decay, kind)
            }
            OptimizerConfig::AdamW { lr, beta1, beta2, epsilon, weight_decay } => {
                let kind = Kind::Adam { betas: [beta1, beta2], epsilon: epsilon as f32, decoupled_decay: weight_decay };
                (lr, 0.0, kind)
            }
        };
        Ok(Self { config: config.clone(), lr, weight_decay, kind })
    }

    /// The settings that it was made from.
    pub const fn config(&self) -> &OptimizerConfig {
        &self.config
    }

    /// Whether a step is `w ← w − ηg`, without momentum.
    pub const fn is_plain(&self) -> bool {
        matches!(self.kind, Kind::Descent)
    }

    /// The learning rate η of a step, rounded as steps have it.
    pub fn rate(&self, lr_factor: f32) -> f32 {
        (self.lr * f64::from(lr_factor)) as f32
    }

    /// How many moments each number has: 0 to 2.
    pub const fn moments(&self) -> usize {
        match self.kind {
            Kind::Descent => 0,
            Kind::Momentum { .. } => 1,
            Kind::Adam { .. } => 2,
        }
    }

    /// Weight decay that is added to slopes.
    pub(crate) const fn decay(&self) -> f64 {
        self.weight_decay
    }

    /// The rule of the next step for each number.
    pub(crate) fn next(&self, lr_factor: f32, powers: &mut Powers) -> Rule {
        match self.kind {
            Kind::Descent => Rule::Descent(Descent { lr: self.rate(lr_factor) }),
            Kind::Momentum { momentum, take, nesterov } => {
                Rule::Momentum(Momentum { lr: self.rate(lr_factor), keep: momentum, take, nesterov })
            }
            Kind::Adam { betas, epsilon, decoupled_decay } => {
                let lr = self.lr * f64::from(lr_factor);
                Rule::Adam(Adam::next([lr, decoupled_decay], betas, epsilon, powers))
            }
        }
    }

    /// Forgets the steps of an earlier job; allocates only if the buffers never were this long.
    pub fn begin(&self, parameters: usize, moments: &mut Moments) {
        for (number, buffer) in [&mut moments.first, &mut moments.second].into_iter().enumerate() {
            buffer.clear();
            buffer.resize(if number < self.moments() { parameters } else { 0 }, 0.0);
        }
        (moments.steps, moments.powers) = (0, Powers::default());
    }

    /// Makes one step. `gradient` is that of the mini-batch's mean loss, and is corrected where there is a correction;
    /// `lr_factor` is the schedule's.
    ///
    /// # Panics
    /// If gradient, start, correction or moments do not have the parameters' length: every job [begins](Self::begin)
    /// first.
    pub fn step(
        &self,
        parameters: &mut [f32],
        gradient: &mut [f32],
        lr_factor: f32,
        extra: &Regularisation<'_>,
        moments: &mut Moments,
    ) {
        let length = parameters.len();
        assert_eq!(gradient.len(), length, "a gradient has one slope for each parameter");
        let mut scale = extra.clip.map_or(1.0, |most| clip_factor(norm(gradient), most));
        if let Some(correction) = extra.correction {
            assert_eq!(correction.len(), length, "a correction has one number for each parameter");
            gradient.iter_mut().zip(correction).for_each(|(slope, more)| *slope = scale * *slope + more);
            scale = 1.0;
        }
        let step = &mut self.next_step(lr_factor, extra, moments);
        step.scale = scale;
        step.take(0, parameters, gradient);
    }

    /// The next step, for parts of the parameters one after the other; it does not clip and corrects nothing.
    ///
    /// # Panics
    /// As [`Optimizer::step`].
    pub(crate) fn next_step<'a>(
        &self,
        lr_factor: f32,
        extra: &Regularisation<'a>,
        moments: &'a mut Moments,
    ) -> Step<'a> {
        let Moments { first, second, steps, powers } = moments;
        *steps += 1;
        let (rule, is_first) = (self.next(lr_factor, powers), *steps == 1);
        let proximal = extra.proximal.filter(|proximal| proximal.mu != 0.0);
        let (decay, decays) = (self.weight_decay, extra.decays);
        // A buffer that the rule does not need is empty.
        let moments =
            [(1, first), (2, second)].map(|(least, buffer)| (self.moments() >= least).then_some(&mut buffer[..]));
        Step { rule, is_first, scale: 1.0, proximal, decay, decays, moments }
    }
}

#[cfg(test)]
mod tests;
