//! Integration tests: one binary, a file for each behaviour.
#![allow(clippy::unwrap_used, reason = "a test fails where it cannot go on")]
#![allow(clippy::disallowed_methods, reason = "a test compares with what the platform gives")]

mod aggregation;
mod allocation;
mod arms;
mod asynchronous;
mod bad_input;
mod bad_policy;
mod boundaries;
mod checkpoints;
mod common_random_numbers;
mod conformance;
mod contracts;
mod data_sources;
mod devices;
mod dmrl;
mod explained;
mod falsified;
mod faults;
mod golden;
mod golden_learning;
mod hierarchical;
mod hindsight;
mod interruption;
mod limits;
mod mab_frs;
mod networks;
mod overwrite;
mod policies;
mod protocols;
mod ranking_edges;
mod reach;
mod real_data;
mod real_traces;
mod recommendation;
mod replay;
mod report;
mod scripted;
mod streams;
mod support;
mod sweeps;
mod texts;
mod tidy;
mod told;
mod validation;
mod worlds_with_devices;
