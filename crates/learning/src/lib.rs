//! Learning: data sets, networks on lanes, batched local training, aggregation.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests compare with the platform's functions"))]

pub mod adversary;
pub mod algorithm;
pub mod compression;
pub mod data;
pub mod dense;
pub mod dmrl;
pub mod graph_network;
pub mod lanes;
pub mod layout;
pub mod learned;
pub mod local;
pub mod matrix_factorisation;
pub mod metric;
pub mod model;
pub mod ncf;
pub mod private;
pub mod ranking;
pub mod ratings;
pub mod secure_aggregation;

pub mod task;
pub mod trainer;
pub mod training;
