//! Private score functions: a user's row is a score function of its own, and moves before the rows of items do.
//!
//! # Definition
//! The score is the product of two rows, the loss that of `mf`. A step moves the rows of its users, then, at their new
//! numbers, the rows of items. Both halves are defined in `crates/learning/src/matrix_factorisation/halves.rs`. Slopes
//! for the utility `influence` and for SCAFFOLD are those of both halves at once.
//!
//! # Inputs
//! `dimensions` (32), from 1 to 4,096. Tensors: `items.weight`, `users.weight`.
//!
//! # Source
//! C. Zhang et al., "Dual personalization on federated recommendation", IJCAI 2023.
//!
//! # Deviations from the source
//! Bayesian personalised ranking in the place of cross-entropy. Halves alternate mini-batch by mini-batch.
//!
//! # Cost
//! As `mf`; a step takes slopes twice.
//!
//! # Determinism
//! First rows: Xavier-uniform, streams (model-init, 0, 0) and (model-init, user, 1).
//!
//! # Example
//! ```toml
//! [task.recommendation]
//! model = { pfedrec = { dimensions = 32 } }
//! ```

use super::{RowJob, RowRecommender, check_sizes, thirty_two};
use crate::matrix_factorisation::{self, Halves};
use crate::ncf::Outcome;
use crate::task::Worker;
use fedgenie_core::config::Complaint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `pfedrec`.
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
    halves: Halves,
}

impl RowRecommender for Config {
    fn check(&self) -> Result<(), Complaint> {
        check_sizes(&[("dimensions", self.dimensions)])
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn train(&self, RowJob { settings, job, .. }: &RowJob<'_>, worker: &mut Worker, outcome: &mut Outcome) {
        let Kept { rows, halves } = worker.keep();
        halves.train(rows, settings, job, &mut outcome.rows);
    }

    fn descend(&self, RowJob { settings, job, .. }: &RowJob<'_>, worker: &mut Worker, outcome: &mut Outcome) {
        worker.keep::<Kept>().rows.train(settings, job, &mut outcome.rows);
    }
}
