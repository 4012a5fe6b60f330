//! The folder in which a target's files lie, for as long as its process lives.

use std::cell::OnceCell;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

thread_local! {
    static FOLDER: OnceCell<TempDir> = const { OnceCell::new() };
}

/// The folder.
pub fn folder() -> PathBuf {
    FOLDER.with(|folder| folder.get_or_init(|| TempDir::new().unwrap()).path().to_owned())
}

/// Writes a file below the folder.
pub fn write(name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder().join(name);
    fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).unwrap();
    fs::write(&path, bytes).unwrap();
    path
}
