//! A sweep as its results show it: axes, neighbours, the reference.

use super::super::points;
use super::{REFERENCE, ZIP, below, is_same, is_within};
use std::collections::{BTreeMap, BTreeSet};

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
    /// Where each point is on it: 0 for its first value. Numbers and quantities are in ascending order, others in that
    /// of the points.
    pub places: Vec<usize>,
    /// Its values by place as numbers in their base unit, and that unit, empty for plain numbers; `None` if the values
    /// of the first path are no numbers, or not all different.
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
        // The resolved scenario has defaults that a point leaves out; where two points would fit, neither is the
        // reference.
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
    use super::super::tests::{BASE, points};
    use super::*;

    /// The sweep as its results show it; points have their settings by path.
    fn sweep(text: &str) -> (Sweep, Vec<BTreeMap<String, String>>) {
        let points: Vec<BTreeMap<_, _>> = points(text).into_iter().map(|point| point.into_iter().collect()).collect();
        (Sweep::of(&format!("{BASE}[sweep]\n{text}").parse().unwrap(), &points), points)
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
        // The own value of one axis, the requested one of the other; zipped paths follow the named one.
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
