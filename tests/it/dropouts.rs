//! Jobs that are lost with a probability: their share, wherever the deadline is, and its place in the formulas.

use super::support::{SCENARIO, Workplace, changed};
use serde_json::Value;

const SCENARIO_TEXT: &str = r#"name = "dropouts"
seeds = 4
stop.rounds = 500
protocol.synchronous = { cohort = 10, timeout = "30 s" }

[population]
clients = 20
dropout = { probability = 0.2 }
[population.latency]
download = { constant = "1 s" }
compute = { lognormal = { median = "4 s", sigma = 0.4 } }
upload = { constant = "1 s" }

[policy.random]
"#;

fn runs(scenario: &str) -> Vec<Value> {
    let place = Workplace::with(scenario);
    let answer = place.fedgenie(&["run", SCENARIO, "--quiet", "--json"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    serde_json::from_str::<Value>(&answer.stdout).unwrap()["runs"].as_array().unwrap().clone()
}

fn number(run: &Value, path: &str) -> f64 {
    run.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path} in {run}"))
}

/// Jobs that were lost, and all.
fn lost(run: &Value) -> (f64, f64) {
    let lost: f64 = run["outcomes"]["dropped"].as_array().unwrap().iter().map(|lost| number(lost, "/jobs")).sum();
    (lost, lost + number(run, "/outcomes/arrived") + number(run, "/outcomes/late"))
}

#[test]
fn the_realised_share_is_the_probability_and_is_in_the_summary() {
    let (mut all, mut jobs) = (0.0, 0.0);
    for run in runs(SCENARIO_TEXT) {
        let (some, of) = lost(&run);
        (all, jobs) = (all + some, jobs + of);
    }
    // 20,000 jobs: a standard deviation of 0.0028.
    assert_eq!(jobs, 20_000.0);
    assert!((all / jobs - 0.2).abs() < 4.0 * 0.002_83, "{}", all / jobs);
    let place = Workplace::with(SCENARIO_TEXT);
    place.run_into("out", &[]);
    let share = place.json("out/summary.json").pointer("/arms/0/values/dropout_share/mean").unwrap().as_f64().unwrap();
    assert!((share - all / jobs).abs() < 1e-12, "{share}, {}", all / jobs);
    let answer = place.fedgenie(&["run", SCENARIO, "--quiet"]);
    assert!(answer.stdout.contains("share dropped out"), "{answer:?}");
}

/// A client that is lost in the second half of its job is awaited as one in the first: the computing in vain shows that
/// the instant is uniform.
#[test]
fn a_phase_has_a_probability_of_its_own() {
    let scenario = changed(SCENARIO_TEXT, "{ probability = 0.2 }", "{ compute = { probability = 0.1 } }");
    let (mut all, mut jobs) = (0.0, 0.0);
    for run in runs(&scenario) {
        let dropped = run["outcomes"]["dropped"].as_array().unwrap();
        assert!(dropped.iter().all(|lost| lost["phase"] == "compute" && lost["reason"] == "hazard"), "{dropped:?}");
        let (some, of) = lost(&run);
        (all, jobs) = (all + some, jobs + of);
    }
    assert!((all / jobs - 0.1).abs() < 4.0 * 0.002_13, "{}", all / jobs);
}

/// Random selection of m among K in hindsight and by formula: the mean regret of the genie is 0, and that of random
/// selection follows from the formulas of mean speeds; both need the losses.
#[test]
fn realised_rewards_are_those_that_the_formulas_expect() {
    let regret = "[regret]\ntau_min = \"2 s\"\nmeters = [\"realised\", \"expected\"]\n[policy.random]\n[policy.genie]";
    let scenario = changed(SCENARIO_TEXT, "[policy.random]", regret);
    let scenario = changed(&scenario, "stop.rounds = 500", "stop.rounds = 2000");
    for run in runs(&scenario) {
        let (realised, expected) = (number(&run, "/regret/realised"), number(&run, "/regret/expected"));
        // Differences of 2,000 rounds, each between -1 and 1 and mostly within 0.3.
        assert!((realised - expected).abs() < 4.0 * 0.3 * 2_000_f64.sqrt(), "{realised} {expected} in {run}");
    }
}

#[test]
fn what_is_no_probability_is_refused_at_its_line() {
    for (wrong, path, found) in [
        ("{ probability = 1.0 }", "population.dropout.probability", "found 1; "),
        ("{ probability = -0.1 }", "population.dropout.probability", "found -0.1; "),
        ("{ upload = { probability = 1.5 } }", "population.dropout.upload.probability", "found 1.5; "),
    ] {
        let place = Workplace::with(&changed(SCENARIO_TEXT, "{ probability = 0.2 }", wrong));
        let answer = place.fedgenie(&["run", SCENARIO]);
        let expected = format!("{SCENARIO}:8: {path}: {found}expected a probability of at least 0 and below 1");
        assert!(answer.code == 2 && answer.stderr.contains(&expected), "{answer:?}\nshould say {expected}");
    }
    let place = Workplace::with(&changed(SCENARIO_TEXT, "{ probability = 0.2 }", "{ compute = 0.2 }"));
    let answer = place.fedgenie(&["run", SCENARIO]);
    let expected = "population.dropout.compute: found 0.2; expected a hazard rate such as \"0.01 /s\" (units /s, /min, \
                    /h, /d), or { probability = 0.1 }";
    assert!(answer.code == 2 && answer.stderr.contains(expected), "{answer:?}");
    let place = Workplace::with(&changed(SCENARIO_TEXT, ", timeout = \"30 s\"", ""));
    let answer = place.fedgenie(&["run", SCENARIO]);
    assert!(answer.code == 2 && answer.stderr.contains("give the protocol a timeout"), "{answer:?}");
}
