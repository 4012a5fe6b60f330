//! Norm clipping: changes that are longer than a bound are shortened to it.
//!
//! # Definition
//! `Δ = Σ p_k δ_k min(1, norm/‖δ_k‖)`, with the weights `p_k` of the plain average: a shortened change does not leave
//! more to the others.
//!
//! # Inputs
//! `norm`: the bound, above 0. Of a table, the change of rows that a client did not move is 0; `rows = "touched"` is
//! refused, and so are models of clusters. Norms go over all numbers, running means too.
//!
//! # Source
//! Z. Sun, P. Kairouz, A. T. Suresh, H. B. McMahan, "Can you really backdoor federated learning?", 2019 (arXiv
//! 1911.07963), Section 4, without noise.
//!
//! # Deviations from the source
//! Edge servers shorten the changes of their clients; the cloud averages the models of edge servers.
//!
//! # Cost
//! A pass over the updates more.
//!
//! # Determinism
//! Norms are sums in `f64`, in the order of the layout.
//!
//! # Example
//! ```toml
//! [algorithm.norm-clipping]
//! norm = 0.5
//! ```

use super::{AlgorithmSettings, Combine, Factors, Gathered, Scene};
use fedgenie_core::config::Complaint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// `[algorithm.norm-clipping]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The largest norm of a change; above 0.
    pub norm: f64,
}

impl AlgorithmSettings for Config {
    fn check(&self, scene: &Scene<'_>) -> Result<(), Complaint> {
        if !(self.norm.is_finite() && self.norm > 0.0) {
            return Err(Complaint::new("norm", format!("found {}; expected a number above 0", self.norm)));
        }
        scene.needs_whole_updates()
    }

    fn combine(&self, _scene: &Scene<'_>) -> Option<Arc<dyn Combine>> {
        Some(Arc::new(NormClipping { norm: self.norm }))
    }
}

/// Shortened changes.
#[derive(Debug)]
struct NormClipping {
    norm: f64,
}

/// The factor by which a vector of some norm is shortened to a bound.
pub(super) fn shortening(norm: f64, bound: f64) -> f64 {
    if norm > bound { bound / norm } else { 1.0 }
}

impl Combine for NormClipping {
    fn of_models(&self) -> bool {
        false
    }

    fn factors(&self, gathered: &Gathered<'_>) -> Option<Factors> {
        let factor = |index| shortening(gathered.norm(index), self.norm);
        let of = (0..gathered.contributions.len()).map(factor).collect();
        Some(Factors { of, everywhere: true, of_centre: 0.0 })
    }
}
