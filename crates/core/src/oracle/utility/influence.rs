//! Influence: by how much a set's average lowers the validation loss, to first order.
//!
//! # Definition
//! The value of a set is `Σ n_u·a_u / Σ n_u` over its members, with `n_u` the number of a client's training examples
//! and `a_u = −⟨∇F, Δ_u⟩`: `Δ_u` is what the client's update changes of the parameters that travel, `F` the mean loss
//! of the task's validation data, or else of its test data, at the model that the round sends, with what clients keep
//! at that moment. So it is the fall of `F` that a small step along the average of the updates would bring. A client
//! that would be lost or late, or whose update diverges, weighs nothing: `n_u = 0`. A set that weighs nothing is worth
//! 0.
//!
//! # Inputs
//! A task that knows that slope (`Losses::slope`), as those of rows with a class or a number do. `kappa` is 0: a mean
//! has no price of time.
//!
//! # Source
//! This project; the first order of what [`super::aggregate`] measures, as gradient matching (FedGST) has it of single
//! clients.
//!
//! # Deviations from the source
//! The server's optimizer and weighting other than by examples are left out.
//!
//! # Cost
//! One slope for each judged round, and the training of all candidates that would arrive, of whose updates only the
//! product is kept: memory for a few updates, and no model per candidate. The best set is found exactly among any
//! number of candidates: [`crate::oracle::ratio`].
//!
//! # Determinism
//! Draws what the clients' training draws. Products are summed in double precision in the order of parameters. Sets
//! within 1e-12 of the best are equal; the lexicographically smallest wins.
//!
//! # Example
//! ```toml
//! [regret]
//! counterfactual = true
//! utility = "influence"
//! meters = []
//! ```

use super::{Nothing, UtilityRun, UtilitySettings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {}

impl UtilitySettings for Config {
    fn is_of_slope(&self) -> bool {
        true
    }

    fn begin(&self, _: usize) -> Box<dyn UtilityRun> {
        Box::new(Nothing)
    }
}
