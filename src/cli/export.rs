//! `fedgenie export`

use super::{ExportArguments, print, say, tell};
use fedgenie::error::Error;
use fedgenie::experiment::stored::Reader;
use fedgenie::report::{ExportFormat, Exported, export, export_tensorboard};
use fedgenie::text::{self, message};
use std::path::Path;

pub fn run(arguments: &ExportArguments) -> Result<u8, Error> {
    let format = match arguments.to.as_str() {
        "csv" => Some(ExportFormat::Csv),
        "parquet" => Some(ExportFormat::Parquet),
        "tensorboard" => None,
        other => return Err(Error::Usage(format!("found --to {other}; expected csv, parquet or tensorboard"))),
    };
    let into = arguments.out.as_deref().unwrap_or(Path::new("export"));
    let reader = Reader::new(&tell).allowing_changed(arguments.allow_changed);
    let Exported { paths, warnings } = match format {
        Some(format) => export(&arguments.folders, into, format, &reader)?,
        None => export_tensorboard(&arguments.folders, into, &reader)?,
    };
    for warning in warnings {
        say(&format!("fedgenie: warning: {}", message(&warning)));
    }
    for path in paths {
        print(&format!("written to {}\n", text::path(&path)))?;
    }
    Ok(0)
}
