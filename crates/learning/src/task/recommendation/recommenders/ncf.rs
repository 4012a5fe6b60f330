//! Neural collaborative filtering: the score is a small network's answer to the rows of a user and an item.
//!
//! # Definition
//! `s(u, v) = W₂ relu(W₁ [u‖v] + b₁) + b₂` with `hidden` hidden numbers over rows of `dimensions` numbers; the loss is
//! that of `mf`. Steps are defined in `crates/learning/src/ncf.rs`.
//!
//! # Inputs
//! `dimensions` (32) and `hidden` (32), from 1 to 4,096. Tensors: `items.weight`, `users.weight`, `ncf.0.weight`,
//! `ncf.0.bias`, `ncf.2.weight`, `ncf.2.bias`.
//!
//! # Source
//! X. He et al., "Neural collaborative filtering", WWW 2017; ProxyRL-FRS, (11)–(13).
//!
//! # Deviations from the source
//! Bayesian personalised ranking in the place of cross-entropy.
//!
//! # Cost
//! The network's weights travel with the rows that `mf` sends.
//!
//! # Determinism
//! First rows: Xavier-uniform, streams (model-init, 0, 0) and (model-init, user, 1); network (model-init, 0, 2).
//!
//! # Example
//! ```toml
//! [task.recommendation]
//! model = { ncf = { dimensions = 32, hidden = 32 } }
//! ```

use super::{RowJob, RowRecommender, check_sizes, thirty_two};
use crate::ncf::{self, Outcome, Shape};
use crate::task::Worker;
use fedgenie_core::config::Complaint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `ncf`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Config {
    /// Length of a row; from 1 to 4,096.
    #[serde(default = "thirty_two")]
    pub dimensions: usize,
    /// Hidden numbers of the network; from 1 to 4,096.
    #[serde(default = "thirty_two")]
    pub hidden: usize,
}

impl Config {
    const fn shape(&self) -> Shape {
        Shape { dimensions: self.dimensions, hidden: self.hidden, proxy: None }
    }
}

impl RowRecommender for Config {
    fn check(&self) -> Result<(), Complaint> {
        check_sizes(&[("dimensions", self.dimensions), ("hidden", self.hidden)])
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn network(&self) -> Option<Shape> {
        Some(self.shape())
    }

    fn train(&self, job: &RowJob<'_>, worker: &mut Worker, outcome: &mut Outcome) {
        worker.keep::<ncf::Worker>().train(&self.shape(), job.settings, (job.job, job.weights), outcome);
    }
}
