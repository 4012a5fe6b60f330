//! Thompson sampling at edge servers: posteriors recomputed from the records, the accuracies that they follow, shares
//! of clients, and the law of selections.

use super::support::{SCENARIO, SETTINGS, SeenRound, Workplace, changed, line_of, play, world};
use fedgenie::experiment::Experiment;
use fedgenie::id::EdgeId;
use fedgenie::policy::PolicySource;
use fedgenie::run::{Evaluations, Run, RunSettings};
use fedgenie::scenario::tree;
use serde_json::Value;
use std::path::Path;

/// Three edge servers with 5, 4 and 4 clients, some of which do not answer in time.
const TIERS: &str = r#"
name = "thompson"
seeds = 1
[stop]
rounds = 14
[population]
clients = 13
[population.latency]
download = { constant = "0.1 s" }
compute = { exponential = { mean = { uniform = ["0.2 s", "1 s"] } } }
upload = { constant = "0.1 s" }
[task.classification]
data = { synthetic = { height = 4, width = 4, train = 260, test = 90 } }
model = { mlp = { hidden = [6] } }
partition = { dirichlet-two-level = { servers = 3, alpha_server = 0.5, alpha_client = 0.5 } }
[training]
batch = 8
optimizer = { sgd = { lr = 0.1 } }
[protocol.hierarchical]
edges = 3
participation = 0.6
timeout = "1.2 s"
[record]
explain = true
[policy.thompson]
warmup = 3
"#;

const MEMBERS: [std::ops::Range<u64>; 3] = [0..5, 5..9, 9..13];

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

fn ids(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect()
}

fn source(scenario: &str) -> PolicySource {
    let root = tree::parse(Path::new(SCENARIO), scenario).unwrap();
    Experiment::from_tree(&root, Path::new("."), None).unwrap().first().arms[0].policy.clone()
}

/// Recomputes (11) and (12) of every edge server from `edge_accuracy`, the arrivals and the settings; and every
/// selection after the warm-up from the draws. Returns how often something was added to α and to β.
fn assert_posteriors(place: &Workplace, warmup: u64, gain: f64, cap: f64) -> [usize; 2] {
    let summary = place.json("out/summary.json");
    let mut accuracy = numbers(&summary["runs"][0]["initial_edge_accuracy"]);
    assert_eq!(accuracy.len(), 3);
    let mut shapes = [[1.0_f64; 13]; 2];
    let mut learned = [0, 0];
    for round in place.lines("out/runs/thompson-s1/rounds.jsonl") {
        let (number, arrived) = (round["round"].as_u64().unwrap(), ids(&round["arrived"]));
        for server in 0..3 {
            let of_server = &round["servers"][server];
            assert_eq!(of_server["server"], server);
            assert!(of_server["cluster"].is_null() && of_server["loss"].is_null());
            let members: Vec<u64> = MEMBERS[server].clone().collect();
            let is_its = |object: &&Value| object["server"] == server;
            let explained = round["explain"].as_array().unwrap().iter().find(is_its);
            let Some(explained) = explained else {
                assert!(of_server["edge_accuracy"].is_null(), "it took no part");
                continue;
            };
            let selected: Vec<u64> =
                ids(&round["selected"]).into_iter().filter(|client| members.contains(client)).collect();
            let after = of_server["edge_accuracy"].as_f64().unwrap();
            let change = after - accuracy[server];
            // As the posteriors were when the server selected.
            for (client, found) in members.iter().zip(numbers(&explained["mean"])) {
                let [alpha, beta] = shapes.map(|shapes| shapes[*client as usize]);
                assert!((found - alpha / (alpha + beta)).abs() <= 1e-9, "{number}, {client}: {found}");
            }
            let step = (gain * change.abs()).min(cap);
            let side = usize::from(change <= 0.0);
            for &client in selected.iter().filter(|client| arrived.contains(client)) {
                shapes[side][client as usize] += step;
                learned[side] += usize::from(step > 0.0);
            }
            accuracy[server] = after;
            let said = &explained["after"];
            assert_eq!(ids(&said["clients"]), members, "all clients of the server");
            for (side, key) in ["alpha", "beta"].into_iter().enumerate() {
                for (client, found) in members.iter().zip(numbers(&said[key])) {
                    let expected = shapes[side][*client as usize];
                    assert!((found - expected).abs() <= 1e-9, "{number}, {client}, {key}: {found}, {expected}");
                }
            }
            assert!((said["accuracy"].as_f64().unwrap() - after).abs() <= 1e-9);
            assert!((said["change"].as_f64().unwrap() - change).abs() <= 1e-9);
            assert_eq!(ids(&explained["clients"]), members, "everybody is a candidate");
            let draws = explained["draw"].as_array().unwrap();
            if number <= warmup {
                assert!(draws.iter().all(Value::is_null));
                continue;
            }
            let mut best: Vec<(f64, u64)> =
                draws.iter().zip(&members).map(|(draw, &client)| (draw.as_f64().unwrap(), client)).collect();
            assert!(best.iter().all(|(draw, _)| (0.0..=1.0).contains(draw)));
            best.sort_by(|one, other| other.0.total_cmp(&one.0));
            let mut expected: Vec<u64> = best[..selected.len()].iter().map(|(_, client)| *client).collect();
            expected.sort_unstable();
            assert_eq!(selected, expected, "{number}");
        }
    }
    learned
}

/// ⌊0.6·5⌋ = 3 (0.6·5 is 3 exactly up to rounding), ⌊0.6·4⌋ = 2.
#[test]
fn posteriors_follow_from_the_records() {
    for on in ["test", "train"] {
        let scenario = format!("{TIERS}on = \"{on}\"\n");
        let place = Workplace::with(&scenario);
        place.run_into("out", &[]);
        let [rose, fell] = assert_posteriors(&place, 3, 10.0, 2.0);
        assert!(rose > 10 && fell > 5, "{on}: accuracy rose {rose} times for a client, and fell {fell} times");
        let rounds = place.lines("out/runs/thompson-s1/rounds.jsonl");
        let late = rounds.iter().any(|round| !ids(&round["late"]).is_empty());
        assert!(late, "some do not arrive, and are not credited");
        for round in &rounds {
            let of = |members: &std::ops::Range<u64>| {
                ids(&round["selected"]).iter().filter(|client| members.contains(client)).count()
            };
            assert_eq!(MEMBERS.each_ref().map(of), [3, 2, 2]);
        }
        assert_eq!(place.fedgenie(&["verify", "out"]).code, 0);
    }
}

/// The cloud asks two of three servers in a round: one that is left out has no accuracy of the round, and the next
/// change is against that of its last model.
#[test]
fn servers_may_take_no_part() {
    let cloud = "[protocol.hierarchical.cloud]\ncohort = 2\npolicy = { random = {} }\n[record]";
    let scenario = changed(TIERS, "[record]", cloud);
    let place = Workplace::with(&changed(&scenario, "rounds = 14", "rounds = 20"));
    place.run_into("out", &[]);
    assert_posteriors(&place, 3, 10.0, 2.0);
    let rounds = place.lines("out/runs/thompson-s1/rounds.jsonl");
    let unknown = rounds.iter().flat_map(|round| round["servers"].as_array().unwrap());
    assert_eq!(unknown.filter(|server| server["edge_accuracy"].is_null()).count(), 20);
}

#[test]
fn digests_are_those_of_any_number_of_threads() {
    let place = Workplace::with(&format!("{TIERS}gain = 40.0\n"));
    for threads in ["1", "2", "7"] {
        place.run_into(threads, &["--threads", threads]);
    }
    assert_eq!(place.digests("1"), place.digests("2"));
    assert_eq!(place.digests("1"), place.digests("7"));
}

/// With a warm-up as long as the run, clients are selected as by `random`, under every protocol.
#[test]
fn warm_up_is_random_selection() {
    let tiers = &TIERS[TIERS.find("[protocol.hierarchical]").unwrap()..TIERS.find("[record]").unwrap()];
    for protocol in [
        tiers,
        "[protocol.hierarchical]\nedges = 3\ncohort = 2\nedge_rounds = 2\n",
        "[protocol.synchronous]\ncohort = 4\n",
        "[protocol.over-selection]\nask = 5\ntake = 3\n",
        "[protocol.deadline]\ncohort = 5\ndeadline = \"1 s\"\nlate = { carry = {} }\n",
        "[protocol.buffered]\nconcurrency = 4\nbuffer = 3\n",
    ] {
        let scenario = changed(&changed(TIERS, tiers, protocol), "warmup = 3", "warmup = 14");
        let place = Workplace::with(&format!("{scenario}[policy.random]\n"));
        place.run_into("out", &[]);
        let digests = place.digests("out");
        assert_eq!((&digests[0].1, &digests[0].2), (&digests[1].1, &digests[1].2), "{protocol}");
        // One round less of it, and they part.
        let short = changed(&scenario, "warmup = 14", "warmup = 4");
        let place = Workplace::with(&format!("{short}[policy.random]\n"));
        place.run_into("out", &[]);
        assert_ne!(place.digests("out")[0].1, place.digests("out")[1].1, "{protocol}");
    }
}

/// Every test example belongs to one server, in proportion to the shares of classes that the partition drew. So the
/// accuracies of the initial model on the servers' parts, weighted by their sizes, are its accuracy on all.
#[test]
fn test_examples_are_dealt_to_servers() {
    for partition in ["", "iid"] {
        let from = "partition = { dirichlet-two-level = { servers = 3, alpha_server = 0.5, alpha_client = 0.5 } }";
        let scenario =
            if partition.is_empty() { TIERS.to_owned() } else { changed(TIERS, from, "partition = \"iid\"") };
        let world = world(&scenario, 1);
        let parts: Vec<&[u32]> = (0..3).map(|server| world.test_of(EdgeId(server)).unwrap()).collect();
        let mut all = parts.concat();
        all.sort_unstable();
        assert_eq!(all, (0..90).collect::<Vec<u32>>());
        if !partition.is_empty() {
            // 100, 80 and 80 of 260 training examples, class by class: rounded in each of ten.
            let sizes: Vec<f64> = parts.iter().map(|part| part.len() as f64).collect();
            for (size, expected) in sizes.iter().zip([90.0 * 5.0 / 13.0, 90.0 * 4.0 / 13.0, 90.0 * 4.0 / 13.0]) {
                assert!((size - expected).abs() <= 10.0, "{sizes:?}");
            }
        }
        let run = Run::new(&world, "thompson", world.policies(&source(&scenario)).unwrap(), SETTINGS, NoRecords);
        let initial = run.initial_edge_accuracy().unwrap();
        let weighted: f64 =
            initial.iter().zip(&parts).map(|(accuracy, part)| accuracy.unwrap() * part.len() as f64).sum();
        let expected = world.initial_measures().unwrap()[1];
        assert!((weighted / 90.0 - expected).abs() < 1e-12, "{weighted}, {expected}");
    }
}

use fedgenie::recorder::NoSink as NoRecords;

/// One server: its model after aggregation, on all test data or on all training data.
#[test]
fn one_server_has_the_accuracy_of_its_model() {
    let tiers = &TIERS[TIERS.find("[protocol.hierarchical]").unwrap()..TIERS.find("[record]").unwrap()];
    for protocol in ["[protocol.synchronous]\ncohort = 4\n", "[protocol.buffered]\nconcurrency = 4\nbuffer = 3\n"] {
        for (on, metric) in [("test", "test_accuracy"), ("train", "client_accuracy_mean")] {
            let scenario = changed(TIERS, tiers, &format!("{protocol}[evaluate]\nclients = true\n"));
            let even = "partition = { dirichlet-two-level = { servers = 3, alpha_server = 0.5, alpha_client = 0.5 } }";
            let place = Workplace::with(&format!("{}on = \"{on}\"\n", changed(&scenario, even, "partition = \"iid\"")));
            place.run_into("out", &[]);
            for round in place.lines("out/runs/thompson-s1/rounds.jsonl") {
                let [server] = &round["servers"].as_array().unwrap()[..] else { panic!("one server: {round}") };
                // Clients have 20 examples each, so that the mean over clients is that over examples.
                let (found, expected) = (server["edge_accuracy"].as_f64(), round["metrics"][metric].as_f64());
                assert!((found.unwrap() - expected.unwrap()).abs() < 1e-12, "{protocol}, {on}: {round}");
                assert_eq!((&server["examples"], &server["test_examples"]), (&260.into(), &90.into()));
            }
        }
    }
}

/// Two test examples for three servers: one has none, and learns nothing.
#[test]
fn a_server_without_test_examples_learns_nothing() {
    let place = Workplace::with(&changed(TIERS, "test = 90", "test = 2"));
    place.run_into("out", &[]);
    let summary = place.json("out/summary.json");
    let initial = summary["runs"][0]["initial_edge_accuracy"].as_array().unwrap().clone();
    let without: Vec<usize> = (0..3).filter(|&server| initial[server].is_null()).collect();
    assert!(!without.is_empty());
    for round in place.lines("out/runs/thompson-s1/rounds.jsonl") {
        for &server in &without {
            assert_eq!(round["servers"][server]["test_examples"], 0);
            assert!(round["servers"][server]["edge_accuracy"].is_null());
            let explained = round["explain"].as_array().unwrap().iter().find(|object| object["server"] == server);
            let after = &explained.unwrap()["after"];
            assert!(after["accuracy"].is_null() && after["change"].is_null());
            assert!(numbers(&after["alpha"]).iter().chain(&numbers(&after["beta"])).all(|&shape| shape == 1.0));
        }
    }
}

/// With a script the accuracy is its measure of the server, with the clients that are in the server's own model: the
/// same that is evaluated when all models have reached the cloud. Smaller scores are better here, and count negated.
#[test]
fn scripts_measure_servers() {
    let head = &TIERS[..TIERS.find("[task.classification]").unwrap()];
    let tail = &TIERS[TIERS.find("[protocol.hierarchical]").unwrap()..];
    for (better, sign) in [("higher", 1.0), ("lower", -1.0)] {
        let task = format!(
            "[task.scripted]\nmetric = \"test_score\"\nbetter = \"{better}\"\nvalues = [0.1, 0.2, 0.15]\nnoise = 0.05\n\
             gains = [{}]\n",
            (0..13).map(|client| format!("{}", f64::from(client) * 1e-3)).collect::<Vec<_>>().join(", ")
        );
        let place = Workplace::with(&format!("{head}{task}[evaluate]\nservers = true\n{tail}"));
        place.run_into("out", &[]);
        assert_posteriors(&place, 3, 10.0, 2.0);
        for round in place.lines("out/runs/thompson-s1/rounds.jsonl") {
            let found: Vec<f64> =
                (0..3).map(|server| sign * round["servers"][server]["edge_accuracy"].as_f64().unwrap()).collect();
            let metric = |name: &str| round["metrics"][format!("server_score_{name}")].as_f64().unwrap();
            let (min, max) =
                found.iter().fold((f64::MAX, f64::MIN), |(min, max), &value| (min.min(value), max.max(value)));
            assert!((metric("min") - min).abs() < 1e-12 && (metric("max") - max).abs() < 1e-12, "{round}");
            assert!((metric("mean") - found.iter().sum::<f64>() / 3.0).abs() < 1e-12, "{round}");
            assert!(round["servers"][0]["test_examples"].is_null());
        }
    }
}

/// While accuracy rises by 1/gain in each round, one place and two clients are a Pólya urn: of n selections that count,
/// any number from 0 to n is equally likely to be of client 0. The first round changes nothing: the script begins with
/// its first value. Chi-squared over ten cells is above 27.88 with probability 0.1 %.
#[test]
fn rising_accuracy_is_a_polya_urn() {
    const COUNTED: usize = 9;
    let values: Vec<String> = (0..=COUNTED).map(|step| format!("{}", step as f64 / 8.0)).collect();
    let scenario = format!(
        "name = \"urn\"\nseeds = 1\n[stop]\nrounds = 10\n[population]\nclients = 2\n[population.latency]\n\
         download = {{ constant = \"1 s\" }}\ncompute = {{ constant = \"1 s\" }}\nupload = {{ constant = \"1 s\" }}\n\
         [task.scripted]\nvalues = [{}]\n[protocol.synchronous]\ncohort = 1\n\
         [policy.thompson]\nwarmup = 0\ngain = 8.0\n",
        values.join(", ")
    );
    let (source, seeds) = (source(&scenario), 1_000_u64);
    let mut cells = [0_u32; COUNTED + 1];
    for seed in 1..=seeds {
        let world = world(&scenario, seed);
        let played = play(&world, world.policy(&source).unwrap(), 10).unwrap();
        let is_first = |round: &&SeenRound| round.selected == [0];
        cells[played.seen.rounds[1..].iter().filter(is_first).count()] += 1;
    }
    let expected = seeds as f64 / 10.0;
    let chi: f64 = cells.iter().map(|&cell| (f64::from(cell) - expected).powi(2) / expected).sum();
    assert!(chi < 27.88, "{chi}: {cells:?}");
}

#[test]
fn a_share_of_each_servers_clients() {
    // 0.29·100 is 28.999999999999996: as many as are meant take part.
    for (clients, edges, share, expected) in [
        (20, 3, 0.8, &[5, 5, 4][..]),
        (100, 1, 0.29, &[29]),
        (10, 1, 0.7, &[7]),
        (7, 3, 0.1, &[1, 1, 1]),
        (6, 2, 1.0, &[3, 3]),
    ] {
        let scenario = format!(
            "name = \"shares\"\nseeds = 1\n[stop]\nrounds = 2\n[population]\nclients = {clients}\n[population.latency]\n\
             download = {{ constant = \"1 s\" }}\ncompute = {{ constant = \"1 s\" }}\nupload = {{ constant = \"1 s\" }}\n\
             [protocol.hierarchical]\nedges = {edges}\nparticipation = {share:?}\n[record]\nexplain = true\n[policy.random]\n"
        );
        let place = Workplace::with(&scenario);
        place.run_into("out", &[]);
        for round in place.lines("out/runs/random-s1/rounds.jsonl") {
            let sizes: Vec<usize> =
                round["explain"].as_array().unwrap().iter().map(|one| ids(&one["clients"]).len()).collect();
            assert_eq!(sizes, expected, "{share} of {clients}");
        }
    }
}

#[test]
fn settings_that_make_no_sense() {
    for (from, to, parts) in [
        (
            "participation = 0.6",
            "participation = 0.0",
            &["protocol.hierarchical.participation", "found 0", "at most 1"][..],
        ),
        (
            "participation = 0.6",
            "participation = 1.5",
            &["protocol.hierarchical.participation", "found 1.5", "at most 1"],
        ),
        ("participation = 0.6", "participation = nan", &["protocol.hierarchical.participation", "found NaN"]),
        (
            "participation = 0.6",
            "participation = 0.6 \ncohort = 2",
            &["protocol.hierarchical.participation", "found 0.6 beside cohort = 2", "one of the two"],
        ),
        ("participation = 0.6\n", "", &["protocol.hierarchical.cohort", "is missing", "participation"]),
        ("participation = 0.6", "cohort = 5", &["protocol.hierarchical.cohort", "found 5", "smallest edge server (4)"]),
        ("warmup = 3", "warmup = -1", &["policy.thompson.warmup", "-1"]),
        ("warmup = 3", "gain = -1.0", &["policy.thompson.gain", "found -1", "from 0 to 1000000"]),
        ("warmup = 3", "cap = inf", &["policy.thompson.cap", "found inf", "from 0 to 1000"]),
        ("warmup = 3", "on = \"valid\"", &["policy.thompson.on", "valid"]),
        (
            "[record]",
            "cloud = { cohort = 2, policy = { thompson = {} } }\n[record]",
            &["cloud", "wants to know of training"],
        ),
    ] {
        let scenario = changed(TIERS, from, to);
        let answer = Workplace::with(&scenario).fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
        assert_eq!(answer.code, 2, "{to}: {answer:?}");
        let at = if to.is_empty() || to.contains('\n') {
            String::new()
        } else {
            format!("{SCENARIO}:{}", line_of(&scenario, to))
        };
        for part in parts.iter().copied().chain([&*at]) {
            assert!(answer.stderr.contains(part), "{to}: {part}: {answer:?}");
        }
    }
    let head = &TIERS[..TIERS.find("[task.classification]").unwrap()];
    let tail = &TIERS[TIERS.find("[protocol.hierarchical]").unwrap()..];
    let answer = Workplace::with(&format!("{head}{tail}")).fedgenie(&["run", SCENARIO, "--quiet"]);
    assert_eq!(answer.code, 2, "{answer:?}");
    assert!(
        answer.stderr.contains("wants the accuracy of models, and this task (none) measures nothing"),
        "{answer:?}"
    );
}

/// Only the rounds' own settings: evaluations for the policy do not depend on how often metrics are recorded.
#[test]
fn metrics_may_be_rarer() {
    let world = world(TIERS, 1);
    let model = |every| {
        let settings = RunSettings { evaluate: Evaluations::every(every), ..SETTINGS };
        let mut run = Run::new(&world, "thompson", world.policies(&source(TIERS)).unwrap(), settings, NoRecords);
        (0..8).for_each(|_| run.step().unwrap());
        (run.digests().timeline.hex(), run.model_file())
    };
    assert_eq!(model(1), model(5));
}
