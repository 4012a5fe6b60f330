//! Splits: which ratings clients learn from, by which choices are made, and by which the outcome is judged.
//!
//! # Definition
//! | split | for testing | for validation |
//! |---|---|---|
//! | `"file"` | as the data tell: by files, or a column | the same |
//! | `{ random = { test = t, valid = v } }` | `⌊t·n⌋` of all `n` ratings, each set of that size equally likely | `⌊v·n⌋` of the others |
//! | `{ per-user = { test = t, valid = v } }` | `⌊t·n_u⌋` of the `n_u` ratings of each user | `⌊v·n_u⌋` of the others |
//! | `"leave-one-out"` | each user's last rating | each user's last but one |
//!
//! All others are for training. `⌊x⌋` counts a number less than 1e-9 below a whole one as that one, so that 0.29 of 100
//! is 29. Under `"leave-one-out"` all ratings of a user with fewer than three are for training; of ratings with the
//! same time the one that stands later in the file is the later, and a rating whose time is missing is before all
//! others.
//!
//! # Source
//! Leave one out: X. He et al., "Neural collaborative filtering", WWW 2017; users with fewer than three ratings: W.-C. Kang,
//! J. McAuley, "Self-attentive sequential recommendation", ICDM 2018.
//!
//! # Determinism
//! Stream (Example, 0, 4) puts all ratings in a random order, (Example, user, 5) those of a user; the first are for
//! testing, the next for validation.

use super::{Part, Rating, Ratings};
use crate::data::DataError;
use crate::ranking::ItemLists;
use fedgenie_core::config::Complaint;
use fedgenie_core::rng::{Purpose, Streams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The source of this file, which opens with the definition of splits.
pub const DOCUMENTED: &str = include_str!("split.rs");

/// Numbers of the streams, as documented above.
const ALL: u32 = 4;
const PER_USER: u32 = 5;

/// `split = "leave-one-out"`, `split = { per-user = { test = 0.2 } }`, …
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SplitConfig {
    /// The data's own: files, or a column.
    File,
    /// Shares of all ratings.
    Random {
        /// Share for testing; above 0 and below 1.
        #[serde(default = "tenth")]
        test: f64,
        /// Share for validation; from 0, and below 1 together with `test`.
        #[serde(default = "tenth")]
        valid: f64,
    },
    /// Shares of each user's ratings.
    PerUser {
        /// Share for testing; above 0 and below 1.
        #[serde(default = "fifth")]
        test: f64,
        /// Share for validation; from 0, and below 1 together with `test`.
        #[serde(default = "tenth")]
        valid: f64,
    },
    /// Each user's last two ratings.
    LeaveOneOut,
}

const fn tenth() -> f64 {
    0.1
}

const fn fifth() -> f64 {
    0.2
}

impl Default for SplitConfig {
    fn default() -> Self {
        Self::PerUser { test: fifth(), valid: tenth() }
    }
}

impl SplitConfig {
    /// Its name in scenarios.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Random { .. } => "random",
            Self::PerUser { .. } => "per-user",
            Self::LeaveOneOut => "leave-one-out",
        }
    }

    /// Checks the shares.
    ///
    /// # Errors
    /// A complaint whose path begins with the split's name.
    pub fn check(&self) -> Result<(), Complaint> {
        let (Self::Random { test, valid } | Self::PerUser { test, valid }) = *self else { return Ok(()) };
        let refuse = |key, found: f64, expected| {
            Err(Complaint::new(key, format!("found {found}; expected {expected}")).below(self.kind()))
        };
        if !(test > 0.0 && test < 1.0) {
            return refuse("test", test, "a share above 0 and below 1");
        }
        if !(valid >= 0.0 && test + valid < 1.0) {
            return refuse("valid", valid, "0 or a share that leaves something for training");
        }
        Ok(())
    }

    /// Splits ratings as this split says.
    ///
    /// # Errors
    /// [`DataError::Setting`] named `split` if the data cannot be split so, or a part that is asked for is empty.
    pub fn split(&self, data: Arc<Ratings>, streams: &Streams) -> Result<RatingsSplit, DataError> {
        let refuse = |found: String, expected| Err(DataError::Setting { key: "split".to_owned(), found, expected });
        let count = data.ratings.len();
        let mut parts = vec![Part::Train; count];
        match *self {
            Self::File => match &data.parts {
                Some(own) => parts.clone_from(own),
                None => return refuse("file".to_owned(), "another one, because these data say nothing of a split"),
            },
            Self::Random { test, valid } => {
                let mut order: Vec<u32> = (0..count as u32).collect();
                streams.stream(Purpose::Example, 0, ALL).shuffle(&mut order);
                assign(&order, [test, valid], &mut parts);
            }
            Self::PerUser { test, valid } => {
                for (user, mut ratings) in data.by_user().into_iter().enumerate() {
                    streams.stream(Purpose::Example, user as u32, PER_USER).shuffle(&mut ratings);
                    assign(&ratings, [test, valid], &mut parts);
                }
            }
            Self::LeaveOneOut if !data.has_times => {
                return refuse("leave-one-out".to_owned(), "another one, because these data have no times");
            }
            Self::LeaveOneOut => {
                let time = |&rating: &u32| data.ratings[rating as usize].time;
                for mut ratings in data.by_user().into_iter().filter(|ratings| ratings.len() >= 3) {
                    // Stable: later lines of the file stay later.
                    ratings.sort_by(|x, y| time(x).total_cmp(&time(y)));
                    parts[ratings[ratings.len() - 1] as usize] = Part::Test;
                    parts[ratings[ratings.len() - 2] as usize] = Part::Valid;
                }
            }
        }
        let of = |part| (0..count as u32).filter(|&rating| parts[rating as usize] == part).collect::<Vec<_>>();
        let [train, valid, test] = [Part::Train, Part::Valid, Part::Test].map(of);
        let wants_valid = matches!(self, Self::Random { valid, .. } | Self::PerUser { valid, .. } if *valid > 0.0);
        for (is_empty, part) in [
            (train.is_empty(), "training"),
            (test.is_empty(), "testing"),
            (wants_valid && valid.is_empty(), "validation"),
        ] {
            if is_empty {
                let found = format!("{} of {count} ratings, none of which is for {part}", self.kind());
                return refuse(found, "one that leaves no part empty");
            }
        }
        Ok(RatingsSplit { data, train, valid, test })
    }
}

/// The share of a number of things, rounded down.
fn share(count: usize, share: f64) -> usize {
    ((share * count as f64 + 1e-9) as usize).min(count)
}

/// Gives the first of an order to testing, the next to validation.
fn assign(order: &[u32], [test, valid]: [f64; 2], parts: &mut [Part]) {
    let (test, valid) = (share(order.len(), test), share(order.len(), valid));
    for &rating in &order[..test] {
        parts[rating as usize] = Part::Test;
    }
    for &rating in order[test..].iter().take(valid) {
        parts[rating as usize] = Part::Valid;
    }
}

impl Ratings {
    /// The ratings of each user, in the order of the file.
    fn by_user(&self) -> Vec<Vec<u32>> {
        let mut by_user = vec![Vec::new(); self.user_ids.len()];
        for (rating, number) in self.ratings.iter().zip(0..) {
            by_user[rating.user as usize].push(number);
        }
        by_user
    }
}

/// Ratings in three parts: numbers of ratings, ascending.
#[derive(Clone, Debug, PartialEq)]
pub struct RatingsSplit {
    /// All ratings.
    pub data: Arc<Ratings>,
    /// For training; the examples that clients hold are numbered by their places here.
    pub train: Vec<u32>,
    /// Ratings for validation; may be empty.
    pub valid: Vec<u32>,
    /// Ratings for testing.
    pub test: Vec<u32>,
}

impl RatingsSplit {
    /// Number of users.
    pub fn users(&self) -> usize {
        self.data.user_ids.len()
    }

    /// Number of items.
    pub fn items(&self) -> usize {
        self.data.item_ids.len()
    }

    /// A training example.
    ///
    /// # Panics
    /// If there is no such example.
    pub fn example(&self, example: u32) -> &Rating {
        &self.data.ratings[self.train[example as usize] as usize]
    }

    /// The ratings of a part, in the order of the file.
    pub fn part(&self, part: Part) -> impl ExactSizeIterator<Item = &Rating> + Clone {
        let chosen = match part {
            Part::Train => &self.train,
            Part::Valid => &self.valid,
            Part::Test => &self.test,
        };
        chosen.iter().map(|&rating| &self.data.ratings[rating as usize])
    }

    /// For each user the items of a part.
    pub fn lists(&self, part: Part) -> ItemLists {
        ItemLists::new(self.users(), self.part(part).map(|rating| (rating.user, rating.item)))
    }

    /// For each user the items that are no candidates when the ratings of a part are to be found: those of training,
    /// and for testing those of validation as well.
    pub fn excluded(&self, part: Part) -> ItemLists {
        let train = self.lists(Part::Train);
        if part == Part::Test { train.union(&self.lists(Part::Valid)) } else { train }
    }

    /// Users without a rating in a part.
    pub fn users_without(&self, part: Part) -> usize {
        let mut has_some = vec![false; self.users()];
        self.part(part).for_each(|rating| has_some[rating.user as usize] = true);
        has_some.iter().filter(|&&has_some| !has_some).count()
    }
}

#[cfg(test)]
mod tests;
