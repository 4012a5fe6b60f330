//! How many scores are greater than, and how many equal to, each of a few levels: compared 16 at a time.

use crate::lanes::{Kernel, LANES, Path, run};

/// Levels that share one pass over the scores.
const TOGETHER: usize = 4;

/// What was counted, one number for each level.
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
        let mut first = 0;
        while first < levels.len() {
            let together = (levels.len() - first).min(TOGETHER);
            if together == TOGETHER {
                block::<TOGETHER>(vectors, &levels[first..], &mut greater[first..], &mut equal[first..]);
                first += TOGETHER;
            } else {
                block::<1>(vectors, &levels[first..], &mut greater[first..], &mut equal[first..]);
                first += 1;
            }
        }
        for &score in rest {
            for (&level, (greater, equal)) in levels.iter().zip(greater.iter_mut().zip(equal.iter_mut())) {
                *greater += u32::from(score > level);
                *equal += u32::from(score == level);
            }
        }
    }
}

/// Counts for the first `LEVELS` levels in one pass.
#[inline(always)]
fn block<const LEVELS: usize>(vectors: &[[f32; LANES]], levels: &[f32], greater: &mut [u32], equal: &mut [u32]) {
    let levels: &[f32; LEVELS] = levels.first_chunk().expect("the levels are there");
    let (mut above, mut at) = ([[0_u32; LANES]; LEVELS], [[0_u32; LANES]; LEVELS]);
    for vector in vectors {
        for level in 0..LEVELS {
            for lane in 0..LANES {
                above[level][lane] += u32::from(vector[lane] > levels[level]);
                at[level][lane] += u32::from(vector[lane] == levels[level]);
            }
        }
    }
    for level in 0..LEVELS {
        greater[level] = above[level].iter().sum();
        equal[level] = at[level].iter().sum();
    }
}
