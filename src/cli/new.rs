//! `fedgenie new`

use super::print;
use fedgenie::error::Error;
use fedgenie::text;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

/// A scenario that runs as it is and names settings to change.
const TEMPLATE: &str = include_str!("new.toml");

/// The same for a scenario in which clients learn.
const LEARNING: &str = include_str!("learning.toml");

pub fn new(file: &Path, learning: bool) -> Result<u8, Error> {
    write_new(file, if learning { LEARNING } else { TEMPLATE })?;
    print(&format!("wrote {0}; `fedgenie run {0}` runs it\n", text::path(file)))?;
    Ok(0)
}

fn exists(file: &Path) -> Error {
    Error::Usage(format!("{} exists already; give another name, or delete it first", file.display()))
}

/// Refuses a file that is there already, before the work for it begins.
///
/// # Errors
/// If it is there.
pub fn refuse_existing(file: &Path) -> Result<(), Error> {
    if file.symlink_metadata().is_ok() { Err(exists(file)) } else { Ok(()) }
}

/// Writes a file that is not there yet.
///
/// # Errors
/// If it is there, or cannot be written.
pub fn write_new(file: &Path, contents: &str) -> Result<(), Error> {
    let failed = |source| Error::Write { path: file.to_owned(), source };
    let opened = OpenOptions::new().write(true).create_new(true).open(file);
    let mut written = opened.map_err(|source| match source.kind() {
        ErrorKind::AlreadyExists => exists(file),
        _ => failed(source),
    })?;
    written.write_all(contents.as_bytes()).map_err(failed)
}
