//! CSV tables of ratings: comma-separated values with a header, columns by name.
//!
//! # Definition
//! A row is a rating: of a `user`, of an `item`, and, in columns that have to be named to be read, its value
//! (`rating`), when it was made (`time`, in any unit), a `group` that it belongs to (for `partition = "by-column"`), and whether it
//! is for `train`, `valid` or `test` (`split`). Other columns are not read. Without `rating` every value is 1. Spaces
//! around a field do not count, nor do empty lines. The files of one data set share users, items and groups.
//!
//! # Inputs
//! RFC 4180 (comma, quotes where needed), plain or gzip (told by the first two bytes): one `file`, or `train` and
//! `test` and, if there is one, `valid`.
//!
//! # Trust
//! None: a pair of user and item that is there twice, a rating outside `range`, an id that is not below `users` or
//! `items`, a field that is empty or no finite number is an error with file, line and column.
//!
//! # Example
//! ```toml
//! data = { csv = { file = "ratings.csv.gz", rating = "stars", time = "unix_time" } }
//! data = { csv = { train = "train.csv", test = "test.csv", user = "reader", item = "book" } }
//! ```

use super::source::RatingsSettings;
use super::table::{Headings, Row, Table};
use super::{Filters, Part, Ratings};
use crate::data::rows::Rows;
use crate::data::{DataError, located};
use fedgenie_core::config::Complaint;
use fedgenie_core::rng::Streams;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// `{ csv = { .. } }`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RatingsCsvConfig")]
pub struct CsvConfig {
    /// File of all ratings, plain or gzip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// File of ratings for training, instead of `file`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train: Option<PathBuf>,
    /// File of ratings for validation, beside `train`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid: Option<PathBuf>,
    /// File of ratings for testing, beside `train`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<PathBuf>,
    /// Column of the user.
    #[serde(default = "user")]
    pub user: String,
    /// Column of the item.
    #[serde(default = "item")]
    pub item: String,
    /// Column of the rating; without it, every rating is 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rating: Option<String>,
    /// Column of the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Column of the group, for `partition = "by-column"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Column that says `train`, `valid` or `test`; of `file` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<String>,
}

fn user() -> String {
    "user".to_owned()
}

fn item() -> String {
    "item".to_owned()
}

impl Part {
    /// The value of a column of splits.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "train" => Some(Self::Train),
            "valid" => Some(Self::Valid),
            "test" => Some(Self::Test),
            _ => None,
        }
    }
}

impl RatingsSettings for CsvConfig {
    fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        for file in [&mut self.file, &mut self.train, &mut self.valid, &mut self.test].into_iter().flatten() {
            *file = located(file, base, data);
        }
    }

    fn files(&self) -> Vec<PathBuf> {
        [&self.file, &self.train, &self.valid, &self.test].into_iter().flatten().cloned().collect()
    }

    fn check(&self) -> Result<(), Complaint> {
        let expected = "expected file (all ratings) or train and test (and, if there is one, valid)";
        let found = match (&self.file, &self.train, &self.test) {
            (Some(_), None, None) if self.valid.is_none() => None,
            (None, Some(_), Some(_)) if self.split.is_none() => None,
            (None, Some(_), Some(_)) => {
                let message = "found a column beside files train and test, which say the same; leave one out";
                return Err(Complaint::new("split", message));
            }
            (Some(_), _, _) => Some("file beside train, valid or test"),
            (None, Some(_), None) => Some("train without test"),
            (None, None, _) => Some("neither file nor train"),
        };
        if let Some(found) = found {
            return Err(Complaint::new("", format!("found {found}; {expected}")));
        }
        let columns = self.columns();
        for (place, (key, column)) in columns.iter().enumerate() {
            if let Some((other, _)) = columns[..place].iter().find(|(_, other)| other == column) {
                let message = format!("found {column:?}, which is {other} as well; expected a column of its own");
                return Err(Complaint::new(*key, message));
            }
        }
        Ok(())
    }

    fn has_split(&self) -> bool {
        self.train.is_some() || self.split.is_some()
    }

    fn load(&self, filters: &Filters, _: &Streams) -> Result<Ratings, DataError> {
        let headings = self.headings();
        let mut table = Table::new(filters, true);
        let parts = [(&self.file, None), (&self.train, Some(Part::Train)), (&self.valid, Some(Part::Valid))];
        for (path, part) in parts.into_iter().chain([(&self.test, Some(Part::Test))]) {
            if let Some(path) = path {
                self.read(path, part, &headings, &mut table)?;
            }
        }
        table.finish(&headings)
    }
}

impl CsvConfig {
    /// The columns that are read, with the keys that name them.
    fn columns(&self) -> Vec<(&'static str, &str)> {
        let mut columns = vec![("user", &*self.user), ("item", &*self.item)];
        for (key, column) in
            [("rating", &self.rating), ("time", &self.time), ("group", &self.group), ("split", &self.split)]
        {
            columns.extend(column.as_deref().map(|column| (key, column)));
        }
        columns
    }

    fn headings(&self) -> Headings<'_> {
        Headings {
            user: &self.user,
            item: &self.item,
            value: self.rating.as_deref().unwrap_or("rating"),
            time: self.time.as_deref().unwrap_or("time"),
            group: self.group.as_deref().unwrap_or("group"),
        }
    }

    fn read(
        &self,
        path: &Path,
        part: Option<Part>,
        headings: &Headings<'_>,
        table: &mut Table<'_>,
    ) -> Result<(), DataError> {
        let mut rows = Rows::open(path)?;
        table.begin_file(path);
        let wrong = |line, message| Err(DataError::Table { path: path.to_owned(), line, message });
        let Some(line) = rows.advance()? else {
            return wrong(1, "is empty; expected a header, the names of the columns".to_owned());
        };
        let header: Vec<String> = rows.record.iter().map(|name| name.trim().to_owned()).collect();
        let mut places = [None; 6];
        for (key, column) in self.columns() {
            let mut found = header.iter().enumerate().filter(|(_, name)| *name == column).map(|(place, _)| place);
            let (place, again) = (found.next(), found.next());
            if again.is_some() {
                return wrong(line, format!("there are two columns {column:?}; expected each name once"));
            }
            if place.is_none() {
                let known = header.iter().take(20).map(String::as_str).collect::<Vec<_>>().join(", ");
                return wrong(line, format!("there is no column {column:?} (the {key}); known: {known}"));
            }
            places[KEYS.iter().position(|known| *known == key).expect("every key has its place")] = place;
        }
        let mut is_empty = true;
        while let Some(line) = rows.advance()? {
            if rows.record.len() != header.len() {
                let message = format!("found {} fields; the header has {} columns", rows.record.len(), header.len());
                return wrong(line, message);
            }
            let field = |place: usize| places[place].map(|place| rows.record[place].trim());
            let said = field(5).map(|text| {
                Part::parse(text).ok_or_else(|| DataError::Field {
                    path: path.to_owned(),
                    line,
                    column: self.split.clone().unwrap_or_default(),
                    found: text.chars().take(80).collect(),
                    expected: "train, valid or test".to_owned(),
                })
            });
            let row = Row {
                user: field(0).unwrap_or_default(),
                item: field(1).unwrap_or_default(),
                value: field(2),
                time: field(3),
                group: field(4),
                part: said.transpose()?.or(part),
            };
            table.push(line, row, headings)?;
            is_empty = false;
        }
        if is_empty {
            return wrong(line, "has a header only; expected at least one row after it".to_owned());
        }
        Ok(())
    }
}

/// The keys of columns, in the order of a row's fields.
const KEYS: [&str; 6] = ["user", "item", "rating", "time", "group", "split"];

#[cfg(test)]
mod tests;
