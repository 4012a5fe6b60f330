//! Greedy heuristic: adds, one at a time, the candidate that maximises the objective of the partial set.
//!
//! # Definition
//! `S₀ = ∅`, `S_{j+1} = S_j ∪ {argmax_k b(S_j ∪ {k}) + Σ gain}`, where `b(S)` is the `min(take, |S|)`-th largest speed.
//!
//! # Inputs
//! As [`crate::oracle`].
//!
//! # Source
//! The heuristic that BSFL and MAB-FRS compare with; neither paper writes it out.
//!
//! # Deviations
//! None known, for lack of a definition.
//!
//! # Cost
//! `O(K·m)` time, `O(K)` memory.
//!
//! # Determinism
//! Draws nothing. At each addition, candidates within [`TIE`] of the best are equal and the smallest position is added.
//!
//! # Example
//! ```
//! use fedgenie_core::oracle::{Instance, Solver, greedy::Greedy};
//! use fedgenie_core::rng::{Purpose, Streams};
//!
//! // Greedy starts with client 0, the best alone, and never reconsiders: {1, 2} is worth 2.
//! let instance = Instance { speed: &[1.0, 0.0, 0.0], gain: &[0.25, 1.0, 1.0], cohort: 2, take: 2 };
//! let (mut set, mut rng) = (Vec::new(), Streams::new(1).stream(Purpose::Solver, 0, 1));
//! assert_eq!(Greedy::new().solve(&instance, &mut rng, &mut set), 1.25);
//! assert_eq!(set, [0, 1]);
//! ```
//! ```toml
//! [policy.bsfl]
//! solver = "greedy"
//! ```

use super::reward::Reward;
use super::{Instance, Solver, SolverSettings, TIE};
use crate::math::sum::CompensatedSum;
use crate::rng::StreamRng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `greedy` has no parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Config {}

impl SolverSettings for Config {
    fn build(&self, _: &Reward) -> Result<Box<dyn Solver>, String> {
        Ok(Box::new(Greedy::new()))
    }
}

/// The greedy solver, with its reusable buffers.
#[derive(Clone, Debug, Default)]
pub struct Greedy {
    chosen: Vec<bool>,
    /// The speeds of the partial set, descending, at most `take` of them.
    fastest: Vec<f64>,
}

impl Greedy {
    /// A solver without any state yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The bottleneck if a candidate of this speed joined the partial set.
    fn bottleneck_with(&self, speed: f64, take: usize) -> f64 {
        let count = self.fastest.len();
        if count < take {
            return self.fastest.last().map_or(speed, |&slowest| if speed < slowest { speed } else { slowest });
        }
        if speed <= self.fastest[take - 1] || take == 1 {
            return if take == 1 && speed > self.fastest[0] { speed } else { self.fastest[take - 1] };
        }
        let next = self.fastest[take - 2];
        if speed < next { speed } else { next }
    }

    fn add(&mut self, speed: f64, take: usize) {
        let place = self.fastest.partition_point(|&faster| faster >= speed);
        self.fastest.insert(place, speed);
        self.fastest.truncate(take);
    }
}

impl Solver for Greedy {
    fn solve(&mut self, instance: &Instance<'_>, _: &mut StreamRng, set: &mut Vec<u32>) -> f64 {
        instance.census();
        self.chosen.clear();
        self.chosen.resize(instance.speed.len(), false);
        self.fastest.clear();
        set.clear();
        let mut sum = CompensatedSum::default();
        for _ in 0..instance.cohort {
            let so_far = sum.value();
            let value = |k: usize| self.bottleneck_with(instance.speed[k], instance.take) + (so_far + instance.gain[k]);
            let free = || (0..self.chosen.len()).filter(|&k| !self.chosen[k]);
            let best = free().map(value).fold(f64::NEG_INFINITY, f64::max);
            let added = free().find(|&k| value(k) >= best - TIE).expect("the best candidate ties with itself");
            self.chosen[added] = true;
            self.add(instance.speed[added], instance.take);
            sum.add(instance.gain[added]);
            set.push(added as u32);
        }
        set.sort_unstable();
        instance.value(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::brute;
    use crate::rng::{Purpose, Streams};

    /// The definition, word for word.
    fn by_definition(instance: &Instance<'_>) -> Vec<u32> {
        let mut set: Vec<u32> = Vec::new();
        for size in 1..=instance.cohort {
            let value = |k: u32| {
                let mut larger = set.clone();
                larger.push(k);
                larger.sort_unstable();
                Instance { cohort: size, take: instance.take.min(size), ..*instance }.value(&larger)
            };
            let free: Vec<u32> = (0..instance.speed.len() as u32).filter(|k| !set.contains(k)).collect();
            let best = free.iter().map(|&k| value(k)).fold(f64::NEG_INFINITY, f64::max);
            let added = *free.iter().find(|&&k| value(k) >= best - TIE).expect("someone is best");
            set.push(added);
            set.sort_unstable();
        }
        set
    }

    #[test]
    fn agrees_with_the_definition() {
        let mut rng = Streams::new(3).stream(Purpose::Solver, 0, 0);
        let (mut greedy, mut set) = (Greedy::new(), Vec::new());
        for _ in 0..3_000 {
            let (speed, gain) = brute::arrays(1 + rng.below(9) as usize, &mut rng);
            let cohort = 1 + rng.below(speed.len() as u64) as usize;
            let take = 1 + rng.below(cohort as u64) as usize;
            let instance = Instance { speed: &speed, gain: &gain, cohort, take };
            let value = greedy.solve(&instance, &mut rng, &mut set);
            assert_eq!(set, by_definition(&instance), "{instance:?}");
            assert_eq!(value, instance.value(&set));
            assert!(value <= brute::solve(&instance).0 + TIE);
        }
    }
}
