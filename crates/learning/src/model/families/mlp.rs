//! Multilayer perceptron: fully connected layers with an activation between them.
//!
//! # Definition
//! `fc1`, `fc2`, …: one dense layer for each entry of `hidden`, and one for the classes. On 1 × 28 × 28 with two hidden
//! layers of 200, 199,210 parameters: the 2NN of the federated benchmarks.
//!
//! # Source
//! H. B. McMahan, E. Moore, D. Ramage, S. Hampson, B. Agüera y Arcas, "Communication-Efficient Learning of Deep
//! Networks from Decentralized Data", AISTATS 2017 (2NN).
//!
//! # Example
//! ```toml
//! [task.classification]
//! model = { mlp = { hidden = [200, 200] } }
//! ```

use super::{FamilySettings, MOST_OUTPUTS, network};
use crate::data::Shape;
use crate::model::network::build::LayerId;
use crate::model::network::ops::Activation;
use crate::model::network::{Network, NetworkBuilder};
use fedgenie_core::config::Complaint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `mlp`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Config {
    /// Outputs of each hidden layer.
    #[serde(default = "two_hundred_twice")]
    pub hidden: Vec<usize>,
    /// The function between the layers.
    #[serde(default)]
    pub activation: MlpActivation,
}

/// The function between fully connected layers.
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

impl FamilySettings for Config {
    fn check(&self) -> Result<(), Complaint> {
        match self.hidden.iter().find(|size| !(1..=MOST_OUTPUTS).contains(*size)) {
            Some(size) => {
                Err(Complaint::new("hidden", format!("found a layer of {size} outputs; expected 1 to {MOST_OUTPUTS}")))
            }
            None => Ok(()),
        }
    }

    fn layers(&self, builder: &mut NetworkBuilder, classes: usize) -> LayerId {
        let Self { hidden, activation } = self;
        let mut layer = builder.input();
        for (index, &outputs) in hidden.iter().enumerate() {
            let is_relu = *activation == MlpActivation::Relu;
            layer = builder.dense(&format!("fc{}", index + 1), layer, outputs, is_relu);
            layer = match activation {
                MlpActivation::Relu => layer,
                MlpActivation::LeakyRelu => builder.activation(layer, Activation::LeakyRelu(0.01)),
                MlpActivation::Gelu => builder.activation(layer, Activation::Gelu),
                MlpActivation::Tanh => builder.activation(layer, Activation::Tanh),
            };
        }
        builder.dense(&format!("fc{}", hidden.len() + 1), layer, classes, false)
    }
}

/// Fully connected layers `fc1`, `fc2`, ….
pub fn mlp(shape: Shape, hidden: &[usize], activation: MlpActivation, classes: usize) -> Network {
    let settings = Config { hidden: hidden.to_vec(), activation };
    network(shape, |builder| settings.layers(builder, classes))
}
