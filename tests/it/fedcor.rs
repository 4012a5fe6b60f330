//! FedCor: losses, vectors, covariances and gains recomputed with matrices of all pairs, uniform draws, the cost of
//! probes, and settings that are refused.

use super::fedacs::{ids, numbers, rounds};
use super::mini_batch::{error, sent};
use super::support::{SCENARIO, Workplace, changed, labelled, world};
use fedgenie::id::ClientId;
use fedgenie::math::special::normal_quantile;
use fedgenie::rng::{Purpose, Streams};
use serde_json::Value;

/// Six clients, two at a time; four uniform rounds, then every third.
const WORLD: &str = r#"
name = "fedcor"
seeds = 1
stop.rounds = 16
[population]
clients = 6
interrupted = "run-on"
latency.download.constant = "1 s"
latency.compute.constant.each = ["6 s", "6 s", "12 s", "6 s", "6 s", "6 s"]
latency.upload.constant = "1 s"
[task.linear-regression]
features = 3
examples = 200
[training]
batch = 8
optimizer = { sgd = { lr = 0.05 } }
[protocol.synchronous]
cohort = 2
[policy.fedcor]
warmup = 4
interval = 3
dimension = 2
iterations = 25
noise = 0.3
"#;

const LATE: &str = "[protocol.deadline]\ncohort = 2\ndeadline = \"9 s\"\nlate = { carry = {} }\n";
const NOISE: f64 = 0.3 * 0.3;

type Matrix = Vec<Vec<f64>>;

/// By Gauss and Jordan.
fn inverse(matrix: &Matrix) -> Matrix {
    let count = matrix.len();
    let mut rows: Matrix = (0..count)
        .map(|row| matrix[row].iter().copied().chain((0..count).map(|at| f64::from(u8::from(at == row)))).collect())
        .collect();
    for at in 0..count {
        let pivot = rows[at][at];
        rows[at].iter_mut().for_each(|number| *number /= pivot);
        for other in (0..count).filter(|&other| other != at) {
            let (factor, pivot) = (rows[other][at], rows[at].clone());
            rows[other].iter_mut().zip(pivot).for_each(|(number, pivot)| *number -= factor * pivot);
        }
    }
    rows.into_iter().map(|row| row[count..].to_vec()).collect()
}

/// The covariances of all.
fn covariance(vectors: &[[f64; 2]]) -> Matrix {
    let of = |one: usize, other: usize| {
        vectors[one][0] * vectors[other][0]
            + vectors[one][1] * vectors[other][1]
            + if one == other { NOISE } else { 0.0 }
    };
    (0..vectors.len()).map(|one| (0..vectors.len()).map(|other| of(one, other)).collect()).collect()
}

/// Fits vectors to observations of all clients, each with the round it is from.
fn fit(vectors: &mut [[f64; 2]], observations: &[(usize, Vec<f64>)], now: usize) {
    let count = vectors.len();
    let (mut first, mut second) = (vec![[0.0; 2]; count], vec![[0.0; 2]; count]);
    for step in 1..=25 {
        let inverse = inverse(&covariance(vectors));
        let mut slope = vec![[0.0; 2]; count];
        for (round, changes) in observations {
            let weight = 0.8_f64.powi((now - round) as i32);
            let solved: Vec<f64> =
                inverse.iter().map(|row| row.iter().zip(changes).map(|(a, b)| a * b).sum()).collect();
            for (client, own) in slope.iter_mut().enumerate() {
                for other in 0..count {
                    let part = inverse[other][client] - solved[other] * solved[client];
                    own[0] += weight * vectors[other][0] * part;
                    own[1] += weight * vectors[other][1] * part;
                }
            }
        }
        for client in 0..count {
            for at in 0..2 {
                let g = slope[client][at];
                first[client][at] = 0.9 * first[client][at] + 0.1 * g;
                second[client][at] = 0.999 * second[client][at] + 0.001 * g * g;
                let mean = first[client][at] / (1.0 - 0.9_f64.powi(step));
                let square = second[client][at] / (1.0 - 0.999_f64.powi(step));
                vectors[client][at] -= 0.01 * mean / (square.sqrt() + 1e-8);
            }
        }
    }
}

const fn is_uniform(turn: usize) -> bool {
    turn <= 4 || (turn - 1).is_multiple_of(3)
}

/// Plays 16 rounds and compares each with the rule; how many selections were not uniform.
fn checked(scenario: &str) -> usize {
    let world = world(scenario, 1);
    let examples: Vec<Vec<u32>> =
        (0..6).map(|client| labelled(&world).partition.client(ClientId(client)).into_owned()).collect();
    let all: f64 = examples.iter().map(|of| of.len() as f64).sum();
    let (lines, mut models) = (rounds(scenario, 1, 16), sent(scenario, &world, 16).into_iter());
    let mut model = models.next().unwrap();
    let mut rng = Streams::new(1).stream(Purpose::Policy, 0, 1);
    let mut vectors = [[0.0; 2]; 6].map(|row: [f64; 2]| row.map(|_| normal_quantile(rng.uniform()) / 2.0_f64.sqrt()));
    let (mut discounts, mut greedy) = ([1.0; 6], 0);
    let (mut before, mut observations): (Vec<f64>, Vec<(usize, Vec<f64>)>) = (Vec::new(), Vec::new());
    for (turn, round) in (1_usize..).zip(&lines) {
        let mean =
            |of: &Vec<u32>| of.iter().map(|&example| error(&world, &model, example)).sum::<f64>() / of.len() as f64;
        let losses: Vec<f64> = examples.iter().map(mean).collect();
        if turn > 1 && is_uniform(turn - 1) {
            observations.push((turn - 1, losses.iter().zip(&before).map(|(now, before)| now - before).collect()));
            observations.retain(|(round, _)| round + 10 >= turn - 1);
            fit(&mut vectors, &observations, turn - 1);
            discounts = [1.0; 6];
        }
        let said = &round["explain"][0];
        let candidates = ids(&said["clients"]);
        let mut sigma = covariance(&vectors);
        for (&client, found) in candidates.iter().zip(numbers(&said["variance"])) {
            assert!(
                (found - sigma[client][client]).abs() < 1e-4,
                "{turn}, {client}: {found}, {}",
                sigma[client][client]
            );
        }
        let is_same = |(one, other): (&f64, &f64)| (one - other).abs() < 1e-12;
        let expected: Vec<f64> = candidates.iter().map(|&client| discounts[client]).collect();
        assert!(numbers(&said["discount"]).iter().zip(&expected).all(is_same), "{turn}: {said}");
        let selected = ids(&round["selected"]);
        if is_uniform(turn) {
            before = losses;
            let mut drawn = candidates.clone();
            let mut rng = Streams::new(1).stream(Purpose::Policy, 0, turn as u32);
            if turn == 1 {
                // The vectors come first.
                (0..12).map(|_| rng.uniform()).for_each(|uniform| assert!(uniform < 1.0));
            }
            for place in 0..candidates.len().min(2) {
                let other = place + rng.below((drawn.len() - place) as u64) as usize;
                drawn.swap(place, other);
            }
            drawn.truncate(2);
            assert_eq!(selected, drawn, "{turn}");
            assert_eq!(ids(&said["uniform"]), drawn, "{turn}");
            assert!(numbers(&said["gain"]).iter().all(|gain| gain.is_nan()), "{turn}");
        } else {
            let there: f64 = candidates.iter().map(|&client| examples[client].len() as f64).sum();
            assert!(there <= all);
            let mut left = candidates.clone();
            assert_eq!(selected.len(), candidates.len().min(2));
            for (place, &chosen) in selected.iter().enumerate() {
                let gain = |client: usize| {
                    let of = |other: &usize| examples[*other].len() as f64 / there * sigma[*other][client];
                    discounts[client] * left.iter().map(of).sum::<f64>() / sigma[client][client].sqrt()
                };
                if place == 0 {
                    for (&client, found) in candidates.iter().zip(numbers(&said["gain"])) {
                        assert!((found - gain(client)).abs() < 1e-4, "{turn}, {client}: {found}, {}", gain(client));
                    }
                }
                let rank = |one: &&usize, other: &&usize| gain(**one).total_cmp(&gain(**other)).then(other.cmp(one));
                let best = *left.iter().max_by(rank).unwrap();
                assert_eq!(chosen, best, "{turn}: {said}");
                let known = sigma.clone();
                for one in 0..6 {
                    for other in 0..6 {
                        sigma[one][other] -= known[one][best] * known[best][other] / known[best][best];
                    }
                }
                left.retain(|&client| client != best);
            }
            selected.iter().for_each(|&client| discounts[client] *= 0.9);
            greedy += 1;
        }
        if !ids(&round["updates"]["clients"]).is_empty() {
            model = models.next().unwrap();
        }
    }
    greedy
}

#[test]
fn every_selection_follows_from_losses() {
    assert_eq!(checked(WORLD), 8);
}

/// Who is at work tells nothing: observations are of others.
#[test]
fn it_plays_with_late_updates() {
    let scenario = changed(WORLD, "[protocol.synchronous]\ncohort = 2\n", LATE);
    let lines = rounds(&scenario, 1, 16);
    assert!(lines.iter().any(|round| ids(&round["explain"][0]["clients"]).len() < 6), "somebody was late");
    for (turn, round) in (1..).zip(&lines) {
        assert_eq!(ids(&round["explain"][0]["uniform"]).is_empty(), !is_uniform(turn), "{round}");
    }
}

/// Four parameters of four bytes go to six clients before selections 1 to 5, 7, 8, 10, 11, 13, 14 and 16: uniform ones,
/// and those after. A pass takes a third of an epoch, and a job is one: 4 s for client 2, after the download.
#[test]
fn losses_are_charged() {
    let asked = [1, 2, 3, 4, 5, 7, 8, 10, 11, 13, 14, 16];
    let (mut down, mut now) = (0.0, 0.0);
    for (turn, round) in (1..).zip(rounds(WORLD, 1, 16)) {
        let number = |value: &Value| value.as_f64().unwrap();
        let is_asked = asked.contains(&turn);
        down += 16.0 * if is_asked { 8.0 } else { 2.0 };
        assert_eq!(number(&round["down_bytes"]), down, "{turn}");
        let job = if ids(&round["selected"]).contains(&2) { 14.0 } else { 8.0 };
        now += job + if is_asked { 5.0 } else { 0.0 };
        assert!((number(&round["closed_s"]) - now).abs() < 1e-8, "{turn}: {round}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let learned = &WORLD[WORLD.find("[task").unwrap()..WORLD.find("[protocol").unwrap()];
    let rounds = "[protocol.synchronous]\ncohort = 2\n";
    for (from, to, part) in [
        ("warmup = 4", "warmup = 0", "warmup"),
        ("interval = 3", "interval = 1", "interval"),
        ("dimension = 2", "dimension = 0", "dimension"),
        ("noise = 0.3", "noise = 0.0", "noise"),
        ("noise = 0.3", "gamma = 0.0", "gamma"),
        ("noise = 0.3", "rate = -1.0", "rate"),
        ("noise = 0.3", "discount = 1.5", "discount"),
        (rounds, "[protocol.buffered]\nconcurrency = 2\nbuffer = 2\n", "synchronous"),
        (rounds, "[protocol.hierarchical]\nedges = 2\ncohort = 1\n", "synchronous"),
        (learned, "[task.scripted]\nvalues = [0.5]\n", "losses"),
    ] {
        let answer = Workplace::with(&changed(WORLD, from, to)).fedgenie(&["run", SCENARIO]);
        assert_eq!(answer.code, 2, "{to}: {answer:?}");
        assert!(["fedcor", part].iter().all(|word| answer.stderr.contains(word)), "{to}: {}", answer.stderr);
    }
}
