//! Quantity skew: client sizes proportional to Gamma variates.
//!
//! # Definition
//! `G_k ~ Gamma(shape, 1)` independently; client `k` gets `n·G_k / Σ_j G_j` examples, rounded by largest remainders.
//! A client whose share is below the minimum gets the minimum, and the others share what is left in proportion.
//! The shares are a Dirichlet(shape, …, shape) variate; with shape 1 their Gini coefficient is 1/2 for many clients.
//!
//! # Determinism
//! One uniform of stream (Partition, client, 1) for each weight; stream (Partition, 0, 0) for the order of examples.

use super::{
    Partition, PartitionError, PartitionSettings, check_counts, check_positive, check_shape, dirichlet::gamma_weights,
    exponential_quantile, shuffled, sizes::apportion,
};
use crate::data::Dataset;
use fedgenie_core::config::Complaint;
use fedgenie_core::id::ClientId;
use fedgenie_core::math::special::gamma_lower_inverse;
use fedgenie_core::rng::{Purpose, Streams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of the partition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct GammaSizes {
    /// Shape of the law, from 0.001 to 100000; small is skewed, 1 is exponential.
    #[serde(default = "exponential")]
    pub shape: f64,
    /// Fewest examples per client.
    #[serde(default = "super::one_example")]
    pub minimum: usize,
}

const fn exponential() -> f64 {
    1.0
}

impl PartitionSettings for GammaSizes {
    fn check(&self) -> Result<(), Complaint> {
        check_shape("shape", self.shape)
    }

    fn deal(&self, data: &Dataset, clients: usize, _: &[u32], streams: &Streams) -> Result<Partition, PartitionError> {
        let quantile = |u| gamma_lower_inverse(self.shape, u);
        gamma(data.examples(), clients, self, &quantile, streams)
    }
}

impl Default for GammaSizes {
    fn default() -> Self {
        Self { shape: exponential(), minimum: 1 }
    }
}

/// Deals out all examples in sizes proportional to Gamma variates.
///
/// `quantile` is the quantile function of Gamma(shape, 1); with shape 1 it is not asked, the exponential law being
/// exact.
///
/// # Errors
/// No clients, fewer examples than clients × minimum, a shape that is not positive, or a weight that is no number.
pub fn gamma(
    examples: usize,
    clients: usize,
    settings: &GammaSizes,
    quantile: &dyn Fn(f64) -> f64,
    streams: &Streams,
) -> Result<Partition, PartitionError> {
    check_positive("shape", settings.shape)?;
    check_counts(examples, clients, settings.minimum)?;
    let quantile = if settings.shape == 1.0 { &exponential_quantile } else { quantile };
    let uniform = |client| streams.draw(Purpose::Partition, ClientId::from_index(client).0, 1).uniform();
    let uniforms: Vec<f64> = (0..clients).map(uniform).collect();
    let weights = gamma_weights(&uniforms, settings.shape, quantile)?;
    Ok(Partition::deal(shuffled(examples, streams), &apportion(&weights, examples, settings.minimum)))
}
