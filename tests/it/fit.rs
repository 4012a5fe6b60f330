//! `fedgenie fit`: from a log to a fleet that runs.

use super::support::{Answer, Workplace, changed};
use std::path::PathBuf;

/// Ten fast clients and six slow ones under a deadline; clients are lost.
const WORLD: &str = r#"
name = "world"
seeds = 2

[stop]
rounds = 150

[population]
dropout = { probability = 0.1 }

[[population.group]]
name = "fast"
count = 10
latency = { download = "0.1 s", compute = { lognormal = { median = "0.5 s", sigma = 0.4 } }, upload = { exponential = { mean = "0.2 s" } } }

[[population.group]]
name = "slow"
count = 6
latency = { download = "0.1 s", compute = { lognormal = { median = "2 s", sigma = 0.3 } }, upload = { exponential = { mean = "0.2 s" } } }

[protocol.synchronous]
cohort = 6
timeout = "3.5 s"

[policy.random]
"#;

/// A world's run with its log in `tables/jobs.csv`.
fn logged(world: &str) -> Workplace {
    let place = Workplace::with(world);
    place.run_into("out", &["--events"]);
    assert_eq!(place.fedgenie(&["export", "out", "--to", "csv", "-o", "tables"]).code, 0);
    place
}

fn fit(place: &Workplace, words: &[&str]) -> Answer {
    place.fedgenie(&[&["fit"], words].concat())
}

#[test]
fn a_log_becomes_a_fleet_that_runs() {
    let place = logged(WORLD);
    let answer = fit(&place, &["tables/jobs.csv", "--seed", "1"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    for part in [
        "900 jobs of 16 clients in 150 rounds, usually 6 clients a round; jobs are cut after 3.5 s",
        "groups: 2;",
        "group 1: 10 clients",
        "group 2: 6 clients",
        "constant 0.1 s, in all of",
        "lost with probability",
        "p-values are optimistic",
        "replayed 200 times for each of 30 later rounds",
        "written to fleet.toml",
    ] {
        assert!(answer.stdout.contains(part), "{part}: {answer:?}");
    }
    assert!(answer.stderr.contains("900 jobs of other runs were left out"), "{answer:?}");
    let fleet = place.text("fleet.toml");
    assert!(fleet.contains("timeout = \"3.5 s\" # the log's") && fleet.contains("cohort = 6"), "{fleet}");
    place.run_file("fleet.toml", "fleet", &[]);
    let mean = |folder: &str| {
        let summary = place.json(&format!("{folder}/summary.json"));
        summary["arms"][0]["values"]["virtual_time_s"]["mean"].as_f64().unwrap()
    };
    let ratio = mean("fleet") / mean("out");
    assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
    // It is there now, and stays as it is.
    let again = fit(&place, &["tables/jobs.csv", "--seed", "1"]);
    assert!(again.code == 2 && again.stderr.contains("fleet.toml exists already"), "{again:?}");
    assert_eq!(place.text("fleet.toml"), fleet);
    // The same log gives the same fleet, byte for byte.
    assert_eq!(fit(&place, &["tables/jobs.csv", "--seed", "1", "-o", "again.toml"]).code, 0);
    assert_eq!(place.text("again.toml"), fleet);
}

#[test]
fn what_is_no_log_is_refused() {
    let place = logged(&changed(WORLD, "rounds = 150", "rounds = 3"));
    let refused = |words: &[&str], part: &str| {
        let answer = fit(&place, words);
        assert!(answer.code == 2 && answer.stdout.is_empty() && answer.stderr.contains(part), "{words:?}: {answer:?}");
        assert!(!place.path("fleet.toml").exists());
    };
    refused(&["none.csv"], "cannot read none.csv: ");
    refused(&["tables/jobs.csv"], "found jobs of several runs");
    refused(&["tables/jobs.csv"], "give --policy, --seed or --point");
    refused(&["tables/jobs.csv", "--seed", "3"], "found no job of the chosen run");
    refused(&["tables/jobs.csv", "--policy", "bsfl"], "found no job of the chosen run");
    refused(&["tables/rounds.csv"], "there is no \"client\"");
    let header = "client,round,sent_s,download_s,compute_s,upload_s,total_s,outcome\n";
    place.write("cut.csv", format!("{header}0,1,0,1,1,1,3,arrived\n0,2,3,1,1"));
    refused(&["cut.csv"], "cut.csv:3: found 5 fields; the header has 8 columns");
    place.write("late.csv", format!("{header}0,1,0,,,,3,late\n1,1,0,,,,3,late\n"));
    refused(&["late.csv"], "found 2 jobs, none of which arrived with its time");
    place.write("empty.csv", header);
    refused(&["empty.csv"], "found no job");
    place.write("binary.csv", [255, 254, 0, 1]);
    refused(&["binary.csv"], "is not UTF-8 text");
}

/// A log of one job is fitted, and what it cannot tell is said.
#[test]
fn short_logs_say_that_they_are_short() {
    let place = Workplace::new();
    place.write(
        "log.csv",
        "outcome,total_s,upload_s,compute_s,download_s,sent_s,round,client,note\narrived,3,,,,,7,40,x\n\
         arrived,4,,,,,8,41,\nlate,5,,,,,8,40,\n",
    );
    let answer = fit(&place, &["log.csv", "-o", "small.toml"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    for part in [
        "columns that do not count: \"note\"",
        "2 clients, 40 to 41, were numbered anew",
        "2 rounds, 7 to 8, were numbered anew",
        "no job has phases: all time counts as computing",
        "the log is short: group 1 has 2 durations of its compute",
    ] {
        assert!(answer.stderr.contains(part), "{part}: {answer:?}");
    }
    assert!(answer.stdout.contains("no rounds were held out: the log is short"), "{answer:?}");
    place.run_file("small.toml", "small", &[]);
}

/// Texts of a log reach terminals and the fleet harmlessly.
#[test]
fn hostile_texts_are_quoted() {
    let place = Workplace::new();
    let header = "client,round,sent_s,download_s,compute_s,upload_s,total_s,outcome,\u{1b}[31mred\n";
    place.write("log.csv", format!("{header}0,1,0,1,1,1,3,arrived,x\n"));
    let answer = fit(&place, &["log.csv"]);
    assert!(answer.code == 0 && !answer.stderr.contains('\u{1b}') && !answer.stdout.contains('\u{1b}'), "{answer:?}");
    place.write("bad\n[policy.genie]\n.csv", format!("{header}0,1,0,1,1,1,3,arrived,x\n"));
    assert_eq!(fit(&place, &["bad\n[policy.genie]\n.csv", "-o", "b.toml"]).code, 0);
    assert!(!place.text("b.toml").contains("\n[policy.genie]"), "{}", place.text("b.toml"));
}

/// Sixty phones with the training latencies and links of published sets, and jitter on both.
const PHONES: &str = r#"
name = "phones"
seeds = 1

[stop]
rounds = 100

[population]
clients = 60

[population.device]
samples_per_second = { table = { file = "fl-traces/flhetbench/training_latency.csv", column = "resnet_latency", unit = "ms", per = 32, missing = "drop", assign = "permuted" } }
downlink = { table = { file = "fl-traces/flhetbench/mobiperf_tcp_records.csv", format = "mobiperf", unit = "kbit/s", assign = "permuted" } }
uplink = { table = { file = "fl-traces/flhetbench/mobiperf_tcp_records.csv", format = "mobiperf", unit = "kbit/s", assign = "permuted" } }

[population.device.jitter]
download = { lognormal = { median = 1, sigma = 0.3 } }
compute = { lognormal = { median = 1, sigma = 0.2 } }
upload = { lognormal = { median = 1, sigma = 0.3 } }

[task.scripted]
metric = "test_score"
better = "higher"
payload = "4 MB"
values = [1.0]

[training]
epochs = 1
batch = 32
optimizer = { sgd = { lr = 0.01 } }

[protocol.synchronous]
cohort = 12

[policy.random]
"#;

/// A log of published phones is fitted: each phone has a median of its own, the deviation is that of the jitter, and
/// rounds that were held out take as long as they are predicted.
#[test]
fn published_traces_are_fitted() {
    let root = std::env::var_os("FEDGENIE_DATA").map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from);
    if !root.join("fl-traces/flhetbench").is_dir() {
        println!("skipped: {} lacks fl-traces/flhetbench; set FEDGENIE_DATA", root.display());
        return;
    }
    let place = Workplace::with(PHONES);
    let root = root.canonicalize().unwrap();
    let data = root.to_str().unwrap();
    let words = ["run", "scenario.toml", "--out", "out", "--quiet", "--events", "--data", data];
    assert_eq!(place.fedgenie(&words).code, 0);
    assert_eq!(place.fedgenie(&["export", "out", "--to", "csv", "-o", "tables"]).code, 0);
    let answer = fit(&place, &["tables/jobs.csv"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    println!("{}", answer.stdout);
    assert!(answer.stdout.contains("lognormal with a median of each client"), "{answer:?}");
    let ratio = answer.stdout.split_once("(ratio ").unwrap().1.split_once(')').unwrap().0.parse::<f64>().unwrap();
    assert!((ratio - 1.0).abs() < 0.1, "{answer:?}");
}
