//! Quantity skew: client sizes follow Zipf's law, a power of their rank.
//!
//! # Definition
//! The client of rank `r = 1, …, K` gets `n·r^-s / Σ_j j^-s` examples, rounded by largest remainders. A client whose
//! share is below the minimum gets the minimum, and the others share the rest in proportion. Client 0 has rank 1,
//! and so on; with `shuffled`, ranks are a random permutation.
//!
//! # Source
//! G. K. Zipf, "Human Behavior and the Principle of Least Effort", 1949.
//!
//! # Deviations from the source
//! None.
//!
//! # Cost
//! O(n + K ln K) time, O(n + K) memory.
//!
//! # Determinism
//! Stream (Partition, 0, 3) for ranks, if shuffled: its order lists clients by rank. Stream (Partition, 0, 0) for the
//! order of examples.

use super::{Partition, PartitionError, PartitionSettings, check_counts, dealing_order, shuffled, sizes::apportion};
use crate::data::Dataset;
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::math::float;
use fedgenie_core::rng::Streams;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of the partition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct ZipfSizes {
    /// Exponent; 0 makes all sizes alike.
    #[serde(default = "one")]
    pub exponent: f64,
    /// Fewest examples per client.
    #[serde(default = "super::one_example")]
    pub minimum: usize,
    /// Whether ranks are random; else client 0 is the largest, and so on.
    #[serde(default)]
    pub shuffled: bool,
}

const fn one() -> f64 {
    1.0
}

impl PartitionSettings for ZipfSizes {
    fn check(&self) -> Result<(), Complaint> {
        check("exponent", self.exponent, 0.0.., "0 or a number above").map(|_| ())
    }

    fn deal(&self, data: &Dataset, clients: usize, _: &[u32], streams: &Streams) -> Result<Partition, PartitionError> {
        zipf(data.examples(), clients, self, streams)
    }
}

impl Default for ZipfSizes {
    fn default() -> Self {
        Self { exponent: one(), minimum: 1, shuffled: false }
    }
}

/// Deals out all examples in sizes proportional to a power of the rank.
///
/// # Errors
/// No clients, fewer examples than clients × minimum, or an exponent that is negative or no number.
pub fn zipf(
    examples: usize,
    clients: usize,
    settings: &ZipfSizes,
    streams: &Streams,
) -> Result<Partition, PartitionError> {
    if !(settings.exponent.is_finite() && settings.exponent >= 0.0) {
        return Err(PartitionError::Exponent { found: settings.exponent });
    }
    check_counts(examples, clients, settings.minimum)?;
    let weights: Vec<f64> = (1..=clients).map(|rank| float::power(rank as f64, -settings.exponent)).collect();
    let by_rank = apportion(&weights, examples, settings.minimum);
    let mut sizes = vec![0; clients];
    for (client, size) in dealing_order(clients, settings.shuffled, streams).into_iter().zip(by_rank) {
        sizes[client] = size;
    }
    Ok(Partition::deal(shuffled(examples, streams), &sizes))
}
