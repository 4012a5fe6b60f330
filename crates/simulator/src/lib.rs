//! Populations, policies, tasks, protocols and runs.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests compare with the platform's functions"))]

pub mod clusters;
pub mod metrics;
pub mod policy;
pub mod population;
pub mod protocol;
pub mod recorder;
pub mod run;
pub mod task;
pub mod world;
