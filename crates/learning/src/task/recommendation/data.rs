//! The data of every model of ratings: the clients' ratings, the held-out ones, and warnings about them.

use super::Holdings;
use crate::data::partition::{Partition, Skew};
use crate::ranking::{ItemLists, Lists, Means, Ranker, ScoreItems, evaluate_some, evaluate_users};
use crate::ratings::reference::Popularity;
use crate::ratings::triplets::Triplet;
use crate::ratings::{Dropped, Ids, Part, Ratings, RatingsSplit};
use crate::task::{Appendix, Controls, Description, On};
use fedgenie_core::halt::Effort;
use fedgenie_core::id::ClientId;
use fedgenie_core::metric::Place;
use fedgenie_core::text::spreadsheet::cell;
use std::fmt::Write;
use std::sync::{Arc, OnceLock};

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

    fn lists(&self) -> Lists<'_> {
        [&self.excluded, &self.relevant]
    }
}

/// Ratings, their holders, and the held-out parts.
#[derive(Debug)]
pub struct Source {
    /// The ratings, with the names of users and items.
    pub data: Arc<Ratings>,
    /// The clients' ratings and users.
    pub holdings: Holdings,
    /// Ratings for validation, if there are any.
    pub valid: Option<HeldOut>,
    /// Ratings for testing.
    pub test: HeldOut,
    /// How unevenly training ratings are spread.
    skew: Skew,
    /// Ratings of the three parts, and users without any.
    parts: [[usize; 2]; 3],
    cutoffs: Vec<usize>,
    popularity: Popularity,
    controls: OnceLock<Controls>,
}

impl Source {
    /// Of a split whose training ratings lie at clients as a partition says, at their own users if `is_by_user`.
    pub fn new(
        split: &RatingsSplit,
        (partition, is_by_user): (&Partition, bool),
        triplets: Option<&[Triplet]>,
        cutoffs: &[usize],
    ) -> Self {
        let parts = [Part::Train, Part::Valid, Part::Test];
        Self {
            data: split.data.clone(),
            holdings: Holdings::new(split, partition, is_by_user, triplets),
            valid: (!split.valid.is_empty()).then(|| HeldOut::of(split, Part::Valid)),
            test: HeldOut::of(split, Part::Test),
            skew: crate::ratings::partition::skew(split, partition),
            parts: parts.map(|part| [split.part(part).len(), split.users_without(part)]),
            cutoffs: cutoffs.to_vec(),
            popularity: Popularity::new(split),
            controls: OnceLock::new(),
        }
    }

    /// Number of items.
    pub fn items(&self) -> usize {
        self.data.item_ids.len()
    }

    /// The users to be evaluated, and their held-out ratings; `None` without validation data, or for the model alone.
    pub fn asked<'a>(&'a self, on: On<'a>) -> Option<(Box<dyn Iterator<Item = u32> + 'a>, &'a HeldOut)> {
        let everybody = self.everybody();
        let of = |client: ClientId| self.holdings.residents(client).iter().copied();
        match on {
            On::Test => Some((Box::new(everybody), &self.test)),
            On::Valid => self.valid.as_ref().map(|valid| (Box::new(everybody) as Box<_>, valid)),
            On::Client(client) => Some((Box::new(of(client)), &self.test)),
            On::Server(_, members) | On::ServerTest(_, members, _) => {
                Some((Box::new(members.iter().flat_map(move |&client| of(client))), &self.test))
            }
            On::Model => None,
        }
    }

    /// Ranks all items by each of the held-out parts, for the users with a relevant item in it.
    pub fn rank<const PARTS: usize>(
        &self,
        users: impl Iterator<Item = u32>,
        parts: [&HeldOut; PARTS],
        model: &dyn ScoreItems,
        effort: Effort<'_>,
    ) -> [Means; PARTS] {
        evaluate_users(users, model, self.items(), parts.map(HeldOut::lists), &self.cutoffs, effort)
    }

    /// The same; and for the first part also the means over a part of the users.
    pub fn rank_some<const PARTS: usize>(
        &self,
        users: impl Iterator<Item = u32>,
        parts: [&HeldOut; PARTS],
        model: &dyn ScoreItems,
        effort: Effort<'_>,
        is_meant: impl Fn(u32) -> bool,
    ) -> ([Means; PARTS], Means) {
        let parts = parts.map(HeldOut::lists);
        evaluate_some(users, model, self.items(), parts, &self.cutoffs, effort, is_meant)
    }

    /// Four of five items, the least popular by training ratings, the first among equals; ascending.
    pub fn long_tail(&self) -> Vec<u32> {
        let scores = self.popularity.scores();
        let mut items: Vec<u32> = (0..scores.len() as u32).collect();
        items.sort_by(|&one, &other| scores[one as usize].total_cmp(&scores[other as usize]));
        items.truncate(scores.len() * 4 / 5);
        items.sort_unstable();
        items
    }

    /// Everybody.
    pub fn everybody(&self) -> std::ops::Range<u32> {
        0..self.data.user_ids.len() as u32
    }

    /// Facts about clients with so many examples.
    pub fn describe(&self, examples: impl IntoIterator<Item = usize>) -> Description {
        Description {
            has_valid: self.valid.is_some(),
            skew: Some(self.skew.clone()),
            counts: self.count(),
            warnings: self.dirt(),
            ..Description::of(examples)
        }
    }

    /// Facts about the ratings for a run's files.
    pub fn appendix(&self) -> Appendix {
        Appendix { tables: Self::maps_of(&self.data), controls: self.controls(), graph: None }
    }

    /// The metrics of popularity alone on test data.
    pub fn controls(&self) -> Controls {
        let metrics = || {
            let HeldOut { excluded, relevant, .. } = &self.test;
            let means = self.popularity.evaluate(excluded, relevant, &self.cutoffs, false);
            let metrics = Ranker::measures(&self.cutoffs).into_iter().map(|measure| measure.at(Place::Test));
            metrics.zip(means.values).collect()
        };
        self.controls.get_or_init(|| vec![("popularity", metrics())]).clone()
    }

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

    /// Names of users and items by their numbers, unless the numbers are the ids themselves.
    pub fn maps_of(data: &Ratings) -> Vec<(&'static str, String)> {
        let table = |(name, ids): (&'static str, &Ids)| {
            if matches!(ids, Ids::AsTheyStand(_)) {
                return None;
            }
            let mut text = "index,id\n".to_owned();
            for index in 0..ids.len() as u32 {
                let id = ids.name(index);
                let id = cell(&id);
                let quoted =
                    if id.contains([',', '"']) { format!("\"{}\"", id.replace('"', "\"\"")).into() } else { id };
                let _ = writeln!(text, "{index},{quoted}");
            }
            Some((name, text))
        };
        [("users.csv", &data.user_ids), ("items.csv", &data.item_ids)].into_iter().filter_map(table).collect()
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
