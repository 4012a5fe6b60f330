//! Binary versions of CIFAR-10 and CIFAR-100.
//!
//! # Definition
//! A file is a sequence of rows. A row of CIFAR-10 has 3,073 bytes: the label, below 10, then 1,024 bytes each of red,
//! green and blue, row by row of the 32 × 32 image. A row of CIFAR-100 has 3,074: the coarse label, below 20, which is
//! left out here, the fine label, below 100, and the pixels. A file is plain or gzip (told by its first two bytes, not
//! by its name). Pixels become features in [0, 1] (`byte / 255`) of shape 3 × 32 × 32.
//!
//! # Inputs
//! A folder with the official files of CIFAR-10 (`data_batch_1.bin` … `data_batch_5.bin`, `test_batch.bin`), or with
//! files `train*.bin` and `test*.bin` (those of CIFAR-100 are such); several of one part are read in the order of their
//! names. Every name may end in `.gz`, which is preferred where both are there. A scenario that names the folder alone
//! means CIFAR-100 where there is a `fine_label_names.txt`, as in the official folder, and CIFAR-10 otherwise.
//!
//! # Source
//! A. Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", University of Toronto, 2009.
//!
//! # Trust
//! None: memory grows row by row as bytes really arrive, up to [`ROWS_MAX`] rows in all files of a part.
//!
//! # Example
//! ```toml
//! data = { cifar10 = "cifar-10-batches-bin" }
//! data = { cifar100 = "cifar-100-binary" }
//! ```

use super::bytes::ByteReader;
use super::located;
use super::source::{DataCache, SourceSettings};
use super::{DataError, Dataset, Shape, Split, Targets};
use fedgenie_core::rng::Streams;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Folder of CIFAR-10's binary version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Cifar10Folder(PathBuf);

impl SourceSettings for Cifar10Folder {
    fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        self.0 = located(&self.0, base, data);
    }

    fn files(&self) -> Vec<PathBuf> {
        all_files(&self.0)
    }

    fn load(&self, _: &Streams, _: &DataCache) -> Result<Split, DataError> {
        load_cifar_folder(&self.0, Cifar::Ten)
    }
}

/// Folder of CIFAR-100's binary version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Cifar100Folder(PathBuf);

impl SourceSettings for Cifar100Folder {
    fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        self.0 = located(&self.0, base, data);
    }

    fn files(&self) -> Vec<PathBuf> {
        all_files(&self.0)
    }

    fn load(&self, _: &Streams, _: &DataCache) -> Result<Split, DataError> {
        load_cifar_folder(&self.0, Cifar::Hundred)
    }
}

/// Every image's shape.
pub const SHAPE: Shape = Shape { channels: 3, height: 32, width: 32 };

/// Bytes, and features, of an image.
const PIXELS: usize = 3_072;

/// The most rows of a part, training or test: 87,381, so that the features take at most 1 GiB where they are
/// standardised.
pub const ROWS_MAX: usize = (1 << 28) / PIXELS;

/// Which of the two sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cifar {
    /// 10 classes.
    Ten,
    /// 100 classes (the fine labels).
    Hundred,
}

impl Cifar {
    /// Number of classes.
    pub const fn classes(self) -> usize {
        match self {
            Self::Ten => 10,
            Self::Hundred => 100,
        }
    }

    /// The labels in front of a row's pixels: how many values each can have. The last is the one that is used.
    const fn labels(self) -> &'static [usize] {
        match self {
            Self::Ten => &[10],
            Self::Hundred => &[20, 100],
        }
    }
}

/// Loads the training and test images of a folder.
///
/// # Errors
/// See [`DataError`]; the first file with something wrong is named.
pub fn load_cifar_folder(folder: &Path, kind: Cifar) -> Result<Split, DataError> {
    let (train, test) = if kind == Cifar::Ten && has_official_names(folder) {
        let train: Result<Vec<_>, _> = official_batches().map(|name| official_file(folder, &name)).collect();
        (train?, vec![official_file(folder, "test_batch.bin")?])
    } else {
        (files(folder, "train")?, files(folder, "test")?)
    };
    Ok(Split { train: read_cifar(&train, kind)?, test: read_cifar(&test, kind)? })
}

fn official_batches() -> impl Iterator<Item = String> {
    (1..=5).map(|batch| format!("data_batch_{batch}.bin"))
}

/// Whether the training files have their official names; a folder with `train*.bin` may well call its test file
/// `test_batch.bin`.
fn has_official_names(folder: &Path) -> bool {
    official_batches().any(|name| present(folder, &name).is_some())
}

/// The packed or the plain file, whichever is there.
pub(super) fn present(folder: &Path, name: &str) -> Option<PathBuf> {
    [folder.join(format!("{name}.gz")), folder.join(name)].into_iter().find(|path| path.is_file())
}

fn official_file(folder: &Path, name: &str) -> Result<PathBuf, DataError> {
    present(folder, name).ok_or_else(|| DataError::MissingCifar { folder: folder.to_owned(), file: name.to_owned() })
}

/// The files `PREFIX*.bin`, packed or plain, in the order of these names.
fn files(folder: &Path, prefix: &str) -> Result<Vec<PathBuf>, DataError> {
    let names = names(folder, prefix);
    if names.is_empty() {
        return Err(DataError::MissingCifar { folder: folder.to_owned(), file: format!("{prefix}*.bin") });
    }
    Ok(names.iter().filter_map(|name| present(folder, name)).collect())
}

fn names(folder: &Path, prefix: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .map(|name| name.strip_suffix(".gz").map_or(name.clone(), str::to_owned))
        .filter(|name| name.starts_with(prefix) && name.ends_with(".bin") && present(folder, name).is_some())
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Every file of a folder that may be read.
pub fn all_files(folder: &Path) -> Vec<PathBuf> {
    let official = official_batches().chain(["test_batch.bin".to_owned()]);
    let mut files: Vec<PathBuf> = official
        .chain(names(folder, "train"))
        .chain(names(folder, "test"))
        .filter_map(|name| present(folder, &name))
        .collect();
    files.sort_unstable();
    files.dedup();
    files
}

/// Which of the sets a folder seems to hold: CIFAR-100's official folder has a list of its fine labels.
pub fn recognise(folder: &Path) -> Option<Cifar> {
    if !has_official_names(folder) && names(folder, "train").is_empty() && names(folder, "test").is_empty() {
        None
    } else if folder.join("fine_label_names.txt").is_file() {
        Some(Cifar::Hundred)
    } else {
        Some(Cifar::Ten)
    }
}

/// Reads files of rows, one after the other, into one part.
///
/// # Errors
/// Anything that is not exactly such a file: cut off, damaged, empty, a label that names no class; more rows than
/// [`ROWS_MAX`].
pub fn read_cifar(paths: &[PathBuf], kind: Cifar) -> Result<Dataset, DataError> {
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for path in paths {
        read_rows(path, kind, &mut pixels, &mut labels)?;
    }
    Ok(Dataset::of_bytes(pixels, PIXELS, Targets::Classes { labels, classes: kind.classes() }).with_shape(SHAPE))
}

fn read_rows(path: &Path, kind: Cifar, pixels: &mut Vec<u8>, labels: &mut Vec<u8>) -> Result<(), DataError> {
    let known = kind.labels();
    let row_bytes = known.len() + PIXELS;
    let mut reader = ByteReader::open(path)?;
    loop {
        let start = reader.position;
        let row = reader.take(row_bytes as u64)?;
        if row.is_empty() && start > 0 {
            return reader.expect_end();
        }
        if row.len() < row_bytes {
            // A damaged archive is named as such, not as a short file.
            reader.expect_end()?;
            return Err(DataError::PartialRow { path: path.to_owned(), position: reader.position, row_bytes });
        }
        if labels.len() == ROWS_MAX {
            return Err(DataError::TooMany { path: path.to_owned(), limit: ROWS_MAX, what: "images" });
        }
        let (head, image) = row.split_at(known.len());
        for (index, (&found, &classes)) in head.iter().zip(known).enumerate() {
            if usize::from(found) >= classes {
                let position = start + index as u64;
                return Err(DataError::LabelByte { path: path.to_owned(), position, found, classes });
            }
        }
        labels.push(head[known.len() - 1]);
        pixels.extend_from_slice(image);
    }
}

#[cfg(test)]
mod tests;
