//! Model families on a flat vector of `f32` parameters.
//!
//! | module | model | loss |
//! |---|---|---|
//! | [`linear_regression`] | `ŷ = w·x + b` | squared error |
//! | [`softmax_regression`] | class scores `W x + b` | cross-entropy |
//! | [`families`] | MLP, LeNet-5, SimpleCNN, ResNet-18 | cross-entropy |
//!
//! The last ones are made of layers of [`network`]. A [`Batch`] is the input of training and evaluation.

mod batch;
pub mod contrast;
pub mod families;
pub mod linear_regression;
pub mod network;
mod outputs;
pub mod softmax_regression;
pub mod weights;

pub use batch::Batch;
pub use contrast::Contrast;
pub use linear_regression::LinearRegression;
pub use network::Network;
pub use outputs::{Outputs, outputs, targets};
pub use softmax_regression::SoftmaxRegression;
pub use weights::TensorLayout;

use crate::data::Dataset;
use crate::lanes::{Lanes, Path};
use crate::layout::Layout;
use fedgenie_core::halt::Effort;
use fedgenie_core::rng::StreamRng;
use rayon::prelude::*;
use thiserror::Error;

/// Moves parameters, from a number on, against their slopes.
pub type Step<'a> = &'a mut dyn FnMut(usize, &mut [f32], &[f32]);

/// A model that learns by gradient descent.
///
/// # Determinism
/// A result depends on the arguments alone: not on the earlier contents of the scratch, and not on the width of the
/// vectors the compiler chose.
pub trait Model: Send + Sync {
    /// Length of the parameter vector. Each model documents its layout.
    fn parameters(&self) -> usize;

    /// Length of the part of it, at its beginning, that gradient descent changes. A step updates the rest by itself,
    /// such as running means.
    fn trained(&self) -> usize {
        self.parameters()
    }

    /// The parts of the parameter vector, in its order, under the names of PyTorch.
    fn tensors(&self) -> Vec<TensorLayout>;

    /// Fills the parameters a run starts from, with the stream (ModelInit, 0, 0) at hand.
    fn init(&self, rng: &mut StreamRng, parameters: &mut [f32]);

    /// Whether this model can learn from such data. The other methods panic where this refuses.
    ///
    /// # Errors
    /// The mismatch.
    fn fits(&self, data: &Dataset) -> Result<(), ModelError>;

    /// The mean loss over a batch of examples; its derivatives by the trained parameters overwrite `gradient`. Of the
    /// parameters, only those behind the trained ones change. Layers that are random while training draw from `noise`.
    ///
    /// # Panics
    /// If a length does not fit, or the batch is empty or names an example that is not there.
    fn loss_and_gradient(
        &self,
        parameters: &mut [f32],
        batch: Batch<'_>,
        gradient: &mut [f32],
        noise: &mut StreamRng,
        scratch: &mut Scratch,
    ) -> f32;

    /// As [`Model::loss_and_gradient`], and moves the trained parameters if the loss is finite: `step` gets the number
    /// of the first of some parameters, these, and their slopes. It gets each parameter once, in parts that the model
    /// chooses, so that a large gradient need not be kept whole; `gradient` means nothing afterwards.
    ///
    /// # Panics
    /// As [`Model::loss_and_gradient`].
    fn descend(
        &self,
        parameters: &mut [f32],
        batch: Batch<'_>,
        gradient: &mut [f32],
        noise: &mut StreamRng,
        scratch: &mut Scratch,
        step: Step<'_>,
    ) -> f32 {
        let loss = self.loss_and_gradient(parameters, batch, gradient, noise, scratch);
        if loss.is_finite() {
            step(0, &mut parameters[..gradient.len()], gradient);
        }
        loss
    }

    /// Numbers of the last hidden layer for an example; `None` without such a layer.
    fn hidden(&self) -> Option<usize> {
        None
    }

    /// Appends the outputs of the last hidden layer for each example of a batch, as in an evaluation.
    ///
    /// # Panics
    /// If there is none.
    fn hidden_outputs(&self, _parameters: &[f32], _batch: Batch<'_>, _scratch: &mut Scratch, _to: &mut Vec<f32>) {
        panic!("a model with a hidden layer is contrasted");
    }

    /// As [`Model::descend`], or without a step [`Model::loss_and_gradient`], with a contrast added to the loss whose
    /// slopes are taken. The loss that is returned is without it.
    ///
    /// # Panics
    /// As these, or if there is no hidden layer.
    fn descend_contrasted(
        &self,
        _parameters: &mut [f32],
        _batch: Batch<'_>,
        _gradient: &mut [f32],
        _work: (&mut StreamRng, &mut Scratch),
        _contrast: &Contrast<'_>,
        _step: Option<Step<'_>>,
    ) -> f32 {
        panic!("a model with a hidden layer is contrasted");
    }

    /// Which parts of the vector are shared by all clusters of edge servers.
    fn layout(&self) -> Layout {
        Layout::dense(self.parameters(), self.trained())
    }

    /// Sums over a batch, in the order of its examples. See [`evaluate`] for many examples at once.
    fn evaluate(&self, parameters: &[f32], batch: Batch<'_>, scratch: &mut Scratch) -> Evaluation;

    /// The same, bit for bit, for several models with equal shared parameters; their shared part may be computed once.
    fn evaluate_each(&self, models: &[&[f32]], batch: Batch<'_>, scratch: &mut Scratch) -> Vec<Evaluation> {
        models.iter().map(|parameters| self.evaluate(parameters, batch, scratch)).collect()
    }

    /// Appends the outputs for each example: the scores of all classes, or the predicted number. See [`outputs`] for
    /// many examples at once.
    fn outputs(&self, parameters: &[f32], batch: Batch<'_>, scratch: &mut Scratch, to: &mut Vec<f32>);
}

/// Why a model cannot learn from a data set.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ModelError {
    /// Features of another number.
    #[error("the model takes {expected} features, an example of the data has {found}")]
    Width {
        /// Features of an example.
        found: usize,
        /// Features the model takes.
        expected: usize,
    },
    /// Classes where numbers are needed, or the reverse.
    #[error("the model predicts {expected}, the data has {found} as targets")]
    Targets {
        /// The kind of targets in the data.
        found: &'static str,
        /// The model's kind of prediction.
        expected: &'static str,
    },
    /// More classes than the model knows.
    #[error("the model tells {expected} classes apart, the data has {found}")]
    Classes {
        /// Classes in the data.
        found: usize,
        /// Classes of the model.
        expected: usize,
    },
}

/// The tensors of a linear model: weights output by output, then a bias for each output.
fn linear_tensors(outputs: usize, features: usize) -> Vec<TensorLayout> {
    let tensor = |name: &str, shape: Vec<usize>, offset| TensorLayout { name: name.to_owned(), shape, offset };
    vec![tensor("linear.weight", vec![outputs, features], 0), tensor("linear.bias", vec![outputs], outputs * features)]
}

/// Refuses data whose examples have another number of features.
fn check_width(data: &Dataset, expected: usize) -> Result<(), ModelError> {
    let found = data.width();
    if found == expected { Ok(()) } else { Err(ModelError::Width { found, expected }) }
}

/// Memory that a worker reuses from step to step. Its contents mean nothing between calls.
#[derive(Clone, Debug)]
pub struct Scratch {
    /// A number for each output of a model and each of 16 examples.
    block: Vec<Lanes>,
    /// Unpacked features of up to 16 examples.
    unpacked: Vec<f32>,
    /// The processor features that kernels are compiled for.
    path: Path,
    /// Layers of a network.
    pub network: network::Workspace,
}

impl Scratch {
    /// Empty, for kernels compiled for a set of processor features.
    pub fn on(path: Path) -> Self {
        Self { block: Vec::new(), unpacked: Vec::new(), path, network: network::Workspace::on(path) }
    }

    /// The processor features that kernels are compiled for.
    pub const fn path(&self) -> Path {
        self.path
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        4 * self.block.capacity() + 4 * self.unpacked.capacity() + self.network.bytes()
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::on(Path::detect())
    }
}

/// Sums over examples, so that parts can be put together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Evaluation {
    /// Sum of losses.
    pub loss_sum: f64,
    /// Examples whose class was predicted; 0 for a regression.
    pub correct: u64,
    /// Number of examples.
    pub examples: u64,
}

impl Evaluation {
    /// Mean loss; NaN without examples.
    pub fn loss(&self) -> f64 {
        self.loss_sum / self.examples as f64
    }

    /// Share of examples whose class was predicted; NaN without examples.
    pub fn accuracy(&self) -> f64 {
        self.correct as f64 / self.examples as f64
    }

    /// Both together; sums of losses are added in the order of the calls.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            loss_sum: self.loss_sum + other.loss_sum,
            correct: self.correct + other.correct,
            examples: self.examples + other.examples,
        }
    }
}

/// Evaluates a model on many examples, on all cores of the current pool or on one. Once it is stopped, the rest of the
/// examples is left out.
///
/// The examples are taken in blocks of 256, whose sums are added in order: the same bits for any number of threads.
///
/// # Panics
/// As [`Model::evaluate`].
pub fn evaluate<'a>(
    model: &dyn Model,
    parameters: &[f32],
    batch: Batch<'_>,
    effort: impl Into<Effort<'a>>,
) -> Evaluation {
    evaluate_each(model, &[parameters], &[batch], effort)[0]
}

/// Evaluates models with equal shared parameters on several lists of examples: the sums of the lists are added in their
/// order. See [`evaluate`].
///
/// # Panics
/// As [`Model::evaluate`].
pub fn evaluate_each<'a>(
    model: &dyn Model,
    models: &[&[f32]],
    batches: &[Batch<'_>],
    effort: impl Into<Effort<'a>>,
) -> Vec<Evaluation> {
    const BLOCK: usize = 256;
    let Effort { parallel, halt } = effort.into();
    let blocks: Vec<(usize, Batch<'_>)> = batches
        .iter()
        .enumerate()
        .flat_map(|(list, batch)| batch.chunks(BLOCK).map(move |block| (list, block)))
        .collect();
    let one = |scratch: &mut Scratch, &(_, block): &(usize, Batch<'_>)| match halt.is_due() {
        true => vec![Evaluation::default(); models.len()],
        false => model.evaluate_each(models, block, scratch),
    };
    let parts: Vec<Vec<Evaluation>> = if parallel {
        blocks.par_iter().map_init(Scratch::default, one).collect()
    } else {
        let mut scratch = Scratch::default();
        blocks.iter().map(|block| one(&mut scratch, block)).collect()
    };
    let mut lists = vec![vec![Evaluation::default(); batches.len()]; models.len()];
    for ((list, _), found) in blocks.iter().zip(parts) {
        lists.iter_mut().zip(found).for_each(|(lists, found)| lists[*list] = lists[*list].plus(found));
    }
    let total = |lists: Vec<Evaluation>| {
        let mut sums = lists.into_iter().reduce(Evaluation::plus).unwrap_or_default();
        if sums.loss_sum.is_nan() {
            // The bits of a NaN that comes out of an operation are not defined; records have one and the same.
            sums.loss_sum = f64::NAN;
        }
        sums
    };
    lists.into_iter().map(total).collect()
}

#[cfg(test)]
mod tests;
