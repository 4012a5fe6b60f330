//! Geometric median: the change with the least sum of distances to all changes, by Weiszfeld's steps.
//!
//! # Definition
//! With `p_k` the weights of a round's updates, divided by their sum, Δ begins as `Σ p_k δ_k`, and `iterations` times
//! becomes `Σ β_k δ_k / Σ β_k` with `β_k = p_k / max(ν, ‖Δ − δ_k‖)`. It does not stop earlier.
//!
//! # Inputs
//! `iterations`: at least 1. `nu`: the smoothing ν, above 0. Weights are those of `[aggregation] weighting`, with the
//! protocol's staleness; a part of the old model that `total-size` keeps is not kept. No policy gives weights. Of a
//! table, the change of rows that a client did not move is 0; `rows = "touched"` is refused, and so are models of
//! clusters. Norms go over all numbers, running means too.
//!
//! # Source
//! K. Pillutla, S. M. Kakade, Z. Harchaoui, "Robust aggregation for federated learning", IEEE Transactions on Signal
//! Processing 70, 2022 (RFA), Algorithm 2.
//!
//! # Deviations from the source
//! None: the source leaves the number of steps open and takes three; ν is 1e-6 there.
//!
//! # Cost
//! Two passes over the updates more for each step, at the server. The source's secure sums would take as many messages;
//! they are not charged.
//!
//! # Determinism
//! In `f64`, sums over clients in ascending (client, job).
//!
//! # Example
//! ```toml
//! [algorithm.geometric-median]
//! iterations = 3
//! ```

use super::{AlgorithmSettings, Combine, Factors, Gathered, Scene};
use fedgenie_core::config::Complaint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// `[algorithm.geometric-median]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Steps towards the median; at least 1.
    #[serde(default = "three")]
    pub iterations: u32,
    /// The least distance that weights are divided by; above 0.
    #[serde(default = "millionth")]
    pub nu: f64,
}

const fn three() -> u32 {
    3
}

const fn millionth() -> f64 {
    1e-6
}

impl AlgorithmSettings for Config {
    fn check(&self, scene: &Scene<'_>) -> Result<(), Complaint> {
        if self.iterations == 0 {
            return Err(Complaint::new("iterations", "found 0; expected at least 1"));
        }
        if !(self.nu.is_finite() && self.nu > 0.0) {
            return Err(Complaint::new("nu", format!("found {}; expected a number above 0", self.nu)));
        }
        scene.needs_whole_updates()
    }

    fn combine(&self, _scene: &Scene<'_>) -> Option<Arc<dyn Combine>> {
        Some(Arc::new(GeometricMedian { iterations: self.iterations, nu: self.nu }))
    }
}

/// Weiszfeld's steps.
#[derive(Debug)]
struct GeometricMedian {
    iterations: u32,
    nu: f64,
}

impl Combine for GeometricMedian {
    fn takes_weights(&self) -> bool {
        false
    }

    fn factors(&self, gathered: &Gathered<'_>) -> Option<Factors> {
        let among = gathered.weighed();
        let of_all: f64 = gathered.weights.iter().sum();
        let given: Vec<f64> = gathered.weights.iter().map(|weight| weight / of_all).collect();
        let (mut shares, mut change) = (given.clone(), Vec::new());
        for _ in 0..self.iterations {
            let mut point = vec![0.0; gathered.layout.len()];
            among.iter().for_each(|&index| gathered.add(index, shares[index], &mut point));
            for &index in &among {
                shares[index] = given[index] / gathered.distance_to(index, &point, &mut change).max(self.nu);
            }
            let sum: f64 = shares.iter().sum();
            shares.iter_mut().for_each(|share| *share /= sum);
        }
        Some(gathered.shares(&shares))
    }
}
