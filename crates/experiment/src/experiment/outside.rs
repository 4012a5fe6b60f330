//! Policies, tasks and rules of clusters of a program that uses this library.
//!
//! An arm of such a policy is treated like the scenario's own: sweep, pairing by seed, table, report, records. A
//! scenario file cannot name it, so its folder is replayed by [`super::verify::verify_with`].

use super::{Earlier, Experiment, Outputs, ResultFolder, Shard, Summary, Threads, execute};
use crate::error::Error;
use crate::scenario::Arm;
use fedgenie_core::config::Complaint;
use fedgenie_learning::algorithm::{FoldRule, ServerConfig};
use fedgenie_simulator::clusters::{ClusterContext, ClusterFactory, ClusterPolicy};
use fedgenie_simulator::policy::{BuildContext, Policy, PolicySource};
use fedgenie_simulator::recorder::RunFileOptions;
use fedgenie_simulator::task::{DataCache, TaskSettings};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

impl Experiment {
    /// Adds an arm. `factory` makes its policy, once for each run and server.
    ///
    /// # Errors
    /// If the label cannot name a folder, or another arm has it.
    pub fn add_policy<F>(&mut self, label: &str, factory: F) -> Result<(), Error>
    where
        F: Fn(&BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> + Send + Sync + 'static,
    {
        if !crate::scenario::is_name(label) {
            return Err(Error::Usage(format!(
                "found the label {label:?}; expected lower-case letters, digits, - and _ only, because it names a folder"
            )));
        }
        if self.labels().iter().any(|known| known == label) {
            return Err(Error::Usage(format!("there is a policy {label:?} already; take another label")));
        }
        let policy = PolicySource::Outside(Arc::new(factory));
        for (_, scenario) in &mut self.points {
            let (label, policy) = (label.to_owned(), policy.clone());
            scenario.arms.push(Arm { label, policy, cohort: None, with: Vec::new(), variant: None });
        }
        self.resolved.push_str(&format!("\n# The policy {label} is added by a program.\n"));
        Ok(())
    }

    /// Lets clients learn a task of the program, at every point and for every arm. `task` replaces the scenario's,
    /// which can be left out.
    ///
    /// # Errors
    /// If the task's settings, or the metrics that the scenario names, do not fit.
    pub fn set_task(&mut self, task: impl TaskSettings + 'static) -> Result<(), Error> {
        let task: Arc<dyn TaskSettings> = Arc::new(task);
        fedgenie_simulator::task::check(&*task).map_err(|complaint| Error::Usage(complaint.to_string()))?;
        for (_, scenario) in &mut self.points {
            scenario.plan.task = task.clone();
            scenario.variants.iter_mut().for_each(|part| part.plan.task = task.clone());
            scenario.check_metrics()?;
        }
        self.resolved.push_str("\n# The task is set by a program.\n");
        Ok(())
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
        let factory = ClusterFactory(Arc::new(factory));
        let mut is_used = false;
        for (_, scenario) in &mut self.points {
            let plans = scenario.variants.iter_mut().map(|part| &mut part.plan).chain([&mut scenario.plan]);
            for clusters in plans.filter_map(|plan| plan.clusters.as_mut()) {
                clusters.outside = Some(factory.clone());
                is_used = true;
            }
        }
        if !is_used {
            let message = "no arm has cluster models; write [clusters], with its count and initial, into the scenario";
            return Err(Error::Usage(message.to_owned()));
        }
        self.resolved.push_str("\n# The rule of clusters is set by a program.\n");
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

    /// Carries out all runs and keeps them in a new folder, as `fedgenie run --out` does. `draw` adds a report, such as
    /// that of `fedgenie_report::write_with_records`; its arguments are the folder to write into and that of the
    /// results.
    ///
    /// # Errors
    /// A fault of a world, the first failed run, or a folder or file that cannot be written.
    pub fn run_to(
        &self,
        folder: &Path,
        threads: &Threads,
        draw: impl Fn(&Path, &Path, &Self, &Summary) -> Result<(), Error>,
    ) -> Result<Summary, Error> {
        let (runs, cache) = (self.runs(), DataCache::default());
        self.check_worlds(&runs, &cache)?;
        let results = ResultFolder::open(folder, self, Earlier::Refuse, Shard::WHOLE)?;
        let files = RunFileOptions::default();
        let outputs = Outputs { folder: &results, files: &files, models: false };
        let runs = execute(self, &runs, Some(outputs), threads, &cache, &super::execution::Silent);
        let runs = runs.into_iter().collect::<Result<Vec<_>, _>>()?;
        let summary = results.finish(self, &runs, |summary, into| draw(into, folder, self, summary))?;
        Ok(summary.unwrap_or_else(|| self.summarise(runs, &BTreeMap::new())))
    }

    /// Carries out all runs and sums them up; nothing is written.
    ///
    /// # Errors
    /// A fault of a world, or the first failed run.
    pub fn run(&self, threads: &Threads) -> Result<Summary, Error> {
        let (runs, cache) = (self.runs(), DataCache::default());
        self.check_worlds(&runs, &cache)?;
        let results = execute(self, &runs, None, threads, &cache, &super::execution::Silent);
        Ok(self.summarise(results.into_iter().collect::<Result<_, _>>()?, &BTreeMap::new()))
    }
}
