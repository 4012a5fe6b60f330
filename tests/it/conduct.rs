//! An experiment that a program carries out with the options of the command.

use super::replay::BANDIT;
use super::support::{Defective, SCENARIO, Script, Workplace, assert_same_folders};
use fedgenie::error::Error;
use fedgenie::experiment::stored::Status;
use fedgenie::experiment::{Conclusion, Earlier, Experiment, Overrides, Progress, RunId, RunOptions, Shard, Threads};
use fedgenie::recorder::RunFileOptions;
use fedgenie::report::write_with_records;
use std::path::Path;
use std::sync::{Arc, Mutex};

fn load(work: &Workplace) -> Experiment {
    Experiment::load(&work.path(SCENARIO), &Overrides::default()).unwrap()
}

fn threads() -> Threads {
    Threads::new(2).unwrap()
}

/// The messages in their order; runs end in any.
#[derive(Default)]
struct Noted(Mutex<Vec<String>>);

impl Noted {
    fn note(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }

    fn taken(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Progress for Noted {
    fn warned(&self, warning: &str) {
        self.note(format!("warned {warning}"));
    }

    fn runs_repeated(&self, why: &[String]) {
        self.note(format!("repeated {why:?}"));
    }

    fn runs_begin(&self, count: usize) {
        self.note(format!("begin {count}"));
    }

    fn run_ended(&self, _: &RunId, done: usize, total: usize) {
        if done == total {
            self.note(format!("ended {total}"));
        }
    }

    fn runs_ended(&self) {
        self.note("all ended".to_owned());
    }

    fn run_failed(&self, run: &RunId, _: &Error) {
        self.note(format!("failed {}", run.name));
    }

    fn writing_begins(&self, folder: &Path) {
        self.note(format!("writes {}", folder.file_name().unwrap().to_string_lossy()));
    }
}

#[test]
fn the_folder_is_the_commands() {
    let work = Workplace::with(BANDIT);
    work.run_into("command", &["--events"]);
    let (experiment, noted, folder) = (load(&work), Noted::default(), work.path("library"));
    let files = RunFileOptions { events: true, timeline: None };
    let draw = Some(&write_with_records as _);
    let options = RunOptions { files, draw, progress: &noted, ..RunOptions::into(&folder) };
    let outcome = experiment.run_with(&options, &threads()).unwrap();
    assert_eq!((outcome.complete, outcome.total, outcome.failures.len()), (6, 6, 0));
    assert!(matches!(outcome.conclusion, Conclusion::Written));
    assert_eq!(noted.taken(), ["repeated []", "begin 6", "ended 6", "all ended", "writes library"]);
    assert_same_folders(&work, "command", "library");
    assert_eq!(work.fedgenie(&["verify", "library"]).code, 0);
    // The summary is the one that was written.
    let text = serde_json::to_string(&outcome.summary).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), work.json("library/summary.json"));
}

#[test]
fn earlier_runs_are_refused_kept_or_deleted() {
    let work = Workplace::with(BANDIT);
    let (experiment, folder) = (load(&work), work.path("out"));
    let run = |earlier, shard| {
        let noted = Noted::default();
        let options = RunOptions { earlier, shard, progress: &noted, ..RunOptions::into(&folder) };
        experiment.run_with(&options, &threads()).map(|outcome| (outcome, noted.taken()))
    };
    let half = Shard::new(0, 2).unwrap();
    let (outcome, told) = run(Earlier::Refuse, half).unwrap();
    assert_eq!((outcome.complete, outcome.total, told[1].as_str()), (4, 4, "begin 4"), "seeds 1 and 3, two policies");
    // The folder's summary knows that the rest is missing.
    let missing: Vec<_> = outcome.summary.incomplete.iter().map(|run| (run.seed, run.status)).collect();
    assert_eq!(missing, [(2, Status::Missing), (2, Status::Missing)]);
    let error = run(Earlier::Refuse, Shard::WHOLE).unwrap_err();
    assert!(error.to_string().contains("holds this very experiment"), "{error}");
    let (outcome, told) = run(Earlier::Join, half).unwrap();
    assert_eq!((outcome.complete, told[1].as_str()), (4, "begin 4"), "its own runs are made anew");
    let (outcome, told) = run(Earlier::Resume, Shard::WHOLE).unwrap();
    assert_eq!((outcome.complete, outcome.total, told[1].as_str()), (6, 6, "begin 2"));
    assert!(outcome.summary.incomplete.is_empty());
    let (_, told) = run(Earlier::Overwrite, Shard::WHOLE).unwrap();
    assert_eq!(told[1], "begin 6");
}

#[test]
fn a_shard_without_runs_says_so() {
    let work = Workplace::with(BANDIT);
    let (noted, shard) = (Noted::default(), Shard::new(3, 4).unwrap());
    let options = RunOptions { shard, progress: &noted, ..RunOptions::default() };
    let outcome = load(&work).run_with(&options, &threads()).unwrap();
    assert_eq!((outcome.complete, outcome.total), (0, 0));
    let told = noted.taken();
    assert!(told[0].starts_with("warned shard 3/4 has no run: the experiment has 3 pairs"), "{told:?}");
}

#[test]
fn failures_are_kept_beside_the_results_of_the_others() {
    let work = Workplace::with(BANDIT);
    let mut experiment = load(&work);
    experiment.add_policy("empty", |_| Ok(Box::new(Script::new(&[])))).unwrap();
    experiment.add_policy("defective", |_| Ok(Box::new(Defective(3)))).unwrap();
    let noted = Noted::default();
    let options = RunOptions { progress: &noted, ..RunOptions::default() };
    let outcome = experiment.run_with(&options, &threads()).unwrap();
    assert!(matches!(outcome.conclusion, Conclusion::InMemory));
    let failed: Vec<&str> = outcome.failures.iter().map(|(run, _)| run.name.as_str()).collect();
    let expected = ["empty-s1", "defective-s1", "empty-s2", "defective-s2", "empty-s3", "defective-s3"];
    assert_eq!(failed, expected);
    let told: Vec<String> = noted.taken().into_iter().filter(|text| text.starts_with("failed")).collect();
    assert_eq!(told, expected.map(|run| format!("failed {run}")));
    assert_eq!((outcome.complete, outcome.total, outcome.summary.runs.len()), (6, 12, 6));
    assert_eq!(outcome.summary.incomplete.len(), 6);
    assert!(outcome.summary.incomplete.iter().all(|run| run.status == Status::Failed));
    assert_eq!(outcome.whole().unwrap_err().exit_code(), 3);
}

#[test]
fn what_is_stopped_keeps_its_complete_runs() {
    let work = Workplace::with(BANDIT);
    let (experiment, threads) = (load(&work), threads());
    threads.cancel();
    let folder = work.path("out");
    let outcome = experiment.run_with(&RunOptions::into(&folder), &threads).unwrap();
    assert!(matches!(outcome.conclusion, Conclusion::Cancelled));
    assert_eq!((outcome.complete, outcome.total), (0, 6));
    assert!(matches!(outcome.whole(), Err(Error::Cancelled)));
    assert!(!work.path("out/manifest.json").exists());
    let resumed = RunOptions { earlier: Earlier::Resume, ..RunOptions::into(&folder) };
    assert_eq!(experiment.run_with(&resumed, &Threads::new(1).unwrap()).unwrap().complete, 6);
}

/// Threads that carry out runs, and those that train, live within what the program puts around them.
#[test]
fn threads_live_within_the_programs_own() {
    let (begun, ended) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0)));
    let (begins, ends) = (begun.clone(), ended.clone());
    let around = move |work: &mut (dyn FnMut() + Send)| {
        *begins.lock().unwrap() += 1;
        work();
        *ends.lock().unwrap() += 1;
    };
    let threads = Threads::with(2, Arc::new(around)).unwrap();
    let work = Workplace::with(BANDIT);
    let summary = load(&work).run(&threads).unwrap();
    assert_eq!(summary.runs.len(), 6);
    assert_eq!((*begun.lock().unwrap(), *ended.lock().unwrap()), (4, 2), "two of the pool live on");
    drop(threads);
}
