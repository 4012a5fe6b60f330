//! Users who are seen with their items: one layer of a graph network over a user and the items that the user rated.
//!
//! # Definition
//! A user is seen as the own row plus the sum of the rows of the `n` items that the user rated, over `√n`; the score is
//! the product with an item's row, the loss that of `mf`. Steps are defined in
//! `crates/learning/src/matrix_factorisation/neighbours.rs`.
//!
//! # Inputs
//! `dimensions` (32), from 1 to 4,096. Tensors: `items.weight`, `users.weight`.
//!
//! # Source
//! C. Wu et al., "A federated graph neural network framework for privacy-preserving personalization", Nature
//! Communications 13, 2022.
//!
//! # Deviations from the source
//! No pseudo-items and no expansion of the graph by other users; the weights of the sum are fixed.
//!
//! # Cost
//! As `mf`; a step that meets a user meets the rows of all items that the user rated.
//!
//! # Determinism
//! First rows: Xavier-uniform, streams (model-init, 0, 0) and (model-init, user, 1).
//!
//! # Example
//! ```toml
//! [task.recommendation]
//! model = { fedpergnn = { dimensions = 32 } }
//! ```

use super::{RowJob, RowRecommender, check_sizes, thirty_two};
use crate::matrix_factorisation::{self, Footprint, Neighbours, with_neighbours};
use crate::ncf::Outcome;
use crate::task::Worker;
use fedgenie_core::config::Complaint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `fedpergnn`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Config {
    /// Length of a row; from 1 to 4,096.
    #[serde(default = "thirty_two")]
    pub dimensions: usize,
}

/// What a thread keeps.
#[derive(Default)]
struct Kept {
    rows: matrix_factorisation::Worker,
    neighbours: Neighbours,
}

impl RowRecommender for Config {
    fn check(&self) -> Result<(), Complaint> {
        check_sizes(&[("dimensions", self.dimensions)])
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn train(&self, RowJob { settings, job, .. }: &RowJob<'_>, worker: &mut Worker, outcome: &mut Outcome) {
        let Kept { rows, neighbours } = worker.keep();
        neighbours.train(rows, settings, job, &mut outcome.rows);
    }

    fn footprint(&self) -> Footprint {
        Footprint::default().with_neighbours()
    }

    fn see(&self, positives: &[u32], table: &[f32], row: &mut [f32]) {
        with_neighbours(positives, table, row);
    }
}
