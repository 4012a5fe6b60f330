//! FedProx: clients are pulled back towards the model that they were sent.
//!
//! # Definition
//! A client minimises `f_k(w) + (μ/2)·‖w − x‖²`: each step adds `μ(w − x)` to the gradient, after clipping and before
//! weight decay. The server averages.
//!
//! # Inputs
//! `mu`: the weight μ, above 0. `[training] proximal` is the same number under another name; both at once are refused.
//! With rows, the rows that a job moves are pulled, of a client's own rows towards their values before the job.
//!
//! # Source
//! T. Li, A. K. Sahu, M. Zaheer, M. Sanjabi, A. Talwalkar, V. Smith, "Federated optimization in heterogeneous
//! networks", MLSys 2020, Algorithm 2.
//!
//! # Deviations from the source
//! Clients train for a number of epochs or of steps, and not until a minimum is found to some accuracy.
//!
//! # Cost
//! Two more operations for each parameter in each step.
//!
//! # Determinism
//! As the local optimizer: see `fedgenie describe section/training`.
//!
//! # Example
//! ```toml
//! [algorithm.fedprox]
//! mu = 0.1
//! ```

use super::{AlgorithmSettings, JobRule, Scene};
use fedgenie_core::config::Complaint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// `[algorithm.fedprox]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Weight of the pull.
    #[serde(default = "hundredth")]
    pub mu: f64,
}

const fn hundredth() -> f64 {
    0.01
}

impl AlgorithmSettings for Config {
    fn check(&self, scene: &Scene<'_>) -> Result<(), Complaint> {
        if !(self.mu.is_finite() && self.mu > 0.0) {
            return Err(Complaint::new("mu", format!("found {}; expected a number above 0", self.mu)));
        }
        scene.needs_model()
    }

    fn job(&self, _scene: &Scene<'_>) -> Option<Arc<dyn JobRule>> {
        Some(Arc::new(Pulled))
    }

    fn proximal(&self) -> Option<f64> {
        Some(self.mu)
    }
}

/// Jobs of which nothing but the pull differs.
#[derive(Debug)]
struct Pulled;

impl JobRule for Pulled {}
