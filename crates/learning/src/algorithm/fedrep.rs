//! FedRep: clients fit their own heads to a shared representation, and then that to their heads.
//!
//! # Definition
//! The tensors that `private` names stay with clients, from their values in the initial model on; the others are the
//! shared model. A job has two phases. For `private_epochs` it trains the private part, the shared one as it was sent;
//! then, for the epochs or steps of `[training]`, the shared part, with the private one as the first phase left it.
//! Each phase begins its optimizer's momentum anew. The shared part is the update. The loss that a job tells is that of
//! its first epoch, which is one of the first phase; its steps are those of the second.
//!
//!
//! Metrics over clients (`client_accuracy_mean`, …) are those of each client's whole model, and `[evaluate] clients` is
//! on. There are none on test data: what travels is no whole model. Runs are compared by the main measure's mean over
//! clients. With `held_out` of the task, clients are measured on examples that they do not train on.
//!
//! # Inputs
//! `private`: names of layers or tensors, as in the file of a model, such as `fc` or `fc.bias`. For tasks of labelled
//! examples, without models of clusters and without `validation`. Entries that change jobs are refused beside it;
//! combinations are not. Policies and regrets for which a server judges models are refused, since it has none.
//! `private_epochs`: at least 1.
//!
//! # Source
//! L. Collins, H. Hassani, A. Mokhtari, S. Shakkottai, "Exploiting shared representations for personalized federated
//! learning", ICML 2021, Algorithm 1.
//!
//! # Deviations from the source
//! Clipping, decay and `[training] proximal` count in both phases, on the part that is trained; running means and
//! variances belong to the part of their layer. A client's part changes when its update is aggregated, as all memory of
//! clients: a job that was lost leaves no trace.
//!
//! # Cost
//! The compute phase takes longer by the share of `private_epochs`, as if a pass for one part took as long as one for
//! both. The shared part alone travels. Memory: a private part for each client of which an update was aggregated.
//!
//! # Determinism
//! Both phases go through the examples in the orders that a job of the whole model begins with, and draw its random
//! numbers from their beginning.
//!
//! # Example
//! ```toml
//! [algorithm.fedrep]
//! private = ["fc3"]
//! ```

use super::personal::PersonalLayers;
use super::{AlgorithmSettings, Scene};
use fedgenie_core::config::Complaint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[algorithm.fedrep]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Names of the layers or tensors that stay with clients.
    pub private: Vec<String>,
    /// Passes over the client's data for its private part, before the others are trained.
    #[serde(default = "one")]
    pub private_epochs: u32,
}

const fn one() -> u32 {
    1
}

impl AlgorithmSettings for Config {
    fn check(&self, scene: &Scene<'_>) -> Result<(), Complaint> {
        if self.private_epochs == 0 {
            return Err(Complaint::new("private_epochs", "found 0; expected at least 1"));
        }
        scene.needs_one_model()
    }

    fn personal(&self) -> Option<PersonalLayers> {
        Some(PersonalLayers { names: self.private.clone(), private_epochs: Some(self.private_epochs) })
    }
}
