//! Random numbers: a draw belongs to (seed, purpose, entity, index) and to nothing else.
//!
//! There is no generator state to carry along, to checkpoint, or to disturb: asking for the latency of client 17 in
//! round 42 gives the same numbers whoever asks, in whatever order, on whatever thread, and however many other draws
//! were made before. Two policies in one scenario therefore meet the same world (common random numbers), and what a
//! client that was *not* selected would have done can be looked up.
//!
//! # Definition
//! ChaCha with 8 rounds (D. J. Bernstein, "ChaCha, a variant of Salsa20", 2008). The 256-bit key is the seed (8 bytes,
//! little endian), the number of the [`Purpose`] (8 bytes, little endian) and the 16 ASCII bytes `fedgenie-streams`.
//! The 64-bit stream id is `entity << 32 | index`; the block counter starts at 0. A uniform variate takes the next 64
//! bits `w` and is `(⌊w / 2^11⌋ + 1/2) / 2^53` rounded to a double, and `1 − 2^-53` where that would be 1: never 0,
//! never 1.

mod chacha;

use crate::state::{State, Stateful};
use chacha::{WORDS, block};

/// What a draw is for. The numbers are part of the replay contract: never change or reuse one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Purpose {
    /// A law's parameter that is drawn per client: entity = client, index = phase × 16 + place of the parameter; data
    /// size 48, data quality 49, rates of a device profile 50 (download), 51 (compute), 52 (upload); offset or phase of
    /// availability 53, offsets of link traces 54 (download) and 56 (upload), laws of availability 64 (on) and 80
    /// (off), place of the parameter added. Permutations of a trace's or a table's records: entity = 2^32 − 1, index =
    /// number of records.
    PopulationParameter = 1,
    /// Phase durations: entity = client, index = number of its job; three uniforms in the order download, compute,
    /// upload.
    Latency = 2,
    /// Dropout: entity = client, index = number of its job. Three uniforms in the order download, compute, upload: the
    /// client is lost after `−ln(u)/hazard` seconds of the phase. Then, for losses with a probability, four pairs of
    /// uniforms in the order job, download, compute, upload: the first decides whether, the second where.
    Dropout = 3,
    /// Phase durations of a probe before selection: entity = client, index = turn of the policy; as `Latency`. Where
    /// clients evaluate models after a round: index = 2^32 − 1 less the round.
    Probe = 4,
    /// A policy's own randomness: entity = edge server (0 where there is one server, 2^32 − 1 for the cloud,
    /// 2^32 − 2 for the rule of its clusters), index = turn of the policy.
    Policy = 5,
    /// A heuristic solver's randomness: as `Policy`.
    Solver = 6,
    /// Examples of a data set. Synthetic features: entity = example, index = 0; prototypes of image classes: entity =
    /// class, index = 1; synthetic test images: entity = example, index = 2. Which rows of a table are for testing:
    /// entity = 0, index = 3. Ratings: which are held out of all, entity = 0, index = 4, or of each user's, entity =
    /// user, index = 5; synthetic ones, entity = item, index = 6, and entity = user, index = 7; negatives of a client's
    /// loss, entity = client, index = 8; features of synthetic items, index = 9 to 12; negatives of test and validation
    /// losses, entity = user, index = 13 and 14; features of nodes, entity = user, index = 15, and entity = item,
    /// index = 16; synthetic ratings with trust, index = 17 to 21.
    Example = 7,
    /// Which examples go to which client: entity and index as the partition documents.
    Partition = 8,
    /// Initial model parameters: entity = 0, index = 0; rows of users, entity = user, index = 1; networks over rows,
    /// entity = 0, index = 2 and 3.
    ModelInit = 9,
    /// Order of a client's examples in an epoch: entity = client, index = number of its job.
    BatchOrder = 10,
    /// What is random within a training step, such as dropout masks or negatives: entity = client, index = number of
    /// its job.
    TrainingNoise = 11,
    /// When a device is there, for laws that draw it: entity = client, index = block of 32 uniforms. Of a client's
    /// uniforms, number 0 decides the state at time 0, number n + 1 the duration of stretch n.
    Availability = 12,
    /// How long a model travels between the cloud and an edge server: entity = edge server, index = the cloud's round;
    /// two uniforms in the order from the cloud, to the cloud.
    EdgeLink = 13,
    /// Statistics on results, such as the bootstrap: entity = resample; and worlds drawn for a validation: entity =
    /// world. The index is free.
    Resampling = 14,
    /// Noise of scripted metrics: entity = server, index = the server's round; one uniform, of which the noise is the
    /// normal quantile.
    Script = 15,
    /// Noise that a client adds to what it sends: entity = client, index = number of its job; a uniform for each
    /// number, of which the noise is the normal quantile.
    Privacy = 16,
    /// Wrong forecasts of availability: entity = client, index = a mixture of the ends of the interval; one uniform.
    Forecast = 17,
}

const PURPOSES: usize = 17;

impl Purpose {
    const ALL: [Self; PURPOSES] = [
        Self::PopulationParameter,
        Self::Latency,
        Self::Dropout,
        Self::Probe,
        Self::Policy,
        Self::Solver,
        Self::Example,
        Self::Partition,
        Self::ModelInit,
        Self::BatchOrder,
        Self::TrainingNoise,
        Self::Availability,
        Self::EdgeLink,
        Self::Resampling,
        Self::Script,
        Self::Privacy,
        Self::Forecast,
    ];
}

/// All random numbers of one seed.
#[derive(Clone, Debug)]
pub struct Streams {
    seed: u64,
    /// A key for each purpose.
    keys: [[u32; 8]; PURPOSES],
}

impl Streams {
    /// The streams of a seed.
    pub fn new(seed: u64) -> Self {
        let keys = Purpose::ALL.map(|purpose| {
            let mut key = [0; 32];
            key[..8].copy_from_slice(&seed.to_le_bytes());
            key[8..16].copy_from_slice(&u64::from(purpose as u8).to_le_bytes());
            key[16..].copy_from_slice(b"fedgenie-streams");
            std::array::from_fn(|word| u32::from_le_bytes(std::array::from_fn(|byte| key[4 * word + byte])))
        });
        Self { seed, keys }
    }

    /// The seed these streams belong to.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// The stream of one purpose, entity and index, from its beginning.
    pub fn stream(&self, purpose: Purpose, entity: u32, index: u32) -> StreamRng {
        let stream = u64::from(entity) << 32 | u64::from(index);
        StreamRng { key: self.keys[purpose as usize - 1], stream, block: 0, words: [0; WORDS], next: WORDS }
    }
}

/// The uniform variate of 64 random bits.
fn uniform_from(bits: u64) -> f64 {
    const STEP: f64 = 1.0 / (1u64 << 53) as f64;
    // Above 1/2 the half step is rounded away; at the very top that would give 1.
    (((bits >> 11) as f64 + 0.5) * STEP).min(1.0 - STEP)
}

/// Whole blocks of 16 words of a stream, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Blocks {
    key: [u32; 8],
    stream: u64,
    next: u64,
}

impl Blocks {
    /// The next `COUNT` blocks, word by word: entry `[w][n]` is word `w` of block `n`.
    ///
    /// Inlined, so that it is compiled with the processor features of its caller.
    #[inline(always)]
    pub fn take<const COUNT: usize>(&mut self) -> [[u32; COUNT]; WORDS] {
        let words = chacha::blocks(&self.key, self.stream, self.next);
        self.next += COUNT as u64;
        words
    }
}

/// One stream of random numbers, consumed from its beginning.
#[derive(Clone, Debug)]
pub struct StreamRng {
    key: [u32; 8],
    stream: u64,
    /// The next block.
    block: u64,
    words: [u32; WORDS],
    /// The next word of the block at hand; all are used up at first, so that a stream that is never read costs little.
    next: usize,
}

/// How far it was read; which stream it is, is known from where it stands.
impl Stateful for StreamRng {
    fn exchange(&mut self, state: &mut State<'_>) {
        let Self { key, stream, block: next_block, words, next } = self;
        state.field(next_block);
        state.field(next);
        let has_words = *next < WORDS;
        state.require(*next <= WORDS && next.is_multiple_of(2) && (*next_block > 0 || !has_words));
        if state.is_loading() && !state.is_refused() && has_words {
            *words = block(key, *stream, *next_block - 1);
        }
    }
}

impl StreamRng {
    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        if self.next == WORDS {
            self.words = block(&self.key, self.stream, self.block);
            self.block += 1;
            self.next = 0;
        }
        let (low, high) = (self.words[self.next], self.words[self.next + 1]);
        self.next += 2;
        u64::from(high) << 32 | u64::from(low)
    }

    /// Leaves out so many times 64 bits, without making blocks that nobody reads.
    pub fn skip(&mut self, count: u64) {
        let left = ((WORDS - self.next) / 2) as u64;
        if count <= left {
            self.next += 2 * count as usize;
            return;
        }
        let per_block = (WORDS / 2) as u64;
        self.block += (count - left) / per_block;
        self.next = WORDS;
        for _ in 0..(count - left) % per_block {
            self.bits();
        }
    }

    /// The next `count` whole blocks, to be made many at a time. What is left of the block at hand is left out.
    pub fn blocks(&mut self, count: u64) -> Blocks {
        let blocks = Blocks { key: self.key, stream: self.stream, next: self.block };
        self.block += count;
        self.next = WORDS;
        blocks
    }

    /// A uniform variate in the open interval (0, 1), on a grid of 2^-53 shifted by half a step.
    pub fn uniform(&mut self) -> f64 {
        uniform_from(self.bits())
    }

    /// A uniform integer in `0..bound`, without bias (Lemire's multiplication with rejection, TOMACS 2019).
    ///
    /// # Panics
    /// If `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "there is no integer below zero to draw");
        let mut product = u128::from(self.bits()) * u128::from(bound);
        if (product as u64) < bound {
            let threshold = bound.wrapping_neg() % bound;
            while (product as u64) < threshold {
                product = u128::from(self.bits()) * u128::from(bound);
            }
        }
        (product >> 64) as u64
    }

    /// Puts the items in a uniformly random order (Fisher–Yates, from the last item down).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let chosen = self.below(last as u64 + 1) as usize;
            items.swap(last, chosen);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipping_is_drawing_and_forgetting() {
        let open = || Streams::new(5).stream(Purpose::Latency, 1, 2);
        for first in [0, 1, 3, 7, 8, 9, 16] {
            for count in [0, 1, 4, 5, 7, 8, 9, 15, 16, 17, 31, 40] {
                let (mut skipped, mut drawn) = (open(), open());
                (0..first).for_each(|_| assert_eq!(skipped.bits(), drawn.bits()));
                skipped.skip(count);
                (0..count).for_each(|_| {
                    drawn.bits();
                });
                assert_eq!([0; 20].map(|_| skipped.bits()), [0; 20].map(|_| drawn.bits()), "{first}, {count}");
            }
        }
    }

    #[test]
    fn blocks_are_the_words_that_would_be_drawn() {
        for drawn in [0, 1, 8, 11] {
            let mut rng = Streams::new(5).stream(Purpose::Latency, 1, 2);
            (0..drawn).for_each(|_| _ = rng.bits());
            let mut one_by_one = rng.clone();
            let mut blocks = rng.blocks(9);
            let words: Vec<[[u32; 3]; 16]> = (0..3).map(|_| blocks.take()).collect();
            // The rest of the block at hand.
            (0..(8 - drawn % 8) % 8).for_each(|_| _ = one_by_one.bits());
            for block in 0..9 {
                for word in (0..16).step_by(2) {
                    let [low, high] = [word, word + 1].map(|word| words[block / 3][word][block % 3]);
                    assert_eq!(one_by_one.bits(), u64::from(high) << 32 | u64::from(low));
                }
            }
            assert_eq!(rng.bits(), one_by_one.bits());
        }
    }

    #[test]
    fn a_uniform_variate_is_never_0_and_never_1() {
        assert_eq!(uniform_from(0), 1.0 / (1u64 << 54) as f64);
        assert_eq!(uniform_from(u64::MAX), 1.0 - 1.0 / (1u64 << 53) as f64);
        assert_eq!(uniform_from(1 << 63), 0.5);
    }
}
