//! The most fused multiply-adds that a core does: independent chains in registers, fed from the first-level cache.

use crate::measure::measure;
use fedgenie::lanes::{Kernel, LANES, Lanes, Path, run};
use std::hint::black_box;

/// Steps of all chains, of which each reads its factors from the same few lines of the cache.
const STEPS: usize = 64;
const REPETITIONS: usize = 2_000;

struct Chains<'a> {
    weights: &'a [f32],
    values: &'a [f32],
    out: &'a mut [f32],
}

impl Kernel for Chains<'_> {
    /// Multiply-adds of one number.
    type Output = usize;
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(self) -> usize {
        if WIDE {
            chains::<8, 3>(self.weights, self.values, self.out)
        } else {
            chains::<6, 1>(self.weights, self.values, self.out)
        }
    }
}

#[inline(always)]
fn chains<const ROWS: usize, const COLUMNS: usize>(weights: &[f32], values: &[f32], out: &mut [f32]) -> usize {
    let mut sums = [[Lanes::ZERO; COLUMNS]; ROWS];
    let weights = weights.as_chunks::<ROWS>().0;
    for _ in 0..REPETITIONS {
        for (weights, values) in weights.iter().zip(values.chunks_exact(COLUMNS * LANES)).take(STEPS) {
            let values = values.as_chunks::<LANES>().0;
            for row in 0..ROWS {
                let weight = Lanes::splat(weights[row]);
                for column in 0..COLUMNS {
                    sums[row][column] = weight.mul_add(Lanes(values[column]), sums[row][column]);
                }
            }
        }
    }
    for (sum, out) in sums.as_flattened().iter().zip(out.as_chunks_mut::<LANES>().0) {
        *out = sum.0;
    }
    ROWS * COLUMNS * LANES * STEPS * REPETITIONS
}

/// Floating-point operations per second of one core, two for each fused multiply-add and lane.
pub fn peak(path: Path) -> f64 {
    // As many numbers as the largest tile takes.
    let weights = vec![0.5; STEPS * 8];
    let values = vec![0.5; STEPS * 3 * LANES];
    let mut out = vec![0.0; 8 * 3 * LANES];
    let mut multiply_adds = 0;
    let seconds = measure(if path.has_fma() { 31 } else { 1 }, || {
        let (weights, values) = black_box((&weights, &values));
        multiply_adds = run(path, Chains { weights, values, out: black_box(&mut out) });
    });
    2.0 * multiply_adds as f64 / seconds.shortest
}
