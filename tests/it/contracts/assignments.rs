//! Rules that compare losses: their records are worked out anew from the losses alone, by elimination, and so is the
//! regret of assignments; with scripted losses, and with models that are trained.

use super::clusters::Settings;
use super::{PROTOCOLS, TWELVE};
use crate::support::{Answer, SCENARIO, Workplace, changed, line_of};
use fedgenie::experiment::{Experiment, RunOptions, Threads};
use fedgenie::scenario::tree;
use serde_json::{Value, json};
use std::path::Path;

/// Four edge servers, of two clients each, and three clusters; one policy for each rule.
const SCRIPTED: &str = r#"name = "assignments"
seeds = 2
[stop]
rounds = 12
[population]
clients = 8
data_size = { each = [10, 20, 30, 40, 50, 60, 70, 80] }
[population.latency]
download = { constant = "0.1 s" }
compute = { exponential = { mean = { uniform = ["0.2 s", "2 s"] } } }
upload = { constant = "0.1 s" }
[task.scripted]
values = [0.5]
losses = "losses.csv"
[protocol.hierarchical]
edges = 4
cohort = 1
[clusters]
count = 3
assign = { linucb = { every = 2, ties = "first" } }
[regret]
assignment = true
[policy.linucb]
kind = "random"
[policy.loss]
kind = "random"
with = { "clusters.assign" = { loss = { every = 2, threshold = 1.0 } } }
[policy.shuffled]
kind = "random"
with = { "clusters.assign" = { random = { every = 2 } } }
[policy.fixed]
kind = "random"
with = { "clusters.assign" = { fixed = {} } }
[policy.one]
kind = "random"
with = { clusters = "none" }
"#;

/// Losses that go down, each server's at another speed under each cluster's model.
fn losses() -> String {
    let loss = |round: u32, server: u32, cluster: u32| {
        let place = f64::from((round * 5 + server * 7 + cluster * 11) % 13);
        (0.1 + place / 13.0) / f64::from(1 + round / (1 + cluster))
    };
    let mut text = "round,server,cluster,loss\n".to_owned();
    for round in (2..=12).step_by(2) {
        for server in 0..4 {
            (0..3).for_each(|cluster| {
                text.push_str(&format!("{round},{server},{cluster},{}\n", loss(round, server, cluster)));
            });
        }
    }
    text
}

fn scripted() -> Workplace {
    let place = Workplace::with(SCRIPTED);
    place.write("losses.csv", losses());
    place
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

fn indices(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(|number| number.as_u64().unwrap() as usize).collect()
}

/// Solves `A y = b` by Gauss–Jordan elimination with pivots.
fn solved(a: &[[f64; 4]; 4], b: &[f64; 4]) -> [f64; 4] {
    let mut rows: Vec<[f64; 5]> = (0..4).map(|i| [a[i][0], a[i][1], a[i][2], a[i][3], b[i]]).collect();
    for column in 0..4 {
        let pivot = (column..4).max_by(|&i, &j| rows[i][column].abs().total_cmp(&rows[j][column].abs())).unwrap();
        rows.swap(column, pivot);
        for other in (0..4).filter(|&other| other != column) {
            let times = rows[other][column] / rows[column][column];
            let from = rows[column];
            rows[other].iter_mut().zip(from).for_each(|(entry, from)| *entry -= times * from);
        }
    }
    std::array::from_fn(|i| rows[i][4] / rows[i][i])
}

fn dot(a: &[f64; 4], b: &[f64; 4]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn assert_close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found}, {expected}");
}

/// The cluster with the smallest loss but one, the first of several.
fn best_other(losses: &[f64], own: usize) -> usize {
    (0..losses.len()).filter(|&k| k != own).min_by(|&i, &j| losses[i].total_cmp(&losses[j])).unwrap()
}

/// Works out every number of `linucb` with ties = "first", every = 2 and the other defaults, from the losses of the
/// rounds, and the regret with these weights of servers. Returns how many servers moved.
fn recompute(rounds: &[Value], count: usize, weights: &[f64]) -> usize {
    let (servers, last, epsilon, alpha) = (weights.len(), rounds.len() as f64, 1e-8, 0.3);
    let unit: [[f64; 4]; 4] = std::array::from_fn(|i| std::array::from_fn(|j| f64::from(u8::from(i == j))));
    let mut arms = vec![vec![(unit, [0.0; 4]); count]; servers];
    let mut assignment: Vec<usize> = (0..servers).map(|server| server % count).collect();
    let (mut stay, mut moved, mut regret) = (vec![0.0; servers], 0, 0.0);
    for (round, t) in rounds.iter().zip(1..) {
        stay.iter_mut().for_each(|rounds| *rounds += 1.0);
        let reassign = &round["reassign"];
        if t % 2 == 1 {
            assert!(reassign.is_null());
        } else {
            assert_eq!(indices(&reassign["from"]), assignment);
            let before = assignment.clone();
            let size = |k: usize| before.iter().filter(|&&cluster| cluster == k).count() as f64;
            for server in 0..servers {
                let losses = numbers(&reassign["losses"][server]);
                let own = before[server];
                let other = best_other(&losses, own);
                assert_eq!(reassign["alternative"][server], other);
                let ratio = ((losses[own] + epsilon) / (losses[other] + epsilon)).ln();
                let balance = (size(own) - size(other)) / (size(own) + size(other));
                let x = [ratio, balance, f64::min(stay[server] / 4.0, 1.0), f64::from(t) / last];
                let r = (losses[other] - losses[own]) / (losses[other] + losses[own] + epsilon);
                numbers(&reassign["context"][server]).iter().zip(x).for_each(|(found, x)| assert_close(*found, x));
                assert_close(reassign["reward"][server].as_f64().unwrap(), r);
                let (a, b) = &mut arms[server][own];
                (0..4).for_each(|i| (0..4).for_each(|j| a[i][j] += x[i] * x[j]));
                (0..4).for_each(|i| b[i] += r * x[i]);
                let score = |(a, b)| dot(&solved(a, b), &x) + alpha * dot(&solved(a, &x), &x).sqrt();
                let scores: Vec<f64> = arms[server].iter().map(|(a, b)| score((a, b))).collect();
                let found = numbers(&reassign["scores"][server]);
                found.iter().zip(&scores).for_each(|(found, score)| assert_close(*found, *score));
                let largest = scores.iter().copied().fold(f64::MIN, f64::max);
                let chosen = scores.iter().position(|score| *score >= largest - 1e-12).unwrap();
                if chosen != own {
                    (assignment[server], stay[server]) = (chosen, 0.0);
                    moved += 1;
                }
                let smallest = losses.iter().copied().fold(f64::MAX, f64::min);
                regret += weights[server] * (losses[chosen] - smallest);
            }
            assert_eq!(indices(&reassign["to"]), assignment);
            assert_close(round["regret"]["assignment"].as_f64().unwrap(), regret);
        }
        assert_eq!(indices(&round["clusters"]["assignment"]), assignment);
        assert_eq!(round["clusters"]["reassignments"], moved);
    }
    moved
}

#[test]
fn scripted_losses_are_worked_out_again() {
    let place = scripted();
    place.run_into("out", &[]);
    let rounds = |policy: &str| place.lines(&format!("out/runs/{policy}-s1/rounds.jsonl"));
    let linucb = rounds("linucb");
    let moved = recompute(&linucb, 3, &[30.0, 70.0, 110.0, 150.0].map(|size| size / 360.0));
    assert!(moved > 4, "{moved}");

    // A server that moves to every smaller loss is where the loss is smallest.
    let greedy = rounds("loss");
    for round in greedy.iter().filter(|round| !round["reassign"].is_null()) {
        let (from, to) = (indices(&round["reassign"]["from"]), indices(&round["reassign"]["to"]));
        for server in 0..4 {
            let losses = numbers(&round["reassign"]["losses"][server]);
            let other = best_other(&losses, from[server]);
            assert_eq!(round["reassign"]["alternative"][server], other);
            assert_eq!(to[server], if losses[other] < losses[from[server]] { other } else { from[server] });
        }
        assert_eq!(round["regret"]["assignment"], 0.0);
        assert!(round["reassign"].get("scores").is_none());
    }
    assert!(greedy[11]["clusters"]["reassignments"].as_u64().unwrap() > 4);

    // A rule that looks at no losses is measured by them all the same.
    let shuffled = rounds("shuffled");
    let keys: Vec<&String> = shuffled[1]["reassign"].as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), 3, "{keys:?}");
    assert!(shuffled[11]["regret"]["assignment"].as_f64().unwrap() > 0.05);
    for never in ["fixed", "one"] {
        assert!(rounds(never).iter().all(|round| round["regret"] == json!({}) && round["reassign"].is_null()));
    }
}

#[test]
fn the_number_is_where_other_regrets_are() {
    let place = scripted();
    let answer = place.fedgenie(&["run", SCENARIO, "--out", "out"]);
    assert!(answer.code == 0 && answer.stdout.contains("assignment regret"), "{answer:?}");
    let last = &place.lines("out/runs/linucb-s1/rounds.jsonl")[11];
    let summary = place.json("out/summary.json");
    let run = place.json("out/runs/linucb-s1/run.json");
    assert_eq!(summary["runs"][0]["arm"], "linucb");
    assert_eq!(summary["runs"][0]["regret"]["assignment"], last["regret"]["assignment"]);
    assert_eq!(run["curve"][11]["regret"]["assignment"], last["regret"]["assignment"]);
    for (key, number) in [("active_clusters", "active"), ("reassignments", "reassignments")] {
        let found = summary["runs"][0]["final"][key].as_f64().unwrap();
        assert_eq!(found, last["clusters"][number].as_f64().unwrap());
        assert_eq!(summary["arms"][0]["values"][format!("final.{key}")]["n"], 2);
    }
    assert!(place.path("out/regret-assignment.svg").is_file());
    let resolved = place.text("out/scenario.toml");
    assert!(resolved.contains("assignment = true") && resolved.contains("meters = []"), "{resolved}");
    // It is in no digest, and verify compares the file.
    place.write("plain.toml", changed(SCRIPTED, "[regret]\nassignment = true\n", ""));
    place.run_file("plain.toml", "plain", &[]);
    assert_eq!(place.digests("out"), place.digests("plain"));
    assert_eq!(place.fedgenie(&["verify", "out"]).code, 0);
}

/// Models of one's own that are trained: the same numbers on any number of threads, and from the losses alone.
#[test]
fn trained_models_are_worked_out_again() {
    let (_, protocol) = PROTOCOLS[4];
    let rules =
        ["{ linucb = { every = 2, ties = \"first\" } }", "{ linucb = { every = 3 } }", "{ loss = { every = 2 } }"];
    for (index, rule) in rules.iter().enumerate() {
        let more = format!("[clusters]\ninitial = [0, 1, 2]\nassign = {rule}\n[regret]\nassignment = true\n");
        let root = tree::parse(Path::new(SCENARIO), &format!("{TWELVE}{protocol}{more}[policy.random]\n")).unwrap();
        let mut experiment = Experiment::from_tree(&root, Path::new("."), None).unwrap();
        experiment.set_task(Settings::default()).unwrap();
        let place = Workplace::new();
        let [one, two, seven] = [1, 2, 7].map(|threads| {
            let folder = format!("out-{threads}");
            let threads = Threads::new(threads).unwrap();
            experiment.run_with(&RunOptions::into(&place.path(&folder)), &threads).unwrap().whole().unwrap();
            (place.digests(&folder), place.text(&format!("{folder}/runs/random-s2/rounds.jsonl")))
        });
        assert!(one == two && one == seven, "{rule}");
        let rounds = place.lines("out-1/runs/random-s1/rounds.jsonl");
        if index == 0 {
            recompute(&rounds, 3, &[1.0 / 3.0; 3]);
        }
        let due = rounds.iter().filter(|round| !round["reassign"].is_null()).count();
        assert_eq!(due, if index == 1 { 4 } else { 6 });
        assert!(rounds[11]["regret"]["assignment"].as_f64().unwrap() >= 0.0);
    }
}

fn run(place: &Workplace) -> Answer {
    place.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"])
}

#[test]
fn what_does_not_fit_together_is_refused_by_name() {
    let linucb = "{ linucb = { every = 2, ties = \"first\" } }";
    let from_policies = &SCRIPTED[SCRIPTED.find("[policy.linucb]").unwrap()..];
    let alone = changed(SCRIPTED, from_policies, "[policy.random]\n");
    let without_clusters = {
        let from = alone.find("[clusters]").unwrap();
        let to = alone.find("[regret]").unwrap();
        format!("{}{}", &alone[..from], &alone[to..])
    };
    let with = |from: &str, to: &str| changed(&alone, from, to);
    for (text, at, parts) in [
        (with("count = 3", "count = 1"), "assign = ", &["clusters.assign.linucb: ", "count is 1"][..]),
        (
            with("rounds = 12", "virtual_time = \"10 s\""),
            "assign = ",
            &["clusters.assign.linucb: ", "write rounds into [stop]"],
        ),
        (with(linucb, "{ loss = { threshold = 1.01 } }"), "assign = ", &["clusters.assign.loss.threshold: ", "(0, 1]"]),
        (with(linucb, "{ linucb = { every = 0 } }"), "assign = ", &["clusters.assign.linucb.every: ", "at least 1"]),
        (with(linucb, "{ linucb = { ties = \"last\" } }"), "assign = ", &["clusters.assign", "last"]),
        (with("losses = \"losses.csv\"\n", ""), "assign = ", &["clusters.assign.linucb: ", "(scripted) has none"]),
        (
            changed(&with("losses = \"losses.csv\"\n", ""), linucb, "{ random = { every = 2 } }"),
            "assignment = true",
            &["regret.assignment: ", "(scripted) has none"],
        ),
        (without_clusters, "assignment = true", &["regret.assignment: ", "give [clusters]"]),
        (with("assignment = true", "assignment = true\nmeters = [\"mean\"]"), "[regret]", &["regret: ", "meters = []"]),
    ] {
        let place = Workplace::with(&text);
        place.write("losses.csv", losses());
        let answer = run(&place);
        assert_eq!(answer.code, 2, "{text}\n{answer:?}");
        let line = format!("{SCENARIO}:{}: ", line_of(&text, at));
        for part in [&[&*line], parts].concat() {
            assert!(answer.stderr.contains(part), "{part}: {answer:?}");
        }
    }
}

#[test]
fn scripts_with_something_wrong() {
    let place = scripted();
    let negative = changed(&losses(), "\n2,1,0,", "\n2,1,0,-");
    place.write("losses.csv", &negative);
    let answer = run(&place);
    assert_eq!(answer.code, 2, "{answer:?}");
    let line = format!("losses.csv:{}: column \"loss\": found -", line_of(&negative, "\n2,1,0,") + 1);
    for part in ["task.scripted.losses: ", &line, "expected a number of at least 0"] {
        assert!(answer.stderr.contains(part), "{part}: {answer:?}");
    }
    let whole = losses();
    let gap = whole.find("\n4,2,1,").unwrap();
    place.write("losses.csv", format!("{}{}", &whole[..gap], &whole[gap + 1 + whole[gap + 1..].find('\n').unwrap()..]));
    let answer = run(&place);
    assert_eq!(answer.code, 2, "{answer:?}");
    for part in ["task.scripted.losses: ", "losses.csv: there is no row with round 4, server 2, cluster 1"] {
        assert!(answer.stderr.contains(part), "{part}: {answer:?}");
    }
}
