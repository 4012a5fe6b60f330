//! Every component is documented, tried by hand where it decides, and shown in a scenario.

use super::root;
use crate::support::Workplace;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// What the opening comment of a policy has.
const HEADINGS: [&str; 7] =
    ["Definition", "Inputs", "Explanation", "Source", "Deviations from the source", "Cost", "Determinism"];

/// A policy's file says what it is, where it comes from, and in what it differs from there.
#[test]
fn every_policy_is_documented_in_full() {
    for entry in fedgenie::policy::CATALOGUE.entries {
        for heading in HEADINGS {
            assert!(entry.source.contains(&format!("//! # {heading}\n")), "{} lacks {heading}", entry.name);
        }
    }
}

#[test]
fn every_policy_has_a_trace_worked_out_by_hand() {
    let traces = ["conformance", "mab_frs", "fedacs", "oort", "harmony_style", "proxyrl"];
    let traces = traces.map(|file| fs::read_to_string(root().join(format!("tests/it/{file}.rs"))).unwrap()).concat();
    for entry in fedgenie::policy::CATALOGUE.entries {
        let name = entry.name;
        let is_traced = traces.contains(&format!("\"{name}\""))
            || traces.contains(&format!("= {name}"))
            || traces.contains(&format!("policy.{name} ="));
        assert!(is_traced, "{name} has no trace in tests/it/conformance.rs, nor in a file of its own");
    }
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

#[test]
fn every_entry_of_the_catalogue_has_a_scenario() {
    let mut shown = BTreeSet::new();
    words_of_scenarios(&root().join("scenarios"), &mut shown);
    let list = Workplace::new().fedgenie(&["list"]);
    assert_eq!(list.code, 0, "{}", list.stderr);
    let entries: Vec<&str> = list.stdout.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(entries.len() > 70, "{entries:?}");
    let published = fedgenie::ratings::named::ENTRIES.map(|entry| entry.name);
    for entry in entries {
        let (kind, name) = entry.split_once('/').unwrap();
        // A section's name is a path; a data set's folder says which reader reads it.
        let is_shown = name.split('.').all(|key| shown.contains(key))
            || (kind == "data" && name == "idx" && shown.contains("fashion-mnist"))
            || (kind == "data" && name == "cifar10" && shown.contains("cifar10"))
            // One published set of ratings shows how all are named.
            || (kind == "ratings" && published.contains(&name) && shown.contains("ml-100k"));
        // Most metrics are measured unasked; scenarios name those that they add.
        let is_added = [true, false]
            .into_iter()
            .any(|classifies| fedgenie::formulas::of_rows(classifies).any(|metric| metric.measure.name == name));
        let is_shown = is_shown || kind == "metric" && !is_added;
        // Forms of values have no name in scenarios.
        assert!(is_shown || ["cpu", "value"].contains(&kind), "no scenario below scenarios/ shows {entry}");
    }
}
