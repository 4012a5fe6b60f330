//! Ratings at the edges of ranking, features and rounds: each has a documented outcome or a named error.

use super::support::{Workplace, changed};
use serde_json::json;

/// `c` has nothing to train on, `e` and `f` nothing to be found, `f` has rated everything; items 20 and 40 have no
/// features.
const RATINGS: &str = "\
user,item,split
a,10,train\na,20,train\na,30,test\nb,30,train\nb,50,train\nb,10,test\nc,40,test\ne,20,train\n\
f,10,train\nf,20,train\nf,30,train\nf,40,train\nf,50,train\n";

const TEXT: &str = "movie,x,y\n50,0.5,-1\n10,1,0.25\n30,-0.75,0.5\n";

const SCENARIO: &str = r#"
name = "edges"
seeds = 1
[stop]
rounds = 3
[population.latency]
download = { constant = "1 s" }
compute = { constant = "1 s" }
upload = { constant = "1 s" }
[task.recommendation]
data = { csv = { file = "ratings.csv", split = "split" } }
cutoffs = [2]
[task.recommendation.model.dmrl]
text = "text.csv"
dim = 4
factors = 2
hidden = 3
attention_hidden = 2
negatives = 2
[training]
batch = 100
optimizer = { sgd = { lr = 0.5 } }
[protocol.deadline]
cohort = 2
deadline = "10 s"
[policy.mab-frs]
[policy.rpfl]
"#;

fn place(scenario: &str, ratings: &str) -> Workplace {
    let place = Workplace::with(scenario);
    place.write("ratings.csv", ratings);
    place.write("text.csv", TEXT);
    place
}

#[test]
fn users_and_items_without_something_are_counted_and_the_others_ranked() {
    let place = place(SCENARIO, RATINGS);
    let answer = place.fedgenie(&["run", "scenario.toml", "--out", "out"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    assert!(answer.stderr.contains("1 users have rated everything that there is, and give no example"), "{answer:?}");
    assert!(answer.stderr.contains("2 of 5 items have no text features: zeros"), "{answer:?}");
    for run in place.json("out/summary.json")["runs"].as_array().unwrap() {
        let expected = json!({
            "users": 5, "items": 5, "train": 10, "valid": 0, "test": 3,
            // `c` is ranked, though no client has anything of hers.
            "test_users": 3, "users_without_test": 2, "users_without_train": 1,
            "users_without_negatives": 1, "items_without_text": 2,
        });
        assert_eq!(run["data"], expected);
        // A user without ratings has a client without examples, one with all items rated a client without a step.
        assert_eq!(run["partition"]["sizes"], json!([2, 2, 0, 1, 5]));
        let found = run["final"]["test_auc"].as_f64().unwrap();
        // Each of the three has one item to find: among 3, 3 and 5 candidates.
        assert!((0..=24).any(|parts| (found - f64::from(parts) / 24.0).abs() < 1e-9), "{found}");
    }
}

#[test]
fn rounds_in_which_everybody_is_late_leave_the_model_as_it_is() {
    let place = place(&changed(SCENARIO, "deadline = \"10 s\"", "deadline = \"1 s\""), RATINGS);
    place.fedgenie(&["run", "scenario.toml", "--out", "out"]);
    for policy in ["mab-frs", "rpfl"] {
        let rounds = place.lines(&format!("out/runs/{policy}-s1/rounds.jsonl"));
        assert_eq!(rounds.len(), 3, "{policy}");
        for round in &rounds {
            assert_eq!((&round["arrived"], round["late"].as_array().unwrap().len()), (&json!([]), 2), "{round}");
            assert_eq!(round["metrics"], rounds[0]["metrics"], "{policy}: nothing is learned");
        }
        assert_eq!(place.json(&format!("out/runs/{policy}-s1/run.json"))["outcomes"]["late"], 6);
    }
}

#[test]
fn an_update_that_diverges_ends_its_run() {
    let place = place(&changed(SCENARIO, "lr = 0.5", "lr = 1e38"), RATINGS);
    let answer = place.fedgenie(&["run", "scenario.toml"]);
    assert_eq!(answer.code, 3, "{answer:?}");
    for policy in ["mab-frs", "rpfl"] {
        let message = format!("run {policy}-s1 failed: the model diverged: the update of client");
        assert!(answer.stderr.contains(&message), "{answer:?}");
    }
}

#[test]
fn nobody_to_rank_is_said_or_refused() {
    // Whatever is not to be found was trained on.
    let ratings = "user,item,split\na,10,train\na,50,train\na,30,test\nb,10,train\nb,50,train\nb,30,test\n";
    let answer = place(SCENARIO, ratings).fedgenie(&["run", "scenario.toml"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    assert!(answer.stderr.contains("nobody has an item to be found for testing and another"), "{answer:?}");
    assert!(!answer.stdout.contains("test auc") && !answer.stdout.contains("without a model"), "{answer:?}");
    let ratings = "user,item,split\na,10,train\na,50,train\nb,10,train\nb,30,train\n";
    let answer = place(SCENARIO, ratings).fedgenie(&["run", "scenario.toml"]);
    assert_eq!(answer.code, 2, "{answer:?}");
    assert!(answer.stderr.contains("none of which is for testing"), "{answer:?}");
}
