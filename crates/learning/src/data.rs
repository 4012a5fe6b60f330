//! The data of learning: tables of examples, their readers and generators, and their partition over clients.
//!
//! | module | content |
//! |---|---|
//! | [`dataset`] | the table itself: features and targets, the shape of an example, the group it comes from |
//! | [`features`] | features as they lie in memory |
//! | [`idx`] | reader of the IDX files of MNIST and Fashion-MNIST |
//! | [`cifar`] | reader of the binary files of CIFAR-10 and CIFAR-100 |
//! | [`mat`] | reader of MATLAB's arrays |
//! | [`svhn`] | reader of SVHN's files |
//! | [`csv`] | reader of tables as text |
//! | [`npy`] | reader of NumPy arrays |
//! | [`source`] | how a scenario says where examples come from |
//! | [`held_out`] | which rows of a single table are for testing |
//! | [`synthetic`] | linear regression data, drawn from the seed |
//! | [`synthetic_clients`] | classes by models of clients that differ, drawn from the seed |
//! | [`synthetic_images`] | images of classes, drawn from the seed |
//! | [`exchange`] | classes that are said to be others |
//! | [`manner`] | features that are changed: rotation, colour, noise |
//! | [`validation`] | which training rows are for validation |
//! | [`partition`] | which training examples go to which client |
//! | [`error`] | everything that can be wrong with data |

pub mod bytes;
mod choice;
pub mod cifar;
pub mod csv;
pub mod dataset;
pub mod error;
pub mod exchange;
pub mod features;
pub mod held_out;
pub mod idx;
mod kept;
pub mod manner;
pub mod mat;
pub mod npy;
pub mod partition;
pub mod rows;
pub mod source;
pub mod svhn;
pub mod synthetic;
pub mod synthetic_clients;
pub mod synthetic_images;
pub mod validation;

pub(crate) use choice::folder_or_source;
pub use dataset::{Dataset, Shape, Split, Targets};
pub use error::DataError;
pub(crate) use error::NO_FOLDER;
pub use kept::{InUse, Kept, Recent};
pub use manner::{Manner, Stage};
pub use partition::{Partition, PartitionError};
pub use validation::SetAside;

/// Where a file is looked for that a scenario names: in `data`, the folder given by the user, if it is there, and else
/// in `base`, the folder of the scenario. A file that is in neither is expected in the first.
pub fn located(path: &std::path::Path, base: &std::path::Path, data: Option<&std::path::Path>) -> std::path::PathBuf {
    let Some(data) = data else { return base.join(path) };
    let (there, beside) = (data.join(path), base.join(path));
    if !there.exists() && beside.exists() { beside } else { there }
}
