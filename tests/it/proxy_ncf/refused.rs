//! Bad input, and users with too little to learn from.

use super::{Case, PAPER, place, run, scenario, start};
use crate::support::{Answer, SCENARIO, Workplace, changed, line_of};
use fedgenie::model::weights::to_safetensors;
use serde_json::json;

fn refuse(answer: &Answer, parts: &[&str]) {
    assert_eq!(answer.code, 2, "{answer:?}");
    for part in parts {
        assert!(answer.stderr.contains(part), "{part:?} should be said in {answer:?}");
    }
}

#[test]
fn settings_out_of_range_are_named_with_line_and_key() {
    let text = scenario(&PAPER);
    let task = "task.recommendation";
    for (from, to, key, says) in [
        ("hidden = 5", "hidden = 0", "model.proxy-ncf.hidden", "found 0; expected from 1 to 4096"),
        ("hidden = 5", "hidden = 4_097", "model.proxy-ncf.hidden", "found 4097; expected from 1 to 4096"),
        ("dimensions = 3", "dimensions = 0", "model.proxy-ncf.dimensions", "found 0; expected from 1 to 4096"),
        ("\"pairwise\"", "\"both\"", "model.proxy-ncf.proxy", "known: pairwise, positive"),
        ("window = 7", "window = 0", "staleness_window", "found 0; expected a number of rounds of at least 1"),
        ("\"interacted\"", "\"positives\"", "updated_items", "known: touched, interacted"),
    ] {
        let text = changed(&text, from, to);
        let (place, _) = place(&PAPER);
        place.write(SCENARIO, &text);
        let answer = place.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
        refuse(&answer, &[&format!("{SCENARIO}:{}: {task}.{key}: ", line_of(&text, to)), says]);
        assert!(!place.path("out/summary.json").exists());
    }
}

#[test]
fn without_a_proxy_there_is_nothing_to_ask_for() {
    let text =
        changed(&scenario(&PAPER), "proxy-ncf = { dimensions = 3, hidden = 5, proxy = \"pairwise\" }", "ncf = {}");
    let text = changed(&text, "start = \"start.safetensors\"\n", "");
    let (place, _) = place(&PAPER);
    place.write(SCENARIO, &text);
    let answer = place.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
    let key = format!("{SCENARIO}:{}: policy.proxyrl.contribution: ", line_of(&text, "contribution ="));
    refuse(&answer, &[&key, "\"predicted-loss\"", "proxy-ncf"]);
    place.write(SCENARIO, changed(&text, "\"proxy\"", "\"inference\""));
    run(&place, "out", &[]);
}

#[test]
fn files_that_do_not_fit_are_named() {
    let header = "user,positive,negative\n";
    let (place, files) = place(&PAPER);
    let known = &files.parts["train"][0];
    let line = |positive: usize, negative: usize| format!("{header}11,{},{}\n", 100 + 7 * positive, 100 + 7 * negative);
    let run = || place.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
    place.write("triplets.csv", line(known[0], known[1]));
    refuse(&run(), &["triplets.csv:2: column \"negative\"", "not among the user's ratings for training"]);
    place.write("triplets.csv", line(files.parts["test"][0][0], known[1]));
    refuse(&run(), &["triplets.csv:2: column \"positive\"", "among the ratings for training or validation"]);
    let valid = files.parts["valid"][0][0];
    place.write("triplets.csv", line(valid, files.parts["test"][0][0]));
    refuse(&run(), &["has no triplet of a rating for training"]);

    place.write("triplets.csv", line(known[0], valid));
    let case = Case { h: 6, ..PAPER };
    place.write("start.safetensors", to_safetensors(&start(&case)));
    refuse(&run(), &["start.safetensors", "\"ncf.0.weight\" is F32 of shape [6, 6]; expected F32 of shape [5, 6]"]);
    place.write("start.safetensors", to_safetensors(&start(&PAPER)[..6]));
    refuse(&run(), &["start.safetensors", "holds no tensor \"proxy.0.weight\" of shape [5, 6]"]);
    let mut tensors = start(&PAPER);
    tensors[7].values[2] = f32::NAN;
    place.write("start.safetensors", to_safetensors(&tensors));
    refuse(&run(), &["start.safetensors", "\"proxy.0.bias\""]);
}

/// `c` has nothing to train on, `f` has rated everything.
const RATINGS: &str = "\
user,item,split
a,10,train\na,20,train\na,30,test\nb,30,train\nb,50,train\nb,10,test\nc,40,test\n\
f,10,train\nf,20,train\nf,30,train\nf,40,train\nf,50,train\n";

const EDGES: &str = r#"
name = "edges"
seeds = 1
[stop]
rounds = 6
[population.latency]
download = { constant = "1 s" }
compute = { constant = "1 s" }
upload = { constant = "1 s" }
[task.recommendation]
data = { csv = { file = "ratings.csv", split = "split" } }
model = { proxy-ncf = { dimensions = 2, hidden = 3 } }
cutoffs = [2]
updated_items = "interacted"
[training]
batch = 100
optimizer = { adam = { lr = 0.05 } }
[aggregation]
rows = "selected"
[protocol.synchronous]
cohort = 1
[record]
explain = true
updates = true
[policy.proxyrl]
actor = { softmax = {} }
[policy.round-robin]
[policy.random]
"#;

/// A user who has rated everything has no example to train on: the job has no step, and all numbers stay as they are.
#[test]
fn who_rated_everything_moves_nothing_and_who_has_nothing_is_not_asked() {
    let place = Workplace::with(EDGES);
    place.write("ratings.csv", RATINGS);
    let told = run(&place, "out", &[]);
    assert!(told.contains("1 users have no rating for training, and are never selected"), "{told}");
    let [a, b, f] = [json!([0]), json!([1]), json!([3])];
    let mut of_f = 0;
    for policy in ["proxyrl", "round-robin", "random"] {
        let rounds = place.lines(&format!("out/runs/{policy}-s1/rounds.jsonl"));
        let weights = 2 * (3 * (2 * 2 + 2) + 1);
        let mut up = 0;
        for (index, round) in rounds.iter().enumerate() {
            let selected = &round["selected"];
            assert!([&a, &b, &f].contains(&selected), "{selected}");
            let rows = if *selected == f { 0 } else { 2 };
            up += 4 * (weights + rows * 3) + if policy == "proxyrl" { 24 } else { 0 };
            assert_eq!(round["up_bytes"], up, "{policy}: {round}");
            if *selected == f {
                of_f += 1;
                assert_eq!((&round["updates"]["examples"], &round["updates"]["loss"]), (&json!([5]), &json!([0.0])));
                if index > 0 {
                    let of = |index: usize| rounds[index]["metrics"]["test_auc"].clone();
                    assert_eq!(of(index), of(index - 1));
                }
            }
            if policy == "proxyrl" {
                // Of `a`, `b` and `f`.
                let state = &round["explain"][0]["state"];
                assert!(state[0].as_f64() > Some(0.0) && state[1].as_f64() > Some(0.0), "{state}");
                assert_eq!((state.as_array().unwrap().len(), &state[2]), (3, &json!(0.0)));
            }
        }
    }
    assert!(of_f >= 2);
}
