//! The words of the command line and what they call.

mod catalogue;
mod new;
mod progress;
mod report;
mod run;
mod validate;
mod verify;

use clap::{Args, Parser, Subcommand};
use fedgenie::error::Error;
use std::io::Write;
use std::path::PathBuf;

/// A deterministic simulator of federated learning under client selection, with exact regret against a genie.
///
/// Exit codes: 0 good; 1 the answer is no (verify found a difference, a claim came out otherwise than known); 2 bad usage or bad input; 3 a run failed.
#[derive(Debug, Parser)]
#[command(name = "fedgenie", version, arg_required_else_help = true)]
pub struct Words {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs a scenario: policies × seeds × the points of its sweep.
    Run(RunWords),
    /// Replays a folder written by `run --out` and names the first difference, if any.
    Verify(VerifyWords),
    /// Makes a report of one or several result folders: a page for a browser, pictures for a paper, or their data.
    Report(ReportWords),
    /// Checks claims of papers and theorems against simulations, and says which the data support.
    Validate(ValidateWords),
    /// Lists what scenarios can name: policies, laws, tasks, data, models, optimizers, protocols, sections, ….
    List {
        /// Only this kind.
        kind: Option<String>,
    },
    /// Describes one component: definition, inputs, source, deviations, parameters.
    Describe {
        /// For example policy/bsfl or law/lognormal.
        component: String,
    },
    /// Prints the JSON schema of scenario files.
    Schema,
    /// Writes a commented scenario to start from.
    New {
        /// The file to write; it must not exist.
        file: PathBuf,
        /// A scenario in which clients learn, in the place of a pure bandit.
        #[arg(long)]
        learning: bool,
    },
}

#[derive(Debug, Args)]
struct RunWords {
    /// The scenario file, TOML or JSON.
    scenario: PathBuf,
    /// Writes records, summary and figures into this folder, which has to be new or empty.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Runs seeds 1 to N instead of the scenario's.
    #[arg(long, value_name = "N")]
    seeds: Option<u32>,
    /// Overrides a value of the scenario; may be repeated.
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// Folder in which relative data paths are looked for, instead of the scenario's.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Number of threads; 0, or nothing given, for as many as cores. Changes no result.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    threads: usize,
    /// Writes every event to events.jsonl.gz; needs --out.
    #[arg(long, requires = "out")]
    events: bool,
    /// Writes each run in virtual time to timeline.json.gz, which <https://ui.perfetto.dev> opens; needs --out.
    #[arg(long, requires = "out")]
    timeline: bool,
    /// Limits the timeline to rounds A to B.
    #[arg(long, value_name = "A..B", requires = "timeline")]
    timeline_rounds: Option<String>,
    /// How events of the same instant and class are ordered: fifo, or shuffle:SEED to see what depends on it.
    #[arg(long, value_name = "ORDER")]
    ties: Option<String>,
    /// Writes each run's final model to model.safetensors, under the names of PyTorch; needs --out.
    #[arg(long, requires = "out")]
    models: bool,
    /// Carries out only runs I, I+N, I+2N, … of the experiment, I from 0; needs --out.
    #[arg(long, value_name = "I/N", requires = "out")]
    shard: Option<String>,
    /// Keeps the runs that are complete in the folder of --out, and does the others.
    #[arg(long, requires = "out")]
    resume: bool,
    /// Deletes the experiment that the folder of --out holds, if any, before it writes.
    #[arg(long, requires = "out", conflicts_with_all = ["resume", "shard"])]
    overwrite: bool,
    /// Shows no progress.
    #[arg(long)]
    quiet: bool,
    /// Prints the summary as one JSON document instead of a table.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct ReportWords {
    /// Folders written by `run --out`; policies of several are labelled FOLDER: policy.
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// Where to write: a file for html, a folder for svg and csv. Without it report.html or figures/ in DIR; with several
    /// folders, here.
    #[arg(long, short, value_name = "FILE|DIR")]
    out: Option<PathBuf>,
    /// What to write: html, one page; svg or csv, one file for each figure.
    #[arg(long, value_name = "FORMAT", default_value = "html")]
    format: String,
}

#[derive(Debug, Args)]
struct VerifyWords {
    /// A folder written by `run --out`.
    folder: PathBuf,
    /// Folder in which relative data paths are looked for.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Number of threads; 0, or nothing given, for as many as cores.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    threads: usize,
    /// Prints the verdict as one JSON document.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct ValidateWords {
    /// Only these claims; all, if none is named.
    names: Vec<String>,
    /// A small budget: about a minute for all claims, enough to see that everything works.
    #[arg(long)]
    smoke: bool,
    /// The folder of claims; validation/claims, if left out.
    #[arg(long, value_name = "DIR")]
    claims: Option<PathBuf>,
    /// Writes tables, explanations and details into this file; RESULTS.md beside the folder of claims, if all claims are checked
    /// with the full budget.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Folder in which relative data paths are looked for.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Number of threads; 0, or nothing given, for as many as cores.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    threads: usize,
    /// Shows no progress.
    #[arg(long)]
    quiet: bool,
    /// Prints the results as one JSON document.
    #[arg(long)]
    json: bool,
}

/// Carries out a command and returns the exit code.
///
/// # Errors
/// What ended the command.
pub fn execute(words: Words) -> Result<u8, Error> {
    match words.command {
        Command::Run(words) => run::run(&words),
        Command::Verify(words) => verify::verify(&words),
        Command::Report(words) => report::report(&words),
        Command::Validate(words) => validate::validate(&words),
        Command::List { kind } => catalogue::list(kind.as_deref()),
        Command::Describe { component } => catalogue::describe(&component),
        Command::Schema => {
            print(&format!("{:#}\n", fedgenie::scenario::schema::schema()))?;
            Ok(0)
        }
        Command::New { file, learning } => new::new(&file, learning),
    }
}

/// Prints a result; a closed pipe is no error.
fn print(text: &str) -> Result<(), Error> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(source) if source.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::Write { path: PathBuf::from("standard output"), source })
        }
        _ => Ok(()),
    }
}
