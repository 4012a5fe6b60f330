//! Swept paths as columns: numbers where all values are numbers of one unit, else texts.

use super::column::{Cell, Column, Kind};
use super::names::{Names, identifier};
use fedgenie_experiment::scenario::points::number;
use std::collections::{BTreeMap, BTreeSet};

/// The settings of a point.
pub(super) type Settings = BTreeMap<String, String>;

/// A swept path and its column.
#[derive(Clone, Debug)]
pub(super) struct Swept {
    path: String,
    pub column: Column,
}

/// The columns of all swept paths of some points; their names are not among those in use.
pub(super) fn swept<'a>(points: impl Iterator<Item = &'a Settings> + Clone, names: &mut Names) -> Vec<Swept> {
    let paths: BTreeSet<&String> = points.clone().flat_map(BTreeMap::keys).collect();
    let column = |path: &&String| {
        let (kind, unit) = type_of(points.clone().filter_map(|point| point.get(*path)));
        let name = names.take(&ends(path, &paths, suffix(unit)));
        let swept = format!("swept: {path} of the scenario");
        let meaning = if unit.is_empty() { swept } else { format!("{swept}, in {}", in_words(unit)) };
        Swept { path: (*path).clone(), column: Column::new(&name, kind, unit, meaning) }
    };
    paths.iter().map(column).collect()
}

/// The type and unit of values.
fn type_of<'a>(values: impl Iterator<Item = &'a String> + Clone) -> (Kind, &'static str) {
    let mut units: BTreeSet<Option<&str>> = BTreeSet::new();
    units.extend(values.clone().map(|value| number(value).map(|(_, unit)| unit)));
    let unit = match units.pop_first() {
        Some(Some(unit)) if units.is_empty() => number_unit(unit),
        _ => return (Kind::Text, ""),
    };
    let is_integer = |value: &String| value.parse::<i64>().is_ok();
    if { values }.all(is_integer) { (Kind::Integer, unit) } else { (Kind::Number, unit) }
}

/// The name of a unit in a table.
fn number_unit(unit: &str) -> &'static str {
    ["s", "bit/s", "B", "/s"].into_iter().find(|known| *known == unit).unwrap_or_default()
}

/// What a unit adds to a name.
fn suffix(unit: &str) -> &'static str {
    match unit {
        "s" => "_s",
        "bit/s" => "_bit_per_s",
        "B" => "_bytes",
        "/s" => "_per_s",
        _ => "",
    }
}

fn in_words(unit: &'static str) -> &'static str {
    match unit {
        "s" => "seconds",
        "bit/s" => "bits per second",
        "B" => "bytes",
        "/s" => "events per second",
        other => other,
    }
}

/// The ends of a path that no other path has, the shortest first, as names.
fn ends(path: &str, paths: &BTreeSet<&String>, suffix: &str) -> Vec<String> {
    let ends = path.rmatch_indices('.').map(|(dot, _)| &path[dot + 1..]).chain([path]);
    let is_alone = |end: &&str| {
        let has = |other: &&&String| other.as_str() == *end || other.ends_with(&format!(".{end}"));
        paths.iter().filter(has).count() <= 1
    };
    let name = |end: &str| {
        let name = identifier(end);
        if name.ends_with(suffix) { name } else { format!("{name}{suffix}") }
    };
    ends.filter(is_alone).map(name).collect()
}

impl Swept {
    /// The value at a point.
    pub fn cell(&self, settings: &Settings) -> Cell {
        let Some(value) = settings.get(&self.path) else { return Cell::Empty };
        match self.column.kind {
            Kind::Text => Cell::text(value),
            Kind::Integer => value.parse().map_or(Cell::Empty, Cell::Integer),
            Kind::Number => Cell::number(number(value).map(|(value, _)| value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(points: &[&[(&str, &str)]]) -> Vec<(String, Kind, &'static str, Vec<Cell>)> {
        let settings = |point: &&[(&str, &str)]| -> Settings {
            point.iter().map(|&(path, value)| (path.to_owned(), value.to_owned())).collect()
        };
        let points: Vec<Settings> = points.iter().map(settings).collect();
        let mut names = Names::default();
        names.take(&["rounds".to_owned()]);
        let found = swept(points.iter(), &mut names);
        let cells = |swept: &Swept| points.iter().map(|point| swept.cell(point)).collect();
        found.iter().map(|one| (one.column.name.clone(), one.column.kind, one.column.unit, cells(one))).collect()
    }

    #[test]
    fn quantities_are_numbers_in_base_units() {
        let path = "protocol.deadline.deadline";
        let found = columns(&[&[(path, "8 s")], &[(path, "2 min")], &[(path, "250 ms")], &[]]);
        let numbers = [8.0, 120.0, 0.25].map(Cell::Number);
        assert_eq!(found, [("deadline_s".to_owned(), Kind::Number, "s", [&numbers[..], &[Cell::Empty]].concat())]);
        let only = |points: &[&[(&str, &str)]]| {
            let (name, kind, unit, _) = columns(points).remove(0);
            (name, kind, unit)
        };
        let payload = only(&[&[("task.scripted.payload", "850 kB")]]);
        assert_eq!(payload, ("payload_bytes".to_owned(), Kind::Number, "B"));
        assert_eq!(only(&[&[("a.rate", "1 Mbit/s")]]), ("rate_bit_per_s".to_owned(), Kind::Number, "bit/s"));
    }

    #[test]
    fn integers_texts_and_mixtures_keep_their_type() {
        let of = |values: [&str; 2]| {
            let (_, kind, _, cells) = columns(&[&[("a.b", values[0])], &[("a.b", values[1])]]).remove(0);
            (kind, cells)
        };
        assert_eq!(of(["3", "-4"]), (Kind::Integer, vec![Cell::Integer(3), Cell::Integer(-4)]));
        assert_eq!(of(["3", "0.5"]), (Kind::Number, vec![Cell::Number(3.0), Cell::Number(0.5)]));
        let texts = |values: [&str; 2]| (Kind::Text, values.map(|text| Cell::Text(text.to_owned())).to_vec());
        for values in [["3", "8 s"], ["8 s", "8 kB"], ["drop", "{ carry = {} }"], ["inf", "3"], ["true", "false"]] {
            assert_eq!(of(values), texts(values));
        }
    }

    #[test]
    fn names_are_the_shortest_free_ends_of_paths() {
        let point: &[(&str, &str)] = &[
            ("policy.one.alpha", "1"),
            ("policy.two.alpha", "2"),
            ("stop.rounds", "3"),
            ("task.mlp.partition", "iid"),
            ("training.tau_s", "1 s"),
        ];
        let names: Vec<String> = columns(&[point]).into_iter().map(|(name, ..)| name).collect();
        assert_eq!(names, ["one_alpha", "two_alpha", "stop_rounds", "mlp_partition", "tau_s"]);
    }
}
