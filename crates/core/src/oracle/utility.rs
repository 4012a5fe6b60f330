//! What the update of one client is worth to a round: the utility that the regret in hindsight adds up.
//!
//! # Definition
//! A utility gives a number `S_i` for each candidate `i` of a round whose update would count if `i` were chosen; for the others,
//! and where the number is not finite (the update diverged), `S_i = 0`. What `S_i` is made of is computed from the model that
//! the round sends, the client's own update, the test data, and what happened in earlier rounds; never from who else is chosen.
//!
//! | utility | `S_i` |
//! |---|---|
//! | [`loss_drop`] | test loss of the model sent less that of the client's own model |
//! | [`contribution`] | relevance × reputation, plus data quality |
//!
//! # Inputs
//! The test data belong to nobody: a simulator may look at them, a server could not. The functions are plain functions of
//! numbers, for whoever has those numbers from elsewhere.
//!
//! # Determinism
//! Draws nothing; sums run in the order of parameters, examples and candidates.

pub mod contribution;
pub mod loss_drop;

use crate::config::ConfigError;
use crate::id::ClientId;
use contribution::Reputations;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which utility, and its parameters: `utility = "loss-drop"`, `utility = { contribution = { gamma = 0.3 } }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(transform = crate::config::allow_bare_kinds)]
pub enum UtilityConfig {
    /// By how much the client's own update would lower the test loss.
    LossDrop(loss_drop::Config),
    /// Relevance × reputation, plus data quality (MAB-FRS).
    Contribution(contribution::Config),
}

impl Default for UtilityConfig {
    fn default() -> Self {
        Self::LossDrop(loss_drop::Config::default())
    }
}

impl UtilityConfig {
    /// The kind's name.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::LossDrop(_) => "loss-drop",
            Self::Contribution(_) => "contribution",
        }
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// Key and sentence.
    pub fn check(&self) -> Result<(), ConfigError> {
        match self {
            Self::LossDrop(_) => Ok(()),
            Self::Contribution(config) => config.check(),
        }
    }

    /// Whether it looks at the losses of the candidates' own examples.
    pub const fn needs_data_quality(&self) -> bool {
        matches!(self, Self::Contribution(_))
    }
}

/// A model's score on the test data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelScore {
    /// Mean loss.
    pub loss: f64,
    /// `Q`: the accuracy of a classifier, the negative mean loss of any other model.
    pub quality: f64,
}

/// The score of a client's own update.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UpdateScore {
    /// The client's model on the test data.
    pub model: ModelScore,
    /// `δ`, see [`contribution::deviation`].
    pub deviation: f64,
}

/// A client that could have been chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HindsightClient {
    /// Its number.
    pub client: ClientId,
    /// Its update, if that would be there when the round closes.
    pub update: Option<UpdateScore>,
    /// `D`, see [`contribution::data_quality`]; 0 where the utility does not need it.
    pub data_quality: f64,
}

/// A utility and what it remembers of a run.
#[derive(Clone, Debug)]
pub struct Utility {
    config: UtilityConfig,
    reputations: Reputations,
}

impl Utility {
    /// Before the first round of so many clients.
    pub fn new(config: UtilityConfig, clients: usize) -> Self {
        Self { config, reputations: Reputations::new(clients) }
    }

    /// Which utility.
    pub const fn config(&self) -> UtilityConfig {
        self.config
    }

    /// `S_i` of each candidate, in their order. `sent` is the model that the round sends.
    pub fn of(&self, sent: ModelScore, candidates: &[HindsightClient], values: &mut Vec<f64>) {
        values.clear();
        match &self.config {
            UtilityConfig::LossDrop(_) => {
                let drop = |update: UpdateScore| loss_drop::loss_drop(sent.loss, update.model.loss);
                values.extend(candidates.iter().map(|candidate| candidate.update.map_or(0.0, drop)));
            }
            UtilityConfig::Contribution(config) => self.reputations.scores(config, sent.quality, candidates, values),
        }
        values.iter_mut().filter(|value| !value.is_finite()).for_each(|value| *value = 0.0);
    }

    /// Takes in what the server saw of a round: the updates that arrived.
    pub fn remember<'a>(&mut self, sent: ModelScore, arrived: impl Iterator<Item = &'a HindsightClient>) {
        if let UtilityConfig::Contribution(config) = &self.config {
            self.reputations.remember(config, sent.quality, arrived);
        }
    }
}
