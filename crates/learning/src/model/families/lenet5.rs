//! LeNet-5: two convolutions and three fully connected layers.
//!
//! # Definition
//! Two 5 × 5 convolutions (6 and 16 channels, ReLU, 2 × 2 max pooling), dense 120, 84, classes; `width` multiplies the
//! channels and the outputs of the hidden layers. 44,426 parameters on 1 × 28 × 28, 62,006 on 3 × 32 × 32.
//!
//! # Source
//! Y. LeCun et al., "Gradient-based learning applied to document recognition", Proc. IEEE 1998.
//!
//! # Deviations from the source
//! ReLU and max pooling, as federated benchmarks use it.
//!
//! # Example
//! ```toml
//! [task.classification]
//! model = { lenet5 = { width = 2 } }
//! ```

use super::{FamilySettings, network};
use crate::data::Shape;
use crate::model::network::build::{LayerId, Window};
use crate::model::network::{Network, NetworkBuilder};
use fedgenie_core::config::Complaint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `lenet5`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Config {
    /// Multiplies the channels of the convolutions and the outputs of the hidden layers.
    #[serde(default = "one")]
    pub width: usize,
}

const fn one() -> usize {
    1
}

impl FamilySettings for Config {
    fn check(&self) -> Result<(), Complaint> {
        let width = self.width;
        match (1..=64).contains(&width) {
            true => Ok(()),
            false => Err(Complaint::new("width", format!("found {width}; expected a whole number from 1 to 64"))),
        }
    }

    fn smallest_side(&self) -> usize {
        16
    }

    fn layers(&self, builder: &mut NetworkBuilder, classes: usize) -> LayerId {
        const POOL: Window = Window { size: 2, stride: 2, padding: 0 };
        let mut layer = builder.input();
        for (name, channels) in [("conv1", 6), ("conv2", 16)] {
            layer = builder.conv(name, layer, channels * self.width, Window::square(5), true, false);
            layer = builder.max_pool(layer, POOL, true);
        }
        for (name, outputs) in [("fc1", 120), ("fc2", 84)] {
            layer = builder.dense(name, layer, outputs * self.width, true);
        }
        builder.dense("fc3", layer, classes, false)
    }
}

/// LeNet-5.
pub fn lenet5(shape: Shape, width: usize, classes: usize) -> Network {
    network(shape, |builder| Config { width }.layers(builder, classes))
}
