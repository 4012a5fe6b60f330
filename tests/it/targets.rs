//! Times to targets: runs that never arrive, evaluations that are far apart, laws without a variance.

use super::support::{PLAIN, SCENARIO, Workplace, changed, line_of};
use serde_json::{Value, json};

/// Rounds of 4 s in each of which 4 kB move; the metric is the value of the round.
const VALUES: [f64; 12] = [1.0, 1.0, 2.0, 5.0, 4.0, 5.0, 4.5, 3.0, 6.0, 7.0, 8.0, 9.0];

fn scripted(evaluate: &str) -> Workplace {
    let task = format!(
        "[task.scripted]\nmetric = \"test_score\"\nbetter = \"higher\"\npayload = \"1 kB\"\nvalues = {VALUES:?}\n\n\
         [protocol.synchronous]"
    );
    let scenario = format!(
        "{}[evaluate]\ntargets = [{{ metric = \"test_score\", at_least = 5.0 }}]\n{evaluate}\n",
        changed(PLAIN, "[protocol.synchronous]", &task)
    );
    Workplace::with(&scenario)
}

fn reached(work: &Workplace) -> Value {
    work.run_into("out", &[]);
    assert_eq!(work.fedgenie(&["verify", "out"]).code, 0);
    work.json("out/summary.json")["runs"][0]["reached"][0].clone()
}

fn since(reached: &Value) -> Value {
    json!([reached["round"], reached["time_s"], reached["since_round"], reached["since_s"], reached["since_bytes"]])
}

/// Evaluated at rounds 3 and 6, of which the second reaches 5, the target is seen at 24 s, after 12 s; round 4 was the
/// first. With every round evaluated, and afterwards, that is known.
#[test]
fn a_target_is_known_up_to_the_evaluation_before() {
    assert_eq!(since(&reached(&scripted("every = 3"))), json!([6, 24.0, 3, 12.0, 12_000]));
    let each = reached(&scripted("every = 1"));
    assert_eq!(since(&each), json!([4, 16.0, 3, 12.0, 12_000]));
    assert_eq!(reached(&scripted("every = 3\nrefine = true")), each);
    // The first evaluation reaches it: rounds 1 to 3 are looked at, from the start.
    assert_eq!(since(&reached(&scripted("every = 4\nrefine = true"))), json!([4, 16.0, 3, 12.0, 12_000]));
    // Of one that is never reached, the last evaluation is kept.
    let never = scripted("every = 5");
    let text = never.text(SCENARIO);
    never.write(SCENARIO, text.replace("at_least = 5.0", "at_least = 50.0"));
    assert_eq!(since(&reached(&never)), json!([null, null, 12, 48.0, 48_000]));
}

#[test]
fn nothing_to_refine_is_refused() {
    let work = scripted("refine = true");
    let text = work.text(SCENARIO).replace("targets = [{ metric = \"test_score\", at_least = 5.0 }]\n", "");
    work.write(SCENARIO, &text);
    let answer = work.fedgenie(&["run", SCENARIO]);
    let line = line_of(&text, "refine = true");
    assert_eq!(answer.code, 2);
    assert!(
        answer.stderr.contains(&format!("{line}: evaluate.refine: is about targets, and there are none")),
        "{}",
        answer.stderr
    );
}

/// Clients learn a line, a little in each round.
const LEARNED: &str = r#"name = "learned"
seeds = 6
[stop]
rounds = 40
[population]
clients = 8
[population.latency]
download = { constant = "10 ms" }
compute = { lognormal = { median = { uniform = ["0.1 s", "1 s"] }, sigma = 0.4 } }
upload = { constant = "10 ms" }
[task.linear-regression]
examples = 400
[training]
optimizer = { sgd = { lr = 0.0005 } }
[protocol.synchronous]
cohort = 4
[evaluate]
every = 9
targets = [{ metric = "test_loss", at_most = LOSS }]
[policy.random]
[policy.large]
kind = "random"
with = { "protocol.synchronous.cohort" = 6 }
"#;

/// The loss that about half of the runs of the first policy end below.
fn middle(scenario: &str) -> f64 {
    let work = Workplace::with(&scenario.replace("LOSS", "0.0"));
    work.run_into("out", &[]);
    let summary = work.json("out/summary.json");
    let mut losses: Vec<f64> = summary["runs"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|run| run["arm"] == "random")
        .map(|run| run["final"]["test_loss"].as_f64().unwrap())
        .collect();
    losses.sort_by(f64::total_cmp);
    (losses[2] + losses[3]) / 2.0
}

/// Refining finds the same as evaluating every round, and leaves the run with rare evaluations as it was, bit for bit.
#[test]
fn refining_finds_the_round_and_changes_nothing() {
    let sometimes = LEARNED.replace("LOSS", &(1.5 * middle(LEARNED)).to_string());
    let protocols = [
        "[protocol.synchronous]\ncohort = 4\n",
        "[protocol.buffered]\nconcurrency = 4\nbuffer = 2\n",
        "[protocol.hierarchical]\nedges = 2\ncohort = 2\nedge_rounds = 2\n",
    ];
    for protocol in protocols {
        let scenario = sometimes.replace("[protocol.synchronous]\ncohort = 4\n", protocol);
        let scenario = scenario.split("[policy.large]").next().unwrap();
        let run = |evaluate: &str| {
            let work = Workplace::with(&scenario.replace("every = 9\n", evaluate));
            work.run_into("out", &[]);
            assert_eq!(work.fedgenie(&["verify", "out"]).code, 0, "{evaluate}");
            work.json("out/summary.json")["runs"].as_array().unwrap().clone()
        };
        let (coarse, refined, each) = (run("every = 9\n"), run("every = 9\nrefine = true\n"), run("every = 1\n"));
        let mut moved = 0;
        for ((coarse, refined), each) in coarse.iter().zip(&refined).zip(&each) {
            assert_eq!(coarse["digest"], refined["digest"], "{protocol}");
            assert_eq!(refined["reached"], each["reached"], "{protocol}");
            moved += usize::from(coarse["reached"] != refined["reached"]);
        }
        assert!(moved >= 3, "{protocol}: {moved} of 6 runs reach the target between two evaluations");
    }
}

/// Against `run.json`: every seed counts in means and differences, with the end of the first run that does not arrive;
/// the table, summary and report have the same numbers.
#[test]
fn who_never_arrives_counts_with_the_horizon() {
    // Runs end at about the same time, so that those that arrive have done so by the horizon.
    let scenario = changed(LEARNED, "rounds = 40", "virtual_time = \"20 s\"").replace("every = 9", "every = 1");
    let target = middle(&scenario);
    let work = Workplace::with(&scenario.replace("LOSS", &target.to_string()));
    let printed = work.fedgenie(&["run", SCENARIO, "--out", "out"]).stdout;
    let summary = work.json("out/summary.json");
    let runs = summary["runs"].as_array().unwrap();
    let number = |value: &Value| value.as_f64();
    let ends = runs.iter().filter(|run| run["reached"][0]["round"].is_null());
    let horizon = ends.filter_map(|run| number(&run["virtual_time_s"])).fold(f64::INFINITY, f64::min);
    let times = |arm: &str| -> Vec<f64> {
        let of_arm = runs.iter().filter(|run| run["arm"] == arm);
        of_arm.map(|run| number(&run["reached"][0]["time_s"]).unwrap_or(f64::INFINITY).min(horizon)).collect()
    };
    let (random, large) = (times("random"), times("large"));
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let key = format!("time_to.test_loss <= {target}");
    let arms = summary["arms"].as_array().unwrap();
    for (arm, times) in arms.iter().zip([&random, &large]) {
        let arrived = times.iter().filter(|&&time| time < horizon).count();
        assert_eq!(arm["until"][&key]["arrived"], arrived, "{arm}");
        assert_eq!((&arm["until"][&key]["runs"], number(&arm["until"][&key]["horizon"])), (&json!(6), Some(horizon)));
        approx::assert_relative_eq!(number(&arm["values"][&key]["mean"]).unwrap(), mean(times), max_relative = 1e-12);
        assert_eq!(arm["values"][&key]["n"], 6);
        assert!(arrived == 6 || printed.contains(&format!("({arrived}/6)")), "{printed}");
    }
    let found = &arms[1]["paired"]["differences"][&key];
    approx::assert_relative_eq!(number(&found["mean"]).unwrap(), mean(&large) - mean(&random), max_relative = 1e-9);
    assert_eq!((&found["n"], &arms[1]["paired"]["pairs"]), (&json!(6), &json!(6)));
    assert!(printed.contains("runs that never arrive count with the end of the first of them"), "{printed}");
    assert_eq!(work.fedgenie(&["report", "out", "--out", "page.html"]).code, 0);
    let page = work.text("page.html");
    assert!(page.contains("A run that never arrives counts with the horizon"));
    assert!(page.contains("Runs that have reached test loss"));
}

/// Where rounds end runs, some arrive after others have ended: policies are not ranked, and all arrivals are counted.
#[test]
fn who_arrives_after_the_end_of_another_is_not_behind() {
    let scenario = LEARNED.replace("every = 9", "every = 1");
    let work = Workplace::with(&scenario.replace("LOSS", &middle(&scenario).to_string()));
    let printed = work.fedgenie(&["run", SCENARIO, "--out", "out"]).stdout;
    let summary = work.json("out/summary.json");
    let reached = |run: &&Value| !run["reached"][0]["round"].is_null();
    let reached = summary["runs"].as_array().unwrap().iter().filter(reached).count() as u64;
    let arrived = |arm: &Value| {
        let until = arm["until"].as_object().unwrap();
        until.iter().find(|(key, _)| key.starts_with("time_to.")).unwrap().1["arrived"].as_u64().unwrap()
    };
    let arrived: u64 = summary["arms"].as_array().unwrap().iter().map(arrived).sum();
    assert_eq!(arrived, reached);
    let answer = &summary["answers"][0];
    assert_eq!(
        (&answer["ranked"], &answer["best"], &answer["remedy"][0]),
        (&json!(false), &Value::Null, &json!("stop.rounds="))
    );
    assert!(printed.contains("Policies are not ranked by virtual time to test_loss <= "), "{printed}");
    // The other commands warn of what is missing.
    for command in [&["export", "out", "--to", "csv"][..], &["report", "out"], &["diff", "out", "out"]] {
        let told = work.fedgenie(command);
        let told = format!("{}{}", told.stdout, told.stderr);
        assert!(told.contains("policies are not all compared in "), "{command:?}: {told}");
    }

    // With the remedy all are watched equally long.
    let sets = answer["remedy"].as_array().unwrap().iter().flat_map(|set| ["--set", set.as_str().unwrap()]);
    let words: Vec<&str> = ["run", SCENARIO, "--quiet", "--out", "fair"].into_iter().chain(sets).collect();
    let fair = work.fedgenie(&words);
    assert_eq!(fair.code, 0, "{fair:?}");
    let answer = &work.json("fair/summary.json")["answers"][0];
    assert_eq!(answer["ranked"], true, "{answer}");
}

/// No run reaches it: the table gives a lower bound.
#[test]
fn nobody_arrives() {
    let work = Workplace::with(&LEARNED.replace("LOSS", "0.0"));
    let printed = work.fedgenie(&["run", SCENARIO, "--out", "out"]).stdout;
    let summary = work.json("out/summary.json");
    let horizon = summary["arms"][0]["until"]["time_to.test_loss <= 0"]["horizon"].as_f64().unwrap();
    assert!(printed.contains("> ") && horizon > 0.0, "{printed}");
    assert!(summary["arms"][0]["values"].get("time_to.test_loss <= 0").is_none());
    assert!(summary["arms"][1]["paired"]["differences"].get("time_to.test_loss <= 0").is_none());
}

/// Evaluations every nine rounds: the interval reaches back to the ones before.
#[test]
fn intervals_reach_back_to_the_evaluation_before() {
    let work = Workplace::with(&LEARNED.replace("LOSS", &(1.5 * middle(LEARNED)).to_string()));
    let printed = work.fedgenie(&["run", SCENARIO, "--out", "out"]).stdout;
    assert!(printed.contains("a target is seen at evaluations"), "{printed}");
    let summary = work.json("out/summary.json");
    for arm in summary["arms"].as_array().unwrap() {
        let key = arm["until"].as_object().unwrap().keys().find(|key| key.starts_with("time_to.")).unwrap().clone();
        let (grid, value) = (arm["until"][&key]["grid"].as_f64().unwrap(), &arm["values"][&key]);
        let width = value["ci95"][1].as_f64().unwrap() - value["ci95"][0].as_f64().unwrap();
        assert!(grid > 0.5 && width >= grid, "{grid} and {width}");
    }
}

/// A law without a variance is named, and times are medians; with a deadline nothing waits for its tail.
#[test]
fn laws_without_a_variance_are_named() {
    let heavy = "compute = { pareto = { shape = 1.5, minimum = \"0.5 s\" } }";
    let scenario = changed(PLAIN, "compute = { constant = \"2 s\" }", heavy).replace("seeds = 1", "seeds = 7");
    let scenario =
        format!("{scenario}[policy.other]\nkind = \"random\"\nwith = {{ \"protocol.synchronous.cohort\" = 3 }}\n");
    let work = Workplace::with(&scenario);
    let answer = work.fedgenie(&["run", SCENARIO, "--out", "out"]);
    assert!(answer.stderr.contains("client 0, compute: the law has an infinite variance"), "{}", answer.stderr);
    assert!(answer.stdout.contains("times are medians over seeds"), "{}", answer.stdout);
    let summary = work.json("out/summary.json");
    let mut times: Vec<f64> = summary["runs"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|run| run["arm"] == "random")
        .map(|run| run["virtual_time_s"].as_f64().unwrap())
        .collect();
    times.sort_by(f64::total_cmp);
    let found = &summary["arms"][0]["medians"]["virtual_time_s"];
    assert_eq!((&found["median"], &found["ci95"]), (&json!(times[3]), &json!([times[0], times[6]])));
    assert!(summary["arms"][1]["paired"]["medians"].get("virtual_time_s").is_some());
    assert_eq!(work.fedgenie(&["report", "out", "--out", "page.html"]).code, 0);
    assert!(work.text("page.html").contains("Latencies have no finite variance"));
    let cut = scenario.replace("cohort = 2\n", "cohort = 2\ntimeout = \"9 s\"\n");
    let answer = Workplace::with(&cut).fedgenie(&["run", SCENARIO]);
    assert!(!answer.stderr.contains("infinite") && !answer.stdout.contains("medians"), "{}", answer.stderr);
}
