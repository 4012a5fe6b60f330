//! `run --dry-run`: what it says is what a run does, and it leaves nothing behind.

use super::support::{Answer, PLAIN, SCENARIO, Workplace, changed};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Two points, two policies, two seeds; clients train for two epochs, every third round is evaluated.
const SMALL: &str = r#"
name = "small"
seeds = 2
[stop]
rounds = 7
[population]
clients = 6
[population.latency]
download = { constant = "1 s" }
compute = { uniform = ["1 s", "3 s"] }
upload = { constant = "1 s" }
[task.softmax-regression]
data = { synthetic = {} }
partition = "iid"
[training]
epochs = 2
batch = 16
optimizer = { sgd = { lr = 0.01 } }
[evaluate]
every = 3
[protocol.synchronous]
cohort = 3
[policy.random]
[policy.round-robin]
[sweep]
"protocol.synchronous.cohort" = [2, 3]
"#;

fn dry(place: &Workplace, more: &[&str]) -> Answer {
    place.fedgenie(&[&["run", SCENARIO, "--dry-run"], more].concat())
}

/// The forecast as JSON, from a command that writes nothing to standard error.
fn forecast(place: &Workplace, more: &[&str]) -> Value {
    let answer = dry(place, &[&["--json"], more].concat());
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "{answer:?}");
    serde_json::from_str(&answer.stdout).unwrap()
}

fn known(value: f64) -> Value {
    json!({ "value": value, "basis": "known" })
}

fn estimated(value: f64) -> Value {
    json!({ "value": value, "basis": "estimated" })
}

/// Rounds, updates that arrived and evaluations in the records of a run.
fn recorded(place: &Workplace, run: &str) -> [usize; 3] {
    let rounds = place.lines(&format!("out/runs/{run}/rounds.jsonl"));
    let arrived = rounds.iter().map(|round| round["arrived"].as_array().unwrap().len()).sum();
    let evaluated = rounds.iter().filter(|round| !round["metrics"].as_object().unwrap().is_empty()).count();
    [rounds.len(), arrived, evaluated]
}

#[test]
fn counts_are_those_of_the_records() {
    let place = Workplace::with(SMALL);
    let found = forecast(&place, &[]);
    place.run_into("out", &[]);
    let mut all = [0; 3];
    for kind in found["kinds"].as_array().unwrap() {
        let counted = ["rounds", "client_trainings", "evaluations"].map(|what| kind[what]["value"].as_f64().unwrap());
        for seed in [1, 2] {
            let run = format!("{}-p{}-s{seed}", kind["policy"].as_str().unwrap(), kind["point"]);
            let recorded = recorded(&place, &run);
            assert_eq!(counted, recorded.map(|count| count as f64), "{run}");
            all.iter_mut().zip(recorded).for_each(|(all, count)| *all += count);
        }
        assert!(kind["tried_rounds"].as_u64().unwrap() > 0 && kind["runs"] == 2);
    }
    let [rounds, trainings, evaluations] = all.map(|count| count as f64);
    assert_eq!([rounds, trainings, evaluations], [56.0, 140.0, 24.0], "by hand");
    let shape = ["runs", "points", "policies", "seeds", "kept"].map(|what| found[what].as_u64().unwrap());
    assert_eq!(shape, [8, 2, 2, 2, 0]);
    assert_eq!((&found["rounds"], &found["evaluations"]), (&known(rounds), &known(evaluations)));
    assert_eq!(found["client_trainings"], estimated(trainings));
    assert_eq!((&found["epochs"], &found["client_epochs"]), (&json!(2), &estimated(2.0 * trainings)));
    assert_eq!(found["evaluations_for_policies"], known(0.0));
}

/// The forecast of a folder's size is of the order of the files that a run writes.
#[test]
fn bytes_on_disk_are_about_those_of_the_files() {
    let place = Workplace::with(SMALL);
    let bytes = forecast(&place, &["--out", "out", "--events"])["disk_bytes"].as_f64().unwrap();
    place.run_into("out", &["--events"]);
    let mut files = Vec::new();
    below(&place.path("out"), &mut files);
    let is_page = |name: &str| name.ends_with(".html") || name.ends_with(".svg");
    let real: u64 = files.iter().filter(|(name, _)| !is_page(name)).map(|(_, bytes)| bytes.len() as u64).sum();
    assert!((0.5..2.0).contains(&(bytes / real as f64)), "{bytes} and {real}");
}

fn below(folder: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        match path.is_dir() {
            true => below(&path, found),
            false => found.push((path.display().to_string(), fs::read(&path).unwrap())),
        }
    }
}

#[test]
fn nothing_is_written_into_the_folder() {
    let place = Workplace::with(SMALL);
    assert_eq!(dry(&place, &["--out", "out", "--events", "--models"]).code, 0);
    assert!(!place.path("out").exists());
    place.run_into("out", &["--shard", "0/2"]);
    let folder = || {
        let mut files = Vec::new();
        below(&place.path("."), &mut files);
        files
    };
    let before = folder();
    let rest = forecast(&place, &["--out", "out", "--resume"]);
    assert_eq!((&rest["runs"], &rest["kept"], &rest["rounds"]), (&json!(4), &json!(4), &known(28.0)));
    assert_eq!(forecast(&place, &["--out", "out", "--overwrite"])["runs"], 8);
    assert!(before == folder(), "a file has changed");
}

#[test]
fn other_options_count() {
    let place = Workplace::with(SMALL);
    let counts = |more: &[&str]| {
        let found = forecast(&place, more);
        ["runs", "seeds", "threads"].map(|what| found[what].as_u64().unwrap())
    };
    assert_eq!(counts(&["--seeds", "3", "--threads", "1"]), [12, 3, 1]);
    assert_eq!(counts(&["--seeds", "3", "--threads", "3", "--shard", "0/3", "--out", "out"]), [4, 1, 3]);
    assert_eq!(forecast(&place, &["--set", "stop.rounds=30"])["rounds"], known(240.0));
    // 20 steps of a training are no epochs.
    let steps = forecast(&place, &["--set", "training.epochs=", "--set", "training.steps=20"]);
    assert_eq!((&steps["epochs"], &steps["client_epochs"]), (&Value::Null, &Value::Null));
}

/// Jobs take 4 s and there is one round at a time, so that the trial sees the true length of a round.
#[test]
fn ends_that_are_not_rounds_are_estimated_and_explained() {
    let with = |stop: &str| Workplace::with(&changed(PLAIN, "rounds = 12", stop));
    let said = |place: &Workplace| {
        let found = forecast(place, &[]);
        (found["rounds"].clone(), found["notes"].to_string())
    };
    let (rounds, notes) = said(&with("rounds = 12"));
    assert_eq!((rounds, notes.as_str()), (known(12.0), "[]"));
    let (rounds, notes) = said(&with("virtual_time = \"39 s\""));
    assert_eq!(rounds, estimated(10.0));
    assert!(notes.contains("because stop.virtual_time ends it"), "{notes}");
    let (rounds, notes) = said(&with("rounds = 12\nvirtual_time = \"1 h\""));
    assert_eq!((rounds["basis"].as_str(), rounds["value"].as_f64()), (Some("at-most"), Some(12.0)));
    assert!(!notes.contains("stop.virtual_time"), "{notes}");
}

#[test]
fn a_target_may_end_a_run_before() {
    let scenario =
        changed(SMALL, "rounds = 7", "rounds = 7\ntarget = { metric = \"test_accuracy\", at_least = 0.999 }");
    let found = forecast(&Workplace::with(&scenario), &[]);
    assert_eq!(found["rounds"], json!({ "value": 56.0, "basis": "at-most" }));
    assert!(found["notes"].to_string().contains("nobody knows beforehand when stop.target ends it"), "{found}");
}

#[test]
fn a_scenario_that_cannot_run_is_refused_as_run_does() {
    for (from, to) in [("cohort = 3", "cohort = 0"), ("rounds = 7", "roundz = 7"), ("clients = 6", "clients = 1")] {
        let place = Workplace::with(&changed(SMALL, from, to));
        let (run, dry) = (place.fedgenie(&["run", SCENARIO, "--quiet"]), dry(&place, &[]));
        assert_eq!((dry.code, &dry.stdout, &dry.stderr), (2, &String::new(), &run.stderr), "{to}");
        assert!(dry.stderr.starts_with("fedgenie: error: "), "{dry:?}");
    }
    // This is found in the first rounds alone.
    let place = Workplace::with(&changed(SMALL, "lr = 0.01", "lr = 1e38"));
    let answer = dry(&place, &[]);
    assert!(answer.code == 3 && answer.stderr.contains("run random-p0-s1 failed: "), "{answer:?}");
}

#[test]
fn a_folder_that_a_run_refuses_is_refused() {
    let place = Workplace::with(SMALL);
    place.run_into("out", &[]);
    std::fs::create_dir(place.path("notes")).unwrap();
    std::fs::write(place.path("notes/a.txt"), "").unwrap();
    let more = ["--set", "stop.rounds=8"];
    for options in [&["--out", "out"][..], &["--out", "notes"], &["--out", "out", "--resume", more[0], more[1]]] {
        let run = place.fedgenie(&[&["run", SCENARIO, "--quiet"], options].concat());
        let dry = dry(&place, options);
        assert_eq!((dry.code, &dry.stdout, &dry.stderr), (2, &String::new(), &run.stderr), "{options:?}");
        assert!(dry.stderr.starts_with("fedgenie: error: "), "{dry:?}");
    }
}

#[test]
fn a_person_reads_each_number() {
    let place = Workplace::with(SMALL);
    let answer = dry(&place, &[]);
    assert_eq!(answer.code, 0, "{answer:?}");
    for line in [
        "runs              8: 2 points × 2 policies × 2 seeds\n",
        "rounds            56, 7 in a run\n",
        "client trainings  about 140, of 2 epochs each: about 280 client-epochs\n",
        "evaluations       24, 3 in a run\n",
        "disk              nothing; with --out about ",
        "wall time         about ",
        "policy       point  rounds  first round",
        "nothing was carried out, and nothing was written\n",
    ] {
        assert!(answer.stdout.contains(line), "{line:?} is not in\n{}", answer.stdout);
    }
    let plain = Workplace::with(PLAIN);
    let text = dry(&plain, &["--threads", "1"]).stdout;
    assert!(text.contains("client trainings  none\n") && text.contains("evaluations       none\n"), "{text}");
    assert!(text.contains(" on 1 thread of this machine"), "{text}");
}
