//! Learning without training: metrics worked out by hand under every protocol, and scripts with something wrong.

use super::support::{Answer, SCENARIO, SETTINGS, Script, Workplace, changed, line_of, world};
use fedgenie::id::ClientId;
use fedgenie::math::special::normal_quantile;
use fedgenie::metric::{MetricId, interned};
use fedgenie::policy::{Policies, Policy};
use fedgenie::record::Record;
use fedgenie::recorder::{RoundMark, RoundSummary, Sink};
use fedgenie::rng::{Purpose, Streams};
use fedgenie::run::{Evaluations, Run, RunError, RunSettings};
use std::io;

/// Clients as in the tables of the protocols' tests. Jobs of client 0 take 12 s, of 1: 23 s, of 2 and 4: 18 s, of 3:
/// 22 s. All numbers are sums of powers of two, so that sums are exact.
const CLIENTS: &str = r#"
name = "scripted"
seeds = 1
[stop]
rounds = 100
[population]
clients = 5
data_size = { each = [10, 20, 30, 40, 50] }
[population.latency]
download = { constant = { each = ["1 s", "2 s", "4 s", "20 s", "4 s"] } }
compute = { constant = { each = ["10 s", "20 s", "4 s", "1 s", "4 s"] } }
upload = { constant = { each = ["1 s", "1 s", "10 s", "1 s", "10 s"] } }
[task.scripted]
metric = "test_score"
better = "higher"
payload = "1 kB"
values = [16.0, 32.0]
effects = [0.25, 0.5, 1.0, 2.0, 4.0]
per_client = 8.0
gains = [0.0625, 0.125, 0.25, 0.5, 1.0]
client_losses = [0.1, 0.7, 0.3, 0.9, 0.5]
[policy.random]
"#;

/// Keeps the metrics of each round.
#[derive(Default)]
struct Course(Vec<Vec<(&'static str, f64)>>);

impl Sink for Course {
    fn record(&mut self, _: &Record<'_>) -> io::Result<()> {
        Ok(())
    }
    fn round(&mut self, summary: &RoundSummary<'_>, _: bool, _: &RoundMark) -> io::Result<()> {
        let named = |(id, value): &(MetricId, f64)| (interned(&id.to_string()), *value);
        self.0.push(summary.metrics.iter().map(named).collect());
        Ok(())
    }
}

fn script(turns: &[&[u32]]) -> Box<dyn Policy> {
    Box::new(Script::new(turns))
}

/// The metrics of so many rounds.
fn course(scenario: &str, policies: impl Into<Policies>, rounds: u32) -> Result<Course, RunError> {
    let world = world(scenario, 1);
    let mut course = Course::default();
    let servers = scenario.contains("servers = true");
    let settings = RunSettings { evaluate: Evaluations { servers, ..Evaluations::every(1) }, ..SETTINGS };
    let mut run = Run::new(&world, "scripted", policies, settings, &mut course);
    for _ in 0..rounds {
        run.step()?;
    }
    run.finish()?;
    Ok(course)
}

/// `test_score` under a protocol of one server.
fn scores(protocol: &str, turns: &[&[u32]], rounds: u32) -> Vec<f64> {
    let found = course(&format!("{CLIENTS}{protocol}"), script(turns), rounds).unwrap();
    assert!(found.0.iter().all(|metrics| metrics.len() == 1 && metrics[0].0 == "test_score"));
    found.0.iter().map(|metrics| metrics[0].1).collect()
}

const SYNCHRONOUS: &str = "[protocol.synchronous]\ncohort = 2\n";

/// | round | A | value + effect + 8/|A| + gains |
/// |---|---|---|
/// | 1 | 0, 1 | 16 + 3/8 + 4 + 3/32 |
/// | 2 | 2 | 32 + 1 + 8 + (3/32 + 1/4) |
/// | 3 | 2 | the same + 1/4 |
#[test]
fn in_synchronous_rounds() {
    let found = scores(SYNCHRONOUS, &[&[1, 0], &[2]], 3);
    assert_eq!(found, [20.46875, 41.34375, 41.59375]);
}

/// Client 2 is late in round 1 and its update is aggregated in round 2, with that of client 0.
#[test]
fn a_late_update_counts_where_it_is_aggregated() {
    let protocol = "[protocol.deadline]\ncohort = 2\ndeadline = \"15 s\"\nlate = { carry = {} }\n";
    let found = scores(protocol, &[&[0, 2], &[0]], 2);
    let first = 16.0 + 0.25 + 8.0 + 0.0625;
    assert_eq!(found, [first, 32.0 + 0.625 + 4.0 + (0.0625 + 0.15625)]);
}

/// One update is too few: nobody's is aggregated.
#[test]
fn a_round_that_aggregates_nothing_has_its_value_alone() {
    let protocol = "[protocol.deadline]\ncohort = 2\ndeadline = \"15 s\"\nquorum = 2\n";
    assert_eq!(scores(protocol, &[&[0, 2]], 2), [16.0, 32.0]);
}

/// Rounds 1 and 2 of the timeline of ARCHITECTURE take in 0 and 1, then 2 and 0.
#[test]
fn without_rounds() {
    let protocol = "[protocol.buffered]\nconcurrency = 2\nbuffer = 2\n";
    let found = scores(protocol, &[&[0], &[1], &[2], &[0], &[4]], 2);
    assert_eq!(found, [20.46875, 32.0 + 0.625 + 4.0 + (0.09375 + 0.15625)]);
}

/// Edge 0 has clients 0 to 2 and takes in 0 and 1; edge 1 has 3 and 4, and takes in both; in the second round of the
/// cloud edge 1 alone takes part and takes in 3 twice, which counts once.
///
/// | round | edge 0 | edge 1 |
/// |---|---|---|
/// | 1 | 16 + 3/8 + 4 + 3/32 | 16 + 3 + 4 + 3/4 |
/// | 2 | 32 + 3/32 | 32 + 2 + 8 + (3/4 + 1/2) |
#[test]
fn at_edge_servers() {
    let scenario = format!(
        "{CLIENTS}[protocol.hierarchical]\nedges = 2\ncohort = 1\nedge_rounds = 2\n[evaluate]\nservers = true\n"
    );
    let edges = vec![script(&[&[0], &[1]]), script(&[&[4], &[3]])];
    let policies = Policies::Tiers { edges, cloud: Some(script(&[&[0, 1], &[1]])) };
    let found = course(&scenario, policies, 2).unwrap();
    let expected = |values: [f64; 2]| {
        let (mean, deviation) = ((values[0] + values[1]) / 2.0, (values[1] - values[0]).abs() / 2.0);
        [
            ("test_score", mean),
            ("server_score_mean", mean),
            ("server_score_sd", deviation),
            ("server_score_p10", values[0]),
            ("server_score_min", values[0]),
            ("server_score_max", values[1]),
        ]
    };
    assert_eq!(found.0, [expected([20.46875, 23.75]), expected([32.09375, 43.25])]);
}

#[test]
fn noise_belongs_to_seed_round_and_server() {
    let noisy = changed(CLIENTS, "per_client = 8.0", "per_client = 8.0\nnoise = 2.0");
    let found = course(&format!("{noisy}{SYNCHRONOUS}"), script(&[&[1, 0], &[2]]), 2).unwrap();
    let streams = Streams::new(1);
    let noise = |server, round| 2.0 * normal_quantile(streams.stream(Purpose::Script, server, round).uniform());
    assert_eq!(found.0[0][0].1, 20.46875 + noise(0, 1));
    assert_eq!(found.0[1][0].1, 41.34375 + noise(0, 2));
    let tiers = format!("{noisy}[protocol.hierarchical]\nedges = 2\ncohort = 1\n[evaluate]\nservers = true\n");
    let policies = Policies::Tiers { edges: vec![script(&[&[0]]), script(&[&[4]])], cloud: None };
    let found = course(&tiers, policies, 1).unwrap();
    let (first, second) = (24.3125 + noise(0, 1), 16.0 + 4.0 + 8.0 + 1.0 + noise(1, 1));
    assert_eq!(found.0[0][0].1, (first + second) / 2.0);
    assert_eq!(found.0[0][5].1, first.max(second));
}

#[test]
fn nothing_given_adds_nothing_and_the_start_has_the_first_value_alone() {
    let bare = "[task.scripted]\n[policy.random]\n";
    let head = &CLIENTS[..CLIENTS.find("[task.scripted]").unwrap()];
    let found = course(&format!("{head}{bare}{SYNCHRONOUS}"), script(&[&[0]]), 2).unwrap();
    assert_eq!(found.0, [[("test_score", 0.0)], [("test_score", 0.0)]]);
    let noisy = changed(CLIENTS, "per_client = 8.0", "per_client = 8.0\nnoise = 2.0");
    assert_eq!(world(&format!("{noisy}{SYNCHRONOUS}"), 1).initial_measures().unwrap(), [16.0]);
}

#[test]
fn data_sizes_are_those_of_the_population() {
    let world = world(&format!("{CLIENTS}{SYNCHRONOUS}"), 1);
    assert_eq!(world.population.data_sizes(), [10, 20, 30, 40, 50]);
    let task = world.task.as_deref().unwrap();
    assert_eq!((task.examples(ClientId(3)), task.describe().all_examples), (40, 150));
    assert_eq!(world.training.payload_bytes, 1_000);
    assert_eq!(world.shares[4], 50.0 / 150.0);
}

/// Clients 3 and 1 have the largest losses, and say them.
#[test]
fn losses_are_for_policies_that_ask() {
    let scenario =
        changed(CLIENTS, "[policy.random]", "[record]\nupdates = true\n[policy.power-of-choice]\ncandidates = 5");
    let scenario = changed(&scenario, "rounds = 100", "rounds = 3");
    let place = Workplace::with(&format!("{scenario}{SYNCHRONOUS}"));
    place.run_into("out", &["--models"]);
    for round in place.lines("out/runs/power-of-choice-s1/rounds.jsonl") {
        assert_eq!(round["updates"]["clients"], serde_json::json!([1, 3]));
        assert_eq!(round["updates"]["examples"], serde_json::json!([20, 40]));
        assert_eq!(round["updates"]["loss"], serde_json::json!([0.7, 0.9]));
        assert_eq!(round["updates"]["loss_rms"], serde_json::json!([0.7, 0.9]));
        assert_eq!(round["updates"]["latency_s"], serde_json::json!([23.0, 22.0]));
    }
    assert_eq!(place.fedgenie(&["verify", "out"]).code, 0);
    // Candidates download 1 kB each, and two of them once more.
    let summary = place.json("out/summary.json");
    assert_eq!(summary["runs"][0]["traffic"]["down_bytes"], serde_json::json!(3 * (5 + 2) * 1_000));
    let without = changed(&scenario, "client_losses = [0.1, 0.7, 0.3, 0.9, 0.5]\n", "");
    let answer = run(&Workplace::with(&format!("{without}{SYNCHRONOUS}")));
    assert_refused(&answer, &["policy.power-of-choice", "without client_losses", "there are none"]);
}

// ------------------------------------------------------------------------------------------------- files

/// With all numbers in files.
fn with_files() -> Workplace {
    let scenario = changed(CLIENTS, "rounds = 100", "rounds = 2");
    let scenario = changed(&scenario, "effects = [0.25, 0.5, 1.0, 2.0, 4.0]", "effects = \"effects.csv\"");
    let place = Workplace::with(&format!("{scenario}{SYNCHRONOUS}"));
    place.write("effects.csv", "client,value\n0,0.25\n1,0.5\n2,1\n3,2\n4,4\n");
    place
}

/// With a file of metrics, under `hierarchical`.
fn with_accuracies() -> (String, Workplace) {
    let head = &CLIENTS[..CLIENTS.find("[task.scripted]").unwrap()];
    let task =
        "[task.scripted]\nmetric = \"test_accuracy\"\naccuracies = \"accuracies.csv\"\nlosses = \"losses.csv\"\n";
    let head = changed(head, "rounds = 100", "rounds = 2");
    let tail = "[protocol.hierarchical]\nedges = 2\ncohort = 1\n[evaluate]\nservers = true\n[policy.random]\n";
    let scenario = format!("{head}{task}{tail}");
    let place = Workplace::with(&scenario);
    let rows = "0,0,0.125\n0,1,0.25\n1,0,0.5\n1,1,0.75\n2,1,1\n2,0,0.5\n";
    place.write("accuracies.csv", format!("round,server,accuracy\n{rows}"));
    place.write("losses.csv", "round,server,cluster,loss\n1,0,0,0.5\n");
    (scenario, place)
}

fn run(place: &Workplace) -> Answer {
    place.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"])
}

/// The answer is a refusal in which these parts stand in this order.
fn assert_refused(answer: &Answer, parts: &[&str]) {
    assert_eq!(answer.code, 2, "{answer:?}");
    let mut rest = answer.stderr.as_str();
    for part in parts {
        let place = rest.find(part).unwrap_or_else(|| panic!("{part:?} is missing, or out of order: {answer:?}"));
        rest = &rest[place + part.len()..];
    }
}

#[test]
fn a_file_of_numbers_is_a_list() {
    let (files, lists) = (with_files(), Workplace::with(&format!("{CLIENTS}{SYNCHRONOUS}")));
    files.run_into("out", &[]);
    lists.write(SCENARIO, changed(&lists.text(SCENARIO), "rounds = 100", "rounds = 2"));
    lists.run_into("out", &[]);
    assert_eq!(files.digests("out"), lists.digests("out"));
    assert!(files.text("out/manifest.json").contains("effects.csv"));
}

#[test]
fn a_file_of_metrics_stands_in_the_place_of_the_formula() {
    let (_, place) = with_accuracies();
    place.run_into("out", &[]);
    let rounds = place.lines("out/runs/random-s1/rounds.jsonl");
    let found: Vec<_> = rounds.iter().map(|round| round["metrics"]["test_accuracy"].as_f64().unwrap()).collect();
    assert_eq!(found, [0.625, 0.75]);
    assert_eq!(rounds[1]["metrics"]["server_accuracy_min"], serde_json::json!(0.5));
}

#[test]
fn settings_that_make_no_sense() {
    for (from, to, path, parts) in [
        ("\"test_score\"", "\"score\"", "task.scripted.metric", &["found \"score\"", "begins with test_"][..]),
        ("\"higher\"", "\"more\"", "task.scripted.better", &["\"more\"", "lower, higher"]),
        ("\"1 kB\"", "\"-1 kB\"", "task.scripted.payload", &["-1000", "at least 0"]),
        ("per_client = 8.0", "per_client = nan", "task.scripted.per_client", &["found NaN"]),
        ("per_client = 8.0", "noise = -1.0", "task.scripted.noise", &["found -1", "at least 0"]),
        ("per_client = 8.0", "acuracies = \"a.csv\"", "task.scripted.acuracies", &["did you mean \"accuracies\"?"]),
        ("[16.0, 32.0]", "[16.0, inf]", "task.scripted.values", &["found inf", "place 2"]),
        ("[0.25, 0.5, 1.0, 2.0, 4.0]", "[0.25, nan]", "task.scripted.effects", &["found NaN", "place 2"]),
        (
            "[0.25, 0.5, 1.0, 2.0, 4.0]",
            "[0.25, 1.0]",
            "task.scripted.effects",
            &["found 2 numbers", "client 2 has none"],
        ),
        ("[0.25, 0.5, 1.0, 2.0, 4.0]", "\"no.csv\"", "task.scripted.effects", &["no.csv", "there is no such file"]),
        ("per_client = 8.0", "accuracies = \"a.csv\"", "task.scripted.values", &["in its place"]),
    ] {
        let scenario = changed(&format!("{CLIENTS}{SYNCHRONOUS}"), from, to);
        let at = format!(
            "{SCENARIO}:{}: {path}",
            line_of(&scenario, if path.ends_with("values") && from.starts_with("per") { "values" } else { to })
        );
        let answer = run(&Workplace::with(&scenario));
        assert_refused(&answer, &[&[&*at], parts].concat());
    }
}

#[test]
fn nothing_is_learned_that_could_be_compared_in_hindsight() {
    let regret = "[regret]\ncounterfactual = true\nmeters = []\n";
    let answer = run(&Workplace::with(&format!("{CLIENTS}{SYNCHRONOUS}{regret}")));
    assert_refused(&answer, &["regret.counterfactual: ", "does not train"]);
}

#[test]
fn files_that_make_no_sense() {
    for (text, parts) in [
        ("client,value\n0,1\n0,2\n", &["effects.csv:3", "client 0 has two rows"][..]),
        ("client,value\n0,nan\n", &["effects.csv:2", "\"value\"", "found \"nan\"", "a finite number"]),
        ("client,value\n-1,2\n", &["effects.csv:2", "\"client\"", "found \"-1\"", "a whole number from 0 on"]),
        ("client,value\n0,1\n5,2\n", &["effects.csv:3", "\"client\"", "found 5", "from 0 to 4"]),
        ("client,worth\n0,1\n", &["effects.csv:1", "there is no \"value\""]),
    ] {
        let place = with_files();
        place.write("effects.csv", text);
        let at = format!("{SCENARIO}:{}: task.scripted.effects: ", line_of(&place.text(SCENARIO), "\"effects.csv\""));
        assert_refused(&run(&place), &[&[&*at], parts].concat());
    }
    for (text, parts) in [
        ("round,server,accuracy\n0,0,1\n0,0,2\n", &["accuracies.csv:3", "round, server of line 2"][..]),
        ("round,server,accuracy\n0,2,1\n", &["accuracies.csv:2", "\"server\"", "found 2", "from 0 to 1"]),
        ("round,server,accuracy\n0,0,1\n0,1,1\n1,0,1\n2,0,1\n2,1,1\n", &["accuracies.csv", "round 1, server 1"]),
        ("round,server,accuracy\n1,0,1\n1,1,1\n2,0,1\n2,1,1\n", &["accuracies.csv", "round 0, server 0"]),
    ] {
        let (scenario, place) = with_accuracies();
        place.write("accuracies.csv", text);
        let at = format!("{SCENARIO}:{}: task.scripted.accuracies: ", line_of(&scenario, "\"accuracies.csv\""));
        assert_refused(&run(&place), &[&[&*at], parts].concat());
    }
    let (_, place) = with_accuracies();
    place.write("losses.csv", "round,server,cluster,loss\n1,0,0,0.5\n1,0,-1,0.5\n");
    assert_refused(&run(&place), &["task.scripted.losses: ", "losses.csv:3", "\"cluster\"", "found \"-1\""]);
}

/// A fault that cannot be known at the start is an error of the round that reads the row.
#[test]
fn holes_that_only_the_run_meets() {
    let place = with_files();
    place.write("effects.csv", "client,value\n0,1\n");
    let answer = run(&place);
    assert_eq!(answer.code, 3, "{answer:?}");
    assert!(answer.stderr.contains("effects.csv: there is no row with client "), "{answer:?}");
    // Virtual time may end the run before the row is read.
    let (scenario, place) = with_accuracies();
    let late = changed(&scenario, "rounds = 2", "rounds = 2\nvirtual_time = \"1 h\"");
    place.write(SCENARIO, &late);
    place.write("accuracies.csv", "round,server,accuracy\n0,0,1\n0,1,1\n1,0,1\n1,1,1\n");
    let answer = run(&place);
    assert_eq!(answer.code, 3, "{answer:?}");
    for part in ["random-s1", "round 2: ", "accuracies.csv: there is no row with round 2, server 0"] {
        assert!(answer.stderr.contains(part), "{part}: {answer:?}");
    }
    let short = changed(&late, "\"1 h\"", "\"1 s\"");
    place.write(SCENARIO, short);
    let answer = place.fedgenie(&["run", SCENARIO, "--out", "short", "--quiet"]);
    assert_eq!(answer.code, 0, "{answer:?}");
}

/// Only the rounds that are evaluated need their rows.
#[test]
fn rows_are_needed_where_they_are_read() {
    let (scenario, place) = with_accuracies();
    place.write(SCENARIO, changed(&scenario, "servers = true", "servers = true\nevery = 2"));
    place.write("accuracies.csv", "round,server,accuracy\n0,0,1\n0,1,1\n2,0,1\n2,1,0.5\n");
    place.run_into("out", &[]);
}

/// A script has a metric of servers; a client of its own has none that could be written.
#[test]
fn clients_have_no_metric_of_their_own() {
    let scenario = "name = \"scripted\"\nseeds = 1\n[stop]\nrounds = 2\n[population]\nclients = 3\n\
        [population.latency]\ndownload = { constant = \"1 s\" }\ncompute = { constant = \"1 s\" }\n\
        upload = { constant = \"1 s\" }\n[task.scripted]\nvalues = [0.5]\nclient_losses = [1, 2, 3]\n\
        [protocol.synchronous]\ncohort = 2\n[evaluate]\nclients = true\n[policy.random]\n";
    let answer = Workplace::with(scenario).fedgenie(&["run", "scenario.toml", "--quiet"]);
    assert_eq!(answer.code, 2, "{answer:?}");
    for part in ["evaluate.clients", "the task (scripted) measures nothing on a client's own data", "scenario.toml:"] {
        assert!(answer.stderr.contains(part), "{part}: {answer:?}");
    }
}
