//! How a scenario says where examples come from: a folder, files, or a generator.
//!
//! A text is a folder whose files tell what it holds: those of MNIST's names, CIFAR's binary version, or SVHN. A table
//! with one key names the format or the generator. Synthetic examples are drawn only where a scenario asks for them.

use super::cifar::{self, load_cifar_folder};
use super::idx::{self, is_idx_folder, load_idx_folder};
use super::svhn::{self, is_svhn_folder, load_svhn_folder};
use super::{
    DataError, Dataset, Kept, NO_FOLDER, Recent, Shape, Split, csv, folder_or_source, located, npy, synthetic_clients,
    synthetic_images,
};
use fedgenie_core::components;
use fedgenie_core::config::Complaint;
use fedgenie_core::rng::Streams;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A source's part of a scenario.
pub trait SourceSettings {
    /// Makes file names whole: see [`located`].
    fn resolve_paths(&mut self, _base: &Path, _data: Option<&Path>) {}

    /// The files that are read, as far as they are there.
    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Checks that need no file.
    ///
    /// # Errors
    /// A complaint with a path below the source's table.
    fn check(&self) -> Result<(), Complaint> {
        Ok(())
    }

    /// Whether each seed has examples, or a split of them, of its own.
    fn is_each_seeds_own(&self) -> bool {
        false
    }

    /// The examples of a seed.
    ///
    /// # Errors
    /// A file that does not have the expected format.
    fn load(&self, streams: &Streams, cache: &DataCache) -> Result<Split, DataError>;
}

components! {
    /// Files of a given format, or a generator.
    pub enum DataSource: SourceSettings = "data" {
        "idx" => Idx(idx::IdxFolder) in "idx.rs";
        /// CIFAR-10, binary version.
        "cifar10" => Cifar10(cifar::Cifar10Folder) in "cifar.rs";
        /// CIFAR-100, binary version.
        "cifar100" => Cifar100(cifar::Cifar100Folder) in "cifar.rs";
        "svhn" => Svhn(svhn::SvhnFolder) in "svhn.rs";
        "csv" => Csv(csv::CsvConfig) in "csv.rs";
        "npy" => Npy(npy::NpyConfig) in "npy.rs";
        "synthetic" => Synthetic(synthetic_images::SyntheticConfig) in "synthetic_images.rs";
        "synthetic-clients" => SyntheticClients(synthetic_clients::SyntheticClients) in "synthetic_clients.rs";
    }
}

/// `data = "fashion-mnist"`, `data = { csv = { .. } }`, …
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum DataConfig {
    /// A folder whose files tell by their names whether they are IDX (MNIST, Fashion-MNIST), CIFAR or SVHN.
    Folder(PathBuf),
    /// Files of a given format, or a generator.
    Source(DataSource),
}

/// Channels, rows and columns: `shape = [3, 32, 32]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<usize>", into = "[usize; 3]")]
#[schemars(with = "[usize; 3]")]
pub struct ShapeConfig(pub Shape);

impl TryFrom<Vec<usize>> for ShapeConfig {
    type Error = String;

    fn try_from(sizes: Vec<usize>) -> Result<Self, String> {
        let shape = match *sizes {
            [channels, height, width] => Some(Shape { channels, height, width }),
            _ => None,
        };
        let sensible = |shape: &Shape| shape.checked_len().is_some_and(|features| features > 0);
        let expected = "[channels, rows, columns], each at least 1, such as [3, 32, 32]";
        shape.filter(sensible).map(Self).ok_or_else(|| expected.to_owned())
    }
}

impl From<ShapeConfig> for [usize; 3] {
    fn from(ShapeConfig(Shape { channels, height, width }): ShapeConfig) -> Self {
        [channels, height, width]
    }
}

const ONE_SOURCE: &str = "a folder's name, or a table with exactly one key, such as { idx = \"folder\" } or \
                          { synthetic = { classes = 10 } }";

impl<'de> Deserialize<'de> for DataConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        folder_or_source(deserializer, ONE_SOURCE, (Self::Folder, Self::Source))
    }
}

/// Bytes of examples that are kept of seeds that have their own, for the other points and policies of these seeds.
const DRAWN_BYTES: u64 = 1 << 28;

/// Contents of files, kept for the other seeds and points of an experiment; and what seeds have drawn, for the other
/// points, as far as there is room.
#[derive(Debug)]
pub struct DataCache {
    splits: Kept<Split>,
    drawn: Recent<Split>,
    tables: Kept<Dataset>,
    others: Mutex<BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

impl Default for DataCache {
    fn default() -> Self {
        let (splits, tables, others) = Default::default();
        Self { splits, drawn: Recent::new(DRAWN_BYTES), tables, others }
    }
}

impl DataCache {
    /// The examples that a seed has of its own under these settings.
    ///
    /// # Errors
    /// As drawing them.
    pub fn drawn<E>(
        &self,
        settings: String,
        streams: &Streams,
        draw: impl FnOnce() -> Result<Split, E>,
    ) -> Result<Arc<Split>, E> {
        self.drawn.of((settings, streams.seed()), || {
            let split = draw()?;
            let bytes = split.bytes();
            Ok((split, bytes))
        })
    }

    /// The cache of another kind of data, made at the first call.
    pub fn of<T: Default + Any + Send + Sync>(&self) -> Arc<T> {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        let other = others.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(T::default())).clone();
        other.downcast().expect("a value kept under a type is of it")
    }

    /// A table from which each seed draws its rows for testing, read once.
    ///
    /// # Errors
    /// As reading it.
    pub fn table(
        &self,
        key: String,
        read: impl FnOnce() -> Result<Dataset, DataError>,
    ) -> Result<Arc<Dataset>, DataError> {
        self.tables.once(key, read)
    }
}

impl DataConfig {
    /// Makes file names whole: see [`located`].
    pub fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        match self {
            Self::Folder(folder) => *folder = located(folder, base, data),
            Self::Source(source) => source.settings_mut().resolve_paths(base, data),
        }
    }

    /// The files that are read, as far as they are there.
    pub fn files(&self) -> Vec<PathBuf> {
        match self {
            Self::Folder(folder) => {
                [idx::files(folder), cifar::all_files(folder), svhn::files(folder)].into_iter().flatten().collect()
            }
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

    /// The examples of one seed. Files are read once for all seeds and stay in the cache; `normalize` standardises each
    /// channel, see [`Split::normalized`].
    ///
    /// # Errors
    /// A file that does not have the expected format, or examples that cannot be standardised.
    ///
    /// # Panics
    /// If [`DataConfig::check`] refuses the settings.
    pub fn load(&self, normalize: bool, streams: &Streams, cache: &DataCache) -> Result<Arc<Split>, DataError> {
        let load = || {
            let split = match self {
                Self::Folder(folder) => load_folder(folder),
                Self::Source(source) => {
                    let split = source.settings().load(streams, cache);
                    split.map_err(|error| error.below(&format!("data.{}", source.kind())))
                }
            }?;
            if normalize { split.normalized() } else { Ok(split) }
        };
        match self {
            Self::Source(source) if source.settings().is_each_seeds_own() => {
                cache.drawn(format!("{normalize} {self:?}"), streams, load)
            }
            _ => cache.splits.once(format!("{normalize} {self:?}"), load),
        }
    }
}

/// Reads a folder in the form that its files' names tell.
fn load_folder(folder: &Path) -> Result<Split, DataError> {
    let unrecognised = |found| Err(DataError::Unrecognised { folder: folder.to_owned(), found });
    match (is_idx_folder(folder), cifar::recognise(folder), is_svhn_folder(folder)) {
        (true, None, false) => load_idx_folder(folder),
        (false, Some(kind), false) => load_cifar_folder(folder, kind),
        (false, None, true) => load_svhn_folder(folder),
        (false, None, false) if folder.is_dir() => unrecognised("has no file of a known name"),
        (false, None, false) if folder.is_file() => unrecognised("is a file, not a folder"),
        (false, None, false) => unrecognised(NO_FOLDER),
        _ => unrecognised(
            "has files of several data sets' names; say which with { idx = .. }, { cifar10 = .. } or { svhn = .. }",
        ),
    }
}

#[cfg(test)]
mod tests;
