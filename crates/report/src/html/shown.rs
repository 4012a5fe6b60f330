//! The figures that the page draws, and the sentences that replace the others.
//!
//! Alternative figures have one number and stand together: one of them is shown at a time. A picture that would show
//! the same everywhere, zero throughout or a single point is a sentence.

use crate::numbers;
use crate::{Chart, Figure, Line, LineKind, Report};
use std::collections::BTreeMap;

/// The figures of a page.
pub(super) struct Shown<'a> {
    /// In the order in which they stand there.
    pub drawn: Vec<Drawn<'a>>,
    pub plain: Vec<Plain<'a>>,
}

/// A figure that is drawn.
pub(super) struct Drawn<'a> {
    /// Its index in the report.
    pub index: usize,
    pub of: &'a Figure,
    /// From 1; alternatives have the same.
    pub number: usize,
    /// The name of its element, `figure-3`; of the second alternative `figure-3-2`.
    pub id: String,
}

/// A figure that a sentence replaces.
pub(super) struct Plain<'a> {
    /// Its index in the report.
    pub index: usize,
    pub of: &'a Figure,
    pub sentence: String,
}

impl<'a> Shown<'a> {
    pub fn of(report: &'a Report) -> Self {
        let mut families: Vec<Vec<(usize, &Figure)>> = Vec::new();
        let mut plain = Vec::new();
        let mut known: BTreeMap<&str, usize> = BTreeMap::new();
        for (index, of) in report.figures.iter().enumerate() {
            if let Some(sentence) = sentence(of) {
                plain.push(Plain { index, of, sentence });
                continue;
            }
            // Each choice must lead to one figure: folders with other points repeat the choices.
            let is_new = |family: &Vec<(usize, &Figure)>| family.iter().all(|(_, other)| other.choice != of.choice);
            let family = of.choice.as_ref().and_then(|choice| known.get(choice.of.as_str()).copied());
            match family.and_then(|family: usize| families.get_mut(family)).filter(|family| is_new(family)) {
                Some(family) => family.push((index, of)),
                None => {
                    known.extend(of.choice.as_ref().map(|choice| (choice.of.as_str(), families.len())));
                    families.push(vec![(index, of)]);
                }
            }
        }
        // The lead figure stands first, and first among its alternatives.
        let leads = |(_, of): &(usize, &Figure)| of.id == report.lead;
        families.sort_by_key(|family| !family.iter().any(leads));
        families.iter_mut().for_each(|family| family.sort_by_key(|figure| !leads(figure)));
        let mut drawn = Vec::new();
        for (family, number) in families.into_iter().zip(1..) {
            for ((index, of), place) in family.into_iter().zip(1..) {
                let id = if place == 1 { format!("figure-{number}") } else { format!("figure-{number}-{place}") };
                drawn.push(Drawn { index, of, number, id });
            }
        }
        Self { drawn, plain }
    }
}

/// Bars whose lengths differ by no more than this share cannot be told apart by eye.
const ALIKE: f64 = 0.01;

/// The sentence that replaces a picture without content.
fn sentence(figure: &Figure) -> Option<String> {
    match &figure.chart {
        Chart::Lines { lines, .. } => of_lines(lines),
        Chart::Bars { categories, parts, value } => {
            let ends = |lengths: &[f64]| {
                lengths
                    .iter()
                    .fold([f64::INFINITY, 0.0_f64], |[low, high], &length| [low.min(length), high.max(length)])
            };
            let is_alike = |(_, lengths): &(String, Vec<f64>)| {
                let [low, high] = ends(lengths);
                high - low <= ALIKE * high
            };
            if categories.len() < 2 || !parts.iter().all(is_alike) {
                return None;
            }
            let unit = value.unit.as_deref().map_or_else(String::new, |unit| format!(" {unit}"));
            let found: Vec<[f64; 2]> = parts.iter().map(|(_, lengths)| ends(lengths)).collect();
            let part = |((label, _), ends): (&(String, Vec<f64>), &[f64; 2])| {
                let [low, high] = ends.map(numbers::text);
                if low == high { format!("{label} {low}{unit}") } else { format!("{label} {low} to {high}{unit}") }
            };
            let parts: Vec<String> = parts.iter().zip(&found).map(part).collect();
            let is_exact = found.iter().all(|[low, high]| low == high);
            let nearly = if is_exact { "" } else { "nearly " };
            Some(format!("{nearly}the same for all {}: {}", categories.len(), parts.join(", ")))
        }
        Chart::Intervals { rows, .. } => {
            let first = rows.first()?.2;
            let is_same = rows.len() > 1 && rows.iter().all(|(_, _, value)| *value == first);
            is_same.then(|| format!("{} for all {}", numbers::text(first.value), rows.len()))
        }
        Chart::Heat { panels, .. } => {
            let cells: Vec<f64> =
                panels.iter().flat_map(|panel| panel.cells.iter().flatten().copied().flatten()).collect();
            let is_same = cells.len() > 1 && cells.iter().all(|cell| *cell == cells[0]);
            is_same.then(|| format!("{} everywhere", numbers::text(cells[0])))
        }
    }
}

/// Lines of one value, or of one point each.
fn of_lines(lines: &[Line]) -> Option<String> {
    let measured = || lines.iter().filter(|line| line.role != LineKind::Bound && !line.points.is_empty());
    let first = measured().next()?.points[0];
    let mut values = measured().flat_map(|line| &line.points).map(|point| point.1);
    if values.all(|value| value == first.1) {
        return Some(format!("{} throughout", numbers::text(first.1)));
    }
    // Dots of single points are a picture; lines of single points are not to be seen.
    if !measured().all(|line| line.points.len() == 1 && !line.has_dots) {
        return None;
    }
    let means = measured().filter(|line| line.role == LineKind::Mean);
    let each: Vec<String> = means.map(|line| format!("{} {}", line.series, numbers::text(line.points[0].1))).collect();
    Some(format!("measured once: {}", each.join(", ")))
}
