//! Claims: that those of the project can be read and carried out, that verdicts follow from rules, and that wrong ones
//! are named.

use super::support::{Answer, SCENARIO, Workplace, changed};
use fedgenie::experiment::{Experiment, Overrides};
use fedgenie::validation::{Budget, read_claims};
use serde_json::Value;
use std::path::Path;

pub const WORLD: &str = r#"name = "small"
seeds = 1

[stop]
rounds = 40

[record]
every = 10

[population]
clients = 6

[[population.group]]
name = "fast"
count = 3
latency.download = { constant = "10 ms" }
latency.compute = { lognormal = { median = "0.1 s", sigma = 0.2 } }
latency.upload = { constant = "10 ms" }

[[population.group]]
name = "slow"
count = 3
latency.download = { constant = "10 ms" }
latency.compute = { lognormal = { median = "0.4 s", sigma = 0.2 } }
latency.upload = { constant = "10 ms" }

[task.none]

[protocol.synchronous]
cohort = 2

[regret]
tau_min = "20 ms"
meters = ["mean", "expected"]

[policy.bsfl]
[policy.random]
[policy.genie]
"#;

pub const CLAIM: &str = r#"title = "BSFL is between the genie and random selection"
source = "a test"

[scenario.small]
file = "../scenario.toml"
seeds = 6
smoke = { seeds = 3, set = { "stop.rounds" = 20 } }

[[check]]
claim = "The genie has no regret"
statistic.value = { scenario = "small", policies = ["genie"], value = "regret.mean" }
holds = { at-least = 0, at-most = 0 }
expected = "supported"

[[check]]
claim = "BSFL has less regret than the genie"
paper = "less"
statistic.difference = { scenario = "small", value = "regret.mean", policy = "bsfl", against = ["genie", "random"] }
holds = { at-most = 0 }
expected = { genie = "not-supported", others = "supported" }
because = "Nobody has."
"#;

pub fn workplace(claim: &str) -> Workplace {
    let place = Workplace::with(WORLD);
    place.write("claims/order.toml", claim);
    place
}

pub fn results(answer: &Answer) -> Value {
    assert!(answer.code <= 1, "{answer:?}");
    serde_json::from_str(&answer.stdout).unwrap()
}

#[test]
fn every_claim_of_the_project_has_its_scenarios() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("validation/claims");
    let claims = read_claims(&folder, &[]).unwrap();
    assert!(claims.len() >= 9, "found {} claims", claims.len());
    for claim in claims {
        assert!(!claim.checks.is_empty(), "{} checks nothing", claim.name);
        for (name, scenario) in &claim.scenarios {
            for budget in [Budget::Smoke, Budget::Full] {
                let look = claim.first_look(budget);
                let (seeds, set) = scenario.overrides(budget, look.as_ref());
                let overrides = Overrides { set, seeds, ..Overrides::default() };
                let loaded = Experiment::load(&claim.folder.join(&scenario.file), &overrides);
                loaded.unwrap_or_else(|error| panic!("{}, scenario {name}: {error}", claim.name));
            }
        }
    }
}

#[test]
fn verdicts_follow_from_intervals_and_are_compared_with_what_is_known() {
    let place = workplace(CLAIM);
    let answer = place.fedgenie(&["validate", "--claims", "claims", "--json", "--quiet"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    let found = results(&answer);
    let checks = found["claims"][0]["checks"].as_array().unwrap();
    let rows: Vec<&Value> = checks.iter().flat_map(|check| check["rows"].as_array().unwrap()).collect();
    let verdicts: Vec<&str> = rows.iter().map(|row| row["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["supported", "not-supported", "supported"]);
    assert_eq!((&rows[0]["value"], &rows[0]["ci95"], &rows[0]["n"]), (&0.0.into(), &Value::Null, &6.into()));

    // The same numbers as `run` finds.
    let answer = place.fedgenie(&["run", SCENARIO, "--seeds", "6", "--json", "--quiet"]);
    let summary: Value = serde_json::from_str(&answer.stdout).unwrap();
    let regret = |arm: &str| -> Vec<f64> {
        let runs = summary["runs"].as_array().unwrap().iter().filter(|run| run["arm"] == arm);
        runs.map(|run| run["regret"]["mean"].as_f64().unwrap()).collect()
    };
    let difference = regret("bsfl").iter().zip(regret("random")).map(|(one, other)| one - other).sum::<f64>() / 6.0;
    approx::assert_relative_eq!(rows[2]["value"].as_f64().unwrap(), difference, max_relative = 1e-12);

    // RESULTS.md belongs to all claims with the full budget.
    let written = place.text("RESULTS.md");
    for part in [
        "1 not supported",
        "| BSFL has less regret than the genie: genie | less | ≤ 0 |",
        "Nobody has.",
        "(claims/order.toml)",
    ] {
        assert!(written.contains(part), "{part:?} is not in {written}");
    }
}

#[test]
fn an_unexpected_verdict_is_exit_code_1_and_a_small_budget_may_leave_things_open() {
    let wrong = CLAIM.replace(r#"genie = "not-supported", others"#, "others");
    let place = workplace(&wrong);
    let answer = place.fedgenie(&["validate", "order", "--claims", "claims", "--quiet"]);
    assert_eq!(answer.code, 1, "{answer:?}");
    assert!(answer.stdout.contains("not supported, UNEXPECTED (expected: supported)"), "{}", answer.stdout);
    assert!(answer.stdout.contains("1 verdict is not the one that is known"), "{}", answer.stdout);
    assert!(!place.path("RESULTS.md").exists(), "a part of the claims is no reason to rewrite the results");

    let open = CLAIM.replace(r#"{ genie = "not-supported", others = "supported" }"#, r#""undecided""#);
    let place = workplace(&open);
    assert_eq!(place.fedgenie(&["validate", "--claims", "claims", "--quiet"]).code, 1);
    let answer = place.fedgenie(&["validate", "--claims", "claims", "--quiet", "--smoke", "--out", "found.md"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    assert!(place.text("found.md").contains("too small to decide"));
}

/// One run is no proof: without an interval, an inexact quantity decides nothing.
#[test]
fn one_seed_decides_nothing() {
    let place = workplace(&CLAIM.replace("seeds = 6", "seeds = 1"));
    let found = results(&place.fedgenie(&["validate", "--claims", "claims", "--json", "--quiet"]));
    for check in found["claims"][0]["checks"].as_array().unwrap() {
        assert!(check["rows"].as_array().unwrap().iter().all(|row| row["verdict"] == "undecided"), "{check}");
    }
}

/// Counts of windows and groups against those of rounds.jsonl.
#[test]
fn group_statistics_are_those_of_the_records() {
    let claim = r#"title = "groups"
source = "a test"
[scenario.small]
file = "../scenario.toml"
seeds = 3
[[check]]
claim = "everybody is selected"
statistic.group-selections = { scenario = "small", policy = "bsfl" }
measure = ["share of the slower half (alpha = 3.0)", "last window: share of the fastest group (alpha = 3.0)"]
holds = { at-least = 0 }
expected = "supported"
"#;
    let sweep = "[sweep]\n\"policy.bsfl.alpha\" = [0.0, 3.0]\n";
    let place = Workplace::with(&format!("{WORLD}{sweep}"));
    place.write("claims/groups.toml", claim);
    let found = results(&place.fedgenie(&["validate", "--claims", "claims", "--json", "--quiet"]));
    let rows = found["claims"][0]["checks"][0]["rows"].as_array().unwrap();
    place.run_into("out", &["--seeds", "3"]);
    let (mut fast, mut slow) = (0.0, 0.0);
    for seed in 1..=3 {
        let lines = place.lines(&format!("out/runs/bsfl-p1-s{seed}/rounds.jsonl"));
        let count = |line: &Value, group: &str| line["group_selections"][group].as_f64().unwrap();
        assert_eq!(lines.len(), 4);
        slow += lines.iter().map(|line| count(line, "slow")).sum::<f64>() / 80.0 / 3.0;
        fast += count(&lines[3], "fast") / 20.0 / 3.0;
    }
    let value = |label: &str| {
        let row = rows.iter().find(|row| row["label"].as_str().unwrap().starts_with(label)).unwrap();
        row["value"].as_f64().unwrap()
    };
    approx::assert_relative_eq!(value("share of the slower half"), slow, max_relative = 1e-12);
    approx::assert_relative_eq!(value("last window"), fast, max_relative = 1e-12);
}

#[test]
fn what_a_wrong_claim_gets_to_hear() {
    let cases = [
        ("statistic.value = {", "statistic.valu = {", "unknown variant `valu`"),
        (r#"policies = ["genie"]"#, r#"policy = ["genie"]"#, "unknown field `policy`"),
        (
            r#"policies = ["genie"]"#,
            r#"policies = ["gene"]"#,
            r#"there is no policy "gene"; there are bsfl, random, genie"#,
        ),
        (r#"value = "regret.mean" }"#, r#"value = "regret.men" }"#, r#"there is no "regret.men"; there are "#),
        (
            r#"{ scenario = "small", policies"#,
            r#"{ scenario = "large", policies"#,
            r#"there is no scenario "large"; there are small"#,
        ),
        (
            r#"expected = "supported""#,
            r#"expected = "true""#,
            "supported, not-supported, no-difference, undecided or not-judged",
        ),
        ("at-least = 0", "at_least = 0", "unknown field `at_least`"),
        ("../scenario.toml", "../nowhere.toml", "nowhere.toml"),
        (r#"source = "a test""#, "", "missing field `source`"),
        (r#"policies = ["genie"]"#, "policies = []", "nothing would be checked"),
        (r#"["genie", "random"]"#, r#"["bsfl"]"#, "bsfl is compared with itself"),
        ("at-least = 0, at-most = 0", "at-least = 1, at-most = 0", "no number is 1 to 0"),
        ("{ at-least = 0, at-most = 0 }", "{ }", "every number would do"),
        (r#"value = "regret.mean" }"#, r#"value = "regret.mean", at_s = -1 }"#, "is not known at -1 s"),
        (r#"value = "regret.mean" }"#, r#"value = "regret.mean", at_s = 1e6 }"#, "is after the end of a run"),
        (
            r#""../scenario.toml"
seeds = 6"#,
            r#""../scenario.toml"
set = { "stop.round" = 3 }
seeds = 6"#,
            "claim order: ",
        ),
    ];
    for (from, to, message) in cases {
        assert!(CLAIM.contains(from), "{from}");
        let place = workplace(&CLAIM.replacen(from, to, 1));
        let answer = place.fedgenie(&["validate", "--claims", "claims", "--quiet"]);
        assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{to}: {answer:?}");
        assert!(answer.stderr.contains(message), "{to}: {message:?} is not in {}", answer.stderr);
    }
    let place = workplace(CLAIM);
    let answer = place.fedgenie(&["validate", "ordre", "--claims", "claims"]);
    assert!(answer.code == 2 && answer.stderr.contains(r#"there is no claim "ordre"; there are order"#), "{answer:?}");
    let answer = place.fedgenie(&["validate"]);
    assert!(answer.code == 2 && answer.stderr.contains("--claims names their folder"), "{answer:?}");
}

#[test]
fn statistics_with_worlds_of_their_own_agree_with_theory_in_a_small_size() {
    let claim = r#"title = "small sizes"
source = "a test"
[scenario.small]
file = "../scenario.toml"
seeds = 4
[[check]]
claim = "bound"
statistic.theorem-1 = { worlds = 3, rounds = 2_000 }
holds = { at-least = 1e-6, at-most = 1 }
expected = "supported"
[scenario.quantised]
file = "../scenario.toml"
seeds = 4
set = { "regret.quantum" = 0.25 }
[[check]]
claim = "bound of a scenario"
statistic.bound = { scenario = "quantised", policies = ["bsfl"] }
holds = { at-least = 1e-6, at-most = 1 }
expected = "supported"
[[check]]
claim = "laws"
statistic.laws = { samples = 2_000 }
holds = { at-least = 0.01 }
expected = "supported"
[[check]]
claim = "the genie loses what the integral says"
statistic.genie-loss = { scenario = "small", policy = "genie" }
measure = ["min E − E[min] per round"]
holds = { at-least = 0.001, at-most = 0.2 }
expected = "supported"
[[check]]
claim = "its simulation differs by chance alone"
statistic.genie-loss = { scenario = "small", policy = "genie" }
measure = ["their difference"]
holds = { at-least = -0.02, at-most = 0.02 }
expected = "supported"
[[check]]
claim = "walk and enumeration"
statistic.utility-selection = { instances = 50, clients = [3, 8], largest = 1_000 }
measure = ["instances in which walk and enumeration differ"]
holds = { at-most = 0 }
expected = "supported"
[[check]]
claim = "annealing finds optima of six clients"
statistic.solvers = { scenario = "small", policy = "bsfl", every = 2, steps = 200 }
measure = ["share solved by SA"]
holds = { at-least = 0.9 }
expected = "supported"
[[check]]
claim = "coverage"
statistic.coverage = { replications = 200, seeds = 4, rounds = 10 }
holds = { at-least = 0.85 }
expected = "supported"
"#;
    let place = workplace(claim);
    let answer = place.fedgenie(&["validate", "--claims", "claims", "--quiet"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    assert!(answer.stdout.contains("supported; in seed "), "{answer:?}");
}

/// The verdicts of all claims go beside their folder, where nothing else of that name is.
#[test]
fn a_file_of_somebody_else_is_not_replaced() {
    let place = workplace(CLAIM);
    place.write("RESULTS.md", "precious");
    let answer = place.fedgenie(&["validate", "--claims", "claims", "--quiet"]);
    assert!(answer.code == 0 && answer.stderr.contains("RESULTS.md holds something else"), "{answer:?}");
    assert_eq!(place.text("RESULTS.md"), "precious");
    std::fs::remove_file(place.path("RESULTS.md")).unwrap();
    for _ in 0..2 {
        place.fedgenie(&["validate", "--claims", "claims", "--quiet"]);
        assert!(place.text("RESULTS.md").starts_with("# Verdicts on the claims"));
    }
}

/// A policy of which no theorem speaks has no ratio.
#[test]
fn a_policy_without_a_bound_is_refused() {
    let claim = CLAIM.replacen(
        r#"statistic.value = { scenario = "small", policies = ["genie"], value = "regret.mean" }"#,
        r#"statistic.bound = { scenario = "small", policies = ["genie"] }"#,
        1,
    );
    let answer = workplace(&claim).fedgenie(&["validate", "--claims", "claims", "--quiet"]);
    assert!(answer.code == 2 && answer.stderr.contains("policy genie has no bound here"), "{answer:?}");
}

/// By a script the third client adds most and the first least, and everything else is alike.
const CONTRIBUTIONS: &str = r#"name = "contributions"
seeds = 4
[stop]
rounds = 60
[record]
explain = true
[population]
clients = 8
[population.latency]
download = { constant = "1 s" }
compute = { constant = "1 s" }
upload = { constant = "1 s" }
[task.scripted]
metric = "test_accuracy"
effects = [-0.3, 0.0, 0.3, 0.1, 0.3, -0.3, 0.1, 0.0]
[protocol.hierarchical]
edges = 2
cohort = 2
[regret]
meters = []
counterfactual = true
utility = { aggregate = { server_accuracy = 1.0 } }
[policy.thompson]
warmup = 5
[policy.random]
"#;

#[test]
fn posteriors_rank_clients_as_they_contribute() {
    let check = |policy: &str, holds: &str| {
        format!(
            "title = \"contributions\"\nsource = \"a test\"\n[scenario.script]\nfile = \"../scenario.toml\"\nseeds = 4\n[[check]]\n\
             claim = \"ranks\"\nstatistic.contribution-rank = {{ scenario = \"script\", policy = \"{policy}\" }}\n\
             holds = {{ {holds} }}\nexpected = \"supported\"\n"
        )
    };
    let validate = |scenario: &str, claim: &str| {
        let place = Workplace::with(scenario);
        place.write("claims/ranks.toml", claim);
        place.fedgenie(&["validate", "--claims", "claims", "--quiet"])
    };
    let answer = validate(CONTRIBUTIONS, &check("thompson", "at-least = 0.5"));
    assert_eq!(answer.code, 0, "{answer:?}");
    for (scenario, policy, message) in [
        (CONTRIBUTIONS.to_owned(), "random", "no explanation has alpha and beta after a round"),
        (
            changed(CONTRIBUTIONS, "cohort = 2", "participation = 1.0"),
            "thompson",
            "no round has the contributions of clients",
        ),
    ] {
        let answer = validate(&scenario, &check(policy, "at-least = 0.5"));
        assert_eq!(answer.code, 2, "{answer:?}");
        assert!(answer.stderr.contains(message), "{message:?} is not in {answer:?}");
    }
    // A client's contribution to a set of two is half of its number's excess over the others' mean.
    let place = Workplace::with(CONTRIBUTIONS);
    place.run_into("out", &[]);
    let round = &place.lines("out/runs/random-s1/rounds.jsonl")[7]["hindsight"];
    let numbers = [[-0.3, 0.0, 0.3, 0.1], [0.3, -0.3, 0.1, 0.0]];
    for (server, numbers) in numbers.iter().enumerate() {
        assert_eq!(round["clients"][server], serde_json::json!((4 * server..4 * server + 4).collect::<Vec<_>>()));
        for (client, number) in numbers.iter().enumerate() {
            let others = (numbers.iter().sum::<f64>() - number) / 3.0;
            let found = round["contributions"][server][client].as_f64().unwrap();
            assert!((found - (number - others) / 2.0).abs() < 1e-12, "{found}");
        }
    }
}

/// Clients learn a line; after the rounds that a run has, a low loss is reached in some seeds only.
const LEARNED: &str = r#"name = "learned"
seeds = 5

[stop]
rounds = 12

[population]
clients = 6
[population.latency]
download = { constant = "10 ms" }
compute = { lognormal = { median = { uniform = ["0.1 s", "1 s"] }, sigma = 0.2 } }
upload = { constant = "10 ms" }

[task.linear-regression]
examples = 400

[training]
optimizer = { sgd = { lr = 0.002 } }

[protocol.synchronous]
cohort = 2

[evaluate]
targets = [
    { metric = "test_loss", at_most = 1e6 },
    { metric = "test_loss", at_most = LOSS },
    { metric = "test_loss", at_most = 0.0 },
]

[policy.random]
[policy.large]
kind = "random"
with = { "protocol.synchronous.cohort" = 4 }
"#;

fn ratio_of(value: &str) -> String {
    format!(
        r#"title = "ratios"
source = "a test"
[scenario.learned]
file = "../scenario.toml"
seeds = 5
[[check]]
claim = "more clients take longer"
statistic.ratio = {{ scenario = "learned", value = "{value}", policy = "large", against = ["random"] }}
holds = {{ at-least = 1 }}
expected = "supported"
"#
    )
}

/// The only number of the claim about a value, and the verdict table in text.
fn ratio_in(place: &Workplace, value: &str) -> (Value, String) {
    place.write("claims/ratio.toml", ratio_of(value));
    let found = results(&place.fedgenie(&["validate", "--claims", "claims", "--json", "--quiet"]));
    let text = place.fedgenie(&["validate", "--claims", "claims", "--quiet"]).stdout;
    (found["claims"][0]["checks"][0]["rows"][0].clone(), text)
}

/// Against `run`: the geometric mean of the seeds' ratios; a run that never reaches a target counts with all its cost.
#[test]
fn a_ratio_is_paired_by_seed_and_counts_who_never_reaches_a_target() {
    // A loss that about half of the runs of the first arm reach.
    let free = Workplace::with(&LEARNED.replace("LOSS", "0.0"));
    free.run_into("out", &[]);
    let summary = free.json("out/summary.json");
    let runs = || summary["runs"].as_array().unwrap().iter();
    let mut losses: Vec<f64> =
        runs().filter(|run| run["arm"] == "random").map(|run| run["final"]["test_loss"].as_f64().unwrap()).collect();
    losses.sort_by(f64::total_cmp);
    let middle = (losses[2] + losses[3]) / 2.0;

    let place = Workplace::with(&LEARNED.replace("LOSS", &middle.to_string()));
    place.run_into("out", &[]);
    let summary = place.json("out/summary.json");
    let (mut logarithms, mut missed) = (0.0, 0);
    for seed in 1..=5 {
        let needed = |arm: &str| {
            let mut runs = summary["runs"].as_array().unwrap().iter();
            let run = runs.find(|run| run["arm"] == arm && run["seed"] == seed).unwrap();
            run["reached"][1]["time_s"].as_f64().ok_or_else(|| run["virtual_time_s"].as_f64().unwrap())
        };
        missed += usize::from(needed("random").is_err());
        let spent = |arm: &str| needed(arm).unwrap_or_else(|spent| spent);
        logarithms += (spent("large") / spent("random")).ln();
    }
    assert!((1..5).contains(&missed), "{missed} of 5 runs never reach a loss of {middle}");
    let name = format!("test_loss <= {middle}");
    let (row, text) = ratio_in(&place, &format!("time_to.{name}"));
    approx::assert_relative_eq!(row["value"].as_f64().unwrap(), (logarithms / 5.0).exp(), max_relative = 1e-12);
    assert_eq!(row["n"], 5);
    let note = row["note"].as_str().unwrap();
    assert!(note.starts_with("never reached: large ") && note.ends_with(&format!("random {missed} of 5")), "{note}");
    assert!(text.contains(note), "{text}");
    // A run of the other one that never arrives makes the ratio smaller than it is; one of both leaves nothing.
    match note.starts_with("never reached: large 0 of 5") {
        true => assert!(row["ci95"][0] == 0.0 && row["ci95"][1].as_f64().unwrap() > 0.0, "{row}"),
        false => assert_eq!((&row["ci95"], &row["verdict"]), (&Value::Null, &"undecided".into()), "{row}"),
    }
    let columns = "| over | geometric mean | pairs | runs of the policy that never reach it | of the other |";
    let written = place.text("RESULTS.md");
    assert!(written.contains(columns) && written.contains(note), "{written}");

    // Everybody reaches the first target at once, with twice the bytes and the same number of bytes in every seed.
    let (row, _) = ratio_in(&place, "bytes_to.test_loss <= 1000000");
    assert_eq!((row["value"].as_f64().unwrap().round(), &row["note"]), (2.0, &Value::Null));
    assert_eq!(row["verdict"], "supported");
    // Nobody reaches the last one.
    let (row, _) = ratio_in(&place, "rounds_to.test_loss <= 0");
    assert_eq!((&row["value"], &row["note"]), (&1.0.into(), &"never reached: large 5 of 5, random 5 of 5".into()));
    assert_eq!((&row["verdict"], &row["ci95"]), (&"undecided".into(), &Value::Null), "ends of runs tell nothing");
    // Nothing is wasted: zero over zero is no ratio.
    let (row, text) = ratio_in(&place, "wasted_up_bytes");
    assert_eq!((&row["value"], &row["verdict"]), (&Value::Null, &"undecided".into()));
    assert!(text.contains("undecided, UNEXPECTED (expected: supported); no ratio: wasted_up_bytes of large is 0 in"));
    let answer = {
        place.write("claims/ratio.toml", ratio_of("time_to.test_loss <= 3"));
        place.fedgenie(&["validate", "--claims", "claims", "--quiet"])
    };
    assert!(
        answer.code == 2 && answer.stderr.contains("there is no \"time_to.test_loss <= 3\"; there are"),
        "{answer:?}"
    );
}

/// A value and a difference of a time that some runs never reach are those of `run`: restricted means to the horizon
/// that both policies have.
#[test]
fn values_and_differences_of_times_have_all_seeds() {
    // All runs are watched equally long.
    let world = LEARNED.replace("rounds = 12", "virtual_time = \"8 s\"");
    let place = Workplace::with(&world.replace("LOSS", "0.5"));
    place.run_into("out", &[]);
    let summary = place.json("out/summary.json");
    let of_random = summary["runs"].as_array().unwrap().iter().filter(|run| run["arm"] == "random");
    let mut losses: Vec<f64> = of_random.map(|run| run["final"]["test_loss"].as_f64().unwrap()).collect();
    losses.sort_by(f64::total_cmp);
    let middle = (losses[3] + losses[4]) / 2.0;
    let place = Workplace::with(&world.replace("LOSS", &middle.to_string()));
    place.run_into("out", &[]);
    let summary = place.json("out/summary.json");
    let key = format!("time_to.test_loss <= {middle}");
    let claim = ratio_of(&key);
    let value = claim.replace(
        &format!("statistic.ratio = {{ scenario = \"learned\", value = \"{key}\", policy = \"large\", against = [\"random\"] }}"),
        &format!("statistic.value = {{ scenario = \"learned\", value = \"{key}\", policies = [\"random\", \"large\"] }}"),
    );
    let row = |claim: &str, row: usize| {
        place.write("claims/ratio.toml", claim);
        let found = results(&place.fedgenie(&["validate", "--claims", "claims", "--json", "--quiet"]));
        found["claims"][0]["checks"][0]["rows"][row].clone()
    };
    for (index, arm) in summary["arms"].as_array().unwrap().iter().enumerate() {
        let until = &arm["until"][&key];
        assert!(until["arrived"].as_u64() < Some(5) || index == 1, "{until}");
        let (found, expected) = (row(&value, index), &arm["values"][&key]);
        assert_eq!((&found["value"], &found["n"]), (&expected["mean"], &5.into()), "{found}");
        assert_eq!(found["ci95"], expected["ci95"]);
    }
    let found = row(&claim.replace("statistic.ratio", "statistic.difference"), 0);
    let expected = &summary["arms"][1]["paired"]["differences"][&key];
    assert_eq!((&found["value"], &found["ci95"]), (&expected["mean"], &expected["ci95"]));
    place.write("claims/ratio.toml", ratio_of("time_to.test_loss <= 0").replace("ratio =", "difference ="));
    let answer = place.fedgenie(&["validate", "--claims", "claims", "--quiet"]);
    assert!(answer.code == 2 && answer.stderr.contains("no run gets there"), "{answer:?}");
}

#[test]
fn a_claim_that_runs_only_when_it_is_named_is_listed_otherwise() {
    let place = workplace(CLAIM);
    let long = CLAIM.replacen("source = ", "run = \"named\"\ntakes = \"a year\"\nsource = ", 1).replacen(
        "BSFL is",
        "Long: BSFL is",
        1,
    );
    place.write("claims/long.toml", &long);
    let validate = |more: &[&str]| place.fedgenie(&[&["validate", "--claims", "claims", "--quiet"], more].concat());
    let answer = validate(&[]);
    assert_eq!(answer.code, 0, "{answer:?}");
    let line = "  long: Long: BSFL is between the genie and random selection (a year)\n";
    assert!(answer.stdout.contains(&format!("run only when they are named:\n{line}")), "{}", answer.stdout);
    assert!(answer.stdout.contains("3 numbers of 1 claim in"), "{}", answer.stdout);
    assert!(place.text("RESULTS.md").contains("- [long](claims/long.toml): Long: BSFL is"));
    let found = results(&validate(&["--json"]));
    assert_eq!((found["claims"].as_array().unwrap().len(), &found["not_run"][0]["name"]), (1, &"long".into()));
    let found = results(&validate(&["long", "--json"]));
    assert_eq!((&found["claims"][0]["name"], found["not_run"].as_array().unwrap().len()), (&"long".into(), 0));
    place.write("claims/long.toml", long.replace("takes = \"a year\"\n", ""));
    let answer = validate(&[]);
    assert!(answer.code == 2 && answer.stderr.contains("says what it takes: takes = \"an hour\""), "{answer:?}");
    place.write("claims/long.toml", long.replace("\"named\"", "\"never\""));
    let answer = validate(&[]);
    assert!(answer.code == 2 && answer.stderr.contains("unknown variant `never`, expected `always` or `named`"));
}

/// A time is that of runs that were made: of a claim whose runs were there it is not known, nor that of all claims.
#[test]
fn no_time_is_told_of_runs_that_were_there_already() {
    let place = workplace(CLAIM);
    let validate = |more: &[&str]| {
        let words = ["validate", "--claims", "claims", "--quiet", "--smoke", "--out", "kept"];
        let answer = place.fedgenie(&[&words, more].concat());
        assert_eq!(answer.code, 0, "{answer:?}");
        (answer, place.text("kept/RESULTS.md"))
    };
    let (answer, written) = validate(&[]);
    assert!(
        answer.stdout.contains("3 numbers of 1 claim in ") && written.contains("decide), "),
        "{answer:?} {written}"
    );
    assert!(written.contains(".toml) · "), "{written}");
    let (answer, written) = validate(&[]);
    assert!(answer.stdout.contains("3 numbers of 1 claim: ") && written.contains("decide).\n"), "{answer:?} {written}");
    assert!(!written.contains(".toml) · "), "{written}");
    // Beside it a claim of runs that are made, and one of the same runs as the first.
    place.write("claims/again.toml", CLAIM);
    let other = CLAIM.replace("\"stop.rounds\" = 20", "\"stop.rounds\" = 17");
    assert_ne!(other, CLAIM);
    place.write("claims/other.toml", other);
    let (answer, written) = validate(&["--json"]);
    let found = results(&answer);
    let known = |claim: &Value| (claim["name"].as_str().unwrap().to_owned(), claim["seconds"].is_number());
    let known: std::collections::BTreeMap<_, _> = found["claims"].as_array().unwrap().iter().map(known).collect();
    assert_eq!(known.values().filter(|known| **known).count(), 1, "{known:?}");
    assert!(known["other"] && !known["again"], "{known:?}");
    assert!(written.contains("other.toml) · ") && !written.contains("again.toml) · "), "{written}");
}

#[test]
fn a_validation_that_was_interrupted_goes_on_where_it_stopped() {
    // Two claims of the same runs, and one of another scenario.
    let place = workplace(CLAIM);
    place.write("claims/again.toml", CLAIM);
    place.write("claims/other.toml", CLAIM.replace("seeds = 6", "seeds = 6\nset = { \"stop.rounds\" = 30 }"));
    let validate = |more: &[&str]| {
        let answer = place.fedgenie(&[&["validate", "--claims", "claims", "--json", "--quiet"], more].concat());
        assert_eq!(answer.code, 0, "{answer:?}");
        let mut found = results(&answer);
        for claim in found["claims"].as_array_mut().unwrap() {
            claim["seconds"] = 0.into();
        }
        found
    };
    let whole = validate(&[]);
    assert!(whole.get("runs").is_none());
    let first = validate(&["--out", "kept"]);
    assert_eq!((&first["claims"], &first["runs"]), (&whole["claims"], &serde_json::json!({ "reused": 0, "made": 36 })));
    assert!(
        place
            .text("kept/RESULTS.md")
            .contains("6 supported, 3 not supported, 0 no difference, 0 undecided, 0 not judged")
    );

    // As a process leaves it that was killed: complete runs, an unfinished one, no manifest.
    let folders = std::fs::read_dir(place.path("kept")).unwrap().map(|entry| entry.unwrap().path());
    let folders: Vec<_> = folders.filter(|path| path.is_dir()).collect();
    assert_eq!(folders.len(), 2, "{folders:?}");
    std::fs::remove_dir_all(folders[0].join("runs/genie-s2")).unwrap();
    std::fs::remove_file(folders[0].join("runs/bsfl-s3/run.json")).unwrap();
    std::fs::remove_file(folders[0].join("manifest.json")).unwrap();
    std::fs::create_dir(folders[0].join(".fedgenie/process-0")).unwrap();
    let second = validate(&["--out", "kept"]);
    assert_eq!(
        (&second["claims"], &second["runs"]),
        (&whole["claims"], &serde_json::json!({ "reused": 34, "made": 2 }))
    );
    let answer = place.fedgenie(&["validate", "--claims", "claims", "--quiet", "--out", "kept"]);
    assert!(answer.stdout.ends_with("runs: 36 of 36 were there already, in kept\n"), "{}", answer.stdout);
    // Each is a result folder like any other.
    let folder = folders[0].to_str().unwrap();
    assert_eq!(place.fedgenie(&["verify", folder]).stdout, format!("{folder}: 18 runs replayed, no difference\n"));
    // Of runs that were put aside the summaries are enough; one that was changed is made again.
    let put_aside = |run: &str| {
        for entry in std::fs::read_dir(folders[0].join("runs").join(run)).unwrap() {
            let path = entry.unwrap().path();
            if !path.ends_with("run.json") {
                std::fs::remove_file(path).unwrap();
            }
        }
    };
    ["bsfl-s1", "genie-s1", "genie-s2"].into_iter().for_each(put_aside);
    let changed = folders[0].join("runs/genie-s2/run.json");
    let text = std::fs::read_to_string(&changed).unwrap();
    std::fs::write(&changed, text.replacen("\"rounds\": ", "\"rounds\": 1", 1)).unwrap();
    let answer = place.fedgenie(&["validate", "--claims", "claims", "--json", "--quiet", "--out", "kept"]);
    let said = "fedgenie: warning: run genie-s2: run.json is not the file that was written; it is repeated\n";
    let runs = serde_json::json!({
        "reused": 35, "made": 1, "made_anew": ["genie-s2: run.json is not the file that was written"]
    });
    assert_eq!((&results(&answer)["runs"], answer.stderr.as_str()), (&runs, said));
    let again = validate(&["--out", "kept"]);
    assert_eq!((&again["claims"], &again["runs"]), (&whole["claims"], &serde_json::json!({ "reused": 36, "made": 0 })));
    // Another scenario under the same name is not taken for this one.
    place.write(SCENARIO, WORLD.replace("sigma = 0.2", "sigma = 0.3"));
    let third = validate(&["--out", "kept"]);
    assert_eq!(third["runs"], serde_json::json!({ "reused": 0, "made": 36 }));
    assert_ne!(third["claims"], whole["claims"]);
}
