//! GPFL: every projection, reward, index and selection recomputed from jobs that are trained apart, a trace by hand,
//! and settings that are refused.

use super::divfl::change;
use super::fedacs::{ids, numbers, rounds};
use super::mini_batch::sent;
use super::support::{SCENARIO, Workplace, changed, labelled, world};
use fedgenie::id::ClientId;
use fedgenie::world::World;
use serde_json::Value;
use std::collections::BTreeMap;

/// Seven clients, three at a time, whose model does not become better in every round.
const WORLD: &str = r#"
name = "gpfl"
seeds = 1
stop.rounds = 30
[population]
clients = 7
interrupted = "run-on"
latency.download.constant = "0.1 s"
latency.compute.exponential = { mean.uniform = ["0.2 s", "1.5 s"], shift = "0.05 s" }
latency.upload.constant = "0.15 s"
[task.softmax-regression]
data = { synthetic = { classes = 4, height = 3, width = 3, train = 240, test = 60 } }
partition = { dirichlet = { alpha = 0.3 } }
[training]
batch = 8
optimizer.sgd.lr = 0.05
[protocol.synchronous]
cohort = 3
[policy.gpfl]
"#;

const AWAY: &str = "[population.availability]\non-off = { on = { exponential = { mean = \"9 s\" } }, \
                    off = { exponential = { mean = \"5 s\" } } }\n[task.softmax-regression]";
const LATE: &str = "[protocol.deadline]\ncohort = 3\ndeadline = \"0.8 s\"\nlate = { carry = {} }\n";

/// What happened in a run.
#[derive(Debug, Default)]
struct Seen {
    better: usize,
    worse: usize,
    late: usize,
    /// Selections whose first client is not the one with the largest bonus.
    by_value: usize,
}

/// The share of examples on which a model is right: of 9 pixels and 4 classes, weights by class, then constants.
fn accuracy(world: &World, model: &[f32]) -> f64 {
    let test = &labelled(world).data.test;
    let (classes, _) = test.classes().unwrap();
    let is_right = |(place, class): (usize, &u8)| {
        let features = test.features();
        let row = features.row(place);
        let score = |of: usize| {
            let product: f64 = row.iter().zip(&model[9 * of..]).map(|(x, w)| f64::from(*x) * f64::from(*w)).sum();
            product + f64::from(model[36 + of])
        };
        let best = (0..4).max_by(|&one, &other| score(one).total_cmp(&score(other)).then(other.cmp(&one))).unwrap();
        best == usize::from(*class)
    };
    classes.iter().enumerate().filter(|&example| is_right(example)).count() as f64 / classes.len() as f64
}

fn checked(scenario: &str, alpha: Option<f64>) -> Seen {
    let world = world(scenario, 1);
    let sizes: Vec<f64> = (0..7).map(|client| labelled(&world).partition.size(ClientId(client)) as f64).collect();
    let (lines, mut models) = (rounds(scenario, 1, 30), sent(scenario, &world, 30).into_iter());
    let mut sent = vec![models.next().unwrap()];
    let mut before = accuracy(&world, &sent[0]);
    let (mut rewards, mut counts) = (vec![Vec::new(); 7], [0.0; 7]);
    let mut seen = Seen::default();
    for (turn, round) in (1_usize..).zip(&lines) {
        let said = &round["explain"][0];
        let candidates = ids(&said["clients"]);
        let past = turn as f64 - 1.0;
        let alpha = alpha.unwrap_or(if past < 100.0 { past / 100.0 } else { 200.0 / (past + 100.0) });
        assert!((said["alpha"].as_f64().unwrap() - alpha).abs() < 1e-12);
        let value = |client: usize| {
            let own: &Vec<f64> = &rewards[client];
            own.iter().sum::<f64>() / (own.len() as f64 + 1.0)
        };
        let mut indices = Vec::new();
        let of = candidates.iter().zip(numbers(&said["value"])).zip(numbers(&said["bonus"]));
        for (((&client, found), bonus), index) in of.zip(numbers(&said["index"])) {
            assert!((found - value(client)).abs() < 1e-5, "{turn}, {client}: {found}, {}", value(client));
            let expected = alpha * (2.0 * past.max(1.0).ln() / counts[client]).sqrt();
            if counts[client] == 0.0 {
                assert!(bonus.is_nan() && index.is_nan(), "{turn}, {client}");
                indices.push((client, f64::INFINITY));
            } else {
                assert!((bonus - expected).abs() < 1e-12 && (index - found - bonus).abs() < 1e-12, "{turn}: {said}");
                indices.push((client, index));
            }
        }
        indices.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        let selected = ids(&round["selected"]);
        assert_eq!(selected, indices.iter().take(3).map(|index| index.0).collect::<Vec<_>>(), "{turn}");
        seen.by_value +=
            usize::from(selected.iter().any(|&client| candidates.iter().any(|&other| counts[other] < counts[client])));
        selected.iter().for_each(|&client| counts[client] += 1.0);

        let whole = |value: &Value| value.as_u64().unwrap() as usize;
        let joined = round["joined"].as_array().into_iter().flatten();
        let mut of: BTreeMap<usize, usize> =
            joined.map(|late| (whole(&late["client"]), whole(&late["round"]))).collect();
        seen.late += of.len();
        of.extend(ids(&round["arrived"]).into_iter().map(|client| (client, turn)));
        if of.is_empty() {
            sent.push(sent[turn - 1].clone());
            continue;
        }
        sent.push(models.next().unwrap());
        let after = accuracy(&world, &sent[turn]);
        let sign = if after > before {
            1.0
        } else if after < before {
            -1.0
        } else {
            0.0
        };
        seen.better += usize::from(after > before);
        seen.worse += usize::from(after < before);
        before = after;
        let changes: BTreeMap<usize, Vec<f64>> = of
            .iter()
            .filter_map(|(&client, &round)| Some((client, change(&world, client, round, &sent[round - 1])?)))
            .collect();
        let all: f64 = changes.keys().map(|&client| sizes[client]).sum();
        let at =
            |place: usize| changes.iter().map(|(&client, change)| sizes[client] / all * change[place]).sum::<f64>();
        let direction: Vec<f64> = (0..40).map(at).collect();
        let product = |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(one, other)| one * other).sum::<f64>();
        let norm = product(&direction, &direction).sqrt();
        let along = |client: usize| changes.get(&client).map_or(0.0, |change| product(change, &direction) / norm);
        let weight: f64 = of.keys().map(|&client| along(client).exp()).sum();
        for &client in of.keys() {
            rewards[client].push(sign * along(client).exp() / weight);
        }
        let lesson = &said["after"];
        for (client, count) in ids(&lesson["clients"]).into_iter().zip(numbers(&lesson["rewards"])) {
            assert_eq!(count, rewards[client].len() as f64, "{turn}");
        }
    }
    seen
}

#[test]
fn every_selection_follows_from_projections() {
    let seen = checked(WORLD, None);
    assert!(seen.better >= 5 && seen.worse >= 3 && seen.by_value >= 5, "{seen:?}");
    checked(&format!("{WORLD}alpha = 0.0\n"), Some(0.0));
    checked(&format!("{WORLD}alpha = 2.0\n"), Some(2.0));
    let late = changed(WORLD, "[protocol.synchronous]\ncohort = 3\n", LATE);
    for scenario in [changed(WORLD, "[task.softmax-regression]", AWAY), late] {
        checked(&scenario, None);
    }
}

/// Three clients, one at a time: 0, 1 and 2 come first, by id. A single update has the whole reward, 1, or −1, or 0,
/// and a value of half of it. With a weight of 0 the best comes again and again: while the model gets better, with
/// values of 2/3, 3/4 and so on.
#[test]
fn who_was_never_selected_comes_first_and_a_reward_alone_is_whole() {
    let scenario = changed(&changed(WORLD, "clients = 7", "clients = 3"), "cohort = 3", "cohort = 1");
    let lines = rounds(&format!("{scenario}alpha = 0.0\n"), 1, 8);
    let mut values = [0.0_f64; 3];
    let mut sums = [(0.0, 0.0); 3];
    for (place, round) in lines.iter().enumerate() {
        let expected = if place < 3 {
            place
        } else {
            (0..3).max_by(|&one: &usize, &other| values[one].total_cmp(&values[other]).then(other.cmp(&one))).unwrap()
        };
        assert_eq!(ids(&round["selected"]), [expected], "{round}");
        let value = numbers(&round["explain"][0]["after"]["value"])[0];
        let (sum, count) = sums[expected];
        let reward: f64 = value * (count + 2.0) - sum;
        assert!([-1.0, 0.0, 1.0].iter().any(|whole| (reward - whole).abs() < 1e-12), "{reward}: {round}");
        sums[expected] = (sum + reward, count + 1.0);
        values[expected] = value;
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let learned = &WORLD[WORLD.find("[task").unwrap()..WORLD.find("[protocol").unwrap()];
    for (from, to, part) in [
        ("[policy.gpfl]", "[policy.gpfl]\nalpha = -0.1", "alpha"),
        ("[policy.gpfl]", "[policy.gpfl]\non = \"valid\"", "on"),
        (learned, "[task.scripted]\nvalues = [0.5]\n", "changes"),
        (learned, "[task.none]\n", "changes"),
    ] {
        let answer = Workplace::with(&changed(WORLD, from, to)).fedgenie(&["run", SCENARIO]);
        assert_eq!(answer.code, 2, "{to}: {answer:?}");
        assert!(["gpfl", part].iter().all(|word| answer.stderr.contains(word)), "{to}: {}", answer.stderr);
    }
}
