//! Trimmed mean: of each number, the smallest and the largest changes are left out.
//!
//! # Definition
//! Per number, of the `n` changes of a round the `b = ⌊fraction·n + 1e-9⌋` smallest and the `b` largest are left out; Δ
//! is the plain mean of the rest. NaN counts as the largest. Of a table, `n` counts all updates, with a change of 0
//! for updates that did not move the row, or by `rows = "touched"` only the updates that moved it.
//!
//! # Inputs
//! `fraction`: at least 0, below 0.5. Weights do not enter: `weighting` is `uniform` (and is that if left out), no
//! policy gives weights, and the protocol's `staleness` is `constant`.
//!
//! # Source
//! D. Yin, Y. Chen, K. Ramchandran, P. Bartlett, "Byzantine-robust distributed learning: Towards optimal statistical
//! rates", ICML 2018, Definition 2.
//!
//! # Deviations from the source
//! Changes of models are trimmed, not gradients.
//!
//! # Cost
//! A sort of the round's changes for each number.
//!
//! # Determinism
//! The rest is added up in `f64` in ascending order, so that the order of updates does not matter.
//!
//! # Example
//! ```toml
//! [aggregation]
//! weighting = "uniform"
//! [algorithm.trimmed-mean]
//! fraction = 0.2
//! ```

use super::{AlgorithmSettings, Combine, OfNumbers, Scene, Weighting};
use fedgenie_core::config::{Complaint, check};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::sync::Arc;

/// `[algorithm.trimmed-mean]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The share of changes that is left out at either end; at least 0 and below 0.5.
    #[serde(default = "a_tenth")]
    pub fraction: f64,
}

const fn a_tenth() -> f64 {
    0.1
}

impl AlgorithmSettings for Config {
    fn check(&self, scene: &Scene<'_>) -> Result<(), Complaint> {
        check("fraction", self.fraction, 0.0..0.5, "a number of at least 0 and below 0.5")?;
        scene.needs_model()?;
        scene.refuses_own()?;
        scene.needs_alike()
    }

    fn combine(&self, _scene: &Scene<'_>) -> Option<Arc<dyn Combine>> {
        Some(Arc::new(TrimmedMean { fraction: self.fraction }))
    }

    fn weighting(&self) -> Option<Weighting> {
        Some(Weighting::Uniform)
    }
}

/// The mean of the rest.
#[derive(Debug)]
struct TrimmedMean {
    fraction: f64,
}

impl Combine for TrimmedMean {
    fn of_numbers(&self) -> Option<&dyn OfNumbers> {
        Some(self)
    }
}

/// Ascending, with NaN behind all numbers.
pub(super) fn ascending(one: &f64, other: &f64) -> Ordering {
    one.is_nan().cmp(&other.is_nan()).then_with(|| one.total_cmp(other))
}

impl OfNumbers for TrimmedMean {
    fn combine(&self, changes: &mut [f64]) -> f64 {
        let count = changes.len();
        // ⌊0.29·100⌋ is 29, though the product of the doubles is a little less.
        let trimmed = ((self.fraction * count as f64 + 1e-9) as usize).min((count - 1) / 2);
        changes.sort_unstable_by(ascending);
        let rest = &changes[trimmed..count - trimmed];
        rest.iter().sum::<f64>() / rest.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn combined(fraction: f64, changes: &[f64]) -> f64 {
        TrimmedMean { fraction }.combine(&mut changes.to_vec())
    }

    #[test]
    fn the_ends_are_left_out() {
        let ten: Vec<f64> = [7.0, -100.0, 3.0, 5.0, 100.0, 1.0, 2.0, 4.0, 6.0, 0.0].to_vec();
        // ⌊0.3·10⌋ = 3: left are 2, 3, 4, 5.
        assert_eq!(combined(0.3, &ten), 3.5);
        assert_eq!(combined(0.1, &ten), 28.0 / 8.0);
        assert_eq!(combined(0.0, &[1.0, 2.0, 6.0]), 3.0);
        assert_eq!(combined(0.49, &[5.0]), 5.0, "one change is never left out");
        assert_eq!(combined(0.49, &[1.0, 2.0, 9.0]), 2.0);
        let hundred: Vec<f64> = (0..100).map(f64::from).collect();
        assert_eq!(combined(0.29, &hundred), (29..71).map(f64::from).sum::<f64>() / 42.0);
    }

    #[test]
    fn nan_is_the_largest() {
        assert_eq!(combined(0.34, &[f64::NAN, 1.0, 4.0]), 4.0);
        assert_eq!(combined(0.34, &[-f64::NAN, f64::INFINITY, 1.0]), f64::INFINITY);
        assert!(combined(0.1, &[f64::NAN, 1.0]).is_nan());
    }
}
