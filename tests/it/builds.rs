//! Runs of another build of the program: refused, made anew, or kept when their first rounds replay to the same
//! digests.
//!
//! Another build is one that wrote other digits; a program that has changed one policy is one under whose label another
//! policy has played.

use super::replay::BANDIT;
use super::support::{SCENARIO, Workplace, assert_same_folders, changed};
use super::validation;
use serde_json::{Value, json};
use std::fs;

const OTHER: &str = "0123456789abcdef";

fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// Makes a run one of another build, in its own file and in the manifest.
fn of_another_build(work: &Workplace, folder: &str, run: &str) {
    let name = format!("runs/{run}/run.json");
    let mut document = work.json(&format!("{folder}/{name}"));
    assert_eq!(document["build"].as_str().unwrap().len(), 16);
    document["build"] = json!(OTHER);
    document["blake3"] = json!("");
    let text = format!("{document:#}\n");
    document["blake3"] = json!(digest(&text));
    let text = format!("{document:#}\n");
    work.write(&format!("{folder}/{name}"), &text);
    let mut manifest = work.json(&format!("{folder}/manifest.json"));
    manifest["files"][&name] = json!(digest(&text));
    work.write(&format!("{folder}/manifest.json"), manifest.to_string());
}

/// Has the files of a run be those of another folder, and the manifest vouch for them.
fn take_from(work: &Workplace, from: &str, folder: &str, run: &str) {
    let mut manifest = work.json(&format!("{folder}/manifest.json"));
    for entry in fs::read_dir(work.path(&format!("{from}/runs/{run}"))).unwrap() {
        let name = format!("runs/{run}/{}", entry.unwrap().file_name().to_str().unwrap());
        let bytes = work.read(&format!("{from}/{name}"));
        manifest["files"][&name] = json!(blake3::hash(&bytes).to_hex().to_string());
        work.write(&format!("{folder}/{name}"), bytes);
    }
    work.write(&format!("{folder}/manifest.json"), manifest.to_string());
}

#[test]
fn runs_of_another_build_are_refused_by_name() {
    let work = Workplace::with(BANDIT);
    work.run_into("out", &[]);
    let build = work.json("out/manifest.json")["build"].clone();
    assert_eq!(
        (&work.json("out/runs/bsfl-s1/run.json")["build"], &work.json("out/.fedgenie/experiment.json")["build"]),
        (&build, &build)
    );
    of_another_build(&work, "out", "random-s2");
    let before = work.read("out/runs/random-s2/run.json");
    for more in [&["--resume"][..], &["--shard", "0/2"], &["--shard", "1/2", "--resume"]] {
        let answer = work.fedgenie(&[&["run", SCENARIO, "--out", "out", "--quiet"], more].concat());
        let build = build.as_str().unwrap();
        let says = format!(
            "fedgenie: error: out holds runs of another build of FedGenie ({OTHER}; this is {build}): random-s2; "
        );
        assert!(answer.code == 2 && answer.stderr.starts_with(&says), "{answer:?}");
        assert!(answer.stderr.contains("--accept-checked"), "{answer:?}");
        assert_eq!(work.read("out/runs/random-s2/run.json"), before);
    }
    // A second request for all of them gets them.
    work.run_into("out", &["--overwrite"]);
    assert_eq!(work.json("out/runs/random-s2/run.json")["build"], build);
}

#[test]
fn runs_of_another_build_are_kept_if_their_first_rounds_are_the_same() {
    let work = Workplace::with(&changed(BANDIT, "rounds = 30", "rounds = 150"));
    work.run_into("out", &[]);
    for run in ["random-s2", "bsfl-s1"] {
        of_another_build(&work, "out", run);
    }
    let answer = work.fedgenie(&["verify", "out"]);
    assert!(answer.code == 1 && answer.stdout.contains("other_builds of manifest.json"), "{answer:?}");
    // One of them of a program in which the policy does something else.
    work.write("else.toml", changed(&work.text(SCENARIO), "[policy.bsfl]", "[policy.bsfl]\nkind = \"random\""));
    work.run_file("else.toml", "else", &[]);
    of_another_build(&work, "else", "bsfl-s1");
    take_from(&work, "else", "out", "bsfl-s1");
    let words = ["run", SCENARIO, "--out", "out", "--quiet", "--resume", "--accept-checked"];
    let answer = work.fedgenie(&words);
    assert_eq!(answer.code, 0, "{answer:?}");
    let lines: Vec<&str> = answer.stderr.lines().collect();
    assert_eq!(
        lines[0],
        "fedgenie: 1 run of another build kept: the first rounds, one in 50, replay to the same digests"
    );
    assert!(
        lines[1].starts_with("fedgenie: warning: run bsfl-s1: it is of another build, and differs: round 1: "),
        "{answer:?}"
    );
    assert!(lines[1].ends_with("; it is repeated") && lines.len() == 2, "{answer:?}");
    // Both are unchanged, and one names its origin.
    work.run_into("whole", &[]);
    for run in ["bsfl-s1", "random-s2"] {
        assert_eq!(
            work.read(&format!("out/runs/{run}/rounds.jsonl")),
            work.read(&format!("whole/runs/{run}/rounds.jsonl"))
        );
    }
    let build = work.json("out/manifest.json")["build"].clone();
    let made = work.json("out/runs/random-s2/run.json");
    assert_eq!((&made["build"], &made["accepted"]), (&json!(OTHER), &json!({ "build": build, "rounds": 3 })));
    assert_eq!(work.json("out/manifest.json")["other_builds"], json!({ "random-s2": OTHER }));
    let answer = work.fedgenie(&["verify", "out"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (0, "out: 6 runs replayed, no difference\n"), "{answer:?}");
    // Every reader of the folder is told.
    for words in [&["report", "out"][..], &["export", "out", "--to", "csv", "-o", "tables"], &["diff", "out", "whole"]]
    {
        let answer = work.fedgenie(words);
        let says = format!("1 run is of another build ({OTHER}), kept after a look at the first rounds: random-s2");
        assert!(answer.code == 0 && format!("{}{}", answer.stdout, answer.stderr).contains(&says), "{answer:?}");
    }
    // Nobody is asked twice.
    let answer = work.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet", "--resume"]);
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "{answer:?}");
}

#[test]
fn verify_says_that_another_build_wrote_a_folder() {
    let work = Workplace::with(BANDIT);
    work.run_into("out", &[]);
    let mut manifest = work.json("out/manifest.json");
    manifest["build"] = json!(OTHER);
    let runs: Vec<String> =
        manifest["runs"].as_array().unwrap().iter().map(|run| run.as_str().unwrap().to_owned()).collect();
    work.write("out/manifest.json", manifest.to_string());
    for run in runs {
        of_another_build(&work, "out", &run);
    }
    let answer = work.fedgenie(&["verify", "out"]);
    let says = format!("out was written by build {OTHER} of FedGenie; this is build ");
    assert!(answer.code == 0 && answer.stdout.contains(&says), "{answer:?}");
    work.run_into("mine", &[]);
    let answer = work.fedgenie(&["diff", "mine", "out"]);
    assert!(answer.stdout.contains("mine and out were made by different builds of FedGenie ("), "{answer:?}");
}

/// A policy is changed, and the claims are tested again with the runs that were kept.
#[test]
fn a_validation_takes_no_runs_of_a_program_that_has_changed() {
    let place = validation::workplace(validation::CLAIM);
    let validate = |more: &[&str]| -> Value {
        let answer =
            place.fedgenie(&[&["validate", "--claims", "claims", "--json", "--quiet", "--out", "kept"], more].concat());
        assert_eq!(answer.code, 0, "{answer:?}");
        let mut found = validation::results(&answer);
        found["claims"][0]["seconds"] = 0.into();
        found
    };
    let whole = validate(&[]);
    let entries = fs::read_dir(place.path("kept")).unwrap().map(|entry| entry.unwrap());
    let folder = entries.into_iter().find(|entry| entry.path().is_dir()).unwrap().file_name();
    let folder = format!("kept/{}", folder.to_str().unwrap());
    let falsify = || {
        // Under the label of the genie somebody else has played.
        let resolved = place.text(&format!("{folder}/scenario.toml"));
        place.write("else.toml", resolved.replacen("kind = \"genie\"", "kind = \"random\"", 1));
        let _ = fs::remove_dir_all(place.path("else"));
        place.run_file("else.toml", "else", &[]);
        of_another_build(&place, "else", "genie-s3");
        take_from(&place, "else", &folder, "genie-s3");
        of_another_build(&place, &folder, "random-s1");
    };
    falsify();
    let again = validate(&[]);
    assert_eq!(again["claims"], whole["claims"]);
    let why = |run: &str| format!("{run}: of another build ({OTHER})");
    assert_eq!(again["runs"], json!({ "reused": 16, "made": 2, "made_anew": [why("random-s1"), why("genie-s3")] }));
    falsify();
    let again = validate(&["--accept-checked"]);
    assert_eq!(
        (&again["claims"], &again["runs"]["taken_over"], &again["runs"]["made"]),
        (&whole["claims"], &json!(1), &json!(1))
    );
    let why = again["runs"]["made_anew"][0].as_str().unwrap();
    assert!(why.starts_with("genie-s3: of another build, and differs: round 1: "), "{why}");
    // No round of a run that was put aside can be replayed.
    of_another_build(&place, &folder, "bsfl-s2");
    for entry in fs::read_dir(place.path(&format!("{folder}/runs/bsfl-s2"))).unwrap() {
        let path = entry.unwrap().path();
        if !path.ends_with("run.json") {
            fs::remove_file(path).unwrap();
        }
    }
    let again = validate(&["--accept-checked"]);
    assert_eq!((&again["runs"]["reused"], &again["runs"]["made"]), (&json!(17), &json!(1)));
}

/// An experiment is the same however it was written down.
#[test]
fn equal_scenarios_are_continued_however_they_were_written() {
    let written = |seeds: &str| changed(BANDIT, "seeds = 3\n", seeds);
    for (one, other, more) in [
        ("seeds = [1]\n", "seeds = [1]\n", &["--seeds", "1"][..]),
        ("seeds = [1, 2, 3]\n", "seeds = 3\n", &[]),
        ("seeds = 2\n", "seeds = 2\n", &["--set", "seeds=[1, 2]"]),
    ] {
        let work = Workplace::with(&written(one));
        work.run_into("out", &[]);
        work.write(SCENARIO, written(other));
        let answer = work.fedgenie(&[&["run", SCENARIO, "--out", "out", "--quiet", "--resume"], more].concat());
        assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "{one} {more:?}: {answer:?}");
        work.run_into("anew", more);
        assert_same_folders(&work, "out", "anew");
    }
    // Other seeds, or others first, are another experiment.
    let work = Workplace::with(&written("seeds = [2, 1]\n"));
    work.run_into("out", &[]);
    let answer = work.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet", "--resume", "--seeds", "2"]);
    assert_eq!(answer.code, 2, "{answer:?}");
    // Policies as one writes them, under a sweep: which key comes first, and how a number is spelt, says nothing.
    let sweep = |policy: &str| {
        format!("{}\n[sweep]\n\"regret.alpha\" = [1.0, 5.0]\n", changed(BANDIT, "[policy.bsfl]\n", policy))
    };
    let work = Workplace::with(&sweep("[policy.bsfl]\nalpha = 2\nbeta = 1.50\n"));
    work.run_into("out", &[]);
    work.write(SCENARIO, sweep("[policy.bsfl]\nbeta = 1.5\nkind = \"bsfl\"\nalpha = 2.0\n"));
    let answer = work.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet", "--resume"]);
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "{answer:?}");
}

/// Runs of a scenario are not taken for those of another that was written in its place; more seeds are no other one.
#[test]
fn a_scenario_that_was_edited_in_its_folder_is_not_continued() {
    let work = Workplace::with(BANDIT);
    work.run_into("out", &[]);
    let scenario = work.text("out/scenario.toml");
    work.write("out/scenario.toml", changed(&scenario, "cohort = 4", "cohort = 5"));
    let manifest = work.read("out/manifest.json");
    let answer = work.fedgenie(&["run", "out/scenario.toml", "--out", "out", "--quiet", "--resume"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{answer:?}");
    assert!(answer.stderr.contains("out/scenario.toml was edited after runs of it were made"), "{answer:?}");
    assert_eq!(work.read("out/manifest.json"), manifest);
    work.write("out/scenario.toml", changed(&scenario, "seeds = 3", "seeds = 4"));
    work.run_file("out/scenario.toml", "out", &["--resume"]);
    let answer = work.fedgenie(&["verify", "out"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (0, "out: 8 runs replayed, no difference\n"), "{answer:?}");
}

/// Partial output of a killed process is gone when the folder is complete.
#[test]
fn nothing_is_left_of_a_try_that_was_killed() {
    let work = Workplace::with(BANDIT);
    work.run_into("out", &[]);
    fs::remove_file(work.path("out/manifest.json")).unwrap();
    let parts = ["written.0.part", "written.12.part", "experiment.json.3.part"];
    parts.iter().for_each(|name| work.write(&format!("out/.fedgenie/{name}"), "half of a"));
    work.write("out/.fedgenie/mine.part", "no file of FedGenie's");
    work.run_into("out", &["--resume"]);
    for name in parts {
        assert!(!work.path("out/.fedgenie").join(name).exists(), "{name}");
    }
    assert!(work.path("out/.fedgenie/mine.part").exists());
    fs::remove_file(work.path("out/.fedgenie/mine.part")).unwrap();
    work.run_into("whole", &[]);
    assert_same_folders(&work, "whole", "out");
}
