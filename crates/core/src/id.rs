//! Identifiers: which client, which round.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A client, numbered from 0 in the order in which the scenario lists its groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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

/// A round of selection, dispatch and aggregation, numbered from 1 as in the literature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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

impl fmt::Display for Round {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "round {}", self.0)
    }
}
