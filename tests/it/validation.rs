//! Claims: that those of the project can be read and carried out, that verdicts follow from rules, and what is said of
//! wrong ones.

use super::support::{Answer, SCENARIO, Workplace};
use fedgenie::experiment::{Experiment, Overrides};
use fedgenie::validation::{Budget, read_claims};
use serde_json::Value;
use std::path::Path;

const WORLD: &str = r#"name = "small"
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

const CLAIM: &str = r#"title = "BSFL is between the genie and random selection"
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

fn workplace(claim: &str) -> Workplace {
    let place = Workplace::with(WORLD);
    place.write("claims/order.toml", claim);
    place
}

fn results(answer: &Answer) -> Value {
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
                let (seeds, set) = scenario.overrides(budget);
                let overrides = Overrides { set, seeds: Some(seeds), data: None };
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

/// One run is no proof: without an interval, what is not exact decides nothing.
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
measure = ["share of the slower half (3.0)", "last window: share of the fastest group (3.0)"]
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
        (r#"expected = "supported""#, r#"expected = "true""#, "supported, not-supported or undecided"),
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
}
