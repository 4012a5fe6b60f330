//! Multimodal recommendation with disentangled factors: users, items, text and images, joined by attention.
//!
//! # Definition
//! User `u` and item `i` have embeddings of `d` numbers; an item's text and image features, as far as there are any,
//! are brought to `d` numbers by two layers each, `LReLU(W₂ LReLU(W₁ x + b₁) + b₂)` with slope 0.01 below zero. Each of
//! these *channels* (user, id, text, image) is cut into `F` blocks, the factors. For a pair and a factor `f`, `h` is
//! the user's block followed by the item's, one for each channel;
//!
//! - `α = softmax(A₂ tanh(A₁ h + b₁) + b₂)`, one network for all factors, an output for each channel;
//! - `s = Σ_c α_c GELU(p · e_c)` over the channels of the item (the user's `α` is not used), GELU by the error
//!   function;
//! - the score `r` is the sum of `s` over factors.
//!
//! An example is a positive pair with `K` negatives, its loss the mean of `max(0, margin − r⁺ + r⁻)` over them. The
//! loss of a batch is the mean over its examples and `disentangle` times the mean distance correlation (`distance.rs`)
//! over channels and pairs of factors, whose rows are the batch's positive pairs; it is 0 for one row or one factor.
//! While training, hidden numbers of (text, image) are dropped with probability `dropout`, those left scaled up.
//!
//! # Inputs
//! The tables of users and items, the weights, the features of items; pairs with their negatives. Everything is `f32`.
//!
//! # Source
//! Equations (1)–(8) of J. Liu, M. Goudarzi, A. N. Toosi, "An ML-driven participant selection technique for federated
//! recommendation system in edge-cloud computing", 2025, after F. Liu et al., "Disentangled multimodal representation
//! learning for recommendation", IEEE Trans. Multimedia 25, 2023.
//!
//! # Deviations from the source
//! A channel without features is left out, in the attention as well. The source gives neither the start of training nor
//! the activation's slope, the margin or the weights of the loss; the distance correlation has 1e-8 below its roots.
//!
//! # Cost
//! A pair takes about `2·h(w + d)` operations for each channel of `w` features and `h` hidden numbers, and twice that
//! for slopes. A step sees each batch in blocks of as many columns as it has examples: the positives, then each
//! negative; it allocates nothing once a worker has seen a batch of its size.
//!
//! # Determinism
//! Stream (ModelInit, 0, 0): the tensors in their order, row by row. Examples of a batch lie in lanes; sums over hidden
//! numbers, features and dimensions take one fused multiply-add for each term in ascending order; sums over examples
//! keep 16 sums, folded in halves, or take them in the order of examples, block by block: each negative, then the
//! positives. So neither path nor threads change a bit.

mod attention;
mod block;
mod distance;
mod job;
mod network;
mod products;
mod projection;
mod score;

pub use job::{Data, Examples, Pairs, Worker};
pub use network::{Batch, Loss, Network, Scratch};
pub use score::ItemScores;

use crate::model::TensorLayout;
use fedgenie_core::math::special::normal_quantile as standard_normal;
use fedgenie_core::rng::StreamRng;
use std::ops::Range;

/// Standard deviation of the numbers of first embeddings.
pub const DEVIATION: f64 = 0.1;

/// Names of the channels that have features.
pub const MODES: [&str; 2] = ["text", "image"];

/// How large the parts of a model are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Number of users.
    pub users: usize,
    /// Number of items.
    pub items: usize,
    /// Length of an embedding; a multiple of `factors`.
    pub dim: usize,
    /// Number of blocks of an embedding; at least 1.
    pub factors: usize,
    /// Hidden numbers of the layers over features.
    pub hidden: usize,
    /// Hidden numbers of the attention.
    pub attention: usize,
    /// Numbers of an item's features: text, image.
    pub features: [Option<usize>; 2],
}

/// Where the tensors of a channel with features lie.
#[derive(Clone, Debug)]
struct LayerPlaces {
    /// Which of [`MODES`].
    mode: usize,
    width: usize,
    first: usize,
    first_bias: usize,
    second: usize,
    second_bias: usize,
    end: usize,
}

impl Shape {
    /// Length of a block.
    pub const fn width(&self) -> usize {
        self.dim / self.factors
    }

    /// Number of channels: user, id and those with features.
    pub fn channels(&self) -> usize {
        2 + self.features.iter().flatten().count()
    }

    /// Number of parameters.
    pub fn parameters(&self) -> usize {
        self.attention_places()[4]
    }

    /// Where items begin; users are before them.
    const fn items_at(&self) -> usize {
        self.users * self.dim
    }

    fn modes(&self) -> impl Iterator<Item = LayerPlaces> {
        let Self { dim, hidden, .. } = *self;
        let mut begin = (self.users + self.items) * dim;
        self.features.into_iter().enumerate().filter_map(move |(mode, width)| {
            let width = width?;
            let first = begin;
            let first_bias = first + hidden * width;
            let second = first_bias + hidden;
            let second_bias = second + dim * hidden;
            begin = second_bias + dim;
            Some(LayerPlaces { mode, width, first, first_bias, second, second_bias, end: begin })
        })
    }

    /// Where the four tensors of the attention begin, and the end of all.
    fn attention_places(&self) -> [usize; 5] {
        let first = self.modes().last().map_or((self.users + self.items) * self.dim, |places| places.end);
        let first_bias = first + self.attention * self.channels() * self.width();
        let second = first_bias + self.attention;
        let second_bias = second + self.channels() * self.attention;
        [first, first_bias, second, second_bias, second_bias + self.channels()]
    }

    /// The parts of the parameter vector, in its order.
    pub fn tensors(&self) -> Vec<TensorLayout> {
        let Self { users, items, dim, hidden, attention, .. } = *self;
        let tensor = |name: String, shape: &[usize], offset| TensorLayout { name, shape: shape.to_vec(), offset };
        let mut tensors = vec![
            tensor("users.weight".to_owned(), &[users, dim], 0),
            tensor("items.weight".to_owned(), &[items, dim], self.items_at()),
        ];
        for LayerPlaces { mode, width, first, first_bias, second, second_bias, .. } in self.modes() {
            let name = MODES[mode];
            tensors.extend([
                tensor(format!("{name}.0.weight"), &[hidden, width], first),
                tensor(format!("{name}.0.bias"), &[hidden], first_bias),
                tensor(format!("{name}.2.weight"), &[dim, hidden], second),
                tensor(format!("{name}.2.bias"), &[dim], second_bias),
            ]);
        }
        let [first, first_bias, second, second_bias, _] = self.attention_places();
        let channels = self.channels();
        tensors.extend([
            tensor("attention.0.weight".to_owned(), &[attention, channels * self.width()], first),
            tensor("attention.0.bias".to_owned(), &[attention], first_bias),
            tensor("attention.2.weight".to_owned(), &[channels, attention], second),
            tensor("attention.2.bias".to_owned(), &[channels], second_bias),
        ]);
        tensors
    }

    /// Fills the parameters that a run starts from: embeddings `N(0, 0.1²)`, layers uniform within `±√(6/(in + out))`
    /// (Xavier), biases zero.
    ///
    /// # Panics
    /// If there are not as many parameters as the model has.
    pub fn init(&self, rng: &mut StreamRng, parameters: &mut [f32]) {
        assert_eq!(parameters.len(), self.parameters(), "the parameter vector is the model's");
        for TensorLayout { shape, offset, .. } in self.tensors() {
            let numbers = &mut parameters[offset..][..shape.iter().product()];
            match *shape {
                _ if offset < (self.users + self.items) * self.dim => {
                    numbers.fill_with(|| (DEVIATION * standard_normal(rng.uniform())) as f32);
                }
                [outputs, inputs] => {
                    let bound = fedgenie_core::math::float::sqrt(6.0 / (inputs + outputs) as f64);
                    numbers.fill_with(|| (bound * (2.0 * rng.uniform() - 1.0)) as f32);
                }
                _ => numbers.fill(0.0),
            }
        }
    }
}

/// What is asked of a batch, beside its scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Objective {
    /// Negatives of an example; at least 1.
    pub negatives: usize,
    /// By how much a positive is to score above a negative.
    pub margin: f32,
    /// Weight of the mean distance correlation.
    pub disentangle: f64,
    /// Share of hidden numbers of features that are dropped in training; from 0, below 1.
    pub dropout: f64,
}

/// Features of all items, by [`MODES`], row by row; empty where a channel has none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Features(pub [Vec<f32>; 2]);

/// A number of rows of a parameter vector.
fn part(start: usize, len: usize) -> Range<usize> {
    start..start + len
}

#[cfg(test)]
pub(crate) mod tests;
