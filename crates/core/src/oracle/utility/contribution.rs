//! Contribution score of MAB-FRS: relevance × reputation, plus data quality.
//!
//! # Definition
//! With `Q_t` the quality of the model that round `t` sends (the task's main measure on validation data, or else test
//! data, negated where smaller is better) and `Q_t^i` that of the model which client `i` makes of it:
//!
//! ```text
//! Δ_i = Q_t^i − Q_t           R_i ← γ·Δ_i + (1 − γ)·R_i,  0 at first                               (9)
//! δ_i = mean of |w_t^i − w_t| over the trained parameters                                         (10)
//! U_i = exp(−δ_i) if Q_t > Q_{t−1}, else 1 − exp(−δ_i)                                            (11)
//! D_i = |B_i|·sqrt(mean of ℓ_k² over the client's examples k),  D̃_i = (D_i − min D)/(max D − min D)  (12)
//! S_i = a·U_i·R_i + b·D̃_i                                                                          (13)
//! ```
//!
//! The memory `R` is that of the policy's own history: an update that arrives changes the reputation of its client.
//! `S_i` of any candidate uses the value that `R_i` would take: `γ·Δ_i + (1 − γ)·R_i`.
//!
//! # Inputs
//! Validation or test data, the clients' models, and the losses of the model sent on the clients' own examples; of a
//! task without such losses, `D̃ = 0`.
//!
//! # Source
//! J. Liu, M. Goudarzi, A. N. Toosi, "An ML-driven participant selection technique for federated recommendation system
//! in edge-cloud computing" (MAB-FRS), 2025, equations (9)–(13). The defaults of γ, a and b are this project's; the
//! paper gives none.
//!
//! # Deviations from the source
//! - `Q_{t−1}` of (9), "the previous global model accuracy", is that of the model that the round sends.
//! - (11) asks whether the global model improved in the round that is being decided, which depends on the decision.
//!   Here it is whether the last round improved it; before the second round it has not. The text under (11) says that
//!   large deviations are penalised when accuracy stagnates; the formula rewards them, and this project follows the
//!   formula.
//! - `w_t` of (10) is the model sent, for the same reason.
//! - The losses of (12) are those of the model sent, before the client trains. The normalisation runs over all
//!   candidates of the round; where all `D` are alike, `D̃ = 0`. A client without examples has `D = 0`.
//! - The paper's examples for `Q` are held by the server ("validation"); a task without validation data uses its test
//!   data.
//!
//! # Cost
//! A pass over the validation or test data for each candidate, and one over its own examples, one at a time, because
//! losses are squared one by one.
//!
//! # Determinism
//! Draws nothing.
//!
//! # Example
//! ```toml
//! [regret]
//! counterfactual = true
//! utility = { contribution = { gamma = 0.3, b = 1.0 } }
//! ```

use super::{HindsightClient, ModelScore, UpdateScore, UtilityRun, UtilitySettings};
use crate::config::{Complaint, check};
use crate::math::float::{exp, expm1, sqrt};
use crate::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Weight γ of the latest gain in the reputation, in [0, 1].
    #[serde(default = "half")]
    pub gamma: f64,
    /// Weight of relevance × reputation; at least 0.
    #[serde(default = "one")]
    pub a: f64,
    /// Weight of the normalised data quality; at least 0.
    #[serde(default = "half")]
    pub b: f64,
}

const fn half() -> f64 {
    0.5
}
const fn one() -> f64 {
    1.0
}

impl Default for Config {
    fn default() -> Self {
        Self { gamma: half(), a: one(), b: half() }
    }
}

impl UtilitySettings for Config {
    fn needs_data_quality(&self) -> bool {
        true
    }

    fn begin(&self, clients: usize) -> Box<dyn UtilityRun> {
        Box::new(Contribution { config: *self, reputations: Reputations::new(clients) })
    }

    fn check(&self) -> Result<(), Complaint> {
        check("gamma", self.gamma, 0.0..=1.0, "a number between 0 and 1")?;
        check("a", self.a, 0.0.., "a number of at least 0")?;
        check("b", self.b, 0.0.., "a number of at least 0").map(|_| ())
    }
}

/// `R` after a gain of `Δ`, (9).
pub fn reputation(gamma: f64, gain: f64, before: f64) -> f64 {
    gamma * gain + (1.0 - gamma) * before
}

/// The Euclidean norm of a client's change, added up in double precision.
pub fn norm(own: &[f32], sent: &[f32]) -> f64 {
    let square = |(own, sent): (&f32, &f32)| {
        let change = f64::from(*own) - f64::from(*sent);
        change * change
    };
    sqrt(own.iter().zip(sent).map(square).sum())
}

/// `δ`: the mean absolute difference of two models, (10); 0 of models without parameters.
///
/// # Panics
/// If their lengths differ.
pub fn deviation(own: &[f32], sent: &[f32]) -> f64 {
    assert_eq!(own.len(), sent.len(), "both are parameters of the same model");
    let sum: f64 = own.iter().zip(sent).map(|(&own, &sent)| (f64::from(own) - f64::from(sent)).abs()).sum();
    sum / own.len().max(1) as f64
}

/// `U`, (11).
pub fn relevance(deviation: f64, has_improved: bool) -> f64 {
    if has_improved { exp(-deviation) } else { -expm1(-deviation) }
}

/// `D` of a client with so many examples, whose squared losses add up to `squares`, (12); 0 without examples.
pub fn data_quality(examples: usize, squares: f64) -> f64 {
    let count = examples as f64;
    if examples == 0 { 0.0 } else { count * sqrt(squares / count) }
}

/// Puts numbers on a scale from 0, the smallest, to 1, the largest; all 0 if they are alike or not all finite.
pub fn min_max(numbers: &mut [f64]) {
    let low = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let width = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max) - low;
    let is_scale = width > 0.0 && numbers.iter().all(|number| number.is_finite()) && width.is_finite();
    numbers.iter_mut().for_each(|number| *number = if is_scale { (*number - low) / width } else { 0.0 });
}

/// `S`, (13).
pub fn score(config: &Config, relevance: f64, reputation: f64, normalised_quality: f64) -> f64 {
    config.a * (relevance * reputation) + config.b * normalised_quality
}

/// The score during one run.
#[derive(Debug, Stateful)]
struct Contribution {
    #[state(skip = "from the scenario")]
    config: Config,
    reputations: Reputations,
}

impl UtilityRun for Contribution {
    fn values(&self, sent: ModelScore, clients: &[HindsightClient], values: &mut Vec<f64>) {
        self.reputations.scores(&self.config, sent.quality, clients, values);
    }

    fn remember(&mut self, sent: ModelScore, arrived: &mut dyn Iterator<Item = &HindsightClient>) {
        self.reputations.remember(&self.config, sent.quality, arrived);
    }
}

/// `R` of all clients, and the quality of the model that the last round sent.
#[derive(Clone, Debug, Stateful)]
pub struct Reputations {
    #[state(each)]
    reputations: Vec<f64>,
    previous: Option<f64>,
}

impl Reputations {
    /// The state before the first round.
    pub fn new(clients: usize) -> Self {
        Self { reputations: vec![0.0; clients], previous: None }
    }

    /// Whether the last round improved the global model, if the next one sends a model of this quality.
    pub fn has_improved(&self, quality: f64) -> bool {
        self.previous.is_some_and(|previous| quality > previous)
    }

    fn after(&self, config: &Config, quality: f64, candidate: &HindsightClient, update: &UpdateScore) -> f64 {
        let before = self.reputations[candidate.client.index()];
        reputation(config.gamma, update.model.quality - quality, before)
    }

    /// Appends `S` of each candidate: 0 if its update does not count.
    pub fn scores(&self, config: &Config, quality: f64, candidates: &[HindsightClient], scores: &mut Vec<f64>) {
        let mut qualities: Vec<f64> = candidates.iter().map(|candidate| candidate.data_quality).collect();
        min_max(&mut qualities);
        let has_improved = self.has_improved(quality);
        let one = |(candidate, normalised): (&HindsightClient, f64)| match &candidate.update {
            Some(update) => {
                let reputation = self.after(config, quality, candidate, update);
                score(config, relevance(update.deviation, has_improved), reputation, normalised)
            }
            None => 0.0,
        };
        scores.extend(candidates.iter().zip(qualities).map(one));
    }

    /// Notes the updates that arrived in a round, and the quality of the model that it sent.
    pub fn remember<'a>(&mut self, config: &Config, quality: f64, arrived: impl Iterator<Item = &'a HindsightClient>) {
        for candidate in arrived {
            if let Some(update) = &candidate.update {
                let after = self.after(config, quality, candidate, update);
                // A diverged update is not held against the client for ever.
                if after.is_finite() {
                    self.reputations[candidate.client.index()] = after;
                }
            }
        }
        self.previous = Some(quality);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::ClientId;

    #[test]
    fn formulas_by_hand() {
        assert_eq!(reputation(0.5, 0.25, 1.0), 0.625);
        assert_eq!(deviation(&[1.0, -1.0, 0.5, 0.0], &[0.0, 1.0, 0.5, -1.0]), 1.0);
        assert_eq!((relevance(0.0, true), relevance(0.0, false)), (1.0, 0.0));
        let kept = relevance(0.5, true);
        approx::assert_relative_eq!(kept, 0.606_530_659_712_633_4, max_relative = 1e-15);
        approx::assert_relative_eq!(relevance(0.5, false), 1.0 - kept, max_relative = 1e-15);
        // Losses 3 and 4: 2·sqrt(25/2).
        approx::assert_relative_eq!(data_quality(2, 25.0), 7.071_067_811_865_475, max_relative = 1e-15);
        assert_eq!(data_quality(0, 0.0), 0.0);
        let mut numbers = [3.0, 1.0, 2.0];
        min_max(&mut numbers);
        assert_eq!(numbers, [1.0, 0.0, 0.5]);
        let mut alike = [2.0, 2.0];
        min_max(&mut alike);
        assert_eq!(alike, [0.0, 0.0]);
        assert_eq!(score(&Config { gamma: 0.0, a: 2.0, b: 4.0 }, 0.5, 3.0, 0.25), 4.0);
    }

    /// γ = 1/2, a = 1, b = 1/2; δ = ln 2, so that U is 1/2 either way.
    #[test]
    fn two_rounds_by_hand() {
        let config = Config::default();
        let deviation = std::f64::consts::LN_2;
        let candidate = |client, quality, data_quality| {
            let update = Some(UpdateScore { model: ModelScore { loss: 0.0, quality }, deviation });
            HindsightClient { client: ClientId(client), update, data_quality }
        };
        let mut reputations = Reputations::new(3);
        // Gains 0.5, −0.5 and 0; D̃ 0, 1 and 1/2; the late update counts in the pool and is worth nothing.
        let mut first = [candidate(0, 1.0, 2.0), candidate(1, 0.0, 4.0), candidate(2, 0.5, 3.0)];
        let mut scores = Vec::new();
        first[2].update = None;
        reputations.scores(&config, 0.5, &first, &mut scores);
        for (found, expected) in scores.iter().zip([0.125, 0.5 - 0.125, 0.0]) {
            approx::assert_relative_eq!(*found, expected, max_relative = 1e-14);
        }
        assert!(!reputations.has_improved(9.0), "nothing came before the first round");
        // Client 0 was chosen: R₀ = 1/4. The next model is better, and the same updates gain half as much.
        reputations.remember(&config, 0.5, first[..1].iter());
        assert!(reputations.has_improved(0.75) && !reputations.has_improved(0.5));
        scores.clear();
        reputations.scores(&config, 0.75, &first[..2], &mut scores);
        // R₀ would be 0.125 + 0.125, R₁ −0.375.
        for (found, expected) in scores.iter().zip([0.125, 0.5 - 0.1875]) {
            approx::assert_relative_eq!(*found, expected, max_relative = 1e-14);
        }
    }

    #[test]
    fn ranges() {
        assert_eq!(Config::default().check(), Ok(()));
        for (key, config) in [
            ("gamma", Config { gamma: 1.5, ..Config::default() }),
            ("gamma", Config { gamma: f64::NAN, ..Config::default() }),
            ("a", Config { a: -1.0, ..Config::default() }),
            ("b", Config { b: f64::INFINITY, ..Config::default() }),
        ] {
            assert_eq!(config.check().unwrap_err().path, key);
        }
    }
}
