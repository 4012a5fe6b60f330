//! The command line: arguments to library calls, results to stdout, messages to stderr, outcomes to exit codes.

mod cli;

use clap::Parser;
use fedgenie::error::DEFECT;
use fedgenie::text::message;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

/// The exit code of a violated invariant.
const VIOLATED: u8 = 4;

fn main() -> ExitCode {
    let arguments = match cli::Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are answers, not errors.
            let code = if error.use_stderr() { 2 } else { 0 };
            match code {
                0 => drop(error.print()),
                _ => eprintln!("fedgenie: {}", message(&error.render().to_string())),
            }
            return ExitCode::from(code);
        }
    };
    match catch_unwind(AssertUnwindSafe(|| cli::execute(arguments))) {
        Ok(Ok(code)) => ExitCode::from(code),
        Ok(Err(error)) => {
            eprintln!("fedgenie: error: {}", message(&error.to_string()));
            ExitCode::from(error.exit_code())
        }
        // The panic's own message is on standard error already.
        Err(_) => {
            eprintln!("fedgenie: error: {DEFECT}");
            ExitCode::from(VIOLATED)
        }
    }
}
