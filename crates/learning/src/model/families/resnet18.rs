//! ResNet-18 for small images.
//!
//! # Definition
//! 3 × 3 stem of 64 channels without pooling, four stages of two blocks with batch normalisation, global average
//! pooling. 11,173,962 trained parameters on 3 × 32 × 32.
//!
//! # Source
//! K. He et al., "Deep residual learning for image recognition", CVPR 2016 (with the stem for images of 32 × 32).
//!
//! # Example
//! ```toml
//! [task.classification]
//! model = "resnet18"
//! ```

use super::{FamilySettings, network};
use crate::data::Shape;
use crate::model::network::build::{LayerId, Window};
use crate::model::network::{Network, NetworkBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `resnet18` has no parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Config {}

impl FamilySettings for Config {
    fn smallest_side(&self) -> usize {
        6
    }

    fn needs_squares(&self) -> bool {
        true
    }

    fn layers(&self, builder: &mut NetworkBuilder, classes: usize) -> LayerId {
        const STEM: Window = Window { size: 3, stride: 1, padding: 1 };
        let input = builder.input();
        let stem = builder.conv("conv1", input, 64, STEM, false, false);
        let mut layer = builder.batch_norm("bn1", stem, true);
        for (stage, channels) in [(1, 64), (2, 128), (3, 256), (4, 512)] {
            let stride = if stage == 1 { 1 } else { 2 };
            layer = basic_block(builder, &format!("layer{stage}.0"), layer, channels, stride);
            layer = basic_block(builder, &format!("layer{stage}.1"), layer, channels, 1);
        }
        let pooled = builder.global_average_pool(layer);
        builder.dense("fc", pooled, classes, false)
    }
}

/// ResNet-18 for small images.
pub fn resnet18(shape: Shape, classes: usize) -> Network {
    network(shape, |builder| Config {}.layers(builder, classes))
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
