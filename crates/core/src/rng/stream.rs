//! Streams of many numbers: `ChaCha8Rng` of the crate `rand_chacha`.
//!
//! Nothing else names the crate, because the rand project replaces it: a successor with the same bits changes this file
//! alone.

use super::{Key, uniform_from};
use crate::state::{State, Stateful};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// Words of a block.
pub const WORDS: usize = 16;

/// One stream of random numbers, consumed from its beginning. It takes some 300 bytes and makes four blocks at once.
#[derive(Clone, Debug)]
pub struct StreamRng(ChaCha8Rng);

/// How far it was read, in numbers of 64 bits; which stream it is, is known from where it stands.
impl Stateful for StreamRng {
    fn exchange(&mut self, state: &mut State<'_>) {
        let mut drawn = self.drawn();
        state.field(&mut drawn);
        if state.is_loading() && !state.is_refused() {
            self.go_to(drawn);
        }
    }
}

impl StreamRng {
    pub(super) fn new(key: &Key, stream: u64) -> Self {
        let mut rng = ChaCha8Rng::from_seed(*key);
        rng.set_stream(stream);
        Self(rng)
    }

    /// How many numbers of 64 bits were drawn.
    ///
    /// # Panics
    /// If 2^64 were.
    pub fn drawn(&self) -> u64 {
        u64::try_from(self.0.get_word_pos() / 2).expect("a stream is read for less than 2^64 numbers")
    }

    pub(super) fn go_to(&mut self, drawn: u64) {
        self.0.set_word_pos(2 * u128::from(drawn));
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// The next whole blocks of 16 words, in turn. The rest of the block at hand is left out.
    pub fn blocks(&mut self, blocks: &mut [[u32; WORDS]]) {
        let (at, whole) = (self.0.get_word_pos(), WORDS as u128);
        if !at.is_multiple_of(whole) {
            self.0.set_word_pos(at.next_multiple_of(whole));
        }
        for block in blocks {
            let mut bytes = [0; 4 * WORDS];
            self.0.fill_bytes(&mut bytes);
            *block = std::array::from_fn(|word| u32::from_le_bytes(std::array::from_fn(|byte| bytes[4 * word + byte])));
        }
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
pub mod tests {
    use super::*;

    /// A key drawn from a stream.
    pub fn key(source: &mut StreamRng) -> Key {
        let words = [0; 4].map(|_| source.bits().to_le_bytes());
        std::array::from_fn(|byte| words[byte / 8][byte % 8])
    }

    /// The crate's generator with a key and a stream id.
    pub fn library(key: &Key, stream: u64) -> StreamRng {
        StreamRng::new(key, stream)
    }

    impl StreamRng {
        /// Block `counter` of the stream.
        pub fn block(&mut self, counter: u64) -> [u32; WORDS] {
            self.0.set_word_pos(u128::from(counter) * WORDS as u128);
            std::array::from_fn(|_| self.0.next_u32())
        }
    }

    #[test]
    fn blocks_are_the_words_that_would_be_drawn() {
        for drawn in [0, 1, 8, 11, 31, 32, 33] {
            let mut rng = library(&[5; 32], 1 << 32 | 2);
            (0..drawn).for_each(|_| _ = rng.bits());
            let mut one_by_one = rng.clone();
            let mut blocks = [[0; WORDS]; 9];
            rng.blocks(&mut blocks[..4]);
            rng.blocks(&mut blocks[4..]);
            // The rest of the block at hand.
            (0..(8 - drawn % 8) % 8).for_each(|_| _ = one_by_one.bits());
            for [low, high] in blocks.as_flattened().as_chunks().0 {
                assert_eq!(one_by_one.bits(), u64::from(*high) << 32 | u64::from(*low));
            }
            assert_eq!(rng.bits(), one_by_one.bits());
        }
    }

    /// A million clients keep the number of draws instead.
    #[test]
    fn a_generator_is_no_larger_than_is_said() {
        assert!(size_of::<StreamRng>() <= 320, "{} bytes", size_of::<StreamRng>());
    }

    #[test]
    fn a_stream_goes_on_where_it_was_saved() {
        // Before and behind the ends of blocks of 8 numbers, and of the four that are made at once.
        for drawn in [0, 1, 7, 8, 9, 31, 32, 33, 63, 64, 65, 1000] {
            let mut rng = library(&[9; 32], 77);
            (0..drawn).for_each(|_| _ = rng.bits());
            let bytes = State::save(&mut rng).unwrap();
            assert_eq!(rng.drawn(), drawn);
            assert_eq!(bytes, u64::to_le_bytes(drawn), "the number of draws is the whole state");
            let mut loaded = library(&[9; 32], 77);
            (0..5).for_each(|_| _ = loaded.bits());
            State::load(&mut loaded, &bytes).unwrap();
            assert_eq!([0; 70].map(|_| rng.bits()), [0; 70].map(|_| loaded.bits()), "after {drawn} numbers");
        }
        let (far, mut loaded) = ((1_u64 << 40) + 3, library(&[9; 32], 77));
        let [.., low, high] = library(&[9; 32], 77).block(far / 8);
        State::load(&mut loaded, &(far + 4).to_le_bytes()).unwrap();
        assert_eq!(loaded.bits(), u64::from(high) << 32 | u64::from(low));
        assert!(State::load(&mut library(&[9; 32], 77), &[0; 7]).is_err());
    }
}
