//! Every wrong input is refused before anything is written: exit code 2, nothing on stdout, and one message that names
//! file, line, key path, the value found and the right one.

use super::support::{Answer, PLAIN, SCENARIO, Workplace, changed, line_of};
use flate2::{Compression, write::GzEncoder};
use std::io::Write;

const GOOD: &str = r#"name = "good"
seeds = 2

[stop]
rounds = 3

[population]
clients = 4
[population.latency]
download = { constant = "10 ms" }
compute = { exponential = { mean = "1 s", shift = "0.1 s" } }
upload = { constant = "20 ms" }

[task.none]
payload = "1 kB"

[protocol.synchronous]
cohort = 2

[regret]
tau_min = "50 ms"
meters = ["mean", "realised"]

[policy.random]
[policy.bsfl]
alpha = 3.0
"#;

const COMPUTE: &str = r#"{ exponential = { mean = "1 s", shift = "0.1 s" } }"#;

const GROUPS: &str = r#"
[[population.group]]
name = "fast"
count = 1
[[population.group]]
name = "slow"
count = 3
"#;

fn with_groups() -> String {
    changed(GOOD, "\n[task.none]", &format!("{GROUPS}\n[task.none]"))
}

/// A scenario that learns from the IDX files in the folder `digits`.
fn with_images() -> String {
    let task =
        "[task.softmax-regression]\ndata = \"digits\"\n\n[training]\nbatch = 4\noptimizer = { sgd = { lr = 0.1 } }";
    changed(GOOD, "[task.none]\npayload = \"1 kB\"", task)
}

/// The answer is a refusal with exactly one message, in which these parts stand in this order.
fn assert_refusal(answer: &Answer, start: &str, parts: &[&str]) {
    let Answer { code, stdout, stderr } = answer;
    assert_eq!((*code, stdout.as_str()), (2, ""), "{stderr}");
    assert_eq!(stderr.matches("fedgenie: error: ").count(), 1, "{stderr}");
    assert!(stderr.starts_with(&format!("fedgenie: error: {start}")), "should start with {start:?}: {stderr}");
    let mut rest = stderr.as_str();
    for part in parts {
        let place = rest.find(part);
        assert!(place.is_some(), "{part:?} is missing, or out of order, in: {stderr}");
        rest = &rest[place.unwrap() + part.len()..];
    }
}

/// The binary refuses to run the scenario of the place, and leaves the folder of `--out` alone.
fn assert_refuses(place: &Workplace, more: &[&str], start: &str, parts: &[&str]) {
    let answer = place.fedgenie(&[&["run", SCENARIO, "--out", "out", "--quiet"], more].concat());
    assert_refusal(&answer, start, parts);
    assert!(!place.path("out").exists(), "something was written: {}", answer.stderr);
}

/// The scenario is refused at the line that contains `at`, with this path and these parts.
fn refused_at(scenario: &str, at: &str, path: &str, parts: &[&str]) {
    let start = format!("{SCENARIO}:{}: {path}: ", line_of(scenario, at));
    assert_refuses(&Workplace::with(scenario), &[], &start, parts);
}

/// The good scenario with one change is refused where the change is.
fn refused(from: &str, to: &str, path: &str, parts: &[&str]) {
    let at = to.trim_end().rsplit('\n').next().unwrap();
    refused_at(&changed(GOOD, from, to), at, path, parts);
}

#[test]
fn the_scenarios_are_good_before_they_are_spoilt() {
    for scenario in [GOOD.to_owned(), with_groups()] {
        Workplace::with(&scenario).run_into("out", &[]);
    }
    let place = Workplace::with(&with_images());
    write_images(&place, &[]);
    place.run_into("out", &[]);
}

// ---------------------------------------------------------------------------------------------- names

#[test]
fn a_misspelt_key() {
    refused("rounds", "ruonds", "stop.ruonds", &["unknown key \"ruonds\"", "did you mean \"rounds\"?", "virtual_time"]);
    refused("alpha", "alhpa", "policy.bsfl.alhpa", &["unknown key \"alhpa\"", "did you mean \"alpha\"?", "beta"]);
    refused("[stop]", "[stpo]", "stpo", &["unknown key \"stpo\"", "did you mean \"stop\"?", "policy", "sweep"]);
    let scenario = GOOD.replace("[policy.", "[polisy.");
    refused_at(&scenario, "[polisy.random]", "polisy", &["unknown key \"polisy\"", "did you mean \"policy\"?"]);
}

#[test]
fn a_misspelt_kind() {
    let parts = ["unknown kind \"synchronus\"", "did you mean \"synchronous\"?", "over-selection, deadline"];
    refused("[protocol.synchronous]", "[protocol.synchronus]", "protocol.synchronus", &parts);
    refused("[task.none]", "[task.nun]", "task.nun", &["unknown kind \"nun\"", "did you mean \"none\"?"]);
    let parts = ["unknown value \"realized\"", "did you mean \"realised\"?", "expected-exact"];
    refused("\"realised\"", "\"realized\"", "regret.meters.1", &parts);
}

#[test]
fn a_misspelt_law() {
    let parts = ["unknown kind \"exponentail\"", "did you mean \"exponential\"?", "lognormal"];
    refused("exponential", "exponentail", "population.latency.compute.exponentail", &parts);
    let path = "population.latency.compute.exponential.shfit";
    refused("shift", "shfit", path, &["unknown key \"shfit\"", "did you mean \"shift\"?", "mean"]);
    let path = "population.latency.compute.exponential.mean.unifrom";
    let law = r#"mean = { unifrom = ["1 s", "2 s"] }"#;
    refused("mean = \"1 s\"", law, path, &["unknown kind \"unifrom\"", "did you mean \"uniform\"?", "each"]);
    refused(
        COMPUTE,
        "{ exponential = { shift = \"1 s\" } }",
        "population.latency.compute.exponential",
        &["\"mean\" is missing"],
    );
}

#[test]
fn a_misspelt_parameter_of_a_law_is_found_on_its_own_line() {
    let table = "[population.latency.compute.exponential]\nmean = \"1 s\"\nshfit = \"0.1 s\"";
    let scenario = changed(GOOD, &format!("compute = {COMPUTE}\n"), "");
    let scenario = changed(&scenario, "\n[task.none]", &format!("{table}\n[task.none]"));
    let path = "population.latency.compute.exponential.shfit";
    refused_at(&scenario, "shfit", path, &["unknown key \"shfit\"", "did you mean \"shift\"?"]);
}

#[test]
fn a_misspelt_policy() {
    let parts = ["unknown policy \"bslf\"", "did you mean \"bsfl\"?", "random", "power-of-choice"];
    refused("[policy.bsfl]", "[policy.bslf]", "policy.bslf", &parts);
    refused("[policy.bsfl]", "[policy.mine]\nkind = \"bslf\"", "policy.mine.kind", &parts);
    let parts = ["found 3; expected the name of a policy"];
    refused("[policy.bsfl]", "[policy.mine]\nkind = 3", "policy.mine.kind", &parts);
    let parts = ["a label has lower-case letters, digits, - and _ only"];
    refused("[policy.bsfl]", "[policy.\"../x\"]", "policy.../x", &parts);
}

// ---------------------------------------------------------------------------------------------- values

#[test]
fn a_wrong_or_missing_unit() {
    let path = "population.latency.download.constant";
    for (written, found) in [("\"10 MB\"", "\"10 MB\""), ("\"10\"", "\"10\""), ("10", "10"), ("0.01", "0.01")] {
        let parts =
            [&*format!("found {found}"), "expected a duration such as \"25 ms\" (units ns, us, ms, s, min, h, d)"];
        refused("\"10 ms\"", written, path, &parts);
    }
    let parts = ["found \"1 s\"", "expected an amount of data such as \"850 kB\""];
    refused("\"1 kB\"", "\"1 s\" # payload", "task.none.payload", &parts);
    let parts = ["found 50", "expected a duration such as \"25 ms\""];
    refused("tau_min = \"50 ms\"", "tau_min = 50", "regret.tau_min", &parts);
}

#[test]
fn a_number_that_is_none() {
    for (written, found) in [("nan", "NaN"), ("inf", "inf"), ("-inf", "-inf"), ("-1", "-1"), ("-1.5", "-1.5")] {
        let found = format!("found {found}");
        let alpha = format!("alpha = {written}");
        refused("alpha = 3.0", &alpha, "policy.bsfl.alpha", &[&found, "expected a number of at least 0"]);
        let beta = format!("tau_min = \"50 ms\"\nbeta = {written}");
        refused("tau_min = \"50 ms\"", &beta, "regret.beta", &[&found, "expected a number above 0"]);
        let rounds = format!("rounds = {written}");
        refused("rounds = 3", &rounds, "stop.rounds", &[&found, "expected a whole number"]);
        let quality = format!("clients = 4\ndata_quality = {written}");
        refused("clients = 4", &quality, "population.data_quality", &[&found, "expected a number"]);
    }
}

#[test]
fn a_number_out_of_a_laws_range() {
    let path = "population.latency.compute";
    for (written, parts) in [
        (
            "{ lognormal = { median = \"1 s\", sigma = -1 } }",
            ["lognormal: sigma is -1", "must be a positive finite number"],
        ),
        ("{ exponential = { mean = \"0 s\" } }", ["exponential: mean is 0", "must be a positive finite number"]),
        ("{ constant = \"-1 s\" }", ["constant: value is -1", "must be a finite number not below zero"]),
        ("{ uniform = [\"2 s\", \"1 s\"] }", ["uniform: high is 1", "must be above low"]),
    ] {
        refused(COMPUTE, written, path, &parts);
    }
    for written in ["nan", "inf"] {
        let law = format!("{{ lognormal = {{ median = \"1 s\", sigma = {written} }} }}");
        refused(COMPUTE, &law, "population.latency.compute.lognormal.sigma", &["found", "expected a number"]);
    }
}

#[test]
fn a_negative_or_endless_duration() {
    for written in ["\"-50 ms\"", "\"1e12 s\"", "\"0 s\""] {
        let tau_min = format!("tau_min = {written}");
        refused("tau_min = \"50 ms\"", &tau_min, "regret.tau_min", &["found", "expected a", "duration"]);
        let timeout = format!("cohort = 2\ntimeout = {written}");
        refused("cohort = 2", &timeout, "protocol.synchronous.timeout", &["found", "expected a", "duration"]);
    }
}

#[test]
fn a_negative_amount() {
    refused("\"1 kB\"", "\"-1 kB\"", "task.none.payload", &["found -1000 B", "expected an amount of at least 0"]);
    let stop = "rounds = 3\ntraffic = \"-1 kB\"";
    refused("rounds = 3", stop, "stop.traffic", &["found -1000 B", "expected a positive amount"]);
}

#[test]
fn a_value_of_another_type() {
    refused("rounds = 3", "rounds = \"three\"", "stop.rounds", &["found \"three\"", "expected a whole number"]);
    refused("alpha = 3.0", "alpha = true", "policy.bsfl.alpha", &["found true", "expected a number"]);
    refused("name = \"good\"", "name = 3", "name", &["found 3", "expected a text"]);
    refused("meters = [\"mean\", \"realised\"]", "meters = true", "regret.meters", &["found true", "expected a list"]);
    for (written, found) in [("\"two\"", "found \"two\""), ("-1", "found -1")] {
        let parts = [found, "expected a number of seeds of at least 1, a list of seeds such as [1, 2, 3], or { until"];
        refused("seeds = 2", &format!("seeds = {written}"), "seeds", &parts);
    }
    refused("seeds = 2", "seeds = [1, -1]", "seeds.1", &["found -1", "expected a whole number from 0"]);
    refused("seeds = 2", "seeds = 0", "seeds", &["found 0", "expected between 1 and"]);
    refused("seeds = 2", "seeds = [4, 4]", "seeds", &["seed 4 is listed twice"]);
}

// ---------------------------------------------------------------------------------------------- what does not fit

#[test]
fn more_clients_per_round_than_there_are() {
    let parts = ["found 5", "expected between 1 and the number of clients (4)"];
    refused("cohort = 2", "cohort = 5", "protocol.synchronous.cohort", &parts);
    refused("cohort = 2", "cohort = 0", "protocol.synchronous.cohort", &["found 0", "expected between 1 and"]);
    let protocol = "[protocol.over-selection]\nask = 3\ntake = 4";
    let parts = ["found 4", "expected between 1 and ask (3)"];
    refused("[protocol.synchronous]\ncohort = 2", protocol, "protocol.over-selection.take", &parts);
}

#[test]
fn a_latency_that_can_fall_below_tau_min() {
    let parts = ["found 0.131 s", "client 0 can fall to 0.13 s", "give at most that"];
    refused("tau_min = \"50 ms\"", "tau_min = \"131 ms\"", "regret.tau_min", &parts);
    // Exactly the shortest latency is fine.
    Workplace::with(&changed(GOOD, "tau_min = \"50 ms\"", "tau_min = \"130 ms\"")).run_into("out", &[]);
}

#[test]
fn a_latency_that_falls_below_tau_min_with_a_later_seed_only() {
    // The download is drawn per client between 0 and 100 ms: seed 1 draws more than 30 ms for all, some other seed
    // less.
    let scenario = changed(GOOD, "constant = \"10 ms\"", "constant = { uniform = [\"0 ms\", \"100 ms\"] }");
    let scenario = changed(&scenario, "shift = \"0.1 s\"", "shift = \"0 s\"");
    let scenario = changed(&scenario, "clients = 4", "clients = 1");
    let scenario = changed(&scenario, "cohort = 2", "cohort = 1");
    let scenario = changed(&scenario, "seeds = 2", "seeds = 1");
    Workplace::with(&scenario).run_into("out", &[]);
    let scenario = changed(&scenario, "seeds = 1", "seeds = 20");
    refused_at(&scenario, "tau_min", "regret.tau_min", &["found 0.05 s", "client 0 can fall to"]);
}

#[test]
fn no_stop_condition() {
    let parts = ["no stop condition is given", "write for example rounds = 200"];
    refused_at(&changed(GOOD, "rounds = 3\n", ""), "[stop]", "stop", &parts);
    refused_at(&changed(GOOD, "rounds = 3", "traffic = \"1 MB\""), "[stop]", "stop", &["give rounds or virtual_time"]);
    let place = Workplace::with(&changed(GOOD, "[stop]\nrounds = 3\n", ""));
    assert_refuses(&place, &[], "scenario.toml:1: stop: ", &parts);
}

#[test]
fn group_counts_that_contradict_the_number_of_clients() {
    let scenario = changed(&with_groups(), "count = 3", "count = 4");
    refused_at(
        &scenario,
        "clients = 4",
        "population.clients",
        &["found 4", "the groups add up to 5", "make them agree"],
    );
}

#[test]
fn shares_that_do_not_add_up() {
    let scenario = changed(&with_groups(), "count = 3", "share = 0.5");
    refused_at(
        &scenario,
        "clients = 4",
        "population.clients",
        &["found 4", "the groups add up to 3", "make them agree"],
    );
    let scenario = changed(&with_groups(), "count = 3", "share = 1.5");
    let parts = ["found 1.5", "expected a number above 0 and at most 1"];
    refused_at(&scenario, "share = 1.5", "population.group.1.share", &parts);
    for both in ["count = 3\nshare = 0.5", ""] {
        let scenario = changed(&with_groups(), "count = 3", both);
        let line = line_of(&scenario, "name = \"slow\"") - 1;
        let parts = ["give either count or share"];
        assert_refuses(&Workplace::with(&scenario), &[], &format!("{SCENARIO}:{line}: population.group.1: "), &parts);
    }
}

#[test]
fn what_groups_inherit_is_found_where_it_is_written() {
    let scenario = changed(&with_groups(), "\"10 ms\"", "\"-10 ms\"");
    refused_at(&scenario, "\"-10 ms\"", "population.latency.download", &["constant: value is -0.01"]);
    let scenario = changed(&with_groups(), "clients = 4", "clients = 4\ndata_quality = 2");
    refused_at(&scenario, "data_quality", "population.data_quality", &["found 2", "at most 1"]);
    let scenario = changed(&with_groups(), "name = \"slow\"", "name = \"slow\"\ndata_quality = 2");
    refused_at(&scenario, "data_quality", "population.group.1.data_quality", &["found 2", "at most 1"]);
}

#[test]
fn no_clients() {
    let parts = ["found 0 clients", "expected between 1 and"];
    refused("clients = 4", "clients = 0", "population.clients", &parts);
    let scenario = changed(GOOD, "clients = 4\n", "");
    let parts = ["the number of clients is missing", "clients = 20"];
    let start = format!("{SCENARIO}:{}: population.clients: ", line_of(GOOD, "[population]"));
    assert_refuses(&Workplace::with(&scenario), &[], &start, &parts);
}

#[test]
fn no_policy() {
    let parts = ["no policy is given", "write for example [policy.random]"];
    let policies = "[policy.random]\n[policy.bsfl]\nalpha = 3.0\n";
    refused_at(&changed(GOOD, policies, "[policy]\n"), "[policy]", "policy", &parts);
    let place = Workplace::with(&changed(GOOD, policies, ""));
    assert_refuses(&place, &[], "scenario.toml:1: policy: ", &parts);
}

#[test]
fn dropouts_without_a_timeout() {
    let dropouts = "[population.dropout]\ncompute = \"0.1 /s\"\n\n[task.none]";
    let scenario = changed(GOOD, "[task.none]", dropouts);
    let parts = ["clients can be lost", "give the protocol a timeout"];
    refused_at(&scenario, "[protocol.synchronous]", "protocol", &parts);
    Workplace::with(&changed(&scenario, "cohort = 2", "cohort = 2\ntimeout = \"9 s\"")).run_into("out", &[]);
    let scenario = changed(&scenario, "\"0.1 /s\"", "\"-0.1 /s\"");
    let parts = ["found -0.1 /s", "expected a hazard rate of at least 0"];
    refused_at(&scenario, "\"-0.1 /s\"", "population.dropout.compute", &parts);
}

#[test]
fn the_expected_meter_under_over_selection() {
    let scenario = changed(GOOD, "[protocol.synchronous]\ncohort = 2", "[protocol.over-selection]\nask = 3\ntake = 2");
    let scenario = changed(&scenario, "\"realised\"", "\"expected\"");
    let parts = ["`expected` is not defined under over-selection", "take it out of the meters"];
    refused_at(&scenario, "meters", "regret.meters", &parts);
}

#[test]
fn power_of_choice_without_training() {
    let parts = ["compares local losses", "[task.none]", "choose a task that trains"];
    refused("[policy.random]", "[policy.power-of-choice]", "policy.power-of-choice", &parts);
}

#[test]
fn a_task_that_trains_without_training() {
    let scenario = changed(GOOD, "[task.none]\npayload = \"1 kB\"", "[task.linear-regression]\nexamples = 700");
    let parts = ["is missing, and this task trains", "optimizer = { sgd = { lr ="];
    assert_refuses(&Workplace::with(&scenario), &[], "scenario.toml:1: training: ", &parts);
}

#[test]
fn synthetic_data_that_cannot_be() {
    let training = "\n[training]\noptimizer = { sgd = { lr = 0.1 } }";
    for (key, parts) in [("noise = nan", ["NaN"]), ("examples = 0", ["0"]), ("features = 0", ["0"])] {
        let task = format!("[task.linear-regression]\n{key}\n{training}");
        let scenario = changed(GOOD, "[task.none]\npayload = \"1 kB\"", &task);
        let name = key.split(' ').next().unwrap();
        refused_at(&scenario, key, &format!("task.linear-regression.{name}"), &parts);
    }
}

#[test]
fn a_list_that_does_not_have_one_value_per_client() {
    let each = |values: &str| format!("constant = {{ each = [{values}] }}");
    let path = "population.latency.download";
    let parts = ["found a list of 2 values", "expected 4, one per client"];
    refused("constant = \"10 ms\"", &each("\"10 ms\", \"20 ms\""), path, &parts);
    let parts = ["found \"1\"", "expected a duration"];
    let path = "population.latency.download.constant.each.2";
    refused("constant = \"10 ms\"", &each("\"10 ms\", \"20 ms\", \"1\", \"2 ms\""), path, &parts);
}

// ---------------------------------------------------------------------------------------------- syntax

#[test]
fn a_duplicate_key_in_toml() {
    let scenario = changed(GOOD, "cohort = 2", "cohort = 2\ncohort = 3");
    let start = format!("{SCENARIO}:{}: this is not TOML: ", line_of(&scenario, "cohort = 3"));
    assert_refuses(&Workplace::with(&scenario), &[], &start, &["duplicate key", "cohort"]);
}

#[test]
fn a_duplicate_key_in_json() {
    let place = Workplace::new();
    place.write("s.json", GOOD_JSON);
    place.run_file("s.json", "good", &[]);
    place.write("s.json", changed(GOOD_JSON, "\"seeds\": 2,", "\"seeds\": 2,\n  \"seeds\": 3,"));
    let answer = place.fedgenie(&["run", "s.json", "--out", "out", "--quiet"]);
    assert_refusal(&answer, "s.json:4: ", &["duplicate key", "seeds"]);
    assert!(!place.path("out").exists());
}

#[test]
fn broken_toml() {
    for broken in ["cohort = = 2", "cohort = \"2", "cohort"] {
        let scenario = changed(GOOD, "cohort = 2", broken);
        let start = format!("{SCENARIO}:{}: this is not TOML: ", line_of(GOOD, "cohort = 2"));
        assert_refuses(&Workplace::with(&scenario), &[], &start, &["expected"]);
    }
    for (written, parts) in [("1979-05-27", ["a scenario has no dates"]), ("99999999999999999999", ["64 bits"])] {
        let place = Workplace::with(&changed(GOOD, "seeds = 2", &format!("seeds = {written}")));
        assert_refuses(&place, &[], "scenario.toml:2: ", &parts);
    }
}

const GOOD_JSON: &str = r#"{
  "name": "good",
  "seeds": 2,
  "stop": { "rounds": 3 },
  "population": {
    "clients": 4,
    "latency": {
      "download": { "constant": "10 ms" }, "compute": { "constant": "1 s" }, "upload": { "constant": "20 ms" }
    }
  },
  "protocol": { "synchronous": { "cohort": 2 } },
  "policy": { "random": {} }
}
"#;

#[test]
fn broken_json() {
    let place = Workplace::new();
    let refused = |text: String, start: &str, parts: &[&str]| {
        place.write("s.json", text);
        assert_refusal(&place.fedgenie(&["run", "s.json", "--out", "out", "--quiet"]), start, parts);
        assert!(!place.path("out").exists());
    };
    refused(changed(GOOD_JSON, "\"seeds\": 2,", "\"seeds\": 2,,"), "s.json:3: ", &["this is not JSON"]);
    refused(
        changed(GOOD_JSON, "\"seeds\": 2,", "\"seeds\": null,"),
        "s.json:3: ",
        &["found null", "leave the key out"],
    );
    let parts = ["unknown key \"cohrot\"", "did you mean \"cohort\"?"];
    refused(changed(GOOD_JSON, "cohort", "cohrot"), "s.json:11: protocol.synchronous.cohrot: ", &parts);
}

// ---------------------------------------------------------------------------------------------- sweeps and words

#[test]
fn a_sweep_over_what_does_not_exist() {
    let sweep = |line: &str| format!("{GOOD}\n[sweep]\n{line}\n");
    let refused = |line: &str, path: &str, parts: &[&str]| refused_at(&sweep(line), line, path, parts);
    let parts = ["unknown key \"alhpa\"", "did you mean \"alpha\"?"];
    refused("\"policy.bsfl.alhpa\" = [1.0, 2.0]", "policy.bsfl.alhpa", &parts);
    refused("\"polisy.bsfl.beta\" = [1.0, 2.0]", "polisy", &["unknown key \"polisy\"", "did you mean \"policy\"?"]);
    refused("\"policy.bsflx.beta\" = [1.0]", "policy.bsflx", &["unknown policy \"bsflx\"", "did you mean \"bsfl\"?"]);
    refused("\"policy.bsfl.beta\" = [1.0, -2.0]", "policy.bsfl.beta", &["found -2", "expected a number above 0"]);
    refused("\"policy.bsfl.beta\" = 1.0", "sweep.policy.bsfl.beta", &["found 1.0", "expected a list of values"]);
    refused("\"policy.bsfl.beta\" = []", "sweep.policy.bsfl.beta", &["is empty", "expected at least one value"]);
    refused("seeds = [1, 2]", "sweep.seeds", &["cannot be swept"]);
    let line = "\"stop.rounds.x\" = [1, 2]";
    let start = format!("{SCENARIO}:{}: ", line_of(&sweep(line), line));
    let parts = ["\"stop.rounds.x\" leads through a value that is not a table"];
    assert_refuses(&Workplace::with(&sweep(line)), &[], &start, &parts);
}

#[test]
fn a_sweep_zips_and_refers_to_what_it_has() {
    let lines = "\"policy.bsfl.alpha\" = [1.0, 2.0, 3.0]\n\"policy.bsfl.beta\" = [1.0, 2.0]\n";
    let sweep = |line: &str| format!("{GOOD}\n[sweep]\n{lines}{line}\n");
    let refused = |line: &str, path: &str, parts: &[&str]| refused_at(&sweep(line), line, path, parts);
    let unequal = sweep("zip = [\"policy.bsfl.alpha\", \"policy.bsfl.beta\"]");
    let parts = ["found 2 values", "expected 3, as many as \"policy.bsfl.alpha\""];
    refused_at(&unequal, "\"policy.bsfl.beta\" =", "sweep.policy.bsfl.beta", &parts);
    let parts = ["unknown swept path \"policy.bsfl.bta\"", "did you mean \"policy.bsfl.beta\"?"];
    refused("zip = [\"policy.bsfl.alpha\", \"policy.bsfl.bta\"]", "sweep.zip", &parts);
    refused("zip = [\"policy.bsfl.beta\", \"policy.bsfl.beta\"]", "sweep.zip", &["is named twice"]);
    for bad in ["3", "[]", "[\"policy.bsfl.beta\"]", "[1, 2]"] {
        refused(&format!("zip = {bad}"), "sweep.zip", &["a list of at least two swept paths"]);
    }
    let parts = ["found 4.0", "expected one of its values: 1.0, 2.0, 3.0"];
    refused("reference = { \"policy.bsfl.alpha\" = 4.0 }", "sweep.reference.policy.bsfl.alpha", &parts);
    let parts = ["unknown swept path \"policy.bsfl.alhpa\"", "did you mean \"policy.bsfl.alpha\"?"];
    refused("reference = { \"policy.bsfl.alhpa\" = 1.0 }", "sweep.reference.policy.bsfl.alhpa", &parts);
    refused("reference = 1.0", "sweep.reference", &["found 1.0", "{ \"policy.bsfl.alpha\" = 1.0 }"]);
    let zipped = changed(&sweep(""), "alpha\" = [1.0, 2.0, 3.0]", "alpha\" = [1.0, 2.0]");
    let line = "reference = { \"policy.bsfl.alpha\" = 1.0, \"policy.bsfl.beta\" = 2.0 }";
    let zipped = format!("{zipped}zip = [\"policy.bsfl.alpha\", \"policy.bsfl.beta\"]\n{line}\n");
    refused_at(&zipped, line, "sweep.reference", &["no point has these values", "which are zipped"]);
}

#[test]
fn a_bad_override() {
    let refused = |pair: &str, start: &str, parts: &[&str]| {
        assert_refuses(&Workplace::with(GOOD), &["--set", pair], start, parts);
    };
    refused("stop.rounds", "found --set \"stop.rounds\"", &["expected PATH=VALUE", "stop.rounds=50"]);
    refused("stop.rounds=x", "--set: stop.rounds: ", &["found \"x\"", "expected a whole number"]);
    refused("stop.ruonds=3", "--set: stop.ruonds: ", &["unknown key \"ruonds\"", "did you mean \"rounds\"?"]);
    refused("=3", "--set: ", &["the path \"\" has an empty part", "policy.bsfl.alpha"]);
    refused("stop..rounds=3", "--set: ", &["the path \"stop..rounds\" has an empty part"]);
    refused("stop.rounds.x=3", "--set: ", &["\"stop.rounds.x\" leads through a value that is not a table"]);
    refused("policy.bsfl.alpha=nan", "--set: policy.bsfl.alpha: ", &["found NaN", "expected a number of at least 0"]);
    refused("protocol.synchronous.cohort=9", "--set: protocol.synchronous.cohort: ", &["found 9", "(4)"]);
    refused("population.group.0.count=3", "--set: population.group: ", &["expected a list"]);
    let groups = Workplace::with(&with_groups());
    let parts = ["\"population.group.7.count\"", "\"7\" should be a place 0..2 of a list"];
    assert_refuses(&groups, &["--set", "population.group.7.count=3"], "--set: ", &parts);
}

#[test]
fn a_bad_shard() {
    for shard in ["2/2", "0/0", "-1/2", "1", "x", "1/x", ""] {
        let parts = ["expected I/N with I from 0 to N-1", "such as 0/4"];
        let start = format!("found --shard {shard}");
        assert_refuses(&Workplace::with(GOOD), &[&format!("--shard={shard}")], &start, &parts);
    }
}

#[test]
fn a_scenario_file_that_is_none() {
    let place = Workplace::new();
    place.write("text.toml", b"name = \"\xff\"");
    for (file, parts) in [("nothing.toml", ["No such file"]), (".", ["directory"]), ("text.toml", ["UTF-8"])] {
        let answer = place.fedgenie(&["run", file, "--out", "out"]);
        assert_refusal(&answer, &format!("cannot read {file}: "), &parts);
        assert!(!place.path("out").exists());
    }
}

#[test]
fn verify_of_a_folder_that_is_none() {
    let place = Workplace::new();
    place.write("foreign/notes.txt", "not an experiment");
    for folder in ["nowhere", "foreign"] {
        let parts = [folder, "manifest.json", "give a folder that `fedgenie run --out` wrote"];
        assert_refusal(&place.fedgenie(&["verify", folder]), "", &parts);
    }
    place.write("broken/manifest.json", "{}");
    let parts = ["manifest.json is not a manifest of FedGenie", "missing field"];
    assert_refusal(&place.fedgenie(&["verify", "broken"]), "broken/", &parts);
}

#[test]
fn components_that_do_not_exist() {
    let place = Workplace::new();
    let refused = |words: &[&str], start: &str, parts: &[&str]| assert_refusal(&place.fedgenie(words), start, parts);
    let parts = ["did you mean \"bsfl\"?", "known: random"];
    refused(&["describe", "policy/bslf"], "unknown policy \"bslf\"", &parts);
    refused(&["describe", "polcy/bsfl"], "unknown kind \"polcy\"", &["did you mean \"policy\"?", "meter"]);
    refused(&["describe", "nothing"], "found \"nothing\"", &["expected KIND/NAME, such as policy/bsfl"]);
    refused(&["list", "polices"], "unknown kind \"polices\"", &["did you mean \"policy\"?", "known: policy, law"]);
}

// ---------------------------------------------------------------------------------------------- folders

#[test]
fn a_file_in_the_way_of_the_folder() {
    for folder in ["taken", "taken/below"] {
        let place = Workplace::with(GOOD);
        place.write("taken", "something of mine");
        let answer = place.fedgenie(&["run", SCENARIO, "--out", folder, "--quiet"]);
        assert_refusal(&answer, &format!("cannot write {folder}: "), &["give a new folder to --out"]);
        assert_eq!(place.text("taken"), "something of mine");
    }
}

#[test]
fn a_folder_with_foreign_content() {
    let place = Workplace::with(GOOD);
    place.write("taken/notes.txt", "something of mine");
    for more in [&[][..], &["--resume"], &["--shard", "0/2"]] {
        let answer = place.fedgenie(&[&["run", SCENARIO, "--out", "taken", "--quiet"], more].concat());
        assert_refusal(&answer, "taken is not empty", &["holds no FedGenie experiment", "give a new folder to --out"]);
        assert_eq!(std::fs::read_dir(place.path("taken")).unwrap().count(), 1);
        assert_eq!(place.text("taken/notes.txt"), "something of mine");
    }
}

#[test]
fn resuming_another_scenario() {
    let place = Workplace::with(GOOD);
    place.run_into("out", &[]);
    let summary = place.text("out/summary.json");
    place.write(SCENARIO, changed(GOOD, "rounds = 3", "rounds = 4"));
    let answer = place.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet", "--resume"]);
    let parts = ["choose a new folder, or --overwrite; more seeds are written into the scenario.toml that lies there"];
    assert_refusal(&answer, "out holds another experiment (", &parts);
    let parts = ["choose a new folder, --resume to continue the same one, or --overwrite"];
    // Without --resume nothing is deleted either, the same experiment or another.
    let answer = place.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
    assert_refusal(&answer, "out holds another experiment (", &parts);
    place.write(SCENARIO, GOOD);
    let answer = place.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
    assert_refusal(&answer, "out holds this very experiment", &["--resume to complete it", "--overwrite"]);
    assert_eq!(place.text("out/summary.json"), summary);
    place.run_into("out", &["--overwrite", "--set", "stop.rounds=2"]);
    assert_ne!(place.text("out/summary.json"), summary);
}

// ---------------------------------------------------------------------------------------------- data files

fn words(words: &[u32], data: &[u8]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).chain(data.iter().copied()).collect()
}

fn gzip(write: impl FnOnce(&mut GzEncoder<Vec<u8>>)) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    write(&mut encoder);
    encoder.finish().unwrap()
}

const IMAGES: &str = "train-images-idx3-ubyte";

/// Twelve images of 2 × 2 pixels in two classes, six for testing; some files may be replaced, or left out.
fn write_images(place: &Workplace, replaced: &[(&str, Option<Vec<u8>>)]) {
    let classes = |count: usize| (0..count).map(|place| (place % 2) as u8).collect::<Vec<_>>();
    let good = [
        (IMAGES, words(&[2051, 12, 2, 2], &[128; 48])),
        ("train-labels-idx1-ubyte", words(&[2049, 12], &classes(12))),
        ("t10k-images-idx3-ubyte", words(&[2051, 6, 2, 2], &[128; 24])),
        ("t10k-labels-idx1-ubyte", words(&[2049, 6], &classes(6))),
    ];
    for (name, bytes) in good {
        if !replaced.iter().any(|(other, _)| *other == name) {
            place.write(&format!("digits/{name}"), bytes);
        }
    }
    for (name, bytes) in replaced {
        if let Some(bytes) = bytes {
            place.write(&format!("digits/{name}"), bytes);
        }
    }
}

fn images_refused(replaced: &[(&str, Option<Vec<u8>>)], parts: &[&str]) {
    let scenario = with_images();
    let place = Workplace::with(&scenario);
    write_images(&place, replaced);
    let line = line_of(&scenario, "data = \"digits\"");
    assert_refuses(&place, &[], &format!("{SCENARIO}:{line}: task.softmax-regression.data: "), parts);
}

#[test]
fn a_missing_data_file() {
    for name in [IMAGES, "t10k-labels-idx1-ubyte"] {
        let packed = format!("digits/{name}.gz");
        images_refused(
            &[(name, None)],
            &["there is no", &packed, &format!("digits/{name}"), "zalandoresearch/fashion-mnist"],
        );
    }
}

#[test]
fn a_truncated_data_file() {
    let cut = |bytes: usize| Some(words(&[2051, 12, 2, 2], &[128; 48])[..bytes].to_vec());
    images_refused(&[(IMAGES, cut(63))], &[IMAGES, "ends after byte 63", "needs 64 bytes"]);
    images_refused(&[(IMAGES, cut(9))], &[IMAGES, "ends after byte 9", "needs 16 bytes"]);
    images_refused(&[(IMAGES, cut(0))], &[IMAGES, "ends after byte 0", "needs 16 bytes"]);
    let packed = gzip(|encoder| encoder.write_all(&words(&[2051, 12, 2, 2], &[128; 48])).unwrap());
    let packed = packed[..packed.len() - 4].to_vec();
    let name = format!("{IMAGES}.gz");
    images_refused(&[(IMAGES, None), (&name, Some(packed))], &[&name, "cannot be read at byte 64"]);
}

#[test]
fn a_data_file_of_another_kind() {
    let labels = Some(words(&[2049, 12], &[0; 12]));
    images_refused(&[(IMAGES, labels)], &[IMAGES, "byte 0", "the magic number is 2049", "images begins with 2051"]);
}

#[test]
fn a_data_file_with_a_hostile_header() {
    let header = Some(words(&[2051, u32::MAX, u32::MAX, u32::MAX], &[]));
    let parts = [IMAGES, "byte 4", "promises 4294967295 × 4294967295 × 4294967295 bytes", "at most 268435456 are read"];
    images_refused(&[(IMAGES, header)], &parts);
    let header = Some(words(&[2051, 12, 0, 2], &[]));
    images_refused(&[(IMAGES, header)], &[IMAGES, "byte 8", "rows is 0", "at least 1"]);
}

#[test]
fn a_gzip_bomb() {
    // 256 MiB of zeros in about 1 MiB: no more of it is unpacked than the header promises.
    let bomb = gzip(|encoder| {
        encoder.write_all(&words(&[2051, 12, 2, 2], &[])).unwrap();
        (0..256).for_each(|_| encoder.write_all(&vec![0; 1 << 20]).unwrap());
    });
    let name = format!("{IMAGES}.gz");
    let parts = [&*name, "goes on after byte 64", "where its header says it ends"];
    images_refused(&[(IMAGES, None), (&name, Some(bomb))], &parts);
}

#[test]
fn data_files_that_do_not_belong_together() {
    let name = "t10k-labels-idx1-ubyte";
    images_refused(&[(name, Some(words(&[2049, 5], &[0; 5])))], &["holds 6 examples", name, "holds 5 labels"]);
    let parts = [name, "byte 10", "label 7", "go up to 1"];
    images_refused(&[(name, Some(words(&[2049, 6], &[0, 1, 7, 0, 1, 0])))], &parts);
}

#[test]
fn fewer_examples_than_clients() {
    let scenario = changed(&with_images(), "clients = 4", "clients = 13");
    let place = Workplace::with(&scenario);
    write_images(&place, &[]);
    let start = format!("{SCENARIO}:{}: task.softmax-regression", line_of(&scenario, "[task.softmax-regression]"));
    assert_refuses(&place, &[], &start, &["13 clients", "12 examples"]);
}

/// A quantity alone is a constant law; a number without a unit is refused as one, with its unit named.
#[test]
fn a_quantity_alone_is_a_constant_law() {
    let digest = |text: &str| {
        let printed = Workplace::with(text).fedgenie(&["run", SCENARIO, "--quiet"]).stdout;
        printed.lines().find(|line| line.starts_with("digest")).map(str::to_owned)
    };
    let alone = changed(PLAIN, "{ constant = \"2 s\" }", "\"2 s\"");
    assert!(digest(PLAIN).is_some() && digest(&alone) == digest(PLAIN));
    assert_ne!(digest(&changed(PLAIN, "{ constant = \"2 s\" }", "\"3 s\"")), digest(PLAIN));
    refused(COMPUTE, "7.25", "population.latency.compute", &["found 7.25", "\"25 ms\""]);
    refused(COMPUTE, "\"2 sec\"", "population.latency.compute", &["2 sec"]);
}
