//! Why examples cannot be dealt out.

use super::counts::CountsError;
use fedgenie_core::id::ClientId;
use thiserror::Error;

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
    /// A number of something is too small or too large.
    #[error("{key} = {found}: has to be {least} to {most}")]
    OutOfRange {
        /// Name of the parameter.
        key: &'static str,
        /// Its value.
        found: usize,
        /// The smallest right value.
        least: usize,
        /// The largest right value.
        most: usize,
    },
    /// An exponent that is no number or negative.
    #[error("exponent = {found}: has to be finite and not negative")]
    Exponent {
        /// The exponent.
        found: f64,
    },
    /// A balance of sizes that whole numbers cannot have.
    #[error(
        "index = {found}: {clients} clients with {examples} examples can have any from {least} to 1; below, the smallest \
         client would have less than one example"
    )]
    Balance {
        /// The index asked for.
        found: f64,
        /// The smallest index in reach.
        least: f64,
        /// Number of clients.
        clients: usize,
        /// Examples in the training set.
        examples: usize,
    },
    /// Groups are needed, but examples belong to none.
    #[error("a partition by column needs a data set that says which group each example belongs to; this one does not")]
    NoGroups,
    /// A client would get no group.
    #[error("the examples are of {groups} groups, which is enough for at most {groups} clients, not for {clients}")]
    TooFewGroups {
        /// Groups with examples.
        groups: usize,
        /// Number of clients.
        clients: usize,
    },
    /// Features cannot be changed like this.
    #[error("feature-skew.{key}: {message}")]
    Features {
        /// The key.
        key: &'static str,
        /// The fault and the remedy.
        message: String,
    },
    /// A file of counts.
    #[error(transparent)]
    Counts(#[from] CountsError),
}
