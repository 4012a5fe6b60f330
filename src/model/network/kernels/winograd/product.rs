//! The products of transformed kernels and tiles, place by place.
//!
//! # Definition
//! `M_k[o][t] = Σ_c U_k[o][c] · V_k[c][t]` for each place `k`, channels ascending, one fused multiply-add a step.
//!
//! # Cost
//! Register tiles are 8 outputs × 3 vectors of tiles where there are 32 registers, else 6 × 1, over all channels; their shape does not
//! change the order of a sum. Both factors are packed in the order in which they are read.

use super::super::correlate::blocks;
use super::{PLACES, Panels};
use crate::math::lanes::{Kernel, LANES, Lanes};

/// Vectors of a panel on a path.
pub const fn panel(wide: bool) -> usize {
    if wide { 3 } else { 1 }
}

/// Products of a block of tiles with some of the outputs.
pub struct Product<'a> {
    /// What [`PackKernels`](super::transform::PackKernels) made.
    pub packed: &'a [f32],
    /// Numbers from a place to the next among these.
    pub packed_stride: usize,
    /// What [`InputTransform`](super::transform::InputTransform) made.
    pub values: &'a [f32],
    /// Numbers from a place to the next among these.
    pub values_stride: usize,
    /// Channels.
    pub channels: usize,
    /// Vectors of the block.
    pub vectors: usize,
    /// Outputs in all.
    pub all: usize,
    /// Outputs that are computed: the first, and how many; they begin and end with a block of [`blocks`].
    pub outputs: (usize, usize),
    /// The result: place × panel × output × vector.
    pub products: &'a mut [f32],
    /// Numbers from a place to the next among these.
    pub products_stride: usize,
}

impl Kernel for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(mut self) {
        let (from, count) = self.outputs;
        for place in 0..PLACES {
            for (first, size) in blocks(self.all, WIDE) {
                if first < from || first >= from + count {
                    continue;
                }
                match size {
                    8 => self.block::<8, WIDE>(place, first),
                    6 => self.block::<6, WIDE>(place, first),
                    4 => self.block::<4, WIDE>(place, first),
                    2 => self.block::<2, WIDE>(place, first),
                    _ => self.block::<1, WIDE>(place, first),
                }
            }
        }
    }
}

impl Product<'_> {
    #[inline(always)]
    fn block<const OUTPUTS: usize, const WIDE: bool>(&mut self, place: usize, first: usize) {
        let mut vector = 0;
        while vector < self.vectors {
            vector += match self.vectors - vector {
                3.. if WIDE => self.tile::<OUTPUTS, 3, WIDE>(place, first, vector),
                2 if WIDE => self.tile::<OUTPUTS, 2, WIDE>(place, first, vector),
                _ => self.tile::<OUTPUTS, 1, WIDE>(place, first, vector),
            };
        }
    }

    #[inline(always)]
    fn tile<const OUTPUTS: usize, const VECTORS: usize, const WIDE: bool>(
        &mut self,
        place: usize,
        first: usize,
        vector: usize,
    ) -> usize {
        let channels = self.channels;
        let (from, count) = self.outputs;
        let packed = &self.packed[place * self.packed_stride + first * channels..][..OUTPUTS * channels];
        let panels = Panels { vectors: self.vectors, rows: channels, panel: panel(WIDE) };
        let values = &self.values[place * self.values_stride + panels.start(vector)..][..VECTORS * LANES * channels];
        let mut sums = [[Lanes::ZERO; VECTORS]; OUTPUTS];
        for (weights, window) in packed.as_chunks::<OUTPUTS>().0.iter().zip(values.chunks_exact(VECTORS * LANES)) {
            let window = window.as_chunks::<LANES>().0;
            for output in 0..OUTPUTS {
                let weight = Lanes::splat(weights[output]);
                for vector in 0..VECTORS {
                    sums[output][vector] = weight.mul_add(Lanes(window[vector]), sums[output][vector]);
                }
            }
        }
        let start = Panels { rows: count, ..panels }.start(vector) + (first - from) * VECTORS * LANES;
        let out = &mut self.products[place * self.products_stride + start..][..OUTPUTS * VECTORS * LANES];
        for (sum, out) in sums.as_flattened().iter().zip(out.as_chunks_mut::<LANES>().0) {
            *out = sum.0;
        }
        VECTORS
    }
}
