//! Pooling: the largest number, or the mean, of each window.
//!
//! # Definition
//! Maximum: of the numbers of the window that lie inside the input, in the order row, column; the gradient goes to the
//! first one that is the maximum; with a ReLU behind it, a maximum below zero becomes zero. Mean: the sum over the
//! window, in that order, divided by its area; padding counts as zeros.
//!
//! # Source
//! As in PyTorch, `MaxPool2d` and `AvgPool2d` with `count_include_pad`.

use super::super::build::Window;
use super::super::kernels::Layout;
use crate::data::Shape;
use crate::lanes::Kernel;

/// The value taken of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolKind {
    Max,
    Average,
}

/// A pooling layer.
#[derive(Clone, Copy, Debug)]
pub struct Pool {
    pub window: Window,
    pub kind: PoolKind,
    /// Whether negative maxima become zero.
    pub relu: bool,
}

impl Pool {
    /// Rows (or columns) of the input that a window covers.
    #[inline(always)]
    fn covered(self, window: usize, side: usize) -> std::ops::Range<usize> {
        let first = window * self.window.stride;
        let from = first.saturating_sub(self.window.padding);
        let to = (first + self.window.size).saturating_sub(self.window.padding).min(side);
        from..to.max(from)
    }

    /// Whether windows are 2 × 2, side by side, and their maximum is taken: nearly all of pooling in practice. Behind a
    /// convolution it has passes of its own, [`halving`](super::halving).
    pub const fn is_halving(self) -> bool {
        matches!(self, Self { window: Window { size: 2, stride: 2, padding: 0 }, kind: PoolKind::Max, .. })
    }

    /// The least maximum.
    #[inline(always)]
    const fn lowest(self) -> f32 {
        if self.relu { 0.0 } else { f32::NEG_INFINITY }
    }

    #[inline(always)]
    fn area(self) -> f32 {
        (self.window.size * self.window.size) as f32
    }
}

/// The forward pass.
pub struct PoolForward<'a> {
    pub pool: Pool,
    pub layouts: (Layout, Layout),
    pub input: &'a [f32],
    pub out: &'a mut [f32],
}

impl Kernel for PoolForward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let (from, to) = self.layouts;
        let (Shape { height, width, .. }, batch) = (from.shape, from.batch);
        for channel in 0..to.shape.channels {
            for y in 0..to.shape.height {
                let out = &mut self.out[(channel * to.shape.height + y) * to.row..][..to.used()];
                for (x, out) in out.chunks_exact_mut(batch).enumerate() {
                    let is_max = self.pool.kind == PoolKind::Max;
                    out.fill(if is_max { self.pool.lowest() } else { 0.0 });
                    for row in self.pool.covered(y, height) {
                        let row = &self.input[(channel * height + row) * from.row..][..from.used()];
                        for column in self.pool.covered(x, width) {
                            let numbers = &row[column * batch..][..batch];
                            if is_max {
                                out.iter_mut()
                                    .zip(numbers)
                                    .for_each(|(out, &x)| *out = if x > *out { x } else { *out });
                            } else {
                                out.iter_mut().zip(numbers).for_each(|(out, &x)| *out += x);
                            }
                        }
                    }
                    if !is_max {
                        let area = self.pool.area();
                        out.iter_mut().for_each(|out| *out /= area);
                    }
                }
            }
        }
    }
}

/// The backward pass: overwrites the gradient by the input, or adds to it.
pub struct PoolBackward<'a> {
    pub pool: Pool,
    pub layouts: (Layout, Layout),
    pub input: &'a [f32],
    pub output: &'a [f32],
    pub slopes: &'a mut [f32],
    pub add: bool,
    pub out: &'a mut [f32],
}

impl Kernel for PoolBackward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let (from, to) = self.layouts;
        let (Shape { height, width, .. }, batch) = (from.shape, from.batch);
        if !self.add {
            self.out[..from.len()].fill(0.0);
        }
        for channel in 0..to.shape.channels {
            for y in 0..to.shape.height {
                let start = (channel * to.shape.height + y) * to.row;
                let output = &self.output[start..][..to.used()];
                let slopes = &mut self.slopes[start..][..to.used()];
                for (x, (output, slopes)) in output.chunks_exact(batch).zip(slopes.chunks_exact_mut(batch)).enumerate()
                {
                    for row in self.pool.covered(y, height) {
                        for column in self.pool.covered(x, width) {
                            let start = (channel * height + row) * from.row + column * batch;
                            let out = &mut self.out[start..][..batch];
                            if self.pool.kind == PoolKind::Average {
                                let area = self.pool.area();
                                out.iter_mut().zip(&*slopes).for_each(|(out, slope)| *out += slope / area);
                                continue;
                            }
                            let input = &self.input[start..][..batch];
                            // A slope that found its maximum is used up.
                            for index in 0..batch {
                                let is_largest = input[index] == output[index];
                                out[index] += if is_largest { slopes[index] } else { 0.0 };
                                slopes[index] = if is_largest { 0.0 } else { slopes[index] };
                            }
                        }
                    }
                }
            }
        }
    }
}
