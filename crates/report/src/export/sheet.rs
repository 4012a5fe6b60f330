//! A table that is written row by row.

use fedgenie_core::text::spreadsheet::cell;
use std::fs::File;
use std::io::{self, BufWriter};

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Count,
    Number,
}

#[derive(Clone, Debug)]
pub(super) struct Column {
    pub name: String,
    pub kind: Kind,
}

impl Column {
    pub fn new(name: &str, kind: Kind) -> Self {
        Self { name: name.to_owned(), kind }
    }
}

/// A cell of a row: empty, or a value of the column's type.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Empty,
    Text(String),
    Count(u64),
    Number(f64),
}

impl Cell {
    /// A text; an empty one is an empty cell.
    pub fn text(text: &str) -> Self {
        if text.is_empty() { Self::Empty } else { Self::Text(text.to_owned()) }
    }

    /// A finite number, or an empty cell.
    pub fn number(value: Option<f64>) -> Self {
        value.filter(|value| value.is_finite()).map_or(Self::Empty, Self::Number)
    }
}

pub(super) type Row = Vec<Cell>;

pub(super) trait Sheet {
    /// Adds a row with a cell for each column.
    fn row(&mut self, row: Row) -> io::Result<()>;

    /// Writes the remaining rows.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// Comma-separated values.
pub(super) struct Csv(::csv::Writer<BufWriter<File>>);

impl Csv {
    pub fn new(file: File, columns: &[Column]) -> io::Result<Self> {
        let mut writer = ::csv::Writer::from_writer(BufWriter::new(file));
        writer.write_record(columns.iter().map(|column| cell(&column.name).into_owned()))?;
        Ok(Self(writer))
    }
}

impl Sheet for Csv {
    fn row(&mut self, row: Row) -> io::Result<()> {
        let written = |found: Cell| match found {
            Cell::Empty => String::new(),
            Cell::Text(text) => cell(&text).into_owned(),
            Cell::Count(count) => count.to_string(),
            Cell::Number(number) => number.to_string(),
        };
        Ok(self.0.write_record(row.into_iter().map(written))?)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.0.flush()
    }
}
