//! Importers of measurements on real devices: availability, speed of computing, rates of links.
//!
//! | module | input |
//! |---|---|
//! | [`intervals`] | availability in our own CSV |
//! | [`flhetbench`] | FLHetBench's availability intervals and windows |
//! | [`flash`] | FLASH's `ready_*` spans, which are dirty |
//! | [`link`] | links over time, in our own CSV and as the published throughput traces |
//! | [`table`] | one number per client from a column of any CSV, such as FLHetBench's training latencies |
//! | [`mobiperf`] | one rate per client from MobiPerf's TCP records |
//! | [`flash_speeds`] | one rate per client from FLASH's normal speeds |
//! | [`published`] | files as their publishers wrote them, which it converts into tables for the importers above |
//!
//! # Trust
//! None: a file is unpacked up to [`TEXT_MAX`] bytes, and no more than [`RECORDS_MAX`] records of it are kept, as far
//! as there is memory for them.
//!
//! # Defects
//! An importer of our own formats refuses every deviation from the documented format, and tells up to ten at once; it
//! mends those of logs on request. An importer of a published data set drops or mends the known defects of the set,
//! counts them, and reports them in [`Imported::notes`], which become warnings of the world.

mod assign;
pub(crate) mod columns;
pub mod flash;
mod flash_json;
pub mod flash_speeds;
mod flaws;
pub mod flhetbench;
pub mod intervals;
pub(crate) mod join;
pub mod link;
mod memo;
pub mod mobiperf;
mod names;
pub mod published;
pub mod table;

pub use assign::{Assign, Assignment};
pub(crate) use memo::Memo;

use fedgenie_core::limits::{TRACE_BYTES, TRACE_RECORDS};
use fedgenie_core::time::Span;
use std::path::Path;
use std::sync::Arc;

/// The most bytes of a file, after decompression: 2^30.
pub const TEXT_MAX: u64 = TRACE_BYTES;

/// The most intervals, points or rows of a file: 2^26.
pub const RECORDS_MAX: usize = TRACE_RECORDS;

/// Imported records, with the defects found in them.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported<T> {
    /// The records.
    pub value: T,
    /// How many records were dropped or mended, and why: one sentence each, with the file's name.
    pub notes: Vec<String>,
    /// The same in numbers.
    pub defects: Defects,
}

/// Imported records with the names that they are joined by, ascending; no names without a key.
pub type Named<T> = (Imported<T>, Arc<[String]>);

/// How many records of each kind an importer met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Defects {
    /// Records of the file, good or bad.
    pub records: usize,
    /// Intervals of no length, dropped.
    pub zero_length: usize,
    /// Intervals that end before they start, dropped.
    pub reversed: usize,
    /// Intervals that start before the window, dropped.
    pub negative: usize,
    /// Intervals that start before the one above them, sorted.
    pub unsorted: usize,
    /// Intervals that overlap one before them, merged with it.
    pub overlapping: usize,
    /// Records that are the same as another, dropped.
    pub duplicates: usize,
    /// Devices without a single good interval.
    pub empty_devices: usize,
    /// Devices that the source marks as invalid, dropped.
    pub invalid_devices: usize,
    /// Records that are 0 or empty, dropped.
    pub missing: usize,
}

impl Defects {
    /// One sentence on every kind that occurred.
    fn notes(&self, path: &Path) -> Vec<String> {
        let kinds = [
            (self.zero_length, "intervals of no length were dropped"),
            (self.reversed, "intervals that end before they start were dropped"),
            (self.negative, "intervals that start before the window were dropped"),
            (self.unsorted, "intervals that start before the one above them were sorted"),
            (self.overlapping, "intervals that overlap another were merged with it"),
            (self.duplicates, "duplicates were dropped"),
            (self.invalid_devices, "devices that the source marks as invalid were dropped"),
            (self.missing, "records that are 0 or empty were dropped"),
        ];
        let occurred = kinds.into_iter().filter(|(count, _)| *count > 0);
        occurred.map(|(count, what)| format!("{}: {count} {what}", path.display())).collect()
    }
}

/// How a file in our own formats is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Own<'a> {
    /// The column with the names by which records are joined to those of other files.
    pub key: Option<&'a str>,
    /// Whether known defects of logs are mended and counted.
    pub mend: bool,
}

/// Recorded availability: for each trace, disjoint intervals in ascending order within a window that begins at 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AvailabilityTraces {
    starts: Vec<u64>,
    ends: Vec<u64>,
    /// Where a trace's intervals begin, and at last where they end.
    first: Vec<usize>,
    windows: Vec<u64>,
    times_of_day: Vec<u64>,
    /// The name of each trace, ascending; empty unless they are joined by name.
    names: Vec<String>,
}

/// A maximal interval of one state, in a trace's time; `None` for a missing end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub from: Option<i128>,
    pub until: Option<i128>,
    pub available: bool,
}

impl Default for AvailabilityTraces {
    fn default() -> Self {
        Self {
            starts: Vec::new(),
            ends: Vec::new(),
            first: vec![0],
            windows: Vec::new(),
            times_of_day: Vec::new(),
            names: Vec::new(),
        }
    }
}

impl AvailabilityTraces {
    /// Number of traces.
    pub const fn len(&self) -> usize {
        self.windows.len()
    }

    /// Whether there is no trace.
    pub const fn is_empty(&self) -> bool {
        self.windows.is_empty()
    }

    /// The names of all traces, ascending; empty where they are not joined by name.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    pub(super) fn set_names(&mut self, names: Vec<String>) {
        self.names = names;
    }

    /// Adds a trace: its intervals [start, end) in ascending order, not empty, not overlapping and within the window;
    /// intervals that touch are joined. `time_of_day` is the time on a clock where the window begins.
    ///
    /// # Panics
    /// If the intervals or the window are not as they have to be; importers check.
    pub fn push(&mut self, intervals: impl IntoIterator<Item = (Span, Span)>, window: Span, time_of_day: Span) {
        assert!(window > Span::ZERO, "a window lasts");
        let first = self.starts.len();
        for (Span(start), Span(end)) in intervals {
            assert!(start < end && end <= window.0, "an interval lasts and lies in its window");
            let has_one = self.starts.len() > first;
            match self.ends.last_mut().filter(|_| has_one) {
                Some(last) if *last == start => *last = end,
                last => {
                    assert!(last.is_none_or(|last| *last < start), "intervals ascend");
                    self.starts.push(start);
                    self.ends.push(end);
                }
            }
        }
        self.first.push(self.starts.len());
        self.windows.push(window.0);
        self.times_of_day.push(time_of_day.0);
    }

    /// The intervals of a trace.
    pub fn intervals(&self, trace: usize) -> impl ExactSizeIterator<Item = (Span, Span)> + '_ {
        let range = self.first[trace]..self.first[trace + 1];
        range.map(|interval| (Span(self.starts[interval]), Span(self.ends[interval])))
    }

    /// How long a trace was observed.
    pub fn window(&self, trace: usize) -> Span {
        Span(self.windows[trace])
    }

    /// Time on a clock where a trace's window begins.
    pub fn time_of_day(&self, trace: usize) -> Span {
        Span(self.times_of_day[trace])
    }

    /// The state at a trace's time, and its end. With `wrap`, `at` is within the window, and a piece may reach beyond
    /// it.
    pub(super) fn piece(&self, trace: usize, at: u64, wrap: bool) -> Piece {
        let range = self.first[trace]..self.first[trace + 1];
        let (starts, ends) = (&self.starts[range.clone()], &self.ends[range]);
        let window = i128::from(self.windows[trace]);
        let Some(last) = starts.len().checked_sub(1) else {
            return Piece { from: None, until: None, available: false };
        };
        let joins = wrap && starts[0] == 0 && i128::from(ends[last]) == window;
        if joins && last == 0 {
            return Piece { from: None, until: None, available: true };
        }
        let next = starts.partition_point(|start| *start <= at);
        if next > 0 && at < ends[next - 1] {
            let here = next - 1;
            let from = if joins && here == 0 { i128::from(starts[last]) - window } else { i128::from(starts[here]) };
            let until = if joins && here == last { i128::from(ends[0]) + window } else { i128::from(ends[here]) };
            return Piece { from: Some(from), until: Some(until), available: true };
        }
        let from = match next {
            0 => wrap.then(|| i128::from(ends[last]) - window),
            _ => Some(i128::from(ends[next - 1])),
        };
        let until = match starts.get(next) {
            Some(start) => Some(i128::from(*start)),
            None => wrap.then(|| i128::from(starts[0]) + window),
        };
        Piece { from, until, available: false }
    }
}

#[cfg(test)]
mod own_tests;
#[cfg(test)]
mod tests;
