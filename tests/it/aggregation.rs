//! `[aggregation]` through the whole program: the default changes nothing, every other choice changes the model,
//! replays on any number of threads, and is written out; wrong settings are refused where they stand.

use super::support::{SCENARIO, Workplace, changed, line_of};
use std::collections::BTreeSet;

const LEARNING: &str = r#"
name = "aggregation"
seeds = [7]
stop.rounds = 12
protocol.deadline = { cohort = 4, deadline = "4 s", late = { carry = { staleness = { polynomial = { exponent = 0.5 } } } } }
task.linear-regression = { features = 6, examples = 1_400, partition = { gamma-sized = { shape = 1.0 } } }
training = { epochs = 2, batch = 8, optimizer = { sgd = { lr = 0.02 } } }

[population]
clients = 12
[population.device]
samples_per_second = { uniform = [40, 200] }
downlink = "2 kbit/s"
uplink = { uniform = ["1 kbit/s", "2 kbit/s"] }

[policy.random]
"#;

const DEFAULT: &str = "weighting = \"data-size\"\nserver = \"average\"";

fn with(section: &str) -> String {
    changed(LEARNING, "\n[policy.random]", &format!("\n[aggregation]\n{section}\n\n[policy.random]"))
}

/// Timeline and model digest of the only run.
fn digests(scenario: &str, more: &[&str]) -> (String, String) {
    let place = Workplace::with(scenario);
    place.run_into("out", more);
    let (_, timeline, model) = place.digests("out").remove(0);
    (timeline, model)
}

#[test]
fn federated_averaging_is_the_default() {
    let expected = digests(LEARNING, &[]);
    let written_out = "weighting = \"data-size\"\nserver = { average = { lr = 1.0 } }";
    for section in ["", DEFAULT, written_out] {
        assert_eq!(digests(&with(section), &[]), expected, "{section}");
    }
}

#[test]
fn every_choice_changes_the_model_and_nothing_else() {
    let (timeline, model) = digests(LEARNING, &[]);
    let choices = [
        "weighting = \"uniform\"",
        "weighting = \"total-size\"",
        "server = { average = { lr = 0.5 } }",
        "server = \"momentum\"",
        "server = { adam = { lr = 0.1 } }",
        "server = { yogi = { lr = 0.1 } }",
        "server = { adagrad = { lr = 0.1 } }",
        "server = { adam = { lr = 0.1, beta1 = 0.5, beta2 = 0.5, tau = 0.1 } }\nweighting = \"total-size\"",
    ];
    let mut models = BTreeSet::from([model]);
    for section in choices {
        let found = digests(&with(section), &["--threads", "1"]);
        assert_eq!(found.0, timeline, "what is selected at random does not depend on the model: {section}");
        assert_eq!(digests(&with(section), &["--threads", "3"]), found, "{section}");
        assert!(models.insert(found.1), "{section} makes no difference");
    }
}

#[test]
fn a_resolved_scenario_has_the_section_with_all_defaults() {
    let place = Workplace::with(&with("server = { yogi = { lr = 0.1 } }"));
    place.run_into("out", &[]);
    let resolved: toml::Table = place.text("out/scenario.toml").parse().unwrap();
    let expected: toml::Table =
        "weighting = \"data-size\"\nrows = \"selected\"\nserver = { yogi = { lr = 0.1, beta1 = 0.9, beta2 = 0.99, tau = 0.001 } }"
            .parse()
            .unwrap();
    assert_eq!(resolved["aggregation"], toml::Value::Table(expected));
    place.run_file("out/scenario.toml", "again", &[]);
    assert_eq!(place.digests("again"), place.digests("out"));
}

#[test]
fn a_server_that_diverges_says_so() {
    let place = Workplace::with(&with("server = { average = { lr = 1e300 } }"));
    let answer = place.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
    let parts = ["the global model after the aggregation of round 1 is not finite", "[aggregation]"];
    assert!(answer.code != 0 && parts.iter().all(|part| answer.stderr.contains(part)), "{answer:?}");
}

/// The scenario with one line in `[aggregation]` is refused at that line, with this path and these parts.
fn refused(line: &str, path: &str, parts: &[&str]) {
    let scenario = with(line);
    let place = Workplace::with(&scenario);
    let answer = place.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
    let start = format!("fedgenie: error: {SCENARIO}:{}: {path}: ", line_of(&scenario, line));
    assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{}", answer.stderr);
    assert!(answer.stderr.starts_with(&start), "should start with {start:?}: {}", answer.stderr);
    assert!(parts.iter().all(|part| answer.stderr.contains(part)), "{parts:?} in {}", answer.stderr);
    assert!(!place.path("out").exists(), "something was written");
}

#[test]
fn numbers_out_of_range() {
    let positive = "expected a number above 0";
    let share = "expected a number of at least 0 and below 1";
    for (server, path, found, expected) in [
        ("{ average = { lr = 0 } }", "average.lr", "found 0", positive),
        ("{ average = { lr = inf } }", "average.lr", "found inf", positive),
        ("{ momentum = { momentum = 1.0 } }", "momentum.momentum", "found 1", share),
        ("{ momentum = { lr = -1 } }", "momentum.lr", "found -1", positive),
        ("{ adam = { lr = -0.01 } }", "adam.lr", "found -0.01", positive),
        ("{ adam = { lr = nan } }", "adam.lr", "found NaN", positive),
        ("{ adam = { lr = 0.01, beta1 = 1 } }", "adam.beta1", "found 1", share),
        ("{ adam = { lr = 0.01, beta2 = -0.5 } }", "adam.beta2", "found -0.5", share),
        ("{ adam = { lr = 0.01, tau = 0 } }", "adam.tau", "found 0", positive),
        ("{ yogi = { lr = 0.01, beta2 = 1.5 } }", "yogi.beta2", "found 1.5", share),
        ("{ adagrad = { lr = 0.01, tau = -1e-3 } }", "adagrad.tau", "found -0.001", positive),
    ] {
        refused(&format!("server = {server}"), &format!("aggregation.server.{path}"), &[found, expected]);
    }
}

#[test]
fn misspelt_and_missing_words() {
    let parts = ["unknown value \"datasize\"", "did you mean \"data-size\"?"];
    refused("weighting = \"datasize\"", "aggregation.weighting", &parts);
    refused("waiting = \"uniform\"", "aggregation.waiting", &["unknown key \"waiting\"", "weighting"]);
    let parts = ["unknown kind \"adamm\"", "did you mean \"adam\"?"];
    refused("server = { adamm = { lr = 0.1 } }", "aggregation.server.adamm", &parts);
    let parts = ["unknown key \"beta\"", "did you mean \"beta1\"?"];
    refused("server = { adam = { lr = 0.1, beta = 0.9 } }", "aggregation.server.adam.beta", &parts);
    refused("server = \"adam\"", "aggregation.server.adam", &["the key \"lr\" is missing"]);
    refused("server = 3", "aggregation.server", &["found 3", "expected one kind"]);
}
