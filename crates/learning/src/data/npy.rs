//! NumPy arrays: `.npy` files of features and labels.
//!
//! # Definition
//! Bytes 93 `NUMPY`, a version (1.0, 2.0 or 3.0), the length of the header (little-endian, 2 bytes in version 1, else
//! 4), the header (a Python dictionary of `descr`, `fortran_order` and `shape` as text), then the numbers. Read are
//! `f4`, `f8`, `u1`, `u2`, `u4`, `i1`, `i2`, `i4` and `i8`, little-endian and in C order. A file is plain or gzip (told
//! by its first two bytes).
//!
//! Features have 2 to 4 dimensions: example × feature, example × row × column, or example × channel × row × column.
//! Numbers become the nearest `f32`; `u1` is divided by 255 (bytes are pixels), all others stay as they are. Labels
//! have 1 dimension: whole numbers from 0 are classes, of which there are as many as the largest training label plus
//! one; `f4` and `f8` are numbers to predict.
//!
//! # Source
//! NumPy's `numpy.lib.format`, versions 1 to 3.
//!
//! # Trust
//! None: sizes are multiplied with a check and held against [`VALUES_MAX`] before anything is reserved, memory grows
//! only as bytes really arrive, and no more is ever unpacked than the header promises plus one byte.
//!
//! # Example
//! ```toml
//! data = { npy = { train = "x.npy", train_labels = "y.npy", test = "x_test.npy", test_labels = "y_test.npy" } }
//! ```
//! With `shape = [1, 28, 28]`, features of two dimensions are the pixels of such images.

mod header;

use super::bytes::ByteReader;
use super::located;
use super::source::{DataCache, ShapeConfig, SourceSettings};
use super::{DataError, Dataset, Shape, Split, Targets};
use fedgenie_core::rng::Streams;
use header::{Header, Kind, Number};
use ndarray::Array2;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The most numbers of a file: 2^28, which is 1 GiB once they are `f32`.
pub const VALUES_MAX: usize = 1 << 28;

/// The most classes.
pub const CLASSES_MAX: usize = 256;

/// Bytes that are unpacked at a time; a multiple of every number's size.
const BLOCK: u64 = 1 << 16;

/// `{ npy = { .. } }`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NpyConfig {
    /// Features of the training examples: example × feature, example × row × column, or example × channel × row ×
    /// column.
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

impl SourceSettings for NpyConfig {
    fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        let Self { train, train_labels, test, test_labels, .. } = self;
        [train, train_labels, test, test_labels].into_iter().for_each(|file| *file = located(file, base, data));
    }

    fn files(&self) -> Vec<PathBuf> {
        [&self.train, &self.train_labels, &self.test, &self.test_labels].map(PathBuf::clone).to_vec()
    }

    fn load(&self, _: &Streams, _: &DataCache) -> Result<Split, DataError> {
        self.arrays().load()
    }
}

impl NpyConfig {
    fn arrays(&self) -> NpyArrays {
        let Self { train, train_labels, test, test_labels, shape } = self.clone();
        NpyArrays { train, train_labels, test, test_labels, shape: shape.map(|ShapeConfig(shape)| shape) }
    }
}

/// Features and labels of both parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NpyArrays {
    /// Features of the training examples.
    pub train: PathBuf,
    /// Labels of the training examples.
    pub train_labels: PathBuf,
    /// Features of the test examples.
    pub test: PathBuf,
    /// Labels of the test examples.
    pub test_labels: PathBuf,
    /// How features of two dimensions are laid out; one channel each if not given.
    pub shape: Option<Shape>,
}

impl NpyArrays {
    /// Reads the four files.
    ///
    /// # Errors
    /// See [`DataError`]; the first file with something wrong is named, and the byte where it is.
    pub fn load(&self) -> Result<Split, DataError> {
        let labels = Labels::read(&self.train_labels)?;
        let classes = labels.classes();
        let (features, shape) = read_features(&self.train, self.shape, None)?;
        let train = join(&self.train, features, shape, &self.train_labels, labels, classes)?;
        let labels = Labels::read(&self.test_labels)?;
        labels.check_alike(&self.test_labels, classes)?;
        let (features, shape) = read_features(&self.test, self.shape, Some(shape))?;
        let test = join(&self.test, features, shape, &self.test_labels, labels, classes)?;
        Ok(Split { train, test })
    }
}

fn wrong(path: &Path, position: u64, message: String) -> DataError {
    DataError::Array { path: path.to_owned(), position, message }
}

/// Puts features and labels of the same examples together.
fn join(
    image_path: &Path,
    features: Vec<f32>,
    shape: Shape,
    label_path: &Path,
    labels: Labels,
    classes: usize,
) -> Result<Dataset, DataError> {
    let targets = match labels {
        Labels::Classes { labels, .. } => Targets::Classes { labels, classes },
        Labels::Values(values) => Targets::Values(values),
    };
    let examples = features.len() / shape.len();
    if examples != targets.len() {
        return Err(DataError::CountMismatch {
            image_path: image_path.to_owned(),
            images: examples,
            label_path: label_path.to_owned(),
            labels: targets.len(),
        });
    }
    let features = Array2::from_shape_vec((examples, shape.len()), features).expect("only whole examples are read");
    Ok(Dataset::new(features, targets).with_shape(shape))
}

/// All numbers of an array of features, and the shape of an example.
fn read_features(path: &Path, wanted: Option<Shape>, expected: Option<Shape>) -> Result<(Vec<f32>, Shape), DataError> {
    let mut reader = ByteReader::open(path)?;
    let header = Header::read(&mut reader)?;
    let shape = match *header.dimensions {
        [_, channels] => Shape { channels, height: 1, width: 1 },
        [_, height, width] => Shape { channels: 1, height, width },
        [_, channels, height, width] => Shape { channels, height, width },
        _ => {
            let message = format!(
                "the array has {}; features have 2 (example × feature), 3 (example × row × column) or 4 (example × channel × \
                 row × column)",
                header.described()
            );
            return Err(header.wrong(path, message));
        }
    };
    let shape = match wanted {
        Some(wanted) if shape == wanted || (header.is_table() && wanted.checked_len() == Some(shape.channels)) => {
            wanted
        }
        Some(wanted) => {
            let message = format!("an example has the shape {shape}, which is not the given shape {wanted}");
            return Err(header.wrong(path, message));
        }
        None => shape,
    };
    if let Some(expected) = expected
        && expected != shape
    {
        let message = format!("an example has the shape {shape}; training examples have {expected}");
        return Err(header.wrong(path, message));
    }
    let mut values = Vec::new();
    let scale = if header.kind == Kind::U1 { 255.0 } else { 1.0 };
    each_number(&mut reader, &header, |position, number| {
        let value = match number {
            Number::Real(real) => real as f32,
            Number::Whole(whole) => whole as f32 / scale,
        };
        values.push(finite(path, position, value, number)?);
        Ok(())
    })?;
    Ok((values, shape))
}

/// A table of `f4` or `f8`, row by row, and the length of a row.
///
/// # Errors
/// See [`DataError`]; the file and the byte where something is wrong.
pub fn read_table(path: &Path) -> Result<(Vec<f32>, usize), DataError> {
    let mut reader = ByteReader::open(path)?;
    let header = Header::read(&mut reader)?;
    let (true, [_, width]) = (header.kind.is_real(), &header.dimensions[..]) else {
        let kind = if header.kind.is_real() { "real" } else { "whole" };
        let message = format!(
            "the array has {} of {kind} numbers; expected 2 (item × feature) of <f4 or <f8",
            header.described()
        );
        return Err(header.wrong(path, message));
    };
    let mut values = Vec::new();
    each_number(&mut reader, &header, |position, number| {
        if let Number::Real(real) = number {
            values.push(finite(path, position, real as f32, number)?);
        }
        Ok(())
    })?;
    Ok((values, *width))
}

fn finite(path: &Path, position: u64, value: f32, number: Number) -> Result<f32, DataError> {
    if value.is_finite() {
        Ok(value)
    } else {
        Err(wrong(path, position, format!("found {number}; expected a finite number within the range of f32")))
    }
}

/// The targets in the files' own type.
enum Labels {
    /// Classes, and where in the file they begin and how many bytes each has.
    Classes {
        labels: Vec<u8>,
        start: u64,
        bytes: u64,
    },
    Values(Vec<f32>),
}

impl Labels {
    fn read(path: &Path) -> Result<Self, DataError> {
        let mut reader = ByteReader::open(path)?;
        let header = Header::read(&mut reader)?;
        if header.dimensions.len() != 1 {
            let message = format!("the array has {}; labels have 1, the example", header.described());
            return Err(header.wrong(path, message));
        }
        let (mut labels, mut values) = (Vec::new(), Vec::new());
        let start = reader.position;
        each_number(&mut reader, &header, |position, number| {
            match number {
                Number::Real(real) => values.push(finite(path, position, real as f32, number)?),
                Number::Whole(whole) => labels.push(u8::try_from(whole).map_err(|_| {
                    let most = CLASSES_MAX - 1;
                    wrong(path, position, format!("label {whole}; expected a whole number from 0 to {most}"))
                })?),
            }
            Ok(())
        })?;
        Ok(match header.kind.is_real() {
            true => Self::Values(values),
            false => Self::Classes { labels, start, bytes: header.kind.bytes() },
        })
    }

    /// Number of classes: the largest label plus one; 0 if there are none.
    fn classes(&self) -> usize {
        match self {
            Self::Classes { labels, .. } => labels.iter().max().map_or(0, |&label| usize::from(label) + 1),
            Self::Values(_) => 0,
        }
    }

    /// Checks that test labels are of the kind and the classes of the training labels.
    fn check_alike(&self, path: &Path, classes: usize) -> Result<(), DataError> {
        match self {
            Self::Classes { .. } if classes == 0 => {
                Err(wrong(path, 0, "labels are whole numbers; those of training are real numbers".to_owned()))
            }
            Self::Values(_) if classes > 0 => {
                Err(wrong(path, 0, "labels are real numbers; those of training are whole numbers, classes".to_owned()))
            }
            Self::Values(_) => Ok(()),
            Self::Classes { labels, start, bytes } => {
                match labels.iter().position(|&label| usize::from(label) >= classes) {
                    None => Ok(()),
                    Some(index) => Err(DataError::LabelOutOfRange {
                        path: path.to_owned(),
                        position: start + bytes * index as u64,
                        found: labels[index],
                        classes,
                    }),
                }
            }
        }
    }
}

/// Hands over the numbers of an array with the byte where each stands, and makes sure that nothing follows them.
fn each_number(
    reader: &mut ByteReader<'_>,
    header: &Header,
    mut take: impl FnMut(u64, Number) -> Result<(), DataError>,
) -> Result<(), DataError> {
    let end = reader.position + header.values as u64 * header.kind.bytes();
    while reader.position < end {
        let start = reader.position;
        let wanted = BLOCK.min(end - start);
        let block = reader.take(wanted)?;
        if (block.len() as u64) < wanted {
            return Err(reader.truncated(end));
        }
        let size = header.kind.bytes();
        for (index, bytes) in block.chunks_exact(size as usize).enumerate() {
            take(start + index as u64 * size, header.kind.number(bytes))?;
        }
    }
    reader.expect_end()
}

#[cfg(test)]
mod tests;
