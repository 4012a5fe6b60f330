//! Pairing by seed of the results of two folders.
//!
//! A draw belongs to its seed, its purpose, its entity (a client, the server) and its index, and to nothing else. So
//! runs of equal seeds share draws although parameters of laws, the protocol or the number of clients differ: a client
//! has the same quantiles of its latencies, and is dealt its data by the same numbers. What is trained shares nothing
//! between tasks of different kinds. Differences of shared draws are paired; of others the two samples are independent,
//! and the interval is Welch's. Both are right for means over seeds, with or without shared draws; sharing makes the
//! paired one narrow.

use super::source::Results;
use fedgenie_core::math::statistics::Estimate;
use fedgenie_experiment::experiment::sample::Sample;
use fedgenie_experiment::experiment::until::FollowUp;

/// Quantities that depend on training.
const TRAINED: [&str; 8] =
    ["final.", "best.", "at_bytes.", "time_to.", "bytes_to.", "joules_to.", "reached.", "compute_to."];

/// How a quantity of two experiments is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pairing {
    /// By equal seeds.
    Paired,
    /// As independent samples.
    Independent,
    /// Not at all: its meaning differs.
    None,
}

impl Pairing {
    /// The pairing of a quantity of two experiments.
    pub fn of(one: &Results, other: &Results, key: &str) -> Self {
        let is_trained = TRAINED.iter().any(|start| key.starts_with(start));
        if key.starts_with("regret.") && one.section("regret") != other.section("regret") {
            return Self::None;
        }
        // One pair has no interval.
        let is_paired = common_seeds(one, other) > 1 && !(is_trained && one.kind("task") != other.kind("task"));
        if is_paired { Self::Paired } else { Self::Independent }
    }

    /// The first minus the second.
    pub fn difference(self, one: &Sample, other: &Sample, follow_up: FollowUp) -> Option<Estimate> {
        match self {
            Self::Paired => one.minus(other, follow_up),
            Self::Independent => one.minus_independent(other, follow_up),
            Self::None => None,
        }
    }
}

/// How many seeds both have.
fn common_seeds(one: &Results, other: &Results) -> usize {
    one.seeds.iter().filter(|seed| other.seeds.contains(seed)).count()
}

/// Notes on the comparison of two experiments, in sentences; empty if they share their worlds and the program.
pub(super) fn notes([one, other]: [&Results; 2], [left, right]: [&str; 2]) -> Vec<String> {
    let mut notes = Vec::new();
    let sections = ["population", "task", "training", "protocol"].into_iter();
    let differing: Vec<&str> = sections.filter(|name| one.section(name) != other.section(name)).collect();
    match common_seeds(one, other) {
        few @ (0 | 1) => notes.push(format!(
            "{left} and {right} have {} in common: differences between them are not paired, and their intervals are Welch's",
            if few == 0 { "no seeds" } else { "one seed" }
        )),
        common if !differing.is_empty() => notes.push(format!(
            "{left} and {right} differ in {}: draws belong to seed, purpose, client and index, so differences between them stay \
             paired by their {common} common seeds",
            differing.join(", ")
        )),
        _ => {}
    }
    if one.build != other.build {
        notes.push(format!(
            "{left} and {right} were made by different builds of FedGenie ({}, {}): the difference may be the program's",
            one.build, other.build
        ));
    }
    let kinds = [one, other].map(|results| results.kind("task").unwrap_or_else(|| "none".to_owned()));
    if kinds[0] != kinds[1] && common_seeds(one, other) > 1 {
        notes.push(format!(
            "{left} and {right} learn tasks of different kinds ({}), which share no draws: metrics and times to targets are not \
             paired, and their intervals are Welch's",
            kinds.join(", ")
        ));
    }
    if one.section("regret") != other.section("regret") {
        let message =
            format!("{left} and {right} measure regret in different rewards: regrets are not compared between them");
        notes.push(message);
    }
    notes
}
