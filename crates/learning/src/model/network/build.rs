//! Puts a network together, layer by layer.
//!
//! ```
//! use fedgenie_learning::data::Shape;
//! use fedgenie_learning::model::network::{Loss, NetworkBuilder};
//! use fedgenie_learning::model::Model;
//!
//! let mut builder = NetworkBuilder::new(Shape { channels: 1, height: 28, width: 28 });
//! let input = builder.input();
//! let hidden = builder.dense("fc1", input, 16, true);
//! let output = builder.dense("fc2", hidden, 10, false);
//! let network = builder.finish(output, Loss::CrossEntropy);
//! assert_eq!(network.parameters(), 784 * 16 + 16 + 16 * 10 + 10);
//! ```

use super::layer::{Layer, Op};
use super::ops::{Activation, BatchNorm, Conv, Dense, Dropout, Embedding, GroupNorm, Pool, PoolKind};
use super::{Branch, Init, Loss, Network, Tensor};
use crate::data::Shape;
use fedgenie_core::math::float::sqrt;

/// A layer of the network under construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerId(usize);

/// How a convolution moves over its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Side of the kernel or of the pooled square.
    pub size: usize,
    /// Columns and rows from one position to the next.
    pub stride: usize,
    /// Columns and rows of zeros around the input.
    pub padding: usize,
}

impl Window {
    /// A window that moves one step at a time over the input as it is.
    pub const fn square(size: usize) -> Self {
        Self { size, stride: 1, padding: 0 }
    }

    /// Positions along a side of the input.
    fn positions(self, side: usize) -> usize {
        assert!(self.size > 0 && self.stride > 0 && self.padding < self.size, "{self:?} is not a window");
        let padded = side + 2 * self.padding;
        assert!(padded >= self.size, "a window of {} does not fit on {padded}", self.size);
        (padded - self.size) / self.stride + 1
    }
}

/// A network under construction. The methods panic on shapes that do not fit: a network is made by code, not by a user.
#[derive(Debug)]
pub struct NetworkBuilder {
    layers: Vec<Layer>,
    trained: Vec<Tensor>,
    /// Running means and variances; their offsets count from the end of the trained part.
    buffers: Vec<Tensor>,
    branches: Vec<Branch>,
    /// The prefix of tensors' names.
    prefix: String,
}

impl NetworkBuilder {
    /// Starts with examples of a shape.
    pub fn new(shape: Shape) -> Self {
        let input =
            Layer { op: Op::Input, inputs: Vec::new(), shape, passes_gradient: false, adds_gradient: Vec::new() };
        let (trained, buffers, branches) = (Vec::new(), Vec::new(), Vec::new());
        Self { layers: vec![input], trained, buffers, branches, prefix: String::new() }
    }

    /// Begins a branch: all layers until the next one begins, the names of whose tensors start with `prefix`. The first
    /// branch is shared by all clusters of edge servers, of the second there is one for each; a layer that joins them
    /// belongs to the second.
    ///
    /// # Panics
    /// If there are layers before the first, or there are two already.
    pub fn begin_branch(&mut self, prefix: &str) {
        assert!(self.branches.len() < 2, "one branch is shared, and one is not");
        assert!(!self.branches.is_empty() || self.layers.len() == 1, "every layer belongs to a branch");
        let [trained, statistics] = [&self.trained, &self.buffers].map(|list| end(list));
        self.branches.push(Branch { layer: self.layers.len(), trained, statistics });
        prefix.clone_into(&mut self.prefix);
    }

    /// The examples.
    pub fn input(&self) -> LayerId {
        LayerId(0)
    }

    /// The shape of a layer's output.
    pub fn shape(&self, layer: LayerId) -> Shape {
        self.layers[layer.0].shape
    }

    fn tensor(list: &mut Vec<Tensor>, name: String, shape: Vec<usize>, init: Init) -> usize {
        let offset = end(list);
        list.push(Tensor { name, shape, offset, init });
        offset
    }

    fn parameter(&mut self, name: String, shape: Vec<usize>, init: Init) -> usize {
        let name = format!("{}{name}", self.prefix);
        Self::tensor(&mut self.trained, name, shape, init)
    }

    fn layer(&mut self, op: Op, inputs: &[LayerId], shape: Shape) -> LayerId {
        let has_parameters =
            matches!(op, Op::Conv(_) | Op::Dense(_) | Op::BatchNorm(_) | Op::GroupNorm(_) | Op::Embedding(_));
        let inputs: Vec<usize> = inputs.iter().map(|input| input.0).collect();
        let passes_gradient = has_parameters || inputs.iter().any(|&input| self.layers[input].passes_gradient);
        let adds_gradient = vec![false; inputs.len()];
        self.layers.push(Layer { op, inputs, shape, passes_gradient, adds_gradient });
        LayerId(self.layers.len() - 1)
    }

    /// A convolution with `outputs` channels: `name.weight` and, if `bias`, `name.bias`.
    pub fn conv(
        &mut self,
        name: &str,
        input: LayerId,
        outputs: usize,
        window: Window,
        bias: bool,
        relu: bool,
    ) -> LayerId {
        let Shape { channels, height, width } = self.shape(input);
        let shape = Shape { channels: outputs, height: window.positions(height), width: window.positions(width) };
        let init = Init::Uniform(1.0 / sqrt((channels * window.size * window.size) as f64));
        let weights = self.parameter(format!("{name}.weight"), vec![outputs, channels, window.size, window.size], init);
        let bias = bias.then(|| self.parameter(format!("{name}.bias"), vec![outputs], init));
        self.layer(Op::Conv(Conv { window, weights, bias, relu }), &[input], shape)
    }

    /// A fully connected layer: `name.weight` and `name.bias`. Takes its input as one list of features.
    pub fn dense(&mut self, name: &str, input: LayerId, outputs: usize, relu: bool) -> LayerId {
        let init = Init::Uniform(1.0 / sqrt(self.shape(input).len() as f64));
        self.dense_from(init, name, input, outputs, relu)
    }

    /// A fully connected layer that starts from zeros, as that of a softmax regression does.
    pub fn dense_from_zero(&mut self, name: &str, input: LayerId, outputs: usize) -> LayerId {
        self.dense_from(Init::Constant(0.0), name, input, outputs, false)
    }

    fn dense_from(&mut self, init: Init, name: &str, input: LayerId, outputs: usize, relu: bool) -> LayerId {
        let features = self.shape(input).len();
        let weights = self.parameter(format!("{name}.weight"), vec![outputs, features], init);
        let bias = self.parameter(format!("{name}.bias"), vec![outputs], init);
        let shape = Shape { channels: outputs, height: 1, width: 1 };
        self.layer(Op::Dense(Dense { weights, bias, relu }), &[input], shape)
    }

    /// The largest number of each window, or zero if that is larger and `relu`: a ReLU of the maximum equals the
    /// maximum of the ReLUs, and looks at fewer numbers.
    pub fn max_pool(&mut self, input: LayerId, window: Window, relu: bool) -> LayerId {
        self.pool(input, window, PoolKind::Max, relu)
    }

    /// The mean of each window; padding counts as zeros.
    pub fn average_pool(&mut self, input: LayerId, window: Window) -> LayerId {
        self.pool(input, window, PoolKind::Average, false)
    }

    /// The mean of each channel.
    pub fn global_average_pool(&mut self, input: LayerId) -> LayerId {
        let Shape { height, width, .. } = self.shape(input);
        assert_eq!(height, width, "a window is square");
        self.average_pool(input, Window { size: height, stride: height, padding: 0 })
    }

    fn pool(&mut self, input: LayerId, window: Window, kind: PoolKind, relu: bool) -> LayerId {
        let Shape { channels, height, width } = self.shape(input);
        let shape = Shape { channels, height: window.positions(height), width: window.positions(width) };
        self.layer(Op::Pool(Pool { window, kind, relu }), &[input], shape)
    }

    /// A function of each number.
    pub fn activation(&mut self, input: LayerId, activation: Activation) -> LayerId {
        self.layer(Op::Activation(activation), &[input], self.shape(input))
    }

    /// Batch normalisation: `name.weight`, `name.bias`, `name.running_mean`, `name.running_var`.
    pub fn batch_norm(&mut self, name: &str, input: LayerId, relu: bool) -> LayerId {
        let shape = self.shape(input);
        let scale = self.parameter(format!("{name}.weight"), vec![shape.channels], Init::Constant(1.0));
        let shift = self.parameter(format!("{name}.bias"), vec![shape.channels], Init::Constant(0.0));
        let mut statistic = |name: String, start| {
            let name = format!("{}{name}", self.prefix);
            Self::tensor(&mut self.buffers, name, vec![shape.channels], Init::Constant(start))
        };
        let mean = statistic(format!("{name}.running_mean"), 0.0);
        statistic(format!("{name}.running_var"), 1.0);
        self.layer(Op::BatchNorm(BatchNorm { scale, shift, running: mean, relu }), &[input], shape)
    }

    /// Group normalisation over `groups` equal groups of channels: `name.weight`, `name.bias`.
    pub fn group_norm(&mut self, name: &str, input: LayerId, groups: usize) -> LayerId {
        let shape = self.shape(input);
        assert!(groups > 0 && shape.channels.is_multiple_of(groups), "groups are equal");
        let scale = self.parameter(format!("{name}.weight"), vec![shape.channels], Init::Constant(1.0));
        let shift = self.parameter(format!("{name}.bias"), vec![shape.channels], Init::Constant(0.0));
        self.layer(Op::GroupNorm(GroupNorm { scale, shift, groups }), &[input], shape)
    }

    /// The sum of two layers of the same shape.
    pub fn add(&mut self, one: LayerId, two: LayerId, relu: bool) -> LayerId {
        assert_eq!(self.shape(one), self.shape(two), "only equal shapes are added");
        self.layer(Op::Add { relu }, &[one, two], self.shape(one))
    }

    /// Sets each number to zero with this probability while training, and scales the others up.
    pub fn dropout(&mut self, input: LayerId, rate: f64) -> LayerId {
        self.layer(Op::Dropout(Dropout::new(rate)), &[input], self.shape(input))
    }

    /// Replaces each feature, a whole number below `entries`, by a row of the table `name.weight`. The rows are the
    /// columns of the output: features × 1 × dimensions would be its matrix, and dimension d of feature f is its
    /// channel `f · dimensions + d`.
    pub fn embedding(&mut self, name: &str, input: LayerId, entries: usize, dimensions: usize) -> LayerId {
        let features = self.shape(input).len();
        let table = self.parameter(format!("{name}.weight"), vec![entries, dimensions], Init::StandardNormal);
        let shape = Shape { channels: features * dimensions, height: 1, width: 1 };
        self.layer(Op::Embedding(Embedding { table, entries, dimensions }), &[input], shape)
    }

    /// The network whose output is this layer, which has to be the last one.
    pub fn finish(self, output: LayerId, loss: Loss) -> Network {
        let Self { mut layers, trained: mut tensors, buffers, branches, prefix: _ } = self;
        assert_eq!(output.0, layers.len() - 1, "the last layer is the output");
        let shape = layers[output.0].shape;
        assert_eq!((shape.height, shape.width), (1, 1), "the output is a list");
        assert!(loss == Loss::CrossEntropy || shape.channels == 1, "a squared error is that of one output");
        let mut seen = vec![false; layers.len()];
        for layer in layers.iter_mut().rev() {
            for (&input, adds) in layer.inputs.iter().zip(&mut layer.adds_gradient) {
                *adds = std::mem::replace(&mut seen[input], true);
            }
        }
        assert!(seen[..output.0].iter().all(|&seen| seen), "every layer but the last is read");
        let trained = end(&tensors);
        tensors.extend(buffers.into_iter().map(|tensor| Tensor { offset: trained + tensor.offset, ..tensor }));
        let parameters = end(&tensors);
        let in_vector = |branch: Branch| Branch { statistics: trained + branch.statistics, ..branch };
        let branches = branches.into_iter().map(in_vector).collect();
        Network { layers: layers.into(), tensors, branches, trained, parameters, loss }
    }
}

/// Where the next tensor of a list begins.
fn end(list: &[Tensor]) -> usize {
    list.last().map_or(0, |tensor| tensor.offset + tensor.len())
}
