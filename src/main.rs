//! The command line: words to library calls, results to stdout, messages to stderr, outcomes to exit codes.

mod cli;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words = match cli::Words::try_parse() {
        Ok(words) => words,
        Err(error) => {
            // Help and version are answers, not errors.
            let code = if error.use_stderr() { 2 } else { 0 };
            match code {
                0 => drop(error.print()),
                _ => eprintln!("fedgenie: {}", error.render().to_string().trim_end()),
            }
            return ExitCode::from(code);
        }
    };
    match cli::execute(words) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("fedgenie: error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
