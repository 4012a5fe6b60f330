//! Quantity skew: client sizes fall along a line or a geometric series to a given fraction of the largest.
//!
//! # Definition
//! The User Balance Index of a partition is the smallest size over the largest. For an index `b` and `K` clients,
//! client `k = 0, …, K − 1` has a share of the examples proportional to `b^(k/(K−1))` (exponential) or `1 − (1 −
//! b)·k/(K−1)` (linear), so that client 0 is the largest and the exact shares have the index `b`. Every exact size is
//! rounded down or up, whichever gives, among all such roundings that add up, the index nearest to `b`: for the
//! smallest and for the largest client both ways are tried, and the others follow by largest remainders; on ties plain
//! largest remainders win. With `largest = "last"`, client `K − 1` is the largest and client 0 the smallest; with
//! `shuffled`, the sizes go to the clients in random order. The exact size of the smallest client has to be at least 1;
//! since it grows with `b`, a smaller `b` is out of reach.
//!
//! With `by = "groups"`, whole groups (users, writers) go to clients, at least one to each, and sizes come as near as a
//! search finds: groups in random order, each to the client that lacks most; then, as long as that brings the two
//! nearer to their sizes, the client furthest above its size gives the one furthest below, or else another, a group,
//! for nothing, for another group or for several.
//!
//! # Source
//! The User Balance Index of MAB-FRS, eqs. (29) and (30), there 0.0146 and 0.1172 for 8 clients and 100,000 ratings.
//!
//! # Deviations from the source
//! The source names the two profiles without a formula; these are the ones of their names whose index can be chosen. It
//! rounds every size down and so leaves examples over; here every example is dealt out.
//!
//! # Cost
//! O(n + K ln K) time, O(n + K) memory; by groups, of which there are `G`, O(G·(K + ln G)) for the first deal and O(G
//! ln G) for each exchange, of which there are few.
//!
//! # Determinism
//! Stream (Partition, 0, 3) for the clients' order by size, if shuffled; stream (Partition, 0, 0) for that of examples;
//! stream (Partition, 0, 6) for that of groups.

mod whole_groups;

use super::{Partition, PartitionError, PartitionSettings, check_counts, dealing_order, shuffled};
use crate::data::Dataset;
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::math::float;
use fedgenie_core::rng::{Purpose, Streams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How sizes fall from the largest client to the smallest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// By the same factor from each client to the next.
    Exponential,
    /// By the same amount from each client to the next.
    Linear,
}

/// Which client is the largest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Largest {
    /// Client 0.
    #[default]
    First,
    /// The last one.
    Last,
}

/// The units that are dealt out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Single examples.
    #[default]
    Ratings,
    /// Whole groups, such as users.
    Groups,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Settings of the partition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct UserBalance {
    /// How sizes fall from the largest to the smallest.
    pub profile: Profile,
    /// Smallest size over largest.
    pub index: f64,
    /// Whether sizes go to clients in random order; else client 0 is the largest, and so on.
    #[serde(default)]
    pub shuffled: bool,
    /// Which client is the largest, unless sizes are shuffled.
    #[serde(default, skip_serializing_if = "is_default")]
    pub largest: Largest,
    /// The units that are dealt out: single ratings (or other examples), or whole groups of them, such as users.
    #[serde(default, skip_serializing_if = "is_default")]
    pub by: Unit,
}

impl PartitionSettings for UserBalance {
    fn check(&self) -> Result<(), Complaint> {
        if self.shuffled && self.largest == Largest::Last {
            return Err(Complaint::new("largest", "found \"last\"; leave it out where sizes are shuffled"));
        }
        check("index", self.index, f64::MIN_POSITIVE..=1.0, "a number above 0, at most 1").map(|_| ())
    }

    fn deal(&self, data: &Dataset, clients: usize, _: &[u32], streams: &Streams) -> Result<Partition, PartitionError> {
        match self.by {
            Unit::Ratings => user_balance(data.examples(), clients, self, streams),
            Unit::Groups => {
                let groups = data.groups().ok_or(PartitionError::NoGroups)?;
                by_groups(groups, clients, self, streams)
            }
        }
    }
}

impl UserBalance {
    /// The size of each client.
    fn sizes(&self, examples: usize, clients: usize, streams: &Streams) -> Result<Vec<usize>, PartitionError> {
        let mut falling = balanced_sizes(examples, clients, self.profile, self.index)?;
        if self.largest == Largest::Last {
            falling.reverse();
        }
        let mut sizes = vec![0; clients];
        for (client, size) in dealing_order(clients, self.shuffled, streams).into_iter().zip(falling) {
            sizes[client] = size;
        }
        Ok(sizes)
    }
}

/// Deals out all examples, whole groups at a time, near to sizes of the profile.
///
/// # Errors
/// As [`user_balance`], or fewer groups than clients.
fn by_groups(
    of_example: &[u32],
    clients: usize,
    settings: &UserBalance,
    streams: &Streams,
) -> Result<Partition, PartitionError> {
    let wanted = settings.sizes(of_example.len(), clients, streams)?;
    let numbers = of_example.iter().max().map_or(0, |&largest| largest as usize + 1);
    let mut counts = vec![0_usize; numbers];
    of_example.iter().for_each(|&group| counts[group as usize] += 1);
    let mut order: Vec<usize> = (0..numbers).filter(|&group| counts[group] > 0).collect();
    if order.len() < clients {
        return Err(PartitionError::TooFewGroups { groups: order.len(), clients });
    }
    streams.stream(Purpose::Partition, 0, 6).shuffle(&mut order);
    let client_of = whole_groups::assign(&order, &counts, &wanted);
    let mut of_client = vec![Vec::new(); clients];
    for example in shuffled(of_example.len(), streams) {
        of_client[client_of[of_example[example as usize] as usize]].push(example);
    }
    let sizes: Vec<usize> = of_client.iter().map(Vec::len).collect();
    Ok(Partition::deal(of_client.concat(), &sizes))
}

/// Deals out all examples in sizes of the profile.
///
/// # Errors
/// No clients, fewer examples than clients, or an index out of reach.
pub fn user_balance(
    examples: usize,
    clients: usize,
    settings: &UserBalance,
    streams: &Streams,
) -> Result<Partition, PartitionError> {
    let sizes = settings.sizes(examples, clients, streams)?;
    Ok(Partition::deal(shuffled(examples, streams), &sizes))
}

/// The sizes, the largest first; [`balance_index`] says which index they reach.
///
/// # Errors
/// As [`user_balance`].
pub fn balanced_sizes(
    examples: usize,
    clients: usize,
    profile: Profile,
    index: f64,
) -> Result<Vec<usize>, PartitionError> {
    check_counts(examples, clients, 1)?;
    let smallest = |index: f64| exact_sizes(examples, clients, profile, index)[clients - 1];
    if !(index > 0.0 && index <= 1.0 && smallest(index) >= 1.0 && (clients > 1 || index == 1.0)) {
        let least = if clients == 1 { 1.0 } else { least_index(smallest) };
        return Err(PartitionError::Balance { found: index, least, clients, examples });
    }
    let exact = exact_sizes(examples, clients, profile, index);
    let (last, first) = (float::floor(exact[clients - 1]) as usize, float::floor(exact[0]) as usize);
    let up = |share: f64| float::ceil(share) as usize;
    let mut best = round(&exact, examples, None).expect("largest remainders add up");
    let distance = |sizes: &[usize]| (balance_index(sizes) - index).abs();
    for least in [last, up(exact[clients - 1])] {
        for most in [first, up(exact[0])] {
            if let Some(sizes) = round(&exact, examples, Some((least, most)))
                && distance(&sizes) < distance(&best)
            {
                best = sizes;
            }
        }
    }
    Ok(best)
}

/// The smallest size over the largest; 0 if there is nothing.
pub fn balance_index(sizes: &[usize]) -> f64 {
    match (sizes.iter().min(), sizes.iter().max()) {
        (Some(&least), Some(&most)) if most > 0 => least as f64 / most as f64,
        _ => 0.0,
    }
}

/// Exact sizes, falling.
fn exact_sizes(examples: usize, clients: usize, profile: Profile, index: f64) -> Vec<f64> {
    let steps = (clients - 1).max(1) as f64;
    let weight = |client: usize| {
        let share_of_way = client as f64 / steps;
        match profile {
            Profile::Exponential => float::power(index, share_of_way),
            Profile::Linear => (1.0 - share_of_way) + index * share_of_way,
        }
    };
    let weights: Vec<f64> = (0..clients).map(weight).collect();
    let sum: f64 = weights.iter().sum();
    // A number that is whole up to rounding errors counts as whole, or it could be rounded away from itself.
    let share = |weight: f64| {
        let share = examples as f64 * weight / sum;
        let whole = float::floor(share + 0.5);
        if (share - whole).abs() <= 1e-12 * share { whole } else { share }
    };
    weights.into_iter().map(share).collect()
}

/// The smallest index that leaves the smallest client one example, by bisection; `smallest` grows with the index and is
/// at least 1 for an index of 1.
fn least_index(smallest: impl Fn(f64) -> f64) -> f64 {
    let (mut below, mut above) = (0.0, 1.0);
    loop {
        let middle = f64::midpoint(below, above);
        if middle <= below || middle >= above {
            return above;
        }
        if smallest(middle) >= 1.0 {
            above = middle;
        } else {
            below = middle;
        }
    }
}

/// Rounds every size down or up so that they add up to `total`, by largest remainders. With `ends`, the smallest and
/// the largest have these sizes and no other lies beyond; `None` if that does not add up.
fn round(exact: &[f64], total: usize, ends: Option<(usize, usize)>) -> Option<Vec<usize>> {
    let (least, most) = ends.unwrap_or((0, usize::MAX));
    let mut bounds: Vec<(usize, usize)> = exact
        .iter()
        .map(|&share| ((float::floor(share) as usize).max(least), (float::ceil(share) as usize).min(most)))
        .collect();
    if ends.is_some() {
        bounds[exact.len() - 1].1 = least;
        bounds[0].0 = most;
    }
    let mut sizes: Vec<usize> = bounds.iter().map(|&(low, _)| low).collect();
    let mut missing = total.checked_sub(sizes.iter().sum())?;
    let mut order: Vec<usize> = (0..exact.len()).filter(|&client| bounds[client].0 < bounds[client].1).collect();
    order.sort_by(|&first, &second| {
        (exact[second] - sizes[second] as f64).total_cmp(&(exact[first] - sizes[first] as f64))
    });
    for client in order {
        if missing > 0 {
            sizes[client] += 1;
            missing -= 1;
        }
    }
    let fits = missing == 0 && sizes.iter().zip(&bounds).all(|(size, (low, high))| low <= size && size <= high);
    fits.then_some(sizes)
}
