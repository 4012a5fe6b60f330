//! Secure aggregation: the server learns sums of updates alone, and clients pay for that in bytes and time.
//!
//! # Definition
//! Let `n` be the number of clients that are selected together, `k` the number of others that each shares secrets with
//! (`n − 1` under `bonawitz`, at most `neighbours` under `secagg-plus`), `d` how many numbers an update has, the
//! algorithm's own included, and `b` the `bits` of one of them. Numbers are added up modulo `R = n(2^b − 1) + 1`. Each
//! client moves, beside the model that it is sent,
//!
//! | step | down | up |
//! |---|---|---|
//! | public keys, two for each client | `2k` keys | 2 keys |
//! | encrypted shares of two secrets | `2k` shares | `2k` shares |
//! | the masked update, in the place of the update | | `⌈d⌈log₂ R⌉/8⌉` bytes |
//! | shares that take the masks off | | `k + 1` shares |
//!
//! which is `2n` keys, `5n − 4` shares and the masked update under `bonawitz`. What the server sends goes with the
//! model, what clients send with the update. Before it sends, a client computes for as long as `2k` key agreements,
//! masks of `(k + 1)d` numbers and the products of `2(k + 1)` shares of polynomials of degree `t − 1` take, each at the
//! rate that is given, or in no time; `t` is here `⌈threshold·(k + 1)⌉`.
//!
//! Fewer than `t = ⌈threshold·n⌉` updates, or fewer than two, cannot be unmasked: the round is abandoned, as below a
//! quorum.
//!
//! Nothing is encrypted here: updates are combined as they are, and a run learns what it would learn without the
//! section. Values are not rounded to `bits`. Under `[privacy.dp-fedavg]` clients shorten their changes themselves,
//! and a bound that adapts travels.
//!
//! # Inputs
//! `protocol`: `"bonawitz"` (if left out) or `{ secagg-plus = { neighbours = 100 } }`. `threshold`, above 0 and at most
//! 1, two thirds if left out. `bits`, from 1 to 64, 32 if left out. `key` and `share`, bytes of a public key and of an
//! encrypted share, from 1 to 65536, 32 if left out. `agreement`, duration of a key agreement; `mask_rate`, numbers of
//! masks a second; `share_rate`, products of shares a second; both at least 1. What is left out takes no time. Bytes
//! take time over the links of devices; laws of latency are durations whatever travels.
//!
//! It is for rounds of one server, or of edge servers, without carried updates. Refused are whatever wants single
//! updates: robust combinations, `afl-minimax`, a program's own combination, policies that look at updates or at the
//! quality of subsets; encodings of updates, whose sum is not the encoding of a sum; tasks with tables, of which
//! clients send some rows; recorded logs, whose durations are replayed as they are; meters of mean speeds, where bytes
//! or computing take time; and regret in hindsight, as with a quorum. A `[budget]` counts every job at its price in a
//! round of the largest size. Policies may read losses and answers of single clients, which travel beside the sum: a
//! warning says so.
//!
//! # Source
//! `bonawitz`: K. Bonawitz et al., "Practical secure aggregation for privacy-preserving machine learning", CCS 2017,
//! whose costs of a user are these; its examples of 16-bit values, 1.73 times the plain bytes for 2¹⁰ users and 2²⁰
//! numbers and 1.98 for 2¹⁴ and 2²⁴, follow with keys and shares of 32 bytes. `secagg-plus`: J. H. Bell et al., "Secure
//! single-server aggregation with (poly)logarithmic overhead", CCS 2020: the same steps on a graph in which each client
//! has `k` neighbours.
//!
//! # Deviations from the source
//! Steps in which everybody waits for the slowest are not played: their bytes travel with the model and the update of
//! the client, so that a round of the real protocol takes longer. Clients that are lost cost the others nothing more,
//! and the server's own computing takes no time. The threshold of `secagg-plus` is a share of all that are selected,
//! and not of each client's neighbours. Signatures, and the round of consistency checks of the active adversary, are
//! left out.
//!
//! # Cost
//! A few operations a job.
//!
//! # Determinism
//! Nothing is drawn.
//!
//! # Example
//! ```toml
//! [privacy.secure-aggregation]
//! protocol = { secagg-plus = { neighbours = 100 } }
//! agreement = "0.2 ms"
//! mask_rate = 5e7
//! ```

use fedgenie_core::config::Complaint;
use fedgenie_core::units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The source of this file, which opens with the definition of `[privacy.secure-aggregation]`.
pub const DOCUMENTED: &str = include_str!("secure_aggregation.rs");

/// The fewest updates whose sum hides each of them.
pub const LEAST: usize = 2;

/// `[privacy.secure-aggregation]`: the server learns sums of updates alone, at a price in bytes and time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecureAggregationConfig {
    /// Who shares secrets with whom.
    #[serde(default)]
    pub protocol: SumProtocol,
    /// The share of the selected clients whose updates have to arrive.
    #[serde(default = "two_thirds")]
    pub threshold: f64,
    /// Bits of one number of an update, before it is masked.
    #[serde(default = "single")]
    pub bits: u32,
    /// Bytes of a public key.
    #[serde(default = "thirty_two")]
    pub key: u32,
    /// Bytes of an encrypted share of a secret.
    #[serde(default = "thirty_two")]
    pub share: u32,
    /// How long a client takes to agree on a key with another; no time if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement: Option<Duration>,
    /// Numbers of masks that a client draws in a second; they take no time if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mask_rate: Option<f64>,
    /// Products of a finite field that a client works out in a second to share its secrets; they take no time if left
    /// out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_rate: Option<f64>,
}

/// Who shares secrets with whom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(transform = fedgenie_core::config::allow_bare_kinds)]
pub enum SumProtocol {
    /// Everybody with everybody: SecAgg.
    Bonawitz {},
    /// Everybody with a few: SecAgg+.
    SecaggPlus {
        /// With how many others.
        neighbours: usize,
    },
}

impl Default for SumProtocol {
    fn default() -> Self {
        Self::Bonawitz {}
    }
}

const fn two_thirds() -> f64 {
    2.0 / 3.0
}

const fn single() -> u32 {
    32
}

const fn thirty_two() -> u32 {
    32
}

impl SecureAggregationConfig {
    /// Checks the ranges.
    ///
    /// # Errors
    /// A complaint with a path below the section.
    pub fn check(&self) -> Result<(), Complaint> {
        if self.protocol == (SumProtocol::SecaggPlus { neighbours: 0 }) {
            return Err(Complaint::new("protocol.secagg-plus.neighbours", "found 0; expected at least 1"));
        }
        if !(self.threshold > 0.0 && self.threshold <= 1.0) {
            let message = format!("found {}; expected a number above 0, at most 1", self.threshold);
            return Err(Complaint::new("threshold", message));
        }
        if !(1..=64).contains(&self.bits) {
            return Err(Complaint::new("bits", format!("found {}; expected a number from 1 to 64", self.bits)));
        }
        for (key, rate) in [("mask_rate", self.mask_rate), ("share_rate", self.share_rate)] {
            if let Some(found) = rate.filter(|rate| !(rate.is_finite() && *rate >= 1.0)) {
                let message = format!("found {found}; expected how many are worked out in a second, at least 1");
                return Err(Complaint::new(key, message));
            }
        }
        for (key, bytes) in [("key", self.key), ("share", self.share)] {
            if !(1..=65_536).contains(&bytes) {
                return Err(Complaint::new(key, format!("found {bytes}; expected from 1 to 65536 bytes")));
            }
        }
        Ok(())
    }

    /// `k`: how many others each of so many clients shares secrets with.
    fn neighbours(&self, selected: usize) -> u64 {
        let others = selected.saturating_sub(1);
        let count = match self.protocol {
            SumProtocol::Bonawitz {} => others,
            SumProtocol::SecaggPlus { neighbours } => neighbours.min(others),
        };
        count as u64
    }

    /// Bytes of a client among so many, where its update has so many numbers: down beside the model, and up in the
    /// place of the update.
    pub fn bytes(&self, selected: usize, numbers: u64) -> [u64; 2] {
        let (k, key, share) = (self.neighbours(selected), u64::from(self.key), u64::from(self.share));
        let masked = (u128::from(numbers) * u128::from(self.masked_bits(selected))).div_ceil(8);
        let up = 2 * key + (3 * k + 1) * share;
        [2 * k * (key + share), u64::try_from(masked).unwrap_or(u64::MAX).saturating_add(up)]
    }

    /// `⌈log₂ R⌉`, bits of a masked number: sums go from 0 to `R − 1`.
    fn masked_bits(&self, selected: usize) -> u32 {
        let largest = u128::from(u64::MAX >> (64 - self.bits)) * selected.max(1) as u128;
        128 - largest.leading_zeros()
    }

    /// Seconds that a client among so many computes for, where its update has so many numbers.
    pub fn seconds(&self, selected: usize, numbers: u64) -> f64 {
        let k = self.neighbours(selected) as f64;
        let agreements = self.agreement.map_or(0.0, |each| 2.0 * k * each.0.seconds());
        let masks = self.mask_rate.map_or(0.0, |rate| (k + 1.0) * numbers as f64 / rate);
        let degree = (part(self.threshold, k + 1.0) - 1.0).max(0.0);
        agreements + masks + self.share_rate.map_or(0.0, |rate| 2.0 * (k + 1.0) * degree / rate)
    }

    /// Whether clients compute for it in some time.
    pub const fn takes_time(&self) -> bool {
        self.agreement.is_some() || self.mask_rate.is_some() || self.share_rate.is_some()
    }
}

/// `⌈share·count⌉`, where rounding alone does not reach the next whole number.
pub fn part(share: f64, count: f64) -> f64 {
    let found = share * count;
    let near = found.round();
    if (found - near).abs() <= 1e-9 * count { near } else { found.ceil() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> SecureAggregationConfig {
        let config: SecureAggregationConfig = toml::from_str(text).unwrap();
        config.check().unwrap();
        config
    }

    /// The examples of Bonawitz et al.: bytes both ways, over those of the values in the clear.
    #[test]
    fn published_expansions() {
        let config = config("bits = 16");
        let expansion = |users: usize, numbers: u64| {
            let [down, up] = config.bytes(users, numbers);
            (down + up) as f64 / (2 * numbers) as f64
        };
        assert_eq!(format!("{:.2}", expansion(1 << 10, 1 << 20)), "1.73");
        assert_eq!(format!("{:.2}", expansion(1 << 14, 1 << 24)), "1.98");
    }

    /// `2n` keys, `5n − 4` shares, and the masked update.
    #[test]
    fn a_client_among_seven() {
        let all = config("key = 3\nshare = 100\nbits = 8");
        // 7·255 + 1 sums need 11 bits; 9 numbers need 99.
        assert_eq!(all.bytes(7, 9), [12 * 3 + 12 * 100, 13 + 2 * 3 + (12 + 7) * 100]);
        let few = config("key = 3\nshare = 100\nbits = 8\nprotocol = { secagg-plus = { neighbours = 2 } }");
        assert_eq!(few.bytes(7, 9), [4 * 3 + 4 * 100, 13 + 2 * 3 + (4 + 3) * 100]);
        assert_eq!(few.bytes(2, 9), config("key = 3\nshare = 100\nbits = 8").bytes(2, 9), "there is one other");
        assert_eq!(all.bytes(1, 9), [0, 9 + 2 * 3 + 100], "alone: its own keys, and a share of its own");
    }

    #[test]
    fn sums_fit() {
        let bits = |text: &str, selected| config(text).masked_bits(selected);
        assert_eq!([bits("bits = 1", 1), bits("bits = 1", 2), bits("bits = 1", 3), bits("bits = 1", 4)], [1, 2, 2, 3]);
        assert_eq!([bits("", 1), bits("", 10), bits("bits = 64", 1), bits("bits = 64", 3)], [32, 36, 64, 66]);
    }

    #[test]
    fn seconds_by_hand() {
        let config = config("agreement = \"2 ms\"\nmask_rate = 1000\nshare_rate = 500\nthreshold = 0.6");
        // k = 4: 8 agreements; 5 masks of 30 numbers; 10 shares of degree 2.
        let expected = 8.0 * 0.002 + 5.0 * 30.0 / 1000.0 + 10.0 * 2.0 / 500.0;
        assert!((config.seconds(5, 30) - expected).abs() < 1e-15);
        assert_eq!(super::part(2.0 / 3.0, 9.0), 6.0);
        assert_eq!(super::part(0.1, 3.0), 1.0);
        assert_eq!(super::part(0.7, 10.0), 7.0);
    }
}
