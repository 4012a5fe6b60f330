//! ε of a run from the number of its models with noise.

use super::{Accounting, DpFedAvgConfig, loss};
use fedgenie_core::math::float::{exp, expm1, ln, ln_1p};
use serde::{Deserialize, Serialize};

/// The orders of Rényi divergences among which the best is taken.
fn orders() -> impl Iterator<Item = u32> {
    (2..=63).chain([128, 256, 512, 1024])
}

/// What the accountant of a run says of its models so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrivacyEntry {
    /// ε; `None` without noise.
    pub epsilon: Option<f64>,
    /// δ.
    pub delta: f64,
    /// `q`: the probability with which each client is drawn by itself, or 1.
    pub sampling: f64,
    /// Why `q` is what it is, and what ε does not cover.
    pub why: String,
    /// What ε does not cover, as `why` ends with it; known while the run is under way.
    #[serde(skip)]
    pub uncovered: Option<String>,
    /// The bound of the next round, where it adapts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip: Option<f64>,
}

/// The accountant of a run.
#[derive(Clone, Debug)]
pub struct Accountant {
    /// `z`.
    noise_multiplier: f64,
    /// `q`: the probability with which a client is drawn, by itself; 1 if it is not drawn like that.
    sampling: f64,
    delta: f64,
    /// By orders, with the divergence of one round; empty where ε comes from the distribution of the loss.
    divergences: Vec<(f64, f64)>,
}

impl Accountant {
    /// Of clients that are drawn with a probability by themselves, which is 1 where they are not.
    pub fn new(config: &DpFedAvgConfig, sampling: f64) -> Self {
        let z = config.noise_multiplier;
        let divergences = match config.accountant {
            Accounting::Rdp if z > 0.0 => {
                orders().map(|order| (f64::from(order), rdp_order(order, sampling, z))).collect()
            }
            Accounting::Rdp | Accounting::Pld => Vec::new(),
        };
        Self { noise_multiplier: z, sampling, delta: config.delta, divergences }
    }

    /// `q`.
    pub const fn sampling(&self) -> f64 {
        self.sampling
    }

    /// ε after so many models; `None` without noise.
    pub fn epsilon(&self, models: u64) -> Option<f64> {
        let Self { noise_multiplier, sampling, delta, divergences } = self;
        if *noise_multiplier == 0.0 {
            return None;
        }
        if models == 0 {
            return Some(0.0);
        }
        if divergences.is_empty() {
            return Some(loss::epsilon(*sampling, *noise_multiplier, models, *delta));
        }
        let of = |&(order, divergence): &(f64, f64)| {
            models as f64 * divergence + ln_1p(-1.0 / order) - ln(delta * order) / (order - 1.0)
        };
        Some(divergences.iter().map(of).fold(f64::INFINITY, f64::min).max(0.0))
    }
}

/// `ρ(α)`: the Rényi divergence of a whole order α ≥ 2 of one round, with sampling probability `q` and noise
/// multiplier `z`.
pub fn rdp_order(order: u32, q: f64, z: f64) -> f64 {
    let alpha = f64::from(order);
    if q == 1.0 {
        return alpha / (2.0 * z * z);
    }
    // The binomial probabilities add up to 1, which is left out of the sum: what is left may be far smaller.
    let mut coefficient = 0.0;
    let mut terms = Vec::with_capacity(order as usize);
    for j in 1..=order {
        let j = f64::from(j);
        coefficient += ln((alpha - j + 1.0) / j);
        let gain = j * (j - 1.0) / (2.0 * z * z);
        if gain > 0.0 {
            let ln_expm1 = if gain > 1.0 { gain + ln_1p(-exp(-gain)) } else { ln(expm1(gain)) };
            terms.push(coefficient + (alpha - j) * ln_1p(-q) + j * ln(q) + ln_expm1);
        }
    }
    let largest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum = largest + ln(terms.iter().map(|term| exp(term - largest)).sum());
    let ln_1p_exp = if sum > 0.0 { sum + ln_1p(exp(-sum)) } else { ln_1p(exp(sum)) };
    ln_1p_exp / (alpha - 1.0)
}
