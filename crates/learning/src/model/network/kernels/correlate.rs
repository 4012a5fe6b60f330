//! Correlation of planes with small kernels: the forward pass of a convolution, and its gradient by the input.
//!
//! # Definition
//! `out[o][y][j] = bias[o] + Σ_t w[o][t] · in[y · row + tap[t] + j]` over the taps whose row is inside the input, in
//! ascending `t`, each step one fused multiply-add. Taps are ordered by (kernel row, channel, kernel column), so that
//! those of the rows inside are consecutive.
//!
//! # Cost
//! One fused multiply-add for each output vector and tap; weights are packed once per call so that those of a register
//! tile are neighbours. Tiles are 8 outputs × 3 vectors where there are 32 registers, else 6 × 1: 24 of 32 and 12 of 16
//! registers are accumulators. The shape of a tile does not change the order of any sum.

use crate::lanes::{Kernel, LANES, Lanes};

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
            let mut vector = 0;
            while vector < vectors {
                let left = vectors - vector;
                let at = (first, y, vector);
                let start = base.wrapping_add(vector * LANES);
                if WIDE && left >= 3 {
                    self.finish(at, tile::<OUTPUTS, 3>(self.input, start, taps, packed, &bias));
                    vector += 3;
                } else if WIDE && left >= 2 {
                    self.finish(at, tile::<OUTPUTS, 2>(self.input, start, taps, packed, &bias));
                    vector += 2;
                } else {
                    self.finish(at, tile::<OUTPUTS, 1>(self.input, start, taps, packed, &bias));
                    vector += 1;
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

#[inline(always)]
fn tile<const OUTPUTS: usize, const VECTORS: usize>(
    input: &[f32],
    start: usize,
    taps: &[u32],
    packed: &[[f32; OUTPUTS]],
    bias: &[f32; OUTPUTS],
) -> [[Lanes; VECTORS]; OUTPUTS] {
    let mut sums = [[Lanes::ZERO; VECTORS]; OUTPUTS];
    for (sums, &bias) in sums.iter_mut().zip(bias) {
        *sums = [Lanes::splat(bias); VECTORS];
    }
    for (weights, &tap) in packed.iter().zip(taps) {
        let first = start.wrapping_add(tap as usize);
        let window = input[first..first + VECTORS * LANES].as_chunks::<LANES>().0;
        for output in 0..OUTPUTS {
            let weight = Lanes::splat(weights[output]);
            for vector in 0..VECTORS {
                sums[output][vector] = weight.mul_add(Lanes(window[vector]), sums[output][vector]);
            }
        }
    }
    sums
}
