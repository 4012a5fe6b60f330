//! How uneven a partition is.
//!
//! # Definition
//! Of `K` clients with sizes `n_1 ≤ … ≤ n_K`, the Gini coefficient of sizes is `Σ_i (2i − K − 1) n_i / (K Σ_i n_i)`: 0
//! if all are alike, near 1 if one has everything. With classes: the entropy `−Σ_c p_c ln p_c` (in nats) of a client's
//! shares `p` of classes and their total-variation distance `½ Σ_c |p_c − q_c|` to the shares `q` of the whole training
//! set, both as plain means over the clients that have examples: a small client counts as much as a large one.
//!
//! Where shares are drawn whenever they are asked for ([`super::overlapping`]), classes are those of the first
//! [`MOST_SIZES`] clients.
//!
//! # Cost
//! O(n + K·C + K ln K) time for C classes, O(K + C) memory.
//!
//! # Determinism
//! Sums run over classes and clients in ascending order.

use super::Partition;
use super::balance::balance_index;
use crate::data::{Dataset, Manner};
use fedgenie_core::id::ClientId;
use fedgenie_core::math::float;
use serde::{Deserialize, Serialize};

/// The most clients of which every size is told.
pub const MOST_SIZES: usize = 1_000;

/// The unevenness of a partition, in sizes and classes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Skew {
    /// Examples of the smallest client.
    pub smallest: usize,
    /// Examples of the largest client.
    pub largest: usize,
    /// Clients without examples.
    pub empty: usize,
    /// The smallest size over the largest (User Balance Index), from 0 to 1.
    pub balance_index: f64,
    /// Gini coefficient of the sizes, from 0 to 1; 0 if nothing was dealt out.
    pub size_gini: f64,
    /// Examples of each client, in order, where there are at most [`MOST_SIZES`] clients.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<usize>,
    /// About classes; `None` for a regression, or if nothing was dealt out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<LabelSkew>,
    /// Examples of each class that each edge server has, where there are at most [`MOST_SIZES`] of them; see
    /// [`crate::task::DealtData::class_counts`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ClassCounts>,
    /// How the features of each client are changed, where they differ and there are at most [`MOST_SIZES`] clients; see
    /// [`super::feature_skew`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<Manner>,
    /// Whose examples change from rounds on, where not everybody's do; see `shift` of the tasks of labelled rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shifts: Vec<ShiftOfSome>,
}

/// A change of the examples of some clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShiftOfSome {
    /// Its first round, from 1.
    pub round: u32,
    /// How many clients they are.
    pub count: usize,
    /// Which, ascending, where there are at most [`MOST_SIZES`] of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<u32>,
}

/// Examples of each class of an edge server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassCounts {
    /// Training examples of its clients.
    pub train: Vec<usize>,
    /// Test examples.
    pub test: Vec<usize>,
}

/// The unevenness of clients' classes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelSkew {
    /// Entropy of a client's classes in nats, plain mean over the clients with examples.
    pub mean_entropy: f64,
    /// Entropy of the classes of the whole training set in nats.
    pub entropy_of_all: f64,
    /// Total-variation distance of a client's shares of classes to the whole training set's, from 0 to 1, plain mean
    /// over the clients with examples.
    pub mean_distance: f64,
}

impl Partition {
    /// Measures the partition of `data`.
    ///
    /// # Panics
    /// If the partition is of a larger data set.
    pub fn skew(&self, data: &Dataset) -> Skew {
        self.skew_without(data, &[])
    }

    /// Measures the partition of the rows of `data` but for those that were set aside, which ascend.
    ///
    /// # Panics
    /// If the partition is of a larger data set.
    pub fn skew_without(&self, data: &Dataset, aside: &[u32]) -> Skew {
        let mut sizes: Vec<usize> = self.sizes().collect();
        let told = if sizes.len() <= MOST_SIZES { sizes.clone() } else { Vec::new() };
        sizes.sort_unstable();
        Skew {
            smallest: sizes[0],
            largest: sizes[sizes.len() - 1],
            empty: sizes.iter().filter(|&&size| size == 0).count(),
            balance_index: balance_index(&sizes),
            size_gini: gini(&sizes),
            sizes: told,
            labels: self.label_skew(data, aside),
            servers: Vec::new(),
            features: Vec::new(),
            shifts: Vec::new(),
        }
    }

    fn label_skew(&self, data: &Dataset, aside: &[u32]) -> Option<LabelSkew> {
        let (labels, classes) = data.classes()?;
        let is_dealt = |&(row, _): &(u32, u8)| aside.binary_search(&row).is_err();
        let dealt = (0..).zip(labels.iter().copied()).filter(is_dealt);
        let all = shares(dealt.map(|(_, label)| label), classes)?;
        let of_client = |client| {
            let examples = self.client(ClientId::from_index(client));
            shares(examples.iter().map(|&example| labels[example as usize]), classes)
        };
        let (mut entropies, mut distances, mut clients) = (0.0, 0.0, 0_usize);
        // Shares that are drawn anew each time are not drawn a million times for two numbers.
        let told = if self.is_dealt() { self.clients() } else { self.clients().min(MOST_SIZES) };
        for mine in (0..told).filter_map(of_client) {
            entropies += entropy(&mine);
            distances += 0.5 * mine.iter().zip(&all).map(|(mine, all)| (mine - all).abs()).sum::<f64>();
            clients += 1;
        }
        let count = (clients > 0).then_some(clients as f64)?;
        Some(LabelSkew {
            mean_entropy: entropies / count,
            entropy_of_all: entropy(&all),
            mean_distance: distances / count,
        })
    }
}

/// The share of each class; `None` without examples.
fn shares(labels: impl Iterator<Item = u8>, classes: usize) -> Option<Vec<f64>> {
    let mut counts = vec![0_usize; classes];
    labels.for_each(|label| counts[usize::from(label)] += 1);
    let total: usize = counts.iter().sum();
    (total > 0).then(|| counts.iter().map(|&count| count as f64 / total as f64).collect())
}

/// Entropy in nats.
fn entropy(shares: &[f64]) -> f64 {
    // A sum of nothing but zeros would be −0 with the sign outside.
    shares.iter().filter(|&&share| share > 0.0).map(|&share| share * -float::ln(share)).sum::<f64>() + 0.0
}

/// Gini coefficient of ascending sizes.
fn gini(ascending: &[usize]) -> f64 {
    let (count, total) = (ascending.len() as i128, ascending.iter().sum::<usize>() as i128);
    let weighted: i128 = (1..).zip(ascending).map(|(rank, &size)| (2 * rank - count - 1) * size as i128).sum();
    if total == 0 { 0.0 } else { weighted as f64 / (count * total) as f64 }
}
