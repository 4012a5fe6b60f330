//! Overrides of a policy: `with = { "protocol.synchronous.cohort" = 8 }` in `[policy.LABEL]`.
//!
//! A key is a path, and its value replaces the scenario's. Population, data and draws are the same for all policies, so
//! that they stay paired by seed; paths that would change them are refused.

use super::Arm;
use super::read::ScenarioError;
use super::sweep::setting_text;
use super::tree::{Node, Value};
use fedgenie_core::{limits, text};

/// Paths that may be overridden, for people.
const ALLOWED: &str = "task.*.model, task.*.start, training, aggregation, algorithm, compression, privacy, \
                       protocol, clusters";

/// The value that removes an optional section.
pub(super) const NONE: &str = "none";

/// A value that replaces the scenario's for one policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Override {
    /// Its path in the scenario.
    pub path: String,
    /// The value, and where it was written.
    pub value: Node,
}

impl Override {
    /// The value as text, its keys in alphabetical order: a stored scenario keeps another order than its file.
    pub fn text(&self) -> String {
        setting_text(&sorted(&self.value))
    }

    /// Whether it removes an optional section.
    fn takes_away(&self) -> bool {
        let keys: Vec<&str> = self.path.split('.').collect();
        let is_optional = matches!(
            keys[..],
            ["training" | "aggregation" | "algorithm" | "compression" | "privacy" | "clusters"] | ["task", _, "start"]
        );
        is_optional && matches!(&self.value.value, Value::Text(text) if text == NONE)
    }
}

/// The value with the keys of all its tables in alphabetical order.
fn sorted(node: &Node) -> Node {
    let value = match &node.value {
        Value::List(items) => Value::List(items.iter().map(sorted).collect()),
        Value::Table(entries) => {
            let mut entries: Vec<_> = entries.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            entries.sort_by(|(one, _), (other, _)| one.cmp(other));
            Value::Table(entries)
        }
        other => other.clone(),
    };
    Node { value, origin: node.origin.clone() }
}

fn is_allowed(path: &str) -> bool {
    let keys: Vec<&str> = path.split('.').collect();
    matches!(
        keys[..],
        ["training" | "aggregation" | "algorithm" | "compression" | "privacy" | "protocol" | "clusters", ..]
            | ["task", _, "model" | "start", ..]
    )
}

/// Reads the table `with` of the policy at `path`. The overrides are in the order of their paths: one below another
/// comes after it, and changes its value.
pub(super) fn read_overrides(with: &Node, path: &str) -> Result<Vec<Override>, ScenarioError> {
    let path = format!("{path}.with");
    let Value::Table(entries) = &with.value else {
        let found = with.value.describe();
        let message =
            format!("found {found}; expected a table of paths and values, such as {{ \"training.batch\" = 8 }}");
        return Err(ScenarioError::at(&with.origin, path, message));
    };
    let mut overrides: Vec<Override> = Vec::new();
    for (key, value) in entries {
        flatten(key, value, &path, &mut overrides)?;
    }
    // Of the same path the last value counts: `--set` and sweeps append theirs to the file's.
    overrides.reverse();
    overrides.sort_by(|one, other| one.path.cmp(&other.path));
    overrides.dedup_by(|next, kept| next.path == kept.path);
    if overrides.len() > limits::OVERRIDES {
        let message = format!("found {} settings; expected at most {}", overrides.len(), limits::OVERRIDES);
        return Err(ScenarioError::at(&with.origin, path, message));
    }
    for taken in overrides.iter().filter(|entry| entry.takes_away()) {
        let is_below =
            |entry: &&Override| entry.path.strip_prefix(&taken.path).is_some_and(|rest| rest.starts_with('.'));
        if let Some(below) = overrides.iter().find(is_below) {
            let message = format!("found {} beside {} = {NONE:?}, which takes it away", below.path, taken.path);
            return Err(ScenarioError::at(&below.value.origin, path, message));
        }
    }
    Ok(overrides)
}

/// Flattens tables above the paths that may be overridden, such as `task` when keys are not in quotes.
fn flatten(path: &str, value: &Node, above: &str, found: &mut Vec<Override>) -> Result<(), ScenarioError> {
    if is_allowed(path) {
        found.push(Override { path: path.to_owned(), value: value.clone() });
        return Ok(());
    }
    match &value.value {
        Value::Table(entries) if path.split('.').next() == Some("task") && path.matches('.').count() < 2 => {
            entries.iter().try_for_each(|(key, value)| flatten(&format!("{path}.{key}"), value, above, found))
        }
        _ => {
            let message = format!(
                "found the path {}; a policy can override only {ALLOWED} and paths below them: population, data \
                 and draws are the same for all policies, so that they can be compared by seed",
                text::quoted(path)
            );
            Err(ScenarioError::at(&value.origin, above, message))
        }
    }
}

/// The tree of a scenario with a policy's overrides; `task` is the kind of the common task.
pub(super) fn overridden(tree: &Node, task: &str, arm: &Arm) -> Result<Node, ScenarioError> {
    let mut tree = tree.clone();
    for entry in &arm.with {
        let Override { path, value } = entry;
        if let Some(kind) = path.strip_prefix("task.").and_then(|below| below.split('.').next())
            && kind != task
        {
            let message = format!("found the path {path:?}; the task is {task:?}, and all policies share it");
            return Err(ScenarioError::at(&value.origin, format!("policy.{}.with", arm.label), message));
        }
        if entry.takes_away() {
            take(&mut tree, path);
        } else {
            tree.set(path, value.clone())?;
        }
    }
    Ok(tree)
}

/// Removes the value at a path of tables, if it exists.
fn take(node: &mut Node, path: &str) {
    let Some((key, below)) = path.split_once('.') else {
        node.take(path);
        return;
    };
    if let Value::Table(entries) = &mut node.value
        && let Some((_, inner)) = entries.iter_mut().find(|(name, _)| name == key)
    {
        take(inner, below);
    }
}

/// Adds the policy to an error. If an override removed a value, or added one that does not fit, the error is located at
/// the override.
pub(super) fn of_arm(mut error: ScenarioError, arm: &Arm) -> ScenarioError {
    let path = error.complaint.path.clone();
    let is_below = |path: &str, above: &str| path.strip_prefix(above).is_some_and(|rest| rest.starts_with('.'));
    let is_cause = |entry: &&Override| {
        is_below(&entry.path, &path) || entry.takes_away() && (entry.path == path || is_below(&path, &entry.path))
    };
    if let Some(cause) = arm.with.iter().find(is_cause) {
        error.origin = Some(cause.value.origin.clone());
    }
    error.complaint.message.push_str(&format!(" (for policy {:?}, with its overrides)", arm.label));
    error
}

#[cfg(test)]
mod tests {
    use super::super::tree::parse;
    use super::*;
    use std::path::Path;

    fn read(text: &str) -> Result<Vec<(String, String)>, String> {
        let tree = parse(Path::new("a.toml"), text).unwrap();
        let found = read_overrides(tree.get("with").unwrap(), "policy.big").map_err(|error| error.to_string())?;
        Ok(found.into_iter().map(|entry| (entry.path.clone(), entry.text())).collect())
    }

    #[test]
    fn keys_are_paths_and_tables_are_values() {
        let found = read(
            "[with]\n\"protocol.deadline.cohort\" = 8\nprotocol = { deadline = { cohort = 3 } }\n\
             task.classification.model = \"lenet5\"\nclusters = \"none\"\n\
             training = { optimizer = { sgd = { momentum = 0.5, lr = 0.1 } }, batch = 4 }\n",
        );
        let pair = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        assert_eq!(
            found.unwrap(),
            [
                pair("clusters", "none"),
                pair("protocol", "{ deadline = { cohort = 3 } }"),
                pair("protocol.deadline.cohort", "8"),
                pair("task.classification.model", "lenet5"),
                // As in any order of the file, such as that of a stored scenario.
                pair("training", "{ batch = 4, optimizer = { sgd = { lr = 0.1, momentum = 0.5 } } }"),
            ]
        );
    }

    #[test]
    fn what_all_policies_share_is_refused() {
        for path in ["population.clients", "task.classification.data", "task", "stop.rounds", "trainings", "seeds"] {
            let error = read(&format!("name = \"x\"\nwith = {{ {path:?} = 8 }}")).unwrap_err();
            let start =
                format!("a.toml:2: policy.big.with: found the path {path:?}; a policy can override only task.*.");
            assert!(error.starts_with(&start), "{error}");
        }
        let both = read("with = { clusters = \"none\", \"clusters.count\" = 3 }").unwrap_err();
        assert!(both.contains("found clusters.count beside clusters = \"none\", which takes it away"), "{both}");
        assert!(read("with = 3").unwrap_err().contains("found 3; expected a table of paths and values"));
    }
}
