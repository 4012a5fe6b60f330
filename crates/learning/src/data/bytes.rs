//! The bytes of a data file, plain or gzip, taken under a bound.
//!
//! # Trust
//! None: memory grows only as bytes really arrive, and no more is unpacked than was asked for. A file is gzip if its
//! first two bytes, 1f 8b, say so, whatever its name.

use super::DataError;
use fedgenie_core::limits::Budget;
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

/// An open file, the bytes it gives after decompression, and how many of them were taken.
pub struct ByteReader<'a> {
    /// The file, for messages.
    pub path: &'a Path,
    bytes: Box<dyn Read + 'a>,
    /// Bytes taken so far, after decompression.
    pub position: u64,
    /// Set where a gzip stream is cut off, which may be after its last data byte but before its checksum.
    cut_off: Option<std::io::Error>,
    budget: Budget,
}

/// Bytes that are taken at once before it is asked whether there is room for more.
const PIECE: u64 = 1 << 24;
/// How many bytes of memory one byte of a file becomes: itself, and a number.
const BYTES_PER_BYTE: u64 = 3;

impl<'a> ByteReader<'a> {
    /// Opens a file, plain or packed with gzip.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn open(path: &'a Path) -> Result<Self, DataError> {
        let refuse = |source| DataError::Read { path: path.to_owned(), position: 0, source };
        let mut file = BufReader::with_capacity(1 << 16, File::open(path).map_err(refuse)?);
        let is_gzip = file.fill_buf().map_err(refuse)?.starts_with(&[0x1f, 0x8b]);
        let bytes: Box<dyn Read> = if is_gzip { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
        Ok(Self { path, bytes, position: 0, cut_off: None, budget: Budget::default() })
    }

    /// Bytes within a file, of which this position is the first.
    pub fn within(path: &'a Path, position: u64, bytes: impl Read + 'a) -> Self {
        Self { path, bytes: Box::new(bytes), position, cut_off: None, budget: Budget::default() }
    }

    /// Passes over so many bytes; over fewer only where the file, or its compressed stream, ends.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn pass(&mut self, count: u64) -> Result<(), DataError> {
        match std::io::copy(&mut Read::take(&mut *self, count), &mut std::io::sink()) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                self.cut_off = Some(error);
                Ok(())
            }
            Err(source) => Err(self.unreadable(source)),
        }
    }

    /// Up to `count` bytes; fewer only where the file, or its compressed stream, ends.
    ///
    /// # Errors
    /// If it cannot be read, or does not fit into memory.
    pub fn take(&mut self, count: u64) -> Result<Vec<u8>, DataError> {
        let mut taken = Vec::new();
        loop {
            let before = taken.len();
            let wanted = PIECE.min(count - before as u64);
            let result = (&mut self.bytes).take(wanted).read_to_end(&mut taken);
            let found = (taken.len() - before) as u64;
            self.position += found;
            match result {
                Ok(_) if found < wanted || taken.len() as u64 == count => return Ok(taken),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    self.cut_off = Some(error);
                    return Ok(taken);
                }
                Err(source) => return Err(self.unreadable(source)),
            }
            let room = self.budget.take(found * BYTES_PER_BYTE);
            room.map_err(|source| DataError::memory(self.path, source))?;
        }
    }

    /// The proof that nothing follows.
    ///
    /// # Errors
    /// If bytes follow, or the compressed stream is cut off.
    pub fn expect_end(&mut self) -> Result<(), DataError> {
        let position = self.position;
        if self.take(1)?.is_empty() {
            self.cut_off.take().map_or(Ok(()), |error| Err(self.unreadable(error)))
        } else {
            Err(DataError::TrailingBytes { path: self.path.to_owned(), position })
        }
    }

    /// The error of a read that failed here.
    pub fn unreadable(&self, source: std::io::Error) -> DataError {
        DataError::Read { path: self.path.to_owned(), position: self.position, source }
    }

    /// The error of a file that ends here, too early.
    pub fn truncated(&self, expected: u64) -> DataError {
        DataError::Truncated { path: self.path.to_owned(), position: self.position, expected }
    }
}

impl Read for ByteReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.bytes.read(buffer)?;
        self.position += count as u64;
        Ok(count)
    }
}
