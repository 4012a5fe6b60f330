//! Networks, jobs, aggregation and metrics in double precision, from the definitions.

#![allow(clippy::needless_range_loop, reason = "one index for several tables, as formulas have it")]

use super::{Case, ITEMS, USERS};
use fedgenie::math::special::normal_quantile;
use fedgenie::model::weights::Tensor;
use fedgenie::rng::{Purpose, Streams};
use std::collections::BTreeMap;

/// A user, a positive, a negative.
pub type Triplet = (usize, usize, usize);

/// `ln(1 + e^{−x})` and its slope.
fn softplus(x: f64) -> (f64, f64) {
    ((1.0 + (-x).exp()).ln(), -1.0 / (1.0 + x.exp()))
}

/// The rating and triplet files.
pub struct Files {
    /// For each user the items of a part, ascending.
    pub parts: BTreeMap<&'static str, Vec<Vec<usize>>>,
    /// In the order of the file; those of training pairs.
    pub triplets: Vec<Triplet>,
}

impl Files {
    /// Reads both: user `u` is called `11 + 3u`, item `i` is called `100 + 7i`.
    pub fn read(ratings: &str, triplets: &str) -> Self {
        let number = |text: &str, first: usize, step: usize| {
            let id: usize = text.parse().unwrap();
            assert_eq!((id - first) % step, 0);
            (id - first) / step
        };
        let mut parts: BTreeMap<&'static str, Vec<Vec<usize>>> =
            ["train", "valid", "test"].map(|part| (part, vec![Vec::new(); USERS])).into();
        for line in ratings.lines().skip(1) {
            let fields: Vec<&str> = line.split(',').collect();
            parts.get_mut(fields[2]).unwrap()[number(fields[0], 11, 3)].push(number(fields[1], 100, 7));
        }
        parts.values_mut().flatten().for_each(|items| items.sort_unstable());
        let triplet = |line: &str| {
            let fields: Vec<&str> = line.split(',').collect();
            (number(fields[0], 11, 3), number(fields[1], 100, 7), number(fields[2], 100, 7))
        };
        Self { parts, triplets: triplets.lines().skip(1).map(triplet).collect() }
    }

    pub fn triplets_of(&self, user: usize) -> Vec<Triplet> {
        self.triplets.iter().copied().filter(|triplet| triplet.0 == user).collect()
    }
}

/// Networks, the item table, and clients' private rows.
#[derive(Clone)]
pub struct Model {
    pub networks: [Vec<f64>; 2],
    pub items: Vec<Vec<f64>>,
    pub users: Vec<Vec<f64>>,
}

impl Model {
    /// Of tensors in the order of [`shapes`].
    pub fn of(case: &Case, tensors: &[Tensor]) -> Self {
        let values = |index: usize| tensors[index].values.iter().map(|&value| f64::from(value));
        let rows = |index: usize| -> Vec<Vec<f64>> {
            values(index).collect::<Vec<_>>().chunks(case.d).map(<[f64]>::to_vec).collect()
        };
        let network = |first: usize| (first..first + 4).flat_map(values).collect();
        Self { items: rows(0), users: rows(1), networks: [network(2), network(6)] }
    }

    /// All numbers in the order of [`shapes`].
    pub fn numbers(&self) -> Vec<f64> {
        let rows = self.items.iter().chain(&self.users).flatten();
        rows.chain(self.networks.iter().flatten()).copied().collect()
    }

    /// The initial model of a run without a file.
    pub fn drawn(case: &Case) -> Self {
        let streams = Streams::new(1);
        let draw = |entity: u32, index: u32, shapes: &[[usize; 2]], counts: &[usize]| {
            let mut stream = streams.stream(Purpose::ModelInit, entity, index);
            let mut numbers = Vec::new();
            for (shape, &count) in shapes.iter().zip(counts) {
                let bound = (6.0 / (shape[0] + shape[1]) as f64).sqrt();
                numbers.push((0..count).map(|_| bound * (2.0 * stream.uniform() - 1.0)).collect::<Vec<f64>>());
            }
            numbers
        };
        let (d, h) = (case.d, case.h);
        let network = |index: u32| {
            let layers = draw(0, index, &[[h, 2 * d], [1, h]], &[2 * d * h, h]);
            [&layers[0][..], &vec![0.0; h], &layers[1], &[0.0]].concat()
        };
        let items = draw(0, 0, &[[ITEMS, d]], &[ITEMS * d]);
        let user = |user: usize| draw(user as u32, 1, &[[USERS, d]], &[d]).remove(0);
        Self {
            networks: [network(2), network(3)],
            items: items[0].chunks(d).map(<[f64]>::to_vec).collect(),
            users: (0..USERS).map(user).collect(),
        }
    }
}

/// Names and shapes of all tensors.
pub fn shapes(case: &Case) -> Vec<(String, Vec<usize>)> {
    let (d, h) = (case.d, case.h);
    let rows = [("items.weight", ITEMS), ("users.weight", USERS)].map(|(name, rows)| (name.to_owned(), vec![rows, d]));
    let network = |name: &'static str| {
        let parts = [("0.weight", vec![h, 2 * d]), ("0.bias", vec![h]), ("2.weight", vec![1, h]), ("2.bias", vec![1])];
        parts.map(|(part, shape)| (format!("{name}.{part}"), shape))
    };
    rows.into_iter().chain(["ncf", "proxy"].into_iter().flat_map(network)).collect()
}

/// A client's update, and its private state.
pub struct Update {
    pub client: usize,
    pub examples: f64,
    /// Networks, and the whole table, as the client has them.
    pub after: Model,
    /// Rows that travel.
    pub rows: Vec<usize>,
    pub loss: f64,
}

/// Parameters that an optimizer treats together: both networks, the user's row, an item's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    Network(usize),
    User,
    Item(usize),
}

struct Job<'a> {
    case: &'a Case,
    user: usize,
    model: Model,
    start: Model,
    moments: BTreeMap<Group, [Vec<f64>; 2]>,
}

impl Job<'_> {
    fn group(model: &mut Model, user: usize, group: Group) -> &mut Vec<f64> {
        match group {
            Group::Network(network) => &mut model.networks[network],
            Group::User => &mut model.users[user],
            Group::Item(item) => &mut model.items[item],
        }
    }

    /// A step on a mini-batch, the `step`-th; returns the losses. `moves` says which items' rows move.
    fn step(&mut self, step: i32, batch: &[Triplet], moves: impl Fn(usize) -> bool) -> Vec<f64> {
        let (case, user) = (self.case, self.user);
        let mut slopes: BTreeMap<Group, Vec<f64>> = BTreeMap::new();
        let mut losses = Vec::new();
        let mut add = |group: Group, numbers: &[f64]| {
            let sums = slopes.entry(group).or_insert_with(|| vec![0.0; numbers.len()]);
            sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
        };
        let share = 1.0 / batch.len() as f64;
        for &(_, positive, negative) in batch {
            let [network, proxy] = &self.model.networks;
            let inputs =
                [positive, negative].map(|item| [&self.model.users[user][..], &self.model.items[item]].concat());
            let answer = |network: &[f64], which: usize| case.answer(network, &inputs[which]);
            let (loss, slope) = softplus(answer(network, 0) - answer(network, 1));
            for (which, item, sign) in [(0, positive, 1.0), (1, negative, -1.0)] {
                let (of_network, of_input) = case.slopes(network, &inputs[which], sign * slope * share);
                add(Group::Network(0), &of_network);
                add(Group::User, &of_input[..case.d]);
                add(Group::Item(item), &of_input[case.d..]);
            }
            if case.is_pairwise {
                let (predicted, slope) = softplus(answer(proxy, 0) - answer(proxy, 1));
                let by = 2.0 * (predicted - loss) * slope * share;
                for (which, sign) in [(0, 1.0), (1, -1.0)] {
                    add(Group::Network(1), &case.slopes(proxy, &inputs[which], sign * by).0);
                }
            } else {
                let by = 2.0 * (answer(proxy, 0) - loss) * share;
                add(Group::Network(1), &case.slopes(proxy, &inputs[0], by).0);
            }
            losses.push(loss);
        }
        slopes.retain(|group, _| !matches!(group, Group::Item(item) if !moves(*item)));
        let norm = slopes.values().flatten().map(|slope| slope * slope).sum::<f64>().sqrt();
        let scale = case.clip.map_or(1.0, |most| f64::min(1.0, most / (norm + 1e-6)));
        for (&group, slopes) in &slopes {
            let start = Self::group(&mut self.start, user, group).clone();
            let numbers = Self::group(&mut self.model, user, group);
            let [mean, square] =
                self.moments.entry(group).or_insert_with(|| [vec![0.0; start.len()], vec![0.0; start.len()]]);
            for at in 0..start.len() {
                let slope = slopes[at] * scale + case.proximal * (numbers[at] - start[at]);
                if !case.is_adam {
                    numbers[at] -= case.rate * slope;
                    continue;
                }
                mean[at] = 0.9 * mean[at] + 0.1 * slope;
                square[at] = 0.999 * square[at] + 0.001 * slope * slope;
                let (mean, square) = (mean[at] / (1.0 - 0.9_f64.powi(step)), square[at] / (1.0 - 0.999_f64.powi(step)));
                numbers[at] -= case.rate * mean / (square.sqrt() + 1e-8);
            }
        }
        losses
    }
}

impl Case {
    fn weights(&self) -> usize {
        self.h * (2 * self.d + 2) + 1
    }

    /// Bytes of the whole model, as it is sent down.
    pub fn model_bytes(&self) -> u64 {
        4 * (2 * self.weights() + ITEMS * self.d) as u64
    }

    /// Bytes of an update with so many rows, each with its id.
    pub fn update_bytes(&self, rows: usize) -> u64 {
        4 * (2 * self.weights() + rows * (self.d + 1)) as u64
    }

    /// Hidden numbers before ReLU.
    fn hidden(&self, network: &[f64], input: &[f64]) -> Vec<f64> {
        let (first, rest) = network.split_at(2 * self.d * self.h);
        let sum = |row: &[f64]| row.iter().zip(input).map(|(weight, number)| weight * number).sum::<f64>();
        first.chunks(2 * self.d).zip(rest).map(|(row, bias)| sum(row) + bias).collect()
    }

    /// (11) and (12).
    pub fn answer(&self, network: &[f64], input: &[f64]) -> f64 {
        let second = &network[(2 * self.d + 1) * self.h..];
        let hidden = self.hidden(network, input).into_iter().map(|unit| unit.max(0.0));
        hidden.zip(second).map(|(unit, weight)| unit * weight).sum::<f64>() + second[self.h]
    }

    /// Slopes of `by` times the answer, by the network's weights and by its input.
    fn slopes(&self, network: &[f64], input: &[f64], by: f64) -> (Vec<f64>, Vec<f64>) {
        let (d, h) = (self.d, self.h);
        let (mut of_network, mut of_input) = (vec![0.0; network.len()], vec![0.0; 2 * d]);
        for (unit, value) in self.hidden(network, input).into_iter().enumerate() {
            of_network[(2 * d + 1) * h + unit] = by * value.max(0.0);
            if value > 0.0 {
                let through = by * network[(2 * d + 1) * h + unit];
                of_network[2 * d * h + unit] = through;
                for at in 0..2 * d {
                    of_network[unit * 2 * d + at] = through * input[at];
                    of_input[at] += through * network[unit * 2 * d + at];
                }
            }
        }
        *of_network.last_mut().unwrap() = by;
        (of_network, of_input)
    }

    /// True and predicted losses of a user's triplets, summed.
    pub fn sums(&self, model: &Model, triplets: &[Triplet]) -> [f64; 2] {
        let [network, proxy] = &model.networks;
        let mut sums = [0.0; 2];
        for &(user, positive, negative) in triplets {
            let answer = |network: &[f64], item: usize| {
                self.answer(network, &[&model.users[user][..], &model.items[item]].concat())
            };
            let difference = |network: &[f64]| answer(network, positive) - answer(network, negative);
            sums[0] += softplus(difference(network)).0;
            sums[1] += if self.is_pairwise { softplus(difference(proxy)).0 } else { answer(proxy, positive) };
        }
        sums
    }

    /// The triplets of a job's epochs, in the order in which it meets them.
    pub fn epochs(&self, files: &Files, client: usize, number: u32) -> [Vec<Triplet>; 2] {
        let positives = &files.parts["train"][client];
        let unknown: Vec<usize> = (0..ITEMS).filter(|item| !positives.contains(item)).collect();
        let given = files.triplets_of(client);
        let stream = |purpose| Streams::new(1).stream(purpose, client as u32, number);
        let (mut shuffles, mut draws) = (stream(Purpose::BatchOrder), stream(Purpose::TrainingNoise));
        let mut order: Vec<usize> = (0..if self.has_triplets { given.len() } else { positives.len() }).collect();
        [0, 1].map(|_| {
            shuffles.shuffle(&mut order);
            let mut draw = || unknown[draws.below(unknown.len() as u64) as usize];
            let mut triplet =
                |&place: &usize| if self.has_triplets { given[place] } else { (client, positives[place], draw()) };
            order.iter().map(&mut triplet).collect()
        })
    }

    /// The job of a client in a round.
    pub fn train(&self, files: &Files, model: &Model, client: usize, number: u32) -> Update {
        let epochs = self.epochs(files, client, number);
        let positives = &files.parts["train"][client];
        let (start, moments) = (model.clone(), BTreeMap::new());
        let mut job = Job { case: self, user: client, model: model.clone(), start, moments };
        let (mut step, mut losses) = (0, Vec::new());
        for (examples, epoch) in epochs.iter().zip(0..) {
            for batch in examples.chunks(self.batch) {
                step += 1;
                let moves = |item: usize| !self.is_interacted || positives.binary_search(&item).is_ok();
                let found = job.step(step, batch, moves);
                if epoch == 0 {
                    losses.extend(found);
                }
            }
        }
        let met =
            |item: &usize| epochs.iter().flatten().any(|&(_, positive, negative)| [positive, negative].contains(item));
        let moves = |item: &usize| !self.is_interacted || positives.contains(item);
        let mut rows: Vec<usize> = (0..ITEMS).filter(|item| met(item) && moves(item)).collect();
        if self.noise == Some("table") {
            rows = (0..ITEMS).collect();
        }
        let mut after = job.model;
        if self.noise.is_some() {
            let mut stream = Streams::new(1).stream(Purpose::Privacy, client as u32, number);
            for &row in &rows {
                after.items[row].iter_mut().for_each(|number| *number += 0.1 * normal_quantile(stream.uniform()));
            }
        }
        let loss = losses.iter().sum::<f64>() / losses.len() as f64;
        Update { client, examples: epochs[0].len() as f64, after, rows, loss }
    }

    /// The mean of the changes, by numbers of examples.
    pub fn aggregate(&self, model: &Model, updates: &[Update]) -> Model {
        let mut next = model.clone();
        let total: f64 = updates.iter().map(|update| update.examples).sum();
        for update in updates {
            for network in 0..2 {
                for at in 0..self.weights() {
                    let change = update.after.networks[network][at] - model.networks[network][at];
                    next.networks[network][at] += update.examples / total * change;
                }
            }
            for &row in &update.rows {
                let senders = updates.iter().filter(|update| update.rows.contains(&row));
                let of_row: f64 = senders.map(|update| update.examples).sum();
                let total = if self.is_by_selected { total } else { of_row };
                for at in 0..self.d {
                    let change = update.after.items[row][at] - model.items[row][at];
                    next.items[row][at] += update.examples / total * change;
                }
            }
            next.users[update.client] = update.after.users[update.client].clone();
        }
        next
    }

    /// `auc`, then `hr`, `ndcg`, `recall`, `precision`, `f1` at `k` of a user; `None` without a relevant item.
    pub fn ranked(&self, files: &Files, model: &Model, user: usize, part: &str, k: usize) -> Option<[f64; 6]> {
        let of = |part: &str, item: &usize| files.parts[part][user].contains(item);
        let is_known = |item: &usize| of("train", item) || part == "test" && of("valid", item);
        let mut candidates: Vec<usize> = (0..ITEMS).filter(|item| !is_known(item)).collect();
        let score =
            |item: usize| self.answer(&model.networks[0], &[&model.users[user][..], &model.items[item]].concat());
        candidates.sort_by(|&one, &other| score(other).total_cmp(&score(one)));
        assert!(candidates.windows(2).all(|pair| score(pair[0]) - score(pair[1]) > 1e-6), "no ties to speak of");
        let is_relevant: Vec<bool> = candidates.iter().map(|item| of(part, item)).collect();
        let relevant = is_relevant.iter().filter(|&&is_relevant| is_relevant).count();
        if relevant == 0 || relevant == candidates.len() {
            return None;
        }
        let (mut pairs, mut gain) = (0, 0.0);
        for (place, _) in is_relevant.iter().enumerate().filter(|(_, is_relevant)| **is_relevant) {
            pairs += is_relevant[place..].iter().filter(|&&is_relevant| !is_relevant).count();
            gain += if place < k { 1.0 / (place as f64 + 2.0).log2() } else { 0.0 };
        }
        let hits = is_relevant[..k].iter().filter(|&&is_relevant| is_relevant).count() as f64;
        let ideal: f64 = (0..k.min(relevant)).map(|place| 1.0 / (place as f64 + 2.0).log2()).sum();
        let (recall, precision) = (hits / relevant as f64, hits / k as f64);
        let f1 = if hits > 0.0 { 2.0 * precision * recall / (precision + recall) } else { 0.0 };
        let auc = pairs as f64 / (relevant * (candidates.len() - relevant)) as f64;
        Some([auc, hits.min(1.0), gain / ideal, recall, precision, f1])
    }
}

/// Spearman's correlation by differences of ranks, for numbers without ties.
pub fn spearman(pairs: &[[f64; 2]]) -> f64 {
    let n = pairs.len() as f64;
    let rank = |which: usize, number: f64| pairs.iter().filter(|pair| pair[which] < number).count() as f64;
    let squares: f64 = pairs.iter().map(|pair| (rank(0, pair[0]) - rank(1, pair[1])).powi(2)).sum();
    1.0 - 6.0 * squares / (n * (n * n - 1.0))
}
