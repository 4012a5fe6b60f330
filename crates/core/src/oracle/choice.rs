//! The solver of a scenario: `solver = "exact"`, `solver = { alsa = { steps = 2000 } }`, …

use super::reward::Reward;
use super::{Solver, annealing, bottleneck, greedy};
use crate::components;

/// A solver's part of a scenario.
pub trait SolverSettings {
    /// Writes out defaults that depend on the reward's weight of generalisation.
    fn resolve(&mut self, _alpha: f64) {}

    /// Makes the solver.
    ///
    /// # Errors
    /// A sentence, if a parameter is out of its range.
    fn build(&self, reward: &Reward) -> Result<Box<dyn Solver>, String>;
}

components! {
    /// A solver and its parameters.
    #[derive(Copy)]
    pub enum SolverConfig: SolverSettings = "solver" {
        "exact" => Exact(bottleneck::Config) in "bottleneck.rs";
        /// ALSA: accelerated lightweight simulated annealing.
        "alsa" => Alsa(annealing::Accelerated) in "annealing.rs";
        /// Simulated annealing, plain.
        "sa" => Sa(annealing::Plain) in "annealing.rs";
        "greedy" => Greedy(greedy::Config) in "greedy.rs";
    }
}

impl Default for SolverConfig {
    fn default() -> Self {
        Self::Exact(bottleneck::Config::default())
    }
}

impl SolverConfig {
    /// Writes out defaults that depend on the reward's weight of generalisation.
    pub fn resolve(&mut self, alpha: f64) {
        self.settings_mut().resolve(alpha);
    }

    /// Makes the solver.
    ///
    /// # Errors
    /// A sentence, if a parameter is out of its range.
    pub fn build(&self, reward: &Reward) -> Result<Box<dyn Solver>, String> {
        self.settings().build(reward)
    }
}
