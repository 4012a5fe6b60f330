//! Availability traces in FedGenie's own format.
//!
//! # Definition
//! A table with the columns `client`, `start_s`, `end_s`, in any order: the device called `client` is available from
//! `start_s` (included) to `end_s` (excluded), in seconds from the beginning of its window. Traces are numbered in the
//! order in which their names first occur. The rows of a client ascend, and do not overlap; other clients' rows may
//! stand in between. Intervals may touch. All windows are `window` long, or up to the largest `end_s` of the file.
//!
//! # Inputs
//! CSV with a header (RFC 4180), plain or gzip. Errors, with file and line: an unknown or a missing column, a time that
//! is no number or negative, an interval that is empty or ends before it starts, one that starts before the last one of
//! its client does (unsorted) or before that ends (overlapping), one beyond the window, a file without intervals.
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
use super::{AvailabilityTraces, Defects, Imported};
use fedgenie_core::time::Span;
use fedgenie_learning::data::DataError;
use std::collections::BTreeMap;
use std::path::Path;

/// Reads a file of intervals; see the [module](self).
///
/// # Errors
/// File, line, what was found and what would be right.
pub fn read(path: &Path, window: Option<Span>) -> Result<Imported<AvailabilityTraces>, DataError> {
    let mut columns = Columns::open(path, &["client", "start_s", "end_s"], Others::Refused)?;
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let mut traces: Vec<Vec<(Span, Span)>> = Vec::new();
    let (mut records, mut last) = (0, Span::ZERO);
    while columns.next()? {
        let name = columns.text(0);
        if name.is_empty() {
            return Err(columns.wrong_field(0, "the name or number of a client"));
        }
        let number = match numbers.get(name) {
            Some(&number) => number,
            None => {
                numbers.insert(name.to_owned(), traces.len());
                columns.keep_name(0)?;
                traces.push(Vec::new());
                traces.len() - 1
            }
        };
        let (start, end) = (columns.seconds(1)?, columns.seconds(2)?);
        if end <= start {
            return Err(columns.wrong_field(2, format!("a time after start_s, {}", start.seconds())));
        }
        match traces[number].last() {
            Some((before, _)) if start < *before => {
                let message =
                    format!("a time after {}, where the client's interval before this one starts", before.seconds());
                return Err(columns.wrong_field(1, message));
            }
            Some((_, ended)) if start < *ended => {
                let message =
                    format!("a time not before {}, where the client's interval before this one ends", ended.seconds());
                return Err(columns.wrong_field(1, message));
            }
            _ => {}
        }
        if let Some(window) = window.filter(|window| end > *window) {
            return Err(columns.wrong_field(2, format!("a time within the window of {} s", window.seconds())));
        }
        last = last.max(end);
        traces[number].push((start, end));
        records += 1;
    }
    if records == 0 {
        return Err(columns.wrong("has a header only; expected at least one interval after it"));
    }
    let mut value = AvailabilityTraces::default();
    for trace in traces {
        value.push(trace, window.unwrap_or(last), Span::ZERO);
    }
    Ok(Imported { value, notes: Vec::new(), defects: Defects { records, ..Defects::default() } })
}
