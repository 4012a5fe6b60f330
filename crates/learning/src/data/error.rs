//! Everything that can be wrong with data. No error leaves anything half loaded.

use fedgenie_core::limits::Unaffordable;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The message about a missing folder.
pub(crate) const NO_FOLDER: &str = "there is no such folder; `--data DIR` says where data are (relative names are looked up in DIR, then beside the \
     scenario)";

/// Why the system refuses, in words about the file where that is possible.
fn unreadable(position: u64, source: &std::io::Error) -> String {
    match source.kind() {
        ErrorKind::NotFound => {
            "there is no such file; `--data DIR` says where data are (relative names are looked up in DIR, then beside \
             the scenario)"
                .to_owned()
        }
        ErrorKind::IsADirectory => "is a folder; expected a file".to_owned(),
        ErrorKind::PermissionDenied => "may not be read by you".to_owned(),
        _ => format!("cannot be read at byte {position}: {source}"),
    }
}

/// Why a data set could not be read or generated. Positions count bytes after decompression, from 0.
#[derive(Debug, Error)]
pub enum DataError {
    /// A file is not there.
    #[error(
        "there is no {} (nor {}); `--data DIR` says where data are; the four IDX files of Fashion-MNIST (train-images-idx3-ubyte.gz, \
         train-labels-idx1-ubyte.gz, t10k-images-idx3-ubyte.gz, t10k-labels-idx1-ubyte.gz; unpacked is fine too) are \
         in the folder data/fashion of https://github.com/zalandoresearch/fashion-mnist",
        packed.display(), plain.display()
    )]
    Missing {
        /// The name looked for first.
        packed: PathBuf,
        /// The name looked for second.
        plain: PathBuf,
    },
    /// The operating system, or the gzip decoder, refused.
    #[error("{}: {}", path.display(), unreadable(*position, source))]
    Read {
        /// The file.
        path: PathBuf,
        /// Bytes read before.
        position: u64,
        /// The cause.
        source: std::io::Error,
    },
    /// The first four bytes say that this is another kind of file.
    #[error("{}: byte 0: the magic number is {found}, an IDX file of {kind} begins with {expected}", path.display())]
    Magic {
        /// The file.
        path: PathBuf,
        /// The first bytes found.
        found: u32,
        /// The first bytes expected.
        expected: u32,
        /// The contents expected.
        kind: &'static str,
    },
    /// The header promises nothing.
    #[error("{}: byte {position}: the number of {what} is 0, it has to be at least 1", path.display())]
    ZeroDimension {
        /// The file.
        path: PathBuf,
        /// Where the header says so.
        position: u64,
        /// What is missing.
        what: &'static str,
    },
    /// The header promises more than this reader is ready to hold.
    #[error(
        "{}: byte 4: the header promises {} bytes of data, at most {limit} are read",
        path.display(), dimensions.iter().map(u32::to_string).collect::<Vec<_>>().join(" × ")
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The header's dimensions, whose product is too large.
        dimensions: Vec<u32>,
        /// The largest product allowed.
        limit: u64,
    },
    /// The file ends early.
    #[error("{}: ends after byte {position}, its header needs {expected} bytes", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// How many bytes there are.
        position: u64,
        /// How many there should be.
        expected: u64,
    },
    /// The file goes on after the end that its header promises.
    #[error("{}: goes on after byte {position}, where its header says it ends", path.display())]
    TrailingBytes {
        /// The file.
        path: PathBuf,
        /// Where it should end.
        position: u64,
    },
    /// Images and labels are not of the same examples.
    #[error("{} holds {images} examples, but {} holds {labels} labels", image_path.display(), label_path.display())]
    CountMismatch {
        /// The file of images.
        image_path: PathBuf,
        /// Images in it.
        images: usize,
        /// The file of labels.
        label_path: PathBuf,
        /// Labels in it.
        labels: usize,
    },
    /// Test images are of another size than training images.
    #[error(
        "{}: images are {} × {}, the training images are {} × {}",
        path.display(), found.0, found.1, expected.0, expected.1
    )]
    SizeMismatch {
        /// The file of test images.
        path: PathBuf,
        /// Rows and columns of a test image.
        found: (usize, usize),
        /// Rows and columns of a training image.
        expected: (usize, usize),
    },
    /// A test label belongs to no class that occurs in training.
    #[error("{}: byte {position}: label {found}, but training labels go up to {} only", path.display(), classes - 1)]
    LabelOutOfRange {
        /// The file of test labels.
        path: PathBuf,
        /// Where the label is.
        position: u64,
        /// The label.
        found: u8,
        /// Number of classes: the largest training label plus one.
        classes: usize,
    },
    /// A folder has the files of no data set that is known, or of two.
    #[error(
        "{}: {found}; expected either the IDX files of MNIST's names (train-images-idx3-ubyte.gz, \
         train-labels-idx1-ubyte.gz, t10k-images-idx3-ubyte.gz, t10k-labels-idx1-ubyte.gz; Fashion-MNIST's are in the \
         folder data/fashion of https://github.com/zalandoresearch/fashion-mnist), the binary version of CIFAR-10 \
         (data_batch_1.bin … data_batch_5.bin and test_batch.bin, or train*.bin and test*.bin; \
         cifar-10-binary.tar.gz of https://www.cs.toronto.edu/~kriz/cifar.html) or SVHN (train_32x32.mat and \
         test_32x32.mat of http://ufldl.stanford.edu/housenumbers), each plain or with .gz. Other files are \
         named in a table: data = {{ csv = {{ .. }} }} or {{ npy = {{ .. }} }}",
        folder.display()
    )]
    Unrecognised {
        /// The folder.
        folder: PathBuf,
        /// The value found instead.
        found: &'static str,
    },
    /// A folder has the files of no set of ratings that is known, or of two.
    #[error(
        "{}: {found}; expected one of the files {}, each plain or with .gz. Other files are named in a table: \
         data = {{ csv = {{ .. }} }}",
        folder.display(), expected.join(", ")
    )]
    UnrecognisedRatings {
        /// The folder.
        folder: PathBuf,
        /// The value found instead.
        found: &'static str,
        /// Names of the files that are known, with the data set that each belongs to.
        expected: Vec<String>,
    },
    /// A folder lacks a table.
    #[error("{}: {found}; expected {}, each plain or with .gz", folder.display(), expected.join(" and "))]
    MissingTables {
        /// The folder.
        folder: PathBuf,
        /// The value found instead.
        found: &'static str,
        /// Names of the files.
        expected: Vec<String>,
    },
    /// A part of CIFAR is not there.
    #[error(
        "{}: there is no {file}, plain or with .gz; the binary versions of CIFAR-10 and CIFAR-100 are at \
         https://www.cs.toronto.edu/~kriz/cifar.html",
        folder.display()
    )]
    MissingCifar {
        /// The folder.
        folder: PathBuf,
        /// The file, or the pattern of its name.
        file: String,
    },
    /// A file of rows ends within a row, or has none.
    #[error(
        "{}: ends after byte {position}; expected a multiple of {row_bytes} bytes, {row_bytes} for each of at least one \
         image{}",
        path.display(), match row_bytes {
            3_073 => " (a row of CIFAR-100 has 3074: for that, write data = { cifar100 = \"folder\" })",
            _ => "",
        }
    )]
    PartialRow {
        /// The file.
        path: PathBuf,
        /// How many bytes there are.
        position: u64,
        /// Bytes of a row.
        row_bytes: usize,
    },
    /// A label byte names no class.
    #[error("{}: byte {position}: label {found}; expected a label of at most {}", path.display(), classes - 1)]
    LabelByte {
        /// The file.
        path: PathBuf,
        /// Where the label is.
        position: u64,
        /// The label.
        found: u8,
        /// Number of classes.
        classes: usize,
    },
    /// A file holds more than this reader is ready to hold.
    #[error("{}: holds more than {limit} {what}, which is the most that is read", path.display())]
    TooMany {
        /// The file.
        path: PathBuf,
        /// The most that is read.
        limit: usize,
        /// The unit of the limit.
        what: &'static str,
    },
    /// A file's contents, or a generator's, do not fit into memory.
    #[error("{place}: {source}")]
    Memory {
        /// The file, or the setting.
        place: String,
        /// The memory it would take.
        source: Unaffordable,
    },
    /// A table is not as it has to be.
    #[error("{}:{line}: {message}", path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// The line, from 1; a row is named by its first.
        line: u64,
        /// The value found and the right one.
        message: String,
    },
    /// A field of a table is not as it has to be.
    #[error("{}:{line}: column {column:?}: found {found:?}; expected {expected}", path.display())]
    Field {
        /// The file.
        path: PathBuf,
        /// The line, from 1; a row is named by its first.
        line: u64,
        /// Name of the column.
        column: String,
        /// The field.
        found: String,
        /// The right values.
        expected: String,
    },
    /// An array is not as it has to be.
    #[error("{}: byte {position}: {message}", path.display())]
    Array {
        /// The file.
        path: PathBuf,
        /// Where it is wrong.
        position: u64,
        /// The value found and the right one.
        message: String,
    },
    /// A feature cannot be standardised.
    #[error(
        "{part} example {example}: channel {channel} holds {found}, which is beyond the range of numbers once it is \
         normalised by the training examples' mean {mean:e} and deviation {deviation:e}; leave normalize out or the channel"
    )]
    Scale {
        /// The part: training or test.
        part: &'static str,
        /// Which example, from 0.
        example: usize,
        /// Which channel, from 0.
        channel: usize,
        /// The feature.
        found: f32,
        /// Mean of the channel in the training part.
        mean: f64,
        /// Standard deviation of the channel in the training part.
        deviation: f64,
    },
    /// A generator's setting makes no sense.
    #[error("{key} = {found}: has to be {expected}")]
    Setting {
        /// Dotted path of the setting.
        key: String,
        /// Its value.
        found: String,
        /// The right values.
        expected: &'static str,
    },
}

impl DataError {
    /// A file's contents do not fit into memory.
    pub fn memory(path: &Path, source: Unaffordable) -> Self {
        Self::Memory { place: path.display().to_string(), source }
    }

    /// The same error, with the path of the settings before its own.
    #[must_use]
    pub fn below(self, path: &str) -> Self {
        match self {
            Self::Setting { key, found, expected } => Self::Setting { key: format!("{path}.{key}"), found, expected },
            other => other,
        }
    }
}
