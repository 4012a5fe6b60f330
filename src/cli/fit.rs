//! `fedgenie fit`

use super::new::{refuse_existing, write_new};
use super::{print, say};
use clap::Args;
use fedgenie::error::Error;
use fedgenie::fit::{fit, fleet, told};
use fedgenie::population::log::{self, RunOfLog};
use fedgenie::text::{self, message};
use std::fs::File;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub struct FitArguments {
    /// The log, CSV with the columns client, round, sent_s, download_s, compute_s, upload_s, total_s and outcome; plain
    /// or gzip.
    log: PathBuf,
    /// The scenario to write, which must not exist; fleet.toml if left out.
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Of a log of several runs, those of this policy.
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// Of a log of several runs, those of this seed.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Of a log of several runs, those of this point of the sweep.
    #[arg(long, value_name = "N")]
    point: Option<u64>,
}

pub fn run(arguments: &FitArguments) -> Result<u8, Error> {
    let FitArguments { log: path, out, policy, seed, point } = arguments;
    let run = RunOfLog { policy: policy.clone(), seed: *seed, point: *point };
    let usage = |message: String| Error::Usage(message);
    let out = out.as_deref().unwrap_or(Path::new("fleet.toml"));
    refuse_existing(out)?;
    // The reader's own message is about scenarios, which look for files in several folders.
    File::open(path).map_err(|source| Error::Read { path: path.clone(), source })?;
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
    let name = path.file_name().map_or_else(|| path.to_string_lossy(), |name| name.to_string_lossy());
    write_new(out, &fleet::scenario(&found, &message(&name), env!("CARGO_PKG_VERSION")))?;
    print(&told::told(&found))?;
    print(&format!("\nwritten to {0}; `fedgenie run {0}` runs it\n", text::path(out)))?;
    Ok(0)
}
