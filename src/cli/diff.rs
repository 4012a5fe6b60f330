//! `fedgenie diff`

use super::{DiffArguments, print, print_json, tell};
use fedgenie::error::Error;
use fedgenie::experiment::stored::Reader;
use fedgenie::report::Diff;

pub fn diff(arguments: &DiffArguments) -> Result<u8, Error> {
    let reader = Reader::new(&tell).allowing_changed(arguments.allow_changed);
    let diff = Diff::load(&[arguments.one.clone(), arguments.other.clone()], &reader)?;
    if arguments.json {
        let text = serde_json::to_string_pretty(&diff).map_err(|error| Error::Usage(error.to_string()))?;
        print_json(&text)?;
    } else {
        print(&diff.text())?;
    }
    Ok(0)
}
