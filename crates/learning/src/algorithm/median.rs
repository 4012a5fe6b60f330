//! Median: of each number, the middle one of the changes.
//!
//! # Definition
//! Per number, Δ is the median of the changes of a round; of an even number of changes, the mean of the middle two. NaN
//! counts as the largest. Of a table, all updates count, with a change of 0 for updates that did not move the row, or
//! by `rows = "touched"` only the updates that moved it.
//!
//! # Inputs
//! None. Weights do not enter: `weighting` is `uniform` (and is that if left out), no policy gives weights, and the
//! protocol's `staleness` is `constant`.
//!
//! # Source
//! D. Yin, Y. Chen, K. Ramchandran, P. Bartlett, "Byzantine-robust distributed learning: Towards optimal statistical
//! rates", ICML 2018, Definition 1.
//!
//! # Deviations from the source
//! The median is that of changes of models, not of gradients.
//!
//! # Cost
//! A search for the middle of the round's changes for each number.
//!
//! # Determinism
//! The order of updates does not matter.
//!
//! # Example
//! ```toml
//! [aggregation]
//! weighting = "uniform"
//! [algorithm.median]
//! ```

use super::trimmed_mean::ascending;
use super::{AlgorithmSettings, Combine, OfNumbers, Scene, Weighting};
use fedgenie_core::config::Complaint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// `[algorithm.median]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {}

impl AlgorithmSettings for Config {
    fn check(&self, scene: &Scene<'_>) -> Result<(), Complaint> {
        scene.needs_model()?;
        scene.refuses_own()?;
        scene.needs_alike()
    }

    fn combine(&self, _scene: &Scene<'_>) -> Option<Arc<dyn Combine>> {
        Some(Arc::new(Median))
    }

    fn weighting(&self) -> Option<Weighting> {
        Some(Weighting::Uniform)
    }
}

/// The middle one.
#[derive(Debug)]
struct Median;

impl Combine for Median {
    fn of_numbers(&self) -> Option<&dyn OfNumbers> {
        Some(self)
    }
}

impl OfNumbers for Median {
    fn combine(&self, changes: &mut [f64]) -> f64 {
        median(changes)
    }
}

/// The median of at least one number, with NaN as the largest; the numbers are put into another order.
pub(super) fn median(numbers: &mut [f64]) -> f64 {
    let (count, middle) = (numbers.len(), numbers.len() / 2);
    let (below, &mut upper, _) = numbers.select_nth_unstable_by(middle, ascending);
    match count % 2 {
        1 => upper,
        // The largest of the lower half.
        _ => f64::midpoint(below.iter().copied().max_by(ascending).unwrap_or(upper), upper),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_odd_and_even_numbers() {
        assert_eq!(median(&mut [5.0]), 5.0);
        assert_eq!(median(&mut [5.0, -1.0]), 2.0);
        assert_eq!(median(&mut [9.0, -100.0, 3.0]), 3.0);
        assert_eq!(median(&mut [9.0, -100.0, 3.0, 4.0]), 3.5);
        assert_eq!(median(&mut [f64::NAN, -f64::NAN, 3.0, 4.0, 1.0]), 4.0);
        assert!(median(&mut [f64::NAN, f64::NAN, 3.0, 4.0]).is_nan());
        let mut hundred: Vec<f64> = (0..100).map(|number| f64::from(number * 37 % 100)).collect();
        assert_eq!(median(&mut hundred), 49.5);
    }
}
