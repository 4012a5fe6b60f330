//! Triplets: a table says which item a user prefers to which other, instead of drawing the others.
//!
//! # Definition
//! A CSV table with the columns `user`, `positive` and `negative`, by these names and in any order, others not being
//! read. Ids are those of the ratings. The positive item of a triplet is one of the user's training ratings, the
//! negative one an item outside them. The same triplet may stand there several times; the order is that of the file.
//! Training ratings without a triplet are not trained on.
//!
//! Triplets whose positive is one of the user's ratings for validation are kept apart ([`Triplets::valid`]). Ratings of
//! which there is none are counted ([`Triplets::missing`]): all for training, and, if the table has any of them, those
//! for validation.
//!
//! # Inputs
//! RFC 4180, plain or gzip (told by the first two bytes).
//!
//! # Trust
//! None: an id that is not there, or a triplet that cannot be, is an error with file, line and column.

use super::{Part, RatingsSplit};
use crate::data::DataError;
use crate::data::rows::Rows;
use crate::ranking::ItemLists;
use std::path::Path;

/// The most triplets of a file: 2^28.
pub const TRIPLETS_MAX: usize = 1 << 28;

/// A user's preference of one item over another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Triplet {
    /// Number of the user.
    pub user: u32,
    /// Number of the item that is preferred.
    pub positive: u32,
    /// Number of the other item.
    pub negative: u32,
}

/// The triplets of a table, each list in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Triplets {
    /// Triplets of ratings for training.
    pub train: Vec<Triplet>,
    /// Triplets of ratings for validation.
    pub valid: Vec<Triplet>,
    /// Ratings without a triplet; empty if all have one.
    pub missing: Option<Missing>,
}

/// Ratings of which a table has no triplet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// How many for training.
    pub train: usize,
    /// How many for validation; 0 where the table has no triplet of any.
    pub valid: usize,
    /// User and item of the first: of those for training, or else of those for validation, the one with the smallest
    /// numbers.
    pub first: (u32, u32),
}

/// Which ratings of a part have a triplet.
struct Covered<'a> {
    lists: &'a ItemLists,
    /// Where each user's ratings begin.
    begin: Vec<usize>,
    is_covered: Vec<bool>,
}

impl<'a> Covered<'a> {
    fn new(lists: &'a ItemLists, users: usize) -> Self {
        let mut begin = vec![0];
        begin.extend((0..users as u32).scan(0, |sum, user| {
            *sum += lists.of(user).len();
            Some(*sum)
        }));
        let all = begin[users];
        Self { lists, begin, is_covered: vec![false; all] }
    }

    /// Notes a triplet of a rating, if the part has that.
    fn note(&mut self, user: u32, item: u32) -> bool {
        let place = self.lists.of(user).binary_search(&item);
        place.map(|place| self.is_covered[self.begin[user as usize] + place] = true).is_ok()
    }

    /// How many have none, and the first of them.
    fn missing(&self) -> (usize, Option<(u32, u32)>) {
        let count = self.is_covered.iter().filter(|is| !**is).count();
        let first = self.is_covered.iter().position(|is| !is).map(|place| {
            let user = self.begin.partition_point(|&begin| begin <= place) - 1;
            (user as u32, self.lists.of(user as u32)[place - self.begin[user]])
        });
        (count, first)
    }
}

const COLUMNS: [&str; 3] = ["user", "positive", "negative"];

/// Reads triplets about the users and items of a split.
///
/// # Errors
/// See [`DataError`]; file, line and column of the first thing that is wrong.
pub fn read_triplets(path: &Path, split: &RatingsSplit) -> Result<Triplets, DataError> {
    let [train, valid] = [Part::Train, Part::Valid].map(|part| split.lists(part));
    let mut rows = Rows::open(path)?;
    let table = |line, message| DataError::Table { path: path.to_owned(), line, message };
    let line =
        rows.advance()?.ok_or_else(|| table(1, "is empty; expected a header, the names of the columns".into()))?;
    let width = rows.record.len();
    let mut places = [0; 3];
    for (place, name) in places.iter_mut().zip(COLUMNS) {
        let found = rows.record.iter().position(|column| column.trim() == name);
        *place = found.ok_or_else(|| table(line, format!("there is no column {name:?}; expected {COLUMNS:?}")))?;
    }
    let mut triplets = Triplets::default();
    let [mut trained, mut validated] = [&train, &valid].map(|lists| Covered::new(lists, split.users()));
    while let Some(line) = rows.advance()? {
        if rows.record.len() != width {
            let message = format!("found {} fields; the header has {width} columns", rows.record.len());
            return Err(table(line, message));
        }
        let field = |column: usize| rows.record[places[column]].trim();
        let wrong = |column: usize, expected: &str| DataError::Field {
            path: path.to_owned(),
            line,
            column: COLUMNS[column].to_owned(),
            found: field(column).chars().take(80).collect(),
            expected: expected.to_owned(),
        };
        let ids = [&split.data.user_ids, &split.data.item_ids, &split.data.item_ids];
        let mut numbers = [0; 3];
        for (column, (number, ids)) in numbers.iter_mut().zip(ids).enumerate() {
            let expected = if column == 0 { "a user of the ratings" } else { "an item of the ratings" };
            *number = ids.find(field(column)).ok_or_else(|| wrong(column, expected))?;
        }
        let [user, positive, negative] = numbers;
        let is_for_training = trained.note(user, positive);
        if !is_for_training && !validated.note(user, positive) {
            return Err(wrong(1, "an item that the user has rated, among the ratings for training or validation"));
        }
        if positive == negative {
            return Err(wrong(2, "another item than the positive one"));
        }
        if train.of(user).binary_search(&negative).is_ok() {
            return Err(wrong(2, "an item that is not among the user's ratings for training"));
        }
        let list = if is_for_training { &mut triplets.train } else { &mut triplets.valid };
        list.push(Triplet { user, positive, negative });
        if triplets.train.len() + triplets.valid.len() > TRIPLETS_MAX {
            return Err(DataError::TooMany { path: path.to_owned(), limit: TRIPLETS_MAX, what: "triplets" });
        }
    }
    if triplets.train.is_empty() {
        return Err(table(
            line,
            "has no triplet of a rating for training; expected at least one after the header".into(),
        ));
    }
    let (train, first) = trained.missing();
    let (valid, first_valid) = if triplets.valid.is_empty() { (0, None) } else { validated.missing() };
    triplets.missing = first.or(first_valid).map(|first| Missing { train, valid, first });
    Ok(triplets)
}

#[cfg(test)]
mod tests {
    use super::super::tests::split_of;
    use super::*;

    fn read(text: &str) -> Result<Triplets, String> {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("t.csv");
        std::fs::write(&path, text).unwrap();
        let split = split_of(&[(0, 0, 1.0), (0, 1, 1.0), (1, 2, 1.0), (0, 3, 1.0)], 1);
        read_triplets(&path, &split).map_err(|error| error.to_string())
    }

    #[test]
    fn triplets_are_read_in_order_with_repetition() {
        let triplet = |user, positive, negative| Triplet { user, positive, negative };
        let found = read("negative,user,more,positive\n2,0,x, 1\n3,1,,2\n2,0,x,1\n").unwrap();
        assert_eq!(found.train, [triplet(0, 1, 2), triplet(1, 2, 3), triplet(0, 1, 2)]);
        assert!(found.valid.is_empty());
        assert_eq!(found.missing, Some(Missing { train: 1, valid: 0, first: (0, 0) }));
        assert_eq!(read("user,positive,negative\n0,0,2\n1,2,3\n0,1,2\n").unwrap().missing, None);
    }

    /// Users 0 to 2 have two ratings for training each, of which one of user 1 and one of user 2 have no triplet; of
    /// the two for validation one has.
    #[test]
    fn ratings_without_a_triplet_are_counted() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("t.csv");
        let train = [(0, 0), (0, 1), (1, 0), (1, 2), (2, 1), (2, 3)];
        let all: Vec<_> = train.iter().chain(&[(0, 4), (2, 4)]).map(|&(user, item)| (user, item, 1.0)).collect();
        let mut split = split_of(&all, 2);
        split.valid = std::mem::take(&mut split.test);
        let missing = |rows: &str| {
            std::fs::write(&path, format!("user,positive,negative\n{rows}")).unwrap();
            read_triplets(&path, &split).unwrap().missing
        };
        let whole = "0,0,2\n0,1,2\n1,0,1\n1,2,1\n2,1,0\n2,3,0\n";
        assert_eq!(missing(whole), None, "a table need not have any triplet for validation");
        let some = "0,0,2\n0,1,2\n1,0,1\n2,3,0\n2,4,0\n";
        assert_eq!(missing(some), Some(Missing { train: 2, valid: 1, first: (1, 2) }));
        let first = (0, 4);
        assert_eq!(missing(&format!("{whole}2,4,0\n")), Some(Missing { train: 0, valid: 1, first }));
    }

    #[test]
    fn what_cannot_be_is_named_with_line_and_column() {
        for (text, says) in [
            ("", "t.csv:1: is empty"),
            ("user,positive\n", "t.csv:1: there is no column \"negative\""),
            ("user,positive,negative\n", "t.csv:1: has no triplet of a rating for training"),
            ("user,positive,negative\n0,1\n", "t.csv:2: found 2 fields; the header has 3 columns"),
            ("user,positive,negative\n0,1,2\n7,1,2\n", "t.csv:3: column \"user\": found \"7\"; expected a user"),
            ("user,positive,negative\n0,1,9\n", "t.csv:2: column \"negative\": found \"9\"; expected an item"),
            ("user,positive,negative\n0,2,1\n", "column \"positive\": found \"2\"; expected an item that the user has"),
            // That rating is for testing.
            ("user,positive,negative\n0,3,1\n", "column \"positive\": found \"3\"; expected an item that the user has"),
            ("user,positive,negative\n0,1,1\n", "column \"negative\": found \"1\"; expected another item"),
            ("user,positive,negative\n0,1,0\n", "column \"negative\": found \"0\"; expected an item that is not among"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
