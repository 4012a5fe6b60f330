//! Clients of very different sizes: sizes proportional to Gamma variates.
//!
//! # Definition
//! `G_k ~ Gamma(shape, 1)` independently; client `k` gets `n·G_k / Σ_j G_j` examples, rounded by largest remainders.
//! A client whose share is below the minimum gets the minimum, and the others share what is left in proportion.
//! The shares are a Dirichlet(shape, …, shape) variate; with shape 1 their Gini coefficient is 1/2 for many clients.
//!
//! # Determinism
//! One uniform of stream (Partition, client, 1) for each weight; stream (Partition, 0, 0) for the order of examples.

use super::{
    Partition, PartitionError, check_counts, check_positive, dirichlet::gamma_weights, exponential_quantile, shuffled,
    sizes::apportion,
};
use fedgenie_core::id::ClientId;
use fedgenie_core::rng::{Purpose, Streams};

/// Settings of the partition.
#[derive(Clone, Debug, PartialEq)]
pub struct GammaSizes {
    /// Shape of the Gamma law; positive. The smaller, the more unequal.
    pub shape: f64,
    /// Examples that every client has at least.
    pub minimum: usize,
}

impl Default for GammaSizes {
    fn default() -> Self {
        Self { shape: 1.0, minimum: 1 }
    }
}

/// Deals out all examples in sizes proportional to Gamma variates.
///
/// `quantile` is the quantile function of Gamma(shape, 1); with shape 1 it is not asked, the exponential law being exact.
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
    let uniform = |client| streams.stream(Purpose::Partition, ClientId::from_index(client).0, 1).uniform();
    let uniforms: Vec<f64> = (0..clients).map(uniform).collect();
    let weights = gamma_weights(&uniforms, settings.shape, quantile)?;
    Ok(Partition::deal(shuffled(examples, streams), &apportion(&weights, examples, settings.minimum)))
}
