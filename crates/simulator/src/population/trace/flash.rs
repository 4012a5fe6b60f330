//! FLASH's availability traces (`ready_strict`, `ready_loose`), with their defects mended.
//!
//! # Definition
//! Spans in seconds after 2020-01-02 00:00:00 local, as the original JSON object (name → list of [start, end]) or as a
//! table `device`, `start_s`, `end_s`. How long each phone was observed is not known: all windows begin at 0 and are
//! `window` long, or up to the file's last end.
//!
//! # Inputs
//! JSON (the first character is `{`) or CSV, plain or gzip. Each defect, with its count in the published strict / loose
//! file:
//!
//! | defect | treatment | strict | loose |
//! |---|---|---|---|
//! | ends before it starts | dropped | 4 | 4 |
//! | starts before 0 | dropped: it began in another clock | 311 | 306 |
//! | length 0 | dropped | 6,089 | 5,656 |
//! | starts before the one above it | sorted | 38 | 38 |
//! | overlaps one before it | merged with it | 92 | 66 |
//! | no span is left of a device | the device is dropped | 615 | 618 |
//!
//! A span is counted at the first defect that applies; sorting and merging are counted among the spans that are left.
//! The last row: 588 / 584 devices have no span to begin with, which the table cannot show. A span beyond `window` and
//! a value that is not a number are errors.
//!
//! # Source
//! Yang et al., "Characterizing Impacts of Heterogeneity in Federated Learning upon Large-Scale Smartphone Data", WWW
//! 2021; strict is locked, charging and on WiFi, loose is locked and charging.

use super::columns::{Columns, Others};
use super::flash_json;
use super::{AvailabilityTraces, Defects, Imported};
use fedgenie_core::time::Span;
use fedgenie_learning::data::DataError;
use fedgenie_learning::data::bytes::ByteReader;
use std::collections::BTreeMap;
use std::path::Path;

/// Spans of a device, as they stand in the file.
pub(super) type Spans = Vec<(f64, f64)>;

/// Reads a file of ready spans; see the [module](self).
///
/// # Errors
/// File, line or device, found and expected value.
pub fn read(path: &Path, window: Option<Span>) -> Result<Imported<AvailabilityTraces>, DataError> {
    let is_json = ByteReader::open(path)?.take(64)?.trim_ascii_start().starts_with(b"{");
    let devices = if is_json { flash_json::read(path)? } else { read_csv(path)? };
    let mut defects = Defects::default();
    let cleaned: Vec<Vec<(Span, Span)>> = devices.into_iter().map(|spans| clean(spans, &mut defects)).collect();
    let last = cleaned.iter().filter_map(|spans| spans.last()).map(|(_, end)| *end).max();
    let Some(last) = last else {
        let message = "has no span of time that starts at 0 or later and lasts".to_owned();
        return Err(DataError::Table { path: path.to_owned(), line: 1, message });
    };
    if let Some(window) = window.filter(|window| last > *window) {
        let message =
            format!("a span ends at {} s; expected none beyond the window of {} s", last.seconds(), window.seconds());
        return Err(DataError::Table { path: path.to_owned(), line: 1, message });
    }
    let mut value = AvailabilityTraces::default();
    for spans in cleaned.into_iter().filter(|spans| !spans.is_empty()) {
        value.push(spans, window.unwrap_or(last), Span::ZERO);
    }
    let mut notes = defects.notes(path);
    if defects.empty_devices > 0 {
        notes.push(format!("{}: {} devices without any span were dropped", path.display(), defects.empty_devices));
    }
    Ok(Imported { value, notes, defects })
}

/// Mends or drops spans as the head of this file says.
fn clean(spans: Spans, defects: &mut Defects) -> Vec<(Span, Span)> {
    let mut good: Vec<(Span, Span)> = Vec::with_capacity(spans.len());
    for (start, end) in spans {
        defects.records += 1;
        let kept = (Span::from_seconds(start.max(0.0)), Span::from_seconds(end.max(0.0)));
        match kept {
            _ if end < start => defects.reversed += 1,
            _ if start < 0.0 => defects.negative += 1,
            (Ok(start), Ok(end)) if start < end => {
                defects.unsorted += usize::from(good.last().is_some_and(|(before, _)| start < *before));
                good.push((start, end));
            }
            _ => defects.zero_length += 1,
        }
    }
    good.sort_unstable();
    let mut merged: Vec<(Span, Span)> = Vec::with_capacity(good.len());
    for (start, end) in good {
        match merged.last_mut() {
            Some((_, last)) if start < *last => {
                defects.overlapping += 1;
                *last = (*last).max(end);
            }
            _ => merged.push((start, end)),
        }
    }
    defects.empty_devices += usize::from(merged.is_empty());
    merged
}

fn read_csv(path: &Path) -> Result<Vec<Spans>, DataError> {
    let mut columns = Columns::open(path, &["device", "start_s", "end_s"], Others::Refused)?;
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let mut devices: Vec<Spans> = Vec::new();
    while columns.next()? {
        let name = columns.text(0);
        let number = numbers.get(name).copied().unwrap_or(devices.len());
        if number == devices.len() {
            numbers.insert(name.to_owned(), number);
            columns.keep_name(0)?;
            devices.push(Vec::new());
        }
        let span = (time(&columns, 1)?, time(&columns, 2)?);
        devices[number].push(span);
    }
    Ok(devices)
}

/// A number of seconds, perhaps negative.
fn time(columns: &Columns<'_>, column: usize) -> Result<f64, DataError> {
    let seconds = columns.number(column)?;
    let is_time = Span::from_seconds(seconds.abs()).is_ok();
    if is_time { Ok(seconds) } else { Err(columns.wrong_field(column, "a number of seconds of at most 100 years")) }
}
