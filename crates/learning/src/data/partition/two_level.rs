//! Label skew on two levels: classes are spread over edge servers, then over each server's clients, by Dirichlet
//! variates.
//!
//! # Definition
//! For each class `c`, proportions `(q_c1, …, q_cM) ~ Dirichlet(α_server, …)` over `M` servers and, for each server
//! `m`, proportions `~ Dirichlet(α_client, …)` over its clients, all independent. Server `m` gets `n_c·q_cm` examples
//! of the class, and its clients share those by their proportions, both rounded by largest remainders. `K` clients
//! belong to the servers in the order of their numbers, the first `K mod M` servers having `⌊K/M⌋ + 1`, the others
//! `⌊K/M⌋`. A server's proportions `q` are handed out as well, so that test data can be split the same way.
//!
//! # Source
//! The two-level Dirichlet split of Fed-BAC (10 servers, α_server of 0.5 or 0.1, α_client 0.5); the one-level law is
//! that of M. Yurochkin et al., ICML 2019, section 4.
//!
//! # Deviations from the source
//! The source does not say what becomes of clients that get nothing. Here a server short of its clients' minima is
//! first helped by the server that has most above its own, then a client by the client of the same server that has
//! most; it is always one example of the giver's most frequent class (the smallest on ties). The proportions that are
//! handed out are those drawn, before this help and before rounding.
//!
//! # Cost
//! O(n + K·C) time and memory for C classes, and a logarithm of K for each example moved.
//!
//! # Determinism
//! Stream (Partition, server, 4) holds one uniform for each class, in ascending order of classes, as does stream
//! (Partition, client, 2); stream (Partition, 0, 0) is the order of examples, kept within each class. A client's
//! examples are ordered by class. Test data are dealt in the order of stream (Partition, 0, 5).

use super::dirichlet::{class_weights, raise_to_minimum};
use super::sizes::apportion;
use super::{
    Partition, PartitionError, PartitionSettings, by_class, check_counts, check_positive, check_shape, deal_by_class,
    shuffled_by_class,
};
use crate::data::Dataset;
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::id::ClientId;
use fedgenie_core::math::special::gamma_lower_inverse;
use fedgenie_core::rng::{Purpose, StreamRng, Streams};
use ndarray::{Array2, ArrayView1};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Settings of the partition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct TwoLevel {
    /// Number of servers; clients belong to them in the order of their numbers, as evenly as possible.
    pub servers: usize,
    /// Concentration over servers, from 0.001 to 100000; small is skewed.
    pub alpha_server: f64,
    /// Concentration over the clients of a server, from 0.001 to 100000; small is skewed.
    pub alpha_client: f64,
    /// Fewest examples per client.
    #[serde(default = "super::one_example")]
    pub minimum: usize,
}

impl PartitionSettings for TwoLevel {
    fn check(&self) -> Result<(), Complaint> {
        check("servers", self.servers as f64, 1.0.., "at least 1")?;
        check_shape("alpha_server", self.alpha_server)?;
        check_shape("alpha_client", self.alpha_client)
    }

    fn server_shares(&self, data: &Dataset, streams: &Streams) -> Result<Option<Array2<f64>>, PartitionError> {
        let (_, classes) = data.classes().ok_or(PartitionError::NoClasses { kind: "a Dirichlet partition" })?;
        let quantile = |u| gamma_lower_inverse(self.alpha_server, u);
        server_shares(self.servers, classes, self.alpha_server, &quantile, streams).map(Some)
    }

    fn deal(&self, data: &Dataset, clients: usize, _: &[u32], streams: &Streams) -> Result<Partition, PartitionError> {
        let of_servers = |u| gamma_lower_inverse(self.alpha_server, u);
        let of_clients = |u| gamma_lower_inverse(self.alpha_client, u);
        two_level(data, clients, self, &of_servers, &of_clients, streams).map(|(partition, _)| partition)
    }
}

/// The clients of a server.
pub fn clients_of(server: usize, servers: usize, clients: usize) -> Range<usize> {
    let start = |server: usize| server * (clients / servers) + server.min(clients % servers);
    start(server)..start(server + 1)
}

/// Deals out all examples, class by class: over servers, then over each server's clients.
///
/// The quantile functions are those of Gamma(α_server, 1) and of Gamma(α_client, 1). Also returned: the share of each
/// class that was drawn for each server, servers × classes; each column adds up to 1.
///
/// # Errors
/// No clients, fewer examples than clients × minimum, more servers than clients or none, an α that is not positive, a
/// data set without classes, or a weight that is no number.
pub fn two_level(
    data: &Dataset,
    clients: usize,
    settings: &TwoLevel,
    server_quantile: &dyn Fn(f64) -> f64,
    client_quantile: &dyn Fn(f64) -> f64,
    streams: &Streams,
) -> Result<(Partition, Array2<f64>), PartitionError> {
    let &TwoLevel { servers, alpha_server, alpha_client, minimum } = settings;
    check_positive("alpha_server", alpha_server)?;
    check_positive("alpha_client", alpha_client)?;
    check_counts(data.examples(), clients, minimum)?;
    if !(1..=clients).contains(&servers) {
        return Err(PartitionError::OutOfRange { key: "servers", found: servers, least: 1, most: clients });
    }
    let (labels, classes) = data.classes().ok_or(PartitionError::NoClasses { kind: "a Dirichlet partition" })?;
    let members = shuffled_by_class(labels, classes, streams);
    let shares = server_shares(servers, classes, alpha_server, server_quantile, streams)?;

    let mut of_servers = counts_by_shares(&members, &shares);
    let minima: Vec<usize> = (0..servers).map(|server| clients_of(server, servers, clients).len() * minimum).collect();
    raise_to_minimum(&mut of_servers, classes, &minima);

    let mut counts = vec![0; clients * classes];
    for server in 0..servers {
        let range = clients_of(server, servers, clients);
        let mut rngs: Vec<StreamRng> =
            range.clone().map(|client| streams.stream(Purpose::Partition, ClientId::from_index(client).0, 2)).collect();
        for class in 0..classes {
            let weights = class_weights(&mut rngs, alpha_client, client_quantile)?;
            let split = apportion(&weights, of_servers[server * classes + class], 0);
            for (client, count) in range.clone().zip(split) {
                counts[client * classes + class] = count;
            }
        }
        let own = &mut counts[range.start * classes..range.end * classes];
        raise_to_minimum(own, classes, &vec![minimum; range.len()]);
    }
    Ok((deal_by_class(&members, &counts), shares))
}

/// Draws each server's share of each class, servers × classes, from Dirichlet(α); each column adds up to 1.
///
/// # Errors
/// A weight that is no number.
pub fn server_shares(
    servers: usize,
    classes: usize,
    alpha: f64,
    quantile: &dyn Fn(f64) -> f64,
    streams: &Streams,
) -> Result<Array2<f64>, PartitionError> {
    let mut rngs: Vec<StreamRng> =
        (0..servers).map(|server| streams.stream(Purpose::Partition, ClientId::from_index(server).0, 4)).collect();
    let mut shares = Array2::zeros((servers, classes));
    for mut column in shares.columns_mut() {
        let weights = class_weights(&mut rngs, alpha, quantile)?;
        // Divided by the largest first, so that the sum cannot overflow.
        let largest = weights.iter().copied().fold(0.0, f64::max);
        let sum: f64 = weights.iter().map(|weight| weight / largest).sum();
        column.iter_mut().zip(&weights).for_each(|(share, weight)| *share = weight / largest / sum);
    }
    Ok(shares)
}

/// Splits a data set, such as the test examples, over servers by their shares of each class (servers × classes, finite
/// and not negative; a column need not add up to 1): part `m` of the result is what server `m` gets. Every example is
/// dealt out.
///
/// # Errors
/// No servers, or a data set that has no classes or others than the shares are for.
pub fn split_by_shares(data: &Dataset, shares: &Array2<f64>, streams: &Streams) -> Result<Partition, PartitionError> {
    let (labels, classes) = data.classes().ok_or(PartitionError::NoClasses { kind: "a split by shares of classes" })?;
    check_counts(data.examples(), shares.nrows(), 0)?;
    if shares.ncols() != classes {
        let found = shares.ncols();
        return Err(PartitionError::OutOfRange { key: "classes of the shares", found, least: classes, most: classes });
    }
    let mut order: Vec<u32> = (0..).take(data.examples()).collect();
    streams.stream(Purpose::Partition, 0, 5).shuffle(&mut order);
    let members = by_class(order, labels, classes);
    Ok(deal_by_class(&members, &counts_by_shares(&members, shares)))
}

/// Splits examples without classes over servers in proportion to weights: part `m` of the result is what server `m`
/// gets. Every example is dealt out, in the order of stream (Partition, 0, 5).
pub fn split_by_sizes(examples: usize, weights: &[f64], streams: &Streams) -> Partition {
    let mut order: Vec<u32> = (0..).take(examples).collect();
    streams.stream(Purpose::Partition, 0, 5).shuffle(&mut order);
    Partition::deal(order, &apportion(weights, examples, 0))
}

/// How many examples of each class each server gets, server by server.
fn counts_by_shares(members: &[Vec<u32>], shares: &Array2<f64>) -> Vec<usize> {
    let classes = members.len();
    let mut counts = vec![0; shares.nrows() * classes];
    for (class, members) in members.iter().enumerate() {
        let weights: ArrayView1<'_, f64> = shares.column(class);
        for (server, count) in apportion(&weights.to_vec(), members.len(), 0).into_iter().enumerate() {
            counts[server * classes + class] = count;
        }
    }
    counts
}
