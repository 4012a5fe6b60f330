//! Products of matrices, position by position: where convolutions by minimal filtering spend their time.
//!
//! # Definition
//! `P_k[r][x] = Σ_i L_k[r][i] · R_k[i][x]` for each position `k`, `i` ascending, one fused multiply-add a step. Forward
//! and by the input, `L` are kernels, `R` tiles, and `i` channels; by the weights, `L` are slopes, `R` the input, and
//! `i` tiles. Lanes run over `x`.
//!
//! # Cost
//! Register tiles are 6 rows × 4 vectors, 8 × 3 or 8 × 2 where there are 32 registers, whichever divides the vectors,
//! else 6 × 1; their shape does not change the order of a sum. `R` is packed in the order in which it is read
//! ([`Panels`]); the numbers of a row of `L` are read one by one from as many addresses as the tile has rows, which
//! keeps LLVM from making vectors of them.

use crate::lanes::{Kernel, LANES, Lanes};

/// How the right factor is packed: its vectors are divided into panels of `panel` vectors and, for the rest, of one;
/// within a panel the `steps` of a sum follow each other.
#[derive(Clone, Copy, Debug)]
pub struct Panels {
    vectors: usize,
    steps: usize,
    panel: usize,
}

impl Panels {
    /// The panels of `vectors` vectors on a path.
    #[inline(always)]
    pub const fn new(vectors: usize, steps: usize, wide: bool) -> Self {
        let panel = match vectors {
            _ if !wide => 1,
            2 => 2,
            _ if vectors.is_multiple_of(4) || !vectors.is_multiple_of(3) => 4,
            _ => 3,
        };
        Self { vectors, steps, panel }
    }

    /// Where a vector of a step lies.
    #[inline(always)]
    pub const fn offset(self, step: usize, vector: usize) -> usize {
        let inside = vector % self.panel;
        let first = vector - inside;
        if first + self.panel <= self.vectors {
            (first * self.steps + step * self.panel + inside) * LANES
        } else {
            (vector * self.steps + step) * LANES
        }
    }
}

/// Products at all positions.
pub struct Product<'a> {
    /// Positions.
    pub positions: usize,
    /// The left factor: position × row × step.
    pub left: &'a [f32],
    /// Numbers from a position to the next, and from a row to the next: a multiple of 16.
    pub left_strides: (usize, usize),
    /// The right factor: position × panel × step × vector; see [`Panels`].
    pub right: &'a [f32],
    /// Numbers from a position to the next.
    pub right_stride: usize,
    /// Terms of a sum.
    pub steps: usize,
    /// Rows of the left factor: the first, and how many.
    pub rows: (usize, usize),
    /// Vectors of the right factor.
    pub vectors: usize,
    /// Whether sums are added to the present numbers.
    pub add: bool,
    /// The result: position × row × vector.
    pub products: &'a mut [f32],
    /// Numbers from a position to the next.
    pub products_stride: usize,
}

impl Kernel for Product<'_> {
    type Output = ();
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(mut self) {
        let panel = Panels::new(self.vectors, self.steps, WIDE).panel;
        for position in 0..self.positions {
            let mut vector = 0;
            while vector < self.vectors {
                let is_full = vector + panel <= self.vectors;
                vector += match panel {
                    4 if WIDE && is_full => self.panel::<6, 4>(position, vector),
                    3 if WIDE && is_full => self.panel::<8, 3>(position, vector),
                    2 if WIDE && is_full => self.panel::<8, 2>(position, vector),
                    _ if WIDE => self.panel::<8, 1>(position, vector),
                    _ => self.panel::<6, 1>(position, vector),
                };
            }
        }
    }
}

impl Product<'_> {
    #[inline(always)]
    fn panel<const ROWS: usize, const VECTORS: usize>(&mut self, position: usize, vector: usize) -> usize {
        let mut row = 0;
        while row < self.rows.1 {
            row += match self.rows.1 - row {
                left if left >= ROWS => self.tile::<ROWS, VECTORS>(position, row, vector),
                4.. => self.tile::<4, VECTORS>(position, row, vector),
                2 | 3 => self.tile::<2, VECTORS>(position, row, vector),
                _ => self.tile::<1, VECTORS>(position, row, vector),
            };
        }
        VECTORS
    }

    #[inline(always)]
    fn tile<const ROWS: usize, const VECTORS: usize>(&mut self, position: usize, row: usize, vector: usize) -> usize {
        let left: [&[[f32; LANES]]; ROWS] = std::array::from_fn(|step| {
            let start = position * self.left_strides.0 + (self.rows.0 + row + step) * self.left_strides.1;
            self.left[start..start + self.left_strides.1].as_chunks().0
        });
        let start = position * self.right_stride + vector * self.steps * LANES;
        let right = self.right[start..][..self.steps * VECTORS * LANES].as_chunks::<LANES>().0;
        let mut sums = [[Lanes::ZERO; VECTORS]; ROWS];
        // Runs of steps, within which no access has to be checked.
        for (run, right) in right.chunks(LANES * VECTORS).enumerate() {
            let left: [&[f32; LANES]; ROWS] = std::array::from_fn(|row| &left[row][run]);
            for (step, right) in (0..LANES).zip(right.as_chunks::<VECTORS>().0) {
                for row in 0..ROWS {
                    let factor = Lanes::splat(left[row][step]);
                    for vector in 0..VECTORS {
                        sums[row][vector] = factor.mul_add(Lanes(right[vector]), sums[row][vector]);
                    }
                }
            }
        }
        for (step, sums) in sums.iter().enumerate() {
            let start = position * self.products_stride + ((row + step) * self.vectors + vector) * LANES;
            let out = self.products[start..start + VECTORS * LANES].as_chunks_mut::<LANES>().0;
            for (sum, out) in sums.iter().zip(out) {
                *out = if self.add { (Lanes(*out) + *sum).0 } else { sum.0 };
            }
        }
        ROWS
    }
}
