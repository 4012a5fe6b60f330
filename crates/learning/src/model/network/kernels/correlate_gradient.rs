//! The gradient of a convolution by its weights.
//!
//! # Definition
//! `out[o][t] = Σ_y Σ_j slope[o][y][j] · in[y · row + tap[t] + j]` over the rows whose tap is inside the input. Each
//! sum is kept in 16 lanes (column `j` goes to lane `j mod 16`), rows ascending, one fused multiply-add a step; then
//! the lanes are folded in halves. The slopes have to be zero in the padding of their rows.
//!
//! # Cost
//! One fused multiply-add for each vector of slopes and tap, and one fold for each weight. Tiles are 6 outputs × 4 taps
//! where there are 32 registers, else 3 × 2. Where the slopes of a block of outputs do not fit into the first-level
//! cache, the rows are taken in bands that do, and the sums of all tiles wait in memory between them, which does not
//! change their order.

use crate::lanes::{Kernel, LANES, Lanes, fold};

/// Outputs of the largest tile.
const BLOCK: usize = 6;

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
    /// Where the derivative by weight (output, tap) goes: `output · taps + index[tap]`.
    pub indices: &'a [u32],
    /// Memory for [`waiting_sums`] numbers.
    pub sums: &'a mut [f32],
    /// Derivatives by the weights.
    pub out: &'a mut [f32],
}

/// Output rows of a band: those of a block of outputs fill half of a first-level cache.
fn band(output_row: usize) -> usize {
    const NUMBERS: usize = 6_144;
    (NUMBERS / (BLOCK * output_row)).max(1)
}

/// Numbers of the sums that wait from one band of rows to the next.
pub fn waiting_sums(taps: usize, output_rows: usize, output_row: usize) -> usize {
    if band(output_row) >= output_rows { 0 } else { BLOCK * taps * LANES }
}

impl Kernel for CorrelateGradient<'_> {
    type Output = ();
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(mut self) {
        let mut output = 0;
        while output < self.outputs {
            output += match self.outputs - output {
                6.. if WIDE => self.block::<6, WIDE>(output),
                4 | 5 if WIDE => self.block::<4, WIDE>(output),
                3.. => self.block::<3, WIDE>(output),
                2 => self.block::<2, WIDE>(output),
                _ => self.block::<1, WIDE>(output),
            };
        }
    }
}

/// Taps of a group with the same rows.
struct Group {
    taps: std::ops::Range<usize>,
    /// Output rows that meet a row of the input.
    rows: std::ops::Range<usize>,
}

impl CorrelateGradient<'_> {
    /// The taps of a kernel row, or all of them where every row meets the input.
    fn groups(&self) -> impl Iterator<Item = Group> + use<> {
        let meets_all = self.pad_rows == 0 && self.input_rows + 1 >= self.output_rows + self.kernel_rows;
        let groups = if meets_all { 1 } else { self.kernel_rows };
        let (taps, pad, input, output) = (self.taps.len() / groups, self.pad_rows, self.input_rows, self.output_rows);
        (0..groups).map(move |group| {
            let from = pad.saturating_sub(group).min(output);
            let to = (input + pad).saturating_sub(group).min(output);
            Group { taps: group * taps..(group + 1) * taps, rows: from..to.max(from) }
        })
    }

    #[inline(always)]
    fn block<const OUTPUTS: usize, const WIDE: bool>(&mut self, output: usize) -> usize {
        let band = band(self.output_row);
        if band >= self.output_rows {
            for group in self.groups() {
                self.tiles::<OUTPUTS, WIDE>(output, group.taps, group.rows, false);
            }
            return OUTPUTS;
        }
        self.sums[..OUTPUTS * self.taps.len() * LANES].fill(0.0);
        for first in (0..self.output_rows).step_by(band) {
            for group in self.groups() {
                let rows = group.rows.start.max(first)..group.rows.end.min(first + band);
                self.tiles::<OUTPUTS, WIDE>(output, group.taps, rows, true);
            }
        }
        self.fold_waiting::<OUTPUTS>(output);
        OUTPUTS
    }

    #[inline(always)]
    fn tiles<const OUTPUTS: usize, const WIDE: bool>(
        &mut self,
        output: usize,
        taps: std::ops::Range<usize>,
        rows: std::ops::Range<usize>,
        waits: bool,
    ) {
        let mut tap = taps.start;
        while tap < taps.end {
            tap += match taps.end - tap {
                // Five are better divided into three and two.
                5 if WIDE => self.tile::<OUTPUTS, 3>(output, tap, &rows, waits),
                4.. if WIDE => self.tile::<OUTPUTS, 4>(output, tap, &rows, waits),
                3 if WIDE => self.tile::<OUTPUTS, 3>(output, tap, &rows, waits),
                2.. => self.tile::<OUTPUTS, 2>(output, tap, &rows, waits),
                _ => self.tile::<OUTPUTS, 1>(output, tap, &rows, waits),
            };
        }
    }

    #[inline(always)]
    fn tile<const OUTPUTS: usize, const TAPS: usize>(
        &mut self,
        output: usize,
        tap: usize,
        rows: &std::ops::Range<usize>,
        waits: bool,
    ) -> usize {
        let offsets: [usize; TAPS] = std::array::from_fn(|index| self.taps[tap + index] as usize);
        let plane = self.output_rows * self.output_row;
        let vectors = self.output_row / LANES;
        let mut sums = [[Lanes::ZERO; TAPS]; OUTPUTS];
        if waits {
            let waiting = self.sums[tap * OUTPUTS * LANES..][..TAPS * OUTPUTS * LANES].as_chunks::<LANES>().0;
            for index in 0..OUTPUTS {
                for tap in 0..TAPS {
                    sums[index][tap] = Lanes(waiting[tap * OUTPUTS + index]);
                }
            }
        }
        for y in rows.clone() {
            let base = (y * self.input_row).wrapping_sub(self.pad_rows * self.input_row);
            // Loops, because closures of `array::from_fn` may be left as calls.
            let mut values = [&[][..]; TAPS];
            for index in 0..TAPS {
                let start = base.wrapping_add(offsets[index]);
                values[index] = &self.input[start..start + vectors * LANES].as_chunks::<LANES>().0[..vectors];
            }
            let mut slopes = [&[][..]; OUTPUTS];
            for (index, slopes) in slopes.iter_mut().enumerate() {
                let start = (output + index) * plane + y * self.output_row;
                *slopes = &self.slopes[start..start + vectors * LANES].as_chunks::<LANES>().0[..vectors];
            }
            for vector in 0..vectors {
                let values: [Lanes; TAPS] = std::array::from_fn(|tap| Lanes(values[tap][vector]));
                for index in 0..OUTPUTS {
                    let slope = Lanes(slopes[index][vector]);
                    for tap in 0..TAPS {
                        sums[index][tap] = slope.mul_add(values[tap], sums[index][tap]);
                    }
                }
            }
        }
        if waits {
            let waiting = self.sums[tap * OUTPUTS * LANES..][..TAPS * OUTPUTS * LANES].as_chunks_mut::<LANES>().0;
            for index in 0..OUTPUTS {
                for tap in 0..TAPS {
                    waiting[tap * OUTPUTS + index] = sums[index][tap].0;
                }
            }
        } else {
            let indices: [usize; TAPS] = std::array::from_fn(|number| self.indices[tap + number] as usize);
            // A copy, so that the sums themselves need not be where a function that is not inlined can find them.
            let mut finished = [[Lanes::ZERO; TAPS]; OUTPUTS];
            for index in 0..OUTPUTS {
                for tap in 0..TAPS {
                    finished[index][tap] = sums[index][tap];
                }
            }
            fold_tile(&finished, output * self.taps.len(), self.taps.len(), &indices, self.out);
        }
        TAPS
    }

    fn fold_waiting<const OUTPUTS: usize>(&mut self, output: usize) {
        let waiting = self.sums.as_chunks::<LANES>().0.chunks_exact(OUTPUTS);
        for (sums, &index) in waiting.zip(self.indices) {
            for (next, sum) in sums.iter().enumerate() {
                self.out[(output + next) * self.taps.len() + index as usize] = fold(sum);
            }
        }
    }
}

/// Writes the sums over lanes. Never inlined: seeing this, LLVM would shuffle lanes in the loop before it.
#[inline(never)]
fn fold_tile<const OUTPUTS: usize, const TAPS: usize>(
    sums: &[[Lanes; TAPS]; OUTPUTS],
    first: usize,
    stride: usize,
    indices: &[usize; TAPS],
    out: &mut [f32],
) {
    for (output, sums) in sums.iter().enumerate() {
        for (sum, index) in sums.iter().zip(indices) {
            out[first + output * stride + index] = fold(&sum.0);
        }
    }
}
