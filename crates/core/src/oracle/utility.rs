//! What the update of one client is worth to a round: the utility that the regret in hindsight adds up.
//!
//! # Definition
//! A utility gives a number `S_i` for each candidate `i` of a round whose update would count if `i` were chosen; for
//! the others, and where the number is not finite (the update diverged), `S_i = 0`. What `S_i` is made of is computed
//! from the model that the round sends, the client's own update, the test data, and what happened in earlier rounds;
//! never from who else is chosen.
//!
//! | utility | `S_i` |
//! |---|---|
//! | [`loss_drop`] | loss of the model sent less that of the client's own model |
//! | [`contribution`] | relevance × reputation, plus data quality |
//! | [`local_loss`] | loss of the model sent on the client's own examples |
//! | [`aggregate`] | none: a set is worth what metrics say of its aggregate |
//! | [`influence`] | none: a set is worth the mean of its members, by examples |
//!
//! # Inputs
//! Models are scored on the task's validation data, or else on its test data. They belong to nobody: a simulator may
//! look at them, a server could not. The functions are plain functions of numbers, for whoever has those numbers from
//! elsewhere.
//!
//! # Determinism
//! Draws nothing; sums run in the order of parameters, examples and candidates.

pub mod aggregate;
pub mod contribution;
pub mod influence;
pub mod local_loss;
pub mod loss_drop;

use crate::components;
use crate::config::Complaint;
use crate::id::ClientId;
use crate::state::Stateful;
use std::collections::BTreeMap;

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

    /// Whether it compares losses of models.
    fn needs_loss(&self) -> bool {
        false
    }

    /// Metrics and their weights, where it is one of sets and not a sum over clients.
    fn of_sets(&self) -> Option<&BTreeMap<String, f64>> {
        None
    }

    /// The probe whose answer, one number, is `S_i`, where that is all that the utility is made of.
    fn of_answers(&self) -> Option<&'static str> {
        None
    }

    /// Whether it is the weighted mean over a set of how far updates go down the slope of the validation loss.
    fn is_of_slope(&self) -> bool {
        false
    }

    /// The utility before the first round of a run with so many clients.
    fn begin(&self, clients: usize) -> Box<dyn UtilityRun>;
}

/// A utility during one run, with what it remembers.
pub trait UtilityRun: std::fmt::Debug + Stateful + Send {
    /// Appends `S_i` of each client, in their order. `sent` is the model that the round sends.
    fn values(&self, sent: ModelScore, clients: &[HindsightClient], values: &mut Vec<f64>);

    /// Takes in what the server saw of a round: the updates that arrived.
    fn remember(&mut self, _sent: ModelScore, _arrived: &mut dyn Iterator<Item = &HindsightClient>) {}
}

components! {
    /// Which utility, and its parameters: `utility = "loss-drop"`, `utility = { contribution = { gamma = 0.3 } }`.
    #[schemars(transform = crate::config::allow_bare_kinds)]
    pub enum UtilityConfig: UtilitySettings = "utility" {
        "loss-drop" => LossDrop(loss_drop::Config) in "utility/loss_drop.rs";
        "contribution" => Contribution(contribution::Config) in "utility/contribution.rs";
        "aggregate" => Aggregate(aggregate::Config) in "utility/aggregate.rs";
        "local-loss" => LocalLoss(local_loss::Config) in "utility/local_loss.rs";
        "influence" => Influence(influence::Config) in "utility/influence.rs";
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

    /// Metrics and their weights, where it is one of sets and not a sum over clients.
    pub fn of_sets(&self) -> Option<&BTreeMap<String, f64>> {
        self.settings().of_sets()
    }

    /// The probe whose answer is `S_i`, where that is all that the utility is made of.
    pub fn of_answers(&self) -> Option<&'static str> {
        self.settings().of_answers()
    }

    /// Whether it is the weighted mean over a set of how far updates go down the slope of the validation loss.
    pub fn is_of_slope(&self) -> bool {
        self.settings().is_of_slope()
    }

    /// Whether time has a price if the scenario does not say so.
    pub fn prices_time(&self) -> bool {
        self.of_sets().is_none() && self.of_answers().is_none() && !self.is_of_slope()
    }

    /// Whether it compares losses of models.
    pub fn needs_loss(&self) -> bool {
        self.settings().needs_loss()
    }

    /// Whether it looks at the losses of the candidates' own examples.
    pub fn needs_data_quality(&self) -> bool {
        self.settings().needs_data_quality()
    }
}

/// A model's score on the validation data, or else on the test data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelScore {
    /// Mean loss.
    pub loss: f64,
    /// `Q`: the task's main measure, negated where smaller is better.
    pub quality: f64,
}

/// The score of a client's own update.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UpdateScore {
    /// The client's model.
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

/// The run of a utility that gives single clients no value, or one that is not made of scores.
#[derive(Debug, Stateful)]
struct Nothing;

impl UtilityRun for Nothing {
    fn values(&self, _: ModelScore, clients: &[HindsightClient], values: &mut Vec<f64>) {
        values.extend(clients.iter().map(|_| 0.0));
    }
}

/// A utility and what it remembers of a run.
#[derive(Debug, Stateful)]
pub struct Utility {
    #[state(skip = "from the scenario")]
    config: UtilityConfig,
    run: Box<dyn UtilityRun>,
}

impl Utility {
    /// Before the first round of so many clients.
    pub fn new(config: UtilityConfig, clients: usize) -> Self {
        let run = config.settings().begin(clients);
        Self { config, run }
    }

    /// Which utility.
    pub const fn config(&self) -> &UtilityConfig {
        &self.config
    }

    /// `S_i` of each candidate, in their order. `sent` is the model that the round sends.
    pub fn of(&self, sent: ModelScore, candidates: &[HindsightClient], values: &mut Vec<f64>) {
        values.clear();
        self.run.values(sent, candidates, values);
        values.iter_mut().filter(|value| !value.is_finite()).for_each(|value| *value = 0.0);
    }

    /// Takes in what the server saw of a round: the updates that arrived.
    pub fn remember<'a>(&mut self, sent: ModelScore, mut arrived: impl Iterator<Item = &'a HindsightClient>) {
        self.run.remember(sent, &mut arrived);
    }
}
