//! A cloud that takes in the models of edge servers as they arrive: on constant latencies, worked out by hand.

use super::hierarchical::{EDGES, LEARNING, of_edges, played};
use super::protocols::{SECOND, assert_compute, assert_wasted_bytes, round};
use super::support::{SCENARIO, SeenRound, Workplace, changed, labelled, world};
use fedgenie::id::{ClientId, JobNumber, Round};
use fedgenie::trainer::{Trainer, TrainingJob, Update};

/// One round of an edge server per model, and a model of the cloud with every second one that arrives.
fn two(keys: &str) -> String {
    let protocol = format!("cohort = 1\ncloud = {{ buffer = 2, {keys} }}\n");
    changed(EDGES, "cohort = 1\nedge_rounds = 2\n", &protocol)
}

fn models(edges: &[u32], models: &[(u32, u32, bool)], round: SeenRound) -> SeenRound {
    SeenRound { edge_models: models.to_vec(), ..of_edges(edges, round) }
}

const SCRIPT: [&[u32]; 2] = [&[0], &[3]];

/// Edge 0 takes 1 + 12 + 3 s with client 0, edge 1 takes 2 + 22 + 1 s with client 3.
///
/// ```text
/// time   edge 0                         edge 1                        cloud
///    0   is sent model 0                the same
///    1   asks 0                         (2) asks 3
///   16   its model arrives, model 0                                   buffer 1
///   25                                  its model arrives             round 1 closes: model 1
///   25                                  is sent model 1
///   32   its model arrives, 1 round                                   buffer 1
///        old; is sent model 1
///   48   its model arrives                                            round 2 closes: model 2
///   50                                  its model arrives, 1 round    buffer 1
///                                       old; is sent model 2
///   64   its model arrives                                            round 3 closes: model 3
/// ```
#[test]
fn edge_servers_do_not_wait_for_each_other() {
    let played = played(&two(""), SCRIPT, 3).unwrap();
    assert_eq!(
        played.seen.rounds,
        [
            models(
                &[0, 1, 0],
                &[(0, 0, false), (1, 0, false)],
                round([0, 25], &[0, 3, 0], &[0, 3], &[], [3_000, 2_000])
            ),
            models(&[1, 0], &[(0, 1, false), (0, 0, false)], round([25, 48], &[3, 0], &[0, 0], &[], [5_000, 4_000])),
            models(&[0, 1], &[(1, 1, false), (0, 0, false)], round([48, 64], &[0, 3], &[3, 0], &[], [6_000, 6_000])),
        ]
    );
    let seconds: Vec<(u64, Option<u32>)> =
        played.seen.selected.iter().map(|&(time, edge)| (time / SECOND, edge)).collect();
    let asked = [(1, 0), (2, 1), (17, 0), (27, 1), (33, 0), (49, 0), (52, 1)];
    assert_eq!(seconds, asked.map(|(time, edge)| (time, Some(edge))));
    // At 64, client 3 has downloaded for 12 of 20 s: of seven jobs six have moved the model.
    assert_compute(&played, 4 * 10 + 2, 0);
    assert_eq!(played.accounts.down_bytes, 6_000);
    // Edge 0 was sent four models, edge 1 three, the last of which is under way to it.
    assert_eq!((played.accounts.edge_down_bytes, played.accounts.edge_up_bytes), (7_000, 6_000));
}

/// With `max_staleness = 0` the model of edge 0 that arrives at 32 is late: round 2 closes with edge 1's at 50.
#[test]
fn a_model_that_is_too_old_is_late() {
    let played = played(&two("max_staleness = 0"), SCRIPT, 2).unwrap();
    assert_eq!(
        played.seen.rounds[1],
        models(
            &[1, 0, 0],
            &[(0, 1, true), (0, 0, false), (1, 0, false)],
            round([25, 50], &[3, 0, 0], &[0, 0, 3], &[], [5_000, 5_000])
        )
    );
    // The model that was late cost client 0 one job.
    assert_compute(&played, 3 * 10 + 2, 10);
    assert_wasted_bytes(&played, [1_000, 1_000]);
}

/// When the run ends, models that edge servers have and the cloud has not are wasted.
#[test]
fn what_the_cloud_never_got_was_in_vain() {
    let scenario = changed(&two("").replace("cohort = 1", "cohort = 1\nedge_rounds = 2"), "buffer = 2", "buffer = 1");
    // Edge 0: 1 + 12 + 12 + 3 = 28 s. Edge 1 is in the second of its rounds of 22 s.
    let played = played(&scenario, SCRIPT, 1).unwrap();
    assert_eq!(
        played.seen.rounds,
        [models(&[0, 1], &[(0, 0, false)], round([0, 28], &[0, 3, 0, 3], &[0, 3, 0], &[], [3_000, 3_000]))]
    );
    // Client 3 delivered at 24 and began again.
    assert_compute(&played, 2 * 10 + 1, 1);
    assert_wasted_bytes(&played, [1_000, 1_000]);
}

/// The models by hand: each server's change of the model that it was sent, weighted by the examples of all its clients
/// and by age, which leaves the rest to the old model.
#[test]
fn models_are_weighted_by_examples_and_age() {
    let task = changed(LEARNING, "examples = 700", "examples = 700\npartition = { gamma-sized = { minimum = 8 } }");
    for (keys, combines_models) in
        [("staleness = { polynomial = {} }", false), ("staleness = { polynomial = {} }, combine = \"models\"", true)]
    {
        let scenario = changed(&two(keys), "[task.none]\npayload = \"1 kB\"\n", &task);
        let world = world(&scenario, 1);
        let played = played(&scenario, SCRIPT, 3).unwrap();
        let learner = labelled(&world);
        let trained = |client: u32, round: u32, number: u32, start: &[f32]| {
            let client = ClientId(client);
            let examples = learner.partition.client(client);
            let job =
                TrainingJob { client, round: Round(round), number: JobNumber(number), start, examples: &examples };
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
        let size = |client: u32| learner.partition.size(ClientId(client)) as f64;
        let weights = [size(0) + size(1), size(2) + size(3)];
        // Server, the model that it was sent, its own, and its age.
        let next = |now: &[f32], arrived: [(usize, &[f32], &[f32], u32); 2]| -> Vec<f32> {
            let total: f64 = arrived.iter().map(|(server, ..)| weights[*server]).sum();
            let place = |place: usize| {
                let one = |(server, sent, own, age): &(usize, &[f32], &[f32], u32)| {
                    let from = if combines_models { now[place] } else { sent[place] };
                    weights[*server] / (1.0 + f64::from(*age)).sqrt() * (f64::from(own[place]) - f64::from(from))
                };
                (f64::from(now[place]) + arrived.iter().map(one).sum::<f64>() / total) as f32
            };
            (0..now.len()).map(place).collect()
        };
        let zero = world.task.as_ref().unwrap().initial_model(0, &world.streams);
        let first = [trained(0, 1, 1, &zero), trained(3, 1, 1, &zero)];
        let one = next(&zero, [(0, &zero, &first[0], 0), (1, &zero, &first[1], 0)]);
        // Edge 0's second model began in round 1, at 16.
        let second = [trained(0, 1, 2, &zero), trained(0, 2, 3, &one)];
        let two = next(&one, [(0, &zero, &second[0], 1), (0, &one, &second[1], 0)]);
        let third = [trained(3, 2, 2, &one), trained(0, 3, 4, &two)];
        let three = next(&two, [(1, &one, &third[0], 1), (0, &two, &third[1], 0)]);
        for (round, expected) in [one, two, three].iter().enumerate() {
            for (place, (found, expected)) in played.seen.models[round].iter().zip(expected).enumerate() {
                assert!(
                    (found - expected).abs() < 1e-6,
                    "model {round}, parameter {place}: {found}, by hand {expected}"
                );
            }
        }
    }
}

/// Twelve clients at four edge servers with three cluster models.
const CLUSTERS: &str = r#"name = "arrivals"
seeds = 2
[stop]
rounds = 12
[evaluate]
every = 3
servers = true
[record]
explain = true
[population]
clients = 12
[population.latency]
download = { constant = "0.1 s" }
compute = { constant = "1 s" }
upload = { constant = "0.1 s" }
[task.classification]
model = { mlp = { hidden = [6] } }
data = { synthetic = { height = 4, width = 4, classes = 4, train = 240, test = 80 } }
partition = { dirichlet-two-level = { servers = 4, alpha_server = 0.5, alpha_client = 0.5 } }
[training]
batch = 8
optimizer = { sgd = { lr = 0.05, momentum = 0.5 } }
[protocol.hierarchical]
edges = 4
cohort = 2
edge_rounds = 2
[clusters]
count = 3
assign = { random = { every = 3 } }
[policy.random]
[policy.thompson]
warmup = 2
"#;

fn digests(scenario: &str, more: &[&str]) -> Vec<(String, String, String)> {
    let place = Workplace::with(scenario);
    place.run_into("out", more);
    assert_eq!(place.fedgenie(&["verify", "out"]).code, 0);
    place.digests("out")
}

/// Where all edge servers take equally long and the cloud takes in as many models as there are, nobody waits.
#[test]
fn servers_of_one_speed_do_as_a_cloud_that_waits() {
    let cloud = "edge_rounds = 2\ncloud = { buffer = 4, staleness = { hinge = { slope = 1.0, grace = 0 } } }\n";
    let models =
        |scenario: &str| -> Vec<String> { digests(scenario, &[]).into_iter().map(|(_, _, model)| model).collect() };
    assert_eq!(models(CLUSTERS), models(&changed(CLUSTERS, "edge_rounds = 2\n", cloud)));
}

/// Links and clients of different speeds, regret in hindsight across rounds, a probe before each selection.
fn uneven() -> String {
    let cloud = "edge_rounds = 2\nlink = { download = { exponential = { mean = \"1 s\" } }, upload = { uniform = [\"0.5 s\", \"3 s\"] \
                 } }\ncloud = { buffer = 3, staleness = { polynomial = {} }, max_staleness = 2 }\n";
    let compute = "compute = { exponential = { mean = { uniform = [\"0.2 s\", \"2 s\"] } } }";
    let scenario = changed(CLUSTERS, "compute = { constant = \"1 s\" }", compute);
    let hindsight = "[regret]\ncounterfactual = true\nmeters = []\nutility = { aggregate = { server_accuracy = 1.0 } }\n\
                     [policy.power-of-choice]\n[policy.random]\n";
    changed(&changed(&scenario, "edge_rounds = 2\n", cloud), "[policy.random]\n", hindsight)
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let place = Workplace::with(&uneven());
    let folders = ["1", "2", "7"].map(|threads| {
        place.run_into(threads, &["--threads", threads]);
        let runs = ["random-s1", "thompson-s2", "power-of-choice-s1"];
        (place.digests(threads), runs.map(|run| place.text(&format!("{threads}/runs/{run}/rounds.jsonl"))))
    });
    assert!(folders[0] == folders[1] && folders[0] == folders[2]);
    let rounds = place.lines("1/runs/random-s1/rounds.jsonl");
    let all: Vec<_> = rounds.iter().flat_map(|round| round["edge_models"].as_array().unwrap()).collect();
    assert!(all.iter().any(|model| model["staleness"] == 1) && all.len() >= 36, "{all:?}");
    assert!(rounds.last().unwrap()["regret"]["counterfactual"].as_f64().unwrap() > 0.0);
    assert_eq!(place.fedgenie(&["verify", "1"]).code, 0);
}

/// The round under way when virtual time is over makes no model.
#[test]
fn a_run_ends_with_its_virtual_time() {
    let scenario = changed(&uneven(), "rounds = 12\n", "virtual_time = \"31 s\"\n");
    let place = Workplace::with(&scenario);
    place.run_into("out", &[]);
    let rounds = place.lines("out/runs/random-s1/rounds.jsonl");
    let (last, before) = rounds.split_last().unwrap();
    assert!(last["abandoned"] == true && before.iter().all(|round| round["abandoned"].is_null()));
    assert!(before.len() > 3 && last["clusters"].is_null());
}

#[test]
fn two_kinds_of_clouds_do_not_mix() {
    for (cloud, parts) in [
        ("{ buffer = 2, cohort = 1 }", ["cloud.cohort: is for a cloud that chooses edge servers", "with buffer"]),
        (
            "{ buffer = 2, policy = { random = {} } }",
            ["cloud.policy: is for a cloud that chooses edge servers", "with buffer"],
        ),
        (
            "{ buffer = 2, timeout = \"1 s\" }",
            ["cloud.timeout: is for a cloud that chooses edge servers", "with buffer"],
        ),
        ("{ buffer = 0 }", ["cloud.buffer: found 0", "between 1 and the number of edge servers (4)"]),
        ("{ buffer = 5 }", ["cloud.buffer: found 5", "between 1 and the number of edge servers (4)"]),
        ("{ buffer = 4294967296 }", ["cloud.buffer: found 4294967296", "the number of edge servers (4)"]),
        (
            "{ buffer = 2, staleness = { polynomial = { exponent = -1.0 } } }",
            ["cloud.staleness: found exponent -1", "at least 0"],
        ),
        (
            "{ cohort = 1, policy = { random = {} }, max_staleness = 1 }",
            ["cloud.max_staleness: is for a cloud that takes in models as they arrive", "give buffer"],
        ),
        ("{ staleness = \"constant\" }", ["cloud.staleness: is for a cloud that takes in", "give buffer"]),
        ("{ cohort = 1, policy = { random = {} }, combine = \"models\" }", ["cloud.combine: is for", "give buffer"]),
        ("{ cohort = 1 }", ["cloud.policy: is missing", "or give buffer"]),
        ("{ policy = { random = {} } }", ["cloud.cohort: is missing", "or give buffer"]),
        ("{ cohort = 9, policy = { random = {} } }", ["cloud.cohort: found 9", "the number of edge servers (4)"]),
    ] {
        let scenario = changed(CLUSTERS, "edge_rounds = 2\n", &format!("edge_rounds = 2\ncloud = {cloud}\n"));
        let answer = Workplace::with(&scenario).fedgenie(&["run", SCENARIO]);
        assert_eq!(answer.code, 2, "{answer:?}");
        for part in parts {
            assert!(answer.stderr.contains(part), "{part:?} is not in {answer:?}");
        }
    }
}
