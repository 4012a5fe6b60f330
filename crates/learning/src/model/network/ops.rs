//! The layers, each with its forward and backward pass.

pub(super) mod activation;
mod conv;
mod dense;
mod dropout;
mod embedding;
pub(super) mod group_norm;
mod halving;
mod loss;
pub(super) mod norm;
pub(super) mod pool;
mod slopes;
mod winograd;

use super::kernels::Layout;
use crate::lanes::Path;

pub use activation::Activation;
pub(super) use conv::{Conv, ConvPlan};
pub(super) use dense::Dense;
pub(super) use dropout::Dropout;
pub(super) use embedding::Embedding;
pub(super) use group_norm::GroupNorm;
pub(super) use halving::HalvingPlan;
pub(super) use loss::{cross_entropy, predictions, squared_error};
pub(super) use norm::BatchNorm;
pub(super) use pool::{Pool, PoolKind};
pub(super) use slopes::{Prepare, Sum, add_into};

/// Resources of a layer's kernels: memory, and the processor features they are compiled for.
pub(super) struct Resources<'a> {
    pub work: &'a mut [f32],
    pub path: Path,
}

/// The gradient by a layer's input, which is written, or added to another layer's if `add`.
pub(super) struct Addend<'a> {
    pub out: &'a mut [f32],
    pub add: bool,
}

/// Layouts of a layer that reads features one by one: where each starts in the input, and the output.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    pub features: &'a [u32],
    pub output: Layout,
}
