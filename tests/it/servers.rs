//! Edge servers: the source of their data, and the measures of their models.

use super::support::{SCENARIO, Workplace, changed, labelled, line_of, world};
use fedgenie::id::{ClientId, EdgeId, JobNumber, Round};
use fedgenie::layout::Update;
use fedgenie::model::weights::read_safetensors;
use fedgenie::model::{Batch, evaluate};
use fedgenie::task::{Job, Labelled, Task, Worker};
use serde_json::Value;

/// Three edge servers with 5, 4 and 4 clients, which learn from data that are spread by owner.
const TIERS: &str = r#"
name = "servers"
seeds = 1
[stop]
rounds = 6
[population]
clients = 13
[population.latency]
download = { constant = "0.1 s" }
compute = { exponential = { mean = { uniform = ["0.2 s", "1 s"] } } }
upload = { constant = "0.1 s" }
[task.classification]
data = { synthetic = { height = 4, width = 4, train = 260, test = 90 } }
model = { mlp = { hidden = [6] } }
partition = { dirichlet-two-level = { servers = 3, alpha_server = 0.5, alpha_client = 0.5, law = "by-owner" } }
[training]
batch = 8
optimizer = { sgd = { lr = 0.1 } }
[protocol.hierarchical]
edges = 3
participation = 0.6
[policy.random]
"#;

#[test]
fn test_examples_that_are_drawn_belong_to_one_server_each() {
    for seed in 0..5 {
        let world = world(TIERS, seed);
        let mut all: Vec<u32> = (0..3).flat_map(|server| world.test_of(EdgeId(server)).unwrap().to_vec()).collect();
        all.sort_unstable();
        assert_eq!(all, (0..90).collect::<Vec<u32>>());
    }
}

#[test]
fn edge_servers_are_those_of_the_partition() {
    for (from, to, path, words) in [
        ("edges = 3", "edges = 4", "edges", "found 4; the partition dirichlet-two-level deals to servers = 3"),
        ("edges = 3", "edges = 3\nassign = \"cyclic\"", "assign", "take assign = \"blocks\""),
    ] {
        let scenario = changed(TIERS, from, to);
        let answer = Workplace::with(&scenario).fedgenie(&["run", SCENARIO, "--quiet"]);
        let line = line_of(&scenario, to.lines().last().unwrap());
        let start = format!("fedgenie: error: {SCENARIO}:{line}: protocol.hierarchical.{path}: ");
        assert!(answer.code == 2 && answer.stderr.starts_with(&start), "{start}\n{}", answer.stderr);
        assert!(answer.stderr.contains(words), "{}", answer.stderr);
    }
    // Without edge servers, the partition's servers are its own affair; one edge server has everybody.
    let flat = changed(TIERS, "hierarchical]\nedges = 3\nparticipation = 0.6", "synchronous]\ncohort = 4");
    Workplace::with(&flat).run_into("out", &[]);
    let one = changed(&changed(TIERS, "edges = 3", "edges = 1\nassign = \"cyclic\""), "servers = 3", "servers = 1");
    Workplace::with(&one).run_into("out", &[]);
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

/// Metrics of servers against a second path: the final model, read from its file and evaluated on each server's test
/// examples. Rounds say the same, beside the accuracy that a policy asks for.
#[test]
fn servers_are_measured_on_their_test_examples() {
    let scenario = changed(TIERS, "[policy.random]", "[evaluate]\nservers = true\nevery = 2\n[policy.thompson]");
    let place = Workplace::with(&scenario);
    place.run_into("out", &["--models"]);
    let world = world(&scenario, 1);
    let task = labelled(&world);
    let model = read_safetensors(&*task.model, &place.path("out/runs/thompson-s1/model.safetensors")).unwrap();
    let of = |examples: &[u32]| evaluate(&*task.model, &model, Batch { data: &task.data.test, examples }, false);
    let found: Vec<_> = (0..3).map(|server| of(world.test_of(EdgeId(server)).unwrap())).collect();
    let metrics = &place.json("out/summary.json")["runs"][0]["final"];
    let accuracies: Vec<f64> = found.iter().map(|found| found.accuracy()).collect();
    let mean = accuracies.iter().sum::<f64>() / 3.0;
    let spread = accuracies.iter().map(|one| (one - mean) * (one - mean)).sum::<f64>() / 3.0;
    let loss = found.iter().map(|found| found.loss()).sum::<f64>() / 3.0;
    let (min, max) = accuracies.iter().fold((1.0_f64, 0.0_f64), |(min, max), &one| (min.min(one), max.max(one)));
    for (name, expected) in [
        ("server_accuracy_mean", mean),
        ("server_accuracy_sd", spread.sqrt()),
        ("server_accuracy_min", min),
        ("server_accuracy_max", max),
        ("server_loss_mean", loss),
        ("test_accuracy", of(&(0..90).collect::<Vec<u32>>()).accuracy()),
    ] {
        assert!((number(&metrics[name]) - expected).abs() < 1e-9, "{name}: {} {expected}", metrics[name]);
    }
    let rounds = place.lines("out/runs/thompson-s1/rounds.jsonl");
    for (round, is_evaluated) in rounds.iter().zip([false, true].into_iter().cycle()) {
        let servers = round["servers"].as_array().unwrap();
        assert_eq!(servers.len(), 3);
        for server in servers {
            let keys = ["server", "cluster", "examples", "test_examples", "accuracy", "loss", "edge_accuracy"];
            assert!(keys.iter().all(|key| server.get(key).is_some()), "{server}");
            assert_eq!((server["accuracy"].is_number(), server["loss"].is_number()), (is_evaluated, is_evaluated));
            assert!(server["cluster"].is_null() && server["edge_accuracy"].is_number());
        }
    }
    for (server, found) in rounds[5]["servers"].as_array().unwrap().iter().zip(&found) {
        assert!((number(&server["accuracy"]) - found.accuracy()).abs() < 1e-9);
        assert!((number(&server["loss"]) - found.loss()).abs() < 1e-9);
        assert_eq!(number(&server["test_examples"]), found.examples as f64);
    }
}

/// Servers' values in the last evaluated rounds, from `rounds.jsonl`; and the classes of their data.
#[test]
fn the_last_rounds_are_averaged_server_by_server() {
    let place = Workplace::with(&changed(TIERS, "[policy.random]", "[evaluate]\nlast = 4\n[policy.random]"));
    place.run_into("out", &[]);
    assert!(place.text("out/scenario.toml").contains("servers = true"), "the default is written out");
    let rounds = place.lines("out/runs/random-s1/rounds.jsonl");
    let summary = &place.json("out/summary.json")["runs"][0];
    for key in ["accuracy", "loss"] {
        let of =
            |server: usize| rounds[2..].iter().map(|round| number(&round["servers"][server][key])).sum::<f64>() / 4.0;
        let means: Vec<f64> = (0..3).map(of).collect();
        let mean = means.iter().sum::<f64>() / 3.0;
        let spread = means.iter().map(|one| (one - mean) * (one - mean)).sum::<f64>() / 3.0;
        let (min, max) = means.iter().fold((9.0_f64, 0.0_f64), |(min, max), &one| (min.min(one), max.max(one)));
        for (statistic, expected) in [("mean", mean), ("sd", spread.sqrt()), ("min", min), ("max", max)] {
            let name = format!("server_{key}_{statistic}_last");
            assert!((number(&summary["final"][&name]) - expected).abs() < 1e-12, "{name}");
        }
    }
    let (world, classes) = (world(TIERS, 1), 10);
    let task = labelled(&world);
    let labels = [&task.data.train, &task.data.test].map(|data| data.classes().unwrap().0);
    for (server, members) in world.members().iter().enumerate() {
        let counts = |labels: &[u8], examples: &mut dyn Iterator<Item = u32>| {
            let mut counts = vec![0_u64; classes];
            examples.for_each(|example| counts[usize::from(labels[example as usize])] += 1);
            counts
        };
        let train =
            counts(labels[0], &mut members.iter().flat_map(|&client| task.partition.client(client).into_owned()));
        let test = counts(labels[1], &mut world.test_of(EdgeId(server as u32)).unwrap().iter().copied());
        assert_eq!(summary["partition"]["servers"][server], serde_json::json!({ "train": train, "test": test }));
        assert_eq!(rounds[0]["servers"][server]["examples"], train.iter().sum::<u64>());
    }
}

/// Where there are cluster models, servers are evaluated unless the scenario says otherwise, for all policies alike;
/// which changes no digest.
#[test]
fn servers_are_evaluated_where_there_are_clusters() {
    let policies = "[policy.random]\n[policy.plain]\nkind = \"random\"\nwith = { clusters = \"none\" }\n";
    let clusters = format!("[clusters]\ncount = 2\n{policies}");
    let run = |scenario: &str| {
        let place = Workplace::with(scenario);
        place.run_into("out", &[]);
        let summary = place.json("out/summary.json");
        let is_measured = |run: &Value| run["final"].get("server_accuracy_mean").is_some();
        let measured: Vec<bool> = summary["runs"].as_array().unwrap().iter().map(is_measured).collect();
        let answer = place.fedgenie(&["verify", "out"]);
        assert_eq!(answer.code, 0, "{}{}", answer.stdout, answer.stderr);
        (place, measured)
    };
    let (place, measured) = run(&changed(TIERS, "[policy.random]\n", &clusters));
    assert_eq!(measured, [true, true]);
    // The resolved scenario says it.
    let digests = place.digests("out");
    place.run_file("out/scenario.toml", "again", &[]);
    assert_eq!(digests, place.digests("again"));
    let without = format!("[evaluate]\nservers = false\n{clusters}");
    let (place, measured) = run(&changed(TIERS, "[policy.random]\n", &without));
    assert_eq!((measured, place.digests("out")), (vec![false, false], digests));
    // A policy alone has them.
    let one = "[policy.random]\n[policy.own]\nkind = \"random\"\nwith = { \"clusters.count\" = 2 }\n";
    assert_eq!(run(&changed(TIERS, "[policy.random]\n", one)).1, [true, true]);
    assert_eq!(run(TIERS).1, [false]);
    for (evaluate, words) in [("last = 0", "found 0"), ("last = 3\nservers = false", "take one of the two out")] {
        let scenario = changed(TIERS, "[policy.random]", &format!("[evaluate]\n{evaluate}\n[policy.random]"));
        let answer = Workplace::with(&scenario).fedgenie(&["run", SCENARIO, "--quiet"]);
        let start = format!("fedgenie: error: {SCENARIO}:{}: evaluate.last: ", line_of(&scenario, "last ="));
        assert!(answer.stderr.starts_with(&start) && answer.stderr.contains(words), "{}", answer.stderr);
    }
}

/// Three servers of three clients. The cloud asks two servers in turn, and each of them a client in turn, which takes
/// one step with all its data.
fn drifting(rounds: u32, drift: &str) -> String {
    let scenario = changed(TIERS, "rounds = 6", &format!("rounds = {rounds}"));
    let scenario = changed(&scenario, "clients = 13", "clients = 9");
    let cohort = "cohort = 1\ncloud = { cohort = 2, policy = { round-robin = {} } }";
    let scenario = changed(&scenario, "participation = 0.6", cohort);
    let scenario = changed(&scenario, "batch = 8", "batch = 1000");
    let scenario = changed(&scenario, "[policy.random]", "[evaluate]\nservers = true\n[policy.round-robin]");
    changed(&scenario, "model = { mlp", &format!("{drift}\nmodel = {{ mlp"))
}

/// From round 3, server m and its clients have the earlier data of server m + 2: data are compared with the partition,
/// accuracies with the model's on the new test examples, and the model of round 3 with one that is put together from
/// jobs of the task before the drift, on the new clients' data, by the servers' amounts of data.
#[test]
fn data_move_between_servers() {
    const ROTATE: &str = "drift = { round = 3, rotate = 2 }";
    let world = world(&drifting(4, ROTATE), 1);
    let task = labelled(&world);
    let source = |client: u32| ClientId((client / 3 + 2) % 3 * 3 + client % 3);
    assert_eq!((0..9).map(|client| source(client).0).collect::<Vec<_>>(), [6, 7, 8, 0, 1, 2, 3, 4, 5]);
    let moved: &Labelled = world.task_in(Round(3)).unwrap().downcast().unwrap();
    for client in 0..9 {
        assert_eq!(moved.partition.client(ClientId(client)), task.partition.client(source(client)));
    }
    let model = |rounds: u32, drift: &str| {
        let place = Workplace::with(&drifting(rounds, drift));
        place.run_into("out", &["--models"]);
        let model = read_safetensors(&*task.model, &place.path("out/runs/round-robin-s1/model.safetensors")).unwrap();
        (model, place.lines("out/runs/round-robin-s1/rounds.jsonl"))
    };
    let (before, _) = model(2, ROTATE);
    let (after, rounds) = model(3, ROTATE);
    let (never, without) = model(3, "");
    assert_eq!(rounds[..2], without[..2], "nothing has happened yet");
    // Nobody is told: the same clients are asked, and take as long.
    assert_eq!((&rounds[2]["selected"], &rounds[2]["closed_s"]), (&without[2]["selected"], &without[2]["closed_s"]));

    let examples = |server: u32| {
        (0..3).map(|client| task.describe().examples_of(source(3 * server + client))).sum::<usize>() as f64
    };
    let mut expected = vec![0.0; before.len()];
    let asked: Vec<u32> =
        rounds[2]["arrived"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect();
    assert_eq!(asked.len(), 2);
    let total: f64 = asked.iter().map(|client| examples(client / 3)).sum();
    for client in asked {
        let (round, number) = (Round(3), JobNumber(3));
        let job = Job {
            client: source(client),
            round,
            number,
            start: &before,
            private: None,
            epochs: None,
            correction: None,
            contrast: None,
        };
        let mut update = Update::default();
        task.train(&job, &world.context(), &mut Worker::default(), &mut update).unwrap();
        let weight = examples(client / 3) / total;
        expected.iter_mut().zip(&update.parameters).for_each(|(sum, &one)| *sum += weight * f64::from(one));
    }
    let distance =
        |one: &[f32]| one.iter().zip(&expected).map(|(&one, sum)| (f64::from(one) - sum).abs()).fold(0.0, f64::max);
    assert!(distance(&after) < 1e-5 && distance(&never) > 1e-3, "{} {}", distance(&after), distance(&never));

    for server in 0..3 {
        let tests = world.test_of(EdgeId((server + 2) % 3)).unwrap();
        let found = evaluate(&*task.model, &after, Batch { data: &task.data.test, examples: tests }, false);
        let told = &rounds[2]["servers"][server as usize];
        assert_eq!((number(&told["examples"]), number(&told["test_examples"])), (examples(server), tests.len() as f64));
        assert!((number(&told["accuracy"]) - found.accuracy()).abs() < 1e-9);
        assert!((number(&told["loss"]) - found.loss()).abs() < 1e-6);
    }
    // Around the circle is nowhere.
    let around = model(3, "drift = { round = 3, rotate = 3 }");
    assert_eq!((around.0, &around.1[..]), (never, &without[..]));
}

#[test]
fn data_that_cannot_move() {
    let drift = "drift = { round = 3, rotate = 2 }";
    let uneven = changed(&drifting(4, drift), "clients = 9", "clients = 10");
    let flat = changed(TIERS, "hierarchical]\nedges = 3\nparticipation = 0.6", "synchronous]\ncohort = 4");
    let flat = changed(&flat, "model = { mlp", &format!("{drift}\nmodel = {{ mlp"));
    let zero = drifting(4, "drift = { round = 0, rotate = 2 }");
    for (scenario, path, words) in [
        (uneven, "", "equally many clients, whose data they exchange; found 3 to 4"),
        (flat, "", "take [protocol.hierarchical]"),
        (zero, ".round", "rounds are numbered from 1"),
    ] {
        let answer = Workplace::with(&scenario).fedgenie(&["run", SCENARIO, "--quiet"]);
        let line = line_of(&scenario, "drift =");
        let start = format!("fedgenie: error: {SCENARIO}:{line}: task.classification.drift{path}: ");
        assert!(answer.code == 2 && answer.stderr.starts_with(&start), "{start}\n{}", answer.stderr);
        assert!(answer.stderr.contains(words), "{}", answer.stderr);
    }
}

/// What an edge server has made before the cloud combines it, by two other paths: with a client at each server it is
/// the client's own model, as `controls.local` trains it; with one server it is the cloud's model.
#[test]
fn models_of_edge_servers_are_measured_before_the_cloud_combines_them() {
    let alone = changed(TIERS, "rounds = 6", "rounds = 1");
    let alone = changed(&changed(&alone, "clients = 13", "clients = 3"), "participation = 0.6", "participation = 1.0");
    let alone = changed(&alone, "batch = 8", "batch = \"all\"\nepochs = 3");
    let controls = "[controls]\nlocal = { epochs = 3 }\n[evaluate]\nservers = true\nedges = true\n[policy.random]";
    let place = Workplace::with(&changed(&alone, "[policy.random]", controls));
    place.run_into("out", &[]);
    let summary = place.json("out/summary.json");
    let (found, local) = (&summary["runs"][0]["final"], &summary["controls"][0]["local"]);
    for statistic in ["mean", "sd", "p10", "min", "max"] {
        for measure in ["accuracy", "loss"] {
            let of = |place: &str| format!("{place}_{measure}_{statistic}");
            let (edge, own) = (number(&found[of("edge")]), number(&local[of("server")]["mean"]));
            // Models are sums of what was sent and of the change, in single precision.
            assert!((edge - own).abs() < 1e-6, "{measure} {statistic}: {edge}, trained alone {own}");
        }
    }
    assert_ne!(found["edge_loss_mean"], found["server_loss_mean"], "the cloud has combined three models");
    let one = changed(&changed(TIERS, "edges = 3", "edges = 1"), "servers = 3", "servers = 1");
    let place = Workplace::with(&changed(&one, "[policy.random]", controls));
    place.run_into("out", &[]);
    let found = &place.json("out/summary.json")["runs"][0]["final"];
    assert_eq!(found["edge_loss_mean"], found["server_loss_mean"]);
    assert_eq!(found["edge_accuracy_mean"], found["test_accuracy"]);
}

/// With cluster models each server's is of its cluster: a policy that asks for accuracies is told the same ones.
/// Measuring changes no digest, and threads change nothing.
#[test]
fn measuring_edge_servers_changes_nothing() {
    let clusters = "[clusters]\ncount = 2\nassign = { random = { every = 2 } }\n[evaluate]\nevery = 1\nlast = 2\n";
    for tier in ["", "cloud = { buffer = 2 }\n"] {
        let plain = changed(TIERS, "[policy.random]", &format!("{tier}{clusters}[policy.thompson]"));
        let edges = changed(&plain, "every = 1\n", "every = 1\nedges = true\n");
        let digests = [&plain, &edges].map(|scenario| {
            let place = Workplace::with(scenario);
            place.run_into("out", &[]);
            place.digests("out")
        });
        assert_eq!(digests[0], digests[1]);
        let place = Workplace::with(&edges);
        place.run_into("out", &[]);
        let rounds = place.lines("out/runs/thompson-s1/rounds.jsonl");
        for round in &rounds {
            let servers = round["servers"].as_array().unwrap().iter();
            let told: Vec<f64> = servers.filter_map(|server| server["edge_accuracy"].as_f64()).collect();
            let mean = told.iter().sum::<f64>() / told.len() as f64;
            let found = number(&round["metrics"]["edge_accuracy_mean"]);
            assert!(told.is_empty() || (found - mean).abs() < 1e-9, "{found}, told to the policy {mean}");
        }
        let whole = place.text("out/runs/thompson-s1/rounds.jsonl");
        place.run_into("part", &["--threads", "1"]);
        assert_eq!(place.text("part/runs/thompson-s1/rounds.jsonl"), whole);
    }
}

#[test]
fn models_of_edge_servers_need_edge_servers() {
    let flat = changed(TIERS, "hierarchical]\nedges = 3\nparticipation = 0.6", "synchronous]\ncohort = 4");
    let flat = changed(&flat, "[policy.random]", "[evaluate]\nedges = true\n[policy.random]");
    let answer = Workplace::with(&flat).fedgenie(&["run", SCENARIO, "--quiet"]);
    let start =
        format!("fedgenie: error: {SCENARIO}:{}: evaluate.edges: is about models", line_of(&flat, "edges = true"));
    assert!(answer.code == 2 && answer.stderr.starts_with(&start), "{start}\n{}", answer.stderr);
    let tiers = changed(&flat, "synchronous]\ncohort = 4", "hierarchical]\nedges = 3\nparticipation = 1.0");
    let (before, rest) = tiers.split_once("[task.classification]").unwrap();
    let (_, after) = rest.split_once("[protocol").unwrap();
    let scripted = format!(
        "{before}[task.scripted]\nmetric = \"test_score\"\nvalues = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]\neffects = [1.0]\n[protocol{after}"
    );
    let answer = Workplace::with(&scripted).fedgenie(&["run", SCENARIO, "--quiet"]);
    let told = "evaluate.edges: the task (scripted) trains nothing, so that edge servers make no models";
    assert!(answer.code == 2 && answer.stderr.contains(told), "{}", answer.stderr);
}
