//! FedGenie: a deterministic discrete-event simulator of federated learning under client selection.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests compare with the platform's functions"))]

pub mod aggregate;
pub mod config;
pub mod data;
pub mod dist;
pub mod error;
pub mod experiment;
pub mod id;
pub mod kernel;
pub mod math;
pub mod metrics;
pub mod model;
pub mod oracle;
pub mod policy;
pub mod population;
pub mod protocol;
pub mod record;
pub mod recorder;
pub mod report;
pub mod rng;
pub mod run;
pub mod scenario;
pub mod task;
pub mod time;
pub mod trainer;
pub mod units;
pub mod validation;
pub mod world;
