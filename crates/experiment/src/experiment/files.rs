//! Writing a whole file: under a temporary name, then renamed.

use crate::error::Error;
use serde::Serialize;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes a file so that it is there whole or not at all, whoever else writes it at the same time.
///
/// # Errors
/// If it cannot be written.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let failed = |source| Error::Write { path: path.to_owned(), source };
    let (temporary, mut file) = temporary(path).map_err(failed)?;
    let written = file.write_all(bytes).and_then(|()| fs::rename(&temporary, path));
    written.map_err(|source| {
        // What is incomplete is of no use; the error that matters is the first one.
        let _ = fs::remove_file(&temporary);
        failed(source)
    })
}

/// Makes a file beside `path` that no other thread or process has: `NAME.0.part`, or the first number that is free.
fn temporary(path: &Path) -> io::Result<(PathBuf, File)> {
    let mut number = 0;
    loop {
        let mut name = OsString::from(path.file_name().unwrap_or_default());
        name.push(format!(".{number}.part"));
        let temporary = path.with_file_name(name);
        match File::create_new(&temporary) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            result => return result.map(|file| (temporary, file)),
        }
    }
}

/// Writes a JSON document.
///
/// # Errors
/// If it cannot be written.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let mut text = serde_json::to_vec_pretty(value)
        .map_err(|error| Error::Write { path: path.to_owned(), source: error.into() })?;
    text.push(b'\n');
    write_file(path, &text)
}
