//! How a scenario asks for annealing: `{ alsa = { steps = 2000 } }`, `{ sa = { steps = 2000 } }`.

use super::{Annealing, Config, Neighbourhood, Search};
use crate::oracle::reward::Reward;
use crate::oracle::{Solver, SolverSettings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `alsa`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Accelerated {
    /// Number of proposals.
    #[serde(default = "default_steps")]
    pub steps: u32,
    /// Which swaps are proposed.
    #[serde(default)]
    pub neighbourhood: Neighbourhood,
    /// Temperature scale; 2α + 1 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta_max: Option<f64>,
}

/// Parameters of `sa`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Plain {
    /// Number of proposals.
    #[serde(default = "default_steps")]
    pub steps: u32,
    /// Temperature scale; 2α + 1 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta_max: Option<f64>,
}

const fn default_steps() -> u32 {
    1000
}

/// The temperature scale that belongs to a weight of generalisation.
fn default_delta_max(alpha: f64) -> f64 {
    2.0 * alpha + 1.0
}

fn build(search: Search, steps: u32, delta_max: Option<f64>, reward: &Reward) -> Result<Box<dyn Solver>, String> {
    let delta_max = delta_max.unwrap_or(default_delta_max(reward.alpha));
    let solver = Annealing::build(Config { search, steps, delta_max, trace: false });
    solver.map(|solver| Box::new(solver) as Box<dyn Solver>).map_err(|error| error.to_string())
}

impl SolverSettings for Accelerated {
    fn resolve(&mut self, alpha: f64) {
        self.delta_max.get_or_insert(default_delta_max(alpha));
    }

    fn build(&self, reward: &Reward) -> Result<Box<dyn Solver>, String> {
        build(self.neighbourhood.into(), self.steps, self.delta_max, reward)
    }
}

impl SolverSettings for Plain {
    fn resolve(&mut self, alpha: f64) {
        self.delta_max.get_or_insert(default_delta_max(alpha));
    }

    fn build(&self, reward: &Reward) -> Result<Box<dyn Solver>, String> {
        build(Search::Plain, self.steps, self.delta_max, reward)
    }
}
