//! The best policy by regret: policies that are shown the truth are left out, and no others.

use super::support::Workplace;
use fedgenie::config::Complaint;
use fedgenie::experiment::answers::{answers, told};
use fedgenie::experiment::{Experiment, RunOptions, Summary, Threads};
use fedgenie::failure::Failure;
use fedgenie::policy::{BuildContext, Policy, PolicyRng, Selection, SelectionRequest, ServerView};
use fedgenie::scenario::tree;
use fedgenie::state::Stateful;
use std::path::Path;
use std::sync::Arc;

/// Devices are alike, so that selecting everybody in turn has no regret.
const ALIKE: &str = r#"
name = "truth"
seeds = 3
[stop]
rounds = 12
[population]
clients = 4
[population.latency]
download = { constant = "0.1 s" }
compute = { constant = "0.5 s" }
upload = { constant = "0.1 s" }
[protocol.synchronous]
cohort = 2
[regret]
tau_min = "0.1 s"
[policy.random]
[policy.round-robin]
"#;

/// The message about regret.
fn of_regret(answers: &[String]) -> &str {
    let mut found =
        answers.iter().filter(|answer| answer.contains("has the least") || answer.contains("have the least"));
    let answer = found.next().unwrap_or_else(|| panic!("nothing of regret in {answers:?}"));
    assert_eq!(found.next(), None);
    answer
}

fn all(summary: &Summary) -> Vec<String> {
    told(summary).all()
}

fn regrets(summary: &Summary, label: &str) -> Vec<f64> {
    summary.runs.iter().filter(|run| run.arm == label).map(|run| run.regret.mean.unwrap()).collect()
}

fn experiment(text: &str) -> Experiment {
    let root = tree::parse(Path::new("scenario.toml"), text).unwrap();
    Experiment::from_tree(&root, Path::new("."), None).unwrap()
}

fn one() -> Threads {
    Threads::new(1).unwrap()
}

#[test]
fn an_ordinary_policy_without_regret_is_the_best_and_the_genie_is_not_a_candidate() {
    let text = format!("{ALIKE}[policy.genie]\n[policy.oracle]\nkind = \"genie\"\n");
    let mut summary = experiment(&text).run(&one()).unwrap();
    for label in ["round-robin", "genie", "oracle"] {
        assert_eq!(regrets(&summary, label), [0.0; 3], "{label}");
    }
    assert!(regrets(&summary, "random").iter().all(|&regret| regret > 0.0));
    let found = all(&summary);
    let sentence = of_regret(&found);
    assert!(sentence.starts_with("round-robin has the least mean regret: 0, 3 seeds; random has "), "{sentence}");
    let left_out = "genie, which sees the truth, has 0; oracle, which sees the truth, has 0.";
    assert!(sentence.contains(left_out), "{sentence}");
    // A folder without the list of policies that were shown the truth.
    Arc::make_mut(&mut summary.runs).iter_mut().for_each(|run| run.sees_truth = None);
    summary.answers = answers(&summary);
    assert!(all(&summary).iter().all(|answer| !answer.starts_with("round-robin has the least")));

    // The same from the folder alone, and from the command that ran.
    let place = Workplace::with(&text);
    let run = place.fedgenie(&["run", "scenario.toml", "--out", "out", "--quiet"]);
    let report = place.fedgenie(&["report", "out"]);
    for answer in [&run, &report] {
        assert!(answer.code == 0 && answer.stdout.contains(sentence), "{sentence} in {answer:?}");
    }
    let told = |arm: &str| place.json(&format!("out/runs/{arm}-s1/run.json"))["sees_truth"].clone();
    assert_eq!([told("genie"), told("oracle"), told("random")], [true, true, false].map(serde_json::Value::from));
    assert_eq!(place.fedgenie(&["verify", "out"]).code, 0);
}

/// A policy of a program that takes the fastest client if it is shown the truth, and else the first.
#[derive(Stateful)]
struct Outside {
    #[state(skip = "from the test")]
    knows: bool,
}

impl Policy for Outside {
    fn sees_truth(&self) -> bool {
        self.knows
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        _: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        assert_eq!(view.genie.is_some(), self.knows, "who does not say that it sees the truth is not shown it");
        let mut order = ask.available.list().to_vec();
        // In turn, as it is told how often each was selected.
        order.sort_by_key(|client| (view.counts[client.index()], *client));
        selection.extend(&order[..ask.cohort]);
        Ok(())
    }
}

#[test]
fn policies_of_programs_say_whether_they_see_the_truth() {
    let mut experiment = experiment(ALIKE);
    let build = |knows: bool| move |_: &BuildContext<'_>| Ok::<Box<dyn Policy>, Complaint>(Box::new(Outside { knows }));
    experiment.add_policy("knowing", build(true)).unwrap();
    experiment.add_policy("plain", build(false)).unwrap();
    let place = Workplace::new();
    let summary = experiment.run_with(&RunOptions::into(&place.path("out")), &one()).unwrap().whole().unwrap();
    assert_eq!([regrets(&summary, "knowing"), regrets(&summary, "plain")], [[0.0; 3], [0.0; 3]]);
    let found = all(&summary);
    let sentence = of_regret(&found);
    assert!(
        sentence.starts_with("round-robin and plain have the least mean regret, equal for each seed: 0, 3 seeds; "),
        "{sentence}"
    );
    assert!(sentence.contains("knowing, which sees the truth, has 0."), "{sentence}");
    let report = place.fedgenie(&["report", "out"]);
    assert!(report.code == 0 && report.stdout.contains(sentence), "{sentence} in {report:?}");
}

/// Where nobody's regret is 0, the genie is left out as well.
#[test]
fn a_genie_that_misses_something_is_no_candidate_either() {
    // The genie knows speeds; the regret measures the values of updates.
    let text = r#"
        name = "truth"
        seeds = 3
        stop.rounds = 6
        population.clients = 4
        population.latency.download.constant = "0.1 s"
        population.latency.compute.constant = "0.5 s"
        population.latency.upload.constant = "0.1 s"
        protocol.synchronous.cohort = 2
        task.linear-regression.examples = 80
        task.linear-regression.features = 2
        training.optimizer.sgd.lr = 0.05
        regret.tau_min = "0.1 s"
        regret.meters = []
        regret.counterfactual = true
        regret.utility = "loss-drop"
        policy.genie = {}
        policy.random = {}
        policy.round-robin = {}
    "#;
    let summary = experiment(text).run(&one()).unwrap();
    let hindsight = |run: &&fedgenie::experiment::RunSummary| run.regret.hindsight.unwrap() > 0.0;
    assert!(summary.runs.iter().any(|run| run.arm == "genie" && hindsight(&run)));
    let found = all(&summary);
    let sentence = of_regret(&found);
    assert!(!sentence.starts_with("genie") && sentence.contains("genie, which sees the truth, has "), "{sentence}");
    assert!(!sentence.ends_with("has 0."), "{sentence}");
}

/// 2,000 B pay for ten jobs: rounds of 3, 3, 3 and 1 client. Jobs take 0.3, 0.5, 0.7 and 1.1 s, so that the best three
/// have the speed 1/7 and the best single client 1/3, which is what a single client is compared with.
#[test]
fn the_last_round_of_a_budget_is_compared_with_the_best_set_that_it_can_pay_for() {
    let text = ALIKE
        .replace("cohort = 2", "cohort = 3")
        .replace("\"0.5 s\"", "{ each = [\"0.1 s\", \"0.3 s\", \"0.5 s\", \"0.9 s\"] }")
        .replace("tau_min = \"0.1 s\"", "tau_min = \"0.1 s\"\nalpha = 0\nmeters = [\"mean\", \"expected-exact\"]");
    let budget = "[budget]\ntraffic = \"2 kB\"\n[task.none]\npayload = \"100 B\"\n";
    let work = Workplace::with(&format!("{text}[policy.genie]\n{budget}"));
    work.run_into("out", &[]);
    let speed = |client: &serde_json::Value| 1.0 / [3.0, 5.0, 7.0, 11.0][client.as_u64().unwrap() as usize];
    let mut last = Vec::new();
    for (policy, seed) in
        ["genie", "random", "round-robin"].iter().flat_map(|policy| (1..=3).map(move |seed| (policy, seed)))
    {
        let mut lost = 0.0;
        let rounds = work.lines(&format!("out/runs/{policy}-s{seed}/rounds.jsonl"));
        assert_eq!(rounds.len(), 4);
        for round in &rounds {
            let selected = round["selected"].as_array().unwrap();
            let best = if selected.len() == 3 { 1.0 / 7.0 } else { 1.0 / 3.0 };
            lost += best - selected.iter().map(speed).fold(f64::INFINITY, f64::min);
            for meter in ["mean", "expected-exact"] {
                let found = round["regret"][meter].as_f64().unwrap();
                assert!((found - lost).abs() < 1e-9, "{policy}: {found} {lost}");
            }
        }
        assert_eq!(*policy == "genie", lost.abs() < 1e-9, "{policy}: {lost}");
        last.push(rounds[3]["selected"].as_array().unwrap().len());
    }
    assert_eq!(last, [1; 9]);
}
