//! LeNet-5: two convolutions and three fully connected layers.
//!
//! # Definition
//! Two 5 × 5 convolutions (6 and 16 channels, ReLU, 2 × 2 max pooling), dense 120, 84, classes; `width` multiplies the
//! channels and the outputs of the hidden layers, rounded to whole numbers, halves up. 44,426 parameters on
//! 1 × 28 × 28, 62,006 on 3 × 32 × 32; there, a width of 1.411 has 124,005, and a width of 2 has 244,962.
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
//! model = { lenet5 = { width = 1.5 } }
//! ```

use super::{FamilySettings, network};
use crate::data::Shape;
use crate::model::network::build::{LayerId, Window};
use crate::model::network::{Network, NetworkBuilder};
use fedgenie_core::config::{Complaint, check};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `lenet5`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Config {
    /// Multiplies the channels of the convolutions and the outputs of the hidden layers, from 1/12 to 64; halves are
    /// rounded up.
    #[serde(default = "one")]
    pub width: f64,
}

const fn one() -> f64 {
    1.0
}

/// The width that leaves the first convolution a channel: 1/12 of 6 is rounded up.
const NARROWEST: f64 = 1.0 / 12.0;

impl FamilySettings for Config {
    fn check(&self) -> Result<(), Complaint> {
        check("width", self.width, NARROWEST..=64.0, "a number from 1/12 to 64").map(|_| ())
    }

    fn smallest_side(&self) -> usize {
        16
    }

    fn layers(&self, builder: &mut NetworkBuilder, classes: usize) -> LayerId {
        const POOL: Window = Window { size: 2, stride: 2, padding: 0 };
        // `as` rounds towards zero.
        let times_width = |size: f64| (size * self.width + 0.5) as usize;
        let mut layer = builder.input();
        for (name, channels) in [("conv1", 6.0), ("conv2", 16.0)] {
            layer = builder.conv(name, layer, times_width(channels), Window::square(5), true, false);
            layer = builder.max_pool(layer, POOL, true);
        }
        for (name, outputs) in [("fc1", 120.0), ("fc2", 84.0)] {
            layer = builder.dense(name, layer, times_width(outputs), true);
        }
        builder.dense("fc3", layer, classes, false)
    }
}

/// LeNet-5; `width` is positive and multiplies its sizes.
pub fn lenet5(shape: Shape, width: f64, classes: usize) -> Network {
    network(shape, |builder| Config { width }.layers(builder, classes))
}
