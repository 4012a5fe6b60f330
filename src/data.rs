//! What clients learn from: tables of examples, their readers and generators, and who holds which example.
//!
//! | module | what it is |
//! |---|---|
//! | [`dataset`] | the table itself: features and targets |
//! | [`idx`] | reader of the IDX files of MNIST and Fashion-MNIST |
//! | [`synthetic`] | linear regression data, drawn from the seed |
//! | [`partition`] | which training examples go to which client |
//! | [`error`] | everything that can be wrong with data |

pub mod dataset;
pub mod error;
pub mod idx;
pub mod partition;
pub mod synthetic;

pub use dataset::{Dataset, Shape, Split, Targets};
pub use error::DataError;
pub use partition::{Partition, PartitionError};
