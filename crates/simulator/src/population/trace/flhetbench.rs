//! FLHetBench's availability: when 710 phones were locked, charging and on WiFi.
//!
//! # Definition
//! Two tables. Windows: `device`, `valid` (1 or 0), `trace_start_s`, `trace_end_s`, `n_intervals`; intervals: `device`,
//! `start_s`, `end_s`, both in seconds after 2020-01-02 00:00:00 local. A trace is a device marked valid, in the order
//! of the windows; its time 0 is its window's start. A valid device without an interval is a trace that is never there.
//!
//! # Inputs
//! The two files as CSV, plain or gzip. Devices that are not valid are dropped and counted, as are intervals of length
//! 0. Anything else is an error with file and line: an interval of a device that is not listed or not valid, one that
//! ends before it starts, leaves its window, overlaps or starts before the one above it; a number of intervals other
//! than `n_intervals`.
//!
//! # Source
//! J. Zhang et al., "FLHetBench: Benchmarking Device and State Heterogeneity in Federated Learning", CVPR 2024, whose
//! `cached_timers` are of the phones of Yang et al., "Characterizing Impacts of Heterogeneity in Federated Learning
//! upon Large-Scale Smartphone Data", WWW 2021.

use super::columns::{Columns, Others};
use super::{AvailabilityTraces, Defects, Imported};
use fedgenie_core::time::Span;
use fedgenie_learning::data::DataError;
use std::collections::BTreeMap;
use std::path::Path;

const DAY_SECONDS: u64 = 86_400;

/// A device of the windows.
struct Device {
    line: u64,
    is_valid: bool,
    start: Span,
    end: Span,
    promised: usize,
    found: usize,
    last: Option<(Span, Span)>,
    intervals: Vec<(Span, Span)>,
}

/// Reads intervals and windows; see the [module](self).
///
/// # Errors
/// File, line, found and expected value.
pub fn read(intervals: &Path, windows: &Path) -> Result<Imported<AvailabilityTraces>, DataError> {
    let (mut devices, order) = read_windows(windows)?;
    let mut defects = Defects::default();
    let mut columns = Columns::open(intervals, &["device", "start_s", "end_s"], Others::Refused)?;
    while columns.next()? {
        defects.records += 1;
        let Some(device) = devices.get_mut(columns.text(0)).filter(|device| device.is_valid) else {
            let expected = format!("a device that {} lists as valid", windows.display());
            return Err(columns.wrong_field(0, expected));
        };
        device.found += 1;
        let (start, end) = (columns.seconds(1)?, columns.seconds(2)?);
        if end < start {
            return Err(columns.wrong_field(2, format!("a time not before start_s, {}", start.seconds())));
        }
        if start < device.start || end > device.end {
            let (from, to) = (device.start.seconds(), device.end.seconds());
            let column = if start < device.start { 1 } else { 2 };
            return Err(columns.wrong_field(column, format!("a time within the device's window, {from} to {to}")));
        }
        if let Some((before, ended)) = device.last
            && start < before.max(ended)
        {
            let ended = ended.seconds();
            return Err(columns.wrong_field(1, format!("a time not before {ended}, where the interval above it ends")));
        }
        device.last = Some((start, end));
        if start == end {
            defects.zero_length += 1;
        } else {
            device.intervals.push((Span(start.0 - device.start.0), Span(end.0 - device.start.0)));
        }
    }
    let mut value = AvailabilityTraces::default();
    for name in &order {
        let device = &devices[name];
        if device.found != device.promised {
            let message = format!(
                "device {name} has n_intervals = {}, but {} has {} of it",
                device.promised,
                intervals.display(),
                device.found
            );
            return Err(DataError::Table { path: windows.to_owned(), line: device.line, message });
        }
        if !device.is_valid {
            defects.invalid_devices += 1;
            continue;
        }
        defects.empty_devices += usize::from(device.intervals.is_empty());
        let time_of_day = Span(device.start.0 % (DAY_SECONDS * 1_000_000_000));
        value.push(device.intervals.iter().copied(), Span(device.end.0 - device.start.0), time_of_day);
    }
    if value.is_empty() {
        return Err(DataError::Table { path: windows.to_owned(), line: 1, message: "no device is valid".to_owned() });
    }
    let mut notes = defects.notes(intervals);
    if defects.empty_devices > 0 {
        notes.push(format!("{}: {} devices are never available", intervals.display(), defects.empty_devices));
    }
    Ok(Imported { value, notes, defects })
}

/// The devices by name, and their names in the order of the file.
fn read_windows(path: &Path) -> Result<(BTreeMap<String, Device>, Vec<String>), DataError> {
    let names = ["device", "valid", "trace_start_s", "trace_end_s", "n_intervals"];
    let mut columns = Columns::open(path, &names, Others::Refused)?;
    let (mut devices, mut order) = (BTreeMap::new(), Vec::new());
    while columns.next()? {
        columns.keep_name(0)?;
        let name = columns.text(0).to_owned();
        let is_valid = match columns.text(1) {
            "1" => true,
            "0" => false,
            _ => return Err(columns.wrong_field(1, "1 (valid) or 0")),
        };
        let (start, end) = if is_valid { (columns.seconds(2)?, columns.seconds(3)?) } else { (Span::ZERO, Span::ZERO) };
        if is_valid && end <= start {
            return Err(columns.wrong_field(3, format!("a time after trace_start_s, {}", start.seconds())));
        }
        let promised = columns.text(4).parse().map_err(|_| columns.wrong_field(4, "a whole number of at least 0"))?;
        let line = columns.line();
        let device = Device { line, is_valid, start, end, promised, found: 0, last: None, intervals: Vec::new() };
        if devices.insert(name.clone(), device).is_some() {
            return Err(columns.wrong_field(0, "each device once"));
        }
        order.push(name);
    }
    Ok((devices, order))
}
