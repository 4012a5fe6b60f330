//! Ratings: which user rated which item, how, and when; their readers and generators, splits and clients.
//!
//! # Definition
//! A rating is a pair of a user and an item, each pair once, with a value, and a time if the data have one. Data
//! without values have the value 1 everywhere. Before anything else happens, in this order:
//!
//! 1. of repeated pairs the first stays (in your own files a repeated pair is an error);
//! 2. ratings outside `range` are dropped (in your own files they are an error);
//! 3. ratings below `positive_at_least` are dropped: all that remain are positives;
//! 4. users with fewer than `min_per_user` remaining ratings are dropped, once.
//!
//! Users and items that remain are numbered in ascending order of their ids: by value if every id is a number, else by
//! the bytes of their text. With `users` or `items` given, ids are 0 … n − 1 as they stand, unseen ones included.
//!
//! | module | content |
//! |---|---|
//! | [`source`] | how a scenario says where ratings come from: a folder, files, or a generator |
//! | [`named`] | readers of published data sets |
//! | [`csv`] | reader of your own tables |
//! | [`amazon`] | reader of Amazon's reviews |
//! | [`synthetic`] | ratings drawn from the seed |
//! | [`social`] | ratings with trust between users and categories of items |
//! | [`split`] | which ratings are for training, validation and testing |
//! | [`partition`] | which training ratings go to which client |
//! | [`negatives`] | items that a user is not known to have rated, drawn |
//! | [`triplets`] | a table of such items instead |
//! | [`features`] | numbers that describe items, such as text and images |
//! | [`reference`](mod@reference) | predictions by popularity, means and biases alone |
//!
//! # Cost
//! 24 bytes for each rating, and twice that while they are read.

pub mod amazon;
pub mod csv;
pub mod features;
mod ids;
pub mod metadata;
pub mod named;
pub mod negatives;
pub mod partition;
pub mod reference;
pub mod social;
pub mod source;
pub mod split;
pub mod synthetic;
mod table;
pub mod triplets;

pub use features::ItemFeatures;
pub use ids::Ids;
pub use partition::RatingsPartition;
pub use source::{RatingsCache, RatingsConfig};
pub use split::{RatingsSplit, SplitConfig};
pub use table::{NAME_MAX, RATINGS_MAX};

use crate::data::DataError;
use fedgenie_core::config::Complaint;

/// One user's rating of one item.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rating {
    /// Number of the user.
    pub user: u32,
    /// Number of the item.
    pub item: u32,
    /// The rating; 1 if the data have none.
    pub value: f32,
    /// Number of the group that the rating belongs to; 0 if the data have none.
    pub group: u32,
    /// When it was made, in units of the data set; −∞ where that is not known.
    pub time: f64,
}

/// The part of the split that a rating belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Clients learn from it.
    Train,
    /// Choices are made by it.
    Valid,
    /// The outcome is judged by it.
    Test,
}

/// How much was dropped, in the order in which it is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Ratings of a pair that was there before.
    pub repeated: usize,
    /// Ratings outside `range`.
    pub outside: usize,
    /// Ratings below `positive_at_least`.
    pub below: usize,
    /// Users with some ratings left, but fewer than `min_per_user`.
    pub users: usize,
    /// The ratings of those users.
    pub of_few: usize,
}

/// A scenario's filters of ratings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filters {
    /// Number of users, whose ids are then numbers as they stand.
    pub users: Option<u32>,
    /// Number of items, whose ids are then numbers as they stand.
    pub items: Option<u32>,
    /// Least and largest rating.
    pub range: Option<[f64; 2]>,
    /// Least rating that says that a user likes an item.
    pub positive_at_least: Option<f64>,
    /// Fewest ratings of a user; 0 and 1 mean the same.
    pub min_per_user: usize,
}

impl Filters {
    /// Checks the ranges.
    ///
    /// # Errors
    /// Names `users`, `items`, `range` or `positive_at_least`.
    pub fn check(&self) -> Result<(), Complaint> {
        for (key, count) in [("users", self.users), ("items", self.items)] {
            if count == Some(0) {
                return Err(Complaint::new(key, "found 0; expected at least 1"));
            }
        }
        if let Some([least, most]) = self.range
            && !(least.is_finite() && most.is_finite() && least <= most)
        {
            let message = format!("found [{least}, {most}]; expected two finite numbers, the least rating first");
            return Err(Complaint::new("range", message));
        }
        match self.positive_at_least {
            Some(least) if !least.is_finite() => {
                Err(Complaint::new("positive_at_least", format!("found {least}; expected a finite number")))
            }
            _ => Ok(()),
        }
    }

    /// Refuses settings that need values where there are none.
    fn check_values(&self, has_values: bool) -> Result<(), DataError> {
        let expected = "left out, because these data have no ratings, only pairs of user and item";
        let refuse = |key: &str, found| Err(DataError::Setting { key: key.to_owned(), found, expected });
        match (has_values, self.range, self.positive_at_least) {
            (false, Some([least, most]), _) => refuse("range", format!("[{least}, {most}]")),
            (false, _, Some(least)) => refuse("positive_at_least", least.to_string()),
            _ => Ok(()),
        }
    }
}

/// The ratings of a data set, in the order of its file.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratings {
    /// Each pair of user and item once.
    pub ratings: Vec<Rating>,
    /// The users.
    pub user_ids: Ids,
    /// The items.
    pub item_ids: Ids,
    /// The groups, if the data have any.
    pub group_ids: Option<Ids>,
    /// Whether values come from the data.
    pub has_values: bool,
    /// Whether times come from the data, even if some are missing.
    pub has_times: bool,
    /// The data's own split, one entry for each rating.
    pub parts: Option<Vec<Part>>,
    /// The dropped ratings.
    pub dropped: Dropped,
}

#[cfg(test)]
pub(crate) mod tests;
