//! Ditto: beside the shared model each client trains one of its own, and is pulled towards the shared one.
//!
//! # Definition
//! A job makes the update of the shared model as without the entry. Beside it, the client trains a model `w` of its
//! own: from its last value, at first the initial model, for `epochs`, in steps whose gradients are
//! `g + lambda·(w − x)`, where `x` is the model that the client was sent. `w` stays with the client: it does not
//! travel, is not aggregated, and is kept once the update is aggregated.
//!
//! Clients that `[adversary]` has train on other labels train both models on these, and are measured on them.
//!
//! Metrics over clients (`client_accuracy_mean`, …) are those of each client's own model, and `[evaluate] clients` is
//! on; metrics on test data are those of the shared model.
//!
//! # Inputs
//! `lambda`: at least 0; at 0 clients train alone. `epochs`: those of `[training]` if left out. For tasks of labelled
//! examples, without models of clusters. Entries that change jobs are refused beside it; combinations are not.
//!
//! # Source
//! T. Li, S. Hu, A. Beirami, V. Smith, "Ditto: Fair and robust federated learning through personalization", ICML 2021,
//! Algorithm 1.
//!
//! # Deviations from the source
//! A client's own model changes when its update is aggregated, as all memory of clients: a job that was lost leaves no
//! trace. `[training] proximal` counts for the shared model alone.
//!
//! # Cost
//! The compute phase takes longer by the share of the own model's epochs. Memory: a model for each client of which an
//! update was aggregated.
//!
//! # Determinism
//! Both models go through the examples in the same orders, with the same random numbers.
//!
//! # Example
//! ```toml
//! [algorithm.ditto]
//! lambda = 0.1
//! ```

use super::{AlgorithmSettings, Scene};
use fedgenie_core::config::Complaint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[algorithm.ditto]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Weight of the pull towards the shared model; at least 0.
    #[serde(default = "tenth")]
    pub lambda: f64,
    /// Passes over the client's data for its own model; those of `[training]` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epochs: Option<u32>,
}

const fn tenth() -> f64 {
    0.1
}

/// How clients train models of their own beside the shared one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnModels {
    /// Weight of the pull towards the model that the client was sent.
    pub lambda: f32,
    /// Epochs; those of the job if `None`.
    pub epochs: Option<u32>,
}

impl AlgorithmSettings for Config {
    fn check(&self, scene: &Scene<'_>) -> Result<(), Complaint> {
        if !(self.lambda >= 0.0 && (self.lambda as f32).is_finite()) {
            return Err(Complaint::new(
                "lambda",
                format!("found {:e}; expected a number from 0 to {:.1e}", self.lambda, f32::MAX),
            ));
        }
        if self.epochs == Some(0) {
            return Err(Complaint::new("epochs", "found 0; expected at least 1"));
        }
        scene.needs_one_model()
    }

    fn own_models(&self) -> Option<OwnModels> {
        Some(OwnModels { lambda: self.lambda as f32, epochs: self.epochs })
    }
}
