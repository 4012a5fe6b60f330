//! The most fused multiply-adds that a core does: sixteen independent chains in registers, nothing read or written.

use crate::measure::measure;
use fedgenie::math::lanes::{Kernel, Lanes, Path, run};
use std::hint::black_box;

struct Chains {
    steps: usize,
    factor: Lanes,
    addend: Lanes,
}

/// Chains where there are 32 registers, and where there are 16 of half the width.
const WIDE_CHAINS: usize = 16;
const NARROW_CHAINS: usize = 6;

impl Kernel for Chains {
    type Output = f32;

    #[inline(always)]
    fn run<const WIDE: bool>(self) -> f32 {
        if WIDE { self.chains::<WIDE_CHAINS>() } else { self.chains::<NARROW_CHAINS>() }
    }
}

impl Chains {
    #[inline(always)]
    fn chains<const COUNT: usize>(self) -> f32 {
        let mut sums: [Lanes; COUNT] = std::array::from_fn(|chain| Lanes::splat(chain as f32));
        for _ in 0..self.steps {
            for sum in &mut sums {
                *sum = sum.mul_add(self.factor, self.addend);
            }
        }
        sums.iter().map(Lanes::sum).sum()
    }
}

/// Floating-point operations per second of one core, two for each fused multiply-add and lane.
pub fn peak(path: Path) -> f64 {
    let chains = if path == Path::Avx512 { WIDE_CHAINS } else { NARROW_CHAINS };
    let steps = if path == Path::Portable { 1_000 } else { 100_000 };
    let seconds = measure(31, || {
        let (factor, addend) = black_box((Lanes::splat(0.5), Lanes::splat(1.0)));
        black_box(run(path, Chains { steps, factor, addend }));
    });
    (2 * 16 * chains * steps) as f64 / seconds.shortest
}
