//! Which solver a scenario asks for: `solver = "exact"`, `solver = { alsa = { steps = 2000 } }`, …

use super::Solver;
use super::annealing::{Annealing, Config, Neighbourhood, Search};
use super::bottleneck::Exact;
use super::greedy::Greedy;
use super::reward::Reward;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A solver and its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SolverConfig {
    /// The optimum, in O(K log m) after sorting.
    Exact {},
    /// Accelerated lightweight simulated annealing.
    Alsa {
        /// Number of proposals.
        #[serde(default = "default_steps")]
        steps: u32,
        /// Which swaps are proposed.
        #[serde(default)]
        neighbourhood: Neighbourhood,
        /// Temperature scale; 2α + 1 if left out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delta_max: Option<f64>,
    },
    /// Plain simulated annealing.
    Sa {
        /// Number of proposals.
        #[serde(default = "default_steps")]
        steps: u32,
        /// Temperature scale; 2α + 1 if left out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delta_max: Option<f64>,
    },
    /// Adds, one at a time, the client that maximises the objective of the partial set.
    Greedy {},
}

const fn default_steps() -> u32 {
    1000
}

impl Default for SolverConfig {
    fn default() -> Self {
        Self::Exact {}
    }
}

impl SolverConfig {
    /// Writes out defaults that depend on the reward.
    pub fn resolve(&mut self, alpha: f64) {
        match self {
            Self::Alsa { delta_max, .. } | Self::Sa { delta_max, .. } => {
                delta_max.get_or_insert(2.0 * alpha + 1.0);
            }
            Self::Exact {} | Self::Greedy {} => {}
        }
    }

    /// Makes the solver.
    ///
    /// # Errors
    /// A sentence, if a parameter is out of its range.
    pub fn build(&self, reward: &Reward) -> Result<Box<dyn Solver>, String> {
        let annealing = |search, steps, delta_max: Option<f64>| {
            let delta_max = delta_max.unwrap_or(2.0 * reward.alpha + 1.0);
            let config = Config { search, steps, delta_max, trace: false };
            Annealing::build(config)
                .map(|solver| Box::new(solver) as Box<dyn Solver>)
                .map_err(|error| error.to_string())
        };
        match *self {
            Self::Exact {} => Ok(Box::new(Exact::new())),
            Self::Greedy {} => Ok(Box::new(Greedy::new())),
            Self::Alsa { steps, neighbourhood, delta_max } => annealing(Search::from(neighbourhood), steps, delta_max),
            Self::Sa { steps, delta_max } => annealing(Search::Plain, steps, delta_max),
        }
    }
}
