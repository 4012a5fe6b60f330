//! The ratings and the graph of each client.

use crate::data::partition::Partition;
use crate::data::{Dataset, Targets};
use crate::graph_network::{Graph, Pairs};
use crate::metric::{Definition, Known};
use crate::ratings::reference::Biases;
use crate::ratings::social::SocialRatings;
use crate::ratings::social::dealt::{CategoryName, Dealt};
use crate::ratings::{Part, RatingsSplit};
use crate::task::recommendation::Source;
use crate::task::{Appendix, Controls, Description, On};
use fedgenie_core::id::ClientId;
use fedgenie_core::metric::Place;
use ndarray::Array2;
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock};

/// The most clients of which all overlaps are told.
const MOST_OVERLAPS: usize = 100;

/// The data of a client.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientGraph {
    /// The number of each node among all: users, then items behind them; ascending.
    pub nodes: Vec<u32>,
    /// How many of the nodes are users.
    pub users: usize,
    /// Edges between pairs of its users with trust.
    pub trust: usize,
    /// Training ratings and trust as edges.
    pub graph: Graph,
    /// Ratings by user and item, as nodes of the graph: training, validation, test.
    parts: [Pairs; 3],
}

const fn index(part: Part) -> usize {
    match part {
        Part::Train => 0,
        Part::Valid => 1,
        Part::Test => 2,
    }
}

impl ClientGraph {
    /// The ratings of a part.
    pub const fn part(&self, part: Part) -> &Pairs {
        &self.parts[index(part)]
    }

    /// The number of an item, a node of the graph, among all items, where there are so many users.
    const fn item(&self, node: u32, users: usize) -> u32 {
        self.nodes.as_slice()[node as usize] - users as u32
    }

    /// The graph of a client with these ratings: user, item among all nodes, rating, and its part of the split.
    fn new(
        mut ratings: Vec<(u32, u32, f32, Part)>,
        users: usize,
        trust: &[(u32, u32)],
        transition: bool,
        local: &mut [u32],
    ) -> Self {
        ratings.sort_unstable_by_key(|&(user, item, ..)| (user, item));
        let mut nodes: Vec<u32> = ratings.iter().flat_map(|&(user, item, ..)| [user, item]).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.iter().zip(0..).for_each(|(&node, number)| local[node as usize] = number);
        let mut parts = [const { Pairs { ends: Vec::new(), values: Vec::new() } }; 3];
        for &(user, item, value, part) in &ratings {
            let pairs = &mut parts[index(part)];
            pairs.ends.push((local[user as usize], local[item as usize]));
            pairs.values.push(value);
        }
        let is_here = |user: u32| local[user as usize] != u32::MAX;
        let of_trust = trust.iter().filter(|&&(one, other)| is_here(one) && is_here(other));
        let mut edges = parts[0].ends.clone();
        edges.extend(of_trust.map(|&(one, other)| (local[one as usize], local[other as usize])));
        let own_users = nodes.partition_point(|&node| (node as usize) < users);
        let graph = Graph::new(nodes.len(), &edges, transition);
        let trust = edges.len() - parts[0].ends.len();
        nodes.iter().for_each(|&node| local[node as usize] = u32::MAX);
        Self { nodes, users: own_users, trust, graph, parts }
    }
}

/// The data of all clients.
#[derive(Debug)]
pub struct Holdings {
    split: RatingsSplit,
    social: Arc<SocialRatings>,
    clients: Vec<ClientGraph>,
    categories: Vec<Vec<CategoryName>>,
    /// Training ratings of each category that each client holds.
    counts: Vec<Vec<u64>>,
    names: Vec<CategoryName>,
    unheld: usize,
    /// The split without ratings that nobody holds, where there are such.
    held: Option<RatingsSplit>,
    /// Whether somebody holds a training rating of each item.
    rated: Vec<bool>,
    description: Description,
    /// Mean and biases of clients' training ratings.
    biases: OnceLock<Biases>,
}

impl Holdings {
    /// Of a split whose ratings are dealt out; `transition` says whether edges carry transition probabilities.
    pub fn new(social: Arc<SocialRatings>, split: RatingsSplit, dealt: Dealt, transition: bool) -> Self {
        let Dealt { categories, holders, of_ratings, names } = dealt;
        let (users, items, clients) = (split.users(), split.items(), categories.len());
        let mut held = vec![Vec::new(); clients];
        let mut examples = vec![Vec::new(); clients];
        let mut counts = vec![vec![0; names.len()]; clients];
        let parts = [(Part::Train, &split.train), (Part::Valid, &split.valid), (Part::Test, &split.test)];
        for (part, numbers) in parts {
            for (&number, place) in numbers.iter().zip(0_u32..) {
                let Some(client) = holders[number as usize].map(|client| client as usize) else { continue };
                let rating = &split.data.ratings[number as usize];
                held[client].push((rating.user, users as u32 + rating.item, rating.value, part));
                if part == Part::Train {
                    examples[client].push(place);
                    counts[client][of_ratings[number as usize] as usize] += 1;
                }
            }
        }
        let mut local = vec![u32::MAX; users + items];
        let graphs = held.into_iter();
        let graphs =
            graphs.map(|ratings| ClientGraph::new(ratings, users, &social.trust, transition, &mut local)).collect();
        let sizes: Vec<usize> = examples.iter().map(Vec::len).collect();
        let partition = Partition::deal(examples.concat(), &sizes);
        let label = |&number: &u32| of_ratings[number as usize];
        let targets = match names.len() {
            classes @ 1..=256 => {
                Targets::Classes { labels: split.train.iter().map(|number| label(number) as u8).collect(), classes }
            }
            _ => Targets::Values(vec![0.0; split.train.len()]),
        };
        let skew = partition.skew(&Dataset::new(Array2::zeros((split.train.len(), 0)), targets));
        let unheld = holders.iter().filter(|holder| holder.is_none()).count();
        let is_held = |number: &u32| holders[*number as usize].is_some();
        let those = |numbers: &[u32]| numbers.iter().copied().filter(is_held).collect();
        let held = (unheld > 0).then(|| RatingsSplit {
            train: those(&split.train),
            valid: those(&split.valid),
            test: those(&split.test),
            ..split.clone()
        });
        let (description, biases) = (Description::of(sizes), OnceLock::new());
        let mut rated = vec![false; items];
        let known = held.as_ref().unwrap_or(&split);
        known.part(Part::Train).for_each(|rating| rated[rating.item as usize] = true);
        let clients = graphs;
        let mut all =
            Self { social, clients, categories, counts, names, unheld, held, split, rated, description, biases };
        all.description.has_valid = !all.split.valid.is_empty();
        all.description.skew = Some(skew);
        all.description.counts = all.count();
        all.description.warnings = all.warnings();
        all
    }

    /// All clients.
    pub fn clients(&self) -> &[ClientGraph] {
        &self.clients
    }

    /// The ratings of all, in parts.
    pub const fn split(&self) -> &RatingsSplit {
        &self.split
    }

    /// Pairs of truster and trustee.
    pub fn trust(&self) -> &[(u32, u32)] {
        &self.social.trust
    }

    /// Number of users of all clients.
    pub fn users(&self) -> usize {
        self.split.users()
    }

    /// Number of items of all clients.
    pub fn items(&self) -> usize {
        self.split.items()
    }

    /// Training ratings of a client.
    pub fn examples(&self, client: ClientId) -> usize {
        self.clients[client.index()].part(Part::Train).ends.len()
    }

    /// Training ratings of each category that each client holds.
    pub fn categories(&self) -> Vec<Vec<u64>> {
        self.counts.clone()
    }

    /// Facts about the ratings, and the dropped records.
    pub const fn describe(&self) -> &Description {
        &self.description
    }

    /// Facts about them for a run's files.
    pub fn appendix(&self, metrics: &[&Definition]) -> Appendix {
        let tables = Source::maps_of(&self.split.data);
        Appendix { tables, controls: self.controls(metrics), graph: Some(self.described()) }
    }

    /// The ratings that somebody holds.
    fn held(&self) -> &RatingsSplit {
        self.held.as_ref().unwrap_or(&self.split)
    }

    /// Mean and biases of clients' training ratings.
    fn biases(&self) -> &Biases {
        self.biases.get_or_init(|| Biases::fit(self.held()))
    }

    /// Sums of the errors of predictions for a client's ratings of a part, in their order.
    pub fn errors(&self, client: ClientId, part: Part, errors: impl Iterator<Item = f64>) -> Known {
        let client = &self.clients[client.index()];
        let seen = client.part(part).ends.iter().map(|&(_, item)| self.rated[client.item(item, self.users()) as usize]);
        Known::of(errors.zip(seen))
    }

    /// These metrics of the mean, and of mean and biases, of clients' training ratings on their test and validation
    /// ratings, without those that are not defined.
    pub fn controls(&self, metrics: &[&Definition]) -> Controls {
        let mut controls = vec![("mean", Vec::new()), ("bias", Vec::new())];
        for (part, place) in [(Part::Test, Place::Test), (Part::Valid, Place::Valid)] {
            let ratings = self.held().part(part);
            let ratings =
                ratings.map(|rating| (rating.user, rating.item, rating.value, self.rated[rating.item as usize]));
            for ((_, found), (_, errors)) in controls.iter_mut().zip(self.biases().errors(ratings)) {
                let values = metrics.iter().map(|metric| (metric.measure.at(place), metric.of_ratings(&errors)));
                found.extend(values.filter(|(_, value)| value.is_finite()));
            }
        }
        controls
    }

    /// The same on the test ratings of clients, or of all clients of edge servers; `None` where there are none.
    pub fn controls_on(&self, parts: &[On<'_>], metrics: &[&Definition]) -> Vec<(&'static str, Vec<Option<Vec<f64>>>)> {
        let mut controls = vec![("mean", Vec::new()), ("bias", Vec::new())];
        for part in parts {
            let alone = part.client().map(|client| [client]);
            let members = part.members().or(alone.as_ref().map(<[ClientId; 1]>::as_slice)).unwrap_or_default();
            let ratings = members.iter().flat_map(|client| {
                let client = &self.clients[client.index()];
                let Pairs { ends, values } = client.part(Part::Test);
                ends.iter().zip(values).map(|(&(user, item), &value)| {
                    let item = client.item(item, self.users());
                    (client.nodes[user as usize], item, value, self.rated[item as usize])
                })
            });
            for ((_, found), (_, errors)) in controls.iter_mut().zip(self.biases().errors(ratings)) {
                let values = || metrics.iter().map(|metric| metric.of_ratings(&errors)).collect();
                found.push((errors.all.count > 0.0).then(values));
            }
        }
        controls
    }

    /// Numbers of all parts, and of dropped records.
    fn count(&self) -> Vec<(&'static str, u64)> {
        let dropped = &self.split.data.dropped;
        let counts = [
            ("users", self.users()),
            ("items", self.items()),
            ("categories", self.names.len()),
            ("train", self.split.train.len()),
            ("valid", self.split.valid.len()),
            ("test", self.split.test.len()),
            ("trust", self.social.trust.len()),
            ("without_trust", self.social.without_trust),
            ("outside_range", dropped.outside),
            ("repeated", dropped.repeated),
            ("unassigned", self.unheld),
        ];
        counts.map(|(name, count)| (name, count as u64)).to_vec()
    }

    /// Each client's graph in numbers, and how far the nodes of clients overlap.
    pub fn described(&self) -> Value {
        let clients: Vec<Value> = self
            .clients
            .iter()
            .zip(&self.categories)
            .map(|(client, categories)| {
                let [train, valid, test] = client.parts.each_ref().map(|pairs| pairs.ends.len());
                json!({
                    "categories": categories,
                    "users": client.users,
                    "items": client.nodes.len() - client.users,
                    "nodes": client.nodes.len(),
                    "ratings": train + valid + test,
                    "train": train,
                    "valid": valid,
                    "test": test,
                    "trust": client.trust,
                })
            })
            .collect();
        let mut seen = vec![false; self.users() + self.items()];
        let mut all = 0_usize;
        let share = |client: &ClientGraph| {
            let common = client.nodes.iter().filter(|&&node| seen[node as usize]).count();
            let share = (all > 0).then(|| common as f64 / all as f64);
            client.nodes.iter().for_each(|&node| seen[node as usize] = true);
            all += client.nodes.len() - common;
            share
        };
        let shares: Vec<Option<f64>> = self.clients.iter().map(share).collect();
        let mut described = json!({ "clients": clients, "prefix_intersection": shares });
        if self.clients.len() <= MOST_OVERLAPS {
            let common = |one: &ClientGraph, other: &ClientGraph| {
                one.nodes.iter().filter(|node| other.nodes.binary_search(node).is_ok()).count()
            };
            let row = |one| self.clients.iter().map(|other| common(one, other)).collect::<Vec<usize>>();
            described["overlap"] = self.clients.iter().map(row).collect();
        }
        described
    }

    /// Warnings.
    fn warnings(&self) -> Vec<String> {
        let dropped = &self.split.data.dropped;
        let without: Vec<String> = (0..self.clients.len())
            .filter(|&client| self.examples(ClientId::from_index(client)) == 0)
            .map(|client| client.to_string())
            .collect();
        let mut warnings = Vec::new();
        for (count, what) in [
            (self.social.without_trust, "ratings are of users without trust and were dropped"),
            (dropped.outside, "ratings are outside `range` and were dropped"),
            (dropped.repeated, "ratings repeat an earlier pair of user and item; the first of each counts"),
            (self.unheld, "ratings are of categories that are assigned to no client; nobody holds them"),
        ] {
            if count > 0 {
                warnings.push(format!("{count} {what}"));
            }
        }
        if !without.is_empty() {
            warnings
                .push(format!("without a training rating, and so without an update: client {}", without.join(", ")));
        }
        warnings
    }
}
