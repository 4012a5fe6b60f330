//! `fedgenie run`

use super::cpu;
use super::interruption::{Interruption, how_to_report, resumption};
use super::progress::Show;
use super::{RunArguments, paragraph, print, print_json, say, threads_of, whole_number, words};
use fedgenie::error::Error;
use fedgenie::experiment::artefacts::Failure;
use fedgenie::experiment::kept::Found;
use fedgenie::experiment::stored::Status;
use fedgenie::experiment::{
    Earlier as Becomes, Experiment, INTERVAL_SEEDS, Interval, LookedAt, Outputs, Overrides, ROUNDS_PER_LOOK,
    ResultFolder, RunId, RunSummary, Shard, Summary,
    answers::{self, Told},
    artefacts, below, build, execute, table, warnings,
};
use fedgenie::lanes::Path;
use fedgenie::limits;
use fedgenie::recorder::RunFileOptions;
use fedgenie::report::write_with_records;
use fedgenie::task::DataCache;
use fedgenie::text::{self, escaped, message};
use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

/// Most runs that are named.
const SHOWN: usize = 5;

pub fn run(arguments: &RunArguments) -> Result<u8, Error> {
    let options = RunFileOptions { events: arguments.events, timeline: timeline_of(arguments)? };
    let checkpoint = arguments.checkpoint.as_deref().map_or(Ok(Interval::default()), str::parse)?;
    let how = how_to_resume(arguments);
    let interruption = Interruption::watch(how.clone()).map_err(|error| Error::Threads(error.to_string()))?;
    let experiment = Experiment::load(&arguments.scenario, &overrides_of(arguments)?)?;
    let threads = Arc::new(threads_of(arguments.threads.as_deref())?);
    let cache = DataCache::default();
    let shard = arguments.shard.as_deref().map_or(Ok(Shard::WHOLE), shard_of)?;
    let mut runs = shard.of(experiment.runs());
    let Earlier { mut complete, foreign, damaged: mut repeated } = earlier(arguments, &experiment, &mut runs)?;
    // Everything that can be wrong with the input is found before the first file is written.
    let mut of_worlds = experiment.check_worlds(&runs, &cache)?;
    if experiment.points.iter().any(|(_, scenario)| scenario.plan.task.about().trains) {
        of_worlds.extend(cpu::warning(Path::detect()));
    }
    for warning in of_worlds {
        say(&format!("fedgenie: warning: {}", message(&warning)));
    }
    let becomes = what_becomes(arguments);
    let open = |path| ResultFolder::open(path, &experiment, becomes, shard).map(|folder| folder.saving(checkpoint));
    let folder = arguments.out.as_deref().map(open).transpose()?;
    if let Some(folder) = &folder {
        let looked = experiment.take_over(folder, foreign, &threads, &cache)?;
        runs.extend(say_taken_over(looked, &mut complete, &mut repeated));
    }
    say_repeated(&repeated);
    let progress = Arc::new(Show::new(arguments.quiet, runs.len()));
    interruption.runs_begin(threads.clone(), progress.clone());
    let outputs = folder.as_ref().map(|folder| Outputs { folder, files: &options, models: arguments.models });
    let results = execute(&experiment, &runs, outputs, &threads, &cache, &*progress);
    progress.end();

    let total = complete.len() + runs.len();
    let (mut code, mut is_cancelled, mut full, mut failed) = (0, false, None, BTreeMap::new());
    for (run, result) in runs.iter().zip(results) {
        match result {
            Ok(summary) => complete.push(summary),
            Err(Error::Cancelled) => is_cancelled = true,
            // A full disk is full for every run: once is enough.
            Err(error) if error.is_of_output() => {
                full.get_or_insert(error);
            }
            Err(error @ (Error::Run { .. } | Error::Panicked { .. })) => {
                say(&format!("fedgenie: error: {}", message(&error.to_string())));
                failed.extend(Failure::of(&error).map(|failure| (run.name.clone(), failure.error)));
                code = error.exit_code().max(code);
            }
            Err(error) => return Err(error),
        }
    }
    let kept = format!("{} of {total} runs are complete", complete.len());
    if let Some(error) = full {
        return Ok(full_output(&error, &kept));
    }
    if let (true, Some(code)) = (is_cancelled, interruption.code()) {
        let saved =
            if arguments.out.is_some() && checkpoint != Interval::Off { "; those under way are saved" } else { "" };
        say(&format!("fedgenie: {kept}{saved}\n{how}"));
        return Ok(code);
    }
    if let (Some(folder), true) = (&folder, complete.len() == total) {
        interruption.writing_begins(folder.path());
    }
    let concluded = conclude(folder, &experiment, complete, &failed, &interruption);
    let (summary, is_written, is_drawn) = match concluded {
        Err(error) if error.is_of_output() => return Ok(full_output(&error, &kept)),
        concluded => concluded?,
    };
    // Where no person reads the table, warnings are printed here as well.
    if arguments.json || !std::io::stdout().is_terminal() {
        for warning in warnings(&summary) {
            say(&format!("fedgenie: warning: {}", message(&warning)));
        }
    }
    if let (Some(folder), true) = (&arguments.out, is_written) {
        say_left_out(&experiment, &summary, folder);
    }
    if code > 0 && summary.runs.is_empty() && !arguments.json {
        say("fedgenie: no run ended well");
        return Ok(code);
    }
    if let (Some(folder), Some(_), true) = (&arguments.out, interruption.code(), is_written) {
        let report = if is_drawn { "and so is their report".to_owned() } else { how_to_report(folder) };
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

/// Files that every run has to have beside its records.
fn wanted(arguments: &RunArguments) -> Vec<&'static str> {
    let files = [
        (arguments.events, artefacts::EVENTS_FILE),
        (arguments.timeline, artefacts::TIMELINE_FILE),
        (arguments.models, artefacts::MODEL_FILE),
    ];
    files.into_iter().filter(|(is_wanted, _)| *is_wanted).map(|(_, name)| name).collect()
}

/// Says which complete runs are carried out again, and why.
fn say_repeated(damaged: &[String]) {
    for why in &damaged[..damaged.len().min(SHOWN)] {
        say(&format!("fedgenie: warning: {}; it is repeated", message(why)));
    }
    if damaged.len() > SHOWN {
        say(&format!("fedgenie: warning: … and {} other runs are repeated", damaged.len() - SHOWN));
    }
}

/// Says which runs of a folder are damaged, so that its summary is without them.
fn say_left_out(experiment: &Experiment, summary: &Summary, folder: &std::path::Path) {
    let summarised: BTreeSet<String> = summary.runs.iter().map(|run| experiment.name_of(run)).collect();
    let is_left_out = |run: &RunId| {
        let file = format!("{}/{}/{}", artefacts::RUNS_FOLDER, run.name, artefacts::RUN_FILE);
        !summarised.contains(&run.name) && below::is_there(folder, &file)
    };
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
fn overrides_of(arguments: &RunArguments) -> Result<Overrides, Error> {
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
    let seeds = arguments.seeds.as_deref().map(|seeds| whole_number("seeds", seeds, (1, limits::SEEDS))).transpose()?;
    let seeds = seeds.map(|seeds| seeds as u32);
    let (data, allow_paths, reference) = (arguments.data.clone(), arguments.allow_paths, arguments.reference.clone());
    Ok(Overrides { set, seeds, reference, data, allow_paths })
}

/// The treatment of an experiment that the folder holds.
const fn what_becomes(arguments: &RunArguments) -> Becomes {
    match (arguments.overwrite, arguments.resume || arguments.shard.is_some()) {
        (true, _) => Becomes::Overwrite,
        (false, true) => Becomes::Resume,
        (false, false) => Becomes::Refuse,
    }
}

/// The state in a folder of the requested runs.
#[derive(Default)]
struct Earlier {
    complete: Vec<RunSummary>,
    /// Complete runs of another build.
    foreign: Vec<(RunId, RunSummary)>,
    /// Why complete runs cannot be used.
    damaged: Vec<String>,
}

/// Looks for runs in the folder of an experiment to continue; complete ones are taken out of `runs`.
///
/// # Errors
/// If runs are of another build, and the user has not chosen how to treat them.
fn earlier(arguments: &RunArguments, experiment: &Experiment, runs: &mut Vec<RunId>) -> Result<Earlier, Error> {
    let mut earlier = Earlier::default();
    let (Some(folder), Becomes::Resume) = (&arguments.out, what_becomes(arguments)) else { return Ok(earlier) };
    let (wanted, mut others) = (wanted(arguments), Vec::new());
    let kept = experiment.kept(folder, &wanted);
    let mut of_others = |run: &RunId, build: String| others.push((run.name.clone(), build));
    let known: BTreeSet<String> = runs.iter().map(|run| run.name.clone()).collect();
    // The summary will be of the runs of all shards.
    for run in experiment.runs().iter().filter(|run| !known.contains(&run.name)) {
        if let Found::OfAnotherBuild(_, build) = kept.find(run) {
            of_others(run, build);
        }
    }
    runs.retain(|run| match kept.find(run) {
        Found::Complete(summary) if arguments.resume => {
            earlier.complete.push(*summary);
            false
        }
        Found::OfAnotherBuild(summary, build) => {
            of_others(run, build);
            earlier.foreign.push((run.clone(), *summary));
            false
        }
        Found::Damaged(why) if arguments.resume => {
            earlier.damaged.push(format!("run {}: {why}", run.name));
            true
        }
        Found::Complete(_) | Found::Damaged(_) | Found::Missing => true,
    });
    match others.first() {
        Some((_, other)) if !arguments.accept_checked => {
            let names: Vec<&str> = others.iter().take(SHOWN).map(|(name, _)| name.as_str()).collect();
            let more = if others.len() > SHOWN { format!(" and {} more", others.len() - SHOWN) } else { String::new() };
            let other = if other.is_empty() { "unknown" } else { other };
            Err(Error::Usage(format!(
                "{} holds runs of another build of FedGenie ({other}; this is {}): {}{more}; --accept-checked keeps those whose \
                 first rounds replay to the same digests, --overwrite runs all again",
                folder.display(),
                build(),
                names.join(", ")
            )))
        }
        _ => Ok(earlier),
    }
}

/// Says which runs of another build are kept. Returns the others, and notes why they are made anew.
fn say_taken_over(looked: Vec<LookedAt>, complete: &mut Vec<RunSummary>, repeated: &mut Vec<String>) -> Vec<RunId> {
    let (mut taken, mut again) = (0, Vec::new());
    for LookedAt { run, found } in looked {
        match found {
            Ok((_, summary)) => {
                taken += 1;
                complete.push(*summary);
            }
            Err(what) => {
                repeated.push(format!("run {}: it is of another build, and differs: {what}", run.name));
                again.push(run);
            }
        }
    }
    if taken > 0 {
        let runs = if taken == 1 { "1 run".to_owned() } else { format!("{taken} runs") };
        say(&format!(
            "fedgenie: {runs} of another build kept: the first rounds, one in {ROUNDS_PER_LOOK}, replay to the same digests"
        ));
    }
    again
}

/// The way to resume after an interruption.
fn how_to_resume(arguments: &RunArguments) -> String {
    match arguments.out {
        Some(_) => format!("fedgenie: to make the others:\n{}", resumption(words())),
        None => "fedgenie: no run was kept; --out DIR keeps them".to_owned(),
    }
}

/// Ends the work in the folder. Returns the summary of all its runs, whether it was written, and whether the report
/// was: while other processes are at work there the summary is of this process's runs.
fn conclude(
    folder: Option<ResultFolder>,
    experiment: &Experiment,
    complete: Vec<RunSummary>,
    failed: &BTreeMap<String, String>,
    interruption: &Interruption,
) -> Result<(Summary, bool, bool), Error> {
    let Some(folder) = folder else { return Ok((experiment.summarise(complete, failed), false, false)) };
    let (path, mut is_drawn): (PathBuf, bool) = (folder.path().to_owned(), false);
    let draw = |summary: &Summary, into: &std::path::Path| {
        is_drawn = interruption.code().is_none();
        if is_drawn { write_with_records(into, &path, experiment, summary) } else { Ok(()) }
    };
    Ok(match folder.finish(experiment, &complete, draw)? {
        Some(summary) => (summary, true, is_drawn),
        None => {
            let mut summary = experiment.summarise(complete, failed);
            // Others are at work on the rest.
            summary.incomplete.retain(|run| run.status == Status::Failed);
            (summary, false, false)
        }
    })
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

fn shard_of(shard: &str) -> Result<Shard, Error> {
    let message = || format!("found --shard {shard}; expected I/N with I from 0 to N-1, such as 0/4");
    Shard::parse(shard).ok_or_else(|| Error::Usage(message()))
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
        match sections.population.client_count() {
            Ok(clients) => format!("{clients} clients"),
            Err(_) => "clients as the data say".to_owned(),
        },
        sections.protocol.kind(),
        sections.task.kind(),
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
            let command = format!("fedgenie verify {}", artefacts::shell_quoted(&folder.to_string_lossy()));
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
