//! A figure's data as CSV, one observation per row.
//!
//! | chart | columns |
//! |---|---|
//! | lines | `series`, `kind` (`mean`, `seed`, `fit`, `bound`, `extreme`, `mark`), `label`, `x`, `y`, `low`, `high` |
//! | heat map | `panel`, `row`, `column`, `value` |
//! | bars | `category`, `part`, `value` |
//! | intervals | `label`, `series`, `value`, `low`, `high` |
//!
//! `low` and `high` are the ends of the 95 % interval, empty where there is none. A line of single seeds is told from
//! the next by its `label`, `1`, `2`, ….
//!
//! A cell or heading that begins with `=`, `+`, `-` or `@` and is no number has an apostrophe before it: spreadsheets
//! would take it for a formula. Control and direction characters are escapes.

use super::model::{CHANGED, Chart, Figure, Interval, Line, LineKind, Table};
use fedgenie_core::text::spreadsheet::cell;

/// The data of a figure.
pub fn csv(figure: &Figure) -> String {
    csv_of(figure, &[])
}

/// The same of results some of whose files were changed: each row names them.
pub(super) fn csv_of(figure: &Figure, changed: &[String]) -> String {
    written(marked(rows_of(figure), changed))
}

/// Rows, headings first, with a column more that names changed files, if there are any.
fn marked(mut rows: Vec<Vec<String>>, changed: &[String]) -> Vec<Vec<String>> {
    if !changed.is_empty() {
        let files = changed.join(" ");
        (0..)
            .zip(&mut rows)
            .for_each(|(row, cells)| cells.push(if row == 0 { CHANGED.to_owned() } else { files.clone() }));
    }
    rows
}

fn rows_of(figure: &Figure) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    match &figure.chart {
        Chart::Lines { lines, marks, .. } => {
            rows.push(texts(&["series", "kind", "label", "x", "y", "low", "high"]));
            let mut seeds = 0;
            let mut series = "";
            for line in lines {
                seeds = if line.series == series { seeds } else { 0 };
                series = &line.series;
                seeds += usize::from(line.role == LineKind::Seed);
                add_line(&mut rows, line, seeds);
            }
            for mark in marks {
                rows.push(vec![
                    String::new(),
                    "mark".to_owned(),
                    mark.label.clone(),
                    String::new(),
                    mark.value.to_string(),
                    String::new(),
                    String::new(),
                ]);
            }
        }
        Chart::Heat { columns, rows: names, panels, .. } => {
            rows.push(texts(&["panel", "row", "column", "value"]));
            for panel in panels {
                for (name, cells) in names.iter().zip(&panel.cells) {
                    for (column, found) in columns.iter().zip(cells) {
                        let value = found.map_or_else(String::new, |value| value.to_string());
                        rows.push(vec![panel.label.clone(), name.clone(), column.clone(), value]);
                    }
                }
            }
        }
        Chart::Bars { categories, parts, .. } => {
            rows.push(texts(&["category", "part", "value"]));
            for (part, lengths) in parts {
                for (category, length) in categories.iter().zip(lengths) {
                    rows.push(vec![category.clone(), part.clone(), length.to_string()]);
                }
            }
        }
        Chart::Intervals { rows: values, .. } => {
            rows.push(texts(&["label", "series", "value", "low", "high"]));
            for (label, series, Interval { value, ci95 }) in values {
                let [low, high] = ends(*ci95);
                rows.push(vec![label.clone(), series.clone(), value.to_string(), low, high]);
            }
        }
    }
    rows
}

/// A table as CSV, its headings first.
pub fn table_csv(table: &Table) -> String {
    table_csv_of(table, &[])
}

/// As [`csv_of`], of a table.
pub(super) fn table_csv_of(table: &Table, changed: &[String]) -> String {
    let rows = std::iter::once(table.columns.clone()).chain(table.rows.iter().cloned());
    written(marked(rows.collect(), changed))
}

fn written(rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    for row in rows {
        let row = row.iter().map(|text| cell(text));
        writer
            .write_record(row.map(|cell| cell.into_owned()))
            .expect("all rows have the columns of the first, and memory takes them");
    }
    let bytes = writer.into_inner().expect("memory takes what is written");
    String::from_utf8(bytes).expect("texts are UTF-8")
}

fn add_line(rows: &mut Vec<Vec<String>>, line: &Line, seed: usize) {
    let kind = match line.role {
        LineKind::Mean => "mean",
        LineKind::Seed => "seed",
        LineKind::Fit => "fit",
        LineKind::Bound => "bound",
        LineKind::Extreme => "extreme",
    };
    let number = (line.role == LineKind::Seed).then(|| seed.to_string());
    let label = line.label.clone().or(number).unwrap_or_default();
    let mut band = line.band.iter().peekable();
    for &(x, y) in &line.points {
        while band.next_if(|(at, _)| *at < x).is_some() {}
        let [low, high] = ends(band.next_if(|(at, _)| *at == x).map(|(_, ends)| *ends));
        rows.push(vec![line.series.clone(), kind.to_owned(), label.clone(), x.to_string(), y.to_string(), low, high]);
    }
}

fn ends(interval: Option<[f64; 2]>) -> [String; 2] {
    interval.map_or_else(Default::default, |ends| ends.map(|end| end.to_string()))
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}
