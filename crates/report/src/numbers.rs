//! Numbers in few digits.

use crate::{Axis, Interval};

/// A number rounded to significant digits.
pub(crate) fn rounded(value: f64, digits: usize) -> f64 {
    format!("{value:.*e}", digits.saturating_sub(1)).parse().unwrap_or(value)
}

/// A number for people: five significant digits.
pub(crate) fn text(value: f64) -> String {
    let value = rounded(value, 5);
    let size = value.abs();
    if size == 0.0 {
        "0".to_owned()
    } else if (1e-4..1e7).contains(&size) {
        value.to_string()
    } else {
        format!("{value:e}")
    }
}

/// The same as a printer sets it: for reading rather than for copying into a spreadsheet.
pub(crate) fn set(value: f64) -> String {
    text(value).replace('-', "−")
}

/// A number inside a picture: three significant digits.
pub(crate) fn short(value: f64) -> String {
    set(rounded(value, 3))
}

/// A value and its interval: `1.5 [1.2, 1.8]`.
pub(crate) fn with_ends(value: f64, ends: Option<[f64; 2]>) -> String {
    match ends {
        Some([low, high]) => format!("{} [{}, {}]", text(value), text(low), text(high)),
        None => text(value),
    }
}

pub(crate) fn interval(interval: &Interval) -> String {
    with_ends(interval.value, interval.ci95)
}

/// What an axis shows, with its unit.
pub(crate) fn axis(axis: &Axis) -> String {
    axis.unit.as_ref().map_or_else(|| axis.label.clone(), |unit| format!("{} [{unit}]", axis.label))
}
