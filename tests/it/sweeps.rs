//! An experiment in pieces: broken off and resumed, in parts one after the other, and in parts at once, by real
//! processes.

use super::replay::{BANDIT, LEARNING};
use super::support::{Answer, SCENARIO, Workplace, assert_same_folders, changed};
use std::fs;
use std::path::Path;
use std::process::Child;

// ---------------------------------------------------------------------------------------------- in pieces

#[test]
fn resuming_completes_what_is_missing() {
    for scenario in [BANDIT, LEARNING] {
        let place = Workplace::with(scenario);
        place.run_into("whole", &["--events"]);
        place.run_into("out", &["--events"]);
        let kept = place.path("out/runs/bsfl-s1/rounds.jsonl");
        let written = fs::metadata(&kept).unwrap().modified().unwrap();
        fs::remove_dir_all(place.path("out/runs/bsfl-s2")).unwrap();
        fs::remove_file(place.path("out/summary.json")).unwrap();
        place.run_into("out", &["--events", "--resume"]);
        assert_eq!(fs::metadata(&kept).unwrap().modified().unwrap(), written, "what was complete is not run again");
        assert_eq!(place.json("out/summary.json"), place.json("whole/summary.json"));
        assert_same_folders(&place, "whole", "out");
        assert_eq!(place.fedgenie(&["verify", "out"]).code, 0);
    }
}

#[test]
fn a_run_that_was_broken_off_is_run_again() {
    let place = Workplace::with(BANDIT);
    place.run_into("whole", &[]);
    place.run_into("out", &[]);
    // As a process that was killed leaves it: a run in its own folder, and one that had only one of its files in the
    // end.
    fs::create_dir(place.path("out/.fedgenie/process-0")).unwrap();
    fs::write(place.path("out/.fedgenie/process-0/alive"), "").unwrap();
    fs::rename(place.path("out/runs/random-s2"), place.path("out/.fedgenie/process-0/random-s2")).unwrap();
    fs::remove_file(place.path("out/runs/random-s3/run.json")).unwrap();
    fs::remove_file(place.path("out/runs/random-s3/digests.bin")).unwrap();
    place.run_into("out", &["--resume"]);
    assert_same_folders(&place, "whole", "out");
    assert_nothing_unfinished(&place, "out");
}

#[test]
fn a_model_that_diverges_ends_its_run_and_leaves_the_others_alone() {
    let swept = format!("{LEARNING}\n[sweep]\n\"training.optimizer.sgd.lr\" = [0.02, 100.0]\n");
    let place = Workplace::with(&swept);
    let answer = place.fedgenie(&["run", "scenario.toml", "--quiet", "--out", "out"]);
    assert_eq!(answer.code, 3);
    assert!(
        answer.stderr.contains("run bsfl-p1-s1 failed: the model diverged: the update of client"),
        "{}",
        answer.stderr
    );
    assert!(!answer.stderr.contains("-p0-"), "{}", answer.stderr);
    assert!(!place.path("out/runs/bsfl-p1-s1/run.json").exists(), "a run that failed is not complete");
    assert!(place.json("out/runs/bsfl-p0-s1/run.json")["final"]["test_loss"].as_f64().unwrap() > 0.0);
    // Its records up to its end stay, and the replay fails in the same way.
    assert!(place.json("out/runs/bsfl-p1-s1/failed.json")["error"].as_str().unwrap().starts_with("the model diverged"));
    let answer = place.fedgenie(&["verify", "out"]);
    assert_eq!(
        (answer.code, answer.stdout.as_str()),
        (0, "out: 8 runs replayed (4 of them failed as before), no difference\n")
    );
    place.write("out/runs/bsfl-p1-s1/failed.json", "{\"error\": \"no memory\"}");
    let answer = place.fedgenie(&["verify", "out"]);
    assert_eq!(answer.code, 1);
    assert!(answer.stdout.starts_with("first difference: run bsfl-p1-s1: the replay failed: the model"), "{answer:?}");
}

#[test]
fn resuming_into_a_new_folder_is_running() {
    let place = Workplace::with(BANDIT);
    place.run_into("whole", &[]);
    place.run_into("out", &["--resume"]);
    assert_same_folders(&place, "whole", "out");
}

#[test]
fn shards_into_one_folder_equal_the_whole() {
    for scenario in [BANDIT, LEARNING] {
        let place = Workplace::with(scenario);
        place.run_into("whole", &[]);
        place.run_into("out", &["--shard", "0/2"]);
        let whole = place.digests("whole");
        // Seeds 1 and 3, with all policies.
        let policies = place.json("whole/manifest.json")["arms"].as_array().unwrap().len();
        let first: Vec<_> = whole.chunks(policies).step_by(2).flatten().cloned().collect();
        assert_eq!(place.digests("out"), first);
        let answer = place.fedgenie(&["verify", "out"]);
        assert_eq!(answer.code, 1);
        assert!(answer.stdout.contains("runs replayed, no difference\n"), "{answer:?}");
        assert!(answer.stdout.contains("runs are missing in out or its summary: "), "{answer:?}");
        place.run_into("out", &["--shard", "1/2"]);
        assert_eq!(place.digests("out"), whole);
        assert_same_folders(&place, "whole", "out");
        assert_eq!(place.fedgenie(&["verify", "out"]).code, 0);
    }
}

// ---------------------------------------------------------------------------------------------- parts at once

/// No process has left anything unfinished in a result folder.
fn assert_nothing_unfinished(work: &Workplace, folder: &str) {
    fn below(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            found.push(path.display().to_string());
            if path.is_dir() {
                below(&path, found);
            }
        }
    }
    let mut found = Vec::new();
    below(&work.path(folder), &mut found);
    let unfinished = |path: &&String| path.ends_with(".part") || path.contains("/process-");
    assert_eq!(found.iter().find(unfinished), None);
}

/// All answers of processes that run at the same time.
fn answers(processes: Vec<Child>) -> Vec<Answer> {
    processes.into_iter().map(Answer::of).collect()
}

/// Starts all parts of an experiment at once.
fn parts(work: &Workplace, count: usize) -> Vec<Answer> {
    let start = |part| {
        let shard = format!("{part}/{count}");
        work.start(&["run", SCENARIO, "--out", "out", "--quiet", "--threads", "1", "--shard", &shard])
    };
    answers((0..count).map(start).collect())
}

#[test]
fn parts_at_once_equal_the_whole() {
    let work = Workplace::with(BANDIT);
    work.run_into("whole", &[]);
    // Of three pairs of point and seed.
    for count in [2, 2, 3, 3, 3, 3, 5, 5] {
        for (part, answer) in parts(&work, count).into_iter().enumerate() {
            let says =
                if part < 3 { String::new() } else { format!("fedgenie: warning: shard {part}/{count} has no run: ") };
            assert!(answer.code == 0 && answer.stderr.starts_with(&says), "{answer:?}");
            assert_eq!(answer.stderr.is_empty(), part < 3, "{answer:?}");
        }
        assert_same_folders(&work, "whole", "out");
        assert_nothing_unfinished(&work, "out");
        let answer = work.fedgenie(&["verify", "out"]);
        assert_eq!((answer.code, answer.stdout.as_str()), (0, "out: 6 runs replayed, no difference\n"), "{answer:?}");
        fs::remove_dir_all(work.path("out")).unwrap();
    }
}

/// By mistake, or because a scheduler starts a job again: one process makes the runs, and the others leave it alone.
#[test]
fn the_same_part_twice_at_once() {
    let work = Workplace::with(BANDIT);
    work.run_into("whole", &[]);
    for _ in 0..4 {
        let words = ["run", SCENARIO, "--out", "out", "--quiet", "--resume"];
        let found = answers((0..3).map(|_| work.start(&words)).collect());
        for answer in &found {
            let is_refused = answer.code == 2 && answer.stderr.contains("another process carries out this experiment");
            assert!(is_refused || (answer.code, answer.stderr.as_str()) == (0, ""), "{answer:?}");
        }
        assert!(found.iter().any(|answer| answer.code == 0));
        assert_same_folders(&work, "whole", "out");
        fs::remove_dir_all(work.path("out")).unwrap();
    }
}

#[test]
fn parts_of_different_scenarios_do_not_mix() {
    let work = Workplace::with(BANDIT);
    for _ in 0..4 {
        let start = |rounds, shard| {
            work.start(&["run", SCENARIO, "--out", "out", "--quiet", "--set", rounds, "--shard", shard])
        };
        let mut found = answers(vec![start("stop.rounds=20", "0/2"), start("stop.rounds=21", "1/2")]);
        found.sort_by_key(|answer| answer.code);
        assert_eq!((found[0].code, found[1].code), (0, 2), "{found:?}");
        assert!(found[1].stderr.contains("out holds another experiment (bandit)"), "{found:?}");
        // Seeds 1 and 3, or seed 2.
        let runs = work.json("out/manifest.json")["runs"].as_array().unwrap().len();
        assert!([2, 4].contains(&runs), "{runs}");
        fs::remove_dir_all(work.path("out")).unwrap();
    }
}

/// Of two processes that are to run the whole, one refuses.
#[test]
fn only_one_process_begins_an_experiment() {
    let work = Workplace::with(BANDIT);
    let words = ["run", SCENARIO, "--out", "out", "--quiet"];
    let mut found = answers((0..2).map(|_| work.start(&words)).collect());
    found.sort_by_key(|answer| answer.code);
    assert_eq!((found[0].code, found[1].code), (0, 2), "{found:?}");
    assert!(found[1].stderr.contains("out holds this very experiment"), "{found:?}");
    assert_eq!(work.fedgenie(&["verify", "out"]).code, 0);
}

/// Part 1 of 2 has the runs of seed 2, whose client is faster than the reward allows; part 0 has those of seed 1.
#[test]
fn a_part_checks_its_own_worlds() {
    let scenario = changed(BANDIT, "clients = 12", "clients = 1");
    let scenario = changed(&scenario, "cohort = 4", "cohort = 1");
    let scenario = changed(&scenario, "[policy.bsfl]\n[policy.random]", "[policy.random]");
    let scenario = changed(&scenario, "tau_min = \"50 ms\"", "tau_min = \"100 ms\"");
    let compute = "{ lognormal = { median = { uniform = [\"0.1 s\", \"1 s\"] }, sigma = 0.5 } }";
    let scenario = changed(&scenario, compute, "{ constant = { uniform = [\"0 ms\", \"100 ms\"] } }");
    let mut seeds: Vec<u32> = (1..=12).collect();
    let is_good = |seed: &u32| {
        let work = Workplace::with(&changed(&scenario, "seeds = 3", &format!("seeds = [{seed}]")));
        work.fedgenie(&["run", SCENARIO, "--quiet"]).code == 0
    };
    seeds.sort_by_key(|seed| !is_good(seed));
    let (good, bad) = (seeds[0], seeds[11]);
    assert!(is_good(&good) && !is_good(&bad), "both kinds of seeds are among twelve");
    let work = Workplace::with(&changed(&scenario, "seeds = 3", &format!("seeds = [{good}, {bad}]")));
    work.run_into("out", &["--shard", "0/2"]);
    let answer = work.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet", "--shard", "1/2"]);
    assert!(answer.code == 2 && answer.stderr.contains("regret.tau_min"), "{answer:?}");
    let answer = work.fedgenie(&["run", SCENARIO, "--out", "other", "--quiet"]);
    assert!(answer.code == 2 && answer.stderr.contains("regret.tau_min"), "{answer:?}");
    assert!(!work.path("other").exists());
}

// ---------------------------------------------------------------------------------------------- missing runs

#[test]
fn verify_names_missing_runs_and_the_command_that_makes_them() {
    let work = Workplace::with(BANDIT);
    work.run_into("my results", &["--shard", "1/3"]);
    let answer = work.fedgenie(&["verify", "my results"]);
    let command = "fedgenie run 'my results/scenario.toml' --out 'my results' --resume";
    let missing = "bsfl-s1, random-s1, bsfl-s3, random-s3";
    assert_eq!(
        (answer.code, answer.stdout),
        (
            1,
            format!(
                "my results: 2 runs replayed, no difference\n4 runs are missing in my results or its summary: {missing}; `{command}` makes them\n"
            )
        )
    );
    let json = work.fedgenie(&["verify", "my results", "--json"]);
    let verdict: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((json.code, verdict["missing"][3].as_str()), (1, Some("random-s3")));
    work.run_into("whole", &[]);
    let words = ["run", "my results/scenario.toml", "--out", "my results", "--resume", "--quiet"];
    assert_eq!((verdict["completion"].as_str(), work.fedgenie(&words).code), (Some(command), 0));
    assert_same_folders(&work, "whole", "my results");
    assert_eq!(work.fedgenie(&["verify", "my results"]).code, 0);
}

/// A summary without a run that is there, as it could be left by processes that wrote it side by side.
#[test]
fn verify_sees_a_run_that_the_summary_lacks() {
    let work = Workplace::with(BANDIT);
    work.run_into("out", &[]);
    let mut summary = work.json("out/summary.json");
    summary["runs"].as_array_mut().unwrap().remove(5);
    let text = serde_json::to_string_pretty(&summary).unwrap() + "\n";
    let digest = blake3::hash(text.as_bytes()).to_hex().to_string();
    work.write("out/summary.json", text);
    let mut manifest = work.json("out/manifest.json");
    manifest["files"]["summary.json"] = digest.into();
    work.write("out/manifest.json", serde_json::to_string(&manifest).unwrap());
    let answer = work.fedgenie(&["verify", "out"]);
    assert_eq!(answer.code, 1, "{answer:?}");
    assert!(answer.stdout.contains("1 run is missing in out or its summary: random-s3; "), "{answer:?}");
    work.run_into("out", &["--resume"]);
    assert_eq!(work.fedgenie(&["verify", "out"]).code, 0);
}

#[test]
fn verify_of_an_unfinished_folder() {
    let work = Workplace::with(BANDIT);
    work.run_into("out", &[]);
    fs::remove_file(work.path("out/manifest.json")).unwrap();
    let replayed = |answer: &Answer, runs: &str, rest: &str| {
        assert_eq!((answer.code, answer.stderr.as_str()), (1, ""), "{answer:?}");
        let expected = format!("out: {runs} runs replayed, no difference\n{rest}");
        assert!(answer.stdout.starts_with(&expected), "{answer:?}");
    };
    let answer = work.fedgenie(&["verify", "out"]);
    replayed(&answer, "6", "all runs are there, and out has no summary; `");
    // Complete runs are replayed, and only the others are missing.
    fs::remove_file(work.path("out/runs/random-s2/run.json")).unwrap();
    let answer = work.fedgenie(&["verify", "out"]);
    replayed(&answer, "5", "1 run is missing in out or its summary: random-s2; `");
    work.run_into("out", &["--resume"]);
    assert_eq!(work.fedgenie(&["verify", "out"]).code, 0);
    // So is a run that somebody deleted from a finished folder.
    fs::remove_dir_all(work.path("out/runs/bsfl-s3")).unwrap();
    let answer = work.fedgenie(&["verify", "out"]);
    replayed(&answer, "5", "1 run is missing in out or its summary: bsfl-s3; `");
    work.run_into("out", &["--resume"]);
    assert_eq!(work.fedgenie(&["verify", "out"]).code, 0);
}

#[test]
fn the_manifest_notes_the_processor_and_verify_does_not_compare_it() {
    let work = Workplace::with(BANDIT);
    work.run_into("out", &[]);
    let mut manifest = work.json("out/manifest.json");
    let text = |key: &str| manifest["cpu"][key].as_str().unwrap().to_owned();
    assert!(!text("path").is_empty() && !text("processor").is_empty(), "{manifest}");
    manifest["cpu"] = serde_json::json!({ "path": "abacus", "processor": "beads" });
    work.write("out/manifest.json", serde_json::to_string(&manifest).unwrap());
    assert_eq!(work.fedgenie(&["verify", "out"]).code, 0);
}
