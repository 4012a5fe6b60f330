//! Ratings while they are read, and the first filters.

use super::ids::{Column, Ids, whole};
use super::{Dropped, Filters, Part, Rating, Ratings};
use crate::data::DataError;
use std::path::{Path, PathBuf};

/// The most ratings of a data set: 2^28.
pub const RATINGS_MAX: usize = 1 << 28;

/// The most bytes of the name of a user, an item or a group.
pub const NAME_MAX: usize = 256;

/// One rating as a file has it. `None` where the file has no such column.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Row<'a> {
    pub user: &'a str,
    pub item: &'a str,
    pub value: Option<&'a str>,
    pub time: Option<&'a str>,
    pub group: Option<&'a str>,
    pub part: Option<Part>,
}

/// The names of the columns in messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Headings<'a> {
    pub user: &'a str,
    pub item: &'a str,
    pub value: &'a str,
    pub time: &'a str,
    pub group: &'a str,
}

impl Headings<'static> {
    /// Names for files without a header.
    pub const PLAIN: Self = Self { user: "user", item: "item", value: "rating", time: "time", group: "group" };
}

/// The ratings read so far.
pub(super) struct Table<'a> {
    filters: &'a Filters,
    /// Whether the user made the files: then faults in them are errors, not known dirt.
    is_own: bool,
    users: Column,
    items: Column,
    groups: Column,
    values: Vec<f32>,
    times: Vec<f64>,
    parts: Vec<Part>,
    /// Line of each row, and the rows at which files begin; for own files only.
    lines: Vec<u64>,
    files: Vec<(usize, PathBuf)>,
    rows: usize,
}

impl<'a> Table<'a> {
    pub fn new(filters: &'a Filters, is_own: bool) -> Self {
        Self {
            filters,
            is_own,
            users: Column::default(),
            items: Column::default(),
            groups: Column::default(),
            values: Vec::new(),
            times: Vec::new(),
            parts: Vec::new(),
            lines: Vec::new(),
            files: Vec::new(),
            rows: 0,
        }
    }

    /// Rows from here on are those of this file.
    pub fn begin_file(&mut self, path: &Path) {
        self.files.push((self.rows, path.to_owned()));
    }

    /// Takes over a row, checked.
    pub fn push(&mut self, line: u64, row: Row<'_>, headings: &Headings<'_>) -> Result<(), DataError> {
        for (name, count, key, column) in [
            (row.user, self.filters.users, "users", headings.user),
            (row.item, self.filters.items, "items", headings.item),
        ] {
            self.check_name(line, column, name)?;
            if let Some(count) = count
                && whole(name).is_none_or(|id| id >= u64::from(count))
            {
                let expected = format!("a whole number from 0 to {} ({key} = {count})", i64::from(count) - 1);
                return Err(self.wrong(line, column, name, expected));
            }
        }
        if let Some(field) = row.value {
            let value = self.number(line, headings.value, field)? as f32;
            if !value.is_finite() {
                return Err(self.wrong(line, headings.value, field, "a number within the range of f32"));
            }
            if let (true, Some([least, most])) = (self.is_own, self.filters.range)
                && !(least..=most).contains(&f64::from(value))
            {
                let expected = format!("a rating from {least} to {most} (range = [{least}, {most}])");
                return Err(self.wrong(line, headings.value, field, expected));
            }
            self.values.push(value);
        }
        match row.time {
            // Known to be missing in places.
            Some("") if !self.is_own => self.times.push(f64::NEG_INFINITY),
            Some(field) => {
                let time = self.number(line, headings.time, field)?;
                self.times.push(time);
            }
            None => {}
        }
        if let Some(group) = row.group {
            self.check_name(line, headings.group, group)?;
            self.groups.push(group);
        }
        self.users.push(row.user);
        self.items.push(row.item);
        self.parts.extend(row.part);
        if self.is_own {
            self.lines.push(line);
        }
        self.rows += 1;
        if self.rows > RATINGS_MAX {
            return Err(DataError::TooMany { path: self.path().to_owned(), limit: RATINGS_MAX, what: "ratings" });
        }
        Ok(())
    }

    fn path(&self) -> &Path {
        self.files.last().map_or(Path::new(""), |(_, path)| path)
    }

    fn check_name(&self, line: u64, column: &str, name: &str) -> Result<(), DataError> {
        match name.len() {
            0 => Err(self.wrong(line, column, name, "a name or a number")),
            1..=NAME_MAX => Ok(()),
            _ => Err(self.wrong(line, column, name, format!("a name of at most {NAME_MAX} bytes"))),
        }
    }

    fn number(&self, line: u64, column: &str, field: &str) -> Result<f64, DataError> {
        let number = field.parse().ok().filter(|number: &f64| number.is_finite());
        number.ok_or_else(|| self.wrong(line, column, field, "a finite number"))
    }

    fn wrong(&self, line: u64, column: &str, found: &str, expected: impl Into<String>) -> DataError {
        DataError::Field {
            path: self.path().to_owned(),
            line,
            column: column.to_owned(),
            // A field may be a whole book.
            found: found.chars().take(80).collect(),
            expected: expected.into(),
        }
    }

    /// File and line of a row.
    fn place(&self, row: usize) -> (&Path, u64) {
        let file = self.files.partition_point(|&(first, _)| first <= row) - 1;
        (&self.files[file].1, self.lines[row])
    }

    /// Numbers users and items, and drops unusable records.
    pub fn finish(mut self, headings: &Headings<'_>) -> Result<Ratings, DataError> {
        let filters = self.filters;
        filters.check_values(!self.values.is_empty() || self.rows == 0)?;
        let numbered = |column: &mut Column, given: Option<u32>| {
            let column = std::mem::take(column);
            match given {
                Some(count) => column.into_given(count).expect("ids are checked as they are read"),
                None => column.finish(),
            }
        };
        let (users, user_ids) = numbered(&mut self.users, filters.users);
        let (items, item_ids) = numbered(&mut self.items, filters.items);
        let (groups, group_ids) = match std::mem::take(&mut self.groups) {
            Column::Numbers(rows) if rows.is_empty() => (vec![0; self.rows], None),
            column => {
                let (groups, ids) = column.finish();
                (groups, Some(ids))
            }
        };
        let repeated = repeated(&users, &items);
        if let (true, Some(&(row, first))) = (self.is_own, repeated.iter().min()) {
            let (path, line) = self.place(row as usize);
            let (other, at) = self.place(first as usize);
            let found = format!("{} of {} {:?}", item_ids.name(items[row as usize]), headings.user, {
                user_ids.name(users[row as usize])
            });
            let expected = format!("each pair once; it stands in {}:{at} before", other.display());
            let (path, column) = (path.to_owned(), headings.item.to_owned());
            return Err(DataError::Field { path, line, column, found, expected });
        }
        let mut keep = vec![true; self.rows];
        repeated.iter().for_each(|&(row, _)| keep[row as usize] = false);
        let value = |row: usize| self.values.get(row).copied().unwrap_or(1.0);
        let ratings = (0..self.rows).map(|row| Rating {
            user: users[row],
            item: items[row],
            value: value(row),
            group: groups[row],
            time: self.times.get(row).copied().unwrap_or(f64::NEG_INFINITY),
        });
        let ratings = Ratings {
            ratings: ratings.collect(),
            user_ids,
            item_ids,
            group_ids,
            has_values: !self.values.is_empty(),
            has_times: !self.times.is_empty(),
            parts: if self.parts.is_empty() { None } else { Some(self.parts) },
            dropped: Dropped { repeated: repeated.len(), ..Dropped::default() },
        };
        Ok(ratings.filtered(keep, filters))
    }
}

/// Rows whose pair of user and item was there before, each with the first row that has it.
pub(super) fn repeated(users: &[u32], items: &[u32]) -> Vec<(u32, u32)> {
    let pairs = users.iter().zip(items).map(|(&user, &item)| u64::from(user) << 32 | u64::from(item));
    let mut order: Vec<(u64, u32)> = pairs.zip(0..).collect();
    order.sort_unstable();
    let mut found = Vec::new();
    let mut first = 0;
    for place in 1..order.len() {
        if order[place].0 == order[first].0 {
            found.push((order[place].1, order[first].1));
        } else {
            first = place;
        }
    }
    found
}

impl Ratings {
    /// The ratings that pass the filters, of the rows to keep; users and items that are not given are numbered anew.
    fn filtered(mut self, mut keep: Vec<bool>, filters: &Filters) -> Self {
        for (rating, keep) in self.ratings.iter().zip(&mut keep).filter(|(_, keep)| **keep) {
            let value = f64::from(rating.value);
            if filters.range.is_some_and(|[least, most]| !(least..=most).contains(&value)) {
                self.dropped.outside += 1;
                *keep = false;
            } else if filters.positive_at_least.is_some_and(|least| value < least) {
                self.dropped.below += 1;
                *keep = false;
            }
        }
        if filters.min_per_user > 1 {
            let mut of_user = vec![0_usize; self.user_ids.len()];
            let kept = |keep: &[bool], rating: usize| keep[rating];
            for (row, rating) in self.ratings.iter().enumerate() {
                of_user[rating.user as usize] += usize::from(kept(&keep, row));
            }
            let is_few = |count: usize| count > 0 && count < filters.min_per_user;
            self.dropped.users = of_user.iter().filter(|&&count| is_few(count)).count();
            for (rating, keep) in self.ratings.iter().zip(&mut keep).filter(|(_, keep)| **keep) {
                if is_few(of_user[rating.user as usize]) {
                    self.dropped.of_few += 1;
                    *keep = false;
                }
            }
        }
        let mut rows = keep.iter();
        self.ratings.retain(|_| *rows.next().expect("every row is kept or not"));
        if let Some(parts) = &mut self.parts {
            let mut rows = keep.iter();
            parts.retain(|_| *rows.next().expect("every row is kept or not"));
        }
        self.user_ids = renumber(self.user_ids, &mut self.ratings, |rating| &mut rating.user);
        self.item_ids = renumber(self.item_ids, &mut self.ratings, |rating| &mut rating.item);
        self.group_ids = self.group_ids.map(|ids| renumber(ids, &mut self.ratings, |rating| &mut rating.group));
        self
    }
}

/// Numbers the remaining ids without gaps, unless numbers are the ids themselves.
pub(super) fn renumber(ids: Ids, ratings: &mut [Rating], number: impl Fn(&mut Rating) -> &mut u32) -> Ids {
    if matches!(ids, Ids::AsTheyStand(_)) {
        return ids;
    }
    let mut is_there = vec![false; ids.len()];
    ratings.iter_mut().for_each(|rating| is_there[*number(rating) as usize] = true);
    let mut next = 0;
    let numbers: Vec<u32> = is_there
        .iter()
        .map(|&is_there| {
            next += u32::from(is_there);
            next.wrapping_sub(1)
        })
        .collect();
    ratings.iter_mut().for_each(|rating| *number(rating) = numbers[*number(rating) as usize]);
    ids.select(&is_there)
}
