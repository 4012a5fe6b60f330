//! Krum: the change that is closest to its nearest others, and no mean of changes.
//!
//! # Definition
//! With `n` updates of a round, `f` of them at most hostile, the score of an update is the sum of the squared distances
//! of its change to the `n − f − 2` nearest changes of others. Δ is the change with the least score; of equal scores,
//! that of the smaller client. Updates of clients without examples do not take part.
//!
//! # Inputs
//! `byzantine`: `f`. A round needs `2f + 3` updates: with fewer it is abandoned, as below a quorum, and a protocol that
//! waits for fewer is refused. Weights do not enter: `weighting` is `uniform` (and is that if left out), no policy
//! gives weights, and the protocol's `staleness` is `constant`. Of a table, the change of rows that a client did not
//! move is 0; `rows = "touched"` is refused, and so are models of clusters.
//!
//! # Source
//! P. Blanchard, E. M. El Mhamdi, R. Guerraoui, J. Stainer, "Machine learning with adversaries: Byzantine tolerant
//! gradient descent", NeurIPS 2017, Section 4.
//!
//! # Deviations from the source
//! Changes of models are compared, not gradients. Edge servers choose among their clients; the cloud averages the
//! models of edge servers.
//!
//! # Cost
//! `n²/2` distances: 1,000 updates of 60,000 numbers are 3·10¹⁰ differences.
//!
//! # Determinism
//! Distances have the same bits on every processor and on any number of threads; they are within 1e-6 of the exact ones
//! relative to these, so that scores that are closer than that to each other may change places.
//!
//! # Example
//! ```toml
//! [aggregation]
//! weighting = "uniform"
//! [algorithm.krum]
//! byzantine = 1
//! ```

use super::{AlgorithmSettings, Combine, Factors, Gathered, Scene, Weighting};
use fedgenie_core::config::Complaint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// `[algorithm.krum]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Most updates of a round that are hostile.
    pub byzantine: usize,
}

impl AlgorithmSettings for Config {
    fn check(&self, scene: &Scene<'_>) -> Result<(), Complaint> {
        scene.needs_whole_updates()?;
        scene.needs_alike()
    }

    fn combine(&self, _scene: &Scene<'_>) -> Option<Arc<dyn Combine>> {
        Some(Arc::new(Krum { byzantine: self.byzantine }))
    }

    fn weighting(&self) -> Option<Weighting> {
        Some(Weighting::Uniform)
    }
}

/// The one with the least score.
#[derive(Debug)]
struct Krum {
    byzantine: usize,
}

/// The fewest updates among which so many hostile ones are told apart.
pub(super) const fn least(byzantine: usize) -> usize {
    byzantine.saturating_mul(2).saturating_add(3)
}

impl Combine for Krum {
    fn least_updates(&self) -> usize {
        least(self.byzantine)
    }

    fn takes_weights(&self) -> bool {
        false
    }

    fn of_models(&self) -> bool {
        false
    }

    fn factors(&self, gathered: &Gathered<'_>) -> Option<Factors> {
        Some(gathered.mean_of(&best(gathered, self.byzantine, 1)))
    }
}

/// The updates with the least scores, in the order of these.
pub(super) fn best(gathered: &Gathered<'_>, byzantine: usize, keep: usize) -> Vec<usize> {
    let among = gathered.weighed();
    if among.len() < least(byzantine) {
        return Vec::new();
    }
    let squares = gathered.squared_distances(&among);
    let rows = squares.chunks(among.len()).enumerate();
    let nearest = among.len() - byzantine - 2;
    let mut scores: Vec<(f64, usize)> = rows
        .map(|(own, row)| {
            let mut others: Vec<f64> =
                row.iter().enumerate().filter(|(other, _)| *other != own).map(|(_, d)| *d).collect();
            others.sort_unstable_by(f64::total_cmp);
            (others[..nearest].iter().sum(), among[own])
        })
        .collect();
    // Indices ascend by client.
    scores.sort_by(|one, other| one.0.total_cmp(&other.0));
    scores.into_iter().take(keep).map(|(_, index)| index).collect()
}
