//! Softmax (multinomial logistic) regression with cross-entropy.
//!
//! # Definition
//! Scores `z = W x + b`, probabilities `p_c = e^{z_c} / Σ_j e^{z_j}`. Loss of an example of class `y` is `−ln p_y`, of a
//! batch the mean; its gradient is `1/n Σ (p_i − 1_{y_i}) ⊗ (x_i, 1)`. The largest score is subtracted before the
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
//! No random numbers. Sums as [`crate::math::dense`] says, exponential and logarithm of libm; the exponentials of an
//! example are added in ascending class, losses in `f64` in the order of the batch.

use super::{BLOCK_EXAMPLES, Evaluation, Model, ModelError, Scratch, TensorLayout, check_width, linear_tensors};
use crate::data::Dataset;
use crate::math::dense::{add_outer, dot, dots};
use crate::math::float::{exp_f32, ln_f32};
use crate::rng::StreamRng;

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

    /// Writes the scores of an example, one for each class.
    #[inline]
    fn scores(&self, parameters: &[f32], features: &[f32], scores: &mut [f32]) {
        let (weights, biases) = parameters.split_at(self.features * self.classes);
        let row = |class: usize| &weights[class * self.features..][..self.features];
        // Two rows at a time read the features once for both.
        let (pairs, last) = scores.as_chunks_mut::<2>();
        for (pair, scores) in pairs.iter_mut().enumerate() {
            let class = 2 * pair;
            let products = dots([row(class), row(class + 1)], features);
            *scores = [products[0] + biases[class], products[1] + biases[class + 1]];
        }
        if let [score] = last {
            let class = self.classes - 1;
            *score = dot(row(class), features) + biases[class];
        }
    }
}

/// Turns scores into probabilities and returns the loss of an example of class `label`.
fn softmax(scores: &mut [f32], label: usize) -> f32 {
    let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let own = scores[label] - largest;
    let mut sum = 0.0;
    for score in scores.iter_mut() {
        *score = exp_f32(*score - largest);
        sum += *score;
    }
    for score in scores.iter_mut() {
        *score /= sum;
    }
    ln_f32(sum) - own
}

/// The class with the largest score, the smallest class on ties.
fn predicted(scores: &[f32]) -> usize {
    let mut best = 0;
    for class in 1..scores.len() {
        if scores[class] > scores[best] {
            best = class;
        }
    }
    best
}

/// The targets, which [`Model::fits`] has checked to be classes.
fn labels(data: &Dataset) -> &[u8] {
    data.classes().expect("softmax regression needs classes as targets").0
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
        data: &Dataset,
        batch: &[u32],
        gradient: &mut [f32],
        _noise: &mut StreamRng,
        scratch: &mut Scratch,
    ) -> f32 {
        assert!(!batch.is_empty(), "a step needs examples");
        assert_eq!(parameters.len(), self.parameters(), "the parameter vector is the model's");
        assert_eq!(gradient.len(), self.parameters(), "a gradient has as many entries as there are parameters");
        let (rows, labels) = (data.rows(), labels(data));
        let count = batch.len() as f32;
        let mut loss_sum = 0.0;
        gradient.fill(0.0);
        let (by_weights, by_biases) = gradient.split_at_mut(self.features * self.classes);
        for block in batch.chunks(BLOCK_EXAMPLES) {
            scratch.deltas.resize(block.len() * self.classes, 0.0);
            for (&example, deltas) in block.iter().zip(scratch.deltas.chunks_exact_mut(self.classes)) {
                let label = usize::from(labels[example as usize]);
                self.scores(parameters, rows.row(example), deltas);
                loss_sum += f64::from(softmax(deltas, label));
                deltas[label] -= 1.0;
                for (delta, by_bias) in deltas.iter_mut().zip(by_biases.iter_mut()) {
                    *delta /= count;
                    *by_bias += *delta;
                }
            }
            add_outer(&scratch.deltas, self.classes, rows, block, by_weights);
        }
        (loss_sum / batch.len() as f64) as f32
    }

    fn evaluate(&self, parameters: &[f32], data: &Dataset, examples: &[u32], scratch: &mut Scratch) -> Evaluation {
        assert_eq!(parameters.len(), self.parameters(), "the parameter vector is the model's");
        let (rows, labels) = (data.rows(), labels(data));
        let mut evaluation = Evaluation { examples: examples.len() as u64, ..Evaluation::default() };
        scratch.deltas.resize(self.classes, 0.0);
        let scores = &mut scratch.deltas[..self.classes];
        for &example in examples {
            let label = usize::from(labels[example as usize]);
            self.scores(parameters, rows.row(example), scores);
            evaluation.correct += u64::from(predicted(scores) == label);
            evaluation.loss_sum += f64::from(softmax(scores, label));
        }
        evaluation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_go_to_the_smallest_class() {
        assert_eq!(predicted(&[0.5, 2.0, 2.0]), 1);
        assert_eq!(predicted(&[0.0, 0.0]), 0);
        assert_eq!(predicted(&[f32::NAN, 1.0]), 0);
    }

    #[test]
    fn scores_of_a_thousand_do_not_overflow() {
        let mut scores = [1000.0, 0.0, -1000.0];
        assert_eq!(softmax(&mut scores, 0), 0.0);
        assert_eq!(scores, [1.0, 0.0, 0.0]);
        assert_eq!(softmax(&mut [1000.0, 0.0], 1), 1000.0);
    }
}
