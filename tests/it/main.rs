//! Integration tests: one binary, a file for each behaviour.
#![allow(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod golden_learning;
mod real_data;
