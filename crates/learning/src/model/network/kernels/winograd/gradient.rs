//! The gradient by the weights: transforms of input and slopes, their products, and the transform back to kernels.
//!
//! # Definition
//! `D_k[o][c] = Σ_t S_k[o][t] · V_k[t][c]` for each position `k`, and `dg = Gᵀ D G`; see [`super`] for the transforms
//! and the order of sums. Tiles `t` are (tile row, tile column, example).
//!
//! # How
//! Lanes run over the channels of the input, so that no lanes have to be folded: the input is turned to row × column ×
//! example × channel first, with zeros around it. The slopes are read number by number, and stay as they lie.

#![expect(
    clippy::needless_range_loop,
    reason = "loops of constant length over registers, which iterators would put into memory"
)]

use super::super::{Layout, whole_vectors};
use super::filters::{Filter, Side};
use super::product::{Panels, Product};
use super::tiles::Block;
use super::transform::{row_of, several, spread, store_tile};
use crate::lanes::{Kernel, LANES, Lanes, transpose};

/// Sizes of a turned input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turned {
    /// Rows and columns, with the zeros around.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// Examples.
    pub batch: usize,
    /// Channels, rounded up to whole vectors.
    pub channels: usize,
}

impl Turned {
    /// The input of `rows × columns` tiles of `side × side` outputs.
    pub const fn new(tiles: (usize, usize), side: usize, batch: usize, channels: usize) -> Self {
        Self { rows: side * tiles.0 + 2, columns: side * tiles.1 + 2, batch, channels: whole_vectors(channels) }
    }

    /// Numbers in all.
    pub const fn numbers(self) -> usize {
        self.rows * self.row()
    }

    /// Numbers of a row.
    pub const fn row(self) -> usize {
        self.columns * self.batch * self.channels
    }
}

/// Turns an input to row × column × example × channel.
pub struct Turn<'a> {
    /// The planes of the input.
    pub input: &'a [f32],
    /// Their layout.
    pub layout: Layout,
    /// Rows and columns of zeros before the input.
    pub padding: usize,
    /// Sizes of the result.
    pub turned: Turned,
    /// The result.
    pub out: &'a mut [f32],
}

impl Kernel for Turn<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { input, layout, padding, turned, out } = self;
        let used = layout.used();
        let plane = layout.plane();
        let left = padding * layout.batch * turned.channels;
        for (y, out) in out[..turned.numbers()].chunks_exact_mut(turned.row()).enumerate() {
            let y = y.wrapping_sub(padding);
            if y >= layout.shape.height {
                out.fill(0.0);
                continue;
            }
            let middle = (used * turned.channels).min(out.len() - left);
            out[..left].fill(0.0);
            out[left + middle..].fill(0.0);
            let out = &mut out[left..left + middle];
            for first in (0..turned.channels).step_by(LANES) {
                let count = (layout.shape.channels - first).min(LANES);
                for (vector, out) in out.chunks_mut(LANES * turned.channels).enumerate() {
                    let mut square = [Lanes::ZERO; LANES];
                    let start = first * plane + y * layout.row + vector * LANES;
                    for (channel, lanes) in square[..count].iter_mut().enumerate() {
                        *lanes = Lanes::load(&input[start + channel * plane..]);
                    }
                    transpose(&mut square);
                    for (lanes, out) in square.iter().zip(out.chunks_exact_mut(turned.channels)) {
                        lanes.store(&mut out[first..]);
                    }
                }
            }
        }
    }
}

/// Transforms the tiles of a block of a turned input.
pub struct TurnedTransform<'a, const M: usize, const N: usize> {
    /// The result of [`Turn`].
    pub input: &'a [f32],
    /// Its sizes.
    pub turned: Turned,
    /// The tiles.
    pub block: &'a Block,
    /// Numbers from a position to the next.
    pub stride: usize,
    /// The result: position × panel of channels × tile × vector of channels.
    pub values: &'a mut [f32],
}

impl<const M: usize, const N: usize> Kernel for TurnedTransform<'_, M, N>
where
    Side<M, N>: Filter<M, N>,
{
    type Output = ();
    // It fills panels of that kernel.
    const WIDE_PAYS: bool = Product::WIDE_PAYS;

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { input, turned, block, stride, values } = self;
        let vectors = turned.channels / LANES;
        let panels = Panels::new(vectors, block.numbers, WIDE);
        let column = turned.batch * turned.channels;
        for strip in &block.strips {
            let start = M * strip.row * turned.row() + M * strip.column * column;
            for tile_column in 0..strip.columns {
                for example in 0..turned.batch {
                    let number = strip.number + tile_column * turned.batch + example;
                    let start = start + M * tile_column * column + example * turned.channels;
                    for vector in 0..vectors {
                        let from = &input[start + vector * LANES..];
                        let mut columns = [[Lanes::ZERO; N]; N];
                        for j in 0..N {
                            columns[j] = Side::<M, N>::tile(several(from, j * column, turned.row()));
                        }
                        store_tile::<M, N>(&columns, &mut values[panels.offset(number, vector)..], stride);
                    }
                }
            }
        }
    }
}

/// Transforms the slopes of a block of tiles.
pub struct SlopeTransform<'a, const M: usize, const N: usize> {
    /// Derivatives of the loss by the output planes.
    pub slopes: &'a [f32],
    /// Their layout.
    pub layout: Layout,
    /// The tiles.
    pub block: &'a Block,
    /// Numbers from a position to the next, and from an output to the next.
    pub strides: (usize, usize),
    /// The result: position × output × tile.
    pub values: &'a mut [f32],
    /// Working memory.
    pub lines: &'a mut [f32],
    /// Numbers of a line.
    pub line: usize,
}

impl<const M: usize, const N: usize> Kernel for SlopeTransform<'_, M, N>
where
    Side<M, N>: Filter<M, N>,
{
    type Output = ();
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { slopes, layout: Layout { shape, batch, row }, block, strides, values, lines, line } = self;
        for output in 0..shape.channels {
            for strip in &block.strips {
                for i in 0..M {
                    let lines = &mut lines[M * i * line..][..M * line];
                    let y = M * strip.row + i;
                    if y < shape.height {
                        let from = &slopes[(output * shape.height + y) * row..];
                        spread::<M>(from, (shape.width, batch), M * strip.column, strip.columns, lines);
                    } else {
                        lines.fill(0.0);
                    }
                }
                for vector in 0..strip.vectors {
                    let at = vector * LANES;
                    let mut columns = [[Lanes::ZERO; N]; M];
                    for j in 0..M {
                        columns[j] = Side::<M, N>::slopes(several(lines, j * line + at, M * line));
                    }
                    let values = &mut values[output * strides.1 + strip.number + at..];
                    for i in 0..N {
                        let positions = Side::<M, N>::slopes(row_of(&columns, i));
                        for j in 0..N {
                            positions[j].store(&mut values[(N * i + j) * strides.0..]);
                        }
                    }
                }
            }
        }
    }
}

/// Transforms products back to kernels.
pub struct KernelGradient<'a, const M: usize, const N: usize> {
    /// The result of [`Product`].
    pub products: &'a [f32],
    /// Numbers from a position to the next.
    pub stride: usize,
    /// Channels.
    pub channels: usize,
    /// Derivatives by the weights, output × channel × row × column.
    pub out: &'a mut [f32],
}

impl<const M: usize, const N: usize> Kernel for KernelGradient<'_, M, N>
where
    Side<M, N>: Filter<M, N>,
{
    type Output = ();
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let row = whole_vectors(self.channels);
        let stride = self.stride;
        for (output, kernels) in self.out.chunks_exact_mut(9 * self.channels).enumerate() {
            for (vector, kernels) in kernels.chunks_mut(9 * LANES).enumerate() {
                let products = &self.products[output * row + vector * LANES..];
                let mut columns = [[Lanes::ZERO; 3]; N];
                for j in 0..N {
                    columns[j] = Side::<M, N>::gradient(several(products, j * stride, N * stride));
                }
                let mut numbers = [Lanes::ZERO; LANES];
                for y in 0..3 {
                    let row = Side::<M, N>::gradient(row_of(&columns, y));
                    for x in 0..3 {
                        numbers[3 * y + x] = row[x];
                    }
                }
                transpose(&mut numbers);
                for lane in 0..kernels.len() / 9 {
                    let kernel = &mut kernels[9 * lane..];
                    // Numbers written beyond a kernel are overwritten by the next one.
                    if kernel.len() < LANES {
                        kernel[..9].copy_from_slice(&numbers[lane].0[..9]);
                    } else {
                        numbers[lane].store(kernel);
                    }
                }
            }
        }
    }
}
