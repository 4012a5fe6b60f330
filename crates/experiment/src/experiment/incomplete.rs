//! Runs of an experiment that have no results: they failed, or are not there.

use super::stored::{RunState, Status};
use fedgenie_core::text::shortened;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Most characters of a reason.
const REASON: usize = 200;

/// A run without results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incomplete {
    /// The policy's label.
    pub arm: String,
    /// The seed.
    pub seed: u64,
    /// Index of the sweep's point.
    pub point: usize,
    /// `failed` or `missing`.
    pub status: Status,
    /// Why it failed, or is unusable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Incomplete {
    /// A run of a policy at a point with a seed; failed if there is a reason, else missing.
    pub fn new(arm: &str, (point, seed): (usize, u64), reason: Option<String>) -> Self {
        let status = if reason.is_some() { Status::Failed } else { Status::Missing };
        Self { arm: arm.to_owned(), seed, point, status, reason }
    }

    /// An entry for a run without results; `None` for a complete one.
    pub fn of(run: &RunState) -> Option<Self> {
        let RunState { arm, seed, point, status, reason, .. } = run.clone();
        (!status.has_summary()).then_some(Self { arm, seed, point, status, reason })
    }
}

/// The number of runs without results by state: `3 failed, 1 is missing`. Empty if there are none.
pub fn counted<'a>(runs: impl Iterator<Item = &'a Incomplete>) -> String {
    in_words_with(runs, |_| String::new())
}

/// The same with the reason why most failed: `3 failed (the model diverged), 1 is missing`.
pub fn in_words<'a>(runs: impl Iterator<Item = &'a Incomplete>) -> String {
    in_words_with(runs, |reasons| {
        let most = reasons.iter().max_by_key(|(_, count)| **count).map_or("", |(reason, _)| reason);
        let others = if reasons.len() > 1 { ", …" } else { "" };
        format!(" ({}{others})", shortened(most, REASON))
    })
}

fn in_words_with<'a>(
    runs: impl Iterator<Item = &'a Incomplete>,
    why: impl Fn(&BTreeMap<&'a str, usize>) -> String,
) -> String {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    let mut missing = 0;
    for run in runs {
        match run.status {
            Status::Failed => *reasons.entry(run.reason.as_deref().unwrap_or("no reason is kept")).or_default() += 1,
            _ => missing += 1,
        }
    }
    let failed: usize = reasons.values().sum();
    let failed = (failed > 0).then(|| format!("{failed} failed{}", why(&reasons)));
    let missing = match missing {
        0 => None,
        1 => Some("1 is missing".to_owned()),
        count => Some(format!("{count} are missing")),
    };
    failed.into_iter().chain(missing).collect::<Vec<_>>().join(", ")
}

/// A sentence for each policy, at each point of a sweep, that has no results at all: `has_some` tells which have some.
/// `points` are the points' names, and `words` describes the states of the runs.
pub fn without_results(
    labels: &[impl AsRef<str>],
    points: &[String],
    has_some: impl Fn(&str, usize) -> bool,
    incomplete: &[Incomplete],
    words: impl Fn(&mut dyn Iterator<Item = &Incomplete>) -> String,
) -> Vec<String> {
    let mut sentences = Vec::new();
    for label in labels.iter().map(AsRef::as_ref) {
        let of_point = |point: usize| incomplete.iter().filter(move |run| run.arm == label && run.point == point);
        let lacks = |point: &usize| !has_some(label, *point) && of_point(*point).next().is_some();
        let lacking: Vec<usize> = (0..points.len()).filter(lacks).collect();
        if !lacking.is_empty() && lacking.len() == points.len() {
            let words = words(&mut lacking.iter().flat_map(|&point| of_point(point)));
            sentences.push(format!("{label} has no complete run: {words}"));
            continue;
        }
        let sentence =
            |point| format!("{label} has no complete run at {}: {}", points[point], words(&mut of_point(point)));
        sentences.extend(lacking.into_iter().map(sentence));
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_without_results_is_named_with_the_reason_of_most() {
        let run = |arm: &str, seed, status, reason: Option<&str>| Incomplete {
            arm: arm.to_owned(),
            seed,
            point: 0,
            status,
            reason: reason.map(str::to_owned),
        };
        let all = [
            run("random", 1, Status::Failed, Some("it diverged")),
            run("random", 2, Status::Failed, Some("it diverged")),
            run("random", 3, Status::Failed, Some("another")),
            run("random", 4, Status::Missing, None),
        ];
        let found = without_results(&["bsfl", "random"], &[String::new()], |_, _| false, &all, |runs| in_words(runs));
        assert_eq!(found, ["random has no complete run: 3 failed (it diverged, …), 1 is missing"]);
        let names = ["one".to_owned(), "two".to_owned()];
        let found = without_results(&["random"], &names, |_, _| false, &all[3..], |runs| counted(runs));
        assert_eq!(found, ["random has no complete run at one: 1 is missing"]);
    }
}
