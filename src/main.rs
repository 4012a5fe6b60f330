//! The command line: see [`fedgenie::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(fedgenie::cli::main(std::env::args_os(), &fedgenie::cli::Alone))
}
