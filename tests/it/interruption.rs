//! `fedgenie run` under SIGINT, SIGTERM and SIGHUP: complete runs are kept, and the command is printed that makes the
//! others.
#![cfg(unix)]

use super::replay::{BANDIT, LEARNING};
use super::support::{Answer, SCENARIO, Workplace, assert_same_folders, changed};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Sends a signal to one process.
pub fn signal(process: &Child, name: &str) {
    let status = Command::new("kill").args([name, &process.id().to_string()]).status().unwrap();
    assert!(status.success());
}

/// How many runs of a folder are complete.
pub fn complete(work: &Workplace, folder: &str) -> usize {
    let runs = fs::read_dir(work.path(&format!("{folder}/runs")));
    runs.into_iter().flatten().flatten().filter(|run| run.path().join("run.json").is_file()).count()
}

pub fn wait_for(mut is_there: impl FnMut() -> bool) {
    for _ in 0..6_000 {
        if is_there() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("nothing came of it in a minute");
}

/// Runs whose rounds are short, and so many that they would take minutes.
pub fn long() -> String {
    changed(&changed(BANDIT, "rounds = 30", "rounds = 2_000"), "seeds = 3", "seeds = 400")
}

/// Starts a long experiment and sends a signal when some of its runs are complete.
fn interrupted(work: &Workplace, more: &[&str], name: &str) -> Answer {
    let words = [&["run", SCENARIO, "--out", "my results", "--threads", "2", "--quiet"], more].concat();
    let process = work.start(&words);
    wait_for(|| complete(work, "my results") >= 3);
    signal(&process, name);
    Answer::of(process)
}

/// Whether a signal is in a mask of a process, where the system tells.
fn is_in_mask(process: &str, mask: &str, signal: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix(mask)).map_or("0", str::trim);
    u64::from_str_radix(mask, 16).unwrap() >> (signal - 1) & 1 == 1
}

/// Whether this process, and so its children, is under `nohup`.
fn ignores_hangups() -> bool {
    is_in_mask("self", "SigIgn:", 1)
}

fn catches(process: u32, signal: u32) -> bool {
    is_in_mask(&process.to_string(), "SigCgt:", signal)
}

/// A command that is to outlive its terminal does.
#[test]
fn a_hangup_that_is_ignored_stays_ignored() {
    let work = Workplace::with(&changed(&long(), "seeds = 400", "seeds = 3"));
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" run scenario.toml --out out --quiet --threads 1"]);
    let process = command.arg(env!("CARGO_BIN_EXE_fedgenie")).current_dir(work.path("")).spawn().unwrap();
    wait_for(|| complete(&work, "out") >= 1);
    signal(&process, "-HUP");
    assert_eq!(process.wait_with_output().unwrap().status.code(), Some(0));
    assert_eq!(complete(&work, "out"), 6);
}

/// While the scenario is read and its worlds are checked there is nothing to keep.
#[test]
fn a_signal_before_the_first_run_ends_the_process_at_once() {
    let work = Workplace::new();
    assert!(Command::new("mkfifo").arg(work.path(SCENARIO)).status().unwrap().success());
    let process = work.start(&["run", SCENARIO, "--out", "out"]);
    // It waits for somebody to write into the pipe. Where the system does not tell that it listens for signals, it has
    // half a second.
    match fs::read_to_string(format!("/proc/{}/status", process.id())) {
        Ok(_) => wait_for(|| catches(process.id(), 2)),
        Err(_) => std::thread::sleep(Duration::from_millis(500)),
    }
    signal(&process, "-INT");
    let answer = Answer::of(process);
    let expected = "fedgenie: interrupted before the first run\n";
    assert_eq!((answer.code, answer.stderr.as_str()), (130, expected), "{answer:?}");
    assert!(!work.path("out").exists());
}

#[test]
fn complete_runs_are_kept_and_the_printed_command_makes_the_others() {
    for (name, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        if name == "-HUP" && ignores_hangups() {
            eprintln!("skipped: whoever started the tests has SIGHUP ignored");
            continue;
        }
        let work = Workplace::with(&long());
        let answer = interrupted(&work, &["--overwrite", "--set", "title=\"It's long\""], name);
        assert_eq!((answer.code, answer.stdout.as_str()), (code, ""), "{answer:?}");
        let found = complete(&work, "my results");
        assert!(answer.stderr.contains(&format!("{found} of 800 runs are complete")), "{answer:?}");
        assert!((3..800).contains(&found));
        for name in ["summary.json", "manifest.json", ".fedgenie/process-0"] {
            assert!(!work.path("my results").join(name).exists(), "{name}");
        }
        let command = answer.stderr.lines().last().unwrap();
        assert!(
            command.ends_with("--out 'my results' --threads 2 --quiet --set 'title=\"It'\\''s long\"' --resume"),
            "{command}"
        );
    }
}

#[test]
fn resuming_after_an_interruption_gives_the_whole() {
    let work = Workplace::with(&changed(&long(), "seeds = 400", "seeds = 8"));
    let answer = interrupted(&work, &[], "-INT");
    assert_eq!(answer.code, 130, "{answer:?}");
    let kept = fs::metadata(work.path("my results/runs/bsfl-s1/run.json")).unwrap().modified().unwrap();
    let command = answer.stderr.lines().last().unwrap();
    let output = Command::new("sh").args(["-c", command]).current_dir(work.path("")).output().unwrap();
    assert!(output.status.success(), "{command}: {output:?}");
    assert_eq!(fs::metadata(work.path("my results/runs/bsfl-s1/run.json")).unwrap().modified().unwrap(), kept);
    work.run_into("whole", &[]);
    assert_same_folders(&work, "whole", "my results");
}

#[test]
fn without_a_folder_nothing_is_kept_and_this_is_said() {
    let work = Workplace::with(&long());
    let mut command = Command::new(env!("CARGO_BIN_EXE_fedgenie"));
    command.args(["run", SCENARIO]).current_dir(work.path(".")).env("FEDGENIE_PROGRESS_S", "0.02");
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(process.stderr.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    assert!(line.contains(" of 800 runs"), "{line}");
    signal(&process, "-INT");
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("no run was kept; --out DIR keeps them"), "{rest}");
    assert_eq!(process.wait().unwrap().code(), Some(130));
}

/// A round that lasts for hours is left in its middle.
#[test]
fn a_signal_stops_a_round_in_its_middle() {
    let work = Workplace::with(LONG_ROUND);
    let process = work.start(&["run", SCENARIO, "--out", "out", "--quiet"]);
    wait_for(|| work.path("out/.fedgenie/process-0/random-s1/rounds.jsonl").exists());
    signal(&process, "-TERM");
    let answer = Answer::of(process);
    assert_eq!(answer.code, 143, "{answer:?}");
    assert!(answer.stderr.contains("interrupted; runs under way stop within a second"), "{answer:?}");
    assert!(answer.stderr.trim_end().ends_with("run scenario.toml --out out --quiet --resume"), "{answer:?}");
    assert!(!work.path("out/.fedgenie/process-0").exists(), "no round is complete");
    let answer =
        work.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet", "--overwrite", "--set", "training.steps=1"]);
    assert_eq!(answer.code, 0, "{answer:?}");
}

/// Both signals are there when the process goes on.
#[test]
fn a_second_signal_ends_the_process_at_once() {
    let work = Workplace::with(LONG_ROUND);
    let process = work.start(&["run", SCENARIO, "--out", "out", "--quiet"]);
    wait_for(|| work.path("out/.fedgenie/process-0/random-s1/rounds.jsonl").exists());
    ["-STOP", "-TERM", "-INT", "-CONT"].into_iter().for_each(|name| signal(&process, name));
    let answer = Answer::of(process);
    assert!([130, 143].contains(&answer.code), "{answer:?}");
    assert!(answer.stderr.trim_end().ends_with("run scenario.toml --out out --quiet --resume"), "{answer:?}");
    // Its remains are deleted by the next process.
    assert!(work.path("out/.fedgenie/process-0").exists());
    let answer =
        work.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet", "--overwrite", "--set", "training.steps=1"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    assert!(!work.path("out/.fedgenie/process-0").exists());
}

/// Killed outright, over and over, an experiment gets to its end, whatever it writes.
#[test]
fn resuming_after_kills_gives_the_whole() {
    let swept = format!("{BANDIT}\n[sweep]\n\"regret.alpha\" = [1.0, 5.0]\n");
    let cases: [(String, &[&str], &[usize]); 4] = [
        (changed(&long(), "seeds = 400", "seeds = 8"), &[], &[1, 3, 6, 10]),
        (changed(&long(), "seeds = 400", "seeds = 3"), &["--events", "--timeline"], &[0, 1, 4]),
        (changed(LEARNING, "rounds = 20", "rounds = 600"), &["--models", "--events"], &[0, 1, 2]),
        (changed(&swept, "rounds = 30", "rounds = 1_000"), &["--timeline"], &[2, 7]),
    ];
    for (scenario, more, counts) in cases {
        let work = Workplace::with(&scenario);
        work.run_into("whole", more);
        let words = [&["run", SCENARIO, "--out", "out", "--threads", "1", "--quiet", "--resume"], more].concat();
        for &count in counts {
            let mut process = work.start(&words);
            wait_for(|| complete(&work, "out") >= count && work.path("out/.fedgenie/process-0").exists());
            signal(&process, "-KILL");
            process.wait().unwrap();
        }
        assert_eq!(work.fedgenie(&["verify", "out"]).code, 1);
        assert_eq!(work.fedgenie(&words).code, 0);
        assert_same_folders(&work, "whole", "out");
        assert!(!work.path("out/.fedgenie/process-0").exists());
    }
}

/// One of two shards is killed: the other ends as if it had been alone, and the killed one is made again.
#[test]
fn a_killed_part_leaves_the_others_alone() {
    let work = Workplace::with(&changed(&long(), "seeds = 400", "seeds = 6"));
    work.run_into("whole", &[]);
    let words = |shard| ["run", SCENARIO, "--out", "out", "--threads", "1", "--quiet", "--shard", shard];
    let first = work.start(&words("0/3"));
    let mut second = work.start(&words("1/3"));
    wait_for(|| work.path("out/runs/random-s1/run.json").exists() || work.path("out/runs/bsfl-s3/run.json").exists());
    signal(&second, "-KILL");
    second.wait().unwrap();
    let answer = Answer::of(first);
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "{answer:?}");
    assert!(work.text("out/runs/bsfl-s1/rounds.jsonl") == work.text("whole/runs/bsfl-s1/rounds.jsonl"));
    let answer = work.fedgenie(&["verify", "out"]);
    assert!(answer.code == 1 && answer.stdout.contains("no difference"), "{answer:?}");
    work.run_into("out", &["--resume"]);
    assert_same_folders(&work, "whole", "out");
}

/// Clients that take a hundred million steps.
pub const LONG_ROUND: &str = r#"name = "long-round"
seeds = 1
[stop]
rounds = 2
[population]
clients = 4
[population.latency]
download = { constant = "25 ms" }
compute = { constant = "1 s" }
upload = { constant = "25 ms" }
[task.linear-regression]
examples = 100
partition = { gamma-sized = { shape = 1.0 } }
[training]
steps = 100_000_000
batch = 16
optimizer = { sgd = { lr = 0.001 } }
[protocol.synchronous]
cohort = 2
[policy.random]
"#;

/// So many points that their report takes longer than to look for a file and to send a signal.
fn many_points() -> String {
    let values: Vec<String> = (1..=40).map(|value| format!("{value}.0")).collect();
    let scenario = changed(&changed(BANDIT, "rounds = 30", "rounds = 5"), "seeds = 3", "seeds = 2");
    format!("{scenario}[policy.cs-ucb]\n[policy.round-robin]\n[sweep]\n\"regret.alpha\" = [{}]\n", values.join(", "))
}

/// A signal that comes when all runs are complete loses none of them, and says which command makes the report.
#[test]
fn a_signal_while_the_report_is_written_names_the_command_that_writes_it() {
    for (count, code) in [(1, 143), (2, 143)] {
        let work = Workplace::with(&many_points());
        let process = work.start(&["run", SCENARIO, "--out", "my results", "--quiet"]);
        wait_for(|| work.path("my results/manifest.json").exists());
        (0..count).for_each(|_| {
            signal(&process, "-TERM");
            std::thread::sleep(Duration::from_millis(20));
        });
        let answer = Answer::of(process);
        assert_eq!(answer.code, code, "{answer:?}");
        assert!(answer.stderr.contains("all runs are complete"), "{answer:?}");
        assert!(answer.stderr.contains("`fedgenie report 'my results'` writes the report"), "{answer:?}");
        for words in [["report", "my results"], ["verify", "my results"]] {
            let answer = work.fedgenie(&words);
            assert_eq!(answer.code, 0, "{answer:?}");
        }
        work.run_into("my results", &["--resume"]);
        assert!(work.path("my results/report.html").exists());
    }
}
