//! Every component is documented, tried by hand where it decides, and shown in a scenario.

use super::source::{Violation, assert_named, assert_none, root};
use crate::support::Workplace;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The parts of a policy's opening comment.
const HEADINGS: [&str; 7] =
    ["Definition", "Inputs", "Explanation", "Source", "Deviations from the source", "Cost", "Determinism"];

fn lacking(component: &str, what: impl Into<String>) -> Violation {
    Violation { place: component.to_owned(), what: what.into() }
}

fn missing_headings(policy: &str, source: &str) -> Vec<Violation> {
    let missing = HEADINGS.iter().filter(|heading| !source.contains(&format!("//! # {heading}\n")));
    missing.map(|heading| lacking(policy, format!("its opening comment lacks {heading}"))).collect()
}

/// A policy's file has its definition, its source, and its deviations from the source.
#[test]
fn every_policy_is_documented_in_full() {
    let entries = fedgenie::policy::CATALOGUE.entries.iter();
    assert_none(&entries.flat_map(|entry| missing_headings(entry.name, entry.source)).collect::<Vec<_>>());
}

#[test]
fn a_missing_heading_is_named() {
    let whole: String = HEADINGS.iter().map(|heading| format!("//! # {heading}\n//! Text.\n")).collect();
    assert_named(&missing_headings("planted", &whole), &[]);
    // A heading of the source does not stand for that of deviations from it, nor the other way round.
    for heading in HEADINGS {
        let less = whole.replace(&format!("//! # {heading}\n"), &format!("//! {heading}\n"));
        assert_named(&missing_headings("planted", &less), &[("planted", &format!("lacks {heading}"))]);
    }
}

fn untraced<'a>(policies: impl Iterator<Item = &'a str>, traces: &str) -> Vec<Violation> {
    let is_traced = |name: &str| {
        traces.contains(&format!("\"{name}\""))
            || traces.contains(&format!("= {name}"))
            || traces.contains(&format!("policy.{name} ="))
    };
    let left = policies.filter(|name| !is_traced(name));
    left.map(|name| lacking(name, "has no trace in tests/it/conformance.rs, nor in a file of its own")).collect()
}

#[test]
fn every_policy_has_a_trace_worked_out_by_hand() {
    let traces = [
        "conformance",
        "mab_frs",
        "fedacs",
        "oort",
        "harmony_style",
        "proxyrl",
        "recorded",
        "age",
        "afl",
        "fedcs",
        "refl",
        "ucb_cs",
        "e3cs",
        "eafl",
        "optimal_sampling",
        "clustered_sampling",
        "tifl",
        "divfl",
        "flips",
        "haccs",
        "shapley",
        "pyramidfl",
        "critical_fl",
        "gpfl",
        "mini_batch",
        "similarity",
        "pisces",
        "delta",
        "fedcor",
    ];
    let traces = traces.map(|file| fs::read_to_string(root().join(format!("tests/it/{file}.rs"))).unwrap()).concat();
    assert_none(&untraced(fedgenie::policy::CATALOGUE.entries.iter().map(|entry| entry.name), &traces));
}

#[test]
fn a_policy_without_a_trace_is_named() {
    let traces = "trace(\"by-name\"); kind = by-kind; policy.by-key = {}; // planted in a comment";
    let names = ["by-name", "by-kind", "by-key", "planted"];
    assert_named(&untraced(names.into_iter(), traces), &[("planted", "no trace")]);
}

/// Keys and texts of a TOML value.
fn words(value: &toml::Value, found: &mut BTreeSet<String>) {
    match value {
        toml::Value::String(text) => drop(found.insert(text.clone())),
        toml::Value::Array(values) => values.iter().for_each(|value| words(value, found)),
        toml::Value::Table(table) => {
            for (key, value) in table {
                found.insert(key.clone());
                words(value, found);
            }
        }
        _ => {}
    }
}

fn words_of_scenarios(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            words_of_scenarios(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            words(&toml::from_str(&fs::read_to_string(&path).unwrap()).unwrap(), found);
        }
    }
}

/// Whether scenarios add a metric by its name.
fn adds(name: &str) -> bool {
    use fedgenie::formulas::{of_known, of_rows};
    of_rows(true).chain(of_rows(false)).chain(of_known()).any(|metric| metric.measure.name == name)
}

fn unshown<'a>(entries: impl Iterator<Item = &'a str>, shown: &BTreeSet<String>) -> Vec<Violation> {
    let published = fedgenie::ratings::named::ENTRIES.map(|entry| entry.name);
    let is_shown = |entry: &str| {
        let (kind, name) = entry.split_once('/').unwrap();
        // A section's name is a path; a data set's folder says which reader reads it.
        name.split('.').all(|key| shown.contains(key))
            || (kind == "data" && name == "idx" && shown.contains("fashion-mnist"))
            || (kind == "data" && name == "cifar10" && shown.contains("cifar10"))
            // One published set of ratings shows how all are named.
            || (kind == "ratings" && published.contains(&name) && shown.contains("ml-100k"))
            // Most metrics are measured unasked; scenarios name those that they add.
            || (kind == "metric" && !adds(name))
            // Forms of values have no name in scenarios.
            || ["cpu", "value"].contains(&kind)
    };
    entries
        .filter(|entry| !is_shown(entry))
        .map(|entry| lacking(entry, "no scenario below scenarios/ shows it"))
        .collect()
}

#[test]
fn every_entry_of_the_catalogue_has_a_scenario() {
    let mut shown = BTreeSet::new();
    words_of_scenarios(&root().join("scenarios"), &mut shown);
    let list = Workplace::new().fedgenie(&["list"]);
    assert_eq!(list.code, 0, "{}", list.stderr);
    let entries: Vec<&str> = list.stdout.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(entries.len() > 70, "{entries:?}");
    assert_none(&unshown(entries.into_iter(), &shown));
}

#[test]
fn an_entry_without_a_scenario_is_named() {
    let mut shown = BTreeSet::new();
    words(&toml::from_str("[population.trace]\nfile = 1\n[[list]]\nkind = \"random\"\n").unwrap(), &mut shown);
    let entries =
        ["policy/random", "section/population.trace", "value/any", "policy/planted", "section/population.lost"];
    let planted = [("policy/planted", "no scenario"), ("section/population.lost", "no scenario")];
    assert_named(&unshown(entries.into_iter(), &shown), &planted);
}
