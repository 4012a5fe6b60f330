//! Seeded changes of good inputs: bits, cuts, blocks, lines, and numbers that become extremes.

/// Numbers in order of nothing: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `count`, which is not 0.
    pub fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }

    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let first = self.below(length + 1);
        // Mostly short.
        let most = if self.below(2) == 0 { 8 } else { length };
        first..first + self.below(most.min(length - first) + 1)
    }
}

const EXTREMES: [&str; 22] = [
    "0",
    "-1",
    "1e308",
    "-1e308",
    "1e-320",
    "NaN",
    "nan",
    "inf",
    "-inf",
    "9223372036854775808",
    "9223372036854775807",
    "18446744073709551615",
    "4294967295",
    "4294967296",
    "1000000000000000000000000000000",
    "1e400",
    "65536",
    "2147483648",
    "-0",
    "0.1",
    "1",
    "",
];

/// Sizes and counts as they stand in binary files.
const WORDS: [u64; 8] = [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, u64::MAX, 1 << 63, 0x0100_0000];

const INSERTED: [&[u8]; 12] =
    [b"\0", b"\n", b",", b"\"", b"\xff\xfe", b"[[", b"{", b"\x1f\x8b", b"\r", "\u{202e}".as_bytes(), b"1e", b"="];

/// Where the numbers of a text are.
fn numbers(text: &[u8]) -> Vec<std::ops::Range<usize>> {
    let is_part = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    let (mut found, mut begin) = (Vec::new(), None);
    for (place, &byte) in text.iter().chain(b" ").enumerate() {
        match (begin, is_part(byte)) {
            (None, true) if byte.is_ascii_digit() || byte == b'-' => begin = Some(place),
            (Some(first), false) => {
                found.push(first..place);
                begin = None;
            }
            _ => {}
        }
    }
    found
}

fn lines(text: &[u8]) -> Vec<Vec<u8>> {
    text.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect()
}

/// Changes an input in one way.
pub fn once(input: &mut Vec<u8>, random: &mut Random) {
    let length = input.len();
    match random.below(13) {
        0 if length > 0 => input[random.below(length)] ^= 1 << random.below(8),
        1 if length > 0 => {
            let (first, count) = (random.below(length), 1 + random.below(4));
            input[first..].iter_mut().take(count).for_each(|byte| *byte = random.next() as u8);
        }
        2 => input.truncate(random.below(length + 1)),
        3 => drop(input.drain(random.range(length))),
        4 => {
            let block = input[random.range(length)].to_vec();
            let place = random.below(length + 1);
            input.splice(place..place, block);
        }
        5 if length > 1 => {
            let (middle, count) = (1 + random.below(length - 1), 1 + random.below(16));
            let count = count.min(middle).min(length - middle);
            let first = random.below(middle - count + 1);
            (0..count).for_each(|place| input.swap(first + place, middle + place));
        }
        6 => {
            let place = random.below(length + 1);
            let bytes = INSERTED[random.below(INSERTED.len())];
            input.splice(place..place, bytes.iter().copied());
        }
        7 => {
            let mut all = lines(input);
            if !all.is_empty() {
                let (from, to) = (random.below(all.len()), random.below(all.len() + 1));
                let line = all[from].clone();
                (0..1 + random.below(3)).for_each(|_| all.insert(to, line.clone()));
                *input = all.concat();
            }
        }
        8 => {
            let mut all = lines(input);
            if !all.is_empty() {
                let (one, other) = (random.below(all.len()), random.below(all.len()));
                if random.below(2) == 0 {
                    drop(all.remove(one))
                } else {
                    all.swap(one, other)
                }
                *input = all.concat();
            }
        }
        9 if length >= 8 => {
            let (place, width) = (random.below(length - 7), [1, 2, 4, 8][random.below(4)]);
            let word = WORDS[random.below(WORDS.len())];
            let bytes = if random.below(2) == 0 {
                word.to_le_bytes()
            } else {
                word.rotate_left(64 - 8 * width as u32).to_be_bytes()
            };
            input[place..place + width].copy_from_slice(&bytes[..width]);
        }
        _ => {
            let all = numbers(input);
            if !all.is_empty() {
                let extreme = EXTREMES[random.below(EXTREMES.len())];
                input.splice(all[random.below(all.len())].clone(), extreme.bytes());
            }
        }
    }
}

/// Changes an input in one to four ways, behind the bytes that give its kind.
pub fn some(input: &[u8], kept: usize, random: &mut Random) -> Vec<u8> {
    let (first, rest) = input.split_at(kept);
    let mut rest = rest.to_vec();
    (0..[1, 1, 2, 4][random.below(4)]).for_each(|_| once(&mut rest, random));
    [first, &rest].concat()
}
