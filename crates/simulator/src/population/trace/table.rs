//! One number per client from a column of a table.
//!
//! # Definition
//! The column's numbers, from the rows whose other columns hold the texts of `where`, in the order of the rows or, with
//! a key, of the names in its column.
//!
//! # Inputs
//! CSV with a header (RFC 4180), plain or gzip; other columns do not count. Errors, with file and line: a missing
//! column, a field that is no finite number or negative, an empty field, a 0 where that makes no sense (as a rate, or a
//! time to divide by), no row that is left. With `missing = "drop"`, rows whose field is empty or 0 are dropped and
//! counted: measurements use both for "not measured", as FLHetBench's training latencies do in 19 of 997 records.
//!
//! # Source
//! Ours.

use super::columns::{Columns, Others};
use super::join::sorted_by_name;
use super::{Defects, Imported, Named};
use fedgenie_learning::data::DataError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The treatment of fields that are empty or 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// An empty field is an error, and so is a 0 where it makes no sense.
    #[default]
    Error,
    /// The row is dropped, and counted.
    Drop,
}

/// A selection of a table's numbers.
#[derive(Clone, Copy, Debug)]
pub struct Selection<'a> {
    /// The column's name.
    pub column: &'a str,
    /// Texts that other columns have to hold.
    pub filter: &'a BTreeMap<String, String>,
    /// The treatment of fields that are empty or 0.
    pub missing: Missing,
    /// Whether a 0 makes sense.
    pub zero: bool,
}

/// Reads the numbers of a column; see the [module](self).
///
/// # Errors
/// File, line, column, found and expected value.
pub fn read(path: &Path, selection: &Selection<'_>) -> Result<Imported<Vec<f64>>, DataError> {
    read_keyed(path, selection, None).map(|(imported, _)| imported)
}

/// As [`read`]; with a key, the numbers are in the order of the names in that column, which are returned as well.
///
/// # Errors
/// As [`read`]; and a name that is empty or occurs twice.
pub fn read_keyed(path: &Path, selection: &Selection<'_>, key: Option<&str>) -> Result<Named<Vec<f64>>, DataError> {
    let mut wanted = vec![selection.column];
    wanted.extend(selection.filter.keys().map(String::as_str));
    let name = wanted.len();
    wanted.extend(key);
    let (mut names, mut lines) = (Vec::new(), BTreeMap::new());
    let mut columns = Columns::open(path, &wanted, Others::Ignored)?;
    let (mut value, mut defects) = (Vec::new(), Defects::default());
    while columns.next()? {
        let is_wanted = |(index, text): (usize, &String)| columns.text(index + 1) == text;
        if !selection.filter.values().enumerate().all(is_wanted) {
            continue;
        }
        defects.records += 1;
        let is_drop = selection.missing == Missing::Drop;
        if is_drop && columns.text(0).is_empty() {
            defects.missing += 1;
            continue;
        }
        let number = columns.number(0)?;
        match number {
            0.0 if is_drop => defects.missing += 1,
            0.0 if !selection.zero => {
                return Err(columns.wrong_field(0, "a number above 0 (missing = \"drop\" leaves such rows out)"));
            }
            number if number < 0.0 => return Err(columns.wrong_field(0, "a number of at least 0")),
            number => value.push(number),
        }
        if key.is_none() || names.len() == value.len() {
            continue;
        }
        let text = columns.text(name).to_owned();
        if text.is_empty() {
            return Err(columns.wrong_field(name, "a name to join by"));
        }
        columns.keep_name(name)?;
        if let Some(line) = lines.insert(text.clone(), columns.line()) {
            return Err(columns.wrong_field(name, format!("each name once; line {line} has it as well: a duplicate")));
        }
        names.push(text);
    }
    if value.is_empty() {
        let found = if defects.records == 0 { "no row is asked for" } else { "no row has a number" };
        return Err(columns.wrong(format!("{found}; expected at least one")));
    }
    let (names, value) = match key {
        Some(_) => sorted_by_name(names, value),
        None => (Arc::default(), value),
    };
    Ok((Imported { value, notes: defects.notes(path), defects }, names))
}
