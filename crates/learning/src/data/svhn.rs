//! SVHN: cropped house numbers, as published.
//!
//! # Definition
//! A MAT file for each part, with two arrays: `X`, 32 × 32 × 3 × image (row, column, colour), bytes; `y`, image × 1,
//! the digit of each image, where 10 stands for 0. Pixels become features in [0, 1] (`byte / 255`) of shape
//! 3 × 32 × 32; the class is the digit, 0 to 9. MAT files are read of level 5, plain or packed, little-endian.
//!
//! # Inputs
//! A folder with `train_32x32.mat` and `test_32x32.mat`, each as it is or with `.gz`. `extra_32x32.mat` is not read.
//!
//! # Source
//! Y. Netzer, T. Wang, A. Coates, A. Bissacco, B. Wu, A. Y. Ng, "Reading Digits in Natural Images with Unsupervised
//! Feature Learning", NIPS Workshop on Deep Learning and Unsupervised Feature Learning, 2011.
//!
//! # Trust
//! None: memory grows only as bytes really arrive, up to 2^28 bytes a part (87,381 images).
//!
//! # Example
//! ```toml
//! data = { svhn = "svhn" }
//! ```

use super::cifar::{SHAPE, present};
use super::mat::{Array, Number, read_arrays};
use super::source::{DataCache, SourceSettings};
use super::{DataError, Dataset, Split, Targets, located};
use fedgenie_core::rng::Streams;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Folder of SVHN's cropped digits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct SvhnFolder(PathBuf);

impl SourceSettings for SvhnFolder {
    fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        self.0 = located(&self.0, base, data);
    }

    fn files(&self) -> Vec<PathBuf> {
        files(&self.0)
    }

    fn load(&self, _: &Streams, _: &DataCache) -> Result<Split, DataError> {
        load_svhn_folder(&self.0)
    }
}

/// Number of classes.
const CLASSES: usize = 10;

/// Rows, and columns, of an image.
const SIDE: usize = 32;

const TRAIN: &str = "train_32x32.mat";
const TEST: &str = "test_32x32.mat";

/// The files that are read, as far as they are there.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    [TRAIN, TEST].into_iter().filter_map(|name| present(folder, name)).collect()
}

/// Whether a folder seems to hold SVHN.
pub fn is_svhn_folder(folder: &Path) -> bool {
    !files(folder).is_empty()
}

/// Loads the training and test images of a folder.
///
/// # Errors
/// See [`DataError`]; the first file with something wrong is named.
pub fn load_svhn_folder(folder: &Path) -> Result<Split, DataError> {
    let read = |name: &str| read_svhn(&present(folder, name).unwrap_or_else(|| folder.join(name)));
    let (train, test) = rayon::join(|| read(TRAIN), || read(TEST));
    Ok(Split { train: train?, test: test? })
}

/// Reads the images and digits of a file.
///
/// # Errors
/// Anything that is not such a file: damaged, other dimensions, labels that are no digits, more or fewer than images.
pub fn read_svhn(path: &Path) -> Result<Dataset, DataError> {
    let [images, labels] = read_arrays(path, ["X", "y"])?;
    let wrong = |message: String| DataError::Array { path: path.to_owned(), position: 0, message };
    let count = match images.dimensions[..] {
        [SIDE, SIDE, 3, count] if count > 0 && images.number == Number::U8 => count,
        // MATLAB drops a last dimension of one.
        [SIDE, SIDE, 3] if images.number == Number::U8 => 1,
        _ => {
            let found = dimensions(&images);
            return Err(wrong(format!(
                "X has {found}; expected 32 × 32 × 3 × images, each a byte, of at least one image"
            )));
        }
    };
    let digits = labels.numbers();
    if digits.len() != count || !matches!(labels.dimensions[..], [_, 1] | [1, _]) {
        return Err(wrong(format!("y has {}; expected {count} × 1, one for each image of X", dimensions(&labels))));
    }
    if let Some(index) = digits.iter().position(|&digit| digit.fract() != 0.0 || !(1.0..=10.0).contains(&digit)) {
        let found = digits[index];
        return Err(wrong(format!(
            "y has {found} as label {}; expected a digit from 1 to 10, where 10 is 0",
            index + 1
        )));
    }
    let labels = digits.into_iter().map(|digit| digit as u8 % CLASSES as u8).collect();
    let mut pixels = images.bytes;
    pixels.chunks_exact_mut(SIDE * SIDE).for_each(turn);
    Ok(Dataset::of_bytes(pixels, SHAPE.len(), Targets::Classes { labels, classes: CLASSES }).with_shape(SHAPE))
}

/// Turns a plane whose columns lie one after the other into one whose rows do.
fn turn(plane: &mut [u8]) {
    for row in 0..SIDE {
        for column in 0..row {
            plane.swap(row * SIDE + column, column * SIDE + row);
        }
    }
}

/// Dimensions and type of an array, for people.
fn dimensions(array: &Array) -> String {
    let sizes = array.dimensions.iter().map(usize::to_string).collect::<Vec<_>>().join(" × ");
    format!("{sizes} numbers of type {:?}", array.number)
}

#[cfg(test)]
mod tests;
