//! Kernels and tiles to 16 positions, and products back to outputs.
//!
//! See [`super`] for the matrices. The columns of a row are first dealt to `M` lines in turn, since those of
//! neighbouring tiles of `M × M` outputs are `M` apart: then numbers of consecutive tiles and examples lie side by
//! side.

#![expect(
    clippy::needless_range_loop,
    reason = "loops of constant length over registers, which iterators would put into memory"
)]

use super::super::correlate::Finish;
use super::super::{Layout, whole_vectors};
use super::filters::{Filter, Side};
use super::product::{Panels, Product};
use super::tiles::Block;
use crate::lanes::{Kernel, LANES, Lanes, keep_vectors_whole, transpose};

/// Numbers of one line of columns: one column more than there are tiles, and room for writes beyond it.
pub const fn line_length(columns: usize, batch: usize) -> usize {
    whole_vectors((columns + 1) * batch) + LANES
}

/// Lines of working memory of transforms of tiles of `side × side` outputs, each of [`line_length`].
pub const fn lines(side: usize) -> usize {
    side * (side + 2)
}

/// Row `index` of columns.
#[inline(always)]
pub(super) fn row_of<const ROWS: usize, const N: usize>(columns: &[[Lanes; ROWS]; N], index: usize) -> [Lanes; N] {
    let mut row = [Lanes::ZERO; N];
    for column in 0..N {
        row[column] = columns[column][index];
    }
    row
}

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

/// Deals `M · count` columns of a row of `width` to `M` lines, the first of them column `first` (a wrapped negative
/// number left of the row); columns outside are zero.
#[inline(always)]
pub(super) fn spread<const M: usize>(
    row: &[f32],
    (width, batch): (usize, usize),
    first: usize,
    count: usize,
    lines: &mut [f32],
) {
    let padded = whole_vectors(batch);
    let length = lines.len() / M;
    for (side, line) in lines.chunks_exact_mut(length).enumerate() {
        for column in 0..count {
            let at = column * batch;
            let x = first.wrapping_add(M * column + side);
            if x < width {
                copy_column(&row[x * batch..], &mut line[at..], batch);
            } else {
                line[at..at + padded].fill(0.0);
            }
        }
    }
}

/// `N` vectors, each `stride` numbers after the one before.
#[inline(always)]
pub(super) fn several<const N: usize>(numbers: &[f32], start: usize, stride: usize) -> [Lanes; N] {
    let mut vectors = [Lanes::ZERO; N];
    for index in 0..N {
        vectors[index] = Lanes::load(&numbers[start + index * stride..]);
    }
    vectors
}

/// Transforms kernels, as the left factor of a [`Product`].
pub struct KernelTransform<'a, const M: usize, const N: usize> {
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

impl<const M: usize, const N: usize> Kernel for KernelTransform<'_, M, N>
where
    Side<M, N>: Filter<M, N>,
{
    type Output = ();
    const WIDE_PAYS: bool = true;

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
                if turned {
                    numbers[..9].reverse();
                }
                let mut columns = [[Lanes::ZERO; N]; 3];
                for x in 0..3 {
                    columns[x] = Side::<M, N>::kernel([numbers[x], numbers[3 + x], numbers[6 + x]]);
                }
                let start = output * strides.1 + first;
                for i in 0..N {
                    let positions = Side::<M, N>::kernel([columns[0][i], columns[1][i], columns[2][i]]);
                    for j in 0..N {
                        positions[j].store(&mut out[(N * i + j) * strides.0 + start..]);
                    }
                }
            }
        }
    }
}

/// Transforms the tiles of a block, as the right factor of a [`Product`].
pub struct InputTransform<'a, const M: usize, const N: usize> {
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

impl<const M: usize, const N: usize> Kernel for InputTransform<'_, M, N>
where
    Side<M, N>: Filter<M, N>,
{
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
                for i in 0..N {
                    let lines = &mut self.lines[M * i * line..][..M * line];
                    let y = (M * strip.row + i).wrapping_sub(self.padding);
                    if y < shape.height {
                        let from = &self.input[(channel * shape.height + y) * row..];
                        let first = (M * strip.column).wrapping_sub(self.padding);
                        spread::<M>(from, (shape.width, batch), first, strip.columns + 1, lines);
                    } else {
                        lines.fill(0.0);
                    }
                }
                for vector in 0..strip.vectors {
                    let offset = panels.offset(channel, strip.vector + vector);
                    let mut columns = [[Lanes::ZERO; N]; N];
                    for j in 0..N {
                        let at = j % M * line + vector * LANES + j / M * batch;
                        columns[j] = Side::<M, N>::tile(several(self.lines, at, M * line));
                    }
                    store_tile::<M, N>(&columns, &mut self.values[offset..], self.stride);
                }
            }
        }
    }
}

/// Stores `c B`, whose columns `Bᵀ c` are given.
#[inline(always)]
pub(super) fn store_tile<const M: usize, const N: usize>(columns: &[[Lanes; N]; N], values: &mut [f32], stride: usize)
where
    Side<M, N>: Filter<M, N>,
{
    for i in 0..N {
        let row = Side::<M, N>::tile(row_of(columns, i));
        for j in 0..N {
            row[j].store(&mut values[(N * i + j) * stride..]);
        }
    }
}

/// Transforms products back to outputs.
pub struct OutputTransform<'a, const M: usize, const N: usize> {
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

impl<const M: usize, const N: usize> Kernel for OutputTransform<'_, M, N>
where
    Side<M, N>: Filter<M, N>,
{
    type Output = ();
    const WIDE_PAYS: bool = true;

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
                let columns = (M * strip.columns).min(shape.width - M * strip.column);
                let (lines, joined) = self.lines.split_at_mut(M * M * self.line);
                for y in 0..M.min(shape.height - M * strip.row) {
                    let sides = &lines[M * y * self.line..][..M * self.line];
                    for column in 0..columns {
                        let from = &sides[column % M * self.line + column / M * batch..];
                        copy_column(from, &mut joined[column * batch..], batch);
                    }
                    let start = ((first + output) * shape.height + M * strip.row + y) * row + M * strip.column * batch;
                    finish(joined, bias, self.finish, columns * batch, &mut self.out[start..]);
                }
            }
        }
    }
}

impl<const M: usize, const N: usize> OutputTransform<'_, M, N>
where
    Side<M, N>: Filter<M, N>,
{
    #[inline(always)]
    fn tile(&mut self, offset: usize, at: usize) {
        let products = &self.products[offset..];
        let mut columns = [[Lanes::ZERO; M]; N];
        for j in 0..N {
            columns[j] = Side::<M, N>::output(several(products, j * self.stride, N * self.stride));
        }
        for y in 0..M {
            let row = Side::<M, N>::output(row_of(&columns, y));
            for x in 0..M {
                row[x].store(&mut self.lines[(M * y + x) * self.line + at..]);
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
