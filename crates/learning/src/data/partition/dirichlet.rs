//! Label skew: the examples of each class are spread over the clients by a Dirichlet variate.
//!
//! # Definition
//! For each class `c`, proportions `(p_c1, …, p_cK) ~ Dirichlet(α, …, α)`, independent between classes; client `k` gets
//! `n_c·p_ck` examples of the class, rounded by largest remainders. A Dirichlet variate is K independent Gamma(α, 1)
//! variates over their sum. If all K are too small for `f64` (tiny α), they are `u^(1/α)` up to a common factor, u
//! being their uniforms, and those are divided by the largest.
//!
//! # Source
//! M. Yurochkin et al., "Bayesian nonparametric federated learning of neural networks", ICML 2019, section 4.
//!
//! # Deviations from the source
//! Published code draws again until every client has its minimum, which changes the law by as much as it is needed and
//! may never end. Here the draw is kept: while a client, the smallest number first, is short of the minimum, it is
//! given one example of the most frequent class (the smallest on ties) of the client that has most (the smallest number
//! on ties). Nobody falls below the minimum by giving.
//!
//! # Cost
//! O(n + K·C) time and memory for C classes, and a logarithm of K for each example moved.
//!
//! # Determinism
//! Stream (Partition, client, 2) holds one uniform for each class, in ascending order of classes; stream
//! (Partition, 0, 0) is the order of examples, kept within each class. A client's examples are ordered by class.

use super::{
    Partition, PartitionError, PartitionSettings, check_counts, check_positive, check_shape, deal_by_class,
    shuffled_by_class, sizes::apportion,
};
use crate::data::Dataset;
use fedgenie_core::config::Complaint;
use fedgenie_core::id::ClientId;
use fedgenie_core::math::float::{exp, ln};
use fedgenie_core::math::special::gamma_lower_inverse;
use fedgenie_core::rng::{Purpose, StreamRng, Streams};
use ndarray::Array2;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Below this, variates have lost digits.
pub(super) const TINY: f64 = 1e-290;

/// Settings of the partition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct DirichletClasses {
    /// Concentration, from 0.001 to 100000; small is skewed.
    pub alpha: f64,
    /// Fewest examples per client.
    #[serde(default = "super::one_example")]
    pub minimum: usize,
}

impl PartitionSettings for DirichletClasses {
    fn check(&self) -> Result<(), Complaint> {
        check_shape("alpha", self.alpha)
    }

    fn deal(&self, data: &Dataset, clients: usize, _: &[u32], streams: &Streams) -> Result<Partition, PartitionError> {
        let quantile = |u| gamma_lower_inverse(self.alpha, u);
        dirichlet(data, clients, self, &quantile, streams)
    }
}

/// Deals out all examples, class by class.
///
/// `quantile` is the quantile function of Gamma(α, 1).
///
/// # Errors
/// No clients, fewer examples than clients × minimum, an α that is not positive, a data set without classes, or a
/// weight that is no number.
pub fn dirichlet(
    data: &Dataset,
    clients: usize,
    settings: &DirichletClasses,
    quantile: &dyn Fn(f64) -> f64,
    streams: &Streams,
) -> Result<Partition, PartitionError> {
    check_positive("alpha", settings.alpha)?;
    check_counts(data.examples(), clients, settings.minimum)?;
    let (labels, classes) = data.classes().ok_or(PartitionError::NoClasses { kind: "a Dirichlet partition" })?;
    let by_class = shuffled_by_class(labels, classes, streams);

    let rngs = (0..clients).map(|client| streams.stream(Purpose::Partition, ClientId::from_index(client).0, 2));
    let uniforms = uniforms_by_class(rngs, classes);
    // counts[client][class], client by client.
    let mut counts = vec![0; clients * classes];
    for (class, members) in by_class.iter().enumerate() {
        let weights = gamma_weights(&uniforms.row(class).to_vec(), settings.alpha, quantile)?;
        for (client, count) in apportion(&weights, members.len(), 0).into_iter().enumerate() {
            counts[client * classes + class] = count;
        }
    }
    raise_to_minimum(&mut counts, classes, &vec![settings.minimum; clients]);
    Ok(deal_by_class(&by_class, &counts))
}

/// The next uniform of each owner's stream for each class, classes × owners. One stream is open at a time: a generator
/// takes more room than an owner's uniforms.
pub(super) fn uniforms_by_class(rngs: impl ExactSizeIterator<Item = StreamRng>, classes: usize) -> Array2<f64> {
    let mut uniforms = Array2::zeros((classes, rngs.len()));
    for (mut owner, mut rng) in uniforms.columns_mut().into_iter().zip(rngs) {
        owner.mapv_inplace(|_| rng.uniform());
    }
    uniforms
}

/// Gamma variates from uniforms, up to a common factor.
pub(super) fn gamma_weights(
    uniforms: &[f64],
    shape: f64,
    quantile: &dyn Fn(f64) -> f64,
) -> Result<Vec<f64>, PartitionError> {
    let weights: Vec<f64> = uniforms.iter().map(|&u| quantile(u)).collect();
    if let Some(index) = weights.iter().position(|weight| !(weight.is_finite() && *weight >= 0.0)) {
        return Err(PartitionError::Weight { client: ClientId::from_index(index), found: weights[index] });
    }
    if weights.iter().any(|&weight| weight > TINY) {
        return Ok(weights);
    }
    let largest = uniforms.iter().copied().fold(0.0, f64::max);
    Ok(uniforms.iter().map(|&u| exp(ln(u / largest) / shape)).collect())
}

/// Moves examples from those that have most above their minimum to those short of it.
///
/// # Panics
/// If there is less than the minima add up to.
pub(super) fn raise_to_minimum(counts: &mut [usize], classes: usize, minimum: &[usize]) {
    let mut sizes: Vec<usize> = counts.chunks_exact(classes).map(|client| client.iter().sum()).collect();
    let mut donors: BinaryHeap<(usize, Reverse<usize>)> = sizes
        .iter()
        .zip(minimum)
        .enumerate()
        .filter(|&(_, (size, minimum))| size > minimum)
        .map(|(client, (size, minimum))| (size - minimum, Reverse(client)))
        .collect();
    for client in 0..sizes.len() {
        while sizes[client] < minimum[client] {
            let (excess, Reverse(donor)) = donors.pop().expect("there is at least what the minima add up to");
            assert!(excess > 0 && excess + minimum[donor] == sizes[donor], "a donor keeps its minimum");
            let mixture = &counts[donor * classes..][..classes];
            let class = (0..classes).max_by_key(|&class| (mixture[class], Reverse(class))).expect("there are classes");
            counts[donor * classes + class] -= 1;
            counts[client * classes + class] += 1;
            sizes[donor] -= 1;
            sizes[client] += 1;
            if excess > 1 {
                donors.push((excess - 1, Reverse(donor)));
            }
        }
    }
}
