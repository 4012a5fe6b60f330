//! Networks from scenario to summary: evaluation, targets, plateaus, weights in files, divergence.

use super::support::Workplace;
use fedgenie::data::Shape;
use fedgenie::model::Model;
use fedgenie::model::families::{Family, lenet5};
use fedgenie::model::weights::read_safetensors;
use serde_json::Value;

const SCENARIO: &str = r#"
name = "networks"
seeds = 1

[stop]
virtual_time = "12 s"

[population]
clients = 8
[population.latency]
download = { constant = "25 ms" }
compute = { uniform = ["0.3 s", "1 s"] }
upload = { constant = "25 ms" }

[task.classification]
data = { synthetic = { classes = 3, height = 16, width = 16, train = 240, test = 60, noise = 0.05, deformation = 1 } }
model = "lenet5"
partition = { dirichlet = { alpha = 1.0, minimum = 5 } }

[training]
epochs = 3
batch = 16
optimizer = { adam = { lr = 2e-3 } }

[protocol.synchronous]
cohort = 3

[evaluate]
period = "3 s"
clients = true
targets = [
    { metric = "test_accuracy", at_least = 0.5 },
    { metric = "test_loss", at_most = 0.0 },
]

[policy.random]
[policy.round-robin]
"#;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn a_network_learns_and_the_summary_says_when() {
    let place = Workplace::with(SCENARIO);
    place.run_into("out", &["--models"]);
    assert_eq!(place.fedgenie(&["verify", "out"]).code, 0);
    let summary = place.json("out/summary.json");
    for arm in ["random", "round-robin"] {
        let rounds = place.lines(&format!("out/runs/{arm}-s1/rounds.jsonl"));
        let run = summary["runs"].as_array().unwrap().iter().find(|run| run["arm"] == arm).unwrap();

        // Evaluated are the rounds in which a multiple of three seconds was reached.
        let mut first_good = None;
        for round in &rounds {
            let (opened, closed) = (number(&round["opened_s"]), number(&round["closed_s"]));
            let metrics = round["metrics"].as_object().unwrap();
            let is_due = (closed / 3.0).floor() > (opened / 3.0).floor();
            assert_eq!(metrics.contains_key("test_accuracy"), is_due, "{opened} to {closed}");
            if is_due && number(&metrics["test_accuracy"]) >= 0.5 && first_good.is_none() {
                first_good = Some((round["round"].clone(), closed));
            }
        }
        let (round, time) = first_good.expect("three classes are learned in twelve seconds");
        let reached = &run["reached"];
        assert_eq!((&reached[0]["round"], number(&reached[0]["time_s"])), (&round, time));
        assert_eq!(reached[0]["metric"], "test_accuracy");
        assert!(reached[1]["round"].is_null() && reached[1]["time_s"].is_null(), "a loss of 0 is never reached");

        let last = &run["final"];
        for (lower, upper) in [
            ("client_accuracy_min", "client_accuracy_p10"),
            ("client_accuracy_p10", "client_accuracy_mean"),
            ("client_loss_sd", "client_loss_mean"),
        ] {
            assert!(number(&last[lower]) <= number(&last[upper]), "{lower} of {last}");
        }
    }
    let values = &summary["arms"][0]["values"];
    assert_eq!(number(&values["reached.test_accuracy >= 0.5"]["mean"]), 1.0);
    assert_eq!(number(&values["reached.test_loss <= 0"]["mean"]), 0.0);
    assert!(values.get("time_to.test_loss <= 0").is_none());
    let manifest = place.json("out/manifest.json");
    assert!(manifest["files"].get("runs/random-s1/model.safetensors").is_some(), "the model is listed");
}

#[test]
fn threads_change_no_bit() {
    let place = Workplace::with(SCENARIO);
    for threads in ["1", "2", "5"] {
        place.run_into(threads, &["--threads", threads, "--set", "stop.virtual_time=\"4 s\""]);
    }
    assert_eq!(place.digests("1"), place.digests("2"));
    assert_eq!(place.digests("1"), place.digests("5"));
}

#[test]
fn a_run_starts_from_the_weights_of_a_file() {
    let place = Workplace::with(SCENARIO);
    place.run_into("first", &["--models"]);
    let file = place.path("first/runs/random-s1/model.safetensors");
    let shape = Shape { channels: 1, height: 16, width: 16 };
    let model = Family::Lenet5(lenet5::Config { width: 1.0 }).build(shape, 3).unwrap();
    assert_eq!(read_safetensors(&model, &file).unwrap().len(), model.parameters());

    // With a step too small to change anything, the final metrics are those the first run ended with.
    let start = format!("task.classification.start={:?}", file.to_str().unwrap());
    let still = ["--set", &start, "--set", "training.optimizer.adam.lr=1e-30", "--set", "stop.rounds=1"];
    place.run_into("second", &still);
    let metrics = |folder: &str| place.json(&format!("{folder}/runs/random-s1/run.json"))["final"].clone();
    assert_eq!(metrics("second"), metrics("first"));

    let answer = place.fedgenie(
        &[&["run", "scenario.toml", "--set", "task.classification.model={lenet5={width=2}}"], &still[..2]].concat(),
    );
    assert_eq!(answer.code, 2);
    assert!(
        answer.stderr.contains("task.classification.start") && answer.stderr.contains("[12, 1, 5, 5]"),
        "{}",
        answer.stderr
    );
}

#[test]
fn a_plateau_ends_a_run() {
    let place = Workplace::with(SCENARIO);
    let plateau = "stop.plateau={metric=\"test_loss\", evaluations=2, least=100.0}";
    place.run_into("out", &["--set", plateau, "--set", "evaluate.every=2"]);
    // Nothing improves by 100: the second and third evaluation are the two without improvement. One every two rounds,
    // and those in which a multiple of three seconds is reached.
    let rounds = place.lines("out/runs/random-s1/rounds.jsonl");
    let evaluated = rounds.iter().filter(|round| !round["metrics"].as_object().unwrap().is_empty());
    assert_eq!(evaluated.count(), 3);
    assert!(!rounds.last().unwrap()["metrics"].as_object().unwrap().is_empty());
}

#[test]
fn a_learning_rate_that_diverges_ends_its_run_alone() {
    let swept = format!("{SCENARIO}\n[sweep]\n\"training.optimizer.adam.lr\" = [1e-3, 1e30]\n");
    let place = Workplace::with(&swept);
    let answer = place.fedgenie(&["run", "scenario.toml", "--quiet", "--out", "out", "--set", "stop.rounds=2"]);
    assert_eq!(answer.code, 3, "{answer:?}");
    assert!(
        answer.stderr.contains("run random-p1-s1 failed: the model diverged: the update of client"),
        "{}",
        answer.stderr
    );
    assert!(!answer.stderr.contains("-p0-"), "{}", answer.stderr);
    assert_eq!(place.fedgenie(&["verify", "out"]).code, 0, "what is complete replays");
}

#[test]
fn what_does_not_fit_is_refused_with_its_place() {
    let place = Workplace::with(SCENARIO);
    for (set, words) in [
        ("task.classification.data.synthetic.height=12", "lenet5 needs images of at least 16 × 16"),
        ("task.classification.model=\"lenet6\"", "lenet6"),
        ("task.classification.model={lenet5={width=0}}", "width"),
        ("evaluate.every=0", "evaluate.every"),
        ("evaluate.period=\"0 s\"", "evaluate.period"),
        ("evaluate.at=[\"2 s\", \"1 s\"]", "ascending"),
        ("evaluate.targets=[{metric=\"auc\", at_least=0.5}]", "test_loss, test_accuracy"),
        ("evaluate.targets=[{metric=\"test_loss\"}]", "at_least or at_most"),
        ("stop.plateau={metric=\"test_loss\", evaluations=0}", "stop.plateau.evaluations"),
        ("training.batch=0", "training.batch"),
        ("training.clip=-1.0", "training.clip"),
    ] {
        let answer = place.fedgenie(&["run", "scenario.toml", "--set", set]);
        assert_eq!(answer.code, 2, "{set}: {answer:?}");
        assert!(answer.stderr.contains(words), "{set}: {}", answer.stderr);
    }
}
