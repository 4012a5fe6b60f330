//! Availability traces in FedGenie's own format.
//!
//! # Definition
//! A table with the columns `client`, `start_s`, `end_s`, in any order: the device called `client` is available from
//! `start_s` (included) to `end_s` (excluded), in seconds from the beginning of its window. Traces are numbered in the
//! order in which their names first occur, or of the names themselves where a key says which column has them. The rows
//! of a client ascend, and do not overlap; other clients' rows may stand in between. Intervals may touch. All windows
//! are `window` long, or up to the largest `end_s` of the file.
//!
//! # Inputs
//! CSV with a header (RFC 4180), plain or gzip. Errors, with file and lines, the first ten at once: an unknown or a
//! missing column, a time that is no number or negative, an interval that is empty or ends before it starts, one that
//! is the same as another of its client (duplicate), starts before the one above it (out of order) or before that ends
//! (overlap), one beyond the window, a file without intervals. With `mend`, the rows of a client are sorted,
//! overlapping intervals merged, and duplicates dropped; each is counted.
//!
//! # Source
//! Ours.
//!
//! # Example
//! ```csv
//! client,start_s,end_s
//! phone-a,0,3600
//! phone-a,7200,9000.5
//! phone-b,1800,86400
//! ```

use super::columns::{Columns, Others};
use super::flaws::Flaws;
use super::join::sorted_by_name;
use super::{AvailabilityTraces, Defects, Imported, Own};
use fedgenie_core::time::Span;
use fedgenie_learning::data::DataError;
use std::collections::BTreeMap;
use std::path::Path;

/// An interval of the file.
#[derive(Clone, Copy)]
struct Row {
    line: u64,
    start: Span,
    end: Span,
}

/// Reads a file of intervals; see the [module](self).
///
/// # Errors
/// File, line, found and expected value.
pub fn read(path: &Path, window: Option<Span>) -> Result<Imported<AvailabilityTraces>, DataError> {
    read_own(path, window, Own::default())
}

/// As [`read`], with a column of names to join by, or mended.
///
/// # Errors
/// As [`read`].
pub fn read_own(path: &Path, window: Option<Span>, own: Own<'_>) -> Result<Imported<AvailabilityTraces>, DataError> {
    let mut columns = Columns::open(path, &[own.key.unwrap_or("client"), "start_s", "end_s"], Others::Refused)?;
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let mut traces: Vec<Vec<Row>> = Vec::new();
    let (mut defects, mut flaws, mut names) = (Defects::default(), Flaws::default(), Vec::new());
    loop {
        match columns.next() {
            Ok(true) => {}
            Ok(false) => break,
            Err(flaw) => {
                flaws.keep(flaw, false)?;
                continue;
            }
        }
        defects.records += 1;
        let row = match row_of(&columns, window) {
            Ok(row) => row,
            Err(flaw) => {
                flaws.keep(flaw, false)?;
                continue;
            }
        };
        let name = columns.text(0);
        let number = match numbers.get(name) {
            Some(&number) => number,
            None => {
                numbers.insert(name.to_owned(), traces.len());
                names.push(name.to_owned());
                columns.keep_name(0)?;
                traces.push(Vec::new());
                traces.len() - 1
            }
        };
        let above = traces[number].last().copied();
        match above.and_then(|above| out_of_place(&row, &above)) {
            Some(_) if own.mend => {
                defects.unsorted += usize::from(above.is_some_and(|above| row.start < above.start));
                traces[number].push(row);
            }
            Some(expected) => flaws.keep(columns.wrong_field(1, expected), true)?,
            None => traces[number].push(row),
        }
    }
    flaws.end(path)?;
    if defects.records == 0 {
        return Err(columns.wrong("has a header only; expected at least one interval after it"));
    }
    let names = match own.key {
        None => Vec::new(),
        Some(_) => {
            let (names, sorted) = sorted_by_name(names, traces);
            traces = sorted;
            names.to_vec()
        }
    };
    let last = traces.iter().flatten().map(|row| row.end).max().unwrap_or(Span::ZERO);
    let mut value = AvailabilityTraces::default();
    for rows in traces {
        let intervals = if own.mend { mended(rows, &mut defects) } else { plain(&rows).collect() };
        value.push(intervals, window.unwrap_or(last), Span::ZERO);
    }
    value.set_names(names);
    Ok(Imported { value, notes: defects.notes(path), defects })
}

fn plain(rows: &[Row]) -> impl Iterator<Item = (Span, Span)> + '_ {
    rows.iter().map(|row| (row.start, row.end))
}

/// The interval of a row.
fn row_of(columns: &Columns<'_>, window: Option<Span>) -> Result<Row, DataError> {
    if columns.text(0).is_empty() {
        return Err(columns.wrong_field(0, "the name or number of a client"));
    }
    let (start, end) = (columns.seconds(1)?, columns.seconds(2)?);
    if end <= start {
        return Err(columns.wrong_field(2, format!("a time after start_s, {}", start.seconds())));
    }
    match window.filter(|window| end > *window) {
        Some(window) => Err(columns.wrong_field(2, format!("a time within the window of {} s", window.seconds()))),
        None => Ok(Row { line: columns.line(), start, end }),
    }
}

/// Why a row cannot stand below another one of its client; `None` if it can.
fn out_of_place(row: &Row, above: &Row) -> Option<String> {
    let Row { line, start, end } = above;
    if (row.start, row.end) == (*start, *end) {
        Some(format!("each interval once; this is a duplicate of line {line}"))
    } else if row.start < *start {
        let start = start.seconds();
        Some(format!("a time after {start}, where the client's interval of line {line} starts: out of order"))
    } else if row.start < *end {
        let end = end.seconds();
        Some(format!("a time not before {end}, where the client's interval of line {line} ends: an overlap"))
    } else {
        None
    }
}

/// A client's intervals, sorted, with duplicates dropped and overlaps merged.
fn mended(mut rows: Vec<Row>, defects: &mut Defects) -> Vec<(Span, Span)> {
    rows.sort_by_key(|row| (row.start, row.end));
    let mut kept: Vec<(Span, Span)> = Vec::with_capacity(rows.len());
    let mut before = None;
    for row in plain(&rows) {
        if before == Some(row) {
            defects.duplicates += 1;
            continue;
        }
        before = Some(row);
        match kept.last_mut() {
            Some((_, end)) if row.0 < *end => {
                defects.overlapping += 1;
                *end = row.1.max(*end);
            }
            _ => kept.push(row),
        }
    }
    kept
}
