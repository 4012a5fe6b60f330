//! The command line: arguments to library calls, results to stdout, messages to stderr, outcomes to exit codes.

mod cli;

use fedgenie::error::DEFECT;
use fedgenie::text::message;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

/// The exit code of a violated invariant.
const VIOLATED: u8 = 4;

fn main() -> ExitCode {
    let command = || cli::arguments()?.map_or_else(Ok, cli::execute);
    match catch_unwind(AssertUnwindSafe(command)) {
        Ok(Ok(code)) => ExitCode::from(code),
        Ok(Err(error)) => {
            cli::say(&format!("fedgenie: error: {}", message(&error.to_string())));
            ExitCode::from(error.exit_code())
        }
        // The panic's own message is on standard error already.
        Err(_) => {
            cli::say(&format!("fedgenie: error: {DEFECT}"));
            ExitCode::from(VIOLATED)
        }
    }
}
