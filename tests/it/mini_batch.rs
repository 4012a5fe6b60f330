//! Power-of-Choice with losses of a mini-batch: candidates, batches and losses recomputed from the data, the time that
//! a batch takes, and settings that are refused.

use super::fedacs::{ids, numbers, rounds};
use super::support::{SCENARIO, Workplace, changed, labelled, play_policies, world};
use fedgenie::experiment::Experiment;
use fedgenie::id::ClientId;
use fedgenie::rng::{Purpose, StreamRng, Streams};
use fedgenie::scenario::tree;
use fedgenie::world::World;
use serde_json::Value;
use std::path::Path;

/// Eight clients with examples of their own, three at a time; a linear model of four numbers and a constant.
const WORLD: &str = r#"
name = "mini-batch"
seeds = 1
stop.rounds = 12
[population]
clients = 8
[population.latency]
download = { constant = { each = ["1 s", "2 s", "3 s", "1 s", "2 s", "3 s", "1 s", "2 s"] } }
compute = { constant = "24 s" }
upload = { constant = "1 s" }
[task.linear-regression]
features = 4
examples = 500
[training]
epochs = 2
batch = 16
optimizer = { sgd = { lr = 0.05 } }
[protocol.synchronous]
cohort = 3
[policy.power-of-choice]
losses = "mini-batch"
batch = 7
candidates = 5
"#;

/// The models that rounds send: the initial one, and then that of each round.
pub fn sent(scenario: &str, world: &World, count: u32) -> Vec<Vec<f32>> {
    let root = tree::parse(Path::new(SCENARIO), scenario).unwrap();
    let source = Experiment::from_tree(&root, Path::new("."), None).unwrap().first().arms[0].source();
    let start = world.task.as_ref().unwrap().initial_model(0, &world.streams);
    let played = play_policies(world, world.policies(&source).unwrap(), count).unwrap();
    [start].into_iter().chain(played.seen.models).collect()
}

/// Squared error of a linear model on a training example.
pub fn error(world: &World, model: &[f32], example: u32) -> f64 {
    let train = &labelled(world).data.train;
    let features = train.features();
    let row = features.row(example as usize);
    let product: f64 = row.iter().zip(model).map(|(x, w)| f64::from(*x) * f64::from(*w)).sum();
    (product + f64::from(*model.last().unwrap()) - f64::from(train.values().unwrap()[example as usize])).powi(2)
}

/// Who is first, by exponential clocks.
pub fn first_by_clock(weights: &[(usize, f64)], count: usize, rng: &mut StreamRng) -> Vec<usize> {
    let mut clocks: Vec<(f64, usize)> =
        weights.iter().map(|&(client, weight)| (-rng.uniform().ln() / weight, client)).collect();
    clocks.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    clocks.into_iter().take(count).map(|(_, client)| client).collect()
}

/// Compares the rounds of a scenario whose mini-batches have so many examples with the rule.
fn check(scenario: &str, size: usize) {
    let world = world(scenario, 1);
    let (lines, models) = (rounds(scenario, 1, 12), sent(scenario, &world, 12));
    let examples: Vec<Vec<u32>> =
        (0..8).map(|client| labelled(&world).partition.client(ClientId(client)).into_owned()).collect();
    let weights: Vec<(usize, f64)> = (0..8).map(|client| (client, examples[client].len() as f64)).collect();
    let mut differs = 0;
    for (turn, round) in (1_u32..).zip(&lines) {
        let model = &models[turn as usize - 1];
        let mut drawn = first_by_clock(&weights, 5, &mut Streams::new(1).stream(Purpose::Policy, 0, turn));
        drawn.sort_unstable();
        assert_eq!(ids(&round["explain"][0]["clients"]), drawn, "selection {turn}");
        let loss = |client: usize| {
            let mut rng = Streams::new(1).stream(Purpose::BatchOrder, client as u32, u32::MAX - turn);
            let mut batch = examples[client].clone();
            if size < batch.len() {
                for place in 0..size {
                    let other = place + rng.below((batch.len() - place) as u64) as usize;
                    batch.swap(place, other);
                }
                batch.truncate(size);
            }
            batch.iter().map(|&example| error(&world, model, example)).sum::<f64>() / batch.len() as f64
        };
        let all = |client: usize| {
            let of = &examples[client];
            of.iter().map(|&example| error(&world, model, example)).sum::<f64>() / of.len() as f64
        };
        let mut expected: Vec<(usize, f64)> = drawn.iter().map(|&client| (client, loss(client))).collect();
        for (found, (client, loss)) in numbers(&round["explain"][0]["loss"]).iter().zip(&expected) {
            assert!((found - loss).abs() < 1e-4 * loss, "client {client} in {turn}: {found}, by hand {loss}");
            differs += usize::from((loss - all(*client)).abs() > 1e-3 * loss);
        }
        expected.sort_by(|one, other| other.1.total_cmp(&one.1));
        let mut best: Vec<usize> = expected[..3].iter().map(|(client, _)| *client).collect();
        best.sort_unstable();
        let mut selected = ids(&round["selected"]);
        selected.sort_unstable();
        assert_eq!(selected, best, "selection {turn}");
    }
    assert_eq!(differs > 40, size < 60, "a batch tells another loss than all examples: {differs}");
}

#[test]
fn every_selection_follows_from_batches() {
    check(WORLD, 7);
    check(&changed(WORLD, "batch = 7", "batch = 1"), 1);
    // Nobody has more than so many examples.
    check(&changed(WORLD, "batch = 7", "batch = 70"), 70);
    check(&changed(WORLD, "batch = 7\n", ""), 64);
}

/// Of 62 or 63 examples each, 7 are looked at, in a pass that takes a third of an epoch, and a job is two epochs: 24
/// s/6·7/n, cut to whole nanoseconds. All wait for the slowest of the five, which downloads for 3 s.
#[test]
fn a_batch_takes_its_share_of_the_time() {
    for (batch, share) in [("batch = 7", 7), ("batch = 70", 70)] {
        let scenario = changed(WORLD, "batch = 7", batch);
        let world = world(&scenario, 1);
        let sizes: Vec<f64> = (0..8).map(|client| labelled(&world).partition.size(ClientId(client)) as f64).collect();
        let downloads = [1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 1.0, 2.0];
        let mut before = 0.0;
        for round in rounds(&scenario, 1, 12) {
            let asked = ids(&round["explain"][0]["clients"]);
            let of = |&client: &usize| downloads[client] + 4.0 * (f64::from(share) / sizes[client]).min(1.0);
            let probe = asked.iter().map(of).fold(0.0, f64::max);
            let job = ids(&round["selected"]).iter().map(|&client| downloads[client] + 25.0).fold(0.0, f64::max);
            let closed = round["closed_s"].as_f64().unwrap();
            assert!((closed - before - probe - job).abs() < 1e-8, "{batch}: {round}");
            before = closed;
        }
    }
}

/// The same candidates, losses and bytes as with fresh losses, where a batch has everything; only places in sums
/// differ.
#[test]
fn a_batch_of_everything_is_fresh() {
    let fresh = changed(&changed(WORLD, "losses = \"mini-batch\"\n", ""), "batch = 7\n", "");
    let whole = changed(WORLD, "batch = 7", "batch = 500");
    for (one, other) in rounds(&fresh, 1, 12).iter().zip(rounds(&whole, 1, 12)) {
        let of = |round: &Value| (round["selected"].clone(), round["closed_s"].clone(), round["up_bytes"].clone());
        assert_eq!(of(one), of(&other));
        assert_eq!(one["explain"][0]["loss"], other["explain"][0]["loss"]);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let learned = &WORLD[WORLD.find("[task").unwrap()..WORLD.find("[protocol").unwrap()];
    let scripted = "[task.scripted]\nvalues = [0.5]\nclient_losses = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]\n";
    let silent = "[task.scripted]\nvalues = [0.5]\n";
    for (from, to, part) in [
        ("batch = 7", "batch = 0", "batch"),
        ("losses = \"mini-batch\"", "losses = \"fresh\"", "batch"),
        ("batch = 7", "batch = 7\nanswers = \"update\"", "answers"),
        ("batch = 7", "batch = -1", "batch"),
        (learned, scripted, "mini-batch"),
        (learned, silent, "losses"),
    ] {
        let answer = Workplace::with(&changed(WORLD, from, to)).fedgenie(&["run", SCENARIO]);
        assert_eq!(answer.code, 2, "{to}: {answer:?}");
        let words = ["power-of-choice", part];
        assert!(words.iter().all(|word| answer.stderr.contains(word)), "{to}: {}", answer.stderr);
    }
}
