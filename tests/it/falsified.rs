//! Result folders that were damaged or falsified: `--resume` repeats, `verify` names, `report` refuses; no command
//! leaves the folder, and none waits without end.

use super::interruption::wait_for;
use super::replay::BANDIT;
use super::support::{Answer, SCENARIO, Workplace, assert_same_folders};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

/// The experiment in `out`.
fn workplace() -> Workplace {
    let work = Workplace::with(BANDIT);
    work.run_into("out", &[]);
    work
}

/// The answer of a command that must end soon on any input.
fn soon(work: &Workplace, words: &[&str]) -> Answer {
    let mut process = work.start(words);
    wait_for(|| process.try_wait().unwrap().is_some());
    Answer::of(process)
}

fn copy(work: &Workplace, from: &str, to: &str) {
    work.write(to, work.read(from));
}

// ---------------------------------------------------------------------------------------------- resume

/// Damage to the folder of a run, and the message about it.
type Damage = (&'static str, fn(&Workplace, &str));

const DAMAGES: [Damage; 12] = [
    ("rounds.jsonl is missing", |work, run| fs::remove_file(work.path(&format!("{run}/rounds.jsonl"))).unwrap()),
    ("rounds.jsonl has 0 bytes", |work, run| work.write(&format!("{run}/rounds.jsonl"), "")),
    ("rounds.jsonl has 99 bytes", |work, run| {
        work.write(&format!("{run}/rounds.jsonl"), &work.read(&format!("{run}/rounds.jsonl"))[..99]);
    }),
    ("rounds.jsonl is not the file", |work, run| {
        let name = format!("{run}/rounds.jsonl");
        work.write(&name, vec![0; work.read(&name).len()]);
    }),
    ("digests.bin is missing", |work, run| fs::remove_file(work.path(&format!("{run}/digests.bin"))).unwrap()),
    ("digests.bin has 0 bytes", |work, run| work.write(&format!("{run}/digests.bin"), "")),
    ("digests.bin is not the file", |work, run| {
        let name = format!("{run}/digests.bin");
        let mut bytes = work.read(&name);
        bytes[40] ^= 1;
        work.write(&name, bytes);
    }),
    ("run.json cannot be read", |work, run| work.write(&format!("{run}/run.json"), "")),
    ("run.json cannot be read", |work, run| {
        let text = work.text(&format!("{run}/run.json"));
        work.write(&format!("{run}/run.json"), &text[..text.len() / 2]);
    }),
    ("run.json is no summary of a run", |work, run| work.write(&format!("{run}/run.json"), "{}")),
    ("run.json is of the policy \"random\", seed 3", |work, run| {
        for name in ["run.json", "rounds.jsonl", "digests.bin"] {
            copy(work, &format!("out/runs/random-s3/{name}"), &format!("{run}/{name}"));
        }
    }),
    ("run.json is of the policy \"bsfl\", seed 2", |work, run| {
        copy(work, "out/runs/bsfl-s2/run.json", &format!("{run}/run.json"));
    }),
];

#[test]
fn damaged_runs_are_repeated() {
    let work = workplace();
    work.run_into("whole", &[]);
    for is_finished in [true, false] {
        for (said, damage) in DAMAGES {
            damage(&work, "out/runs/random-s2");
            if !is_finished {
                fs::remove_file(work.path("out/manifest.json")).unwrap();
            }
            let kept = fs::metadata(work.path("out/runs/bsfl-s1/run.json")).unwrap().modified().unwrap();
            let answer = work.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet", "--resume"]);
            assert_eq!(answer.code, 0, "{said}: {answer:?}");
            assert!(answer.stderr.starts_with("fedgenie: warning: run random-s2: "), "{said}: {answer:?}");
            assert!(
                answer.stderr.contains(said) && answer.stderr.ends_with("; it is repeated\n"),
                "{said}: {answer:?}"
            );
            assert_eq!(answer.stderr.lines().count(), 1, "{answer:?}");
            assert_same_folders(&work, "whole", "out");
            let now = fs::metadata(work.path("out/runs/bsfl-s1/run.json")).unwrap().modified().unwrap();
            assert_eq!(now, kept, "a whole run is not repeated");
        }
    }
    // A number that was changed, in a folder without a manifest and in one with it.
    let name = "out/runs/random-s2/run.json";
    for remove in [true, false] {
        work.write(name, work.text(name).replacen("\"rounds\": 30,", "\"rounds\": 31,", 1));
        if remove {
            fs::remove_file(work.path("out/manifest.json")).unwrap();
        }
        let answer = work.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet", "--resume"]);
        let expected = "fedgenie: warning: run random-s2: run.json is not the file that was written; it is repeated\n";
        assert_eq!((answer.code, answer.stderr.as_str()), (0, expected), "{answer:?}");
        assert_same_folders(&work, "whole", "out");
    }
    // Without its own digest it is not the file that was written either, and without digests of files no complete run.
    for key in ["blake3", "files"] {
        let mut document = work.json(name);
        document.as_object_mut().unwrap().remove(key).unwrap();
        work.write(name, serde_json::to_string(&document).unwrap());
        let answer = work.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet", "--resume"]);
        assert!(answer.stderr.contains("run.json is not the file that was written; it is repeated"), "{answer:?}");
        assert_same_folders(&work, "whole", "out");
    }
}

/// A process of a shard finds another shard's run damaged.
#[test]
fn a_summary_is_without_damaged_runs_and_this_is_said() {
    let work = workplace();
    work.write("out/runs/random-s2/rounds.jsonl", "");
    fs::remove_file(work.path("out/manifest.json")).unwrap();
    let answer = work.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet", "--shard", "0/2"]);
    let expected = "fedgenie: warning: run random-s2 is damaged and left out; --resume makes it again\n";
    assert_eq!((answer.code, answer.stderr.as_str()), (0, expected), "{answer:?}");
    assert_eq!(work.json("out/manifest.json")["runs"].as_array().unwrap().len(), 5);
    let answer = work.fedgenie(&["verify", "out"]);
    assert!(answer.code == 1 && answer.stdout.contains("1 run is missing in out or its summary: random-s2"));
    work.run_into("whole", &[]);
    assert_eq!(work.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet", "--resume"]).code, 0);
    assert_same_folders(&work, "whole", "out");
}

#[test]
fn runs_without_the_files_that_are_wanted_are_repeated() {
    for (option, file) in [("--events", "events.jsonl.gz"), ("--timeline", "timeline.json.gz")] {
        let work = workplace();
        work.run_into("whole", &[option]);
        let answer = work.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet", "--resume", option]);
        assert_eq!(answer.code, 0, "{answer:?}");
        let expected = format!("fedgenie: warning: run bsfl-s1: it was made without {file}; it is repeated\n");
        assert!(answer.stderr.starts_with(&expected), "{answer:?}");
        assert!(answer.stderr.ends_with("fedgenie: warning: … and 1 other runs are repeated\n"), "{answer:?}");
        assert_same_folders(&work, "whole", "out");
        // Now they have them, and a surplus is no harm.
        work.run_into("out", &["--resume", option]);
        work.run_into("out", &["--resume"]);
        assert_same_folders(&work, "whole", "out");
        // The wanted files are as much of a run as its rounds.
        let name = format!("out/runs/random-s3/{file}");
        let bytes = work.read(&name);
        work.write(&name, &bytes[..bytes.len() - 9]);
        let answer = work.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet", "--resume", option]);
        assert!(answer.stderr.starts_with(&format!("fedgenie: warning: run random-s3: {file} has ")), "{answer:?}");
        assert_same_folders(&work, "whole", "out");
    }
}

/// A bandit has no model that `--models` could ask for.
#[test]
fn runs_are_not_repeated_for_a_file_that_they_cannot_have() {
    let work = workplace();
    work.run_into("out", &["--resume", "--models"]);
    assert_eq!(work.fedgenie(&["verify", "out"]).code, 0);
}

// ---------------------------------------------------------------------------------------------- the manifest

/// `verify` says no and names this; nothing else is asked of `report` than that it ends.
fn assert_named(work: &Workplace, part: &str) {
    let answer = soon(work, &["verify", "out"]);
    assert_eq!(answer.code, 1, "{part}: {answer:?}");
    assert!(answer.stdout.contains(part), "{part}: {answer:?}");
    soon(work, &["report", "out", "-o", "page.html"]);
}

#[test]
fn nothing_in_a_manifest_is_believed() {
    let work = workplace();
    let original = work.json("out/manifest.json");
    let says = |edit: &dyn Fn(&mut Value), part: &str| {
        let mut manifest = original.clone();
        edit(&mut manifest);
        assert_ne!(manifest, original);
        work.write("out/manifest.json", serde_json::to_string(&manifest).unwrap());
        assert_named(&work, part);
    };
    says(&|manifest| manifest["runs"] = json!([]), "6 runs are missing in out or its summary");
    says(&|manifest| manifest["files"] = json!({}), "manifest.json does not list ");
    let drop_run = |manifest: &mut Value| {
        manifest["runs"].as_array_mut().unwrap().remove(2);
    };
    says(&drop_run, "1 run is missing in out or its summary: bsfl-s2");
    says(&|manifest| manifest["runs"].as_array_mut().unwrap().push(json!("bsfl-s1")), "runs of manifest.json");
    says(&|manifest| manifest["runs"].as_array_mut().unwrap().swap(0, 1), "runs of manifest.json");
    says(&|manifest| manifest["runs"].as_array_mut().unwrap().push(json!("other-s1")), "other-s1, which is no run");
    says(&|manifest| manifest["runs"].as_array_mut().unwrap().push(json!("../../x")), "../../x, which is no run");
    says(&|manifest| manifest["failed"] = json!(["bsfl-s1"]), "run bsfl-s1: the manifest says that it failed");
    says(&|manifest| manifest["format"] = json!(999), "the records are of format 999");
    says(&|manifest| manifest["tool"] = json!("npm"), "of the tool \"npm\", not of fedgenie");
    says(&|manifest| manifest["arms"] = json!(["bsfl"]), "arms of manifest.json");
    says(&|manifest| manifest["arms"] = json!(["bsfl", "random", "genie"]), "arms of manifest.json");
    says(&|manifest| manifest["seeds"] = json!([1, 2]), "seeds of manifest.json");
    says(&|manifest| manifest["points"] = json!([{}, {}]), "points of manifest.json");
    says(&|manifest| manifest["with"] = json!({ "bsfl": { "a": "1" } }), "with of manifest.json");
    says(&|manifest| manifest["scenario_hash"] = json!("0".repeat(64)), "scenario_hash of manifest.json");
    for name in ["scenario.toml", "summary.json", "regret.svg", "runs/bsfl-s1/digests.bin", "runs/random-s3/run.json"] {
        let dropped = |manifest: &mut Value| {
            manifest["files"].as_object_mut().unwrap().remove(name).unwrap();
        };
        says(&dropped, &format!("manifest.json does not list {name}"));
        says(&|manifest| manifest["files"][name] = json!("0".repeat(64)), &format!("{name} is not the file"));
    }
    work.write("mine.txt", "mine");
    work.write("out/notes.txt", "mine");
    let mine = blake3::hash(b"mine").to_hex().to_string();
    let absolute = work.path("mine.txt").display().to_string();
    for (name, reason) in [
        ("../mine.txt", "leads out of the folder"),
        (&absolute, "leads out of the folder"),
        ("/dev/zero", "leads out of the folder"),
        ("runs/../../mine.txt", "leads out of the folder"),
        ("runs", "it is no plain file"),
        ("gone.svg", "cannot read it"),
        ("notes.txt", "manifest.json lists notes.txt, which is no file of the experiment"),
    ] {
        says(&|manifest| manifest["files"][name] = json!(mine.clone()), reason);
        says(&|manifest| manifest["files"][name] = json!(mine.clone()), name);
    }
    work.write("out/manifest.json", serde_json::to_string(&original).unwrap());
    assert_eq!(work.fedgenie(&["verify", "out"]).code, 0);
}

/// Files that are changed together with the manifest that vouches for them.
#[test]
fn a_manifest_vouches_for_nothing_that_a_replay_can_tell() {
    let work = workplace();
    work.run_into("whole", &[]);
    let falsified = |name: &str, from: &str, to: &str, part: &str| {
        let text = work.text(&format!("out/{name}")).replacen(from, to, 1);
        assert_ne!(text, work.text(&format!("out/{name}")), "{from}");
        let mut manifest = work.json("out/manifest.json");
        manifest["files"][name] = json!(blake3::hash(text.as_bytes()).to_hex().to_string());
        if name == "scenario.toml" {
            manifest["scenario_hash"] = manifest["files"][name].clone();
        }
        work.write(&format!("out/{name}"), &text);
        work.write("out/manifest.json", serde_json::to_string(&manifest).unwrap());
        assert_named(&work, part);
        for name in [name, "manifest.json"] {
            copy(&work, &format!("whole/{name}"), &format!("out/{name}"));
        }
    };
    let run = "runs/bsfl-s2/run.json";
    falsified(run, "\"rounds\": 30", "\"rounds\": 31", "run bsfl-s2, round 30: run.json differs: rounds: stored 31");
    falsified(run, "\"jain\": 0.", "\"jain\": 1.", "run bsfl-s2, round 30: run.json differs: ");
    falsified(run, "{", "{ \"note\": 1,", "run.json holds an object with other keys");
    falsified(run, "\"bytes\": ", "\"bytes\": 1", "run bsfl-s2, round 30: ");
    falsified("summary.json", "\"rounds\": 30", "\"rounds\": 31", "summary.json differs: runs: stored ");
    falsified("summary.json", "\"arms\": [", "\"arms\": [], \"others\": [", "summary.json differs: arms: stored ");
    falsified("scenario.toml", "[stop]", "# mine\n[stop]", "scenario_hash of manifest.json");
    assert_eq!(work.fedgenie(&["verify", "out"]).code, 0);
}

// ---------------------------------------------------------------------------------------------- no plain files

/// Every file that is read, as a pipe and as a link to a device without an end or to a file elsewhere.
#[cfg(unix)]
#[test]
fn pipes_devices_and_links_are_not_opened() {
    use std::os::unix::fs::symlink;
    let names = [
        "manifest.json",
        "scenario.toml",
        "summary.json",
        "regret.svg",
        "runs/bsfl-s1/rounds.jsonl",
        "runs/bsfl-s1/digests.bin",
        "runs/bsfl-s1/run.json",
        "runs/bsfl-s1/events.jsonl.gz",
        ".fedgenie/experiment.json",
        ".fedgenie/written",
        ".fedgenie/lock",
    ];
    let work = Workplace::with(BANDIT);
    work.run_into("whole", &["--events", "--seeds", "1"]);
    let resume: &[&str] = &["run", SCENARIO, "--out", "out", "--quiet", "--seeds", "1", "--resume"];
    let overwrite: &[&str] = &["run", SCENARIO, "--out", "out", "--quiet", "--seeds", "1", "--overwrite"];
    for name in names {
        for kind in ["pipe", "device", "elsewhere"] {
            for words in [&["verify", "out"][..], &["report", "out", "-o", "page.html"], resume, overwrite] {
                let copied = Command::new("cp").args(["-r", "whole", "out"]).current_dir(work.path("")).status();
                assert!(copied.unwrap().success());
                let path = work.path("out").join(name);
                fs::remove_file(&path).unwrap();
                match kind {
                    "pipe" => assert!(Command::new("mkfifo").arg(&path).status().unwrap().success()),
                    "device" => symlink("/dev/zero", &path).unwrap(),
                    _ => symlink(work.path("whole").join(name), &path).unwrap(),
                }
                let answer = soon(&work, words);
                assert!((0..=2).contains(&answer.code), "{name} is a {kind}, {words:?}: {answer:?}");
                let is_ours = !name.starts_with(".fedgenie");
                if words[0] == "verify" && is_ours {
                    let said = format!("{}{}", answer.stdout, answer.stderr);
                    assert!(
                        answer.code > 0 && said.contains(name.rsplit('/').next().unwrap()),
                        "{name}, {kind}: {said}"
                    );
                }
                fs::remove_dir_all(work.path("out")).unwrap();
            }
        }
    }
}

// ---------------------------------------------------------------------------------------------- report

#[test]
fn a_report_refuses_what_was_changed_and_reads_nothing_elsewhere() {
    let work = workplace();
    let warned = |part: &str| {
        let answer = soon(&work, &["report", "out", "-o", "page.html"]);
        assert!(answer.code == 1 && answer.stderr.contains("bsfl-s2/run.json is not the file that was written"));
        let answer = soon(&work, &["report", "out", "-o", "page.html", "--allow-changed"]);
        assert_eq!(answer.code, 0, "{answer:?}");
        assert!(answer.stderr.contains(part), "{part}: {answer:?}");
        assert!(work.text("page.html").contains(part.split('/').next().unwrap()), "the page warns as well");
    };
    let name = "out/runs/bsfl-s2/run.json";
    let text = work.text(name);
    work.write(name, text.replacen("\"rounds\": 30,", "\"rounds\": 31,", 1));
    warned("runs/bsfl-s2/run.json is not the file that was written");
    copy(&work, "out/runs/bsfl-s1/run.json", name);
    warned("1 of 6 runs are missing: bsfl-s2 (run.json is of the policy ");
    work.write(name, &text);
    let answer = work.fedgenie(&["report", "out", "-o", "page.html"]);
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "{answer:?}");

    work.run_into("elsewhere", &[]);
    let manifest = work.json("out/manifest.json");
    let refused = |edit: &dyn Fn(&mut Value), part: &str| {
        let mut falsified = manifest.clone();
        edit(&mut falsified);
        work.write("out/manifest.json", serde_json::to_string(&falsified).unwrap());
        let answer = soon(&work, &["report", "out", "-o", "page.html"]);
        assert!(answer.code == 2 && answer.stderr.contains(part), "{part}: {answer:?}");
    };
    for run in ["../../elsewhere/runs/bsfl-s1", "bsfl-s1/.", "/tmp", "..", ""] {
        refused(&|manifest| manifest["runs"][0] = json!(run), &format!("lists the run {run:?}"));
    }
    refused(&|manifest| manifest["tool"] = json!("npm"), "of the tool \"npm\"");
}
