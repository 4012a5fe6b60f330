//! FedPer: the last layers of each client's model are its own.
//!
//! # Definition
//! The tensors that `private` names stay with clients, from their values in the initial model on; the others are the
//! shared model. A job trains both parts together, from the model that the client was sent and its own part; the shared
//! part is the update.
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
//!
//! # Source
//! M. G. Arivazhagan, V. Aggarwal, A. K. Singh, S. Choudhary, "Federated learning with personalization layers", 2019
//! (arXiv 1912.00818).
//!
//! # Deviations from the source
//! In the source the last layers are private; here any are that are named. A client's part changes when its update is
//! aggregated, as all memory of clients: a job that was lost leaves no trace. `[training] proximal` pulls the private
//! part towards where the job begins.
//!
//! # Cost
//! Nothing in time; the shared part alone travels. Memory: a private part for each client of which an update was
//! aggregated.
//!
//! # Determinism
//! A job draws the random numbers of a job of the whole model.
//!
//! # Example
//! ```toml
//! [algorithm.fedper]
//! private = ["fc3"]
//! ```

use super::personal::PersonalLayers;
use super::{AlgorithmSettings, Scene};
use fedgenie_core::config::Complaint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[algorithm.fedper]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Names of the layers or tensors that stay with clients.
    pub private: Vec<String>,
}

impl AlgorithmSettings for Config {
    fn check(&self, scene: &Scene<'_>) -> Result<(), Complaint> {
        scene.needs_one_model()
    }

    fn personal(&self) -> Option<PersonalLayers> {
        Some(PersonalLayers { names: self.private.clone(), private_epochs: None })
    }
}
