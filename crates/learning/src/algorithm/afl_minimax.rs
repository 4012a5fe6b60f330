//! Agnostic federated learning: the model for the mixture of clients that is worst for it.
//!
//! # Definition
//! The server has a mixture `λ` of all `N` clients, at first `1/N` each. Client `k` is sent `x`, works `F_k = f_k(x)`
//! out, the mean loss on its own examples, and trains. With the `m` updates of a round,
//!
//! `Δ = (N/m) Σ λ_k δ_k`, and then `λ ← P(λ + lr (N/m) Σ F_k e_k)`,
//!
//! where `e_k` is the unit vector of client `k` and `P` the Euclidean projection onto the simplex (numbers of at least
//! 0 with the sum 1). Where everybody takes part, `N/m` is 1; where clients are drawn uniformly, both are right on
//! average. Running means, which gradient descent does not change, are averaged plainly.
//!
//! # Inputs
//! `lr`: above 0, at most 1e6. Weights do not enter: `weighting` is `uniform` (and is that if left out), no policy
//! gives weights, and the protocol's `staleness` is `constant`. The task knows losses of clients. For one server;
//! `rows = "touched"` is refused, and so are models of clusters. The mixture is `server.mixture` of
//! `state.safetensors`.
//!
//! # Source
//! M. Mohri, G. Sivek, A. T. Suresh, "Agnostic federated learning", ICML 2019, Section 4 and Figure 3. The projection:
//! J. Duchi et al., "Efficient projections onto the l1-ball for learning in high dimensions", ICML 2008, Figure 1.
//!
//! # Deviations from the source
//! A client's change by a job stands in the place of one stochastic gradient, and the policy selects. The source
//! averages the models of all rounds; here the last one is measured. A domain of the source is a client here.
//!
//! # Cost
//! An inference pass over the client's examples in each job, which prolongs its compute phase by
//! `[training] inference_share` of an epoch, and 4 bytes more up: the loss. The server sorts `N` numbers in each round.
//!
//! # Determinism
//! Sums in `f64`, in ascending (client, job), those of the projection in falling order of numbers.
//!
//! # Example
//! ```toml
//! [algorithm.afl-minimax]
//! lr = 0.1
//! [aggregation]
//! weighting = "uniform"
//! ```

use super::{AlgorithmSettings, Combine, Contribution, Factors, Gathered, JobRule, Scene, Weighting};
use fedgenie_core::config::Complaint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// `[algorithm.afl-minimax]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// How far losses move the mixture; above 0.
    #[serde(default = "tenth")]
    pub lr: f64,
}

const fn tenth() -> f64 {
    0.1
}

impl AlgorithmSettings for Config {
    fn check(&self, scene: &Scene<'_>) -> Result<(), Complaint> {
        if !(self.lr > 0.0 && self.lr <= 1e6) {
            return Err(Complaint::new("lr", format!("found {}; expected a number above 0, at most 1e6", self.lr)));
        }
        scene.needs_whole_updates()?;
        scene.needs_alike()?;
        if !scene.has_losses {
            return Err(scene.refuse("does not know its clients' losses"));
        }
        match scene.has_edges {
            true => {
                let message = "is defined for one server, which remembers its clients; take another protocol";
                Err(Complaint::new("", message))
            }
            false => Ok(()),
        }
    }

    fn job(&self, _scene: &Scene<'_>) -> Option<Arc<dyn JobRule>> {
        Some(Arc::new(Minimax { lr: self.lr }))
    }

    fn combine(&self, _scene: &Scene<'_>) -> Option<Arc<dyn Combine>> {
        Some(Arc::new(Minimax { lr: self.lr }))
    }

    fn weighting(&self) -> Option<Weighting> {
        Some(Weighting::Uniform)
    }
}

/// Steps of the mixture.
#[derive(Debug)]
struct Minimax {
    lr: f64,
}

impl JobRule for Minimax {
    fn needs_loss(&self) -> bool {
        true
    }
}

impl Combine for Minimax {
    fn numbers_up(&self) -> u64 {
        1
    }

    fn takes_weights(&self) -> bool {
        false
    }

    fn of_models(&self) -> bool {
        false
    }

    fn remembers_clients(&self) -> bool {
        true
    }

    fn factors(&self, gathered: &Gathered<'_>) -> Option<Factors> {
        let among = gathered.weighed();
        let scale = gathered.mixture.len() as f64 / among.len().max(1) as f64;
        let mut shares = vec![0.0; gathered.contributions.len()];
        for index in among {
            shares[index] = scale * gathered.mixture[gathered.contributions[index].client.index()];
        }
        Some(Factors { everywhere: false, ..gathered.shares(&shares) })
    }

    fn mix(&self, contributions: &[&Contribution<'_>], mixture: &mut [f64]) {
        let scale = self.lr * mixture.len() as f64 / contributions.len().max(1) as f64;
        for one in contributions {
            mixture[one.client.index()] += scale * one.loss.expect("jobs of this rule work their loss out");
        }
        onto_simplex(mixture);
    }
}

/// Replaces numbers by the nearest ones of at least 0 whose sum is 1.
fn onto_simplex(numbers: &mut [f64]) {
    // The same point is the nearest one where all are moved alike; so no sum is of large numbers.
    let top = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    numbers.iter_mut().for_each(|number| *number -= top);
    let mut falling = numbers.to_vec();
    falling.sort_unstable_by(|one, other| other.total_cmp(one));
    let (mut sum, mut shift) = (0.0, 0.0);
    for (count, number) in (1..).zip(falling) {
        sum += number;
        let next = (1.0 - sum) / f64::from(count);
        if number + next <= 0.0 {
            break;
        }
        shift = next;
    }
    numbers.iter_mut().for_each(|number| *number = (*number + shift).max(0.0));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The nearest point by bisection of the shift.
    fn by_bisection(numbers: &[f64]) -> Vec<f64> {
        let top = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let numbers: Vec<f64> = numbers.iter().map(|number| number - top).collect();
        let moved = |shift: f64| numbers.iter().map(move |number| (number + shift).max(0.0));
        let (mut low, mut high) = (-1e6, 1e6);
        for _ in 0..200 {
            let middle = f64::midpoint(low, high);
            if moved(middle).sum::<f64>() < 1.0 { low = middle } else { high = middle }
        }
        moved(low).collect()
    }

    #[test]
    fn the_nearest_point_of_the_simplex() {
        for numbers in [
            vec![0.25; 4],
            vec![0.5, 0.5, 0.5],
            vec![2.0, 0.1, 0.0],
            vec![0.9, 0.8, -3.0, 0.4, 0.05],
            vec![-1.0, -2.0],
            vec![1e3, 1e3 - 0.25, 7.0],
            vec![5.0],
            vec![1e15, 1.5, 1e15 - 0.5],
        ] {
            let mut found = numbers.clone();
            onto_simplex(&mut found);
            for (found, expected) in found.iter().zip(by_bisection(&numbers)) {
                assert!((found - expected).abs() < 1e-9, "{numbers:?}: {found} beside {expected}");
            }
        }
    }
}
