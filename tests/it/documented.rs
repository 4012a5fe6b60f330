//! Output is documented: every field of `summary.json` stands in the tables of `docs/artefacts.md`.

use super::support::{PLAIN, Workplace, changed};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The fields that the section names at the beginning of a table's row.
fn described() -> BTreeSet<String> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/artefacts.md")).unwrap();
    let (_, section) = text.split_once("### `summary.json`").unwrap();
    let section = section.split_once("\n## ").unwrap().0;
    let rows = section.lines().filter_map(|line| line.strip_prefix("| ")).filter_map(|row| row.split('|').next());
    rows.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

fn keys(value: &Value) -> impl Iterator<Item = &String> {
    value.as_object().unwrap().keys()
}

#[test]
fn every_field_of_the_summary_is_described() {
    let learned = "[task.linear-regression]\nexamples = 200\n\n[protocol.synchronous]";
    let evaluate = "[evaluate]\nevery = 2\nat_traffic = [\"1 kB\"]\n\
                    targets = [{ metric = \"test_loss\", at_most = 1.0 }]\n\
                    converged = { metric = \"test_loss\", evaluations = 2 }\n";
    let sweep = "[sweep]\n\"protocol.synchronous.cohort\" = [2, 3]\n";
    let policies = "[policy.other]\nkind = \"random\"\nwith = { \"training.epochs\" = 2 }\n";
    let scenario = changed(PLAIN, "[protocol.synchronous]", learned);
    let place = Workplace::with(&format!(
        "{scenario}{policies}[training]\noptimizer = {{ sgd = {{ lr = 0.01 }} }}\n{evaluate}{sweep}"
    ));
    place.run_into("out", &[]);
    let (summary, described) = (place.json("out/summary.json"), described());
    let entries = ["runs", "arms", "compared"].map(|list| summary[list].as_array().unwrap());
    let all = keys(&summary).chain(entries.into_iter().flatten().flat_map(keys)).collect::<BTreeSet<_>>();
    for field in
        ["scenario", "virtual_time_s", "partition", "reached", "converged", "until", "along", "with", "at_bytes"]
    {
        assert!(all.iter().any(|known| *known == field), "this world has no {field}: {all:?}");
    }
    let missing: Vec<_> = all.into_iter().filter(|field| !described.contains(*field)).collect();
    assert!(missing.is_empty(), "docs/artefacts.md does not describe {missing:?}");
}
