//! A table: its columns, each with the cell of a row, and its keys.

use super::ExportFormat;
use super::column::{Cell, Column};
use super::memory::ExportedTable;
use super::parquet::Parquet;
use super::sheet::{Csv, Sheet};
use fedgenie_experiment::error::Error;
use fedgenie_experiment::experiment::stored::RunState;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

/// The columns that tell a run.
pub(super) const RUN_KEY: [&str; 4] = ["folder", "policy", "seed", "point"];

/// Why a table was not finished.
pub(super) enum Failed {
    Write(io::Error),
    Other(Error),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

/// A table, as its data dictionary says it.
pub(super) struct Description {
    pub name: &'static str,
    pub meaning: &'static str,
    pub columns: Vec<Column>,
    /// The columns that tell a row.
    pub key: Vec<&'static str>,
    /// Whether each row is of a run, as `runs` has it.
    pub is_of_run: bool,
    pub bytes: u64,
}

type Value<'a, T> = Box<dyn Fn(&T) -> Cell + 'a>;

/// The run of a row.
type RunOf<'a, T> = Box<dyn Fn(&T) -> *const RunState + 'a>;

/// How the cells of a column follow from rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Per {
    Row,
    /// The same in all rows of a run.
    Run,
}

/// A table whose rows are made of values of one type.
pub(super) struct Table<'a, T> {
    name: &'static str,
    meaning: &'static str,
    key: Vec<&'static str>,
    columns: Vec<(Column, Value<'a, T>, Per)>,
    /// Tells the runs of rows apart.
    run_of: Option<RunOf<'a, T>>,
}

impl<'a, T> Table<'a, T> {
    /// A table without columns so far; `key` names the columns that tell a row.
    pub fn new(name: &'static str, meaning: &'static str, key: impl IntoIterator<Item = &'static str>) -> Self {
        Self { name, meaning, key: key.into_iter().collect(), columns: Vec::new(), run_of: None }
    }

    /// Adds a column.
    pub fn with(mut self, column: Column, of: impl Fn(&T) -> Cell + 'a) -> Self {
        self.columns.push((column, Box::new(of), Per::Row));
        self
    }

    /// Tells runs apart, for columns whose cells are the same in all rows of one.
    pub fn with_runs(mut self, run_of: impl Fn(&T) -> *const RunState + 'a) -> Self {
        self.run_of = Some(Box::new(run_of));
        self
    }

    /// Adds a column whose cells are the same in all rows of a run.
    pub fn with_same(mut self, column: Column, of: impl Fn(&T) -> Cell + 'a) -> Self {
        self.columns.push((column, Box::new(of), Per::Run));
        self
    }

    /// Adds columns whose cells are found by their index.
    pub fn with_all(self, columns: &'a [Column], of: impl Fn(&T, usize) -> Cell + Clone + 'a) -> Self {
        columns.iter().enumerate().fold(self, |table, (index, column)| {
            let of = of.clone();
            table.with(column.clone(), move |row| of(row, index))
        })
    }

    /// Adds all rows to columns in memory; `rows` is handed a function that adds one.
    pub fn gather(
        self,
        rows: impl FnOnce(&mut dyn FnMut(&T) -> Result<(), Failed>) -> Result<(), Failed>,
    ) -> Result<ExportedTable, Error> {
        let mut table = ExportedTable::new(self.name, self.meaning, self.columns.iter().map(|(column, ..)| column));
        let mut before = None;
        let gathered = rows(&mut |of| {
            table.rows += 1;
            let run = self.run_of.as_ref().map(|run_of| run_of(of));
            let is_of_same_run = run.is_some() && run == before;
            before = run;
            for ((column, value, per), gathered) in self.columns.iter().zip(&mut table.columns) {
                if *per == Per::Run && is_of_same_run {
                    gathered.cells.repeat();
                } else if !gathered.cells.push(value(of), column.is_required) {
                    return Err(self.unusable(column));
                }
            }
            Ok(())
        });
        match gathered {
            Ok(()) => Ok(table),
            Err(Failed::Other(error)) => Err(error),
            Err(Failed::Write(source)) => Err(Error::Write { path: self.name.into(), source }),
        }
    }

    /// The names of its columns.
    pub fn names(self) -> Vec<String> {
        self.columns.into_iter().map(|(column, ..)| column.name).collect()
    }

    /// Writes the table into a new file, which appears whole or not at all; `rows` is handed a function that adds one.
    pub fn write(
        self,
        into: &Path,
        format: ExportFormat,
        rows: impl FnOnce(&mut dyn FnMut(&T) -> Result<(), Failed>) -> Result<(), Failed>,
    ) -> Result<Description, Error> {
        let path = into.join(format!("{}.{}", self.name, format.ending()));
        let failed = |source| Error::Write { path: path.clone(), source };
        // A table gets its name when it is whole: a killed process leaves no truncated table.
        let part = path.with_added_extension("part");
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(&part).map_err(failed)?;
        let columns: Vec<&Column> = self.columns.iter().map(|(column, ..)| column).collect();
        let written = (|| {
            let mut sheet: Box<dyn Sheet> = match format {
                ExportFormat::Csv => Box::new(Csv::new(file, &columns)?),
                ExportFormat::Parquet => Box::new(Parquet::new(file, &columns)?),
            };
            rows(&mut |of| Ok(sheet.row(self.row(of)?)?))?;
            sheet.finish()?;
            fs::rename(&part, &path)?;
            Ok(fs::metadata(&path)?.len())
        })();
        let bytes = written.map_err(|why| {
            drop(fs::remove_file(&part));
            match why {
                Failed::Write(source) => failed(source),
                Failed::Other(error) => error,
            }
        })?;
        let columns = self.columns.into_iter().map(|(column, ..)| column).collect();
        let is_of_run = self.name != "runs" && RUN_KEY.iter().all(|column| self.key.contains(column));
        Ok(Description { name: self.name, meaning: self.meaning, columns, key: self.key, is_of_run, bytes })
    }

    fn row(&self, of: &T) -> Result<Vec<Cell>, Failed> {
        let cell = |(column, value, _): &(Column, Value<'a, T>, Per)| {
            let found = value(of);
            if found.fits(column) { Ok(found) } else { Err(self.unusable(column)) }
        };
        self.columns.iter().map(cell).collect()
    }

    /// Of a cell that does not fit its column.
    fn unusable(&self, column: &Column) -> Failed {
        Failed::Other(Error::Usage(format!("a row of {} has no usable {}", self.name, column.name)))
    }
}
