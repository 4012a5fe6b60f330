//! Everything that can go wrong for a user, and the exit code it means.

use crate::run::RunError;
use crate::scenario::ScenarioError;
use std::io;
use std::path::PathBuf;

/// An error that ends a command.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The scenario is wrong. Nothing was written.
    #[error("{0}")]
    Scenario(#[from] ScenarioError),
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file cannot be written. Files that were complete stay; incomplete ones keep a name that ends in `.part`.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The command's words are wrong.
    #[error("{0}")]
    Usage(String),
    /// Threads cannot be started.
    #[error("cannot start threads: {0}")]
    Threads(String),
    /// A run ended early. Other runs are not touched.
    #[error("run {run} failed: {source}")]
    Run {
        /// The run's name.
        run: String,
        /// Why.
        source: RunError,
    },
    /// The run was called off because another failed or the user asked for it.
    #[error("called off")]
    Cancelled,
}

impl Error {
    /// The exit code: 2 for bad usage or input, 3 for a run that failed.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Run { .. } | Self::Cancelled => 3,
            _ => 2,
        }
    }
}
