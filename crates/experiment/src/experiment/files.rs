//! Writing a whole file: under an unused temporary name, synced to the disk, then renamed.

use crate::error::Error;
use serde::Serialize;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes a file so that it exists whole or not at all, even if others write it at the same time or the machine stops.
/// A link of that name is replaced and not followed.
///
/// # Errors
/// If it cannot be written.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let failed = |source| Error::Write { path: path.to_owned(), source };
    let (temporary, mut file) = temporary(path).map_err(failed)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&temporary, path));
    written.map_err(|source| {
        // An incomplete file is of no use; the first error is the one that matters.
        let _ = fs::remove_file(&temporary);
        failed(source)
    })?;
    sync_folder(path.parent().unwrap_or(Path::new(""))).map_err(failed)
}

/// Waits until a file's contents are on the disk.
///
/// # Errors
/// If it cannot be written out.
pub(super) fn sync_file(path: &Path) -> io::Result<()> {
    // A system may want the right to write for this.
    File::options().read(true).write(true).open(path)?.sync_all()
}

/// Waits until the names in a folder are on the disk. Where folders cannot be opened, the system takes care of their
/// names.
///
/// # Errors
/// If they cannot be written out.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let Ok(opened) = File::open(folder) else { return Ok(()) };
    match opened.sync_all() {
        // Some file systems have nothing to do here and say so.
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        Err(error) if cfg!(windows) && error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        result => result,
    }
}

/// Makes a file beside `path` under a name that no other thread or process has: `NAME.0.part`, or the first free
/// number.
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

/// Whether a name is that of a temporary file.
pub(super) fn is_part(name: &str) -> bool {
    let number = name.strip_suffix(".part").and_then(|name| name.rsplit_once('.'));
    number.is_some_and(|(_, number)| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
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
