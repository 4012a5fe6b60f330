//! The rounds of a log: their cohorts, their durations, and what ended them.

use crate::jobs::TimedJob;
use fedgenie_core::id::{ClientId, Round};
use std::collections::BTreeMap;

/// What ends the rounds of a log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Closing {
    /// The last job.
    Last,
    /// The last job, or this many seconds.
    Timeout(f64),
    /// Jobs were cut after different times, as if the server waits for a number of updates: in each round as many as
    /// arrived.
    Count,
}

/// A round of a log.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LoggedRound {
    pub round: Round,
    pub cohort: Vec<ClientId>,
    /// How many updates arrived.
    pub arrived: usize,
    /// How long the server waited, in seconds.
    pub duration: f64,
}

/// By how much cuts may differ, relative to the longest, for one timeout.
const ALIKE: f64 = 0.02;

/// What ends the rounds: cuts without a loss that are all alike are a timeout.
pub(crate) fn closing(jobs: &[TimedJob]) -> Closing {
    let cuts = || jobs.iter().filter(|job| job.cut.is_some() && !job.is_lost).map(TimedJob::total);
    let (low, high) = cuts().fold((f64::INFINITY, 0.0_f64), |(low, high), cut| (low.min(cut), high.max(cut)));
    if high == 0.0 {
        Closing::Last
    } else if high - low <= ALIKE * high {
        Closing::Timeout(high)
    } else {
        Closing::Count
    }
}

/// The rounds, ascending. A lost job keeps the server waiting until its timeout, or, where there is none that the log
/// tells, as long as the log says.
pub(crate) fn rounds(jobs: &[TimedJob], closing: Closing) -> Vec<LoggedRound> {
    let mut by_round: BTreeMap<Round, Vec<&TimedJob>> = BTreeMap::new();
    jobs.iter().for_each(|job| by_round.entry(job.round).or_default().push(job));
    let round = |(round, jobs): (Round, Vec<&TimedJob>)| {
        let waited = |job: &&TimedJob| match closing {
            Closing::Timeout(timeout) if job.is_lost => timeout,
            _ => job.total(),
        };
        LoggedRound {
            round,
            cohort: jobs.iter().map(|job| job.client).collect(),
            arrived: jobs.iter().filter(|job| job.cut.is_none()).count(),
            duration: jobs.iter().map(waited).fold(0.0, f64::max),
        }
    };
    by_round.into_iter().map(round).collect()
}
