//! Attention over channels and the score of a pair: the layers between projections and loss, column by column.
//!
//! # Definition
//! For each factor, with `h` the sum of the user's and the item's part of the first layer: `t = tanh h`, `α =
//! softmax(A₂ t + b₂)` over the channels, and `s = Σ_c α_c GELU(p · e_c)` over those of the item. The score is the sum
//! over factors.
//!
//! # Determinism
//! Sums over hidden numbers, dimensions, channels and factors take one fused multiply-add each, in ascending order.

#![allow(clippy::needless_range_loop, reason = "loops over channels are the same for all their arrays")]

use super::Shape;
use crate::lanes::functions::{exp, gelu, gelu_derivative, tanh};
use crate::lanes::{Kernel, LANES, Lanes, keep_vectors_whole};

/// The most channels: user, id, text, image.
pub const CHANNELS: usize = 4;

/// The inputs of the columns of pairs: users, items and the second layer.
#[derive(Clone, Copy)]
pub struct Pairs<'a> {
    pub shape: &'a Shape,
    /// Numbers of a row.
    pub stride: usize,
    /// Columns, filled up to whole vectors.
    pub columns: usize,
    /// Dimensions of users.
    pub users: &'a [f32],
    /// Dimensions of items, channel by channel.
    pub items: &'a [f32],
    /// Channels × hidden numbers.
    pub weights: &'a [f32],
    /// One for each channel.
    pub bias: &'a [f32],
}

/// Scores of pairs, and the numbers that their slopes need.
pub struct Attend<'a> {
    pub pairs: Pairs<'a>,
    /// The user's part of the first layer, factor by factor.
    pub of_users: &'a [f32],
    /// The item's part, which becomes `t`.
    pub hidden: &'a mut [f32],
    /// `α`, factor by factor, channel by channel.
    pub weights: &'a mut [f32],
    /// `p · e_c`, factor by factor, channel by channel.
    pub products: &'a mut [f32],
    pub scores: &'a mut [f32],
}

/// Rows of the second layer, and the numbers its outputs begin with. A channel that is not there has the row of the
/// user's, and begins with −∞: its `α` is 0.
#[derive(Clone, Copy)]
pub struct Head<'a, const MOST: usize> {
    rows: [&'a [f32]; MOST],
    bias: [f32; MOST],
}

impl<'a, const MOST: usize> Head<'a, MOST> {
    /// The head of so many channels, at most `MOST`.
    #[inline(always)]
    pub fn of(channels: usize, weights: &'a [f32], bias: &[f32]) -> Self {
        let breadth = weights.len() / channels;
        let mut head = Self { rows: [&weights[..breadth]; MOST], bias: [f32::NEG_INFINITY; MOST] };
        for channel in 0..channels {
            head.rows[channel] = &weights[channel * breadth..][..breadth];
            head.bias[channel] = bias[channel];
        }
        head
    }

    /// The logits without hidden numbers.
    #[inline(always)]
    pub fn begin(&self) -> [Lanes; MOST] {
        let mut logits = [Lanes::ZERO; MOST];
        for channel in 0..MOST {
            logits[channel] = Lanes::splat(self.bias[channel]);
        }
        logits
    }

    /// Adds a hidden number.
    #[inline(always)]
    pub fn add(&self, number: usize, t: Lanes, logits: &mut [Lanes; MOST]) {
        for channel in 0..MOST {
            logits[channel] = Lanes::splat(self.rows[channel][number]).mul_add(t, logits[channel]);
        }
    }
}

/// Makes `α` of logits.
#[inline(always)]
pub fn softmax(logits: &mut [Lanes; CHANNELS]) {
    let most = logits[0].max(logits[1]).max(logits[2].max(logits[3]));
    let mut sum = Lanes::ZERO;
    for logit in logits.iter_mut() {
        keep_vectors_whole();
        *logit = (*logit - most).map(exp);
        sum = sum + *logit;
    }
    for logit in logits.iter_mut() {
        keep_vectors_whole();
        *logit = *logit / sum;
    }
}

impl Kernel for Attend<'_> {
    type Output = ();
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { pairs, of_users, hidden, weights, products, scores } = self;
        let Pairs { shape, stride, columns, users, items, weights: second, bias } = pairs;
        let (width, breadth, dim, channels) = (shape.width(), shape.attention, shape.dim, shape.channels());
        let head = Head::<CHANNELS>::of(channels, second, bias);
        for column in (0..columns).step_by(LANES) {
            let mut score = Lanes::ZERO;
            for factor in 0..shape.factors {
                let mut logits = head.begin();
                for number in 0..breadth {
                    let place = (factor * breadth + number) * stride + column;
                    let sum = Lanes::load(&hidden[place..]) + Lanes::load(&of_users[place..]);
                    let t = sum.map(tanh);
                    t.store(&mut hidden[place..]);
                    head.add(number, t, &mut logits);
                }
                softmax(&mut logits);
                for channel in 0..channels {
                    let place = (factor * channels + channel) * stride + column;
                    logits[channel].store(&mut weights[place..]);
                    if channel == 0 {
                        continue;
                    }
                    let mut product = Lanes::ZERO;
                    for dimension in factor * width..(factor + 1) * width {
                        keep_vectors_whole();
                        let user = Lanes::load(&users[dimension * stride + column..]);
                        let item = Lanes::load(&items[((channel - 1) * dim + dimension) * stride + column..]);
                        product = user.mul_add(item, product);
                    }
                    product.store(&mut products[place..]);
                    score = logits[channel].mul_add(product.map(gelu), score);
                }
            }
            score.store(&mut scores[column..]);
        }
    }
}

/// The slopes of pairs, from those of their scores.
pub struct AttendBack<'a> {
    pub pairs: Pairs<'a>,
    pub hidden: &'a [f32],
    pub weights: &'a [f32],
    pub products: &'a [f32],
    /// Slopes of scores.
    pub slopes: &'a [f32],
    /// Gets the slopes of `h`.
    pub hidden_slopes: &'a mut [f32],
    /// Gets the slopes of items by way of the products.
    pub item_slopes: &'a mut [f32],
    /// The same of users, and of their parts of `h`, are added here.
    pub user_slopes: &'a mut [f32],
    pub of_users_slopes: &'a mut [f32],
    /// Sums of the slopes of the second layer: [`CHANNELS`] × hidden numbers, then [`CHANNELS`].
    pub sums: &'a mut [Lanes],
}

impl Kernel for AttendBack<'_> {
    type Output = ();
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { pairs, hidden, weights, products, slopes, hidden_slopes, item_slopes, .. } = self;
        let Self { user_slopes, of_users_slopes, sums, .. } = self;
        let Pairs { shape, stride, columns, users, items, weights: second, bias } = pairs;
        let (width, breadth, dim, channels) = (shape.width(), shape.attention, shape.dim, shape.channels());
        let head = Head::<CHANNELS>::of(channels, second, bias);
        let one = Lanes::splat(1.0);
        for column in (0..columns).step_by(LANES) {
            let slope = Lanes::load(&slopes[column..]);
            for factor in 0..shape.factors {
                let mut shares = [Lanes::ZERO; CHANNELS];
                let mut by_share = [Lanes::ZERO; CHANNELS];
                let mut mean = Lanes::ZERO;
                for channel in 0..channels {
                    let place = (factor * channels + channel) * stride + column;
                    shares[channel] = Lanes::load(&weights[place..]);
                    if channel > 0 {
                        let product = Lanes::load(&products[place..]);
                        by_share[channel] = slope * product.map(gelu);
                        let by_product = slope * shares[channel] * product.map(gelu_derivative);
                        for dimension in factor * width..(factor + 1) * width {
                            let user = Lanes::load(&users[dimension * stride + column..]);
                            let of_user = &mut user_slopes[dimension * stride + column..];
                            let place = ((channel - 1) * dim + dimension) * stride + column;
                            let item = Lanes::load(&items[place..]);
                            by_product.mul_add(item, Lanes::load(of_user)).store(of_user);
                            (by_product * user).store(&mut item_slopes[place..]);
                        }
                    }
                    mean = shares[channel].mul_add(by_share[channel], mean);
                }
                let mut by_logit = [Lanes::ZERO; CHANNELS];
                for channel in 0..CHANNELS {
                    by_logit[channel] = shares[channel] * (by_share[channel] - mean);
                    let sum = &mut sums[CHANNELS * breadth + channel];
                    *sum = *sum + by_logit[channel];
                }
                for number in 0..breadth {
                    let place = (factor * breadth + number) * stride + column;
                    let t = Lanes::load(&hidden[place..]);
                    let mut by_t = Lanes::ZERO;
                    for channel in 0..CHANNELS {
                        let sum = &mut sums[channel * breadth + number];
                        *sum = by_logit[channel].mul_add(t, *sum);
                        by_t = Lanes::splat(head.rows[channel][number]).mul_add(by_logit[channel], by_t);
                    }
                    let back = by_t * (one - t * t);
                    back.store(&mut hidden_slopes[place..]);
                    let of_user = &mut of_users_slopes[place..];
                    (Lanes::load(of_user) + back).store(of_user);
                }
            }
        }
    }
}

/// Adds to each entry the sum of a row.
pub struct RowSums<'a> {
    pub values: &'a [f32],
    pub stride: usize,
    /// Columns, filled up to whole vectors with zeros.
    pub columns: usize,
    pub out: &'a mut [f32],
}

impl Kernel for RowSums<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        for (out, row) in self.out.iter_mut().zip(self.values.chunks(self.stride)) {
            let mut sum = Lanes::ZERO;
            for column in (0..self.columns).step_by(LANES) {
                keep_vectors_whole();
                sum = sum + Lanes::load(&row[column..]);
            }
            *out += sum.sum();
        }
    }
}
