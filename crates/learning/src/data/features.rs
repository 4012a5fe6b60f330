//! The features of examples, as they lie in memory: numbers, or the bytes of pixels.
//!
//! # Definition
//! A byte `b` is the feature `b / 255`, rounded once. Images of files stay bytes, a quarter of the memory of numbers;
//! what reads examples unpacks those that it is about to use.

use crate::dense::Rows;
use crate::lanes::{LANES, Lanes, keep_vectors_whole};
use ndarray::Array2;

/// The feature of a byte.
pub const fn of_byte(byte: u8) -> f32 {
    byte as f32 / 255.0
}

/// Features of examples, example × feature in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Features {
    /// Numbers.
    Numbers(Array2<f32>),
    /// Bytes, so many in an example.
    Bytes(Vec<u8>, usize),
}

impl Features {
    /// How to read them.
    pub fn table(&self) -> Table<'_> {
        match self {
            Self::Numbers(numbers) => {
                let values = numbers.as_slice().expect("a data set is in row-major order");
                Table::Numbers(Rows { values, width: numbers.ncols() })
            }
            &Self::Bytes(ref bytes, width) => Table::Bytes(bytes, width),
        }
    }

    /// Number of features of an example.
    pub fn width(&self) -> usize {
        match *self {
            Self::Numbers(ref numbers) => numbers.ncols(),
            Self::Bytes(_, width) => width,
        }
    }

    /// The numbers, which bytes become.
    pub fn unpack(&mut self) -> &mut Array2<f32> {
        if let Self::Bytes(bytes, width) = self {
            let numbers = bytes.iter().map(|&byte| of_byte(byte)).collect();
            let shape = (bytes.len() / (*width).max(1), *width);
            let numbers = Array2::from_shape_vec(shape, numbers).expect("only whole examples are kept");
            *self = Self::Numbers(numbers);
        }
        match self {
            Self::Numbers(numbers) => numbers,
            Self::Bytes(..) => unreachable!("they have become numbers"),
        }
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Numbers(numbers) => 4 * numbers.len() as u64,
            Self::Bytes(bytes, _) => bytes.len() as u64,
        }
    }

    /// The features of some examples, in the order of their indices.
    pub fn select(&self, examples: &[usize]) -> Self {
        match *self {
            Self::Numbers(ref numbers) => Self::Numbers(numbers.select(ndarray::Axis(0), examples)),
            Self::Bytes(ref bytes, width) => {
                let rows = examples.iter().flat_map(|&example| &bytes[example * width..][..width]);
                Self::Bytes(rows.copied().collect(), width)
            }
        }
    }
}

/// Borrowed features of examples.
#[derive(Clone, Copy, Debug)]
pub enum Table<'a> {
    /// Numbers, row by row.
    Numbers(Rows<'a>),
    /// Bytes, row by row, and how many there are in a row.
    Bytes(&'a [u8], usize),
}

/// The rows of unpacked examples.
const PLACES: [u32; LANES] = {
    let mut places = [0; LANES];
    let mut place = 0;
    while place < LANES {
        places[place] = place as u32;
        place += 1;
    }
    places
};

impl<'a> Table<'a> {
    /// Number of features of an example.
    #[inline(always)]
    pub const fn width(self) -> usize {
        match self {
            Self::Numbers(rows) => rows.width,
            Self::Bytes(_, width) => width,
        }
    }

    /// `count` features of an example from `first` on, at most 16, with zeros behind.
    ///
    /// # Panics
    /// If the example has fewer.
    #[inline(always)]
    pub fn lanes(self, example: u32, first: usize, count: usize) -> Lanes {
        match self {
            Self::Numbers(rows) => {
                let values = &rows.row(example)[first..][..count];
                if count == LANES { Lanes::load(values) } else { Lanes::load_partial(values) }
            }
            Self::Bytes(bytes, width) => {
                let bytes = &bytes[example as usize * width..][..width][first..][..count];
                match bytes.first_chunk() {
                    Some(bytes) => unpacked(bytes),
                    None => {
                        let mut padded = [0; LANES];
                        padded[..count].copy_from_slice(bytes);
                        unpacked(&padded)
                    }
                }
            }
        }
    }

    /// The numbers of up to 16 examples: a table and the rows of the examples in it. Bytes are unpacked into `buffer`.
    ///
    /// # Panics
    /// If there are more examples, or one is not there.
    #[inline(always)]
    pub fn numbers<'b>(self, examples: &'b [u32], buffer: &'b mut Vec<f32>) -> (Rows<'b>, &'b [u32])
    where
        'a: 'b,
    {
        let (bytes, width) = match self {
            Self::Numbers(rows) => return (rows, examples),
            Self::Bytes(bytes, width) => (bytes, width),
        };
        buffer.resize(examples.len() * width, 0.0);
        for (row, &example) in buffer.chunks_exact_mut(width.max(1)).zip(examples) {
            let bytes = &bytes[example as usize * width..][..width];
            let ((to, end), (from, rest)) = (row.as_chunks_mut::<LANES>(), bytes.as_chunks::<LANES>());
            for (to, from) in to.iter_mut().zip(from) {
                *to = unpacked(from).0;
            }
            for (to, &from) in end.iter_mut().zip(rest) {
                *to = of_byte(from);
            }
        }
        (Rows { values: buffer, width }, &PLACES[..examples.len()])
    }
}

/// The features of 16 bytes. Since `b/255 = b/256 + b/65280`, and the first part is exact, the sum is rounded as the
/// quotient would be, without a division.
#[inline(always)]
fn unpacked(bytes: &[u8; LANES]) -> Lanes {
    const REST: f32 = 1.0 / 65_280.0;
    keep_vectors_whole();
    let mut lanes = Lanes::ZERO;
    for (lane, &byte) in lanes.0.iter_mut().zip(bytes) {
        let byte = f32::from(byte);
        *lane = byte * (1.0 / 256.0) + byte * REST;
    }
    lanes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_its_quotient() {
        for byte in 0..=u8::MAX {
            assert_eq!(unpacked(&[byte; LANES]).0, [f32::from(byte) / 255.0; LANES], "{byte}");
            assert_eq!(of_byte(byte), f32::from(byte) / 255.0);
        }
    }

    /// Nine examples of each width, as bytes and as numbers.
    fn both(width: usize) -> [Features; 2] {
        let bytes: Vec<u8> = (0..9 * width).map(|place| (place * 37 % 256) as u8).collect();
        let numbers = Array2::from_shape_fn((9, width), |(row, column)| of_byte(bytes[row * width + column]));
        [Features::Bytes(bytes, width), Features::Numbers(numbers)]
    }

    #[test]
    fn bytes_are_read_as_their_numbers_are() {
        for width in [1, 15, 16, 17, 40] {
            let [bytes, numbers] = both(width);
            assert_eq!((bytes.width(), bytes.bytes(), numbers.bytes()), (width, 9 * width as u64, 36 * width as u64));
            for (first, count) in [(0, width.min(LANES)), (width / 2, (width - width / 2).min(LANES)), (width, 0)] {
                for example in 0..9 {
                    let [one, other] = [&bytes, &numbers].map(|features| features.table().lanes(example, first, count));
                    assert_eq!(one.0, other.0, "{width} {first} {count}");
                }
            }
            let (mut buffer, mut unused) = (vec![7.0; 3], Vec::new());
            for examples in [&[3, 8, 0, 3][..], &[5], &[]] {
                let (unpacked, places) = bytes.table().numbers(examples, &mut buffer);
                let (rows, same) = numbers.table().numbers(examples, &mut unused);
                assert_eq!(same, examples);
                for (&place, &example) in places.iter().zip(examples) {
                    assert_eq!(unpacked.row(place), rows.row(example), "{width}");
                }
                assert_eq!(places.len(), examples.len());
            }
            let [one, other] = [&bytes, &numbers].map(|features| features.select(&[4, 4, 1]));
            for example in 0..3 {
                assert_eq!(one.table().lanes(example, 0, 1).0, other.table().lanes(example, 0, 1).0);
                assert_eq!(
                    other.table().lanes(example, 0, 1).0,
                    numbers.table().lanes([4, 4, 1][example as usize], 0, 1).0
                );
            }
        }
    }
}
