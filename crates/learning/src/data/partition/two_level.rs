//! Label skew on two levels: classes are spread over edge servers, then over each server's clients, by Dirichlet
//! variates.
//!
//! # Definition
//! `K` clients belong to `M` servers in the order of their numbers, the first `K mod M` servers having `⌊K/M⌋ + 1`, the
//! others `⌊K/M⌋`. `law` says how examples are spread over the servers, and over the clients of each.
//!
//! `by-class` (the default): for each class `c`, proportions `(q_c1, …, q_cM) ~ Dirichlet(α_server, …)` over servers
//! and, for each server `m`, proportions `~ Dirichlet(α_client, …)` over its clients, all independent. Server `m` gets
//! `n_c·q_cm` examples of the class, and its clients share those by their proportions, both rounded by largest
//! remainders.
//!
//! `by-owner`: each server `m` draws a mixture of the `C` classes, `(q_m1, …, q_mC) ~ Dirichlet(α_server, …)`, and each
//! client one `~ Dirichlet(α_client, …)`, all independent. An example of class `c` goes to server `m` with probability
//! `q_mc/Σ q_m'c`, the sum over servers, so that the counts of a class are multinomial; within the server it goes to a
//! client by the same rule, the sum over the server's clients. Sizes are far more even than by class: of ten servers
//! with α_server = 0.1 and 60,000 examples of ten classes, the smallest has about 900 on average by class and 3,300 by
//! owner.
//!
//! A server's shares of each class are handed out as well, so that test data can be split the same way: by largest
//! remainders, or by draws of their own.
//!
//! Under edge servers, these have to be the servers of the partition: as many, with the same clients.
//!
//! # Source
//! The two-level Dirichlet split of Fed-BAC (10 servers, α_server of 0.5 or 0.1, α_client 0.5), which is `by-owner`;
//! `by-class` is the law of M. Yurochkin et al., ICML 2019, section 4, on both levels.
//!
//! # Deviations from the source
//! The source does not say what becomes of clients that get nothing. Here a server short of its clients' minima is
//! first helped by the server that has most above its own, then a client by the client of the same server that has
//! most; it is always one example of the giver's most frequent class (the smallest on ties). The shares that are
//! handed out are those drawn, before this help and before rounding. Nor does it say how mixtures over classes become
//! proportions of a class over servers; they are divided by their sum. Where all are too small for `f64` they are
//! compared by their logarithms, so that there is always one.
//!
//! # Cost
//! O(n + K·C) time and memory for C classes, and a logarithm of K for each example moved; by owner, a logarithm of K
//! for each example.
//!
//! # Determinism
//! Stream (Partition, 0, 0) is the order of examples, kept within each class. A client's examples are ordered by class.
//! Test data are dealt in the order of stream (Partition, 0, 5). By class, stream (Partition, server, 4) holds one
//! uniform for each class, in ascending order of classes, as does stream (Partition, client, 2). By owner, these are
//! (Partition, server, 7) and (Partition, client, 8), and there is one uniform for each example: in stream
//! (Partition, class, 9) over servers, in (Partition, server, 10) over the server's clients, class by class in
//! ascending order, and in (Partition, class, 11) of test data over servers.

use super::dirichlet::{gamma_weights, raise_to_minimum, uniforms_by_class};
use super::owners::{multinomial, shares_by_owner};
use super::sizes::apportion;
use super::{
    Partition, PartitionError, PartitionSettings, TestSplit, by_class, check_counts, check_positive, check_shape,
    deal_by_class, shuffled_by_class,
};
use crate::data::Dataset;
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::id::ClientId;
use fedgenie_core::math::special::gamma_lower_inverse;
use fedgenie_core::rng::{Purpose, Streams};
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
    /// What is drawn, and for whom.
    #[serde(default)]
    pub law: Law,
}

/// What is drawn, and for whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Law {
    /// For each class, proportions over servers, and over each server's clients; rounded.
    #[default]
    ByClass,
    /// For each server and each client, a mixture of classes; examples are drawn.
    ByOwner,
}

impl PartitionSettings for TwoLevel {
    fn check(&self) -> Result<(), Complaint> {
        check("servers", self.servers as f64, 1.0.., "at least 1")?;
        check_shape("alpha_server", self.alpha_server)?;
        check_shape("alpha_client", self.alpha_client)
    }

    fn servers(&self) -> Option<usize> {
        Some(self.servers)
    }

    fn test_split(&self, data: &Dataset, streams: &Streams) -> Result<Option<TestSplit>, PartitionError> {
        let (_, classes) = data.classes().ok_or(PartitionError::NoClasses { kind: "a Dirichlet partition" })?;
        let quantile = |u| gamma_lower_inverse(self.alpha_server, u);
        let shares = server_shares(self, classes, &quantile, streams)?;
        Ok(Some(match self.law {
            Law::ByClass => TestSplit::Rounded(shares),
            Law::ByOwner => TestSplit::Drawn(shares),
        }))
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
    let &TwoLevel { servers, alpha_server, alpha_client, minimum, law } = settings;
    check_positive("alpha_server", alpha_server)?;
    check_positive("alpha_client", alpha_client)?;
    check_counts(data.examples(), clients, minimum)?;
    if !(1..=clients).contains(&servers) {
        return Err(PartitionError::OutOfRange { key: "servers", found: servers, least: 1, most: clients });
    }
    let (labels, classes) = data.classes().ok_or(PartitionError::NoClasses { kind: "a Dirichlet partition" })?;
    let members = shuffled_by_class(labels, classes, streams);
    let shares = server_shares(settings, classes, server_quantile, streams)?;

    let mut of_servers = match law {
        Law::ByClass => counts_by_shares(&members, &shares),
        Law::ByOwner => counts_by_draws(&members, &shares, 9, streams),
    };
    let minima: Vec<usize> = (0..servers).map(|server| clients_of(server, servers, clients).len() * minimum).collect();
    raise_to_minimum(&mut of_servers, classes, &minima);

    let mut counts = vec![0; clients * classes];
    for server in 0..servers {
        let range = clients_of(server, servers, clients);
        let stream = |client, index| streams.stream(Purpose::Partition, ClientId::from_index(client).0, index);
        let rngs = |index| range.clone().map(move |client| stream(client, index));
        let of_server = of_servers[server * classes..].iter().copied();
        let mut set = |class: usize, split: Vec<usize>| {
            for (client, count) in range.clone().zip(split) {
                counts[client * classes + class] = count;
            }
        };
        match law {
            Law::ByClass => {
                let uniforms = uniforms_by_class(rngs(2), classes);
                for (class, examples) in (0..classes).zip(of_server) {
                    let weights = gamma_weights(&uniforms.row(class).to_vec(), alpha_client, client_quantile)?;
                    set(class, apportion(&weights, examples, 0));
                }
            }
            Law::ByOwner => {
                let shares = shares_by_owner(rngs(8), classes, alpha_client, client_quantile)?;
                let mut draws = stream(server, 10);
                for (class, examples) in (0..classes).zip(of_server) {
                    set(class, multinomial(&shares.column(class).to_owned(), examples, &mut draws));
                }
            }
        }
        let own = &mut counts[range.start * classes..range.end * classes];
        raise_to_minimum(own, classes, &vec![minimum; range.len()]);
    }
    Ok((deal_by_class(&members, &counts), shares))
}

/// Draws each server's share of each class, servers × classes; each column adds up to 1. `quantile` is the quantile
/// function of Gamma(α_server, 1).
///
/// # Errors
/// A weight that is no number.
pub fn server_shares(
    settings: &TwoLevel,
    classes: usize,
    quantile: &dyn Fn(f64) -> f64,
    streams: &Streams,
) -> Result<Array2<f64>, PartitionError> {
    let &TwoLevel { servers, alpha_server: alpha, law, .. } = settings;
    let stream = |server, index| streams.stream(Purpose::Partition, ClientId::from_index(server).0, index);
    let rngs = |index| (0..servers).map(move |server| stream(server, index));
    if law == Law::ByOwner {
        return shares_by_owner(rngs(7), classes, alpha, quantile);
    }
    let uniforms = uniforms_by_class(rngs(4), classes);
    let mut shares = Array2::zeros((servers, classes));
    for (mut column, uniforms) in shares.columns_mut().into_iter().zip(uniforms.rows()) {
        let weights = gamma_weights(&uniforms.to_vec(), alpha, quantile)?;
        // Divided by the largest first, so that the sum cannot overflow.
        let largest = weights.iter().copied().fold(0.0, f64::max);
        let sum: f64 = weights.iter().map(|weight| weight / largest).sum();
        column.iter_mut().zip(&weights).for_each(|(share, weight)| *share = weight / largest / sum);
    }
    Ok(shares)
}

/// Splits a data set, such as the test examples, over servers by their shares of each class (servers × classes, finite
/// and not negative; a column need not add up to 1): part `m` of the result is what server `m` gets. Every example is
/// dealt out. Counts are the shares rounded by largest remainders, or multinomial if `is_drawn`; then every column has
/// a positive share.
///
/// # Errors
/// No servers, or a data set that has no classes or others than the shares are for.
pub fn split_by_shares(
    data: &Dataset,
    shares: &Array2<f64>,
    is_drawn: bool,
    streams: &Streams,
) -> Result<Partition, PartitionError> {
    let (labels, classes) = data.classes().ok_or(PartitionError::NoClasses { kind: "a split by shares of classes" })?;
    check_counts(data.examples(), shares.nrows(), 0)?;
    if shares.ncols() != classes {
        let found = shares.ncols();
        return Err(PartitionError::OutOfRange { key: "classes of the shares", found, least: classes, most: classes });
    }
    let members = by_class(test_order(data.examples(), streams), labels, classes);
    let counts = match is_drawn {
        true => counts_by_draws(&members, shares, 11, streams),
        false => counts_by_shares(&members, shares),
    };
    Ok(deal_by_class(&members, &counts))
}

/// Splits a data set over servers by whom each example belongs to, if that is known of it: those of which it is not are
/// split in proportion to weights. Part `m` of the result is what server `m` gets.
pub fn split_by_owners(owners: &[Option<usize>], weights: &[f64], streams: &Streams) -> Partition {
    let mut parts = vec![Vec::new(); weights.len()];
    let mut others = Vec::new();
    for example in test_order(owners.len(), streams) {
        match owners[example as usize] {
            Some(server) => parts[server].push(example),
            None => others.push(example),
        }
    }
    let mut others = others.into_iter();
    for (part, count) in parts.iter_mut().zip(apportion(weights, others.len(), 0)) {
        part.extend(others.by_ref().take(count));
    }
    let sizes: Vec<usize> = parts.iter().map(Vec::len).collect();
    Partition::deal(parts.concat(), &sizes)
}

/// The order in which test examples are dealt.
fn test_order(examples: usize, streams: &Streams) -> Vec<u32> {
    let mut order: Vec<u32> = (0..).take(examples).collect();
    streams.stream(Purpose::Partition, 0, 5).shuffle(&mut order);
    order
}

/// How many examples of each class each server gets by its rounded share, server by server.
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

/// How many examples of each class each server gets if each example is drawn, server by server; one uniform for each in
/// stream (Partition, class, index).
fn counts_by_draws(members: &[Vec<u32>], shares: &Array2<f64>, index: u32, streams: &Streams) -> Vec<usize> {
    let classes = members.len();
    let mut counts = vec![0; shares.nrows() * classes];
    for (class, members) in members.iter().enumerate() {
        let mut rng = streams.stream(Purpose::Partition, class as u32, index);
        let drawn = multinomial(&shares.column(class).to_owned(), members.len(), &mut rng);
        for (server, count) in drawn.into_iter().enumerate() {
            counts[server * classes + class] = count;
        }
    }
    counts
}
