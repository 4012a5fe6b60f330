//! Softmax (multinomial logistic) regression with cross-entropy.
//!
//! # Definition
//! Scores `z = W x + b`, probabilities `p_c = e^{z_c} / Σ_j e^{z_j}`. Loss of an example of class `y` is `−ln p_y`, of
//! a batch the mean; its gradient is `1/n Σ (p_i − 1_{y_i}) ⊗ (x_i, 1)`. The largest score is subtracted before the
//! exponential, so that it never overflows. The predicted class is the one with the largest score, the smallest class
//! on ties (and class 0 if the scores are not numbers).
//!
//! # Parameters
//! The weights row by row, classes × features, then a bias for each class. They start at zero: the problem is convex.
//!
//! # Cost
//! `4FC` floating-point operations for each example of a step, `2FC` of an evaluation, and `C` exponentials.
//!
//! # Determinism
//! No random numbers. Scores and sums of outer products as [`crate::dense`] says, exponential and logarithm as
//! [`crate::lanes::functions`] does; the exponentials of an example are added in ascending class. With `s = 1/n`
//! rounded, a derivative by a score is `e^{z_c − z_max} · (s / Σ)`, less `s` for the class of the example. Derivatives
//! by a bias are added in blocks of 16 examples of the batch, each folded in halves; losses in `f64` in the order of
//! the batch.

use super::outputs::Linear;
use super::{Batch, Evaluation, Model, ModelError, Scratch, TensorLayout, check_width, linear_tensors};
use crate::data::Dataset;
use crate::data::features::Table;
use crate::dense::{Rows, outer_products, products};
use crate::lanes::{Kernel, LANES, Lanes, functions, keep_vectors_whole, run};
use fedgenie_core::rng::StreamRng;

/// Softmax regression on a number of features and classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SoftmaxRegression {
    features: usize,
    classes: usize,
}

impl SoftmaxRegression {
    /// A model that takes this many features and tells this many classes apart.
    ///
    /// # Panics
    /// If there is no class.
    pub fn new(features: usize, classes: usize) -> Self {
        assert!(classes > 0, "there is at least one class");
        Self { features, classes }
    }
}

/// All there is to do for a batch.
struct Pass<'a> {
    parameters: &'a [f32],
    table: Table<'a>,
    /// For unpacked features.
    unpacked: &'a mut Vec<f32>,
    labels: &'a [u8],
    examples: &'a [u32],
    /// One for each class: scores of 16 examples, then derivatives by them.
    scores: &'a mut [Lanes],
    /// Where the derivatives of the mean loss go, if anywhere.
    gradient: Option<&'a mut [f32]>,
}

impl Kernel for Pass<'_> {
    type Output = Evaluation;
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(mut self) -> Evaluation {
        let width = self.table.width();
        let biases = &self.parameters[self.scores.len() * width..];
        let weights = Rows { values: self.parameters, width };
        let scale = 1.0 / self.examples.len() as f32;
        let mut total = Evaluation { examples: self.examples.len() as u64, ..Evaluation::default() };
        for (block, examples) in self.examples.chunks(LANES).enumerate() {
            let (rows, places) = self.table.numbers(examples, self.unpacked);
            products::<WIDE>(weights, rows, places, self.scores);
            let Outcome { largest, predicted, own } = compare((self.scores, biases), self.labels, examples);
            let mut sum = Lanes::ZERO;
            for score in self.scores.iter_mut() {
                keep_vectors_whole();
                *score = (*score - largest).map(functions::exp);
                sum = sum + *score;
            }
            let losses = sum.map(functions::ln) - (own - largest);
            for (lane, &example) in examples.iter().enumerate() {
                total.loss_sum += f64::from(losses.0[lane]);
                total.correct += u64::from(predicted.0[lane] == f32::from(self.labels[example as usize]));
            }
            if let Some(gradient) = &mut self.gradient {
                let factor = Lanes::splat(scale) / sum;
                for exponential in self.scores.iter_mut() {
                    keep_vectors_whole();
                    *exponential = (*exponential * factor).first(examples.len());
                }
                for (lane, &example) in examples.iter().enumerate() {
                    self.scores[usize::from(self.labels[example as usize])].0[lane] -= scale;
                }
                let (by_weights, by_biases) = gradient.split_at_mut(self.scores.len() * width);
                outer_products::<WIDE>(self.scores, rows, places, block == 0, by_weights);
                for (by_bias, slopes) in by_biases.iter_mut().zip(self.scores.iter()) {
                    keep_vectors_whole();
                    let sum = slopes.sum();
                    *by_bias = if block == 0 { sum } else { *by_bias + sum };
                }
            }
        }
        total
    }
}

/// Losses and hits from the scores of 16 examples.
struct Outcome {
    largest: Lanes,
    /// The class with the largest score, the smallest class on ties.
    predicted: Lanes,
    /// The score of the example's class.
    own: Lanes,
}

/// Adds the biases to the scores, and compares them.
#[inline(always)]
fn compare((scores, biases): (&mut [Lanes], &[f32]), labels: &[u8], examples: &[u32]) -> Outcome {
    let mut outcome = Outcome { largest: Lanes::ZERO, predicted: Lanes::ZERO, own: Lanes::ZERO };
    for (class, (score, &bias)) in scores.iter_mut().zip(biases).enumerate() {
        *score = *score + Lanes::splat(bias);
        if class == 0 {
            outcome.largest = *score;
        } else {
            let larger = score.zip(outcome.largest, |score, largest| if score > largest { 1.0 } else { 0.0 });
            let name = class as f32;
            outcome.predicted = larger.zip(outcome.predicted, |is, before| if is > 0.0 { name } else { before });
            outcome.largest = score.max(outcome.largest);
        }
    }
    for (lane, &example) in examples.iter().enumerate() {
        outcome.own.0[lane] = scores[usize::from(labels[example as usize])].0[lane];
    }
    outcome
}

impl SoftmaxRegression {
    /// The sum of two such models, as a network: one is shared by all clusters of edge servers, of the other there is
    /// one for each.
    pub fn additive(shape: crate::data::Shape, classes: usize) -> super::Network {
        super::families::additive(shape, |builder| {
            let input = builder.input();
            builder.dense_from_zero("linear", input, classes)
        })
    }

    fn pass(
        &self,
        parameters: &[f32],
        batch: Batch<'_>,
        gradient: Option<&mut [f32]>,
        scratch: &mut Scratch,
    ) -> Evaluation {
        assert_eq!(parameters.len(), self.parameters(), "the parameter vector is the model's");
        scratch.block.resize(self.classes, Lanes::ZERO);
        let (table, labels, examples) = (batch.table(), batch.classes(), batch.examples);
        let (unpacked, scores) = (&mut scratch.unpacked, &mut scratch.block[..self.classes]);
        run(scratch.path, Pass { parameters, table, unpacked, labels, examples, scores, gradient })
    }
}

impl Model for SoftmaxRegression {
    fn parameters(&self) -> usize {
        (self.features + 1) * self.classes
    }

    fn tensors(&self) -> Vec<TensorLayout> {
        linear_tensors(self.classes, self.features)
    }

    fn init(&self, _rng: &mut StreamRng, parameters: &mut [f32]) {
        parameters.fill(0.0);
    }

    fn fits(&self, data: &Dataset) -> Result<(), ModelError> {
        check_width(data, self.features)?;
        match data.classes() {
            None => Err(ModelError::Targets { found: "numbers", expected: "classes" }),
            Some((_, found)) if found > self.classes => Err(ModelError::Classes { found, expected: self.classes }),
            Some(_) => Ok(()),
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

    fn outputs(&self, parameters: &[f32], batch: Batch<'_>, scratch: &mut Scratch, to: &mut Vec<f32>) {
        assert_eq!(parameters.len(), self.parameters(), "the parameter vector is the model's");
        scratch.block.resize(self.classes, Lanes::ZERO);
        let (table, examples) = (batch.table(), batch.examples);
        let (unpacked, block) = (&mut scratch.unpacked, &mut scratch.block[..self.classes]);
        run(scratch.path, Linear { parameters, table, examples, unpacked, block, to });
    }

    fn evaluate(&self, parameters: &[f32], batch: Batch<'_>, scratch: &mut Scratch) -> Evaluation {
        self.pass(parameters, batch, None, scratch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Targets;
    use ndarray::Array2;

    /// The loss of an example of class `label` with these scores, and the predicted class.
    fn judged(scores: &[f32], label: u8) -> (f64, u8) {
        let classes = scores.len();
        let model = SoftmaxRegression::new(0, classes);
        let with = |label| {
            let targets = Targets::Classes { labels: vec![label], classes };
            let data = Dataset::new(Array2::zeros((1, 0)), targets);
            model.evaluate(scores, Batch { data: &data, examples: &[0] }, &mut Scratch::default())
        };
        let predicted = (0..classes as u8).find(|&class| with(class).correct == 1).unwrap();
        (with(label).loss_sum, predicted)
    }

    #[test]
    fn ties_go_to_the_smallest_class() {
        assert_eq!(judged(&[0.5, 2.0, 2.0], 0).1, 1);
        assert_eq!(judged(&[0.0, 0.0], 0).1, 0);
        assert_eq!(judged(&[f32::NAN, 1.0], 0).1, 0);
    }

    #[test]
    fn scores_of_a_thousand_do_not_overflow() {
        assert_eq!(judged(&[1000.0, 0.0, -1000.0], 0).0, 0.0);
        assert_eq!(judged(&[1000.0, 0.0], 1).0, 1000.0);
    }
}
