//! Fully connected layers, in the three directions.
//!
//! # Definition
//! - forward: `out[o] = bias[o] + Σ_f w[o][f] · in[f]`, features ascending;
//! - by the input: `out[f] = Σ_o w[o][f] · slope[o]`, outputs ascending;
//! - by the weights: `out[o][f] = Σ_b slope[o][b] · in[b][f]`, examples ascending, from an input turned to example ×
//!   feature.
//!
//! Each step is one fused multiply-add. In the first the lanes are examples, in the others they are features.
//!
//! # Cost
//! One fused multiply-add for each weight and vector. Weights are read where they lie.

#![expect(
    clippy::needless_range_loop,
    reason = "loops of constant length over registers, which iterators would put into memory"
)]

use super::correlate::Finish;
use super::turn::write_columns;
use crate::lanes::{Kernel, LANES, Lanes, keep_vectors_whole};

/// Weights read at once from a row.
const RUN: usize = 8;

/// The forward pass.
pub struct DenseForward<'a> {
    /// The input.
    pub input: &'a [f32],
    /// Where each feature of the input starts.
    pub features: &'a [u32],
    /// Outputs × features.
    pub weights: &'a [f32],
    /// One number for each output.
    pub bias: &'a [f32],
    /// Numbers from an output to the next; a multiple of 16.
    pub output_row: usize,
    /// The output.
    pub out: &'a mut [f32],
    /// Whether negative results become zero.
    pub finish: Finish,
}

impl Kernel for DenseForward<'_> {
    type Output = ();
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(mut self) {
        let outputs = self.bias.len();
        let vectors = self.output_row / LANES;
        let mut output = 0;
        while output < outputs {
            output += match outputs - output {
                8.. if WIDE => self.block::<8, WIDE>(output, vectors),
                4.. => self.block::<4, WIDE>(output, vectors),
                2 | 3 => self.block::<2, WIDE>(output, vectors),
                _ => self.block::<1, WIDE>(output, vectors),
            };
        }
    }
}

impl DenseForward<'_> {
    #[inline(always)]
    fn block<const OUTPUTS: usize, const WIDE: bool>(&mut self, output: usize, vectors: usize) -> usize {
        let mut vector = 0;
        while vector < vectors {
            vector += match vectors - vector {
                2.. if WIDE => self.tile::<OUTPUTS, 2>(output, vector),
                _ => self.tile::<OUTPUTS, 1>(output, vector),
            };
        }
        OUTPUTS
    }

    #[inline(always)]
    fn tile<const OUTPUTS: usize, const VECTORS: usize>(&mut self, output: usize, vector: usize) -> usize {
        let count = self.features.len();
        let mut sums = [[Lanes::ZERO; VECTORS]; OUTPUTS];
        for index in 0..OUTPUTS {
            sums[index] = [Lanes::splat(self.bias[output + index]); VECTORS];
        }
        let (runs, rest) = self.features.as_chunks::<RUN>();
        let mut first = output * count;
        for run in runs {
            let mut weights = [[0.0; RUN]; OUTPUTS];
            for index in 0..OUTPUTS {
                weights[index] =
                    *self.weights[first + index * count..].first_chunk().expect("a run lies inside its row");
            }
            for step in 0..RUN {
                let start = run[step] as usize + vector * LANES;
                let window = self.input[start..start + VECTORS * LANES].as_chunks::<LANES>().0;
                for index in 0..OUTPUTS {
                    let weight = Lanes::splat(weights[index][step]);
                    for v in 0..VECTORS {
                        sums[index][v] = weight.mul_add(Lanes(window[v]), sums[index][v]);
                    }
                }
            }
            first += RUN;
        }
        for &feature in rest {
            let start = feature as usize + vector * LANES;
            let window = self.input[start..start + VECTORS * LANES].as_chunks::<LANES>().0;
            for index in 0..OUTPUTS {
                let weight = Lanes::splat(self.weights[first + index * count]);
                for v in 0..VECTORS {
                    sums[index][v] = weight.mul_add(Lanes(window[v]), sums[index][v]);
                }
            }
            first += 1;
        }
        for index in 0..OUTPUTS {
            for v in 0..VECTORS {
                let sum = if self.finish == Finish::Relu { sums[index][v].max(Lanes::ZERO) } else { sums[index][v] };
                sum.store(&mut self.out[(output + index) * self.output_row + (vector + v) * LANES..]);
            }
        }
        VECTORS
    }
}

/// Features whose weights are copied together, so that they are read along the rows.
pub const PANEL: usize = 4 * LANES;

/// The gradient by the input. Here the lanes are features too, and the result is turned.
pub struct DenseInputGradient<'a> {
    /// Outputs × features.
    pub weights: &'a [f32],
    /// Derivatives by the outputs.
    pub slopes: &'a [f32],
    /// Numbers from an output to the next.
    pub output_row: usize,
    /// Examples.
    pub batch: usize,
    /// Where each feature of the input starts.
    pub features: &'a [u32],
    /// Whether sums are added to the present numbers.
    pub add: bool,
    /// Memory for [`PANEL`] weights of each output.
    pub panel: &'a mut [f32],
    /// Memory for [`PANEL`] sums of each example.
    pub sums: &'a mut [f32],
    /// Derivatives by the input.
    pub out: &'a mut [f32],
}

impl Kernel for DenseInputGradient<'_> {
    type Output = ();
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(mut self) {
        let count = self.features.len();
        for (panel, features) in self.features.chunks(PANEL).enumerate() {
            let first = panel * PANEL;
            let rows = self.panel.as_chunks_mut::<PANEL>().0.iter_mut();
            for (row, weights) in rows.zip(self.weights.chunks_exact(count)) {
                if let Some(weights) = weights[first..].first_chunk::<PANEL>() {
                    // A few vectors are not worth a call.
                    for (to, from) in row.as_chunks_mut::<LANES>().0.iter_mut().zip(weights.as_chunks::<LANES>().0) {
                        keep_vectors_whole();
                        *to = *from;
                    }
                } else {
                    row[..features.len()].copy_from_slice(&weights[first..]);
                }
            }
            let mut example = 0;
            while example < self.batch {
                example += match self.batch - example {
                    6.. if WIDE => self.tile::<6, 4>(example, 0),
                    3.. => self.tiles::<3, WIDE>(example),
                    2 => self.tiles::<2, WIDE>(example),
                    _ => self.tiles::<1, WIDE>(example),
                };
            }
            let sums = self.sums.as_chunks::<PANEL>().0;
            for (run, features) in features.chunks(LANES).enumerate() {
                for (block, sums) in sums.chunks(LANES).enumerate() {
                    let mut square = [Lanes::ZERO; LANES];
                    for (lanes, sums) in square.iter_mut().zip(sums) {
                        *lanes = Lanes::load(&sums[run * LANES..]);
                    }
                    write_columns(&mut square, features, block * LANES, sums.len(), self.add, self.out);
                }
            }
        }
    }
}

impl DenseInputGradient<'_> {
    #[inline(always)]
    fn tiles<const EXAMPLES: usize, const WIDE: bool>(&mut self, example: usize) -> usize {
        if WIDE {
            return self.tile::<EXAMPLES, 4>(example, 0);
        }
        self.tile::<EXAMPLES, 2>(example, 0);
        self.tile::<EXAMPLES, 2>(example, 2)
    }

    #[inline(always)]
    fn tile<const EXAMPLES: usize, const VECTORS: usize>(&mut self, example: usize, vector: usize) -> usize {
        let mut sums = [[Lanes::ZERO; VECTORS]; EXAMPLES];
        let rows = self.panel.as_chunks::<PANEL>().0;
        for (weights, slopes) in rows.iter().zip(self.slopes.chunks_exact(self.output_row)) {
            let slopes: &[f32; EXAMPLES] = slopes[example..].first_chunk().expect("the examples are there");
            let window = weights[vector * LANES..][..VECTORS * LANES].as_chunks::<LANES>().0;
            for index in 0..EXAMPLES {
                let slope = Lanes::splat(slopes[index]);
                for v in 0..VECTORS {
                    sums[index][v] = slope.mul_add(Lanes(window[v]), sums[index][v]);
                }
            }
        }
        for index in 0..EXAMPLES {
            let out = &mut self.sums[(example + index) * PANEL + vector * LANES..][..VECTORS * LANES];
            for (sum, out) in sums[index].iter().zip(out.as_chunks_mut::<LANES>().0) {
                *out = sum.0;
            }
        }
        EXAMPLES
    }
}

/// Numbers of the sums that reach beyond the last feature: a vector for each output of the largest tile.
pub const TAIL: usize = 6 * LANES;

/// The gradient by the weights.
pub struct DenseWeightGradient<'a> {
    /// The input, example × feature, with `input_row` numbers from an example to the next: a multiple of 16.
    pub turned: &'a [f32],
    /// Numbers from an example to the next.
    pub input_row: usize,
    /// Derivatives by the outputs.
    pub slopes: &'a [f32],
    /// Numbers from an output to the next.
    pub output_row: usize,
    /// Examples.
    pub batch: usize,
    /// Number of features.
    pub features: usize,
    /// Memory for [`TAIL`] numbers.
    pub tail: &'a mut [f32],
    /// Derivatives by the weights, outputs × features.
    pub out: &'a mut [f32],
}

impl Kernel for DenseWeightGradient<'_> {
    type Output = ();
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(mut self) {
        let outputs = self.out.len() / self.features;
        let mut output = 0;
        while output < outputs {
            output += match outputs - output {
                6.. if WIDE => self.rows::<6, WIDE>(output),
                4 | 5 if WIDE => self.rows::<4, WIDE>(output),
                2.. => self.rows::<2, WIDE>(output),
                _ => self.rows::<1, WIDE>(output),
            };
        }
    }
}

impl DenseWeightGradient<'_> {
    #[inline(always)]
    fn rows<const OUTPUTS: usize, const WIDE: bool>(&mut self, output: usize) -> usize {
        let vectors = self.features / LANES;
        let mut vector = 0;
        while vector < vectors {
            vector += match vectors - vector {
                4.. if WIDE => self.tile::<OUTPUTS, 4, true>(output, vector),
                2.. => self.tile::<OUTPUTS, 2, true>(output, vector),
                _ => self.tile::<OUTPUTS, 1, true>(output, vector),
            };
        }
        let first = vectors * LANES;
        if first < self.features {
            self.tile::<OUTPUTS, 1, false>(output, vectors);
            for (index, numbers) in self.tail.as_chunks::<LANES>().0[..OUTPUTS].iter().enumerate() {
                let out = &mut self.out[(output + index) * self.features..][first..self.features];
                out.copy_from_slice(&numbers[..out.len()]);
            }
        }
        OUTPUTS
    }

    /// Writes sums to where they belong, if `WHOLE`, else one output after the other to the memory for them.
    #[inline(always)]
    fn tile<const OUTPUTS: usize, const VECTORS: usize, const WHOLE: bool>(
        &mut self,
        output: usize,
        vector: usize,
    ) -> usize {
        let mut sums = [[Lanes::ZERO; VECTORS]; OUTPUTS];
        let mut start = vector * LANES;
        let slopes: [&[f32]; OUTPUTS] =
            std::array::from_fn(|index| &self.slopes[(output + index) * self.output_row..][..self.batch]);
        for example in 0..self.batch {
            let window = self.turned[start..start + VECTORS * LANES].as_chunks::<LANES>().0;
            for index in 0..OUTPUTS {
                let slope = Lanes::splat(slopes[index][example]);
                for v in 0..VECTORS {
                    sums[index][v] = slope.mul_add(Lanes(window[v]), sums[index][v]);
                }
            }
            start += self.input_row;
        }
        for index in 0..OUTPUTS {
            let start = (output + index) * self.features + vector * LANES;
            let out = if WHOLE { &mut self.out[start..] } else { &mut self.tail[index * VECTORS * LANES..] };
            for v in 0..VECTORS {
                sums[index][v].store(&mut out[v * LANES..]);
            }
        }
        VECTORS
    }
}
