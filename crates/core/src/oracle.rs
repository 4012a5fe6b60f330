//! Solvers of the selection problem that the policies and the genie share: a bottleneck plus a sum.
//!
//! # Definition
//! Among all sets `S` of exactly `cohort` candidates, maximise
//!
//! ```text
//! value(S) = (the take-th largest speed in S) + Σ gain_k over k in S
//! ```
//!
//! With `take == cohort` the first term is `min speed`, the ordinary case; with `take < cohort` it is over-selection:
//! the round waits for the first `take` of `cohort` clients. Values within [`TIE`] of the maximum count as equal, and
//! among
//! *all* sets whose value is at least the maximum less [`TIE`] the lexicographically smallest ascending list of
//! positions wins. Heuristic solvers apply the same rule to the states they visit.
//!
//! # Inputs
//! Candidates are positions `0..K` of two arrays; ascending position is ascending client id. Speeds may be finite or ±∞
//! (an unseen client has an infinite upper confidence bound), gains are finite and already weighted (`α/m · g`). NaN is
//! a broken invariant and panics, in release builds too. `∞ + x = ∞`: while at least `take` candidates are infinitely
//! fast, all sets with that bottleneck tie; when fewer are, no set is infinite and they matter through their gain.
//!
//! # Source
//! BSFL (6), (13) and (17): Ben Ami, Cohen, Zhao, "Bandit Scheduling for Federated Learning", IEEE Access 2025; the
//! same problem is (16) of MAB-FRS and the selection of RBCS-F.
//!
//! # Deviations
//! (17) puts the sum inside the minimum; as in (13), the minimum is over the speeds alone. The papers call the problem
//! intractable and search by annealing; [`bottleneck`] solves it exactly, and the searches are kept to measure their
//! gap.
//!
//! # Cost
//! [`bottleneck`]: `O(K log K)` at worst, near `O(K)` in practice. [`annealing`]: `O(m)` per step. [`greedy`]:
//! `O(K·m)`.
//!
//! # Determinism
//! The exact and the greedy solver draw nothing; annealing draws from the stream it is given. Ties break by position.
//!
//! # Example
//! ```
//! use fedgenie_core::oracle::{Instance, bottleneck::Exact};
//!
//! // Clients 0 and 1 are fast; client 2 is slow but would gain so much that waiting for it pays.
//! let instance = Instance { speed: &[1.0, 0.75, 0.5], gain: &[0.25, 0.0, 0.5], cohort: 2, take: 2 };
//! let mut set = Vec::new();
//! assert_eq!(Exact::new().maximise(&instance, &mut set), 1.25);
//! assert_eq!(set, [0, 2]);
//! ```

pub mod annealing;
pub mod assignment;
pub mod bottleneck;
pub mod bound;
pub mod brute;
mod choice;
pub mod free_size;
pub mod genie;
pub mod greedy;
pub mod hindsight;
pub mod ratio;
pub mod regret;
pub mod reward;
pub mod top;
pub mod utility;

pub use bottleneck::Exact;
pub use choice::{CATALOGUE as SOLVERS, SolverConfig, SolverSettings};
pub use genie::{Genie, GenieSolver};
pub use top::top_m;

use crate::math::sum::CompensatedSum;
use crate::rng::StreamRng;

/// Values at most this far below the maximum count as equal to it.
pub const TIE: f64 = 1e-12;

/// One selection problem: choose `cohort` of the candidates.
#[derive(Clone, Copy, Debug)]
pub struct Instance<'a> {
    /// Speed of each candidate, or its index: finite or ±∞, never NaN.
    pub speed: &'a [f64],
    /// Weighted gain of each candidate, finite.
    pub gain: &'a [f64],
    /// How many candidates are chosen, in `1..=K`.
    pub cohort: usize,
    /// How many of the chosen the round waits for, in `1..=cohort`.
    pub take: usize,
}

/// How many speeds are +∞, and how many are above −∞.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Census {
    pub infinite: usize,
    pub reachable: usize,
}

impl Instance<'_> {
    /// The value of a set of `cohort` distinct positions in ascending order.
    ///
    /// The sum is compensated and runs in ascending position. Allocates only when `take < cohort`.
    ///
    /// # Panics
    /// If the set does not have `cohort` members or names a position beyond the arrays.
    pub fn value(&self, set: &[u32]) -> f64 {
        assert_eq!(set.len(), self.cohort, "a set has exactly `cohort` members");
        let sum: CompensatedSum = set.iter().map(|&k| self.gain[k as usize]).collect();
        self.bottleneck(set, &mut Vec::new()) + sum.value()
    }

    /// The `min(take, members)`-th largest speed of a non-empty set; `scratch` is overwritten when `take < members`.
    pub(crate) fn bottleneck(&self, set: &[u32], scratch: &mut Vec<f64>) -> f64 {
        let speeds = set.iter().map(|&k| self.speed[k as usize]);
        if self.take >= set.len() {
            return speeds.fold(f64::INFINITY, |slowest, speed| if speed < slowest { speed } else { slowest });
        }
        scratch.clear();
        scratch.extend(speeds);
        *scratch.select_nth_unstable_by(self.take - 1, |a, b| b.total_cmp(a)).1
    }

    /// Checks the instance and counts the infinite speeds, in one pass without branches.
    ///
    /// # Panics
    /// If the arrays differ in length, a size is out of its range, a speed is NaN or a gain is not finite.
    pub(crate) fn census(&self) -> Census {
        let candidates = self.speed.len();
        assert_eq!(candidates, self.gain.len(), "speed and gain have one entry per candidate");
        assert!(u32::try_from(candidates).is_ok(), "positions fit in 32 bits");
        assert!(self.cohort <= candidates, "a cohort of {} of {candidates} candidates", self.cohort);
        assert!(1 <= self.take && self.take <= self.cohort, "take {} of a cohort of {}", self.take, self.cohort);
        let (mut valid, mut infinite, mut lowest, mut finite) = (0u64, 0u64, 0u64, 0u64);
        for (&speed, &gain) in self.speed.iter().zip(self.gain) {
            valid += u64::from(speed >= f64::NEG_INFINITY);
            infinite += u64::from(speed == f64::INFINITY);
            lowest += u64::from(speed == f64::NEG_INFINITY);
            finite += u64::from(gain.abs() < f64::INFINITY);
        }
        assert!(valid as usize == candidates, "a speed is not a number (NaN)");
        assert!(finite as usize == candidates, "a gain is not finite");
        Census { infinite: infinite as usize, reachable: candidates - lowest as usize }
    }
}

/// A way to look for the best set.
pub trait Solver: Send {
    /// Writes the chosen positions to `set`, ascending, and returns their [`Instance::value`].
    ///
    /// # Panics
    /// If the instance breaks an invariant: arrays of different lengths, `take` not in `1..=cohort`, `cohort` above the
    /// number of candidates, a NaN, or a gain that is not finite.
    fn solve(&mut self, instance: &Instance<'_>, rng: &mut StreamRng, set: &mut Vec<u32>) -> f64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bottleneck_is_the_slowest_that_is_waited_for() {
        let mut instance = Instance { speed: &[0.5, 0.25, 1.0], gain: &[0.0, 1.0, 2.0], cohort: 3, take: 3 };
        assert_eq!(instance.value(&[0, 1, 2]), 3.25);
        instance.take = 2;
        assert_eq!(instance.value(&[0, 1, 2]), 3.5);
        instance.take = 1;
        assert_eq!(instance.value(&[0, 1, 2]), 4.0);
    }

    #[test]
    fn the_census_counts_both_infinities() {
        let speed = [f64::INFINITY, f64::NEG_INFINITY, 0.0, f64::INFINITY];
        let census = Instance { speed: &speed, gain: &[0.0; 4], cohort: 1, take: 1 }.census();
        assert_eq!(census, Census { infinite: 2, reachable: 3 });
    }

    #[test]
    #[should_panic(expected = "NaN")]
    fn a_speed_that_is_not_a_number_is_a_broken_invariant() {
        Instance { speed: &[f64::NAN], gain: &[0.0], cohort: 1, take: 1 }.census();
    }

    #[test]
    #[should_panic(expected = "not finite")]
    fn an_infinite_gain_is_a_broken_invariant() {
        Instance { speed: &[0.0], gain: &[f64::INFINITY], cohort: 1, take: 1 }.census();
    }

    #[test]
    #[should_panic(expected = "a cohort of 2 of 1 candidates")]
    fn a_cohort_larger_than_the_candidates_is_a_broken_invariant() {
        Instance { speed: &[0.0], gain: &[0.0], cohort: 2, take: 1 }.census();
    }
}
