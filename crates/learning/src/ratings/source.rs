//! How a scenario says where ratings come from: a folder, files, or a generator.
//!
//! A text is a folder whose files tell what it holds: see [`named`]. A table with one key names the format or the
//! generator.

use super::features::ItemFeatures;
use super::{Filters, Ids, Ratings, amazon, csv, metadata, named, synthetic};
use crate::data::{DataError, Kept, folder_or_source, located};
use fedgenie_core::components;
use fedgenie_core::config::Complaint;
use fedgenie_core::rng::Streams;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A source's part of a scenario.
pub trait RatingsSettings {
    /// Makes file names whole: see [`located`].
    fn resolve_paths(&mut self, _base: &Path, _data: Option<&Path>) {}

    /// The files that are read.
    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Checks that need no file.
    ///
    /// # Errors
    /// A complaint with a path below the source's table.
    fn check(&self) -> Result<(), Complaint>;

    /// Whether each seed has ratings of its own.
    fn is_each_seeds_own(&self) -> bool {
        false
    }

    /// Whether the data tell the test part.
    fn has_split(&self) -> bool {
        false
    }

    /// The ratings of a seed.
    ///
    /// # Errors
    /// A file that does not have the expected format.
    fn load(&self, filters: &Filters, streams: &Streams) -> Result<Ratings, DataError>;

    /// Text and image features of these items, where the source has such.
    fn features(&self, _items: &Ids, _streams: &Streams) -> [Option<ItemFeatures>; 2] {
        [None, None]
    }
}

components! {
    /// Files of a given format, or a generator.
    pub enum RatingsSource: RatingsSettings = "ratings" {
        "csv" => Csv(csv::CsvConfig) in "csv.rs";
        "amazon" => Amazon(amazon::AmazonConfig) in "amazon.rs";
        "synthetic" => Synthetic(synthetic::SyntheticRatings) in "synthetic.rs";
    }
}

/// `data = "ml-100k"`, `data = { csv = { .. } }`, …
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
#[allow(clippy::large_enum_variant, reason = "a scenario has one")]
pub enum RatingsConfig {
    /// A folder, recognised by its files' names: `ml-100k`, `ml-1m`, `video-games`, `ciao`, `epinions`, `filmtrust`.
    Folder(PathBuf),
    /// Files of a given format, or a generator.
    Source(RatingsSource),
}

impl Default for RatingsConfig {
    fn default() -> Self {
        Self::Source(RatingsSource::Synthetic(synthetic::SyntheticRatings::default()))
    }
}

const ONE_SOURCE: &str = "a folder's name, such as \"ml-100k\", or a table with exactly one key, such as \
                          { csv = { file = \"ratings.csv\" } } or { synthetic = { users = 400 } }";

impl<'de> Deserialize<'de> for RatingsConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        folder_or_source(deserializer, ONE_SOURCE, (Self::Folder, Self::Source))
    }
}

/// Contents of files, kept for the other seeds and points of an experiment.
pub type RatingsCache = Kept<Ratings>;

impl RatingsConfig {
    /// Makes file names whole: see [`located`].
    pub fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        match self {
            // The folder that `video-games` means is found when it is read.
            Self::Folder(folder) => *folder = located(folder, base, data),
            Self::Source(source) => source.settings_mut().resolve_paths(base, data),
        }
    }

    /// The files that are read, as far as they are there.
    pub fn files(&self) -> Vec<PathBuf> {
        match self {
            Self::Folder(folder) => named::files(folder).into_iter().chain(metadata::file(folder)).collect(),
            Self::Source(source) => source.settings().files(),
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

    /// Whether the data tell the test part: by files `train` and `test`, by a column, or as a named set.
    pub fn has_split(&self) -> bool {
        match self {
            Self::Folder(folder) => named::recognise(folder).is_ok_and(|(named, _)| named.has_split()),
            Self::Source(source) => source.settings().has_split(),
        }
    }

    /// Numbers that describe each of these users, where the data have such; see [`metadata`].
    ///
    /// # Errors
    /// A file that does not have the expected format.
    pub fn metadata(&self, users: &Ids) -> Result<Option<Vec<Vec<f64>>>, DataError> {
        match self {
            Self::Folder(folder) => metadata::read_users(folder, users),
            Self::Source(_) => Ok(None),
        }
    }

    /// Text and image features of these items, where the data themselves have such.
    pub fn features(&self, items: &Ids, streams: &Streams) -> [Option<ItemFeatures>; 2] {
        match self {
            Self::Folder(_) => [None, None],
            Self::Source(source) => source.settings().features(items, streams),
        }
    }

    /// The ratings of a seed that pass the filters. Files are read once for all seeds and stay in the cache.
    ///
    /// # Errors
    /// A file that does not have the expected format, or a filter that these data cannot pass through.
    ///
    /// # Panics
    /// If [`RatingsConfig::check`] or [`Filters::check`] refuses the settings.
    pub fn load(&self, filters: &Filters, streams: &Streams, cache: &RatingsCache) -> Result<Arc<Ratings>, DataError> {
        let load = || match self {
            Self::Folder(folder) => named::load_ratings_folder(folder, filters),
            Self::Source(source) => source.settings().load(filters, streams),
        };
        if let Self::Source(source) = self
            && source.settings().is_each_seeds_own()
        {
            return load().map(Arc::new);
        }
        cache.once(format!("{filters:?} {self:?}"), load)
    }
}
