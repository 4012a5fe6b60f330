//! Files of ratings and trust, the graphs that clients make of them, and graph networks on these in double precision.

use std::collections::{BTreeMap, BTreeSet};

pub const FEATURES: usize = 3;
const HIDDEN: usize = 4;
const LAYERS: usize = 2;
const LR: f64 = 0.03;

/// Pairs of trust: mutual, to oneself, and to a user without ratings; 250 neither trusts nor is trusted.
pub const TRUST: &str = "truster\ttrustee\n100\t3\n3\t100\n3\t20\n4\t17\n17\t8\n8\t3\n20\t999\n8\t8\n";

const USERS: [u32; 7] = [3, 20, 100, 4, 17, 250, 8];
/// Items and their categories; nobody holds 4.
const ITEMS: [(u32, u32); 9] = [(11, 1), (2, 5), (30, 2), (7, 7), (101, 4), (55, 1), (6, 5), (90, 2), (12, 7)];

/// Numbers without a pattern that matters, between −1 and 1, exact in `f32`.
pub fn number(index: usize) -> f64 {
    f64::from(((index * 2_654_435_761) % 20_001) as f32 / 10_000.0 - 1.0)
}

/// A table in which 3 first gives 11 six stars, which are none, 20 rates 2 twice, and 500 is there for testing alone.
pub fn ratings() -> String {
    let mut text = "category_id\tuser_id\thelpful\tproduct_id\trating\tsplit\n1\t3\t0\t11\t6\ttrain\n".to_owned();
    for (i, (item, category)) in ITEMS.iter().enumerate() {
        for (u, user) in USERS.iter().enumerate() {
            let place = 7 * i + u;
            if place % 4 == 3 {
                continue;
            }
            let split = ["train", "test", "train", "valid", "train"][place % 5];
            text.push_str(&format!("{category}\t{user}\t1\t{item}\t{}\t{split}\n", 1 + (place * place) % 5));
        }
    }
    text + "5\t20\t0\t2\t1\ttrain\n7\t3\t1\t500\t4\ttest\n"
}

/// A client's data, by the names of users and items.
#[derive(Default)]
pub struct Client {
    pub categories: Vec<u32>,
    pub users: BTreeSet<u32>,
    pub items: BTreeSet<u32>,
    /// For each part the ratings.
    pub parts: BTreeMap<String, Vec<(u32, u32, f64)>>,
    pub trust: BTreeSet<(u32, u32)>,
    /// The neighbours of each node.
    pub around: BTreeMap<Node, BTreeSet<Node>>,
}

/// A node: whether it is an item, and its name.
pub type Node = (bool, u32);

impl Client {
    pub fn nodes(&self) -> BTreeSet<Node> {
        let users = self.users.iter().map(|&user| (false, user));
        users.chain(self.items.iter().map(|&item| (true, item))).collect()
    }

    pub fn part(&self, part: &str) -> &[(u32, u32, f64)] {
        self.parts.get(part).map_or(&[], Vec::as_slice)
    }

    fn neighbours(&self) -> BTreeMap<Node, BTreeSet<Node>> {
        let mut around: BTreeMap<Node, BTreeSet<Node>> =
            self.nodes().into_iter().map(|node| (node, BTreeSet::new())).collect();
        let rated = self.part("train").iter().map(|&(user, item, _)| ((false, user), (true, item)));
        let trusted = self.trust.iter().map(|&(one, other)| ((false, one), (false, other)));
        for (one, other) in rated.chain(trusted) {
            around.get_mut(&one).unwrap().insert(other);
            around.get_mut(&other).unwrap().insert(one);
        }
        around
    }
}

/// The remaining contents of the files.
pub struct Files {
    pub users: BTreeSet<u32>,
    pub items: BTreeSet<u32>,
    pub dropped: [usize; 3],
    pub unassigned: usize,
    pub clients: Vec<Client>,
}

pub fn files(assignment: &[&[u32]]) -> Files {
    let trust: BTreeSet<(u32, u32)> = TRUST
        .lines()
        .skip(1)
        .map(|line| line.split_once('\t').unwrap())
        .map(|(one, other)| (one.parse().unwrap(), other.parse().unwrap()))
        .collect();
    let trusting: BTreeSet<u32> = trust.iter().flat_map(|&(one, other)| [one, other]).collect();
    let mut seen = BTreeSet::new();
    let mut found = Files {
        users: BTreeSet::new(),
        items: BTreeSet::new(),
        dropped: [0; 3],
        unassigned: 0,
        clients: assignment.iter().map(|own| Client { categories: own.to_vec(), ..Client::default() }).collect(),
    };
    for line in ratings().lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let whole = |place: usize| fields[place].parse::<u32>().unwrap();
        let (category, user, item, stars) = (whole(0), whole(1), whole(3), whole(4));
        if !trusting.contains(&user) {
            found.dropped[0] += 1;
        } else if !(1..=5).contains(&stars) {
            found.dropped[1] += 1;
        } else if !seen.insert((user, item)) {
            found.dropped[2] += 1;
        } else {
            found.users.insert(user);
            found.items.insert(item);
            let holder = found.clients.iter_mut().find(|client| client.categories.contains(&category));
            let Some(client) = holder else {
                found.unassigned += 1;
                continue;
            };
            client.users.insert(user);
            client.items.insert(item);
            client.parts.entry(fields[5].to_owned()).or_default().push((user, item, f64::from(stars)));
        }
    }
    for client in &mut found.clients {
        let own = trust.iter().filter(|(one, other)| one != other);
        let own = own.filter(|(one, other)| client.users.contains(one) && client.users.contains(other));
        client.trust = own.map(|&(one, other)| (one.min(other), one.max(other))).collect();
        client.around = client.neighbours();
    }
    found
}

/// Names and shapes of all tensors.
pub fn shapes(heads: usize) -> Vec<(String, Vec<usize>)> {
    let mut shapes = Vec::new();
    for layer in 0..LAYERS {
        let name = |tensor: &str| format!("conv.{layer}.{tensor}");
        let inputs = if layer == 0 { FEATURES } else { HIDDEN };
        shapes.push((name("weight"), vec![HIDDEN, inputs]));
        shapes.push((name("edge"), vec![HIDDEN, 2]));
        shapes.push((name("bias"), vec![HIDDEN]));
        if heads > 0 {
            shapes.push((name("att_target"), vec![heads, HIDDEN / heads]));
            shapes.push((name("att_source"), vec![heads, HIDDEN / heads]));
            shapes.push((name("att_edge"), vec![heads, 2]));
        }
    }
    shapes.push(("readout.bias".to_owned(), vec![1]));
    shapes
}

/// A network in double precision: no heads are graph convolution.
pub struct World {
    pub heads: usize,
    pub transition: bool,
    pub files: Files,
}

impl World {
    pub fn parameters(&self) -> usize {
        shapes(self.heads).iter().map(|(_, shape)| shape.iter().product::<usize>()).sum()
    }

    pub fn start(&self) -> Vec<f64> {
        (0..self.parameters()).map(|index| f64::from((0.7 * number(index + 5)) as f32)).collect()
    }

    /// Where a tensor begins.
    pub fn place(&self, name: &str) -> usize {
        let before = shapes(self.heads);
        before.iter().take_while(|(other, _)| other != name).map(|(_, shape)| shape.iter().product::<usize>()).sum()
    }

    /// Row of a node among all: users, then items, ascending.
    fn features(&self, (is_item, name): Node) -> Vec<f64> {
        let place = |names: &BTreeSet<u32>| names.iter().position(|&other| other == name).unwrap();
        let row = if is_item { self.files.users.len() + place(&self.files.items) } else { place(&self.files.users) };
        (0..FEATURES).map(|column| feature(row, column)).collect()
    }

    /// The last layer's rows of a client's graph.
    fn embedded(&self, model: &[f64], client: &Client) -> BTreeMap<Node, Vec<f64>> {
        let around = &client.around;
        let degree = |node: &Node| around[node].len() as f64;
        let transition = |u: &Node, v: &Node| {
            if u == v || !self.transition { [0.0; 2] } else { [1.0 / degree(u), 1.0 / degree(v)] }
        };
        let mut rows: BTreeMap<Node, Vec<f64>> = around.keys().map(|&node| (node, self.features(node))).collect();
        for layer in 0..LAYERS {
            let at = |tensor: &str| self.place(&format!("conv.{layer}.{tensor}"));
            let (weight, edge, bias) = (at("weight"), at("edge"), at("bias"));
            let [target, source, of_edges] = ["att_target", "att_source", "att_edge"].map(at);
            let turned = |row: &[f64], k: usize| {
                row.iter().enumerate().map(|(j, x)| model[weight + k * row.len() + j] * x).sum::<f64>()
            };
            let message = |u: &Node, v: &Node, k: usize| {
                let [one, two] = transition(u, v);
                turned(&rows[v], k) + model[edge + 2 * k] * one + model[edge + 2 * k + 1] * two
            };
            let out = |u: &Node, k: usize| {
                let closed: Vec<Node> = around[u].iter().copied().chain([*u]).collect();
                // Without heads there is no attention.
                let shares: Vec<f64> = if let Some(width) = HIDDEN.checked_div(self.heads) {
                    let head = k / width;
                    let inner = |place: usize, v: &Node| {
                        let place = place + head * width;
                        (0..width).map(|j| model[place + j] * turned(&rows[v], head * width + j)).sum::<f64>()
                    };
                    let score = |v: &Node| {
                        let [one, two] = transition(u, v);
                        let of_edge = of_edges + 2 * head;
                        let sum = inner(target, u) + inner(source, v);
                        let sum = sum + model[of_edge] * one + model[of_edge + 1] * two;
                        if sum > 0.0 { sum.exp() } else { (0.2 * sum).exp() }
                    };
                    let scores: Vec<f64> = closed.iter().map(score).collect();
                    let total: f64 = scores.iter().sum();
                    scores.iter().map(|score| score / total).collect()
                } else {
                    closed.iter().map(|v| 1.0 / ((degree(u) + 1.0) * (degree(v) + 1.0)).sqrt()).collect()
                };
                let sum: f64 = closed.iter().zip(shares).map(|(v, share)| share * message(u, v, k)).sum();
                let sum = sum + model[bias + k];
                if layer + 1 == LAYERS { sum } else { sum.max(0.0) }
            };
            rows = around.keys().map(|u| (*u, (0..HIDDEN).map(|k| out(u, k)).collect())).collect();
        }
        rows
    }

    /// Prediction less rating, of each rating of a part.
    pub fn errors(&self, model: &[f64], client: &Client, part: &str) -> Vec<f64> {
        let rows = self.embedded(model, client);
        let error = |&(user, item, stars): &(u32, u32, f64)| {
            let inner: f64 = rows[&(false, user)].iter().zip(&rows[&(true, item)]).map(|(x, y)| x * y).sum();
            model[model.len() - 1] + inner - stars
        };
        client.part(part).iter().map(error).collect()
    }

    fn loss(&self, model: &[f64], client: &Client) -> f64 {
        mean(self.errors(model, client, "train").into_iter().map(|error| error * error))
    }

    /// Two epochs of one step, slopes by central differences; the first loss as well.
    pub fn trained(&self, model: &[f64], client: &Client) -> (Vec<f64>, f64) {
        let mut own = model.to_vec();
        for _ in 0..2 {
            let slope = |index: usize| {
                let moved = |by: f64| {
                    let mut moved = own.clone();
                    moved[index] += by;
                    self.loss(&moved, client)
                };
                (moved(1e-5) - moved(-1e-5)) / 2e-5
            };
            let slopes: Vec<f64> = (0..own.len()).map(slope).collect();
            own.iter_mut().zip(slopes).for_each(|(weight, slope)| *weight -= LR * slope);
        }
        (own, self.loss(model, client))
    }
}

pub fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.iter().sum::<f64>() / values.len() as f64
}

pub fn feature(row: usize, column: usize) -> f64 {
    number(100 + 7 * row + column)
}
