//! Layers of a network.

use super::ops::{Activation, BatchNorm, Conv, Dense, Dropout, Embedding, GroupNorm, Pool};
use crate::data::Shape;

/// One layer: its operation, its inputs, and its output for one example.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    pub op: Op,
    /// Numbers of the layers it reads.
    pub inputs: Vec<usize>,
    /// Shape of the output.
    pub shape: Shape,
    /// Whether the layers below have parameters, so that a gradient has to go through.
    pub passes_gradient: bool,
    /// For each input, whether a later layer has already left a gradient there in the backward pass.
    pub adds_gradient: Vec<bool>,
}

/// The operation of a layer.
#[derive(Clone, Debug)]
pub(super) enum Op {
    Input,
    Conv(Conv),
    Dense(Dense),
    Pool(Pool),
    Activation(Activation),
    BatchNorm(BatchNorm),
    GroupNorm(GroupNorm),
    /// The sum of two layers; negative results become zero if `relu`.
    Add {
        relu: bool,
    },
    Dropout(Dropout),
    Embedding(Embedding),
}

impl Op {
    /// Whether negative results become zero as they are written, so that the backward pass starts with masking slopes.
    pub const fn has_relu(&self) -> bool {
        match self {
            Self::Conv(conv) => conv.relu,
            Self::Dense(dense) => dense.relu,
            Self::BatchNorm(norm) => norm.relu,
            Self::Pool(pool) => pool.relu,
            Self::Add { relu } => *relu,
            _ => false,
        }
    }
}
