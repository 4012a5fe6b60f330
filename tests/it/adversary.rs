//! `[adversary]` through the whole program: what hostile clients send, how long they take, who they are, how they are
//! recorded, and where an attack is refused.

use super::checkpoints::{NINE, assert_kept, protocols};
use super::support::{DEVICES, SCENARIO, Workplace, changed};
use serde_json::Value;

/// Images of three classes, three clients by the order of their labels; the model starts at zero.
const IMAGES: &str = r#"
name = "hostile"
seeds = 1
[stop]
rounds = 4
[population]
clients = 3
[population.latency]
download = { constant = "1 s" }
compute = { constant = "4 s" }
upload = { constant = "1 s" }
[task.softmax-regression]
data = { csv = { train = "train.csv", test = "test.csv", label = "kind", group = "user" } }
partition = "by-column"
[training]
batch = 2
optimizer = { sgd = { lr = 0.25 } }
[aggregation]
weighting = "uniform"
[protocol.synchronous]
cohort = 3
[evaluate]
every = 1
clients = true
[policy.random]
"#;

/// Examples of the classes 0, 1 and 2 around corners of their own; `label` is what a user says an example to be.
fn table(users: u32, label: impl Fn(u32, u32) -> u32) -> String {
    let mut text = "user,a,b,kind\n".to_owned();
    for index in 0..24_u32 {
        let (user, class) = (index % users, index / 8);
        let (a, b) = ([3.0, -3.0, 0.0][class as usize], [0.0, 1.0, 4.0][class as usize]);
        let (a, b) = (a + f64::from(index * 7 % 5) / 8.0, b - f64::from(index * 5 % 7) / 8.0);
        text += &format!("{user},{a},{b},{}\n", label(user, class));
    }
    text
}

fn place(scenario: &str, train: &str) -> Workplace {
    let place = Workplace::with(scenario);
    place.write("train.csv", train);
    place.write("test.csv", table(3, |_, class| class));
    place
}

/// The rounds of a scenario on honest data, and the digest of its model.
fn played(scenario: &str, train: &str) -> (Vec<Value>, String) {
    let place = place(scenario, train);
    place.run_into("out", &[]);
    let digest = place.json("out/summary.json")["runs"][0]["digest"]["model"].to_string();
    (place.lines("out/runs/random-s1/rounds.jsonl"), digest)
}

fn honest() -> String {
    table(3, |_, class| class)
}

fn with(attack: &str) -> String {
    format!("{IMAGES}[adversary]\nclients = [2]\nattack = {attack}\n")
}

/// Metrics but those that only a scenario with hostile clients has.
fn shared(round: &Value) -> Value {
    let mut metrics = round["metrics"].clone();
    let hostile = |name: &str| name == "adversary_share" || name.contains("attack_success");
    metrics.as_object_mut().unwrap().retain(|name, _| !hostile(name));
    metrics
}

/// A client that flips labels trains as one whose file has the other labels, and nothing else changes: test data, and
/// the other clients' data.
#[test]
fn flipped_labels_are_those_of_another_file() {
    for (attack, flip) in [
        ("\"label-flip\"", (|class| 2 - class) as fn(u32) -> u32),
        ("{ label-flip = { pairs = [[0, 2]] } }", |class| if class == 0 { 2 } else { class }),
    ] {
        let (flipped, _) = played(&with(attack), &honest());
        let (other, _) = played(IMAGES, &table(3, |user, class| if user == 2 { flip(class) } else { class }));
        let (plain, _) = played(IMAGES, &honest());
        assert_eq!(flipped.len(), 4);
        for ((flipped, other), plain) in flipped.iter().zip(&other).zip(&plain) {
            assert_eq!(shared(flipped), shared(other));
            assert_ne!(shared(flipped), shared(plain));
        }
    }
}

/// One client of one: its model goes twice as far the other way in the first round. All start at zero.
#[test]
fn a_flipped_sign_leads_the_other_way() {
    let alone = changed(IMAGES, "clients = 3", "clients = 1");
    let alone = changed(&changed(&alone, "cohort = 3", "cohort = 1"), "rounds = 4", "rounds = 1");
    let model = |text: &str| {
        let place = Workplace::with(text);
        place.write("train.csv", table(1, |_, class| class));
        place.write("test.csv", honest());
        place.run_into("out", &["--models"]);
        let file = place.read("out/runs/random-s1/model.safetensors");
        let header = u64::from_le_bytes(*file.first_chunk().unwrap()) as usize;
        let (numbers, _) = file[8 + header..].as_chunks::<4>();
        numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect::<Vec<f32>>()
    };
    let attack = |attack: &str| model(&format!("{alone}[adversary]\nshare = 1.0\nattack = {attack}\n"));
    let plain = model(&alone);
    assert!(plain.iter().any(|number| number.abs() > 0.1));
    let times = |factor: f32| plain.iter().map(|number| factor * number).collect::<Vec<f32>>();
    assert_eq!(attack("\"sign-flip\""), times(-1.0));
    assert_eq!(attack("{ sign-flip = { scale = 2.0 } }"), times(-2.0));
    assert_eq!(attack("{ scaled = { factor = 4.0 } }"), times(4.0));
    assert_eq!(attack("{ little-is-enough = { z = 9.0 } }"), plain, "one alone has no deviation");
    assert_eq!(attack("{ free-rider = { sd = 0.0 } }"), times(0.0));
    assert_eq!(attack("{ noise = { sd = 0.0 } }"), plain);
    assert_ne!(attack("{ noise = { sd = 0.1 } }"), plain);
}

/// Five times 4 s of computing, and nothing else.
#[test]
fn a_slow_client_takes_its_time() {
    let (plain, model) = played(IMAGES, &honest());
    let (slow, same) = played(&with("{ slow = { factor = 5.0 } }"), &honest());
    let closed = |rounds: &[Value]| rounds.iter().map(|round| round["closed_s"].as_f64().unwrap()).collect::<Vec<_>>();
    assert_eq!(closed(&plain), [6.0, 12.0, 18.0, 24.0]);
    assert_eq!(closed(&slow), [22.0, 44.0, 66.0, 88.0]);
    let metrics = |rounds: &[Value]| rounds.iter().map(shared).collect::<Vec<Value>>();
    assert_eq!(metrics(&slow), metrics(&plain));
    assert_ne!(same, model, "the share of hostile clients is a metric of its own");
}

/// Records: the hostile among the selected, and their share of all selections so far, by hand.
#[test]
fn selections_of_hostile_clients_are_recorded() {
    let scenario = changed(&with("\"sign-flip\""), "cohort = 3", "cohort = 2");
    let (rounds, _) = played(&scenario, &honest());
    let (mut hostile, mut all) = (0, 0);
    for round in &rounds {
        let selected = round["selected"].as_array().unwrap();
        let found: Vec<&Value> = selected.iter().filter(|client| **client == 2).collect();
        assert_eq!(round["adversaries"].as_array().unwrap().iter().collect::<Vec<_>>(), found);
        hostile += found.len();
        all += selected.len();
        assert_eq!(round["metrics"]["adversary_share"], hostile as f64 / all as f64);
        assert!(round["metrics"].get("test_attack_success").is_none(), "no pairs are exchanged");
    }
    assert!(hostile > 0 && hostile < all);
    let (plain, _) = played(IMAGES, &honest());
    assert!(plain.iter().all(|round| round.get("adversaries").is_none()));
    assert!(plain.iter().all(|round| round["metrics"].get("adversary_share").is_none()));
}

/// The share of examples of class 0 that are taken for class 2, from a model that is far on one side: everybody says
/// that class 0 is class 2, so all of them are in the end, and targets may name the metric.
#[test]
fn exchanged_classes_are_counted() {
    let scenario = changed(&with("{ label-flip = { pairs = [[0, 2]] } }"), "clients = [2]", "share = 1.0");
    let scenario = changed(&scenario, "rounds = 4", "rounds = 60");
    let target = "[evaluate]\ntargets = [{ metric = \"test_attack_success\", at_most = 0.5 }]\n";
    let scenario = changed(&scenario, "[evaluate]\n", target);
    let (rounds, _) = played(&scenario, &honest());
    let success = |round: &Value| round["metrics"]["test_attack_success"].as_f64().unwrap();
    assert_eq!(success(rounds.last().unwrap()), 1.0, "{}", rounds.last().unwrap()["metrics"]);
    // The clients' own examples of class 0 are none any more.
    assert!(rounds.last().unwrap()["metrics"]["client_attack_success_mean"].is_null());
    // Of 24 test examples eight are of class 0: the others are learned.
    assert!((rounds.last().unwrap()["metrics"]["test_accuracy"].as_f64().unwrap() - 2.0 / 3.0).abs() < 0.05);
}

/// The same clients under every policy, and others under another seed.
#[test]
fn a_share_is_drawn_by_the_seed() {
    let scenario = format!("{NINE}{DEVICES}")
        + "[task.classification]\nmodel = { mlp = { hidden = [6] } }\npartition = \"iid\"\n\
           data = { synthetic = { height = 4, width = 4, train = 120, test = 40 } }\n\
           [adversary]\nshare = 0.4\nattack = \"sign-flip\"\n[protocol.synchronous]\ncohort = 9\n\
           [policy.random]\n[policy.round-robin]\n";
    let place = Workplace::with(&changed(&scenario, "seeds = 1", "seeds = 4"));
    place.run_into("out", &[]);
    let of = |policy: &str, seed: u32| {
        let rounds = place.lines(&format!("out/runs/{policy}-s{seed}/rounds.jsonl"));
        let mut all: Vec<u64> = rounds
            .iter()
            .flat_map(|round| round["adversaries"].as_array().unwrap())
            .map(|id| id.as_u64().unwrap())
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let drawn: Vec<Vec<u64>> = (1..=4).map(|seed| of("random", seed)).collect();
    for (index, drawn) in drawn.iter().enumerate() {
        // round(0.4·9)
        assert_eq!(drawn.len(), 4);
        assert_eq!(*drawn, of("round-robin", index as u32 + 1));
    }
    assert!(drawn.iter().any(|other| *other != drawn[0]), "{drawn:?}");
}

/// Under every protocol a run goes on to the same end when it is saved after every round.
#[test]
fn hostile_runs_are_kept_under_every_protocol() {
    let attacks = ["\"sign-flip\"", "{ noise = { sd = 0.1 } }", "{ little-is-enough = { z = 1.0 } }", "\"label-flip\""];
    let mut kept = 0;
    for (index, protocol) in protocols().into_iter().enumerate() {
        let attack = attacks[index % attacks.len()];
        let text = format!(
            "{NINE}{DEVICES}[task.classification]\nmodel = {{ mlp = {{ hidden = [6] }} }}\npartition = \"iid\"\n\
             data = {{ synthetic = {{ height = 4, width = 4, train = 120, test = 40 }} }}\n\
             [adversary]\nclients = [0, 3, 4, 8]\nattack = {attack}\n{protocol}[policy.random]\n"
        );
        kept += assert_kept(&text);
    }
    assert!(kept >= 5);
}

#[test]
fn what_is_not_defined_is_refused_where_it_stands() {
    let good = with("\"sign-flip\"");
    let hindsight = "[regret]\nmeters = []\ncounterfactual = true\n[adversary]";
    for (from, to, path) in [
        ("clients = [2]", "clients = [2]\nshare = 0.5", "adversary"),
        ("clients = [2]", "", "adversary"),
        ("clients = [2]", "clients = [3]", "adversary.clients"),
        ("clients = [2]", "share = 1.5", "adversary.share"),
        ("clients = [2]", "groups = [\"bad\"]", "adversary.groups"),
        ("\"sign-flip\"", "{ sign-flip = { scale = 0.0 } }", "adversary.attack.sign-flip.scale"),
        ("\"sign-flip\"", "\"sign-flop\"", "adversary.attack"),
        ("\"sign-flip\"", "{ label-flip = { pairs = [[0, 7]] } }", "adversary.attack.label-flip"),
        ("\"sign-flip\"", "{ slow = { factor = 0.1 } }", "adversary.attack.slow.factor"),
    ] {
        let text = changed(&good, from, to);
        let answer = place(&text, &honest()).fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
        assert_eq!(answer.code, 2, "{path}: {answer:?}");
        assert!(answer.stderr.contains(path), "{path}: {}", answer.stderr);
        assert!(answer.stderr.contains("scenario.toml:"), "{path}: {}", answer.stderr);
    }
    let little = with("{ little-is-enough = { z = 1.0 } }");
    let regret = "[regret]\ntau_min = \"1 s\"\nalpha = 1.0\nbeta = 1.0\n[adversary]";
    for (text, part) in [
        (changed(&little, "[adversary]", hindsight), "depends on who else is selected"),
        (changed(&little, "[adversary]", "[algorithm.scaffold]\n[adversary]"), "remember"),
        (changed(&with("{ slow = { factor = 2.0 } }"), "[adversary]", regret), "adversary.attack.slow"),
    ] {
        let answer = place(&text, &honest()).fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
        assert!(answer.code == 2 && answer.stderr.contains(part), "{part}: {answer:?}");
    }
}
