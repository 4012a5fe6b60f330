//! Policies and tasks of a program that a scenario names, with parameters.

use super::support::{SCENARIO, Workplace, line_of};
use fedgenie::config::Complaint;
use fedgenie::error::Error;
use fedgenie::experiment::verify::{ReplayOptions, Verdict, verify_within};
use fedgenie::experiment::{Earlier, Experiment, Overrides, RunOptions, Summary, Threads};
use fedgenie::policy::{BuildContext, Policy, PolicySettings, random};
use fedgenie::scenario::{Details, Given, Kinds, Parameters};
use fedgenie::task::{TaskConfig, TaskSettings};
use serde_json::json;
use std::sync::{Arc, Mutex};

const NAMED: &str = r#"
name = "named"
seeds = 2
[stop]
rounds = 8
[population]
clients = 6
[population.latency]
download = { constant = "1 s" }
compute = { exponential = { mean = "2 s" } }
upload = { constant = "1 s" }
[protocol.synchronous]
cohort = 2
[policy.random]
[policy.mine]
c = 3.0
[policy.other]
kind = "mine"
"#;

fn details() -> Details {
    let defaults = json!({ "c": 1.0, "names": ["a"] }).as_object().unwrap().clone();
    Details { defaults, fingerprint: "one".to_owned(), found_at: Some("module:Mine".to_owned()), ..Details::default() }
}

fn as_random(context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
    random::Config::default().build(context)
}

/// Kinds of a program whose policy `mine` selects as `random` does.
fn kinds(details: Details) -> Kinds {
    let mut kinds = Kinds::of("program 1.2");
    kinds.policy("mine", details, |context, _| as_random(context)).unwrap();
    kinds
}

fn load(work: &Workplace, kinds: Kinds) -> Result<Experiment, Error> {
    Experiment::load(&work.path(SCENARIO), &Overrides { kinds, ..Overrides::default() })
}

fn one() -> Threads {
    Threads::new(1).unwrap()
}

fn digests(summary: &Summary, arm: &str) -> Vec<String> {
    let of_arm = summary.runs.iter().filter(|run| run.arm == arm);
    of_arm.map(|run| run.digest.timeline.clone()).collect()
}

#[test]
fn a_policy_is_told_its_parameters_its_point_and_its_seed() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let (mut kinds, kept) = (Kinds::of("program"), told.clone());
    let make = move |context: &BuildContext<'_>, Given { parameters, point }: Given<'_>| {
        let settings: Vec<String> = point.settings.iter().map(|(path, value)| format!("{path}={value}")).collect();
        kept.lock().unwrap().push(format!("{} {} {}", parameters["c"], context.seed, settings.join(" ")));
        as_random(context)
    };
    kinds.policy("mine", details(), make).unwrap();
    let work = Workplace::with(&format!("{NAMED}[sweep]\n\"policy.mine.c\" = [2.0, 4.5]\n"));
    let experiment = load(&work, kinds).unwrap();
    told.lock().unwrap().clear();
    let summary = experiment.run(&one()).unwrap();
    let mut expected = Vec::new();
    for point in ["2.0", "4.5"] {
        for seed in 1..=2 {
            expected.extend([point, "1.0"].map(|c| format!("{c} {seed} policy.mine.c={point}")));
        }
    }
    let mut found = std::mem::take(&mut *told.lock().unwrap());
    // The first seed of a point is checked before it is run.
    found.sort();
    found.dedup();
    expected.sort();
    assert_eq!(found, expected);
    assert_eq!(digests(&summary, "mine"), digests(&summary, "random"), "they decide alike, from the same stream");
    assert_eq!(summary.points[1]["policy.mine.c"], "4.5");
}

#[test]
fn the_resolved_scenario_has_it_with_its_defaults() {
    let work = Workplace::with(NAMED);
    let experiment = load(&work, kinds(details())).unwrap();
    let resolved: toml::Table = experiment.resolved.parse().unwrap();
    let expected = |c: f64| format!("kind = \"mine\"\nc = {c:?}\nnames = [\"a\"]\n").parse::<toml::Table>().unwrap();
    assert_eq!(resolved["policy"]["mine"].as_table(), Some(&expected(3.0)));
    assert_eq!(resolved["policy"]["other"].as_table(), Some(&expected(1.0)));
    // Read again it is the same.
    let again = Workplace::with(&experiment.resolved);
    assert_eq!(load(&again, kinds(details())).unwrap().resolved, experiment.resolved);
}

#[test]
fn one_that_no_arm_has_becomes_an_arm() {
    let without = NAMED.split("[policy.mine]").next().unwrap();
    let (work, labels) = (Workplace::with(without), |experiment: &Experiment| experiment.labels());
    let mut both = kinds(details());
    both.policy("second", Details::default(), |context, _| as_random(context)).unwrap();
    assert_eq!(labels(&load(&work, both).unwrap()), ["random", "mine", "second"]);
    let alone = Workplace::with(without.split("[policy.random]").next().unwrap());
    assert_eq!(labels(&load(&alone, kinds(details())).unwrap()), ["mine"], "a scenario need not have another");
    let named = Workplace::with(&format!("{without}[policy.other]\nkind = \"mine\"\n"));
    assert_eq!(labels(&load(&named, kinds(details())).unwrap()), ["random", "other"]);
}

#[test]
fn wrong_names_and_parameters_are_refused_where_they_stand() {
    let refused = |text: &str, part: &str, details: Details, says: &str| {
        let work = Workplace::with(text);
        let error = load(&work, kinds(details)).unwrap_err().to_string();
        let line = line_of(text, part);
        assert!(error.contains(&format!("{SCENARIO}:{line}: ")) && error.contains(says), "{error}");
    };
    let close = NAMED.replace("c = 3.0", "cc = 3.0");
    refused(&close, "cc = 3.0", details(), "policy.mine.cc: unknown key \"cc\"; did you mean \"c\"? known: c, names");
    refused(NAMED, "c = 3.0", Details::default(), "policy.mine.c: unknown key \"c\"; no key is known here");
    let open = load(&Workplace::with(NAMED), kinds(Details { is_open: true, ..Details::default() })).unwrap();
    assert!(open.resolved.contains("c = 3.0"));
    let needs = Details { required: vec!["rate".to_owned()], ..details() };
    let error = load(&Workplace::with(NAMED), kinds(needs)).unwrap_err().to_string();
    assert!(error.contains("policy.mine: the key \"rate\" is missing"), "{error}");
    // A label that the program's policy would take.
    let taken =
        NAMED.replace("[policy.mine]\nc = 3.0", "[policy.mine]\nkind = \"random\"").replace("kind = \"mine\"", "");
    let error = load(&Workplace::with(&taken), kinds(details())).unwrap_err().to_string();
    assert!(error.contains("policy.mine: this label is the name of a policy of program 1.2"), "{error}");
    let mut both = kinds(details());
    for (name, says) in [
        ("random", "there is a policy \"random\" already"),
        ("mine", "there is a policy \"mine\" already"),
        ("My own", "found the policy \"My own\"; expected a name of lower-case letters"),
    ] {
        let error = both.policy(name, Details::default(), |context, _| as_random(context)).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    let error =
        load(&Workplace::with(&NAMED.replace("\"mine\"", "\"mime\"")), kinds(details())).unwrap_err().to_string();
    assert!(error.contains("unknown policy \"mime\"; did you mean \"mine\"?"), "{error}");
}

/// A complaint of the program's own is told with file and line.
#[test]
fn a_programs_complaint_names_the_line() {
    let mut kinds = Kinds::of("program");
    let make = |_: &BuildContext<'_>, given: Given<'_>| match given.parameters["c"].as_f64() {
        Some(3.0) => Err(Complaint::new("c", "found 3.0; expected anything else")),
        _ => unreachable!(),
    };
    kinds.policy("mine", details(), make).unwrap();
    let work = Workplace::with(NAMED);
    let error = load(&work, kinds).unwrap().run(&one()).unwrap_err().to_string();
    let line = line_of(NAMED, "c = 3");
    assert!(error.contains(&format!("{SCENARIO}:{line}: policy.mine.c: found 3.0; expected anything else")), "{error}");
}

fn verified(work: &Workplace, kinds: &Kinds) -> Result<Verdict, Error> {
    verify_within(&work.path("out"), &ReplayOptions { kinds: kinds.clone(), ..ReplayOptions::default() }, &one())
}

#[test]
fn a_folder_is_replayed_with_the_program_that_made_it() {
    let work = Workplace::with(NAMED);
    let folder = work.path("out");
    let experiment = load(&work, kinds(details())).unwrap();
    experiment.run_with(&RunOptions::into(&folder), &one()).unwrap().whole().unwrap();
    let outside = &work.json("out/manifest.json")["outside"];
    let code = json!({ "fingerprint": "one", "found_at": "module:Mine" });
    assert_eq!(*outside, json!({ "program": "program 1.2", "policies": { "mine": code } }));
    let verdict = verified(&work, &kinds(details())).unwrap();
    assert!(verdict.is_good() && verdict.runs == 6, "{verdict:?}");
    // Without the program it says how.
    let says = "the policy mine is a program's own (program 1.2); where Python is there, `fedgenie verify ";
    let error = verified(&work, &Kinds::default()).unwrap_err().to_string();
    assert!(error.starts_with(says) && error.contains(" --with mine=module:Mine` replays it"), "{error}");
    for words in [&["verify", "out"][..], &["run", "out/scenario.toml", "--out", "out", "--resume"]] {
        let answer = work.fedgenie(words);
        assert!(answer.code == 2 && answer.stderr.contains("the policy mine is a program's own"), "{answer:?}");
    }
    // Other commands need no program.
    for words in [&["report", "out", "-o", "page"][..], &["export", "out", "--to", "csv", "-o", "tables"]] {
        let answer = work.fedgenie(words);
        assert_eq!(answer.code, 0, "{answer:?}");
    }
    // Other code is not taken for the same.
    let other = || kinds(Details { fingerprint: "two".to_owned(), ..details() });
    let difference = verified(&work, &other()).unwrap().difference.unwrap();
    assert_eq!(difference.what, "the code of the policy mine is not that of the runs there; nothing was replayed");
    let resumed = RunOptions { earlier: Earlier::Resume, ..RunOptions::into(&folder) };
    let error = load(&work, other()).unwrap().run_with(&resumed, &one()).unwrap_err().to_string();
    assert!(
        error.contains("the code of the policy mine is not that of the runs there; choose a new folder"),
        "{error}"
    );
    assert_eq!(load(&work, kinds(details())).unwrap().run_with(&resumed, &one()).unwrap().complete, 6);
}

/// Without a place where a command finds the code, the program itself must be asked.
#[test]
fn a_program_is_named_that_no_command_finds() {
    let work = Workplace::with(NAMED);
    let nowhere = || kinds(Details { found_at: None, ..details() });
    load(&work, nowhere()).unwrap().run_with(&RunOptions::into(&work.path("out")), &one()).unwrap().whole().unwrap();
    let error = verified(&work, &Kinds::default()).unwrap_err().to_string();
    assert_eq!(error, "the policy mine is a program's own (program 1.2); verify the folder with that program");
    assert!(verified(&work, &nowhere()).unwrap().is_good());
}

/// The program's task is the catalogue's `linear-regression` under another name.
fn lines(program: &str) -> Kinds {
    let mut kinds = Kinds::of(program);
    let defaults: Parameters = json!({ "examples": 100 }).as_object().unwrap().clone();
    let make = |given: Given<'_>| -> Result<Arc<dyn TaskSettings>, Complaint> {
        let of_catalogue = json!({ "linear-regression": given.parameters });
        let config: Result<TaskConfig, _> = serde_json::from_value(of_catalogue);
        config.map(TaskConfig::into_settings).map_err(|error| Complaint::new("examples", error.to_string()))
    };
    kinds.task("lines", Details { defaults, is_open: true, ..Details::default() }, make).unwrap();
    kinds
}

#[test]
fn a_task_is_named_swept_and_replayed() {
    let common = NAMED.split("[policy.mine]").next().unwrap();
    let training = "[training]\nbatch = 8\noptimizer = { sgd = { lr = 0.05 } }\n";
    let of = |task: &str, sweep: &str| format!("{common}{training}{task}[sweep]\n{sweep} = [120, 200]\n");
    let own = Workplace::with(&of("[task.lines]\npartition = { iid = {} }\n", "\"task.lines.examples\""));
    let catalogue = Workplace::with(&of(
        "[task.linear-regression]\nexamples = 120\npartition = { iid = {} }\n",
        "\"task.linear-regression.examples\"",
    ));
    let experiment = load(&own, lines("program 2")).unwrap();
    let summary = experiment.run_with(&RunOptions::into(&own.path("out")), &one()).unwrap().whole().unwrap();
    let expected = load(&catalogue, Kinds::default()).unwrap().run(&one()).unwrap();
    let digests = |summary: &Summary| summary.runs.iter().map(|run| run.digest.clone()).collect::<Vec<_>>();
    assert_eq!(digests(&summary), digests(&expected));
    assert_ne!(summary.runs[0].digest.model, summary.runs[2].digest.model, "the sweep has an effect");
    let resolved: toml::Table = experiment.resolved.parse().unwrap();
    assert_eq!(resolved["task"]["lines"].as_table().unwrap().len(), 2);
    assert_eq!(own.json("out/manifest.json")["outside"]["tasks"], json!({ "lines": {} }));
    assert!(verified(&own, &lines("program 2")).unwrap().is_good());
    let error = verified(&own, &Kinds::default()).unwrap_err().to_string();
    assert_eq!(error, "the task lines is a program's own (program 2); verify the folder with that program");
    // A scenario without a task gets the only one.
    let without = Workplace::with(&format!("{common}{training}"));
    assert!(load(&without, lines("program")).unwrap().resolved.contains("[task.lines]\nexamples = 100\n"));
    // One that names another keeps it.
    let other = load(&catalogue, lines("program")).unwrap();
    assert!(!other.resolved.contains("[task.lines]"));
}
