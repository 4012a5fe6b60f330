//! Correlation of planes with small kernels: the forward pass of a convolution, and its gradient by the input.
//!
//! # Definition
//! `out[o][y][j] = bias[o] + Σ_t w[o][t] · in[y · row + tap[t] + j]` over the taps whose row is inside the input, in
//! ascending `t`, each step one fused multiply-add. Taps are ordered by (kernel row, channel, kernel column), so that
//! those of the rows inside are consecutive. Of three vectors side by side, taps are left out that meet zeros beyond
//! the left or right edge in all of them ([`Edges`]).
//!
//! # Cost
//! One fused multiply-add for each output vector and tap; weights are packed once per call so that those of a register
//! tile are neighbours. Tiles are 8 outputs × 3 vectors where there are 32 registers, else 6 × 1: 24 of 32 and 12 of 16
//! registers are accumulators. The shape of a tile does not change the order of any sum.

use crate::lanes::{Kernel, LANES, Lanes};
use std::ops::Range;

/// A correlation to be run.
pub struct Correlate<'a> {
    /// The input planes.
    pub input: &'a [f32],
    /// Offset of each tap from an output's column in row 0.
    pub taps: &'a [u32],
    /// Rows of the kernel; the taps are as many equal groups.
    pub kernel_rows: usize,
    /// Rows of zeros that are thought to lie above the input.
    pub pad_rows: usize,
    /// Rows of the input; rows below are thought to be zero.
    pub input_rows: usize,
    /// The columns of zeros beside the input, if there are any.
    pub edges: Option<Edges>,
    /// Numbers from an input row to the next.
    pub input_row: usize,
    /// The weights, arranged by [`pack`].
    pub packed: &'a [f32],
    /// One number for each output channel, or nothing.
    pub bias: &'a [f32],
    /// Number of output channels.
    pub outputs: usize,
    /// Rows of an output plane.
    pub output_rows: usize,
    /// Numbers from an output row to the next, all of which are computed: a multiple of 16.
    pub output_row: usize,
    /// The output planes.
    pub out: &'a mut [f32],
    /// How a sum is stored.
    pub finish: Finish,
}

/// Which columns of a row of the input are zeros, of a kernel that moves one column at a time.
#[derive(Clone, Copy, Debug)]
pub struct Edges {
    /// Columns of the kernel: taps of a kernel row and channel.
    pub kernel: usize,
    /// Columns of zeros on the left that the first output column meets.
    pub left: usize,
    /// Columns that are not zeros.
    pub width: usize,
    /// Numbers of a column.
    pub batch: usize,
    /// Output columns.
    pub columns: usize,
}

impl Edges {
    /// The kernel columns that meet more than zeros from some of these vectors of an output row.
    fn inside(self, vectors: Range<usize>) -> Range<usize> {
        let last = self.columns - 1;
        let first = (vectors.start * LANES / self.batch).min(last);
        let last = ((vectors.end * LANES - 1) / self.batch).min(last);
        let to = (self.left + self.width).saturating_sub(first).min(self.kernel);
        self.left.saturating_sub(last).min(to)..to
    }
}

/// How a sum is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// It is written.
    Write,
    /// It is written where positive, else zero is.
    Relu,
    /// Whether it is added to the present numbers.
    Add,
}

/// Output channels of the register tiles that `outputs` channels are divided into.
fn blocks(outputs: usize, wide: bool) -> impl Iterator<Item = (usize, usize)> {
    let sizes: &[usize] = if wide { &[8, 6, 4, 2, 1] } else { &[6, 4, 2, 1] };
    let mut first = 0;
    std::iter::from_fn(move || {
        let left = outputs - first;
        let size = sizes.iter().copied().find(|&size| size <= left)?;
        first += size;
        Some((first - size, size))
    })
}

/// Packs weights for [`Correlate`]: `weight(output, tap)` for each block of outputs, tap by tap.
#[inline(always)]
pub fn pack(outputs: usize, taps: usize, wide: bool, packed: &mut [f32], weight: impl Fn(usize, usize) -> f32) {
    let mut slots = packed.iter_mut();
    for (first, size) in blocks(outputs, wide) {
        for tap in 0..taps {
            for (output, slot) in (first..first + size).zip(slots.by_ref()) {
                *slot = weight(output, tap);
            }
        }
    }
}

impl Kernel for Correlate<'_> {
    type Output = ();
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(mut self) {
        let taps = self.taps.len();
        let packed = self.packed;
        for (first, size) in blocks(self.outputs, WIDE) {
            let packed = &packed[first * taps..][..size * taps];
            match size {
                8 => self.block::<8, WIDE>(first, packed),
                6 => self.block::<6, WIDE>(first, packed),
                4 => self.block::<4, WIDE>(first, packed),
                2 => self.block::<2, WIDE>(first, packed),
                _ => self.block::<1, WIDE>(first, packed),
            }
        }
    }
}

impl Correlate<'_> {
    #[inline(always)]
    fn block<const OUTPUTS: usize, const WIDE: bool>(&mut self, first: usize, packed: &[f32]) {
        let bias: [f32; OUTPUTS] =
            std::array::from_fn(|index| self.bias.get(first + index).copied().unwrap_or_default());
        let packed = packed.as_chunks::<OUTPUTS>().0;
        let taps_per_row = self.taps.len() / self.kernel_rows;
        let vectors = self.output_row / LANES;
        for y in 0..self.output_rows {
            // Kernel rows that meet a row of the input.
            let from = self.pad_rows.saturating_sub(y).min(self.kernel_rows) * taps_per_row;
            let to = (self.input_rows + self.pad_rows).saturating_sub(y).min(self.kernel_rows) * taps_per_row;
            let range = from..to.max(from);
            // May be "negative"; adding the first tap's offset makes it an index of the input again.
            let base = (y * self.input_row).wrapping_sub(self.pad_rows * self.input_row);
            let (taps, packed) = (&self.taps[range.clone()], &packed[range]);
            for vector in (0..vectors).step_by(3) {
                let count = (vectors - vector).min(3);
                let of_row = match self.edges {
                    None => (taps.len().max(1), 0..taps.len()),
                    Some(edges) => (edges.kernel, edges.inside(vector..vector + count)),
                };
                let (group, taken) = of_row;
                let rest = &Taps { taps, packed, group, taken };
                let (at, start) = ((first, y, vector), base.wrapping_add(vector * LANES));
                match count {
                    3 if WIDE => self.finish(at, tile::<OUTPUTS, 3>(self.input, start, rest, &bias)),
                    2 if WIDE => self.finish(at, tile::<OUTPUTS, 2>(self.input, start, rest, &bias)),
                    _ => {
                        for next in 0..count {
                            let at = (first, y, vector + next);
                            let start = start.wrapping_add(next * LANES);
                            self.finish(at, tile::<OUTPUTS, 1>(self.input, start, rest, &bias));
                        }
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn finish<const OUTPUTS: usize, const VECTORS: usize>(
        &mut self,
        (first, y, vector): (usize, usize, usize),
        sums: [[Lanes; VECTORS]; OUTPUTS],
    ) {
        for (index, sums) in sums.iter().enumerate() {
            let start = ((first + index) * self.output_rows + y) * self.output_row + vector * LANES;
            let out = &mut self.out[start..start + VECTORS * LANES];
            for (sum, out) in sums.iter().zip(out.as_chunks_mut::<LANES>().0) {
                *out = match self.finish {
                    Finish::Write => sum.0,
                    Finish::Relu => sum.max(Lanes::ZERO).0,
                    Finish::Add => (Lanes(*out) + *sum).0,
                };
            }
        }
    }
}

/// Taps in groups of so many, of each of which those in a range are taken.
struct Taps<'a, const OUTPUTS: usize> {
    taps: &'a [u32],
    packed: &'a [[f32; OUTPUTS]],
    group: usize,
    taken: Range<usize>,
}

#[inline(always)]
fn tile<const OUTPUTS: usize, const VECTORS: usize>(
    input: &[f32],
    start: usize,
    Taps { taps, packed, group, taken }: &Taps<'_, OUTPUTS>,
    bias: &[f32; OUTPUTS],
) -> [[Lanes; VECTORS]; OUTPUTS] {
    let mut sums = [[Lanes::ZERO; VECTORS]; OUTPUTS];
    for (sums, &bias) in sums.iter_mut().zip(bias) {
        *sums = [Lanes::splat(bias); VECTORS];
    }
    for first in (0..taps.len()).step_by(*group) {
        let range = first + taken.start..first + taken.end;
        for (weights, &tap) in packed[range.clone()].iter().zip(&taps[range]) {
            let first = start.wrapping_add(tap as usize);
            let window = input[first..first + VECTORS * LANES].as_chunks::<LANES>().0;
            for output in 0..OUTPUTS {
                let weight = Lanes::splat(weights[output]);
                for vector in 0..VECTORS {
                    sums[output][vector] = weight.mul_add(Lanes(window[vector]), sums[output][vector]);
                }
            }
        }
    }
    sums
}
