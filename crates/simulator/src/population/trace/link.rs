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
use super::names::Names;
use super::{Defects, Imported, Own};
use crate::population::link::{LinkTrace, LinkTraces};
use fedgenie_core::time::Span;
use fedgenie_learning::data::DataError;
use std::collections::BTreeSet;
use std::path::Path;

/// How long the rate of a trace of a single row is said to hold before it begins again.
const SINGLE: Span = Span(1_000_000_000);

/// The columns of a file of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkFormat {
    /// `trace`, `time_s`, `mbit_per_s`.
    Csv,
    /// The same with a column `set`.
    Bandwidth,
}

/// Options for reading the links of a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkOptions<'a> {
    /// The file's columns.
    pub format: LinkFormat,
    /// Only this set.
    pub set: Option<&'a str>,
    /// Factor of the rates.
    pub scale: f64,
    /// Whether traces begin again where they end.
    pub wrap: bool,
}

/// The traces of a file, while it is read.
#[derive(Default)]
struct Read {
    names: Names,
    traces: Vec<Open>,
    /// The rows of all traces, in the order of the file.
    rows: Vec<Row>,
    /// The trace of each row, if rows of one may stand apart.
    of: Vec<u32>,
}

/// A trace that is being read.
struct Open {
    /// The line of its first row.
    line: u64,
    /// Its first and its last row so far.
    first: usize,
    last: usize,
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
/// File, line, found and expected value.
pub fn read(path: &Path, options: &LinkOptions<'_>) -> Result<Imported<Vec<LinkTrace>>, DataError> {
    read_own(path, options, Own::default()).map(|(imported, _)| imported)
}

/// As [`read`], with a column of names to join by, or mended. The names are ascending; there are none without a key.
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
    let mut read = Read::default();
    let mut sets = BTreeSet::new();
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
        let name = [set, columns.text(0)];
        let is_current = current.is_some_and(|current| read.names.get(current) == name);
        let Some(number) = current.filter(|_| is_current).or_else(|| read.names.find(name)) else {
            current = Some(read.begin(name, row, own.mend));
            columns.keep_name(0)?;
            continue;
        };
        let (is_apart, above) = (current != Some(number), read.rows[read.traces[number].last]);
        current = Some(number);
        if own.mend {
            defects.unsorted += usize::from(is_apart || row.time < above.time);
            read.of.push(number as u32);
        } else if is_apart {
            let expected = "a trace's rows to stand together; other rows stand in between: out of order";
            flaws.keep(columns.wrong_field(0, expected), true)?;
            continue;
        } else if let Some(expected) = out_of_place(&row, &above) {
            flaws.keep(columns.wrong_field(1, expected), true)?;
            continue;
        }
        read.traces[number].last = read.rows.len();
        read.rows.push(row);
    }
    if own.mend {
        read.mend(path, &mut defects, &mut flaws)?;
    }
    flaws.end(path)?;
    if read.traces.is_empty() {
        if sets.is_empty() {
            return Err(columns.wrong("has a header only; expected at least one row after it"));
        }
        let sets = sets.into_iter().collect::<Vec<_>>().join(", ");
        let set = options.set.unwrap_or_default();
        return Err(columns.wrong(format!("there is no row of the set {set:?}; the file has {sets}")));
    }
    let (value, names) = read.close(path, options, own.key.is_some())?;
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

/// Why a row cannot stand below another one of its trace; `None` if it can.
fn out_of_place(row: &Row, above: &Row) -> Option<String> {
    let (before, line) = (above.time.seconds(), above.line);
    let what = if row.time == above.time { "a duplicate" } else { "out of order" };
    (row.time <= above.time).then(|| format!("a time after {before}, that of the trace's row in line {line}: {what}"))
}

impl Read {
    /// Adds a trace with its first row. Returns its number.
    fn begin(&mut self, name: [&str; 2], row: Row, is_mended: bool) -> usize {
        let at = self.rows.len();
        self.traces.push(Open { line: row.line, first: at, last: at });
        self.rows.push(row);
        let number = self.names.add(name);
        if is_mended {
            self.of.push(number as u32);
        }
        number
    }

    /// Puts the rows of each trace together, sorts them and drops duplicates.
    fn mend(&mut self, path: &Path, defects: &mut Defects, flaws: &mut Flaws) -> Result<(), DataError> {
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_by_key(|&at| (self.of[at], self.rows[at].time));
        let mut kept: Vec<Row> = Vec::with_capacity(self.rows.len());
        let mut current = None;
        for at in order {
            let (row, number) = (self.rows[at], self.of[at] as usize);
            if current != Some(number) {
                current = Some(number);
                self.traces[number].first = kept.len();
                kept.push(row);
                continue;
            }
            match kept.last() {
                Some(above) if above.time == row.time && above.rate == row.rate => defects.duplicates += 1,
                Some(above) if above.time == row.time => {
                    let ([_, name], time, line) = (self.names.get(number), row.time.seconds(), above.line);
                    let message = format!("two rates of trace {name:?} at {time} s; the other is in line {line}");
                    flaws.keep(DataError::Table { path: path.to_owned(), line: row.line, message }, false)?;
                }
                _ => kept.push(row),
            }
        }
        self.rows = kept;
        Ok(())
    }

    /// The links and, if they are joined by name, their names, both in the names' order.
    fn close(
        self,
        path: &Path,
        options: &LinkOptions<'_>,
        is_joined: bool,
    ) -> Result<(Vec<LinkTrace>, Vec<String>), DataError> {
        let name = |number: usize| self.names.get(number)[1];
        let mut order: Vec<usize> = (0..self.traces.len()).collect();
        if is_joined {
            order.sort_by_key(|&number| name(number));
        }
        let mut links = LinkTraces::default();
        for &number in &order {
            let end = self.traces.get(number + 1).map_or(self.rows.len(), |next| next.first);
            let Open { line, first, .. } = self.traces[number];
            add(&mut links, &self.rows[first..end], options).map_err(|message| {
                let message = format!("trace {:?}{message}", name(number));
                DataError::Table { path: path.to_owned(), line, message }
            })?;
        }
        let names = if is_joined { order.iter().map(|&number| name(number).to_owned()).collect() } else { Vec::new() };
        Ok((links.finish(), names))
    }
}

/// Adds the link of a trace's rows; the error describes the trace.
fn add(links: &mut LinkTraces, rows: &[Row], options: &LinkOptions<'_>) -> Result<(), String> {
    if rows.iter().all(|row| row.rate == 0.0) {
        return Err(" is 0 all the time, and no transfer on it would end; leave it out".to_owned());
    }
    let begins = rows[0].time.0;
    let window = match rows {
        [.., before, last] => Span(last.time.0 - begins + (last.time.0 - before.time.0)),
        _ => SINGLE,
    };
    let points = rows.iter().map(|row| (Span(row.time.0 - begins), row.rate * options.scale));
    links.add(points, window, options.wrap || rows.len() == 1).map_err(|error| format!(": {error}"))
}
