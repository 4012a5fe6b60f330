//! FedNova: changes are divided by how far their steps could go, so that clients with many steps do not pull more.
//!
//! # Definition
//! `Δ = τ Σ p_k δ_k/‖a_k‖₁`, where `a_k` has the weight of each gradient of job `k` in its change:
//!
//! | local solver | `‖a_k‖₁` |
//! |---|---|
//! | `sgd` | `K_k` |
//! | `sgd` with momentum `m` | `Σ_{j=1..K_k} (1 − m^j)/(1 − m)` |
//! | `sgd` with `proximal` μ | `Σ_{j=0..K_k−1} abs(1 − ημ)^j` |
//!
//! `τ = Σ p_k ‖a_k‖₁`, with `proximal` `τ = Σ p_k K_k`. Where the weights `p_k` do not add up to 1 (`total-size`, the
//! weights of a policy, staleness that discounts), τ is the mean by the absolute values of these weights: clients with
//! equal steps are averaged as they would be without the algorithm. A job without a step counts in τ as one that went
//! nowhere. Running means, which gradient descent does not change, are averaged plainly. An edge server averages its
//! clients' updates so; no job made the model that it sends the cloud, so the cloud averages it plainly.
//!
//! # Inputs
//! `[training] optimizer = { sgd = … }` without Nesterov's momentum and without dampening; momentum or `proximal`, not
//! both.
//!
//! # Source
//! J. Wang, Q. Liu, H. Liang, G. Joshi, H. V. Poor, "Tackling the objective inconsistency problem in heterogeneous
//! federated optimization", NeurIPS 2020, equations 5 and 6.
//!
//! # Deviations from the source
//! Weight decay is part of the gradients and does not enter `a_k`.
//!
//! # Cost
//! As averaging. Each update brings 4 bytes more, the norm.
//!
//! # Determinism
//! Norms in `f64`, term by term; sums over clients in ascending (client, job).
//!
//! # Example
//! ```toml
//! [algorithm.fednova]
//! ```

use super::{AlgorithmSettings, Combine, Contribution, Factors, Gathered, Scene};
use crate::trainer::OptimizerConfig;
use fedgenie_core::config::Complaint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// `[algorithm.fednova]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {}

impl Config {
    fn solver(scene: &Scene<'_>) -> Result<Solver, Complaint> {
        let refuse = |message: &str| Err(Complaint::new("", message));
        let OptimizerConfig::Sgd { momentum, nesterov, dampening, .. } = *scene.optimizer else {
            return refuse("is defined for the optimizer sgd; take it, or take the entry out");
        };
        match (momentum > 0.0, scene.proximal > 0.0) {
            _ if nesterov => refuse("is not defined for Nesterov's momentum; take nesterov out"),
            _ if dampening > 0.0 => refuse("is not defined for dampening; take it out"),
            (true, true) => refuse("is not defined for momentum beside proximal; take one of them out"),
            (true, false) => Ok(Solver::Momentum(momentum)),
            (false, true) => Ok(Solver::Proximal(scene.proximal)),
            (false, false) => Ok(Solver::Plain),
        }
    }
}

impl AlgorithmSettings for Config {
    fn check(&self, scene: &Scene<'_>) -> Result<(), Complaint> {
        scene.needs_model()?;
        scene.refuses_own()?;
        Self::solver(scene).map(|_| ())
    }

    fn combine(&self, scene: &Scene<'_>) -> Option<Arc<dyn Combine>> {
        Some(Arc::new(FedNova(Self::solver(scene).ok()?)))
    }
}

/// The local solver.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Solver {
    Plain,
    /// With the share of the buffer that a step keeps.
    Momentum(f64),
    /// With the weight of the pull.
    Proximal(f64),
}

impl Solver {
    /// `‖a_k‖₁` of so many steps at a learning rate.
    fn norm(self, steps: u64, rate: f64) -> f64 {
        match self {
            Self::Plain => steps as f64,
            Self::Momentum(momentum) => {
                let (mut sum, mut power) = (0.0, 1.0);
                for _ in 0..steps {
                    power *= momentum;
                    sum += (1.0 - power) / (1.0 - momentum);
                }
                sum
            }
            Self::Proximal(mu) => {
                let (mut sum, mut power) = (0.0, 1.0);
                for _ in 0..steps {
                    sum += power;
                    power *= (1.0 - rate * mu).abs();
                }
                sum
            }
        }
    }
}

/// Normalised averaging.
#[derive(Debug)]
struct FedNova(Solver);

impl Combine for FedNova {
    fn numbers_up(&self) -> u64 {
        1
    }

    fn needs_sums_alone(&self) -> bool {
        true
    }

    /// No job made an edge server's model.
    fn of_models(&self) -> bool {
        false
    }

    fn factors(&self, gathered: &Gathered<'_>) -> Option<Factors> {
        let Gathered { contributions, weights, .. } = *gathered;
        let steps: Vec<u64> = contributions.iter().map(|one| one.steps).collect::<Option<_>>()?;
        let norm = |(one, &steps): (&&Contribution<'_>, &u64)| self.0.norm(steps, one.rate);
        let norms: Vec<f64> = contributions.iter().zip(&steps).map(norm).collect();
        let (mut sum, mut total) = (0.0, 0.0);
        for (index, weight) in weights.iter().map(|weight| weight.abs()).enumerate() {
            let length = if let Solver::Proximal(_) = self.0 { steps[index] as f64 } else { norms[index] };
            sum += weight * length;
            total += weight;
        }
        let tau = sum / total;
        // A job without a step changed nothing: nothing of it is scaled.
        let of = norms.into_iter().map(|norm| if norm == 0.0 { 0.0 } else { tau / norm }).collect();
        Some(Factors { of, everywhere: false, of_centre: 0.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn norms_by_hand() {
        assert_eq!(Solver::Plain.norm(7, 0.1), 7.0);
        // 1 + 1.5 + 1.75.
        assert_eq!(Solver::Momentum(0.5).norm(3, 0.1), 4.25);
        // 1 + 0.75 + 0.5625.
        assert_eq!(Solver::Proximal(0.5).norm(3, 0.5), 2.3125);
        assert_eq!(Solver::Momentum(0.5).norm(0, 0.1), 0.0);
    }

    /// One that went nowhere leaves the others normalised: `τ = (4 + 0 + 2)/3`.
    #[test]
    fn a_job_without_a_step_switches_nothing_off() {
        let of = |client, steps| Contribution {
            client: fedgenie_core::id::ClientId(client),
            number: fedgenie_core::id::JobNumber(0),
            cluster: 0,
            examples: 1,
            weight: None,
            staleness_weight: 1.0,
            start: &[],
            parameters: &[],
            rows: &[],
            loss: None,
            steps,
            rate: 0.1,
        };
        let factors = |steps: [Option<u64>; 3]| {
            let [one, two, three] = [of(0, steps[0]), of(1, steps[1]), of(2, steps[2])];
            let (layout, contributions) = (crate::layout::Layout::dense(0, 0), [&one, &two, &three]);
            let gathered = Gathered {
                layout: &layout,
                contributions: &contributions,
                weights: &[1.0; 3],
                total: 3.0,
                centre: &[],
                mixture: &[],
            };
            FedNova(Solver::Plain).factors(&gathered).map(|factors| factors.of)
        };
        assert_eq!(factors([Some(4), Some(0), Some(2)]), Some(vec![0.5, 0.0, 1.0]));
        assert_eq!(factors([Some(0); 3]), Some(vec![0.0; 3]));
        assert_eq!(factors([Some(4), None, Some(2)]), None);
    }

    /// Weights of gradients are taken by their size, where a step jumps over the model that pulls.
    #[test]
    fn norms_of_steps_that_overshoot() {
        // 1 + 0.5 + 0.25.
        assert_eq!(Solver::Proximal(3.0).norm(3, 0.5), 1.75);
    }

    /// The closed forms of both sums.
    #[test]
    fn norms_in_closed_form() {
        let (momentum, steps) = (0.9_f64, 40);
        let tail = momentum * (1.0 - momentum.powi(steps)) / (1.0 - momentum);
        let expected = (f64::from(steps) - tail) / (1.0 - momentum);
        approx::assert_relative_eq!(Solver::Momentum(momentum).norm(40, 1.0), expected, max_relative = 1e-12);
        let shrink = 0.05 * 0.3_f64;
        let expected = (1.0 - (1.0 - shrink).powi(steps)) / shrink;
        approx::assert_relative_eq!(Solver::Proximal(0.3).norm(40, 0.05), expected, max_relative = 1e-12);
    }
}
