//! The header of a `.npy` file: type, number and order of the numbers that follow.

use super::{VALUES_MAX, wrong};
use crate::data::DataError;
use crate::data::bytes::ByteReader;
use std::path::Path;

/// The most bytes of a header that are read; NumPy's own have at most a few hundred.
const HEADER_MAX: u64 = 1 << 16;

/// Type of an array's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    F4,
    F8,
    U1,
    U2,
    U4,
    I1,
    I2,
    I4,
    I8,
}

impl Kind {
    fn of(descr: &str) -> Option<Self> {
        match descr {
            "<f4" => Some(Self::F4),
            "<f8" => Some(Self::F8),
            "|u1" | "<u1" | "u1" => Some(Self::U1),
            "<u2" => Some(Self::U2),
            "<u4" => Some(Self::U4),
            "|i1" | "<i1" | "i1" => Some(Self::I1),
            "<i2" => Some(Self::I2),
            "<i4" => Some(Self::I4),
            "<i8" => Some(Self::I8),
            _ => None,
        }
    }

    /// Whether the numbers are real, as against whole.
    pub const fn is_real(self) -> bool {
        matches!(self, Self::F4 | Self::F8)
    }

    /// Bytes of a number.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::U1 | Self::I1 => 1,
            Self::U2 | Self::I2 => 2,
            Self::F4 | Self::U4 | Self::I4 => 4,
            Self::F8 | Self::I8 => 8,
        }
    }

    /// The number that these bytes, as many as [`Kind::bytes`], stand for.
    pub fn number(self, bytes: &[u8]) -> Number {
        match self {
            Self::F4 => Number::Real(f32::from_le_bytes(fixed(bytes)).into()),
            Self::F8 => Number::Real(f64::from_le_bytes(fixed(bytes))),
            Self::U1 => Number::Whole(bytes[0].into()),
            Self::U2 => Number::Whole(u16::from_le_bytes(fixed(bytes)).into()),
            Self::U4 => Number::Whole(u32::from_le_bytes(fixed(bytes)).into()),
            Self::I1 => Number::Whole(i8::from_le_bytes(fixed(bytes)).into()),
            Self::I2 => Number::Whole(i16::from_le_bytes(fixed(bytes)).into()),
            Self::I4 => Number::Whole(i32::from_le_bytes(fixed(bytes)).into()),
            Self::I8 => Number::Whole(i64::from_le_bytes(fixed(bytes))),
        }
    }
}

fn fixed<const BYTES: usize>(bytes: &[u8]) -> [u8; BYTES] {
    *bytes.first_chunk().expect("a number has all its bytes")
}

/// A number of an array before it is made an `f32` or a label.
#[derive(Clone, Copy)]
pub(super) enum Number {
    Real(f64),
    Whole(i64),
}

impl std::fmt::Display for Number {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Real(real) => real.fmt(formatter),
            Self::Whole(whole) => whole.fmt(formatter),
        }
    }
}

/// The contents of a header.
#[derive(Debug)]
pub(super) struct Header {
    pub kind: Kind,
    pub dimensions: Vec<usize>,
    /// Product of the dimensions.
    pub values: usize,
    /// Where the dictionary begins.
    start: u64,
}

impl Header {
    /// Reads everything before the numbers.
    pub fn read(reader: &mut ByteReader<'_>) -> Result<Self, DataError> {
        let path = reader.path;
        let magic = reader.take(8)?;
        if magic.len() < 8 {
            return Err(reader.truncated(8));
        }
        if !magic.starts_with(b"\x93NUMPY") {
            let found = &magic[..6];
            let message = format!("the file begins with {found:02x?}; a .npy file with [93, 4e, 55, 4d, 50, 59]");
            return Err(wrong(path, 0, message));
        }
        let length_bytes = match magic[6..] {
            [1, 0] => 2,
            [2 | 3, 0] => 4,
            _ => {
                let message = format!("version {}.{}; expected 1.0, 2.0 or 3.0", magic[6], magic[7]);
                return Err(wrong(path, 6, message));
            }
        };
        let bytes = reader.take(length_bytes)?;
        if (bytes.len() as u64) < length_bytes {
            return Err(reader.truncated(8 + length_bytes));
        }
        let length = bytes.iter().rev().fold(0_u64, |sum, &byte| sum << 8 | u64::from(byte));
        if length > HEADER_MAX {
            let message = format!("the header has {length} bytes; at most {HEADER_MAX} are read");
            return Err(wrong(path, 8, message));
        }
        let start = reader.position;
        let text = reader.take(length)?;
        if (text.len() as u64) < length {
            return Err(reader.truncated(start + length));
        }
        Self::parse(path, start, &text)
    }

    fn parse(path: &Path, start: u64, text: &[u8]) -> Result<Self, DataError> {
        let mut scanner = Scanner { text, position: 0 };
        let entries = scanner.dictionary().ok_or_else(|| {
            let message = "expected a header such as {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 784), }";
            wrong(path, start + scanner.position as u64, message.to_owned())
        })?;
        let refuse = |message: String| Err(wrong(path, start, message));
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        for (key, value) in entries {
            match (key.as_str(), value) {
                ("descr", Value::Text(text)) => descr = Some(text),
                ("fortran_order", Value::Truth(truth)) => fortran = Some(truth),
                ("shape", Value::Sizes(sizes)) => shape = Some(sizes),
                ("descr", _) => return refuse("the array is a table of records; expected plain numbers".to_owned()),
                _ => return refuse(format!("the header's key {key:?} is unknown or has a value of another type")),
            }
        }
        let (Some(descr), Some(fortran), Some(dimensions)) = (descr, fortran, shape) else {
            return refuse("the header lacks one of 'descr', 'fortran_order', 'shape'".to_owned());
        };
        let Some(kind) = Kind::of(&descr) else {
            return refuse(format!(
                "numbers of type {descr:?}; expected <f4, <f8, |u1, <u2, <u4, |i1, <i2, <i4 or <i8 (in NumPy: array.astype('<f4'))"
            ));
        };
        // With one dimension both orders are the same.
        if fortran && dimensions.len() > 1 {
            return refuse("numbers in Fortran order; expected C order (numpy.ascontiguousarray(array))".to_owned());
        }
        if dimensions.contains(&0) {
            return refuse(format!("an array of {} numbers is empty", listed(&dimensions)));
        }
        let product = dimensions.iter().try_fold(1_usize, |product, &size| product.checked_mul(size));
        match product.filter(|&product| product <= VALUES_MAX) {
            Some(values) => Ok(Self { kind, dimensions, values, start }),
            None => {
                refuse(format!("the header promises {} numbers; at most {VALUES_MAX} are read", listed(&dimensions)))
            }
        }
    }

    /// An error about the contents of the header.
    pub fn wrong(&self, path: &Path, message: String) -> DataError {
        wrong(path, self.start, message)
    }

    /// Whether the array is example × feature.
    pub fn is_table(&self) -> bool {
        self.dimensions.len() == 2
    }

    /// Number and sizes of the dimensions, for people.
    pub fn described(&self) -> String {
        let count = self.dimensions.len();
        format!("{count} dimension{} ({})", if count == 1 { "" } else { "s" }, listed(&self.dimensions))
    }
}

fn listed(dimensions: &[usize]) -> String {
    dimensions.iter().map(usize::to_string).collect::<Vec<_>>().join(" × ")
}

/// The values that a header's dictionary may hold.
enum Value {
    Text(String),
    Truth(bool),
    Sizes(Vec<usize>),
    /// The list that describes the fields of records.
    List,
}

/// Reads a Python dictionary, as far as headers have them. `None` anywhere: something else stands at `position`.
struct Scanner<'a> {
    text: &'a [u8],
    position: usize,
}

impl Scanner<'_> {
    fn dictionary(&mut self) -> Option<Vec<(String, Value)>> {
        let mut entries = Vec::new();
        self.symbol(b'{')?;
        while !self.next_is(b'}') {
            let key = self.quoted()?;
            self.symbol(b':')?;
            let value = self.value()?;
            let is_record = matches!(value, Value::List);
            entries.push((key, value));
            if is_record {
                return Some(entries);
            }
            if !self.next_is(b'}') {
                self.symbol(b',')?;
            }
        }
        self.symbol(b'}')?;
        self.skip_space();
        (self.position == self.text.len()).then_some(entries)
    }

    fn value(&mut self) -> Option<Value> {
        self.skip_space();
        match self.text.get(self.position)? {
            b'\'' | b'"' => self.quoted().map(Value::Text),
            b'(' => self.sizes().map(Value::Sizes),
            b'[' => Some(Value::List),
            b'T' => self.word(b"True").map(|()| Value::Truth(true)),
            b'F' => self.word(b"False").map(|()| Value::Truth(false)),
            _ => None,
        }
    }

    fn skip_space(&mut self) {
        while self.text.get(self.position).is_some_and(u8::is_ascii_whitespace) {
            self.position += 1;
        }
    }

    fn next_is(&mut self, symbol: u8) -> bool {
        self.skip_space();
        self.text.get(self.position) == Some(&symbol)
    }

    fn symbol(&mut self, symbol: u8) -> Option<()> {
        let found = self.next_is(symbol);
        self.position += usize::from(found);
        found.then_some(())
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        let found = self.text[self.position..].starts_with(word);
        self.position += if found { word.len() } else { 0 };
        found.then_some(())
    }

    fn quoted(&mut self) -> Option<String> {
        self.skip_space();
        let quote = *self.text.get(self.position).filter(|byte| matches!(byte, b'\'' | b'"'))?;
        let inside = &self.text[self.position + 1..];
        let length = inside.iter().position(|&byte| byte == quote)?;
        let text = str::from_utf8(&inside[..length]).ok()?.to_owned();
        self.position += length + 2;
        Some(text)
    }

    fn sizes(&mut self) -> Option<Vec<usize>> {
        let mut sizes = Vec::new();
        self.symbol(b'(')?;
        while !self.next_is(b')') {
            let digits = self.text[self.position..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            let text = str::from_utf8(&self.text[self.position..self.position + digits]).ok()?;
            sizes.push(text.parse().ok()?);
            self.position += digits;
            if !self.next_is(b')') {
                self.symbol(b',')?;
            }
        }
        self.symbol(b')')?;
        Some(sizes)
    }
}
