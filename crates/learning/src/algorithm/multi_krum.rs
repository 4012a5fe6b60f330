//! Multi-Krum: the mean of the changes that are closest to their nearest others.
//!
//! # Definition
//! With `n` updates of a round, Δ is the plain mean of the `keep` changes with the least scores of `krum`; of equal
//! scores, those of the smaller clients.
//!
//! # Inputs
//! `byzantine`: `f`, the most updates of a round that are hostile. `keep`: how many changes are averaged; `n − f` if
//! left out. A round needs `2f + 3` updates and `keep`: with fewer it is abandoned, as below a quorum, and a protocol
//! that waits for fewer is refused. Otherwise as `krum`.
//!
//! # Source
//! P. Blanchard, E. M. El Mhamdi, R. Guerraoui, J. Stainer, "Machine learning with adversaries: Byzantine tolerant
//! gradient descent", NeurIPS 2017, Section 6.
//!
//! # Deviations from the source
//! As `krum`.
//!
//! # Cost
//! As `krum`.
//!
//! # Determinism
//! As `krum`; the chosen changes are averaged in `f64`, ascending by client and job.
//!
//! # Example
//! ```toml
//! [aggregation]
//! weighting = "uniform"
//! [algorithm.multi-krum]
//! byzantine = 1
//! ```

use super::krum::{best, least};
use super::{AlgorithmSettings, Combine, Factors, Gathered, Scene, Weighting};
use fedgenie_core::config::Complaint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// `[algorithm.multi-krum]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Most updates of a round that are hostile.
    pub byzantine: usize,
    /// Changes that are averaged; all but `byzantine` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<usize>,
}

impl AlgorithmSettings for Config {
    fn check(&self, scene: &Scene<'_>) -> Result<(), Complaint> {
        if self.keep == Some(0) {
            return Err(Complaint::new("keep", "found 0; expected at least 1"));
        }
        scene.needs_whole_updates()?;
        scene.needs_alike()
    }

    fn combine(&self, _scene: &Scene<'_>) -> Option<Arc<dyn Combine>> {
        Some(Arc::new(MultiKrum { byzantine: self.byzantine, keep: self.keep }))
    }

    fn weighting(&self) -> Option<Weighting> {
        Some(Weighting::Uniform)
    }
}

/// The mean of the best.
#[derive(Debug)]
struct MultiKrum {
    byzantine: usize,
    keep: Option<usize>,
}

impl Combine for MultiKrum {
    fn least_updates(&self) -> usize {
        least(self.byzantine).max(self.keep.unwrap_or(0))
    }

    fn takes_weights(&self) -> bool {
        false
    }

    fn of_models(&self) -> bool {
        false
    }

    fn factors(&self, gathered: &Gathered<'_>) -> Option<Factors> {
        let keep = self.keep.unwrap_or_else(|| gathered.weighed().len().saturating_sub(self.byzantine));
        Some(gathered.mean_of(&best(gathered, self.byzantine, keep)))
    }
}
