//! The reader of a folder with ratings and trust; it drops unusable records.

use super::super::ids::{Column, Ids};
use super::super::named::present;
use super::super::table::{NAME_MAX, RATINGS_MAX, renumber, repeated};
use super::super::{Dropped, Part, Rating, Ratings};
use super::{SocialRatings, TRUST, files_of};
use crate::data::rows::Rows;
use crate::data::{DataError, NO_FOLDER};
use std::path::Path;
use std::sync::Arc;

/// Stars, and those of codes from 0 to 7.
const STARS: [f64; 2] = [1.0, 5.0];
const CODED: [f64; 2] = [0.5, 4.0];

/// Places of columns in a table of ratings.
struct Columns {
    user: usize,
    item: usize,
    category: Option<usize>,
    rating: usize,
    is_code: bool,
    split: Option<usize>,
}

impl Columns {
    fn find(rows: &Rows<'_>, line: u64) -> Result<Self, DataError> {
        let wrong = |message: String| DataError::Table { path: rows.path.to_owned(), line, message };
        if rows.record.is_empty() {
            return Err(wrong("the file is empty; expected a header and ratings, separated by tabs".to_owned()));
        }
        let place = |names: &[&str]| rows.record.iter().position(|name| names.contains(&name.trim()));
        for names in [
            &["user", "user_id"][..],
            &["item", "item_id", "product_id"],
            &["category", "category_id"],
            &["rating", "rating_code"],
            &["split"],
        ] {
            let found: Vec<&str> = rows.record.iter().map(str::trim).filter(|name| names.contains(name)).collect();
            if found.len() > 1 {
                return Err(wrong(format!("the header has the columns {}; expected one of them", found.join(" and "))));
            }
        }
        let must = |names: &[&str]| {
            place(names).ok_or_else(|| {
                let found: Vec<&str> = rows.record.iter().map(str::trim).collect();
                let message = format!(
                    "the header is \"{}\"; expected a column {}, separated by tabs",
                    found.join(" "),
                    names.join(" or ")
                );
                wrong(message)
            })
        };
        let code = place(&["rating_code"]);
        Ok(Self {
            user: must(&["user", "user_id"])?,
            item: must(&["item", "item_id", "product_id"])?,
            category: place(&["category", "category_id"]),
            rating: code.map_or_else(|| must(&["rating", "rating_code"]), Ok)?,
            is_code: code.is_some(),
            split: place(&["split"]),
        })
    }
}

/// Whether a table of ratings tells the test part.
pub fn has_split(path: &Path) -> bool {
    let header = || -> Result<bool, DataError> {
        let mut rows = Rows::open_separated(path, b'\t')?;
        rows.advance()?;
        Ok(rows.record.iter().any(|name| name.trim() == "split"))
    };
    // A file that cannot be read is refused when it is loaded.
    header().unwrap_or(false)
}

fn wrong(path: &Path, line: u64, column: &str, found: &str, expected: &str) -> DataError {
    let (path, column) = (path.to_owned(), column.to_owned());
    // A field may be a whole book.
    let found = found.chars().take(80).collect();
    DataError::Field { path, line, column, found, expected: expected.to_owned() }
}

/// Takes over the names of a row.
fn named<'a>(rows: &'a Rows<'_>, line: u64, place: usize, column: &str) -> Result<&'a str, DataError> {
    let name = rows.record.get(place).map_or("", str::trim);
    match name.len() {
        0 => Err(wrong(rows.path, line, column, name, "a name or a number")),
        1..=NAME_MAX => Ok(name),
        _ => Err(wrong(rows.path, line, column, name, "a name of at most 256 bytes")),
    }
}

/// Reads ratings and trust of a folder.
pub fn folder(folder: &Path, range: Option<[f64; 2]>) -> Result<SocialRatings, DataError> {
    let [Some(of_ratings), Some(of_trust)] = files_of(folder) else {
        let found = match () {
            () if folder.is_dir() => "has not both files",
            () if folder.is_file() => "is a file, not a folder",
            () => NO_FOLDER,
        };
        let expected = ["ratings.tsv", "trust.tsv (or social.tsv)"].map(str::to_owned).to_vec();
        return Err(DataError::MissingTables { folder: folder.to_owned(), found, expected });
    };
    if TRUST.iter().filter_map(|name| present(folder, name)).count() > 1 {
        let message = "there are trust.tsv and social.tsv; expected one table of trust".to_owned();
        return Err(DataError::Table { path: folder.to_owned(), line: 1, message });
    }
    let mut raw = Raw::default();
    let is_code = raw.read_ratings(&of_ratings)?;
    raw.read_trust(&of_trust)?;
    let range = range.unwrap_or(if is_code { CODED } else { STARS });
    let count = raw.values.len();
    let social = raw.finish(range);
    if social.ratings.ratings.is_empty() {
        let message = format!(
            "no rating is left of {count}: {} are of users without trust, {} outside the range from {} to {}",
            social.without_trust, social.ratings.dropped.outside, range[0], range[1]
        );
        return Err(DataError::Table { path: of_ratings, line: 1, message });
    }
    Ok(social)
}

/// Columns as they are read. Users are first those of ratings, then two for each line of trust.
#[derive(Default)]
pub(super) struct Raw {
    pub users: Column,
    pub items: Column,
    pub categories: Column,
    pub values: Vec<f32>,
    pub parts: Vec<Part>,
    pub trust: usize,
}

impl Raw {
    fn read_ratings(&mut self, path: &Path) -> Result<bool, DataError> {
        let mut rows = Rows::open_separated(path, b'\t')?;
        let line = rows.advance()?.unwrap_or(1);
        let columns = Columns::find(&rows, line)?;
        while let Some(line) = rows.advance()? {
            self.users.push(named(&rows, line, columns.user, "user")?);
            self.items.push(named(&rows, line, columns.item, "item")?);
            if let Some(place) = columns.category {
                self.categories.push(named(&rows, line, place, "category")?);
            }
            let field = named(&rows, line, columns.rating, "rating")?;
            let number = field.parse().ok().filter(|number: &f64| number.is_finite() && number.abs() < 1e30);
            let number = number.ok_or_else(|| wrong(path, line, "rating", field, "a finite number"))?;
            self.values.push(if columns.is_code { f64::midpoint(number, 1.0) } else { number } as f32);
            if let Some(place) = columns.split {
                let field = rows.record.get(place).map_or("", str::trim);
                let part = Part::parse(field);
                self.parts.push(part.ok_or_else(|| wrong(path, line, "split", field, "train, valid or test"))?);
            }
            if self.values.len() > RATINGS_MAX {
                return Err(DataError::TooMany { path: path.to_owned(), limit: RATINGS_MAX, what: "ratings" });
            }
        }
        Ok(columns.is_code)
    }

    fn read_trust(&mut self, path: &Path) -> Result<(), DataError> {
        let mut rows = Rows::open_separated(path, b'\t')?;
        rows.advance()?;
        if rows.record.len() < 2 {
            let found = if rows.record.is_empty() { "the file is empty" } else { "the header has one column" };
            let message = format!("{found}; expected two of users, separated by tabs");
            return Err(DataError::Table { path: path.to_owned(), line: 1, message });
        }
        while let Some(line) = rows.advance()? {
            for place in 0..2 {
                self.users.push(named(&rows, line, place, "user")?);
            }
            self.trust += 1;
            if self.trust > RATINGS_MAX {
                return Err(DataError::TooMany { path: path.to_owned(), limit: RATINGS_MAX, what: "lines of trust" });
            }
        }
        Ok(())
    }

    /// Numbers users and items, and drops unusable records.
    pub fn finish(self, [least, most]: [f64; 2]) -> SocialRatings {
        let Self { users, items, categories, values, parts, .. } = self;
        let (users, user_ids) = users.finish();
        let (items, item_ids) = items.finish();
        let has_categories = !matches!(&categories, Column::Numbers(rows) if rows.is_empty());
        let (categories, category_ids) = categories.finish();
        let (of_ratings, of_trust) = users.split_at(values.len());
        let mut has_trust = vec![false; user_ids.len()];
        of_trust.iter().for_each(|&user| has_trust[user as usize] = true);
        let mut dropped = Dropped::default();
        let mut without_trust = 0;
        let mut kept: Vec<u32> = Vec::with_capacity(values.len());
        for (rating, &value) in values.iter().enumerate() {
            if !has_trust[of_ratings[rating] as usize] {
                without_trust += 1;
            } else if !(least..=most).contains(&f64::from(value)) {
                dropped.outside += 1;
            } else {
                kept.push(rating as u32);
            }
        }
        let [of_kept, items_of_kept] =
            [of_ratings, &items].map(|column| kept.iter().map(|&rating| column[rating as usize]).collect::<Vec<_>>());
        let mut again = vec![false; kept.len()];
        for (place, _) in repeated(&of_kept, &items_of_kept) {
            again[place as usize] = true;
            dropped.repeated += 1;
        }
        let mut is_again = again.into_iter();
        kept.retain(|_| !is_again.next().unwrap_or(false));
        let rating = |&rating: &u32| Rating {
            user: of_ratings[rating as usize],
            item: items[rating as usize],
            value: values[rating as usize],
            group: categories.get(rating as usize).copied().unwrap_or(0),
            time: f64::NEG_INFINITY,
        };
        let mut ratings: Vec<Rating> = kept.iter().map(rating).collect();
        let mut number_of = vec![u32::MAX; user_ids.len()];
        let before: Vec<u32> = ratings.iter().map(|rating| rating.user).collect();
        let user_ids = renumber(user_ids, &mut ratings, |rating| &mut rating.user);
        before.iter().zip(&ratings).for_each(|(&old, rating)| number_of[old as usize] = rating.user);
        let item_ids = renumber(item_ids, &mut ratings, |rating| &mut rating.item);
        let group_ids: Option<Ids> =
            has_categories.then(|| renumber(category_ids, &mut ratings, |rating| &mut rating.group));
        let both = of_trust.as_chunks::<2>().0.iter().map(|pair| pair.map(|user| number_of[user as usize]));
        let mut trust: Vec<(u32, u32)> = both
            .filter(|[one, other]| one != other && *one != u32::MAX && *other != u32::MAX)
            .map(|[one, other]| (one.min(other), one.max(other)))
            .collect();
        trust.sort_unstable();
        trust.dedup();
        let parts =
            if parts.is_empty() { None } else { Some(kept.iter().map(|&rating| parts[rating as usize]).collect()) };
        let ratings =
            Ratings { ratings, user_ids, item_ids, group_ids, has_values: true, has_times: false, parts, dropped };
        SocialRatings { ratings: Arc::new(ratings), trust, without_trust }
    }
}
