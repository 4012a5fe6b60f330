//! How a scenario says where examples come from: a folder, files, or a generator.
//!
//! A text is a folder whose files tell what it holds: those of MNIST's names, or the binary version of CIFAR-10. A table with
//! one key names the format or the generator. Synthetic examples are drawn only where a scenario asks for them.

use super::TaskError;
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::rng::Streams;
use fedgenie_learning::data::cifar::{self, Cifar, load_cifar_folder};
use fedgenie_learning::data::csv::{Answer, CsvColumns};
use fedgenie_learning::data::held_out::held_out;
use fedgenie_learning::data::idx::{self, is_idx_folder, load_idx_folder};
use fedgenie_learning::data::located;
use fedgenie_learning::data::npy::NpyArrays;
use fedgenie_learning::data::synthetic_images::SyntheticImages;
use fedgenie_learning::data::{DataError, Dataset, Shape, Split};
use fedgenie_learning::model::ModelError;
use schemars::JsonSchema;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// `data = "fashion-mnist"`, `data = { csv = { .. } }`, …
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum DataConfig {
    /// A folder whose files tell by their names whether they are IDX (MNIST, Fashion-MNIST) or CIFAR-10.
    Folder(PathBuf),
    /// Files of a given format, or a generator.
    Source(DataSource),
}

/// Files of a given format, or a generator.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DataSource {
    /// Folder of the four IDX files of MNIST's names.
    Idx(PathBuf),
    /// Folder of CIFAR-10's binary version.
    Cifar10(PathBuf),
    /// Folder of CIFAR-100's binary version.
    Cifar100(PathBuf),
    /// Comma-separated values with a header.
    Csv(CsvConfig),
    /// NumPy arrays.
    Npy(NpyConfig),
    /// Images drawn from the seed.
    Synthetic(SyntheticConfig),
}

/// The keys of [`DataSource`].
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Format {
    Idx,
    Cifar10,
    Cifar100,
    Csv,
    Npy,
    Synthetic,
}

/// `{ csv = { .. } }`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CsvConfig {
    /// File of training examples, plain or gzip.
    pub train: PathBuf,
    /// File of test examples, with the same columns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<PathBuf>,
    /// Share of the rows of `train` that each seed draws for testing, in the place of `test`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_fraction: Option<f64>,
    /// Column of the class to predict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Column of the number to predict, in the place of `label`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Column of the device, writer or user that an example comes from, for `partition = "by-column"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Channels, rows and columns of an image whose pixels the features are, in this order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<ShapeConfig>,
}

/// `{ npy = { .. } }`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NpyConfig {
    /// Features of the training examples: example × feature, example × row × column, or example × channel × row × column.
    pub train: PathBuf,
    /// Classes (whole numbers from 0) or numbers to predict (floats) of the training examples.
    pub train_labels: PathBuf,
    /// Features of the test examples.
    pub test: PathBuf,
    /// Classes or numbers to predict of the test examples.
    pub test_labels: PathBuf,
    /// Channels, rows and columns of an image whose pixels the features are, where they have no such dimensions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<ShapeConfig>,
}

/// `{ synthetic = { .. } }`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SyntheticConfig {
    /// Number of classes, 2 to 256.
    #[serde(default = "SyntheticConfig::default_classes")]
    pub classes: usize,
    /// Channels of an image.
    #[serde(default = "SyntheticConfig::default_channels")]
    pub channels: usize,
    /// Rows of an image.
    #[serde(default = "SyntheticConfig::default_side")]
    pub height: usize,
    /// Columns of an image.
    #[serde(default = "SyntheticConfig::default_side")]
    pub width: usize,
    /// Number of training examples.
    #[serde(default = "SyntheticConfig::default_train")]
    pub train: usize,
    /// Number of test examples.
    #[serde(default = "SyntheticConfig::default_test")]
    pub test: usize,
    /// Standard deviation of a pixel's noise; pixels lie in [0, 1].
    #[serde(default = "SyntheticConfig::default_noise")]
    pub noise: f64,
    /// Largest shift of an image in pixels, each way.
    #[serde(default = "SyntheticConfig::default_deformation")]
    pub deformation: f64,
}

impl SyntheticConfig {
    const fn default_classes() -> usize {
        10
    }
    const fn default_channels() -> usize {
        1
    }
    const fn default_side() -> usize {
        28
    }
    const fn default_train() -> usize {
        6_000
    }
    const fn default_test() -> usize {
        1_000
    }
    const fn default_noise() -> f64 {
        0.3
    }
    const fn default_deformation() -> f64 {
        2.0
    }

    fn generator(&self) -> SyntheticImages {
        let Self { classes, channels, height, width, train, test, noise, deformation } = *self;
        SyntheticImages { classes, train, test, shape: Shape { channels, height, width }, noise, deformation }
    }
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

impl<'de> Deserialize<'de> for DataConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DataVisitor)
    }
}

const ONE_SOURCE: &str = "a folder's name, or a table with exactly one key, such as { idx = \"folder\" } or \
                          { synthetic = { classes = 10 } }";

struct DataVisitor;

impl<'de> Visitor<'de> for DataVisitor {
    type Value = DataConfig;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(ONE_SOURCE)
    }

    fn visit_str<E: Error>(self, folder: &str) -> Result<DataConfig, E> {
        Ok(DataConfig::Folder(folder.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<DataConfig, A::Error> {
        let Some(format) = map.next_key::<Format>()? else { return Err(A::Error::custom(ONE_SOURCE)) };
        let source = match format {
            Format::Idx => DataSource::Idx(map.next_value()?),
            Format::Cifar10 => DataSource::Cifar10(map.next_value()?),
            Format::Cifar100 => DataSource::Cifar100(map.next_value()?),
            Format::Csv => DataSource::Csv(map.next_value()?),
            Format::Npy => DataSource::Npy(map.next_value()?),
            Format::Synthetic => DataSource::Synthetic(map.next_value()?),
        };
        match map.next_key::<IgnoredAny>()? {
            None => Ok(DataConfig::Source(source)),
            Some(_) => Err(A::Error::custom(ONE_SOURCE)),
        }
    }
}

/// What has been read from files, kept for the other seeds and points of an experiment.
#[derive(Debug, Default)]
pub struct DataCache {
    splits: Mutex<BTreeMap<String, Arc<Split>>>,
    tables: Mutex<BTreeMap<String, Arc<Dataset>>>,
}

/// What `key` stands for, loaded once.
fn once<T>(
    kept: &Mutex<BTreeMap<String, Arc<T>>>,
    key: String,
    load: impl FnOnce() -> Result<T, DataError>,
) -> Result<Arc<T>, DataError> {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = kept.get(&key) {
        return Ok(found.clone());
    }
    let loaded = Arc::new(load()?);
    kept.insert(key, loaded.clone());
    Ok(loaded)
}

impl DataConfig {
    /// Makes file names whole: see [`located`].
    pub fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        let resolve = |path: &mut PathBuf| *path = located(path, base, data);
        match self {
            Self::Folder(folder)
            | Self::Source(DataSource::Idx(folder) | DataSource::Cifar10(folder) | DataSource::Cifar100(folder)) => {
                resolve(folder);
            }
            Self::Source(DataSource::Csv(csv)) => {
                [&mut csv.train].into_iter().chain(&mut csv.test).for_each(resolve);
            }
            Self::Source(DataSource::Npy(npy)) => {
                let NpyConfig { train, train_labels, test, test_labels, .. } = npy;
                [train, train_labels, test, test_labels].into_iter().for_each(resolve);
            }
            Self::Source(DataSource::Synthetic(_)) => {}
        }
    }

    /// The files that are read, as far as they are there.
    pub fn files(&self) -> Vec<PathBuf> {
        match self {
            Self::Folder(folder) => idx::files(folder).into_iter().chain(cifar::all_files(folder)).collect(),
            Self::Source(DataSource::Idx(folder)) => idx::files(folder),
            Self::Source(DataSource::Cifar10(folder) | DataSource::Cifar100(folder)) => cifar::all_files(folder),
            Self::Source(DataSource::Csv(csv)) => [&csv.train].into_iter().chain(&csv.test).cloned().collect(),
            Self::Source(DataSource::Npy(npy)) => {
                [&npy.train, &npy.train_labels, &npy.test, &npy.test_labels].map(PathBuf::clone).to_vec()
            }
            Self::Source(DataSource::Synthetic(_)) => Vec::new(),
        }
    }

    /// Checks what can be checked without reading a file.
    ///
    /// # Errors
    /// Key below the task's table, and sentence.
    pub fn check(&self) -> Result<(), Complaint> {
        match self {
            Self::Source(DataSource::Csv(csv)) => csv.columns().and_then(|_| csv.check_test()),
            Self::Source(DataSource::Synthetic(synthetic)) => {
                synthetic.generator().check().map_err(|error| match error {
                    DataError::Setting { key, found, expected } => {
                        Complaint::new(below_data(key), format!("found {found}; expected {expected}"))
                    }
                    other => Complaint::new("data", other.to_string()),
                })
            }
            _ => Ok(()),
        }
    }

    /// The examples of one seed. Files are read once for all seeds and stay in the cache; `normalize` standardises each
    /// channel, see [`Split::normalized`].
    ///
    /// # Errors
    /// A file that is not what it should be, or examples that cannot be standardised.
    ///
    /// # Panics
    /// If [`DataConfig::check`] refuses the settings.
    pub fn load(&self, normalize: bool, streams: &Streams, cache: &DataCache) -> Result<Arc<Split>, TaskError> {
        let finished = |split: Split| if normalize { split.normalized() } else { Ok(split) };
        let key = format!("{normalize} {self:?}");
        let kept = |load: &dyn Fn() -> Result<Split, DataError>| once(&cache.splits, key, || finished(load()?));
        let split = match self {
            Self::Folder(folder) => kept(&|| load_folder(folder)),
            Self::Source(DataSource::Idx(folder)) => kept(&|| load_idx_folder(folder)),
            Self::Source(DataSource::Cifar10(folder)) => kept(&|| load_cifar_folder(folder, Cifar::Ten)),
            Self::Source(DataSource::Cifar100(folder)) => kept(&|| load_cifar_folder(folder, Cifar::Hundred)),
            Self::Source(DataSource::Npy(npy)) => kept(&|| npy.arrays().load()),
            Self::Source(DataSource::Csv(csv)) => {
                let columns = csv.columns().expect("settings are checked before data are loaded");
                match (&csv.test, csv.test_fraction) {
                    (Some(test), _) => kept(&|| columns.read_split(&csv.train, test)),
                    (None, fraction) => once(&cache.tables, format!("{self:?}"), || columns.read(&csv.train))
                        .and_then(|table| held_out(&table, fraction.unwrap_or_default(), streams))
                        .and_then(finished)
                        .map(Arc::new),
                }
            }
            Self::Source(DataSource::Synthetic(synthetic)) => {
                synthetic.generator().generate(streams).and_then(finished).map(Arc::new)
            }
        };
        split
            .map_err(|error| match error {
                DataError::Setting { key, found, expected } => {
                    DataError::Setting { key: below_data(key), found, expected }
                }
                other => other,
            })
            .map_err(TaskError::from)
    }
}

/// Number of classes of both parts.
///
/// # Errors
/// [`ModelError::Targets`] if the examples have numbers as targets.
pub fn classes(split: &Split) -> Result<usize, TaskError> {
    let refused = ModelError::Targets { found: "numbers", expected: "classes" };
    split.train.classes().map(|(_, classes)| classes).ok_or(TaskError::Model(refused))
}

/// Reads a folder as what its files' names say it is.
fn load_folder(folder: &Path) -> Result<Split, DataError> {
    let unrecognised = |found| Err(DataError::Unrecognised { folder: folder.to_owned(), found });
    match (is_idx_folder(folder), cifar::recognise(folder)) {
        (true, None) => load_idx_folder(folder),
        (false, Some(kind)) => load_cifar_folder(folder, kind),
        (true, Some(_)) => {
            unrecognised("has files of MNIST's names and of CIFAR's; say { idx = .. } or { cifar10 = .. }")
        }
        (false, None) if folder.is_dir() => unrecognised("has no file of a known name"),
        (false, None) if folder.is_file() => unrecognised("is a file, not a folder"),
        (false, None) => unrecognised("there is no such folder"),
    }
}

/// The key below the task's table for a setting of a generator or of the drawing of test rows.
fn below_data(key: &'static str) -> &'static str {
    match key {
        "test_fraction" => "data.csv.test_fraction",
        "classes" => "data.synthetic.classes",
        "channels" => "data.synthetic.channels",
        "height" => "data.synthetic.height",
        "width" => "data.synthetic.width",
        "train" => "data.synthetic.train",
        "test" => "data.synthetic.test",
        "noise" => "data.synthetic.noise",
        "deformation" => "data.synthetic.deformation",
        _ => "data",
    }
}

impl CsvConfig {
    fn columns(&self) -> Result<CsvColumns, Complaint> {
        let answer = match (&self.label, &self.target) {
            (Some(label), None) => Answer::Label(label.clone()),
            (None, Some(target)) => Answer::Target(target.clone()),
            (found, _) => {
                let found = if found.is_some() { "both label and target" } else { "neither label nor target" };
                let message = format!("found {found}; expected label (a column of classes) or target (of numbers)");
                return Err(Complaint::new("data.csv", message));
            }
        };
        Ok(CsvColumns { answer, group: self.group.clone(), shape: self.shape.map(|ShapeConfig(shape)| shape) })
    }

    fn check_test(&self) -> Result<(), Complaint> {
        let expected = "expected test (a file) or test_fraction (a share of the rows of train)";
        match (&self.test, self.test_fraction) {
            (Some(_), None) => Ok(()),
            (None, Some(fraction)) => {
                let range = f64::MIN_POSITIVE..1.0;
                check("data.csv.test_fraction", fraction, range, "a number above 0 and below 1").map(|_| ())
            }
            (Some(_), Some(_)) => {
                Err(Complaint::new("data.csv", format!("found both test and test_fraction; {expected}")))
            }
            (None, None) => {
                Err(Complaint::new("data.csv", format!("found neither test nor test_fraction; {expected}")))
            }
        }
    }
}

impl NpyConfig {
    fn arrays(&self) -> NpyArrays {
        let Self { train, train_labels, test, test_labels, shape } = self.clone();
        NpyArrays { train, train_labels, test, test_labels, shape: shape.map(|ShapeConfig(shape)| shape) }
    }
}

#[cfg(test)]
mod tests;
