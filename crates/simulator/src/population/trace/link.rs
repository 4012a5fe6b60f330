//! Rates of links over time: FedGenie's own CSV, and published throughput traces.
//!
//! # Definition
//! A table with the columns `trace`, `time_s`, `mbit_per_s` (`csv`), or `set`, `trace`, `time_s`, `mbit_per_s`
//! (`bandwidth`), in any order. A trace is a run of rows of one name (and set), which stand together; traces are
//! numbered in the order of the file, or of their names where a key says which column has them. A rate holds from its
//! row's time until the next row's, the last as long as the one before it, and a single row for ever. A trace's time 0
//! is its first row's time.
//!
//! # Inputs
//! CSV with a header (RFC 4180), plain or gzip. 1 Mbit/s is 10⁶ bit/s. Errors, with file and lines, the first ten at
//! once: an unknown or missing column, a time before the one above it (out of order) or the same (duplicate), a time
//! or rate that is no number, a negative rate, a trace whose rows do not stand together, a trace that is 0 all the
//! time, on which no transfer would end, a file without rows, a `set` that does not occur. A rate of 0 is no error:
//! nothing moves then. With `mend`, the rows of a trace are put together and sorted, and duplicates of one rate
//! dropped; each is counted. Two rates at one time remain an error.
//!
//! # Source
//! Ours; and the sets HSDPA (Riiser et al., MMSys 2013), FCC Measuring Broadband America 2016, Oboe (Akhtar et al.,
//! SIGCOMM 2018) and Puffer (Yan et al., NSDI 2020), as collected by confiwent/Real-world-bandwidth-traces: 1,380
//! downlinks of video players.

use super::columns::{Columns, Others};
use super::flaws::Flaws;
use super::{Defects, Imported, Own};
use crate::population::link::LinkTrace;
use fedgenie_core::time::Span;
use fedgenie_learning::data::DataError;
use std::collections::{BTreeMap, BTreeSet};
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
    name: String,
    line: u64,
    rows: Vec<Row>,
}

/// A rate in bit/s from a time on.
#[derive(Clone, Copy)]
struct Row {
    line: u64,
    time: Span,
    rate: f64,
}

/// Reads a file of links; see the [module](self).
///
/// # Errors
/// File, line, what was found and what would be right.
pub fn read(path: &Path, options: &LinkOptions<'_>) -> Result<Imported<Vec<LinkTrace>>, DataError> {
    read_own(path, options, Own::default()).map(|(imported, _)| imported)
}

/// As [`read`], with a column of names to join by, or mended. The names are ascending, and none without a key.
///
/// # Errors
/// As [`read`].
pub fn read_own(
    path: &Path,
    options: &LinkOptions<'_>,
    own: Own<'_>,
) -> Result<(Imported<Vec<LinkTrace>>, Vec<String>), DataError> {
    let name = own.key.unwrap_or("trace");
    let wanted: &[&str] = match options.format {
        LinkFormat::Csv => &[name, "time_s", "mbit_per_s"],
        LinkFormat::Bandwidth => &[name, "time_s", "mbit_per_s", "set"],
    };
    let mut columns = Columns::open(path, wanted, Others::Refused)?;
    let mut traces: Vec<Open> = Vec::new();
    let (mut known, mut sets) = (BTreeMap::new(), BTreeSet::new());
    let (mut defects, mut flaws) = (Defects::default(), Flaws::default());
    let mut current = None;
    loop {
        match columns.next() {
            Ok(true) => {}
            Ok(false) => break,
            Err(flaw) => {
                flaws.keep(flaw, false)?;
                continue;
            }
        }
        let set = if options.format == LinkFormat::Bandwidth { columns.text(3) } else { "" };
        if options.set.is_some_and(|wanted| wanted != set) {
            // A file may have many sets; more than a few are not shown.
            if sets.len() < 20 {
                sets.insert(set.to_owned());
            }
            continue;
        }
        defects.records += 1;
        let row = match row_of(&columns) {
            Ok(row) => row,
            Err(flaw) => {
                flaws.keep(flaw, false)?;
                continue;
            }
        };
        let name = (set.to_owned(), columns.text(0).to_owned());
        let number = match known.get(&name) {
            Some(&number) => number,
            None => {
                columns.keep_name(0)?;
                traces.push(Open { name: name.1.clone(), line: row.line, rows: Vec::new() });
                known.insert(name, traces.len() - 1);
                traces.len() - 1
            }
        };
        let rows = &mut traces[number].rows;
        let is_apart = current != Some(number) && !rows.is_empty();
        current = Some(number);
        if own.mend {
            defects.unsorted += usize::from(is_apart || rows.last().is_some_and(|above| row.time < above.time));
            rows.push(row);
        } else if is_apart {
            let expected = "a trace's rows to stand together; other rows stand in between: out of order";
            flaws.keep(columns.wrong_field(0, expected), true)?;
        } else if let Some(expected) = rows.last().and_then(|above| out_of_place(&row, above)) {
            flaws.keep(columns.wrong_field(1, expected), true)?;
        } else {
            rows.push(row);
        }
    }
    if own.mend {
        for open in &mut traces {
            open.mend(path, &mut defects, &mut flaws)?;
        }
    }
    flaws.end(path)?;
    if traces.is_empty() {
        if sets.is_empty() {
            return Err(columns.wrong("has a header only; expected at least one row after it"));
        }
        let sets = sets.into_iter().collect::<Vec<_>>().join(", ");
        let set = options.set.unwrap_or_default();
        return Err(columns.wrong(format!("there is no row of the set {set:?}; the file has {sets}")));
    }
    if own.key.is_some() {
        traces.sort_by(|one, other| one.name.cmp(&other.name));
    }
    let names = own.key.map_or_else(Vec::new, |_| traces.iter().map(|open| open.name.clone()).collect());
    let value = traces.into_iter().map(|open| open.close(path, options)).collect::<Result<_, _>>()?;
    Ok((Imported { value, notes: defects.notes(path), defects }, names))
}

/// Time and rate of a row.
fn row_of(columns: &Columns<'_>) -> Result<Row, DataError> {
    let (time, rate) = (columns.seconds(1)?, columns.number(2)?);
    if rate < 0.0 {
        return Err(columns.wrong_field(2, "a rate of at least 0"));
    }
    Ok(Row { line: columns.line(), time, rate: rate * 1e6 })
}

/// Why a row cannot stand below one of the same trace, if it cannot.
fn out_of_place(row: &Row, above: &Row) -> Option<String> {
    let (before, line) = (above.time.seconds(), above.line);
    let what = if row.time == above.time { "a duplicate" } else { "out of order" };
    (row.time <= above.time).then(|| format!("a time after {before}, that of the trace's row in line {line}: {what}"))
}

impl Open {
    /// Sorts the rows and drops duplicates.
    fn mend(&mut self, path: &Path, defects: &mut Defects, flaws: &mut Flaws) -> Result<(), DataError> {
        self.rows.sort_by_key(|row| row.time);
        let mut kept: Vec<Row> = Vec::with_capacity(self.rows.len());
        for row in self.rows.drain(..) {
            match kept.last() {
                Some(above) if above.time == row.time && above.rate == row.rate => defects.duplicates += 1,
                Some(above) if above.time == row.time => {
                    let (time, line) = (row.time.seconds(), above.line);
                    let message =
                        format!("two rates of trace {:?} at {time} s; the other is in line {line}", self.name);
                    flaws.keep(DataError::Table { path: path.to_owned(), line: row.line, message }, false)?;
                }
                _ => kept.push(row),
            }
        }
        self.rows = kept;
        Ok(())
    }

    fn close(self, path: &Path, options: &LinkOptions<'_>) -> Result<LinkTrace, DataError> {
        let wrong = |message| DataError::Table { path: path.to_owned(), line: self.line, message };
        let name = &self.name;
        let rates: Vec<f64> = self.rows.iter().map(|row| row.rate).collect();
        if rates.iter().all(|&rate| rate == 0.0) {
            let message = format!("trace {name:?} is 0 all the time, and no transfer on it would end; leave it out");
            return Err(wrong(message));
        }
        let begins = self.rows[0].time.0;
        let times: Vec<Span> = self.rows.iter().map(|row| Span(row.time.0 - begins)).collect();
        let window = match times[..] {
            [.., before, last] => Span(last.0 + (last.0 - before.0)),
            _ => SINGLE,
        };
        let wrap = options.wrap || times.len() == 1;
        LinkTrace::new(&times, &rates, window, wrap)
            .and_then(|link| if options.scale == 1.0 { Ok(link) } else { link.scaled(options.scale) })
            .map_err(|error| wrong(format!("trace {name:?}: {error}")))
    }
}
