//! The sections of a scenario and the plan of its worlds: for all policies without overrides, or for those with the
//! same overrides.

use super::read::{ScenarioError, read};
use super::tree::Node;
use super::{BudgetConfig, PrivacyConfig, RegretConfig, Sections, Surroundings};
use fedgenie_core::config::Complaint;
use fedgenie_core::metric::Measures;
use fedgenie_learning::algorithm::privacy::DpFedAvgConfig;
use fedgenie_learning::algorithm::{AlgorithmsConfig, Weighting, has_own_models, weighting_of};
use fedgenie_learning::data::DataError;
use fedgenie_learning::trainer::LocalTraining;
use fedgenie_simulator::task::{TaskConfig, TaskError};
use fedgenie_simulator::world::{WorldError, WorldPlan, measures_of_run};
use std::path::PathBuf;

/// A checked scenario without its policies.
#[derive(Clone, Debug)]
pub struct Part {
    /// The sections, defaults written out.
    pub sections: Sections,
    /// What a world is built from.
    pub plan: WorldPlan,
    /// The files that population and task name, as far as they are there.
    pub files: Vec<PathBuf>,
    tree: Node,
}

/// The measures of runs of these sections, as far as they alone tell.
fn measures(sections: &Sections, privacy: Option<&DpFedAvgConfig>) -> Measures {
    let of_task = sections.task_settings().measures();
    measures_of_run(sections.adversary.as_ref(), privacy, &sections.algorithm, of_task)
}

impl Part {
    /// Reads and checks a tree that has neither policies nor sweep. `whole` is the tree in which errors are looked up.
    pub(super) fn read(
        rest: &Node,
        whole: &Node,
        Surroundings { reach, kinds, point }: Surroundings<'_>,
    ) -> Result<Self, ScenarioError> {
        let mut known = rest.clone();
        let outside = kinds.take_task(&mut known, point)?;
        let mut sections: Sections = read(&known, "")?;
        sections.outside_task = outside;
        if let Some(training) = &mut sections.training {
            training.resolve();
        }
        if let Some(regret) = &mut sections.regret {
            // Cluster models are those of edge servers, under which the other meters are not defined.
            if regret.assignment && rest.at("regret.meters").is_none() {
                regret.meters.clear();
            }
            regret.resolve();
        }
        let wrong = |complaint: Complaint| ScenarioError::of(whole, complaint);
        sections.evaluate.resolve();
        let has_own = has_own_models(&sections.algorithm);
        sections.evaluate.resolve_clients(has_own, rest.at("evaluate.clients").is_some()).map_err(wrong)?;
        let privacy = sections.privacy.as_ref().and_then(|privacy| privacy.dp_fedavg);
        let weighting = if privacy.is_some() { Weighting::Uniform } else { weighting_of(&sections.algorithm) };
        sections.aggregation.weighting.get_or_insert(weighting);
        sections.check().map_err(wrong)?;
        if let Some(path) = not_finite(&sections.algorithm) {
            return Err(wrong(Complaint::new(path, "expected a finite number")));
        }
        sections.seeds = sections.seeds.canonical();
        // A program may give the scenario a task later, with which it is checked then.
        if sections.outside_task.is_some() || !matches!(sections.task, TaskConfig::None(_)) {
            sections.check_metrics(&measures(&sections, privacy.as_ref())).map_err(wrong)?;
        }
        // The sections keep names of files as they are written, so that the resolved scenario is the same everywhere.
        let (mut population, mut task) = (sections.population.clone(), sections.task.clone());
        let files = reach.resolve(whole, &mut population, &mut task)?;
        // If the data say how many clients there are, the rest is checked when they are read.
        if sections.population.clients.is_some() || !sections.task_settings().about().counts_clients {
            let clients = population.client_count().map_err(wrong)?;
            let (protocol, kind) = (&sections.protocol, sections.protocol.kind());
            protocol.rule(clients).map_err(|complaint| wrong(complaint.below(kind).below("protocol")))?;
        }
        let training = sections.training.clone().unwrap_or_default();
        let local = training.local().map_err(|complaint| wrong(complaint.below("training")))?;
        let noise = sections.privacy.as_ref().and_then(PrivacyConfig::noise);
        let plan = WorldPlan {
            population,
            task: sections.outside_task.as_ref().map_or_else(|| task.into_settings(), |task| task.settings.clone()),
            planned: sections.planned(),
            evaluated: sections.evaluated(),
            training: LocalTraining { noise, ..local },
            lengths: training.lengths().cloned(),
            most_epochs: training.most_epochs,
            inference_share: training.inference_share,
            protocol: sections.protocol.clone(),
            clusters: sections.clusters.clone(),
            ties: sections.ties.ties(),
            aggregation: sections.aggregation.clone(),
            algorithm: sections.algorithm.clone(),
            outside: None,
            reward: sections.regret.as_ref().and_then(RegretConfig::reward),
            meters: sections.regret.as_ref().map_or_else(Vec::new, |regret| regret.meters.clone()),
            hindsight: sections.regret.as_ref().and_then(RegretConfig::hindsight),
            assignment_regret: sections.clusters.is_some() && sections.meters_assignment(),
            rounds: sections.stop.rounds,
            budget: sections.budget.as_ref().map(BudgetConfig::plan),
            controls: sections.controls.clone(),
            adversary: sections.adversary.clone(),
            compression: sections.compression.clone(),
            privacy,
            secure: sections.privacy.as_ref().and_then(|privacy| privacy.secure_aggregation.clone()),
        };
        Ok(Self { sections, plan, files, tree: rest.clone() })
    }

    /// The tree that it was read from.
    pub(super) const fn tree(&self) -> &Node {
        &self.tree
    }

    /// Adds file and line to an error of building a world.
    pub(super) fn explain(&self, error: WorldError) -> ScenarioError {
        explain(&self.tree, &self.sections, error)
    }
}

/// Adds file and line to an error of building a world.
pub(super) fn explain(tree: &Node, sections: &Sections, error: WorldError) -> ScenarioError {
    match error {
        WorldError::Scenario(Complaint { path, message }) => {
            let path = inherited_from(tree, &path).unwrap_or(path);
            ScenarioError::new(tree, path, message)
        }
        WorldError::Task(TaskError::Outside(failure)) => {
            ScenarioError::new(tree, "task".to_owned(), failure.to_string())
        }
        WorldError::Task(error) => {
            let key = match &error {
                TaskError::Data(DataError::Setting { key, .. }) => key,
                TaskError::Setting(complaint) => &complaint.path,
                TaskError::Data(_) | TaskError::Model(_) | TaskError::Outside(_) => "data",
                TaskError::Network(_) => "model",
                TaskError::Weights(_) => "start",
                TaskError::Partition(_) => "partition",
            };
            let path = format!("task.{}.{key}", sections.task_kind());
            ScenarioError::new(tree, path, error.to_string())
        }
    }
}

/// Where a group's value is written, if the group inherits it from the population.
fn inherited_from(tree: &Node, path: &str) -> Option<String> {
    let (index, rest) = path.strip_prefix("population.group.")?.split_once('.')?;
    let key = rest.split('.').next()?;
    let is_own = tree.at(&format!("population.group.{index}.{key}")).is_some();
    let is_shared = tree.at(&format!("population.{key}")).is_some();
    (is_shared && !is_own).then(|| format!("population.{rest}"))
}

/// The path of a number of an algorithm that is not finite.
fn not_finite(algorithm: &AlgorithmsConfig) -> Option<String> {
    // JSON has no such numbers, and null stands for them.
    let entries = serde_json::to_value(algorithm).ok()?;
    let (entry, settings) = entries.as_object()?.iter().find_map(|(name, settings)| {
        let null = settings.as_object()?.iter().find(|(_, value)| value.is_null());
        null.map(|(key, _)| (name.clone(), key.clone()))
    })?;
    Some(format!("algorithm.{entry}.{settings}"))
}
