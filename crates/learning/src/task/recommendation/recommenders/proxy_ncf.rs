//! Neural collaborative filtering with a proxy: a second network that predicts the losses of the first.
//!
//! # Definition
//! Scores and losses `ℓ` are those of `ncf`. The proxy `p` has the same shape and weights of its own. With
//! `proxy = "pairwise"` it predicts `−ln σ(p(u, v) − p(u, j))` for an item `v` that was rated and an item `j` that was
//! not, with `"positive"` `p(u, v)`. It descends the mean squared difference to `ℓ`, by which rows do not move. Steps
//! are defined in `crates/learning/src/ncf.rs`.
//!
//! # Inputs
//! `dimensions` (32) and `hidden` (32, of each network), from 1 to 4,096; `proxy` (`"pairwise"`). Tensors: those of
//! `ncf`, and `proxy.0.weight`, `proxy.0.bias`, `proxy.2.weight`, `proxy.2.bias`. Clients can be asked for their
//! `predicted-loss`; the measure `proxy_rank_correlation` compares these with true losses.
//!
//! # Source
//! ProxyRL-FRS, IV-A: (11)–(15).
//!
//! # Deviations from the source
//! (13)–(15) are sums over a client's examples; steps use means over mini-batches.
//!
//! # Cost
//! The weights of both networks travel with the rows that `mf` sends.
//!
//! # Determinism
//! As `ncf`; the proxy's first weights: stream (model-init, 0, 3).
//!
//! # Example
//! ```toml
//! [task.recommendation]
//! model = { proxy-ncf = { dimensions = 32, hidden = 32, proxy = "pairwise" } }
//! ```

use super::{RowJob, RowRecommender, check_sizes, thirty_two};
use crate::ncf::{self, Outcome, Proxy, Shape};
use crate::task::Worker;
use fedgenie_core::config::Complaint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `proxy-ncf`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Config {
    /// Length of a row; from 1 to 4,096.
    #[serde(default = "thirty_two")]
    pub dimensions: usize,
    /// Hidden numbers of each network; from 1 to 4,096.
    #[serde(default = "thirty_two")]
    pub hidden: usize,
    /// What the second one predicts.
    #[serde(default)]
    pub proxy: ProxyConfig,
}

/// `proxy = "pairwise"`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProxyConfig {
    /// The loss of a pair, from the answers to both items.
    #[default]
    Pairwise,
    /// The loss of a pair, as the answer to the positive item.
    Positive,
}

impl Config {
    const fn shape(&self) -> Shape {
        let proxy = match self.proxy {
            ProxyConfig::Pairwise => Proxy::Pairwise,
            ProxyConfig::Positive => Proxy::Positive,
        };
        Shape { dimensions: self.dimensions, hidden: self.hidden, proxy: Some(proxy) }
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
