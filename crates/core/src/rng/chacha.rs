//! `ChaCha` with 8 rounds, one block of 64 bytes at a time.
//!
//! # Definition
//! D. J. Bernstein, "ChaCha, a variant of Salsa20", 2008, with a 64-bit block counter and a 64-bit stream id in the
//! place of the nonce. The state is four rows of four words: constants, key, key, (counter, stream).
//!
//! A job needs three uniform variates, 24 bytes: a generator that makes several blocks at once, as libraries do because
//! it is faster for long streams, would throw most of them away. Tests compare every bit with such a library.

/// Words of a block.
pub const WORDS: usize = 16;

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
pub fn block(key: &[u32; 8], stream: u64, counter: u64) -> [u32; WORDS] {
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

/// The words of `COUNT` blocks from `counter` on, word by word: `words[w][n]` is word `w` of block `counter + n`.
///
/// Inlined, so that it is compiled with the processor features of its caller.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "loops over blocks are the same for all words")]
pub fn blocks<const COUNT: usize>(key: &[u32; 8], stream: u64, counter: u64) -> [[u32; COUNT]; WORDS] {
    let mut start = [[0; COUNT]; WORDS];
    let constants = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];
    for word in 0..4 {
        start[word] = [constants[word]; COUNT];
    }
    for word in 0..8 {
        start[4 + word] = [key[word]; COUNT];
    }
    for block in 0..COUNT {
        let counter = counter.wrapping_add(block as u64);
        (start[12][block], start[13][block]) = (counter as u32, (counter >> 32) as u32);
    }
    (start[14], start[15]) = ([stream as u32; COUNT], [(stream >> 32) as u32; COUNT]);
    let mut state = start;
    for _ in 0..4 {
        for [a, b, c, d] in [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]] {
            quarter_round(&mut state, a, b, c, d);
        }
        for [a, b, c, d] in [[0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14]] {
            quarter_round(&mut state, a, b, c, d);
        }
    }
    for word in 0..WORDS {
        for block in 0..COUNT {
            state[word][block] = state[word][block].wrapping_add(start[word][block]);
        }
    }
    state
}

#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "loops over blocks are the same for all words")]
fn quarter_round<const COUNT: usize>(state: &mut [[u32; COUNT]; WORDS], a: usize, b: usize, c: usize, d: usize) {
    for (to, from, turned, bits) in [(a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)] {
        for block in 0..COUNT {
            let sum = state[to][block].wrapping_add(state[from][block]);
            state[to][block] = sum;
            state[turned][block] = (state[turned][block] ^ sum).rotate_left(bits);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha8Rng;
    use rand_core::{Rng, SeedableRng};

    #[test]
    fn blocks_are_those_of_a_library() {
        let mut source = ChaCha8Rng::from_seed([7; 32]);
        for _ in 0..200 {
            let mut seed = [0; 32];
            source.fill_bytes(&mut seed);
            let key = std::array::from_fn(|i| u32::from_le_bytes(std::array::from_fn(|j| seed[4 * i + j])));
            let (stream, first) = (source.next_u64(), source.next_u64() >> 8);
            let mut library = ChaCha8Rng::from_seed(seed);
            library.set_stream(stream);
            for counter in [0, 1, 2, 3, 4, first, first + 1] {
                library.set_word_pos(u128::from(counter) * WORDS as u128);
                let expected: [u32; WORDS] = std::array::from_fn(|_| library.next_u32());
                assert_eq!(block(&key, stream, counter), expected, "stream {stream}, block {counter}");
                let together = blocks::<8>(&key, stream, counter);
                for later in 0..8 {
                    let one = block(&key, stream, counter + later);
                    assert_eq!(together.map(|word| word[later as usize]), one, "stream {stream}, block {counter}");
                }
            }
        }
    }
}
