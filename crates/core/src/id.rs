//! Identifiers and numbers, one type for each meaning, so that one cannot be taken for another.
//!
//! | type | counts |
//! |---|---|
//! | [`Round`] | rounds of the server, or of the cloud: versions of the global model |
//! | [`Turn`] | selections of one policy |
//! | [`JobNumber`] | what the random numbers of a client's job belong to |
//!
//! Under `synchronous` and its relatives a policy has one turn in each round, and a job has the number of its round.
//! Under `buffered` a round has many turns, and a client's jobs are counted. Under `hierarchical` an edge server's
//! turns, and the numbers of its jobs, go on through the cloud's rounds.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A client, numbered from 0 in the order in which the scenario lists its groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClientId(pub u32);

impl ClientId {
    /// The client's place in every array that is indexed by client.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The client at a place of a client-indexed array.
    ///
    /// # Panics
    /// If the place does not fit in 32 bits; a population is never that large.
    pub fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).expect("a population has fewer than 2^32 clients"))
    }
}

impl fmt::Display for ClientId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "client {}", self.0)
    }
}

/// An edge server, numbered from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EdgeId(pub u32);

impl EdgeId {
    /// The server's place in every array that is indexed by edge server.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The server at a place of such an array.
    ///
    /// # Panics
    /// If the place does not fit in 32 bits; there are never as many servers.
    pub fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).expect("there are fewer than 2^32 edge servers"))
    }
}

impl fmt::Display for EdgeId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "edge server {}", self.0)
    }
}

/// A selection of one policy, numbered from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Turn(pub u32);

impl Turn {
    /// The selection after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Turn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "selection {}", self.0)
    }
}

/// What the random numbers of a client's job belong to beside the client: the turn in which the client was selected, or
/// the count of its jobs where a policy chooses one client at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobNumber(pub u32);

impl From<Turn> for JobNumber {
    fn from(turn: Turn) -> Self {
        Self(turn.0)
    }
}

impl fmt::Display for JobNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "job {}", self.0)
    }
}

/// A round of the server, or of the cloud: the version of the global model that it makes. Numbered from 1 as in the
/// literature; 0 is the model that a run starts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Round(pub u32);

impl Round {
    /// The first round.
    pub const FIRST: Self = Self(1);

    /// The round after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl Round {
    /// How many models have been made since a client was sent that of round `sent`.
    pub const fn since(self, sent: Self) -> u32 {
        self.0 - sent.0
    }
}

impl fmt::Display for Round {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "round {}", self.0)
    }
}
