//! Every edge server moves to a random cluster from time to time.
//!
//! # Definition
//! After each round of the cloud that `every` divides, each server's cluster is drawn anew, uniformly: the control of
//! rules that look at losses.
//!
//! # Inputs
//! `every`: rounds of the cloud between assignments.
//!
//! # Example
//! ```toml
//! [clusters]
//! count = 2
//! assign = { random = { every = 20 } }
//! ```

use super::{AssignmentRequest, ClusterContext, ClusterPolicy, ClusterSettings, Weighed, check_every};
use fedgenie_core::config::Complaint;
use fedgenie_core::failure::Failure;
use fedgenie_core::rng::StreamRng;
use fedgenie_core::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `random`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Rounds of the cloud between assignments.
    #[serde(default = "twenty")]
    pub every: u32,
}

const fn twenty() -> u32 {
    20
}

impl Default for Config {
    fn default() -> Self {
        Self { every: twenty() }
    }
}

impl ClusterSettings for Config {
    fn check(&self, _: &ClusterContext<'_>) -> Result<(), Complaint> {
        check_every(self.every)
    }

    fn every(&self) -> Option<u32> {
        Some(self.every)
    }

    fn build(&self, _: &ClusterContext<'_>) -> Box<dyn ClusterPolicy> {
        Box::new(Random { every: self.every, weighed: None })
    }
}

#[derive(Stateful)]
struct Random {
    #[state(skip = "from the scenario")]
    every: u32,
    /// The numbers of the last assignment.
    #[state(skip = "read before the next question")]
    weighed: Option<Weighed>,
}

impl ClusterPolicy for Random {
    fn assign(
        &mut self,
        ask: &AssignmentRequest<'_>,
        rng: &mut StreamRng,
        assignment: &mut [u32],
    ) -> Result<(), Failure> {
        self.weighed = ask.is_due(self.every).then(Weighed::default);
        if self.weighed.is_some() {
            assignment.iter_mut().for_each(|cluster| *cluster = rng.below(u64::from(ask.clusters)) as u32);
        }
        Ok(())
    }

    fn weighed(&self) -> Option<&Weighed> {
        self.weighed.as_ref()
    }
}
