//! Checkpoints of a run: files from which a later process continues it.
//!
//! # Definition
//! `checkpoint-0` and `checkpoint-1` are written in turn, under another name first and then renamed, when the disk has
//! them and the records up to there: one of them is whole at any time. A file is the line `FedGenie checkpoint 2`, a
//! head (build of the program, the experiment, the run, the round), the state, and BLAKE3 of all that. The experiment
//! is BLAKE3 of the resolved scenario and of the data that it reads; a checkpoint of another experiment, run or build
//! of the program is not read.
//!
//! A run that is cancelled in the middle of a round goes on from the last file, which is that of the round before where
//! rounds are long: see [`Interval::WallTime`].
//!
//! # Cost
//! Wall time decides when a file is written, never its contents or later rounds.

use super::build_id::{build, of_another};
use super::clock::{GRACE, now};
use super::files::write_file;
use super::{RunId, below};
use crate::error::Error;
use fedgenie_core::id::Round;
use fedgenie_core::state::{State, StateError, Stateful};
use fedgenie_core::units::{self, Seconds};
use fedgenie_simulator::run::RunError;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

/// Names of the files; each is written while the other one is whole.
pub(super) const FILES: [&str; 2] = ["checkpoint-0", "checkpoint-1"];

/// The first line of a file. Each change of the format counts up.
const MAGIC: &[u8] = b"FedGenie checkpoint 2\n";
const DIGEST_BYTES: usize = 32;

/// How often a run is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    /// After the first round that ends so much wall time after the last checkpoint; and after a round so long that the
    /// next one may be cut when runs are cancelled, if that costs at most a twentieth of its time.
    WallTime(Duration),
    /// Every so many rounds.
    Rounds(u32),
    /// Never, not even when the run is interrupted.
    Off,
}

impl Default for Interval {
    fn default() -> Self {
        Self::WallTime(Duration::from_secs(60))
    }
}

impl FromStr for Interval {
    type Err = Error;

    /// Reads `60 s`, `500 rounds` or `off`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let refuse = |why: &str| {
            Error::Usage(format!(
                "found --checkpoint {text:?}; expected {why}, such as \"60 s\", \"500 rounds\" or off"
            ))
        };
        let trimmed = text.trim();
        if trimmed == "off" {
            return Ok(Self::Off);
        }
        if let Some(rounds) = trimmed.strip_suffix("rounds").or_else(|| trimmed.strip_suffix("round")) {
            let rounds: u32 = rounds.trim().parse().map_err(|_| refuse("a whole number of rounds"))?;
            return if rounds > 0 { Ok(Self::Rounds(rounds)) } else { Err(refuse("at least one round")) };
        }
        let seconds = units::parse::<Seconds>(trimmed).map_err(|_| refuse("a time, a number of rounds, or off"))?;
        let duration = Duration::try_from_secs_f64(seconds).map_err(|_| refuse("a positive time"))?;
        if duration.is_zero() { Err(refuse("a positive time")) } else { Ok(Self::WallTime(duration)) }
    }
}

/// The run of a file's state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Stateful)]
struct Head {
    build: String,
    experiment: String,
    run: String,
}

/// A checkpoint that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Saved {
    /// The round after which the run was saved.
    pub round: Round,
    /// Its state.
    pub state: Vec<u8>,
    /// Which of the files.
    place: usize,
}

impl Saved {
    /// The name of the file.
    pub const fn name(&self) -> &'static str {
        FILES[self.place]
    }
}

/// The checkpoints of one run.
#[derive(Debug)]
pub(super) struct Checkpoints {
    folder: PathBuf,
    head: Head,
    interval: Interval,
    /// The file that comes next.
    next: usize,
    last: Instant,
    /// When the round under way began.
    began: Instant,
    /// How long the last file took to write.
    cost: Duration,
}

impl Checkpoints {
    /// The checkpoints of a run whose unfinished files are in a folder; `experiment` tells experiments apart.
    pub fn new(folder: &Path, experiment: &str, run: &RunId, interval: Interval) -> Self {
        let build = build().to_owned();
        let head = Head { build, experiment: experiment.to_owned(), run: run.name.clone() };
        Self { folder: folder.to_owned(), head, interval, next: 0, last: now(), began: now(), cost: Duration::ZERO }
    }

    /// The existing checkpoints, the latest first; the reason for each unusable one.
    pub fn read(&self) -> Vec<Result<Saved, String>> {
        let read = |(place, name)| {
            let bytes = match below::read(&self.folder, name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
                bytes => bytes.map_err(|error| error.to_string()),
            };
            let found = bytes.and_then(|bytes| self.parse(&bytes, place));
            Some(found.map_err(|why| format!("{name} {why}")))
        };
        let mut found: Vec<_> = (0..).zip(FILES).filter_map(read).collect();
        // A damaged checkpoint may have been the latest.
        found.sort_by_key(|found| std::cmp::Reverse(found.as_ref().map_or(Round(u32::MAX), |saved| saved.round)));
        found
    }

    fn parse(&self, bytes: &[u8], place: usize) -> Result<Saved, String> {
        let split = bytes.len().checked_sub(DIGEST_BYTES).map(|length| bytes.split_at(length));
        let (written, digest) = split.ok_or("is damaged")?;
        if blake3::hash(written).as_bytes() != digest {
            return Err("is damaged".to_owned());
        }
        let state = written.strip_prefix(MAGIC).ok_or("is of another version of FedGenie")?;
        let (mut head, mut round) = (Head::default(), Round::default());
        let mut state = State::Loading(Some(state));
        state.field(&mut head);
        state.field(&mut round);
        let State::Loading(Some(state)) = state else { return Err("is damaged".to_owned()) };
        let Head { build, experiment, run } = &self.head;
        if head.build != *build {
            return Err(of_another(&head.build));
        }
        if head.run != *run {
            return Err(format!("is of the run {}", head.run));
        }
        if head.experiment != *experiment {
            return Err("is of another scenario, or of other data".to_owned());
        }
        Ok(Saved { round, state: state.to_owned(), place })
    }

    /// The next file replaces the one that the run does not continue from.
    pub const fn go_on(&mut self, from: &Saved) {
        self.next = 1 - from.place;
    }

    /// Whether the run is to be saved after this round, which ends now.
    pub fn are_due(&mut self, round: Round, is_cancelled: bool) -> bool {
        // One look at the clock: the shortest rounds take microseconds.
        let ended = now();
        let took = ended - std::mem::replace(&mut self.began, ended);
        match self.interval {
            Interval::Off => false,
            _ if is_cancelled => true,
            Interval::Rounds(rounds) => round.0.is_multiple_of(rounds),
            Interval::WallTime(time) => ended - self.last >= time || self.is_long(took),
        }
    }

    /// Whether rounds that take so long would be cut when runs are cancelled, and cost much more than a file.
    fn is_long(&self, took: Duration) -> bool {
        took >= GRACE / 2 && took >= 20 * self.cost
    }

    /// Writes one.
    ///
    /// # Errors
    /// If it cannot be written, or a component cannot be saved; the previous one is whole.
    pub fn write(
        &mut self,
        mut round: Round,
        save: impl FnOnce(&mut State<'_>) -> io::Result<()>,
    ) -> Result<(), Error> {
        let (path, start) = (self.folder.join(FILES[self.next]), now());
        let mut bytes = MAGIC.to_vec();
        let mut state = State::Saving(&mut bytes);
        state.field(&mut self.head);
        state.field(&mut round);
        save(&mut state).map_err(|source| Error::Write { path: path.clone(), source })?;
        if let Err(StateError::Failed(failure)) = state.saved() {
            return Err(Error::Run { run: self.head.run.clone(), source: RunError::of_state(failure) });
        }
        let digest = blake3::hash(&bytes);
        bytes.extend_from_slice(digest.as_bytes());
        write_file(&path, &bytes)?;
        self.next = 1 - self.next;
        (self.last, self.began) = (now(), now());
        self.cost = start.elapsed();
        Ok(())
    }
}

/// Whether a folder of unfinished files has a checkpoint.
pub(super) fn has_one(folder: &Path) -> bool {
    FILES.iter().any(|name| below::is_there(folder, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn intervals_are_times_rounds_or_none() {
        let of = |text: &str| text.parse::<Interval>().map_err(|error| error.to_string());
        assert_eq!(of("60 s"), Ok(Interval::default()));
        assert_eq!(of("1.5 min"), Ok(Interval::WallTime(Duration::from_secs(90))));
        assert_eq!(of("500 rounds"), Ok(Interval::Rounds(500)));
        assert_eq!(of(" 1 round "), Ok(Interval::Rounds(1)));
        assert_eq!(of("off"), Ok(Interval::Off));
        for wrong in
            ["", "60", "0 s", "-1 s", "nan s", "1e300 s", "0 rounds", "-3 rounds", "2.5 rounds", "rounds", "5 MB"]
        {
            let error = of(wrong).unwrap_err();
            assert!(error.starts_with(&format!("found --checkpoint {wrong:?}; expected ")), "{error}");
        }
    }

    fn run(name: &str) -> RunId {
        RunId { point: 0, seed: 1, arm: 0, name: name.to_owned() }
    }

    fn checkpoints(folder: &Path) -> Checkpoints {
        Checkpoints::new(folder, "scenario and data", &run("random-s1"), Interval::Rounds(2))
    }

    fn write(checkpoints: &mut Checkpoints, round: u32) {
        let save = |state: &mut State<'_>| {
            state.field(&mut vec![round; 5]);
            Ok(())
        };
        checkpoints.write(Round(round), save).unwrap();
    }

    fn rounds(checkpoints: &Checkpoints) -> Vec<Result<u32, String>> {
        checkpoints.read().into_iter().map(|found| found.map(|saved| saved.round.0)).collect()
    }

    /// The next round may be cut, unless a file costs too much; a round of half the time ends before runs stop.
    #[test]
    fn runs_with_long_rounds_are_saved_after_each() {
        let place = tempfile::tempdir().unwrap();
        let mut one = checkpoints(place.path());
        let long = GRACE / 2;
        assert!(one.is_long(long) && !one.is_long(long - Duration::from_nanos(1)));
        one.cost = long / 20;
        assert!(one.is_long(long) && !one.is_long(long - Duration::from_nanos(1)));
        one.cost = long;
        assert!(!one.is_long(19 * long) && one.is_long(20 * long));
    }

    #[test]
    fn two_are_kept_and_the_latest_comes_first() {
        let place = tempfile::tempdir().unwrap();
        let mut one = checkpoints(place.path());
        assert_eq!((rounds(&one), has_one(place.path())), (Vec::new(), false));
        for round in [2, 4, 6] {
            write(&mut one, round);
        }
        assert_eq!((rounds(&one), has_one(place.path())), (vec![Ok(6), Ok(4)], true));
        let mut numbers = Vec::<u32>::new();
        State::load(&mut numbers, &one.read()[0].as_ref().unwrap().state).unwrap();
        assert_eq!(numbers, [6; 5]);
        // Each continuation replaces the other file.
        for (from, kept) in [(0, [Ok(9), Ok(6)]), (1, [Ok(9), Ok(4)])] {
            let copy = tempfile::tempdir().unwrap();
            for name in FILES {
                fs::copy(place.path().join(name), copy.path().join(name)).unwrap();
            }
            let mut next = checkpoints(copy.path());
            let found = next.read().swap_remove(from).unwrap();
            next.go_on(&found);
            write(&mut next, 9);
            assert_eq!(rounds(&next), kept);
        }
        assert_eq!([2, 3, 4].map(|round| one.are_due(Round(round), false)), [true, false, true]);
        assert!(one.are_due(Round(3), true), "an interrupted run is saved");
        one.interval = Interval::Off;
        assert!(!one.are_due(Round(4), true));
    }

    /// Every byte flipped, every length: no damaged file is taken for a checkpoint.
    #[test]
    fn damaged_and_foreign_ones_are_told() {
        let place = tempfile::tempdir().unwrap();
        let mut one = checkpoints(place.path());
        write(&mut one, 2);
        write(&mut one, 4);
        let file = place.path().join(FILES[1]);
        let bytes = fs::read(&file).unwrap();
        let damaged = || vec![Err("checkpoint-1 is damaged".to_owned()), Ok(2)];
        for index in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[index] ^= 1 << (index % 8);
            fs::write(&file, flipped).unwrap();
            assert_eq!(rounds(&one), damaged(), "byte {index}");
            fs::write(&file, &bytes[..index]).unwrap();
            assert_eq!(rounds(&one), damaged(), "{index} bytes");
        }
        fs::write(&file, [&bytes[..], &[0]].concat()).unwrap();
        assert_eq!(rounds(&one), damaged());
        fs::write(&file, &bytes).unwrap();
        let why = |other: Checkpoints| rounds(&other)[0].clone().unwrap_err();
        let other = Checkpoints::new(place.path(), "scenario and data", &run("bsfl-s1"), Interval::Off);
        assert!(why(other).ends_with("is of the run random-s1"));
        let other = Checkpoints::new(place.path(), "another", &run("random-s1"), Interval::Off);
        assert!(why(other).ends_with("is of another scenario, or of other data"));
        let mut other = checkpoints(place.path());
        other.head.build = "a build of tomorrow".to_owned();
        assert!(why(other).contains("is of another build of FedGenie"));
        let older = [&b"FedGenie checkpoint 1\n"[..], &bytes[MAGIC.len()..bytes.len() - DIGEST_BYTES]].concat();
        fs::write(&file, [&older[..], blake3::hash(&older).as_bytes()].concat()).unwrap();
        assert!(why(one).ends_with("is of another version of FedGenie"));
    }
}
