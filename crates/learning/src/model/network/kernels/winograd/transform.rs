//! Kernels and tiles to 16 positions, and products back to outputs.
//!
//! See [`super`] for the matrices. The columns of a row are first separated into even and odd ones, since those of
//! neighbouring tiles are two apart: then numbers of consecutive tiles and examples lie side by side.

#![expect(
    clippy::needless_range_loop,
    reason = "loops of constant length over registers, which iterators would put into memory"
)]

use super::super::correlate::Finish;
use super::super::{Layout, whole_vectors};
use super::POSITIONS;
use super::product::{Panels, Product};
use super::tiles::Block;
use crate::lanes::{Kernel, LANES, Lanes, keep_vectors_whole, transpose};

/// Numbers of one line of even or odd columns: one column more than there are tiles, and room for writes beyond it.
pub const fn line_length(columns: usize, batch: usize) -> usize {
    whole_vectors((columns + 1) * batch) + LANES
}

/// Lines of working memory of a transform, each of [`line_length`].
pub const LINES: usize = 8;

/// Copies a column; whole vectors are read and written.
#[inline(always)]
pub(super) fn copy_column(from: &[f32], to: &mut [f32], batch: usize) {
    let count = whole_vectors(batch);
    // One or two vectors are not worth a call.
    if count <= 2 * LANES {
        Lanes::load(from).store(to);
        if count > LANES {
            Lanes::load(&from[LANES..]).store(&mut to[LANES..]);
        }
    } else {
        to[..count].copy_from_slice(&from[..count]);
    }
}

/// Separates `count` even and odd columns of a row of `width`, the first of them column `first` (a wrapped negative
/// number left of the row); columns outside are zero.
#[inline(always)]
pub(super) fn spread(
    row: &[f32],
    width: usize,
    batch: usize,
    first: usize,
    count: usize,
    (even, odd): (&mut [f32], &mut [f32]),
) {
    let padded = whole_vectors(batch);
    for column in 0..count {
        let at = column * batch;
        for (side, line) in [&mut *even, &mut *odd].into_iter().enumerate() {
            let x = first.wrapping_add(2 * column + side);
            if x < width {
                copy_column(&row[x * batch..], &mut line[at..], batch);
            } else {
                line[at..at + padded].fill(0.0);
            }
        }
    }
}

/// Four vectors, each `stride` numbers after the one before.
#[inline(always)]
pub(super) fn four(numbers: &[f32], start: usize, stride: usize) -> [Lanes; 4] {
    [
        Lanes::load(&numbers[start..]),
        Lanes::load(&numbers[start + stride..]),
        Lanes::load(&numbers[start + 2 * stride..]),
        Lanes::load(&numbers[start + 3 * stride..]),
    ]
}

/// `Bᵀ x`.
#[inline(always)]
pub(super) fn tile_filter(x: [Lanes; 4]) -> [Lanes; 4] {
    [x[0] - x[2], x[1] + x[2], x[2] - x[1], x[3] - x[1]]
}

/// `Aᵀ x`.
#[inline(always)]
fn output_filter(x: [Lanes; 4]) -> [Lanes; 2] {
    [(x[0] + x[1]) + x[2], (x[1] - x[2]) + x[3]]
}

/// Transforms kernels, as the left factor of a [`Product`].
pub struct KernelTransform<'a> {
    /// Weights of a convolution, output × channel × row × column.
    pub weights: &'a [f32],
    /// Outputs of the product.
    pub outputs: usize,
    /// Channels of the product.
    pub channels: usize,
    /// Whether outputs of the product are channels of the convolution and the reverse, with kernels turned by 180°.
    pub turned: bool,
    /// Numbers from a position to the next, and from an output to the next.
    pub strides: (usize, usize),
    /// The result: position × output × channel.
    pub out: &'a mut [f32],
}

impl Kernel for KernelTransform<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { weights, outputs, channels, turned, strides, out } = self;
        let (by_output, by_channel) = if turned { (1, outputs) } else { (channels, 1) };
        for output in 0..outputs {
            for first in (0..channels).step_by(LANES) {
                let count = (channels - first).min(LANES);
                let mut numbers = [Lanes::ZERO; LANES];
                for lane in 0..count {
                    let kernel = &weights[9 * (output * by_output + (first + lane) * by_channel)..];
                    // Numbers read beyond the kernel go to rows that are not used.
                    numbers[lane] =
                        if kernel.len() < LANES { Lanes::load_partial(kernel) } else { Lanes::load(kernel) };
                }
                transpose(&mut numbers);
                let mut columns = [[Lanes::ZERO; 4]; 3];
                for x in 0..3 {
                    columns[x] = kernel_filter([numbers[x], numbers[3 + x], numbers[6 + x]]);
                }
                let start = output * strides.1 + first;
                for i in 0..4 {
                    // Turning a kernel exchanges the first and the last position of both directions.
                    let row = if turned { [3, 1, 2, 0][i] } else { i };
                    let positions = kernel_filter([columns[0][i], columns[1][i], columns[2][i]]);
                    for j in 0..4 {
                        let column = if turned { [3, 1, 2, 0][j] } else { j };
                        positions[j].store(&mut out[(4 * row + column) * strides.0 + start..]);
                    }
                }
            }
        }
    }
}

/// `G x`.
#[inline(always)]
fn kernel_filter(x: [Lanes; 3]) -> [Lanes; 4] {
    let half = Lanes::splat(0.5);
    let ends = x[0] + x[2];
    [x[0], half * (ends + x[1]), half * (ends - x[1]), x[2]]
}

/// Transforms the tiles of a block, as the right factor of a [`Product`].
pub struct InputTransform<'a> {
    /// The planes of the input.
    pub input: &'a [f32],
    /// Their layout.
    pub layout: Layout,
    /// Rows and columns of zeros before the input.
    pub padding: usize,
    /// The tiles.
    pub block: &'a Block,
    /// Numbers from a position to the next.
    pub stride: usize,
    /// The result: position × panel × channel × vector.
    pub values: &'a mut [f32],
    /// Working memory.
    pub lines: &'a mut [f32],
    /// Numbers of a line.
    pub line: usize,
}

impl Kernel for InputTransform<'_> {
    type Output = ();
    // It fills panels of that kernel.
    const WIDE_PAYS: bool = Product::WIDE_PAYS;

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Layout { shape, batch, row } = self.layout;
        let panels = Panels::new(self.block.vectors, shape.channels, WIDE);
        let line = self.line;
        for channel in 0..shape.channels {
            for strip in &self.block.strips {
                for i in 0..4 {
                    let lines = &mut self.lines[2 * i * line..][..2 * line];
                    let y = (2 * strip.row + i).wrapping_sub(self.padding);
                    if y < shape.height {
                        let from = &self.input[(channel * shape.height + y) * row..];
                        let first = (2 * strip.column).wrapping_sub(self.padding);
                        spread(from, shape.width, batch, first, strip.columns + 1, lines.split_at_mut(line));
                    } else {
                        lines.fill(0.0);
                    }
                }
                for vector in 0..strip.vectors {
                    let offset = panels.offset(channel, strip.vector + vector);
                    tile(self.lines, line, vector * LANES, batch, &mut self.values[offset..], self.stride);
                }
            }
        }
    }
}

#[inline(always)]
fn tile(lines: &[f32], line: usize, at: usize, batch: usize, values: &mut [f32], stride: usize) {
    let mut columns = [[Lanes::ZERO; 4]; 4];
    for j in 0..4 {
        let at = j % 2 * line + at + j / 2 * batch;
        columns[j] = tile_filter(four(lines, at, 2 * line));
    }
    store_tile(&columns, values, stride);
}

/// Stores `c B`, whose columns `Bᵀ c` are given.
#[inline(always)]
pub(super) fn store_tile(columns: &[[Lanes; 4]; 4], values: &mut [f32], stride: usize) {
    for i in 0..4 {
        let row = tile_filter([columns[0][i], columns[1][i], columns[2][i], columns[3][i]]);
        for j in 0..4 {
            row[j].store(&mut values[(4 * i + j) * stride..]);
        }
    }
}

/// Transforms products back to outputs.
pub struct OutputTransform<'a> {
    /// The result of [`Product`].
    pub products: &'a [f32],
    /// Numbers from a position to the next.
    pub stride: usize,
    /// The tiles.
    pub block: &'a Block,
    /// Output channels of the products: the first, and how many.
    pub outputs: (usize, usize),
    /// One number for each channel of the output, or nothing.
    pub bias: &'a [f32],
    /// How an output is stored.
    pub finish: Finish,
    /// The planes of the output.
    pub out: &'a mut [f32],
    /// Their layout.
    pub layout: Layout,
    /// Working memory.
    pub lines: &'a mut [f32],
    /// Numbers of a line.
    pub line: usize,
}

impl Kernel for OutputTransform<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(mut self) {
        let (first, count) = self.outputs;
        let Layout { shape, batch, row } = self.layout;
        for output in 0..count {
            let bias = Lanes::splat(self.bias.get(first + output).copied().unwrap_or_default());
            for strip in &self.block.strips {
                for vector in 0..strip.vectors {
                    let offset = (output * self.block.vectors + strip.vector + vector) * LANES;
                    self.tile(offset, vector * LANES);
                }
                let columns = (2 * strip.columns).min(shape.width - 2 * strip.column);
                let (lines, joined) = self.lines.split_at_mut(4 * self.line);
                for y in 0..2.min(shape.height - 2 * strip.row) {
                    let sides = &lines[2 * y * self.line..][..2 * self.line];
                    for column in 0..columns {
                        let from = &sides[column % 2 * self.line + column / 2 * batch..];
                        copy_column(from, &mut joined[column * batch..], batch);
                    }
                    let start = ((first + output) * shape.height + 2 * strip.row + y) * row + 2 * strip.column * batch;
                    finish(joined, bias, self.finish, columns * batch, &mut self.out[start..]);
                }
            }
        }
    }
}

impl OutputTransform<'_> {
    #[inline(always)]
    fn tile(&mut self, offset: usize, at: usize) {
        let products = &self.products[offset..];
        let mut columns = [[Lanes::ZERO; 2]; 4];
        for j in 0..4 {
            columns[j] = output_filter(four(products, j * self.stride, 4 * self.stride));
        }
        for y in 0..2 {
            let row = output_filter([columns[0][y], columns[1][y], columns[2][y], columns[3][y]]);
            for x in 0..2 {
                row[x].store(&mut self.lines[(2 * y + x) * self.line + at..]);
            }
        }
    }
}

/// Finishes `count` numbers.
#[inline(always)]
fn finish(from: &[f32], bias: Lanes, finish: Finish, count: usize, out: &mut [f32]) {
    let (vectors, last) = out.split_at_mut(count - count % LANES);
    let sums = from.as_chunks::<LANES>().0;
    for (sum, out) in sums.iter().zip(vectors.as_chunks_mut::<LANES>().0) {
        keep_vectors_whole();
        *out = finished(Lanes(*sum) + bias, finish, Lanes(*out)).0;
    }
    if !count.is_multiple_of(LANES) {
        let sum = Lanes(sums[count / LANES]) + bias;
        finished(sum, finish, Lanes::load(last)).store_first(count % LANES, last);
    }
}

#[inline(always)]
fn finished(sum: Lanes, finish: Finish, before: Lanes) -> Lanes {
    match finish {
        Finish::Write => sum,
        Finish::Relu => sum.max(Lanes::ZERO),
        Finish::Add => before + sum,
    }
}

const _: () = assert!(POSITIONS == 16, "a tile of 4 × 4 numbers has 16 positions");
