//! Time, random streams, latency laws, event kernel and oracle: the foundation of FedGenie, independent of learning.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests compare with the platform's functions"))]

// The derive macro names this crate from outside.
extern crate self as fedgenie_core;

pub mod catalogue;
pub mod config;
pub mod failure;
pub mod halt;
pub mod id;
pub mod kernel;
pub mod law;
pub mod limits;
pub mod math;
pub mod metric;
pub mod oracle;
pub mod record;
pub mod rng;
pub mod state;
pub mod text;
pub mod time;
pub mod units;
