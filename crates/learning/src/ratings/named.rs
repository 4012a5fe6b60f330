//! Published sets of ratings: a folder, told by its files.
//!
//! # Definition
//! | name | file | contents of a line |
//! |---|---|---|
//! | `ml-100k` | `u.data` | user, item, rating, time in seconds; separated by tabs |
//! | `ml-1m` | `ratings.dat`, else `ratings_with_order.dat` | user, item, rating, time in seconds or rank in time within the user, which may be missing; separated by `::` |
//! | `video-games` | `video_games_5core_sasrec.txt` or `Video.txt`, also in a folder `amazon` beside | user, item, separated by a space; a user's lines are in the order of time; no rating |
//! | `ciao` | `ratings.tsv` | user, product, category, rating, helpfulness; no time |
//! | `epinions` | `ratings.tsv` | user, item, rating, fold; no time |
//! | `filmtrust` | `ratings.tsv` | user, item, code of the rating, split; no time |
//!
//! The last three are told apart by their headers. A rating without time counts as made before all others.
//!
//! # Inputs
//! Each file plain or packed with gzip, whose name then ends in `.gz`.
//!
//! # Source
//! F. M. Harper, J. A. Konstan, "The MovieLens datasets: history and context", ACM TiiS 5(4), 2015; W.-C. Kang, J.
//! McAuley, "Self-attentive sequential recommendation", ICDM 2018 (Video Games); J. Tang, H. Gao, H. Liu, "mTrust:
//! discerning multi-faceted trust in a connected world", WSDM 2012 (Ciao, Epinions); G. Guo, J. Zhang, N. Yorke-Smith, "A
//! novel Bayesian similarity measure for recommender systems", IJCAI 2013 (FilmTrust).
//!
//! # Trust
//! None: a malformed line is an error with file and line. What is known to be wrong in these sets is dropped and
//! counted: repeated pairs, and ratings outside the `range` that a scenario gives.

use super::table::{Headings, Row, Table};
use super::{Filters, Part, Ratings};
use crate::data::rows::Rows;
use crate::data::{DataError, NO_FOLDER};
use fedgenie_core::catalogue::Entry;
use std::path::{Path, PathBuf};

const SOURCE: &str = include_str!("named.rs");

/// The sets for `list` and `describe`, under the names of their folders.
pub const ENTRIES: [Entry; 6] = [
    entry("ml-100k", "MovieLens 100K: 100,000 ratings of 1,682 films by 943 users."),
    entry("ml-1m", "MovieLens 1M: 1,000,209 ratings of 3,706 films by 6,040 users."),
    entry("video-games", "Amazon, Video Games: 287,107 reviews of 23,715 games by 31,013 users."),
    entry("ciao", "Ciao: 282,650 ratings of 105,114 products by 7,375 users."),
    entry("epinions", "Epinions: 912,441 ratings of 296,277 products by 22,164 users."),
    entry("filmtrust", "FilmTrust: 18,662 ratings of 1,957 films by 740 users, with a split of its own."),
];

const fn entry(name: &'static str, summary: &'static str) -> Entry {
    Entry { name, summary, source: SOURCE }
}

/// A set whose files are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// MovieLens 100K.
    Ml100k,
    /// MovieLens 1M.
    Ml1m,
    /// Amazon, Video Games.
    VideoGames,
    /// Ciao.
    Ciao,
    /// Epinions.
    Epinions,
    /// FilmTrust, with its own split.
    FilmTrust,
}

const FILES: [(&str, Named); 5] = [
    ("u.data", Named::Ml100k),
    ("ratings.dat", Named::Ml1m),
    ("ratings_with_order.dat", Named::Ml1m),
    ("video_games_5core_sasrec.txt", Named::VideoGames),
    ("Video.txt", Named::VideoGames),
];

/// The file of the sets with a header.
const TABLE: &str = "ratings.tsv";

const HEADERS: [(&[&str], Named); 3] = [
    (&["user_id", "product_id", "category_id", "rating", "helpfulness"], Named::Ciao),
    (&["user_id", "item_id", "rating", "fold"], Named::Epinions),
    (&["user", "item", "rating_code", "split"], Named::FilmTrust),
];

/// The meaning of a line's fields, by their place.
struct Format {
    separator: u8,
    fields: usize,
    user: usize,
    item: usize,
    value: Option<usize>,
    time: Time,
    split: Option<usize>,
    headings: Headings<'static>,
}

enum Time {
    None,
    Field(usize),
    /// Lines are in the order of time.
    Line,
}

impl Named {
    /// Whether the set says which ratings are for testing.
    pub fn has_split(self) -> bool {
        self == Self::FilmTrust
    }

    fn format(self) -> Format {
        let plain = Headings::PLAIN;
        let usual = |fields, value, headings| Format {
            separator: b'\t',
            fields,
            user: 0,
            item: 1,
            value: Some(value),
            time: Time::None,
            split: None,
            headings,
        };
        match self {
            Self::Ml100k => Format { time: Time::Field(3), ..usual(4, 2, plain) },
            // Between two colons is an empty field.
            Self::Ml1m => Format { separator: b':', item: 2, time: Time::Field(6), ..usual(7, 4, plain) },
            Self::VideoGames => Format { separator: b' ', value: None, time: Time::Line, ..usual(2, 0, plain) },
            Self::Ciao => usual(5, 3, Headings { user: "user_id", item: "product_id", ..plain }),
            Self::Epinions => usual(4, 2, Headings { user: "user_id", item: "item_id", ..plain }),
            Self::FilmTrust => Format { split: Some(3), ..usual(4, 2, Headings { value: "rating_code", ..plain }) },
        }
    }
}

/// The folder that is meant: the set of games is one of several in `amazon`.
fn meant(folder: &Path) -> PathBuf {
    let beside = folder.with_file_name("amazon");
    let is_games = folder.file_name().is_some_and(|name| name == "video-games");
    if is_games && !folder.exists() && beside.is_dir() { beside } else { folder.to_owned() }
}

/// A file, plain or packed, if it is there.
pub(super) fn present(folder: &Path, name: &str) -> Option<PathBuf> {
    [folder.join(name), folder.join(format!("{name}.gz"))].into_iter().find(|path| path.is_file())
}

/// The file of a folder that holds the ratings, as far as it is there.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let folder = meant(folder);
    let names = FILES.iter().map(|&(name, _)| name).chain([TABLE]);
    names.filter_map(|name| present(&folder, name)).take(1).collect()
}

/// Which set a folder holds, and its file.
///
/// # Errors
/// If its files are those of none or of several.
pub fn recognise(folder: &Path) -> Result<(Named, PathBuf), DataError> {
    let folder = meant(folder);
    let mut found: Vec<(Named, PathBuf)> =
        FILES.iter().filter_map(|&(name, named)| Some((named, present(&folder, name)?))).collect();
    // The publisher's file comes first where both are there.
    found.dedup_by_key(|&mut (named, _)| named);
    if let Some(path) = present(&folder, TABLE) {
        found.push((told_by_header(&path)?, path));
    }
    let refuse = |found| {
        let files = FILES.iter().map(|(name, _)| *name).chain([TABLE]);
        let sets = ["ml-100k", "ml-1m", "ml-1m", "video-games", "video-games", "ciao, epinions or filmtrust"];
        let expected = files.zip(sets).map(|(name, set)| format!("{name} ({set})")).collect();
        Err(DataError::UnrecognisedRatings { folder: folder.clone(), found, expected })
    };
    match found.len() {
        1 => Ok(found.remove(0)),
        0 if folder.is_dir() => refuse("has no file of a known name"),
        0 if folder.is_file() => refuse("is a file, not a folder"),
        0 => refuse(NO_FOLDER),
        _ => refuse("has the files of two sets"),
    }
}

fn told_by_header(path: &Path) -> Result<Named, DataError> {
    let mut rows = Rows::open_separated(path, b'\t')?;
    let line = rows.advance()?.unwrap_or(1);
    let known = HEADERS.iter().find(|(header, _)| rows.record.iter().map(str::trim).eq(header.iter().copied()));
    known.map(|&(_, named)| named).ok_or_else(|| {
        let headers = HEADERS.map(|(header, _)| header.join(" ")).join("\", \"");
        let message = format!("the header is that of no known set; expected \"{headers}\", separated by tabs");
        DataError::Table { path: path.to_owned(), line, message }
    })
}

/// Reads the set that a folder holds.
///
/// # Errors
/// See [`DataError`]; file and line of the first thing that is wrong.
pub fn load_ratings_folder(folder: &Path, filters: &Filters) -> Result<Ratings, DataError> {
    let (named, path) = recognise(folder)?;
    let format = named.format();
    let mut rows = Rows::open_separated(&path, format.separator)?;
    let mut table = Table::new(filters, false);
    table.begin_file(&path);
    if HEADERS.iter().any(|&(_, other)| other == named) {
        rows.advance()?;
    }
    while let Some(line) = rows.advance()? {
        let field = |place: usize| rows.record.get(place).map_or("", str::trim);
        let wrong = |message: String| DataError::Table { path: path.clone(), line, message };
        if rows.record.len() != format.fields {
            return Err(wrong(format!("found {} fields; expected {}", rows.record.len(), format.fields)));
        }
        let part = format.split.map(|place| {
            let known = Part::parse(field(place));
            known.ok_or_else(|| wrong(format!("the split is {:?}; expected train, valid or test", field(place))))
        });
        let number = line.to_string();
        let row = Row {
            user: field(format.user),
            item: field(format.item),
            value: format.value.map(field),
            time: match format.time {
                Time::None => None,
                Time::Field(place) => Some(field(place)),
                Time::Line => Some(&number),
            },
            group: None,
            part: part.transpose()?,
        };
        table.push(line, row, &format.headings)?;
    }
    table.finish(&format.headings)
}

#[cfg(test)]
mod tests;
