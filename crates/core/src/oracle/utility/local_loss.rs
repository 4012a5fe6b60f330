//! Local loss: how badly the model sent does on a client's own examples.
//!
//! # Definition
//! `S_i = L_i`: the sum of the losses of client `i`'s own examples under the model that the round sends, as the client
//! would report it in this round: its answer to the probe `summed-loss`, with the random numbers of its job, actual or
//! hypothetical; of a task without that probe, the mean loss on the client's own data times its examples. With this
//! utility the best set is that of the largest true losses, and the regret is the price of a policy's estimates of
//! them.
//!
//! # Inputs
//! A task whose clients answer `summed-loss` with one number, or have losses. A loss that is not finite counts as 0.
//!
//! # Source
//! This project. ProxyRL-FRS estimates these losses, (14) and (15), to choose by them.
//!
//! # Deviations from the source
//! κ is 0 if it is left out: time has no price unless the scenario says so.
//!
//! # Cost
//! An inference pass of each candidate. No client trains.
//!
//! # Determinism
//! Draws the numbers of the clients' answers; the solver is exact for any number of candidates.
//!
//! # Example
//! ```toml
//! [regret]
//! counterfactual = true
//! utility = "local-loss"
//! meters = []
//! ```

use super::{Nothing, UtilityRun, UtilitySettings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The probe whose answer is the loss.
pub const SUMMED_LOSS: &str = "summed-loss";

/// Parameters: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {}

impl UtilitySettings for Config {
    fn of_answers(&self) -> Option<&'static str> {
        Some(SUMMED_LOSS)
    }

    fn begin(&self, _: usize) -> Box<dyn UtilityRun> {
        Box::new(Nothing)
    }
}
