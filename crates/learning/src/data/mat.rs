//! Arrays of numbers in MAT files of level 5, which MATLAB writes with `-v6` (plain) and `-v7` (packed).
//!
//! # Definition
//! A file begins with 128 bytes: a text, then the version `0x0100`, then `IM`, which stands for the order of bytes,
//! little-endian. Elements follow: a type and a number of bytes (4 bytes each), and the content. One of type 15 is
//! another element, packed with zlib; one of type 14 is an array: its flags (class and whether it is complex), its
//! dimensions, its name and its numbers, each an element again, filled up to a multiple of 8 bytes. Up to 4 bytes may
//! lie beside their type and number in 8 bytes altogether. Numbers are stored in the first type that holds all of them,
//! the first dimension fastest.
//!
//! # Source
//! "MAT-File Format", The MathWorks, level 5.
//!
//! # Trust
//! None: sizes are multiplied with a check and held against [`BYTES_MAX`] before anything is reserved, memory grows
//! only as bytes really arrive, no more is ever unpacked than an array promises, and arrays of other names are passed
//! over unread.

use super::DataError;
use super::bytes::ByteReader;
use flate2::read::ZlibDecoder;
use std::io::Read;
use std::path::Path;

/// The most bytes of an array's numbers.
pub const BYTES_MAX: usize = 1 << 28;

const HEAD_BYTES: u64 = 128;
const TAG_BYTES: u64 = 8;
/// Bytes of dimensions, and of a name, that are read.
const SMALL_MAX: u64 = 64;

const INT8: u32 = 1;
const INT32: u32 = 5;
const UINT32: u32 = 6;
const MATRIX: u32 = 14;
const PACKED: u32 = 15;

/// How the numbers of an array are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// `miINT8`
    I8,
    /// `miUINT8`
    U8,
    /// `miINT16`
    I16,
    /// `miUINT16`
    U16,
    /// `miINT32`
    I32,
    /// `miUINT32`
    U32,
    /// `miSINGLE`
    F32,
    /// `miDOUBLE`
    F64,
}

impl Number {
    fn of(kind: u32) -> Option<Self> {
        Some(match kind {
            INT8 => Self::I8,
            2 => Self::U8,
            3 => Self::I16,
            4 => Self::U16,
            INT32 => Self::I32,
            UINT32 => Self::U32,
            7 => Self::F32,
            9 => Self::F64,
            _ => return None,
        })
    }

    const fn bytes(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

/// An array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// Its dimensions.
    pub dimensions: Vec<usize>,
    /// How its numbers are stored.
    pub number: Number,
    /// The numbers, little-endian, the first dimension fastest.
    pub bytes: Vec<u8>,
}

impl Array {
    /// Its numbers, the first dimension fastest.
    pub fn numbers(&self) -> Vec<f64> {
        fn words<const N: usize>(bytes: &[u8], number: impl Fn([u8; N]) -> f64) -> Vec<f64> {
            bytes.as_chunks().0.iter().map(|&word| number(word)).collect()
        }
        let bytes = &self.bytes;
        match self.number {
            Number::I8 => words(bytes, |word| i8::from_le_bytes(word).into()),
            Number::U8 => words(bytes, |[byte]| byte.into()),
            Number::I16 => words(bytes, |word| i16::from_le_bytes(word).into()),
            Number::U16 => words(bytes, |word| u16::from_le_bytes(word).into()),
            Number::I32 => words(bytes, |word| i32::from_le_bytes(word).into()),
            Number::U32 => words(bytes, |word| u32::from_le_bytes(word).into()),
            Number::F32 => words(bytes, |word| f32::from_le_bytes(word).into()),
            Number::F64 => words(bytes, f64::from_le_bytes),
        }
    }
}

/// Reads the arrays of these names; of several of one name the first. Positions in errors count from the beginning of
/// the file, within a packed array from its beginning and after unpacking.
///
/// # Errors
/// Anything that is no such file, one without one of the arrays, and an array that does not hold what it promises, is
/// larger than [`BYTES_MAX`], or has no real numbers.
pub fn read_arrays<const N: usize>(path: &Path, names: [&str; N]) -> Result<[Array; N], DataError> {
    let mut file = ByteReader::open(path)?;
    read_head(&mut file)?;
    let mut found: [Option<Array>; N] = [const { None }; N];
    loop {
        let start = file.position;
        let Some(Tag { kind, size, .. }) = Tag::read(&mut file)? else { break };
        let content = Read::take(&mut file, size);
        let mut inner = match kind {
            PACKED => ByteReader::within(path, start, ZlibDecoder::new(content)),
            _ => ByteReader::within(path, start + TAG_BYTES, content),
        };
        let is_array = match kind {
            PACKED => Tag::read(&mut inner)?.is_some_and(|tag| tag.kind == MATRIX),
            kind => kind == MATRIX,
        };
        if is_array {
            let of = |name: &str| names.iter().position(|&wanted| wanted == name);
            if let Some((index, array)) = read_array(&mut inner, of)? {
                inner.expect_end()?;
                found[index].get_or_insert(array);
            }
        }
        drop(inner);
        let end = start.saturating_add(TAG_BYTES).saturating_add(size);
        file.pass(end - file.position.min(end))?;
        if file.position < end {
            return Err(file.truncated(end));
        }
    }
    file.expect_end()?;
    if let Some(index) = found.iter().position(Option::is_none) {
        return Err(wrong(&file, format!("ends without an array {:?}", names[index])));
    }
    Ok(found.map(|array| array.expect("none is missing")))
}

fn wrong(reader: &ByteReader<'_>, message: String) -> DataError {
    DataError::Array { path: reader.path.to_owned(), position: reader.position, message }
}

fn read_head(file: &mut ByteReader<'_>) -> Result<(), DataError> {
    let head = file.take(HEAD_BYTES)?;
    let message = match head.get(124..) {
        _ if head.starts_with(b"MATLAB 7.3") || head.starts_with(b"\x89HDF") => {
            "this is a MAT file of version 7.3, which is another format (HDF5); expected level 5, which MATLAB saves with -v7"
        }
        Some([0, 1, b'I', b'M']) => return Ok(()),
        Some([1, 0, b'M', b'I']) => "this is a big-endian MAT file; expected a little-endian one",
        _ => "this is no MAT file of level 5: it does not begin with 128 bytes that end in 00 01 49 4d",
    };
    Err(DataError::Array { path: file.path.to_owned(), position: 0, message: message.to_owned() })
}

/// What stands in front of an element.
struct Tag {
    kind: u32,
    /// Number of its bytes.
    size: u64,
    /// Its bytes, where they lie beside their number.
    beside: Option<Vec<u8>>,
}

impl Tag {
    /// The next one; `None` at the end.
    fn read(reader: &mut ByteReader<'_>) -> Result<Option<Self>, DataError> {
        let start = reader.position;
        let tag = reader.take(TAG_BYTES)?;
        let Some((&[kind, bytes], [])) = tag.as_chunks::<4>().0.split_first_chunk::<2>() else {
            return if tag.is_empty() { Ok(None) } else { Err(reader.truncated(start + TAG_BYTES)) };
        };
        let (kind, size) = (u32::from_le_bytes(kind), u32::from_le_bytes(bytes));
        Ok(Some(match kind >> 16 {
            0 => Self { kind, size: size.into(), beside: None },
            small => {
                let beside = Some(bytes.iter().copied().take(small as usize).collect());
                Self { kind: kind & 0xffff, size: small.into(), beside }
            }
        }))
    }
}

/// The type and the bytes of an element, of which there may be so many.
fn element(reader: &mut ByteReader<'_>, most: u64, what: &str) -> Result<(u32, Vec<u8>), DataError> {
    let start = reader.position;
    let Some(Tag { kind, size, beside }) = Tag::read(reader)? else {
        return Err(reader.truncated(start + TAG_BYTES));
    };
    if let Some(bytes) = beside {
        return if bytes.len() as u64 == size {
            Ok((kind, bytes))
        } else {
            Err(wrong(reader, format!("found {what} of {size} bytes beside their number; expected at most 4")))
        };
    }
    if size > most {
        return Err(wrong(reader, format!("found {what} of {size} bytes; expected at most {most}")));
    }
    let start = reader.position;
    let bytes = reader.take(size)?;
    if (bytes.len() as u64) < size {
        return Err(reader.truncated(start + size));
    }
    reader.take(size.next_multiple_of(TAG_BYTES) - size)?;
    Ok((kind, bytes))
}

/// An array with its number among those that are wanted; `None` of another name.
fn read_array(
    reader: &mut ByteReader<'_>,
    wanted: impl Fn(&str) -> Option<usize>,
) -> Result<Option<(usize, Array)>, DataError> {
    let (kind, flags) = element(reader, TAG_BYTES, "flags of an array")?;
    let (UINT32, Some(&[class, properties])) = (kind, flags.first_chunk()) else {
        return Err(wrong(reader, "found an array without flags".to_owned()));
    };
    let (kind, dimensions) = element(reader, SMALL_MAX, "dimensions of an array")?;
    let dimensions: Vec<i32> = dimensions.as_chunks().0.iter().map(|&word| i32::from_le_bytes(word)).collect();
    let (_, name) = element(reader, SMALL_MAX, "a name of an array")?;
    let name = String::from_utf8_lossy(&name);
    let Some(index) = wanted(&name) else { return Ok(None) };
    let is_complex = properties & 8 != 0;
    if !(6..=13).contains(&class) || is_complex || kind != INT32 {
        let what = if is_complex { "complex numbers".to_owned() } else { format!("class {class}") };
        return Err(wrong(reader, format!("array {name:?} has {what}; expected real numbers, classes 6 to 13")));
    }
    let sizes: Option<Vec<usize>> = dimensions.iter().map(|&size| usize::try_from(size).ok()).collect();
    let count = |sizes: &Vec<usize>| sizes.iter().try_fold(1_usize, |all, &size| all.checked_mul(size));
    let Some((sizes, count)) = sizes.and_then(|sizes| count(&sizes).map(|count| (sizes, count))) else {
        return Err(wrong(reader, format!("array {name:?} has dimensions {dimensions:?}; expected sizes from 0")));
    };
    let (kind, bytes) = element(reader, BYTES_MAX as u64, &format!("numbers of array {name:?}"))?;
    let Some(number) = Number::of(kind) else {
        return Err(wrong(reader, format!("array {name:?} has numbers of type {kind}; expected one of 1 to 7, or 9")));
    };
    if count.checked_mul(number.bytes()) != Some(bytes.len()) {
        let shown = sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(" × ");
        let message = format!("array {name:?} has {} bytes for {shown} numbers of {}", bytes.len(), number.bytes());
        return Err(wrong(reader, message));
    }
    Ok(Some((index, Array { dimensions: sizes, number, bytes })))
}

#[cfg(test)]
mod tests;
