//! Fully connected layers, in the three directions.
//!
//! # Definition
//! - forward: `out[o] = bias[o] + Σ_f w[o][f] · in[f]`, features ascending;
//! - by the input: `out[f] = Σ_o w[o][f] · slope[o]`, outputs ascending;
//! - by the weights: `out[o][f] = Σ_b slope[o][b] · in[b][f]`, examples ascending, from an input turned to example × feature.
//!
//! Each step is one fused multiply-add. In the first two the lanes are examples, in the last they are features.
//!
//! # Cost
//! One fused multiply-add for each weight and vector. Weights are read where they lie.

use super::super::kernels::correlate::Finish;
use crate::math::lanes::{Kernel, LANES, Lanes};

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
        for place in 0..OUTPUTS {
            sums[place] = [Lanes::splat(self.bias[output + place]); VECTORS];
        }
        let (runs, rest) = self.features.as_chunks::<RUN>();
        let mut first = output * count;
        for run in runs {
            let mut weights = [[0.0; RUN]; OUTPUTS];
            for place in 0..OUTPUTS {
                weights[place] =
                    *self.weights[first + place * count..].first_chunk().expect("a run lies inside its row");
            }
            for step in 0..RUN {
                let start = run[step] as usize + vector * LANES;
                let window = self.input[start..start + VECTORS * LANES].as_chunks::<LANES>().0;
                for place in 0..OUTPUTS {
                    let weight = Lanes::splat(weights[place][step]);
                    for v in 0..VECTORS {
                        sums[place][v] = weight.mul_add(Lanes(window[v]), sums[place][v]);
                    }
                }
            }
            first += RUN;
        }
        for &feature in rest {
            let start = feature as usize + vector * LANES;
            let window = self.input[start..start + VECTORS * LANES].as_chunks::<LANES>().0;
            for place in 0..OUTPUTS {
                let weight = Lanes::splat(self.weights[first + place * count]);
                for v in 0..VECTORS {
                    sums[place][v] = weight.mul_add(Lanes(window[v]), sums[place][v]);
                }
            }
            first += 1;
        }
        for place in 0..OUTPUTS {
            for v in 0..VECTORS {
                let sum = if self.finish == Finish::Relu { sums[place][v].max(Lanes::ZERO) } else { sums[place][v] };
                sum.store(&mut self.out[(output + place) * self.output_row + (vector + v) * LANES..]);
            }
        }
        VECTORS
    }
}

/// The gradient by the input.
pub struct DenseInputGradient<'a> {
    /// Outputs × features.
    pub weights: &'a [f32],
    /// Derivatives by the outputs.
    pub slopes: &'a [f32],
    /// Numbers from an output to the next.
    pub output_row: usize,
    /// Examples.
    pub batch: usize,
    /// Where each feature of the input starts, ascending.
    pub features: &'a [u32],
    /// Whether sums are added to what is there.
    pub add: bool,
    /// Derivatives by the input.
    pub out: &'a mut [f32],
}

impl Kernel for DenseInputGradient<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(mut self) {
        let count = self.features.len();
        let mut feature = 0;
        while feature < count {
            feature += match count - feature {
                8.. => self.block::<8, WIDE>(feature),
                4.. => self.block::<4, WIDE>(feature),
                _ => self.block::<1, WIDE>(feature),
            };
        }
    }
}

impl DenseInputGradient<'_> {
    #[inline(always)]
    fn block<const FEATURES: usize, const WIDE: bool>(&mut self, feature: usize) -> usize {
        let vectors = self.batch.div_ceil(LANES);
        let mut vector = 0;
        while vector < vectors {
            vector += match vectors - vector {
                2.. if WIDE => self.tile::<FEATURES, 2>(feature, vector),
                _ => self.tile::<FEATURES, 1>(feature, vector),
            };
        }
        FEATURES
    }

    #[inline(always)]
    fn tile<const FEATURES: usize, const VECTORS: usize>(&mut self, feature: usize, vector: usize) -> usize {
        let count = self.features.len();
        let mut sums = [[Lanes::ZERO; VECTORS]; FEATURES];
        let rows = self.weights.chunks_exact(count);
        for (weights, slopes) in rows.zip(self.slopes.chunks_exact(self.output_row)) {
            let weights: &[f32; FEATURES] = weights[feature..].first_chunk().expect("the features are there");
            let start = vector * LANES;
            let window = slopes[start..start + VECTORS * LANES].as_chunks::<LANES>().0;
            for place in 0..FEATURES {
                let weight = Lanes::splat(weights[place]);
                for v in 0..VECTORS {
                    sums[place][v] = weight.mul_add(Lanes(window[v]), sums[place][v]);
                }
            }
        }
        for place in 0..FEATURES {
            for v in 0..VECTORS {
                let done = (vector + v) * LANES;
                let start = self.features[feature + place] as usize + done;
                let out = &mut self.out[start..start + (self.batch - done).min(LANES)];
                if self.add {
                    for (out, sum) in out.iter_mut().zip(&sums[place][v].0) {
                        *out += sum;
                    }
                } else if let Some(out) = out.first_chunk_mut::<LANES>() {
                    *out = sums[place][v].0;
                } else {
                    out.copy_from_slice(&sums[place][v].0[..out.len()]);
                }
            }
        }
        VECTORS
    }
}

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
    /// Derivatives by the weights, outputs × features.
    pub out: &'a mut [f32],
}

impl Kernel for DenseWeightGradient<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(mut self) {
        let outputs = self.out.len() / self.features;
        let mut vector = 0;
        let vectors = self.features.div_ceil(LANES);
        while vector < vectors {
            vector += match vectors - vector {
                4.. if WIDE => self.column::<4, WIDE>(vector, outputs),
                2.. => self.column::<2, WIDE>(vector, outputs),
                _ => self.column::<1, WIDE>(vector, outputs),
            };
        }
    }
}

impl DenseWeightGradient<'_> {
    #[inline(always)]
    fn column<const VECTORS: usize, const WIDE: bool>(&mut self, vector: usize, outputs: usize) -> usize {
        let mut output = 0;
        while output < outputs {
            output += match outputs - output {
                6.. if WIDE => self.tile::<6, VECTORS>(output, vector),
                2.. => self.tile::<2, VECTORS>(output, vector),
                _ => self.tile::<1, VECTORS>(output, vector),
            };
        }
        VECTORS
    }

    #[inline(always)]
    fn tile<const OUTPUTS: usize, const VECTORS: usize>(&mut self, output: usize, vector: usize) -> usize {
        let mut sums = [[Lanes::ZERO; VECTORS]; OUTPUTS];
        let mut start = vector * LANES;
        for example in 0..self.batch {
            let window = self.turned[start..start + VECTORS * LANES].as_chunks::<LANES>().0;
            for place in 0..OUTPUTS {
                let slope = Lanes::splat(self.slopes[(output + place) * self.output_row + example]);
                for v in 0..VECTORS {
                    sums[place][v] = slope.mul_add(Lanes(window[v]), sums[place][v]);
                }
            }
            start += self.input_row;
        }
        let first = vector * LANES;
        let count = (self.features - first).min(VECTORS * LANES);
        for (place, sums) in sums.iter().enumerate() {
            let out = &mut self.out[(output + place) * self.features + first..][..count];
            if count == VECTORS * LANES {
                for (out, sum) in out.as_chunks_mut::<LANES>().0.iter_mut().zip(sums) {
                    *out = sum.0;
                }
            } else {
                for (out, sum) in out.chunks_mut(LANES).zip(sums) {
                    out.copy_from_slice(&sum.0[..out.len()]);
                }
            }
        }
        OUTPUTS
    }
}
