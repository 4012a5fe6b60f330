//! The files of one run's folder.

use super::event::Event;
use super::{RoundMark, RoundSummary, Sink, Timeline};
use fedgenie_core::record::Record;
use flate2::Compression;
use flate2::write::GzEncoder;
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

/// Bytes that are gathered before they are packed.
pub(super) const UNPACKED_BYTES: usize = 1 << 16;

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
    /// Lines are gathered before they are packed: the encoder clears a window of its own at each write.
    events: Option<BufWriter<GzEncoder<BufWriter<File>>>>,
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
            let packed = GzEncoder::new(BufWriter::new(open(EVENTS_FILE)?), Compression::fast());
            Some(BufWriter::with_capacity(UNPACKED_BYTES, packed))
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
            let packed = events.into_inner().map_err(io::IntoInnerError::into_error)?;
            packed.finish()?.flush()?;
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
                serde_json::to_writer(&mut *events, &Event(record))?;
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
