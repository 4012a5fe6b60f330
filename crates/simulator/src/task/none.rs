//! No learning: a pure bandit on latencies.
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

use super::{About, TaskSettings};
use fedgenie_core::config::Complaint;
use fedgenie_core::limits::PAYLOAD_BYTES;
use fedgenie_core::units::{Amount, Bytes};
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

impl TaskSettings for Config {
    fn about(&self) -> About {
        About { name: "none", payload_bytes: self.payload.0 as u64, ..About::default() }
    }

    fn check(&self) -> Result<(), Complaint> {
        match self.payload.0 {
            bytes if !(0.0..=PAYLOAD_BYTES as f64).contains(&bytes) => {
                let message =
                    format!("found {bytes} B; expected an amount of at least 0 and at most {PAYLOAD_BYTES} B");
                Err(Complaint::new("payload", message))
            }
            _ => Ok(()),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self { payload: nothing() }
    }
}
