//! The command line: arguments to library calls, results to stdout, messages to stderr, outcomes to exit codes.

mod amounts;
mod arguments;
mod catalogue;
mod cpu;
mod diff;
mod dry_run;
mod examples;
mod export;
mod fit;
mod interruption;
mod merge;
mod new;
mod plan;
mod progress;
mod report;
mod run;
mod shard;
mod traces;
mod validate;
mod verify;

use arguments::{
    ConvertArguments, DiffArguments, ExportArguments, MergeArguments, ReportArguments, RunArguments, TracesCommand,
    ValidateArguments, VerifyArguments,
};
use clap::{CommandFactory, Parser, Subcommand};
use fedgenie::error::{DEFECT, Error};
use fedgenie::experiment::Threads;
use fedgenie::experiment::stored::Notice;
use fedgenie::limits;
use fedgenie::scenario::Kinds;
use fedgenie::text::{escaped_json, escaped_lines, message};
use std::ffi::OsString;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::OnceLock;

/// A deterministic simulator of federated learning under client selection, with exact regret against a genie.
///
/// Exit codes: 0 good; 1 a check failed (verify found a difference or a missing run, merge lacks some, a claim got an
/// unexpected verdict, a file of a result folder was changed); 2 bad usage or bad input; 3 a run failed, or the disk or
/// standard output is full; 4 a defect of FedGenie; 129, 130 and 143 interrupted (SIGHUP, Ctrl-C, SIGTERM).
#[derive(Debug, Parser)]
#[command(name = "fedgenie", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs a scenario: policies × seeds × the points of its sweep.
    Run(RunArguments),
    /// Replays a folder written by `run --out`; names the first difference and missing runs, if any.
    Verify(VerifyArguments),
    /// Puts folders of parts of an experiment together: the folder that one process would have written.
    Merge(MergeArguments),
    /// Makes a report of one or several result folders: a page for a browser, figures for a paper, or their data.
    Report(ReportArguments),
    /// Compares two result folders: differences of their scenarios, then of their results, with intervals.
    Diff(DiffArguments),
    /// Writes runs, rounds, targets, controls, clients and comparisons of folders as tidy tables for a data frame.
    Export(ExportArguments),
    /// Fits a fleet to a log of jobs: groups of clients, laws of their phases, losses, as a scenario.
    Fit(fit::FitArguments),
    /// Tests claims of papers and theorems by simulation and gives each a verdict.
    Validate(ValidateArguments),
    /// Lists everything that a scenario can name: policies, laws, tasks, data, models, protocols, sections and more;
    /// `list cpu` shows the detected processor.
    List {
        /// Only this kind.
        kind: Option<String>,
        /// Of each component what it needs, what it costs and where it is from.
        #[arg(long, requires = "kind")]
        needs: bool,
    },
    /// Describes one component: definition, inputs, source, deviations, parameters.
    Describe {
        /// For example policy/bsfl or law/lognormal.
        component: String,
    },
    /// Prints the JSON schema of scenario files.
    Schema,
    /// Lists the scenarios in this program, or writes one into the current folder.
    Examples {
        /// For example quickstart or studies/deadline; all are listed without it.
        name: Option<String>,
    },
    /// Prints what a shell needs to complete commands and options.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Lists published traces of devices: their authors, addresses and files; `traces convert` makes tables of them.
    Traces {
        #[command(subcommand)]
        command: Option<TracesCommand>,
    },
    /// Writes a commented scenario to start from.
    New {
        /// The file to write; it must not exist.
        file: PathBuf,
        /// Writes a scenario in which clients train a model, instead of a bandit problem without training.
        #[arg(long)]
        learning: bool,
    },
}

/// Carries out a command and returns the exit code.
///
/// # Errors
/// What ended the command.
fn execute(arguments: Arguments, host: &dyn Host) -> Result<u8, Error> {
    interruption::outlive_limits_of_files();
    match arguments.command {
        Command::Run(arguments) => run::run(&arguments, host),
        Command::Verify(arguments) => verify::verify(&arguments, host),
        Command::Merge(arguments) => merge::run(&arguments, host),
        Command::Report(arguments) => report::report(&arguments),
        Command::Diff(arguments) => diff::diff(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::Fit(arguments) => fit::run(&arguments),
        Command::Validate(arguments) => validate::validate(&arguments, host),
        Command::List { kind, .. } if kind.as_deref() == Some("cpu") => print(&cpu::list()).map(|()| 0),
        Command::List { kind, needs } => catalogue::list(kind.as_deref(), needs),
        Command::Describe { component } => catalogue::describe(&component),
        Command::Schema => {
            print(&format!("{:#}\n", fedgenie::scenario::schema::schema()))?;
            Ok(0)
        }
        Command::Examples { name } => examples::examples(name.as_deref()),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "fedgenie", &mut script);
            let written = std::io::stdout().lock().write_all(&script);
            written.err().and_then(printed).map_or(Ok(0), Err)
        }
        Command::Traces { command: None } => traces::list(),
        Command::Traces { command: Some(TracesCommand::Convert(arguments)) } => traces::write(&arguments),
        Command::New { file, learning } => new::new(&file, learning),
    }
}

/// The whole number of an option, from `least` to `most`.
fn whole_number(option: &str, written: &str, (least, most): (usize, usize)) -> Result<usize, Error> {
    let found = written.parse().ok().filter(|number| (least..=most).contains(number));
    found.ok_or_else(|| no_number(option, written, (least, most)))
}

fn no_number(option: &str, written: &str, (least, most): (usize, usize)) -> Error {
    Error::Usage(format!("found --{option} {written}; expected a whole number from {least} to {most}"))
}

/// The threads of a command; as many as there are cores by default.
fn threads_of(written: Option<&str>, host: &dyn Host) -> Result<Threads, Error> {
    let Some(written) = written else { return host.threads(0) };
    host.threads(written.parse().map_err(|_| no_number("threads", written, (0, limits::THREADS)))?)
}

/// Prints a notice about a result folder, and its remedy.
fn tell(notice: &Notice) {
    say(&format!("fedgenie: warning: {}", message(&notice.advice())));
}

/// Prints a JSON document.
fn print_json(document: &str) -> Result<(), Error> {
    print(&format!("{}\n", escaped_json(document)))
}

/// Prints a result; a closed pipe is no error. Names in it that a terminal would obey are escaped.
fn print(text: &str) -> Result<(), Error> {
    let mut output = std::io::stdout().lock();
    let written = output.write_all(escaped_lines(text).as_bytes()).and_then(|()| output.flush());
    written.or_else(|source| printed(source).map_or(Ok(()), Err))
}

/// Lines with an empty one before them; nothing if there are none.
fn paragraph(lines: &[String]) -> String {
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

/// The error of a result that could not be printed; `None` if its reader has gone.
fn printed(source: std::io::Error) -> Option<Error> {
    let is_closed = source.kind() == std::io::ErrorKind::BrokenPipe;
    (!is_closed).then(|| Error::Write { path: PathBuf::from("standard output"), source })
}

/// Writes lines to standard error, without terminal controls. If that fails, nothing more can be done.
pub fn say(text: &str) {
    let _ = std::io::stderr().write_all(format!("{}\n", escaped_lines(text)).as_bytes());
}

/// The program that the command is a part of.
pub trait Host {
    /// Policies and tasks by name and place, such as `module:Class`, of the option `--with`.
    ///
    /// # Errors
    /// If one is not found.
    fn find(&self, _named: &[(String, String)]) -> Result<Kinds, Error> {
        let how = "`pip install .` in a clone of FedGenie";
        Err(Error::Usage(format!("--with is for the command of the Python package, which {how} installs")))
    }

    /// Threads on which they can be called.
    ///
    /// # Errors
    /// As [`Threads::new`].
    fn threads(&self, count: usize) -> Result<Threads, Error> {
        Threads::new(count)
    }
}

/// A program of the command alone.
pub struct Alone;

impl Host for Alone {}

/// The policies and tasks that `--with` names.
fn kinds_of(with: &[String], host: &dyn Host) -> Result<Kinds, Error> {
    let split = |named: &String| match named.split_once('=') {
        Some((name, place)) => Ok((name.trim().to_owned(), place.trim().to_owned())),
        None => {
            Err(Error::Usage(format!("found --with {named:?}; expected NAME=MODULE:CLASS, such as mine=policies:Mine")))
        }
    };
    match with {
        [] => Ok(Kinds::default()),
        with => host.find(&with.iter().map(split).collect::<Result<Vec<_>, _>>()?),
    }
}

/// The exit code of a violated invariant.
const VIOLATED: u8 = 4;

/// The words of the command line, for messages that repeat it.
static WORDS: OnceLock<Vec<OsString>> = OnceLock::new();

fn words() -> impl Iterator<Item = OsString> {
    WORDS.get().into_iter().flatten().cloned()
}

/// Carries out the command that these words are, the program's name first. Returns the exit code. A process has one
/// command.
pub fn main(words: impl Iterator<Item = OsString>, host: &dyn Host) -> u8 {
    let words = WORDS.get_or_init(|| words.collect());
    match catch_unwind(AssertUnwindSafe(|| read(words)?.map_or_else(Ok, |arguments| execute(arguments, host)))) {
        Ok(Ok(code)) => code,
        Ok(Err(error)) => {
            say(&format!("fedgenie: error: {}", message(&error.to_string())));
            error.exit_code()
        }
        // The panic's own message is on standard error already.
        Err(_) => {
            say(&format!("fedgenie: error: {DEFECT}"));
            VIOLATED
        }
    }
}

/// Reads the arguments; text printed in the place of a command (help, version, errors) gives the exit code.
///
/// # Errors
/// If help or version cannot be printed.
fn read(words: &[OsString]) -> Result<Result<Arguments, u8>, Error> {
    let error = match Arguments::try_parse_from(words) {
        Ok(arguments) => return Ok(Ok(arguments)),
        Err(error) => error,
    };
    // Help and version are answers, not errors.
    if error.use_stderr() {
        say(&format!("fedgenie: {}", message(&error.render().to_string())));
        return Ok(Err(2));
    }
    let written = error.print().and_then(|()| std::io::stdout().flush());
    written.err().and_then(printed).map_or(Ok(Err(0)), Err)
}
