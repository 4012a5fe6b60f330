//! Records of a text table, plain or gzip, with the line where each begins.
//!
//! # Trust
//! None: no more than [`ROW_MAX`] bytes are unpacked for one record, no more than [`TABLE_BYTES`] or the caller's limit
//! for all of them, and no more is read than there is memory for.

use super::DataError;
use super::bytes::ByteReader;
use csv::{ErrorKind, Reader, ReaderBuilder, StringRecord, Terminator};
use fedgenie_core::limits::{Budget, ROW_BYTES, TABLE_BYTES};
use std::cell::Cell;
use std::io::Read;
use std::path::Path;
use std::rc::Rc;

/// The most bytes of a row, after decompression: 2^24.
pub const ROW_MAX: u64 = ROW_BYTES;

/// The records of a file that are not empty lines, with the line where each begins.
pub struct Rows<'a> {
    /// The file, for messages.
    pub path: &'a Path,
    reader: Reader<Guard<'a>>,
    progress: Rc<Progress>,
    budget: Budget,
    /// The record read last.
    pub record: StringRecord,
}

/// How many bytes were read, and since the last row; whether nothing is left.
#[derive(Default)]
struct Progress {
    position: Cell<u64>,
    row: Cell<u64>,
    has_ended: Cell<bool>,
}

impl<'a> Rows<'a> {
    /// Opens a file, plain or gzip.
    pub fn open(path: &'a Path) -> Result<Self, DataError> {
        Self::open_within(path, TABLE_BYTES)
    }

    /// Opens a file of which at most `limit` bytes are unpacked.
    pub fn open_within(path: &'a Path, limit: u64) -> Result<Self, DataError> {
        Self::open_with(path, limit, b',')
    }

    /// Opens a file whose fields are separated by another character than a comma.
    pub fn open_separated(path: &'a Path, separator: u8) -> Result<Self, DataError> {
        Self::open_with(path, TABLE_BYTES, separator)
    }

    fn open_with(path: &'a Path, limit: u64, separator: u8) -> Result<Self, DataError> {
        let progress = Rc::new(Progress::default());
        let bytes = Guard { bytes: ByteReader::open(path)?, progress: progress.clone(), limit, last: b'\n' };
        // Lines end at the line feed alone, so that lines are counted rightly; a carriage return before it is trimmed.
        let reader = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(separator)
            .terminator(Terminator::Any(b'\n'))
            .from_reader(bytes);
        Ok(Self { path, reader, progress, budget: Budget::default(), record: StringRecord::new() })
    }

    /// Reads the next record and says on which line it begins.
    ///
    /// # Errors
    /// If the file cannot be read, a row is too long, or memory is short.
    pub fn advance(&mut self) -> Result<Option<u64>, DataError> {
        loop {
            let more = self.reader.read_record(&mut self.record).map_err(|error| self.refused(error))?;
            self.progress.row.set(0);
            if !more {
                return Ok(None);
            }
            let inside = self.record.as_slice().bytes().filter(|&byte| byte == b'\n').count() as u64;
            // Every file ends with a line feed here, so that only a quote can lead a row to the very end.
            if self.progress.has_ended.get() {
                let (path, line) = (self.path.to_owned(), self.reader.position().line() - inside);
                let message = "a quote is opened in this row and never closed".to_owned();
                return Err(DataError::Table { path, line, message });
            }
            if self.record.len() > 1 || !self.record[0].trim().is_empty() {
                // A number of each field, and facts about the row.
                self.keep(16 + 4 * self.record.len() as u64)?;
                return Ok(Some(self.reader.position().line() - 1 - inside));
            }
        }
    }

    /// Counts bytes that the caller is about to keep beside a number for each field.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub fn keep(&mut self, bytes: u64) -> Result<(), DataError> {
        self.budget.take(bytes).map_err(|source| DataError::memory(self.path, source))
    }

    fn refused(&self, error: csv::Error) -> DataError {
        let line = error.position().map_or_else(|| self.reader.position().line(), csv::Position::line);
        match error.into_kind() {
            ErrorKind::Io(source) => {
                DataError::Read { path: self.path.to_owned(), position: self.progress.position.get(), source }
            }
            ErrorKind::Utf8 { err, .. } => DataError::Table {
                path: self.path.to_owned(),
                line,
                message: format!("field {} is not UTF-8 text", err.field() + 1),
            },
            other => DataError::Table { path: self.path.to_owned(), line, message: format!("{other:?}") },
        }
    }
}

/// The bytes of a file, refused where a row becomes too long, with a line feed at the very end.
struct Guard<'a> {
    bytes: ByteReader<'a>,
    progress: Rc<Progress>,
    limit: u64,
    last: u8,
}

impl Read for Guard<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.bytes.read(buffer)?;
        self.progress.position.set(self.bytes.position);
        self.progress.row.set(self.progress.row.get() + count as u64);
        if self.progress.row.get() > ROW_MAX {
            return Err(std::io::Error::other(format!("a row has more than {ROW_MAX} bytes; is a quote not closed?")));
        }
        if self.bytes.position > self.limit {
            return Err(std::io::Error::other(format!(
                "more than {} bytes, which is the most that is read",
                self.limit
            )));
        }
        match (count, self.last) {
            (0, b'\n') => {
                self.progress.has_ended.set(!buffer.is_empty());
                Ok(0)
            }
            (0, _) if !buffer.is_empty() => {
                self.last = b'\n';
                buffer[0] = b'\n';
                Ok(1)
            }
            _ => {
                self.last = buffer[..count].last().copied().unwrap_or(self.last);
                Ok(count)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    #[test]
    fn no_more_is_unpacked_than_is_allowed() {
        // A mebibyte of line feeds, each an empty row, in a kilobyte.
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut encoder = GzEncoder::new(&mut file, Compression::best());
        encoder.write_all(b"a,b\n").unwrap();
        encoder.write_all(&vec![b'\n'; 1 << 20]).unwrap();
        encoder.finish().unwrap();
        let read = |limit| {
            let mut rows = Rows::open_within(file.path(), limit)?;
            while rows.advance()?.is_some() {}
            Ok::<_, DataError>(())
        };
        assert!(read(1 << 21).is_ok());
        let message = read(1 << 19).unwrap_err().to_string();
        assert!(message.contains("more than 524288 bytes, which is the most that is read"), "{message}");
    }
}
