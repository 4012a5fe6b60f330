//! Whether a task has what the rest of a scenario asks of it.

use super::{WorldError, WorldPlan};
use crate::clusters::{ClusterModel, Clusters};
use fedgenie_learning::task::Task;

impl WorldPlan {
    /// Checks that the task has the losses that rule and regret of clusters compare.
    pub(super) fn check_losses(&self, clusters: &Clusters, task: Option<&dyn Task>) -> Result<(), WorldError> {
        let is_measured = self.task.trains() && self.task.measures().of_data.iter().any(|found| found.name == "loss");
        let has_losses = task.is_some_and(|task| task.tells_losses() || is_measured);
        let path = match (clusters.needs_losses(), self.assignment_regret) {
            _ if has_losses => return Ok(()),
            (true, _) => format!("clusters.assign.{}", clusters.assign.kind()),
            (false, true) => "regret.assignment".to_owned(),
            (false, false) => return Ok(()),
        };
        let task = self.task.name();
        let message = format!(
            "compares losses of the models of clusters, and the task ({task}) has none; take a task that trains and \
             measures a loss, or give losses of [task.scripted]"
        );
        Err(WorldError::scenario(&path, message))
    }

    /// Checks that the task has what the models of clusters are made of; or says what becomes of them.
    pub(super) fn check_networks(
        &self,
        clusters: &Clusters,
        task: Option<&dyn Task>,
    ) -> Result<Option<String>, WorldError> {
        let Some(task) = task else { return Ok(None) };
        if task.layout().is_empty() || task.layout().has_clusters() {
            return Ok(None);
        }
        let name = self.task.name();
        match clusters.model {
            None => Ok(Some(format!("the task ({name}) has no networks of clusters: all clusters learn one model"))),
            Some(ClusterModel::Additive) => {
                let message = format!(
                    "adds scores of classes of two networks, and the task ({name}) has no such scores; take \
                     classification or softmax-regression, or leave the key out for one model of all clusters"
                );
                Err(WorldError::scenario("clusters.model", message))
            }
            Some(ClusterModel::Isolated) => {
                let message = format!(
                    "the task ({name}) has one model for all; take a task with a network, or leave the key out"
                );
                Err(WorldError::scenario("clusters.model", message))
            }
        }
    }

    /// Checks that the task can add the noise that is asked for.
    pub(super) fn check_noise(&self, task: Option<&dyn Task>) -> Result<(), WorldError> {
        if self.training.noise.is_none() || task.is_some_and(Task::has_noise) {
            return Ok(());
        }
        let task = self.task.name();
        let message = format!(
            "the clients of the task ({task}) add no noise to their updates; take [privacy] out, or write sigma = 0"
        );
        Err(WorldError::scenario("privacy.sigma", message))
    }
}
