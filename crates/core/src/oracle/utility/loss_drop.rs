//! Loss drop: by how much a client's own update lowers the loss.
//!
//! # Definition
//! `S_i = L(w_t) − L(w_t^i)`: mean loss of the model `w_t` that the round sends less that of the model `w_t^i` that
//! client `i` makes of it, both on all validation examples, or on all test examples where the task has no validation
//! data. Positive if the update helps, on its own.
//!
//! # Inputs
//! Validation or test data, which a simulator has and a server does not; a task that measures a loss.
//!
//! # Source
//! This project.
//!
//! # Deviations from the source
//! None. The loss of an average of updates is not the average of their losses: the sum of `S_i` over a set says what
//! its members do one by one, not what they do together.
//!
//! # Cost
//! One pass over these data for each candidate that has trained, and one for the model sent.
//!
//! # Determinism
//! Draws nothing.
//!
//! # Example
//! ```toml
//! [regret]
//! counterfactual = true
//! utility = "loss-drop"
//! ```

use super::{HindsightClient, ModelScore, UpdateScore, UtilityRun, UtilitySettings};
use crate::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Stateful)]
#[serde(deny_unknown_fields)]
pub struct Config {}

impl UtilitySettings for Config {
    fn needs_loss(&self) -> bool {
        true
    }

    fn begin(&self, _: usize) -> Box<dyn UtilityRun> {
        Box::new(*self)
    }
}

impl UtilityRun for Config {
    fn values(&self, sent: ModelScore, clients: &[HindsightClient], values: &mut Vec<f64>) {
        let drop = |update: UpdateScore| loss_drop(sent.loss, update.model.loss);
        values.extend(clients.iter().map(|client| client.update.map_or(0.0, drop)));
    }
}

/// `S_i` from the two losses.
pub const fn loss_drop(sent: f64, own: f64) -> f64 {
    sent - own
}
