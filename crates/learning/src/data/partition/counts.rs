//! Published partition: a file says how many examples of each class each client gets.
//!
//! # Definition
//! Row `k` of the file gives client `k`'s number of examples of each class; they are random ones of the class, and the
//! rest belongs to nobody. With `scale = "fit"`, if the file asks for more of a class than there is, all counts are
//! scaled by the same factor, the largest with which every class suffices: of class `c`, `⌊f·Σ_k n_kc⌋` examples are
//! dealt out, to client `k` its part `f·n_kc` rounded by largest remainders (ties to the smaller client). Mixtures and
//! relative sizes stay the same, up to rounding.
//!
//! # Inputs
//! `file`: text or gzip (told by its first bytes), a row for each client and a column for each class, separated by
//! commas, or by tabs if the first line contains one. A first line whose cells are not all whole numbers is a header;
//! if its first cell is `client`, the first column names clients and is not read: rows are clients in the order of the
//! file.
//!
//! # Source
//! The published partitions of PFLlib and the client statistics of Oort and FedScale come as such tables.
//!
//! # Deviations from the source
//! A minimum cannot be asked for: sizes are the file's, zero included.
//!
//! # Cost
//! O(n + K·C) time and memory for C classes, and a logarithm of K per class for rounding.
//!
//! # Determinism
//! Stream (Partition, 0, 0) is the order of examples, kept within each class. A client's examples are ordered by class.

mod read;

use super::{Partition, PartitionError, PartitionSettings, check_counts, deal_by_class, shuffled_by_class};
use crate::data::{Dataset, located};
use fedgenie_core::rng::Streams;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The most bytes of text that a file of counts may have, unpacked: 2^28.
pub const BYTES_MAX: u64 = 1 << 28;

/// Settings of the partition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct TableOfCounts {
    /// The table: CSV or TSV, plain or gzip, a row for each client and a column for each class.
    pub file: PathBuf,
    /// The rule if it asks for more than there is: refuse (`none`) or scale all counts down (`fit`).
    #[serde(default)]
    pub scale: Scale,
}

impl PartitionSettings for TableOfCounts {
    fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        self.file = located(&self.file, base, data);
    }

    fn files(&self) -> Vec<PathBuf> {
        vec![self.file.clone()]
    }

    fn deal(&self, data: &Dataset, clients: usize, _: &[u32], streams: &Streams) -> Result<Partition, PartitionError> {
        class_counts(data, clients, &ClassCounts::read(&self.file)?, self.scale, streams)
    }
}

/// The rule if a file asks for more than there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Refuse.
    #[default]
    None,
    /// Scale all counts down by the same factor.
    Fit,
}

/// A table of counts as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassCounts {
    path: PathBuf,
    classes: usize,
    /// Client by client.
    counts: Vec<u32>,
    /// The line of the first client, from 1; one line for each client.
    first_line: usize,
}

/// A fault of a file of counts. Lines and columns count from 1.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CountsError {
    /// The operating system, or the gzip decoder, refused.
    #[error("{}: cannot be read: {message}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        message: String,
    },
    /// Too much text.
    #[error("{}: has more than {BYTES_MAX} bytes of text, at most that many are read", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// No row.
    #[error("{}: has no row of counts; one for each client is expected", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// Not UTF-8.
    #[error("{}: line {line}: is not UTF-8 text", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
    },
    /// A row that is longer or shorter than the first.
    #[error("{}: line {line}: has {found} cells, the lines before have {expected}", path.display())]
    Width {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// Its cells.
        found: usize,
        /// The cells of the first line.
        expected: usize,
    },
    /// A cell that is no count.
    #[error("{}: line {line}, column {column}: found {found:?}; expected a whole number from 0 to 4294967295", path.display())]
    Cell {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// The cell within the line.
        column: usize,
        /// Its contents.
        found: String,
    },
    /// Not a row for each client.
    #[error("{}: has {found} rows of counts, there are {clients} clients", path.display())]
    Clients {
        /// The file.
        path: PathBuf,
        /// Rows of counts.
        found: usize,
        /// Number of clients.
        clients: usize,
    },
    /// Not a column for each class.
    #[error("{}: has {found} columns of counts, the data set has {classes} classes", path.display())]
    Classes {
        /// The file.
        path: PathBuf,
        /// Columns of counts.
        found: usize,
        /// Classes of the data set.
        classes: usize,
    },
    /// More examples of a class than there are.
    #[error(
        "{}: line {line}: the clients up to here get {wanted} examples of class {class}, the data set has {examples}; \
         scale = \"fit\" scales all counts down", path.display()
    )]
    TooMany {
        /// The file.
        path: PathBuf,
        /// The line of the first client that lacks examples.
        line: usize,
        /// The class.
        class: usize,
        /// The counts of the class up to this line, added up.
        wanted: u64,
        /// Examples of the class.
        examples: usize,
    },
    /// A class that is asked for and does not occur at all.
    #[error("{}: line {line}: asks for examples of class {class}, the data set has none to scale to", path.display())]
    Absent {
        /// The file.
        path: PathBuf,
        /// The first line that asks for the class.
        line: usize,
        /// The class.
        class: usize,
    },
}

impl ClassCounts {
    /// Reads a file, plain or gzip.
    ///
    /// # Errors
    /// Anything that is not such a table, with line and column.
    pub fn read(path: &Path) -> Result<Self, CountsError> {
        read::read(path)
    }

    /// Number of clients.
    pub fn clients(&self) -> usize {
        self.counts.len() / self.classes
    }

    /// Number of classes.
    pub const fn classes(&self) -> usize {
        self.classes
    }

    /// The counts of a client, one for each class.
    ///
    /// # Panics
    /// If there is no such client.
    pub fn client(&self, client: usize) -> &[u32] {
        &self.counts[client * self.classes..][..self.classes]
    }

    fn of_class(&self, class: usize) -> impl Iterator<Item = u64> {
        self.counts.iter().skip(class).step_by(self.classes).map(|&count| u64::from(count))
    }

    /// The line of the first client at which the counts of a class add up to more than `examples`, and their sum there.
    fn exceeding(&self, class: usize, examples: usize) -> Option<(usize, u64)> {
        let mut sum = 0;
        let mut sums = self.of_class(class).map(|count| {
            sum += count;
            sum
        });
        let client = sums.position(|sum| sum > examples as u64)?;
        Some((self.first_line + client, sum))
    }

    /// Each client's counts by class, client by client, if `available` examples of each class are there.
    fn fitted(&self, available: &[usize], scale: Scale) -> Result<Vec<usize>, CountsError> {
        let totals: Vec<u64> = (0..self.classes).map(|class| self.of_class(class).sum()).collect();
        // The smallest of the ratios available/total, at most 1; compared by cross products, which are exact.
        let (mut numerator, mut denominator) = (1_u128, 1_u128);
        for (class, (&total, &examples)) in totals.iter().zip(available).enumerate() {
            if let Some((line, wanted)) = self.exceeding(class, examples) {
                let path = self.path.clone();
                match scale {
                    Scale::None => return Err(CountsError::TooMany { path, line, class, wanted, examples }),
                    Scale::Fit if examples == 0 => return Err(CountsError::Absent { path, line, class }),
                    Scale::Fit => {}
                }
                if examples as u128 * denominator < numerator * u128::from(total) {
                    (numerator, denominator) = (examples as u128, u128::from(total));
                }
            }
        }
        let mut counts = vec![0; self.counts.len()];
        for (class, &total) in totals.iter().enumerate() {
            let exact: Vec<u128> = self.of_class(class).map(|count| u128::from(count) * numerator).collect();
            let mut left = (u128::from(total) * numerator / denominator) as usize;
            for (client, &exact) in exact.iter().enumerate() {
                let whole = (exact / denominator) as usize;
                counts[client * self.classes + class] = whole;
                left -= whole;
            }
            let mut order: Vec<usize> = (0..exact.len()).collect();
            order.sort_by_key(|&client| Reverse(exact[client] % denominator));
            for &client in &order[..left] {
                counts[client * self.classes + class] += 1;
            }
        }
        Ok(counts)
    }
}

/// Deals out examples of each class as a table says.
///
/// # Errors
/// No clients, a data set without classes, a table for other numbers of clients or classes, or one that asks for more
/// than there is.
pub fn class_counts(
    data: &Dataset,
    clients: usize,
    table: &ClassCounts,
    scale: Scale,
    streams: &Streams,
) -> Result<Partition, PartitionError> {
    check_counts(data.examples(), clients, 0)?;
    let (labels, classes) =
        data.classes().ok_or(PartitionError::NoClasses { kind: "a partition by counts of classes" })?;
    let path = || table.path.clone();
    if table.classes() != classes {
        return Err(CountsError::Classes { path: path(), found: table.classes(), classes }.into());
    }
    if table.clients() != clients {
        return Err(CountsError::Clients { path: path(), found: table.clients(), clients }.into());
    }
    let members = shuffled_by_class(labels, classes, streams);
    let available: Vec<usize> = members.iter().map(Vec::len).collect();
    Ok(deal_by_class(&members, &table.fitted(&available, scale)?))
}
