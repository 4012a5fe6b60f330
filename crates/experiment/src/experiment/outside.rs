//! Policies, tasks and rules of clusters of a program that uses this library, and what a folder records of them.
//!
//! They are treated like the scenario's own: sweep, pairing by seed, table, report, records. [`Kinds`] has those that a
//! scenario may name; the methods here add one to an experiment that is read already, which is then read again.

use super::Experiment;
use super::artefacts::{Marker, read_manifest, shell_quoted};
use crate::error::Error;
use crate::scenario::{Details, Kinds};
use fedgenie_core::config::Complaint;
use fedgenie_learning::algorithm::{FoldRule, ServerConfig};
use fedgenie_simulator::clusters::{ClusterContext, ClusterFactory, ClusterPolicy};
use fedgenie_simulator::policy::{BuildContext, Policy};
use fedgenie_simulator::task::TaskSettings;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

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
        let scenario = experiment.first();
        let has_task = |(name, _): &(&str, &Details)| *name == scenario.sections.task_kind();
        let found = Self {
            program: kinds.program().to_owned(),
            // Each has an arm.
            policies: kinds.policies().map(code).collect(),
            tasks: kinds.tasks().filter(has_task).map(code).collect(),
            clusters: kinds.clusters.is_some(),
        };
        let is_used = !found.policies.is_empty() || !found.tasks.is_empty() || found.clusters;
        is_used.then_some(found)
    }

    /// What is recorded in a folder, by the marker if there is no manifest.
    pub(super) fn read(folder: &Path) -> Option<Self> {
        read_manifest(folder).ok().map_or_else(|| Marker::read(folder)?.outside, |manifest| manifest.outside)
    }

    /// Kinds with the word for what they are.
    fn kinds(&self) -> impl Iterator<Item = (&'static str, &String, &Code)> {
        let policies = self.policies.iter().map(|(name, code)| ("policy", name, code));
        policies.chain(self.tasks.iter().map(|(name, code)| ("task", name, code)))
    }

    /// How the folder's runs can be made again, if `kinds` lacks something of the program.
    fn lacking(&self, folder: &Path, kinds: &Kinds) -> Option<String> {
        let has = |what: &str, name: &str| match what {
            "policy" => kinds.policies().any(|(known, _)| known == name),
            _ => kinds.tasks().any(|(known, _)| known == name),
        };
        let (what, name, _) = self.kinds().find(|(what, name, _)| !has(what, name))?;
        let program = if self.program.is_empty() { String::new() } else { format!(" ({})", self.program) };
        let with: Vec<String> = self
            .kinds()
            .filter_map(|(_, name, code)| Some(format!(" --with {name}={}", code.found_at.as_ref()?)))
            .collect();
        let how = match with.len() == self.kinds().count() && !self.clusters {
            true => format!(
                "; where Python is there, `fedgenie verify {}{}` replays it",
                shell_quoted(&folder.to_string_lossy()),
                with.concat()
            ),
            false => "; verify the folder with that program".to_owned(),
        };
        Some(format!("the {what} {name} is a program's own{program}{how}"))
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

/// Refuses the folder of an experiment whose program is not here.
pub(super) fn refuse_lacking(folder: &Path, kinds: &Kinds) -> Result<(), Error> {
    match Outside::read(folder).and_then(|outside| outside.lacking(folder, kinds)) {
        Some(message) => Err(Error::Usage(message)),
        None => Ok(()),
    }
}

impl Experiment {
    /// Adds an arm without parameters. `factory` makes its policy, once for each run and server.
    ///
    /// # Errors
    /// If the label cannot name a folder, or is taken.
    pub fn add_policy<F>(&mut self, label: &str, factory: F) -> Result<(), Error>
    where
        F: Fn(&BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> + Send + Sync + 'static,
    {
        if self.labels().iter().any(|known| known == label) {
            return Err(Error::Usage(format!("there is a policy {label:?} already; take another label")));
        }
        let mut kinds = self.kinds.clone();
        kinds.policy(label, Details::default(), move |context, _| factory(context))?;
        self.read_again(kinds)
    }

    /// Lets clients learn a task of the program, at every point and for every arm. `task` replaces the scenario's,
    /// which can be left out. Its kind is its own name.
    ///
    /// # Errors
    /// If the task's settings, or the metrics that the scenario names, do not fit; or if the name is taken.
    pub fn set_task(&mut self, task: impl TaskSettings + 'static) -> Result<(), Error> {
        let task: Arc<dyn TaskSettings> = Arc::new(task);
        let (mut kinds, name) = (self.kinds.clone(), task.about().name);
        kinds.task(&name, Details::default(), move |_| Ok(task.clone()))?;
        self.root.take("task");
        kinds.complete(&mut self.root)?;
        self.read_again(kinds)?;
        self.points.iter().try_for_each(|(_, scenario)| scenario.check_metrics()).map_err(Error::from)
    }

    /// Lets a rule of the program decide which cluster each edge server belongs to, at every point and for every arm
    /// with cluster models; it replaces `assign` in `[clusters]`. `factory` makes it, once for each run.
    ///
    /// # Errors
    /// If no arm of the scenario has cluster models.
    pub fn set_clusters<F>(&mut self, factory: F) -> Result<(), Error>
    where
        F: Fn(&ClusterContext<'_>) -> Box<dyn ClusterPolicy> + Send + Sync + 'static,
    {
        let plans = || self.points.iter().flat_map(|(_, scenario)| scenario.plans());
        if plans().all(|plan| plan.clusters.is_none()) {
            let message = "no arm has cluster models; write [clusters], with its count and initial, into the scenario";
            return Err(Error::Usage(message.to_owned()));
        }
        let mut kinds = self.kinds.clone();
        kinds.clusters = Some(ClusterFactory(Arc::new(factory)));
        self.read_again(kinds)
    }

    /// Reads the scenario again, with other kinds.
    fn read_again(&mut self, kinds: Kinds) -> Result<(), Error> {
        *self = Self::from_tree_with(self.root.clone(), self.reach.clone(), kinds)?;
        Ok(())
    }

    /// Lets a step of the program fold updates into the model, at every point and for every arm, in the place of
    /// combination and `[aggregation] server`.
    ///
    /// # Errors
    /// If the scenario has a server of its own, or cluster models.
    pub fn set_algorithm(&mut self, rule: impl FoldRule + 'static) -> Result<(), Error> {
        let rule: Arc<dyn FoldRule> = Arc::new(rule);
        for (_, scenario) in &mut self.points {
            let plans = scenario.variants.iter_mut().map(|part| &mut part.plan).chain([&mut scenario.plan]);
            for plan in plans {
                if plan.aggregation.server != ServerConfig::default() {
                    let message = "the scenario has [aggregation] server, and the program's algorithm makes that step; \
                                   take it out";
                    return Err(Error::Usage(message.to_owned()));
                }
                plan.outside = Some(rule.clone());
            }
        }
        self.resolved.push_str("\n# The algorithm is set by a program.\n");
        Ok(())
    }
}
