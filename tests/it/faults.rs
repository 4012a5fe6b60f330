//! Ends that nobody chose: full disks and outputs, panics, processes killed at the start; and folders of one
//! experiment.

use super::interruption::{LONG_ROUND, complete, long, signal, wait_for};
use super::replay::BANDIT;
use super::support::{Answer, Defective, SCENARIO, Workplace, assert_same_folders, changed};
use fedgenie::experiment::verify::verify_with;
use fedgenie::experiment::{
    Earlier, Experiment, Outputs, Overrides, ResultFolder, RunSummary, Shard, Silent, Threads, execute,
};
use fedgenie::recorder::RunFileOptions;
use fedgenie::task::DataCache;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const BINARY: &str = env!("CARGO_BIN_EXE_fedgenie");

/// Runs a shell's command in a workplace, in which `$F` is the binary.
fn shell(work: &Workplace, command: &str) -> Answer {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).env("F", BINARY).current_dir(work.path(""));
    Answer::of(shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

// ---------------------------------------------------------------------------------------------- full outputs

#[cfg(unix)]
#[test]
fn a_full_standard_output_is_one_sentence_and_code_3() {
    if !Path::new("/dev/full").exists() {
        return eprintln!("skipped: this system has no /dev/full");
    }
    let work = Workplace::with(BANDIT);
    let commands: [&[&str]; 8] = [
        &["run", SCENARIO, "--quiet"],
        &["run", SCENARIO, "--quiet", "--json"],
        &["run", SCENARIO, "--quiet", "--out", "out"],
        &["verify", "out"],
        &["report", "out"],
        &["list"],
        &["--help"],
        &["--version"],
    ];
    for words in commands {
        let mut command = Command::new(BINARY);
        command.args(words).current_dir(work.path("")).stderr(Stdio::piped());
        let answer =
            Answer::of(command.stdout(File::options().write(true).open("/dev/full").unwrap()).spawn().unwrap());
        assert_eq!(answer.code, 3, "{words:?}: {answer:?}");
        assert!(answer.stderr.starts_with("fedgenie: error: cannot write standard output: "), "{words:?}: {answer:?}");
        assert_eq!(answer.stderr.lines().count(), 1, "{words:?}: {answer:?}");
    }
    // The files that could be written are whole.
    assert_eq!(work.fedgenie(&["verify", "out"]).code, 0);
    let answer = shell(&work, "\"$F\" run scenario.toml --out again 2> /dev/full");
    assert_eq!((answer.code, answer.stdout.contains("digest of all runs")), (0, true), "{answer:?}");
}

/// A run whose records are some hundred kB.
fn large() -> String {
    changed(&changed(BANDIT, "rounds = 30", "rounds = 1_500"), "seeds = 3", "seeds = 2")
}

fn assert_full(answer: &Answer) {
    assert_eq!((answer.code, answer.stdout.as_str()), (3, ""), "{answer:?}");
    assert_eq!(answer.stderr.lines().count(), 1, "{answer:?}");
    assert!(answer.stderr.starts_with("fedgenie: error: "), "{answer:?}");
    assert!(answer.stderr.contains(" runs are complete, and `") && answer.stderr.contains("--resume`"), "{answer:?}");
}

/// A limit of file sizes, as a shell can set it, stands for a full disk and needs no rights.
#[cfg(unix)]
#[test]
fn records_that_find_no_room_end_the_command_with_code_3_and_it_can_be_resumed() {
    for more in ["", "--events", "--threads 2 --timeline"] {
        let work = Workplace::with(&large());
        work.run_into("whole", &more.split_whitespace().collect::<Vec<_>>());
        let command = format!("ulimit -f 100 && exec \"$F\" run {SCENARIO} --out out --quiet {more}");
        assert_full(&shell(&work, &command));
        assert!(!work.path("out/manifest.json").exists());
        work.run_into("out", &[&["--resume"], &more.split_whitespace().collect::<Vec<_>>()[..]].concat());
        assert_same_folders(&work, "whole", "out");
        assert_eq!(fs::read_dir(work.path("out/.fedgenie")).unwrap().count(), 3, "lock, experiment.json, written");
    }
}

/// A disk in memory that is too small, then large enough.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_ends_the_command_with_code_3_and_it_can_be_resumed() {
    let work = Workplace::with(&large());
    let mount = "mkdir -p disk && mount -t tmpfs -o size=200k none disk";
    if !Command::new("unshare")
        .args(["-rm", "sh", "-c", mount])
        .current_dir(work.path(""))
        .status()
        .is_ok_and(|status| status.success())
    {
        return eprintln!("skipped: a small disk cannot be mounted here");
    }
    work.run_into("whole", &["--events"]);
    let run = format!("\"$F\" run {SCENARIO} --out disk/out --quiet --events");
    let script = format!(
        "{mount} && {{ {run} 2> full; echo $? > code; }} && mount -o remount,size=99m none disk && \
         {run} --resume && cp -r disk/out out"
    );
    let answer = shell(&work, &format!("exec unshare -rm sh -c '{script}'"));
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "{answer:?}");
    let code = work.text("code").trim().parse().unwrap();
    assert_full(&Answer { code, stdout: String::new(), stderr: work.text("full") });
    assert_same_folders(&work, "whole", "out");
}

// ---------------------------------------------------------------------------------------------- panics

#[test]
fn a_panic_fails_its_run_and_the_others_are_kept_and_summed_up() {
    let work = Workplace::with(BANDIT);
    let mut experiment = Experiment::load(&work.path(SCENARIO), &Overrides::default()).unwrap();
    experiment.add_policy("defective", |_| Ok(Box::new(Defective(5)))).unwrap();
    for threads in [1, 3] {
        let (threads, path) = (Threads::new(threads).unwrap(), work.path(&format!("out-{threads}")));
        let folder = ResultFolder::open(&path, &experiment, Earlier::Refuse, Shard::WHOLE).unwrap();
        let files = RunFileOptions { events: true, timeline: None };
        let outputs = Outputs { folder: &folder, files: &files, models: false, memory: None };
        let runs = experiment.runs();
        let results = execute(&experiment, &runs, Some(outputs), &threads, &DataCache::default(), &Silent);
        let mut complete: Vec<RunSummary> = Vec::new();
        for (run, result) in runs.iter().zip(results) {
            match result {
                Ok(summary) => complete.push(summary),
                Err(error) => {
                    assert_eq!((run.arm, error.exit_code()), (2, 3), "{error}");
                    let text = format!("run {} panicked: turn 5 is too much; this is a defect", run.name);
                    assert!(error.to_string().starts_with(&text), "{error}");
                }
            }
        }
        let summary = folder.finish(&experiment, &mut complete, |_, _| Ok(())).unwrap().unwrap();
        assert_eq!(summary.runs.len(), 6);
        let name = path.file_name().unwrap().to_str().unwrap();
        let manifest = work.json(&format!("{name}/manifest.json"));
        assert_eq!(manifest["runs"].as_array().unwrap().len(), 6);
        assert_eq!(manifest["failed"], serde_json::json!(["defective-s1", "defective-s2", "defective-s3"]));
        let failure = work.json(&format!("{name}/runs/defective-s2/failed.json"));
        assert_eq!(failure["error"], "panicked: turn 5 is too much");
        assert_eq!(work.lines(&format!("{name}/runs/defective-s2/rounds.jsonl")).len(), 4);
        // A replay panics as the run had.
        let verdict = verify_with(&experiment, &path, None, &threads).unwrap();
        assert!(verdict.is_good(), "{verdict:?}");
        assert_eq!((verdict.runs, verdict.failed), (9, 3));
    }
    assert_same_folders(&work, "out-1", "out-3");
}

// ---------------------------------------------------------------------------------------------- ends at the start

/// The command that `report` advises knows where a scenario's files are, before any process has ended its work.
#[cfg(unix)]
#[test]
fn the_advised_command_works_where_files_are_named_relative_to_the_scenario() {
    let law = "{ empirical = { file = \"data/seconds.txt\" } }";
    let compute = "{ lognormal = { median = { uniform = [\"0.1 s\", \"1 s\"] }, sigma = 0.5 } }";
    let scenario = changed(&changed(&long(), "seeds = 400", "seeds = 6"), compute, law);
    let scenario = changed(&scenario, "meters = [\"mean\", \"realised\"]", "meters = [\"mean\"]");
    let work = Workplace::new();
    work.write("study/mine.toml", scenario);
    work.write("study/data/seconds.txt", "0.1\n0.2\n0.4\n0.8\n");
    work.run_file("study/mine.toml", "whole", &[]);
    let words = ["run", "study/mine.toml", "--out", "my out", "--quiet", "--threads", "1"];
    let mut process = work.start(&words);
    wait_for(|| complete(&work, "my out") >= 1);
    signal(&process, "-KILL");
    process.wait().unwrap();
    let answer = work.fedgenie(&["report", "my out"]);
    assert_eq!(answer.code, 2, "{answer:?}");
    let command = answer.stderr.split('`').nth(1).unwrap_or_else(|| panic!("no command in {answer:?}"));
    assert!(command.starts_with("fedgenie run 'my out/scenario.toml' --out 'my out' --resume"), "{command}");
    let resumed = shell(&work, &command.replacen("fedgenie", "\"$F\"", 1));
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert_same_folders(&work, "whole", "my out");
    assert_eq!(work.fedgenie(&["verify", "my out"]).code, 0);
}

#[test]
fn a_folder_with_an_unfinished_scenario_alone_is_begun_again() {
    for (part, more) in [("scenario.toml.part", "--resume"), ("scenario.toml.0.part", "--overwrite")] {
        let work = Workplace::with(BANDIT);
        work.run_into("whole", &[]);
        work.write(&format!("out/{part}"), "name = \"ban");
        let answer = work.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
        assert!(answer.code == 2 && work.path("out").join(part).exists(), "{answer:?}");
        work.run_into("out", &[more]);
        assert_same_folders(&work, "whole", "out");
        // Beside something else it is somebody else's.
        work.write(&format!("mine/{part}"), "");
        work.write("mine/notes.txt", "");
        assert_eq!(work.fedgenie(&["run", SCENARIO, "--out", "mine", "--quiet", more]).code, 2);
        assert!(work.path("mine").join(part).exists());
    }
}

/// Killed before it has written anything, and between any two of its first files.
#[test]
fn what_a_process_leaves_that_was_killed_at_its_start_can_be_resumed() {
    let work = Workplace::with(BANDIT);
    work.run_into("whole", &[]);
    let left: [&[&str]; 5] = [
        &[],
        &[".fedgenie/lock"],
        &[".fedgenie/lock", ".fedgenie/process-0/alive"],
        &[".fedgenie/lock", ".fedgenie/process-0/alive", ".fedgenie/process-0/experiment.json.0.part"],
        &[".fedgenie/lock", ".fedgenie/experiment.json", ".fedgenie/process-0/scenario.toml"],
    ];
    for (number, files) in left.into_iter().enumerate() {
        for more in ["--resume", "--overwrite"] {
            let folder = format!("out{number}{more}");
            fs::create_dir(work.path(&folder)).unwrap();
            files.iter().for_each(|file| work.write(&format!("{folder}/{file}"), ""));
            work.run_into(&folder, &[more]);
            assert_same_folders(&work, "whole", &folder);
            assert!(!work.path(&folder).join(".fedgenie/process-0").exists());
        }
    }
}

// ---------------------------------------------------------------------------------------------- locks

/// The same part is carried out once at a time, other parts beside it; a killed process holds nothing.
#[cfg(unix)]
#[test]
fn a_part_is_carried_out_by_one_process() {
    let work = Workplace::with(&changed(LONG_ROUND, "seeds = 1", "seeds = 4"));
    let start = |more: &[&str]| work.start(&[&["run", SCENARIO, "--out", "out", "--quiet"], more].concat());
    let refused = |more: &[&str], what: &str| {
        let answer = work.fedgenie(&[&["run", SCENARIO, "--out", "out", "--quiet"], more].concat());
        let expected = format!("fedgenie: error: another process {what} out; wait for its end, or stop it\n");
        assert_eq!((answer.code, answer.stderr), (2, expected), "{more:?}");
    };
    let is_begun = |run: &str, process: u32| {
        wait_for(|| work.path(&format!("out/.fedgenie/process-{process}/{run}/rounds.jsonl")).exists());
    };
    let mut first = start(&["--shard", "0/2"]);
    is_begun("random-s1", 0);
    refused(&["--shard", "0/2"], "carries out shard 0/2 in");
    refused(&["--shard", "2/4"], "carries out shard 0/2 in");
    refused(&["--shard", "1/3"], "carries out shard 0/2 in");
    refused(&["--resume"], "carries out shard 0/2 in");
    refused(&["--overwrite"], "writes into");
    let mut second = start(&["--shard", "1/2"]);
    is_begun("random-s2", 1);
    let killed = |process: &mut Child, number: u32| {
        signal(process, "-KILL");
        process.wait().unwrap();
        fs::remove_dir_all(work.path(&format!("out/.fedgenie/process-{number}"))).unwrap();
    };
    killed(&mut first, 0);
    refused(&["--shard", "1/2"], "carries out shard 1/2 in");
    let mut again = start(&["--shard", "0/2"]);
    is_begun("random-s1", 0);
    killed(&mut second, 1);
    killed(&mut again, 0);
    let mut whole = start(&["--resume"]);
    is_begun("random-s1", 0);
    refused(&["--shard", "1/2"], "carries out this experiment in");
    killed(&mut whole, 0);
    assert_eq!(work.fedgenie(&["verify", "out"]).code, 1);
}

// ---------------------------------------------------------------------------------------------- links

/// Names in a result folder that somebody else sent, as links to a file and a folder of one's own.
#[cfg(unix)]
#[test]
fn nothing_is_written_or_deleted_behind_a_link() {
    use std::os::unix::fs::symlink;
    let original = Workplace::with(BANDIT);
    original.run_into("out", &["--seeds", "1"]);
    fs::remove_file(original.path("out/runs/random-s1/run.json")).unwrap();
    original.write("mine.txt", "mine");
    original.write("mine/bsfl-s1/rounds.jsonl", "mine");
    original.write("mine/regret.csv", "mine");
    let workplace = |(name, target): (&str, &str)| {
        let work = Workplace::new();
        let copied = Command::new("cp").arg("-r").arg(original.path(".")).arg(work.path("")).status();
        assert!(copied.unwrap().success());
        let path = work.path("out").join(name);
        if path.is_dir() {
            fs::remove_dir_all(&path).unwrap();
        } else if path.exists() {
            fs::remove_file(&path).unwrap();
        }
        symlink(work.path(target), path).unwrap();
        work
    };
    let commands: [&[&str]; 6] = [
        &["report", "out"],
        &["report", "out", "--format", "csv"],
        &["report", "out", "--format", "svg"],
        &["run", SCENARIO, "--out", "out", "--quiet", "--seeds", "1", "--resume"],
        &["run", SCENARIO, "--out", "out", "--quiet", "--seeds", "1", "--overwrite"],
        &["verify", "out"],
    ];
    let files = [
        "report.html",
        "report.html.part",
        "report.html.0.part",
        "regret.svg",
        "regret.svg.0.part",
        "summary.json",
        "summary.json.part",
        "manifest.json",
        "manifest.json.part",
        "scenario.toml.part",
        "scenario.toml",
        ".fedgenie/lock",
        ".fedgenie/written",
        ".fedgenie/written.0.part",
        ".fedgenie/experiment.json",
        ".fedgenie/process-0",
        "runs/bsfl-s1/rounds.jsonl",
        "runs/random-s1/run.json",
        "runs/bsfl-s1/run.json",
    ];
    let folders = ["figures", "runs", "runs/bsfl-s1", "runs/random-s1", ".fedgenie", ".fedgenie/process-0"];
    let links = files.map(|name| (name, "mine.txt")).into_iter().chain(folders.map(|name| (name, "mine")));
    for link in links {
        for words in commands {
            let work = workplace(link);
            let answer = work.fedgenie(words);
            assert!((0..=2).contains(&answer.code), "{link:?}, {words:?}: {answer:?}");
            assert!(!answer.stderr.contains("panicked"), "{link:?}, {words:?}: {answer:?}");
            for name in ["mine.txt", "mine/bsfl-s1/rounds.jsonl", "mine/regret.csv"] {
                assert_eq!(work.text(name), "mine", "{link:?}, {words:?}: {name}");
            }
            let count = |name: &str| fs::read_dir(work.path(name)).unwrap().count();
            assert_eq!((count("mine"), count("mine/bsfl-s1")), (2, 1), "{link:?}, {words:?}");
        }
    }
}

/// A picture of somebody's that has the name of one of FedGenie's.
#[test]
fn a_picture_that_fedgenie_did_not_write_is_not_replaced() {
    let work = Workplace::with(BANDIT);
    work.run_into("whole", &[]);
    let regret = "[regret]\ntau_min = \"50 ms\"\nalpha = 3\nmeters = [\"mean\", \"realised\"]\n";
    let without = changed(&changed(BANDIT, regret, ""), "[policy.bsfl]\n", "");
    work.write("without.toml", without);
    work.run_file("without.toml", "out", &[]);
    assert!(work.path("whole/regret.svg").exists() && !work.path("out/regret.svg").exists());
    work.write("out/regret.svg", "mine");
    let answer = work.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet", "--overwrite"]);
    assert!(answer.code == 2 && answer.stderr.contains("out/regret.svg is there, and FedGenie did not write it"));
    assert_eq!(work.text("out/regret.svg"), "mine");
    fs::rename(work.path("out/regret.svg"), work.path("mine.svg")).unwrap();
    work.run_into("out", &["--resume"]);
    assert_same_folders(&work, "whole", "out");
}
