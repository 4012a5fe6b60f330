//! `fedgenie export`

use super::{ExportArguments, print};
use fedgenie::error::Error;
use fedgenie::report::export;
use fedgenie::text;
use std::path::Path;

pub fn run(arguments: &ExportArguments) -> Result<u8, Error> {
    if arguments.to != "csv" {
        return Err(Error::Usage(format!("found --to {}; expected csv", arguments.to)));
    }
    let into = arguments.out.as_deref().unwrap_or(Path::new("export"));
    for path in export(&arguments.folders, into)? {
        print(&format!("written to {}\n", text::path(&path)))?;
    }
    Ok(0)
}
