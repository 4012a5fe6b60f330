//! Clients of ratings by the categories of items: a client holds all ratings of its categories.
//!
//! # Definition
//! | partition | a client's ratings |
//! |---|---|
//! | `{ categories = { distribution = D } }` | so many categories as `D` says, dealt out in random order |
//! | `{ assignment = [[1, 5], [2]] }` | the categories named for it; ratings of the others are held by nobody |
//! | `{ communities = { count = 27, distribution = D } }` | the same with [`communities`](super::communities) of items in place of categories, for data without any |
//!
//! | distribution | categories of a client |
//! |---|---|
//! | `average` | 2 or 3 |
//! | `skewed` | 2 to 4 |
//! | `extreme` | 1 to 5 |
//! | `even` | as even as possible, the larger numbers at the first clients |
//!
//! Of the numbers within bounds that sum to that of the categories, each combination is equally likely.
//!
//! Communities, named 0, 1, …, stand for categories where data have none: clusters of items that the same users rate,
//! by label propagation. Items are dealt out at random; ten times each item moves to the community with the most votes
//! of its users, each by the shares of all their ratings, less the expectation by chance; none grows beyond 5/4 of the
//! mean number of ratings, none shrinks below 1/4 of it.
//!
//! # Source
//! H. Xu et al., "FedACS: an adaptive client selection framework for communication-efficient federated graph learning",
//! IEEE Trans. Mobile Computing, 2025, section VI-A; how numbers are drawn within bounds, it does not say.
//!
//! # Determinism
//! Stream (Partition, 0, 12): the numbers of categories, client by client, then the order of categories.

use super::communities::communities;
use crate::ratings::{Ratings, RatingsSplit};
use fedgenie_core::catalogue::Catalogue;
use fedgenie_core::config::Complaint;
use fedgenie_core::rng::{Purpose, StreamRng, Streams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of the stream, as documented above.
const STREAM: u32 = 12;

/// The partitions of a rating graph that scenarios can name.
pub static CATALOGUE: Catalogue = Catalogue {
    kind: "rating-graph-partition",
    definition: "SocialPartition",
    entries: &[],
    shared: include_str!("dealt.rs"),
};

/// `partition = { categories = { distribution = "average" } }`, …
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SocialPartition {
    /// Categories are dealt out.
    Categories {
        /// How many a client gets.
        #[serde(default)]
        distribution: Distribution,
    },
    /// The categories of each client.
    Assignment(Vec<Vec<CategoryName>>),
    /// Communities of items are dealt out.
    Communities {
        /// How many there are; at least 1.
        count: usize,
        /// How many a client gets.
        #[serde(default)]
        distribution: Distribution,
    },
}

impl Default for SocialPartition {
    fn default() -> Self {
        Self::Categories { distribution: Distribution::default() }
    }
}

/// The name of a category.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum CategoryName {
    /// A whole number.
    Number(u64),
    /// Any text.
    Text(String),
}

impl CategoryName {
    /// The name as one writes it: a number where it is one.
    pub fn of(name: String) -> Self {
        match name.parse::<u64>() {
            Ok(number) if number.to_string() == name => Self::Number(number),
            _ => Self::Text(name),
        }
    }
}

impl std::fmt::Display for CategoryName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => number.fmt(formatter),
            Self::Text(text) => text.fmt(formatter),
        }
    }
}

/// How many categories a client gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// 2 or 3.
    #[default]
    Average,
    /// 2 to 4.
    Skewed,
    /// 1 to 5.
    Extreme,
    /// As even as possible.
    Even,
}

/// The clients' users and ratings.
#[derive(Clone, Debug, PartialEq)]
pub struct Dealt {
    /// The categories of each client, ascending.
    pub categories: Vec<Vec<CategoryName>>,
    /// The client that holds each rating of the data; `None` for a rating that nobody holds.
    pub holders: Vec<Option<u32>>,
    /// The category of each rating, a place among `names`.
    pub of_ratings: Vec<u32>,
    /// All categories.
    pub names: Vec<CategoryName>,
}

impl Dealt {
    /// Everything at one client.
    pub fn whole(split: &RatingsSplit) -> Self {
        let data = &*split.data;
        let names: Vec<CategoryName> = match &data.group_ids {
            Some(ids) => (0..ids.len() as u32).map(|index| CategoryName::of(ids.name(index))).collect(),
            None => vec![CategoryName::Number(0)],
        };
        let of_ratings = data.ratings.iter().map(|rating| rating.group).collect();
        Self { categories: vec![names.clone()], holders: vec![Some(0); data.ratings.len()], of_ratings, names }
    }

    /// Everything that anybody holds, at one client.
    #[must_use]
    pub fn pooled(self) -> Self {
        let held = self.categories.concat();
        let categories = self.names.iter().filter(|name| held.contains(name)).cloned().collect();
        let holders = self.holders.iter().map(|holder| holder.map(|_| 0)).collect();
        Self { categories: vec![categories], holders, ..self }
    }
}

impl SocialPartition {
    /// Checks that need no data.
    ///
    /// # Errors
    /// A complaint with a path below the partition.
    pub fn check(&self) -> Result<(), Complaint> {
        match self {
            Self::Categories { .. } => Ok(()),
            Self::Communities { count, .. } if *count == 0 => {
                Err(Complaint::new("communities.count", "found 0; expected at least 1"))
            }
            Self::Communities { .. } => Ok(()),
            Self::Assignment(clients) => {
                if clients.is_empty() {
                    return Err(Complaint::new("assignment", "found []; expected the categories of each client"));
                }
                if let Some(client) = clients.iter().position(Vec::is_empty) {
                    let message = format!("client {client} has no category; expected at least one for each client");
                    return Err(Complaint::new("assignment", message));
                }
                let mut names: Vec<String> = clients.iter().flatten().map(ToString::to_string).collect();
                names.sort_unstable();
                match names.windows(2).find(|pair| pair[0] == pair[1]) {
                    Some(pair) => {
                        let message = format!("category {} is assigned twice; expected each at most once", pair[0]);
                        Err(Complaint::new("assignment", message))
                    }
                    None => Ok(()),
                }
            }
        }
    }

    /// Deals out all ratings of a split, of whatever part.
    ///
    /// # Errors
    /// A complaint with a path below the partition.
    pub fn deal(&self, split: &RatingsSplit, clients: usize, streams: &Streams) -> Result<Dealt, Complaint> {
        let data = &*split.data;
        let names_of_data = || -> Result<Vec<CategoryName>, Complaint> {
            let Some(ids) = &data.group_ids else {
                let message = "the data have no categories; expected { communities = { count = 27 } }";
                return Err(Complaint::new("", message));
            };
            Ok((0..ids.len() as u32).map(|index| CategoryName::of(ids.name(index))).collect())
        };
        let of_data = |data: &Ratings| data.ratings.iter().map(|rating| rating.group).collect::<Vec<u32>>();
        let (names, of_ratings, key) = match self {
            Self::Categories { .. } => (names_of_data()?, of_data(data), "categories.distribution"),
            Self::Assignment(_) => (names_of_data()?, of_data(data), "assignment"),
            Self::Communities { count, .. } => {
                if *count > data.item_ids.len() {
                    let message =
                        format!("found {count}; expected at most {}, the number of items", data.item_ids.len());
                    return Err(Complaint::new("communities.count", message));
                }
                let of_items = communities(data, *count, streams);
                let of_ratings = data.ratings.iter().map(|rating| of_items[rating.item as usize]).collect();
                ((0..*count as u64).map(CategoryName::Number).collect(), of_ratings, "communities.distribution")
            }
        };
        let of_clients = match self {
            Self::Categories { distribution } | Self::Communities { distribution, .. } => {
                let mut rng = streams.stream(Purpose::Partition, 0, STREAM);
                let counts = distribution.counts(names.len(), clients, &mut rng);
                let counts = counts.map_err(|message| Complaint::new(key, message))?;
                let mut order: Vec<u32> = (0..names.len() as u32).collect();
                rng.shuffle(&mut order);
                let mut rest = &order[..];
                let deal = |count: &usize| {
                    let (own, others) = rest.split_at(*count);
                    rest = others;
                    let mut own = own.to_vec();
                    own.sort_unstable();
                    own
                };
                counts.iter().map(deal).collect()
            }
            Self::Assignment(assigned) => assignment(assigned, &names, clients)?,
        };
        let mut holder_of = vec![None; names.len()];
        for (client, categories) in of_clients.iter().enumerate() {
            categories.iter().for_each(|&category| holder_of[category as usize] = Some(client as u32));
        }
        let holders: Vec<Option<u32>> = of_ratings.iter().map(|&category| holder_of[category as usize]).collect();
        let mut held = vec![0_u64; clients];
        holders.iter().flatten().for_each(|&client| held[client as usize] += 1);
        if let Some(client) = held.iter().position(|&ratings| ratings == 0) {
            return Err(Complaint::new(key, format!("client {client} holds no rating; expected some for each client")));
        }
        let called = |categories: &Vec<u32>| categories.iter().map(|&place| names[place as usize].clone()).collect();
        Ok(Dealt { categories: of_clients.iter().map(called).collect(), holders, of_ratings, names })
    }
}

/// Places of the categories that are assigned, ascending for each client.
fn assignment(
    assigned: &[Vec<CategoryName>],
    names: &[CategoryName],
    clients: usize,
) -> Result<Vec<Vec<u32>>, Complaint> {
    if assigned.len() != clients {
        let message = format!("assigns categories to {} clients; expected {clients}", assigned.len());
        return Err(Complaint::new("assignment", message));
    }
    let place = |name: &CategoryName| {
        let text = name.to_string();
        let found = names.iter().position(|known| known.to_string() == text);
        found.map(|place| place as u32).ok_or_else(|| {
            let known: Vec<String> = names.iter().take(50).map(ToString::to_string).collect();
            let message = format!("there is no category {text}; the data have {}", known.join(", "));
            Complaint::new("assignment", message)
        })
    };
    assigned
        .iter()
        .map(|own| {
            let mut places = own.iter().map(place).collect::<Result<Vec<u32>, _>>()?;
            places.sort_unstable();
            Ok(places)
        })
        .collect()
}

impl Distribution {
    /// Least and most categories of a client, where there are bounds.
    const fn bounds(self) -> Option<(usize, usize)> {
        match self {
            Self::Average => Some((2, 3)),
            Self::Skewed => Some((2, 4)),
            Self::Extreme => Some((1, 5)),
            Self::Even => None,
        }
    }

    /// How many of so many categories each client gets.
    fn counts(self, categories: usize, clients: usize, rng: &mut StreamRng) -> Result<Vec<usize>, String> {
        if categories < clients {
            return Err(format!(
                "there are {categories} categories for {clients} clients; expected one for each at least"
            ));
        }
        let Some((least, most)) = self.bounds() else {
            return Ok((0..clients).map(|client| (categories + clients - 1 - client) / clients).collect());
        };
        let (room, extra) = (most - least, categories.checked_sub(least * clients));
        let Some(extra) = extra.filter(|&extra| extra <= room * clients) else {
            return Err(format!(
                "gives each client {least} to {most} categories, and there are {categories} for {clients} clients; expected \
                 from {} to {} categories, or \"even\"",
                least * clients,
                most * clients
            ));
        };
        // ways[k][s]: in how many ways k clients get s categories beyond the least, over the number of all ways that k
        // clients have, so that it stays finite.
        let mut ways = vec![vec![0.0_f64; extra + 1]; clients + 1];
        ways[0][0] = 1.0;
        for client in 1..=clients {
            for sum in 0..=extra {
                let all: f64 = (0..=room.min(sum)).map(|own| ways[client - 1][sum - own]).sum();
                ways[client][sum] = all / (room + 1) as f64;
            }
        }
        let mut left = extra;
        let mut counts = Vec::with_capacity(clients);
        for client in (0..clients).rev() {
            let weights: Vec<f64> = (0..=room.min(left)).map(|own| ways[client][left - own]).collect();
            let mut uniform = rng.uniform() * weights.iter().sum::<f64>();
            let chosen = weights.iter().position(|weight| {
                uniform -= weight;
                uniform < 0.0
            });
            // Rounding may leave a little; the last one that is possible takes it.
            let last = weights.iter().rposition(|&weight| weight > 0.0).unwrap_or(0);
            let own = chosen.unwrap_or(last);
            left -= own;
            counts.push(least + own);
        }
        Ok(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_of_numbers_is_equally_likely() {
        let streams = Streams::new(5);
        let mut found = std::collections::BTreeMap::new();
        for draw in 0..6_000 {
            let mut rng = streams.stream(Purpose::Partition, draw, 0);
            let counts = Distribution::Extreme.counts(8, 3, &mut rng).unwrap();
            assert_eq!(counts.iter().sum::<usize>(), 8);
            *found.entry(counts).or_insert(0_u32) += 1;
        }
        // Three numbers from 1 to 5 that sum to 8: 18 of them, 333 draws each; standard deviation 18.
        let all: usize = (1..=5).map(|x| (1..=5).filter(|y| (1..=5).contains(&(8_i32 - x - y))).count()).sum();
        assert_eq!((found.len(), all), (18, 18));
        assert!(found.values().all(|count| count.abs_diff(333) < 75), "{found:?}");
    }

    #[test]
    fn bounds_hold_or_are_named() {
        let mut rng = Streams::new(1).stream(Purpose::Partition, 0, 0);
        for (distribution, least, most) in
            [(Distribution::Average, 2, 3), (Distribution::Skewed, 2, 4), (Distribution::Extreme, 1, 5)]
        {
            for _ in 0..50 {
                let counts = distribution.counts(28, 10, &mut rng).unwrap();
                assert!(counts.iter().sum::<usize>() == 28 && counts.iter().all(|c| (least..=most).contains(c)));
            }
        }
        assert_eq!(Distribution::Even.counts(28, 5, &mut rng).unwrap(), [6, 6, 6, 5, 5]);
        assert_eq!(Distribution::Even.counts(28, 20, &mut rng).unwrap().iter().sum::<usize>(), 28);
        let refused = Distribution::Average.counts(28, 5, &mut rng).unwrap_err();
        assert!(refused.contains("expected from 10 to 15 categories"), "{refused}");
        assert!(Distribution::Even.counts(3, 4, &mut rng).unwrap_err().contains("3 categories for 4 clients"));
        // Hundreds of clients neither overflow nor lose a category.
        assert_eq!(Distribution::Average.counts(1_250, 500, &mut rng).unwrap().iter().sum::<usize>(), 1_250);
    }
}
