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
//! No random numbers. Products and sums of outer products as [`crate::dense`] says. With `s = 2/n` rounded, the
//! derivative by `ŷ` is `s · (ŷ − y)`; those by the bias are added in blocks of 16 examples of the batch, each folded
//! in halves; losses in `f64` in the order of the batch.

use super::outputs::Linear;
use super::{Batch, Evaluation, Model, ModelError, Scratch, TensorLayout, check_width, linear_tensors};
use crate::data::Dataset;
use crate::data::features::Table;
use crate::dense::{Rows, outer_products, products};
use crate::lanes::{Kernel, LANES, Lanes, run};
use fedgenie_core::rng::StreamRng;

/// Linear regression on a number of features.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinearRegression {
    features: usize,
}

/// All there is to do for a batch.
struct Pass<'a> {
    parameters: &'a [f32],
    table: Table<'a>,
    /// For unpacked features.
    unpacked: &'a mut Vec<f32>,
    targets: &'a [f32],
    examples: &'a [u32],
    /// Where the derivatives of the mean loss go, if anywhere.
    gradient: Option<&'a mut [f32]>,
}

impl Kernel for Pass<'_> {
    type Output = Evaluation;

    #[inline(always)]
    fn run<const WIDE: bool>(mut self) -> Evaluation {
        let width = self.table.width();
        let weights = Rows { values: self.parameters, width };
        let bias = self.parameters[width];
        let scale = 2.0 / self.examples.len() as f32;
        let mut total = Evaluation { examples: self.examples.len() as u64, ..Evaluation::default() };
        for (block, examples) in self.examples.chunks(LANES).enumerate() {
            let mut predictions = [Lanes::ZERO];
            let (rows, places) = self.table.numbers(examples, self.unpacked);
            products::<WIDE>(weights, rows, places, &mut predictions);
            let mut slopes = [Lanes::ZERO];
            for (lane, &example) in examples.iter().enumerate() {
                let residual = predictions[0].0[lane] + bias - self.targets[example as usize];
                total.loss_sum += f64::from(residual * residual);
                slopes[0].0[lane] = scale * residual;
            }
            if let Some(gradient) = &mut self.gradient {
                let (by_weights, by_bias) = gradient.split_at_mut(width);
                outer_products::<WIDE>(&slopes, rows, places, block == 0, by_weights);
                let sum = slopes[0].sum();
                by_bias[0] = if block == 0 { sum } else { by_bias[0] + sum };
            }
        }
        total
    }
}

impl LinearRegression {
    /// A model that takes this many features.
    pub fn new(features: usize) -> Self {
        Self { features }
    }

    fn pass(
        &self,
        parameters: &[f32],
        batch: Batch<'_>,
        gradient: Option<&mut [f32]>,
        scratch: &mut Scratch,
    ) -> Evaluation {
        assert_eq!(parameters.len(), self.parameters(), "the parameter vector is the model's");
        let (table, targets, examples) = (batch.table(), batch.values(), batch.examples);
        run(scratch.path, Pass { parameters, table, unpacked: &mut scratch.unpacked, targets, examples, gradient })
    }
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
        batch: Batch<'_>,
        gradient: &mut [f32],
        _noise: &mut StreamRng,
        scratch: &mut Scratch,
    ) -> f32 {
        assert!(!batch.examples.is_empty(), "a step needs examples");
        assert_eq!(gradient.len(), self.parameters(), "a gradient has as many entries as there are parameters");
        let sums = self.pass(parameters, batch, Some(gradient), scratch);
        (sums.loss_sum / batch.examples.len() as f64) as f32
    }

    fn evaluate(&self, parameters: &[f32], batch: Batch<'_>, scratch: &mut Scratch) -> Evaluation {
        self.pass(parameters, batch, None, scratch)
    }

    fn outputs(&self, parameters: &[f32], batch: Batch<'_>, scratch: &mut Scratch, to: &mut Vec<f32>) {
        assert_eq!(parameters.len(), self.parameters(), "the parameter vector is the model's");
        scratch.block.resize(1, Lanes::ZERO);
        let (table, examples) = (batch.table(), batch.examples);
        let (unpacked, block) = (&mut scratch.unpacked, &mut scratch.block[..1]);
        run(scratch.path, Linear { parameters, table, examples, unpacked, block, to });
    }
}
