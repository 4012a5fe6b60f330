//! The file a person writes: its sections, how it is checked, and its resolved form.
//!
//! A scenario is read into a tree ([`tree`]), the tree into typed sections ([`mod@read`]), and these into a plan whose
//! every default is written out. A sweep makes one plan per point of its grid.

mod arm;
mod batch;
mod budget;
pub mod catalogue;
mod effect;
mod evaluation;
mod examples;
mod hindsight;
mod kinds;
pub mod names;
mod part;
pub mod points;
mod privacy;
pub mod reach;
pub mod read;
pub mod report;
pub mod schema;
mod sections;
pub mod seeds;
mod shares;
pub mod sweep;
mod ties;
pub mod tree;
mod with;

#[cfg(test)]
mod training_tests;

pub use arm::Arm;
pub use batch::BatchSize;
pub use budget::BudgetConfig;
pub use evaluation::{EvaluateConfig, PlateauConfig, TargetConfig};
pub use kinds::{Details, Given, Kinds, OutsideTask, Parameters};
pub use part::Part;
pub use privacy::PrivacyConfig;
pub use reach::Reach;
pub use read::ScenarioError;
pub(crate) use sections::is_name;
pub use sections::{RecordConfig, RegretConfig, StopConfig, TrainingConfig};
pub use seeds::{Seeds, UntilDecided};
pub use sweep::{Sweep, expand_sweep};
pub use ties::TiesConfig;
pub use with::Override;

use arm::{in_toml, read_policies};
use fedgenie_core::config::Complaint;
use fedgenie_core::metric::{Measures, Metric, Place};
use fedgenie_core::oracle::regret::Meter;
use fedgenie_learning::algorithm::{AggregationConfig, AlgorithmsConfig, ServerConfig};
use fedgenie_learning::compression::CompressionConfig;
use fedgenie_simulator::clusters::ClustersConfig;
use fedgenie_simulator::policy::{Known, PolicySource};
use fedgenie_simulator::population::PopulationConfig;
use fedgenie_simulator::protocol::ProtocolConfig;
use fedgenie_simulator::task::{TaskConfig, TaskSettings, none};
use fedgenie_simulator::world::{AdversaryConfig, ControlsConfig, WorldError, WorldPlan};
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;
use tree::{Node, Value};

/// Everything in a scenario but its policies and its sweep, and the keys of all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sections {
    /// A short name: lower-case letters, digits, `-` and `_`.
    pub name: String,
    /// One line for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// How many seeds (1, 2, …), a list of them, or until when they are added.
    pub seeds: Seeds,
    /// End of a run: at the first of these that is reached. May be left out where a budget ends it.
    #[serde(default)]
    pub stop: StopConfig,
    /// Budget: traffic that a run never exceeds, and the fewest clients of a round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetConfig>,
    /// Clients: how many they are, how long their jobs take, when they are available.
    pub population: PopulationConfig,
    /// What the clients learn.
    #[serde(default = "nothing")]
    task: TaskConfig,
    /// A program's task in its place.
    #[serde(skip)]
    #[schemars(skip)]
    outside_task: Option<OutsideTask>,
    /// Local training: epochs, batch size, optimizer; needed by tasks that train.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training: Option<TrainingConfig>,
    /// Privacy: noise that clients add to their updates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub privacy: Option<PrivacyConfig>,
    /// Protocol: when the server aggregates.
    pub protocol: ProtocolConfig,
    /// Cluster models: which of several models each edge server trains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clusters: Option<ClustersConfig>,
    /// Aggregation: how updates are weighted, and the server's step with their mean.
    #[serde(default)]
    pub aggregation: AggregationConfig,
    /// Algorithm: how clients' updates come about and are combined; federated averaging without it.
    #[serde(default, skip_serializing_if = "AlgorithmsConfig::is_empty")]
    pub algorithm: AlgorithmsConfig,
    /// Policies, which are read by their labels.
    #[serde(default, skip_serializing)]
    #[schemars(skip)]
    policy: ReadApart,
    /// Regret: the reward, and the meters that compare a policy with the genie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regret: Option<RegretConfig>,
    /// Evaluation: when the global model is tested, and targets for its metrics.
    #[serde(default)]
    pub evaluate: EvaluateConfig,
    /// Controls: what the results of policies stand beside, made once for each seed and point.
    #[serde(default, skip_serializing_if = "ControlsConfig::is_default")]
    pub controls: ControlsConfig,
    /// Hostile clients: what some send in the place of their updates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adversary: Option<AdversaryConfig>,
    /// Compression: how models and updates are encoded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<CompressionConfig>,
    /// Records: which rounds are written.
    #[serde(default)]
    pub record: RecordConfig,
    /// Report: the policy that the others are compared with.
    #[serde(default, skip_serializing_if = "report::ReportConfig::is_default")]
    pub report: report::ReportConfig,
    /// The order of simultaneous events of a class.
    #[serde(default, skip_serializing_if = "TiesConfig::is_default")]
    pub ties: TiesConfig,
    /// The grid, which is expanded before any of its points is read.
    #[serde(default, skip_serializing)]
    #[schemars(skip)]
    sweep: ReadApart,
}

/// A key at the top of a scenario that has a reader of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ReadApart;

impl<'de> Deserialize<'de> for ReadApart {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

fn nothing() -> TaskConfig {
    TaskConfig::None(none::Config::default())
}

/// One point of the sweep: the paths and values that make it. Without a sweep there is one point, without settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point {
    /// Path and value as text.
    pub settings: Vec<(String, String)>,
}

/// What a tree is read with.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// Where files are, and which of them may be read.
    pub reach: &'a Reach,
    /// Policies and tasks of the program.
    pub kinds: &'a Kinds,
    /// The point of the sweep.
    pub point: &'a Point,
}

/// A checked scenario at one point of its sweep.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The sections, defaults written out.
    pub sections: Sections,
    /// The policies, in the order of the file.
    pub arms: Vec<Arm>,
    /// The plan of its worlds.
    pub plan: WorldPlan,
    /// The files that population and task name, as far as they are there.
    pub files: Vec<PathBuf>,
    /// The scenarios of policies that override some of it, each once.
    pub variants: Vec<Part>,
    tree: Node,
}

impl Scenario {
    /// Reads and checks a tree without looking at its sweep.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn new(tree: &Node, surroundings: Surroundings<'_>) -> Result<Self, ScenarioError> {
        let mut rest = tree.clone();
        rest.take("sweep");
        let policies = rest.take("policy");
        evaluation::resolve_servers(&mut rest, policies.as_ref());
        shares::resolve_sizes(&mut rest)?;
        let Part { sections, plan, files, .. } = Part::read(&rest, tree, surroundings)?;
        let mut arms = read_policies(policies.as_ref(), tree, surroundings)?;
        sections.report.check(&arms, tree)?;
        let mut variants: Vec<Part> = Vec::new();
        for arm in &mut arms {
            if let PolicySource::Scenario(policy) = &mut arm.policy {
                let target = sections.stop.target.as_ref().and_then(TargetConfig::named);
                let known = Known {
                    reward: plan.reward.as_ref(),
                    hindsight: plan.hindsight.as_ref(),
                    rounds: sections.stop.rounds,
                    target,
                };
                policy.resolve(known).map_err(|error| policy_error(tree, &arm.label, error))?;
            }
            if arm.with.is_empty() {
                continue;
            }
            let mut own =
                with::overridden(&rest, sections.task_kind(), arm).map_err(|error| with::of_arm(error, arm))?;
            shares::resolve_sizes(&mut own).map_err(|error| with::of_arm(error, arm))?;
            let own = Part::read(&own, &own, surroundings).map_err(|error| with::of_arm(error, arm))?;
            // Policies with the same scenario share worlds, however it was written.
            arm.variant = (own.sections != sections).then(|| {
                variants.iter().position(|known| known.sections == own.sections).unwrap_or_else(|| {
                    variants.push(own);
                    variants.len() - 1
                })
            });
        }
        // Policies may override cluster models, or be the only ones that have them.
        let has_clusters = plan.clusters.is_some() || variants.iter().any(|part| part.plan.clusters.is_some());
        if sections.meters_assignment() && !has_clusters {
            let message =
                "there are no cluster models to which anybody is assigned; give [clusters], or take the key out";
            return Err(ScenarioError::new(tree, "regret.assignment", message));
        }
        Ok(Self { sections, arms, plan, files, variants, tree: tree.clone() })
    }

    /// Checks settings that name metrics or depend on the task, in the scenario and in those of its policies.
    ///
    /// # Errors
    /// The first thing that is wrong, with file and line.
    pub fn check_metrics(&self) -> Result<(), ScenarioError> {
        let wrong = |complaint| ScenarioError::of(&self.tree, complaint);
        let check = |sections: &Sections, plan: &WorldPlan, tree: &Node| {
            effect::check(sections, tree, &*plan.task).map_err(wrong)?;
            if sections.evaluate.clients && !plan.task.about().measures_clients {
                let task = plan.task.about().name;
                let message = format!("the task ({task}) measures nothing on a client's own data; take the key out");
                return Err(wrong(Complaint::new("evaluate.clients", message)));
            }
            if sections.evaluate.fine_tune.is_some() && !plan.task.about().trains {
                let task = plan.task.about().name;
                let message = format!("the task ({task}) trains nothing; take the key out");
                return Err(wrong(Complaint::new("evaluate.fine_tune", message)));
            }
            if sections.evaluate.fine_tune.is_some() && plan.clusters.is_some() {
                let message =
                    "clients of several models are not told apart once a run is over; take [clusters] or the key out";
                return Err(wrong(Complaint::new("evaluate.fine_tune", message)));
            }
            if plan.task.about().holds_out && !sections.evaluate.clients {
                let message = "clients hold examples out (held_out of the task), on which nothing is measured; write true, or \
                               take held_out out";
                return Err(wrong(Complaint::new("evaluate.clients", message)));
            }
            let evaluated = sections.evaluated();
            if plan.declared_measures().is_personal && (evaluated.servers || evaluated.edges) {
                let key = if evaluated.servers { "evaluate.servers" } else { "evaluate.edges" };
                let message = "clients keep a part of each model, so that a server has none to be measured; write false, or \
                               take the algorithm's private layers out";
                return Err(wrong(Complaint::new(key, message)));
            }
            if sections.evaluate.edges && !sections.protocol.has_edge_servers() {
                let message = "is about models that edge servers have made, and there are none; take the key out, or take \
                               [protocol.hierarchical]";
                return Err(wrong(Complaint::new("evaluate.edges", message)));
            }
            if sections.evaluate.edges && !plan.task.about().trains {
                let task = plan.task.about().name;
                let message =
                    format!("the task ({task}) trains nothing, so that edge servers make no models; take the key out");
                return Err(wrong(Complaint::new("evaluate.edges", message)));
            }
            plan.controls.check_task(&*plan.task).map_err(|complaint| wrong(complaint.below("controls")))?;
            sections.check_metrics(&plan.declared_measures()).map_err(wrong)
        };
        check(&self.sections, &self.plan, &self.tree)?;
        self.variants.iter().try_for_each(|part| check(&part.sections, &part.plan, part.tree()))
    }

    /// The metrics of a run, with the main one that all policies are compared by: one over clients that `[report] aim`
    /// names, or, where some policy keeps a part of the model at clients, the mean of the main measure over these.
    pub(crate) fn compared_by(&self, mut metrics: Vec<Metric>) -> Vec<Metric> {
        let aim = self.sections.report.aim.as_ref().and_then(|aim| aim.split_once('.'));
        let aimed_at = aim.filter(|(what, _)| ["final", "best"].contains(what)).map(|(_, name)| name.to_owned());
        let of_clients =
            |name: &String| metrics.iter().any(|metric| metric.id.place == Place::Clients && metric.id.is_called(name));
        let plans = (0..self.arms.len()).map(|arm| self.plan_of(arm).declared_measures());
        let personal = plans.into_iter().find(|measures| measures.is_personal);
        let personal = personal.and_then(|measures| Some(measures.of_models(measures.main()?).to_string()));
        let main = aimed_at.filter(of_clients).or(personal).filter(of_clients);
        if let Some(main) = main {
            metrics.iter_mut().for_each(|metric| metric.main = metric.id.is_called(&main));
        }
        metrics
    }

    /// Checks the metrics that an arm's scenario names against those of its world, whose data may have no validation
    /// part.
    ///
    /// # Errors
    /// The first thing that is wrong, with file and line.
    pub fn check_measured(&self, arm: usize, measures: &Measures) -> Result<(), ScenarioError> {
        self.sections_of(arm).check_metrics(measures).map_err(|complaint| ScenarioError::of(&self.tree, complaint))
    }

    /// Lets rules of the program decide on the clusters of edge servers, where there are cluster models, and fold
    /// updates.
    pub(crate) fn set_rules(&mut self, kinds: &Kinds) -> Result<(), ScenarioError> {
        let Kinds { clusters: of_clusters, algorithm, .. } = kinds;
        for plan in self.variants.iter_mut().map(|part| &mut part.plan).chain([&mut self.plan]) {
            if let Some(clusters) = &mut plan.clusters {
                clusters.outside.clone_from(of_clusters);
            }
            if algorithm.is_some() && plan.aggregation.server != ServerConfig::default() {
                let message = "found a server of the scenario's own, and the program's algorithm makes that step; take \
                               it out";
                return Err(ScenarioError::new(&self.tree, "aggregation.server", message));
            }
            plan.outside.clone_from(algorithm);
        }
        Ok(())
    }

    /// Checks the numbers that `[report]` names against those that runs will have.
    ///
    /// # Errors
    /// The first one that is unknown, with file and line.
    pub(crate) fn check_report(&self, numbers: &BTreeSet<String>) -> Result<(), ScenarioError> {
        self.sections.report.check_numbers(numbers).map_err(|complaint| ScenarioError::of(&self.tree, complaint))
    }

    /// The plans of the worlds of all arms.
    pub fn plans(&self) -> impl Iterator<Item = &WorldPlan> {
        [&self.plan].into_iter().chain(self.variants.iter().map(|part| &part.plan))
    }

    /// The plan of the world of an arm.
    pub fn plan_of(&self, arm: usize) -> &WorldPlan {
        self.arms[arm].variant.map_or(&self.plan, |variant| &self.variants[variant].plan)
    }

    /// The sections of an arm.
    pub fn sections_of(&self, arm: usize) -> &Sections {
        self.arms[arm].variant.map_or(&self.sections, |variant| &self.variants[variant].sections)
    }

    /// Adds file and line to an error of building the common world.
    pub fn explain(&self, error: WorldError) -> ScenarioError {
        part::explain(&self.tree, &self.sections, error)
    }

    /// Adds file and line to an error of building the world of an arm, and names the arm if it has a world of its own.
    pub fn explain_of(&self, arm: usize, error: WorldError) -> ScenarioError {
        let arm = &self.arms[arm];
        match arm.variant {
            Some(variant) => with::of_arm(self.variants[variant].explain(error), arm),
            None => self.explain(error),
        }
    }

    /// Adds file and line to a fault in a policy's parameter.
    pub fn explain_policy(&self, label: &str, error: Complaint) -> ScenarioError {
        policy_error(&self.tree, label, error)
    }

    /// The scenario with every default written out, as TOML; with a sweep, the policies as they were given.
    pub fn to_toml(&self) -> String {
        let mut table = toml::Table::try_from(&self.sections).expect("a scenario has only values that TOML can write");
        // Parameters that a policy takes from the reward are written out, unless a sweep may change the reward: then
        // the policies keep the parameters that the user wrote, so that they follow it.
        let is_swept = self.tree.get("sweep").is_some();
        let is_kept = |label: &str, key: &str| {
            let written = self.tree.get("policy").and_then(|policies| policies.get(label)?.get(key));
            !is_swept || key == "kind" || written.is_some()
        };
        let arm = |(label, body): (String, toml::Table)| {
            let body: toml::Table = body.into_iter().filter(|(key, _)| is_kept(&label, key)).collect();
            (label, toml::Value::Table(body))
        };
        let policies = self.arms.iter().map(Arm::to_toml).map(arm).collect();
        effect::without_defaults(&mut table, &self.sections, &self.tree);
        if let Some(OutsideTask { kind, parameters, .. }) = &self.sections.outside_task {
            let task = toml::Table::from_iter([(kind.clone(), in_toml(parameters).into())]);
            table.insert("task".to_owned(), task.into());
        }
        table.insert("policy".to_owned(), toml::Value::Table(policies));
        let mut text = toml::to_string(&table).expect("a table of plain values can be written");
        if let Some(Node { value: Value::Table(axes), .. }) = self.tree.get("sweep") {
            // Points are numbered in the order of the axes: lists of tables would be written behind all others.
            text.push_str("\n[sweep]\n");
            for (path, values) in axes {
                text.push_str(&format!("{} = {}\n", toml::Value::String(path.clone()), to_toml(values)));
            }
        }
        text
    }
}

fn to_toml(node: &Node) -> toml::Value {
    match &node.value {
        Value::Boolean(truth) => toml::Value::Boolean(*truth),
        Value::Integer(number) => toml::Value::Integer(*number),
        Value::Float(number) => toml::Value::Float(*number),
        Value::Text(text) => toml::Value::String(text.clone()),
        Value::List(items) => toml::Value::Array(items.iter().map(to_toml).collect()),
        Value::Table(entries) => {
            toml::Value::Table(entries.iter().map(|(key, node)| (key.clone(), to_toml(node))).collect())
        }
    }
}

fn policy_error(tree: &Node, label: &str, complaint: Complaint) -> ScenarioError {
    ScenarioError::of(tree, complaint.below(label).below("policy"))
}

impl Sections {
    /// The name of the task's kind.
    pub fn task_kind(&self) -> &str {
        self.outside_task.as_ref().map_or_else(|| self.task.kind(), |task| &task.kind)
    }

    /// The task, with names of files as they are written.
    pub(crate) fn task_settings(&self) -> &dyn TaskSettings {
        self.outside_task.as_ref().map_or_else(|| self.task.as_settings(), |task| &*task.settings)
    }

    /// Whether regret is metered.
    pub fn has_meter(&self, meter: Meter) -> bool {
        self.regret.as_ref().is_some_and(|regret| regret.meters.contains(&meter))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_keys_are_those_of_the_schema() {
        let schema = schema::schema();
        let tree = tree::parse(Path::new("a.toml"), "unknown = 1").unwrap();
        let message = read::read::<Sections>(&tree, "").unwrap_err().complaint.message;
        let mut keys: Vec<_> = message.split_once("known: ").unwrap().1.split(", ").collect();
        let mut known: Vec<_> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        known.retain(|key| *key != "$schema");
        known.sort_unstable();
        keys.sort_unstable();
        assert_eq!(known, keys);
    }
}
