//! The files of one run's folder.

use super::{RoundMark, RoundSummary, Sink, Timeline};
use fedgenie_core::record::Record;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::ops::RangeInclusive;
use std::path::Path;

/// One JSON object per recorded round.
pub const ROUNDS_FILE: &str = "rounds.jsonl";
/// One JSON object per record, gzip.
pub const EVENTS_FILE: &str = "events.jsonl.gz";
/// What is kept of every round to find the first difference of a replay.
pub const MARKS_FILE: &str = "digests.bin";

/// The run in virtual time, in the trace format of Chrome's profiler, gzip.
pub const TIMELINE_FILE: &str = "timeline.json.gz";

/// Files that are written beside the rounds.
#[derive(Clone, Debug, Default)]
pub struct RunFileOptions {
    /// Every event.
    pub events: bool,
    /// A timeline of these rounds.
    pub timeline: Option<RangeInclusive<u32>>,
}

/// Writes a run's records into its folder.
#[derive(Debug)]
pub struct RunFiles {
    rounds: BufWriter<File>,
    marks: BufWriter<File>,
    events: Option<GzEncoder<BufWriter<File>>>,
    timeline: Option<Timeline<BufWriter<File>>>,
}

impl RunFiles {
    /// Opens the files of a run.
    ///
    /// # Errors
    /// If the folder or a file cannot be made.
    pub fn create(folder: &Path, options: &RunFileOptions) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let open = |name| File::create(folder.join(name));
        let events = if options.events {
            Some(GzEncoder::new(BufWriter::new(open(EVENTS_FILE)?), Compression::fast()))
        } else {
            None
        };
        let timeline = match &options.timeline {
            Some(rounds) => Some(Timeline::new(BufWriter::new(open(TIMELINE_FILE)?), rounds.clone())?),
            None => None,
        };
        Ok(Self {
            rounds: BufWriter::new(open(ROUNDS_FILE)?),
            marks: BufWriter::new(open(MARKS_FILE)?),
            events,
            timeline,
        })
    }

    /// Writes everything out.
    ///
    /// # Errors
    /// If writing fails.
    pub fn finish(self) -> io::Result<()> {
        self.rounds.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        self.marks.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        if let Some(events) = self.events {
            events.finish()?.flush()?;
        }
        if let Some(timeline) = self.timeline {
            timeline.finish()?.flush()?;
        }
        Ok(())
    }
}

impl Sink for RunFiles {
    fn record(&mut self, record: &Record<'_>) -> io::Result<()> {
        if let Some(timeline) = &mut self.timeline {
            timeline.record(record)?;
        }
        match &mut self.events {
            Some(events) => {
                serde_json::to_writer(&mut *events, &event_json(record))?;
                events.write_all(b"\n")
            }
            None => Ok(()),
        }
    }

    fn round(&mut self, summary: &RoundSummary<'_>, is_recorded: bool, mark: &RoundMark) -> io::Result<()> {
        if let Some(timeline) = &mut self.timeline {
            timeline.closed(summary.round, summary.is_abandoned)?;
        }
        if is_recorded {
            serde_json::to_writer(&mut self.rounds, &summary.to_json())?;
            self.rounds.write_all(b"\n")?;
        }
        self.marks.write_all(&mark.timeline.to_le_bytes())?;
        self.marks.write_all(&mark.model.to_le_bytes())?;
        self.marks.write_all(&(mark.checksums.len() as u32).to_le_bytes())?;
        mark.checksums.iter().try_for_each(|checksum| self.marks.write_all(&checksum.to_le_bytes()))
    }

    fn wants_checksums(&self) -> bool {
        true
    }
}

/// Reads the next round's mark; none at the end of the file.
///
/// # Errors
/// If the file ends in the middle of a mark or cannot be read.
pub fn read_marks(file: &mut impl Read) -> io::Result<Option<RoundMark>> {
    let mut word = [0; 8];
    if file.read(&mut word[..1])? == 0 {
        return Ok(None);
    }
    file.read_exact(&mut word[1..])?;
    let timeline = u64::from_le_bytes(word);
    file.read_exact(&mut word)?;
    let model = u64::from_le_bytes(word);
    let mut half = [0; 4];
    file.read_exact(&mut half)?;
    let mut checksums = Vec::new();
    for _ in 0..u32::from_le_bytes(half) {
        file.read_exact(&mut half)?;
        checksums.push(u32::from_le_bytes(half));
    }
    Ok(Some(RoundMark { timeline, model, checksums }))
}

/// A record as a line of `events.jsonl.gz`; trained parameters only by their number.
pub fn event_json(record: &Record<'_>) -> serde_json::Value {
    match record {
        Record::Opened { round, time, selected } => {
            json!({ "event": "opened", "round": round, "time_ns": time, "selected": selected })
        }
        Record::Selected { round, time, selected } => {
            json!({ "event": "selected", "edge": null, "round": round, "time_ns": time, "selected": selected })
        }
        Record::EdgeSelected { edge, turn, time, selected } => {
            json!({ "event": "selected", "edge": edge, "round": turn, "time_ns": time, "selected": selected })
        }
        Record::CloudOpened { round, time, edges } => {
            json!({ "event": "cloud-opened", "round": round, "time_ns": time, "edges": edges })
        }
        Record::Travelled { edge, round, down, time } => {
            json!({ "event": "travelled", "edge": edge, "round": round, "down": down, "time_ns": time })
        }
        Record::EdgeClosed { edge, turn, time } => {
            json!({ "event": "edge-closed", "edge": edge, "round": turn, "time_ns": time })
        }
        Record::Paused { client, round, phase, from, until } => json!({
            "event": "paused", "client": client, "round": round, "phase": phase, "from_ns": from, "until_ns": until
        }),
        Record::Lost { client, round, phase, reason, time } => json!({
            "event": "lost", "client": client, "round": round, "phase": phase, "reason": reason, "time_ns": time
        }),
        Record::PhaseEnded { client, round, phase, time } => {
            json!({ "event": "phase-ended", "client": client, "round": round, "phase": phase, "time_ns": time })
        }
        Record::JobEnded { client, round, outcome, time } => {
            json!({ "event": "job-ended", "client": client, "round": round, "outcome": outcome, "time_ns": time })
        }
        Record::StaleEnded { client, round, delivered, time } => {
            json!({ "event": "stale-ended", "client": client, "round": round, "delivered": delivered, "time_ns": time })
        }
        Record::Closed { round, time, reward, regret, down_bytes, up_bytes } => json!({
            "event": "closed", "round": round, "time_ns": time, "reward": reward, "regret": regret,
            "down_bytes": down_bytes, "up_bytes": up_bytes
        }),
        Record::Model { round, parameters } => {
            json!({ "event": "model", "round": round, "parameters": parameters.len() })
        }
        Record::Private { round, client, values } => {
            json!({ "event": "private", "round": round, "client": client, "parameters": values.len() })
        }
        Record::Metric { round, name, value } => {
            json!({ "event": "metric", "round": round, "name": name, "value": value })
        }
    }
}
