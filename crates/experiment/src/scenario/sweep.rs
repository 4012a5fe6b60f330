//! A sweep: values whose runs stand side by side.
//!
//! `[sweep]` has paths with lists of values. Its points are all combinations, in the order of the file, the last path
//! running fastest; at most [`limits::POINTS`]. Two keys of it are no paths:
//!
//! - `zip = ["a", "b"]`: these paths go through their lists together, the first value of one with the first of the
//!   other, and are one axis. `zip = [["a", "b"], ["c", "d"]]` makes two such axes. Lists of one axis are equally long.
//! - `reference = { "a" = 1 }`: the point that the others are compared with. On an axis that it leaves out, this is the
//!   scenario's own value where it is among the axis' values, and the first value otherwise.

mod axes;

pub use axes::{Axis, Sweep};

use super::names::unknown_name;
use super::read::ScenarioError;
use super::tree::{Node, Value};
use super::{Point, to_toml};
use fedgenie_core::{limits, units};
use std::collections::BTreeSet;

const ZIP: &str = "zip";
const REFERENCE: &str = "reference";

/// An axis as it was written: its paths, each with its values; all have equally many.
type Written = Vec<(String, Node)>;

/// The points of a tree's sweep and the tree of each. Without a sweep, the tree itself.
///
/// # Errors
/// If the sweep is not a table of non-empty lists, or has too many points; if paths are zipped that are not swept, or
/// have different numbers of values; if the reference is none of the points.
pub fn expand_sweep(tree: &Node) -> Result<Vec<(Point, Node)>, ScenarioError> {
    let mut base = tree.clone();
    let Some(mut sweep) = base.take("sweep") else { return Ok(vec![(Point::default(), base)]) };
    let refuse = |path: &str, message: &str| Err(ScenarioError::new(tree, path, message));
    let (zip, reference) = (sweep.take(ZIP), sweep.take(REFERENCE));
    let mut paths = Vec::new();
    flatten("", &sweep, &mut paths);
    if paths.is_empty() {
        return refuse("sweep", "expected a table of paths and lists, such as \"policy.bsfl.alpha\" = [1.0, 3.0]");
    }
    if paths.len() > limits::SWEEP_PATHS {
        return refuse("sweep", &format!("found {} paths; expected at most {}", paths.len(), limits::SWEEP_PATHS));
    }
    paths.iter().try_for_each(|(path, node)| check_values(path, node))?;
    let axes = zipped(paths, zip.as_ref())?;
    if let Some(reference) = reference {
        check_reference(&axes, &reference)?;
    }
    let size = base.bytes();
    let mut found = vec![(Point::default(), base)];
    for axis in axes {
        let steps = values(&axis[0].1).len();
        let count = found.len() * steps;
        if count > limits::POINTS {
            return refuse("sweep", &format!("the grid has more than {} points", limits::POINTS));
        }
        // A scenario is kept three times: as written, as read, and for errors of its world.
        let affordable = limits::afford(format!("a sweep of {count} points"), count as u128 * size as u128 * 4);
        affordable.map_err(|error| ScenarioError::new(tree, "sweep", error.to_string()))?;
        let mut next = Vec::with_capacity(count);
        for (point, tree) in &found {
            for step in 0..steps {
                let (mut point, mut tree) = (point.clone(), tree.clone());
                for (path, node) in &axis {
                    let value = &values(node)[step];
                    tree.set(path, value.clone())?;
                    point.settings.push((path.clone(), setting_text(value)));
                }
                next.push((point, tree));
            }
        }
        found = next;
    }
    Ok(found)
}

/// A sweep's keys are paths, whether written in quotes or as nested tables.
fn flatten(prefix: &str, node: &Node, paths: &mut Vec<(String, Node)>) {
    match &node.value {
        Value::Table(entries) => {
            for (key, node) in entries {
                flatten(&below(prefix, key), node, paths);
            }
        }
        _ => paths.push((prefix.to_owned(), node.clone())),
    }
}

fn below(prefix: &str, key: &str) -> String {
    if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") }
}

fn check_values(path: &str, node: &Node) -> Result<(), ScenarioError> {
    let refuse = |message: String| Err(ScenarioError::at(&node.origin, format!("sweep.{path}"), message));
    let Value::List(values) = &node.value else {
        return refuse(format!("found {}; expected a list of values", node.value.describe()));
    };
    if values.is_empty() {
        return refuse("the list is empty; expected at least one value".to_owned());
    }
    if ["seeds", "name"].contains(&path) || path.starts_with("record") || path.starts_with("report") {
        return refuse("this cannot be swept".to_owned());
    }
    Ok(())
}

/// The values of a path; empty if it has no list.
fn values(node: &Node) -> &[Node] {
    if let Value::List(values) = &node.value { values } else { &[] }
}

/// The axes of the grid: zipped paths stand together, where the first of them stands.
fn zipped(mut paths: Vec<(String, Node)>, zip: Option<&Node>) -> Result<Vec<Written>, ScenarioError> {
    let mut axes: Vec<Written> = Vec::new();
    let groups = zip.map_or_else(|| Ok(Vec::new()), groups)?;
    let mut known = BTreeSet::new();
    for (path, item) in groups.iter().flatten() {
        let at = |message| ScenarioError::at(&item.origin, format!("sweep.{ZIP}"), message);
        if !paths.iter().any(|(swept, _)| swept == path) {
            let names: Vec<&str> = paths.iter().map(|(swept, _)| swept.as_str()).collect();
            return Err(at(unknown_name("swept path", path, &names)));
        }
        if !known.insert(path.as_str()) {
            return Err(at(format!("{path:?} is named twice; a path goes along with others once")));
        }
    }
    while !paths.is_empty() {
        let (path, node) = paths.remove(0);
        let mut axis = vec![(path, node)];
        let group = groups.iter().find(|group| group.iter().any(|(member, _)| *member == axis[0].0));
        for (member, _) in group.into_iter().flatten() {
            if let Some(index) = paths.iter().position(|(path, _)| path == member) {
                axis.push(paths.remove(index));
            }
        }
        let wanted = values(&axis[0].1).len();
        if let Some((path, node)) = axis.iter().find(|(_, node)| values(node).len() != wanted) {
            let (found, first) = (values(node).len(), &axis[0].0);
            let message =
                format!("found {found} values; expected {wanted}, as many as {first:?}, with which it is zipped");
            return Err(ScenarioError::at(&node.origin, format!("sweep.{path}"), message));
        }
        axes.push(axis);
    }
    Ok(axes)
}

/// The paths of `zip`, in groups.
fn groups(zip: &Node) -> Result<Vec<Vec<(String, &Node)>>, ScenarioError> {
    let wrong = |node: &Node| {
        let message = format!(
            "found {}; expected a list of at least two swept paths, such as [\"policy.bsfl.alpha\", \"policy.bsfl.beta\"]",
            node.value.describe()
        );
        ScenarioError::at(&node.origin, format!("sweep.{ZIP}"), message)
    };
    let group = |node| -> Result<Vec<(String, &Node)>, ScenarioError> {
        let paths = values(node);
        let text = |item| match item {
            &Node { value: Value::Text(ref path), .. } => Ok((path.clone(), item)),
            other => Err(wrong(other)),
        };
        if paths.len() < 2 { Err(wrong(node)) } else { paths.iter().map(text).collect() }
    };
    let is_list = |item: &Node| matches!(item.value, Value::List(_));
    match &values(zip) {
        items if !items.is_empty() && items.iter().all(is_list) => items.iter().map(group).collect(),
        _ => Ok(vec![group(zip)?]),
    }
}

/// Whether there is a point that has the values of the reference.
fn check_reference(axes: &[Written], reference: &Node) -> Result<(), ScenarioError> {
    let refuse = |node: &Node, path: &str, message: String| {
        let path = if path.is_empty() { format!("sweep.{REFERENCE}") } else { format!("sweep.{REFERENCE}.{path}") };
        Err(ScenarioError::at(&node.origin, path, message))
    };
    let paths: Vec<&str> = axes.iter().flatten().map(|(path, _)| path.as_str()).collect();
    let mut wanted = Vec::new();
    if !matches!(reference.value, Value::Table(_)) {
        let message = format!(
            "found {}; expected a table of swept paths and values, such as {{ \"{}\" = {} }}",
            reference.value.describe(),
            paths[0],
            values(&axes[0][0].1)[0].value.describe()
        );
        return refuse(reference, "", message);
    }
    settings("", reference, &paths, &mut wanted);
    for (path, node) in &wanted {
        let Some((_, swept)) = axes.iter().flatten().find(|(swept, _)| swept == path) else {
            return refuse(node, path, unknown_name("swept path", path, &paths));
        };
        if !values(swept).iter().any(|value| is_same(&to_toml(value), &to_toml(node))) {
            let known: Vec<String> = values(swept).iter().map(|value| value.value.describe()).collect();
            let message = format!("found {}; expected one of its values: {}", node.value.describe(), known.join(", "));
            return refuse(node, path, message);
        }
    }
    for axis in axes {
        let of_axis =
            || wanted.iter().filter_map(|(path, node)| Some((axis.iter().find(|(own, _)| own == path)?, node)));
        let has =
            |step: &usize| of_axis().all(|((_, swept), node)| is_same(&to_toml(&values(swept)[*step]), &to_toml(node)));
        if !(0..values(&axis[0].1).len()).any(|step| has(&step)) {
            let names: Vec<&str> = of_axis().map(|((path, _), _)| path.as_str()).collect();
            let message = format!("no point has these values of {}, which are zipped", names.join(" and "));
            return refuse(reference, "", message);
        }
    }
    Ok(())
}

/// The settings of a reference: a table below a swept path is its value, above them it leads there.
fn settings<'a>(prefix: &str, node: &'a Node, paths: &[&str], found: &mut Vec<(String, &'a Node)>) {
    match &node.value {
        Value::Table(entries) if !paths.contains(&prefix) && !entries.is_empty() => {
            entries.iter().for_each(|(key, node)| settings(&below(prefix, key), node, paths, found));
        }
        _ => found.push((prefix.to_owned(), node)),
    }
}

/// A value as it stands in the settings of a point.
pub(super) fn setting_text(node: &Node) -> String {
    match &node.value {
        Value::Text(text) => text.clone(),
        Value::Table(_) | Value::List(_) => to_toml(node).to_string(),
        other => other.describe(),
    }
}

/// Whether two values mean the same: equal numbers, equal quantities in any units, a kind with or without its empty
/// table.
fn is_same(one: &toml::Value, other: &toml::Value) -> bool {
    is_within(one, other) && is_within(other, one)
}

/// Whether the other value contains this one: the other table may have more entries.
fn is_within(one: &toml::Value, other: &toml::Value) -> bool {
    use toml::Value::{Array, String, Table};
    let number = |value: &toml::Value| value.as_float().or(value.as_integer().map(|number| number as f64));
    match (one, other) {
        (String(one), String(other)) => {
            let quantity = units::any(one);
            one == other || quantity.is_some() && quantity == units::any(other)
        }
        (String(kind), Table(table)) => table.len() == 1 && table.contains_key(kind),
        (Table(table), String(kind)) => {
            table.len() == 1 && table.get(kind).and_then(toml::Value::as_table).is_some_and(toml::Table::is_empty)
        }
        (Table(one), Table(other)) => {
            one.iter().all(|(key, value)| other.get(key).is_some_and(|there| is_within(value, there)))
        }
        (Array(one), Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_within(one, other))
        }
        _ => one == other || number(one).is_some() && number(one) == number(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{points, tree};
    use std::path::Path;

    pub(super) const BASE: &str = "[protocol.deadline]\ndeadline = \"16000 ms\"\ncohort = 3\n[a]\nb = 2\n";

    pub(super) fn points(sweep: &str) -> Vec<Vec<(String, String)>> {
        let tree = tree::parse(Path::new("a.toml"), &format!("{BASE}[sweep]\n{sweep}")).unwrap();
        expand_sweep(&tree).unwrap().into_iter().map(|(point, _)| point.settings).collect()
    }

    #[test]
    fn zipped_paths_go_together_and_cross_the_others() {
        let found =
            points("\"a.b\" = [1, 2, 3]\n\"x.y\" = [\"u\", \"v\"]\n\"a.c\" = [10, 20, 30]\nzip = [\"a.c\", \"a.b\"]\n");
        let short: Vec<String> = found
            .iter()
            .map(|point| point.iter().map(|(path, value)| format!("{path}={value}")).collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(
            short,
            [
                "a.b=1 a.c=10 x.y=u",
                "a.b=1 a.c=10 x.y=v",
                "a.b=2 a.c=20 x.y=u",
                "a.b=2 a.c=20 x.y=v",
                "a.b=3 a.c=30 x.y=u",
                "a.b=3 a.c=30 x.y=v"
            ]
        );
        let pairs = points(
            "\"a.b\" = [1, 2]\n\"a.c\" = [3, 4]\n\"x.y\" = [5, 6]\n\"x.z\" = [7, 8]\nzip = [[\"a.b\", \"x.z\"], [\"a.c\", \"x.y\"]]\n",
        );
        assert_eq!(pairs.len(), 4);
    }

    #[test]
    fn values_mean_the_same_in_other_words() {
        let value = |text: &str| points::parsed(text);
        let same = |one, other| is_same(&value(one), &value(other));
        assert!(same("16 s", "16000 ms") && same("2", "2.0") && same("drop", "{ drop = {} }"));
        assert!(!same("16 s", "16 B") && !same("carry", "{ carry = { weight = 1 } }") && !same("2", "3"));
        assert!(
            same("{ a = 1, b = [\"2 s\"] }", "{ b = [\"2000 ms\"], a = 1.0 }")
                && !same("{ a = 1 }", "{ a = 1, b = 2 }")
        );
        assert!(is_within(&value("{ a = 1 }"), &value("{ a = 1, b = 2 }")));
    }
}
