//! The examples for clusters, under a stand-in that sets the variables of Slurm or Kubernetes, starts all tasks at once
//! and kills some of them.
#![cfg(unix)]

use super::interruption::{complete, long, signal, wait_for};
use super::support::{Answer, Workplace, assert_same_folders, changed};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A scenario named as in the examples, and its results by one process.
fn study() -> Workplace {
    let work = Workplace::new();
    work.write("study.toml", changed(&changed(&long(), "seeds = 400", "seeds = 7"), "rounds = 2_000", "rounds = 600"));
    work.run_file("study.toml", "whole", &[]);
    work
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/cluster").join(name)
}

/// A shell in which `fedgenie` is this binary.
fn shell(work: &Workplace, words: &[&str], variables: &[(&str, String)]) -> Child {
    let binary = Path::new(env!("CARGO_BIN_EXE_fedgenie")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command.args(words).current_dir(work.path("")).env("PATH", path).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.envs(variables.iter().map(|(name, value)| (name, value))).spawn().unwrap()
}

/// The command of an example's heading that puts the parts together.
fn merge(work: &Workplace, name: &str) -> Answer {
    let text = fs::read_to_string(example(name)).unwrap();
    let line = text.lines().find_map(|line| line.split_once("fedgenie merge")).unwrap().1;
    let command = format!("fedgenie merge{}", line.split("  ").next().unwrap());
    Answer::of(shell(work, &["-c", &command], &[]))
}

/// Starts the tasks, kills some in the middle of a run, and starts these again as the cluster does.
fn carried_out(work: &Workplace, start: &dyn Fn(usize) -> Child) {
    let mut tasks: Vec<Child> = (0..3).map(start).collect();
    for task in [1, 2] {
        let folder = format!("results/part-{}", task + 4);
        wait_for(|| complete(work, &folder) >= 1 && work.path(&folder).join(".fedgenie/process-0").exists());
        signal(&tasks[task], if task == 1 { "-KILL" } else { "-TERM" });
    }
    let first = Answer::of(tasks.remove(0));
    assert_eq!(first.code, 0, "{first:?}");
    for task in &mut tasks {
        task.wait().unwrap();
    }
    // Before they have gone on, what is there is put together, and what is not is named.
    let answer = merge(work, "slurm.sh");
    assert!(answer.code == 1 && answer.stderr.contains("in none of the folders"), "{answer:?}");
    fs::remove_dir_all(work.path("results/all")).unwrap();
    for answer in [1, 2].map(|task| Answer::of(start(task))) {
        assert_eq!(answer.code, 0, "{answer:?}");
    }
}

#[test]
fn an_array_of_slurm() {
    let work = study();
    let script = example("slurm.sh");
    let words = [script.to_str().unwrap(), "study.toml", "results"];
    // As `sbatch --array=4-6` numbers them.
    let start = |task: usize| {
        let number = |name, value: usize| (name, value.to_string());
        let variables = [
            number("SLURM_ARRAY_TASK_ID", task + 4),
            number("SLURM_ARRAY_TASK_MIN", 4),
            number("SLURM_ARRAY_TASK_MAX", 6),
            number("SLURM_ARRAY_TASK_COUNT", 3),
            number("SLURM_ARRAY_TASK_STEP", 1),
            number("SLURM_CPUS_PER_TASK", 1),
        ];
        shell(&work, &words, &variables)
    };
    carried_out(&work, &start);
    let answer = merge(&work, "slurm.sh");
    assert_eq!(answer.code, 0, "{answer:?}");
    assert_same_folders(&work, "whole", "results/all");
}

#[test]
fn an_indexed_job_of_kubernetes() {
    let work = study();
    let text = fs::read_to_string(example("kubernetes.yaml")).unwrap();
    let number = |key: &str| -> usize {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(key)).unwrap();
        line.trim().trim_matches('"').parse().unwrap()
    };
    assert_eq!(number("completions:"), number("value:"), "FEDGENIE_SHARDS is the number of pods");
    let script = text.split("- |\n").nth(1).unwrap().split("          resources:").next().unwrap();
    let script = script.replace("/scenario/study.toml", "study.toml").replace("--threads 2", "--threads 1");
    // Three pods of indices 4 to 6 of seven: the other parts are made by the first of them, one after the other.
    let start = |task: usize| {
        let variables =
            |index: usize| [("JOB_COMPLETION_INDEX", index.to_string()), ("FEDGENIE_SHARDS", "7".to_owned())];
        if task == 0 {
            for index in 0..4 {
                let answer = Answer::of(shell(&work, &["-ec", &script], &variables(index)));
                assert_eq!(answer.code, 0, "{answer:?}");
            }
        }
        shell(&work, &["-ec", &script], &variables(task + 4))
    };
    carried_out(&work, &start);
    let answer = merge(&work, "kubernetes.yaml");
    assert_eq!(answer.code, 0, "{answer:?}");
    assert_same_folders(&work, "whole", "results/all");
}

#[test]
fn outside_of_a_cluster_the_variables_are_named() {
    let work = Workplace::with(&long());
    let answer = work.fedgenie(&["run", "scenario.toml", "--out", "out", "--shard", "auto"]);
    assert_eq!(answer.code, 2, "{answer:?}");
    for name in ["SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX", "FEDGENIE_SHARDS"] {
        assert!(answer.stderr.contains(name), "{answer:?}");
    }
    assert!(!work.path("out").exists());
}
