//! Devices follow recorded intervals of availability.
//!
//! # Definition
//! Client i of its group follows trace i mod M (`assign = "cyclic"`) or the i mod M-th of a random permutation of the M
//! traces (`"permuted"`). A trace is a list of intervals [start, end) within its window; the client is available in
//! them. At time t of the run the client is at `t + offset` of its trace, modulo the length of the window: at the
//! window's end it begins again (`wrap`). Without `wrap`, the client is away for good once its trace has ended.
//! Intervals that touch are one, also across the window's end.
//!
//! With `align = "time-of-day"`, time 0 of the run is midnight where the traces were recorded, so that the clients'
//! days are in step; the windows have to last whole days. With `"start"`, the default, each trace begins where its
//! window does.
//!
//! # Inputs
//! `format`, with the treatment of defects:
//!
//! | format | file | window |
//! |---|---|---|
//! | `csv` | [`trace::intervals`](crate::population::trace::intervals): columns `client`, `start_s`, `end_s`; any defect is an error | `window`, or 0 to the file's last end |
//! | `flhetbench` | [`trace::flhetbench`](crate::population::trace::flhetbench): `device`, `start_s`, `end_s`, and a file of `windows` | each device's own |
//! | `flash` | [`trace::flash`](crate::population::trace::flash): `ready_*` as JSON or CSV, dirty | `window`, or 0 to the file's last end |
//!
//! # Source
//! The modulus is FedScale's (`client_metadata.py`: "active where active\[i\] ≤ t mod finish_time ≤ inactive\[i\]");
//! the data of the formats are described with their importers.
//!
//! # Deviations from the source
//! Intervals are half open, and the answer for a time does not depend on earlier questions.
//!
//! # Cost
//! A binary search in the trace whenever a client's stretch has ended. A client costs the index of its trace and, where
//! drawn, an offset.
//!
//! # Determinism
//! The only draws are the offsets (PopulationParameter, client, 53) and the permutation (PopulationParameter, 2^32 − 1,
//! M), which is the same for all sets of M traces or records.
//!
//! # Example
//! ```toml
//! availability = { trace = { format = "flhetbench", file = "fl-traces/flhetbench/availability_intervals.csv.gz",
//!     windows = "fl-traces/flhetbench/availability_windows.csv.gz", align = "time-of-day" } }
//! availability = { trace = { file = "mine.csv", window = "7 d", offset = { uniform = ["0 d", "7 d"] }, assign = "permuted" } }
//! ```

use super::{GroupClients, OFFSET, Offsets, State};
use crate::population::law::{AnyParameter, TimeParameter};
use crate::population::trace::join::Source;
use crate::population::trace::{
    Assign, Assignment, AvailabilityTraces, Imported, Memo, Own, flash, flhetbench, intervals,
};
use fedgenie_core::config::Complaint;
use fedgenie_core::units::Duration;
use fedgenie_learning::data::located;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const DAY: u64 = 24 * 3_600_000_000_000;

/// `trace`: see the [module](self).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The intervals.
    pub file: PathBuf,
    /// How the file is written.
    #[serde(default)]
    pub format: Format,
    /// The file of windows, for `flhetbench`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<PathBuf>,
    /// How long all traces last, for the other formats; up to the file's last end when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Duration>,
    /// The assignment of traces to clients.
    #[serde(default)]
    pub assign: Assign,
    /// Where in its trace a client is at time 0.
    #[serde(default)]
    pub offset: TimeParameter,
    /// Whether time 0 is where a trace begins, or midnight.
    #[serde(default)]
    pub align: Align,
    /// Whether a trace begins again where its window ends.
    #[serde(default = "yes")]
    pub wrap: bool,
    /// The column with the names of devices, by which this file is joined to the group's others, instead of `client`;
    /// for `csv`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Whether rows are sorted, overlaps merged and duplicates dropped, and counted; otherwise they are errors. For
    /// `csv`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mend: bool,
    #[serde(skip)]
    memo: Memo<Imported<AvailabilityTraces>>,
}

const fn yes() -> bool {
    true
}

/// How a file of availability is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Columns `client`, `start_s`, `end_s`.
    #[default]
    Csv,
    /// FLHetBench's intervals, with its windows.
    Flhetbench,
    /// FLASH's `ready_*`, as JSON or CSV.
    Flash,
}

/// The meaning of time 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Align {
    /// The beginning of each trace's window.
    #[default]
    Start,
    /// Midnight in all traces.
    TimeOfDay,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(in crate::population) struct Trace {
    traces: Arc<Imported<AvailabilityTraces>>,
    assignment: Assignment,
    offsets: Offsets,
    align: Align,
    wrap: bool,
}

impl Config {
    /// Intervals of a file in FedGenie's own format, read once for all copies of `memo`.
    pub(in crate::population) fn of_intervals(
        file: PathBuf,
        window: Option<Duration>,
        (assign, offset, wrap): (Assign, TimeParameter, bool),
        memo: Memo<Imported<AvailabilityTraces>>,
    ) -> Self {
        let (format, windows, align, key, mend) = (Format::Csv, None, Align::Start, None, false);
        Self { file, format, windows, window, assign, offset, align, wrap, key, mend, memo }
    }

    pub(super) fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        self.memo = Memo::default();
        self.file = located(&self.file, base, data);
        if let Some(windows) = &mut self.windows {
            *windows = located(windows, base, data);
        }
    }

    fn import(&self) -> Result<Arc<Imported<AvailabilityTraces>>, Complaint> {
        let window = self.window.map(|window| window.0);
        match (self.format, &self.windows) {
            (Format::Flhetbench, None) => {
                return Err(Complaint::new(
                    "windows",
                    "is missing; expected the file of windows that belongs to the intervals",
                ));
            }
            (Format::Flhetbench, Some(_)) if window.is_some() => {
                return Err(Complaint::new(
                    "window",
                    "each device has a window of its own in this format; leave it out",
                ));
            }
            (Format::Csv | Format::Flash, Some(_)) => {
                return Err(Complaint::new(
                    "windows",
                    "only the format \"flhetbench\" has a file of windows; leave it out",
                ));
            }
            _ => {}
        }
        if self.format != Format::Csv && (self.key.is_some() || self.mend) {
            let (key, why) = match self.key {
                Some(_) => ("key", "only the format \"csv\" is joined by name; leave it out"),
                None => ("mend", "only the format \"csv\" is mended if asked; leave it out"),
            };
            return Err(Complaint::new(key, why));
        }
        let own = Own { key: self.key.as_deref(), mend: self.mend };
        self.memo
            .get(|| match (self.format, &self.windows) {
                (Format::Flhetbench, Some(windows)) => flhetbench::read(&self.file, windows),
                (Format::Flash, _) => flash::read(&self.file, window),
                _ => intervals::read_own(&self.file, window, own),
            })
            .map_err(|message| Complaint::new("file", message))
    }

    /// Appends the files that it reads, as far as they can be read.
    pub(in crate::population) fn sources(&self, path: &str, found: &mut Vec<Source>) {
        found.extend(self.import().ok().map(|traces| Source {
            path: path.to_owned(),
            file: self.file.clone(),
            records: "traces",
            count: traces.value.len(),
            names: self.key.as_ref().map(|_| traces.value.names().into()),
            has_names: self.format == Format::Csv,
        }));
        self.offset.0.sources(path, found);
    }

    pub(super) fn build(&self, group: &GroupClients<'_>, notes: &mut Vec<String>) -> Result<Trace, Complaint> {
        self.build_at(group, notes, OFFSET)
    }

    /// As [`Config::build`], with another number for the offset among a client's parameters.
    pub(in crate::population) fn build_at(
        &self,
        group: &GroupClients<'_>,
        notes: &mut Vec<String>,
        index: u32,
    ) -> Result<Trace, Complaint> {
        let traces = self.import()?;
        if self.align == Align::TimeOfDay {
            if !self.wrap {
                return Err(Complaint::new("align", "\"time-of-day\" needs traces that begin again; leave wrap out"));
            }
            let windows = (0..traces.value.len()).map(|trace| traces.value.window(trace));
            if let Some(window) = windows.into_iter().find(|window| window.0 % DAY != 0) {
                let found = window.seconds() / 86_400.0;
                return Err(Complaint::new(
                    "align",
                    format!("a trace lasts {found} days; \"time-of-day\" needs whole days (see window)"),
                ));
            }
        }
        notes.extend(traces.notes.iter().cloned());
        Ok(Trace {
            assignment: Assignment::new(self.assign, traces.value.len(), group.streams),
            offsets: Offsets::new(&self.offset.0, group, index).map_err(|message| Complaint::new("offset", message))?,
            traces,
            align: self.align,
            wrap: self.wrap,
        })
    }
}

impl Trace {
    /// Whether a time lies in an interval, and until when.
    pub(in crate::population) fn piece_at(&self, in_group: usize, time: u64) -> (bool, u64) {
        let State { available, until, .. } = self.at(in_group, time);
        (available, until)
    }

    /// After how long a client's intervals are the same again, if they begin again.
    pub(in crate::population) fn period(&self, in_group: usize) -> Option<u64> {
        let window = self.traces.value.window(self.assignment.of(in_group));
        self.wrap.then_some(window.0)
    }

    /// The stretch that contains a time.
    pub(super) fn at(&self, in_group: usize, time: u64) -> State {
        let trace = self.assignment.of(in_group);
        let traces = &self.traces.value;
        let window = traces.window(trace).0;
        let begins = match self.align {
            Align::Start => 0,
            Align::TimeOfDay => traces.time_of_day(trace).0,
        };
        // Within the window that contains time 0; without wrap, within the only one.
        let mut offset = u128::from(self.offsets.of(in_group));
        if self.wrap {
            offset = (offset + u128::from(window - begins % window)) % u128::from(window);
        }
        let shifted = u128::from(time) + offset;
        let (base, at) = match self.wrap {
            true => (shifted - shifted % u128::from(window), (shifted % u128::from(window)) as u64),
            false => (0, u64::try_from(shifted).unwrap_or(u64::MAX)),
        };
        let piece = traces.piece(trace, at, self.wrap);
        // No question is before time 0; times beyond virtual time mean never.
        let in_run = |time: i128| u64::try_from((time + base as i128 - offset as i128).max(0)).unwrap_or(u64::MAX);
        State {
            from: piece.from.map_or(0, in_run),
            until: piece.until.map_or(u64::MAX, in_run),
            number: 0,
            available: piece.available,
        }
    }
}
