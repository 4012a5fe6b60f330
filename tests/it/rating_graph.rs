//! Graph networks that predict ratings, from outside: files, graphs, rounds of training and metrics against the same in
//! double precision, written out from the definitions, with slopes by differences.

mod double;
mod refused;

use super::support::{SCENARIO, Workplace, changed};
use double::{Client, FEATURES, Node, TRUST, World, feature, files, mean, ratings, shapes};
use fedgenie::model::weights::{Tensor, read_tensors, to_safetensors};
use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write;

const WORLD: &str = r#"name = "graphs"
seeds = 1
[stop]
rounds = 3
[population]
clients = 3
[population.latency]
download = { constant = "0.1 s" }
compute = { exponential = { mean = { uniform = ["0.2 s", "2 s"] } } }
upload = { constant = "0.1 s" }
[task.rating-graph]
data = "tiny"
model = { gcn = { layers = 2, hidden = 4, embedding = 3 } }
features = { file = "x.npy" }
partition = { assignment = [[5, 1], [2], [7]] }
start = "start.safetensors"
[training]
epochs = 2
batch = "all"
optimizer = { sgd = { lr = 0.03 } }
[protocol.synchronous]
cohort = 2
[evaluate]
clients = true
[record]
updates = true
[policy.random]
"#;

const GAT: &str = "{ gat = { layers = 2, heads = 2, hidden = 4, embedding = 3 } }";
const GCN: &str = "{ gcn = { layers = 2, hidden = 4, embedding = 3 } }";

/// An array of single precision.
fn npy(rows: usize, columns: usize) -> Vec<u8> {
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}\n");
    let values = (0..rows).flat_map(|row| (0..columns).map(move |column| feature(row, column) as f32));
    let values: Vec<u8> = values.flat_map(f32::to_le_bytes).collect();
    [&b"\x93NUMPY\x01\0"[..], &(header.len() as u16).to_le_bytes(), header.as_bytes(), &values].concat()
}

fn packed(text: &str) -> Vec<u8> {
    let mut file = GzEncoder::new(Vec::new(), Compression::fast());
    file.write_all(text.as_bytes()).unwrap();
    file.finish().unwrap()
}

/// The files of a world, plain or packed.
fn place(text: &str, world: &World, is_packed: bool) -> Workplace {
    let place = Workplace::with(text);
    if is_packed {
        place.write("tiny/ratings.tsv.gz", packed(&ratings()));
        place.write("tiny/social.tsv.gz", packed(TRUST));
    } else {
        place.write("tiny/ratings.tsv", ratings());
        place.write("tiny/trust.tsv", TRUST);
    }
    place.write("x.npy", npy(world.files.users.len() + world.files.items.len(), FEATURES));
    let start = world.start();
    let tensor = |(name, shape): (String, Vec<usize>)| {
        let values = start[world.place(&name)..][..shape.iter().product()].iter().map(|&x| x as f32).collect();
        Tensor { name, shape, values }
    };
    let tensors: Vec<Tensor> = shapes(world.heads).into_iter().map(tensor).collect();
    place.write("start.safetensors", to_safetensors(&tensors));
    place
}

/// Runs the scenario into `out`; dropped ratings give a warning.
fn run(place: &Workplace, folder: &str, more: &[&str]) {
    let answer = place.fedgenie(&[&["run", SCENARIO, "--out", folder, "--models"], more].concat());
    assert_eq!(answer.code, 0, "{answer:?}");
}

fn near(found: &Value, expected: f64, what: &str) {
    let found = found.as_f64().unwrap_or_else(|| panic!("{what}: {found}"));
    assert!((found - expected).abs() <= 1e-4 * expected.abs().max(0.1), "{what}: {found}, {expected}");
}

/// A run's graphs, rounds and metrics, against a world in double precision.
fn replay(place: &Workplace, world: &World) {
    let clients = &world.files.clients;
    let summary = place.json("out/summary.json");
    let nodes: Vec<BTreeSet<Node>> = clients.iter().map(Client::nodes).collect();
    let described = |client: &Client| {
        let mut categories = client.categories.clone();
        categories.sort_unstable();
        let [train, valid, test] = ["train", "valid", "test"].map(|part| client.part(part).len());
        json!({
            "categories": categories, "users": client.users.len(), "items": client.items.len(),
            "nodes": client.users.len() + client.items.len(), "ratings": train + valid + test,
            "train": train, "valid": valid, "test": test, "trust": client.trust.len(),
        })
    };
    let graph = &summary["runs"][0]["graph"];
    assert_eq!(graph["clients"], Value::from_iter(clients.iter().map(described)));
    let overlap =
        |one: &BTreeSet<Node>| -> Value { nodes.iter().map(|other| one.intersection(other).count()).collect() };
    assert_eq!(graph["overlap"], Value::from_iter(nodes.iter().map(overlap)));
    let prefix = |index: usize| {
        let union: BTreeSet<&Node> = nodes[..index].iter().flatten().collect();
        let common = nodes[index].iter().filter(|node| union.contains(node)).count();
        (index > 0).then(|| common as f64 / union.len() as f64)
    };
    assert_eq!(graph["prefix_intersection"], json!([prefix(0), prefix(1), prefix(2)]));
    let counts = &summary["runs"][0]["data"];
    let [without_trust, outside, repeated] = world.files.dropped;
    for (name, count) in [
        ("users", world.files.users.len()),
        ("items", world.files.items.len()),
        ("without_trust", without_trust),
        ("outside_range", outside),
        ("repeated", repeated),
        ("unassigned", world.files.unassigned),
    ] {
        assert_eq!(counts[name], count, "{name}: {counts}");
    }

    let rounds = place.lines("out/runs/random-s1/rounds.jsonl");
    assert_eq!(rounds.len(), 3);
    let mut model = world.start();
    let mut trained = BTreeSet::new();
    for round in &rounds {
        let updates = &round["updates"];
        let arrived: Vec<usize> = serde_json::from_value(updates["clients"].clone()).unwrap();
        assert_eq!(arrived.len(), 2);
        let ends: Vec<(f64, Vec<f64>)> = arrived
            .iter()
            .enumerate()
            .map(|(place, &client)| {
                let (end, loss) = world.trained(&model, &clients[client]);
                let weight = clients[client].part("train").len();
                assert_eq!(updates["examples"][place], weight);
                near(&updates["loss"][place], loss, "loss of an update");
                (weight as f64, end)
            })
            .collect();
        trained.extend(arrived);
        let total: f64 = ends.iter().map(|(weight, _)| weight).sum();
        model = (0..model.len()).map(|i| ends.iter().map(|(weight, end)| weight / total * end[i]).sum()).collect();

        let metrics = &round["metrics"];
        let errors = |part| clients.iter().map(|client| world.errors(&model, client, part)).collect::<Vec<_>>();
        let rmse = |errors: &[f64]| mean(errors.iter().map(|error| error * error)).sqrt();
        for part in ["test", "valid"] {
            let pooled = errors(part).concat();
            assert!(pooled.len() > 3);
            let of = |measure: &str| &metrics[&format!("{part}_{measure}")];
            near(of("rmse"), rmse(&pooled), part);
            near(of("mae"), mean(pooled.iter().map(|error| error.abs())), part);
            near(of("loss"), rmse(&pooled).powi(2), part);
        }
        let mut of_clients: Vec<f64> = errors("test").iter().map(|errors| rmse(errors)).collect();
        of_clients.sort_by(f64::total_cmp);
        near(&metrics["client_rmse_mean"], mean(of_clients.iter().copied()), "mean over clients");
        near(&metrics["client_rmse_min"], of_clients[0], "least of clients");
        near(&metrics["client_rmse_max"], of_clients[2], "most of clients");
    }
    assert_eq!(trained.len(), 3, "every client's graph is trained on");
    let found = read_tensors(&place.path("out/runs/random-s1/model.safetensors"), shapes(world.heads)).unwrap();
    let start = world.start();
    for Tensor { name, values, .. } in &found {
        let start = &start[world.place(name)..];
        let moved = values.iter().zip(start).any(|(found, start)| f64::from(*found) != *start);
        assert_eq!(moved, world.transition || !name.contains("edge"), "{name}");
    }
    let found: Vec<f32> = found.into_iter().flat_map(|tensor| tensor.values).collect();
    for (index, (found, expected)) in found.iter().zip(&model).enumerate() {
        let error = (f64::from(*found) - expected).abs();
        assert!(error < 1e-4 * expected.abs().max(0.1), "weight {index}: {found}, {expected}");
    }
}

fn world(heads: usize, transition: bool) -> World {
    World { heads, transition, files: files(&[&[5, 1], &[2], &[7]]) }
}

#[test]
fn graph_convolution_is_that_of_the_same_training_in_double_precision() {
    let world = world(0, true);
    // Isolated nodes, trust everywhere, everything that is dropped, and a category that nobody holds.
    assert!(world.files.clients.iter().any(|client| client.around.values().any(BTreeSet::is_empty)));
    assert!(world.files.clients.iter().all(|client| !client.trust.is_empty()));
    assert!(world.files.dropped.iter().all(|&count| count > 0) && world.files.unassigned > 0);
    let place = place(WORLD, &world, false);
    run(&place, "out", &[]);
    replay(&place, &world);
    assert_eq!(place.fedgenie(&["verify", "out"]).code, 0);
}

#[test]
fn graph_attention_is_that_of_the_same_training_in_double_precision_from_packed_files() {
    let world = world(2, true);
    let place = place(&changed(WORLD, GCN, GAT), &world, true);
    run(&place, "out", &[]);
    replay(&place, &world);
}

#[test]
fn without_transition_edges_add_nothing() {
    for (heads, model) in [(0, GCN), (2, GAT)] {
        let world = world(heads, false);
        let text = changed(WORLD, GCN, model);
        let place = place(&changed(&text, "features", "transition = false\nfeatures"), &world, false);
        run(&place, "out", &[]);
        replay(&place, &world);
        place.write(SCENARIO, text);
        run(&place, "with", &[]);
        let rmse =
            |folder: &str| place.json(&format!("{folder}/summary.json"))["runs"][0]["final"]["test_rmse"].clone();
        assert_ne!(rmse("out"), rmse("with"));
        assert_ne!(place.digests("out"), place.digests("with"));
    }
}

/// Drawn ratings, all of whose randomness comes from the seed.
const DRAWN: &str = r#"name = "drawn"
seeds = 2
[stop]
rounds = 4
[population]
clients = 5
[population.latency]
download = { constant = "0.1 s" }
compute = { exponential = { mean = "1 s" } }
upload = { constant = "0.1 s" }
[task.rating-graph]
data = { synthetic = { users = 60, items = 90, ratings = 900, categories = 12, communities = 3, trust = 120 } }
model = { gcn = { layers = 2, hidden = 8, embedding = 8 } }
partition = { categories = { distribution = "average" } }
[training]
epochs = 2
batch = "all"
optimizer = { sgd = { lr = 0.02 } }
[protocol.synchronous]
cohort = 3
[evaluate]
clients = true
[policy.random]
[policy.fedacs]
target = 1.0
[policy.power-of-choice]
[budget]
full_rounds = 10
"#;

#[test]
fn digests_are_the_same_on_any_number_of_threads() {
    for model in ["gcn = { layers = 2, hidden = 8", "gat = { layers = 2, heads = 4, hidden = 8"] {
        let text = changed(DRAWN, "gcn = { layers = 2, hidden = 8", model);
        let place = Workplace::with(&changed(&text, "batch = \"all\"", "batch = 16"));
        for threads in ["1", "2", "7"] {
            run(&place, threads, &["--threads", threads]);
        }
        assert_eq!(place.digests("1").len(), 6);
        assert_eq!(place.digests("1"), place.digests("2"));
        assert_eq!(place.digests("1"), place.digests("7"));
    }
}

#[test]
fn references_stand_beside_every_run_and_all_partitions_share_one_test_set() {
    let place = Workplace::with(DRAWN);
    run(&place, "average", &[]);
    run(&place, "even", &["--set", "task.rating-graph.partition={categories={distribution=\"even\"}}"]);
    let communities = "task.rating-graph.partition={communities={count=5,distribution=\"even\"}}";
    run(&place, "communities", &["--set", communities]);
    let one = ["--set", "population.clients=1", "--set", "protocol.synchronous.cohort=1"];
    run(&place, "mf", &[&["--set", "task.rating-graph.model=\"mf\""], &one[..]].concat());
    let of = |folder: &str, seed: usize| place.json(&format!("{folder}/summary.json"))["runs"][seed].clone();
    for seed in 0..2 {
        let expected = of("average", seed);
        let [of_mean, of_bias] = ["mean", "bias"].map(|name| expected["controls"][name]["test_rmse"].as_f64().unwrap());
        assert!(of_bias < of_mean && of_mean < 2.0, "{of_bias}, {of_mean}");
        for folder in ["even", "communities", "mf"] {
            let found = of(folder, seed);
            for name in ["mean", "bias"] {
                // What is pooled; over clients it depends on who holds what.
                for metric in ["test_rmse", "test_mae", "test_loss", "valid_rmse", "valid_mae", "valid_loss"] {
                    let [found, expected] = [&found, &expected].map(|run| &run["controls"][name][metric]);
                    assert!(found.is_number() && found == expected, "{folder}: {name}, {metric}: {found}, {expected}");
                }
            }
            for count in ["train", "valid", "test"] {
                assert_eq!(found["data"][count], expected["data"][count], "{folder}");
            }
        }
    }
    // Weights that were written are begun with.
    let text = changed(DRAWN, "partition =", "start = \"average/runs/random-s1/model.safetensors\"\npartition =");
    place.write(SCENARIO, text);
    run(&place, "again", &["--set", "training.optimizer={sgd={lr=1e-30}}"]);
    let last = |folder: &str| of(folder, 0)["final"]["test_rmse"].clone();
    assert_eq!(last("average"), last("again"), "a step that moves nothing keeps the model");
}
