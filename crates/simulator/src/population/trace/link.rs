//! Rates of links over time: FedGenie's own CSV, and published throughput traces.
//!
//! # Definition
//! A table with the columns `trace`, `time_s`, `mbit_per_s` (`csv`), or `set`, `trace`, `time_s`, `mbit_per_s`
//! (`bandwidth`), in any order. A trace is a run of rows of one name (and set), which stand together; traces are
//! numbered in the order of the file. A rate holds from its row's time until the next row's, the last as long as the
//! one before it, and a single row for ever. A trace's time 0 is its first row's time.
//!
//! # Inputs
//! CSV with a header (RFC 4180), plain or gzip. 1 Mbit/s is 10⁶ bit/s. Errors, with file and line: an unknown or
//! missing column, a time that does not come after the one above it (unsorted, or twice the same), a time or rate that
//! is no number, a negative rate, a trace whose rows do not stand together, a trace that is 0 all the time, on which no
//! transfer would end, a file without rows, a `set` that does not occur. A rate of 0 is no error: nothing moves then.
//!
//! # Source
//! Ours; and the sets HSDPA (Riiser et al., MMSys 2013), FCC Measuring Broadband America 2016, Oboe (Akhtar et al.,
//! SIGCOMM 2018) and Puffer (Yan et al., NSDI 2020), as collected by confiwent/Real-world-bandwidth-traces: 1,380
//! downlinks of video players.

use super::columns::{Columns, Others};
use super::{Defects, Imported};
use crate::population::link::LinkTrace;
use fedgenie_core::time::Span;
use fedgenie_learning::data::DataError;
use std::collections::BTreeSet;
use std::path::Path;

/// How long the rate of a trace of a single row is said to hold before it begins again.
const SINGLE: Span = Span(1_000_000_000);

/// Which columns a file of links has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkFormat {
    /// `trace`, `time_s`, `mbit_per_s`.
    Csv,
    /// The same with a column `set`.
    Bandwidth,
}

/// How the links of a file are to be taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkOptions<'a> {
    /// The file's columns.
    pub format: LinkFormat,
    /// Only this set.
    pub set: Option<&'a str>,
    /// What rates are multiplied by.
    pub scale: f64,
    /// Whether traces begin again where they end.
    pub wrap: bool,
}

/// A trace that is being read.
struct Open {
    name: (String, String),
    line: u64,
    begins: Span,
    times: Vec<Span>,
    rates: Vec<f64>,
}

/// Reads a file of links; see the [module](self).
///
/// # Errors
/// File, line, what was found and what would be right.
pub fn read(path: &Path, options: &LinkOptions<'_>) -> Result<Imported<Vec<LinkTrace>>, DataError> {
    let wanted: &[&str] = match options.format {
        LinkFormat::Csv => &["trace", "time_s", "mbit_per_s"],
        LinkFormat::Bandwidth => &["trace", "time_s", "mbit_per_s", "set"],
    };
    let mut columns = Columns::open(path, wanted, Others::Refused)?;
    let mut links = Vec::new();
    let mut open: Option<Open> = None;
    let (mut known, mut sets) = (BTreeSet::new(), BTreeSet::new());
    let mut defects = Defects::default();
    while columns.next()? {
        let set = if options.format == LinkFormat::Bandwidth { columns.text(3) } else { "" };
        if options.set.is_some_and(|wanted| wanted != set) {
            // A file may have many sets; more than a few are not shown.
            if sets.len() < 20 {
                sets.insert(set.to_owned());
            }
            continue;
        }
        defects.records += 1;
        let time = columns.seconds(1)?;
        let rate = columns.number(2)?;
        if rate < 0.0 {
            return Err(columns.wrong_field(2, "a rate of at least 0"));
        }
        let is_same = open.as_ref().is_some_and(|open| open.name.0 == set && open.name.1 == columns.text(0));
        match &mut open {
            Some(open) if is_same => {
                let before = Span(open.begins.0 + open.times.last().map_or(0, |time| time.0));
                if time <= before {
                    let before = before.seconds();
                    return Err(columns.wrong_field(1, format!("a time after {before}, that of the trace's row above")));
                }
                open.times.push(Span(time.0 - open.begins.0));
                open.rates.push(rate * 1e6);
            }
            _ => {
                let name = (set.to_owned(), columns.text(0).to_owned());
                columns.keep_name(0)?;
                if !known.insert(name.clone()) {
                    return Err(columns.wrong_field(0, "a trace's rows to stand together; other rows stand in between"));
                }
                let line = columns.line();
                let next = Open { name, line, begins: time, times: vec![Span::ZERO], rates: vec![rate * 1e6] };
                if let Some(done) = open.replace(next) {
                    links.push(done.close(path, options)?);
                }
            }
        }
    }
    match open {
        Some(done) => links.push(done.close(path, options)?),
        None if sets.is_empty() => {
            return Err(columns.wrong("has a header only; expected at least one row after it"));
        }
        None => {
            let sets = sets.into_iter().collect::<Vec<_>>().join(", ");
            let set = options.set.unwrap_or_default();
            return Err(columns.wrong(format!("there is no row of the set {set:?}; the file has {sets}")));
        }
    }
    Ok(Imported { value: links, notes: Vec::new(), defects })
}

impl Open {
    fn close(self, path: &Path, options: &LinkOptions<'_>) -> Result<LinkTrace, DataError> {
        let wrong = |message| DataError::Table { path: path.to_owned(), line: self.line, message };
        let name = &self.name.1;
        if self.rates.iter().all(|&rate| rate == 0.0) {
            let message = format!("trace {name:?} is 0 all the time, and no transfer on it would end; leave it out");
            return Err(wrong(message));
        }
        let window = match self.times[..] {
            [.., before, last] => Span(last.0 + (last.0 - before.0)),
            _ => SINGLE,
        };
        let wrap = options.wrap || self.times.len() == 1;
        LinkTrace::new(&self.times, &self.rates, window, wrap)
            .and_then(|link| if options.scale == 1.0 { Ok(link) } else { link.scaled(options.scale) })
            .map_err(|error| wrong(format!("trace {name:?}: {error}")))
    }
}
