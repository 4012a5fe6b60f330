//! The value of one client's update to a round: the utility that the regret in hindsight adds up.
//!
//! # Definition
//! A utility gives a number `S_i` for each candidate `i` of a round whose update would count if `i` were chosen; for
//! the others, and where the number is not finite (the update diverged), `S_i = 0`. `S_i` is computed from the model
//! that the round sends, the client's own update, the test data, and earlier rounds; never from the rest of the
//! selection.
//!
//! | utility | `S_i` |
//! |---|---|
//! | [`loss_drop`] | loss of the model sent less that of the client's own model |
//! | [`contribution`] | relevance × reputation, plus data quality |
//! | [`local_loss`] | loss of the model sent on the client's own examples |
//! | [`aggregate`] | undefined: a set has the value that metrics give its aggregate |
//! | [`influence`] | undefined: a set has the mean of its members, by examples |
//!
//! # Inputs
//! Models are scored on the task's validation data, or else on its test data: a simulator may look at these data, a
//! server could not. The functions take plain numbers, so that they serve numbers from other sources too.
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

    /// Whether it needs the losses of the candidates' own examples.
    fn needs_data_quality(&self) -> bool {
        false
    }

    /// Whether it compares losses of models.
    fn needs_loss(&self) -> bool {
        false
    }

    /// Metrics and their weights, where it is defined on sets and not a sum over clients.
    fn of_sets(&self) -> Option<&BTreeMap<String, f64>> {
        None
    }

    /// The probe whose answer, one number, is `S_i`.
    fn of_answers(&self) -> Option<&'static str> {
        None
    }

    /// Whether it is the weighted mean over a set of the first-order fall of the validation loss along updates.
    fn is_of_slope(&self) -> bool {
        false
    }

    /// The utility before the first round of a run with so many clients.
    fn begin(&self, clients: usize) -> Box<dyn UtilityRun>;
}

/// A utility during one run, with its memory.
pub trait UtilityRun: std::fmt::Debug + Stateful + Send {
    /// Appends `S_i` of each client, in their order. `sent` is the model that the round sends.
    fn values(&self, sent: ModelScore, clients: &[HindsightClient], values: &mut Vec<f64>);

    /// Notes the updates of a round that arrived.
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

    /// Metrics and their weights, where it is defined on sets and not a sum over clients.
    pub fn of_sets(&self) -> Option<&BTreeMap<String, f64>> {
        self.settings().of_sets()
    }

    /// The probe whose answer is `S_i`.
    pub fn of_answers(&self) -> Option<&'static str> {
        self.settings().of_answers()
    }

    /// Whether it is the weighted mean over a set of the first-order fall of the validation loss along updates.
    pub fn is_of_slope(&self) -> bool {
        self.settings().is_of_slope()
    }

    /// Whether time has a price by default.
    pub fn prices_time(&self) -> bool {
        self.of_sets().is_none() && self.of_answers().is_none() && !self.is_of_slope()
    }

    /// Whether it compares losses of models.
    pub fn needs_loss(&self) -> bool {
        self.settings().needs_loss()
    }

    /// Whether it needs the losses of the candidates' own examples.
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

/// A candidate of a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HindsightClient {
    /// Its number.
    pub client: ClientId,
    /// Its update, if it would arrive before the round closes.
    pub update: Option<UpdateScore>,
    /// `D`, see [`contribution::data_quality`]; 0 where the utility does not need it.
    pub data_quality: f64,
}

/// The run of a utility without values of single clients, or without scores.
#[derive(Debug, Stateful)]
struct Nothing;

impl UtilityRun for Nothing {
    fn values(&self, _: ModelScore, clients: &[HindsightClient], values: &mut Vec<f64>) {
        values.extend(clients.iter().map(|_| 0.0));
    }
}

/// A utility and its memory of a run.
#[derive(Debug, Stateful)]
pub struct Utility {
    #[state(skip = "from the scenario")]
    config: UtilityConfig,
    run: Box<dyn UtilityRun>,
}

impl Utility {
    /// The utility before the first round, with this many clients.
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

    /// Notes the updates of a round that arrived.
    pub fn remember<'a>(&mut self, sent: ModelScore, mut arrived: impl Iterator<Item = &'a HindsightClient>) {
        self.run.remember(sent, &mut arrived);
    }
}
