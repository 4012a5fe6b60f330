//! The regret in hindsight through the binary: nothing else of a run changes, it is where the other regrets are, and
//! undefined cases are refused.

use super::support::{SCENARIO, Workplace, changed, line_of, world};
use serde_json::Value;

const HINDSIGHT: &str = r#"name = "hindsight"
seeds = 2

[stop]
rounds = 15

[population]
clients = 9
[population.latency]
download = { constant = "25 ms" }
compute = { exponential = { mean = { uniform = ["0.1 s", "1 s"] }, shift = "0.1 s" } }
upload = { constant = "25 ms" }

[task.linear-regression]
examples = 1_400
partition = { gamma-sized = { shape = 1.0 } }

[training]
batch = 16
optimizer = { sgd = { lr = 0.02 } }

[protocol.synchronous]
cohort = 3

[regret]
tau_min = "50 ms"
meters = ["mean", "realised"]
counterfactual = true
utility = "loss-drop"
kappa = 0.5

[policy.random]
[policy.bsfl]
[policy.power-of-choice]
[policy.cs-ucb]
"#;

const COHORT: &str = "[protocol.synchronous]\ncohort = 3\n";

/// Settings under which it is defined.
fn settings() -> Vec<String> {
    let deadline = "[protocol.deadline]\ncohort = 3\ndeadline = \"0.6 s\"\n";
    let with = |from, to: &str| changed(HINDSIGHT, from, to);
    let comes_and_goes = "[population.availability.on-off]\non = { exponential = { mean = \"3 s\" } }\noff = { \
                          exponential = { mean = \"2 s\" } }\n[population.latency]\n";
    let on_off = changed(
        &with("[population.latency]\n", comes_and_goes),
        "clients = 9\n",
        "clients = 9\ninterrupted = \"run-on\"\n",
    );
    let on_off = changed(&on_off, "[policy.power-of-choice]\n", "[policy.power-of-choice]\nlosses = \"last-known\"\n");
    let images =
        "[task.softmax-regression]\ndata.synthetic = { classes = 4, height = 6, width = 6, train = 360, test = 60 }\n";
    let linear = "[task.linear-regression]\nexamples = 1_400\n";
    let classifier = changed(&with("\"loss-drop\"", "{ contribution = { gamma = 0.25 } }"), linear, images);
    let lossy = "[population.dropout]\ncompute = \"0.5 /s\"\n[task";
    let lossy = changed(&with(COHORT, deadline), "[task", lossy);
    let full_window = with(COHORT, &format!("{deadline}full_window = true\n"));
    vec![HINDSIGHT.to_owned(), with("\"loss-drop\"", "\"contribution\""), on_off, classifier, lossy, full_window]
}

/// Takes the number out of everything below a value; whether it was there.
fn without(value: &mut Value) -> bool {
    let mut found = false;
    if let Some(object) = value.as_object_mut() {
        object.remove("hindsight");
        if let Some(regret) = object.get_mut("regret").and_then(Value::as_object_mut) {
            found |= regret.remove("counterfactual").is_some();
        }
        object.values_mut().for_each(|value| found |= without(value));
    }
    if let Some(list) = value.as_array_mut() {
        list.iter_mut().for_each(|value| found |= without(value));
    }
    found
}

#[test]
fn nothing_else_of_a_run_changes() {
    for scenario in settings() {
        let place = Workplace::with(&scenario);
        place.run_into("with", &["--threads", "2", "--events"]);
        let keys = scenario.split_once("counterfactual = true").unwrap().1.split_once("\n\n").unwrap().0;
        place.write("plain.toml", changed(&scenario, &format!("counterfactual = true{keys}"), ""));
        place.run_file("plain.toml", "plain", &["--threads", "2", "--events"]);
        assert_eq!(place.digests("with"), place.digests("plain"));
        for run in ["random-s1", "bsfl-s2", "power-of-choice-s1", "cs-ucb-s2"] {
            let file = |folder: &str, name: &str| format!("{folder}/runs/{run}/{name}");
            assert_eq!(place.read(&file("with", "digests.bin")), place.read(&file("plain", "digests.bin")));
            let [mut left, right] = ["with", "plain"].map(|folder| {
                let mut run = place.json(&file(folder, "run.json"));
                // Rounds have the number too, so that their digest differs, and that of this file.
                ["files", "blake3"].iter().for_each(|key| drop(run.as_object_mut().unwrap().remove(*key).unwrap()));
                run
            });
            assert!(without(&mut left), "a run's file has it");
            // The unit of time that it is metered in is worked out for it alone.
            left.as_object_mut().unwrap().remove("effective");
            let mut right = right;
            right.as_object_mut().unwrap().remove("effective");
            assert_eq!(left, right);
            let (left, right) =
                (place.lines(&file("with", "rounds.jsonl")), place.lines(&file("plain", "rounds.jsonl")));
            let mut before = 0.0;
            for (mut left, right) in left.into_iter().zip(right) {
                let now = left["regret"]["counterfactual"].as_f64().unwrap();
                assert!(now >= before, "a policy that chooses a whole cohort never gains on the best");
                before = now;
                assert!(without(&mut left));
                assert_eq!(left, right);
            }
            assert!(before > 0.0);
        }
        let answer = place.fedgenie(&["verify", "with"]);
        assert_eq!(answer.code, 0, "{answer:?}");
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    for scenario in settings() {
        let place = Workplace::with(&scenario);
        let answers = ["1", "2", "5"].map(|threads| {
            place.run_into(threads, &["--threads", threads]);
            (
                place.text(&format!("{threads}/summary.json")),
                place.text(&format!("{threads}/runs/bsfl-s2/rounds.jsonl")),
            )
        });
        assert_eq!(answers[0], answers[1]);
        assert_eq!(answers[0], answers[2]);
    }
}

#[test]
fn it_is_where_the_other_regrets_are() {
    let place = Workplace::with(HINDSIGHT);
    let answer = place.fedgenie(&["run", SCENARIO, "--out", "out"]);
    assert!(answer.stdout.contains("counterfactual regret"), "{answer:?}");
    let summary = place.json("out/summary.json");
    let last = place.lines("out/runs/random-s1/rounds.jsonl").pop().unwrap();
    let run = place.json("out/runs/random-s1/run.json");
    assert_eq!(summary["runs"][0]["regret"]["counterfactual"], last["regret"]["counterfactual"]);
    assert_eq!(run["curve"][14]["regret"]["counterfactual"], last["regret"]["counterfactual"]);
    assert_eq!(summary["arms"][0]["values"]["regret.counterfactual"]["n"], 2);
    assert!(place.path("out/regret-counterfactual.svg").is_file());
    // The resolved scenario has the keys that were left out.
    let resolved = place.text("out/scenario.toml");
    assert!(resolved.contains("counterfactual = true") && resolved.contains("kappa = 0.5"), "{resolved}");
    // No digest has it, and verify compares it all the same.
    let name = "out/runs/random-s1/rounds.jsonl";
    let key = "\"counterfactual\":";
    place.write(name, place.text(name).replacen(key, &format!("{key}1"), 1));
    let answer = place.fedgenie(&["verify", "out"]);
    assert!(answer.code == 1 && answer.stdout.contains("regret: stored"), "{answer:?}");
}

/// Whoever wants it alone needs neither a reward nor mean speeds.
#[test]
fn it_can_be_the_only_one() {
    let alone = changed(HINDSIGHT, "tau_min = \"50 ms\"\nmeters = [\"mean\", \"realised\"]\n", "meters = []\n");
    let alone = changed(&alone, "[policy.bsfl]\n", "");
    assert!(world(&alone, 1).truth.is_none());
    let place = Workplace::with(&alone);
    place.run_into("out", &[]);
    let summary = place.json("out/summary.json");
    let regret = &summary["runs"][0]["regret"];
    assert_eq!(regret.as_object().unwrap().len(), 1);
    assert!(regret["counterfactual"].as_f64().unwrap() > 0.0);
    assert_eq!(place.fedgenie(&["verify", "out"]).code, 0);
}

#[test]
fn where_it_is_not_defined_it_is_refused() {
    let refused = |scenario: &str, at: &str, path: &str, parts: &[&str]| {
        let answer = Workplace::with(scenario).fedgenie(&["run", SCENARIO, "--out", "out"]);
        assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{answer:?}");
        let start = format!("{SCENARIO}:{}: {path}: ", line_of(scenario, at));
        for part in parts.iter().copied().chain([start.as_str()]) {
            assert!(answer.stderr.contains(part), "{part:?} is not in {answer:?}");
        }
    };
    let with = |from, to: &str| changed(HINDSIGHT, from, to);
    let (at, path) = ("counterfactual = true", "regret.counterfactual");
    let start = HINDSIGHT.find("[task").unwrap();
    let end = HINDSIGHT.find("[protocol").unwrap();
    let bandit = changed(&with(&HINDSIGHT[start..end], ""), "[policy.power-of-choice]\n", "");
    refused(&bandit, at, path, &["this task does not train"]);
    let over = "[protocol.over-selection]\nask = 3\ntake = 2\n";
    refused(&with(COHORT, over), at, path, &["fewer updates are waited for than clients are asked"]);
    let carry = "[protocol.deadline]\ncohort = 3\ndeadline = \"1 s\"\nlate = { carry = {} }\n";
    refused(&with(COHORT, carry), at, path, &["late updates join a later round", "late = \"drop\""]);
    refused(&with(COHORT, &format!("{COHORT}quorum = 2\n")), at, path, &["(by a quorum"]);
    let alone = changed(HINDSIGHT, "tau_min = \"50 ms\"\nmeters = [\"mean\", \"realised\"]\n", "meters = []\n");
    let alone = changed(&alone, "[policy.bsfl]\n", "");
    let alone = changed(&alone, "[policy.power-of-choice]\n", "");
    let away = "[population.availability.on-off]\non = { exponential = { mean = \"3 s\" } }\noff = { exponential = { \
                mean = \"2 s\" } }\n[population.latency]\n";
    refused(&changed(&alone, "[population.latency]\n", away), at, path, &["go away in the middle", "run-on"]);

    let no_tau_min = with("tau_min = \"50 ms\"\n", "");
    refused(&no_tau_min, "[regret]", "regret", &["\"tau_min\" is missing", "meters = []"]);
    refused(&with("kappa = 0.5", "kappa = -1.0"), "kappa", "regret.kappa", &["found -1", "at least 0"]);
    refused(&with("kappa = 0.5", "t_semi = \"0 s\""), "t_semi", "regret.t_semi", &["found 0", "positive duration"]);
    let utility = |to: &str| with("utility = \"loss-drop\"", &format!("utility = {to}"));
    let parts = ["unknown value \"loss-dorp\"", "did you mean \"loss-drop\"?", "contribution"];
    refused(&utility("\"loss-dorp\""), "utility", "regret.utility", &parts);
    let path = "regret.utility.contribution.gama";
    refused(&utility("{ contribution = { gama = 1 } }"), "utility", path, &["unknown key \"gama\"", "\"gamma\"?"]);
    let path = "regret.utility.contribution.gamma";
    refused(&utility("{ contribution = { gamma = 2 } }"), "utility", path, &["found 2", "between 0 and 1"]);
    refused(&with("counterfactual = true\n", ""), "utility", "regret.utility", &["counterfactual = true"]);
}

#[test]
fn the_catalogue_knows_it() {
    let place = Workplace::new();
    let list = place.fedgenie(&["list", "utility"]).stdout;
    assert!(list.contains("utility/loss-drop") && list.contains("utility/contribution"), "{list}");
    let text = place.fedgenie(&["describe", "utility/contribution"]).stdout;
    assert!(text.contains("gamma") && text.contains("Deviations"), "{text}");
    let text = place.fedgenie(&["describe", "meter/counterfactual"]).stdout;
    assert!(text.contains("G_t   = argmax"), "{text}");
}

/// Edge servers, and clients chosen one by one: lists in the records, whose differences add up to the regret.
#[test]
fn every_protocol_has_it() {
    let alone = changed(HINDSIGHT, "tau_min = \"50 ms\"\nmeters = [\"mean\", \"realised\"]\n", "meters = []\n");
    let alone = changed(&alone, "[policy.bsfl]\n", "[policy.rbcs-f]\n");
    let edges = "[protocol.hierarchical]\nedges = 3\ncohort = 2\nedge_rounds = 2\n";
    let buffered = "[protocol.buffered]\nconcurrency = 3\nbuffer = 2\n";
    let sets = "utility = { aggregate = { server_loss = -1.0 } }\nevery = 2";
    for (protocol, utility) in
        [(edges, "utility = \"loss-drop\""), (edges, sets), (buffered, "utility = \"contribution\"")]
    {
        let scenario = changed(&changed(&alone, COHORT, protocol), "utility = \"loss-drop\"", utility);
        let place = Workplace::with(&scenario);
        place.run_into("out", &["--threads", "1"]);
        place.run_into("three", &["--threads", "3"]);
        assert_eq!(place.text("out/summary.json"), place.text("three/summary.json"));
        let keys = scenario.split_once("[regret]\n").unwrap().1.split_once("\n\n").unwrap().0;
        place.write("plain.toml", changed(&scenario, &format!("[regret]\n{keys}"), ""));
        place.run_file("plain.toml", "plain", &[]);
        assert_eq!(place.digests("out"), place.digests("plain"));
        for arm in ["random", "rbcs-f", "power-of-choice"] {
            let mut total = 0.0;
            for line in place.lines(&format!("out/runs/{arm}-s1/rounds.jsonl")) {
                let of = |key: &str| line["hindsight"][key].as_array().cloned().unwrap_or_default();
                let sum = |key: &str| of(key).iter().map(|value| value.as_f64().unwrap()).sum::<f64>();
                let lost = sum("best_value") - sum("own_value");
                let servers = of("server");
                let found = [of("best"), of("best_value"), of("own_value"), of("turn")].map(|list| list.len());
                if utility == sets && line["round"].as_u64().unwrap() % 2 == 1 {
                    assert_eq!(found, [0; 4]);
                    continue;
                }
                if protocol == edges {
                    assert_eq!((found, servers.len()), ([6; 4], 6), "three servers, two rounds each: {line}");
                    total += lost / 3.0;
                } else {
                    assert_eq!((found, servers.len()), ([line["selected"].as_array().unwrap().len(); 4], 0), "{line}");
                    total += lost;
                }
                approx::assert_relative_eq!(
                    line["regret"]["counterfactual"].as_f64().unwrap(),
                    total,
                    epsilon = 1e-9,
                    max_relative = 1e-9
                );
            }
            assert!(total > 0.0, "{arm}");
        }
        assert_eq!(place.fedgenie(&["verify", "out"]).code, 0);
    }
}

/// Two edge servers by a script, whose last clients are always late, two rounds each: three of six a round.
const SCRIPTED: &str = r#"name = "scripted"
seeds = 1

[stop]
rounds = 5

[population]
clients = 12
data_size = 10
[population.latency]
download = { constant = "0 s" }
upload = { constant = "0 s" }
compute = { constant = { each = ["1 s", "1 s", "1 s", "1 s", "1 s", "9 s", "1 s", "1 s", "1 s", "1 s", "1 s", "9 s"] } }

[task.scripted]
metric = "test_accuracy"
values = [0.1, 0.3, 0.4]
effects = [0.04, -0.02, 0.01, 0.03, 0.0, 0.5, -0.01, 0.02, 0.02, -0.05, 0.06, 0.5]
gains = [0.0, 0.01, 0.02, -0.01, 0.03, 0.1, 0.02, -0.02, 0.0, 0.01, 0.01, 0.1]
per_client = 0.03

[protocol.hierarchical]
edges = 2
cohort = 3
edge_rounds = 2
timeout = "5 s"

[regret]
counterfactual = true
utility = { aggregate = { server_accuracy = 1.0 } }
meters = []

[policy.random]
"#;

const EFFECTS: [f64; 12] = [0.04, -0.02, 0.01, 0.03, 0.0, 0.5, -0.01, 0.02, 0.02, -0.05, 0.06, 0.5];
const GAINS: [f64; 12] = [0.0, 0.01, 0.02, -0.01, 0.03, 0.1, 0.02, -0.02, 0.0, 0.01, 0.01, 0.1];

/// All sets of three of six clients, valued by the script's formula for the clients that arrive; in a second round of a
/// server, together with those of its first.
#[test]
fn sets_of_a_script_by_brute_force() {
    let place = Workplace::with(SCRIPTED);
    place.run_into("out", &["--events"]);
    let selections: Vec<Value> =
        place.events("out/runs/random-s1").into_iter().filter(|event| event["event"] == "selected").collect();
    assert_eq!(selections.len(), 5 * 4);
    let (mut gained, mut total) = ([0.0; 2], 0.0);
    for round in place.lines("out/runs/random-s1/rounds.jsonl") {
        let number = round["round"].as_u64().unwrap() as usize;
        let mut has = [vec![], vec![]];
        for turn in 0..2 {
            for server in 0..2 {
                let its_turn = 2 * (number - 1) + turn + 1;
                let of = |key: &str, place: usize| &round["hindsight"][key][place];
                let is_its = |place: &usize| of("server", *place) == server && of("turn", *place) == its_turn;
                let place = (0..4).find(is_its).unwrap();
                let union = |set: &[usize]| {
                    let mut union: Vec<usize> = has[server].clone();
                    union.extend(set.iter().filter(|client| *client % 6 != 5 && !has[server].contains(client)));
                    union
                };
                let mean = |clients: &[usize], of: &[f64]| match clients.len() {
                    0 => 0.0,
                    count => clients.iter().map(|&client| of[client]).sum::<f64>() / count as f64,
                };
                let worth = |set: &[usize]| {
                    let union = union(set);
                    let shared = if union.is_empty() { 0.0 } else { 0.03 / union.len() as f64 };
                    [0.1, 0.3, 0.4][number.min(3) - 1]
                        + mean(&union, &EFFECTS)
                        + shared
                        + mean(&union, &GAINS)
                        + gained[server]
                };
                let mut best = f64::NEG_INFINITY;
                for first in 0..4 {
                    for second in first + 1..5 {
                        for third in second + 1..6 {
                            best = best.max(worth(&[first, second, third].map(|index| 6 * server + index)));
                        }
                    }
                }
                let is_its = |event: &&Value| event["edge"] == server && event["round"] == its_turn;
                let clients = selections.iter().find(is_its).unwrap()["selected"].as_array().unwrap();
                let chosen: Vec<usize> = clients.iter().map(|client| client.as_u64().unwrap() as usize).collect();
                let found = |key: &str| of(key, place).as_f64().unwrap();
                approx::assert_abs_diff_eq!(found("best_value"), best, epsilon = 1e-12);
                approx::assert_abs_diff_eq!(found("own_value"), worth(&chosen), epsilon = 1e-12);
                total += (best - worth(&chosen)) / 2.0;
                has[server] = union(&chosen);
                if turn == 1 {
                    gained[server] += mean(&has[server], &GAINS);
                }
            }
        }
        approx::assert_abs_diff_eq!(round["regret"]["counterfactual"].as_f64().unwrap(), total, epsilon = 1e-11);
    }
    assert!(total > 0.1, "{total}");
}

/// Half of a thousand clients: no enumeration would end.
#[test]
fn sets_of_a_script_are_sorted() {
    let effect = |client: usize| (client * 7_919 % 1_000) as f64 / 1_000.0 - 0.3;
    let effects: Vec<String> = (0..1_000).map(|client| format!("{:?}", effect(client))).collect();
    let lines = |prefix: &str| SCRIPTED.lines().find(|line| line.starts_with(prefix)).unwrap();
    let mut many = changed(SCRIPTED, "clients = 12", "clients = 1000");
    for (from, to) in [
        (lines("compute = "), "compute = { constant = \"1 s\" }".to_owned()),
        (lines("effects = "), format!("effects = [{}]", effects.join(", "))),
        (lines("gains = "), String::new()),
        ("cohort = 3\nedge_rounds = 2", "participation = 0.5".to_owned()),
    ] {
        many = changed(&many, from, &to);
    }
    let place = Workplace::with(&many);
    place.run_into("out", &[]);
    for round in place.lines("out/runs/random-s1/rounds.jsonl") {
        let value = [0.1, 0.3, 0.4][(round["round"].as_u64().unwrap() as usize).min(3) - 1] + 0.03 / 250.0;
        for server in 0..2 {
            let mut all: Vec<f64> = (500 * server..500 * server + 500).map(effect).collect();
            all.sort_by(|one, other| other.total_cmp(one));
            let best = value + all[..250].iter().sum::<f64>() / 250.0;
            approx::assert_abs_diff_eq!(
                round["hindsight"]["best_value"][server].as_f64().unwrap(),
                best,
                epsilon = 1e-12
            );
            let found = round["hindsight"]["best"][server].as_array().unwrap();
            assert_eq!(found.len(), 250);
            assert!(found.iter().all(|client| effect(client.as_u64().unwrap() as usize) >= all[249]));
        }
    }
    let all = Workplace::with(&changed(&many, "participation = 0.5", "participation = 1.0"));
    all.run_into("out", &[]);
    assert_eq!(all.json("out/summary.json")["runs"][0]["regret"]["counterfactual"], 0.0);
    // Weights of both signs are no sum that can be sorted.
    let both = "{ server_accuracy = 1.0, test_accuracy = -0.5 }";
    let answer = Workplace::with(&changed(&many, "{ server_accuracy = 1.0 }", both)).fedgenie(&["run", SCENARIO]);
    assert_eq!(answer.code, 2, "{answer:?}");
    for part in ["regret.utility.aggregate: a round of 500 clients has 1000001 sets", "at most 20000"] {
        assert!(answer.stderr.contains(part), "{part:?} is not in {answer:?}");
    }
}

/// The one server's own test data are all there are.
#[test]
fn the_accuracy_of_one_server_is_that_of_its_model() {
    let one = changed(
        SCRIPTED,
        "[protocol.hierarchical]\nedges = 2\ncohort = 3\nedge_rounds = 2\n",
        "[protocol.deadline]\ncohort = 3\n",
    );
    let one = changed(&one, "timeout = ", "deadline = ");
    let found = ["server_accuracy", "test_accuracy"].map(|metric| {
        let place = Workplace::with(&changed(&one, "server_accuracy", metric));
        place.run_into("out", &[]);
        place.text("out/runs/random-s1/rounds.jsonl")
    });
    assert_eq!(found[0], found[1]);
    assert!(found[0].contains("\"best\""));
}
