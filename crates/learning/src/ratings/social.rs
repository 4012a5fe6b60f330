//! Ratings with trust between users: two tables, or a generator.
//!
//! # Definition
//! A folder has `ratings.tsv` and `trust.tsv` (or `social.tsv`), each plain or with `.gz`, separated by tabs, with a
//! header. Columns of ratings are told by their names, others are overlooked:
//!
//! | column | meaning |
//! |---|---|
//! | `user`, `user_id` | the user |
//! | `item`, `item_id`, `product_id` | the item |
//! | `category`, `category_id` | the item's category, if there is such a column |
//! | `rating`, or `rating_code` | stars, or a code from 0 for `(code + 1)/2` stars |
//! | `split` | `train`, `valid` or `test`, if there is such a column |
//!
//! The first two columns of trust are users. Trust goes both ways here: each pair counts once, nobody trusts
//! themselves.
//!
//! Dropped, in this order, and counted: ratings of users without trust, ratings outside `range` (default
//! `[1, 5]`, for codes `[0.5, 4]`), all but the first rating of a pair of user and item. Users, items and categories
//! that are left are numbered in ascending order of their names.
//!
//! # Source
//! J. Tang, H. Gao, H. Liu, "mTrust: discerning multi-faceted trust in a connected world", WSDM 2012 (Ciao, Epinions);
//! G. Guo, J. Zhang, N. Yorke-Smith, "A novel Bayesian similarity measure for recommender systems", IJCAI 2013
//! (FilmTrust).
//!
//! # Trust
//! None in files: a malformed line is an error with file and line.

pub mod communities;
pub mod dealt;
mod read;
mod synthetic;

pub use dealt::SocialPartition;
pub use synthetic::SyntheticSocial;

use super::Ratings;
use super::named::present;
use crate::data::{DataError, Kept, folder_or_source, located};
use fedgenie_core::components;
use fedgenie_core::config::Complaint;
use fedgenie_core::rng::Streams;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The names that the table of trust may have.
const TRUST: [&str; 2] = ["trust.tsv", "social.tsv"];

/// Ratings, and pairs of trust.
#[derive(Clone, Debug, PartialEq)]
pub struct SocialRatings {
    /// The ratings; a rating's group is the category of its item.
    pub ratings: Arc<Ratings>,
    /// Pairs of users, each once, the smaller number first, ascending.
    pub trust: Vec<(u32, u32)>,
    /// Ratings of users without trust, which were dropped.
    pub without_trust: usize,
}

/// A source's part of a scenario.
pub trait SocialSettings {
    /// Checks that need no file.
    ///
    /// # Errors
    /// A complaint with a path below the source's table.
    fn check(&self) -> Result<(), Complaint>;

    /// The ratings and trust of a seed.
    ///
    /// # Errors
    /// The quantity that cannot be drawn.
    fn load(&self, range: Option<[f64; 2]>, streams: &Streams) -> Result<SocialRatings, DataError>;
}

components! {
    /// A generator.
    pub enum SocialSource: SocialSettings = "social-ratings" {
        "synthetic" => Synthetic(SyntheticSocial) in "social/synthetic.rs";
    }
}

/// `data = "ciao"`, `data = { synthetic = { .. } }`
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum SocialConfig {
    /// A folder with `ratings.tsv` and `trust.tsv` or `social.tsv`, such as `ciao`, `epinions`, `filmtrust`.
    Folder(PathBuf),
    /// A generator.
    Source(SocialSource),
}

impl Default for SocialConfig {
    fn default() -> Self {
        Self::Source(SocialSource::Synthetic(SyntheticSocial::default()))
    }
}

const ONE_SOURCE: &str = "a folder's name, such as \"ciao\", or { synthetic = { users = 400 } }";

impl<'de> Deserialize<'de> for SocialConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        folder_or_source(deserializer, ONE_SOURCE, (Self::Folder, Self::Source))
    }
}

/// Contents of folders, kept for the other seeds and points of an experiment.
pub type SocialCache = Kept<SocialRatings>;

/// The files of a folder, as far as they are there: ratings, then trust.
fn files_of(folder: &Path) -> [Option<PathBuf>; 2] {
    [present(folder, "ratings.tsv"), TRUST.iter().find_map(|name| present(folder, name))]
}

impl SocialConfig {
    /// Makes file names whole: see [`located`].
    pub fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        if let Self::Folder(folder) = self {
            *folder = located(folder, base, data);
        }
    }

    /// The files that are read, as far as they are there.
    pub fn files(&self) -> Vec<PathBuf> {
        match self {
            Self::Folder(folder) => files_of(folder).into_iter().flatten().collect(),
            Self::Source(_) => Vec::new(),
        }
    }

    /// Checks that need no file.
    ///
    /// # Errors
    /// A complaint whose path begins with the source's name.
    pub fn check(&self) -> Result<(), Complaint> {
        match self {
            Self::Folder(_) => Ok(()),
            Self::Source(source) => source.settings().check().map_err(|complaint| complaint.below(source.kind())),
        }
    }

    /// Whether the data tell the test part.
    pub fn has_split(&self) -> bool {
        match self {
            Self::Folder(folder) => files_of(folder)[0].as_deref().is_some_and(read::has_split),
            Self::Source(_) => false,
        }
    }

    /// The ratings and trust of a seed. Files are read once for all seeds and stay in the cache.
    ///
    /// # Errors
    /// A file that does not have the expected format.
    pub fn load(
        &self,
        range: Option<[f64; 2]>,
        streams: &Streams,
        cache: &SocialCache,
    ) -> Result<Arc<SocialRatings>, DataError> {
        let folder = match self {
            Self::Source(source) => return source.settings().load(range, streams).map(Arc::new),
            Self::Folder(folder) => folder,
        };
        cache.once(format!("{range:?} {folder:?}"), || read::folder(folder, range))
    }
}

#[cfg(test)]
mod tests;
