//! The command line: arguments to library calls, results to stdout, messages to stderr, outcomes to exit codes.

mod catalogue;
mod cpu;
mod diff;
mod examples;
mod export;
mod fit;
mod interruption;
mod new;
mod progress;
mod report;
mod run;
mod traces;
mod validate;
mod verify;

use clap::{Args, CommandFactory, Parser, Subcommand};
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
/// Exit codes: 0 good; 1 a check failed (verify found a difference or a missing run, a claim got an unexpected verdict,
/// a file of a result folder was changed); 2 bad usage or bad input; 3 a run failed, or the disk or standard output is
/// full; 4 a defect of FedGenie; 129, 130 and 143 interrupted (SIGHUP, Ctrl-C, SIGTERM).
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

#[derive(Debug, Subcommand)]
enum TracesCommand {
    /// Makes tables that scenarios read of trace files as they are published.
    Convert(ConvertArguments),
}

#[derive(Debug, Args)]
struct ConvertArguments {
    /// The set, as `fedgenie traces` names it.
    kind: String,
    /// Its files.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The folder for the tables.
    #[arg(long, short, value_name = "DIR", default_value = "traces")]
    out: PathBuf,
}

#[derive(Debug, Args)]
struct RunArguments {
    /// The scenario file, TOML or JSON.
    scenario: PathBuf,
    /// Writes records, summary and figures into this folder, which must be new or empty.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Runs seeds 1 to N instead of the scenario's.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    seeds: Option<String>,
    /// Overrides a value of the scenario, or with nothing after = takes it away; may be repeated.
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// Adds a policy or a task written in Python: the class of a module in the current folder or on Python's path; may
    /// be repeated. For the command of the Python package.
    #[arg(long, value_name = "NAME=MODULE:CLASS")]
    with: Vec<String>,
    /// Compares the policies with this one instead of the scenario's reference.
    #[arg(long, value_name = "NAME")]
    reference: Option<String>,
    /// Folder that relative data paths start from, instead of the scenario's folder.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Lets the scenario read files that lie neither below its folder nor below that of --data.
    #[arg(long)]
    allow_paths: bool,
    /// Number of threads; by default, or with 0, one per core. Results do not depend on it.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    threads: Option<String>,
    /// Writes every event to events.jsonl.gz; needs --out.
    #[arg(long, requires = "out")]
    events: bool,
    /// Writes the timeline of each run to timeline.json.gz, which <https://ui.perfetto.dev> shows; needs --out.
    #[arg(long, requires = "out")]
    timeline: bool,
    /// Limits the timeline to rounds A to B.
    #[arg(long, value_name = "A..B", requires = "timeline")]
    timeline_rounds: Option<String>,
    /// Order of events of the same instant and class: fifo, or shuffle:SEED to see which results depend on it.
    #[arg(long, value_name = "ORDER")]
    ties: Option<String>,
    /// Writes each run's final model to model.safetensors, with PyTorch's parameter names; needs --out.
    #[arg(long, requires = "out")]
    models: bool,
    /// Runs only part I of N of the experiment, I from 0 to N-1; needs --out. All parts may run at once in one folder.
    #[arg(long, value_name = "I/N", requires = "out")]
    shard: Option<String>,
    /// How often a run is saved on its way, so that --resume goes on in the middle of it: by wall time ("60 s", the
    /// default), by rounds ("500 rounds"), or off; needs --out. Results do not depend on it.
    #[arg(long, value_name = "EVERY", requires = "out")]
    checkpoint: Option<String>,
    /// Continues the experiment in the folder of --out: keeps its complete runs and makes the missing ones.
    #[arg(long, requires = "out")]
    resume: bool,
    /// With --resume or --shard: keeps runs of another build of FedGenie whose first rounds (one in fifty, at least
    /// one) replay to the same digests, and makes the others anew. Without it such a folder is refused.
    #[arg(long, requires = "out", conflicts_with = "overwrite")]
    accept_checked: bool,
    /// Deletes the experiment in the folder of --out first, if there is one; other files in the folder stay.
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
struct ReportArguments {
    /// Folders written by `run --out`; policies of several are labelled FOLDER: policy.
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// Where to write: a file for html, a folder for the others. By default report.html or figures/ in DIR; with
    /// several DIRs, in the current folder.
    #[arg(long, short, value_name = "FILE|DIR")]
    out: Option<PathBuf>,
    /// Compares the policies with this one instead of the scenario's reference.
    #[arg(long, value_name = "NAME")]
    reference: Option<String>,
    /// html for one page; svg, pdf or csv for one file per figure, csv also for one per table; md or latex for the
    /// tables alone: headline, results and verdicts.
    #[arg(long, value_name = "FORMAT", default_value = "html")]
    format: String,
    /// Columns of the headline table, separated by commas: keys of `values` in summary.json, such as "time_to.test_loss
    /// <= 1.8", or headings; by default those of [report], or the main quantities.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    columns: Vec<String>,
    /// Adds ratios to this policy's values to the headline table.
    #[arg(long, value_name = "NAME")]
    ratio_to: Option<String>,
    /// Significant digits of the headline table, from 1 to 15; by default numbers are rounded to their interval.
    #[arg(long, value_name = "N")]
    digits: Option<String>,
    /// Writes only the figure of this name, as svg, pdf or csv; names are those of the files.
    #[arg(long, value_name = "NAME")]
    figure: Option<String>,
    /// The heading of svg and pdf figures, instead of the figure's own and the report's title; "" for none.
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// The width of svg and pdf figures in pixels, from 300 to 4000; 860 if left out.
    #[arg(long, value_name = "PIXELS")]
    width: Option<u32>,
    /// The height of svg and pdf figures with lines in pixels, from 200 to 4000; 480 if left out. Others are as high as
    /// their rows.
    #[arg(long, value_name = "PIXELS")]
    height: Option<u32>,
    /// The ends of the vertical axis of a figure of lines, as 0.5:1; x=0:200 those of its horizontal one.
    #[arg(long, value_name = "[AXIS=]LOW:HIGH", allow_hyphen_values = true)]
    range: Vec<String>,
    /// The family of fonts of svg and pdf figures: sans-serif, serif or monospace.
    #[arg(long, value_name = "FAMILY")]
    font: Option<String>,
    /// Puts the legends of svg and pdf figures below their plots.
    #[arg(long)]
    legend_below: bool,
    /// Accepts changed files as they are, and names them among the warnings.
    #[arg(long)]
    allow_changed: bool,
}

#[derive(Debug, Args)]
struct ExportArguments {
    /// Folders written by `run --out`.
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// The form of the tables: csv or parquet; or tensorboard for the numbers of rounds as events, in virtual time.
    #[arg(long, value_name = "FORMAT")]
    to: String,
    /// The folder for the tables runs, rounds, targets, controls, clients and comparisons, and for datapackage.json,
    /// their dictionary; events and jobs as well, where events were recorded. None of these may exist there. By default
    /// export.
    #[arg(long, short, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Accepts changed files as they are, and names them in the column `changed`.
    #[arg(long)]
    allow_changed: bool,
}

#[derive(Debug, Args)]
struct DiffArguments {
    /// A folder written by `run --out`.
    #[arg(value_name = "A")]
    one: PathBuf,
    /// Another; differences are its results minus those of A.
    #[arg(value_name = "B")]
    other: PathBuf,
    /// Prints the differences as one JSON document.
    #[arg(long)]
    json: bool,
    /// Accepts changed files as they are, and names them.
    #[arg(long)]
    allow_changed: bool,
}

#[derive(Debug, Args)]
struct VerifyArguments {
    /// A folder written by `run --out`.
    folder: PathBuf,
    /// A policy or a task written in Python that took part, as for `run`; may be repeated.
    #[arg(long, value_name = "NAME=MODULE:CLASS")]
    with: Vec<String>,
    /// Folder that relative data paths start from.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Lets the scenario read files that lie neither below its folder nor below that of --data.
    #[arg(long)]
    allow_paths: bool,
    /// Number of threads; by default, or with 0, one per core.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    threads: Option<String>,
    /// Prints the verdict as one JSON document.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct ValidateArguments {
    /// Names of the claims to test; by default all.
    names: Vec<String>,
    /// Uses a small budget, about a minute for all claims: it shows that everything works, and decides nothing.
    #[arg(long)]
    smoke: bool,
    /// The folder of claims; by default validation/claims.
    #[arg(long, value_name = "DIR")]
    claims: Option<PathBuf>,
    /// A policy or a task written in Python that the claims' scenarios use, as for `run`; may be repeated.
    #[arg(long, value_name = "NAME=MODULE:CLASS")]
    with: Vec<String>,
    /// Keeps finished runs in this folder, and takes those that are there, so that an interrupted validation goes on
    /// where it stopped; tables, explanations and details go into RESULTS.md there. A name that ends in .md is a file
    /// for these alone. If all claims are tested with the full budget, they are also written into RESULTS.md beside the
    /// folder of claims, unless a file is named.
    #[arg(long, value_name = "DIR|FILE.md")]
    out: Option<PathBuf>,
    /// Takes runs of another build of FedGenie from the folder of --out as well, if their first rounds (one in fifty,
    /// at least one) replay to the same digests; without it they are made anew.
    #[arg(long, requires = "out")]
    accept_checked: bool,
    /// Folder that relative data paths start from.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Lets scenarios read files that lie neither below their folder nor below that of --data.
    #[arg(long)]
    allow_paths: bool,
    /// Number of threads; by default, or with 0, one per core.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    threads: Option<String>,
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
fn execute(arguments: Arguments, host: &dyn Host) -> Result<u8, Error> {
    interruption::outlive_limits_of_files();
    match arguments.command {
        Command::Run(arguments) => run::run(&arguments, host),
        Command::Verify(arguments) => verify::verify(&arguments, host),
        Command::Report(arguments) => report::report(&arguments),
        Command::Diff(arguments) => diff::diff(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::Fit(arguments) => fit::run(&arguments),
        Command::Validate(arguments) => validate::validate(&arguments, host),
        Command::List { kind } if kind.as_deref() == Some("cpu") => print(&cpu::list()).map(|()| 0),
        Command::List { kind } => catalogue::list(kind.as_deref()),
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
