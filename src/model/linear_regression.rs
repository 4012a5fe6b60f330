//! Linear regression with squared error.
//!
//! # Definition
//! `ŷ = w·x + b`. Loss of an example `(ŷ − y)²`, of a batch the mean; its gradient is
//! `2/n Σ (ŷ_i − y_i)·(x_i, 1)`.
//!
//! # Parameters
//! The `F` weights in the order of the features, then the bias. They start at zero: the problem is convex.
//!
//! # Cost
//! `4F` floating-point operations for each example of a step, `2F` of an evaluation.
//!
//! # Determinism
//! No random numbers. Sums as [`crate::math::dense`] says; losses are added in `f64` in the order of the batch.

use super::{BLOCK_EXAMPLES, Evaluation, Model, ModelError, Scratch, TensorLayout, check_width, linear_tensors};
use crate::data::Dataset;
use crate::math::dense::{add_outer, dot};
use crate::rng::StreamRng;

/// Linear regression on a number of features.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinearRegression {
    features: usize,
}

impl LinearRegression {
    /// A model that takes this many features.
    pub fn new(features: usize) -> Self {
        Self { features }
    }

    /// `ŷ − y` of an example.
    #[inline]
    fn residual(&self, parameters: &[f32], features: &[f32], target: f32) -> f32 {
        dot(&parameters[..self.features], features) + parameters[self.features] - target
    }
}

/// The targets, which [`Model::fits`] has checked to be numbers.
fn values(data: &Dataset) -> &[f32] {
    data.values().expect("linear regression needs numbers as targets")
}

impl Model for LinearRegression {
    fn parameters(&self) -> usize {
        self.features + 1
    }

    fn tensors(&self) -> Vec<TensorLayout> {
        linear_tensors(1, self.features)
    }

    fn init(&self, _rng: &mut StreamRng, parameters: &mut [f32]) {
        parameters.fill(0.0);
    }

    fn fits(&self, data: &Dataset) -> Result<(), ModelError> {
        check_width(data, self.features)?;
        match data.values() {
            Some(_) => Ok(()),
            None => Err(ModelError::Targets { found: "classes", expected: "numbers" }),
        }
    }

    fn loss_and_gradient(
        &self,
        parameters: &mut [f32],
        data: &Dataset,
        batch: &[u32],
        gradient: &mut [f32],
        _noise: &mut StreamRng,
        scratch: &mut Scratch,
    ) -> f32 {
        assert!(!batch.is_empty(), "a step needs examples");
        assert_eq!(gradient.len(), self.parameters(), "a gradient has as many entries as there are parameters");
        let (rows, targets) = (data.rows(), values(data));
        let scale = 2.0 / batch.len() as f32;
        let mut loss_sum = 0.0;
        gradient.fill(0.0);
        let (by_weights, by_bias) = gradient.split_at_mut(self.features);
        for block in batch.chunks(BLOCK_EXAMPLES) {
            scratch.deltas.clear();
            for &example in block {
                let residual = self.residual(parameters, rows.row(example), targets[example as usize]);
                loss_sum += f64::from(residual * residual);
                scratch.deltas.push(scale * residual);
            }
            add_outer(&scratch.deltas, 1, rows, block, by_weights);
            by_bias[0] += scratch.deltas.iter().fold(0.0, |sum, delta| sum + delta);
        }
        (loss_sum / batch.len() as f64) as f32
    }

    fn evaluate(&self, parameters: &[f32], data: &Dataset, examples: &[u32], _scratch: &mut Scratch) -> Evaluation {
        let (rows, targets) = (data.rows(), values(data));
        let loss_sum = examples.iter().fold(0.0, |sum, &example| {
            let residual = self.residual(parameters, rows.row(example), targets[example as usize]);
            sum + f64::from(residual * residual)
        });
        Evaluation { loss_sum, correct: 0, examples: examples.len() as u64 }
    }
}
