//! Reader of tables of counts: CSV or TSV, plain or gzip.

use super::{BYTES_MAX, ClassCounts, CountsError};
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

pub(super) fn read(path: &Path) -> Result<ClassCounts, CountsError> {
    let bytes =
        unpack(path).map_err(|error| CountsError::Read { path: path.to_owned(), message: error.to_string() })?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(CountsError::TooLarge { path: path.to_owned() });
    }
    parse(path, &bytes)
}

/// The text, or one byte more than is allowed.
fn unpack(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = BufReader::new(File::open(path)?);
    let is_gzip = file.fill_buf()?.starts_with(&[0x1f, 0x8b]);
    let bytes: Box<dyn Read> = if is_gzip { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    let mut text = Vec::new();
    bytes.take(BYTES_MAX + 1).read_to_end(&mut text)?;
    Ok(text)
}

/// A count, or none: digits only, as other spellings would not survive every other reader.
fn count(cell: &str) -> Option<u32> {
    let cell = cell.trim();
    if cell.bytes().all(|byte| byte.is_ascii_digit()) { cell.parse().ok() } else { None }
}

/// Whether a cell could be a number, if perhaps a wrong one (negative, fractional, too large, missing).
fn numeric(cell: &str) -> bool {
    let cell = cell.trim();
    cell.is_empty() || cell.parse::<f64>().is_ok()
}

fn parse(path: &Path, bytes: &[u8]) -> Result<ClassCounts, CountsError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let path = || path.to_owned();
    if bytes.is_empty() {
        return Err(CountsError::Empty { path: path() });
    }
    let separator =
        if bytes.split(|&byte| byte == b'\n').next().is_some_and(|line| line.contains(&b'\t')) { '\t' } else { ',' };
    let (mut counts, mut width, mut first_line, mut skipped) = (Vec::new(), 0, 1, 0);
    for (line, text) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        let text = std::str::from_utf8(text).map_err(|_| CountsError::NotText { path: path(), line })?;
        let cells: Vec<&str> = text.split(separator).collect();
        if line == 1 {
            width = cells.len();
            // One word is enough: a column of numbers has no word as its first cell, and a header may have numbers.
            if !cells.iter().all(|cell| numeric(cell)) {
                first_line = 2;
                skipped = usize::from(cells[0].trim().eq_ignore_ascii_case("client") && width > 1);
                continue;
            }
        }
        if cells.len() != width {
            return Err(CountsError::Width { path: path(), line, found: cells.len(), expected: width });
        }
        for (column, cell) in (1..).zip(&cells).skip(skipped) {
            let found = count(cell);
            counts.push(found.ok_or_else(|| CountsError::Cell {
                path: path(),
                line,
                column,
                found: (*cell).to_owned(),
            })?);
        }
    }
    if counts.is_empty() {
        return Err(CountsError::Empty { path: path() });
    }
    Ok(ClassCounts { path: path(), classes: width - skipped, counts, first_line })
}
