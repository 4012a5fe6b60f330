//! How many scores are greater than, and how many equal to, each of a few levels: compared 16 at a time.

use crate::lanes::{Kernel, LANES, Lanes, Path, keep_vectors_whole, run};

/// Vectors that are counted in `f32`, each lane of which then holds a whole number up to this.
const VECTORS: usize = 1 << 20;

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
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { scores, levels, greater, equal } = self;
        let (vectors, rest) = scores.as_chunks::<LANES>();
        for (&level, (greater, equal)) in levels.iter().zip(greater.iter_mut().zip(equal.iter_mut())) {
            for vectors in vectors.chunks(VECTORS) {
                let (above, at) = compare(vectors, Lanes::splat(level));
                *greater += total(&above);
                *equal += total(&at);
            }
            for &score in rest {
                *greater += u32::from(score > level);
                *equal += u32::from(score == level);
            }
        }
    }
}

/// How often each lane is above a level, and how often equal to it.
#[inline(always)]
fn compare(vectors: &[[f32; LANES]], level: Lanes) -> (Lanes, Lanes) {
    let (mut above, mut at) = (Lanes::ZERO, Lanes::ZERO);
    for vector in vectors {
        keep_vectors_whole();
        let vector = Lanes(*vector);
        above = above + vector.zip(level, |score, level| if score > level { 1.0 } else { 0.0 });
        at = at + vector.zip(level, |score, level| if score == level { 1.0 } else { 0.0 });
    }
    (above, at)
}

/// The sum of whole numbers, which is exact.
///
/// Never inlined: seeing this, LLVM would shuffle lanes in the loop before it.
#[inline(never)]
fn total(counts: &Lanes) -> u32 {
    counts.0.iter().map(|&count| count as u32).sum()
}
