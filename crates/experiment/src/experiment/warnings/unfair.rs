//! Comparisons that are missing, since runs were not fairly watched.

use super::super::answers::of_unfair;
use super::super::compared::Aim;
use super::super::estimates::FollowUps;
use super::super::until;
use super::super::{RunSummary, Summary};
use crate::scenario::points;
use std::collections::{BTreeMap, BTreeSet};

/// The most places that a warning names.
const MOST_NAMED: usize = 4;

/// A warning of policies that are not compared at points, and one of points that are not compared for policies.
pub(super) fn warnings(summary: &Summary) -> Vec<String> {
    let names = points::names(&summary.points);
    let of_points = names.iter().enumerate().map(|(point, name)| {
        let runs: Vec<_> = summary.runs.iter().filter(|run| run.point == point).collect();
        let count = runs.iter().map(|run| &run.arm).collect::<BTreeSet<_>>().len();
        (name.as_str(), count, runs)
    });
    let labels: BTreeSet<&String> = summary.runs.iter().map(|run| &run.arm).collect();
    let of_policies = labels.into_iter().map(|label| {
        let runs: Vec<_> = summary.runs.iter().filter(|run| run.arm == *label).collect();
        let count = runs.iter().map(|run| run.point).collect::<BTreeSet<_>>().len();
        (label.as_str(), count, runs)
    });
    let is_sweep = names.len() > 1;
    let policies = warning(summary, if is_sweep { "policies at" } else { "policies" }, of_points.collect());
    let settings = warning(summary, "settings of", of_policies.collect());
    policies.into_iter().chain(settings).collect()
}

/// The quantities in which candidates are not compared, at the places where they are not, and a remedy for the first.
/// Each place has its name, its number of candidates and their runs.
fn warning(summary: &Summary, candidates: &str, places: Vec<(&str, usize, Vec<&RunSummary>)>) -> Option<String> {
    let mut by_target: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let (mut at, mut all_runs): (Vec<&str>, Vec<&RunSummary>) = (Vec::new(), Vec::new());
    let mut keys = BTreeSet::new();
    for (name, _, runs) in places.into_iter().filter(|(_, candidates, _)| *candidates > 1) {
        let unfair: Vec<String> = FollowUps::of(runs.iter().copied()).unfair().collect();
        if unfair.is_empty() {
            continue;
        }
        at.extend(Some(name).filter(|name| !name.is_empty()));
        all_runs.extend(runs);
        for key in unfair {
            let (quantity, target) = key.split_once('.').unwrap_or((&key, ""));
            by_target.entry(target.to_owned()).or_default().insert(words(quantity).to_owned());
            keys.insert(key);
        }
    }
    // Time first: its remedy is the one that users look for.
    let key = keys.iter().find(|key| key.starts_with("time_to.")).or(keys.first())?;
    let follow_up = until::follow_up(key, all_runs.iter().copied());
    let (_, remedy) = of_unfair(&Aim::named(summary, key), follow_up, &all_runs);
    let remedy = match &remedy[..] {
        [] => String::new(),
        all => {
            let set: Vec<String> = all.iter().map(|setting| format!("--set '{setting}'")).collect();
            format!("; with {} they would be, in {}", set.join(" "), words(key.split('.').next().unwrap_or(key)))
        }
    };
    let rest = at.len().saturating_sub(MOST_NAMED);
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    at.truncate(MOST_NAMED);
    let at = if at.is_empty() { String::new() } else { format!(" {}{more}", at.join("; ")) };
    let one = |(target, quantities): (String, BTreeSet<String>)| {
        format!("{} to {target}", quantities.into_iter().collect::<Vec<_>>().join(", "))
    };
    let list = by_target.into_iter().map(one).collect::<Vec<_>>().join("; ");
    Some(format!(
        "{candidates}{at} are not all compared in {list}: runs ended without arriving before others arrived{remedy}"
    ))
}

fn words(quantity: &str) -> &str {
    match quantity {
        "time_to" => "time",
        "rounds_to" => "rounds",
        "bytes_to" => "bytes",
        "joules_to" => "joules",
        "compute_to" => "computing",
        "probe_compute_to" => "computing of probes",
        other => other,
    }
}
