//! MOON: a client's representations are drawn towards those of the model that it was sent, and away from those of its
//! own last model.
//!
//! # Definition
//! With `z`, `z_x` and `z_p` the outputs of the last hidden layer, after its activation, under the model that learns,
//! under the model `x` that was sent, and under the client's last result, each step adds to the loss `mu` times the
//! mean over its examples of
//!
//! `−ln(e^(cos(z, z_x)/T) / (e^(cos(z, z_x)/T) + e^(cos(z, z_p)/T)))`
//!
//! with `T` the `temperature`. In a client's first job its last result is `x`. The other two models are taken as in an
//! evaluation: without dropout, and with running means. The server averages.
//!
//! # Inputs
//! `mu`: the weight, above 0. `temperature`: above 0. For networks with a hidden layer: others are refused, and so are
//! models of clusters. Losses that clients report are those of the task, without the contrast.
//!
//! # Source
//! Q. Li, B. He, D. Song, "Model-contrastive federated learning", CVPR 2021, equations 3 and 4, Algorithm 1.
//!
//! # Deviations from the source
//! There is no projection head: representations are those of the last hidden layer of the task's own network. The last
//! result is that of the client's last update that was aggregated, as it was sent.
//!
//! # Cost
//! Two forward passes more in each step, which take no virtual time. Nothing more travels. Memory: a model for each
//! client of which an update was aggregated.
//!
//! # Determinism
//! Contrasts and their slopes are in `f64`, example by example; the slopes are rounded to `f32` once.
//!
//! # Example
//! ```toml
//! [algorithm.moon]
//! mu = 1.0
//! ```

use super::{AlgorithmSettings, Done, JobRule, Remembered, Scene};
use fedgenie_core::config::Complaint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// `[algorithm.moon]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Weight of the contrast; above 0.
    #[serde(default = "one")]
    pub mu: f64,
    /// How sharp it is: the smaller, the sharper; above 0.
    #[serde(default = "half")]
    pub temperature: f64,
}

const fn one() -> f64 {
    1.0
}

const fn half() -> f64 {
    0.5
}

impl AlgorithmSettings for Config {
    fn check(&self, scene: &Scene<'_>) -> Result<(), Complaint> {
        for (key, found) in [("mu", self.mu), ("temperature", self.temperature)] {
            if !(found.is_finite() && found > 0.0) {
                return Err(Complaint::new(key, format!("found {found}; expected a number above 0")));
            }
        }
        scene.needs_model()?;
        scene.refuses_own()?;
        if scene.has_clusters {
            return Err(Complaint::new(
                "",
                "compares representations of one network; take [clusters] out, or the entry",
            ));
        }
        match scene.has_hidden {
            true => Ok(()),
            false => Err(scene.refuse("has no network with a hidden layer")),
        }
    }

    fn job(&self, _scene: &Scene<'_>) -> Option<Arc<dyn JobRule>> {
        Some(Arc::new(Moon { mu: self.mu, temperature: self.temperature }))
    }
}

/// Contrasted steps.
#[derive(Debug)]
struct Moon {
    mu: f64,
    temperature: f64,
}

impl JobRule for Moon {
    fn remembers(&self) -> Option<Remembered> {
        Some(Remembered { server: None, client: "previous" })
    }

    fn contrast(&self) -> Option<[f64; 2]> {
        Some([self.mu, self.temperature])
    }

    fn leave(&self, done: &Done<'_>, left: &mut Vec<f32>) {
        left.extend_from_slice(&done.update.parameters);
    }
}
