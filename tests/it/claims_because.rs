//! Explanations of claims with the numbers of their runs, and claims over two scenarios with the same seeds.

use super::support::{SCENARIO, Workplace, changed};
use super::validation::{CLAIM, results, workplace};
use serde_json::Value;

fn explained(because: &str) -> String {
    changed(CLAIM, "because = \"Nobody has.\"", &format!("because = \"{because}\""))
}

fn validate(place: &Workplace) -> Value {
    results(&place.fedgenie(&["validate", "--claims", "claims", "--json", "--quiet"]))
}

/// The regrets of a policy by a run of its own.
fn regrets(place: &Workplace, arm: &str) -> Vec<f64> {
    let answer = place.fedgenie(&["run", SCENARIO, "--seeds", "6", "--json", "--quiet"]);
    let summary: Value = serde_json::from_str(&answer.stdout).unwrap();
    let runs = summary["runs"].as_array().unwrap().iter().filter(|run| run["arm"] == arm);
    runs.map(|run| run["regret"]["mean"].as_f64().unwrap()).collect()
}

#[test]
fn numbers_of_explanations_are_those_of_runs() {
    let because = "From {least bsfl: regret.mean} to {most bsfl: regret.mean}, {bsfl: regret.mean} on average and {small/random: regret.mean %} %.";
    let place = workplace(&explained(because));
    let found = validate(&place);
    let told = found["claims"][0]["checks"][1]["because"].as_str().unwrap();
    let numbers: Vec<f64> = told.split([' ', ',']).filter_map(|word| word.trim_end_matches('.').parse().ok()).collect();
    let (mine, others) = (regrets(&place, "bsfl"), regrets(&place, "random"));
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let expected = [
        mine.iter().copied().fold(f64::INFINITY, f64::min),
        mine.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        mean(&mine),
        100.0 * mean(&others),
    ];
    assert_eq!(numbers.len(), expected.len(), "{told}");
    for (number, expected) in numbers.into_iter().zip(expected) {
        approx::assert_relative_eq!(number, expected, max_relative = 1e-3);
    }
    // What is kept, and what is written of it, has the numbers and not their names.
    assert_eq!(place.json("results/order.json")["checks"][1]["because"], told);
    assert!(place.text("RESULTS.md").contains(told), "{told}");
}

#[test]
fn explanations_name_what_there_is() {
    for (because, complaint) in [
        ("{bsfl}", "because: {bsfl} is no number of runs; expected {POLICY: VALUE}"),
        ("{bsfl: regret.mean", "has no closing brace"),
        ("{oort: regret.mean}", "because: oort: there is no policy \"oort\"; there are bsfl, random, genie"),
        ("{least bsfl: final.x}", "because: bsfl: there is no \"final.x\"; there are "),
        ("{bsfl: final.x}", "because: bsfl: there is no \"final.x\"; there are "),
        ("{(mean): regret.mean}", "because: (mean): there is no such control with regret.mean; there are none"),
        ("{far/bsfl: regret.mean}", "there is no scenario \"far\"; there are small"),
        ("{small@1/bsfl: regret.mean}", "there is no point 1"),
    ] {
        let answer = workplace(&explained(because)).fedgenie(&["validate", "--claims", "claims", "--quiet"]);
        assert_eq!(answer.code, 2, "{because}: {answer:?}");
        assert!(answer.stderr.contains(complaint), "{because}: {}", answer.stderr);
    }
}

/// The same policies in one scenario, and in two that each lack some, have the same differences.
#[test]
fn policies_are_compared_over_scenarios_without_some() {
    let one = validate(&workplace(CLAIM));
    let claim = changed(
        CLAIM,
        "seeds = 6\n",
        "seeds = 6\nwithout = [\"policy.random\"]\n[scenario.others]\nfile = \"../scenario.toml\"\nseeds = 6\nwithout = [\"policy.bsfl\"]\n",
    );
    let claim =
        changed(&claim, "policy = \"bsfl\", against", "policy = \"bsfl\", other = { scenario = \"others\" }, against");
    let two = validate(&workplace(&claim));
    let rows = |found: &Value| found["claims"][0]["checks"][1]["rows"].clone();
    assert_eq!(rows(&one), rows(&two));
    let by = |found: &Value| -> Vec<String> {
        let levels = found["claims"][0]["levels"].as_array().unwrap();
        let of = |level: &Value| {
            level["reached"].as_array().unwrap().iter().map(|reached| reached["by"].to_string()).collect()
        };
        levels.iter().map(of).map(|by: Vec<String>| by.join(" ")).collect()
    };
    assert_eq!(by(&two), ["\"random\" \"genie\"", "\"bsfl\" \"genie\""]);
    // Other seeds are no pairs.
    let claim = changed(&claim, "seeds = 6\nwithout = [\"policy.bsfl\"]", "seeds = 5\nwithout = [\"policy.bsfl\"]");
    let answer = workplace(&claim).fedgenie(&["validate", "--claims", "claims", "--quiet"]);
    assert_eq!(answer.code, 2, "{answer:?}");
    assert!(answer.stderr.contains("bsfl and genie have runs of different seeds"), "{}", answer.stderr);
}

/// A number that may be of either of two scenarios is refused before any run, in every way to ask.
#[test]
fn a_number_says_of_which_scenario_it_is() {
    let other = "[scenario.other]\nfile = \"../scenario.toml\"\nseeds = 6\nsmoke = { seeds = 3 }\n\n[[check]]\nclaim = \"The genie";
    let claim = changed(CLAIM, "[[check]]\nclaim = \"The genie", other);
    let claim = changed(
        &claim,
        "policies = [\"genie\"], value = \"regret.mean\" }",
        "policies = [\"genie\"], value = \"regret.mean\", less = \"regret.mean\" }\nbecause = \"It has {genie: regret.mean}.\"",
    );
    for words in [&["validate", "--claims", "claims"][..], &["validate", "--claims", "claims", "--smoke"]] {
        let answer = workplace(&claim).fedgenie(words);
        assert_eq!(answer.code, 2, "{answer:?}");
        let why = "because: genie: expected SCENARIO/ before it: the claim has several";
        assert!(answer.stderr.contains(why) && answer.stdout.is_empty(), "{answer:?}");
    }
    let claim = changed(&claim, "{genie: regret.mean}", "{small/genie: regret.mean}");
    let answer = workplace(&claim).fedgenie(&["validate", "--claims", "claims", "--quiet"]);
    assert_eq!(answer.code, 0, "{answer:?}");
}
