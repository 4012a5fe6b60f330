//! Edge servers and the cloud on constant latencies, worked out by hand.

use super::protocols::{SECOND, assert_compute, assert_wasted_bytes, round};
use super::support::{Played, Script, SeenRound, changed, labelled, play_policies, world};
use fedgenie::policy::{Policies, Policy};
use fedgenie::run::RunError;
use fedgenie::scenario::tree;
use std::path::Path;

/// ```text
/// edge  link down, up   clients: total
///    0       1 s, 3 s   0: 12 s (1 + 10 + 1), 1: 23 s (2 + 20 + 1)
///    1       2 s, 1 s   2: 18 s (4 + 4 + 10), 3: 22 s (20 + 1 + 1)
/// ```
pub const EDGES: &str = r#"
name = "edges-by-hand"
seeds = 1
[stop]
rounds = 100
[population]
clients = 4
[population.latency]
download = { constant = { each = ["1 s", "2 s", "4 s", "20 s"] } }
compute = { constant = { each = ["10 s", "20 s", "4 s", "1 s"] } }
upload = { constant = { each = ["1 s", "1 s", "10 s", "1 s"] } }
[task.none]
payload = "1 kB"
[protocol.hierarchical]
edges = 2
cohort = 1
edge_rounds = 2
[protocol.hierarchical.link]
download = { constant = { each = ["1 s", "2 s"] } }
upload = { constant = { each = ["3 s", "1 s"] } }
[policy.random]
"#;

/// Plays rounds of the cloud; each edge server's clients are chosen in turn.
pub fn played(scenario: &str, selections: [&[u32]; 2], rounds: u32) -> Result<Played, RunError> {
    let world = world(scenario, 1);
    let script = |selection: &&[u32]| -> Box<dyn Policy> {
        let each: Vec<Vec<u32>> = selection.iter().map(|&client| vec![client]).collect();
        Box::new(Script { rounds: each, ..Script::default() })
    };
    // The cloud's policy is the scenario's.
    let root = tree::parse(Path::new("scenario.toml"), scenario).unwrap();
    let experiment = fedgenie::experiment::Experiment::from_tree(&root, Path::new("."), None).unwrap();
    let policies = world.policies(&experiment.first().arms[0].policy).unwrap();
    let Policies::Tiers { cloud, .. } = policies else { panic!("a policy for each edge server") };
    play_policies(&world, Policies::Tiers { edges: selections.iter().map(script).collect(), cloud }, rounds)
}

pub fn of_edges(edges: &[u32], round: SeenRound) -> SeenRound {
    SeenRound { edges: edges.to_vec(), ..round }
}

/// Edge 0: model at 1; client 0 until 13, client 1 until 36; back at 39. Edge 1: model at 2; client 2 until 20, client
/// 3 until 42; back at 43.
#[test]
fn the_cloud_waits_for_the_slowest_edge_server() {
    let played = played(EDGES, [&[0, 1], &[2, 3]], 1).unwrap();
    assert_eq!(
        played.seen.rounds,
        [of_edges(&[0, 1], round([0, 43], &[0, 2, 1, 3], &[0, 2, 1, 3], &[], [4_000, 4_000]))]
    );
    assert_compute(&played, 10 + 4 + 20 + 1, 0);
    assert_eq!((played.accounts.edge_down_bytes, played.accounts.edge_up_bytes), (2_000, 2_000));
    let seconds: Vec<(u64, Option<u32>)> =
        played.seen.selected.iter().map(|&(time, edge)| (time / SECOND, edge)).collect();
    assert_eq!(seconds, [(1, Some(0)), (2, Some(1)), (13, Some(0)), (20, Some(1))]);
}

/// At 40, edge 0 is back since 39; client 3 of edge 1 has just ended its download. What edge 1's clients computed is
/// lost.
#[test]
fn the_cloud_calls_off_an_edge_server_that_is_too_slow() {
    let cloud = "[protocol.hierarchical.cloud]\ncohort = 2\npolicy = { round-robin = {} }\ntimeout = \"40 s\"\n";
    let played = played(
        &changed(EDGES, "[policy.random]", &format!("{cloud}[policy.random]")),
        [&[0, 1, 0, 1], &[2, 3, 2, 3]],
        2,
    );
    let played = played.unwrap();
    assert_eq!(
        played.seen.rounds[0],
        of_edges(&[0, 1], round([0, 40], &[0, 2, 1, 3], &[0, 2, 1], &[3], [4_000, 3_000]))
    );
    assert_eq!(played.seen.rounds[1].opened, 40 * SECOND);
    assert_eq!(played.seen.rounds[1].closed, 80 * SECOND);
    // In both rounds.
    assert_compute(&played, 2 * (10 + 4 + 20), 2 * 4);
    // Client 2 had delivered to its edge server, client 3 had the model.
    assert_wasted_bytes(&played, [2 * 2_000, 2 * 1_000]);
    assert_eq!((played.accounts.edge_down_bytes, played.accounts.edge_up_bytes), (4_000, 2_000));
}

#[test]
fn the_cloud_chooses_among_edge_servers() {
    let cloud = "[protocol.hierarchical.cloud]\ncohort = 1\npolicy = { round-robin = {} }\n";
    let scenario = changed(EDGES, "[policy.random]", &format!("{cloud}[policy.random]"));
    let played = played(&scenario, [&[0, 1], &[2, 3]], 3).unwrap();
    assert_eq!(
        played.seen.rounds,
        [
            of_edges(&[0], round([0, 39], &[0, 1], &[0, 1], &[], [2_000, 2_000])),
            of_edges(&[1], round([39, 39 + 43], &[2, 3], &[2, 3], &[], [4_000, 4_000])),
            // Its script goes on with client 1.
            of_edges(&[0], round([82, 82 + 1 + 23 + 23 + 3], &[1, 1], &[1, 1], &[], [6_000, 6_000])),
        ]
    );
}

/// A round of an edge server is cut at 15 s: client 1 (23 s) never delivers.
#[test]
fn an_edge_server_stops_waiting() {
    let scenario = changed(EDGES, "edge_rounds = 2", "edge_rounds = 1\ntimeout = \"15 s\"");
    let played = played(&scenario, [&[1], &[2]], 1).unwrap();
    // Edge 0: 1 + 15 + 3; edge 1: 2 + 15 + 1. Client 2 has uploaded 7 s of 10 s.
    assert_eq!(played.seen.rounds, [of_edges(&[0, 1], round([0, 19], &[1, 2], &[], &[1, 2], [2_000, 700]))]);
    assert_compute(&played, 13 + 4, 13 + 4);
}

pub const LEARNING: &str =
    "[task.linear-regression]\nexamples = 700\n[training]\nbatch = 8\noptimizer = { sgd = { lr = 0.05 } }\n";

/// One edge server without a link is the synchronous protocol: same times, same models.
#[test]
fn a_single_edge_server_is_a_synchronous_server() {
    let base = changed(EDGES, "[task.none]\npayload = \"1 kB\"\n", LEARNING);
    let from = base.find("[protocol.hierarchical]").unwrap();
    let head = &base[..from];
    let play = |protocol: &str| {
        let text = format!("{head}{protocol}[policy.random]\n");
        let world = world(&text, 1);
        let root = tree::parse(Path::new("scenario.toml"), &text).unwrap();
        let experiment = fedgenie::experiment::Experiment::from_tree(&root, Path::new("."), None).unwrap();
        play_policies(&world, world.policies(&experiment.first().arms[0].policy).unwrap(), 10).unwrap()
    };
    let one = play("[protocol.synchronous]\ncohort = 3\n");
    let other = play("[protocol.hierarchical]\nedges = 1\ncohort = 3\n");
    assert_eq!(one.seen.models, other.seen.models);
    let without_edges = |round: &SeenRound| SeenRound { edges: Vec::new(), ..round.clone() };
    assert!(one.seen.rounds.iter().cloned().eq(other.seen.rounds.iter().map(without_edges)));
}

/// Two rounds at each of two edge servers, weighted by the examples of all their clients.
#[test]
fn models_are_averaged_at_the_edge_and_in_the_cloud() {
    use fedgenie::id::{ClientId, JobNumber, Round};
    use fedgenie::trainer::{Trainer, TrainingJob, Update};
    let task = changed(LEARNING, "examples = 700", "examples = 700\npartition = { gamma-sized = { minimum = 8 } }");
    let scenario = changed(EDGES, "[task.none]\npayload = \"1 kB\"\n", &task);
    let world = world(&scenario, 1);
    let played = played(&scenario, [&[0, 1], &[2, 3]], 1).unwrap();
    let learner = labelled(&world);
    let trained = |client: u32, ticket: u32, start: &[f32]| {
        let client = ClientId(client);
        let examples = learner.partition.client(client);
        let job = TrainingJob { client, round: Round(1), number: JobNumber(ticket), start, examples: &examples };
        let mut updates = [Update::default()];
        Trainer {
            model: &*learner.model,
            data: &learner.data.train,
            settings: &world.training.local,
            streams: &world.streams,
        }
        .train(&[job], false, &mut updates);
        let [update] = updates;
        update.parameters
    };
    let start = world.task.as_ref().unwrap().initial_model(0, &world.streams);
    let edges = [[0, 1], [2, 3]].map(|[first, second]| trained(second, 2, &trained(first, 1, &start)));
    let size = |client: u32| learner.partition.size(ClientId(client)) as f64;
    let weights = [size(0) + size(1), size(2) + size(3)];
    for (place, &found) in played.seen.models[0].iter().enumerate() {
        let [one, two] = [f64::from(edges[0][place]), f64::from(edges[1][place])];
        let expected = (weights[0] * one + weights[1] * two) / (weights[0] + weights[1]);
        assert!((f64::from(found) - expected).abs() < 1e-6, "parameter {place}: {found}, by hand {expected}");
    }
}
