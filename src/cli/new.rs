//! `fedgenie new`

use super::print;
use fedgenie::error::Error;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

/// A scenario that runs as it is and names what can be changed.
const TEMPLATE: &str = include_str!("new.toml");

pub fn new(file: &Path) -> Result<u8, Error> {
    let failed = |source| Error::Write { path: file.to_owned(), source };
    let mut written = OpenOptions::new().write(true).create_new(true).open(file).map_err(failed)?;
    written.write_all(TEMPLATE.as_bytes()).map_err(failed)?;
    print(&format!("wrote {0}; `fedgenie run {0}` runs it\n", file.display()))?;
    Ok(0)
}
