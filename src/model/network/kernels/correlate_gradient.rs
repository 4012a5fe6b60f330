//! The gradient of a convolution by its weights.
//!
//! # Definition
//! `out[o][t] = Σ_y Σ_j slope[o][y][j] · in[y · row + tap[t] + j]` over the rows whose tap is inside the input. Each sum is kept
//! in 16 lanes (place `j` goes to lane `j mod 16`), rows ascending, one fused multiply-add a step; then the lanes are
//! folded in halves. The slopes have to be zero in the padding of their rows.
//!
//! # Cost
//! One fused multiply-add for each vector of slopes and tap, and one fold for each weight. Tiles are 6 outputs × 4 taps where
//! there are 32 registers, else 3 × 2.

use crate::math::lanes::{Kernel, LANES, Lanes, fold};

/// A gradient to be computed.
pub struct CorrelateGradient<'a> {
    /// The input planes of the convolution.
    pub input: &'a [f32],
    /// Offset of each tap; see [`super::correlate::Correlate::taps`].
    pub taps: &'a [u32],
    /// Rows of the kernel.
    pub kernel_rows: usize,
    /// Rows of zeros that are thought to lie above the input.
    pub pad_rows: usize,
    /// Rows of the input.
    pub input_rows: usize,
    /// Numbers from an input row to the next.
    pub input_row: usize,
    /// Derivatives of the loss by the output planes.
    pub slopes: &'a [f32],
    /// Number of output channels.
    pub outputs: usize,
    /// Rows of an output plane.
    pub output_rows: usize,
    /// Numbers from an output row to the next.
    pub output_row: usize,
    /// Where the derivative by weight (output, tap) goes: `output · taps + place[tap]`.
    pub places: &'a [u32],
    /// Derivatives by the weights.
    pub out: &'a mut [f32],
}

impl Kernel for CorrelateGradient<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(mut self) {
        let mut output = 0;
        while output < self.outputs {
            output += match self.outputs - output {
                6.. if WIDE => self.outputs_block::<6, WIDE>(output),
                4 | 5 if WIDE => self.outputs_block::<4, WIDE>(output),
                3.. => self.outputs_block::<3, WIDE>(output),
                2 => self.outputs_block::<2, WIDE>(output),
                _ => self.outputs_block::<1, WIDE>(output),
            };
        }
    }
}

impl CorrelateGradient<'_> {
    #[inline(always)]
    fn outputs_block<const OUTPUTS: usize, const WIDE: bool>(&mut self, output: usize) -> usize {
        let taps_per_row = self.taps.len() / self.kernel_rows;
        for kernel_row in 0..self.kernel_rows {
            let mut tap = kernel_row * taps_per_row;
            let end = tap + taps_per_row;
            while tap < end {
                tap += match end - tap {
                    4.. if WIDE => self.tile::<OUTPUTS, 4>(output, kernel_row, tap),
                    3 if WIDE => self.tile::<OUTPUTS, 3>(output, kernel_row, tap),
                    2.. => self.tile::<OUTPUTS, 2>(output, kernel_row, tap),
                    _ => self.tile::<OUTPUTS, 1>(output, kernel_row, tap),
                };
            }
        }
        OUTPUTS
    }

    #[inline(always)]
    fn tile<const OUTPUTS: usize, const TAPS: usize>(&mut self, output: usize, kernel_row: usize, tap: usize) -> usize {
        // Output rows that meet a row of the input with this kernel row.
        let from = self.pad_rows.saturating_sub(kernel_row).min(self.output_rows);
        let to = (self.input_rows + self.pad_rows).saturating_sub(kernel_row).min(self.output_rows);
        let offsets: [usize; TAPS] = std::array::from_fn(|place| self.taps[tap + place] as usize);
        let plane = self.output_rows * self.output_row;
        let vectors = self.output_row / LANES;
        let mut sums = [[Lanes::ZERO; TAPS]; OUTPUTS];
        for y in from..to {
            let base = (y * self.input_row).wrapping_sub(self.pad_rows * self.input_row);
            let first = output * plane + y * self.output_row;
            for vector in 0..vectors {
                let shift = vector * LANES;
                let mut values = [Lanes::ZERO; TAPS];
                for place in 0..TAPS {
                    let start = base.wrapping_add(offsets[place] + shift);
                    values[place] = Lanes::load(&self.input[start..]);
                }
                for place in 0..OUTPUTS {
                    let slopes = Lanes::load(&self.slopes[first + place * plane + shift..]);
                    for tap in 0..TAPS {
                        sums[place][tap] = slopes.mul_add(values[tap], sums[place][tap]);
                    }
                }
            }
        }
        let places: [usize; TAPS] = std::array::from_fn(|place| self.places[tap + place] as usize);
        fold_tile(&sums, output * self.taps.len(), self.taps.len(), &places, self.out);
        TAPS
    }
}

/// Writes the sums over lanes. Never inlined: seeing this, LLVM would shuffle lanes in the loop before it.
#[inline(never)]
fn fold_tile<const OUTPUTS: usize, const TAPS: usize>(
    sums: &[[Lanes; TAPS]; OUTPUTS],
    first: usize,
    stride: usize,
    places: &[usize; TAPS],
    out: &mut [f32],
) {
    for (output, sums) in sums.iter().enumerate() {
        for (sum, place) in sums.iter().zip(places) {
            out[first + output * stride + place] = fold(&sum.0);
        }
    }
}
