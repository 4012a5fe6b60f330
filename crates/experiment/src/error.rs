//! Errors that a user can meet, and their exit codes.

use crate::scenario::ScenarioError;
use fedgenie_core::text;
use fedgenie_simulator::run::RunError;
use std::io;
use std::path::PathBuf;

/// An error that ends a command.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The scenario is wrong. Nothing was written.
    #[error("{0}")]
    Scenario(#[from] ScenarioError),
    /// A file cannot be read.
    #[error("cannot read {}: {source}", text::path(path))]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file cannot be written: it is in the wrong place, or the disk is full. Complete files stay.
    #[error("cannot write {}: {source}", text::path(path))]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The command's arguments are wrong.
    #[error("{0}")]
    Usage(String),
    /// Files of a result folder were changed. They were not used.
    #[error("{0}")]
    Changed(String),
    /// Threads cannot be started.
    #[error("cannot start threads: {0}")]
    Threads(String),
    /// A run ended early. Other runs are not touched.
    #[error("run {run} failed: {source}{}", advice(source))]
    Run {
        /// The run's name.
        run: String,
        /// Why.
        source: RunError,
    },
    /// A run panicked. Other runs are not touched.
    #[error("run {run} panicked: {message}; {DEFECT}")]
    Panicked {
        /// The run's name.
        run: String,
        /// The panic's message.
        message: String,
    },
    /// A run was lost wherever it was tried. Other runs are not touched.
    #[error("run {run} failed: {why}")]
    Lost {
        /// The run's name.
        run: String,
        /// What became of it.
        why: String,
    },
    /// The run was stopped before its end, at the user's request. Where it has a folder, it can go on.
    #[error("stopped before its end")]
    Cancelled,
}

/// The remedy for a violated invariant.
pub const DEFECT: &str =
    "this is a defect of FedGenie: please report it with the scenario, the command and this message";

/// The advice added to the reason why a run failed.
fn advice(source: &RunError) -> String {
    match source {
        RunError::Violated { .. } => format!("\n{DEFECT}"),
        _ => String::new(),
    }
}

/// Whether an output that worked so far accepts no more, such as a full disk. Otherwise its path is wrong: the folder
/// is missing, or belongs to another user.
fn is_blocked(source: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    !matches!(
        source.kind(),
        Kind::NotFound
            | Kind::PermissionDenied
            | Kind::AlreadyExists
            | Kind::NotADirectory
            | Kind::IsADirectory
            | Kind::DirectoryNotEmpty
            | Kind::ReadOnlyFilesystem
            | Kind::InvalidFilename
            | Kind::InvalidInput
            | Kind::Unsupported
    )
}

impl Error {
    /// The exit code: 1 for changed files, 2 for bad usage or input, 3 for a failed run or an output that accepts no
    /// more, 4 for a violated invariant of the program.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Run { source: RunError::Violated { .. }, .. } => 4,
            Self::Changed(_) => 1,
            Self::Run { .. } | Self::Panicked { .. } | Self::Lost { .. } | Self::Cancelled => 3,
            Self::Write { source, .. } if is_blocked(source) => 3,
            _ => 2,
        }
    }

    /// Whether a file could not be written: a full disk is full for every run.
    pub const fn is_of_output(&self) -> bool {
        matches!(self, Self::Write { .. } | Self::Run { source: RunError::Io(_), .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_violated_invariant_is_told_from_a_run_that_failed() {
        let of_run = |source| Error::Run { run: "random-s1".to_owned(), source };
        let violated = of_run(RunError::Violated { what: "3 jobs are pending".to_owned(), records: Vec::new() });
        assert_eq!(violated.exit_code(), 4);
        assert!(violated.to_string().ends_with(DEFECT));
        let full = of_run(RunError::Io(io::ErrorKind::StorageFull.into()));
        assert_eq!(full.exit_code(), 3);
        assert!(full.to_string().starts_with("run random-s1 failed: ") && !full.to_string().contains(DEFECT));
        assert_eq!(Error::Usage(String::new()).exit_code(), 2);
    }

    #[test]
    fn a_full_disk_is_told_from_a_place_that_is_wrong() {
        let of = |kind: io::ErrorKind| Error::Write { path: PathBuf::from("out"), source: kind.into() };
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded, io::ErrorKind::FileTooLarge] {
            assert!(of(kind).exit_code() == 3 && of(kind).is_of_output());
        }
        for kind in [io::ErrorKind::NotFound, io::ErrorKind::PermissionDenied, io::ErrorKind::NotADirectory] {
            assert_eq!(of(kind).exit_code(), 2);
        }
        let panicked = Error::Panicked { run: "random-s1".to_owned(), message: "found 3 of 4".to_owned() };
        assert_eq!((panicked.exit_code(), panicked.is_of_output()), (3, false));
        assert_eq!(panicked.to_string(), format!("run random-s1 panicked: found 3 of 4; {DEFECT}"));
    }
}
