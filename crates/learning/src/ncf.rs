//! Neural collaborative filtering: a user's score of an item is a small network's answer to two rows; a second network
//! of the same shape may learn to predict the losses of the first.
//!
//! # Definition
//! User `u` has a row of `d` numbers and item `v` another. The score is, with `h` hidden numbers,
//!
//! ```text
//! s(u, v) = W₂ relu(W₁ [u‖v] + b₁) + b₂          W₁: h × 2d, W₂: 1 × h                  (11), (12)
//! ```
//!
//! An example is a user, a positive item `v` and a negative `j`. Its loss is `ℓ = −ln σ(s(u, v) − s(u, j))`, (13), and
//! a step descends the mean of `ℓ` over its mini-batch: by the rows that [`Moves`] says, and by `W₁`, `b₁`, `W₂`; `b₂`
//! cancels and stays as it was.
//!
//! The *proxy*, a network `p` of the same shape with weights of its own, predicts the loss of an example (14). With
//! [`Proxy::Pairwise`] it is `ℓ̂ = −ln σ(p(u, v) − p(u, j))`, with [`Proxy::Positive`] `ℓ̂ = p(u, v)`. In the same step
//! the proxy descends the mean of `(ℓ̂ − ℓ)²` over the mini-batch (15), where `ℓ` is a constant and rows do not move.
//!
//! Examples, order, mini-batches, negatives, and the treatment of rows are those of
//! [`matrix_factorisation`](crate::matrix_factorisation). Clipping takes the norm of all slopes of a step together:
//! those of rows that move and of both networks.
//!
//! First weights, and first rows of both tables, are uniform in `±√(6/(n + m))` for `n × m` numbers (Xavier); first
//! biases are 0.
//!
//! # Inputs
//! Item table, rows of users, positives; the weights of the networks, in the order of [`Shape::tensors`].
//!
//! # Source
//! X. He et al., "Neural collaborative filtering", WWW 2017; ProxyRL-FRS, IV-A: (7)–(15); X. Glorot, Y. Bengio,
//! "Understanding the difficulty of training deep feedforward neural networks", AISTATS 2010.
//!
//! # Deviations from the source
//! (13)–(15) are sums over a client's examples; steps use means over mini-batches. Ranking by pairs in the place of
//! He's cross-entropy, as ProxyRL-FRS has it.
//!
//! # Cost
//! `W₁` falls into a part for users and one for items, so each row that a step meets passes the first layer once: 2·d·h
//! operations forward, 4·d·h backward, and about 8·h for each example. A job copies the weights once; nothing is
//! allocated per step.
//!
//! # Determinism
//! Streams: (ModelInit, 0, 0) items, (ModelInit, user, 1) a user's row, (ModelInit, 0, 2) the network, (ModelInit, 0,
//! 3) the proxy. Rows and hidden numbers are filled up with zeros to whole vectors of 16. A hidden number begins with
//! the bias, takes the user's terms and, begun at zero, the item's, each by a fused multiply-add in ascending order;
//! the two parts are added. The last layer keeps 16 sums, folded in halves. Slopes take one fused multiply-add for each
//! example or row, in the order in which the step meets them.
//!
//! [`Moves`]: crate::matrix_factorisation::Moves

mod job;
mod kernels;
mod losses;
mod pull;
mod score;
mod step;
mod weights;

pub use job::{Outcome, Worker};
pub use losses::Losses;
pub use pull::{Pull, items_of};
pub use score::NetworkScores;

use fedgenie_core::math::float::sqrt;
use fedgenie_core::rng::{Purpose, StreamRng, Streams};

/// The proxy's prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proxy {
    /// The loss of a pair, from its answers to both items.
    Pairwise,
    /// The loss of a pair, as its answer to the positive item.
    Positive,
}

/// How large the networks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Length of a row, `d`; at least 1.
    pub dimensions: usize,
    /// Hidden numbers, `h`; at least 1.
    pub hidden: usize,
    /// Whether there is a proxy, and its prediction.
    pub proxy: Option<Proxy>,
}

/// Names of the parts of a network, after its own.
const PARTS: [&str; 4] = ["0.weight", "0.bias", "2.weight", "2.bias"];

impl Shape {
    /// Names and shapes of the weights, in their order: `ncf.0.weight` (`h × 2d`), `ncf.0.bias`, `ncf.2.weight` (`1 ×
    /// h`), `ncf.2.bias`, then the same of `proxy`.
    pub fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let &Self { dimensions: d, hidden: h, proxy } = self;
        let names = ["ncf", "proxy"].into_iter().take(if proxy.is_some() { 2 } else { 1 });
        let of = |name: &'static str| {
            let shapes = [vec![h, 2 * d], vec![h], vec![1, h], vec![1]];
            PARTS.into_iter().zip(shapes).map(move |(part, shape)| (format!("{name}.{part}"), shape))
        };
        names.flat_map(of).collect()
    }

    /// Weights of one network.
    pub const fn network(&self) -> usize {
        self.hidden * (2 * self.dimensions + 2) + 1
    }

    /// Weights of all networks.
    pub const fn weights(&self) -> usize {
        self.network() * if self.proxy.is_some() { 2 } else { 1 }
    }

    /// Writes the weights that a run starts from.
    ///
    /// # Panics
    /// If there are not as many as [`Shape::weights`].
    pub fn init(&self, streams: &Streams, weights: &mut [f32]) {
        assert_eq!(weights.len(), self.weights(), "all weights are written");
        let &Self { dimensions: d, hidden: h, .. } = self;
        for (network, index) in weights.chunks_exact_mut(self.network()).zip(2..) {
            let mut rng = streams.stream(Purpose::ModelInit, 0, index);
            network.fill(0.0);
            xavier(&mut rng, [h, 2 * d], &mut network[..2 * d * h]);
            xavier(&mut rng, [1, h], &mut network[(2 * d + 1) * h..][..h]);
        }
    }
}

/// Fills numbers of a table of this shape, or some rows of it, uniformly in `±√(6/(n + m))`.
pub fn xavier(rng: &mut StreamRng, shape: [usize; 2], numbers: &mut [f32]) {
    let bound = sqrt(6.0 / (shape[0] + shape[1]) as f64);
    numbers.iter_mut().for_each(|number| *number = (bound * (2.0 * rng.uniform() - 1.0)) as f32);
}

#[cfg(test)]
mod tests;
