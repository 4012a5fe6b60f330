//! `--overwrite` deletes FedGenie's own files and nothing else.

use super::replay::BANDIT;
use super::support::{SCENARIO, Workplace, assert_same_folders, changed};
use std::fs;

/// Files that a person may put into a result folder, with names like those of results.
const NOTES: [&str; 6] =
    ["notes.txt", "mine.svg", "figures/mine.csv", "runs/notes.txt", "runs/bsfl-s1/notes.txt", "runs/mine/rounds.jsonl"];

fn add_notes(work: &Workplace, folder: &str) {
    NOTES.iter().for_each(|name| work.write(&format!("{folder}/{name}"), "mine"));
}

/// The folder holds the experiment with one seed that was run into `fresh`, and the notes.
fn assert_overwritten(work: &Workplace, folder: &str) {
    for name in NOTES {
        assert_eq!(work.text(&format!("{folder}/{name}")), "mine", "{name}");
        fs::remove_file(work.path(&format!("{folder}/{name}"))).unwrap();
    }
    fs::remove_dir(work.path(&format!("{folder}/runs/mine"))).unwrap();
    fs::remove_dir(work.path(&format!("{folder}/figures"))).unwrap();
    assert_same_folders(work, "fresh", folder);
    assert_eq!(work.fedgenie(&["verify", folder]).code, 0);
}

const ONE_SEED: [&str; 3] = ["--overwrite", "--seeds", "1"];

fn workplace() -> Workplace {
    let work = Workplace::with(BANDIT);
    work.run_into("fresh", &["--seeds", "1"]);
    work
}

#[test]
fn a_finished_folder() {
    let work = workplace();
    work.run_into("out", &["--events", "--timeline"]);
    for format in ["svg", "csv", "html"] {
        assert_eq!(work.fedgenie(&["report", "out", "--format", format]).code, 0);
    }
    add_notes(&work, "out");
    work.run_into("out", &ONE_SEED);
    assert_overwritten(&work, "out");
}

#[test]
fn an_unfinished_folder() {
    let work = workplace();
    work.run_into("out", &[]);
    // As a process that was killed while it wrote its summary leaves it.
    for name in ["manifest.json", "summary.json", "runs/random-s2/run.json"] {
        fs::remove_file(work.path(&format!("out/{name}"))).unwrap();
    }
    work.write("out/.fedgenie/process-0/random-s3/rounds.jsonl", "");
    add_notes(&work, "out");
    work.run_into("out", &ONE_SEED);
    assert_overwritten(&work, "out");
}

/// As `cp -r out/* copy` leaves it: hidden files stay behind.
#[test]
fn a_folder_that_only_its_manifest_tells() {
    let work = workplace();
    work.run_into("out", &[]);
    fs::remove_dir_all(work.path("out/.fedgenie")).unwrap();
    add_notes(&work, "out");
    work.run_into("out", &ONE_SEED);
    assert_overwritten(&work, "out");
}

#[test]
fn a_persons_folder_with_their_scenario() {
    for more in [&["--overwrite"][..], &["--resume"], &["--shard", "0/2"], &[]] {
        let work = Workplace::new();
        // An empty folder of FedGenie's among a person's files makes them none of its results.
        for state in [None, Some("exp/.fedgenie"), Some("exp/.fedgenie/process-0")] {
            state.into_iter().for_each(|state| fs::create_dir_all(work.path(state)).unwrap());
            let mine = [
                ("scenario.toml", BANDIT),
                ("regret.svg", "<svg/>"),
                ("report.html", "mine"),
                ("runs/bsfl-s1/rounds.jsonl", "{}"),
                ("figures/regret.csv", "mine"),
            ];
            mine.iter().for_each(|(name, text)| work.write(&format!("exp/{name}"), text));
            let words = [&["run", "exp/scenario.toml", "--out", "exp", "--quiet"], more].concat();
            let answer = work.fedgenie(&words);
            assert_eq!(answer.code, 2, "{answer:?}");
            assert!(answer.stderr.contains("exp is not empty and holds no FedGenie experiment"), "{answer:?}");
            mine.iter().for_each(|(name, text)| assert_eq!(work.text(&format!("exp/{name}")), *text));
            assert_eq!(fs::read_dir(work.path("exp")).unwrap().count(), 5 + usize::from(state.is_some()));
        }
    }
}

/// A manifest of somebody else's is no leave to delete.
#[test]
fn a_folder_with_a_foreign_manifest() {
    let work = Workplace::with(BANDIT);
    work.write("out/manifest.json", "{\"tool\": \"npm\", \"files\": {\"notes.txt\": \"\"}}");
    work.write("out/notes.txt", "mine");
    let answer = work.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet", "--overwrite"]);
    assert!(answer.code == 2 && answer.stderr.contains("holds no FedGenie experiment"), "{answer:?}");
    assert_eq!(work.text("out/notes.txt"), "mine");
}

#[test]
fn the_scenario_in_a_result_folder() {
    let work = workplace();
    work.run_into("out", &[]);
    work.write("out/my.toml", changed(BANDIT, "rounds = 30", "rounds = 7"));
    work.run_file("out/my.toml", "out", &["--overwrite"]);
    assert_eq!(work.text("out/my.toml"), changed(BANDIT, "rounds = 30", "rounds = 7"));
    assert_eq!(work.json("out/runs/bsfl-s3/run.json")["rounds"], 7);
    fs::remove_file(work.path("out/my.toml")).unwrap();
    work.run_into("out", &["--overwrite"]);
    work.run_file("out/scenario.toml", "out", &ONE_SEED);
    assert_same_folders(&work, "fresh", "out");
}

/// Names in a list that lead out of the folder, or are of files that FedGenie does not write, are not followed.
#[test]
fn a_manifest_that_lists_files_elsewhere() {
    let work = workplace();
    work.run_into("out", &[]);
    work.write("mine.txt", "mine");
    let mut manifest = work.json("out/manifest.json");
    let absolute = work.path("mine.txt").display().to_string();
    let notes = ["notes.txt", "my.toml", "figures/notes.txt", "pictures/mine.svg"];
    notes.iter().for_each(|name| work.write(&format!("out/{name}"), "mine"));
    for name in ["../mine.txt", &absolute].into_iter().chain(notes) {
        manifest["files"][name] = "".into();
        let written = work.text("out/.fedgenie/written");
        work.write("out/.fedgenie/written", format!("{written}{name}\n"));
    }
    manifest["failed"] = serde_json::json!(["../../fresh/runs/bsfl-s1"]);
    work.write("out/manifest.json", serde_json::to_string(&manifest).unwrap());
    work.run_into("out", &ONE_SEED);
    assert_eq!(work.text("mine.txt"), "mine");
    for name in notes {
        assert_eq!(work.text(&format!("out/{name}")), "mine", "{name}");
        fs::remove_file(work.path(&format!("out/{name}"))).unwrap();
    }
    assert_same_folders(&work, "fresh", "out");
}
