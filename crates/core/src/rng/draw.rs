//! `ChaCha` with 8 rounds, one block of 64 bytes at a time: for draws of a few numbers by many entities.
//!
//! # Definition
//! D. J. Bernstein, "ChaCha, a variant of Salsa20", 2008, with a 64-bit block counter and a 64-bit stream id in the
//! place of the nonce. The state is four rows of four words: constants, key, key, (counter, stream).
//!
//! # Cost
//! The latency of a job takes 24 bytes, a stretch of availability 8. `rand_chacha` makes 256 bytes at once. With its
//! generator here, a round of a million devices takes 17 % longer in `on_off_random` and 27 % longer in `on_off_bsfl`
//! (benches/RESULTS.md, "Random streams"). Tests compare every bit with the crate.

use super::{Key, uniform_from};

/// Words of a block.
const WORDS: usize = 16;

/// 64-bit numbers of a block.
const NUMBERS: u64 = WORDS as u64 / 2;

/// A row of the state: LLVM makes one vector of it.
type Row = [u32; 4];

#[inline(always)]
fn add(a: Row, b: Row) -> Row {
    std::array::from_fn(|i| a[i].wrapping_add(b[i]))
}

#[inline(always)]
fn xor_rotate(a: Row, b: Row, bits: u32) -> Row {
    std::array::from_fn(|i| (a[i] ^ b[i]).rotate_left(bits))
}

/// The row, moved to the left by `places`: columns become diagonals.
#[inline(always)]
fn shifted(row: Row, places: usize) -> Row {
    std::array::from_fn(|i| row[(i + places) % 4])
}

/// A quarter round on each of the four columns.
#[inline(always)]
fn quarter_rounds([mut a, mut b, mut c, mut d]: [Row; 4]) -> [Row; 4] {
    a = add(a, b);
    d = xor_rotate(d, a, 16);
    c = add(c, d);
    b = xor_rotate(b, c, 12);
    a = add(a, b);
    d = xor_rotate(d, a, 8);
    c = add(c, d);
    b = xor_rotate(b, c, 7);
    [a, b, c, d]
}

/// The words of block number `counter` of a stream.
fn block(key: &[u32; 8], stream: u64, counter: u64) -> [u32; WORDS] {
    const CONSTANTS: Row = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];
    let low_high = |word: u64| [word as u32, (word >> 32) as u32];
    let ([counter_low, counter_high], [stream_low, stream_high]) = (low_high(counter), low_high(stream));
    let &[k0, k1, k2, k3, k4, k5, k6, k7] = key;
    let start = [CONSTANTS, [k0, k1, k2, k3], [k4, k5, k6, k7], [counter_low, counter_high, stream_low, stream_high]];
    let mut state = start;
    for _ in 0..4 {
        let [a, b, c, d] = quarter_rounds(state);
        let [a, b, c, d] = quarter_rounds([a, shifted(b, 1), shifted(c, 2), shifted(d, 3)]);
        state = [a, shifted(b, 3), shifted(c, 2), shifted(d, 1)];
    }
    let mut words = [0; WORDS];
    for (row, (mixed, start)) in words.as_chunks_mut::<4>().0.iter_mut().zip(state.into_iter().zip(start)) {
        *row = add(mixed, start);
    }
    words
}

/// The numbers of a stream from its beginning, made one block at a time.
#[derive(Clone, Debug)]
pub struct KeyedDraw {
    key: [u32; 8],
    stream: u64,
    /// The number that comes next.
    next: u64,
    /// The block that `next` is in, unless `next` is its first.
    words: [u32; WORDS],
}

impl KeyedDraw {
    #[inline]
    pub(super) fn new(key: &Key, stream: u64) -> Self {
        let key = std::array::from_fn(|word| u32::from_le_bytes(std::array::from_fn(|byte| key[4 * word + byte])));
        Self { key, stream, next: 0, words: [0; WORDS] }
    }

    /// The next 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        if self.next.is_multiple_of(NUMBERS) {
            self.words = block(&self.key, self.stream, self.next / NUMBERS);
        }
        let at = 2 * (self.next % NUMBERS) as usize;
        self.next += 1;
        u64::from(self.words[at + 1]) << 32 | u64::from(self.words[at])
    }

    /// Leaves out so many times 64 bits; blocks without a number in use are not made.
    pub fn skip(&mut self, count: u64) {
        let before = self.next;
        self.next += count;
        let is_made = !before.is_multiple_of(NUMBERS) && self.next / NUMBERS == before / NUMBERS;
        if !self.next.is_multiple_of(NUMBERS) && !is_made {
            self.words = block(&self.key, self.stream, self.next / NUMBERS);
        }
    }

    /// A uniform variate in the open interval (0, 1), on a grid of 2^-53 shifted by half a step.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        uniform_from(self.bits())
    }
}

#[cfg(test)]
mod tests {
    use super::super::stream::tests::{key, library};
    use super::*;

    #[test]
    fn blocks_are_those_of_the_crate() {
        let mut source = library(&[7; 32], 0);
        for _ in 0..200 {
            let key = key(&mut source);
            let (stream, first) = (source.bits(), source.bits() >> 8);
            let mut library = library(&key, stream);
            for counter in [0, 1, 2, 3, 4, first, first + 1] {
                let expected = library.block(counter);
                let words = KeyedDraw::new(&key, stream).key;
                assert_eq!(block(&words, stream, counter), expected, "stream {stream}, block {counter}");
            }
        }
    }

    #[test]
    fn skipping_is_drawing_and_forgetting() {
        let open = || KeyedDraw::new(&[5; 32], 1 << 32 | 2);
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
}
