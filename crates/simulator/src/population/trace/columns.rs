//! Named columns of a text table, row by row.

use super::{RECORDS_MAX, TEXT_MAX};
use fedgenie_core::time::Span;
use fedgenie_learning::data::DataError;
use fedgenie_learning::data::rows::Rows;
use std::path::Path;

/// Bytes that a name takes in a map, with an empty list of its own.
pub(super) const NAME_BYTES: u64 = 200;

/// Further columns that a table may have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Others {
    Refused,
    Ignored,
    /// Ignored; a row may end before the header does, and its missing fields are empty.
    Ragged,
}

/// See the [module](self).
pub struct Columns<'a> {
    rows: Rows<'a>,
    header: Vec<String>,
    /// Index in the file of each column that is read.
    indices: Vec<usize>,
    others: Others,
    line: u64,
    read: usize,
}

impl<'a> Columns<'a> {
    /// Opens a table with a header that has the `wanted` columns, in any order.
    pub fn open(path: &'a Path, wanted: &[&str], others: Others) -> Result<Self, DataError> {
        let mut rows = Rows::open_within(path, TEXT_MAX)?;
        let wrong = |message| DataError::Table { path: path.to_owned(), line: 1, message };
        let listed = || wanted.join(", ");
        if rows.advance()?.is_none() {
            return Err(wrong(format!("is empty; expected a header with the columns {}", listed())));
        }
        let mut header: Vec<String> = rows.record.iter().map(|name| name.trim().to_owned()).collect();
        if let Some(name) = header.first_mut().and_then(|name| name.strip_prefix('\u{feff}').map(str::to_owned)) {
            header[0] = name;
        }
        let indices = wanted.iter().map(|name| {
            let mut found = (0..header.len()).filter(|&index| header[index] == *name);
            match (found.next(), found.next()) {
                (Some(index), None) => Ok(index),
                (Some(_), Some(_)) => Err(wrong(format!("there are two columns {name:?}; expected each name once"))),
                (None, _) => {
                    let known: String = header.join(", ").chars().take(200).collect();
                    Err(wrong(format!("found the columns {known}; expected {}: there is no {name:?}", listed())))
                }
            }
        });
        let indices: Vec<usize> = indices.collect::<Result<_, _>>()?;
        if others == Others::Refused
            && let Some(unknown) = (0..header.len()).find(|index| !indices.contains(index))
        {
            let unknown: String = header[unknown].chars().take(80).collect();
            return Err(wrong(format!("found the column {unknown:?}; expected only {}", listed())));
        }
        Ok(Self { rows, header, indices, others, line: 1, read: 0 })
    }

    /// Counts bytes that are about to be kept beside the row's numbers.
    pub fn keep(&mut self, bytes: u64) -> Result<(), DataError> {
        self.rows.keep(bytes)
    }

    /// Counts a new name, and its entry.
    pub fn keep_name(&mut self, column: usize) -> Result<(), DataError> {
        self.keep(NAME_BYTES + 2 * self.text(column).len() as u64)
    }

    /// Names of all columns.
    pub fn header(&self) -> &[String] {
        &self.header
    }

    /// The line of the current row.
    pub const fn line(&self) -> u64 {
        self.line
    }

    /// Goes to the next row; false at the end.
    pub fn next(&mut self) -> Result<bool, DataError> {
        let Some(line) = self.rows.advance()? else { return Ok(false) };
        self.line = line;
        self.read += 1;
        if self.read > RECORDS_MAX {
            let path = self.rows.path.to_owned();
            return Err(DataError::TooMany { path, limit: RECORDS_MAX, what: "rows" });
        }
        let (found, columns) = (self.rows.record.len(), self.header.len());
        let is_whole = found == columns || (self.others == Others::Ragged && found < columns);
        if !is_whole {
            return Err(self.wrong(format!("found {found} fields; the header has {columns} columns")));
        }
        Ok(true)
    }

    /// An error about the current row.
    pub fn wrong(&self, message: impl Into<String>) -> DataError {
        DataError::Table { path: self.rows.path.to_owned(), line: self.line, message: message.into() }
    }

    /// The current row's field in a column that is read, by its index among those wanted.
    pub fn text(&self, column: usize) -> &str {
        self.field(self.indices[column])
    }

    /// The current row's field in any column, by its index in the file.
    pub fn field(&self, index: usize) -> &str {
        self.rows.record.get(index).unwrap_or_default().trim()
    }

    /// An error about the field of a column that is read.
    pub fn wrong_field(&self, column: usize, expected: impl Into<String>) -> DataError {
        self.wrong_at(self.indices[column], expected)
    }

    fn wrong_at(&self, index: usize, expected: impl Into<String>) -> DataError {
        DataError::Field {
            path: self.rows.path.to_owned(),
            line: self.line,
            column: self.header[index].clone(),
            found: self.field(index).chars().take(80).collect(),
            expected: expected.into(),
        }
    }

    /// A finite number in a column that is read.
    pub fn number(&self, column: usize) -> Result<f64, DataError> {
        self.number_at(self.indices[column])
    }

    /// A finite number in any column, by its index in the file.
    pub fn number_at(&self, index: usize) -> Result<f64, DataError> {
        let number = self.field(index).parse::<f64>().ok().filter(|number| number.is_finite());
        number.ok_or_else(|| self.wrong_at(index, "a finite number"))
    }

    /// A time in seconds that is not negative.
    pub fn seconds(&self, column: usize) -> Result<Span, DataError> {
        let seconds = self.number(column)?;
        Span::from_seconds(seconds)
            .map_err(|_| self.wrong_field(column, "a number of seconds of at least 0 and at most 100 years"))
    }
}
