//! S-FedAvg: every value of a set, Shapley value, relevance and draw recomputed from jobs that are trained apart, and
//! settings that are refused.

use super::divfl::change;
use super::fedacs::{ids, numbers, rounds};
use super::mini_batch::{first_by_clock, sent};
use super::support::{SCENARIO, Workplace, changed, labelled, world};
use fedgenie::id::ClientId;
use fedgenie::rng::{Purpose, Streams};
use fedgenie::world::World;
use std::collections::BTreeMap;

/// Seven clients, three at a time, a linear model; values are large, so that they decide.
const WORLD: &str = r#"
name = "shapley"
seeds = 1
stop.rounds = 12
[population]
clients = 7
interrupted = "run-on"
latency.download.constant = "0.1 s"
latency.compute.exponential = { mean.uniform = ["0.2 s", "1.5 s"], shift = "0.05 s" }
latency.upload.constant = "0.15 s"
[task.linear-regression]
features = 4
examples = 300
[training]
batch = 16
optimizer = { sgd = { lr = 0.05 } }
[protocol.synchronous]
cohort = 3
[policy.shapley]
beta = 3.0
"#;

const LATE: &str = "[protocol.deadline]\ncohort = 3\ndeadline = \"0.8 s\"\nlate = { carry = {} }\n";

/// What a server's optimizer does not change: the mean error of a model on the test examples, negated.
fn quality(world: &World, model: &[f64]) -> f64 {
    let test = &labelled(world).data.test;
    let features = test.features();
    let error = |(row, target): (usize, &f32)| {
        let row = features.row(row);
        let product: f64 = row.iter().zip(model).map(|(x, w)| f64::from(*x) * w).sum();
        (product + model.last().unwrap() - f64::from(*target)).powi(2)
    };
    let values = test.values().unwrap();
    -values.iter().enumerate().map(error).sum::<f64>() / values.len() as f64
}

/// All orders of a few places.
fn orders(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let with = |order: Vec<usize>| (0..count).map(move |at| [&order[..at], &[count - 1], &order[at..]].concat());
    orders(count - 1).into_iter().flat_map(with).collect()
}

/// The mean gain of each place over some orders.
fn gains(orders: &[Vec<usize>], value: impl Fn(&[usize]) -> f64) -> Vec<f64> {
    let mut sums = vec![0.0; orders[0].len()];
    for order in orders {
        for taken in 0..order.len() {
            sums[order[taken]] += value(&order[..=taken]) - value(&order[..taken]);
        }
    }
    sums.iter().map(|sum| sum / orders.len() as f64).collect()
}

#[derive(Clone, Copy)]
struct Rule {
    alpha: f64,
    beta: f64,
    exact: usize,
    permutations: u32,
}

const RULE: Rule = Rule { alpha: 0.75, beta: 3.0, exact: 12, permutations: 5 };

/// Plays 12 rounds and compares each with the rule. Returns how far the largest probability was from the least, and how
/// many updates were late.
fn checked(scenario: &str, rule: Rule) -> (f64, usize) {
    let world = world(scenario, 1);
    let sizes: Vec<f64> = (0..7).map(|client| labelled(&world).partition.size(ClientId(client)) as f64).collect();
    let (lines, mut models) = (rounds(scenario, 1, 12), sent(scenario, &world, 12).into_iter());
    let mut sent = vec![models.next().unwrap()];
    let mut relevance = [1.0 / 7.0_f64; 7];
    let (mut spread, mut late) = (0.0_f64, 0);
    for (turn, round) in (1_usize..).zip(&lines) {
        let said = &round["explain"][0];
        let candidates = ids(&said["clients"]);
        let weights: Vec<(usize, f64)> = candidates.iter().map(|&client| (client, relevance[client].exp())).collect();
        let all: f64 = weights.iter().map(|weight| weight.1).sum();
        for ((&(client, weight), found), p) in weights.iter().zip(numbers(&said["relevance"])).zip(numbers(&said["p"]))
        {
            assert!((found - relevance[client]).abs() < 1e-4, "{turn}, {client}: {found}, {}", relevance[client]);
            assert!((p - weight / all).abs() < 1e-4, "{turn}, {client}: {p}, {}", weight / all);
            spread = spread.max(weight / all - 1.0 / candidates.len() as f64);
        }
        let mut rng = Streams::new(1).stream(Purpose::Policy, 0, turn as u32);
        assert_eq!(ids(&round["selected"]), first_by_clock(&weights, candidates.len().min(3), &mut rng), "{turn}");

        // Of the updates that are aggregated, the round in which each was dispatched.
        let joined = round["joined"].as_array().into_iter().flatten();
        let number = |value: &serde_json::Value| value.as_u64().unwrap() as usize;
        let mut of: BTreeMap<usize, usize> =
            joined.map(|late| (number(&late["client"]), number(&late["round"]))).collect();
        late += of.len();
        of.extend(ids(&round["arrived"]).into_iter().map(|client| (client, turn)));
        let clients: Vec<usize> = of.keys().copied().collect();
        assert_eq!(ids(&round["updates"]["clients"]), clients);
        if clients.is_empty() {
            sent.push(sent[turn - 1].clone());
            continue;
        }
        let changes: Vec<Vec<f64>> =
            of.iter().map(|(&client, &round)| change(&world, client, round, &sent[round - 1]).unwrap()).collect();
        let value = |places: &[usize]| {
            let all: f64 = places.iter().map(|&place| sizes[clients[place]]).sum();
            let mut model: Vec<f64> = sent[turn - 1].iter().map(|number| f64::from(*number)).collect();
            for &place in places {
                let share = sizes[clients[place]] / all;
                model.iter_mut().zip(&changes[place]).for_each(|(number, change)| *number += share * change);
            }
            quality(&world, &model)
        };
        let found = if clients.len() <= rule.exact {
            gains(&orders(clients.len()), value)
        } else {
            let seed = Streams::new(1).stream(Purpose::Solver, 0, turn as u32).bits();
            let drawn = |order| {
                let mut places: Vec<usize> = (0..clients.len()).collect();
                Streams::new(seed).stream(Purpose::Solver, 0, order).shuffle(&mut places);
                places
            };
            gains(&(0..rule.permutations).map(drawn).collect::<Vec<_>>(), value)
        };
        for (&client, shapley) in clients.iter().zip(&found) {
            relevance[client] = rule.alpha * relevance[client] + rule.beta * shapley;
        }
        let after = &said["after"];
        for (client, shapley) in ids(&after["clients"]).into_iter().zip(numbers(&after["shapley"])) {
            if let Some(place) = clients.iter().position(|&other| other == client) {
                assert!((shapley - found[place]).abs() < 1e-4, "{turn}, {client}: {shapley}, {found:?}");
            }
        }
        sent.push(models.next().unwrap());
    }
    (spread, late)
}

#[test]
fn every_selection_follows_from_values_of_sets() {
    let (spread, _) = checked(WORLD, RULE);
    assert!(spread > 0.1, "values decide: {spread}");
    let sampled = format!("{WORLD}exact = 2\npermutations = 4\n");
    checked(&sampled, Rule { exact: 2, permutations: 4, ..RULE });
    let shares = changed(WORLD, "beta = 3.0", "alpha = 0.4");
    checked(&shares, Rule { alpha: 0.4, beta: 0.6, ..RULE });
    let late = changed(WORLD, "[protocol.synchronous]\ncohort = 3\n", LATE);
    assert!(checked(&late, RULE).1 >= 3);
}

/// Client by client: of values 0, 40, 60, 70, 80, 75, 85 and 90 of the sets ∅, 0, 1, 01, 2, 02, 12 and 012, the gains
/// over all six orders add up to 95, 185 and 260.
#[test]
fn three_clients_by_hand() {
    let values = [0.0, 40.0, 60.0, 70.0, 80.0, 75.0, 85.0, 90.0];
    let found = gains(&orders(3), |places| values[places.iter().map(|place| 1 << place).sum::<usize>()]);
    for (found, sum) in found.iter().zip([95.0, 185.0, 260.0]) {
        assert!((found - sum / 6.0).abs() < 1e-12, "{found}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let learned = &WORLD[WORLD.find("[task").unwrap()..WORLD.find("[protocol").unwrap()];
    for (from, to, part) in [
        ("beta = 3.0", "alpha = 1.5", "alpha"),
        ("beta = 3.0", "alpha = -0.1", "alpha"),
        ("beta = 3.0", "beta = -1.0", "beta"),
        ("beta = 3.0", "exact = 13", "exact"),
        ("beta = 3.0", "permutations = 0", "permutations"),
        (learned, "[task.scripted]\nvalues = [0.5]\n", "subsets"),
        (learned, "[task.none]\n", "subsets"),
    ] {
        let answer = Workplace::with(&changed(WORLD, from, to)).fedgenie(&["run", SCENARIO]);
        assert_eq!(answer.code, 2, "{to}: {answer:?}");
        assert!(["shapley", part].iter().all(|word| answer.stderr.contains(word)), "{to}: {}", answer.stderr);
    }
}
