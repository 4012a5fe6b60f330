//! The files of one run's folder.

use super::event::Event;
use super::packed::Packed;
use super::record_file::RecordFile;
use super::{RoundMark, RoundSummary, Sink, Timeline};
use fedgenie_core::record::Record;
use fedgenie_core::state::State;
use std::fs;
use std::io::{self, Read, Write};
use std::ops::RangeInclusive;
use std::path::Path;

/// One JSON object per recorded round.
pub const ROUNDS_FILE: &str = "rounds.jsonl";
/// One JSON object per record, gzip.
pub const EVENTS_FILE: &str = "events.jsonl.gz";
/// The marks of all rounds, by which the first difference of a replay is found.
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
    rounds: RecordFile,
    marks: RecordFile,
    events: Option<Packed<RecordFile>>,
    timeline: Option<Timeline<RecordFile>>,
}

impl RunFiles {
    /// Opens the files of a run.
    ///
    /// # Errors
    /// If the folder or a file cannot be made.
    pub fn create(folder: &Path, options: &RunFileOptions) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let open = |name| RecordFile::create(&folder.join(name));
        Ok(Self {
            rounds: open(ROUNDS_FILE)?,
            marks: open(MARKS_FILE)?,
            events: if options.events { Some(Packed::new(open(EVENTS_FILE)?)?) } else { None },
            timeline: match &options.timeline {
                Some(rounds) => Some(Timeline::new(open(TIMELINE_FILE)?, rounds.clone())?),
                None => None,
            },
        })
    }

    /// Opens the files of a run as they were when they were [saved](Sink::save) with the same options. Later output is
    /// cut off.
    ///
    /// # Errors
    /// If a file is missing or changed, or was not written with these options.
    pub fn reopen(folder: &Path, options: &RunFileOptions, state: &mut State<'_>) -> io::Result<Self> {
        let open = |name, state: &mut State<'_>| RecordFile::reopen(&folder.join(name), state);
        let (rounds, marks) = (open(ROUNDS_FILE, state)?, open(MARKS_FILE, state)?);
        let (mut events, mut timeline) = (None, None);
        if was_asked_for(options.events, state) {
            let file = open(EVENTS_FILE, state)?;
            state.field(events.insert(Packed::going_on(file)));
        }
        if was_asked_for(options.timeline.is_some(), state)
            && let Some(drawn) = &options.timeline
        {
            let (mut first, mut last) = (0_u32, 0_u32);
            state.field(&mut first);
            state.field(&mut last);
            state.require(*drawn == (first..=last));
            let file = open(TIMELINE_FILE, state)?;
            state.field(timeline.insert(Timeline::going_on(file, drawn.clone())));
        }
        if state.is_refused() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "they were written with other options"));
        }
        Ok(Self { rounds, marks, events, timeline })
    }

    /// Writes everything out.
    ///
    /// # Errors
    /// If writing fails.
    pub fn finish(self) -> io::Result<()> {
        self.rounds.finish()?;
        self.marks.finish()?;
        if let Some(events) = self.events {
            events.finish()?.finish()?;
        }
        if let Some(timeline) = self.timeline {
            timeline.finish()?.finish()?;
        }
        Ok(())
    }
}

/// Whether a file is wanted, which must be as it was when the state was saved.
fn was_asked_for(is_wanted: bool, state: &mut State<'_>) -> bool {
    let mut was_wanted = is_wanted;
    state.field(&mut was_wanted);
    state.require(was_wanted == is_wanted);
    is_wanted && !state.is_refused()
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

    fn save(&mut self, state: &mut State<'_>) -> io::Result<()> {
        let Self { rounds, marks, events, timeline } = self;
        rounds.save(state)?;
        marks.save(state)?;
        state.field(&mut events.is_some());
        if let Some(events) = events {
            events.inner_mut().save(state)?;
            state.field(events);
        }
        state.field(&mut timeline.is_some());
        if let Some(timeline) = timeline {
            let (mut first, mut last) = timeline.ends();
            state.field(&mut first);
            state.field(&mut last);
            timeline.inner_mut().save(state)?;
            state.field(timeline);
        }
        Ok(())
    }
}

/// Reads the next round's mark; `None` at the end of the file.
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
