//! Sixteen `f32` side by side: the arithmetic of training.
//!
//! # Definition
//! [`Lanes`] holds 16 independent numbers; every operation acts on each of them alone and is correctly rounded. The
//! only operation between lanes is [`Lanes::sum`], which folds in halves: `i` and `i + 8`, then `i + 4`, `i + 2`,
//! `i + 1`.
//!
//! # Determinism
//! IEEE 754 defines every result, and LLVM neither reorders nor contracts floating-point operations, so that code on
//! lanes gives the same bits whatever vectors it is compiled to. This is the only place where fused multiply-add is
//! allowed: where a processor lacks it, a (slow) library routine rounds the same way. Bits of a NaN are not defined by
//! IEEE 754; nothing that leaves the trainer depends on them.
//!
//! [`dispatch`] compiles a piece of code for several sets of processor features and picks one when it runs.

#![allow(clippy::disallowed_methods, reason = "lanes are where fused multiply-add is allowed")]

pub mod dispatch;
pub mod functions;

pub use dispatch::{Kernel, Path, features_of_paths, run};

/// Number of lanes.
pub const LANES: usize = 16;

/// 16 words of ones, 16 of zeros: a window of it keeps the first lanes. Reading it is faster than comparing.
const ONES_THEN_ZEROS: [u32; 2 * LANES] = {
    let mut words = [0; 2 * LANES];
    let mut lane = 0;
    while lane < LANES {
        words[lane] = u32::MAX;
        lane += 1;
    }
    words
};

/// Sixteen numbers, one cache line.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(64))]
pub struct Lanes(pub [f32; LANES]);

impl Lanes {
    /// Sixteen times zero.
    pub const ZERO: Self = Self([0.0; LANES]);

    /// The same number in every lane.
    #[inline(always)]
    pub const fn splat(number: f32) -> Self {
        Self([number; LANES])
    }

    /// The first 16 numbers of a slice.
    ///
    /// # Panics
    /// If there are fewer.
    #[inline(always)]
    pub fn load(numbers: &[f32]) -> Self {
        Self(*numbers.first_chunk().expect("a whole vector is loaded"))
    }

    /// Up to 16 numbers of a slice; zero in the lanes beyond.
    #[inline(always)]
    pub fn load_partial(numbers: &[f32]) -> Self {
        let mut lanes = Self::ZERO;
        for (lane, &number) in lanes.0.iter_mut().zip(numbers) {
            *lane = number;
        }
        lanes
    }

    /// The first `count` lanes, and zero in those behind.
    ///
    /// # Panics
    /// If there are fewer lanes.
    #[inline(always)]
    pub fn first(self, count: usize) -> Self {
        let mask: &[u32; LANES] = ONES_THEN_ZEROS[LANES - count..].first_chunk().expect("the mask of a whole vector");
        let mut out = self;
        for (lane, mask) in out.0.iter_mut().zip(mask) {
            *lane = f32::from_bits(lane.to_bits() & mask);
        }
        out
    }

    /// Writes all lanes to the first 16 places of a slice.
    ///
    /// # Panics
    /// If there are fewer.
    #[inline(always)]
    pub fn store(self, numbers: &mut [f32]) {
        *numbers.first_chunk_mut().expect("a whole vector is stored") = self.0;
    }

    /// Writes the first `count` lanes to a slice of at least 16 numbers; those behind stay as they are.
    ///
    /// # Panics
    /// If there are fewer numbers or lanes.
    #[inline(always)]
    pub fn store_first(self, count: usize, numbers: &mut [f32]) {
        let mask: &[u32; LANES] = ONES_THEN_ZEROS[LANES - count..].first_chunk().expect("the mask of a whole vector");
        let mut out = Self::load(numbers);
        for ((out, new), mask) in out.0.iter_mut().zip(&self.0).zip(mask) {
            *out = f32::from_bits((new.to_bits() & mask) | (out.to_bits() & !mask));
        }
        out.store(numbers);
    }

    /// A function of each lane.
    #[inline(always)]
    pub fn map(self, function: impl Fn(f32) -> f32) -> Self {
        keep_vectors_whole();
        let mut out = self;
        for lane in &mut out.0 {
            *lane = function(*lane);
        }
        out
    }

    /// A function of each pair of lanes.
    #[inline(always)]
    pub fn zip(self, other: Self, function: impl Fn(f32, f32) -> f32) -> Self {
        keep_vectors_whole();
        self.pairs(other, function)
    }

    #[inline(always)]
    fn pairs(self, other: Self, function: impl Fn(f32, f32) -> f32) -> Self {
        let mut out = self;
        for (lane, &other) in out.0.iter_mut().zip(&other.0) {
            *lane = function(*lane, other);
        }
        out
    }

    /// `self · factor + addend`, rounded once.
    #[inline(always)]
    pub fn mul_add(self, factor: Self, addend: Self) -> Self {
        let mut out = addend;
        for lane in 0..LANES {
            out.0[lane] = self.0[lane].mul_add(factor.0[lane], addend.0[lane]);
        }
        out
    }

    /// The larger of two numbers; `other` where `self` is NaN.
    #[inline(always)]
    pub fn max(self, other: Self) -> Self {
        self.pairs(other, |x, y| if x > y { x } else { y })
    }

    /// The smaller of two numbers; `other` where `self` is NaN.
    #[inline(always)]
    pub fn min(self, other: Self) -> Self {
        self.pairs(other, |x, y| if x < y { x } else { y })
    }

    /// The lanes of `then` where this one is positive, else zero.
    #[inline(always)]
    pub fn if_positive(self, then: Self) -> Self {
        self.pairs(then, |x, then| if x > 0.0 { then } else { 0.0 })
    }

    /// The lanes of `then` where this one is a number, else zero.
    #[inline(always)]
    pub fn where_equal(self, number: f32, then: Self) -> Self {
        self.pairs(then, |x, then| if x == number { then } else { 0.0 })
    }

    /// The lanes of `then` where this one is larger than the other, else those of `otherwise`.
    #[inline(always)]
    pub fn where_larger(self, other: Self, then: Self, otherwise: Self) -> Self {
        let mut out = otherwise;
        for lane in 0..LANES {
            out.0[lane] = if self.0[lane] > other.0[lane] { then.0[lane] } else { otherwise.0[lane] };
        }
        out
    }

    /// Square roots.
    #[inline(always)]
    pub fn sqrt(self) -> Self {
        self.map(f32::sqrt)
    }

    /// Absolute values.
    #[inline(always)]
    pub fn abs(self) -> Self {
        self.map(f32::abs)
    }

    /// The sum of all lanes, folded in halves.
    ///
    /// Never inlined: seeing this, LLVM would shuffle lanes in the loop before it.
    #[inline(never)]
    pub fn sum(&self) -> f32 {
        fold(&self.0)
    }
}

/// Without this in its body, LLVM may turn a loop over vectors into one over groups of vectors, whose lanes it gathers
/// one by one. It costs no instruction, but sums that leave the loop through a reference would be kept in memory.
#[inline(always)]
pub fn keep_vectors_whole() {
    std::hint::black_box(());
}

/// Folds 16 numbers in halves.
#[inline(always)]
pub fn fold(lanes: &[f32; LANES]) -> f32 {
    // Loops, because closures of `array::from_fn` may be left as calls, one for each lane.
    let (mut eight, mut four) = ([0.0; 8], [0.0; 4]);
    for lane in 0..8 {
        eight[lane] = lanes[lane] + lanes[lane + 8];
    }
    for lane in 0..4 {
        four[lane] = eight[lane] + eight[lane + 4];
    }
    (four[0] + four[2]) + (four[1] + four[3])
}

/// Exchanges rows and columns, in four rounds, each of which interleaves the first with the second half.
#[inline(always)]
pub fn transpose(square: &mut [Lanes; LANES]) {
    let mut next = [Lanes::ZERO; LANES];
    interleave(square, &mut next);
    interleave(&next, square);
    interleave(square, &mut next);
    interleave(&next, square);
}

#[inline(always)]
fn interleave(from: &[Lanes; LANES], to: &mut [Lanes; LANES]) {
    for row in 0..LANES / 2 {
        let (one, two) = (from[row].0, from[row + LANES / 2].0);
        for lane in 0..LANES / 2 {
            to[2 * row].0[2 * lane] = one[lane];
            to[2 * row].0[2 * lane + 1] = two[lane];
            to[2 * row + 1].0[2 * lane] = one[LANES / 2 + lane];
            to[2 * row + 1].0[2 * lane + 1] = two[LANES / 2 + lane];
        }
    }
}

macro_rules! operator {
    ($trait:ident, $method:ident, $operator:tt) => {
        impl std::ops::$trait for Lanes {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                self.pairs(other, |x, y| x $operator y)
            }
        }
    };
}

operator!(Add, add, +);
operator!(Sub, sub, -);
operator!(Mul, mul, *);
operator!(Div, div, /);

#[cfg(test)]
mod tests;
