//! Budgets of traffic: the price of each selection, recomputed from the records; why runs end; the best of each metric,
//! and metrics within traffic.
#![cfg(unix)]

use super::interruption::{signal, wait_for};
use super::support::{
    Answer, PLAIN, SCENARIO, SETTINGS, Script, Workplace, assert_same_folders, changed, line_of, world,
};
use fedgenie::experiment::Experiment;
use fedgenie::policy::PolicySource;
use fedgenie::run::{Run, RunError};
use fedgenie::scenario::tree;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Jobs of 100 bytes each way: 200 bytes a job. Half of them are slow, some are lost.
const LOSSY: &str = r#"
name = "budget"
seeds = 1
[stop]
rounds = 1000
[budget]
traffic = "5 kB"
[population]
clients = 9
[population.latency]
download = { uniform = ["0.5 s", "1.5 s"] }
compute = { exponential = { mean = "2 s" } }
upload = { uniform = ["0.5 s", "1.5 s"] }
[population.dropout]
upload = "0.2 /s"
[task.none]
payload = "100 B"
[protocol.synchronous]
cohort = 4
timeout = "5 s"
[policy.random]
"#;

const SYNCHRONOUS: &str = "[protocol.synchronous]\ncohort = 4\ntimeout = \"5 s\"\n";

/// The result of a run in a folder.
fn summary(work: &Workplace) -> Value {
    let summary = work.json("out/summary.json");
    assert_eq!(summary["runs"].as_array().unwrap().len(), 1);
    summary["runs"][0].clone()
}

/// Runs the scenario of one policy and seed; its summary and its rounds.
fn run(scenario: &str, policy: &str) -> (Value, Vec<Value>) {
    let work = Workplace::with(scenario);
    work.run_into("out", &[]);
    (summary(&work), work.lines(&format!("out/runs/{policy}-s1/rounds.jsonl")))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

fn moved(round: &Value) -> u64 {
    number(&round["down_bytes"]) + number(&round["up_bytes"])
}

fn count(round: &Value, key: &str) -> u64 {
    round.get(key).map_or(0, |clients| clients.as_array().unwrap().len() as u64)
}

/// 2,000 B pay for ten jobs: rounds of 3, 3, 3 and 1. With at least two clients, the last does not take place.
#[test]
fn the_cohort_is_lowered_to_what_the_rest_pays_for() {
    let budget = |lines: &str| {
        let plain = changed(PLAIN, "cohort = 2", "cohort = 3");
        changed(&plain, "[policy", &format!("[budget]\n{lines}\n[task.none]\npayload = \"100 B\"\n[policy"))
    };
    for (lines, sizes) in [
        ("traffic = \"2 kB\"", &[3, 3, 3, 1][..]),
        // Everybody are five clients, and a round of them is 1,000 B.
        ("full_rounds = 2", &[3, 3, 3, 1]),
        ("full_rounds = 1.25", &[3, 3]),
        ("traffic = \"1999 B\"", &[3, 3, 3]),
        ("traffic = \"2 kB\"\nleast = 2", &[3, 3, 3]),
        ("traffic = \"2 kB\"\nleast = 1", &[3, 3, 3, 1]),
        ("traffic = \"200 B\"", &[1]),
        ("traffic = \"600 B\"\nleast = 3", &[3]),
    ] {
        let (summary, rounds) = run(&budget(lines), "random");
        let selected: Vec<u64> = rounds.iter().map(|round| count(round, "selected")).collect();
        assert_eq!(selected, sizes, "{lines}");
        let all: u64 = sizes.iter().sum();
        assert_eq!((number(&summary["dispatched"]), moved(&summary["traffic"])), (all, 200 * all));
        assert_eq!((summary["ended"].as_str(), number(&summary["rounds"])), (Some("budget"), sizes.len() as u64));
    }
}

/// Before each selection the rest, less the traffic still due to late jobs under way, pays for the cohort, whatever was
/// lost, late or called off before; the rest in the end does not pay for one client more.
#[test]
fn a_budget_is_never_exceeded() {
    let protocols = [
        (SYNCHRONOUS, 4),
        ("[protocol.synchronous]\ncohort = 4\ntimeout = \"5 s\"\nquorum = 2\n", 4),
        ("[protocol.over-selection]\nask = 5\ntake = 3\ntimeout = \"6 s\"\n", 5),
        ("[protocol.over-selection]\nask = 5\ntake = 2\ntimeout = \"6 s\"\nlate = { carry = {} }\n", 5),
        ("[protocol.deadline]\ncohort = 4\ndeadline = \"3 s\"\n", 4),
        ("[protocol.deadline]\ncohort = 4\ndeadline = \"3 s\"\nfull_window = true\n", 4),
        ("[protocol.deadline]\ncohort = 4\ndeadline = \"2.5 s\"\nlate = { carry = {} }\n", 4),
    ];
    for (protocol, ask) in protocols {
        let least = if protocol.contains("quorum") { 2 } else { 1 };
        let scenario = changed(LOSSY, "\n[population]\n", &format!("\nleast = {least}\n[population]\n"));
        let (summary, rounds) = run(&changed(&scenario, SYNCHRONOUS, protocol), "random");
        assert_eq!(summary["ended"], "budget", "{protocol}");
        let is_carried = protocol.contains("carry");
        let (mut before, mut carried, mut lowered) = (0, 0, 0);
        for round in &rounds {
            let rest = 5_000 - before;
            let selected = count(round, "selected");
            if is_carried {
                // A late job has moved something of its 200 bytes, and has at most all of them before it.
                let available = 9 - carried;
                assert!(200 * selected <= rest, "{protocol}");
                let surely = rest.saturating_sub(200 * carried) / 200;
                assert!(selected >= surely.min(ask).min(available), "{protocol}: {selected} of {surely}");
            } else {
                assert_eq!(selected, ask.min(rest / 200), "{protocol}: {rest} B are left");
            }
            carried += count(round, "late") * u64::from(is_carried);
            carried -= count(round, "joined") + count(round, "lost_late");
            lowered += u64::from(selected < ask);
            before = moved(round);
            assert!(before <= 5_000, "{protocol}");
        }
        assert!(lowered > 0 || is_carried, "{protocol}");
        let rest = 5_000 - before;
        assert!(rest < 200 * (least + carried), "{protocol}: {rest} B are left, and {carried} jobs under way");
        let jobs = number(&summary["dispatched"]);
        assert!(jobs > 25 || is_carried && jobs == 25, "{protocol}: what was not moved is spent again");
    }
}

/// Rounds of fewer clients than the quorum would only be abandoned.
#[test]
fn a_quorum_above_the_least_is_warned_about() {
    let quorum = changed(LOSSY, "timeout = \"5 s\"\n", "timeout = \"5 s\"\nquorum = 2\n");
    let work = Workplace::with(&quorum);
    let answer = work.fedgenie(&["run", SCENARIO, "--quiet"]);
    assert!(answer.code == 0 && answer.stderr.contains("rounds of fewer than 2 clients"), "{answer:?}");
}

/// Under `buffered` clients are asked one by one, and a client at work when the budget is spent still counts.
#[test]
fn a_server_that_asks_one_by_one_ends_when_nobody_is_at_work() {
    for protocol in [
        "[protocol.buffered]\nconcurrency = 4\nbuffer = 2\ntimeout = \"5 s\"\n",
        "[protocol.buffered]\nconcurrency = 3\nbuffer = 5\ntimeout = \"3 s\"\nmax_staleness = 1\n",
    ] {
        let scenario = changed(LOSSY, SYNCHRONOUS, protocol);
        let (summary, rounds) = run(&scenario, "random");
        assert_eq!(summary["ended"], "budget");
        let moved = moved(&summary["traffic"]);
        assert!(moved <= 5_000 && number(&summary["dispatched"]) >= 25, "{moved}");
        let jobs: u64 = rounds.iter().map(|round| count(round, "selected")).sum();
        let of = |key: &str| -> u64 { rounds.iter().map(|round| count(round, key)).sum() };
        assert_eq!(jobs, of("arrived") + of("late") + of("dropped"), "nobody is left at work");
    }
    // Ten jobs that all arrive: five models of two updates, and of three updates three models and a round without.
    for (buffer, updates) in [(2, &[2, 2, 2, 2, 2][..]), (3, &[3, 3, 3, 1])] {
        let protocol = format!("[protocol.buffered]\nconcurrency = 3\nbuffer = {buffer}\n");
        let plain = changed(PLAIN, "[protocol.synchronous]\ncohort = 2\n", &protocol);
        let plain = format!("{plain}[budget]\ntraffic = \"2 kB\"\n[task.none]\npayload = \"100 B\"\n");
        let (summary, rounds) = run(&plain, "random");
        assert_eq!(rounds.iter().map(|round| count(round, "arrived")).collect::<Vec<_>>(), updates);
        let is_abandoned = |round: &Value| round.get("abandoned").is_some_and(|found| found == true);
        assert_eq!(
            rounds.iter().map(is_abandoned).collect::<Vec<_>>(),
            updates.iter().map(|&n| n < buffer).collect::<Vec<_>>()
        );
        assert_eq!((moved(&summary["traffic"]), summary["ended"].as_str()), (2_000, Some("budget")));
    }
}

const ROWS: &str = r#"
name = "rows"
seeds = 1
[stop]
rounds = 500
[budget]
traffic = "40 kB"
[population]
clients = 9
[task.recommendation]
users = 9
data = { synthetic = { users = 9, items = 60, ratings = 300 } }
cutoffs = [5]
model = { mf = { dimensions = 3 } }
[training]
batch = 8
optimizer = { sgd = { lr = 0.05 } }
[population.latency]
download = { constant = "1 s" }
compute = { constant = "2 s" }
upload = { constant = "1 s" }
[protocol.synchronous]
cohort = 4
[policy.random]
"#;

/// Where a job moves the rows that it needs, no client of the cohort costs more than was left for it.
#[test]
fn jobs_of_many_sizes_are_paid_as_the_dearest() {
    let world = world(ROWS, 1);
    let clients: Vec<_> = (0..9).map(fedgenie::id::ClientId).collect();
    let (_, rounds) = run(ROWS, "random");
    let (mut before, mut prices) = (0, std::collections::BTreeSet::new());
    for round in &rounds {
        let turn = fedgenie::id::JobNumber(number(&round["round"]) as u32);
        let dearest = world.dearest(&clients, |_| turn);
        prices.insert(dearest);
        assert_eq!(count(round, "selected"), 4.min((40_000 - before) / dearest));
        let paid = round["selected"]
            .as_array()
            .unwrap()
            .iter()
            .map(|client| world.price(fedgenie::id::ClientId(number(client) as u32), turn));
        assert_eq!(moved(round), before + paid.sum::<u64>());
        before = moved(round);
    }
    assert!(prices.len() > 1, "{prices:?}");
    let next = fedgenie::id::JobNumber(rounds.len() as u32 + 1);
    assert!(before <= 40_000 && 40_000 - before < world.dearest(&clients, |_| next));
}

const LEARNING: &str = r#"
name = "learning"
seeds = 1
[stop]
rounds = 40
[population]
clients = 6
[population.latency]
download = { constant = "1 s" }
compute = { constant = "2 s" }
upload = { constant = "1 s" }
[task.linear-regression]
examples = 400
features = 4
[training]
batch = 16
optimizer = { sgd = { lr = 0.02 } }
[protocol.synchronous]
cohort = 3
[policy.random]
"#;

/// A model of five numbers is 20 B, and a loss 8 B: a probe of four clients is 4·28 B, a job 40 B.
#[test]
fn what_is_asked_before_a_selection_counts() {
    let probing = changed(LEARNING, "[policy.random]\n", "[policy.power-of-choice]\ncandidates = 4\n");
    let world = world(LEARNING, 1);
    let (job, probe) = (world.one_price().unwrap(), 4 * (world.training.payload_bytes + 8));
    for (budget, rounds) in [
        // Two rounds of three; then the probe and two, one or none.
        (2 * (probe + 3 * job) + probe + 2 * job, &[3, 3, 2][..]),
        (2 * (probe + 3 * job) + probe + job, &[3, 3, 1]),
        (2 * (probe + 3 * job) + probe + job - 1, &[3, 3]),
        (2 * (probe + 3 * job) + 3 * job, &[3, 3]),
        (probe + job, &[1]),
    ] {
        let (summary, found) = run(&format!("{probing}[budget]\ntraffic = \"{budget} B\"\n"), "power-of-choice");
        assert_eq!(found.iter().map(|round| count(round, "selected")).collect::<Vec<_>>(), rounds);
        let jobs: u64 = rounds.iter().sum();
        assert_eq!(moved(&summary["traffic"]), jobs * job + rounds.len() as u64 * probe);
        assert_eq!(summary["ended"], "budget");
    }
    // A budget that pays for a round, but for none with its probe.
    let work = Workplace::with(&format!("{probing}[budget]\ntraffic = \"{} B\"\n", probe + job - 1));
    let answer = work.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
    assert_eq!(answer.code, 3, "{answer:?}");
    let said = format!(
        "what it asks for before it selects moves {probe} bytes, and of the budget of {} bytes",
        probe + job - 1
    );
    assert!(answer.stderr.contains(&said), "{answer:?}");
}

/// Each of the six words, and which of them where two come together.
#[test]
fn a_run_says_why_it_ended() {
    let stop = |lines: &str| changed(LEARNING, "rounds = 40\n", &format!("{lines}\n"));
    let job = world(LEARNING, 1).one_price().unwrap();
    let budget = |rounds: u64| format!("[budget]\ntraffic = \"{} B\"\n", 3 * rounds * job);
    for (scenario, ended, rounds) in [
        (LEARNING.to_owned(), "rounds", 40),
        (stop("virtual_time = \"18 s\""), "virtual_time", 5),
        (stop("rounds = 40\ntarget = { metric = \"test_loss\", at_most = 1e6 }"), "target", 1),
        (stop("rounds = 40\nplateau = { metric = \"test_loss\", evaluations = 3, least = 1e6 }"), "plateau", 4),
        (stop(&format!("rounds = 40\ntraffic = \"{} B\"", 6 * job + 1)), "traffic", 3),
        (format!("{LEARNING}{}", budget(7)), "budget", 7),
        // Only a budget ends it.
        (format!("{}{}", stop(""), budget(7)), "budget", 7),
        (format!("{}{}", stop("rounds = 7"), budget(7)), "rounds", 7),
        (format!("{}{}", stop("virtual_time = \"28 s\""), budget(7)), "virtual_time", 7),
        (format!("{}{}", stop(&format!("rounds = 9\ntraffic = \"{} B\"", 21 * job)), budget(7)), "traffic", 7),
    ] {
        let work = Workplace::with(&scenario);
        work.run_into("out", &[]);
        let summary = summary(&work);
        assert_eq!((summary["ended"].as_str(), number(&summary["rounds"])), (Some(ended), rounds), "{scenario}");
        assert_eq!(work.json("out/runs/random-s1/run.json")["ended"], ended);
        assert_eq!(work.fedgenie(&["verify", "out"]).code, 0);
    }
}

/// No target and no plateau ends a run before so many clients were selected, each counted as often as it was.
#[test]
fn a_run_goes_on_until_enough_clients_were_selected() {
    let stop = |lines: &str| changed(LEARNING, "rounds = 40\n", &format!("rounds = 40\n{lines}\n"));
    let warned = |summary: &Value| summary.get("warnings").map_or(0, |warnings| warnings.as_array().unwrap().len());
    for (selections, rounds) in [(0, 1), (3, 1), (4, 2), (10, 4), (12, 4)] {
        let target = stop("target = { metric = \"test_loss\", at_most = 1e6 }");
        let (summary, _) = run(&format!("{target}[budget]\nselections = {selections}\n"), "random");
        assert_eq!((summary["ended"].as_str(), number(&summary["rounds"])), (Some("target"), rounds));
        assert_eq!(warned(&summary), 0);
    }
    let plateau = stop("plateau = { metric = \"test_loss\", evaluations = 3, least = 1e6 }");
    let (summary, _) = run(&format!("{plateau}[budget]\nselections = 30\n"), "random");
    assert_eq!((summary["ended"].as_str(), number(&summary["rounds"])), (Some("plateau"), 10));
    let job = world(LEARNING, 1).one_price().unwrap();
    let work = Workplace::with(&format!("{LEARNING}[budget]\ntraffic = \"{} B\"\nselections = 9\n", 8 * job));
    let answer = work.fedgenie(&["run", SCENARIO, "--out", "out"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    let said = "ended after 8 selections of clients; [budget] selections = 9";
    assert_eq!(summary_warnings(&work), [said]);
    assert!(answer.stderr.contains(said), "{answer:?}");
    assert!(answer.stdout.contains("the budget ended 1 of 1 runs of random\n"), "{answer:?}");
}

fn summary_warnings(work: &Workplace) -> Vec<String> {
    let summary = summary(work);
    summary["warnings"].as_array().unwrap().iter().map(|warning| warning.as_str().unwrap().to_owned()).collect()
}

/// Best values and values within traffic, from the metrics of the rounds.
#[test]
fn the_best_and_what_is_within_traffic_follow_from_the_rounds() {
    let images =
        "[task.softmax-regression]\ndata.synthetic = { classes = 3, height = 5, width = 5, train = 240, test = 60 }\n";
    let classes = changed(LEARNING, "[task.linear-regression]\nexamples = 400\nfeatures = 4\n", images);
    let classes = changed(&classes, "lr = 0.02", "lr = 2.0");
    let round = 3 * world(&classes, 1).one_price().unwrap();
    let amounts = [round - 1, round, 4 * round - 1, 4 * round, 17 * round + 5, 1_000 * round];
    let at: Vec<String> = amounts.iter().map(|bytes| format!("\"{bytes} B\"")).collect();
    for every in [1, 3] {
        let evaluate = format!("[evaluate]\nevery = {every}\nclients = true\nat_traffic = [{}]\n", at.join(", "));
        let budget = format!("[budget]\ntraffic = \"{} B\"\n", 20 * round + round / 2);
        let work = Workplace::with(&format!("{classes}{evaluate}{budget}"));
        let answer = work.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
        assert!(answer.code == 0 && answer.tells_of_results(), "{answer:?}");
        let (summary, rounds) = (summary(&work), work.lines("out/runs/random-s1/rounds.jsonl"));
        let evaluated: Vec<&Value> =
            rounds.iter().filter(|round| round["metrics"].as_object().is_some_and(|found| !found.is_empty())).collect();
        assert!(evaluated.last().unwrap()["round"] == rounds.last().unwrap()["round"], "the last round is evaluated");
        assert_eq!(evaluated.len(), if every == 1 { rounds.len() } else { rounds.len().div_ceil(3) });
        // The best of each.
        let mut best: BTreeMap<String, f64> = BTreeMap::new();
        for (name, value) in evaluated.iter().flat_map(|round| round["metrics"].as_object().unwrap()) {
            let value = value.as_f64().unwrap();
            let known = best.entry(name.clone()).or_insert(value);
            // A deviation is no quality, and is better the smaller it is; so is a loss.
            let is_smaller = name.contains("loss") || name.ends_with("_sd");
            *known = if is_smaller { known.min(value) } else { known.max(value) };
        }
        let found: BTreeMap<String, f64> = serde_json::from_value(summary["best"].clone()).unwrap();
        assert_eq!(found, best);
        assert!(best["test_loss"] < summary["final"]["test_loss"].as_f64().unwrap(), "the best is not the last");
        // Within traffic.
        for bytes in amounts {
            let within = evaluated.iter().rev().find(|round| moved(round) <= bytes);
            let found = summary["at_bytes"].get(bytes.to_string());
            assert_eq!(found, within.map(|round| &round["metrics"]), "{bytes} B");
        }
        assert!(summary["at_bytes"].as_object().unwrap().len() >= 3);
        // A number as any other, over seeds.
        let values = &work.json("out/summary.json")["arms"][0]["values"];
        let key = format!("at_bytes.{}.test_accuracy", 4 * round);
        assert_eq!(values[&key]["mean"], summary["at_bytes"][(4 * round).to_string()]["test_accuracy"]);
        assert_eq!(values["best.test_loss"]["mean"], summary["best"]["test_loss"]);
        assert!(answer.stdout.contains(&format!("test accuracy at {} B", 4 * round - 1)), "{answer:?}");
        assert_eq!(work.fedgenie(&["verify", "out"]).code, 0);
    }
}

/// The model after a budget has ended the run is measured, though no round was to be evaluated.
#[test]
fn a_last_round_that_was_not_evaluated_counts() {
    let probing = changed(LEARNING, "[policy.random]\n", "[policy.power-of-choice]\ncandidates = 4\n");
    let world = world(LEARNING, 1);
    let (job, probe) = (world.one_price().unwrap(), 4 * (world.training.payload_bytes + 8));
    // After seven rounds one job could be paid, but not the probe before it: nobody knows at the end of the round.
    let traffic = 7 * (probe + 3 * job) + job;
    let more = format!("[budget]\ntraffic = \"{traffic} B\"\n[evaluate]\nevery = 5\nat_traffic = [\"{traffic} B\"]\n");
    let (summary, rounds) = run(&format!("{probing}{more}"), "power-of-choice");
    assert_eq!((rounds.len(), summary["ended"].as_str()), (7, Some("budget")));
    let loss = summary["final"]["test_loss"].as_f64().unwrap();
    assert!(loss < rounds[4]["metrics"]["test_loss"].as_f64().unwrap());
    assert_eq!(summary["best"]["test_loss"].as_f64(), Some(loss));
    assert_eq!(summary["at_bytes"][traffic.to_string()]["test_loss"].as_f64(), Some(loss));
}

/// Saved and loaded after every round, a run ends where it ends otherwise.
#[test]
fn a_run_that_is_loaded_keeps_to_its_budget() {
    for protocol in [
        "[protocol.over-selection]\nask = 5\ntake = 2\ntimeout = \"6 s\"\nlate = { carry = {} }\n",
        "[protocol.buffered]\nconcurrency = 4\nbuffer = 2\ntimeout = \"5 s\"\n",
    ] {
        let scenario = changed(LOSSY, SYNCHRONOUS, protocol);
        let world = world(&scenario, 1);
        let root = tree::parse(Path::new("a.toml"), &scenario).unwrap();
        let source: PolicySource = Experiment::from_tree(&root, Path::new("."), None).unwrap().first().arms[0].source();
        let new = || Run::new(&world, "random", world.policies(&source).unwrap(), SETTINGS, fedgenie::recorder::NoSink);
        let (mut whole, mut parts) = (new(), new());
        while !whole.is_spent() {
            whole.step().unwrap();
            let saved = parts.save().unwrap();
            parts = new();
            parts.load(&saved).unwrap();
            parts.step().unwrap();
            assert_eq!((parts.round(), parts.is_spent()), (whole.round(), whole.is_spent()));
            assert_eq!(parts.digests().timeline.hex(), whole.digests().timeline.hex());
            assert_eq!(parts.save().unwrap(), whole.save().unwrap());
        }
        // There is no further round.
        let round = whole.round();
        whole.step().unwrap();
        assert_eq!((whole.round(), whole.is_spent()), (round, true));
        assert_eq!(parts.finish().unwrap().1.dispatched, whole.finish().unwrap().1.dispatched);
    }
}

/// Interrupted and resumed, a run ends with the same bytes in its files, best values and targets among them.
#[test]
fn an_interrupted_run_goes_on_with_its_budget() {
    let job = world(LEARNING, 1).one_price().unwrap();
    let long = changed(LEARNING, "rounds = 40\n", "");
    let more = format!(
        "[budget]\ntraffic = \"{} B\"\n[evaluate]\nevery = 7\nat_traffic = [\"{} B\", \"{} B\"]\n",
        30_000 * job,
        10 * job,
        15_000 * job
    );
    let work = Workplace::with(&format!("{long}{more}"));
    let words = ["run", SCENARIO, "--out", "out", "--threads", "1", "--checkpoint", "1 d"];
    let process = work.start(&words);
    let rounds = work.path("out/.fedgenie/process-0/random-s1/rounds.jsonl");
    wait_for(|| fs::metadata(&rounds).is_ok_and(|found| found.len() > 50_000));
    signal(&process, "-TERM");
    let answer = Answer::of(process);
    assert_eq!(answer.code, 143, "{answer:?}");
    let answer = work.fedgenie(&[&words[..], &["--resume"]].concat());
    assert!(answer.code == 0 && answer.stderr.contains("goes on after round "), "{answer:?}");
    work.run_into("whole", &[]);
    assert_same_folders(&work, "whole", "out");
    let summary = summary(&work);
    assert_eq!((number(&summary["rounds"]), moved(&summary["traffic"])), (10_000, 30_000 * job));
    assert_eq!(
        summary["at_bytes"].as_object().unwrap().len(),
        1,
        "ten jobs are three rounds, and the seventh is evaluated"
    );
}

/// Full batches are those of a number above everybody's examples, and are written as the word.
#[test]
fn all_examples_are_one_batch() {
    for length in ["epochs = 3", "steps = 4"] {
        let with = |batch: &str| changed(LEARNING, "batch = 16", &format!("{length}\nbatch = {batch}"));
        let digests = |batch: &str| {
            let work = Workplace::with(&with(batch));
            work.run_into("out", &[]);
            assert!(work.text("out/scenario.toml").contains(&format!("batch = {batch}\n")));
            work.run_file("out/scenario.toml", "again", &[]);
            assert_eq!(work.digests("out"), work.digests("again"));
            work.digests("out")
        };
        let all = digests("\"all\"");
        assert_eq!(all, digests("400"));
        assert_ne!(all, digests("16"));
    }
}

#[test]
fn what_no_budget_can_be_is_refused() {
    let with = |lines: &str| format!("{LEARNING}[budget]\n{lines}\n");
    let job = world(LEARNING, 1).one_price().unwrap();
    let cases = [
        (with("traffic = \"0 B\""), "traffic = \"0 B\"", "budget.traffic: found 0 B; expected at least 1 B".to_owned()),
        (with("full_rounds = 0"), "full_rounds", "budget.full_rounds: found 0; expected a positive number".to_owned()),
        (
            with("traffic = \"1 kB\"\nfull_rounds = 1"),
            "full_rounds",
            "give traffic or full_rounds, not both".to_owned(),
        ),
        (with("least = 0"), "least", "budget.least: found 0; expected a number of clients of at least 1".to_owned()),
        (
            with("least = 4"),
            "least",
            "budget.least: found 4; expected between 1 and the clients of a selection (3)".to_owned(),
        ),
        (
            with(&format!("traffic = \"{} B\"", job - 1)),
            "traffic",
            format!("budget.traffic: found {} B; a round of 1 client moves {job} B, both ways together", job - 1),
        ),
        (
            with(&format!("traffic = \"{} B\"\nleast = 3", 3 * job - 1)),
            "traffic",
            format!(
                "budget.traffic: found {} B; a round of 3 clients moves {} B, both ways together",
                3 * job - 1,
                3 * job
            ),
        ),
        (
            with("full_rounds = 0.1"),
            "full_rounds",
            format!("budget.full_rounds: found {} B; a round of 1 client moves {job} B", 6 * job / 10),
        ),
        (
            with("least = 3").replace("[policy.random]", "[policy.random]\ncohort = 2"),
            "cohort = 2",
            "found 2; the budget asks for rounds of at least 3 clients".to_owned(),
        ),
        (
            changed(PLAIN, "[policy", "[budget]\ntraffic = \"1 kB\"\n[policy"),
            "traffic",
            "limits traffic, and the jobs of this scenario move no bytes".to_owned(),
        ),
        (
            changed(
                &with("least = 1"),
                "[protocol.synchronous]\ncohort = 3\n",
                "[protocol.hierarchical]\nedges = 2\ncohort = 1\n",
            ),
            "[budget]",
            "budget: is of one server that selects, and edge servers select apart from each other".to_owned(),
        ),
        (
            changed(
                &with("least = 2"),
                "[protocol.synchronous]\ncohort = 3\n",
                "[protocol.buffered]\nconcurrency = 3\nbuffer = 2\n",
            ),
            "least",
            "budget.least: found 2; expected between 1 and the clients of a selection (1)".to_owned(),
        ),
        (
            format!("{LEARNING}[evaluate]\nat_traffic = [\"2 kB\", \"2 kB\"]\n"),
            "at_traffic",
            "evaluate.at_traffic: found 2000 B after 2000 B; expected ascending amounts".to_owned(),
        ),
        (
            format!("{LEARNING}[evaluate]\nat_traffic = [\"0.5 B\"]\n"),
            "at_traffic",
            "evaluate.at_traffic: found 0.5 B; expected at least 1 B".to_owned(),
        ),
        (
            changed(LEARNING, "batch = 16", "batch = \"most\""),
            "batch",
            "expected a whole number of examples, or \"all\"".to_owned(),
        ),
        (
            changed(LEARNING, "batch = 16", "batch = -1"),
            "batch",
            "expected a whole number of examples, or \"all\"".to_owned(),
        ),
        (
            changed(LEARNING, "batch = 16", "batch = 0"),
            "batch",
            "training.batch: found 0; expected at least 1".to_owned(),
        ),
    ];
    for (scenario, key, said) in cases {
        let work = Workplace::with(&scenario);
        let answer = work.fedgenie(&["run", SCENARIO]);
        let line = format!("{SCENARIO}:{}: ", line_of(&scenario, key));
        assert_eq!(answer.code, 2, "{answer:?}");
        assert!(answer.stderr.contains(&said) && answer.stderr.contains(&line), "{line}{said}\n{answer:?}");
    }
}

/// A policy that chooses fewer clients than the least breaks a rule, unless no more can be chosen.
#[test]
fn a_policy_chooses_no_fewer_than_the_least() {
    let world = world(&format!("{LEARNING}[budget]\nleast = 2\n"), 1);
    let script = Script::new(&[&[0, 1], &[2]]);
    let mut run = Run::new(
        &world,
        "double",
        Box::new(script) as Box<dyn fedgenie::policy::Policy>,
        SETTINGS,
        fedgenie::recorder::NoSink,
    );
    run.step().unwrap();
    let Err(RunError::BadSelection { what, .. }) = run.step() else { panic!("one is too few") };
    assert_eq!(what, "selected 1 clients; expected between 2 and 3: select more of those available");
}
