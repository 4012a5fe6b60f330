//! The arguments of the commands.

use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(super) enum TracesCommand {
    /// Makes tables that scenarios read of trace files as they are published.
    Convert(ConvertArguments),
}

#[derive(Debug, Args)]
pub(super) struct ConvertArguments {
    /// The set, as `fedgenie traces` names it.
    pub(super) kind: String,
    /// Its files.
    #[arg(required = true)]
    pub(super) files: Vec<PathBuf>,
    /// The folder for the tables.
    #[arg(long, short, value_name = "DIR", default_value = "traces")]
    pub(super) out: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct RunArguments {
    /// The scenario file, TOML or JSON.
    pub(super) scenario: PathBuf,
    /// Writes records, summary and figures into this folder, which must be new or empty.
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Runs seeds 1 to N instead of the scenario's.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(super) seeds: Option<String>,
    /// Overrides a value of the scenario, or with nothing after = takes it away; may be repeated.
    #[arg(long, value_name = "PATH=VALUE")]
    pub(super) set: Vec<String>,
    /// Adds a policy or a task written in Python: the class of a module in the current folder or on Python's path; may
    /// be repeated. For the command of the Python package.
    #[arg(long, value_name = "NAME=MODULE:CLASS")]
    pub(super) with: Vec<String>,
    /// Compares the policies with this one instead of the scenario's reference.
    #[arg(long, value_name = "NAME")]
    pub(super) reference: Option<String>,
    /// Folder that relative data paths start from, instead of the scenario's folder.
    #[arg(long, value_name = "DIR")]
    pub(super) data: Option<PathBuf>,
    /// Lets the scenario read files that lie neither below its folder nor below that of --data.
    #[arg(long)]
    pub(super) allow_paths: bool,
    /// Number of threads; by default, or with 0, one per core. Results do not depend on it.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(super) threads: Option<String>,
    /// Writes every event to events.jsonl.gz; needs --out.
    #[arg(long, requires = "out")]
    pub(super) events: bool,
    /// Writes the timeline of each run to timeline.json.gz, which <https://ui.perfetto.dev> shows; needs --out.
    #[arg(long, requires = "out")]
    pub(super) timeline: bool,
    /// Limits the timeline to rounds A to B.
    #[arg(long, value_name = "A..B", requires = "timeline")]
    pub(super) timeline_rounds: Option<String>,
    /// Adds seeds, instead of the scenario's, until the first answer is decided, or there are N (100 without it): the
    /// best is told apart from each other, or equal to it within --margin. `describe value/seeds` has the rule.
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "100")]
    #[arg(conflicts_with_all = ["seeds", "shard"])]
    pub(super) until_decided: Option<String>,
    /// With --until-decided: the largest difference that counts as none, in the unit of the quantity.
    #[arg(long, value_name = "DIFFERENCE", requires = "until_decided", conflicts_with = "seeds")]
    pub(super) margin: Option<String>,
    /// Order of events of the same instant and class: fifo, or shuffle:SEED to see which results depend on it.
    #[arg(long, value_name = "ORDER")]
    pub(super) ties: Option<String>,
    /// Writes each run's final model to model.safetensors, with PyTorch's parameter names; needs --out.
    #[arg(long, requires = "out")]
    pub(super) models: bool,
    /// Runs only part I of N of the experiment, I from 0 to N-1; needs --out. All parts may run at once in one folder,
    /// or in folders of their own for `merge`. auto takes the part from the task of a Slurm array, or from
    /// JOB_COMPLETION_INDEX of Kubernetes and FEDGENIE_SHARDS.
    #[arg(long, value_name = "I/N", requires = "out")]
    pub(super) shard: Option<String>,
    /// How often a run is saved on its way, so that --resume goes on in the middle of it: by wall time ("60 s", the
    /// default), by rounds ("500 rounds"), or off; needs --out. Results do not depend on it.
    #[arg(long, value_name = "EVERY", requires = "out")]
    pub(super) checkpoint: Option<String>,
    /// Continues the experiment in the folder of --out: keeps its complete runs and makes the missing ones.
    #[arg(long, requires = "out")]
    pub(super) resume: bool,
    /// With --resume or --shard: keeps runs of another build of FedGenie whose first rounds (one in fifty, at least
    /// one) replay to the same digests, and makes the others anew. Without it such a folder is refused.
    #[arg(long, requires = "out", conflicts_with = "overwrite")]
    pub(super) accept_checked: bool,
    /// Deletes the experiment in the folder of --out first, if there is one; other files in the folder stay.
    #[arg(long, requires = "out", conflicts_with_all = ["resume", "shard"])]
    pub(super) overwrite: bool,
    /// Says what the experiment would cost and carries nothing out: runs, rounds, trainings, evaluations, memory, disk,
    /// and the wall time on this machine after a trial of about a second. Nothing is written into the folder of --out.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Shows no progress.
    #[arg(long)]
    pub(super) quiet: bool,
    /// Prints the summary, or with --dry-run the forecast, as one JSON document instead of a table.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct MergeArguments {
    /// The new folder.
    pub(super) out: PathBuf,
    /// Folders that `run --shard --out` wrote, also such as were not finished: what they lack is named.
    #[arg(required = true, value_name = "DIR")]
    pub(super) folders: Vec<PathBuf>,
    /// A policy or a task written in Python that took part, as for `run`; may be repeated.
    #[arg(long, value_name = "NAME=MODULE:CLASS")]
    pub(super) with: Vec<String>,
    /// Folder that relative data paths start from.
    #[arg(long, value_name = "DIR")]
    pub(super) data: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct ReportArguments {
    /// Folders written by `run --out`; policies of several are labelled FOLDER: policy.
    #[arg(required = true, value_name = "DIR")]
    pub(super) folders: Vec<PathBuf>,
    /// Where to write: a file for html, a folder for the others. By default report.html or figures/ in DIR; with
    /// several DIRs, in the current folder.
    #[arg(long, short, value_name = "FILE|DIR")]
    pub(super) out: Option<PathBuf>,
    /// Compares the policies with this one instead of the scenario's reference.
    #[arg(long, value_name = "NAME")]
    pub(super) reference: Option<String>,
    /// html for one page; svg, pdf or csv for one file per figure, csv also for one per table; md or latex for the
    /// tables alone: headline, results and verdicts.
    #[arg(long, value_name = "FORMAT", default_value = "html")]
    pub(super) format: String,
    /// Columns of the headline table, separated by commas: keys of `values` in summary.json, such as "time_to.test_loss
    /// <= 1.8", or headings; by default those of [report], or the main quantities.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(super) columns: Vec<String>,
    /// Adds ratios to this policy's values to the headline table.
    #[arg(long, value_name = "NAME")]
    pub(super) ratio_to: Option<String>,
    /// Significant digits of the headline table, from 1 to 15; by default numbers are rounded to their interval.
    #[arg(long, value_name = "N")]
    pub(super) digits: Option<String>,
    /// Writes only the figure of this name, as svg, pdf or csv; names are those of the files.
    #[arg(long, value_name = "NAME")]
    pub(super) figure: Option<String>,
    /// The heading of svg and pdf figures, instead of the figure's own and the report's title; "" for none.
    #[arg(long, value_name = "TEXT")]
    pub(super) title: Option<String>,
    /// The width of svg and pdf figures in pixels, from 300 to 4000; 860 if left out.
    #[arg(long, value_name = "PIXELS")]
    pub(super) width: Option<u32>,
    /// The height of svg and pdf figures with lines in pixels, from 200 to 4000; 480 if left out. Others are as high as
    /// their rows.
    #[arg(long, value_name = "PIXELS")]
    pub(super) height: Option<u32>,
    /// The ends of the vertical axis of a figure of lines, as 0.5:1; x=0:200 those of its horizontal one.
    #[arg(long, value_name = "[AXIS=]LOW:HIGH", allow_hyphen_values = true)]
    pub(super) range: Vec<String>,
    /// The family of fonts of svg and pdf figures: sans-serif, serif or monospace.
    #[arg(long, value_name = "FAMILY")]
    pub(super) font: Option<String>,
    /// Puts the legends of svg and pdf figures below their plots.
    #[arg(long)]
    pub(super) legend_below: bool,
    /// Accepts changed files as they are, and names them among the warnings.
    #[arg(long)]
    pub(super) allow_changed: bool,
}

#[derive(Debug, Args)]
pub(super) struct ExportArguments {
    /// Folders written by `run --out`.
    #[arg(required = true, value_name = "DIR")]
    pub(super) folders: Vec<PathBuf>,
    /// The form of the tables: csv or parquet; or tensorboard for the numbers of rounds as events, in virtual time.
    #[arg(long, value_name = "FORMAT")]
    pub(super) to: String,
    /// The folder for the tables runs, rounds, targets, controls, clients and comparisons, and for datapackage.json,
    /// their dictionary; events and jobs as well, where events were recorded. None of these may exist there. By default
    /// export.
    #[arg(long, short, value_name = "FOLDER")]
    pub(super) out: Option<PathBuf>,
    /// Accepts changed files as they are, and names them in the column `changed`.
    #[arg(long)]
    pub(super) allow_changed: bool,
}

#[derive(Debug, Args)]
pub(super) struct DiffArguments {
    /// A folder written by `run --out`.
    #[arg(value_name = "A")]
    pub(super) one: PathBuf,
    /// Another; differences are its results minus those of A.
    #[arg(value_name = "B")]
    pub(super) other: PathBuf,
    /// Prints the differences as one JSON document.
    #[arg(long)]
    pub(super) json: bool,
    /// Accepts changed files as they are, and names them.
    #[arg(long)]
    pub(super) allow_changed: bool,
}

#[derive(Debug, Args)]
pub(super) struct VerifyArguments {
    /// A folder written by `run --out`.
    pub(super) folder: PathBuf,
    /// A policy or a task written in Python that took part, as for `run`; may be repeated.
    #[arg(long, value_name = "NAME=MODULE:CLASS")]
    pub(super) with: Vec<String>,
    /// Folder that relative data paths start from.
    #[arg(long, value_name = "DIR")]
    pub(super) data: Option<PathBuf>,
    /// Lets the scenario read files that lie neither below its folder nor below that of --data.
    #[arg(long)]
    pub(super) allow_paths: bool,
    /// Number of threads; by default, or with 0, one per core.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(super) threads: Option<String>,
    /// Prints the verdict as one JSON document.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct ValidateArguments {
    /// Names of the claims to test; by default all.
    pub(super) names: Vec<String>,
    /// Chooses settings by the grid of this name in the folder tuning beside that of claims, with one policy alone and
    /// by validation data, and writes choice and values into NAME.chosen.toml there.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["names", "smoke", "json"])]
    pub(super) tune: Option<String>,
    /// Carries nothing out, and writes PAPERS.md and PAPERS.html beside the claims' folder anew from the kept results.
    #[arg(long, conflicts_with_all = ["names", "smoke", "json", "accept_checked", "tune", "out"])]
    pub(super) pages: bool,
    /// Carries nothing out, and judges kept numbers by the claims as they are written now: sentences, papers' values,
    /// tables, bounds and explanations. What a claim asks for beyond them is an error.
    #[arg(long, conflicts_with_all = ["smoke", "json", "accept_checked", "tune", "pages", "plan", "out"])]
    pub(super) rejudge: bool,
    /// Carries nothing out, and says what each claim would cost on this machine, and what it may decide.
    #[arg(long, conflicts_with_all = ["accept_checked", "tune", "pages"])]
    pub(super) plan: bool,
    /// Uses a small budget, about a minute for all claims: it shows that everything works, and decides nothing.
    #[arg(long)]
    pub(super) smoke: bool,
    /// The folder of claims; by default validation/claims.
    #[arg(long, value_name = "DIR")]
    pub(super) claims: Option<PathBuf>,
    /// A policy or a task written in Python that the claims' scenarios use, as for `run`; may be repeated.
    #[arg(long, value_name = "NAME=MODULE:CLASS")]
    pub(super) with: Vec<String>,
    /// Keeps finished runs in this folder, and takes those that are there, so that an interrupted validation goes on
    /// where it stopped; tables, explanations and details go into RESULTS.md there. A name that ends in .md is a file
    /// for these alone. If all claims are tested with the full budget, they are also written into RESULTS.md beside the
    /// folder of claims, unless a file is named.
    #[arg(long, value_name = "DIR|FILE.md")]
    pub(super) out: Option<PathBuf>,
    /// Takes runs of another build of FedGenie from the folder of --out as well, if their first rounds (one in fifty,
    /// at least one) replay to the same digests; without it they are made anew.
    #[arg(long, requires = "out")]
    pub(super) accept_checked: bool,
    /// Folder that relative data paths start from.
    #[arg(long, value_name = "DIR")]
    pub(super) data: Option<PathBuf>,
    /// Lets scenarios read files that lie neither below their folder nor below that of --data.
    #[arg(long)]
    pub(super) allow_paths: bool,
    /// Number of threads; by default, or with 0, one per core.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(super) threads: Option<String>,
    /// Shows no progress.
    #[arg(long)]
    pub(super) quiet: bool,
    /// Prints the results as one JSON document.
    #[arg(long)]
    pub(super) json: bool,
}
