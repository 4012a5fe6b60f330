//! `fedgenie merge`: the folder that one process would have written, or a refusal that leaves none.

use super::replay::{BANDIT, LEARNING};
use super::support::{Answer, SCENARIO, Workplace, assert_same_folders, changed};
use serde_json::json;
use std::fs;

/// A workplace with the parts of an experiment in folders of their own: `0`, `1` and so on.
fn parts(scenario: &str, count: usize, more: &[&str]) -> Workplace {
    let work = Workplace::with(scenario);
    for part in 0..count {
        let shard = format!("{part}/{count}");
        work.run_into(&part.to_string(), &[&["--shard", &shard], more].concat());
    }
    work
}

fn refused(work: &Workplace, folders: &[&str], why: &[&str]) {
    let answer = work.fedgenie(&[&["merge", "out"], folders].concat());
    assert!(answer.code == 2 && why.iter().all(|why| answer.stderr.contains(why)), "{why:?}: {answer:?}");
    assert!(answer.stdout.is_empty() && !work.path("out").exists(), "{answer:?}");
}

#[test]
fn the_folder_is_that_of_one_process() {
    let swept = format!("{BANDIT}\n[sweep]\n\"regret.alpha\" = [1.0, 5.0]\n");
    let learning = changed(LEARNING, "seeds = 2", "seeds = 3");
    let cases: [(&str, &[&str]); 3] = [
        (&swept, &["--events"]),
        (&swept, &["--set", "record.packed=true"]),
        (&learning, &["--models", "--set", "record.packed=true"]),
    ];
    for (scenario, more) in cases {
        let work = parts(scenario, 3, more);
        work.run_into("whole", more);
        // In any order, and a part twice.
        let answer = work.fedgenie(&["merge", "out", "2", "0", "1", "0"]);
        assert_eq!(
            (answer.code, answer.stderr.lines().filter(|line| line.contains("error")).count()),
            (0, 0),
            "{answer:?}"
        );
        assert!(answer.stdout.ends_with("runs written to out\n"), "{answer:?}");
        assert_same_folders(&work, "whole", "out");
        assert_eq!(work.fedgenie(&["verify", "out"]).code, 0);
        // A folder that has been put together can be a part.
        assert_eq!(work.fedgenie(&["merge", "again", "out"]).code, 0);
        assert_same_folders(&work, "whole", "again");
    }
}

#[test]
fn missing_runs_are_named_and_can_be_made() {
    let work = parts(BANDIT, 3, &[]);
    work.run_into("whole", &[]);
    let answer = work.fedgenie(&["merge", "out", "0", "2"]);
    assert_eq!(answer.code, 1, "{answer:?}");
    assert!(answer.stderr.contains("2 runs are in none of the folders: bsfl-s2, random-s2"), "{answer:?}");
    assert!(answer.stdout.contains("4 of 6 runs written to out"), "{answer:?}");
    let command = answer.stderr.split('`').nth(1).unwrap().to_owned();
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let answer = work.fedgenie(&words);
    assert_eq!(answer.code, 0, "{answer:?}");
    assert_same_folders(&work, "whole", "out");
}

#[test]
fn runs_that_failed_are_taken_over_with_their_reason() {
    let wild = "[policy.wild]\nkind = \"random\"\n[policy.wild.with]\n\"training.optimizer.sgd.lr\" = 1e30\n";
    let failing = format!("{LEARNING}\n{wild}");
    let work = Workplace::with(&failing);
    let whole = work.fedgenie(&["run", SCENARIO, "--out", "whole", "--quiet"]);
    for part in 0..2 {
        work.fedgenie(&["run", SCENARIO, "--out", &part.to_string(), "--quiet", "--shard", &format!("{part}/2")]);
    }
    let answer = work.fedgenie(&["merge", "out", "0", "1"]);
    assert_eq!((whole.code, answer.code), (3, 0), "{answer:?} {whole:?}");
    assert!(work.path("out/runs/wild-s1/failed.json").is_file());
    assert_same_folders(&work, "whole", "out");
}

#[test]
fn folders_that_do_not_belong_together_are_refused() {
    let work = parts(BANDIT, 2, &[]);
    work.run_file(SCENARIO, "other", &["--set", "regret.alpha=4.0"]);
    refused(&work, &["0", "1", "other"], &["other holds another experiment than 0", "alpha = 4.0"]);
    work.run_file(SCENARIO, "longer", &["--seeds", "4", "--shard", "0/2"]);
    refused(&work, &["0", "longer"], &["longer holds another experiment than 0"]);
    refused(&work, &["0", "nowhere"], &["nowhere is no folder that `fedgenie run --out` wrote"]);
    fs::create_dir(work.path("empty")).unwrap();
    refused(&work, &["empty", "0"], &["empty is no folder that"]);
    // The new folder has to be new.
    let before = work.text("1/manifest.json");
    for out in ["1", "1/inner", "0/runs/../inner"] {
        let answer = work.fedgenie(&["merge", out, "0", "1"]);
        assert!(answer.code == 2 && answer.stderr.contains("is or lies in"), "{answer:?}");
        assert!(!work.path("0/inner").exists() && !work.path("1/inner").exists());
    }
    work.write("mine/notes.txt", "mine");
    let answer = work.fedgenie(&["merge", "mine", "0", "1"]);
    assert!(answer.code == 2 && answer.stderr.contains("mine is not empty"), "{answer:?}");
    assert_eq!((work.text("1/manifest.json"), work.text("mine/notes.txt")), (before, "mine".to_owned()));
    assert_eq!(work.fedgenie(&["merge", "out"]).code, 2);
}

#[test]
fn changed_files_are_refused_by_name() {
    let work = parts(BANDIT, 2, &[]);
    let spoilt = |name: &str, why: &[&str]| {
        let before = work.text(name);
        work.write(name, before.replacen('1', "2", 1));
        refused(&work, &["0", "1"], why);
        work.write(name, before);
    };
    spoilt("1/runs/random-s2/rounds.jsonl", &["1: run random-s2: rounds.jsonl is not the file"]);
    spoilt("1/runs/random-s2/run.json", &["1: run random-s2: run.json"]);
    spoilt("0/scenario.toml", &["another experiment"]);
    for folder in ["0", "1"] {
        let text = work.text(&format!("{folder}/scenario.toml"));
        work.write(&format!("{folder}/scenario.toml"), changed(&text, "cohort = 4", "cohort = 5"));
    }
    refused(&work, &["0", "1"], &["0/scenario.toml was edited after runs of it were made"]);
    let work = parts(BANDIT, 2, &[]);
    fs::remove_file(work.path("0/runs/bsfl-s3/digests.bin")).unwrap();
    refused(&work, &["0", "1"], &["0: run bsfl-s3: digests.bin is missing", "run 0/scenario.toml --out 0 --resume"]);
    // Nobody knows which runs a damaged pack has lost.
    let work = parts(BANDIT, 2, &["--set", "record.packed=true"]);
    let pack = work.read("1/runs/00000.tar");
    for spoilt in [&pack[..pack.len() / 2], &[0xE9; 3000]] {
        work.write("1/runs/00000.tar", spoilt);
        refused(&work, &["0", "1"], &["1: runs/00000.tar cannot be read to its end", "--resume"]);
    }
}

/// Makes a run of a folder without a manifest one of another build.
fn of_another_build(work: &Workplace, name: &str) {
    let mut document = work.json(name);
    for digest in ["", "taken"] {
        document["build"] = json!("0123456789abcdef");
        let taken = blake3::hash(format!("{document:#}\n").as_bytes()).to_hex().to_string();
        document["blake3"] = json!(if digest.is_empty() { String::new() } else { taken });
    }
    work.write(name, format!("{document:#}\n"));
}

#[test]
fn runs_of_another_build_or_with_other_results_are_refused_by_name() {
    let work = parts(BANDIT, 2, &[]);
    fs::remove_file(work.path("1/manifest.json")).unwrap();
    of_another_build(&work, "1/runs/bsfl-s2/run.json");
    refused(&work, &["0", "1"], &["1: run bsfl-s2 is of another build", "0123456789abcdef"]);
    // Two runs of one name, both whole: random has played as bsfl.
    let work = parts(BANDIT, 1, &[]);
    work.write("mixed.toml", changed(BANDIT, "[policy.bsfl]", "[policy.bsfl]\nkind = \"round-robin\""));
    work.run_file("mixed.toml", "mixed", &[]);
    fs::remove_dir_all(work.path("mixed/.fedgenie")).unwrap();
    work.write("mixed/scenario.toml", work.text("0/scenario.toml"));
    for key in ["manifest.json", ".fedgenie/experiment.json"] {
        work.write(&format!("mixed/{key}"), work.text(&format!("0/{key}")));
    }
    fs::remove_file(work.path("mixed/manifest.json")).unwrap();
    refused(&work, &["0", "mixed"], &["run bsfl-s1 is in 0 and in mixed, and differs"]);
}

#[test]
fn other_data_are_refused() {
    let work = parts(BANDIT, 2, &[]);
    let name = "1/.fedgenie/experiment.json";
    let mut marker = work.json(name);
    marker["data"] = json!({"speeds.csv": "0".repeat(64)});
    work.write(name, marker.to_string());
    refused(&work, &["0", "1"], &["the runs in 1 were made of other data: speeds.csv"]);
}

#[cfg(unix)]
mod killed {
    use super::super::interruption::{complete, long, signal, wait_for};
    use super::*;

    #[test]
    fn half_a_part_is_put_together_with_the_others() {
        let scenario = changed(&long(), "seeds = 400", "seeds = 6");
        let work = Workplace::with(&scenario);
        work.run_into("whole", &[]);
        work.run_into("0", &["--shard", "0/2"]);
        let words = ["run", SCENARIO, "--out", "1", "--threads", "1", "--quiet", "--shard", "1/2"];
        let mut process = work.start(&words);
        wait_for(|| complete(&work, "1") >= 2);
        // A process at work may change what is copied.
        signal(&process, "-STOP");
        refused(&work, &["0", "1"], &["another process writes into 1"]);
        signal(&process, "-KILL");
        process.wait().unwrap();
        let left = complete(&work, "1");
        let answer = work.fedgenie(&["merge", "out", "0", "1"]);
        assert_eq!(answer.code, 1, "{answer:?}");
        assert!(answer.stdout.contains(&format!("{} of 12 runs written to out", 6 + left)), "{answer:?}");
        work.run_into("out", &["--resume"]);
        assert_same_folders(&work, "whole", "out");
    }

    /// A full disk leaves no folder that could be taken for the whole.
    #[test]
    fn what_cannot_be_written_whole_is_not_left() {
        let work = parts(BANDIT, 2, &["--events"]);
        let binary = env!("CARGO_BIN_EXE_fedgenie");
        let script = format!("ulimit -f 4; exec {binary} merge out 0 1");
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &script]).current_dir(work.path("")).stdout(std::process::Stdio::piped());
        let answer = Answer::of(command.stderr(std::process::Stdio::piped()).spawn().unwrap());
        assert_eq!(answer.code, 3, "{answer:?}");
        assert!(answer.stderr.contains("cannot write") && !work.path("out").exists(), "{answer:?}");
    }
}
