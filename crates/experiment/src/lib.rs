//! Scenarios and experiments: from a file to runs, their summary and their artefacts.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests compare with the platform's functions"))]

pub mod error;
pub mod experiment;
pub mod scenario;
