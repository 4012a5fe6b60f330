//! The reward of a round: the speed of its bottleneck plus the generalisation gain of its clients.
//!
//! # Definition
//! With `K` clients, `m` selected per round, `t` the round (from 1), `c_k` the times client `k` was selected before
//! round `t` and `ρ_k = m·d_k/Σd` its share of the selections (`d_k` = data quality × data size):
//!
//! ```text
//! x_k  = ρ_k − c_k/t            g_k = sign(x_k)·|x_k|^β          (3), (4)
//! r(t) = min_{k∈A} τ_min/τ_k + (α/m)·Σ_{k∈A} g_k                 (5)
//! ```
//!
//! With a `quantum` q, `g_k` and mean speeds are rounded to multiples of q, halves away from zero; realised speeds
//! and confidence bounds are not.
//!
//! # Source
//! D. Ben Ami, K. Cohen, Q. Zhao, "Client Selection for Generalization in Accelerated Federated Learning: A
//! Multi-Armed Bandit Approach", IEEE Access 2025, equations (3)–(5).
//!
//! # Deviations from the source
//! β may be any positive real number. `m` is the number of clients asked, also under over-selection.

use crate::id::{ClientId, Turn};
use crate::math::float::quantise;
use crate::math::power::signed_powers;
use crate::time::Span;

/// The parameters of the reward.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reward {
    /// The shortest conceivable latency of a job: speed is `tau_min / latency`, at most 1.
    pub tau_min: Span,
    /// Weight of generalisation; not negative.
    pub alpha: f64,
    /// Exponent of the generalisation function; positive.
    pub beta: f64,
    /// Grid to which generalisation and mean speeds are rounded.
    pub quantum: Option<f64>,
}

impl Reward {
    /// Speed of a job that took (or was waited for) `latency`.
    ///
    /// # Panics
    /// If the latency is zero: a job takes time.
    pub fn speed(&self, latency: Span) -> f64 {
        assert!(latency > Span::ZERO, "a job takes time");
        self.tau_min.0 as f64 / latency.0 as f64
    }

    /// A mean speed as it enters a comparison: on the grid, where there is one.
    pub fn mean_speed(&self, mean: f64) -> f64 {
        self.quantum.map_or(mean, |quantum| quantise(mean, quantum))
    }

    /// `(α/m)·g_k` of each candidate, in their order. O(candidates).
    pub fn gains(&self, history: &History<'_>, candidates: &[ClientId], gains: &mut Vec<f64>) {
        let cohort = history.cohort as f64;
        let turn = f64::from(history.turn.0);
        gains.clear();
        gains.extend(candidates.iter().map(|client| {
            let rho = cohort * history.shares[client.index()];
            rho - f64::from(history.counts[client.index()]) / turn
        }));
        signed_powers(gains, self.beta);
        if let Some(quantum) = self.quantum {
            gains.iter_mut().for_each(|g| *g = quantise(*g, quantum));
        }
        let weight = self.alpha / cohort;
        gains.iter_mut().for_each(|g| *g *= weight);
    }
}

/// The past as the generalisation function sees it.
#[derive(Clone, Copy, Debug)]
pub struct History<'a> {
    /// The selection that is about to be made, `t`.
    pub turn: Turn,
    /// Clients asked per round, `m`.
    pub cohort: usize,
    /// `d_k / Σd` per client.
    pub shares: &'a [f64],
    /// Times each client was selected before this selection.
    pub counts: &'a [u32],
}

/// The speed that ends a round: the `take`-th largest of the selected clients' (the smallest if the round waits for
/// all).
///
/// # Panics
/// If fewer than `take` speeds are given, or `take` is zero.
pub fn bottleneck(speeds: &[f64], take: usize) -> f64 {
    assert!(0 < take && take <= speeds.len(), "the round waits for at least one and at most all selected clients");
    if take == speeds.len() {
        return speeds.iter().copied().fold(f64::INFINITY, f64::min);
    }
    let mut speeds = speeds.to_vec();
    *speeds.select_nth_unstable_by(take - 1, |a, b| b.total_cmp(a)).1
}

#[cfg(test)]
mod tests {
    use super::*;

    const REWARD: Reward = Reward { tau_min: Span(50_000_000), alpha: 3.0, beta: 2.0, quantum: None };

    #[test]
    fn generalisation_by_hand() {
        // Four clients, one selected per round: ρ = 1/4. Before round 3, client 0 was selected once, client 1 never:
        // x = 1/4 − 1/3 = −1/12, g = −1/144; x = 1/4, g = 1/16. The weight α/m is 3.
        let history = History { turn: Turn(3), cohort: 1, shares: &[0.25; 4], counts: &[1, 0, 1, 0] };
        let gains = |reward: &Reward| {
            let mut gains = Vec::new();
            reward.gains(&history, &[ClientId(0), ClientId(1)], &mut gains);
            gains
        };
        let found = gains(&REWARD);
        approx::assert_relative_eq!(found[0], -3.0 / 144.0, max_relative = 1e-14);
        assert_eq!(found[1], 3.0 / 16.0);
        // On the grid of 0.05: −1/144 is nearest to 0, 1/16 to 0.05.
        let coarse = Reward { quantum: Some(0.05), ..REWARD };
        assert_eq!(gains(&coarse), [0.0, 3.0 * 0.05]);
        assert_eq!(coarse.mean_speed(0.33), 0.05 * 7.0);
    }

    #[test]
    fn the_bottleneck_of_an_over_selection_is_the_last_that_is_needed() {
        assert_eq!(bottleneck(&[0.5, 0.1, 0.9], 3), 0.1);
        assert_eq!(bottleneck(&[0.5, 0.1, 0.9], 2), 0.5);
        assert_eq!(bottleneck(&[0.5, 0.1, 0.9], 1), 0.9);
    }

    #[test]
    fn speed_is_a_ratio_of_spans() {
        assert_eq!(REWARD.speed(Span(100_000_000)), 0.5);
    }
}
