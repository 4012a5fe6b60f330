//! `fedgenie run` goes on in the middle of a run: killed or interrupted at any time, it writes the same bytes in the
//! end; checkpoints that are damaged, or of something else, are told and not taken.
#![cfg(unix)]

use super::interruption::{signal, wait_for};
use super::replay::BANDIT;
use super::support::{Answer, DEVICES, SCENARIO, Workplace, assert_same_folders, changed};
use std::fs;
use std::path::PathBuf;

/// Edge servers with cluster models, explained decisions, a target and a plateau that is never reached.
const TIERS: &str = r#"name = "tiers"
seeds = 1
[stop]
rounds = 90
plateau = { metric = "test_loss", evaluations = 1000 }
[evaluate]
every = 2
refine = true
last = 20
targets = [{ metric = "test_loss", at_most = 3.0 }]
converged = { metric = "test_loss", evaluations = 2 }
[record]
explain = true
updates = true
[population]
clients = 12
interrupted = "pause"
[task.linear-regression]
examples = 300
features = 4
[aggregation]
server = { momentum = { lr = 1.0, momentum = 0.7 } }
[protocol.hierarchical]
edges = 3
cohort = 2
edge_rounds = 2
timeout = "1.5 s"
[clusters]
count = 2
initial = "round-robin"
model = "isolated"
assign = { random = { every = 2 } }
[policy.rbcs-f]
context_time = "0.3 s"
"#;

/// Updates that join when they come.
const BUFFERED: &str = r#"name = "buffered"
seeds = 1
[stop]
rounds = 900
[record]
every = 3
explain = true
[population]
clients = 9
[population.latency]
download = { constant = "0.1 s" }
compute = { exponential = { mean = { uniform = ["0.2 s", "2 s"] }, shift = "0.05 s" } }
upload = { constant = "0.15 s" }
[population.dropout]
compute = "0.1 /s"
[task.recommendation]
users = 9
data = { synthetic = { users = 9, items = 30, ratings = 150 } }
cutoffs = [5]
model = { mf = { dimensions = 3 } }
[training]
batch = 8
optimizer = { sgd = { lr = 0.05 } }
[protocol.buffered]
concurrency = 4
buffer = 3
timeout = "4 s"
[policy.random]
"#;

fn one_seed(rounds: u32) -> String {
    let long = changed(BANDIT, "rounds = 30", &format!("rounds = {rounds}"));
    changed(&changed(&long, "seeds = 3", "seeds = 1"), "[policy.random]\n", "")
}

/// The folder of an unfinished run, be there a process at work on it or not.
fn unfinished(work: &Workplace, run: &str) -> PathBuf {
    ["process-0", "left"]
        .map(|place| work.path(&format!("out/.fedgenie/{place}/{run}")))
        .into_iter()
        .find(|path| path.is_dir())
        .unwrap()
}

/// Kills an experiment once both checkpoints are there and the later one has been replaced so many times.
fn killed(work: &Workplace, words: &[&str], run: &str, replaced: usize) -> String {
    let mut process = work.start(words);
    let place = work.path(&format!("out/.fedgenie/process-0/{run}/checkpoint-1"));
    let mut seen = Vec::new();
    wait_for(|| {
        // A new file each time.
        if let Ok(found) = fs::metadata(&place).and_then(|found| found.modified()) {
            seen.push(found);
            seen.dedup();
        }
        seen.len() > replaced || process.try_wait().unwrap().is_some()
    });
    let is_over = process.try_wait().unwrap().is_some();
    if !is_over {
        signal(&process, "-KILL");
    }
    let output = process.wait_with_output().unwrap();
    assert!(!is_over, "the run was over before it could be killed: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// The round after which a message says that a run goes on.
fn round_of(stderr: &str) -> u32 {
    let of = stderr.split("goes on after round ").nth(1).unwrap_or_else(|| panic!("{stderr}"));
    of.split_whitespace().next().unwrap().parse().unwrap()
}

const RUN: [&str; 6] = ["run", SCENARIO, "--out", "out", "--threads", "1"];

/// Killed again and again inside one run, it gets further each time, and to the same bytes.
#[test]
fn a_run_that_is_killed_inside_goes_on() {
    let cases: [(String, &str, &[&str]); 3] = [
        (one_seed(4_000), "bsfl-s1", &["--events", "--timeline", "--checkpoint", "40 rounds"]),
        (format!("{TIERS}{DEVICES}"), "rbcs-f-s1", &["--events", "--timeline", "--models", "--checkpoint", "1 round"]),
        (BUFFERED.to_owned(), "random-s1", &["--events", "--models", "--checkpoint", "1 ms"]),
    ];
    for (scenario, run, more) in cases {
        let work = Workplace::with(&scenario);
        work.run_into("whole", more);
        let words = [&RUN[..], &["--resume"], more].concat();
        let mut before = 0;
        for try_ in 0..4 {
            let stderr = killed(&work, &words, run, 1 + try_);
            if try_ > 0 {
                let round = round_of(&stderr);
                assert!(round > before, "{round} after {before}");
                before = round;
            }
        }
        let answer = work.fedgenie(&words);
        assert!(answer.code == 0 && round_of(&answer.stderr) > before, "{answer:?}");
        let of_learning = |line: &str| line.contains("the control popularity");
        let mut warnings = answer.stderr.lines().filter(|line| line.contains("warning"));
        assert!(warnings.all(of_learning), "{answer:?}");
        assert_same_folders(&work, "whole", "out");
        let names: Vec<String> = fs::read_dir(work.path("out/.fedgenie"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert!(names.iter().all(|name| ["lock", "experiment.json", "written"].contains(&&**name)), "{names:?}");
        assert_eq!(work.fedgenie(&["verify", "out"]).code, 0);
    }
}

/// A run is saved when it is interrupted, however far the next checkpoint is, unless none are wanted.
#[test]
fn an_interrupted_run_is_saved() {
    for (checkpoint, is_saved) in [("1 d", true), ("1_000_000 rounds", true), ("off", false)] {
        let checkpoint = checkpoint.replace('_', "");
        let work = Workplace::with(&one_seed(30_000));
        let words = [&RUN[..], &["--events", "--checkpoint", &checkpoint]].concat();
        let process = work.start(&words);
        let rounds = work.path("out/.fedgenie/process-0/bsfl-s1/rounds.jsonl");
        wait_for(|| fs::metadata(&rounds).is_ok_and(|found| found.len() > 50_000));
        signal(&process, "-TERM");
        let answer = Answer::of(process);
        assert_eq!(answer.code, 143, "{answer:?}");
        assert!(answer.stderr.contains("0 of 1 runs are complete"), "{answer:?}");
        assert_eq!(work.path("out/.fedgenie/left/bsfl-s1/checkpoint-0").exists(), is_saved);
        assert!(!work.path("out/.fedgenie/process-0").exists());
        let answer = work.fedgenie(&[&words[..], &["--resume"]].concat());
        assert_eq!(answer.code, 0, "{answer:?}");
        assert_eq!(answer.stderr.contains("run bsfl-s1 goes on after round "), is_saved, "{answer:?}");
        work.run_into("whole", &["--events"]);
        assert_same_folders(&work, "whole", "out");
    }
}

/// State and message of a folder in which a run has two checkpoints, when it is resumed.
fn resumed(work: &Workplace, more: &[&str]) -> Answer {
    let answer = work.fedgenie(&[&RUN[..], &["--quiet", "--resume", "--checkpoint", "100 rounds"], more].concat());
    assert_eq!(answer.code, 0, "{answer:?}");
    answer
}

#[test]
fn damaged_checkpoints_are_told_and_the_older_one_is_taken() {
    let work = Workplace::with(&one_seed(4_000));
    work.run_into("whole", &["--events"]);
    work.run_into("without", &[]);
    killed(&work, &[&RUN[..], &["--events", "--checkpoint", "100 rounds"]].concat(), "bsfl-s1", 2);
    let kept = work.path("kept");
    fs::rename(unfinished(&work, "bsfl-s1"), &kept).unwrap();
    let [first, second] = ["checkpoint-0", "checkpoint-1"].map(|name| fs::read(kept.join(name)).unwrap());
    // Where nothing is damaged, nothing is said.
    let prepare = |change: &dyn Fn(&PathBuf)| {
        drop(fs::remove_dir_all(work.path("out/runs")));
        let place = work.path("out/.fedgenie/left/bsfl-s1");
        fs::create_dir_all(&place).unwrap();
        for file in fs::read_dir(&kept).unwrap() {
            let path = file.unwrap().path();
            fs::copy(&path, place.join(path.file_name().unwrap())).unwrap();
        }
        change(&place);
    };
    let case = |change: &dyn Fn(&PathBuf), more: &[&str], whole: &str, expected: &[&str]| {
        prepare(change);
        let answer = resumed(&work, more);
        let told: Vec<&str> = answer.stderr.lines().collect();
        assert_eq!(told.len(), expected.len(), "{answer:?}");
        for (told, expected) in told.iter().zip(expected) {
            assert!(told.starts_with("fedgenie: warning: run bsfl-s1") && told.contains(expected), "{told}");
        }
        assert_same_folders(&work, whole, "out");
        assert!(!work.path("out/.fedgenie/left").exists());
    };
    let events = &["--events"];
    case(&|_| {}, events, "whole", &[]);
    let flipped = |bytes: &[u8]| {
        let mut flipped = bytes.to_vec();
        flipped[bytes.len() / 2] ^= 4;
        flipped
    };
    case(
        &|place| fs::write(place.join("checkpoint-0"), flipped(&first)).unwrap(),
        events,
        "whole",
        &["checkpoint-0 is damaged"],
    );
    case(
        &|place| fs::write(place.join("checkpoint-1"), &second[..second.len() - 7]).unwrap(),
        events,
        "whole",
        &["checkpoint-1 is damaged"],
    );
    case(
        &|place| {
            fs::write(place.join("checkpoint-0"), flipped(&first)).unwrap();
            fs::write(place.join("checkpoint-1"), "").unwrap();
        },
        events,
        "whole",
        &["is damaged", "is damaged", "begins anew"],
    );
    // Records other than those saved with it.
    for damage in ["rounds.jsonl", "digests.bin", "events.jsonl.gz"] {
        let spoil = |place: &PathBuf| {
            let bytes = fs::read(place.join(damage)).unwrap();
            fs::write(place.join(damage), flipped(&bytes[..bytes.len().min(400)])).unwrap();
        };
        let why = format!("cannot be used: {damage} is not what was written");
        case(&spoil, events, "whole", &[&why, &why, "begins anew"]);
        let why = "cannot be used: No such file";
        case(&|place| fs::remove_file(place.join(damage)).unwrap(), events, "whole", &[why, why, "begins anew"]);
    }
    // Other files are wanted now; those of before do not stay.
    let why = "cannot be used: they were written with other options";
    case(&|_| {}, &[], "without", &[why, why, "begins anew"]);
    // Behind links nothing is read or written.
    fs::write(work.path("mine"), "mine").unwrap();
    let link = |place: &PathBuf| {
        fs::remove_file(place.join("rounds.jsonl")).unwrap();
        std::os::unix::fs::symlink(work.path("mine"), place.join("rounds.jsonl")).unwrap();
    };
    let why = "cannot be used: No such file";
    case(&link, events, "whole", &[why, why, "begins anew"]);
    let link = |place: &PathBuf| {
        for name in ["checkpoint-0", "checkpoint-1"] {
            fs::remove_file(place.join(name)).unwrap();
            std::os::unix::fs::symlink(work.path("kept").join(name), place.join(name)).unwrap();
        }
    };
    case(&link, events, "whole", &[]);
    assert_eq!(work.text("mine"), "mine");
    assert_eq!(fs::read(kept.join("checkpoint-0")).unwrap(), first);
}

/// Of two runs of one experiment, of two scenarios, of two data sets.
#[test]
fn swapped_checkpoints_are_told() {
    let work = Workplace::with(&changed(&one_seed(3_000), "seeds = 1", "seeds = 2"));
    work.run_into("whole", &[]);
    let words = [&RUN[..], &["--resume", "--checkpoint", "100 rounds"]].concat();
    killed(&work, &words, "bsfl-s1", 1);
    fs::rename(unfinished(&work, "bsfl-s1"), work.path("first")).unwrap();
    let left = work.path("out/.fedgenie/left");
    fs::create_dir_all(&left).unwrap();
    fs::rename(work.path("first"), left.join("bsfl-s2")).unwrap();
    let answer = resumed(&work, &[]);
    let why = "fedgenie: warning: run bsfl-s2: checkpoint-";
    assert_eq!(answer.stderr.matches(why).count(), 2, "{answer:?}");
    assert_eq!(answer.stderr.matches("is of the run bsfl-s1").count(), 2, "{answer:?}");
    assert!(answer.stderr.ends_with("fedgenie: warning: run bsfl-s2 begins anew\n"), "{answer:?}");
    assert_same_folders(&work, "whole", "out");

    let work = Workplace::with(&one_seed(3_000));
    killed(&work, &words, "bsfl-s1", 1);
    fs::rename(unfinished(&work, "bsfl-s1"), work.path("first")).unwrap();
    work.run_into("out", &["--set", "regret.alpha=2", "--overwrite"]);
    fs::remove_dir_all(work.path("out/runs")).unwrap();
    fs::create_dir_all(work.path("out/.fedgenie/left")).unwrap();
    fs::rename(work.path("first"), work.path("out/.fedgenie/left/bsfl-s1")).unwrap();
    let answer = resumed(&work, &["--set", "regret.alpha=2"]);
    assert_eq!(answer.stderr.matches("is of another scenario, or of other data").count(), 2, "{answer:?}");
}

/// A file of data that has changed since is other data, although the scenario is the same.
#[test]
fn a_checkpoint_is_of_its_data() {
    let sampled = changed(
        &one_seed(3_000),
        "compute = { lognormal = { median = { uniform = [\"0.1 s\", \"1 s\"] }, sigma = 0.5 } }",
        "compute = { empirical = { file = \"samples.csv\" } }",
    );
    let work = Workplace::with(&sampled);
    work.write("samples.csv", "0.1\n0.4\n0.9\n");
    let words = [&RUN[..], &["--resume", "--checkpoint", "100 rounds"]].concat();
    killed(&work, &words, "bsfl-s1", 1);
    work.write("samples.csv", "0.1\n0.4\n0.8\n");
    let answer = resumed(&work, &[]);
    assert_eq!(answer.stderr.matches("is of another scenario, or of other data").count(), 2, "{answer:?}");
    work.run_into("whole", &[]);
    assert_same_folders(&work, "whole", "out");
}

/// Checkpoints go with the experiment that is overwritten, and wrong intervals are refused with the right form.
#[test]
fn what_is_left_goes_with_the_experiment() {
    let work = Workplace::with(&one_seed(4_000));
    killed(&work, &[&RUN[..], &["--checkpoint", "100 rounds"]].concat(), "bsfl-s1", 1);
    work.run_into("out", &["--overwrite", "--set", "stop.rounds=5"]);
    assert!(!work.path("out/.fedgenie/left").exists() && !work.path("out/.fedgenie/process-0").exists());
    work.run_into("whole", &["--set", "stop.rounds=5"]);
    assert_same_folders(&work, "whole", "out");
    for (wrong, why) in
        [("5", "expected a time"), ("0 s", "expected a positive time"), ("0 rounds", "at least one round")]
    {
        let answer = work.fedgenie(&["run", SCENARIO, "--out", "new", "--checkpoint", wrong]);
        assert!(answer.code == 2 && answer.stderr.contains(why), "{answer:?}");
        assert!(!work.path("new").exists());
    }
    let answer = work.fedgenie(&["run", SCENARIO, "--checkpoint", "5 s"]);
    assert!(answer.code == 2 && answer.stderr.contains("--out"), "{answer:?}");
}
