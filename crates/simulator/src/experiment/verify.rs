//! Replays a folder's runs and finds the first difference.
//!
//! The replay is compared, round by round, with the digests kept in `digests.bin`, with the lines of `rounds.jsonl`, and
//! with `events.jsonl.gz` where it is there. The first round that differs is played once more to show its event.

use super::artefacts::{self, Manifest, RUN_FILE, RUNS_FOLDER, SCENARIO_FILE};
use super::{Experiment, Overrides, RunPlace, Threads};
use crate::error::Error;
use crate::recorder::{EVENTS_FILE, MARKS_FILE, ROUNDS_FILE, RoundMark, RoundSummary, Sink, event_json, read_marks};
use crate::task::DataCache;
use fedgenie_core::record::Record;
use flate2::read::MultiGzDecoder;
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// The first thing in which a replay differs from what is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The run, or none if a file of the experiment differs.
    pub run: Option<String>,
    /// The first round that differs.
    pub round: Option<u32>,
    /// The first event of that round that differs, from 1, where it is known.
    pub event: Option<usize>,
    /// What was stored and what the replay gave.
    pub what: String,
}

/// What a verification found.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// Runs that were replayed.
    pub runs: usize,
    /// Those of them that differ.
    pub differing: usize,
    /// The first difference, if any.
    pub difference: Option<Difference>,
}

/// Replays all complete runs of a folder, in order, unless the data are others than those that were learned from.
///
/// # Errors
/// If the folder cannot be read or its scenario cannot be run.
pub fn verify(folder: &Path, data: Option<&Path>, threads: &Threads) -> Result<Verdict, Error> {
    let manifest = artefacts::read_manifest(folder)?;
    let scenario = folder.join(SCENARIO_FILE);
    let overrides = Overrides { data: data.map(Path::to_owned), ..Overrides::default() };
    let experiment = Experiment::load(&scenario, &overrides)?;
    if let Some(difference) = data_differ(&experiment, &manifest)? {
        return Ok(Verdict { runs: 0, differing: 0, difference: Some(difference) });
    }
    let cache = DataCache::default();
    let mut verdict = Verdict { runs: 0, differing: 0, difference: None };
    for place in experiment.runs() {
        if !manifest.runs.contains(&place.name) {
            continue;
        }
        verdict.runs += 1;
        if let Some(difference) = verify_run(folder, &experiment, &place, &cache, threads)? {
            verdict.differing += 1;
            verdict.difference.get_or_insert(difference);
        }
    }
    if verdict.difference.is_none() {
        verdict.difference = files_differ(folder, &manifest, verdict.runs);
    }
    Ok(verdict)
}

const fn of_experiment(what: String) -> Difference {
    Difference { run: None, round: None, event: None, what }
}

/// A file of data that is not the one that was read.
fn data_differ(experiment: &Experiment, manifest: &Manifest) -> Result<Option<Difference>, Error> {
    let found = experiment.data_digests()?;
    let differs = |(name, digest): (&String, &String)| found.get(name).is_some_and(|found| found != digest);
    let name = manifest.data.iter().find(|&entry| differs(entry)).map(|(name, _)| name);
    Ok(name.map(|name| {
        of_experiment(format!("the data differ: {name} is not the file that was learned from; nothing was replayed"))
    }))
}

/// What the replays did not look at: files whose contents no longer are what the manifest says.
fn files_differ(folder: &Path, manifest: &Manifest, replayed: usize) -> Option<Difference> {
    if replayed != manifest.runs.len() {
        let listed = manifest.runs.len();
        return Some(of_experiment(format!("the manifest lists {listed} runs, the scenario has {replayed} of them")));
    }
    manifest.files.iter().find_map(|(name, digest)| match artefacts::hash_file(&folder.join(name)) {
        Ok(found) if found == *digest => None,
        Ok(_) => Some(of_experiment(format!("{name} is not the file that was written: its BLAKE3 digest differs"))),
        Err(error) => Some(of_experiment(format!("{name}: {error}"))),
    })
}

fn verify_run(
    folder: &Path,
    experiment: &Experiment,
    place: &RunPlace,
    cache: &DataCache,
    threads: &Threads,
) -> Result<Option<Difference>, Error> {
    let run_folder = folder.join(RUNS_FOLDER).join(&place.name);
    let world = experiment.world(place.point, place.seed, cache)?;
    let found =
        |round, event, what| Ok(Some(Difference { run: Some(place.name.clone()), round: Some(round), event, what }));
    let mut comparison = match Comparison::open(&run_folder) {
        Ok(comparison) => comparison,
        Err(error) => {
            let run = Some(place.name.clone());
            return Ok(Some(Difference { run, round: None, event: None, what: error.to_string() }));
        }
    };
    let summary = match experiment.run_one(place, &world, &mut comparison, threads, None) {
        Ok(result) => result,
        Err(Error::Run { source: crate::run::RunError::Io(error), .. }) => {
            // The comparison ends the replay through this error; see below.
            let Some(mismatch) = error.get_ref().and_then(|inner| inner.downcast_ref::<Mismatch>()) else {
                return found(0, None, format!("the stored files cannot be read: {error}"));
            };
            let mut what = mismatch.what.clone();
            if let (Some(event), true) = (mismatch.event, mismatch.stored_event.is_none()) {
                let records = capture(experiment, place, &world, mismatch.round, threads)?;
                if let Some(record) = records.get(event) {
                    what = format!("{what}; the replay's event is: {record}");
                }
            }
            return found(mismatch.round, mismatch.event.map(|event| event + 1), what);
        }
        Err(error) => return Err(error),
    };
    if let Some(what) = comparison.left_over()? {
        return found(summary.rounds + 1, None, what);
    }
    match artefacts::completed(folder, place) {
        Some(stored) if stored.digest == summary.digest => Ok(None),
        Some(stored) => {
            let what = format!(
                "{RUN_FILE} holds the digest {}, the replay gave {}",
                stored.digest.timeline, summary.digest.timeline
            );
            found(summary.rounds, None, what)
        }
        None => found(summary.rounds, None, format!("{RUN_FILE} cannot be read")),
    }
}

/// The records of one round of a replay, as text.
fn capture(
    experiment: &Experiment,
    place: &RunPlace,
    world: &crate::world::World,
    round: u32,
    threads: &Threads,
) -> Result<Vec<String>, Error> {
    let mut sink = Capture { wanted: round, current: 1, timeline: Vec::new(), model: Vec::new() };
    match experiment.run_one(place, world, &mut sink, threads, None) {
        Err(Error::Run { source: crate::run::RunError::Io(error), .. }) => {
            let records = error.into_inner().and_then(|inner| inner.downcast::<Captured>().ok());
            Ok(records.map_or_else(Vec::new, |records| records.0))
        }
        Ok(_) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Stops a replay at a round and hands out its records.
struct Capture {
    wanted: u32,
    current: u32,
    timeline: Vec<String>,
    model: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
#[error("the round was captured")]
struct Captured(Vec<String>);

impl Sink for Capture {
    fn record(&mut self, record: &Record<'_>) -> io::Result<()> {
        if self.current == self.wanted {
            let list = match record.stream() {
                fedgenie_core::record::Stream::Timeline => &mut self.timeline,
                fedgenie_core::record::Stream::Model => &mut self.model,
            };
            list.push(record.to_string());
        }
        Ok(())
    }

    fn round(&mut self, summary: &RoundSummary<'_>, _: bool, _: &RoundMark) -> io::Result<()> {
        self.current = summary.round.0 + 1;
        if summary.round.0 < self.wanted {
            return Ok(());
        }
        let mut records = std::mem::take(&mut self.timeline);
        records.append(&mut self.model);
        Err(io::Error::other(Captured(records)))
    }
}

/// Where the replay first differs; ends it by travelling as an I/O error through the run.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
struct Mismatch {
    round: u32,
    /// From 0.
    event: Option<usize>,
    stored_event: Option<String>,
    what: String,
}

/// Compares a replay with stored files as it goes.
struct Comparison {
    marks: BufReader<File>,
    rounds: io::Lines<BufReader<File>>,
    events: Option<io::Lines<BufReader<MultiGzDecoder<File>>>>,
    round: u32,
    event: usize,
}

impl Comparison {
    fn open(run_folder: &Path) -> Result<Self, Error> {
        let open = |name: &str| {
            let path = run_folder.join(name);
            File::open(&path).map_err(|source| Error::Read { path, source })
        };
        let events = match run_folder.join(EVENTS_FILE).is_file() {
            true => Some(BufReader::new(MultiGzDecoder::new(open(EVENTS_FILE)?)).lines()),
            false => None,
        };
        Ok(Self {
            marks: BufReader::new(open(MARKS_FILE)?),
            rounds: BufReader::new(open(ROUNDS_FILE)?).lines(),
            events,
            round: 1,
            event: 0,
        })
    }

    /// What is stored beyond the end of the replay.
    fn left_over(mut self) -> Result<Option<String>, Error> {
        let beyond = |name: &str| Some(format!("{name} goes on after the replay's last round"));
        Ok(match (read_marks(&mut self.marks), self.rounds.next()) {
            (Ok(None), None) => None,
            (Ok(None), Some(_)) => beyond(ROUNDS_FILE),
            _ => beyond(MARKS_FILE),
        })
    }

    fn mismatch(&self, event: Option<usize>, stored_event: Option<String>, what: String) -> io::Error {
        io::Error::other(Mismatch { round: self.round, event, stored_event, what })
    }
}

impl Sink for Comparison {
    fn record(&mut self, record: &Record<'_>) -> io::Result<()> {
        let Some(events) = &mut self.events else { return Ok(()) };
        let stored = events.next().transpose()?;
        let replayed = event_json(record).to_string();
        if stored.as_deref() != Some(&replayed) {
            let stored = stored.unwrap_or_else(|| "nothing".to_owned());
            let what = format!("stored event: {stored}; the replay's event is: {replayed}");
            return Err(self.mismatch(Some(self.event), Some(stored), what));
        }
        self.event += 1;
        Ok(())
    }

    fn round(&mut self, summary: &RoundSummary<'_>, is_recorded: bool, mark: &RoundMark) -> io::Result<()> {
        self.round = summary.round.0;
        let stored = match read_marks(&mut self.marks) {
            Ok(Some(stored)) => stored,
            Ok(None) => return Err(self.mismatch(None, None, format!("{MARKS_FILE} ends before this round"))),
            Err(error) => {
                return Err(self.mismatch(None, None, format!("{MARKS_FILE} is damaged at this round: {error}")));
            }
        };
        if stored != *mark {
            let chain = match (stored.timeline == mark.timeline, stored.model == mark.model) {
                (false, _) => "the timeline digest differs",
                (true, false) => "the model digest differs",
                (true, true) => "the checksum of an event differs",
            };
            let pairs = stored.checksums.iter().zip(&mark.checksums);
            let event = pairs.into_iter().position(|(stored, replayed)| stored != replayed);
            let event = event.or((stored.checksums.len() != mark.checksums.len())
                .then_some(stored.checksums.len().min(mark.checksums.len())));
            return Err(self.mismatch(event, None, chain.to_owned()));
        }
        if is_recorded {
            let line = self.rounds.next().transpose()?;
            let replayed = summary.to_json();
            if line.as_deref() != Some(&replayed.to_string()) {
                let what = describe_line(line.as_deref(), &replayed);
                return Err(self.mismatch(None, None, what));
            }
        }
        self.round += 1;
        self.event = 0;
        Ok(())
    }

    fn wants_checksums(&self) -> bool {
        true
    }
}

/// Which keys of a stored line of `rounds.jsonl` differ from the replay's.
fn describe_line(stored: Option<&str>, replayed: &serde_json::Value) -> String {
    let Some(stored) = stored else { return format!("{ROUNDS_FILE} ends before this round") };
    let Ok(stored) = serde_json::from_str::<serde_json::Value>(stored) else {
        return format!("{ROUNDS_FILE} holds a line that is not JSON");
    };
    let differing = |(key, value): (&String, &serde_json::Value)| {
        let stored = stored.get(key).unwrap_or(&serde_json::Value::Null);
        (stored != value).then(|| format!("{key}: stored {stored}, the replay gave {value}"))
    };
    let differing: Vec<String> = replayed.as_object().into_iter().flatten().filter_map(differing).collect();
    match differing.is_empty() {
        true => format!("{ROUNDS_FILE} holds a line with other keys or another order"),
        false => format!("{ROUNDS_FILE} differs: {}", differing.join("; ")),
    }
}
