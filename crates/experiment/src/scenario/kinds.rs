//! Policies and tasks of a program, which scenarios name like those of the catalogue.
//!
//! `[policy.mine]`, or `kind = "mine"` under another label, and `[task.mine]` take parameters as any other: they can be
//! set, swept and listed, and stand in the resolved scenario with their defaults. A kind that no arm has becomes an arm
//! under its own name.

use super::names::{nearest, unknown_name};
use super::read::ScenarioError;
use super::tree::{Node, Origin, Value as Written};
use super::{Point, is_name};
use fedgenie_core::config::Complaint;
use fedgenie_core::text;
use fedgenie_learning::algorithm::FoldRule;
use fedgenie_simulator::clusters::{ClusterContext, ClusterFactory, ClusterPolicy};
use fedgenie_simulator::policy::{self, BuildContext, OutsidePolicy, Policy};
use fedgenie_simulator::task::{self, TaskSettings};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// The kind of a task that a program sets without a name.
const OWN: &str = "own";

/// Parameters by key, as a scenario writes them.
pub type Parameters = Map<String, Value>;

/// What a program's policy or task is made with, beside what is known to policies and tasks of the catalogue.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// The parameters, with the defaults of the kind.
    pub parameters: &'a Parameters,
    /// The point of the sweep; without settings where nothing is swept.
    pub point: &'a Point,
}

/// What is known of a kind, and recorded of it.
#[derive(Clone, Debug, Default)]
pub struct Details {
    /// Its parameters with their defaults.
    pub defaults: Parameters,
    /// Parameters without a default.
    pub required: Vec<String>,
    /// Whether it takes parameters that are not listed.
    pub is_open: bool,
    /// A digest of its code, empty if unknown: runs of another are not continued.
    pub fingerprint: String,
    /// Where a command finds it, such as `module:Class`, if one does.
    pub found_at: Option<String>,
}

type PolicyFactory = dyn Fn(&BuildContext<'_>, Given<'_>) -> Result<Box<dyn Policy>, Complaint> + Send + Sync;
type TaskFactory = dyn Fn(Given<'_>) -> Result<Arc<dyn TaskSettings>, Complaint> + Send + Sync;

struct Kind<F: ?Sized> {
    name: String,
    details: Details,
    make: Arc<F>,
}

// A derived implementation would ask that functions can be cloned.
impl<F: ?Sized> Clone for Kind<F> {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), details: self.details.clone(), make: self.make.clone() }
    }
}

/// The policies and tasks of a program, under their names.
#[derive(Clone, Default)]
pub struct Kinds {
    program: String,
    policies: Vec<Kind<PolicyFactory>>,
    tasks: Vec<Kind<TaskFactory>>,
    pub(super) clusters: Option<ClusterFactory>,
    pub(super) algorithm: Option<Arc<dyn FoldRule>>,
}

/// A program's task as a scenario names it.
#[derive(Clone, Debug)]
pub struct OutsideTask {
    /// The kind.
    pub kind: String,
    /// Parameters, defaults written out.
    pub parameters: Parameters,
    /// The task.
    pub settings: Arc<dyn TaskSettings>,
}

impl PartialEq for OutsideTask {
    /// The same kind with the same parameters is the same task.
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && self.parameters == other.parameters
    }
}

impl Kinds {
    /// None so far. `program` is what manifests call the program, with the versions on which its results depend.
    pub fn of(program: impl Into<String>) -> Self {
        Self { program: program.into(), ..Self::default() }
    }

    /// What manifests call the program.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Adds a policy. `make` makes it, once for each run and server.
    ///
    /// # Errors
    /// If the name cannot name a folder, or is taken.
    pub fn policy<F>(&mut self, name: &str, details: Details, make: F) -> Result<(), Complaint>
    where
        F: Fn(&BuildContext<'_>, Given<'_>) -> Result<Box<dyn Policy>, Complaint> + Send + Sync + 'static,
    {
        let known = policy::CATALOGUE.entries.iter().map(|entry| entry.name);
        check_name("policy", name, known.chain(self.policies.iter().map(|kind| kind.name.as_str())))?;
        self.policies.push(Kind { name: name.to_owned(), details, make: Arc::new(make) });
        Ok(())
    }

    /// Adds a task. `make` makes its settings, once for each point and arm with overrides.
    ///
    /// # Errors
    /// If the name cannot name a kind, or is taken.
    pub fn task<F>(&mut self, name: &str, details: Details, make: F) -> Result<(), Complaint>
    where
        F: Fn(Given<'_>) -> Result<Arc<dyn TaskSettings>, Complaint> + Send + Sync + 'static,
    {
        let known = task::CATALOGUE.entries.iter().map(|entry| entry.name);
        check_name("task", name, known.chain(self.tasks.iter().map(|kind| kind.name.as_str())))?;
        self.tasks.push(Kind { name: name.to_owned(), details, make: Arc::new(make) });
        Ok(())
    }

    /// The same with a task without parameters in the place of all others.
    pub(crate) fn with_own_task(mut self, task: Arc<dyn TaskSettings>) -> Self {
        let make = move |_: Given<'_>| Ok(task.clone());
        self.tasks = vec![Kind { name: OWN.to_owned(), details: Details::default(), make: Arc::new(make) }];
        self
    }

    /// Sets the rule that decides which cluster each edge server belongs to, in the place of `assign` in `[clusters]`;
    /// `factory` makes it, once for each run.
    pub fn clusters<F>(&mut self, factory: F)
    where
        F: Fn(&ClusterContext<'_>) -> Box<dyn ClusterPolicy> + Send + Sync + 'static,
    {
        self.clusters = Some(ClusterFactory(Arc::new(factory)));
    }

    /// Sets the step that folds updates into the model, in the place of combination and `[aggregation] server`.
    pub fn algorithm(&mut self, rule: impl FoldRule + 'static) {
        self.algorithm = Some(Arc::new(rule));
    }

    /// Whether it has a rule of clusters, and an algorithm.
    pub(crate) const fn rules(&self) -> [bool; 2] {
        [self.clusters.is_some(), self.algorithm.is_some()]
    }

    /// Names and details of the policies.
    pub fn policies(&self) -> impl Iterator<Item = (&str, &Details)> {
        self.policies.iter().map(|kind| (kind.name.as_str(), &kind.details))
    }

    /// Names and details of the tasks.
    pub fn tasks(&self) -> impl Iterator<Item = (&str, &Details)> {
        self.tasks.iter().map(|kind| (kind.name.as_str(), &kind.details))
    }

    /// Gives the tree an arm for each policy that none has, and the task if it has none and there is one only.
    pub(crate) fn complete(&self, root: &mut Node) -> Result<(), ScenarioError> {
        let is_of = |(label, arm): &(String, Node), name: &str| match arm.get("kind").map(|kind| &kind.value) {
            Some(Written::Text(kind)) => kind == name,
            Some(_) => false,
            None => label == name,
        };
        for Kind { name, .. } in &self.policies {
            let has_arm = match root.get("policy").map(|policies| &policies.value) {
                Some(Written::Table(arms)) => arms.iter().any(|arm| is_of(arm, name)),
                _ => false,
            };
            if has_arm {
                continue;
            }
            if let Some(taken) = root.at(&format!("policy.{name}")) {
                let message = format!("this label is the name of a policy of {}; take another label", self.called());
                return Err(ScenarioError::at(&taken.origin, format!("policy.{name}"), message));
            }
            root.set(&format!("policy.{name}"), self.empty())?;
        }
        match (&self.tasks[..], root.get("task")) {
            ([task], None) => Ok(root.set(&format!("task.{}", task.name), self.empty())?),
            _ => Ok(()),
        }
    }

    /// An empty table that the program writes.
    fn empty(&self) -> Node {
        Node { value: Written::Table(Vec::new()), origin: Origin { source: self.called().into(), line: None } }
    }

    fn called(&self) -> &str {
        if self.program.is_empty() { "the program" } else { &self.program }
    }

    /// The policy of a kind with the parameters in a node, if the program has the kind.
    pub(super) fn read_policy(
        &self,
        kind: &str,
        (body, path): (&Node, &str),
        point: &Point,
    ) -> Option<Result<OutsidePolicy, ScenarioError>> {
        let found = self.policies.iter().find(|known| known.name == kind)?;
        Some(found.details.read(body, path).map(|parameters| {
            let (make, point, given) = (found.make.clone(), point.clone(), parameters.clone());
            let factory = move |context: &BuildContext<'_>| make(context, Given { parameters: &given, point: &point });
            OutsidePolicy { kind: kind.to_owned(), parameters, factory: Arc::new(factory) }
        }))
    }

    /// Takes a task of the program out of a tree, if the tree names one.
    pub(super) fn take_task(&self, tree: &mut Node, point: &Point) -> Result<Option<OutsideTask>, ScenarioError> {
        let (kind, body) = match tree.get("task").map(|task| (&task.value, task)) {
            Some((Written::Text(kind), task)) => {
                (kind.clone(), Node { value: Written::Table(Vec::new()), origin: task.origin.clone() })
            }
            Some((Written::Table(entries), _)) if entries.len() == 1 => entries[0].clone(),
            _ => return Ok(None),
        };
        let Some(found) = self.tasks.iter().find(|known| known.name == kind) else { return Ok(None) };
        let path = format!("task.{kind}");
        let parameters = found.details.read(&body, &path)?;
        let made = (found.make)(Given { parameters: &parameters, point });
        let wrong = |complaint: Complaint| ScenarioError::of(tree, complaint.below(&kind).below("task"));
        let settings = made.map_err(wrong)?;
        tree.take("task");
        Ok(Some(OutsideTask { kind, parameters, settings }))
    }
}

fn check_name<'a>(what: &str, name: &str, mut taken: impl Iterator<Item = &'a str>) -> Result<(), Complaint> {
    if !is_name(name) {
        let message = format!(
            "found the {what} {}; expected a name of lower-case letters, digits, - and _ only, because it names folders \
             and tables",
            text::quoted(name)
        );
        return Err(Complaint::new("", message));
    }
    match taken.any(|known| known == name) {
        true => Err(Complaint::new("", format!("there is a {what} {name:?} already; take another name"))),
        false => Ok(()),
    }
}

impl Details {
    /// The parameters in a node, with defaults.
    fn read(&self, body: &Node, path: &str) -> Result<Parameters, ScenarioError> {
        let mut parameters = self.defaults.clone();
        let Written::Table(entries) = &body.value else {
            let message = format!("found {}; expected a table of parameters", body.value.describe());
            return Err(ScenarioError::at(&body.origin, path, message));
        };
        for (key, node) in entries {
            if !(self.is_open || self.defaults.contains_key(key) || self.required.contains(key)) {
                let known: Vec<&str> = self.defaults.keys().chain(&self.required).map(String::as_str).collect();
                let message = unknown_name("key", key, &known);
                return Err(ScenarioError::at(&node.origin, format!("{path}.{key}"), message));
            }
            parameters.insert(key.clone(), in_json(node));
        }
        if let Some(missing) = self.required.iter().find(|key| !parameters.contains_key(*key)) {
            let near = nearest(missing, parameters.keys().map(String::as_str).filter(|key| !self.has(key)));
            let near = near.map_or_else(String::new, |near| format!("; was {near:?} meant for it?"));
            return Err(ScenarioError::at(&body.origin, path, format!("the key {missing:?} is missing{near}")));
        }
        Ok(parameters)
    }

    fn has(&self, key: &str) -> bool {
        self.defaults.contains_key(key) || self.required.iter().any(|required| required == key)
    }
}

/// A value as JSON. Numbers that JSON lacks become nothing.
fn in_json(node: &Node) -> Value {
    match &node.value {
        Written::Boolean(truth) => Value::from(*truth),
        Written::Integer(number) => Value::from(*number),
        Written::Float(number) => Value::from(*number),
        Written::Text(text) => Value::from(text.as_str()),
        Written::List(items) => items.iter().map(in_json).collect(),
        Written::Table(entries) => entries.iter().map(|(key, node)| (key.clone(), in_json(node))).collect(),
    }
}

impl fmt::Debug for Kinds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |kinds: Vec<&str>| kinds.join(", ");
        formatter
            .debug_struct("Kinds")
            .field("program", &self.program)
            .field("policies", &names(self.policies().map(|(name, _)| name).collect()))
            .field("tasks", &names(self.tasks().map(|(name, _)| name).collect()))
            .finish_non_exhaustive()
    }
}
