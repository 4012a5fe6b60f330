//! One case for every variant of every public error: its cause from outside, and the state that remains. The source
//! lists the errors: a variant without a case fails, and so does a case without a variant.

mod commands;
mod data;
mod logs;
mod numbers;
mod partitions;
mod rounds;
mod source;

pub use super::support::PLAIN;
use super::support::{SCENARIO, Workplace};
use fedgenie::experiment::{Experiment, Overrides};
use fedgenie::task::{DataCache, TaskError};
use fedgenie::world::WorldError;
use std::any::type_name;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Debug, Display};
use std::fs;
use std::path::{Path, PathBuf};

/// An error that a case provoked.
pub struct Provoked {
    /// The error's type, without its path.
    of: &'static str,
    debug: String,
    message: String,
}

/// The provoked error, for the table.
pub fn told<E: Debug + Display>(error: E) -> Provoked {
    let of = type_name::<E>().rsplit("::").next().unwrap();
    Provoked { of, debug: format!("{error:?}"), message: error.to_string() }
}

/// An error and its cause. `Enum::Variant`, or `Struct`.
pub type Case = (&'static str, fn() -> Provoked);

pub const TRAINING: &str = "[training]\nbatch = 4\noptimizer = { sgd = { lr = 0.1 } }\n";

/// Everything below a folder, with its contents.
pub fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path))
        } else {
            drop(found.insert(path.clone(), fs::read(path).unwrap()))
        }
    }
    found
}

/// The world of a scenario cannot be built. The command says so, its exit code is 2, and it has made and changed
/// nothing; neither has the library, which says the same again.
pub fn refused_world(scenario: &str, files: &[(&str, Vec<u8>)]) -> WorldError {
    let place = Workplace::with(scenario);
    files.iter().for_each(|(name, bytes)| place.write(name, bytes));
    let before = contents(&place.path(""));
    let answer = place.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{answer:?}");
    assert!(answer.stderr.starts_with("fedgenie: error: ") && answer.stderr.lines().count() == 1, "{answer:?}");
    let experiment = Experiment::load(&place.path(SCENARIO), &Overrides::default()).unwrap();
    let cache = DataCache::default();
    let build = || experiment.first().plan.build(1, &cache).unwrap_err();
    let (error, again) = (build(), build());
    assert_eq!(error.to_string(), again.to_string());
    let sentence = match &error {
        WorldError::Task(error) => error.to_string(),
        WorldError::Scenario(complaint) => complaint.message.clone(),
    };
    let first: String = sentence.chars().take(60).collect();
    assert!(answer.stderr.contains(&first), "{first:?} should be said in {answer:?}");
    assert_eq!(contents(&place.path("")), before, "files were changed");
    error
}

/// As [`refused_world`], of a task.
pub fn refused_task(scenario: &str, files: &[(&str, Vec<u8>)]) -> TaskError {
    match refused_world(scenario, files) {
        WorldError::Task(error) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_variant_of_every_public_error_has_a_case() {
    let cases: Vec<Case> =
        [commands::CASES, data::CASES, logs::CASES, numbers::CASES, partitions::CASES, rounds::CASES].concat();
    let declared: BTreeSet<String> = source::declared();
    assert!(declared.len() > 100, "{declared:?}");
    let mut known = BTreeSet::new();
    for (name, _) in &cases {
        assert!(known.insert((*name).to_owned()), "{name} has two cases");
    }
    let missing: Vec<_> = declared.difference(&known).collect();
    assert!(missing.is_empty(), "no case provokes {missing:?}");
    let unknown: Vec<_> = known.difference(&declared).collect();
    assert!(unknown.is_empty(), "there are no such errors: {unknown:?}");
}

/// Provokes some errors, each of which is the one that it is to be.
fn provoke(cases: &[Case]) {
    for (name, provoke) in cases {
        let Provoked { of, debug, message } = provoke();
        let (kind, variant) = name.split_once("::").unwrap_or((name, name));
        let found: String = debug.chars().take_while(|letter| letter.is_alphanumeric()).collect();
        assert_eq!((of, found.as_str()), (kind, variant), "{name}: {debug}");
        assert!(!message.is_empty() && message.len() < 4_096, "{name}: {message}");
    }
}

#[test]
fn errors_of_commands() {
    provoke(commands::CASES);
}

#[test]
fn errors_of_data() {
    provoke(data::CASES);
}

#[test]
fn errors_of_logs() {
    provoke(logs::CASES);
}

#[test]
fn errors_of_numbers() {
    provoke(numbers::CASES);
}

#[test]
fn errors_of_partitions() {
    provoke(partitions::CASES);
}

#[test]
fn errors_of_rounds() {
    provoke(rounds::CASES);
}
