//! Reviews of a category of Amazon's products, as they are published.
//!
//! # Definition
//! | file | user, item, rating, time |
//! |---|---|
//! | lines of JSON, 2014 and 2018: `reviews_CATEGORY_5.json`, `CATEGORY.json` | `reviewerID`, `asin`, `overall`, `unixReviewTime` |
//! | lines of JSON, 2023: `CATEGORY.jsonl` | `user_id`, `parent_asin`, `rating`, `timestamp` |
//! | a table with a header that has the names of one of these lines | by these names |
//! | a table without a header, 2014: `ratings_CATEGORY.csv` | in this order: `order = "user-item"` |
//! | a table without a header, 2018: `CATEGORY.csv` | the item first: `order = "item-user"` |
//!
//! The file's first characters tell lines of JSON, its first line the header. Other keys and columns are not read:
//! texts of reviews, names, pictures. A pair of user and item that is there several times counts once, with its first
//! line, and ratings outside the scenario's `range` are dropped; both are counted.
//!
//! # Inputs
//! Plain or gzip, told by the first two bytes.
//!
//! # Source
//! J. McAuley, C. Targett, Q. Shi, A. van den Hengel, "Image-based recommendations on styles and substitutes", SIGIR
//! 2015 (2014); J. Ni, J. Li, J. McAuley, "Justifying recommendations using distantly-labeled reviews and fine-grained
//! aspects", EMNLP 2019 (2018); Y. Hou et al., "Bridging language and items for retrieval and recommendation",
//! arXiv:2403.03952 (2023).
//!
//! # Trust
//! None: a line that is no such review is an error with file and line.
//!
//! # Example
//! ```toml
//! data = { amazon = { file = "reviews_Video_Games_5.json.gz" } }
//! data = { amazon = { file = "ratings_Video_Games.csv", order = "user-item" } }
//! ```

use super::source::RatingsSettings;
use super::table::{Headings, Row, Table};
use super::{Filters, Ratings};
use crate::data::bytes::ByteReader;
use crate::data::rows::{ROW_MAX, Rows};
use crate::data::{DataError, located};
use fedgenie_core::config::Complaint;
use fedgenie_core::rng::Streams;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// `{ amazon = { .. } }`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AmazonConfig {
    /// File of reviews: lines of JSON, or a table.
    pub file: PathBuf,
    /// What comes first in a table without a header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
}

/// What comes first in a table without a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// The user, as in 2014.
    UserItem,
    /// The item, as in 2018.
    ItemUser,
}

impl RatingsSettings for AmazonConfig {
    fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        self.file = located(&self.file, base, data);
    }

    fn files(&self) -> Vec<PathBuf> {
        vec![self.file.clone()]
    }

    fn check(&self) -> Result<(), Complaint> {
        Ok(())
    }

    fn load(&self, filters: &Filters, _: &Streams) -> Result<Ratings, DataError> {
        let mut table = Table::new(filters, false);
        table.begin_file(&self.file);
        let mut reader = ByteReader::open(&self.file)?;
        let start = reader.take(64)?;
        match start.trim_ascii_start().first() {
            Some(b'{') if self.order.is_none() => read_lines(&self.file, &mut table)?,
            Some(b'{') => return Err(has_names(&self.file, "lines of JSON have")),
            _ => self.read_table(&mut table)?,
        }
        table.finish(&Headings::PLAIN)
    }
}

fn wrong(path: &Path, line: u64, message: String) -> DataError {
    DataError::Table { path: path.to_owned(), line, message }
}

fn has_names(path: &Path, what: &str) -> DataError {
    wrong(path, 1, format!("{what} names, so that order says nothing; leave it out"))
}

/// What is read of a line of JSON.
#[derive(Deserialize)]
struct Review<'a> {
    #[serde(borrow, alias = "reviewerID", alias = "user_id")]
    user: Cow<'a, str>,
    #[serde(borrow, default)]
    asin: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    parent_asin: Option<Cow<'a, str>>,
    #[serde(alias = "overall")]
    rating: f64,
    #[serde(alias = "unixReviewTime", alias = "timestamp")]
    time: f64,
}

fn read_lines(path: &Path, table: &mut Table<'_>) -> Result<(), DataError> {
    let mut reader = BufReader::with_capacity(1 << 16, ByteReader::open(path)?);
    let (mut text, mut line) = (Vec::new(), 0);
    loop {
        text.clear();
        let read = std::io::Read::take(&mut reader, ROW_MAX).read_until(b'\n', &mut text);
        let read = read.map_err(|source| reader.get_ref().unreadable(source))?;
        if read == 0 {
            return Ok(());
        }
        line += 1;
        if read as u64 == ROW_MAX {
            return Err(wrong(path, line, format!("the line is longer than {ROW_MAX} bytes")));
        }
        if text.trim_ascii().is_empty() {
            continue;
        }
        let expected = "expected a review: reviewerID or user_id, asin or parent_asin, overall or rating, unixReviewTime or timestamp";
        let refuse = |fault: String| wrong(path, line, format!("found {fault}; {expected}"));
        let review: Review<'_> = serde_json::from_slice(&text).map_err(|fault| refuse(fault.to_string()))?;
        // Of 2023 the product; its asin is that of a variant.
        let Some(item) = review.parent_asin.or(review.asin) else { return Err(refuse("no item".to_owned())) };
        let (rating, time) = (review.rating.to_string(), review.time.to_string());
        let (value, time) = (Some(&*rating), Some(&*time));
        let row = Row { user: review.user.trim(), item: item.trim(), value, time, ..Row::default() };
        table.push(line, row, &Headings::PLAIN)?;
    }
}

/// The names of user, item, rating and time in headers.
const NAMES: [&[&str]; 4] = [
    &["reviewerID", "user_id", "reviewer_id"],
    &["parent_asin", "asin", "item_id"],
    &["overall", "rating"],
    &["unixReviewTime", "timestamp", "unix_time"],
];

impl AmazonConfig {
    fn read_table(&self, table: &mut Table<'_>) -> Result<(), DataError> {
        let path = &self.file;
        let mut rows = Rows::open(path)?;
        let Some(mut line) = rows.advance()? else { return Err(wrong(path, 1, "is empty".to_owned())) };
        let place =
            |names: &&[&str]| names.iter().find_map(|&name| rows.record.iter().position(|is| is.trim() == name));
        let named: Vec<Option<usize>> = NAMES.iter().map(place).collect();
        let (places, fields) = match (named[..].try_into().map(|all: [Option<usize>; 4]| all), self.order) {
            (Ok([Some(user), Some(item), Some(value), Some(time)]), None) => {
                let fields = rows.record.len();
                match rows.advance()? {
                    Some(first) => line = first,
                    None => return Err(wrong(path, line, "has a header only".to_owned())),
                }
                ([user, item, value, time], fields)
            }
            (Ok([Some(_), Some(_), Some(_), Some(_)]), Some(_)) => return Err(has_names(path, "the columns have")),
            (_, Some(Order::UserItem)) => ([0, 1, 2, 3], 4),
            (_, Some(Order::ItemUser)) => ([1, 0, 2, 3], 4),
            (_, None) => {
                let message = "there is no header with a user, an item, a rating and a time; say order = \"user-item\" \
                               of a file without one from 2014 (ratings_CATEGORY.csv), order = \"item-user\" of one from \
                               2018 (CATEGORY.csv)";
                return Err(wrong(path, line, message.to_owned()));
            }
        };
        loop {
            if rows.record.len() != fields {
                let message = format!("found {} fields; expected {fields}", rows.record.len());
                return Err(wrong(path, line, message));
            }
            let [user, item, value, time] = places.map(|place| rows.record[place].trim());
            let row = Row { user, item, value: Some(value), time: Some(time), ..Row::default() };
            table.push(line, row, &Headings::PLAIN)?;
            match rows.advance()? {
                Some(next) => line = next,
                None => return Ok(()),
            }
        }
    }
}

#[cfg(test)]
mod tests;
