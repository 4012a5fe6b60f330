//! Matrix factorisation: a user's score of an item is the product of two rows.
//!
//! # Definition
//! Rows of users and items have `dimensions` numbers. Bayesian personalised ranking descends `−ln σ(x)`, `x` the score
//! of an item that the user rated less that of one that the user is not known to have rated. Steps, clipping and
//! proximal terms are defined in `crates/learning/src/matrix_factorisation.rs`.
//!
//! # Inputs
//! `dimensions` (32), from 1 to 4,096; `deviation` (0.1), the standard deviation of the normal numbers of first rows.
//! Tensors: `items.weight`, `users.weight`.
//!
//! # Source
//! S. Rendle et al., "BPR: Bayesian personalized ranking from implicit feedback", UAI 2009.
//!
//! # Cost
//! `items.weight` travels, of which an update has the rows that the job moved.
//!
//! # Determinism
//! First rows: streams (model-init, 0, 0) and (model-init, user, 1). The bytes of a job follow from the same draws as
//! its training.
//!
//! # Example
//! ```toml
//! [task.recommendation]
//! model = { mf = { dimensions = 32 } }
//! ```

use super::{RowJob, RowRecommender, check_sizes, thirty_two};
use crate::matrix_factorisation::{self, initial_items, initial_user};
use crate::ncf::Outcome;
use crate::task::Worker;
use fedgenie_core::config::Complaint;
use fedgenie_core::rng::Streams;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `mf`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Config {
    /// Length of a row; from 1 to 4,096.
    #[serde(default = "thirty_two")]
    pub dimensions: usize,
    /// Standard deviation of the numbers of first rows; above 0.
    #[serde(default = "tenth")]
    pub deviation: f64,
}

const fn tenth() -> f64 {
    0.1
}

impl Default for Config {
    fn default() -> Self {
        Self { dimensions: thirty_two(), deviation: tenth() }
    }
}

impl RowRecommender for Config {
    fn check(&self) -> Result<(), Complaint> {
        check_sizes(&[("dimensions", self.dimensions)])?;
        match self.deviation {
            deviation if deviation.is_finite() && deviation > 0.0 => Ok(()),
            deviation => Err(Complaint::new("deviation", format!("found {deviation}; expected a number above 0"))),
        }
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn train(&self, RowJob { settings, job, .. }: &RowJob<'_>, worker: &mut Worker, outcome: &mut Outcome) {
        worker.keep::<matrix_factorisation::Worker>().train(settings, job, &mut outcome.rows);
    }

    fn first_items(&self, streams: &Streams, table: &mut [f32]) {
        let items = table.len() / self.dimensions;
        table.copy_from_slice(&initial_items(items, self.dimensions, self.deviation, streams));
    }

    fn first_user(&self, user: u32, _users: usize, streams: &Streams, row: &mut [f32]) {
        initial_user(user, self.deviation, streams, row);
    }
}
