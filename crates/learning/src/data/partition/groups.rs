//! Natural partition: the examples of one writer, user or device stay on one client.
//!
//! # Definition
//! The groups that have examples are dealt round-robin: with `G` of them in order `g_1, g_2, …`, client `k` of `K` gets
//! `g_(k+1), g_(k+1+K), …`. The order is that of the groups' numbers or, with `shuffled`, random. There have to be at
//! least as many groups as clients, so that nobody is left without; with as many, each client is one group.
//!
//! Test examples belong to the edge server whose clients have their group; those of groups that nobody trains on are
//! divided among servers by their numbers of training examples.
//!
//! # Source
//! S. Caldas et al., "LEAF: A Benchmark for Federated Settings", 2018 (arXiv 1812.01097): partitions by writer, user,
//! device.
//!
//! # Deviations from the source
//! Fewer clients than groups share the groups here; there, groups are left out. A minimum cannot be asked for: a group
//! is not split, and a client gets its groups whole.
//!
//! # Cost
//! O(n + G) time and memory.
//!
//! # Determinism
//! Stream (Partition, 0, 3) for the order of groups, if shuffled; stream (Partition, 0, 0) is the order of examples,
//! kept within each client.

use super::{Partition, PartitionError, PartitionSettings, TestSplit, check_counts, dealing_order, shuffled};
use crate::data::Dataset;
use fedgenie_core::rng::Streams;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of the partition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Groups {
    /// Whether groups are dealt out in random order; else in the order of their numbers.
    #[serde(default)]
    pub shuffled: bool,
}

impl PartitionSettings for Groups {
    fn test_split(&self, _: &Dataset, _: &Streams) -> Result<Option<TestSplit>, PartitionError> {
        Ok(Some(TestSplit::Groups))
    }

    fn deal(&self, data: &Dataset, clients: usize, _: &[u32], streams: &Streams) -> Result<Partition, PartitionError> {
        by_column(data, clients, self.shuffled, streams)
    }
}

/// Deals out all examples, group by group.
///
/// # Errors
/// No clients, a data set that knows no groups, or fewer groups than clients.
pub fn by_column(
    data: &Dataset,
    clients: usize,
    shuffled_groups: bool,
    streams: &Streams,
) -> Result<Partition, PartitionError> {
    check_counts(data.examples(), clients, 0)?;
    let of_example = data.groups().ok_or(PartitionError::NoGroups)?;
    let numbers = of_example.iter().max().map_or(0, |&largest| largest as usize + 1);
    let mut has_examples = vec![false; numbers];
    of_example.iter().for_each(|&group| has_examples[group as usize] = true);
    let present: Vec<usize> = (0..numbers).filter(|&group| has_examples[group]).collect();
    if present.len() < clients {
        return Err(PartitionError::TooFewGroups { groups: present.len(), clients });
    }
    let mut client_of = vec![0; numbers];
    for (turn, index) in dealing_order(present.len(), shuffled_groups, streams).into_iter().enumerate() {
        client_of[present[index]] = turn % clients;
    }
    let mut of_client = vec![Vec::new(); clients];
    for example in shuffled(data.examples(), streams) {
        of_client[client_of[of_example[example as usize] as usize]].push(example);
    }
    let sizes: Vec<usize> = of_client.iter().map(Vec::len).collect();
    Ok(Partition::deal(of_client.concat(), &sizes))
}
