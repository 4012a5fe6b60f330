//! The genie: knows every client's mean speed and finds the set that a reward-maximiser would choose.
//!
//! # Definition
//! `G_t = argmax_{|S|=m} min_{k∈S} μ_k + (α/m) Σ_{k∈S} g_k(H_t)` with `μ_k = E[τ_min/τ_k]` of the effective latency,
//! the time that the round waits for the client: `min(τ_k, T)` under a deadline or timeout `T`, and `T` if the client
//! is lost. Under over-selection the bottleneck is the `take`-th largest `μ` of the set.
//!
//! # Source
//! Ben Ami, Cohen, Zhao, IEEE Access 2025, equation (6).
//!
//! # Cost
//! Mean speeds: one quadrature per distinct client, once. A solve: O(K log m) after the order is known.

use super::reward::Reward;
use super::{Exact, Instance};
use crate::id::ClientId;

/// The knowledge of the genie.
#[derive(Clone, Debug)]
pub struct Genie {
    /// The reward it maximises.
    pub reward: Reward,
    /// `μ_k` by quadrature, before any rounding to a quantum.
    pub mean_speeds: Vec<f64>,
    /// `μ_k` as compared: on the quantum's grid, where there is one.
    pub means: Vec<f64>,
}

impl Genie {
    /// A genie with the given mean speeds.
    pub fn new(reward: Reward, mean_speeds: Vec<f64>) -> Self {
        let means = mean_speeds.iter().map(|&mean| reward.mean_speed(mean)).collect();
        Self { reward, mean_speeds, means }
    }

    /// Clients whose mean speed lies so near to the middle between two points of the quantum's grid that rounding is a
    /// matter of the last digits.
    pub fn ambiguous_means(&self) -> Vec<ClientId> {
        let Some(quantum) = self.reward.quantum else { return Vec::new() };
        let is_ambiguous = |mean: f64| {
            let steps = mean / quantum;
            (steps - libm::floor(steps) - 0.5).abs() < 1e-6
        };
        let ids = (0..self.mean_speeds.len()).map(ClientId::from_index);
        ids.filter(|id| is_ambiguous(self.mean_speeds[id.index()])).collect()
    }
}

/// Finds the genie's set; keeps its buffers between rounds.
#[derive(Debug, Default)]
pub struct GenieSolver {
    exact: Exact,
    speeds: Vec<f64>,
    places: Vec<u32>,
    set: Vec<ClientId>,
}

impl GenieSolver {
    /// The best set of `cohort` of the available clients, ascending; `gains` are `(α/m)·g_k` of the available.
    ///
    /// # Panics
    /// If fewer than `cohort` are available.
    pub fn best(
        &mut self,
        genie: &Genie,
        gains: &[f64],
        cohort: usize,
        take: usize,
        available: &[ClientId],
    ) -> &[ClientId] {
        self.speeds.clear();
        self.speeds.extend(available.iter().map(|client| genie.means[client.index()]));
        let instance = Instance { speed: &self.speeds, gain: gains, cohort, take };
        self.exact.maximise(&instance, &mut self.places);
        self.set.clear();
        self.set.extend(self.places.iter().map(|&place| available[place as usize]));
        &self.set
    }
}
