//! A sweep: values that are run side by side.
//!
//! `[sweep]` has paths with lists of values. Its points are all combinations, in the order of the file, the last path
//! running fastest; at most [`limits::POINTS`]. Two keys of it are no paths:
//!
//! - `zip = ["a", "b"]`: these paths go through their lists together, the first value of one with the first of the
//!   other, and are one axis. `zip = [["a", "b"], ["c", "d"]]` makes two such axes. Lists of one axis are equally long.
//! - `reference = { "a" = 1 }`: the point that the others are compared with. On an axis that it leaves out, this is the
//!   scenario's own value where it is among the axis' values, and the first value otherwise.

use super::names::unknown_name;
use super::read::ScenarioError;
use super::tree::{Node, Value};
use super::{Point, points, to_toml};
use fedgenie_core::{limits, units};
use std::collections::{BTreeMap, BTreeSet};

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
        // A scenario is kept as it was written, as what is read of it, and for what goes wrong with a world.
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

/// The values of a path; none if it has no list.
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
        Err(ScenarioError::at(&node.origin, below(&format!("sweep.{REFERENCE}"), path), message))
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

/// Whether two values mean the same: equal numbers, equal quantities in whatever unit, a kind with or without its
/// empty table.
fn is_same(one: &toml::Value, other: &toml::Value) -> bool {
    is_within(one, other) && is_within(other, one)
}

/// Whether what one value says, the other says as well: of a table, each entry; it may have more.
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

// ---------------------------------------------------------------------------------------------- a sweep's results

/// A sweep as its results show it: which axes its points lie on, and which point is the reference.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sweep {
    /// The axes, none of which has a single value.
    pub axes: Vec<Axis>,
    /// Index of the point that the others are compared with.
    pub reference: usize,
}

/// A swept path, or several that are zipped.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Its paths.
    pub paths: Vec<String>,
    /// Where each point is on it: 0 for its first value. Numbers and quantities are in ascending order, others in that of
    /// the points.
    pub places: Vec<usize>,
    /// Its values by place as numbers in their base unit, and that unit, empty for plain numbers; none if the values of
    /// the first path are no numbers, or not all different ones.
    pub numbers: Option<(Vec<f64>, &'static str)>,
}

impl Sweep {
    /// Of the points of an experiment, and its resolved scenario.
    pub fn of(scenario: &toml::Table, points: &[BTreeMap<String, String>]) -> Self {
        let Some(first) = points.first() else { return Self::default() };
        let sweep = scenario.get("sweep").and_then(toml::Value::as_table);
        let groups: Vec<Vec<&str>> = sweep.and_then(|sweep| sweep.get(ZIP)).map_or_else(Vec::new, groups_of);
        let mut axes: Vec<Axis> = Vec::new();
        for path in first.keys() {
            let group = groups.iter().find(|group| group.contains(&path.as_str())).cloned();
            let paths: Vec<String> = group.unwrap_or_else(|| vec![path]).into_iter().map(str::to_owned).collect();
            if axes.iter().all(|axis| axis.paths != paths) {
                axes.push(Axis::new(paths, points));
            }
        }
        let mut wanted = BTreeMap::new();
        if let Some(reference) = sweep.and_then(|sweep| sweep.get(REFERENCE)) {
            wanted_of("", reference, first, &mut wanted);
        }
        let is_at =
            |point: usize| axes.iter().all(|axis| axis.reference(scenario, &wanted, points) == axis.places[point]);
        let reference = (0..points.len()).find(|&point| is_at(point)).unwrap_or(0);
        axes.retain(|axis| axis.places.iter().any(|&place| place > 0));
        Self { axes, reference }
    }

    /// The neighbours of a point, each with its axis: those one step before it.
    pub fn before(&self, point: usize) -> Vec<(usize, usize)> {
        let count = self.axes.first().map_or(0, |axis| axis.places.len());
        let is_neighbour = |along: usize, other: usize| {
            let mut places =
                self.axes.iter().enumerate().map(|(index, axis)| (index, axis.places[other], axis.places[point]));
            places.all(|(index, other, own)| other + usize::from(index == along) == own)
        };
        let before = |axis| (0..count).find(|&other| is_neighbour(axis, other)).map(|other| (axis, other));
        (0..self.axes.len()).filter_map(before).collect()
    }

    /// Whether a setting below a section was swept, such as `regret`.
    pub fn moves(&self, section: &str) -> bool {
        let is_below =
            |path: &str| path.strip_prefix(section).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        self.axes.iter().flat_map(|axis| &axis.paths).any(|path| is_below(path))
    }
}

/// The groups of zipped paths of a resolved scenario, which were checked when it was read.
fn groups_of(zip: &toml::Value) -> Vec<Vec<&str>> {
    let items = zip.as_array().map_or(&[][..], Vec::as_slice);
    fn texts(list: &[toml::Value]) -> Vec<&str> {
        list.iter().filter_map(toml::Value::as_str).collect()
    }
    let lists: Vec<&[toml::Value]> = items.iter().filter_map(toml::Value::as_array).map(Vec::as_slice).collect();
    if lists.is_empty() { vec![texts(items)] } else { lists.into_iter().map(texts).collect() }
}

fn wanted_of(
    prefix: &str,
    value: &toml::Value,
    swept: &BTreeMap<String, String>,
    found: &mut BTreeMap<String, toml::Value>,
) {
    match value {
        toml::Value::Table(table) if !swept.contains_key(prefix) => {
            table.iter().for_each(|(key, value)| wanted_of(&below(prefix, key), value, swept, found));
        }
        _ => drop(found.insert(prefix.to_owned(), value.clone())),
    }
}

impl Axis {
    fn new(paths: Vec<String>, points: &[BTreeMap<String, String>]) -> Self {
        let values = |point: &BTreeMap<String, String>| -> Vec<String> {
            paths.iter().map(|path| point.get(path).cloned().unwrap_or_default()).collect()
        };
        let mut distinct: Vec<Vec<String>> = Vec::new();
        for point in points.iter().map(values) {
            if !distinct.contains(&point) {
                distinct.push(point);
            }
        }
        let read: Option<Vec<(f64, &str)>> = distinct.iter().map(|values| points::number(&values[0])).collect();
        let unit = read.as_ref().and_then(|read| read.first()).map(|(_, unit)| *unit);
        let read = read.filter(|read| read.iter().all(|(_, other)| Some(*other) == unit));
        if let Some(numbers) = &read {
            let mut order: Vec<usize> = (0..distinct.len()).collect();
            order.sort_by(|&one, &two| numbers[one].0.total_cmp(&numbers[two].0));
            distinct = order.into_iter().map(|index| std::mem::take(&mut distinct[index])).collect();
        }
        let numbers = read.map(|mut read| {
            read.sort_by(|one, two| one.0.total_cmp(&two.0));
            read.into_iter().map(|(number, _)| number).collect::<Vec<f64>>()
        });
        let numbers = numbers.filter(|numbers| numbers.windows(2).all(|pair| pair[0] < pair[1])).zip(unit);
        let place = |point: &BTreeMap<String, String>| distinct.iter().position(|known| *known == values(point));
        let places = points.iter().map(|point| place(point).unwrap_or_default()).collect();
        Self { paths, places, numbers }
    }

    /// The place of the reference.
    fn reference(
        &self,
        scenario: &toml::Table,
        wanted: &BTreeMap<String, toml::Value>,
        points: &[BTreeMap<String, String>],
    ) -> usize {
        let is_asked = self.paths.iter().any(|path| wanted.contains_key(path));
        let own = |path: &String| if is_asked { wanted.get(path) } else { at(scenario, path) };
        let all = |is: &dyn Fn(&toml::Value, &toml::Value) -> bool| -> BTreeSet<usize> {
            let has = |point: &BTreeMap<String, String>, path: &String| match (own(path), point.get(path)) {
                (Some(own), Some(value)) => is(&points::parsed(value), own),
                (None, _) => is_asked,
                _ => false,
            };
            let places = points.iter().zip(&self.places);
            places
                .filter(|(point, _)| self.paths.iter().all(|path| has(point, path)))
                .map(|(_, place)| *place)
                .collect()
        };
        // The resolved scenario has defaults that a point leaves out; where two points would do, neither is meant.
        let (same, within) = (all(&is_same), all(&is_within));
        let found = if same.is_empty() && within.len() == 1 { within } else { same };
        found.first().copied().unwrap_or_else(|| self.places[0])
    }
}

/// The value at a dotted path of a resolved scenario.
fn at<'a>(scenario: &'a toml::Table, path: &str) -> Option<&'a toml::Value> {
    let mut keys = path.split('.');
    let first = scenario.get(keys.next()?)?;
    keys.try_fold(first, |value, key| match value {
        toml::Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        _ => value.get(key),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::tree;
    use std::path::Path;

    const BASE: &str = "[protocol.deadline]\ndeadline = \"16000 ms\"\ncohort = 3\n[a]\nb = 2\n";

    fn points(sweep: &str) -> Vec<Vec<(String, String)>> {
        let tree = tree::parse(Path::new("a.toml"), &format!("{BASE}[sweep]\n{sweep}")).unwrap();
        expand_sweep(&tree).unwrap().into_iter().map(|(point, _)| point.settings).collect()
    }

    /// The sweep as its results show it; points have their settings by path.
    fn sweep(text: &str) -> (Sweep, Vec<BTreeMap<String, String>>) {
        let points: Vec<BTreeMap<_, _>> = points(text).into_iter().map(|point| point.into_iter().collect()).collect();
        (Sweep::of(&format!("{BASE}[sweep]\n{text}").parse().unwrap(), &points), points)
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

    #[test]
    fn the_reference_is_what_was_asked_for_or_the_scenarios_own_value_or_the_first() {
        let deadlines = "\"protocol.deadline.deadline\" = [\"20 s\", \"12 s\", \"16 s\"]\n";
        let reference = |text: &str| sweep(text).0.reference;
        assert_eq!(reference(deadlines), 2, "16 s are 16000 ms");
        assert_eq!(reference("\"protocol.deadline.deadline\" = [\"20 s\", \"12 s\"]\n"), 0);
        let asked = |value: &str| {
            reference(&format!("{deadlines}reference = {{ \"protocol.deadline.deadline\" = \"{value}\" }}"))
        };
        assert_eq!((asked("12 s"), asked("0.2 min")), (1, 1));
        assert_eq!(reference(&format!("{deadlines}[sweep.reference.protocol.deadline]\ndeadline = \"20 s\"")), 0);
        // The own value of one axis, what was asked for of the other; zipped paths follow the one that is named.
        let grid = "\"a.b\" = [1, 2]\n\"x.y\" = [\"u\", \"v\"]\n";
        assert_eq!(reference(grid), 2);
        assert_eq!(reference(&format!("{grid}reference = {{ \"x.y\" = \"v\" }}")), 3);
        assert_eq!(reference(&format!("{grid}zip = [\"a.b\", \"x.y\"]\nreference = {{ \"x.y\" = \"v\" }}")), 1);
        // A point that leaves out defaults.
        let table: toml::Table = "o = { sgd = { lr = 0.1, momentum = 0.0 } }".parse().unwrap();
        let point = |value: &str| BTreeMap::from([("o".to_owned(), value.to_owned())]);
        let points = [point("{ adam = { lr = 0.1 } }"), point("{ sgd = { lr = 0.1 } }")];
        assert_eq!(Sweep::of(&table, &points).reference, 1);
    }

    #[test]
    fn neighbours_follow_each_other_along_an_axis() {
        let (found, points) =
            sweep("\"protocol.deadline.deadline\" = [\"20 s\", \"12 s\", \"1 min\"]\n\"x.y\" = [\"u\", \"v\"]\n");
        assert_eq!(found.axes[0].numbers, Some((vec![12.0, 20.0, 60.0], "s")));
        assert_eq!((found.axes[0].places.clone(), found.axes[1].numbers.clone()), (vec![1, 1, 0, 0, 2, 2], None));
        // Along the first axis 12 s, along the second "u".
        assert_eq!(points[1]["x.y"], "v");
        assert_eq!((found.before(1), found.before(3), found.before(2)), (vec![(0, 3), (1, 0)], vec![(1, 2)], vec![]));
        assert!(found.moves("protocol") && found.moves("x.y") && !found.moves("x.z") && !found.moves("proto"));
        // Zipped paths are one axis; a path with one value is none.
        let (found, _) = sweep("\"a.b\" = [3, 1]\n\"x.y\" = [1, 2]\n\"x.z\" = [9]\nzip = [\"a.b\", \"x.y\"]\n");
        assert_eq!((found.axes.len(), found.axes[0].numbers.clone()), (1, Some((vec![1.0, 3.0], ""))));
        assert_eq!((found.before(0), found.before(1)), (vec![(0, 1)], vec![]));
        // Units of different dimensions are no numbers.
        assert_eq!(sweep("\"x.y\" = [\"1 s\", \"1 B\"]\n").0.axes[0].numbers, None);
    }
}
