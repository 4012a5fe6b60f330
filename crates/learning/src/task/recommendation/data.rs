//! What is held out, and what a careful user should know about the ratings.

use super::Recommendation;
use crate::ranking::ItemLists;
use crate::ratings::{Dropped, Ids, Part, RatingsSplit};
use std::fmt::Write;

/// A part by which models are judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldOut {
    /// For each user the items that are no candidates.
    pub excluded: ItemLists,
    /// For each user the items to be found.
    pub relevant: ItemLists,
    /// How many users have a relevant and an irrelevant candidate.
    pub users: usize,
}

impl HeldOut {
    /// A part of a split.
    pub fn of(split: &RatingsSplit, part: Part) -> Self {
        let (excluded, relevant) = (split.excluded(part), split.lists(part));
        let counts = |&user: &u32| {
            let (excluded, relevant) = (excluded.of(user), relevant.of(user));
            let found = relevant.iter().filter(|&item| excluded.binary_search(item).is_err()).count();
            found > 0 && found < split.items() - excluded.len()
        };
        let users = (0..split.users() as u32).filter(counts).count();
        Self { excluded, relevant, users }
    }
}

impl Recommendation {
    /// How many there are of everything.
    pub(super) fn count(&self) -> Vec<(&'static str, u64)> {
        let [train, valid, test] = self.parts;
        let Dropped { repeated, outside, below, users, of_few } = self.data.dropped;
        let mut counts = vec![
            ("users", self.data.user_ids.len()),
            ("items", self.items()),
            ("train", train[0]),
            ("valid", valid[0]),
            ("test", test[0]),
            ("users_without_train", train[1]),
            ("users_without_test", test[1]),
            ("test_users", self.test.users),
        ];
        counts.extend(self.valid.iter().map(|valid| ("valid_users", valid.users)));
        let dropped = [
            ("repeated", repeated),
            ("outside_range", outside),
            ("below_positive", below),
            ("users_of_few", users),
            ("ratings_of_few", of_few),
        ];
        counts.extend(dropped.into_iter().filter(|&(_, count)| count > 0));
        counts.into_iter().map(|(name, count)| (name, count as u64)).collect()
    }

    /// What numbers of users and items stand for, unless they stand for themselves.
    pub(super) fn maps(&self) -> Vec<(&'static str, String)> {
        let table = |(name, ids): (&'static str, &Ids)| {
            if matches!(ids, Ids::AsTheyStand(_)) {
                return None;
            }
            let mut text = "index,id\n".to_owned();
            for index in 0..ids.len() as u32 {
                let id = ids.name(index);
                let quoted =
                    if id.contains([',', '"', '\n', '\r']) { format!("\"{}\"", id.replace('"', "\"\"")) } else { id };
                let _ = writeln!(text, "{index},{quoted}");
            }
            Some((name, text))
        };
        [("users.csv", &self.data.user_ids), ("items.csv", &self.data.item_ids)].into_iter().filter_map(table).collect()
    }

    /// Known dirt that was dropped.
    pub(super) fn dirt(&self) -> Vec<String> {
        let Dropped { repeated, outside, .. } = self.data.dropped;
        let mut warnings = Vec::new();
        if repeated > 0 {
            warnings
                .push(format!("{repeated} ratings repeat an earlier pair of user and item; the first of each counts"));
        }
        if outside > 0 {
            warnings.push(format!("{outside} ratings are outside `range` and were dropped"));
        }
        warnings
    }
}
