//! Simple CNN of the federated benchmarks: two convolutions, two fully connected layers, dropout.
//!
//! # Definition
//! 3 × 3 convolutions of 32 and 64 channels, 2 × 2 max pooling, dropout 0.25, dense 128, dropout 0.5, classes.
//! 1,626,442 parameters on 3 × 32 × 32.
//!
//! # Source
//! S. Reddi et al., "Adaptive federated optimization", ICLR 2021.
//!
//! # Example
//! ```toml
//! [task.classification]
//! model = "simple-cnn"
//! ```

use super::{FamilySettings, network};
use crate::data::Shape;
use crate::model::network::build::{LayerId, Window};
use crate::model::network::{Network, NetworkBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `simple-cnn` has no parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Config {}

impl FamilySettings for Config {
    fn smallest_side(&self) -> usize {
        6
    }

    fn layers(&self, builder: &mut NetworkBuilder, classes: usize) -> LayerId {
        let mut layer = builder.input();
        layer = builder.conv("conv1", layer, 32, Window::square(3), true, true);
        layer = builder.conv("conv2", layer, 64, Window::square(3), true, false);
        layer = builder.max_pool(layer, Window { size: 2, stride: 2, padding: 0 }, true);
        layer = builder.dropout(layer, 0.25);
        layer = builder.dense("fc1", layer, 128, true);
        layer = builder.dropout(layer, 0.5);
        builder.dense("fc2", layer, classes, false)
    }
}

/// The CNN of the federated benchmarks.
pub fn simple_cnn(shape: Shape, classes: usize) -> Network {
    network(shape, |builder| Config {}.layers(builder, classes))
}
