//! Commands: their sentence, their exit code, and the folder's contents afterwards.

use super::{Case, Provoked, contents, told};
use crate::support::{Answer, Defective, PLAIN, SCENARIO, Workplace, changed, unheard, within};
use fedgenie::error::Error;
use fedgenie::experiment::apart::Gathering;
use fedgenie::experiment::{
    Earlier, Experiment, Outputs, Overrides, ResultFolder, RunOptions, Shard, Silent, Threads, execute,
};
use fedgenie::recorder::RunFileOptions;
use fedgenie::scenario::ScenarioError;
use fedgenie::task::DataCache;
use std::fs;

/// The command refuses, and leaves everything as it was.
fn refuses(place: &Workplace, words: &[&str], said: &str) {
    let before = contents(&place.path(""));
    let Answer { code, stdout, stderr } = place.fedgenie(words);
    assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
    assert!(stderr.starts_with("fedgenie: error: ") && stderr.contains(said), "{said:?} should be said in {stderr}");
    assert_eq!(contents(&place.path("")), before, "files were changed");
}

const RUN: [&str; 5] = ["run", SCENARIO, "--out", "out", "--quiet"];

fn wrong_scenario() -> ScenarioError {
    let place = Workplace::with(&changed(PLAIN, "rounds = 12", "ruonds = 12"));
    refuses(&place, &RUN, "scenario.toml:6: stop.ruonds: unknown key \"ruonds\"");
    match Experiment::load(&place.path(SCENARIO), &Overrides::default()).unwrap_err() {
        Error::Scenario(error) => error,
        other => panic!("{other:?}"),
    }
}

/// The folder to write into cannot be.
fn blocked() -> Error {
    let (place, name) = (Workplace::with(PLAIN), "x".repeat(300));
    let experiment = Experiment::load(&place.path(SCENARIO), &Overrides::default()).unwrap();
    refuses(&place, &["run", SCENARIO, "--out", &name], "cannot write xxx");
    let before = contents(&place.path(""));
    let error = ResultFolder::open(&place.path(&name), &experiment, Earlier::Refuse, Shard::WHOLE).unwrap_err();
    assert_eq!((contents(&place.path("")), error.exit_code()), (before, 2));
    error
}

/// A process that has too little room for threads' stacks, and enough for everything else.
fn no_threads() -> Error {
    let place = Workplace::with(PLAIN);
    let before = contents(&place.path(""));
    // With less the program cannot be loaded, with more it runs.
    for mib in (16..200).step_by(2) {
        let mut command = within(mib, env!("CARGO_BIN_EXE_fedgenie"));
        command.args(["run", SCENARIO, "--out", "out", "--quiet", "--threads", "15"]).current_dir(place.path(""));
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let Some(reason) = said.trim().strip_prefix("fedgenie: error: cannot start threads: ") else { continue };
        let error = Error::Threads(reason.to_owned());
        assert_eq!((output.status.code(), error.exit_code()), (Some(2), 2), "{said}");
        assert_eq!(contents(&place.path("")), before);
        return error;
    }
    panic!("there is always room for threads, or for nothing");
}

/// One of two runs fails; the other one is complete, and nothing is missing.
fn one_of_two() -> Error {
    let both = changed(
        PLAIN,
        "compute = { constant = \"2 s\" }",
        "compute = { pareto = { minimum = \"1 s\", shape = 0.05 } }",
    );
    // Seed 1 ends early; a policy that is content with one round does not.
    let place = Workplace::with(&changed(&both, "rounds = 12", "rounds = 12\nvirtual_time = \"1 s\""));
    let answer = place.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet", "--seeds", "40", "--threads", "2"]);
    assert_eq!(answer.code, 3, "{answer:?}");
    let manifest = place.json("out/manifest.json");
    let count = |key: &str| manifest[key].as_array().map_or(0, Vec::len);
    assert!(count("failed") > 0 && count("runs") > 0 && count("failed") + count("runs") == 40, "{manifest}");
    assert_eq!(place.fedgenie(&["verify", "out"]).code, 0);
    let experiment =
        Experiment::load(&place.path(SCENARIO), &Overrides { seeds: Some(40), ..Overrides::default() }).unwrap();
    let threads = Threads::new(1).unwrap();
    let results = execute(&experiment, &experiment.runs(), None, &threads, &DataCache::default(), &Silent);
    let (good, mut bad): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    assert_eq!((good.len(), bad.len()), (count("runs"), count("failed")));
    bad.remove(0).unwrap_err()
}

/// The runs of an experiment in a folder of their own.
fn carry_out(place: &Workplace, experiment: &Experiment, threads: &Threads) -> Vec<Result<(), Error>> {
    let folder = ResultFolder::open(&place.path("out"), experiment, Earlier::Resume, Shard::WHOLE).unwrap();
    let files = RunFileOptions::default();
    let outputs = Outputs { folder: &folder, files: &files, models: false, memory: None };
    let results = execute(experiment, &experiment.runs(), Some(outputs), threads, &DataCache::default(), &Silent);
    let mut complete: Vec<_> = results.iter().filter_map(|result| result.as_ref().ok().cloned()).collect();
    if !threads.is_cancelled() {
        folder.finish(experiment, &mut complete, |_, _| Ok(())).unwrap();
    }
    results.into_iter().map(|result| result.map(drop)).collect()
}

fn panicked() -> Error {
    let place = Workplace::with(PLAIN);
    let mut experiment = Experiment::load(&place.path(SCENARIO), &Overrides::default()).unwrap();
    experiment.add_policy("defective", |_| Ok(Box::new(Defective(3)))).unwrap();
    let mut results = carry_out(&place, &experiment, &Threads::new(1).unwrap());
    let error = results.pop().unwrap().unwrap_err();
    assert!(results.pop().unwrap().is_ok() && error.exit_code() == 3);
    assert_eq!(place.lines("out/runs/defective-s1/rounds.jsonl").len(), 2, "the rounds before stand");
    assert!(place.path("out/runs/random-s1/run.json").exists() && place.path("out/manifest.json").exists());
    error
}

/// A run whose process died wherever it was tried: the others stand, and the reason is kept.
fn lost() -> Error {
    let place = Workplace::with(PLAIN);
    let experiment = Experiment::load(&place.path(SCENARIO), &Overrides::default()).unwrap();
    let folder = place.path("out");
    let options = RunOptions::into(&folder);
    let gathering = Gathering::open(experiment, &options, false).unwrap();
    let why = "its process died 3 times: killed";
    gathering.give_up("random-s1", why).unwrap();
    let (_, summary) = gathering.finish(&options).unwrap();
    assert_eq!(summary.unwrap().incomplete[0].reason.as_deref(), Some(why));
    assert_eq!(place.json("out/runs/random-s1/failed.json")["error"], why);
    let error = Error::Lost { run: "random-s1".to_owned(), why: why.to_owned() };
    assert_eq!((error.exit_code(), error.to_string()), (3, format!("run random-s1 failed: {why}")));
    error
}

/// Runs that were stopped are as if they had not been begun, and can be made.
fn cancelled() -> Error {
    let place = Workplace::with(PLAIN);
    let experiment = Experiment::load(&place.path(SCENARIO), &Overrides::default()).unwrap();
    let threads = Threads::new(1).unwrap();
    threads.cancel();
    let error = carry_out(&place, &experiment, &threads).pop().unwrap().unwrap_err();
    assert!(!place.path("out/manifest.json").exists() && !place.path("out/runs/random-s1/run.json").exists());
    place.run_into("out", &["--resume"]);
    assert_eq!(place.fedgenie(&["verify", "out"]).code, 0);
    error
}

/// A file that somebody has edited; nothing is written of the folder's results.
fn changed_file() -> Error {
    let place = Workplace::with(PLAIN);
    place.run_into("out", &[]);
    let name = "out/runs/random-s1/run.json";
    place.write(name, place.text(name).replacen("\"rounds\": 12", "\"rounds\": 13", 1));
    let before = contents(&place.path(""));
    let answer = place.fedgenie(&["export", "out", "--to", "csv"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (1, ""), "{answer:?}");
    assert!(answer.stderr.contains("out/runs/random-s1/run.json is not the file that was written"), "{answer:?}");
    let error = unheard().read(&[place.path("out")]).unwrap_err();
    assert_eq!((error.exit_code(), contents(&place.path(""))), (1, before));
    error
}

fn unreadable() -> Provoked {
    let place = Workplace::new();
    place.write(SCENARIO, b"name = \"\xff\"\n");
    refuses(&place, &RUN, "cannot read scenario.toml: it is not UTF-8 text");
    fs::remove_file(place.path(SCENARIO)).unwrap();
    refuses(&place, &RUN, "cannot read scenario.toml: ");
    told(Experiment::load(&place.path(SCENARIO), &Overrides::default()).unwrap_err())
}

pub const CASES: &[Case] = &[
    ("ScenarioError", || told(wrong_scenario())),
    ("Error::Scenario", || told(Error::from(wrong_scenario()))),
    ("Error::Read", unreadable),
    ("Error::Write", || told(blocked())),
    ("Error::Usage", || {
        let place = Workplace::with(PLAIN);
        refuses(&place, &["run", SCENARIO, "--out", "out", "--threads", "1000000"], "found 1000000 threads");
        told(Threads::new(1_000_000).unwrap_err())
    }),
    ("Error::Threads", || told(no_threads())),
    ("Error::Run", || told(one_of_two())),
    ("Error::Panicked", || told(panicked())),
    ("Error::Lost", || told(lost())),
    ("Error::Cancelled", || told(cancelled())),
    ("Error::Changed", || told(changed_file())),
];
