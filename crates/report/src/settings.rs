//! How the scenarios of several folders differ.

use super::model::Experiment;
use super::source::Results;
use std::collections::{BTreeMap, BTreeSet};
use toml::Value;

/// The most settings that are listed.
const MOST: usize = 30;

/// What the facts of a folder say anyway.
const KNOWN: [&str; 3] = ["name", "title", "seeds"];

/// Adds to the facts of each folder the value of every setting that differs between them, by dotted path.
pub(super) fn add_differing(experiments: &mut [Experiment], results: &[Results]) {
    let settings: Vec<BTreeMap<String, String>> = results.iter().map(|results| flat(results.table())).collect();
    let paths = differing(&settings);
    for (experiment, settings) in experiments.iter_mut().zip(&settings) {
        for path in paths.iter().take(MOST) {
            let value = settings.get(path).map_or_else(|| "–".to_owned(), Clone::clone);
            experiment.facts.push([path.clone(), value]);
        }
        if paths.len() > MOST {
            let rest = format!("… and {} more settings", paths.len() - MOST);
            experiment.facts.push([rest, "see the resolved scenario".to_owned()]);
        }
    }
}

/// Paths of the settings that are not the same everywhere.
pub(super) fn differing(settings: &[BTreeMap<String, String>]) -> Vec<String> {
    let paths: BTreeSet<&String> = settings.iter().flat_map(BTreeMap::keys).collect();
    let differs = |path: &&&String| settings.windows(2).any(|pair| pair[0].get(**path) != pair[1].get(**path));
    paths.iter().filter(differs).map(|path| (*path).clone()).collect()
}

/// Every value of a scenario by its path; tables in lists are numbered from 1, lists of values are one value.
pub(super) fn flat(table: &toml::Table) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    for (key, value) in table.iter().filter(|(key, _)| !KNOWN.contains(&key.as_str())) {
        add(key.clone(), value, &mut settings);
    }
    settings
}

fn add(path: String, value: &Value, settings: &mut BTreeMap<String, String>) {
    match value {
        Value::Table(table) if !table.is_empty() => {
            table.iter().for_each(|(key, value)| add(format!("{path}.{key}"), value, settings));
        }
        Value::Array(list) if list.iter().any(Value::is_table) => {
            let item = |(index, value): (usize, &Value)| add(format!("{path}[{}]", index + 1), value, settings);
            list.iter().enumerate().for_each(item);
        }
        Value::String(text) => {
            settings.insert(path, text.clone());
        }
        other => {
            settings.insert(path, other.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_told_by_its_path() {
        let of = |text: &str| flat(&text.parse().unwrap());
        let one = of("name = \"a\"\n[stop]\nrounds = 3\n[policy.random]\n[[group]]\ncount = 1\n[[group]]\ncount = 2\n");
        let other =
            of("name = \"b\"\n[stop]\nrounds = 3\n[policy.genie]\n[[group]]\ncount = 1\n[[group]]\ncount = 5\n");
        let paths = differing(&[one.clone(), other]);
        assert_eq!(paths, ["group[2].count", "policy.genie", "policy.random"]);
        assert_eq!(one["group[2].count"], "2");
        assert!(differing(&[one.clone(), one]).is_empty());
    }
}
