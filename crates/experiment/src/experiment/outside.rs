//! Policies, tasks and rules of clusters of a program that uses this library.
//!
//! They are treated like the scenario's own: sweep, pairing by seed, table, report, records. [`Kinds`] has those that a
//! scenario may name; the methods here add one to an experiment that is read already, which is then read again.

use super::Experiment;
use crate::error::Error;
use crate::scenario::{Details, Kinds};
use fedgenie_core::config::Complaint;
use fedgenie_learning::algorithm::FoldRule;
use fedgenie_simulator::clusters::{ClusterContext, ClusterPolicy};
use fedgenie_simulator::policy::{BuildContext, Policy};
use fedgenie_simulator::task::TaskSettings;
use std::sync::Arc;

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
        let added = kinds.policy(label, Details::default(), move |context, _| factory(context));
        added.map_err(|complaint| Error::Usage(complaint.message))?;
        self.read_again(kinds)
    }

    /// Lets clients learn a task of the program without parameters, at every point and for every arm. `task` replaces
    /// the scenario's, which can be left out; its kind is `own`.
    ///
    /// # Errors
    /// If the task's settings, or the metrics that the scenario names, do not fit.
    pub fn set_task(&mut self, task: impl TaskSettings + 'static) -> Result<(), Error> {
        let task: Arc<dyn TaskSettings> = Arc::new(task);
        let kinds = self.kinds.clone().with_own_task(task);
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
        kinds.clusters(factory);
        self.read_again(kinds)
    }

    /// Lets a step of the program fold updates into the model, at every point and for every arm, in the place of
    /// combination and `[aggregation] server`.
    ///
    /// # Errors
    /// If the scenario has a server of its own.
    pub fn set_algorithm(&mut self, rule: impl FoldRule + 'static) -> Result<(), Error> {
        let mut kinds = self.kinds.clone();
        kinds.algorithm(rule);
        self.read_again(kinds)
    }

    /// A task of the program that the scenario does not use, and the kind of the one that it uses.
    pub fn unused_task(&self) -> Option<(&str, &str)> {
        let found = self.first().sections.task_kind();
        self.kinds.tasks().map(|(name, _)| name).find(|name| *name != found).map(|name| (name, found))
    }

    /// Reads the scenario again, with other kinds.
    fn read_again(&mut self, kinds: Kinds) -> Result<(), Error> {
        *self = Self::from_tree_with(self.root.clone(), self.reach.clone(), kinds)?;
        Ok(())
    }
}
