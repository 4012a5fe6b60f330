//! Whether a task meets the demands of the rest of a scenario.

use super::start::initially;
use super::{WorldError, WorldPlan, servers};
use crate::clusters::{ClusterModel, Clusters};
use crate::population::Population;
use crate::protocol::{Rule, Staleness};
use crate::task::TaskError;
use fedgenie_core::config::Complaint;
use fedgenie_core::id::{EdgeId, Round};
use fedgenie_core::rng::Streams;
use fedgenie_learning::algorithm::{Algorithm, Scene};
use fedgenie_learning::task::{Losses, Script, Task};
use fedgenie_learning::trainer::LocalTraining;

/// The script of a task that tells losses of clusters' models.
fn script(task: Option<&dyn Task>) -> Option<&dyn Script> {
    task?.script().filter(|script| script.tells_losses())
}

/// Checks that rounds end although clients are lost, and that a log is replayed in rounds.
pub(super) fn check_rounds(population: &Population, rule: &Rule) -> Result<(), WorldError> {
    if population.can_lose() && rule.cut().is_none() {
        let message = "clients can be lost, and the round would wait for them for ever; give the protocol a timeout";
        return Err(WorldError::scenario("protocol", message));
    }
    if population.recording().is_some() && !matches!(rule, Rule::Rounds(_)) {
        let message = "a log is replayed in rounds of one server; take synchronous, over-selection or deadline, or fit a \
                       fleet to the log (fedgenie fit)";
        return Err(WorldError::scenario("population.recorded", message));
    }
    Ok(())
}

impl WorldPlan {
    /// How clients train, whose proximal term an entry of `[algorithm]` may have chosen.
    pub(super) fn local_training(&self, has_task: bool, algorithm: &Algorithm) -> LocalTraining {
        let proximal = if has_task { algorithm.proximal as f32 } else { self.training.proximal };
        LocalTraining { proximal, ..self.training.clone() }
    }

    /// The algorithm, if it is defined for the rest of the scenario.
    ///
    /// # Errors
    /// If it is not, or if rounds have fewer updates than it needs.
    pub(super) fn algorithm(
        &self,
        rule: &mut Rule,
        task: Option<&dyn Task>,
        streams: &Streams,
    ) -> Result<Algorithm, WorldError> {
        let weighs = |staleness: Staleness| staleness != Staleness::Constant;
        let (has_edges, weighs_age) = match &*rule {
            Rule::Rounds(rule) => (false, rule.carry.is_some_and(weighs)),
            Rule::Buffered(rule) => (false, weighs(rule.staleness)),
            Rule::Hierarchical(rule) => (true, rule.buffer.is_some_and(|buffer| weighs(buffer.staleness))),
        };
        let scene = Scene {
            optimizer: self.training.optimizer.config(),
            proximal: f64::from(self.training.proximal),
            has_noise: self.training.noise.is_some() || self.privacy.is_some(),
            weighting: self.aggregation.weighting(),
            server: &self.aggregation.server,
            rows: self.aggregation.rows,
            protocol: self.protocol.kind(),
            has_edges,
            has_clusters: self.clusters.is_some(),
            weighs_age,
            task: self.task.about().name,
            has_model: task.is_some_and(|task| !task.layout().is_empty()),
            has_gradient: task.and_then(Task::losses).is_some_and(Losses::has_gradient),
            has_losses: task.is_some_and(|task| task.losses().is_some()),
            has_hidden: task.is_some_and(|task| task.has_hidden()),
            has_rows: task.is_some_and(|task| task.layout().rows() > 0),
            has_own_combination: task.is_some_and(|task| task.combination().is_some()),
        };
        let algorithm = Algorithm::new(&self.algorithm, &scene).map_err(|complaint| complaint.below("algorithm"))?;
        if let Some(combine) = &algorithm.combine {
            let least = combine.least_updates();
            rule.need(least).map_err(|found| {
                let path = format!("algorithm.{}", algorithm.combined_by.unwrap_or_default());
                let message = format!(
                    "is defined for rounds of at least {least} updates, and the protocol waits for {found}; ask more \
                     clients, or let it need fewer"
                );
                WorldError::scenario(&path, message)
            })?;
        }
        let privacy = self.private_mean((rule, task), (&scene, &algorithm), streams)?;
        let secure = self.secure_sums(rule, task, &algorithm)?;
        let outside = self.outside.clone();
        let refuse = |path, message| Err(WorldError::scenario(path, message));
        if outside.is_some() && algorithm.combine.is_some() {
            return refuse("algorithm", "combines updates, and so does the program's algorithm; take the entry out");
        }
        if outside.is_some() && self.clusters.is_some() {
            return refuse("clusters", "there are several models, and the program's algorithm moves one; take it out");
        }
        if self.compression.is_some() {
            let task_name = self.task.about().name;
            let refuse = |why: &str| {
                let message = format!("is not defined for this task ({task_name}), which {why}; take the section out");
                Err(WorldError::scenario("compression", message))
            };
            let Some(task) = task.filter(|task| !task.layout().is_empty()) else {
                return refuse("learns no parameters");
            };
            if task.layout().rows() > 0 || task.partial().is_some() {
                return refuse("has tables, of which clients move some rows alone");
            }
            if self.compression.as_ref().is_some_and(|it| it.encode_rate.is_some())
                && self.population.recorded.is_some()
            {
                let message = "makes jobs longer, and those of a log are replayed as they are; take it out";
                return Err(WorldError::scenario("compression.encode_rate", message));
            }
            let fits = self.compression.as_ref().map_or(Ok(()), |compression| compression.fits(task.layout().len()));
            fits.map_err(|complaint| complaint.below("compression"))?;
        }
        Ok(Algorithm { outside, compression: self.compression.clone(), privacy, secure, ..algorithm })
    }

    /// Checks that the task has the losses that rule and regret of clusters compare.
    pub(super) fn check_losses(&self, clusters: &Clusters, task: Option<&dyn Task>) -> Result<(), WorldError> {
        let is_measured = self.task.about().trains && self.task.measures().loss().is_some();
        let has_losses = script(task).is_some() || task.is_some() && is_measured;
        let path = match (clusters.needs_losses(), self.assignment_regret) {
            _ if has_losses => return Ok(()),
            (true, _) => format!("clusters.assign.{}", clusters.assign.kind()),
            (false, true) => "regret.assignment".to_owned(),
            (false, false) => return Ok(()),
        };
        let task = self.task.about().name;
        let message = format!(
            "compares losses of the models of clusters, and the task ({task}) has none; take a task that trains and \
             measures a loss, or give losses of [task.scripted]"
        );
        Err(WorldError::scenario(&path, message))
    }

    /// Checks that scripted losses exist in all rounds that compare them, as far as `[stop]` lets a run come, or,
    /// without `rounds`, up to the last round of the script.
    pub(super) fn check_told_losses(
        &self,
        clusters: &Clusters,
        task: Option<&dyn Task>,
        rule: &Rule,
    ) -> Result<(), WorldError> {
        let (Some(script), Some(every)) = (script(task), clusters.every()) else {
            return Ok(());
        };
        if !clusters.needs_losses() && !self.assignment_regret {
            return Ok(());
        }
        let last = self.rounds.or(script.last_told().map(|round| round.0)).unwrap_or(0);
        for round in (every..=last).step_by(every as usize).map(Round) {
            for server in (0..servers(rule)).map(EdgeId::from_index) {
                for cluster in 0..clusters.count {
                    let wrong = |message| WorldError::Task(TaskError::Setting(Complaint::new("losses", message)));
                    script.told_loss(round, server, cluster).map_err(wrong)?;
                }
            }
        }
        Ok(())
    }

    /// Checks that the task can make the models of clusters; or warns about them.
    pub(super) fn check_networks(
        &self,
        clusters: &Clusters,
        task: Option<&dyn Task>,
    ) -> Result<Option<String>, WorldError> {
        let Some(task) = task else { return Ok(None) };
        if task.layout().is_empty() || task.layout().has_clusters() {
            return Ok(None);
        }
        let name = self.task.about().name;
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

    /// Checks that the task knows the slope that a utility needs.
    pub(super) fn check_slope(
        &self,
        task: Option<&dyn Task>,
        streams: &Streams,
        rule: &Rule,
    ) -> Result<(), WorldError> {
        if !self.hindsight.as_ref().is_some_and(|plan| plan.utility.is_of_slope()) {
            return Ok(());
        }
        let mut slope = Vec::new();
        let mut is_known = |task: &dyn Task| {
            let of =
                |losses: &dyn Losses| initially(task, streams, servers(rule), |state| losses.slope(state, &mut slope));
            task.losses().map_or(Ok(false), of)
        };
        if task.map_or(Ok(false), &mut is_known).map_err(TaskError::Outside)? {
            return Ok(());
        }
        let task = self.task.about().name;
        let message = format!(
            "influence needs the slope of the loss on validation data, which the task ({task}) does not know, or has \
             no such data for; take a metric: {{ aggregate = {{ test_auc = 1.0 }} }}"
        );
        Err(WorldError::scenario("regret.utility", message))
    }

    /// Checks that charged evaluations come at ends of rounds, and under no budget.
    pub(super) fn check_charge(&self, rule: &Rule) -> Result<(), WorldError> {
        let message = match rule {
            _ if !self.task.about().charges_evaluation => return Ok(()),
            Rule::Buffered(_) | Rule::Hierarchical(_) => {
                "evaluations of all clients are charged between rounds of one server; take another protocol, or write \
                 false"
            }
            Rule::Rounds(_) if self.budget.as_ref().is_some_and(|budget| budget.most.is_some()) => {
                "a budget pays for jobs and probes, and not for evaluations of all clients; take [budget] out, or \
                 write false"
            }
            Rule::Rounds(_) => return Ok(()),
        };
        Err(WorldError::Task(TaskError::Setting(Complaint::new("charge_evaluation", message))))
    }

    /// Checks that the task can add the noise of `[privacy]`.
    pub(super) fn check_noise(&self, task: Option<&dyn Task>) -> Result<(), WorldError> {
        if self.training.noise.is_none() || task.is_some_and(|task| task.describe().has_noise) {
            return Ok(());
        }
        let task = self.task.about().name;
        let message = format!(
            "the clients of the task ({task}) add no noise to their updates; take [privacy] out, or write sigma = 0"
        );
        Err(WorldError::scenario("privacy.sigma", message))
    }
}
