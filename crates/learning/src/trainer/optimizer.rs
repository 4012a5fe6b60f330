//! Local optimizers: what a step makes of a gradient. Gradient descent with momentum, Adam, AdamW.
//!
//! # Definition
//! A step takes the gradient `g` of the mini-batch's loss at the parameters `w` and first adjusts it, in this order:
//!
//! 1. clipping at norm `c`: `g ← g · min(1, c/(‖g‖ + 1e-6))`;
//! 2. the proximal term, with the model `s` that the client was sent: `g ← g + μ(w − s)`;
//! 3. weight decay `λ` of `sgd` and `adam`: `g ← g + λw`;
//! 4. further decay of parts of the model, such as `l2` of cluster networks, whatever the optimizer: `g ← g + λ'w`.
//!
//! With learning rate `η = lr ·` the schedule's factor and `t` the number of the step in the job, from 1:
//!
//! | optimizer | step |
//! |---|---|
//! | `sgd`, momentum 0 | `w ← w − ηg` |
//! | `sgd`, momentum `m`, dampening `d` | `b ← g` if `t = 1`, else `b ← mb + (1 − d)g`; `w ← w − ηb` |
//! | `sgd`, `nesterov` | `b` as above; `w ← w − η(g + mb)` |
//! | `adam` | `a ← β₁a + (1 − β₁)g`, `v ← β₂v + (1 − β₂)g²`; `w ← w − η/(1 − β₁ᵗ) · a/(√v/√(1 − β₂ᵗ) + ε)` |
//! | `adamw` | `w ← (1 − ηλ)w`, then as `adam` without 3. |
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

use super::TrainingError;
use crate::lanes::{Path, run};
use fedgenie_core::catalogue::Catalogue;
use fedgenie_core::math::float::sqrt;
use pass::{Adam, AdamPass, Momentum, Pass};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// What scenarios can name as optimizer.
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

/// What is done to the gradient of the loss before the optimizer sees it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Regularisation<'a> {
    /// The largest Euclidean norm of a gradient over all parameters; larger ones are scaled down. Positive.
    pub clip: Option<f32>,
    /// Pull towards the model that the client was sent.
    pub proximal: Option<Proximal<'a>>,
    /// Decay of parts, beside the optimizer's of all parameters; ascending and apart.
    pub decays: &'a [Decay],
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

/// The Euclidean norm, added up in 16 partial sums; see *Determinism* above.
pub fn norm(gradient: &[f32]) -> f64 {
    const LANES: usize = 16;
    let (blocks, rest) = gradient.as_chunks::<LANES>();
    let mut sums = [0.0_f64; LANES];
    for block in blocks {
        for lane in 0..LANES {
            let slope = f64::from(block[lane]);
            sums[lane] += slope * slope;
        }
    }
    for (sum, &slope) in sums.iter_mut().zip(rest) {
        *sum += f64::from(slope) * f64::from(slope);
    }
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for lane in 0..width {
            sums[lane] += sums[lane + width];
        }
    }
    sqrt(sums[0])
}

/// The factor that clips a gradient of norm `norm`.
pub(crate) fn clip_factor(norm: f64, most: f32) -> f32 {
    let factor = f64::from(most) / (norm + 1e-6);
    if factor < 1.0 { factor as f32 } else { 1.0 }
}

/// What an optimizer remembers from step to step of one job; reusable from job to job.
#[derive(Clone, Debug, Default)]
pub struct Moments {
    first: Vec<f32>,
    second: Vec<f32>,
    steps: u64,
    /// β₁ᵗ and β₂ᵗ.
    beta_powers: [f64; 2],
}

/// Checked settings of an optimizer; see the module.
#[derive(Clone, Debug, PartialEq)]
pub struct Optimizer {
    config: OptimizerConfig,
    lr: f64,
    /// Of the gradient.
    weight_decay: f64,
    rule: Rule,
}

#[derive(Clone, Debug, PartialEq)]
enum Rule {
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
        let (lr, weight_decay, rule) = match *config {
            OptimizerConfig::Sgd { lr, momentum, nesterov, weight_decay, dampening } => {
                let momentum = momentum as f32;
                let with_momentum = Rule::Momentum { momentum, take: (1.0 - dampening) as f32, nesterov };
                let rule = if momentum == 0.0 { Rule::Descent } else { with_momentum };
                (lr, weight_decay, rule)
            }
            OptimizerConfig::Adam { lr, beta1, beta2, epsilon, weight_decay } => {
                let rule = Rule::Adam { betas: [beta1, beta2], epsilon: epsilon as f32, decoupled_decay: 0.0 };
                (lr, weight_decay, rule)
            }
            OptimizerConfig::AdamW { lr, beta1, beta2, epsilon, weight_decay } => {
                let rule = Rule::Adam { betas: [beta1, beta2], epsilon: epsilon as f32, decoupled_decay: weight_decay };
                (lr, 0.0, rule)
            }
        };
        Ok(Self { config: config.clone(), lr, weight_decay, rule })
    }

    /// The settings that it was made from.
    pub const fn config(&self) -> &OptimizerConfig {
        &self.config
    }

    /// Forgets the steps of an earlier job; allocates only if the buffers never were this long.
    pub fn begin(&self, parameters: usize, moments: &mut Moments) {
        let (first, second) = match self.rule {
            Rule::Descent => (0, 0),
            Rule::Momentum { .. } => (parameters, 0),
            Rule::Adam { .. } => (parameters, parameters),
        };
        for (buffer, length) in [(&mut moments.first, first), (&mut moments.second, second)] {
            buffer.clear();
            buffer.resize(length, 0.0);
        }
        moments.steps = 0;
        moments.beta_powers = [1.0; 2];
    }

    /// Makes one step. `gradient` is that of the mini-batch's mean loss; `lr_factor` is the schedule's.
    ///
    /// # Panics
    /// If gradient, start or moments do not have the parameters' length: every job [begins](Self::begin) first.
    pub fn step(
        &self,
        parameters: &mut [f32],
        gradient: &[f32],
        lr_factor: f32,
        extra: &Regularisation<'_>,
        moments: &mut Moments,
    ) {
        assert_eq!(gradient.len(), parameters.len(), "a gradient has one slope for each parameter");
        let scale = extra.clip.map_or(1.0, |most| clip_factor(norm(gradient), most));
        let proximal = extra.proximal.filter(|proximal| proximal.mu != 0.0);
        // Without a proximal term, any slice stands in for the start: it is not read, or multiplied by 0.
        let (pull, start) = proximal.map_or((0.0, gradient), |proximal| (proximal.mu, proximal.start));
        assert_eq!(start.len(), parameters.len(), "the model that was sent has another length");
        let length = parameters.len();
        let Moments { first, second, steps, beta_powers } = moments;
        match self.rule {
            Rule::Descent => {}
            Rule::Momentum { .. } => assert_eq!(first.len(), length, "momentum begins with every job"),
            Rule::Adam { betas, .. } => {
                assert!(first.len() == length && second.len() == length, "moments begin with every job");
                beta_powers.iter_mut().zip(&betas).for_each(|(power, beta)| *power *= beta);
            }
        }
        *steps += 1;
        let step = Step { lr: self.lr * f64::from(lr_factor), is_first: *steps == 1, beta_powers: *beta_powers };
        let mut part = |range: Range<usize>, further: f64| {
            if range.is_empty() {
                return;
            }
            let decay = (self.weight_decay + further) as f32;
            let pass = Pass {
                gradient: &gradient[range.clone()],
                start: &start[range.clone()],
                parameters: &mut parameters[range.clone()],
                scale,
                pull,
                decay,
            };
            // A buffer that the rule does not need is empty.
            let of = |buffer: &[f32]| if buffer.is_empty() { 0..0 } else { range.clone() };
            let (one, two) = (of(first), of(second));
            let buffers = (&mut first[one], &mut second[two]);
            if proximal.is_some() || decay != 0.0 {
                self.run::<true>(pass, &step, buffers);
            } else {
                self.run::<false>(pass, &step, buffers);
            }
        };
        let mut done = 0;
        for Decay { range, rate } in extra.decays {
            part(done..range.start, 0.0);
            part(range.clone(), *rate);
            done = range.end;
        }
        part(done..length, 0.0);
    }

    fn run<const ADJUSTED: bool>(&self, pass: Pass<'_>, step: &Step, (first, second): (&mut [f32], &mut [f32])) {
        let &Step { lr, is_first, beta_powers } = step;
        match self.rule {
            Rule::Descent => pass.descend::<ADJUSTED>(lr as f32),
            Rule::Momentum { momentum, take, nesterov } => {
                let (keep, take) = if is_first { (0.0, 1.0) } else { (momentum, take) };
                let settings = Momentum { lr: lr as f32, keep, take, momentum };
                if nesterov {
                    pass.descend_with_momentum::<ADJUSTED, true>(&settings, first);
                } else {
                    pass.descend_with_momentum::<ADJUSTED, false>(&settings, first);
                }
            }
            Rule::Adam { betas, epsilon, decoupled_decay } => {
                let settings = Adam {
                    shrink: (1.0 - lr * decoupled_decay) as f32,
                    lr: (lr / (1.0 - beta_powers[0])) as f32,
                    keep: betas.map(|beta| beta as f32),
                    take: betas.map(|beta| (1.0 - beta) as f32),
                    root: (1.0 / sqrt(1.0 - beta_powers[1])) as f32,
                    epsilon,
                };
                run(Path::detect(), AdamPass::<'_, ADJUSTED> { pass, settings: &settings, first, second });
            }
        }
    }
}

/// What all parts of a step have in common.
struct Step {
    lr: f64,
    is_first: bool,
    /// β₁ᵗ and β₂ᵗ.
    beta_powers: [f64; 2],
}

#[cfg(test)]
mod tests;
