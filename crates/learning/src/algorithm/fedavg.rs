//! FedAvg: the weighted mean of the clients' changes.
//!
//! # Definition
//! `Δ = Σ p_k δ_k`, with the weights of `[aggregation] weighting`. A scenario without an entry does the same; the entry
//! states it.
//!
//! # Source
//! H. B. McMahan et al., "Communication-efficient learning of deep networks from decentralized data", AISTATS 2017,
//! Algorithm 1.
//!
//! # Cost
//! One pass over the updates.
//!
//! # Determinism
//! As all averages: see `fedgenie describe section/aggregation`.
//!
//! # Example
//! ```toml
//! [algorithm.fedavg]
//! ```

use super::{AlgorithmSettings, Combine, Scene};
use fedgenie_core::config::Complaint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// `[algorithm.fedavg]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {}

impl AlgorithmSettings for Config {
    fn check(&self, scene: &Scene<'_>) -> Result<(), Complaint> {
        scene.needs_model()?;
        scene.refuses_own()
    }

    fn combine(&self, _scene: &Scene<'_>) -> Option<Arc<dyn Combine>> {
        Some(Arc::new(Mean))
    }
}

/// The weighted mean.
#[derive(Debug)]
struct Mean;

impl Combine for Mean {
    fn needs_sums_alone(&self) -> bool {
        true
    }
}
