//! Wall time, for reports about validations. No verdict depends on it.

use std::time::{Instant, SystemTime};

/// What a function returns, and how many seconds it took.
#[expect(clippy::disallowed_methods, reason = "shown beside results, never part of them")]
pub fn seconds_of<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed().as_secs_f64())
}

/// The date in UTC, as in 2026-01-31.
#[expect(clippy::disallowed_methods, reason = "the date of a report")]
pub fn today() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()[..10].to_owned()
}
