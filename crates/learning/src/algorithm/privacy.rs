//! Differential privacy: changes of clients are shortened, and their mean has noise.
//!
//! # Definition
//! `[privacy.dp-fedavg]`: let `δ_k` be the change of client `k` in a round (the sum of its changes, where several of
//! its updates are taken in at once), `S` the `clip`, `z` the `noise_multiplier` and `m` the number of clients whose
//! updates are taken in. Then
//!
//! `Δ = (Σ δ_k min(1, S/‖δ_k‖) + N(0, (zS)²))/m`,
//!
//! with noise in every number of the model, those of tables that nobody moved too. The server steps along Δ. By
//! `at = "clients"` the noise is the sum of `m` draws `N(0, (zS)²/m)`, one of each client.
//!
//! *Sampling.* Where each client is drawn with probability `p` by itself, `m` is `pN`, and a round in which nobody's
//! update arrives moves the model by noise alone. That is so for the policy `random` with `probability = p`, a cohort
//! of all clients, and rounds without quorum, carried updates or a number of updates to wait for, where the server adds
//! the noise. A round for which nobody is drawn takes no time.
//!
//! *Adaptive clipping.* With `clip = { start, quantile = γ, lr = η }`, after each round
//! `S ← S exp(−η (b − γ))`, `b = (Σ [‖δ_k‖ ≤ S] + N(0, σ_b²))/m`, where `σ_b` is `count_sd`, or `m/20`. Part of the
//! noise is then spent on `b`: Δ's has the multiplier `z_Δ = (z⁻² − (2σ_b)⁻²)^(−1/2)`, and the two together are as
//! private as `z` alone. A round in which `2σ_b` is not above `z` is abandoned. At `z = 0` neither has noise.
//!
//! *Accounting.* After `T` rounds with a new model the run is (ε, `delta`)-differentially private; two runs are
//! neighbours where one client's updates count in one of them and not in the other. `accountant = "rdp"`: with
//! `ρ(α) = α/(2z²)` without sampling, else
//! `ρ(α) = ln Σ_j C(α, j)(1 − q)^(α−j) q^j e^(j(j−1)/(2z²))/(α − 1)`,
//! `ε = min_α T·ρ(α) + ln(1 − 1/α) − ln(δα)/(α − 1)`, at least 0, over the orders 2 to 63, 128, 256, 512 and 1024.
//! `accountant = "pld"`: an upper bound within 1e-3 of the least ε, from the distribution of the privacy loss, which
//! each round splits on a grid and which is convolved `T` times; without sampling, the least ε itself.
//!
//! # Inputs
//! `clip` and `noise_multiplier` (0, or at least 1e-6); `at`, `delta` (between 0 and 1; for `"pld"` at least 1e-9),
//! `accountant`. `weighting` is `uniform`
//! (and is that if left out), no policy gives weights, and the protocol's `staleness` is `constant`. Refused are
//! `sigma`, entries of `[algorithm]` that combine updates or let clients remember what others sent, models with running
//! means (noise would break variances), edge servers and models of clusters; with `at = "clients"` an encoding of
//! updates and attacks that change them, since hostile clients would not clip.
//!
//! # Records
//! Every round has `privacy`: `epsilon` (`null` without noise), `delta`, `sampling` (`q`), `why`, and where it adapts
//! `clip`, the bound of the next round; `summary.json` has that of each run's last round. `epsilon` is a metric.
//!
//! # Source
//! H. B. McMahan, D. Ramage, K. Talwar, L. Zhang, "Learning differentially private recurrent language models", ICLR
//! 2018. Adaptive clipping: G. Andrew, O. Thakkar, H. B. McMahan, S. Ramaswamy, "Differentially private learning with
//! adaptive clipping", NeurIPS 2021, Algorithm 1. RDP: I. Mironov, K. Talwar, L. Zhang, "Rényi differential privacy of
//! the sampled Gaussian mechanism", 2019 (arXiv 1908.10530), Section 3.3; its ε: B. Balle et al., "Hypothesis testing
//! interpretations and Rényi differential privacy", AISTATS 2020. PLD: V. Doroshenko et al., "Connect the dots:
//! tighter discrete approximations of privacy loss distributions", PoPETs 2022.
//!
//! # Deviations from the source
//! ε does not cover what a policy decides by: one that reads losses or updates without noise tells of them, and one
//! that chooses by data voids what sampling gives. `why` says both.
//!
//! # Cost
//! Two passes over the updates more, and a normal number for each parameter. `"pld"`: a tenth of a second for each round
//! that is recorded or evaluated.
//!
//! # Determinism
//! In `f64`, sums over clients in ascending order. Noise: stream (Privacy, 2³² − 1, number of the new model), a uniform
//! for each parameter, of which the noise is the normal quantile, then one for the count; by `at = "clients"` stream
//! (Privacy, client, number of its last job).
//!
//! # Example
//! ```toml
//! [privacy.dp-fedavg]
//! clip = 0.5
//! # clip = { start = 0.1, quantile = 0.5, lr = 0.2 }
//! noise_multiplier = 1.0
//! ```

mod accountant;
mod loss;

pub use accountant::{Accountant, PrivacyEntry, rdp_order};

use super::{Contribution, Gathered};
use crate::layout::Layout;
use fedgenie_core::config::Complaint;
use fedgenie_core::math::float::{exp, sqrt};
use fedgenie_core::math::special::normal_quantile;
use fedgenie_core::rng::{Purpose, Streams};
use fedgenie_core::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The source of this file, which opens with the definition of `[privacy.dp-fedavg]`.
pub const DOCUMENTED: &str = include_str!("privacy.rs");

/// `[privacy.dp-fedavg]`: federated averaging of which each client's part is hidden by noise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DpFedAvgConfig {
    /// The largest norm of a client's change: a number, or how it adapts.
    pub clip: Clip,
    /// The noise's standard deviation over `clip`; at least 0.
    pub noise_multiplier: f64,
    /// Who adds the noise.
    #[serde(default)]
    pub at: NoiseAt,
    /// δ of (ε, δ); between 0 and 1.
    #[serde(default = "hundred_thousandth")]
    pub delta: f64,
    /// How ε is worked out.
    #[serde(default)]
    pub accountant: Accounting,
}

const fn hundred_thousandth() -> f64 {
    1e-5
}

/// A bound of norms, for example `0.5` or `{ start = 0.1 }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a number, or a table such as { start = 0.1, quantile = 0.5, lr = 0.2 }")]
pub enum Clip {
    /// The same in all rounds; above 0.
    Fixed(f64),
    /// One that follows a quantile of the norms.
    Adaptive(AdaptiveClip),
}

/// How a bound of norms adapts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AdaptiveClip {
    /// The bound in the first round; above 0.
    pub start: f64,
    /// The share of changes that are not to be longer; between 0 and 1.
    #[serde(default = "half")]
    pub quantile: f64,
    /// How fast it moves; above 0.
    #[serde(default = "fifth")]
    pub lr: f64,
    /// Standard deviation of the noise in the count of changes within the bound; a twentieth of `m` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count_sd: Option<f64>,
}

const fn half() -> f64 {
    0.5
}
const fn fifth() -> f64 {
    0.2
}

/// Who adds noise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum NoiseAt {
    /// The server, to the sum.
    #[default]
    Server,
    /// Each client its part.
    Clients,
}

/// How ε is worked out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Accounting {
    /// By Rényi divergences.
    #[default]
    Rdp,
    /// By the distribution of the privacy loss.
    Pld,
}

impl DpFedAvgConfig {
    /// Checks the ranges.
    ///
    /// # Errors
    /// A complaint with a path below `privacy.dp-fedavg`.
    pub fn check(&self) -> Result<(), Complaint> {
        let refuse = |key: &str, found: f64, expected| {
            Err(Complaint::new(key, format!("found {found}; expected a number {expected}")))
        };
        let is_positive = |number: f64| number.is_finite() && number > 0.0;
        let is_share = |number: f64| number > 0.0 && number < 1.0;
        let (z, delta) = (self.noise_multiplier, self.delta);
        match self.clip {
            Clip::Fixed(clip) if !is_positive(clip) => return refuse("clip", clip, "above 0"),
            Clip::Adaptive(AdaptiveClip { start, .. }) if !is_positive(start) => {
                return refuse("clip.start", start, "above 0");
            }
            Clip::Adaptive(AdaptiveClip { quantile, .. }) if !is_share(quantile) => {
                return refuse("clip.quantile", quantile, "between 0 and 1");
            }
            Clip::Adaptive(AdaptiveClip { lr, .. }) if !is_positive(lr) => return refuse("clip.lr", lr, "above 0"),
            Clip::Adaptive(AdaptiveClip { count_sd: Some(sd), .. }) if !(sd.is_finite() && 2.0 * sd > z) => {
                let message = format!(
                    "found {sd}; expected more than half of noise_multiplier = {z}: the count alone would need all of \
                     the noise"
                );
                return Err(Complaint::new("clip.count_sd", message));
            }
            Clip::Fixed(_) | Clip::Adaptive(_) => {}
        }
        if !(z == 0.0 || (1e-6..=1e6).contains(&z)) {
            return refuse("noise_multiplier", z, "from 1e-6 to 1e6, or 0");
        }
        if !is_share(delta) {
            return refuse("delta", delta, "between 0 and 1");
        }
        if self.accountant == Accounting::Pld && delta < loss::LEAST_DELTA {
            let message = format!(
                "found {delta:e}; the accountant \"pld\" works with at least {:e}: take accountant = \"rdp\"",
                loss::LEAST_DELTA
            );
            return Err(Complaint::new("delta", message));
        }
        Ok(())
    }

    /// The bound in the first round.
    const fn start(&self) -> f64 {
        match self.clip {
            Clip::Fixed(clip) => clip,
            Clip::Adaptive(AdaptiveClip { start, .. }) => start,
        }
    }

    /// Whether the bound adapts.
    pub const fn adapts(&self) -> bool {
        matches!(self.clip, Clip::Adaptive(_))
    }

    /// Numbers that travel beside each model and update: where clients clip, the bound that adapts and their count.
    /// They clip where they add the noise, and where the server sees sums alone.
    pub fn beside(&self, sums_alone: bool) -> [u64; 2] {
        [u64::from(self.adapts() && (sums_alone || self.at == NoiseAt::Clients)); 2]
    }

    /// The fewest clients of a round: so many that the count leaves some of the noise to the changes.
    pub fn least_updates(&self) -> usize {
        match self.clip {
            Clip::Adaptive(AdaptiveClip { count_sd: None, .. }) if self.noise_multiplier > 0.0 => {
                // m/10 > z.
                (10.0 * self.noise_multiplier) as usize + 1
            }
            Clip::Fixed(_) | Clip::Adaptive(_) => 0,
        }
    }

    /// Whether a round of so many clients, perhaps on average, makes a model.
    pub fn makes_models_of(&self, clients: f64) -> bool {
        self.noise(clients).is_some()
    }

    /// The noise multiplier of changes, and the standard deviation of the count's noise, with `m` clients; `None` if
    /// the count needs all of the noise.
    fn noise(&self, m: f64) -> Option<[f64; 2]> {
        let z = self.noise_multiplier;
        let Clip::Adaptive(AdaptiveClip { count_sd, .. }) = self.clip else { return Some([z, 0.0]) };
        if z == 0.0 {
            return Some([0.0; 2]);
        }
        let sd = count_sd.unwrap_or(m / 20.0);
        let left = 1.0 / (z * z) - 1.0 / (4.0 * sd * sd);
        (left > 0.0).then(|| [1.0 / sqrt(left), sd])
    }
}

/// The private mean of a run.
#[derive(Clone, Debug)]
pub struct DpFedAvg {
    /// The settings.
    pub config: DpFedAvgConfig,
    /// Of the noise.
    pub streams: Arc<Streams>,
    /// `m` where each client is drawn by itself: how many are drawn on average. `None` where clients are counted.
    pub expected: Option<f64>,
}

/// What the server remembers of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Stateful)]
pub struct Released {
    /// The bound of the next round.
    pub clip: f64,
    /// Models with noise that were made.
    pub models: u64,
}

impl DpFedAvg {
    /// Before the first round.
    pub const fn begin(&self) -> Released {
        Released { clip: self.config.start(), models: 0 }
    }

    /// Δ, a number for each parameter of the layout, of contributions in ascending order (client, job); `None` if there
    /// is no new model.
    pub fn mean(
        &self,
        released: &mut Released,
        layout: &Layout,
        contributions: &[&Contribution<'_>],
    ) -> Option<Vec<f64>> {
        let clients: Vec<&[&Contribution<'_>]> =
            contributions.chunk_by(|one, next| one.client == next.client).collect();
        let m = self.expected.unwrap_or(clients.len() as f64);
        if clients.is_empty() && self.expected.is_none() {
            return None;
        }
        let [z, count_sd] = self.config.noise(m)?;
        let number = released.models + 1;
        let at_server = self.config.at == NoiseAt::Server;
        let share = if at_server { 1.0 } else { 1.0 / sqrt(m) };
        let (sd, count_sd) = (z * released.clip * share, count_sd * share);
        let (mut sum, mut within) = (vec![0.0; layout.len()], 0.0);
        let mut change = Vec::new();
        for own in &clients {
            change.clear();
            change.resize(layout.len(), 0.0);
            let gathered = Gathered { layout, contributions: own, weights: &[], total: 1.0, centre: &[], mixture: &[] };
            (0..own.len()).for_each(|index| gathered.add(index, 1.0, &mut change));
            let norm = sqrt(change.iter().map(|number| number * number).sum());
            let factor = if norm > released.clip { released.clip / norm } else { 1.0 };
            sum.iter_mut().zip(&change).for_each(|(sum, number)| *sum += factor * number);
            within += f64::from(u8::from(norm <= released.clip));
            if let Some(last) = own.last().filter(|_| !at_server) {
                within += self.add([sd, count_sd], (last.client.0, last.number.0), &mut sum);
            }
        }
        if at_server {
            within += self.add([sd, count_sd], (u32::MAX, number as u32), &mut sum);
        }
        sum.iter_mut().for_each(|sum| *sum /= m);
        released.models = number;
        if let Clip::Adaptive(AdaptiveClip { quantile, lr, .. }) = self.config.clip {
            released.clip *= exp(-lr * (within / m - quantile));
        }
        Some(sum)
    }

    /// Adds normal noise to each number, and returns that of the count.
    fn add(&self, [sd, count_sd]: [f64; 2], (entity, index): (u32, u32), numbers: &mut [f64]) -> f64 {
        if sd == 0.0 {
            return 0.0;
        }
        let mut stream = self.streams.stream(Purpose::Privacy, entity, index);
        numbers.iter_mut().for_each(|number| *number += sd * normal_quantile(stream.uniform()));
        if self.config.adapts() { count_sd * normal_quantile(stream.uniform()) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests;
