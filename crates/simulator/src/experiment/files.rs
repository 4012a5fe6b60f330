//! Writing a whole file: under a temporary name, then renamed.

use crate::error::Error;
use serde::Serialize;
use std::fs;
use std::path::Path;

/// Writes a file so that it is there whole or not at all.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let failed = |source| Error::Write { path: path.to_owned(), source };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let temporary = path.with_file_name(name);
    fs::write(&temporary, bytes).map_err(failed)?;
    fs::rename(&temporary, path).map_err(failed)
}

/// Writes a JSON document.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let mut text = serde_json::to_vec_pretty(value)
        .map_err(|error| Error::Write { path: path.to_owned(), source: error.into() })?;
    text.push(b'\n');
    write_file(path, &text)
}
