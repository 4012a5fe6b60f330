//! Nothing is learned: a pure bandit on latencies.
//!
//! # Definition
//! Clients download, compute and upload as their laws say; no model exists. Data sizes and qualities of the population
//! still enter the reward.
//!
//! # Inputs
//! `payload`: bytes of the imagined model each way, for traffic and for device profiles.
//!
//! # Example
//! ```toml
//! [task.none]
//! payload = "1 MB"
//! ```

use crate::units::{Amount, Bytes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[task.none]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Bytes of the model each way.
    #[serde(default = "nothing")]
    pub payload: Amount<Bytes>,
}

const fn nothing() -> Amount<Bytes> {
    Amount::new(0.0)
}

impl Default for Config {
    fn default() -> Self {
        Self { payload: nothing() }
    }
}
