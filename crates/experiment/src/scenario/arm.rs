//! Policies under their labels, as a scenario gives them.

use super::kinds::{Kinds, Parameters};
use super::read::{ScenarioError, read_kind};
use super::tree::{Node, Value};
use super::with::{self, Override};
use super::{Surroundings, names, sections, to_toml};
use fedgenie_core::limits;
use fedgenie_simulator::policy::{self, OutsidePolicy, PolicySource};
use std::collections::BTreeMap;

/// A policy under its label.
#[derive(Clone, Debug)]
pub struct Arm {
    /// The label, unique in the scenario.
    pub label: String,
    /// Kind and parameters, defaults written out; or the policy of a program.
    pub policy: PolicySource,
    /// Most clients that it may choose at once; `None` for as many as the protocol says.
    pub cohort: Option<u32>,
    /// The settings that it overrides, by path.
    pub with: Vec<Override>,
    /// Index of its own scenario among the variants of the scenario; `None` if its overrides change nothing.
    pub variant: Option<usize>,
}

impl Arm {
    /// Its policy, with the limit of the arm.
    pub fn source(&self) -> PolicySource {
        let policy = self.policy.clone();
        self.cohort.map_or(policy.clone(), |cohort| PolicySource::Limited(Box::new(policy), cohort))
    }

    /// The overrides: path and value, as text.
    pub fn overridden(&self) -> BTreeMap<String, String> {
        self.with.iter().map(|entry| (entry.path.clone(), entry.text())).collect()
    }

    /// Label, and the table with the kind and all parameters.
    pub(super) fn to_toml(&self) -> (String, toml::Table) {
        let mut body = toml::Table::new();
        let mut add = |kind: &str, parameters: toml::Table| {
            body.insert("kind".to_owned(), toml::Value::String(kind.to_owned()));
            body.extend(parameters);
        };
        match &self.policy {
            PolicySource::Outside(OutsidePolicy { kind, parameters, .. }) => add(kind, in_toml(parameters)),
            other => {
                let config = other.config().expect("a policy that is no program's is of the catalogue");
                let written = toml::Table::try_from(config).expect("a policy has only values that TOML can write");
                for (kind, value) in written {
                    add(
                        &kind,
                        if let toml::Value::Table(parameters) = value { parameters } else { toml::Table::new() },
                    );
                }
            }
        }
        body.extend(self.cohort.map(|cohort| ("cohort".to_owned(), i64::from(cohort).into())));
        if !self.with.is_empty() {
            let with = self.with.iter().map(|entry| (entry.path.clone(), to_toml(&entry.value))).collect();
            body.insert("with".to_owned(), toml::Value::Table(with));
        }
        (self.label.clone(), body)
    }
}

/// Parameters as TOML, which has no nothing: such a parameter is left out.
pub(super) fn in_toml(parameters: &Parameters) -> toml::Table {
    let given: Parameters = parameters.iter().filter(|(_, value)| !value.is_null()).map(cloned).collect();
    toml::Table::try_from(given).expect("parameters were read from a scenario")
}

fn cloned((key, value): (&String, &serde_json::Value)) -> (String, serde_json::Value) {
    (key.clone(), value.clone())
}

/// Reads `[policy.LABEL]` tables, in the order of the file.
pub(super) fn read_policies(
    policies: Option<&Node>,
    tree: &Node,
    Surroundings { kinds, point, .. }: Surroundings<'_>,
) -> Result<Vec<Arm>, ScenarioError> {
    let missing = "no policy is given; write for example [policy.random]";
    let Some(Node { value: Value::Table(entries), .. }) = policies else {
        return Err(ScenarioError::new(tree, "policy", missing));
    };
    if entries.is_empty() {
        return Err(ScenarioError::new(tree, "policy", missing));
    }
    if entries.len() > limits::POLICIES {
        let message = format!("found {} policies; expected at most {}", entries.len(), limits::POLICIES);
        return Err(ScenarioError::new(tree, "policy", message));
    }
    let mut arms = Vec::with_capacity(entries.len());
    for (label, node) in entries {
        let path = format!("policy.{label}");
        if !sections::is_name(label) {
            let message = "a label has lower-case letters, digits, - and _ only, because it names a folder";
            return Err(ScenarioError::at(&node.origin, path, message));
        }
        let mut body = node.clone();
        let kind = match body.take("kind") {
            None => label.clone(),
            Some(Node { value: Value::Text(kind), .. }) => kind,
            Some(other) => {
                let message = format!("found {}; expected the name of a policy", other.value.describe());
                return Err(ScenarioError::new(tree, format!("{path}.kind"), message));
            }
        };
        let with = body.take("with").map_or_else(|| Ok(Vec::new()), |with| with::read_overrides(&with, &path))?;
        let cohort = body.take("cohort").map(|cohort| read_cohort(&cohort, &path)).transpose()?;
        let policy = match kinds.read_policy(&kind, (&body, &path), point) {
            Some(policy) => PolicySource::Outside(policy?),
            None => {
                check_kind((label, &kind), (node, &path), tree, kinds)?;
                PolicySource::Scenario(read_kind(&kind, &body, &path)?)
            }
        };
        arms.push(Arm { label: label.clone(), policy, cohort, with, variant: None });
    }
    Ok(arms)
}

/// Refuses a policy's kind that neither the catalogue nor the program has.
fn check_kind(
    (label, kind): (&str, &str),
    (node, path): (&Node, &str),
    tree: &Node,
    kinds: &Kinds,
) -> Result<(), ScenarioError> {
    let known = policy::CATALOGUE.entries.iter().map(|entry| entry.name);
    let names: Vec<_> = known.chain(kinds.policies().map(|(name, _)| name)).collect();
    if names.contains(&kind) {
        return Ok(());
    }
    let has_kind = node.get("kind").is_some();
    let path = if has_kind { format!("{path}.kind") } else { path.to_owned() };
    Err(ScenarioError::new(tree, path, names::unknown_policy(label, kind, &names, has_kind)))
}

/// The most clients that a policy may choose at once.
fn read_cohort(node: &Node, path: &str) -> Result<u32, ScenarioError> {
    match node.value {
        Value::Integer(cohort) if (1..=i64::from(u32::MAX)).contains(&cohort) => Ok(cohort as u32),
        _ => {
            let message = format!("found {}; expected a number of clients of at least 1", node.value.describe());
            Err(ScenarioError::at(&node.origin, format!("{path}.cohort"), message))
        }
    }
}
