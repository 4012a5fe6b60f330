//! A figure's data as tables, for readers who cannot see it or want the numbers.

use crate::numbers::{axis, interval, text, with_ends};
use crate::{Axis, Chart, Interval, Line, LineKind, Panel};

/// Rows (and columns of a grid) that a table has at most.
pub(super) const MOST: usize = 25;

/// A table with headings on two sides.
pub(super) struct DataTable {
    pub caption: String,
    /// Above the rows' headings, and above the cells.
    pub columns: Vec<String>,
    /// Each with its heading.
    pub rows: Vec<(String, Vec<String>)>,
    /// A note on omitted rows; empty if there are none.
    pub note: String,
}

/// The tables of a chart.
pub(super) fn data_tables(chart: &Chart) -> Vec<DataTable> {
    match chart {
        Chart::Lines { x, y, lines, .. } => vec![of_lines(x, y, lines)],
        Chart::Heat { x, columns, y, rows, value, panels } => {
            panels.iter().map(|panel| of_panel([x, y, value], columns, rows, panel)).collect()
        }
        Chart::Bars { value, categories, parts } => vec![of_bars(value, categories, parts)],
        Chart::Intervals { value, rows } => vec![of_intervals(value, rows)],
    }
}

/// At most `MOST` of so many, as evenly as can be, with the first and the last.
fn thinned(count: usize) -> Vec<usize> {
    if count <= MOST {
        return (0..count).collect();
    }
    (0..MOST).map(|step| (step * (count - 1) + (MOST - 1) / 2) / (MOST - 1)).collect()
}

fn note(shown: usize, all: usize, what: &str) -> String {
    if shown == all { String::new() } else { format!("{shown} of {all} {what}, evenly spread; the CSV has all.") }
}

fn of_lines(x: &Axis, y: &Axis, lines: &[Line]) -> DataTable {
    let has_others = lines.iter().any(|line| line.role != LineKind::Seed);
    let listed: Vec<&Line> =
        lines.iter().filter(|line| line.role != LineKind::Seed || !has_others).take(MOST).collect();
    // Measurements decide; a fitted curve has a value everywhere.
    let has_means = lines.iter().any(|line| line.role == LineKind::Mean);
    let measured = listed.iter().filter(|line| line.role == LineKind::Mean || !has_means);
    let mut xs: Vec<f64> = measured.flat_map(|line| line.points.iter().map(|&(x, _)| x)).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let chosen = thinned(xs.len());
    let row = |&index: &usize| {
        let x = xs[index];
        let cell =
            |line: &&Line| value_at(line, x).map_or_else(|| "–".to_owned(), |value| with_ends(value, band_at(line, x)));
        (text(x), listed.iter().map(cell).collect())
    };
    let heading = |line: &&Line| match (&line.label, line.role) {
        (Some(label), _) => format!("{}: {label}", line.series),
        (None, LineKind::Fit) => format!("{}: fit", line.series),
        (None, LineKind::Bound) => format!("{}: bound", line.series),
        (None, _) => line.series.clone(),
    };
    let columns = std::iter::once(axis(x)).chain(listed.iter().map(heading)).collect();
    let rows: Vec<_> = chosen.iter().map(row).collect();
    let mut notes = vec![note(rows.len(), xs.len(), "points")];
    if listed.iter().any(|line| xs.iter().any(|&x| !has_point(line, x))) {
        notes.push("Between its points, a line's value is read off the line.".to_owned());
    }
    if listed.len() < lines.len() {
        notes.push(format!("{} of {} lines; the CSV has all.", listed.len(), lines.len()));
    }
    let ends = if listed.iter().any(|line| !line.band.is_empty()) { ", with 95 % intervals" } else { "" };
    notes.retain(|note| !note.is_empty());
    DataTable { caption: format!("{}{ends}, by {}", axis(y), axis(x)), columns, rows, note: notes.join(" ") }
}

fn has_point(line: &Line, x: f64) -> bool {
    line.points.binary_search_by(|point| point.0.total_cmp(&x)).is_ok()
}

/// The line's value at `x`; `None` outside of it.
fn value_at(line: &Line, x: f64) -> Option<f64> {
    let after = line.points.partition_point(|point| point.0 <= x);
    let &(left, value) = line.points.get(after.checked_sub(1)?)?;
    match line.points.get(after) {
        _ if left == x => Some(value),
        None => None,
        Some(_) if line.is_staircase => Some(value),
        Some(&(right, next)) => Some(value + (next - value) * ((x - left) / (right - left))),
    }
}

/// The interval that is known at exactly `x`.
fn band_at(line: &Line, x: f64) -> Option<[f64; 2]> {
    let index = line.band.binary_search_by(|(known, _)| known.total_cmp(&x)).ok()?;
    line.band.get(index).map(|&(_, ends)| ends)
}

fn of_panel([x, y, value]: [&Axis; 3], columns: &[String], rows: &[String], panel: &Panel) -> DataTable {
    let (across, down) = (thinned(columns.len()), thinned(rows.len()));
    let cell = |row: usize, column: usize| {
        let known = panel.cells.get(row).and_then(|cells| cells.get(column)).copied().flatten();
        known.map_or_else(|| "–".to_owned(), text)
    };
    let line = |&row: &usize| (rows[row].clone(), across.iter().map(|&column| cell(row, column)).collect());
    let corner = format!("{} ↓ {} →", axis(y), axis(x));
    let notes = [note(down.len(), rows.len(), "rows"), note(across.len(), columns.len(), "columns")];
    DataTable {
        caption: format!("{}: {}", panel.label, axis(value)),
        columns: std::iter::once(corner).chain(across.iter().map(|&column| columns[column].clone())).collect(),
        rows: down.iter().rev().map(line).collect(),
        note: notes.into_iter().filter(|note| !note.is_empty()).collect::<Vec<_>>().join(" "),
    }
}

fn of_bars(value: &Axis, categories: &[String], parts: &[(String, Vec<f64>)]) -> DataTable {
    let chosen = thinned(categories.len());
    let cell = |lengths: &[f64], bar: usize| lengths.get(bar).map_or_else(|| "–".to_owned(), |&length| text(length));
    let row = |&bar: &usize| {
        let total = parts.iter().filter_map(|(_, lengths)| lengths.get(bar)).sum();
        let cells = parts.iter().map(|(_, lengths)| cell(lengths, bar)).chain(std::iter::once(text(total)));
        (categories[bar].clone(), cells.collect())
    };
    let headings = parts.iter().map(|(label, _)| label.clone());
    DataTable {
        caption: axis(value),
        columns: std::iter::once(String::new()).chain(headings).chain(std::iter::once("sum".to_owned())).collect(),
        rows: chosen.iter().map(row).collect(),
        note: note(chosen.len(), categories.len(), "bars"),
    }
}

fn of_intervals(value: &Axis, rows: &[(String, String, Interval)]) -> DataTable {
    let chosen = thinned(rows.len());
    let row = |&index: &usize| {
        let (label, series, value) = &rows[index];
        (label.clone(), vec![series.clone(), interval(value)])
    };
    let is_known = rows.iter().any(|(_, _, value)| value.ci95.is_some());
    DataTable {
        caption: axis(value),
        columns: vec![
            String::new(),
            "policy".to_owned(),
            if is_known { "value [95 % interval]" } else { "value" }.to_owned(),
        ],
        rows: chosen.iter().map(row).collect(),
        note: note(chosen.len(), rows.len(), "rows"),
    }
}
