//! FedDyn: clients' objectives are corrected by what they found before, so that all of them have the same minimum.
//!
//! # Definition
//! The server remembers `h`, client `k` remembers `g_k`, both 0 at first. The client's steps use the gradient
//! `g − g_k + α(w − x)`, and afterwards `g_k ← g_k − α δ_k`. Over the updates that are aggregated and the `N` clients,
//! `h ← h − (α/N) Σ δ_k`, and then `x ← x + mean(δ_k) − h/α`.
//!
//! An entry for the combination takes the place of the mean alone: `h` is a sum over all updates that are aggregated.
//! So `h` is always the mean of all `g_k`. Where a client's next job began before its last update was aggregated, the
//! change of `g_k` counts from the client's memory at the aggregation.
//!
//! # Inputs
//! `alpha`: the weight α, above 0; it takes the place of `[training] proximal`, which is refused beside it. Weights do
//! not enter: `weighting` is `uniform` (and is that if left out), no policy gives weights, and the protocol's
//! `staleness` is `constant`. `[aggregation] server` is `average` with a learning rate of 1. One server alone: edge
//! servers are refused, and so is `[privacy]`, whose noise `h` would not know.
//!
//! *Rows.* Of a table, the rows that a job moves are corrected in each of its steps, and `g_k` changes there alone; the
//! server moves the rows by `h` that a job of the round moved.
//!
//! # Source
//! D. A. E. Acar, Y. Zhao, R. Matas, M. Mattina, P. Whatmough, V. Saligrama, "Federated learning based on dynamic
//! regularization", ICLR 2021, Algorithm 1.
//!
//! # Deviations from the source
//! Clients take steps, and do not find the minimum of their objective. Only clients whose update is aggregated change
//! their memory.
//!
//! # Cost
//! Nothing more travels: the server works `h` out from the changes. Memory: a model for the server, and one for each
//! client of which an update was aggregated.
//!
//! # Determinism
//! `h` is kept in `f64`, `g_k` in `f32`, worked out in `f64` and rounded once. Sums over clients are in ascending
//! (client, job).
//!
//! # Example
//! ```toml
//! [algorithm.feddyn]
//! alpha = 0.01
//! [aggregation]
//! weighting = "uniform"
//! ```

use super::{AlgorithmSettings, Done, JobMemory, JobRule, Remembered, Scene, ServerConfig, Weighting};
use crate::layout::Layout;
use fedgenie_core::config::Complaint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// `[algorithm.feddyn]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Weight of the pull, and of what is remembered; above 0.
    #[serde(default = "hundredth")]
    pub alpha: f64,
}

const fn hundredth() -> f64 {
    0.01
}

impl AlgorithmSettings for Config {
    fn check(&self, scene: &Scene<'_>) -> Result<(), Complaint> {
        let refuse = |message: &str| Err(Complaint::new("", message));
        if !(self.alpha.is_finite() && self.alpha > 0.0) {
            return Err(Complaint::new("alpha", format!("found {}; expected a number above 0", self.alpha)));
        }
        scene.needs_model()?;
        scene.refuses_own()?;
        scene.needs_alike()?;
        if !matches!(*scene.server, ServerConfig::Average { lr: 1.0 }) {
            return refuse(
                "moves the model itself; take [aggregation] server = \"average\" with lr = 1, or leave it out",
            );
        }
        if scene.has_noise {
            return refuse("is not defined with [privacy]: clients would remember changes without the noise");
        }
        match scene.has_edges {
            true => refuse("is defined for one server, which remembers all changes; take another protocol"),
            false => Ok(()),
        }
    }

    fn job(&self, _scene: &Scene<'_>) -> Option<Arc<dyn JobRule>> {
        Some(Arc::new(FedDyn { alpha: self.alpha }))
    }

    fn weighting(&self) -> Option<Weighting> {
        Some(Weighting::Uniform)
    }

    fn proximal(&self) -> Option<f64> {
        Some(self.alpha)
    }
}

/// Steps by what clients remember.
#[derive(Debug)]
struct FedDyn {
    alpha: f64,
}

impl JobRule for FedDyn {
    fn remembers(&self) -> Option<Remembered> {
        Some(Remembered { server: Some("h"), client: "g" })
    }

    fn takes_weights(&self) -> bool {
        false
    }

    fn correct(&self, layout: &Layout, memory: &JobMemory, correction: &mut Vec<f32>) -> bool {
        let Some(own) = &memory.client else { return false };
        correction.clear();
        correction.extend(own[..layout.trained()].iter().map(|number| -number));
        correction.resize(layout.len(), 0.0);
        true
    }

    fn leave(&self, done: &Done<'_>, left: &mut Vec<f32>) {
        let Done { layout, start, update, memory: JobMemory { client, .. }, .. } = *done;
        for (range, part) in update.parts(layout) {
            left.extend(range.zip(part).map(|(index, &moved)| {
                if index >= layout.trained() {
                    return 0.0;
                }
                let own = client.as_ref().map_or(0.0, |own| f64::from(own[index]));
                (own - self.alpha * (f64::from(moved) - f64::from(start[index]))) as f32
            }));
        }
    }

    fn gather(&self, server: &mut [f64], before: Option<&[f32]>, after: &[f32], clients: usize) {
        for (index, (sum, &after)) in server.iter_mut().zip(after).enumerate() {
            let before = before.map_or(0.0, |before| before[index]);
            *sum += (f64::from(after) - f64::from(before)) / clients as f64;
        }
    }

    fn shift(&self) -> f64 {
        -1.0 / self.alpha
    }
}
