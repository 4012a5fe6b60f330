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
use crate::lanes::{Kernel, LANES, Lanes, Path, run};
use crate::layout::Layout;
use fedgenie_core::math::float::sqrt;
use rayon::prelude::*;
use std::borrow::Cow;

/// Updates that are compared with each other at once.
const TILE: usize = 16;

/// Numbers of an update that are compared at once: two tiles of them fit into a cache of 64 KiB.
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
    /// `TILE` columns.
    sums: &'a mut [f64],
}

impl Kernel for Tiles<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { one, other, sums } = self;
        let length = one.first().map_or(0, |vector| vector.len());
        for start in (0..length).step_by(BLOCK) {
            let block = start..(start + BLOCK).min(length);
            for (one, sums) in one.iter().zip(sums.chunks_mut(TILE)) {
                for (other, sum) in other.iter().zip(sums) {
                    *sum += f64::from(squares(&one[block.clone()], &other[block.clone()]));
                }
            }
        }
    }
}

/// The sum of the squared differences of two equally long slices.
#[inline(always)]
fn squares(one: &[f32], other: &[f32]) -> f32 {
    let (ones, rest_of_one) = one.as_chunks::<LANES>();
    let (others, rest_of_other) = other.as_chunks::<LANES>();
    let mut sum = Lanes::ZERO;
    for (one, other) in ones.iter().zip(others) {
        let difference = Lanes(*one) - Lanes(*other);
        sum = difference.mul_add(difference, sum);
    }
    let difference = Lanes::load_partial(rest_of_one) - Lanes::load_partial(rest_of_other);
    difference.mul_add(difference, sum).sum()
}
