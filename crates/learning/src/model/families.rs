//! The networks of federated-learning experiments.
//!
//! | family | layers | parameters |
//! |---|---|---|
//! | [`Family::Mlp`] | `fc1`, `fc2`, … with an activation between them | as the widths say |
//! | [`Family::Lenet5`] | two 5 × 5 convolutions (6 and 16 channels, ReLU, 2 × 2 max pooling), dense 120, 84, classes | 44,426 on 1 × 28 × 28, 62,006 on 3 × 32 × 32 |
//! | [`Family::SimpleCnn`] | 3 × 3 convolutions of 32 and 64 channels, 2 × 2 max pooling, dropout 0.25, dense 128, dropout 0.5, classes | 1,626,442 on 3 × 32 × 32 |
//! | [`Family::Resnet18`] | 3 × 3 stem of 64 channels without pooling, four stages of two blocks with batch normalisation, global average pooling | 11,173,962 on 3 × 32 × 32 |
//!
//! # Source
//! Y. LeCun et al., "Gradient-based learning applied to document recognition", Proc. IEEE 1998 (with ReLU and max pooling, as federated
//! benchmarks use it); S. Reddi et al., "Adaptive federated optimization", ICLR 2021 (the CNN of the federated benchmarks);
//! K. He et al., "Deep residual learning for image recognition", CVPR 2016 (with the stem for images of 32 × 32).
//!
//! # Names
//! Those that `torchvision` gives the layers of ResNet-18, and `conv1`, `conv2`, `fc1`, `fc2`, … for the others, so that
//! exported weights load into PyTorch.

use super::network::build::{LayerId, Window};
use super::network::ops::Activation;
use super::network::{Loss, Network, NetworkBuilder};
use crate::data::Shape;
use fedgenie_core::config::Complaint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A family of networks: `model = "lenet5"`, `model = { mlp = { hidden = [200, 200] } }`, …
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(transform = fedgenie_core::config::allow_bare_kinds)]
pub enum Family {
    /// Fully connected layers.
    Mlp {
        /// Outputs of each hidden layer.
        #[serde(default = "two_hundred_twice")]
        hidden: Vec<usize>,
        /// What lies between the layers.
        #[serde(default)]
        activation: MlpActivation,
    },
    /// Two convolutions, three fully connected layers.
    Lenet5 {
        /// Multiplies the channels of the convolutions and the outputs of the hidden layers.
        #[serde(default = "one")]
        width: usize,
    },
    /// Two convolutions, two fully connected layers, with dropout.
    SimpleCnn {},
    /// Residual network of 18 layers for small images.
    Resnet18 {},
}

/// What lies between fully connected layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MlpActivation {
    /// `max(x, 0)`
    #[default]
    Relu,
    /// `x` where positive, else `x / 100`
    LeakyRelu,
    /// `x Φ(x)`
    Gelu,
    /// Hyperbolic tangent
    Tanh,
}

fn two_hundred_twice() -> Vec<usize> {
    vec![200, 200]
}
const fn one() -> usize {
    1
}

/// The most outputs a hidden layer, or channels of a wide LeNet-5, may have: what a typing error exceeds.
const MOST_OUTPUTS: usize = 65_536;

impl Family {
    /// The kind's name.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Mlp { .. } => "mlp",
            Self::Lenet5 { .. } => "lenet5",
            Self::SimpleCnn {} => "simple-cnn",
            Self::Resnet18 {} => "resnet18",
        }
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// Key and sentence.
    pub fn check(&self) -> Result<(), Complaint> {
        let fits = |size: usize| (1..=MOST_OUTPUTS).contains(&size);
        match self {
            Self::Mlp { hidden, .. } => match hidden.iter().find(|&&size| !fits(size)) {
                Some(size) => Err(Complaint::new(
                    "hidden",
                    format!("found a layer of {size} outputs; expected 1 to {MOST_OUTPUTS}"),
                )),
                None => Ok(()),
            },
            Self::Lenet5 { width } if !(1..=64).contains(width) => {
                Err(Complaint::new("width", format!("found {width}; expected a whole number from 1 to 64")))
            }
            Self::Lenet5 { .. } | Self::SimpleCnn {} | Self::Resnet18 {} => Ok(()),
        }
    }

    /// The smallest side of an image that the network's windows fit on.
    const fn smallest_side(&self) -> usize {
        match self {
            Self::Mlp { .. } => 1,
            Self::Lenet5 { .. } => 16,
            Self::SimpleCnn {} | Self::Resnet18 {} => 6,
        }
    }

    /// The network for examples of a shape and so many classes.
    ///
    /// # Errors
    /// If the examples are too small, or an image is not a square where it has to be.
    pub fn build(&self, shape: Shape, classes: usize) -> Result<Network, Complaint> {
        if matches!(self, Self::Resnet18 {}) && shape.height != shape.width {
            return Err(Complaint::new("model", format!("resnet18 needs square images; found {shape}")));
        }
        let side = self.smallest_side();
        if shape.height < side || shape.width < side {
            let message = format!("{} needs images of at least {side} × {side}; found {shape}", self.kind());
            return Err(Complaint::new("model", message));
        }
        Ok(match self {
            Self::Mlp { hidden, activation } => mlp(shape, hidden, *activation, classes),
            Self::Lenet5 { width } => lenet5(shape, *width, classes),
            Self::SimpleCnn {} => simple_cnn(shape, classes),
            Self::Resnet18 {} => resnet18(shape, classes),
        })
    }
}

/// Fully connected layers `fc1`, `fc2`, …; see [`Family::Mlp`].
pub fn mlp(shape: Shape, hidden: &[usize], activation: MlpActivation, classes: usize) -> Network {
    let mut builder = NetworkBuilder::new(shape);
    let mut layer = builder.input();
    for (place, &outputs) in hidden.iter().enumerate() {
        let is_relu = activation == MlpActivation::Relu;
        layer = builder.dense(&format!("fc{}", place + 1), layer, outputs, is_relu);
        layer = match activation {
            MlpActivation::Relu => layer,
            MlpActivation::LeakyRelu => builder.activation(layer, Activation::LeakyRelu(0.01)),
            MlpActivation::Gelu => builder.activation(layer, Activation::Gelu),
            MlpActivation::Tanh => builder.activation(layer, Activation::Tanh),
        };
    }
    let output = builder.dense(&format!("fc{}", hidden.len() + 1), layer, classes, false);
    builder.finish(output, Loss::CrossEntropy)
}

/// LeNet-5; see [`Family::Lenet5`].
pub fn lenet5(shape: Shape, width: usize, classes: usize) -> Network {
    const POOL: Window = Window { size: 2, stride: 2, padding: 0 };
    let mut builder = NetworkBuilder::new(shape);
    let mut layer = builder.input();
    for (name, channels) in [("conv1", 6), ("conv2", 16)] {
        layer = builder.conv(name, layer, channels * width, Window::square(5), true, false);
        layer = builder.max_pool(layer, POOL, true);
    }
    for (name, outputs) in [("fc1", 120), ("fc2", 84)] {
        layer = builder.dense(name, layer, outputs * width, true);
    }
    let output = builder.dense("fc3", layer, classes, false);
    builder.finish(output, Loss::CrossEntropy)
}

/// The CNN of the federated benchmarks; see [`Family::SimpleCnn`].
pub fn simple_cnn(shape: Shape, classes: usize) -> Network {
    let mut builder = NetworkBuilder::new(shape);
    let mut layer = builder.input();
    layer = builder.conv("conv1", layer, 32, Window::square(3), true, true);
    layer = builder.conv("conv2", layer, 64, Window::square(3), true, false);
    layer = builder.max_pool(layer, Window { size: 2, stride: 2, padding: 0 }, true);
    layer = builder.dropout(layer, 0.25);
    layer = builder.dense("fc1", layer, 128, true);
    layer = builder.dropout(layer, 0.5);
    let output = builder.dense("fc2", layer, classes, false);
    builder.finish(output, Loss::CrossEntropy)
}

/// ResNet-18 for small images; see [`Family::Resnet18`].
pub fn resnet18(shape: Shape, classes: usize) -> Network {
    const STEM: Window = Window { size: 3, stride: 1, padding: 1 };
    let mut builder = NetworkBuilder::new(shape);
    let input = builder.input();
    let stem = builder.conv("conv1", input, 64, STEM, false, false);
    let mut layer = builder.batch_norm("bn1", stem, true);
    for (stage, channels) in [(1, 64), (2, 128), (3, 256), (4, 512)] {
        let stride = if stage == 1 { 1 } else { 2 };
        layer = basic_block(&mut builder, &format!("layer{stage}.0"), layer, channels, stride);
        layer = basic_block(&mut builder, &format!("layer{stage}.1"), layer, channels, 1);
    }
    let pooled = builder.global_average_pool(layer);
    let output = builder.dense("fc", pooled, classes, false);
    builder.finish(output, Loss::CrossEntropy)
}

/// Two convolutions beside a shortcut, which is a convolution itself where the shape changes.
fn basic_block(builder: &mut NetworkBuilder, name: &str, input: LayerId, channels: usize, stride: usize) -> LayerId {
    let window = Window { size: 3, stride, padding: 1 };
    let first = builder.conv(&format!("{name}.conv1"), input, channels, window, false, false);
    let first = builder.batch_norm(&format!("{name}.bn1"), first, true);
    let second = builder.conv(&format!("{name}.conv2"), first, channels, Window { stride: 1, ..window }, false, false);
    let second = builder.batch_norm(&format!("{name}.bn2"), second, false);
    let shortcut = if builder.shape(second) == builder.shape(input) {
        input
    } else {
        let window = Window { size: 1, stride, padding: 0 };
        let projected = builder.conv(&format!("{name}.downsample.0"), input, channels, window, false, false);
        builder.batch_norm(&format!("{name}.downsample.1"), projected, false)
    };
    builder.add(second, shortcut, true)
}

#[cfg(test)]
mod tests;
