//! Claims whose seeds are added until every number is decided.

use super::support::{Answer, SCENARIO, Workplace, changed};
use super::validation::{CLAIM, results, workplace};
use fedgenie::math::statistics::{Miss, estimate_at};
use serde_json::Value;

fn looking(looks: &str) -> String {
    let claim = changed(CLAIM, "seeds = 6\n", "");
    changed(&claim, "source = \"a test\"\n", &format!("source = \"a test\"\nlooks = {looks}\n"))
}

/// Differences of regrets of the first seeds, by a run of its own.
fn differences(place: &Workplace, seeds: usize) -> Vec<f64> {
    let count = seeds.to_string();
    let answer = place.fedgenie(&["run", SCENARIO, "--seeds", &count, "--json", "--quiet"]);
    let summary: Value = serde_json::from_str(&answer.stdout).unwrap();
    let regret = |arm: &str| -> Vec<f64> {
        let runs = summary["runs"].as_array().unwrap().iter().filter(|run| run["arm"] == arm);
        runs.map(|run| run["regret"]["mean"].as_f64().unwrap()).collect()
    };
    regret("bsfl").iter().zip(regret("random")).map(|(one, other)| one - other).collect()
}

fn validate(place: &Workplace, more: &[&str]) -> Value {
    let words = [&["validate", "--claims", "claims", "--json", "--quiet"], more].concat();
    results(&place.fedgenie(&words))
}

/// The second look of three, after 5 of 9 seeds, has the share 0.05·(5 − 3)/9 of misses.
#[test]
fn intervals_allow_for_the_looks() {
    let place = workplace(&looking("[3, 5, 9]"));
    let middle = differences(&place, 5);
    // A bound within the interval after three seeds, and outside of that after five.
    let [first, second] = [(3, 3.0), (5, 2.0)].map(|(seeds, spent)| {
        let found = estimate_at(&middle[..seeds], Miss::of(0.05 * spent / 9.0)).unwrap();
        (found.mean, found.ci95.unwrap())
    });
    let bound = second.1[1] + 0.01 * (second.1[1] - second.1[0]);
    assert!(first.1[0] < bound && bound < first.1[1], "{first:?} {bound}");
    let claim = changed(&looking("[3, 5, 9]"), "against = [\"genie\", \"random\"]", "against = [\"random\"]");
    let claim = changed(
        &claim,
        "holds = { at-most = 0 }\nexpected = { genie = \"not-supported\", others =",
        "expected = {others =",
    );
    let claim =
        changed(&claim, "expected = {others =", &format!("holds = {{ at-most = {bound} }}\nexpected = {{others ="));
    place.write("claims/order.toml", &claim);
    let found = validate(&place, &["--out", "kept"]);
    assert_eq!(found["claims"][0]["looked"], serde_json::json!({ "seeds": 5, "looks": [3, 5, 9] }));
    let row = &found["claims"][0]["checks"][1]["rows"][0];
    assert_eq!((&row["verdict"], &row["n"]), (&"supported".into(), &5.into()));
    approx::assert_relative_eq!(row["miss"].as_f64().unwrap(), 0.05 * 2.0 / 9.0, max_relative = 1e-12);
    for (end, expected) in row["ci95"].as_array().unwrap().iter().zip(second.1) {
        approx::assert_relative_eq!(end.as_f64().unwrap(), expected, max_relative = 1e-9);
    }
    // Runs of the first look are made once; another validation takes all, and comes to the same.
    assert_eq!((&found["runs"]["made"], &found["runs"]["reused"]), (&15.into(), &9.into()));
    let again = validate(&place, &["--out", "kept"]);
    assert_eq!(again["runs"]["made"], 0);
    assert_eq!(again["claims"][0]["checks"], found["claims"][0]["checks"]);
    assert_eq!(again["claims"][0]["looked"], found["claims"][0]["looked"]);
    let kept = place.json("results/order.json");
    assert_eq!((&kept["looked"]["seeds"], &kept["checks"][1]["rows"][0]["n"]), (&5.into(), &5.into()));
    assert!(place.text("RESULTS.md").contains(" · 5 seeds, looked at after 3, 5, 9\n"));
    let told = place.fedgenie(&["validate", "--claims", "claims", "--out", "kept", "--quiet"]).stdout;
    assert!(told.contains("random selection; 5 seeds, looked at after 3, 5, 9\n"), "{told}");
    // A plan is of all looks.
    let plan = place.fedgenie(&["validate", "--claims", "claims", "--plan", "--json", "--quiet"]).stdout;
    assert_eq!(serde_json::from_str::<Value>(&plan).unwrap()[0]["runs"], 27);
}

/// What is open at the last look stays open; what is decided at the first needs no other; a small budget has no looks.
#[test]
fn looks_end_at_the_last_or_when_all_is_decided() {
    let place = workplace(&looking("[3, 4]"));
    let all = differences(&place, 4);
    let mean = all.iter().sum::<f64>() / 4.0;
    let open = changed(&looking("[3, 4]"), "holds = { at-most = 0 }", &format!("holds = {{ at-most = {mean} }}"));
    let open = changed(&open, "others = \"supported\"", "others = \"undecided\"");
    place.write("claims/order.toml", &open);
    let found = validate(&place, &[]);
    assert_eq!(found["claims"][0]["looked"]["seeds"], 4);
    assert_eq!(found["claims"][0]["checks"][1]["rows"][1]["verdict"], "undecided");
    place.write("claims/order.toml", changed(&looking("[6, 60]"), "seeds = 3", "seeds = 4"));
    assert_eq!(validate(&place, &[])["claims"][0]["looked"]["seeds"], 6);
    let smoke = validate(&place, &["--smoke"]);
    assert_eq!(smoke["claims"][0]["looked"], Value::Null);
    assert_eq!(smoke["claims"][0]["checks"][1]["rows"][0]["n"], 4);
}

#[test]
fn looks_that_cannot_be_are_refused() {
    let refused = |claim: String, words: &str| {
        let Answer { code, stderr, .. } = workplace(&claim).fedgenie(&["validate", "--claims", "claims"]);
        assert!(code == 2 && stderr.contains(words), "{words}: {stderr}");
    };
    refused(changed(CLAIM, "seeds = 6\n", ""), "scenario.small: seeds: expected a number, or looks of the claim");
    let both = changed(CLAIM, "source = \"a test\"\n", "source = \"a test\"\nlooks = [3, 5]\n");
    refused(both, "scenario.small: seeds: the claim has looks");
    refused(looking("[5, 3]"), "looks: found 3 after 5; expected ascending numbers");
    refused(looking("[2, 5]"), "looks: found 2; expected at least 3");
    let smoke = "smoke = { seeds = 3, set = { \"stop.rounds\" = 20 } }\n";
    refused(changed(&looking("[3, 5]"), smoke, ""), "smoke: expected the seeds of the small budget");
    let value = "statistic.value = { scenario = \"small\", policies = [\"genie\"], value = \"regret.mean\" }";
    let growth = "statistic.growth = { scenario = \"small\", policies = [\"genie\"], from = 10 }";
    refused(changed(&looking("[3, 5]"), value, growth), "no interval that is valid under looks");
}
