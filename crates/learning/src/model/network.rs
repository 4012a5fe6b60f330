//! Networks of layers on lanes: convolutional and fully connected models of any depth.
//!
//! # Definition
//! A network is a list of layers, each of which reads earlier ones; the last one is the output, whose loss is the mean
//! cross-entropy of its softmax, or the mean squared error. Gradients are taken by backpropagation, layer by layer over
//! the whole mini-batch.
//!
//! # Parameters
//! One flat vector: the tensors in the order in which their layers were added, each in row-major order with the shape
//! and the name that PyTorch gives it (`conv1.weight` is output × input × row × column, `fc1.weight` output × input).
//! Numbers that gradient descent does not touch, the running means and variances of batch normalisation, come behind
//! all of them. [`Model::tensors`] lists them.
//!
//! # Branches
//! A network can have two branches that read the same examples and whose outputs are added: one is shared by all
//! clusters of edge servers, of the other there is one for each. The tensors of the first come first, as do its running
//! statistics.
//!
//! # Initialisation
//! Weights and biases of convolutions and fully connected layers are uniform in ±1/√(inputs of an output), in the order
//! of the vector; embeddings standard normal; scales 1, shifts 0, running means 0, running variances 1.
//!
//! # Cost
//! A worker needs two numbers for each output of each layer and example of a batch, and the packed weights and padded
//! input of the largest convolution.
//!
//! # Determinism
//! Every sum has a documented order that depends on nothing but the sizes; see [`kernels`] and [`crate::lanes`]. A
//! mini-batch is taken as a whole: its last, smaller one has its own layout.

pub mod build;
pub mod kernels;
mod layer;
pub mod ops;
mod pass;
mod plan;
mod workspace;

pub use build::NetworkBuilder;
pub use workspace::Workspace;

use super::{Batch, Contrast, Evaluation, Model, ModelError, Scratch, Step, TensorLayout, check_width};
use crate::data::{Dataset, Shape};
use crate::layout::{Layout, Scope, Segment};
use fedgenie_core::rng::StreamRng;
use layer::Layer;
use std::ops::Range;
use std::sync::Arc;

/// The target of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// A class: mean cross-entropy of the softmax of the outputs.
    CrossEntropy,
    /// A number: mean squared error of the only output.
    SquaredError,
}

/// How a tensor starts.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Init {
    /// The same number everywhere.
    Constant(f32),
    /// Uniform between minus and plus this.
    Uniform(f64),
    /// Normal with mean 0 and variance 1.
    StandardNormal,
}

/// A named part of the parameter vector.
#[derive(Clone, Debug, PartialEq)]
struct Tensor {
    /// The name that PyTorch's `state_dict` gives it.
    name: String,
    /// Its shape, row-major.
    shape: Vec<usize>,
    /// Where it begins in the parameter vector.
    offset: usize,
    /// How it starts.
    init: Init,
}

impl Tensor {
    /// Number of entries.
    fn len(&self) -> usize {
        self.shape.iter().product()
    }
}

/// Where a branch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Branch {
    /// Its first layer.
    layer: usize,
    /// Its first trained parameter.
    trained: usize,
    /// Its first running statistic.
    statistics: usize,
}

/// A network; made by [`NetworkBuilder`].
#[derive(Clone, Debug)]
pub struct Network {
    /// Shared with the plans of workspaces, which are found by it.
    layers: Arc<[Layer]>,
    tensors: Vec<Tensor>,
    /// The shared branch and that of clusters, or none.
    branches: Vec<Branch>,
    /// Length of the part that gradient descent changes.
    trained: usize,
    parameters: usize,
    loss: Loss,
}

impl Network {
    /// Shape of an example.
    pub fn input(&self) -> Shape {
        self.layers[0].shape
    }

    /// Number of outputs.
    pub fn outputs(&self) -> usize {
        self.layers[self.layers.len() - 1].shape.len()
    }

    /// Multiplications of two numbers that the products of matrices and convolutions of a training step need for each
    /// example: forward, by the weights, and by the input where that is needed. Products with padding do not count.
    pub fn multiplications(&self) -> u64 {
        pass::multiplications(self)
    }

    fn check_lengths(&self, parameters: &[f32], batch: Batch<'_>, gradient: &[f32]) {
        assert!(!batch.examples.is_empty(), "a step needs examples");
        assert_eq!(parameters.len(), self.parameters, "the parameter vector is the model's");
        assert_eq!(gradient.len(), self.trained, "a gradient has as many entries as there are trained parameters");
    }
}

/// Examples of a forward pass: two vectors.
const BATCH: usize = 32;

impl Model for Network {
    fn parameters(&self) -> usize {
        self.parameters
    }

    fn trained(&self) -> usize {
        self.trained
    }

    fn tensors(&self) -> Vec<TensorLayout> {
        let layout = |tensor: &Tensor| TensorLayout {
            name: tensor.name.clone(),
            shape: tensor.shape.clone(),
            offset: tensor.offset,
        };
        self.tensors.iter().map(layout).collect()
    }

    fn layout(&self) -> Layout {
        let [_, cluster] = self.branches[..] else { return Layout::dense(self.parameters, self.trained) };
        let dense = |name: &str, range: Range<usize>, scope| Segment::dense(name, range.len(), scope);
        let statistics = |name: &str, range: Range<usize>, scope| Segment::statistics(name, range.len(), scope);
        let mut segments = vec![
            dense("global", 0..cluster.trained, Scope::Shared),
            dense("cluster", cluster.trained..self.trained, Scope::Cluster),
            statistics("global.statistics", self.trained..cluster.statistics, Scope::Shared),
            statistics("cluster.statistics", cluster.statistics..self.parameters, Scope::Cluster),
        ];
        segments.retain(|segment| segment.len > 0);
        Layout::new(segments)
    }

    fn init(&self, rng: &mut StreamRng, parameters: &mut [f32]) {
        for tensor in &self.tensors {
            let values = &mut parameters[tensor.offset..][..tensor.len()];
            match tensor.init {
                Init::Constant(number) => values.fill(number),
                Init::Uniform(bound) => {
                    values.iter_mut().for_each(|value| *value = (bound * (2.0 * rng.uniform() - 1.0)) as f32);
                }
                Init::StandardNormal => {
                    let quantile = fedgenie_core::math::special::normal_quantile;
                    values.iter_mut().for_each(|value| *value = quantile(rng.uniform()) as f32);
                }
            }
        }
    }

    fn fits(&self, data: &Dataset) -> Result<(), ModelError> {
        check_width(data, self.input().len())?;
        match (self.loss, data.classes()) {
            (Loss::CrossEntropy, None) => Err(ModelError::Targets { found: "numbers", expected: "classes" }),
            (Loss::SquaredError, Some(_)) => Err(ModelError::Targets { found: "classes", expected: "numbers" }),
            (Loss::CrossEntropy, Some((_, found))) if found > self.outputs() => {
                Err(ModelError::Classes { found, expected: self.outputs() })
            }
            _ => Ok(()),
        }
    }

    fn loss_and_gradient(
        &self,
        parameters: &mut [f32],
        batch: Batch<'_>,
        gradient: &mut [f32],
        noise: &mut StreamRng,
        scratch: &mut Scratch,
    ) -> f32 {
        self.check_lengths(parameters, batch, gradient);
        pass::train(self, parameters, batch, gradient, (noise, scratch), None, None)
    }

    fn descend(
        &self,
        parameters: &mut [f32],
        batch: Batch<'_>,
        gradient: &mut [f32],
        noise: &mut StreamRng,
        scratch: &mut Scratch,
        step: Step<'_>,
    ) -> f32 {
        self.check_lengths(parameters, batch, gradient);
        pass::train(self, parameters, batch, gradient, (noise, scratch), None, Some(step))
    }

    fn hidden(&self) -> Option<usize> {
        pass::hidden(self).map(|layer| self.layers[layer].shape.len())
    }

    fn hidden_outputs(&self, parameters: &[f32], batch: Batch<'_>, scratch: &mut Scratch, to: &mut Vec<f32>) {
        assert_eq!(parameters.len(), self.parameters, "the parameter vector is the model's");
        batch.chunks(BATCH).for_each(|batch| pass::hidden_outputs(self, parameters, batch, scratch, to));
    }

    fn descend_contrasted(
        &self,
        parameters: &mut [f32],
        batch: Batch<'_>,
        gradient: &mut [f32],
        work: (&mut StreamRng, &mut Scratch),
        contrast: &Contrast<'_>,
        step: Option<Step<'_>>,
    ) -> f32 {
        self.check_lengths(parameters, batch, gradient);
        pass::train(self, parameters, batch, gradient, work, Some(contrast), step)
    }

    fn evaluate(&self, parameters: &[f32], batch: Batch<'_>, scratch: &mut Scratch) -> Evaluation {
        assert_eq!(parameters.len(), self.parameters, "the parameter vector is the model's");
        let sums = batch.chunks(BATCH).map(|batch| pass::evaluate(self, parameters, batch, scratch));
        sums.fold(Evaluation::default(), Evaluation::plus)
    }

    fn evaluate_each(&self, models: &[&[f32]], batch: Batch<'_>, scratch: &mut Scratch) -> Vec<Evaluation> {
        let [_, cluster] = self.branches[..] else {
            return models.iter().map(|parameters| self.evaluate(parameters, batch, scratch)).collect();
        };
        let mut sums = vec![Evaluation::default(); models.len()];
        for batch in batch.chunks(BATCH) {
            let found = pass::evaluate_each(self, cluster.layer, models, batch, scratch);
            sums.iter_mut().zip(found).for_each(|(sum, found)| *sum = sum.plus(found));
        }
        sums
    }

    fn outputs(&self, parameters: &[f32], batch: Batch<'_>, scratch: &mut Scratch, to: &mut Vec<f32>) {
        assert_eq!(parameters.len(), self.parameters, "the parameter vector is the model's");
        batch.chunks(BATCH).for_each(|batch| pass::outputs(self, parameters, batch, scratch, to));
    }
}

#[cfg(test)]
mod tests;
