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
use crate::lanes::{Kernel, LANES, Lanes, keep_vectors_whole};

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

    /// Whether windows are 2 × 2, side by side, and their maximum is taken: nearly all of pooling in practice, which
    /// has loops of its own, on whole vectors.
    const fn is_halving(self) -> bool {
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
        if self.pool.is_halving() {
            return self.halve();
        }
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

impl PoolForward<'_> {
    /// Vectors are taken one after the other, from left to right and from above, so that numbers written behind a row
    /// or a column's last example are overwritten afterwards, or lie in padding.
    #[inline(always)]
    fn halve(self) {
        let (from, to) = self.layouts;
        for channel in 0..to.shape.channels {
            for y in 0..to.shape.height {
                let corner = (channel * from.shape.height + 2 * y) * from.row;
                let start = (channel * to.shape.height + y) * to.row;
                for x in 0..to.shape.width {
                    for example in (0..to.batch).step_by(LANES) {
                        keep_vectors_whole();
                        let upper = &self.input[corner + 2 * x * from.batch + example..];
                        let lower = &upper[from.row..];
                        let mut largest = Lanes::splat(self.pool.lowest());
                        largest = Lanes::load(upper).max(largest);
                        largest = Lanes::load(&upper[from.batch..]).max(largest);
                        largest = Lanes::load(lower).max(largest);
                        largest = Lanes::load(&lower[from.batch..]).max(largest);
                        largest.store(&mut self.out[start + x * to.batch + example..]);
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
        if self.pool.is_halving() && !self.add {
            return self.double();
        }
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

/// The slopes where the input is the output, and the other slopes.
#[inline(always)]
fn take(slopes: Lanes, output: Lanes, input: &[f32]) -> (Lanes, Lanes) {
    let input = Lanes::load(input);
    let (mut taken, mut left) = (Lanes::ZERO, Lanes::ZERO);
    for lane in 0..LANES {
        taken.0[lane] = if input.0[lane] == output.0[lane] { slopes.0[lane] } else { 0.0 };
    }
    for lane in 0..LANES {
        left.0[lane] = if input.0[lane] == output.0[lane] { 0.0 } else { slopes.0[lane] };
    }
    (taken, left)
}

#[inline(always)]
fn write(lanes: Lanes, count: usize, out: &mut [f32]) {
    if count == LANES {
        lanes.store(out);
    } else {
        lanes.store_first(count, out);
    }
}

impl PoolBackward<'_> {
    /// As [`PoolForward::halve`], but a vector is only written whole where it ends in the same row of windows.
    #[inline(always)]
    fn double(self) {
        let (from, to) = self.layouts;
        let Shape { height, width, .. } = from.shape;
        if !height.is_multiple_of(2) || !width.is_multiple_of(2) {
            self.out[..from.len()].fill(0.0);
        }
        for channel in 0..to.shape.channels {
            for y in 0..to.shape.height {
                let upper = (channel * height + 2 * y) * from.row;
                let start = (channel * to.shape.height + y) * to.row;
                for x in 0..to.shape.width {
                    for example in (0..to.batch).step_by(LANES) {
                        keep_vectors_whole();
                        let left = 2 * x * from.batch + example;
                        let offset = start + x * to.batch + example;
                        let output = Lanes::load(&self.output[offset..]);
                        let slopes = Lanes::load(&self.slopes[offset..]);
                        let (below, right) = (from.row, from.batch);
                        let corner = upper + left;
                        let (first, slopes) = take(slopes, output, &self.input[corner..]);
                        let (second, slopes) = take(slopes, output, &self.input[corner + right..]);
                        let (third, slopes) = take(slopes, output, &self.input[corner + below..]);
                        let (fourth, _) = take(slopes, output, &self.input[corner + below + right..]);
                        let count = (to.batch - example).min(LANES);
                        // Columns of windows further to the right are written later; behind them lie a column of zeros
                        // or the next row.
                        let fits = to.batch <= LANES && left + from.batch + LANES <= 2 * to.used();
                        let out = &mut self.out[corner..];
                        let count = if fits { LANES } else { count };
                        write(first, count, out);
                        write(second, count, &mut out[right..]);
                        write(third, count, &mut out[below..]);
                        write(fourth, count, &mut out[below + right..]);
                    }
                }
            }
        }
    }
}
