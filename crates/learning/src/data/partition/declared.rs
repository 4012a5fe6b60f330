//! Declared sizes: each client gets the `data_size` that the population declares for it.
//!
//! # Definition
//! Client `k` gets the next `data_size` examples of all in random order; the examples that are left belong to nobody.
//! The sizes may not add up to more than there are.
//!
//! # Inputs
//! `data_size` of `[population]` or of its groups.
//!
//! # Determinism
//! Stream (Partition, 0, 0) puts the examples in a random order.

use super::{Partition, PartitionError, PartitionSettings, shuffled};
use crate::data::Dataset;
use fedgenie_core::rng::Streams;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of the partition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct DeclaredSizes {}

impl PartitionSettings for DeclaredSizes {
    fn is_declared(&self) -> bool {
        true
    }

    fn deal(&self, data: &Dataset, _: usize, sizes: &[u32], streams: &Streams) -> Result<Partition, PartitionError> {
        let sizes: Vec<usize> = sizes.iter().map(|&size| size as usize).collect();
        declared(data.examples(), &sizes, streams)
    }
}

/// Deals out a random order of the examples in sizes that the caller gives, zero allowed; the rest belongs to nobody.
///
/// # Errors
/// No clients, or sizes that add up to more than there is.
pub fn declared(examples: usize, sizes: &[usize], streams: &Streams) -> Result<Partition, PartitionError> {
    if sizes.is_empty() {
        return Err(PartitionError::NoClients);
    }
    let declared = sizes.iter().fold(0_usize, |sum, &size| sum.saturating_add(size));
    if declared > examples {
        return Err(PartitionError::DeclaredTooMany { declared, examples });
    }
    Ok(Partition::deal(shuffled(examples, streams), sizes))
}
