//! The layers, each with its forward and backward pass.

pub(super) mod activation;
mod conv;
mod dense;
mod dropout;
mod embedding;
pub(super) mod group_norm;
mod loss;
pub(super) mod norm;
pub(super) mod pool;
mod slopes;
mod winograd;

pub use activation::Activation;
pub(super) use conv::{Conv, ConvPlan};
pub(super) use dense::Dense;
pub(super) use dropout::Dropout;
pub(super) use embedding::Embedding;
pub(super) use group_norm::GroupNorm;
pub(super) use loss::{cross_entropy, predictions, squared_error};
pub(super) use norm::BatchNorm;
pub(super) use pool::{Pool, PoolKind};
pub(super) use slopes::{Prepare, Sum, add_into};
