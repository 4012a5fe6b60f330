//! Upload of whole jobs that answer a probe: by hand.

use super::super::support::{SCENARIO, Workplace, line_of};
use serde_json::Value;

/// Five clients, of which two a round train; jobs of 0.1, 1 and 0.5 s.
const WORLD: &str = r#"
name = "answers"
seeds = 1
[stop]
rounds = 4
[population]
clients = 5
[population.latency]
download = { constant = "0.1 s" }
compute = { constant = "1 s" }
upload = { constant = "0.5 s" }
[task.softmax-regression]
data = { synthetic = { train = 100, test = 20, height = 4, width = 4, classes = 3 } }
[training]
batch = 8
optimizer = { sgd = { lr = 0.1 } }
[protocol.synchronous]
cohort = 2
[evaluate]
every = 1
"#;

/// Policies whose candidates train: kind, parameters.
const POLICIES: [(&str, &str); 3] = [
    ("proxyrl", "contribution = \"training\"\nlambda = 1.0\naccuracy = \"test_accuracy\"\n"),
    ("fedrl", "accuracy = \"test_accuracy\"\n"),
    ("power-of-choice", "losses = \"trained\"\ncandidates = 5\n"),
];

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

fn arms((kind, lines): (&str, &str)) -> String {
    let arm = |label: &str, more: &str| format!("[policy.{label}]\nkind = \"{kind}\"\n{lines}{more}");
    let both = [("plain", ""), ("loss", "answers = \"loss\"\n"), ("update", "answers = \"update\"\n")];
    both.map(|(label, more)| arm(label, more)).concat()
}

#[test]
fn a_loss_is_a_number_and_an_update_is_an_upload() {
    for policy in POLICIES {
        let place = Workplace::with(&format!("{WORLD}[policy.random]\n{}", arms(policy)));
        place.run_into("out", &[]);
        let run = |arm: &str| place.json(&format!("out/runs/{arm}-s1/run.json"));
        let traffic = |arm: &str, way: &str| number(&run(arm)["traffic"][way]);
        // Eight jobs of one size, and in each of four rounds five that are looked at.
        let model = traffic("random", "up_bytes") / 8;
        assert_eq!(traffic("random", "up_bytes"), 8 * model);
        assert!(model > 100, "{model}");
        for (arm, up, time) in [("plain", 8, 1.1), ("loss", 8, 1.1), ("update", model, 1.6)] {
            let moved = [traffic(arm, "down_bytes"), traffic(arm, "up_bytes")];
            assert_eq!(moved, [(8 + 20) * model, 8 * model + 20 * up], "{policy:?}, {arm}");
            let found = run(arm)["virtual_time_s"].as_f64().unwrap();
            approx::assert_abs_diff_eq!(found, 4.0 * (time + 1.6), epsilon = 1e-9);
            assert_eq!(run(arm)["probe_compute_s"], 20.0, "all of them do the whole job");
        }
        // The loss is the same, so that nothing is learned or selected otherwise.
        let model = |arm: &str| run(arm)["digest"]["model"].clone();
        assert_eq!([model("plain"), model("loss")], [model("update"), model("update")], "{policy:?}");
        let resolved = place.text("out/scenario.toml");
        let plain = resolved.split_once("[policy.plain]").unwrap().1.split("[policy").next().unwrap();
        assert!(plain.contains("answers = \"loss\""), "what is left out is written out: {resolved}");
    }
}

/// A round costs five losses or five updates, and two jobs: the price asked beforehand is the one booked.
#[test]
fn the_answers_count_against_a_budget() {
    let place = Workplace::with(&format!("{WORLD}[policy.random]\n"));
    place.run_into("out", &[]);
    let model = number(&place.json("out/runs/random-s1/run.json")["traffic"]["up_bytes"]) / 8;
    let rounds = |answers: &str, bytes: u64| {
        let budget = format!("[budget]\ntraffic = \"{bytes} B\"\nleast = 2\n");
        let (_, lines) = POLICIES[2];
        let policy = format!("[policy.power-of-choice]\n{lines}answers = \"{answers}\"\n");
        let place = Workplace::with(&format!("{WORLD}{budget}{policy}"));
        assert_eq!(place.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]).code, 0);
        let run = place.json("out/runs/power-of-choice-s1/run.json");
        let moved = number(&run["traffic"]["up_bytes"]) + number(&run["traffic"]["down_bytes"]);
        (number(&run["rounds"]), moved)
    };
    let (loss, update) = (5 * (model + 8) + 4 * model, 5 * 2 * model + 4 * model);
    assert_eq!(rounds("loss", 3 * loss), (3, 3 * loss));
    assert_eq!(rounds("loss", 3 * loss - 1), (2, 2 * loss));
    assert_eq!(rounds("update", 2 * update), (2, 2 * update));
    assert_eq!(rounds("update", 2 * update - 1), (1, update));
}

#[test]
fn where_nobody_trains_for_a_probe_the_key_is_refused() {
    for (policy, why) in [
        ("[policy.proxyrl]\ncontribution = \"inference\"\nanswers = \"loss\"\n", "contribution is not \"training\""),
        ("[policy.proxyrl]\nanswers = \"update\"\n", "contribution is not \"training\""),
        ("[policy.power-of-choice]\nanswers = \"loss\"\n", "losses is not \"trained\""),
    ] {
        let text = format!("{WORLD}{policy}");
        let answer = Workplace::with(&text).fedgenie(&["run", SCENARIO]);
        assert_eq!(answer.code, 2, "{answer:?}");
        let place = format!("{SCENARIO}:{}: policy.", line_of(&text, "answers ="));
        assert!(answer.stderr.contains(&place) && answer.stderr.contains(why), "{answer:?}");
    }
    let text = format!("{WORLD}[policy.fedrl]\naccuracy = \"test_accuracy\"\nanswers = \"gradient\"\n");
    let answer = Workplace::with(&text).fedgenie(&["run", SCENARIO]);
    assert!(answer.code == 2 && answer.stderr.contains("policy.fedrl.answers"), "{answer:?}");
}
