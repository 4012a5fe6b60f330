//! What a folder records of a program whose policies or tasks took part in its runs.

use super::Experiment;
use crate::scenario::{Details, Kinds};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a folder records of a program whose policies or tasks took part. A replay needs them again, and promises the
/// same results with the same versions only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outside {
    /// The program, with the versions on which its results depend.
    pub program: String,
    /// Its policies, by kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub policies: BTreeMap<String, Code>,
    /// Its task, by kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tasks: BTreeMap<String, Code>,
    /// Whether it decides which cluster each edge server belongs to.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clusters: bool,
    /// Whether it folds updates into the model.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub algorithm: bool,
}

/// The code of a policy or task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Code {
    /// A digest of it; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fingerprint: String,
    /// Where a command finds it, such as `module:Class`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found_at: Option<String>,
}

impl Outside {
    /// Of the kinds that an experiment uses; `None` if it uses none.
    pub(super) fn of(experiment: &Experiment) -> Option<Self> {
        let kinds = &experiment.kinds;
        let code = |(name, details): (&str, &Details)| {
            let Details { fingerprint, found_at, .. } = details;
            (name.to_owned(), Code { fingerprint: fingerprint.clone(), found_at: found_at.clone() })
        };
        let (scenario, [clusters, algorithm]) = (experiment.first(), kinds.rules());
        let has_task = |(name, _): &(&str, &Details)| *name == scenario.sections.task_kind();
        let found = Self {
            program: kinds.program().to_owned(),
            // Each has an arm.
            policies: kinds.policies().map(code).collect(),
            tasks: kinds.tasks().filter(has_task).map(code).collect(),
            clusters,
            algorithm,
        };
        let is_used = !found.policies.is_empty() || !found.tasks.is_empty() || clusters || algorithm;
        is_used.then_some(found)
    }

    /// Kinds with the word for what they are.
    fn kinds(&self) -> impl Iterator<Item = (&'static str, &String, &Code)> {
        let policies = self.policies.iter().map(|(name, code)| ("policy", name, code));
        policies.chain(self.tasks.iter().map(|(name, code)| ("task", name, code)))
    }

    /// The first policy or task that `kinds` lacks, in words, and the options by which a command finds all of them;
    /// none if it does not.
    pub(super) fn lacking(&self, kinds: &Kinds) -> Option<(String, String)> {
        let has = |what: &str, name: &str| match what {
            "policy" => kinds.policies().any(|(known, _)| known == name),
            _ => kinds.tasks().any(|(known, _)| known == name),
        };
        let (what, name, _) = self.kinds().find(|(what, name, _)| !has(what, name))?;
        let program = if self.program.is_empty() { String::new() } else { format!(" ({})", self.program) };
        let option = |(_, name, code): (_, &String, &Code)| Some(format!(" --with {name}={}", code.found_at.as_ref()?));
        let options: Option<String> =
            if self.clusters || self.algorithm { None } else { self.kinds().map(option).collect() };
        Some((format!("the {what} {name} is a program's own{program}"), options.unwrap_or_default()))
    }

    /// The first kind whose code is known to be another.
    pub(super) fn differs(&self, other: Option<&Self>) -> Option<String> {
        let fingerprint = |what: &str, name: &str| {
            let other = other?;
            let codes = if what == "policy" { &other.policies } else { &other.tasks };
            codes.get(name).map(|code| code.fingerprint.clone()).filter(|print| !print.is_empty())
        };
        let is_other = |what: &str, name: &str, code: &Code| {
            !code.fingerprint.is_empty() && fingerprint(what, name).is_some_and(|print| print != code.fingerprint)
        };
        let (what, name, _) = self.kinds().find(|(what, name, code)| is_other(what, name, code))?;
        Some(format!("the code of the {what} {name} is not that of the runs there"))
    }
}
