//! The networks of federated-learning experiments.
//!
//! # Names
//! Tensors have the names that `torchvision` gives the layers of ResNet-18, and `conv1`, `conv2`, `fc1`, `fc2`, … in
//! the other networks, so that exported weights load into PyTorch.

pub mod lenet5;
pub mod mlp;
pub mod resnet18;
pub mod simple_cnn;

pub use lenet5::lenet5;
pub use mlp::{MlpActivation, mlp};
pub use resnet18::resnet18;
pub use simple_cnn::simple_cnn;

use super::network::build::LayerId;
use super::network::{Loss, Network, NetworkBuilder};
use crate::data::Shape;
use fedgenie_core::components;
use fedgenie_core::config::Complaint;

/// Prefixes of tensors' names: of the shared branch, and of a cluster's.
pub(crate) const SHARED: &str = "global";
pub(crate) const CLUSTER: &str = "cluster";

/// The most outputs a hidden layer may have: more is a typing error.
const MOST_OUTPUTS: usize = fedgenie_core::limits::LAYER_OUTPUTS;

/// A network's part of a scenario.
pub trait FamilySettings {
    /// Checks the settings.
    ///
    /// # Errors
    /// A complaint with a path below the network's table.
    fn check(&self) -> Result<(), Complaint> {
        Ok(())
    }

    /// The smallest side of an image that the network's windows fit on.
    fn smallest_side(&self) -> usize {
        1
    }

    /// Whether images have to be squares.
    fn needs_squares(&self) -> bool {
        false
    }

    /// Adds the layers of a network for so many classes, and returns its outputs.
    fn layers(&self, builder: &mut NetworkBuilder, classes: usize) -> LayerId;
}

components! {
    /// A family of networks: `model = "lenet5"`, `model = { mlp = { hidden = [200, 200] } }`, …
    #[schemars(transform = fedgenie_core::config::allow_bare_kinds)]
    pub enum Family: FamilySettings = "model" {
        "mlp" => Mlp(mlp::Config) in "families/mlp.rs";
        "lenet5" => Lenet5(lenet5::Config) in "families/lenet5.rs";
        "simple-cnn" => SimpleCnn(simple_cnn::Config) in "families/simple_cnn.rs";
        "resnet18" => Resnet18(resnet18::Config) in "families/resnet18.rs";
    }
}

impl Family {
    /// Checks the settings.
    ///
    /// # Errors
    /// A complaint with a path below the network's table.
    pub fn check(&self) -> Result<(), Complaint> {
        self.settings().check()
    }

    /// The network for examples of a shape and so many classes.
    ///
    /// # Errors
    /// If the examples are too small, or an image is not a square where it has to be.
    pub fn build(&self, shape: Shape, classes: usize) -> Result<Network, Complaint> {
        self.check_shape(shape)?;
        Ok(network(shape, |builder| self.settings().layers(builder, classes)))
    }

    /// Two such networks whose outputs are added: one is shared by all clusters of edge servers, and of the other there
    /// is one for each. The names of their tensors begin with `global.` and `cluster.`.
    ///
    /// # Errors
    /// As [`Family::build`].
    pub fn additive(&self, shape: Shape, classes: usize) -> Result<Network, Complaint> {
        self.check_shape(shape)?;
        Ok(additive(shape, |builder| self.settings().layers(builder, classes)))
    }

    fn check_shape(&self, shape: Shape) -> Result<(), Complaint> {
        let (kind, settings) = (self.kind(), self.settings());
        if settings.needs_squares() && shape.height != shape.width {
            return Err(Complaint::new("model", format!("{kind} needs square images; found {shape}")));
        }
        let side = settings.smallest_side();
        if shape.height < side || shape.width < side {
            let message = format!("{kind} needs images of at least {side} × {side}; found {shape}");
            return Err(Complaint::new("model", message));
        }
        Ok(())
    }
}

/// The network of some layers, which give scores of classes.
fn network(shape: Shape, layers: impl Fn(&mut NetworkBuilder) -> LayerId) -> Network {
    let mut builder = NetworkBuilder::new(shape);
    let output = layers(&mut builder);
    builder.finish(output, Loss::CrossEntropy)
}

/// The sum of two networks of the same layers: the shared branch, and that of clusters.
pub(super) fn additive(shape: Shape, layers: impl Fn(&mut NetworkBuilder) -> LayerId) -> Network {
    let mut builder = NetworkBuilder::new(shape);
    let [shared, cluster] = [SHARED, CLUSTER].map(|prefix| {
        builder.begin_branch(&format!("{prefix}."));
        layers(&mut builder)
    });
    let output = builder.add(shared, cluster, false);
    builder.finish(output, Loss::CrossEntropy)
}

#[cfg(test)]
mod tests;
