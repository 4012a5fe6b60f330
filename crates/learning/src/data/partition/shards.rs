//! Pathological label skew: examples are sorted by class and cut into shards, and each client gets a few shards.
//!
//! # Definition
//! The examples are put together by class, in ascending order of classes and in random order within a class, and cut
//! into `K·s` consecutive shards for `K` clients and `s` shards per client: of `n` examples, the first `n mod K·s`
//! shards get `⌊n/(K·s)⌋ + 1`, the others `⌊n/(K·s)⌋`. Each client gets `s` shards at random, without replacement.
//! A shard no longer than the smallest class touches at most two classes, so a client has at most `2s` of them; where
//! the classes' boundaries are boundaries of shards, at most `s`.
//!
//! # Source
//! H. B. McMahan et al., "Communication-efficient learning of deep networks from decentralized data", AISTATS 2017,
//! section 3: MNIST, 60,000 examples in 200 shards of 300, two for each of 100 clients.
//!
//! # Deviations from the source
//! None where the shards divide the examples; the source defines no other case.
//!
//! # Cost
//! O(n + K·s) time and memory, and the sorting of each client's shards.
//!
//! # Determinism
//! Stream (Partition, 0, 0) is the order of examples, kept within each class; stream (Partition, 0, 3) the order of
//! shards, `s` consecutive ones for each client. A client's examples are ordered by shard, hence by class.

use super::{Partition, PartitionError, PartitionSettings, check_counts, dealing_order, shuffled_by_class};
use crate::data::Dataset;
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::rng::Streams;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of the partition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct LabelShards {
    /// Shards that each client gets.
    #[serde(default = "two")]
    pub shards_per_client: usize,
}

const fn two() -> usize {
    2
}

impl PartitionSettings for LabelShards {
    fn check(&self) -> Result<(), Complaint> {
        check("shards_per_client", self.shards_per_client as f64, 1.0.., "at least 1").map(|_| ())
    }

    fn deal(&self, data: &Dataset, clients: usize, _: &[u32], streams: &Streams) -> Result<Partition, PartitionError> {
        label_shards(data, clients, self.shards_per_client, streams)
    }
}

/// Deals out all examples in shards of few classes.
///
/// # Errors
/// No clients, no shards per client, fewer examples than shards, or a data set without classes.
pub fn label_shards(
    data: &Dataset,
    clients: usize,
    shards_per_client: usize,
    streams: &Streams,
) -> Result<Partition, PartitionError> {
    check_counts(data.examples(), clients, shards_per_client)?;
    if shards_per_client == 0 {
        let most = data.examples() / clients;
        return Err(PartitionError::OutOfRange { key: "shards_per_client", found: 0, least: 1, most });
    }
    let (labels, classes) = data.classes().ok_or(PartitionError::NoClasses { kind: "a partition by label shards" })?;
    let sorted = shuffled_by_class(labels, classes, streams).concat();
    let shards = clients * shards_per_client;
    let (base, longer) = (sorted.len() / shards, sorted.len() % shards);
    let start = |shard: usize| shard * base + shard.min(longer);
    let mut order = Vec::with_capacity(sorted.len());
    let mut sizes = Vec::with_capacity(clients);
    for mine in dealing_order(shards, true, streams).chunks_exact_mut(shards_per_client) {
        mine.sort_unstable();
        let before = order.len();
        for &mut shard in mine {
            order.extend_from_slice(&sorted[start(shard)..start(shard + 1)]);
        }
        sizes.push(order.len() - before);
    }
    Ok(Partition::deal(order, &sizes))
}
