//! Compares a manifest's runs with its scenario's: a policy that the manifest omits would go unnoticed.

use super::super::artefacts::{MANIFEST_FILE, Manifest, SCENARIO_FILE};
use super::Changed;
use crate::scenario::{Point, Seeds, expand_sweep, tree};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The first difference in policies, seeds and points between a manifest and the scenario beside it. A program may add
/// policies of its own. An unreadable scenario is reported elsewhere.
pub(super) fn disagreement(scenario: &str, table: &toml::Table, manifest: &Manifest) -> Option<Changed> {
    let other = |what: String| Some(Changed::new(MANIFEST_FILE, format!("{what} {SCENARIO_FILE}")));
    let policies = table.get("policy").and_then(toml::Value::as_table);
    if let Some(label) = policies.into_iter().flat_map(toml::Table::keys).find(|label| !manifest.arms.contains(label)) {
        return other(format!("lacks the policy {label} of"));
    }
    let seeds = table.get("seeds").and_then(|seeds| Seeds::deserialize(seeds.clone()).ok());
    // A count may be of any size; it is not expanded to be compared.
    let is_same = |seeds: &Seeds| match seeds {
        Seeds::Count(count) => {
            manifest.seeds.len() == *count as usize && manifest.seeds.iter().copied().eq(1..=u64::from(*count))
        }
        Seeds::List(seeds) => *seeds == manifest.seeds,
        Seeds::Until(until) => {
            let seeds = u64::from(until.seeds());
            manifest.seeds.len() as u64 == seeds && manifest.seeds.iter().copied().eq(1..=seeds)
        }
    };
    if seeds.is_some_and(|seeds| !is_same(&seeds)) {
        return other("has other seeds than".to_owned());
    }
    let points = expand_sweep(&tree::parse(Path::new(SCENARIO_FILE), scenario).ok()?).ok()?;
    let settings =
        |(point, _): &(Point, tree::Node)| -> BTreeMap<String, String> { point.settings.iter().cloned().collect() };
    if points.len() != manifest.points.len() || !points.iter().map(settings).eq(manifest.points.iter().cloned()) {
        return other("has other points of the sweep than".to_owned());
    }
    None
}
