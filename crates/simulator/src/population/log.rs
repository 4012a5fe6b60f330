//! Logs of jobs: a row says which client was asked in which round, how long its phases took, and how the job ended.
//!
//! # Definition
//! CSV with a header and the columns of [`COLUMNS`]; others do not count. Times are in seconds, and an empty field is
//! unknown.
//!
//! | column | meaning |
//! |---|---|
//! | `client`, `round` | whole numbers of at least 0 |
//! | `sent_s` | when the server sent the model |
//! | `download_s`, `compute_s`, `upload_s` | how long each phase took, or how long it had taken when the job was cut |
//! | `total_s` | how long the server waited for the job, or until the client was lost |
//! | `outcome` | `arrived`: the update reached the server; `late`: the server stopped waiting; `dropped`: the client was lost |
//!
//! Rows may be in any order. Clients and rounds are numbered anew, ascending: clients from 0, rounds from 1.
//!
//! *Phases of a job that arrived.* Time of `total_s` that the known phases leave belongs to the first unknown one of
//! compute, upload, download, and the other unknown ones took none; where all are known, it belongs to the upload.
//! Without `total_s` all three have to be known.
//!
//! *Phases of a job that was cut.* It was in its last known phase if that ends with `total_s`, and in the phase after
//! it if time is left. Where the first phases are unknown, so is the phase, and the time counts as computing.
//!
//! # Inputs
//! Errors, with file, line and column: a missing or doubled column, a row with too few fields (a record that was cut),
//! a field that is no number, negative or longer than 100 years, an unknown outcome, phases that together exceed
//! `total_s` by more than [`ROUNDING`], a client that is sent two jobs at once, no row. A log of several runs, told by
//! columns `policy`, `seed`, `point` as `fedgenie export` writes them, is refused unless one of them is chosen.
//!
//! # Source
//! Ours: `fedgenie export` writes such a table `jobs`.

mod read;

pub use read::{COLUMNS, LogError, ROUNDING, RunOfLog, read};

use fedgenie_core::id::{ClientId, Round};
use fedgenie_core::record::{Phase, PhaseSpans};
use fedgenie_core::time::Span;

/// How a job of a log ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The update reached the server.
    Arrived,
    /// The server stopped waiting.
    Late,
    /// The client was lost.
    Dropped,
}

impl Ending {
    /// All endings, with their words in a log.
    pub const ALL: [(&'static str, Self); 3] =
        [("arrived", Self::Arrived), ("late", Self::Late), ("dropped", Self::Dropped)];
}

/// A row of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedJob {
    /// The client, by its new number.
    pub client: ClientId,
    /// The round, by its new number.
    pub round: Round,
    /// When the model was sent.
    pub sent: Option<Span>,
    /// Durations of the phases, as far as they are known.
    pub phases: [Option<Span>; 3],
    /// How long the server waited, or until the client was lost.
    pub total: Option<Span>,
    /// How it ended.
    pub ending: Ending,
    /// Its line in the file.
    pub line: u64,
}

/// A log of the jobs of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobLog {
    /// The clients' numbers in the file, ascending; their index is their new number.
    pub clients: Vec<u64>,
    /// The rounds' numbers in the file, ascending; their index plus 1 is their new number.
    pub rounds: Vec<u64>,
    /// All jobs by round, in the order in which they were sent where the log says, and else of the file.
    pub jobs: Vec<LoggedJob>,
    /// Sentences on what was numbered anew, ignored or assumed, with the file's name.
    pub notes: Vec<String>,
}

/// The phases of a logged job with all of its time; see the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Course {
    /// Durations of the phases, which add up to the job's time.
    pub phases: PhaseSpans,
    /// The phase in which the job was cut; `None` if it arrived.
    pub cut: Option<Phase>,
    /// Whether the log tells phases apart; otherwise all time counts as computing.
    pub has_phases: bool,
}

impl Course {
    /// All phases together.
    pub fn total(&self) -> Span {
        self.phases.iter().copied().sum()
    }
}

impl LoggedJob {
    /// The job's phases; `None` if the log does not say how long it took.
    pub fn course(&self) -> Option<Course> {
        match self.ending {
            Ending::Arrived => self.complete(),
            Ending::Late | Ending::Dropped => self.cut(),
        }
    }

    /// The sum of the known phases.
    fn known(&self) -> Span {
        self.phases.iter().flatten().copied().sum()
    }

    fn complete(&self) -> Option<Course> {
        let is_known = self.phases.map(|phase| phase.is_some());
        if self.total.is_none() && is_known != [true; 3] {
            return None;
        }
        let mut phases = self.phases.map(Option::unwrap_or_default);
        if let Some(total) = self.total {
            let rests = [Phase::Compute, Phase::Upload, Phase::Download];
            let takes = rests.into_iter().find(|phase| !is_known[phase.index()]).unwrap_or(Phase::Upload);
            phases[takes.index()] += Span(total.0.saturating_sub(self.known().0));
            trim(&mut phases, total);
        }
        Some(Course { phases, cut: None, has_phases: is_known != [false; 3] })
    }

    fn cut(&self) -> Option<Course> {
        let count = self.phases.iter().take_while(|phase| phase.is_some()).count();
        let is_prefix = count > 0 && self.phases[count..].iter().all(Option::is_none);
        if !is_prefix {
            let waited = self.total.or_else(|| Some(self.known()).filter(|known| *known > Span::ZERO))?;
            let phases = [Span::ZERO, waited, Span::ZERO];
            return Some(Course { phases, cut: Some(Phase::Compute), has_phases: false });
        }
        let mut phases = self.phases.map(Option::unwrap_or_default);
        let total = self.total.unwrap_or_else(|| self.known());
        let left = Span(total.0.saturating_sub(self.known().0));
        // Where the known phases end with the total, up to the rounding of sums, the job was in the last of them.
        let at = if left > Span(SUM_ROUNDING) { count.min(2) } else { count - 1 };
        phases[at] += left;
        trim(&mut phases, total);
        Some(Course { phases, cut: Some(Phase::ALL[at]), has_phases: true })
    }
}

/// Nanoseconds by which a sum of times that were rounded to the nanosecond may differ from their rounded sum.
const SUM_ROUNDING: u64 = 4;

/// Shortens phases from the last one on until they add up to the total at most: parts may exceed it by their rounding.
fn trim(phases: &mut PhaseSpans, total: Span) {
    let mut over = phases.iter().copied().sum::<Span>().0.saturating_sub(total.0);
    for phase in phases.iter_mut().rev() {
        let less = over.min(phase.0);
        *phase = Span(phase.0 - less);
        over -= less;
    }
}

#[cfg(test)]
mod tests;
