//! Sinks of a replay: one that compares it with stored files, one that picks out a round.

use super::super::shelf::Shelf;
use crate::error::Error;
use fedgenie_core::record::{Record, Stream};
use fedgenie_simulator::recorder::{
    EVENTS_FILE, MARKS_FILE, ROUNDS_FILE, RoundMark, RoundSummary, Sink, event_json, read_marks,
};
use flate2::read::MultiGzDecoder;
use std::io::{self, BufRead, BufReader};

/// Stops a replay at a round and hands out its records.
pub(super) struct Capture {
    wanted: u32,
    current: u32,
    timeline: Vec<String>,
    model: Vec<String>,
}

impl Capture {
    /// A sink for this round.
    pub(super) const fn of(wanted: u32) -> Self {
        Self { wanted, current: 1, timeline: Vec::new(), model: Vec::new() }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the round was captured")]
pub(super) struct Captured(pub(super) Vec<String>);

impl Sink for Capture {
    fn record(&mut self, record: &Record<'_>) -> io::Result<()> {
        if self.current == self.wanted {
            let list = match record.stream() {
                Stream::Timeline => &mut self.timeline,
                Stream::Model => &mut self.model,
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

/// The first difference of a replay; ends it by travelling as an I/O error through the run.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub(super) struct Mismatch {
    pub(super) round: u32,
    /// From 0.
    pub(super) event: Option<usize>,
    pub(super) stored_event: Option<String>,
    pub(super) what: String,
}

/// Compares a replay with stored files as it goes.
pub(super) struct Comparison {
    marks: Box<dyn BufRead + Send>,
    rounds: Lines,
    events: Option<Lines>,
    round: u32,
    event: usize,
}

/// All requested rounds are equal; ends a replay as [`Mismatch`] does.
#[derive(Debug, thiserror::Error)]
#[error("the rounds are the same")]
pub(super) struct Same;

/// Compares the first rounds of a replay, then ends it.
pub(super) struct FirstRounds {
    pub(super) comparison: Comparison,
    /// The last of them.
    pub(super) last: u32,
}

impl Sink for FirstRounds {
    fn record(&mut self, record: &Record<'_>) -> io::Result<()> {
        self.comparison.record(record)
    }

    fn round(&mut self, summary: &RoundSummary<'_>, is_recorded: bool, mark: &RoundMark) -> io::Result<()> {
        self.comparison.round(summary, is_recorded, mark)?;
        if summary.round.0 < self.last { Ok(()) } else { Err(io::Error::other(Same)) }
    }

    fn wants_checksums(&self) -> bool {
        true
    }
}

type Lines = io::Lines<Box<dyn BufRead + Send>>;

impl Comparison {
    /// With the files of a run of a result folder.
    pub(super) fn open(files: &Shelf, run: &str) -> Result<Self, Error> {
        let open = |name: &str| {
            let name = Shelf::name(run, name);
            files.open(&name).map_err(|source| Error::Read { path: files.folder().join(name), source })
        };
        let events = match files.is_there(&Shelf::name(run, EVENTS_FILE)) {
            true => {
                let events: Box<dyn BufRead + Send> = Box::new(BufReader::new(MultiGzDecoder::new(open(EVENTS_FILE)?)));
                Some(events.lines())
            }
            false => None,
        };
        let rounds: Box<dyn BufRead + Send> = Box::new(BufReader::new(open(ROUNDS_FILE)?));
        let marks = Box::new(BufReader::new(open(MARKS_FILE)?));
        Ok(Self { marks, rounds: rounds.lines(), events, round: 1, event: 0 })
    }

    /// With no files.
    pub(super) fn empty() -> Self {
        let rounds: Box<dyn BufRead + Send> = Box::new(io::empty());
        Self { marks: Box::new(io::empty()), rounds: rounds.lines(), events: None, round: 1, event: 0 }
    }

    /// Stored rounds or events beyond the end of the replay.
    pub(super) fn left_over(mut self) -> Result<Option<String>, Error> {
        let beyond = |name: &str| Some(format!("{name} goes on after the replay's last round"));
        let event = self.events.as_mut().and_then(Iterator::next);
        Ok(match (read_marks(&mut self.marks), self.rounds.next(), event) {
            (Ok(None), None, None) => None,
            (Ok(None), None, Some(_)) => beyond(EVENTS_FILE),
            (Ok(None), Some(_), _) => beyond(ROUNDS_FILE),
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
    describe(ROUNDS_FILE, &stored, replayed)
}

/// Which keys of a stored object differ from the replay's.
pub(super) fn describe(name: &str, stored: &serde_json::Value, replayed: &serde_json::Value) -> String {
    let differing = |(key, value): (&String, &serde_json::Value)| {
        let stored = stored.get(key).unwrap_or(&serde_json::Value::Null);
        (stored != value).then(|| format!("{key}: stored {}, the replay gave {}", short(stored), short(value)))
    };
    let differing: Vec<String> = replayed.as_object().into_iter().flatten().filter_map(differing).collect();
    match differing.is_empty() {
        true => format!("{name} holds an object with other keys or another order"),
        false => format!("{name} differs: {}", differing.join("; ")),
    }
}

/// A value as JSON, cut where it is long.
fn short(value: &serde_json::Value) -> String {
    const MOST: usize = 200;
    let text = value.to_string();
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
