//! Group normalisation.
//!
//! # Definition
//! For each example, `out = γ (x − mean) / √(var + ε) + β` with mean and variance (divided by the count) over the
//! channels of a group and all their pixels; γ and β belong to the channel. ε is 1e-5. Training and evaluation are the
//! same.
//!
//! # Source
//! Y. Wu, K. He, "Group normalization", ECCV 2018; constants as in PyTorch's `GroupNorm`.
//!
//! # Determinism
//! An example's sums run over channel, row, column in ascending order; those over examples, for γ and β, in ascending
//! order last.

use super::super::kernels::Layout;
use crate::lanes::Kernel;

/// Added to a variance before its root.
const EPSILON: f32 = 1e-5;

/// A group normalisation.
#[derive(Clone, Copy, Debug)]
pub struct GroupNorm {
    /// Offsets of γ and β.
    pub scale: usize,
    pub shift: usize,
    pub groups: usize,
}

impl GroupNorm {
    /// Numbers kept from the forward to the backward pass, and as much again for sums.
    pub const fn state(&self, batch: usize) -> usize {
        4 * self.groups * batch
    }
}

/// Columns of a channel.
const fn columns(layout: Layout) -> usize {
    layout.shape.height * layout.shape.width
}

/// Where the examples of a column of a channel start.
#[inline(always)]
const fn start_of(layout: Layout, channel: usize, column: usize) -> usize {
    let (y, x) = (column / layout.shape.width, column % layout.shape.width);
    (channel * layout.shape.height + y) * layout.row + x * layout.batch
}

/// The forward pass. Leaves mean and `1/√(var + ε)` of each group and example in `state`.
pub struct GroupNormForward<'a> {
    pub norm: GroupNorm,
    pub layout: Layout,
    pub parameters: &'a [f32],
    pub input: &'a [f32],
    pub state: &'a mut [f32],
    pub out: &'a mut [f32],
}

impl Kernel for GroupNormForward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let (layout, batch) = (self.layout, self.layout.batch);
        let size = layout.shape.channels / self.norm.groups;
        let count = (size * layout.shape.height * layout.shape.width) as f32;
        for group in 0..self.norm.groups {
            let channels = group * size..(group + 1) * size;
            let (means, inverses) = self.state[2 * group * batch..][..2 * batch].split_at_mut(batch);
            means.fill(0.0);
            inverses.fill(0.0);
            for channel in channels.clone() {
                for column in 0..columns(layout) {
                    let start = start_of(layout, channel, column);
                    means.iter_mut().zip(&self.input[start..]).for_each(|(mean, x)| *mean += x);
                }
            }
            means.iter_mut().for_each(|mean| *mean /= count);
            for channel in channels.clone() {
                for column in 0..columns(layout) {
                    let start = start_of(layout, channel, column);
                    for ((sum, mean), x) in inverses.iter_mut().zip(&*means).zip(&self.input[start..]) {
                        *sum += (x - mean) * (x - mean);
                    }
                }
            }
            inverses.iter_mut().for_each(|sum| *sum = 1.0 / (*sum / count + EPSILON).sqrt());
            for channel in channels {
                for column in 0..columns(layout) {
                    let start = start_of(layout, channel, column);
                    let (scale, shift) =
                        (self.parameters[self.norm.scale + channel], self.parameters[self.norm.shift + channel]);
                    let numbers = self.input[start..].iter().zip(&mut self.out[start..start + batch]);
                    for ((x, out), (mean, inverse)) in numbers.zip(means.iter().zip(&*inverses)) {
                        *out = (x - mean) * inverse * scale + shift;
                    }
                }
            }
        }
    }
}

/// The backward pass.
pub struct GroupNormBackward<'a> {
    pub norm: GroupNorm,
    pub layout: Layout,
    pub parameters: &'a [f32],
    pub input: &'a [f32],
    pub state: &'a mut [f32],
    /// Zero in the padding; the shifts' gradient, which is their sum, is already in `gradient`.
    pub slopes: &'a [f32],
    pub gradient: &'a mut [f32],
    pub out: Option<(&'a mut [f32], bool)>,
}

impl Kernel for GroupNormBackward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(mut self) {
        let (layout, batch) = (self.layout, self.layout.batch);
        let size = layout.shape.channels / self.norm.groups;
        let count = (size * layout.shape.height * layout.shape.width) as f32;
        let (moments, sums) = self.state.split_at_mut(2 * self.norm.groups * batch);
        self.gradient[self.norm.scale..][..layout.shape.channels].fill(0.0);
        for group in 0..self.norm.groups {
            let channels = group * size..(group + 1) * size;
            let (means, inverses) = moments[2 * group * batch..][..2 * batch].split_at(batch);
            let (by_slope, by_product) = sums[2 * group * batch..][..2 * batch].split_at_mut(batch);
            by_slope.fill(0.0);
            by_product.fill(0.0);
            for channel in channels.clone() {
                for column in 0..columns(layout) {
                    let start = start_of(layout, channel, column);
                    let scale = self.parameters[self.norm.scale + channel];
                    for b in 0..batch {
                        let normal = (self.input[start + b] - means[b]) * inverses[b];
                        let slope = self.slopes[start + b];
                        self.gradient[self.norm.scale + channel] += slope * normal;
                        by_slope[b] += slope * scale;
                        by_product[b] += slope * scale * normal;
                    }
                }
            }
            let Some((out, add)) = &mut self.out else { continue };
            for channel in channels {
                for column in 0..columns(layout) {
                    let start = start_of(layout, channel, column);
                    let scale = self.parameters[self.norm.scale + channel];
                    for b in 0..batch {
                        let normal = (self.input[start + b] - means[b]) * inverses[b];
                        let slope = self.slopes[start + b] * scale;
                        let result = inverses[b] * (slope - (by_slope[b] + normal * by_product[b]) / count);
                        out[start + b] = if *add { out[start + b] + result } else { result };
                    }
                }
            }
        }
    }
}
