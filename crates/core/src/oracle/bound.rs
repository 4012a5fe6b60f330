//! The bound of Theorem 1 on the mean regret of BSFL.
//!
//! # Definition
//! ```text
//! R(n) ≤ Δ_max·K·(4(m+1) ln n / Δ_min² + 1 + π²/3)
//! ```
//! `Δ_max` and `Δ_min` are the largest and the smallest positive gap `[min μ + gen](G) − [min μ + gen](A)` over all
//! histories:
//!
//! - `Δ_max = μ_(m) − μ_min + (α/m)·min(m, K−m)·(Q(ρ^β) + Q((1−ρ)^β))` with equal shares `ρ = m/K`: the genie's set is
//!   the m fastest, the policy's has the slowest, and where the two differ, the policy's clients were always selected
//!   and the genie's never. A supremum, approached as t grows. `Q` rounds to the quantum.
//! - `Δ_min` is the smallest positive number of the form `q(a + (α/m) b)`, `q·a` a difference of two quantised means,
//!   `b` an integer no larger than gains of m clients can differ. It exists only if rewards are quantised.
//!
//! # Inputs
//! The genie's quantised means, cohort, reward. Shares must be equal, all clients available and all updates waited for.
//!
//! # Source
//! Ben Ami, Cohen, Zhao, IEEE Access 2025, Theorem 1. The paper bounds `Δ_max` by `2α + μ_max − μ_min`, about twice as
//! much, and assumes quantised rewards without giving their lattice: `Δ_min` is not the quantum, but q/5 for α = 3, m =
//! 5.
//!
//! # Cost
//! O(K²) once.

use super::genie::Genie;
use crate::math::float::{ceil, floor, ln, power, quantise};

/// The constants of the bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Number of clients, `K`.
    pub clients: usize,
    /// Clients selected per round, `m`.
    pub cohort: usize,
    /// The largest gap.
    pub delta_max: f64,
    /// The smallest positive gap; `None` without a quantum, and then there is no bound.
    pub delta_min: Option<f64>,
}

/// Gaps below this are rounding errors of zero, relative to the quantum.
const ZERO: f64 = 1e-9;

impl Bound {
    /// The constants of a world; `None` if the clients' shares of the data differ: the constants are not known then.
    pub fn of(genie: &Genie, shares: &[f64], cohort: usize) -> Option<Self> {
        let clients = genie.means.len();
        let is_equal = |share: &f64| (share * clients as f64 - 1.0).abs() < 1e-9;
        if !shares.iter().all(is_equal) || cohort == 0 || cohort > clients {
            return None;
        }
        let gaps = Gaps { genie, clients, cohort };
        Some(Self { clients, cohort, delta_max: gaps.largest(), delta_min: gaps.smallest() })
    }

    /// The bound after `n` rounds.
    pub fn at(&self, n: f64) -> Option<f64> {
        let delta_min = self.delta_min?;
        let pi = std::f64::consts::PI;
        let slope = 4.0 * (self.cohort + 1) as f64 / (delta_min * delta_min);
        Some(self.delta_max * self.clients as f64 * (slope * ln(n) + 1.0 + pi * pi / 3.0))
    }
}

struct Gaps<'a> {
    genie: &'a Genie,
    clients: usize,
    cohort: usize,
}

impl Gaps<'_> {
    /// `Q(ρ^β)` and `Q((1−ρ)^β)`: the gain of a client that was never selected, and the loss of one that always was.
    fn extremes(&self) -> [f64; 2] {
        let reward = &self.genie.reward;
        let rho = self.cohort as f64 / self.clients as f64;
        [rho, 1.0 - rho].map(|x| {
            let gain = power(x, reward.beta);
            reward.quantum.map_or(gain, |quantum| quantise(gain, quantum))
        })
    }

    /// The largest number of clients in which two sets differ.
    fn differing(&self) -> usize {
        self.cohort.min(self.clients - self.cohort)
    }

    fn largest(&self) -> f64 {
        if self.differing() == 0 {
            return 0.0;
        }
        let mut means = self.genie.means.clone();
        means.sort_by(|one, two| two.total_cmp(one));
        let [never, always] = self.extremes();
        let weight = self.genie.reward.alpha / self.cohort as f64;
        means[self.cohort - 1] - means[self.clients - 1] + weight * self.differing() as f64 * (never + always)
    }

    fn smallest(&self) -> Option<f64> {
        let quantum = self.genie.reward.quantum?;
        let weight = self.genie.reward.alpha / self.cohort as f64;
        let [never, always] = self.extremes();
        let most = self.differing() as f64 * ((never + always) / quantum);
        let mut means: Vec<f64> = self.genie.means.iter().map(|mean| mean / quantum).collect();
        means.sort_by(f64::total_cmp);
        means.dedup_by(|one, two| (*one - *two).abs() < ZERO);
        let mut smallest = f64::INFINITY;
        for one in &means {
            for two in &means {
                let a = one - two;
                // The number of steps of gain for which a + weight·b is just above zero.
                let crossing = if weight > 0.0 { -a / weight } else { 0.0 };
                let near = floor(crossing) - 1.0;
                let steps = if weight > 0.0 { [near, near + 1.0, near + 2.0, near + 3.0] } else { [0.0; 4] };
                let in_range = steps.into_iter().filter(|b| b.abs() <= ceil(most - 1e-6));
                let gaps = in_range.map(|b| a + weight * b).filter(|&gap| gap > ZERO);
                smallest = gaps.fold(smallest, f64::min);
            }
        }
        smallest.is_finite().then_some(quantum * smallest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::reward::Reward;
    use crate::time::Span;

    fn genie(means: &[f64], alpha: f64, beta: f64, quantum: Option<f64>) -> Genie {
        Genie::new(Reward { tau_min: Span(1), alpha, beta, quantum }, means.to_vec())
    }

    fn bound(means: &[f64], cohort: usize, genie: &Genie) -> Bound {
        Bound::of(genie, &vec![1.0 / means.len() as f64; means.len()], cohort).unwrap()
    }

    /// Twenty clients, five selected, α = 3: the lattice q(a + 0.6 b) has steps of q/5.
    #[test]
    fn the_lattice_of_the_paper_s_parameters_is_finer_than_the_quantum() {
        let means: Vec<f64> = (0..20).map(|k| 0.05 * f64::from(k % 10 + 1)).collect();
        let genie = genie(&means, 3.0, 1.2, Some(0.05));
        let found = bound(&means, 5, &genie);
        approx::assert_relative_eq!(found.delta_min.unwrap(), 0.01, max_relative = 1e-9);
        // ρ = 1/4: 0.25^1.2 = 0.1895 rounds to 0.2, 0.75^1.2 = 0.7081 to 0.7; the fifth of the means is 0.4, the last
        // 0.05.
        approx::assert_relative_eq!(found.delta_max, 0.4 - 0.05 + 3.0 * 0.9, max_relative = 1e-9);
    }

    #[test]
    fn without_gains_only_means_differ() {
        let means = [0.2, 0.5, 0.9];
        let genie = genie(&means, 0.0, 1.0, Some(0.1));
        let found = bound(&means, 1, &genie);
        approx::assert_relative_eq!(found.delta_min.unwrap(), 0.3, max_relative = 1e-9);
        approx::assert_relative_eq!(found.delta_max, 0.7, max_relative = 1e-9);
    }

    /// Brute force: every pair of sets, every history of a few rounds. No gap is larger, none that is positive is
    /// smaller, and both constants are nearly reached.
    #[test]
    fn no_gap_of_a_short_history_lies_outside() {
        use crate::oracle::brute::subsets;
        for (alpha, beta, quantum) in [(1.0, 1.0, 0.25), (1.5, 1.2, 0.1), (0.7, 2.0, 0.05)] {
            let (clients, cohort) = (5, 2);
            let means = [0.1, 0.25, 0.5, 0.75, 1.0];
            let genie = genie(&means, alpha, beta, Some(quantum));
            let found = bound(&means, cohort, &genie);
            let delta_min = found.delta_min.unwrap();
            let sets = subsets(clients, cohort);
            let (mut largest, mut smallest) = (0.0_f64, f64::INFINITY);
            for t in [1_u32, 2, 3, 5, 8, 13, 40, 400] {
                // Each client was selected some share of the rounds before t.
                for shares in [
                    [0, 0, 0, 4, 4],
                    [4, 4, 0, 0, 0],
                    [1, 2, 2, 2, 1],
                    [4, 0, 0, 0, 4],
                    [4, 0, 2, 2, 0],
                    [3, 1, 1, 2, 1],
                ] {
                    let counts = shares.map(|share| share * (t - 1) / 4);
                    let gain = |k: usize| {
                        let x = 0.4 - f64::from(counts[k]) / f64::from(t);
                        quantise(power(x.abs(), beta).copysign(x), quantum) * alpha / cohort as f64
                    };
                    let value = |set: &[u32]| {
                        let speed = set.iter().map(|&k| genie.means[k as usize]).fold(f64::INFINITY, f64::min);
                        speed + set.iter().map(|&k| gain(k as usize)).sum::<f64>()
                    };
                    let values: Vec<f64> = sets.iter().map(|set| value(set)).collect();
                    let best = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    for gap in values.iter().map(|value| best - value) {
                        largest = largest.max(gap);
                        if gap > 1e-9 {
                            smallest = smallest.min(gap);
                        }
                    }
                }
            }
            assert!(largest <= found.delta_max + 1e-9, "α = {alpha}: a gap of {largest}, Δ_max {}", found.delta_max);
            assert!(largest > 0.97 * found.delta_max, "α = {alpha}: at most {largest}, Δ_max {}", found.delta_max);
            assert!(smallest >= delta_min - 1e-9, "α = {alpha}: a gap of {smallest}, Δ_min {delta_min}");
        }
    }

    #[test]
    fn no_quantum_no_bound_and_unequal_shares_no_constants() {
        let genie = genie(&[0.5, 0.2], 1.0, 1.0, None);
        assert_eq!(Bound::of(&genie, &[0.5, 0.5], 1).unwrap().at(100.0), None);
        assert_eq!(Bound::of(&genie, &[0.6, 0.4], 1), None);
    }
}
