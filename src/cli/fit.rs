//! `fedgenie fit`

use super::new::write_new;
use super::{FitArguments, print, say};
use fedgenie::error::Error;
use fedgenie::fit::{fit, fleet, told};
use fedgenie::population::log::{self, RunOfLog};
use fedgenie::text::{self, message};
use std::path::Path;

pub fn run(arguments: &FitArguments) -> Result<u8, Error> {
    let FitArguments { log: path, out, policy, seed, point } = arguments;
    let run = RunOfLog { policy: policy.clone(), seed: *seed, point: *point };
    let usage = |message: String| Error::Usage(message);
    let log = log::read(path, &run).map_err(|error| {
        let hint = match error {
            log::LogError::SeveralRuns { .. } => ": give --policy, --seed or --point",
            _ => "",
        };
        usage(format!("{error}{hint}"))
    })?;
    for note in &log.notes {
        say(&format!("fedgenie: note: {}", message(note)));
    }
    let found = fit(&log).map_err(|error| usage(format!("{}: {error}", path.display())))?;
    for note in &found.notes {
        say(&format!("fedgenie: warning: {}", message(note)));
    }
    let out = out.as_deref().unwrap_or(Path::new("fleet.toml"));
    let name = path.file_name().map_or_else(|| path.to_string_lossy(), |name| name.to_string_lossy());
    write_new(out, &fleet::scenario(&found, &message(&name), env!("CARGO_PKG_VERSION")))?;
    print(&told::told(&found))?;
    print(&format!("\nwritten to {0}; `fedgenie run {0}` runs it\n", text::path(out)))?;
    Ok(0)
}
