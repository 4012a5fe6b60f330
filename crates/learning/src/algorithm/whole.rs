//! The updates of a round as a combination of whole updates sees them: their changes, norms and distances.
//!
//! # Definition
//! The change of an update is the vector of all numbers of the layout, 0 in rows that its client did not move. Norms
//! and distances are Euclidean, over all of them, running means too.
//!
//! # Cost
//! Distances take `n²/2` passes over the layout, in blocks that stay in the cache, on all cores of the current pool.
//!
//! # Determinism
//! Norms are sums in `f64`, in the order of the layout. The square of a distance is a sum in `f64` over blocks of 512
//! numbers, each of them summed in `f32` in sixteen lanes: the same bits on every processor and on any number of
//! threads, within 1e-6 of the exact value relative to it.

use super::Contribution;
use crate::lanes::{Kernel, LANES, Lanes, Path, keep_vectors_whole, run};
use crate::layout::Layout;
use fedgenie_core::math::float::sqrt;
use rayon::prelude::*;
use std::borrow::Cow;

/// Updates that are compared with each other at once.
const TILE: usize = 64;

/// Updates that one is compared with at once.
const GROUP: usize = 4;

/// Numbers of an update that are compared at once: two tiles of them take 256 KiB.
const BLOCK: usize = 512;

/// The updates of a round, ascending by client and job, with their weights.
#[derive(Clone, Copy, Debug)]
pub struct Gathered<'a> {
    /// How parameters are arranged.
    pub layout: &'a Layout,
    /// The updates.
    pub contributions: &'a [&'a Contribution<'a>],
    /// Their weights.
    pub weights: &'a [f64],
    /// The divisor of the weighted sum of changes.
    pub total: f64,
    /// The combination's memory: the last change of the model that it made; empty if it has none.
    pub centre: &'a [f64],
    /// The combination's number for each client; empty if it has none.
    pub mixture: &'a [f64],
}

/// What a combination of whole updates makes of their weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Factors {
    /// A factor of each contribution's change, beside its weight and not in the sum that weights are divided by.
    pub of: Vec<f64>,
    /// Whether they are the factors of running means as well, which gradient descent does not change.
    pub everywhere: bool,
    /// The multiple of [`Gathered::centre`] that is added.
    pub of_centre: f64,
}

impl Gathered<'_> {
    /// The contributions that have weight: their indices, ascending.
    pub fn weighed(&self) -> Vec<usize> {
        (0..self.contributions.len()).filter(|&index| self.weights[index] != 0.0).collect()
    }

    /// The factors by which each change has this share in Δ; contributions without weight have none.
    pub fn shares(&self, shares: &[f64]) -> Factors {
        let factor = |(share, weight): (&f64, &f64)| if *weight == 0.0 { 0.0 } else { share * self.total / weight };
        Factors { of: shares.iter().zip(self.weights).map(factor).collect(), everywhere: true, of_centre: 0.0 }
    }

    /// The factors by which Δ is the plain mean of some changes.
    pub fn mean_of(&self, chosen: &[usize]) -> Factors {
        let mut shares = vec![0.0; self.contributions.len()];
        chosen.iter().for_each(|&index| shares[index] = 1.0 / chosen.len() as f64);
        self.shares(&shares)
    }

    /// The parts of a contribution: their numbers after, and before.
    fn parts(&self, index: usize) -> impl Iterator<Item = (std::ops::Range<usize>, &[f32], &[f32])> {
        let Contribution { parameters, rows, start, .. } = *self.contributions[index];
        self.layout.spread(rows, parameters).map(move |(range, after)| (range.clone(), after, &start[range]))
    }

    /// Hands all numbers of a change to `each`, in the order of the layout's dense parts and of the rows that moved.
    fn each(&self, index: usize, mut each: impl FnMut(usize, f64)) {
        for (range, after, before) in self.parts(index) {
            for ((place, after), before) in range.zip(after).zip(before) {
                each(place, f64::from(*after) - f64::from(*before));
            }
        }
    }

    /// The norm of a change.
    pub fn norm(&self, index: usize) -> f64 {
        let mut sum = 0.0;
        self.each(index, |_, change| sum += change * change);
        sqrt(sum)
    }

    /// The distance of a change to a vector of the layout.
    pub fn distance_to(&self, index: usize, point: &[f64], change: &mut Vec<f64>) -> f64 {
        change.clear();
        change.resize(self.layout.len(), 0.0);
        self.each(index, |place, number| change[place] = number);
        let squares = point.iter().zip(change).map(|(one, other)| (one - *other) * (one - *other));
        sqrt(squares.sum())
    }

    /// Adds a multiple of a change to a vector of the layout.
    pub fn add(&self, index: usize, factor: f64, sum: &mut [f64]) {
        self.each(index, |place, change| sum[place] += factor * change);
    }

    /// The squares of the distances between the changes of some contributions, row by row; 0 on the diagonal.
    pub fn squared_distances(&self, of: &[usize]) -> Vec<f64> {
        let changes: Vec<Cow<'_, [f32]>> = self.changes(of);
        let count = of.len();
        let tiles = count.div_ceil(TILE);
        let pairs: Vec<[usize; 2]> = (0..tiles).flat_map(|one| (one..tiles).map(move |other| [one, other])).collect();
        let tile = |number: usize| number * TILE..((number + 1) * TILE).min(count);
        let blocks: Vec<Vec<f64>> = pairs
            .par_iter()
            .map(|&[one, other]| {
                let mut sums = vec![0.0; TILE * TILE];
                let [one, other] = [one, other].map(|number| &changes[tile(number)]);
                run(Path::detect(), Tiles { one, other, sums: &mut sums });
                sums
            })
            .collect();
        let mut squares = vec![0.0; count * count];
        for ([one, other], sums) in pairs.into_iter().zip(blocks) {
            for (i, row) in tile(one).zip(sums.chunks(TILE)) {
                for (j, &square) in tile(other).zip(row).filter(|(j, _)| *j > i) {
                    squares[i * count + j] = square;
                    squares[j * count + i] = square;
                }
            }
        }
        squares
    }

    /// Vectors of `f32` whose differences are those of the changes: what clients sent, where all were sent the same
    /// model and sent all of it.
    fn changes(&self, of: &[usize]) -> Vec<Cow<'_, [f32]>> {
        let is_same = |index: &&usize| {
            let [first, this] = [of[0], **index].map(|index| self.contributions[index].start);
            std::ptr::eq(first, this) || first == this
        };
        let is_whole = self.layout.rows() == 0 && of.iter().all(|index| is_same(&index));
        let change = |&index: &usize| {
            if is_whole {
                return Cow::Borrowed(self.contributions[index].parameters);
            }
            let mut change = vec![0.0; self.layout.len()];
            self.each(index, |place, number| change[place] = number as f32);
            Cow::Owned(change)
        };
        of.iter().map(change).collect()
    }
}

/// Distances between the vectors of two tiles.
struct Tiles<'a> {
    one: &'a [Cow<'a, [f32]>],
    other: &'a [Cow<'a, [f32]>],
    /// `TILE` rows and columns.
    sums: &'a mut [f64],
}

impl Kernel for Tiles<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { one, other, sums } = self;
        let length = one.first().map_or(0, |vector| vector.len());
        // Vectors are far from each other in memory: blocks of them lie side by side while they are compared. Zeros
        // fill what is missing, and add nothing.
        let [mut ones, mut others] = [(); 2].map(|()| vec![0.0; TILE * BLOCK]);
        for start in (0..length).step_by(BLOCK) {
            let block = start..(start + BLOCK).min(length);
            for (packed, tile) in [(&mut ones, one), (&mut others, other)] {
                for (packed, vector) in packed.chunks_exact_mut(BLOCK).zip(tile) {
                    let (numbers, rest) = packed.split_at_mut(block.len());
                    numbers.copy_from_slice(&vector[block.clone()]);
                    rest.fill(0.0);
                }
            }
            for (place, others) in others.chunks_exact(GROUP * BLOCK).enumerate().take(other.len().div_ceil(GROUP)) {
                for (one, sums) in ones.chunks_exact(BLOCK).zip(sums.chunks_exact_mut(TILE)).take(one.len()) {
                    let sums = &mut sums[place * GROUP..(place + 1) * GROUP];
                    let found = squares(one, others);
                    sums.iter_mut().zip(found).for_each(|(sum, square)| *sum += f64::from(square));
                }
            }
        }
    }
}

/// The sums of the squared differences of a block and each of a group of blocks. The sums are apart, so that they stay
/// in registers.
#[inline(always)]
fn squares(one: &[f32], others: &[f32]) -> [f32; GROUP] {
    let add = |one: Lanes, other: &[f32; LANES], sum: Lanes| {
        let difference = one - Lanes(*other);
        difference.mul_add(difference, sum)
    };
    let other = |place: usize| others[place * BLOCK..(place + 1) * BLOCK].as_chunks::<LANES>().0;
    let [mut sum_a, mut sum_b, mut sum_c, mut sum_d] = [Lanes::ZERO; GROUP];
    let others = other(0).iter().zip(other(1)).zip(other(2)).zip(other(3));
    for (one, (((a, b), c), d)) in one.as_chunks::<LANES>().0.iter().zip(others) {
        keep_vectors_whole();
        let one = Lanes(*one);
        sum_a = add(one, a, sum_a);
        sum_b = add(one, b, sum_b);
        sum_c = add(one, c, sum_c);
        sum_d = add(one, d, sum_d);
    }
    [sum_a.sum(), sum_b.sum(), sum_c.sum(), sum_d.sum()]
}
