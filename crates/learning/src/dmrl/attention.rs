//! Attention over channels and the score of a pair: what lies between projections and loss, column by column.
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
use crate::lanes::{Kernel, LANES, Lanes, fold};

/// The most channels: user, id, text, image.
pub const CHANNELS: usize = 4;

/// What is known of the columns of pairs: users, items and the second layer.
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

/// Scores of pairs, and what their slopes need.
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

impl Kernel for Attend<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        match self.pairs.shape.channels() {
            2 => self.of::<2>(),
            3 => self.of::<3>(),
            _ => self.of::<4>(),
        }
    }
}

/// `softmax` of the logits of each lane.
#[inline(always)]
pub fn softmax<const COUNT: usize>(logits: &[Lanes; COUNT]) -> [Lanes; COUNT] {
    let mut most = logits[0];
    for channel in 1..COUNT {
        most = most.max(logits[channel]);
    }
    let mut out = *logits;
    let mut sum = Lanes::ZERO;
    for channel in 0..COUNT {
        out[channel] = (logits[channel] - most).map(exp);
        sum = sum + out[channel];
    }
    for channel in 0..COUNT {
        out[channel] = out[channel] / sum;
    }
    out
}

impl Attend<'_> {
    #[inline(always)]
    fn of<const COUNT: usize>(self) {
        let Self { pairs, of_users, hidden, weights, products, scores } = self;
        let Pairs { shape, stride, columns, users, items, weights: second, bias } = pairs;
        let (width, breadth, dim) = (shape.width(), shape.attention, shape.dim);
        for column in (0..columns).step_by(LANES) {
            let mut score = Lanes::ZERO;
            for factor in 0..shape.factors {
                let mut logits = [Lanes::ZERO; COUNT];
                for channel in 0..COUNT {
                    logits[channel] = Lanes::splat(bias[channel]);
                }
                for number in 0..breadth {
                    let place = (factor * breadth + number) * stride + column;
                    let sum = Lanes::load(&hidden[place..]) + Lanes::load(&of_users[place..]);
                    let t = sum.map(tanh);
                    t.store(&mut hidden[place..]);
                    for channel in 0..COUNT {
                        let weight = Lanes::splat(second[channel * breadth + number]);
                        logits[channel] = weight.mul_add(t, logits[channel]);
                    }
                }
                let shares = softmax(&logits);
                let mut sums = [Lanes::ZERO; COUNT];
                for dimension in factor * width..(factor + 1) * width {
                    let user = Lanes::load(&users[dimension * stride + column..]);
                    for channel in 1..COUNT {
                        let place = ((channel - 1) * dim + dimension) * stride + column;
                        sums[channel] = user.mul_add(Lanes::load(&items[place..]), sums[channel]);
                    }
                }
                for channel in 0..COUNT {
                    let place = (factor * COUNT + channel) * stride + column;
                    shares[channel].store(&mut weights[place..]);
                    if channel > 0 {
                        sums[channel].store(&mut products[place..]);
                        score = shares[channel].mul_add(sums[channel].map(gelu), score);
                    }
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
    /// Sums of the slopes of the second layer: channels × hidden numbers, then channels.
    pub sums: &'a mut [Lanes],
}

impl Kernel for AttendBack<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        match self.pairs.shape.channels() {
            2 => self.of::<2>(),
            3 => self.of::<3>(),
            _ => self.of::<4>(),
        }
    }
}

impl AttendBack<'_> {
    #[inline(always)]
    fn of<const COUNT: usize>(self) {
        let Self { pairs, hidden, weights, products, slopes, hidden_slopes, item_slopes, .. } = self;
        let Self { user_slopes, of_users_slopes, sums, .. } = self;
        let Pairs { shape, stride, columns, users, items, weights: second, .. } = pairs;
        let (width, breadth, dim) = (shape.width(), shape.attention, shape.dim);
        let one = Lanes::splat(1.0);
        for column in (0..columns).step_by(LANES) {
            let slope = Lanes::load(&slopes[column..]);
            for factor in 0..shape.factors {
                let mut shares = [Lanes::ZERO; COUNT];
                let mut by_share = [Lanes::ZERO; COUNT];
                let mut by_product = [Lanes::ZERO; COUNT];
                let mut mean = Lanes::ZERO;
                for channel in 0..COUNT {
                    let place = (factor * COUNT + channel) * stride + column;
                    shares[channel] = Lanes::load(&weights[place..]);
                    if channel > 0 {
                        let product = Lanes::load(&products[place..]);
                        by_share[channel] = slope * product.map(gelu);
                        by_product[channel] = slope * shares[channel] * product.map(gelu_derivative);
                    }
                    mean = shares[channel].mul_add(by_share[channel], mean);
                }
                let mut by_logit = [Lanes::ZERO; COUNT];
                for channel in 0..COUNT {
                    by_logit[channel] = shares[channel] * (by_share[channel] - mean);
                    let sum = &mut sums[COUNT * breadth + channel];
                    *sum = *sum + by_logit[channel];
                }
                for number in 0..breadth {
                    let place = (factor * breadth + number) * stride + column;
                    let t = Lanes::load(&hidden[place..]);
                    let mut by_t = Lanes::ZERO;
                    for channel in 0..COUNT {
                        let at = channel * breadth + number;
                        sums[at] = by_logit[channel].mul_add(t, sums[at]);
                        by_t = Lanes::splat(second[at]).mul_add(by_logit[channel], by_t);
                    }
                    let back = by_t * (one - t * t);
                    back.store(&mut hidden_slopes[place..]);
                    let of_user = &mut of_users_slopes[place..];
                    (Lanes::load(of_user) + back).store(of_user);
                }
                for dimension in factor * width..(factor + 1) * width {
                    let user = Lanes::load(&users[dimension * stride + column..]);
                    let of_user = &mut user_slopes[dimension * stride + column..];
                    let mut sum = Lanes::load(of_user);
                    for channel in 1..COUNT {
                        let place = ((channel - 1) * dim + dimension) * stride + column;
                        sum = by_product[channel].mul_add(Lanes::load(&items[place..]), sum);
                        (by_product[channel] * user).store(&mut item_slopes[place..]);
                    }
                    sum.store(of_user);
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
                sum = sum + Lanes::load(&row[column..]);
            }
            *out += folded(&sum);
        }
    }
}

/// The sum of all lanes.
///
/// Never inlined: seeing this, LLVM would shuffle lanes in the loop before it.
#[inline(never)]
pub fn folded(sum: &Lanes) -> f32 {
    fold(&sum.0)
}
