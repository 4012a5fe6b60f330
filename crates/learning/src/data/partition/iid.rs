//! IID: every client gets a random sample of the same size.
//!
//! # Definition
//! `n` examples in random order; the first `n mod K` of `K` clients get `⌊n/K⌋ + 1`, the others `⌊n/K⌋`.
//! Stratified: the examples are put together by class (in random order within a class) and example `j` of that order
//! goes to client `j mod K`, so that sizes, and each client's number of examples of each class, differ by at most one.
//! With 60,000 balanced images of 10 classes and 500 clients everyone gets exactly 12 of each class.
//!
//! # Determinism
//! Stream (Partition, 0, 0).

use super::{Partition, PartitionError, PartitionSettings, check_counts, shuffled, shuffled_by_class};
use crate::data::Dataset;
use fedgenie_core::rng::Streams;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of the partition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct EvenSizes {
    /// Whether every client gets each class in equal numbers, as far as integers allow.
    #[serde(default)]
    pub stratified: bool,
}

impl PartitionSettings for EvenSizes {
    fn deal(&self, data: &Dataset, clients: usize, _: &[u32], streams: &Streams) -> Result<Partition, PartitionError> {
        iid(data, clients, self.stratified, streams)
    }
}

/// Deals out all examples evenly.
///
/// # Errors
/// No clients, fewer examples than clients, or `stratified` without classes.
pub fn iid(data: &Dataset, clients: usize, stratified: bool, streams: &Streams) -> Result<Partition, PartitionError> {
    check_counts(data.examples(), clients, 1)?;
    let (base, larger) = (data.examples() / clients, data.examples() % clients);
    let sizes: Vec<usize> = (0..clients).map(|client| base + usize::from(client < larger)).collect();
    let order = if stratified {
        let (labels, classes) = data.classes().ok_or(PartitionError::NoClasses { kind: "a stratified partition" })?;
        let sorted = shuffled_by_class(labels, classes, streams).concat();
        (0..clients).flat_map(|client| sorted.iter().skip(client).step_by(clients).copied()).collect()
    } else {
        shuffled(data.examples(), streams)
    };
    Ok(Partition::deal(order, &sizes))
}
