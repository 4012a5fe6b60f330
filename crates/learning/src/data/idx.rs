//! IDX files: MNIST, Fashion-MNIST and data sets in their format.
//!
//! # Definition
//! Big-endian 32-bit words, then bytes. Images: 2051, number of images, rows, columns, then the pixels of each image
//! row by row. Labels: 2049, number of labels, then the labels. The file is plain or gzip (told by its first two bytes,
//! 1f 8b, not by its name). Pixels become features in [0, 1] (`byte / 255`) of shape 1 × rows × columns; there are as
//! many classes as the largest training label plus one.
//!
//! # Inputs
//! A folder with `train-images-idx3-ubyte`, `train-labels-idx1-ubyte`, `t10k-images-idx3-ubyte` and
//! `t10k-labels-idx1-ubyte`, each plain or with `.gz`.
//!
//! # Source
//! Y. LeCun, C. Cortes, C. J. C. Burges, "The MNIST database of handwritten digits"; H. Xiao, K. Rasul, R. Vollgraf,
//! "Fashion-MNIST", arXiv:1708.07747.
//!
//! # Trust
//! None: sizes are multiplied with a check and held against [`BYTES_MAX`] before anything is reserved, memory grows
//! only as bytes really arrive, and no more is ever unpacked than the header promises plus one byte.
//!
//! # Example
//! ```toml
//! data = "fashion-mnist"             # a folder, told by its files' names
//! data = { idx = "fashion-mnist" }   # the same, said so
//! ```

use super::bytes::ByteReader;
use super::located;
use super::source::{DataCache, SourceSettings};
use super::{DataError, Dataset, Shape, Split, Targets};
use fedgenie_core::rng::Streams;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The most data bytes (pixels, labels) that a file may promise: 2^28, which is 1 GiB once they are standardised.
pub const BYTES_MAX: u64 = 1 << 28;

/// First word of a file of images.
pub const IMAGE_MAGIC: u32 = 2051;

/// First word of a file of labels.
pub const LABEL_MAGIC: u32 = 2049;

/// Folder of the four IDX files of MNIST's names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct IdxFolder(PathBuf);

impl SourceSettings for IdxFolder {
    fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        self.0 = located(&self.0, base, data);
    }

    fn files(&self) -> Vec<PathBuf> {
        files(&self.0)
    }

    fn load(&self, _: &Streams, _: &DataCache) -> Result<Split, DataError> {
        load_idx_folder(&self.0)
    }
}

/// The images of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Images {
    /// Number of images.
    pub count: usize,
    /// Rows of pixels in an image.
    pub rows: usize,
    /// Pixels in a row.
    pub columns: usize,
    /// All pixels, image by image and row by row.
    pub pixels: Vec<u8>,
}

/// Loads `train-` and `t10k-` images and labels from a folder, each with or without `.gz`.
///
/// Pixels become features in [0, 1] (`pixel / 255`). The number of classes is the largest training label plus one.
///
/// # Errors
/// See [`DataError`]; the first file with something wrong is named.
pub fn load_idx_folder(folder: &Path) -> Result<Split, DataError> {
    let (train, test) = rayon::join(|| Part::read(folder, "train"), || Part::read(folder, "t10k"));
    let train = train?;
    let size = (train.images.rows, train.images.columns);
    let classes = train.labels.iter().max().map_or(0, |&label| usize::from(label)) + 1;
    let train = train.finish(size, classes)?;
    Ok(Split { train, test: test?.finish(size, classes)? })
}

/// Images and labels as they were read.
struct Part {
    image_path: PathBuf,
    images: Images,
    label_path: PathBuf,
    labels: Vec<u8>,
}

impl Part {
    fn read(folder: &Path, part: &str) -> Result<Self, DataError> {
        let image_path = locate(folder, &format!("{part}-images-idx3-ubyte"))?;
        let label_path = locate(folder, &format!("{part}-labels-idx1-ubyte"))?;
        let labels = read_labels(&label_path)?;
        let images = read_images(&image_path)?;
        Ok(Self { image_path, images, label_path, labels })
    }

    /// The examples, whose images have this size and labels are below `classes`.
    fn finish(self, size: (usize, usize), classes: usize) -> Result<Dataset, DataError> {
        let Self { image_path, images, label_path, labels } = self;
        if images.count != labels.len() {
            return Err(DataError::CountMismatch {
                image_path,
                images: images.count,
                label_path,
                labels: labels.len(),
            });
        }
        let found = (images.rows, images.columns);
        if found != size {
            return Err(DataError::SizeMismatch { path: image_path, found, expected: size });
        }
        if let Some(index) = labels.iter().position(|&label| usize::from(label) >= classes) {
            let position = LABEL_HEADER_BYTES + index as u64;
            return Err(DataError::LabelOutOfRange { path: label_path, position, found: labels[index], classes });
        }
        let shape = Shape { channels: 1, height: size.0, width: size.1 };
        Ok(Dataset::of_bytes(images.pixels, shape.len(), Targets::Classes { labels, classes }).with_shape(shape))
    }
}

/// The packed or the plain file, whichever is there.
fn locate(folder: &Path, name: &str) -> Result<PathBuf, DataError> {
    let packed = folder.join(format!("{name}.gz"));
    let plain = folder.join(name);
    if packed.is_file() {
        Ok(packed)
    } else if plain.is_file() {
        Ok(plain)
    } else {
        Err(DataError::Missing { packed, plain })
    }
}

/// The files that a folder has, out of the four.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let kinds = ["train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"];
    kinds.iter().filter_map(|kind| locate(folder, &format!("{kind}-ubyte")).ok()).collect()
}

/// Whether a folder has one of the four files.
pub fn is_idx_folder(folder: &Path) -> bool {
    !files(folder).is_empty()
}

const IMAGE_HEADER_BYTES: u64 = 16;
const LABEL_HEADER_BYTES: u64 = 8;

/// Reads a file of images, plain or gzip.
///
/// # Errors
/// Anything that is not exactly such a file.
pub fn read_images(path: &Path) -> Result<Images, DataError> {
    let mut reader = ByteReader::open(path)?;
    let [magic, count, rows, columns] = reader.words(IMAGE_HEADER_BYTES)?;
    reader.expect_magic(magic, IMAGE_MAGIC, "images")?;
    let pixels = reader.data(&[(count, "images"), (rows, "rows"), (columns, "columns")])?;
    Ok(Images { count: count as usize, rows: rows as usize, columns: columns as usize, pixels })
}

/// Reads a file of labels, plain or gzip.
///
/// # Errors
/// Anything that is not exactly such a file.
pub fn read_labels(path: &Path) -> Result<Vec<u8>, DataError> {
    let mut reader = ByteReader::open(path)?;
    let [magic, count] = reader.words(LABEL_HEADER_BYTES)?;
    reader.expect_magic(magic, LABEL_MAGIC, "labels")?;
    reader.data(&[(count, "labels")])
}

impl ByteReader<'_> {
    /// The words of the header, which is `length` bytes long.
    fn words<const WORDS: usize>(&mut self, length: u64) -> Result<[u32; WORDS], DataError> {
        let header = self.take(length)?;
        let (words, _) = header.as_chunks::<4>();
        let words = words.first_chunk::<WORDS>().ok_or_else(|| self.truncated(length))?;
        Ok(words.map(u32::from_be_bytes))
    }

    fn expect_magic(&self, found: u32, expected: u32, kind: &'static str) -> Result<(), DataError> {
        if found == expected {
            Ok(())
        } else {
            Err(DataError::Magic { path: self.path.to_owned(), found, expected, kind })
        }
    }

    /// The data after the header, whose dimensions these are, and the proof that nothing follows.
    fn data(&mut self, dimensions: &[(u32, &'static str)]) -> Result<Vec<u8>, DataError> {
        if let Some(index) = dimensions.iter().position(|&(size, _)| size == 0) {
            let position = 4 + 4 * index as u64;
            return Err(DataError::ZeroDimension { path: self.path.to_owned(), position, what: dimensions[index].1 });
        }
        let promised = dimensions
            .iter()
            .try_fold(1_u64, |product, &(size, _)| product.checked_mul(u64::from(size)))
            .filter(|&product| product <= BYTES_MAX)
            .ok_or_else(|| DataError::TooLarge {
                path: self.path.to_owned(),
                dimensions: dimensions.iter().map(|&(size, _)| size).collect(),
                limit: BYTES_MAX,
            })?;
        let end = self.position + promised;
        let data = self.take(promised)?;
        if data.len() as u64 != promised {
            return Err(self.truncated(end));
        }
        self.expect_end()?;
        Ok(data)
    }
}

#[cfg(test)]
mod tests;
