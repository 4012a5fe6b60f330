//! All defects of a file's rows, told at once.

use fedgenie_learning::data::DataError;
use std::path::Path;

/// Most defects that are told.
const TOLD: usize = 10;

/// The defects found so far.
#[derive(Default)]
pub struct Flaws {
    first: Option<DataError>,
    told: Vec<String>,
    count: usize,
    /// Whether `mend` would mend some.
    can_mend: bool,
}

impl Flaws {
    /// Keeps the defect of one row.
    ///
    /// # Errors
    /// A defect of more than a row: then the file cannot be read on.
    pub fn keep(&mut self, flaw: DataError, can_mend: bool) -> Result<(), DataError> {
        let told = match &flaw {
            DataError::Table { line, message, .. } => format!("line {line}: {message}"),
            DataError::Field { line, column, found, expected, .. } => {
                format!("line {line}: column {column:?}: found {found:?}; expected {expected}")
            }
            _ => return Err(flaw),
        };
        self.count += 1;
        self.can_mend |= can_mend;
        if self.told.len() < TOLD {
            self.told.push(told);
        }
        self.first.get_or_insert(flaw);
        Ok(())
    }

    /// Fails if anything was kept: with the only defect, or with the first ten.
    pub fn end(self, path: &Path) -> Result<(), DataError> {
        let Some(first) = self.first else { return Ok(()) };
        let hint = if self.can_mend { "; mend = true sorts rows, merges overlaps and drops duplicates" } else { "" };
        if self.count == 1 {
            return Err(match first {
                DataError::Field { path, line, column, found, expected } => {
                    DataError::Field { path, line, column, found, expected: expected + hint }
                }
                other => other,
            });
        }
        let line = match &first {
            DataError::Table { line, .. } | DataError::Field { line, .. } => *line,
            _ => 1,
        };
        let more = if self.count > TOLD { format!("; … and {} more", self.count - TOLD) } else { String::new() };
        let message = format!("{} defects: {}{more}{hint}", self.count, self.told.join("; "));
        Err(DataError::Table { path: path.to_owned(), line, message })
    }
}
