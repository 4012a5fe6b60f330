//! Simulated annealing over cohorts, plain (SA) and accelerated (ALSA).
//!
//! # Definition
//! States are the sets of `m = cohort` candidates, the energy `E` is [`Instance::value`]. From a uniformly random
//! state, step `i = 1, 2, …` draws a neighbour `u` of the state `s` uniformly and moves there if `E(u) ≥ E(s)`, else
//! with probability `exp((E(u) − E(s)) / T_i)`, `T_i = Δ_max / ln(i + 1)`. The neighbours are those of [`Search`]. The
//! result is the best state visited; the final one is reported beside it.
//!
//! # Inputs
//! As [`crate::oracle`]; `steps` ≥ 0; `Δ_max` > 0 in units of the value, by default `2α + 1` (the caller knows α).
//!
//! # Source
//! Ben Ami, Cohen, Zhao, "Bandit Scheduling for Federated Learning", IEEE Access 2025: (16), (17), neighbours (18) and
//! (19), temperature of Theorem 2.
//!
//! # Deviations
//! - (17) is read as (13): the minimum is over the speeds alone.
//! - The paper does not say how ALSA draws a neighbour: [`Neighbourhood`] is the choice. Under uniform draws from (19)
//!   as it stands most proposals are reverse swaps, and the acceleration is lost.
//! - `T_i` hardly cools in any practical number of steps, hence the best state visited instead of the last.
//! - With several slowest (or least gaining) members "the arg-min" is the one with the smallest position.
//! - Under over-selection the energy waits for the `take`-th fastest, while ALSA's swaps still go by the slowest
//!   member.
//!
//! # Cost
//! `O(m)` time per step; `O(K)` once for SA, `O(K log K)` for ALSA. Memory `O(K)`, and 8 bytes per step with a trace.
//!
//! # Determinism
//! One stream, consumed in order: `m` draws for the start; per step one for the swap (more when a ticket is void, see
//! `neighbourhood.rs`) and, only if the neighbour is worse, one for its acceptance. `E(u) ≥ E(s)` is tested before the
//! exponential, because both may be infinite. Among visited states within [`TIE`] of the best visited, the
//! lexicographically smallest wins.
//!
//! # Example
//! ```
//! use fedgenie_core::oracle::annealing::{Annealing, Config, Search};
//! use fedgenie_core::oracle::{Instance, Solver};
//! use fedgenie_core::rng::{Purpose, Streams};
//!
//! let instance = Instance { speed: &[1.0, 0.75, 0.5], gain: &[0.25, 0.0, 0.5], cohort: 2, take: 2 };
//! let config = Config { search: Search::Forward, steps: 100, delta_max: 7.0, trace: false };
//! let (mut set, mut rng) = (Vec::new(), Streams::new(1).stream(Purpose::Solver, 0, 1));
//! assert_eq!(Annealing::build(config)?.solve(&instance, &mut rng, &mut set), 1.25);
//! assert_eq!(set, [0, 2]);
//! # Ok::<(), fedgenie_core::oracle::annealing::ConfigError>(())
//! ```
//! ```toml
//! [policy.bsfl]
//! solver = { alsa = { steps = 1000 } }
//! # solver = { sa = { steps = 1000 } }
//! ```

mod config;
mod neighbourhood;

pub use config::{Accelerated, Plain};

use super::{Instance, Solver, TIE};
use crate::math::float;
use crate::math::sum::CompensatedSum;
use crate::rng::StreamRng;
use neighbourhood::State;
use serde::{Deserialize, Serialize};

/// How ALSA draws from its neighbourhood (19).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Neighbourhood {
    /// Uniformly from the swaps that remove the slowest or the least gaining member of the current set.
    #[default]
    Forward,
    /// Uniformly from (19) as it stands, the reverse swaps included.
    Symmetric,
}

/// Neighbourhood relations of sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// SA: all swaps of one member for one non-member (18).
    Plain,
    /// ALSA with [`Neighbourhood::Forward`].
    Forward,
    /// ALSA with [`Neighbourhood::Symmetric`].
    Symmetric,
}

impl From<Neighbourhood> for Search {
    fn from(neighbourhood: Neighbourhood) -> Self {
        match neighbourhood {
            Neighbourhood::Forward => Self::Forward,
            Neighbourhood::Symmetric => Self::Symmetric,
        }
    }
}

/// Unchecked parameters of an annealing solver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// SA or ALSA.
    pub search: Search,
    /// Number of proposals.
    pub steps: u32,
    /// `Δ_max` of the temperature, in units of the value; finite and above 0.
    pub delta_max: f64,
    /// Whether to record the energy of the state after every step.
    pub trace: bool,
}

/// Why a [`Config`] is refused; nothing was built.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// The temperature would not be positive and finite.
    #[error("delta_max is {0}; it must be finite and above 0")]
    DeltaMax(f64),
}

/// An annealing solver, with its reusable buffers and the record of its last run.
#[derive(Clone, Debug)]
pub struct Annealing {
    config: Config,
    state: State,
    scratch: Vec<f64>,
    /// Visited states near the best: no other is both at least as good and lexicographically smaller.
    best: Vec<(f64, Vec<u32>)>,
    sorted: Vec<u32>,
    final_set: Vec<u32>,
    final_value: f64,
    trace: Vec<f64>,
}

impl Annealing {
    /// Checks the parameters.
    ///
    /// # Errors
    /// If `delta_max` is not finite and positive.
    pub fn build(config: Config) -> Result<Self, ConfigError> {
        if !(config.delta_max > 0.0 && config.delta_max.is_finite()) {
            return Err(ConfigError::DeltaMax(config.delta_max));
        }
        Ok(Self {
            config,
            state: State::default(),
            scratch: Vec::new(),
            best: Vec::new(),
            sorted: Vec::new(),
            final_set: Vec::new(),
            final_value: f64::NEG_INFINITY,
            trace: Vec::new(),
        })
    }

    /// The state in which the last run ended, ascending.
    pub fn final_set(&self) -> &[u32] {
        &self.final_set
    }

    /// The value of [`Self::final_set`]; −∞ before the first run.
    pub const fn final_value(&self) -> f64 {
        self.final_value
    }

    /// The energies of the last run, the initial state's first, then one per step; empty without `trace`.
    pub fn trace(&self) -> &[f64] {
        &self.trace
    }

    fn record(&mut self, energy: f64) {
        if self.config.trace {
            self.trace.push(energy);
        }
    }

    /// Remembers the current state if it may turn out to be the best visited.
    fn visit(&mut self, energy: f64, cohort: usize) {
        let best = self.best.iter().map(|state| state.0).fold(f64::NEG_INFINITY, f64::max);
        if energy < best - TIE {
            return;
        }
        self.sorted.clear();
        self.sorted.extend_from_slice(&self.state.list[..cohort]);
        self.sorted.sort_unstable();
        if self.best.iter().any(|(value, set)| *value >= energy && *set <= self.sorted) {
            return;
        }
        let floor = if energy > best { energy - TIE } else { best - TIE };
        let sorted = &self.sorted;
        self.best.retain(|(value, set)| *value >= floor && !(*value <= energy && *set >= *sorted));
        self.best.push((energy, sorted.clone()));
    }

    /// One proposal: the energy after it, and whether the state moved.
    fn step(
        &mut self,
        instance: &Instance<'_>,
        step: u32,
        energy: f64,
        gain: &mut CompensatedSum,
        rng: &mut StreamRng,
    ) -> (f64, bool) {
        let cohort = instance.cohort;
        let swap = self.state.draw(cohort, self.config.search, rng);
        let (leaving, entering) = (self.state.list[swap.member], self.state.list[swap.other]);
        self.state.exchange(swap);
        let mut next_gain = *gain;
        next_gain.add(instance.gain[entering as usize]);
        next_gain.add(-instance.gain[leaving as usize]);
        let next = instance.bottleneck(&self.state.list[..cohort], &mut self.scratch) + next_gain.value();
        let accepted = next >= energy || {
            let temperature = self.config.delta_max / float::ln(f64::from(step) + 1.0);
            rng.uniform() < float::exp((next - energy) / temperature)
        };
        if accepted {
            *gain = next_gain;
            (next, true)
        } else {
            self.state.exchange(swap);
            (energy, false)
        }
    }
}

impl Solver for Annealing {
    fn solve(&mut self, instance: &Instance<'_>, rng: &mut StreamRng, set: &mut Vec<u32>) -> f64 {
        instance.census();
        let cohort = instance.cohort;
        self.best.clear();
        self.trace.clear();
        self.state.start(instance, self.config.search, rng);
        let members = &self.state.list[..cohort];
        let mut gain: CompensatedSum = members.iter().map(|&k| instance.gain[k as usize]).collect();
        let mut energy = instance.bottleneck(members, &mut self.scratch) + gain.value();
        self.visit(energy, cohort);
        self.record(energy);
        // With all candidates in the cohort there is one state and no neighbour.
        let steps = if cohort < instance.speed.len() { self.config.steps } else { 0 };
        for step in 1..=steps {
            let (next, moved) = self.step(instance, step, energy, &mut gain, rng);
            energy = next;
            if moved {
                self.visit(energy, cohort);
            }
            self.record(energy);
        }
        self.final_set.clear();
        self.final_set.extend_from_slice(&self.state.list[..cohort]);
        self.final_set.sort_unstable();
        self.final_value = instance.value(&self.final_set);
        set.clear();
        let smallest = self.best.iter().map(|(_, set)| set).min().expect("the initial state was visited");
        set.extend_from_slice(smallest);
        instance.value(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::bottleneck::Exact;
    use crate::oracle::brute;
    use crate::rng::{Purpose, Streams};

    const SEARCHES: [Search; 3] = [Search::Plain, Search::Forward, Search::Symmetric];

    fn annealing(search: Search, steps: u32) -> Annealing {
        Annealing::build(Config { search, steps, delta_max: 7.0, trace: true }).expect("the parameters are good")
    }

    #[test]
    fn a_temperature_that_is_not_positive_is_refused() {
        for delta_max in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Annealing::build(Config { search: Search::Plain, steps: 1, delta_max, trace: false }).is_err());
        }
    }

    #[test]
    fn never_beats_the_exact_solver_and_traces_every_step() {
        let mut rng = Streams::new(6).stream(Purpose::Solver, 0, 0);
        let (mut exact, mut set, mut found) = (Exact::new(), Vec::new(), Vec::new());
        for case in 0..600 {
            let (speed, gain) = brute::arrays(1 + rng.below(40) as usize, &mut rng);
            let cohort = 1 + rng.below(speed.len() as u64) as usize;
            let take = if case % 3 == 0 { 1 + rng.below(cohort as u64) as usize } else { cohort };
            let instance = Instance { speed: &speed, gain: &gain, cohort, take };
            let best = exact.maximise(&instance, &mut set);
            for search in SEARCHES {
                let mut annealing = annealing(search, 200);
                let value = annealing.solve(&instance, &mut rng, &mut found);
                assert_eq!(value, instance.value(&found));
                assert!(found.is_sorted_by(|a, b| a < b));
                assert!(value <= best + TIE, "{search:?} {instance:?}");
                let trace = annealing.trace();
                assert_eq!(trace.len(), if cohort < speed.len() { 201 } else { 1 });
                let (last, top) = (trace[trace.len() - 1], trace.iter().copied().fold(f64::NEG_INFINITY, f64::max));
                assert!(last == annealing.final_value() || (last - annealing.final_value()).abs() < 1e-14);
                assert!(value == top || value >= top - TIE - 1e-14);
            }
        }
    }

    #[test]
    fn long_runs_on_small_instances_visit_the_winner_of_the_tie_rule() {
        let mut rng = Streams::new(8).stream(Purpose::Solver, 0, 0);
        let mut found = Vec::new();
        for _ in 0..100 {
            let (speed, gain) = brute::arrays(2 + rng.below(4) as usize, &mut rng);
            let cohort = 1 + rng.below(speed.len() as u64) as usize;
            let instance = Instance { speed: &speed, gain: &gain, cohort, take: cohort };
            let mut annealing = annealing(Search::Plain, 3_000);
            // Finite, so that the walk is not trapped among infinite states and visits every set.
            if speed.iter().all(|speed| speed.is_finite()) {
                annealing.solve(&instance, &mut rng, &mut found);
                assert_eq!(found, brute::solve(&instance).1, "{instance:?}");
            }
        }
    }

    #[test]
    fn equal_streams_give_equal_runs() {
        let instance = Instance { speed: &[0.1, 0.9, 0.5, 0.7], gain: &[0.3, 0.1, 0.2, 0.0], cohort: 2, take: 2 };
        let run = || {
            let (mut annealing, mut set) = (annealing(Search::Symmetric, 50), Vec::new());
            annealing.solve(&instance, &mut Streams::new(1).stream(Purpose::Solver, 0, 7), &mut set);
            (annealing.trace().to_vec(), set)
        };
        assert_eq!(run(), run());
    }

    #[test]
    fn forward_draws_accelerate_and_symmetric_draws_do_not() {
        let mut rng = Streams::new(12).stream(Purpose::Solver, 0, 0);
        let mut mean = [0.0; 3];
        let mut set = Vec::new();
        for _ in 0..20 {
            let speed: Vec<f64> = (0..200).map(|_| rng.uniform()).collect();
            let gain: Vec<f64> = (0..200).map(|_| (rng.uniform() - 0.5) * 0.3).collect();
            let instance = Instance { speed: &speed, gain: &gain, cohort: 10, take: 10 };
            for (place, search) in SEARCHES.into_iter().enumerate() {
                mean[place] += annealing(search, 500).solve(&instance, &mut rng, &mut set) / 20.0;
            }
        }
        assert!(mean[1] > mean[0] + 0.3 && mean[1] > mean[2] + 0.3, "SA, forward, symmetric: {mean:?}");
    }
}
