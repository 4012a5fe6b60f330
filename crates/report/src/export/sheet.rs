//! A table that is written row by row.

use super::column::{Cell, Column, Row};
use fedgenie_core::text::spreadsheet::cell;
use std::fs::File;
use std::io::{self, BufWriter};

pub(super) trait Sheet {
    /// Adds a row with a cell for each column.
    fn row(&mut self, row: Row) -> io::Result<()>;

    /// Writes the remaining rows.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// Comma-separated values.
pub(super) struct Csv(::csv::Writer<BufWriter<File>>);

impl Csv {
    pub fn new(file: File, columns: &[&Column]) -> io::Result<Self> {
        let mut writer = ::csv::Writer::from_writer(BufWriter::new(file));
        writer.write_record(columns.iter().map(|column| &column.name))?;
        Ok(Self(writer))
    }
}

/// A cell as text. A number has a decimal point or an exponent, so that readers that infer types tell it from an
/// integer, and as many digits as reading it again needs.
pub(super) fn written(found: &Cell) -> String {
    match found {
        Cell::Empty => String::new(),
        Cell::Text(text) => cell(text).into_owned(),
        Cell::Integer(integer) => integer.to_string(),
        Cell::Number(number) => format!("{number:?}"),
    }
}

impl Sheet for Csv {
    fn row(&mut self, row: Row) -> io::Result<()> {
        Ok(self.0.write_record(row.iter().map(written))?)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_told_from_integers_and_read_again() {
        let texts = [3840.0, 0.1, 1e300, -0.0, 1e-9].map(|number| written(&Cell::Number(number)));
        assert_eq!(texts, ["3840.0", "0.1", "1e300", "-0.0", "1e-9"]);
        assert_eq!(written(&Cell::Integer(-3)), "-3");
        assert_eq!(written(&Cell::Text("=1+1".to_owned())), "'=1+1");
    }
}
