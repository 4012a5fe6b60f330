//! CSV tables: comma-separated values with a header.
//!
//! # Definition
//! A row is an example. One column is the target: a `label` (classification) or a numeric target (regression). Another
//! may name the device, writer or user that an example comes from. All others are features, in the order of the file;
//! each is a finite number, rounded to `f32`. Spaces around a field do not count, nor do empty lines.
//! Labels become classes 0, 1, … in ascending order: by value if every label is a number, else by the bytes of their
//! text (UTF-8). Groups are numbered alike. Names are told apart as text: `1` and `1.0` are two. The test file has the
//! same columns in the same order, and no class that training does not have; a group of its own is numbered after those
//! of training.
//!
//! # Inputs
//! One or two files of RFC 4180 (comma, quotes where needed), plain or gzip (told by the first two bytes). Of a single
//! file, each seed draws the share `test_fraction` of the rows for testing: `round(f·n)` of `n`, but at least one and
//! not all, each set of that size being equally likely (stream (Example, 0, 3)).
//!
//! # Source
//! Y. Shafranovich, "Common Format and MIME Type for Comma-Separated Values (CSV) Files", RFC 4180, 2005; read by the
//! crate `csv`.
//!
//! # Trust
//! None: no more than [`ROW_MAX`] bytes are unpacked for one row, and no more than [`VALUES_MAX`] features and
//! [`GROUPS_MAX`] names of groups, of at most [`NAME_MAX`] bytes each, are kept.
//!
//! # Example
//! ```toml
//! data = { csv = { train = "train.csv", test = "test.csv", label = "species" } }
//! data = { csv = { train = "all.csv.gz", test_fraction = 0.2, target = "price", group = "city" } }
//! data = { csv = { train = "digits.csv", test_fraction = 0.2, label = "digit", shape = [1, 8, 8] } }
//! ```

mod config;

pub use config::CsvConfig;

use super::rows::Rows;
use super::{DataError, Dataset, Shape, Split, Targets};
use fedgenie_core::limits::{COLUMNS, TABLE_VALUES};
use ndarray::Array2;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub use super::rows::ROW_MAX;

/// The most columns: 2^20.
pub const COLUMNS_MAX: usize = COLUMNS;

/// The most features of a file, all rows together: 2^28, which is 1 GiB.
pub const VALUES_MAX: usize = TABLE_VALUES;

/// The most classes.
pub const CLASSES_MAX: usize = 256;

/// The most groups of a file: 2^22.
pub const GROUPS_MAX: usize = 1 << 22;

/// The most bytes of a class's or a group's name.
pub const NAME_MAX: usize = 256;

/// The target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A class: name of the column.
    Label(String),
    /// A number: name of the column.
    Target(String),
}

impl Answer {
    fn column(&self) -> &str {
        match self {
            Self::Label(column) | Self::Target(column) => column,
        }
    }
}

/// The columns of a table by their meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvColumns {
    /// The column to predict.
    pub answer: Answer,
    /// The column that says which device, writer or user an example comes from.
    pub group: Option<String>,
    /// How the features are laid out; one channel each if not given.
    pub shape: Option<Shape>,
}

impl CsvColumns {
    /// Reads one table.
    ///
    /// # Errors
    /// See [`DataError`]; file, line and column of the first thing that is wrong.
    pub fn read(&self, path: &Path) -> Result<Dataset, DataError> {
        let mut table = Part::read(path, self, None)?;
        let classes = table.labels.sort();
        table.groups.sort();
        Ok(table.into_dataset(self, classes))
    }

    /// Reads a table of training examples and one of test examples.
    ///
    /// # Errors
    /// See [`DataError`]; file, line and column of the first thing that is wrong.
    pub fn read_split(&self, train: &Path, test: &Path) -> Result<Split, DataError> {
        let mut train = Part::read(train, self, None)?;
        let mut test = Part::read(test, self, Some(&train.header))?;
        let classes = train.labels.sort();
        test.labels.number_by(&train.labels);
        if let Some((name, line)) = test.labels.first_beyond(classes) {
            let expected = format!("one of the {classes} classes of {}", train.path.display());
            return Err(test.wrong_field(line, self.answer.column(), name, expected));
        }
        train.groups.sort();
        test.groups.number_by(&train.groups);
        Ok(Split { train: train.into_dataset(self, classes), test: test.into_dataset(self, classes) })
    }
}

/// Names in the order of the rows, as numbers.
#[derive(Default)]
struct Names {
    /// Number and first line of each name.
    known: BTreeMap<String, (u32, u64)>,
    rows: Vec<u32>,
}

impl Names {
    fn push(&mut self, name: &str, line: u64) {
        let number = match self.known.get(name) {
            Some(&(number, _)) => number,
            None => {
                let number = self.known.len() as u32;
                self.known.insert(name.to_owned(), (number, line));
                number
            }
        };
        self.rows.push(number);
    }

    /// Numbers the names in ascending order; says how many there are.
    fn sort(&mut self) -> usize {
        self.number_by(&Self::default());
        self.known.len()
    }

    /// Gives names that the other has its numbers, and numbers the rest after them in ascending order.
    fn number_by(&mut self, other: &Self) {
        let mut order: Vec<(&String, u32)> = self.known.iter().map(|(name, &(number, _))| (name, number)).collect();
        let values: Option<BTreeMap<&String, f64>> = order
            .iter()
            .map(|&(name, _)| Some((name, name.parse::<f64>().ok().filter(|value| value.is_finite())?)))
            .collect();
        if let Some(values) = values {
            // Stable: names of equal value stay in the order of their text.
            order.sort_by(|(a, _), (b, _)| values[a].partial_cmp(&values[b]).unwrap_or(Ordering::Equal));
        }
        let mut next = other.known.len() as u32;
        let mut numbers = vec![0; order.len()];
        for (name, old) in order {
            numbers[old as usize] = other.known.get(name).map_or_else(
                || {
                    next += 1;
                    next - 1
                },
                |&(number, _)| number,
            );
        }
        self.rows.iter_mut().for_each(|row| *row = numbers[*row as usize]);
        self.known.values_mut().for_each(|(number, _)| *number = numbers[*number as usize]);
    }

    /// The first name in the file with a number of at least `count`.
    fn first_beyond(&self, count: usize) -> Option<(&str, u64)> {
        let beyond = self.known.iter().filter(|(_, (number, _))| *number as usize >= count);
        beyond.map(|(name, &(_, line))| (&**name, line)).min_by_key(|&(_, line)| line)
    }
}

/// The use of a column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Feature,
    Label,
    Target,
    Group,
}

/// One table as it was read.
struct Part<'a> {
    path: &'a Path,
    header: Vec<String>,
    features: Vec<f32>,
    targets: Vec<f32>,
    labels: Names,
    groups: Names,
}

impl<'a> Part<'a> {
    fn read(path: &'a Path, columns: &CsvColumns, expected: Option<&[String]>) -> Result<Self, DataError> {
        let mut rows = Rows::open(path)?;
        let mut part = Self {
            path,
            header: Vec::new(),
            features: Vec::new(),
            targets: Vec::new(),
            labels: Names::default(),
            groups: Names::default(),
        };
        let Some(line) = rows.advance()? else {
            return Err(part.wrong(1, "is empty; expected a header, the names of the columns".to_owned()));
        };
        part.header = rows.record.iter().map(|name| name.trim().to_owned()).collect();
        let roles = part.roles(line, columns, expected)?;
        let mut examples = 0_usize;
        while let Some(line) = rows.advance()? {
            if rows.record.len() != roles.len() {
                let message = format!("found {} fields; the header has {} columns", rows.record.len(), roles.len());
                return Err(part.wrong(line, message));
            }
            let names = part.labels.known.len() + part.groups.known.len();
            for ((column, field), role) in rows.record.iter().map(str::trim).enumerate().zip(&roles) {
                part.take(line, column, field, *role)?;
            }
            let names = part.labels.known.len() + part.groups.known.len() - names;
            rows.keep(names as u64 * (96 + rows.record.as_slice().len() as u64))?;
            examples += 1;
            if part.features.len() > VALUES_MAX || examples > VALUES_MAX {
                return Err(DataError::TooMany { path: path.to_owned(), limit: VALUES_MAX, what: "numbers" });
            }
        }
        if examples == 0 {
            return Err(part.wrong(line, "has a header only; expected at least one row after it".to_owned()));
        }
        Ok(part)
    }

    fn wrong(&self, line: u64, message: String) -> DataError {
        DataError::Table { path: self.path.to_owned(), line, message }
    }

    fn wrong_field(&self, line: u64, column: &str, found: &str, expected: impl Into<String>) -> DataError {
        // A field may be a whole book.
        let found = found.chars().take(80).collect();
        DataError::Field {
            path: self.path.to_owned(),
            line,
            column: column.to_owned(),
            found,
            expected: expected.into(),
        }
    }

    /// The use of each column.
    fn roles(&self, line: u64, columns: &CsvColumns, expected: Option<&[String]>) -> Result<Vec<Role>, DataError> {
        if self.header.len() > COLUMNS_MAX {
            let columns = self.header.len();
            return Err(self.wrong(line, format!("there are {columns} columns; at most {COLUMNS_MAX} are read")));
        }
        let mut known = BTreeSet::new();
        for (column, name) in self.header.iter().enumerate() {
            if name.is_empty() {
                return Err(self.wrong(line, format!("column {} has no name; expected a header of names", column + 1)));
            }
            if !known.insert(name) {
                return Err(self.wrong(line, format!("there are two columns {name:?}; expected each name once")));
            }
        }
        if let Some(expected) = expected
            && self.header != expected
        {
            let column = self.header.iter().zip(expected).take_while(|(found, expected)| found == expected).count();
            let name = |header: &[String]| header.get(column).map_or("nothing".to_owned(), |name| format!("{name:?}"));
            let (found, expected) = (name(&self.header), name(expected));
            return Err(
                self.wrong(line, format!("column {} is {found}; the training file has {expected} there", column + 1))
            );
        }
        let wanted = |column: &str, what: &str| match self.header.iter().position(|name| name == column) {
            Some(column) => Ok(column),
            None => Err(self.wrong(line, format!("there is no column {column:?} ({what}); known: {}", self.listed()))),
        };
        let mut roles = vec![Role::Feature; self.header.len()];
        let (role, what) = match columns.answer {
            Answer::Label(_) => (Role::Label, "the label"),
            Answer::Target(_) => (Role::Target, "the target"),
        };
        let answer = wanted(columns.answer.column(), what)?;
        roles[answer] = role;
        if let Some(group) = &columns.group {
            let column = wanted(group, "the group")?;
            if column == answer {
                return Err(self.wrong(line, format!("column {group:?} cannot be both {what} and the group")));
            }
            roles[column] = Role::Group;
        }
        let features = roles.iter().filter(|role| **role == Role::Feature).count();
        if features == 0 {
            return Err(self.wrong(line, "there is no column of features".to_owned()));
        }
        match columns.shape {
            Some(shape) if shape.checked_len() != Some(features) => {
                Err(self.wrong(line, format!("there are {features} columns of features; expected a shape's {shape}")))
            }
            _ => Ok(roles),
        }
    }

    /// The names of the columns, as far as a person reads them.
    fn listed(&self) -> String {
        let shown = self.header.iter().take(20).map(String::as_str).collect::<Vec<_>>().join(", ");
        if self.header.len() > 20 { format!("{shown}, …") } else { shown }
    }

    fn take(&mut self, line: u64, column: usize, field: &str, role: Role) -> Result<(), DataError> {
        match role {
            Role::Feature => self.features.push(self.number(line, column, field)?),
            Role::Target => self.targets.push(self.number(line, column, field)?),
            Role::Label | Role::Group if field.is_empty() => {
                return Err(self.wrong_field(line, &self.header[column], field, "a name or a number"));
            }
            Role::Label if field.parse::<f64>().is_ok_and(f64::is_nan) => {
                let expected = "a class, a name or a number; NaN stands for a missing value";
                return Err(self.wrong_field(line, &self.header[column], field, expected));
            }
            Role::Label | Role::Group if field.len() > NAME_MAX => {
                let expected = format!("a name of at most {NAME_MAX} bytes");
                return Err(self.wrong_field(line, &self.header[column], field, expected));
            }
            Role::Group => {
                self.groups.push(field, line);
                if self.groups.known.len() > GROUPS_MAX {
                    let path = self.path.to_owned();
                    return Err(DataError::TooMany { path, limit: GROUPS_MAX, what: "groups" });
                }
            }
            Role::Label => {
                self.labels.push(field, line);
                if self.labels.known.len() > CLASSES_MAX {
                    let expected = format!(
                        "one of at most {CLASSES_MAX} classes, and {CLASSES_MAX} others stand before it (a column of numbers \
                         to predict is given as target, not as label)"
                    );
                    return Err(self.wrong_field(line, &self.header[column], field, expected));
                }
            }
        }
        Ok(())
    }

    fn number(&self, line: u64, column: usize, field: &str) -> Result<f32, DataError> {
        match field.parse::<f32>() {
            Ok(number) if number.is_finite() => Ok(number),
            _ => Err(self.wrong_field(line, &self.header[column], field, "a finite number within the range of f32")),
        }
    }

    fn into_dataset(self, columns: &CsvColumns, classes: usize) -> Dataset {
        let targets = match columns.answer {
            Answer::Label(_) => {
                Targets::Classes { labels: self.labels.rows.iter().map(|&class| class as u8).collect(), classes }
            }
            Answer::Target(_) => Targets::Values(self.targets),
        };
        let width = self.features.len() / targets.len();
        let features =
            Array2::from_shape_vec((targets.len(), width), self.features).expect("every row has all columns");
        let data = Dataset::new(features, targets);
        let data = if columns.group.is_some() { data.with_groups(self.groups.rows) } else { data };
        match columns.shape {
            Some(shape) => data.with_shape(shape),
            None => data,
        }
    }
}

#[cfg(test)]
mod tests;
