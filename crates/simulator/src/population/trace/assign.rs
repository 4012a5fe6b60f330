//! Assignment of records to clients.

use fedgenie_core::rng::{Purpose, Streams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How records are dealt out to the clients of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Assign {
    /// Client i of its group has record i mod M.
    #[default]
    Cyclic,
    /// Client i of its group has the i mod M-th of a random permutation of the records, the same for all sets of M
    /// records.
    Permuted,
}

/// The record of every client of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    records: usize,
    permutation: Option<Box<[u32]>>,
}

impl Assignment {
    /// Deals out a number of records. A permutation is shuffled by the stream (PopulationParameter, 2^32 − 1, number of
    /// records), so that the columns of one file stay together.
    ///
    /// # Panics
    /// If there are no records, or 2^32 or more.
    pub fn new(assign: Assign, records: usize, streams: &Streams) -> Self {
        let count = u32::try_from(records).expect("fewer than 2^32 records");
        assert!(count > 0, "there is a record");
        let permutation = (assign == Assign::Permuted).then(|| {
            let mut order: Box<[u32]> = (0..count).collect();
            streams.stream(Purpose::PopulationParameter, u32::MAX, count).shuffle(&mut order);
            order
        });
        Self { records, permutation }
    }

    /// The record of the client with this number in its group.
    pub fn of(&self, in_group: usize) -> usize {
        let index = in_group % self.records;
        self.permutation.as_ref().map_or(index, |order| order[index] as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_go_round_and_a_permutation_has_each_once() {
        let streams = Streams::new(4);
        let cyclic = Assignment::new(Assign::Cyclic, 3, &streams);
        assert_eq!([0, 1, 2, 3, 4, 3000].map(|client| cyclic.of(client)), [0, 1, 2, 0, 1, 0]);
        let permuted = Assignment::new(Assign::Permuted, 50, &streams);
        let mut seen: Vec<usize> = (0..50).map(|client| permuted.of(client)).collect();
        assert_ne!(seen, (0..50).collect::<Vec<_>>());
        assert_eq!(permuted.of(57), seen[7]);
        assert_eq!(permuted, Assignment::new(Assign::Permuted, 50, &Streams::new(4)));
        assert_ne!(permuted, Assignment::new(Assign::Permuted, 50, &Streams::new(5)));
        seen.sort_unstable();
        assert_eq!(seen, (0..50).collect::<Vec<_>>());
    }
}
