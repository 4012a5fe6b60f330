//! Which training examples go to which client.
//!
//! | function | sizes | classes |
//! |---|---|---|
//! | [`iid::iid`] | as even as possible | as they fall, or equal on every client (stratified) |
//! | [`gamma::gamma`] | proportional to Gamma variates | as they fall |
//! | [`declared`] | as the scenario says | as they fall |
//! | [`dirichlet::dirichlet`] | as they result | each class spread by a Dirichlet variate |
//!
//! # Determinism
//! Stream (Partition, 0, 0) puts all examples in a random order, the same one for every kind of partition. Weights of
//! client `k` come from stream (Partition, k, 1) for sizes and (Partition, k, 2) for classes. Ties go to the smaller
//! client number.

pub mod dirichlet;
pub mod gamma;
pub mod iid;
mod sizes;

use crate::id::ClientId;
use crate::rng::{Purpose, Streams};
use thiserror::Error;

/// The examples of every client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Client `k` holds `examples[offsets[k]..offsets[k + 1]]`.
    offsets: Vec<usize>,
    examples: Vec<u32>,
}

impl Partition {
    /// Deals out an order of examples: the first `sizes[0]` to client 0, and so on. What is left belongs to nobody.
    fn deal(mut order: Vec<u32>, sizes: &[usize]) -> Self {
        let mut offsets = Vec::with_capacity(sizes.len() + 1);
        offsets.push(0);
        let mut end = 0;
        for size in sizes {
            end += size;
            offsets.push(end);
        }
        assert!(end <= order.len(), "no more examples are dealt out than there are");
        order.truncate(end);
        Self { offsets, examples: order }
    }

    /// Number of clients.
    pub fn clients(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Number of examples of a client.
    pub fn size(&self, client: ClientId) -> usize {
        self.offsets[client.index() + 1] - self.offsets[client.index()]
    }

    /// The examples of a client, as numbers of rows of the training set.
    pub fn client(&self, client: ClientId) -> &[u32] {
        &self.examples[self.offsets[client.index()]..self.offsets[client.index() + 1]]
    }

    /// Number of examples of all clients together.
    pub fn examples(&self) -> usize {
        self.examples.len()
    }
}

/// Why examples cannot be dealt out.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum PartitionError {
    /// Nobody to deal to.
    #[error("there are no clients to give examples to; at least 1 is needed")]
    NoClients,
    /// Not enough for the minimum.
    #[error("{clients} clients with at least {minimum} examples each need more than the {examples} examples there are")]
    TooFewExamples {
        /// Examples in the training set.
        examples: usize,
        /// Number of clients.
        clients: usize,
        /// Examples that each client has to get.
        minimum: usize,
    },
    /// The declared sizes add up to too much.
    #[error("the declared sizes add up to {declared} examples, there are {examples}")]
    DeclaredTooMany {
        /// Sum of the sizes (saturating).
        declared: usize,
        /// Examples in the training set.
        examples: usize,
    },
    /// A parameter is out of its range.
    #[error("{key} = {found}: has to be finite and positive")]
    NotPositive {
        /// Name of the parameter.
        key: &'static str,
        /// Its value.
        found: f64,
    },
    /// Classes are needed, but the targets are numbers.
    #[error("{kind} needs a data set with classes, this one has numbers as targets")]
    NoClasses {
        /// The kind of partition.
        kind: &'static str,
    },
    /// The law handed in gave something that cannot be a weight.
    #[error("the weight drawn for {client} is {found}: has to be finite and not negative")]
    Weight {
        /// The client.
        client: ClientId,
        /// The weight.
        found: f64,
    },
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

/// All examples in random order.
fn shuffled(examples: usize, streams: &Streams) -> Vec<u32> {
    let count = u32::try_from(examples).expect("examples are numbered in 32 bits");
    let mut order: Vec<u32> = (0..count).collect();
    streams.stream(Purpose::Partition, 0, 0).shuffle(&mut order);
    order
}

/// All examples in random order, put together by class in ascending order.
fn shuffled_by_class(labels: &[u8], classes: usize, streams: &Streams) -> Vec<Vec<u32>> {
    let mut by_class = vec![Vec::new(); classes];
    for example in shuffled(labels.len(), streams) {
        by_class[usize::from(labels[example as usize])].push(example);
    }
    by_class
}

fn check_counts(examples: usize, clients: usize, minimum: usize) -> Result<(), PartitionError> {
    if clients == 0 {
        return Err(PartitionError::NoClients);
    }
    if clients.checked_mul(minimum).is_none_or(|needed| needed > examples) {
        return Err(PartitionError::TooFewExamples { examples, clients, minimum });
    }
    Ok(())
}

fn check_positive(key: &'static str, found: f64) -> Result<(), PartitionError> {
    if found.is_finite() && found > 0.0 { Ok(()) } else { Err(PartitionError::NotPositive { key, found }) }
}

/// The quantile function of Gamma(1), which is the exponential law: `−ln(1 − u)`.
pub fn exponential_quantile(u: f64) -> f64 {
    -crate::math::float::ln_1p(-u)
}

#[cfg(test)]
mod tests;
