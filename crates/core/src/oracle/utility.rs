//! What the update of one client is worth to a round: the utility that the counterfactual regret adds up.
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

use crate::components;
use crate::config::Complaint;
use crate::id::ClientId;
use contribution::Reputations;

/// A utility's part of a scenario.
pub trait UtilitySettings {
    /// Checks the ranges.
    ///
    /// # Errors
    /// A complaint with a path below the utility's table.
    fn check(&self) -> Result<(), Complaint> {
        Ok(())
    }

    /// Whether it looks at the losses of the candidates' own examples.
    fn needs_data_quality(&self) -> bool {
        false
    }
}

components! {
    /// Which utility, and its parameters: `utility = "loss-drop"`, `utility = { contribution = { gamma = 0.3 } }`.
    #[derive(Copy)]
    #[schemars(transform = crate::config::allow_bare_kinds)]
    pub enum UtilityConfig: UtilitySettings = "utility" {
        "loss-drop" => LossDrop(loss_drop::Config) in "utility/loss_drop.rs";
        "contribution" => Contribution(contribution::Config) in "utility/contribution.rs";
    }
}

impl Default for UtilityConfig {
    fn default() -> Self {
        Self::LossDrop(loss_drop::Config::default())
    }
}

impl UtilityConfig {
    /// Checks the ranges.
    ///
    /// # Errors
    /// A complaint with a path below the utility's table.
    pub fn check(&self) -> Result<(), Complaint> {
        self.settings().check()
    }

    /// Whether it looks at the losses of the candidates' own examples.
    pub fn needs_data_quality(&self) -> bool {
        self.settings().needs_data_quality()
    }
}

/// How good a model is on the test data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tested {
    /// Mean loss.
    pub loss: f64,
    /// `Q`: the accuracy of a classifier, the negative mean loss of any other model.
    pub quality: f64,
}

/// A client's own update.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tried {
    /// The client's model on the test data.
    pub tested: Tested,
    /// `δ`, see [`contribution::deviation`].
    pub deviation: f64,
}

/// Somebody who could be chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Who.
    pub client: ClientId,
    /// Its update, if that would be there when the round closes.
    pub update: Option<Tried>,
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
    pub fn of(&self, sent: Tested, candidates: &[Candidate], values: &mut Vec<f64>) {
        values.clear();
        match &self.config {
            UtilityConfig::LossDrop(_) => {
                let drop = |update: Tried| loss_drop::loss_drop(sent.loss, update.tested.loss);
                values.extend(candidates.iter().map(|candidate| candidate.update.map_or(0.0, drop)));
            }
            UtilityConfig::Contribution(config) => self.reputations.scores(config, sent.quality, candidates, values),
        }
        values.iter_mut().filter(|value| !value.is_finite()).for_each(|value| *value = 0.0);
    }

    /// Takes in what the server saw of a round: the updates that arrived.
    pub fn remember<'a>(&mut self, sent: Tested, arrived: impl Iterator<Item = &'a Candidate>) {
        if let UtilityConfig::Contribution(config) = &self.config {
            self.reputations.remember(config, sent.quality, arrived);
        }
    }
}
