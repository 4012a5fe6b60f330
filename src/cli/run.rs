//! `fedgenie run`

use super::dry_run;
use super::interruption::{Interruption, how_to_report, resumption};
use super::progress::Show;
use super::shard::shard_of;
use super::{Host, RunArguments, kinds_of, paragraph, print, print_json, say, threads_of, whole_number, words};
use fedgenie::error::Error;
use fedgenie::experiment::{
    Conclusion, Earlier, Experiment, INTERVAL_SEEDS, Interval, Outcome, Overrides, Progress, ROUNDS_PER_LOOK, RunId,
    RunOptions, Shard, Summary, Threads,
    answers::{self, Told},
    artefacts,
    shelf::Shelf,
    table, warnings,
};
use fedgenie::id::Round;
use fedgenie::limits;
use fedgenie::recorder::RunFileOptions;
use fedgenie::report::write_with_records;
use fedgenie::text::{self, escaped, message};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::ops::RangeInclusive;
use std::path::Path as Folder;
use std::sync::Arc;

/// Most runs that are named.
const SHOWN: usize = 5;

pub fn run(arguments: &RunArguments, host: &dyn Host) -> Result<u8, Error> {
    let files = RunFileOptions { events: arguments.events, timeline: timeline_of(arguments)? };
    let checkpoint = arguments.checkpoint.as_deref().map_or(Ok(Interval::default()), str::parse)?;
    let how = how_to_resume(arguments);
    let interruption = Interruption::watch(how.clone()).map_err(|error| Error::Threads(error.to_string()))?;
    let experiment = loaded(arguments, host)?;
    let threads = Arc::new(threads_of(arguments.threads.as_deref(), host)?);
    let shard = arguments.shard.as_deref();
    let shard = shard.map_or(Ok(Shard::WHOLE), |written| shard_of(written, |name| std::env::var(name).ok()))?;
    let watched =
        Watched { show: Arc::new(Show::new(arguments.quiet)?), threads: threads.clone(), interruption: &interruption };
    let is_drawn = Cell::new(false);
    let draw = |into: &Folder, of: &Folder, experiment: &Experiment, summary: &Summary| {
        is_drawn.set(interruption.code().is_none());
        if is_drawn.get() { write_with_records(into, of, experiment, summary) } else { Ok(()) }
    };
    let options = RunOptions {
        folder: arguments.out.as_deref(),
        earlier: what_becomes(arguments),
        accepts_checked: arguments.accept_checked,
        shard,
        interval: checkpoint,
        files,
        models: arguments.models,
        memory: None,
        progress: &watched,
        draw: Some(&draw),
    };
    if arguments.dry_run {
        return tell_forecast(&experiment, &options, (&threads, &interruption), arguments);
    }
    let (experiment, outcome) = carried_out(experiment, &options, &threads)?;
    let Outcome { summary, failures, complete, total, conclusion, .. } = outcome;
    let code = failures.iter().map(|(_, error)| error.exit_code()).max().unwrap_or(0);
    let kept = format!("{complete} of {total} runs are complete");
    let is_written = match conclusion {
        Conclusion::Full(error) => return Ok(full_output(&error, &kept)),
        Conclusion::Cancelled => {
            let is_saved = arguments.out.is_some() && checkpoint != Interval::Off;
            let saved = if is_saved { "; those under way are saved" } else { "" };
            say(&format!("fedgenie: {kept}{saved}\n{how}"));
            return Ok(interruption.code().unwrap_or_else(|| Error::Cancelled.exit_code()));
        }
        Conclusion::Written => true,
        Conclusion::InMemory | Conclusion::LeftToOthers => false,
    };
    // Where no person reads the table, warnings are printed here as well.
    if arguments.json || !std::io::stdout().is_terminal() {
        warnings(&summary).iter().for_each(|warning| say_warning(warning));
    }
    if let (Some(folder), true) = (&arguments.out, is_written) {
        say_left_out(&experiment, &summary, folder);
    }
    if code > 0 && summary.runs.is_empty() && !arguments.json {
        say("fedgenie: no run ended well");
        return Ok(code);
    }
    if let (Some(folder), Some(_), true) = (&arguments.out, interruption.code(), is_written) {
        let report = if is_drawn.get() { "and so is their report".to_owned() } else { how_to_report(folder) };
        say(&format!("fedgenie: {kept}, and summary and manifest are written; {report}"));
    }
    if arguments.json {
        let text = serde_json::to_string_pretty(&summary).map_err(|error| Error::Usage(error.to_string()))?;
        print_json(&text)?;
    } else {
        print(&report(&experiment, &summary, arguments, is_written))?;
    }
    Ok(interruption.code().unwrap_or(code))
}

/// The experiment, with the program's policies and tasks.
fn loaded(arguments: &RunArguments, host: &dyn Host) -> Result<Experiment, Error> {
    let experiment = Experiment::load(&arguments.scenario, &overrides_of(arguments, host)?)?;
    match experiment.unused_task() {
        Some((name, found)) => Err(Error::Usage(format!(
            "the scenario has [task.{found}], and --with gives {name}; leave one of the two out"
        ))),
        None => Ok(experiment),
    }
}

/// Carries the experiment out. Returns it with the seeds that it has in the end.
fn carried_out(
    experiment: Experiment,
    options: &RunOptions<'_>,
    threads: &Threads,
) -> Result<(Experiment, Outcome), Error> {
    let mut outcome = experiment.run_with(options, threads)?;
    Ok((outcome.grown.take().map_or(experiment, |grown| *grown), outcome))
}

/// Says what the experiment would cost. A signal ends the trial as it ends runs.
fn tell_forecast(
    experiment: &Experiment,
    options: &RunOptions<'_>,
    (threads, interruption): (&Arc<Threads>, &Interruption),
    arguments: &RunArguments,
) -> Result<u8, Error> {
    interruption.trial_begins(threads.clone());
    let forecast = match experiment.dry_run(options, threads) {
        Err(Error::Cancelled) => return Ok(interruption.code().unwrap_or_else(|| Error::Cancelled.exit_code())),
        forecast => forecast?,
    };
    if arguments.json {
        let text = serde_json::to_string_pretty(&forecast).map_err(|error| Error::Usage(error.to_string()))?;
        print_json(&text)?;
    } else {
        print(&dry_run::report(experiment, &forecast))?;
    }
    Ok(0)
}

/// Shows how runs go on, and tells signals which stage they meet.
struct Watched<'a> {
    show: Arc<Show>,
    threads: Arc<Threads>,
    interruption: &'a Interruption,
}

impl Progress for Watched<'_> {
    fn warned(&self, warning: &str) {
        self.show.warned(warning);
    }

    fn runs_taken_over(&self, count: usize) {
        let runs = counted_runs(count);
        say(&format!(
            "fedgenie: {runs} of another build kept: the first rounds, one in {ROUNDS_PER_LOOK}, replay to the same digests"
        ));
    }

    fn runs_repeated(&self, why: &[String]) {
        why.iter().take(SHOWN).for_each(|why| say_warning(&format!("{why}; it is repeated")));
        if why.len() > SHOWN {
            say_warning(&format!("… and {} other runs are repeated", why.len() - SHOWN));
        }
    }

    fn runs_begin(&self, _: usize) {
        self.interruption.runs_begin(self.threads.clone(), self.show.clone());
    }

    fn runs_planned(&self, runs: &[RunId]) {
        self.show.runs_planned(runs);
    }

    fn run_advanced(&self, run: &RunId, share: f64) {
        self.show.run_advanced(run, share);
    }

    fn run_ended(&self, run: &RunId, done: usize, total: usize) {
        self.show.run_ended(run, done, total);
    }

    fn run_goes_on(&self, run: &RunId, round: Round) {
        self.show.run_goes_on(run, round);
    }

    fn runs_ended(&self) {
        self.show.runs_ended();
    }

    fn run_failed(&self, _: &RunId, error: &Error) {
        say(&format!("fedgenie: error: {}", message(&error.to_string())));
    }

    fn looked(&self, found: &str) {
        self.show.noted(found);
    }

    fn writing_begins(&self, folder: &Folder) {
        self.interruption.writing_begins(folder);
    }
}

fn say_warning(warning: &str) {
    say(&format!("fedgenie: warning: {}", message(warning)));
}

/// Says which runs of a folder are damaged, so that its summary is without them.
fn say_left_out(experiment: &Experiment, summary: &Summary, folder: &std::path::Path) {
    let summarised: BTreeSet<String> = summary.runs.iter().map(|run| experiment.name_of(run)).collect();
    let files = Shelf::of(folder);
    let is_left_out =
        |run: &RunId| !summarised.contains(&run.name) && files.is_there(&Shelf::name(&run.name, artefacts::RUN_FILE));
    for run in experiment.runs().iter().filter(|run| is_left_out(run)).take(SHOWN) {
        say(&format!("fedgenie: warning: run {} is damaged and left out; --resume makes it again", run.name));
    }
}

/// Reports in one sentence that a file cannot be written, which runs are kept, and how to go on. Returns the exit code.
fn full_output(error: &Error, kept: &str) -> u8 {
    let (why, how) = (message(&error.to_string()), resumption(words()));
    say(&format!("fedgenie: error: {why}; {kept}, and `{how}` makes the rest"));
    error.exit_code()
}

/// The arguments' changes to the scenario.
fn overrides_of(arguments: &RunArguments, host: &dyn Host) -> Result<Overrides, Error> {
    let mut set = Vec::new();
    for pair in &arguments.set {
        let Some((path, value)) = pair.split_once('=') else {
            return Err(Error::Usage(format!("found --set {pair:?}; expected PATH=VALUE, such as stop.rounds=50")));
        };
        set.push((path.trim().to_owned(), value.trim().to_owned()));
    }
    if let Some(ties) = &arguments.ties {
        set.push(("ties".to_owned(), ties_of(ties)?));
    }
    if let Some(most) = &arguments.until_decided {
        let most = whole_number("until-decided", most, (1, limits::SEEDS))?;
        let margin = arguments.margin.as_ref().map_or_else(String::new, |margin| format!(", margin = {margin}"));
        set.push(("seeds".to_owned(), format!("{{ until = \"decided\", at_most = {most}{margin} }}")));
    }
    let seeds = arguments.seeds.as_deref().map(|seeds| whole_number("seeds", seeds, (1, limits::SEEDS))).transpose()?;
    let seeds = seeds.map(|seeds| seeds as u32);
    let (data, allow_paths, reference) = (arguments.data.clone(), arguments.allow_paths, arguments.reference.clone());
    Ok(Overrides { set, seeds, reference, data, allow_paths, kinds: kinds_of(&arguments.with, host)? })
}

/// The treatment of an experiment that the folder holds.
const fn what_becomes(arguments: &RunArguments) -> Earlier {
    match (arguments.overwrite, arguments.resume, arguments.shard.is_some()) {
        (true, ..) => Earlier::Overwrite,
        (false, true, _) => Earlier::Resume,
        (false, false, true) => Earlier::Join,
        (false, false, false) => Earlier::Refuse,
    }
}

/// The way to resume after an interruption.
fn how_to_resume(arguments: &RunArguments) -> String {
    match arguments.out {
        Some(_) => format!("fedgenie: to make the others:\n{}", resumption(words())),
        None => "fedgenie: no run was kept; --out DIR keeps them".to_owned(),
    }
}

/// The scenario's value for `--ties`.
fn ties_of(ties: &str) -> Result<String, Error> {
    let seed = ties.strip_prefix("shuffle:").and_then(|seed| seed.parse::<u32>().ok());
    match (ties, seed) {
        ("fifo", _) => Ok("\"fifo\"".to_owned()),
        (_, Some(seed)) => Ok(format!("{{ shuffle = {seed} }}")),
        _ => Err(Error::Usage(format!("found --ties {ties}; expected fifo, or shuffle:SEED such as shuffle:1"))),
    }
}

/// The rounds of the timeline, if there is to be one.
fn timeline_of(arguments: &RunArguments) -> Result<Option<RangeInclusive<u32>>, Error> {
    let Some(rounds) = &arguments.timeline_rounds else { return Ok(arguments.timeline.then_some(1..=u32::MAX)) };
    let ends = rounds.split_once("..").and_then(|(a, b)| Some((a.parse::<u32>().ok()?, b.parse::<u32>().ok()?)));
    match ends {
        Some((first, last)) if first >= 1 && first <= last => Ok(Some(first..=last)),
        _ => Err(Error::Usage(format!(
            "found --timeline-rounds {rounds}; expected A..B with 1 <= A <= B, such as 1..20"
        ))),
    }
}

/// A number of runs in words.
pub fn counted_runs(count: usize) -> String {
    if count == 1 { "1 run".to_owned() } else { format!("{count} runs") }
}

fn report(experiment: &Experiment, summary: &Summary, arguments: &RunArguments, is_written: bool) -> String {
    let sections = &experiment.first().sections;
    let mut told = format!("{}\n", escaped(sections.title.as_deref().unwrap_or(&sections.name)));
    let seeds = experiment.seeds.len();
    let intervals = match seeds {
        1 => "",
        2..INTERVAL_SEEDS => ", too few for intervals; differences are paired by seed",
        _ => "; ± is half of the 95 % interval over seeds, differences are paired by seed",
    };
    told.push_str(&format!(
        "{}, {} protocol, task {}, {seeds} seed{}{intervals}\n\n",
        match experiment.first().plan.population.client_count() {
            Ok(clients) => format!("{clients} clients"),
            Err(_) => "clients as the data say".to_owned(),
        },
        sections.protocol.kind(),
        sections.task_kind(),
        if seeds == 1 { "" } else { "s" },
    ));
    let Told { first, rest } = answers::told(summary);
    told.extend(first.iter().map(|sentence| format!("{sentence}\n")));
    told.push_str(if first.is_empty() { "" } else { "\n" });
    told.push_str(&table(summary));
    told.push_str(&paragraph(&rest));
    let all: Vec<u8> =
        summary.runs.iter().flat_map(|run| run.digest.timeline.bytes().chain(run.digest.model.bytes())).collect();
    let which = if summary.runs.len() == experiment.runs().len() { "all runs" } else { "these runs" };
    told.push_str(&format!("\ndigest of {which}  {}\n", &artefacts::hash(&all)[..32]));
    match &arguments.out {
        Some(folder) if is_written => {
            let mut command = format!("fedgenie verify {}", artefacts::shell_quoted(&folder.to_string_lossy()));
            for named in &arguments.with {
                command.push_str(&format!(" --with {}", artefacts::shell_quoted(named)));
            }
            told.push_str(&format!("written to {}; `{command}` replays it\n", text::path(folder)));
        }
        Some(folder) => told.push_str(&format!(
            "these runs are in {}; other processes are at work there, and the last to end writes the summary of all\n",
            text::path(folder)
        )),
        None => told.push_str("nothing was written; --out DIR writes records, summary and figures\n"),
    }
    told
}
