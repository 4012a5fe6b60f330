//! The policy `hindsight`: it selects the meter's best set, and the same selection by another policy is judged alike.

use super::support::{PLAIN, SCENARIO, Workplace, changed, line_of};
use serde_json::Value;

/// Some are lost, some come late; time and traffic have their prices.
const SETS: &str = r#"
name = "genie-of-sets"
seeds = 2
[stop]
rounds = 12
[budget]
full_rounds = 20
[population]
clients = 6
[population.latency]
download = { constant = "25 ms" }
compute = { exponential = { mean = { uniform = ["0.1 s", "1 s"] }, shift = "0.1 s" } }
upload = { constant = "25 ms" }
[population.dropout]
compute = "0.2 /s"
[task.linear-regression]
examples = 300
features = 4
partition = { gamma-sized = { shape = 1.0 } }
[training]
batch = 16
optimizer = { sgd = { lr = 0.3 } }
[protocol.deadline]
cohort = 4
deadline = "1.2 s"
[regret]
meters = []
counterfactual = true
utility = { aggregate = { test_loss = -1.0, traffic = -0.05 } }
size = "at-most"
kappa = 0.001
[record]
explain = true
[policy.hindsight]
[policy.random]
[policy.single]
kind = "hindsight"
cohort = 1
"#;

fn regrets(work: &Workplace, run: &str) -> Vec<f64> {
    let rounds = work.lines(&format!("out/runs/{run}/rounds.jsonl"));
    rounds.iter().map(|round| round["regret"]["counterfactual"].as_f64().unwrap()).collect()
}

fn sorted(ids: &Value) -> Vec<u64> {
    let mut ids: Vec<u64> = ids.as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect();
    ids.sort_unstable();
    ids
}

/// The regret is 0 in each round; the selection is the best set, and its value explains it. Another policy, and one
/// that may choose a single client, lose something.
#[test]
fn it_selects_the_best_set_and_loses_nothing() {
    for size in ["at-most", "exactly"] {
        let scenario = changed(SETS, "\"at-most\"", &format!("\"{size}\""));
        let work = Workplace::with(&scenario);
        work.run_into("out", &["--threads", "2"]);
        let (mut sizes, mut lost) = (Vec::new(), [0.0; 2]);
        for seed in ["s1", "s2"] {
            assert_eq!(regrets(&work, &format!("hindsight-{seed}")), [0.0; 12]);
            for round in work.lines(&format!("out/runs/hindsight-{seed}/rounds.jsonl")) {
                let hindsight = &round["hindsight"];
                assert_eq!(sorted(&round["selected"]), sorted(&hindsight["best"]));
                assert_eq!(hindsight["own_value"], hindsight["best_value"]);
                assert_eq!(round["explain"][0]["value"], hindsight["best_value"]);
                sizes.push(sorted(&round["selected"]).len());
            }
            for (policy, lost) in ["random", "single"].into_iter().zip(&mut lost) {
                *lost += regrets(&work, &format!("{policy}-{seed}")).last().unwrap();
            }
            for round in work.lines(&format!("out/runs/single-{seed}/rounds.jsonl")) {
                assert_eq!(sorted(&round["selected"]).len(), 1);
            }
        }
        // A single client is no set of exactly four, and may be worth more.
        assert!(lost[0] > 0.0 && (lost[1] > 0.0 || size == "exactly"), "{lost:?}");
        sizes.sort_unstable();
        sizes.dedup();
        assert_eq!(sizes.len() > 1, size == "at-most", "{sizes:?}");
        let one = Workplace::with(&scenario);
        one.run_into("out", &["--threads", "1"]);
        assert_eq!(one.text("out/summary.json"), work.text("out/summary.json"));
        assert_eq!(work.fedgenie(&["verify", "out"]).code, 0);
    }
}

/// A script of the same selections, which the meter judges from scratch, finds the same sets and values.
#[test]
fn what_was_known_before_is_what_is_found_after() {
    use super::support::{SETTINGS, Script, Seen, world};
    use fedgenie::policy::{Policy, PolicySource};
    use fedgenie::recorder::{RoundMark, RoundSummary, Sink};
    use fedgenie::run::Run;

    /// Selections and judgements.
    #[derive(Default)]
    struct Judged(Seen, Vec<Value>);
    impl Sink for Judged {
        fn record(&mut self, record: &fedgenie::record::Record<'_>) -> std::io::Result<()> {
            self.0.record(record)
        }
        fn round(&mut self, summary: &RoundSummary<'_>, is_recorded: bool, mark: &RoundMark) -> std::io::Result<()> {
            self.1.push(summary.to_json()["hindsight"].clone());
            self.0.round(summary, is_recorded, mark)
        }
    }

    for (from, to) in
        [("kappa = 0.001", "kappa = 0.01"), ("kappa = 0.001", "every = 3"), ("\"at-most\"", "\"exactly\"")]
    {
        let scenario = changed(SETS, from, to);
        let world = world(&scenario, 1);
        let played = |policy: Box<dyn Policy>| {
            let mut judged = Judged::default();
            let mut run = Run::new(&world, "double", policy, SETTINGS, &mut judged);
            (0..12).for_each(|_| run.step().unwrap());
            drop(run);
            judged
        };
        let config = serde_json::from_str(r#"{ "hindsight": {} }"#).unwrap();
        let Judged(seen, known) = played(world.policy(&PolicySource::Scenario(config)).unwrap());
        let selections: Vec<&[u32]> = seen.rounds.iter().map(|round| &*round.selected).collect();
        let Judged(again, found) = played(Box::new(Script::new(&selections)));
        assert_eq!(known, found);
        assert_eq!(seen.models, again.models);
        assert!(known.iter().filter(|judged| !judged.is_null()).count() >= 4);
    }
}

/// Fourteen clients have 16,383 sets: one round of each policy.
#[test]
fn fourteen_clients_are_enumerated() {
    let many = changed(SETS, "clients = 6", "clients = 14")
        .replace("seeds = 2", "seeds = 1")
        .replace("rounds = 12", "rounds = 1");
    let many = many.replace("cohort = 4", "cohort = 14").replace("examples = 300", "examples = 120");
    let work = Workplace::with(&many);
    work.run_into("out", &["--threads", "2"]);
    let best =
        |policy: &str| work.lines(&format!("out/runs/{policy}-s1/rounds.jsonl"))[0]["hindsight"]["best_value"].clone();
    assert_eq!(best("hindsight"), best("random"), "both meet the same first round");
    assert_eq!(regrets(&work, "hindsight-s1"), [0.0]);
    let more = Workplace::with(&many.replace("clients = 14", "clients = 15").replace("cohort = 14", "cohort = 15"));
    let answer = more.fedgenie(&["run", SCENARIO]);
    assert!(answer.code == 2 && answer.stderr.contains("a round of 15 clients has 32767 sets"), "{answer:?}");
    // With at least eight of them there are fewer.
    let least = many.replace("clients = 14", "clients = 15").replace("cohort = 14", "cohort = 15");
    let least =
        Workplace::with(&least.replace("full_rounds = 20", "full_rounds = 20\nleast = 8").replace("cohort = 1\n", ""));
    least.run_into("out", &["--threads", "2"]);
    assert!(sorted(&least.lines("out/runs/hindsight-s1/rounds.jsonl")[0]["selected"]).len() >= 8);
}

#[test]
fn where_no_set_is_measured_it_is_refused() {
    let only = changed(SETS, "[policy.random]\n[policy.single]\nkind = \"hindsight\"\ncohort = 1\n", "");
    let utility = "utility = { aggregate = { test_loss = -1.0, traffic = -0.05 } }\n";
    let selects = "selects the best of the sets that [regret] measures, and ";
    let none = &*format!("{selects}this scenario measures none");
    let other = &*format!("{selects}its utility is not one of sets");
    let deadline = "[protocol.deadline]\ncohort = 4\ndeadline = \"1.2 s\"\n";
    let buffered = "[protocol.buffered]\nconcurrency = 3\nbuffer = 2\ntimeout = \"2 s\"\n";
    let cases = [
        (changed(&only, utility, "").replace("size = \"at-most\"\n", ""), "[policy.hindsight]", other),
        (changed(PLAIN, "[policy.random]", "[policy.hindsight]"), "[policy.hindsight]", none),
        (changed(&only, deadline, buffered), "[policy.hindsight]", "policy.hindsight: selects in rounds of one server"),
        (
            changed(&only, "[budget]\nfull_rounds = 20\n", ""),
            "utility",
            "regret.utility.aggregate.traffic: is the weight of a set's bytes as a share of the budget, and there is none",
        ),
        (
            changed(&only, "full_rounds = 20", "least = 1"),
            "utility",
            "regret.utility.aggregate.traffic: is the weight of a set's bytes as a share of the budget, and there is none",
        ),
    ];
    for (scenario, key, said) in cases {
        let answer = Workplace::with(&scenario).fedgenie(&["run", SCENARIO]);
        let line = format!("{SCENARIO}:{}: ", line_of(&scenario, key));
        assert_eq!(answer.code, 2, "{answer:?}");
        assert!(answer.stderr.contains(said) && answer.stderr.contains(&line), "{line}{said}\n{answer:?}");
    }
    // A price of nothing needs no budget.
    let free = changed(&changed(&only, "traffic = -0.05", "traffic = 0.0"), "[budget]\nfull_rounds = 20\n", "");
    Workplace::with(&free).run_into("out", &[]);
}
