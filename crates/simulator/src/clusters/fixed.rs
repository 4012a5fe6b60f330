//! Every edge server stays in its first cluster.
//!
//! # Definition
//! The assignment never changes: the control of rules that learn one.
//!
//! # Example
//! ```toml
//! [clusters]
//! count = 2
//! assign = { fixed = {} }
//! ```

use super::{AssignmentRequest, ClusterContext, ClusterPolicy, ClusterSettings};
use fedgenie_core::failure::Failure;
use fedgenie_core::rng::StreamRng;
use fedgenie_core::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `fixed` has no parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {}

impl ClusterSettings for Config {
    fn every(&self) -> Option<u32> {
        None
    }

    fn build(&self, _: &ClusterContext<'_>) -> Box<dyn ClusterPolicy> {
        Box::new(Fixed)
    }
}

#[derive(Stateful)]
struct Fixed;

impl ClusterPolicy for Fixed {
    fn assign(&mut self, _: &AssignmentRequest<'_>, _: &mut StreamRng, _: &mut [u32]) -> Result<(), Failure> {
        Ok(())
    }
}
