//! `fedgenie run`

use super::progress::Show;
use super::{RunWords, print};
use fedgenie::error::Error;
use fedgenie::experiment::artefacts::Earlier;
use fedgenie::experiment::{
    Experiment, INTERVAL_SEEDS, Outputs, Overrides, RunPlace, RunSummary, Summary, Threads, artefacts, execute, table,
};
use fedgenie::recorder::Wanted;
use fedgenie::report::write_with_records;
use fedgenie::task::DataCache;
use std::ops::RangeInclusive;

pub fn run(words: &RunWords) -> Result<u8, Error> {
    let mut set = Vec::new();
    for pair in &words.set {
        let Some((path, value)) = pair.split_once('=') else {
            return Err(Error::Usage(format!("found --set {pair:?}; expected PATH=VALUE, such as stop.rounds=50")));
        };
        set.push((path.trim().to_owned(), value.trim().to_owned()));
    }
    if let Some(ties) = &words.ties {
        set.push(("ties".to_owned(), ties_of(ties)?));
    }
    let overrides = Overrides { set, seeds: words.seeds, data: words.data.clone() };
    let wanted = Wanted { events: words.events, timeline: timeline_of(words)? };
    let experiment = Experiment::load(&words.scenario, &overrides)?;
    let threads = Threads::new(words.threads)?;
    let cache = DataCache::default();
    // Everything that can be wrong with the input is found before the first file is written.
    for warning in experiment.check_worlds(&cache)? {
        eprintln!("fedgenie: warning: {warning}");
    }
    let mut places = experiment.runs();
    if let Some(shard) = &words.shard {
        places = shard_of(shard, places)?;
    }
    let mut done: Vec<RunSummary> = Vec::new();
    if let Some(folder) = &words.out {
        let earlier = match (words.overwrite, words.resume || words.shard.is_some()) {
            (true, _) => Earlier::Overwrite,
            (false, true) => Earlier::Resume,
            (false, false) => Earlier::Refuse,
        };
        artefacts::prepare(folder, &experiment, earlier)?;
        if words.resume {
            places.retain(|place| match artefacts::completed(folder, place) {
                Some(summary) => {
                    done.push(summary);
                    false
                }
                None => true,
            });
        }
    }
    let progress = Show::new(words.quiet, places.len());
    let outputs = words.out.as_deref().map(|folder| Outputs { folder, wanted: &wanted, models: words.models });
    let results = execute(&experiment, &places, outputs, &threads, &cache, &progress);
    progress.end();

    let mut failed = None;
    for result in results {
        match result {
            Ok(summary) => done.push(summary),
            Err(error @ Error::Run { .. }) => {
                eprintln!("fedgenie: error: {error}");
                failed = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    if let (Some(folder), Some(_)) = (&words.out, &words.shard) {
        // Other shards' runs, complete in the same folder, belong to its summary.
        for place in experiment.runs().iter().filter(|place| !places.contains(place)) {
            let known = done.iter().any(|run| is_of(place, run, &experiment));
            done.extend(artefacts::completed(folder, place).filter(|_| !known));
        }
    }
    let order = |run: &RunSummary| experiment.runs().iter().position(|place| is_of(place, run, &experiment));
    done.sort_by_cached_key(order);
    let labels: Vec<String> = experiment.first().arms.iter().map(|arm| arm.label.clone()).collect();
    let points: Vec<_> = experiment.points.iter().map(|(point, _)| point.clone()).collect();
    let sections = &experiment.first().sections;
    let summary = Summary::new(&sections.name, sections.title.as_deref(), &points, &labels, done);
    if let Some(folder) = &words.out {
        let pictures = write_with_records(folder, &experiment, &summary)?;
        artefacts::finish(folder, &experiment, &summary, pictures)?;
    }
    for run in &summary.runs {
        for warning in &run.warnings {
            eprintln!("fedgenie: warning: {}, seed {}: {warning}", run.arm, run.seed);
        }
    }
    if failed.is_some() && summary.runs.is_empty() && !words.json {
        eprintln!("fedgenie: no run ended well");
        return Ok(3);
    }
    if words.json {
        let text = serde_json::to_string_pretty(&summary).map_err(|error| Error::Usage(error.to_string()))?;
        print(&format!("{text}\n"))?;
    } else {
        print(&report(&experiment, &summary, words))?;
    }
    Ok(if failed.is_some() { 3 } else { 0 })
}

fn is_of(place: &RunPlace, run: &RunSummary, experiment: &Experiment) -> bool {
    place.point == run.point
        && place.seed == run.seed
        && experiment.points[place.point].1.arms[place.arm].label == run.arm
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
fn timeline_of(words: &RunWords) -> Result<Option<RangeInclusive<u32>>, Error> {
    let Some(rounds) = &words.timeline_rounds else { return Ok(words.timeline.then_some(1..=u32::MAX)) };
    let ends = rounds.split_once("..").and_then(|(a, b)| Some((a.parse::<u32>().ok()?, b.parse::<u32>().ok()?)));
    match ends {
        Some((first, last)) if first >= 1 && first <= last => Ok(Some(first..=last)),
        _ => Err(Error::Usage(format!(
            "found --timeline-rounds {rounds}; expected A..B with 1 <= A <= B, such as 1..20"
        ))),
    }
}

fn shard_of(shard: &str, places: Vec<RunPlace>) -> Result<Vec<RunPlace>, Error> {
    let parts = shard.split_once('/').and_then(|(i, n)| Some((i.parse::<usize>().ok()?, n.parse::<usize>().ok()?)));
    match parts {
        Some((index, count)) if index < count => Ok(places.into_iter().skip(index).step_by(count).collect()),
        _ => Err(Error::Usage(format!("found --shard {shard}; expected I/N with I from 0 to N-1, such as 0/4"))),
    }
}

fn report(experiment: &Experiment, summary: &Summary, words: &RunWords) -> String {
    let sections = &experiment.first().sections;
    let mut text = format!("{}\n", sections.title.as_deref().unwrap_or(&sections.name));
    let seeds = experiment.seeds.len();
    let intervals = match seeds {
        1 => "",
        2..INTERVAL_SEEDS => ", too few for intervals; differences are paired by seed",
        _ => "; ± is half of the 95 % interval over seeds, differences are paired by seed",
    };
    text.push_str(&format!(
        "{} clients, {} protocol, task {}, {seeds} seed{}{intervals}\n\n",
        sections.population.client_count().unwrap_or_default(),
        sections.protocol.kind(),
        sections.task.kind(),
        if seeds == 1 { "" } else { "s" },
    ));
    text.push_str(&table(summary));
    let all: Vec<u8> =
        summary.runs.iter().flat_map(|run| run.digest.timeline.bytes().chain(run.digest.model.bytes())).collect();
    text.push_str(&format!("\ndigest of all runs  {}\n", &artefacts::hash(&all)[..32]));
    match &words.out {
        Some(folder) => text.push_str(&format!("written to {0}; `fedgenie verify {0}` replays it\n", folder.display())),
        None => text.push_str("nothing was written; --out DIR keeps records, summary and figures\n"),
    }
    text
}
