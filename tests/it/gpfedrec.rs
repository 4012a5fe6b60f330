//! The model `gpfedrec` from outside: jobs, neighbours, tables of participants and the global one, worked out again in
//! double precision from the files that a run starts from and the clients that it says it selected.

use super::support::{SCENARIO, Workplace};
use fedgenie::model::weights::{Tensor, read_tensors, to_safetensors};
use std::fmt::Write;

const USERS: usize = 6;
const ITEMS: usize = 10;
const D: usize = 2;
const H: usize = 3;
const WEIGHTS: usize = H * (2 * D + 2) + 1;
const RATE: f64 = 0.4;
const REG: f64 = 3.0;

/// Items of a user's training ratings; the test item is the user's number plus 4.
const TRAIN: [&[usize]; USERS] = [&[0, 1, 2], &[0, 2, 3], &[1, 3, 7], &[0, 1], &[2, 5, 9], &[0, 6, 8]];

/// User, positive, negative. Of user 2, item 7 has no triplet: it is pulled all the same.
const TRIPLETS: [(usize, usize, usize); 17] = [
    (0, 0, 5),
    (0, 1, 4),
    (0, 2, 7),
    (0, 2, 9),
    (1, 0, 9),
    (1, 2, 1),
    (1, 3, 8),
    (2, 1, 0),
    (2, 3, 2),
    (3, 0, 6),
    (3, 1, 2),
    (4, 2, 3),
    (4, 5, 1),
    (4, 9, 0),
    (5, 0, 2),
    (5, 6, 4),
    (5, 8, 3),
];

/// Numbers without a pattern from −1 to 1, exact in `f32`.
fn scrambled(index: usize) -> f64 {
    let mixed = (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    f64::from((mixed as f64 / (1_u64 << 23) as f64 - 1.0) as f32)
}

fn network_shapes() -> [(&'static str, Vec<usize>); 4] {
    [("ncf.0.weight", vec![H, 2 * D]), ("ncf.0.bias", vec![H]), ("ncf.2.weight", vec![1, H]), ("ncf.2.bias", vec![1])]
}

fn start() -> Vec<Tensor> {
    let rows = [("items.weight", vec![ITEMS, D]), ("users.weight", vec![USERS, D])];
    let mut index = 0;
    let tensor = |(name, shape): (&str, Vec<usize>)| {
        let count = shape.iter().product::<usize>();
        index += count;
        let values = (index - count..index).map(|index| scrambled(index) as f32).collect();
        Tensor { name: name.to_owned(), shape, values }
    };
    rows.into_iter().chain(network_shapes()).map(tensor).collect()
}

fn workplace(updated: &str, weighting: &str, reg: f64) -> Workplace {
    let place = Workplace::with(&format!(
        r#"name = "guided"
seeds = 1
[stop]
rounds = 6
[population.latency]
download = {{ constant = "1 s" }}
compute = {{ exponential = {{ mean = "1 s" }} }}
upload = {{ constant = "1 s" }}
[task.recommendation]
data = {{ csv = {{ file = "ratings.csv", split = "split" }} }}
split = "file"
partition = "users"
model = {{ gpfedrec = {{ dimensions = {D}, hidden = {H}, reg = {reg:?} }} }}
updated_items = "{updated}"
triplets = "triplets.csv"
missing_triplets = "skip"
start = "start.safetensors"
[training]
epochs = 2
batch = 10
optimizer = {{ sgd = {{ lr = {RATE} }} }}
[aggregation]
weighting = "{weighting}"
[protocol.synchronous]
cohort = 4
[policy.random]
"#
    ));
    let mut ratings = "user,item,split\n".to_owned();
    for (user, items) in TRAIN.iter().enumerate() {
        for item in *items {
            let _ = writeln!(ratings, "{user},{item},train");
        }
        let _ = writeln!(ratings, "{user},{},test", user + 4);
    }
    place.write("ratings.csv", &ratings);
    let lines = TRIPLETS.iter().map(|(user, positive, negative)| format!("{user},{positive},{negative}\n"));
    place.write("triplets.csv", format!("user,positive,negative\n{}", lines.collect::<String>()));
    place.write("start.safetensors", to_safetensors(&start()));
    place
}

/// The network's answer to two rows, and the slopes by weights, the user's row and the item's.
fn answer(network: &[f64], user: &[f64], item: &[f64]) -> (f64, Vec<f64>, [Vec<f64>; 2]) {
    let input = [user, item].concat();
    let (mut value, mut slopes, mut by_input) = (network[WEIGHTS - 1], vec![0.0; WEIGHTS], vec![0.0; 2 * D]);
    slopes[WEIGHTS - 1] = 1.0;
    for unit in 0..H {
        let row = &network[unit * 2 * D..(unit + 1) * 2 * D];
        let bias = network[2 * D * H + unit];
        let second = (2 * D + 1) * H + unit;
        let sum: f64 = row.iter().zip(&input).map(|(weight, number)| weight * number).sum::<f64>() + bias;
        value += network[second] * sum.max(0.0);
        slopes[second] = sum.max(0.0);
        if sum > 0.0 {
            slopes[2 * D * H + unit] = network[second];
            for at in 0..2 * D {
                slopes[unit * 2 * D + at] = network[second] * input[at];
                by_input[at] += network[second] * row[at];
            }
        }
    }
    (value, slopes, [by_input[..D].to_vec(), by_input[D..].to_vec()])
}

struct World {
    is_interacted: bool,
    is_uniform: bool,
    reg: f64,
    items: Vec<Vec<f64>>,
    users: Vec<Vec<f64>>,
    networks: Vec<Vec<f64>>,
    /// Rows that the server made for a participant, in the order of its items.
    targets: Vec<Option<Vec<Vec<f64>>>>,
}

impl World {
    /// The item table after a client's job, and which rows it sends.
    fn train(&mut self, user: usize) -> (Vec<Vec<f64>>, Vec<usize>) {
        let mine: Vec<_> = TRIPLETS.iter().filter(|triplet| triplet.0 == user).copied().collect();
        let mut table = self.items.clone();
        let start = TRAIN[user].iter().map(|&item| table[item].clone()).collect();
        let targets = self.targets[user].clone().unwrap_or(start);
        let moves = |item: &usize| !self.is_interacted || TRAIN[user].contains(item);
        for _ in 0..2 {
            let mut of_items = vec![vec![0.0; D]; ITEMS];
            let (mut of_user, mut of_network) = (vec![0.0; D], vec![0.0; WEIGHTS]);
            for &(_, positive, negative) in &mine {
                let [up, down] =
                    [positive, negative].map(|item| answer(&self.networks[user], &self.users[user], &table[item]));
                let slope = -1.0 / (1.0 + (up.0 - down.0).exp()) / mine.len() as f64;
                for (item, sign, (_, weights, [by_user, by_item])) in
                    [(positive, slope, &up), (negative, -slope, &down)]
                {
                    of_network.iter_mut().zip(weights).for_each(|(sum, number)| *sum += sign * number);
                    of_user.iter_mut().zip(by_user).for_each(|(sum, number)| *sum += sign * number);
                    of_items[item].iter_mut().zip(by_item).for_each(|(sum, number)| *sum += sign * number);
                }
            }
            for (&item, target) in TRAIN[user].iter().zip(&targets) {
                for at in 0..D {
                    let factor = 2.0 * self.reg / (TRAIN[user].len() * D) as f64;
                    of_items[item][at] += factor * (table[item][at] - target[at]);
                }
            }
            let descend = |numbers: &mut [f64], slopes: &[f64]| {
                numbers.iter_mut().zip(slopes).for_each(|(number, slope)| *number -= RATE * slope);
            };
            descend(&mut self.users[user], &of_user);
            descend(&mut self.networks[user], &of_network);
            (0..ITEMS).filter(moves).for_each(|item| descend(&mut table[item], &of_items[item]));
        }
        let met = mine.iter().flat_map(|&(_, positive, negative)| [positive, negative]).chain(TRAIN[user].to_vec());
        let mut sent: Vec<usize> = met.filter(moves).collect();
        sent.sort_unstable();
        sent.dedup();
        (table, sent)
    }

    /// A round of some clients, ascending; returns how many rows were sent, and whether anybody had neighbours.
    fn round(&mut self, selected: &[usize]) -> (usize, bool) {
        let trained: Vec<_> = selected.iter().map(|&user| self.train(user)).collect();
        let changes: Vec<Vec<f64>> = trained
            .iter()
            .map(|(table, _)| {
                table.concat().iter().zip(self.items.concat()).map(|(after, before)| after - before).collect()
            })
            .collect();
        let dot = |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(one, other)| one * other).sum::<f64>();
        let cosine = |one: &[f64], other: &[f64]| dot(one, other) / (dot(one, one) * dot(other, other)).sqrt();
        let cosines: Vec<Vec<f64>> =
            changes.iter().map(|one| changes.iter().map(|other| cosine(one, other)).collect()).collect();
        let mean = cosines.concat().iter().sum::<f64>() / (selected.len() * selected.len()) as f64;
        let count = |user: usize| TRIPLETS.iter().filter(|triplet| triplet.0 == user).count() as f64;
        let (mut global, mut total, mut has_neighbours) = (vec![vec![0.0; D]; ITEMS], 0.0, false);
        for (index, &user) in selected.iter().enumerate() {
            let alike: Vec<usize> = (0..selected.len()).filter(|&other| cosines[index][other] > mean).collect();
            has_neighbours |= alike.len() > 1;
            let mut table = vec![vec![0.0; D]; ITEMS];
            for other in &alike {
                for (row, of_other) in table.iter_mut().zip(&trained[*other].0) {
                    row.iter_mut().zip(of_other).for_each(|(sum, number)| *sum += number / alike.len() as f64);
                }
            }
            self.targets[user] = Some(TRAIN[user].iter().map(|&item| table[item].clone()).collect());
            let weight = if self.is_uniform { 1.0 } else { count(user) };
            total += weight;
            for (row, of_user) in global.iter_mut().zip(&table) {
                row.iter_mut().zip(of_user).for_each(|(sum, number)| *sum += weight * number);
            }
        }
        self.items = global.into_iter().map(|row| row.into_iter().map(|sum| sum / total).collect()).collect();
        (trained.iter().map(|(_, sent)| sent.len()).sum(), has_neighbours)
    }

    fn auc(&self) -> f64 {
        let of_user = |user: usize| {
            let score = |item: usize| answer(&self.networks[user], &self.users[user], &self.items[item]).0;
            let others = (0..ITEMS).filter(|item| !TRAIN[user].contains(item) && *item != user + 4);
            let others: Vec<f64> = others.map(score).collect();
            // Where all hidden units of a network are at rest, scores are equal.
            let won = |other: &f64| match score(user + 4) - other {
                lead if lead.abs() < 1e-9 => 0.5,
                lead => f64::from(u8::from(lead > 0.0)),
            };
            others.iter().map(won).sum::<f64>() / others.len() as f64
        };
        (0..USERS).map(of_user).sum::<f64>() / USERS as f64
    }
}

fn replay(updated: &str, weighting: &str, reg: f64) -> Vec<f64> {
    let place = workplace(updated, weighting, reg);
    let answer = place.fedgenie(&["run", SCENARIO, "--out", "out", "--models"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    let numbers = |tensor: &Tensor| tensor.values.iter().map(|&number| f64::from(number)).collect::<Vec<f64>>();
    let rows = |tensor: &Tensor, width: usize| numbers(tensor).chunks(width).map(<[f64]>::to_vec).collect::<Vec<_>>();
    let begun = start();
    let network: Vec<f64> = begun[2..].iter().flat_map(numbers).collect();
    let mut world = World {
        is_interacted: updated == "interacted",
        is_uniform: weighting == "uniform",
        reg,
        items: rows(&begun[0], D),
        users: rows(&begun[1], D),
        networks: vec![network; USERS],
        targets: vec![None; USERS],
    };
    let (mut up, mut guided) = (0, 0);
    for round in place.lines("out/runs/random-s1/rounds.jsonl") {
        let mut selected: Vec<usize> = serde_json::from_value(round["selected"].clone()).unwrap();
        selected.sort_unstable();
        let (sent, has_neighbours) = world.round(&selected);
        up += 4 * (sent * (D + 1)) as u64;
        guided += usize::from(has_neighbours);
        assert_eq!(round["up_bytes"], up);
        let (found, expected) = (round["metrics"]["test_auc"].as_f64().unwrap(), world.auc());
        assert!((found - expected).abs() < 1e-6, "round {}: {found}, {expected}", round["round"]);
    }
    assert!(guided > 2, "somebody is guided by others");
    let shapes = [("items.weight".to_owned(), vec![ITEMS, D]), ("users.weight".to_owned(), vec![USERS, D])];
    let of_users = network_shapes().map(|(name, shape)| (format!("users.{name}"), [vec![USERS], shape].concat()));
    let file = place.path("out/runs/random-s1/model.safetensors");
    let tensors = read_tensors(&file, shapes.into_iter().chain(of_users).collect()).unwrap();
    let mut expected = vec![world.items.concat(), world.users.concat()];
    let mut begin = 0;
    for (_, shape) in network_shapes() {
        let end = begin + shape.iter().product::<usize>();
        expected.push(world.networks.iter().flat_map(|network| network[begin..end].to_vec()).collect());
        begin = end;
    }
    for (tensor, expected) in tensors.iter().zip(&expected) {
        let found = numbers(tensor);
        assert_eq!(found.len(), expected.len(), "{}", tensor.name);
        for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
            assert!((found - expected).abs() < 1e-5, "number {index} of {}: {found}, {expected}", tensor.name);
        }
    }
    let same = place.fedgenie(&["verify", "out"]);
    assert_eq!(same.code, 0, "{same:?}");
    expected[0].clone()
}

#[test]
fn participants_are_guided_by_those_who_change_alike() {
    let paper = replay("interacted", "uniform", REG);
    let weighted = replay("interacted", "data-size", REG);
    let free = replay("interacted", "uniform", 0.0);
    replay("touched", "uniform", REG);
    assert!(paper != weighted && paper != free, "weights and pull matter");
}

#[test]
fn a_negative_pull_is_refused() {
    let place = workplace("interacted", "uniform", -1.0);
    let answer = place.fedgenie(&["run", SCENARIO, "--out", "out"]);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("gpfedrec.reg: found -1; expected a number of at least 0"), "{answer:?}");
}
