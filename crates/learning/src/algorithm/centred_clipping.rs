//! Centred clipping: changes are drawn towards the last change of the model, and far ones only so far.
//!
//! # Definition
//! The server remembers `v`, the last Δ, at first 0. In a round, `iterations` times
//! `v ← v + (1/n) Σ (δ_k − v) min(1, radius/‖δ_k − v‖)` over the `n` updates, and `Δ = v`. Updates of clients without
//! examples do not take part.
//!
//! # Inputs
//! `radius`: above 0. `iterations`: at least 1. Weights do not enter: `weighting` is `uniform` (and is that if left
//! out), no policy gives weights, and the protocol's `staleness` is `constant`. Models with tables of rows are refused,
//! as a change of rows that nobody moved would not be 0, and so are models of clusters and edge servers.
//!
//! # Source
//! S. P. Karimireddy, L. He, M. Jaggi, "Learning from history for Byzantine robust optimization", ICML 2021, Section 5.
//!
//! # Deviations from the source
//! Changes of models are clipped; clients do not send a momentum of their gradients.
//!
//! # Cost
//! Two passes over the updates more for each step; memory for one vector of the model's length in `f64`.
//!
//! # Determinism
//! In `f64`, sums over clients in ascending (client, job).
//!
//! # Example
//! ```toml
//! [aggregation]
//! weighting = "uniform"
//! [algorithm.centred-clipping]
//! radius = 1.0
//! ```

use super::norm_clipping::shortening;
use super::{AlgorithmSettings, Combine, Factors, Gathered, Scene, Weighting};
use fedgenie_core::config::Complaint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// `[algorithm.centred-clipping]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// How far a change draws at most; above 0.
    #[serde(default = "ten")]
    pub radius: f64,
    /// Steps of the centre in a round; at least 1.
    #[serde(default = "one")]
    pub iterations: u32,
}

const fn ten() -> f64 {
    10.0
}

const fn one() -> u32 {
    1
}

impl AlgorithmSettings for Config {
    fn check(&self, scene: &Scene<'_>) -> Result<(), Complaint> {
        if !(self.radius.is_finite() && self.radius > 0.0) {
            return Err(Complaint::new("radius", format!("found {}; expected a number above 0", self.radius)));
        }
        if self.iterations == 0 {
            return Err(Complaint::new("iterations", "found 0; expected at least 1"));
        }
        scene.needs_whole_updates()?;
        scene.needs_alike()?;
        if scene.has_rows {
            return Err(scene.refuse("has tables, of which clients move some rows alone"));
        }
        match scene.has_edges {
            true => {
                let message = "is defined for one server, which remembers its last change; take another protocol";
                Err(Complaint::new("", message))
            }
            false => Ok(()),
        }
    }

    fn combine(&self, _scene: &Scene<'_>) -> Option<Arc<dyn Combine>> {
        Some(Arc::new(CentredClipping { radius: self.radius, iterations: self.iterations }))
    }

    fn weighting(&self) -> Option<Weighting> {
        Some(Weighting::Uniform)
    }
}

/// Steps of the centre.
#[derive(Debug)]
struct CentredClipping {
    radius: f64,
    iterations: u32,
}

impl Combine for CentredClipping {
    fn takes_weights(&self) -> bool {
        false
    }

    fn remembers_change(&self) -> bool {
        true
    }

    fn factors(&self, gathered: &Gathered<'_>) -> Option<Factors> {
        let among = gathered.weighed();
        let mut centre = gathered.centre.to_vec();
        // The centre as a sum: a multiple of the one at first, and a share of each change.
        let (mut of_centre, mut shares) = (1.0, vec![0.0; gathered.contributions.len()]);
        let mut change = Vec::new();
        for _ in 0..self.iterations {
            let distance = |&index: &usize| gathered.distance_to(index, &centre, &mut change);
            let draws: Vec<f64> =
                among.iter().map(distance).map(|distance| shortening(distance, self.radius)).collect();
            let kept = 1.0 - draws.iter().sum::<f64>() / among.len() as f64;
            of_centre *= kept;
            shares.iter_mut().for_each(|share| *share *= kept);
            centre.iter_mut().for_each(|number| *number *= kept);
            for (&index, draw) in among.iter().zip(draws) {
                let share = draw / among.len() as f64;
                shares[index] += share;
                gathered.add(index, share, &mut centre);
            }
        }
        Some(Factors { of_centre, ..gathered.shares(&shares) })
    }
}
