//! How many scores are greater than, and how many equal to, each of a few levels: compared 16 at a time.

#![allow(clippy::needless_range_loop, reason = "loops over levels are the same for all their arrays")]

use crate::lanes::{Kernel, LANES, Path, keep_vectors_whole, run};

/// The counts, one for each level.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Scores above the level.
    pub greater: Vec<u32>,
    /// Scores equal to it; for the level −∞, NaN as well.
    pub equal: Vec<u32>,
}

/// Counts scores above and at each level. No level is NaN; there are fewer than 2^32 scores.
pub fn count(path: Path, scores: &[f32], levels: &[f32], counts: &mut Counts) {
    counts.greater.clear();
    counts.equal.clear();
    counts.greater.resize(levels.len(), 0);
    counts.equal.resize(levels.len(), 0);
    if scores.is_empty() {
        return;
    }
    run(path, Pass { scores, levels, greater: &mut counts.greater, equal: &mut counts.equal });
    for (level, (&greater, equal)) in levels.iter().zip(counts.greater.iter().zip(&mut counts.equal)) {
        // Whatever is not above −∞ is −∞, or NaN, which counts as such.
        if *level == f32::NEG_INFINITY {
            *equal = scores.len() as u32 - greater;
        }
    }
}

struct Pass<'a> {
    scores: &'a [f32],
    levels: &'a [f32],
    greater: &'a mut [u32],
    equal: &'a mut [u32],
}

impl Kernel for Pass<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { scores, levels, greater, equal } = self;
        let (vectors, rest) = scores.as_chunks::<LANES>();
        // A NaN is neither above a level nor equal to it.
        let mut last = [f32::NAN; LANES];
        last[..rest.len()].copy_from_slice(rest);
        let vectors = [vectors, if rest.is_empty() { &[] } else { std::slice::from_ref(&last) }];
        let mut first = 0;
        while first < levels.len() {
            let (levels, counts) = (&levels[first..], [&mut greater[first..], &mut equal[first..]]);
            first += match levels.len() {
                3.. => compare::<3>(vectors, levels, counts),
                2 => compare::<2>(vectors, levels, counts),
                _ => compare::<1>(vectors, levels, counts),
            };
        }
    }
}

/// Counts for the first `LEVELS` levels in one pass, whose additions do not wait for each other; returns how many that
/// are.
#[inline(always)]
fn compare<const LEVELS: usize>(
    scores: [&[[f32; LANES]]; 2],
    levels: &[f32],
    [greater, equal]: [&mut [u32]; 2],
) -> usize {
    let levels: &[f32; LEVELS] = levels.first_chunk().expect("the levels are there");
    let (mut above, mut at) = ([[0; LANES]; LEVELS], [[0; LANES]; LEVELS]);
    for vectors in scores {
        for vector in vectors {
            for index in 0..LEVELS {
                above[index] = add(above[index], vector, levels[index], |score, level| score > level);
                at[index] = add(at[index], vector, levels[index], |score, level| score == level);
            }
        }
    }
    // Copies, so that the sums themselves need not be in memory.
    let (above, at) = (above, at);
    for index in 0..LEVELS {
        greater[index] = total(&above[index]);
        equal[index] = total(&at[index]);
    }
    LEVELS
}

/// The counts of lanes with one more where a score is meant.
#[inline(always)]
fn add(counts: [u32; LANES], scores: &[f32; LANES], level: f32, is_meant: impl Fn(f32, f32) -> bool) -> [u32; LANES] {
    keep_vectors_whole();
    let mut sums = counts;
    for lane in 0..LANES {
        sums[lane] = sums[lane].wrapping_add(u32::from(is_meant(scores[lane], level)));
    }
    sums
}

/// The sum of the counts of lanes.
///
/// Never inlined: seeing this, LLVM would shuffle lanes in the loop before it.
#[inline(never)]
fn total(counts: &[u32; LANES]) -> u32 {
    counts.iter().sum()
}
