//! Pooling: the largest number, or the mean, of each window.
//!
//! # Definition
//! Maximum: of the numbers of the window that lie inside the input, in the order row, column; the gradient goes to the first one
//! that is the maximum. Mean: the sum over the window, in that order, divided by its area; padding counts as zeros.
//!
//! # Source
//! As in PyTorch, `MaxPool2d` and `AvgPool2d` with `count_include_pad`.

use super::super::build::Window;
use super::super::kernels::Layout;
use crate::data::Shape;
use crate::math::lanes::{Kernel, LANES, Lanes};

/// What is taken of a window.
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
}

impl Pool {
    /// Rows (or columns) of the input that the window at a place covers.
    #[inline(always)]
    fn covered(self, place: usize, side: usize) -> std::ops::Range<usize> {
        let first = place * self.window.stride;
        let from = first.saturating_sub(self.window.padding);
        let to = (first + self.window.size).saturating_sub(self.window.padding).min(side);
        from..to.max(from)
    }

    /// Whether windows are 2 × 2, side by side, and their maximum is taken: nearly all of pooling in practice, which has loops of
    /// its own, on whole vectors.
    const fn is_halving(self) -> bool {
        matches!(self, Self { window: Window { size: 2, stride: 2, padding: 0 }, kind: PoolKind::Max })
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
                    out.fill(if is_max { f32::NEG_INFINITY } else { 0.0 });
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

/// The four numbers of a window, of 16 examples or of what follows them in memory: rows from above, columns from the left.
#[inline(always)]
fn window(input: &[f32], from: Layout, corner: usize) -> [Lanes; 4] {
    let below = corner + from.row;
    [corner, corner + from.batch, below, below + from.batch].map(|place| Lanes::load(&input[place..]))
}

impl PoolForward<'_> {
    /// Vectors are taken one after the other, from left to right and from above, so that what is written behind a row or a column's
    /// last example is overwritten afterwards, or lies in padding.
    #[inline(always)]
    fn halve(self) {
        let (from, to) = self.layouts;
        for channel in 0..to.shape.channels {
            for y in 0..to.shape.height {
                let corner = (channel * from.shape.height + 2 * y) * from.row;
                let start = (channel * to.shape.height + y) * to.row;
                for x in 0..to.shape.width {
                    for example in (0..to.batch).step_by(LANES) {
                        let corner = corner + 2 * x * from.batch + example;
                        let lowest = Lanes::splat(f32::NEG_INFINITY);
                        let largest = window(self.input, from, corner).into_iter().fold(lowest, |out, x| x.max(out));
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
                            for place in 0..batch {
                                let is_largest = input[place] == output[place];
                                out[place] += if is_largest { slopes[place] } else { 0.0 };
                                slopes[place] = if is_largest { 0.0 } else { slopes[place] };
                            }
                        }
                    }
                }
            }
        }
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
                        let left = 2 * x * from.batch + example;
                        let place = start + x * to.batch + example;
                        let (output, mut slopes) =
                            (Lanes::load(&self.output[place..]), Lanes::load(&self.slopes[place..]));
                        let corner = upper + left;
                        let corners = [corner, corner + from.batch, corner + from.row, corner + from.row + from.batch];
                        let count = (to.batch - example).min(LANES);
                        // Columns of windows further to the right are written later; behind them lie a column of zeros or the next row.
                        let fits = to.batch <= LANES && left + from.batch + LANES <= 2 * to.used();
                        let is_inside = count == LANES || fits;
                        for (input, place) in window(self.input, from, corner).into_iter().zip(corners) {
                            let mut taken = Lanes::ZERO;
                            for lane in 0..LANES {
                                let is_largest = input.0[lane] == output.0[lane];
                                taken.0[lane] = if is_largest { slopes.0[lane] } else { 0.0 };
                                slopes.0[lane] = if is_largest { 0.0 } else { slopes.0[lane] };
                            }
                            if is_inside {
                                taken.store(&mut self.out[place..]);
                            } else {
                                self.out[place..place + count].copy_from_slice(&taken.0[..count]);
                            }
                        }
                    }
                }
            }
        }
    }
}
