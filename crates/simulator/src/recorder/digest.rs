//! The replay digest: a chain of BLAKE3 hashes over the canonical bytes of records, one link per round.
//!
//! # Definition
//! `chain_0` is 32 zero bytes; `chain_r = BLAKE3(chain_{r−1} ‖ bytes of the records of round r)`. The first round whose
//! link differs is the first round that differs. Records of a recorded round also get a CRC-32 each, so that the first
//! differing event can be named. The `timeline` chain holds everything but trained values, the `model` chain those.

use fedgenie_core::record::{Record, Stream};
use fedgenie_core::state::Stateful;

/// A chain of hashes.
#[derive(Clone, Debug, Default, Stateful)]
pub struct Chain {
    link: [u8; 32],
    #[state(empty = "a chain is saved between rounds")]
    bytes: Vec<u8>,
    /// Where each record of the round ends in `bytes`.
    #[state(empty = "a chain is saved between rounds")]
    ends: Vec<u32>,
}

impl Chain {
    fn add(&mut self, record: &Record<'_>) {
        record.encode(&mut self.bytes);
        self.ends.push(u32::try_from(self.bytes.len()).expect("the records of a round stay below 4 GiB"));
    }

    fn seal(&mut self) {
        if !self.bytes.is_empty() {
            let mut hasher = blake3::Hasher::new();
            hasher.update(&self.link);
            hasher.update(&self.bytes);
            self.link = *hasher.finalize().as_bytes();
        }
        self.bytes.clear();
        self.ends.clear();
    }

    fn checksums(&self) -> impl Iterator<Item = u32> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| crc32fast::hash(&self.bytes[start as usize..end as usize]))
    }

    /// The digest so far, in hexadecimal.
    pub fn hex(&self) -> String {
        self.link.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn prefix(&self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|i| self.link[i]))
    }
}

/// What is kept of a round to find the first difference of a replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoundMark {
    /// First 64 bits of the timeline chain after the round.
    pub timeline: u64,
    /// First 64 bits of the model chain after the round.
    pub model: u64,
    /// CRC-32 of each record of the round: first the timeline's, then the model's. Empty if the round is not recorded.
    pub checksums: Vec<u32>,
}

/// Both chains of a run.
#[derive(Clone, Debug, Default, Stateful)]
pub struct Digests {
    /// Events, selections, latencies, regret.
    pub timeline: Chain,
    /// Trained values.
    pub model: Chain,
}

impl Digests {
    /// Adds a record to the chain it belongs to.
    pub fn add(&mut self, record: &Record<'_>) {
        match record.stream() {
            Stream::Timeline => self.timeline.add(record),
            Stream::Model => self.model.add(record),
        }
    }

    /// Closes the round's links and writes what is kept of it into `mark`.
    pub fn seal(&mut self, with_checksums: bool, mark: &mut RoundMark) {
        mark.checksums.clear();
        if with_checksums {
            mark.checksums.extend(self.timeline.checksums().chain(self.model.checksums()));
        }
        self.timeline.seal();
        self.model.seal();
        mark.timeline = self.timeline.prefix();
        mark.model = self.model.prefix();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedgenie_core::id::{ClientId, Round};
    use fedgenie_core::time::VirtualTime;

    fn opened(round: u32, client: u32) -> Digests {
        let mut digests = Digests::default();
        for round in 1..=round {
            digests.add(&Record::Opened { round: Round(round), time: VirtualTime(5), selected: &[ClientId(client)] });
            digests.seal(true, &mut RoundMark::default());
        }
        digests
    }

    #[test]
    fn a_chain_depends_on_every_round_before() {
        assert_eq!(opened(3, 1).timeline.hex(), opened(3, 1).timeline.hex());
        assert_ne!(opened(3, 1).timeline.hex(), opened(2, 1).timeline.hex());
        assert_ne!(opened(3, 1).timeline.hex(), opened(3, 2).timeline.hex());
        assert_eq!(opened(3, 1).model.hex(), "0".repeat(64), "nothing was trained");
    }
}
