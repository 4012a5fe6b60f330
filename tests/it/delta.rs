//! DELTA: every distance, probability, draw and weight recomputed from jobs that are trained apart, a trace by hand,
//! and settings that are refused.

use super::divfl::change;
use super::fedacs::{ids, numbers, rounds};
use super::mini_batch::sent;
use super::support::{SCENARIO, Workplace, changed, labelled, world};
use fedgenie::id::ClientId;
use fedgenie::rng::{Purpose, Streams};
use serde_json::Value;
use std::collections::BTreeMap;

/// Eight clients of different sizes and classes, four at a time.
const WORLD: &str = r#"
name = "delta"
seeds = 1
stop.rounds = 25
[population]
clients = 8
interrupted = "run-on"
latency.download.constant = "0.1 s"
latency.compute.exponential = { mean.uniform = ["0.2 s", "1.5 s"], shift = "0.05 s" }
latency.upload.constant = "0.15 s"
[task.softmax-regression]
data = { synthetic = { classes = 4, height = 3, width = 3, train = 240, test = 40 } }
partition = { dirichlet = { alpha = 0.3 } }
[training]
batch = 8
optimizer.sgd.lr = 0.05
[protocol.synchronous]
cohort = 4
[policy.delta]
"#;

const AWAY: &str = "[population.availability]\non-off = { on = { exponential = { mean = \"9 s\" } }, \
                    off = { exponential = { mean = \"5 s\" } } }\n[task.softmax-regression]";
const LATE: &str = "[protocol.deadline]\ncohort = 4\ndeadline = \"0.8 s\"\nlate = { carry = {} }\n";

/// What happened in a run.
#[derive(Debug, Default)]
struct Seen {
    repeated: usize,
    /// The largest probability, times the number of candidates.
    spread: f64,
}

fn checked(scenario: &str) -> Seen {
    let world = world(scenario, 1);
    let sizes: Vec<f64> = (0..8).map(|client| labelled(&world).partition.size(ClientId(client)) as f64).collect();
    let (lines, mut models) = (rounds(scenario, 1, 25), sent(scenario, &world, 25).into_iter());
    let mut sent = vec![models.next().unwrap()];
    let mut shares = [1.0 / 8.0_f64; 8];
    let mut seen = Seen::default();
    for (turn, round) in (1_usize..).zip(&lines) {
        let said = &round["explain"][0];
        let candidates = ids(&said["clients"]);
        let all: f64 = candidates.iter().map(|&client| shares[client]).sum();
        let p = |client: usize| shares[client] / all;
        for (&client, found) in candidates.iter().zip(numbers(&said["p"])) {
            assert!((found - p(client)).abs() < 1e-5, "{turn}, {client}: {found}, {}", p(client));
            seen.spread = seen.spread.max(found * candidates.len() as f64);
        }
        let count = candidates.len().min(4);
        let mut rng = Streams::new(1).stream(Purpose::Policy, 0, turn as u32);
        let mut draw = || {
            let mut left = rng.uniform();
            let passed = candidates.iter().find(|&&client| {
                left -= p(client);
                left < 0.0
            });
            *passed.unwrap()
        };
        let drawn: Vec<usize> = (0..count).map(|_| draw()).collect();
        assert_eq!(ids(&said["drawn"]), drawn, "{turn}");
        let examples: f64 = candidates.iter().map(|&client| sizes[client]).sum();
        let selected = ids(&round["selected"]);
        for (&client, weight) in selected.iter().zip(numbers(&round["weights"])) {
            let times = drawn.iter().filter(|&&other| other == client).count() as f64;
            let expected = times * sizes[client] / examples / (count as f64 * p(client));
            assert!((weight - expected).abs() < 1e-4 * expected, "{turn}, {client}: {weight}, {expected}");
        }
        // Over draws, weights are shares of examples.
        let mean: f64 = candidates.iter().map(|&client| p(client) * sizes[client] / examples / p(client)).sum();
        assert!((mean - 1.0).abs() < 1e-9, "{turn}");
        seen.repeated += usize::from(selected.len() < count);

        let whole = |value: &Value| value.as_u64().unwrap() as usize;
        let joined = round["joined"].as_array().into_iter().flatten();
        let mut of: BTreeMap<usize, usize> =
            joined.map(|late| (whole(&late["client"]), whole(&late["round"]))).collect();
        of.extend(ids(&round["arrived"]).into_iter().map(|client| (client, turn)));
        let nothing = || vec![0.0; 40];
        let changes: BTreeMap<usize, Vec<f64>> = of
            .iter()
            .map(|(&client, &round)| (client, change(&world, client, round, &sent[round - 1]).unwrap_or_else(nothing)))
            .collect();
        let mean: Vec<f64> =
            (0..40).map(|at| changes.values().map(|change| change[at]).sum::<f64>() / changes.len() as f64).collect();
        let apart = |change: &Vec<f64>| {
            change.iter().zip(&mean).map(|(one, other)| (one - other) * (one - other)).sum::<f64>().sqrt()
        };
        let distances: BTreeMap<usize, f64> = changes.iter().map(|(&client, change)| (client, apart(change))).collect();
        let total: f64 = distances.values().sum();
        let had: f64 = distances.keys().map(|&client| shares[client]).sum();
        if changes.len() > 1 {
            distances.iter().for_each(|(&client, distance)| shares[client] = had * distance / total);
        }
        for (client, found) in ids(&said["after"]["clients"]).into_iter().zip(numbers(&said["after"]["distance"])) {
            if let Some(expected) = distances.get(&client) {
                assert!((found - expected).abs() < 1e-5, "{turn}, {client}: {found}, {expected}");
            }
        }
        let has_updates = !ids(&round["updates"]["clients"]).is_empty();
        sent.push(if has_updates { models.next().unwrap() } else { sent[turn - 1].clone() });
    }
    seen
}

#[test]
fn every_draw_follows_from_distances() {
    let seen = checked(WORLD);
    assert!(seen.repeated >= 5 && seen.spread > 1.5, "{seen:?}");
    checked(&changed(WORLD, "[task.softmax-regression]", AWAY));
    checked(&changed(WORLD, "[protocol.synchronous]\ncohort = 4\n", LATE));
}

/// One client at a time is the mean itself: nothing changes, and everybody stays as likely.
#[test]
fn a_client_alone_changes_nothing() {
    let scenario = changed(WORLD, "cohort = 4", "cohort = 1");
    for round in rounds(&scenario, 1, 8) {
        assert_eq!(numbers(&round["explain"][0]["p"]), [0.125; 8], "{round}");
        assert_eq!(numbers(&round["explain"][0]["after"]["distance"]), [0.0], "{round}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let learned = &WORLD[WORLD.find("[task").unwrap()..WORLD.find("[protocol").unwrap()];
    for (from, to, part) in [
        ("[policy.delta]", "[policy.delta]\nalpha1 = 0.5", "alpha1"),
        (learned, "[task.scripted]\nvalues = [0.5]\n", "changes"),
        (learned, "[task.none]\n", "changes"),
    ] {
        let answer = Workplace::with(&changed(WORLD, from, to)).fedgenie(&["run", SCENARIO]);
        assert_eq!(answer.code, 2, "{to}: {answer:?}");
        assert!(["delta", part].iter().all(|word| answer.stderr.contains(word)), "{to}: {}", answer.stderr);
    }
}
