//! From a log of jobs to a fleet: groups of clients, laws of their phases, losses, as a population of a scenario.
//!
//! # Definition
//! [`fit`] takes the jobs of a [log](fedgenie_simulator::population::log) whose time is known. Clients form
//! [groups](mod@groups) by a penalised likelihood; each phase of a group has the [law](mod@law) with the smallest BIC;
//! [losses](mod@loss) are hazards or a probability. A job that a deadline or a timeout cut stays in the likelihood with
//! the probability of being longer. [`fleet`] writes the result as a scenario, [`told`] as text.
//!
//! # What a log does not tell
//! When devices are away: it has only times at which clients were there, and a client that was not asked may have been
//! there or not. So availability is `always`. Phases of a scenario are independent; where those of a log
//! [are not](mod@correlation), all time counts as computing, which keeps the law of whole jobs and loses their phases.
//!
//! # Determinism
//! No random numbers but those of the replays of held-out rounds, whose draws belong to seeds 1 to 200.

pub mod correlation;
pub mod fleet;
pub mod goodness;
pub mod group;
pub mod groups;
pub mod held_out;
mod jobs;
pub mod law;
pub mod loss;
pub mod personal;
mod population;
mod rounds;
mod sample;
mod search;
pub mod told;

pub use jobs::Split;
pub use rounds::Closing;

use correlation::{Correlation, correlations};
use fedgenie_core::id::{ClientId, Round};
use fedgenie_simulator::population::log::{Ending, JobLog};
use group::{GroupFit, fit_group};
use groups::{Grouping, MOST_GROUPS, grouping};
use held_out::HeldOut;
use jobs::{TimedJob, timed};
use personal::personal;

/// Rounds of which the last fifth is held out, at least.
const FEWEST_ROUNDS: usize = 10;

/// Durations that were seen, of a phase of a group, at least: with fewer, laws can hardly be told apart.
const FEWEST_DURATIONS: usize = 20;

/// Jobs of a client, on average, for a median of its own.
const FEWEST_OF_CLIENT: usize = 3;

/// A log that was fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The clients' numbers in the log, ascending.
    pub clients: Vec<u64>,
    /// Jobs of the log.
    pub jobs: usize,
    /// Jobs whose time is not known, which tell nothing.
    pub untimed: usize,
    /// Rounds of the log.
    pub rounds: usize,
    /// The usual number of clients of a round: the median.
    pub cohort: usize,
    /// How phases are told apart.
    pub split: Split,
    /// What ends the rounds of the log.
    pub closing: Closing,
    /// The longest time of a job, in seconds.
    pub longest: f64,
    /// Dependences between phases.
    pub correlations: Vec<Correlation>,
    /// The groups, the fastest first.
    pub groups: Vec<GroupFit>,
    /// The criteria by which the number of groups was chosen.
    pub criteria: Criteria,
    /// Rounds that were held out, or why there are none.
    pub held_out: Result<HeldOut, String>,
    /// Sentences on what was assumed, left out or too little.
    pub notes: Vec<String>,
}

/// Criteria of models, of which the smallest is chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Criteria {
    /// Of groups, from one on.
    pub by_number: Vec<f64>,
    /// Of one group in which each client has a median of its own.
    pub personal: f64,
}

/// No job arrived with a time: all that is known is that jobs take longer than they were awaited.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "found {jobs} jobs, none of which arrived with its time; expected at least one: jobs that were all cut say only that \
     they take longer"
)]
pub struct NothingArrived {
    /// Jobs of the log.
    pub jobs: usize,
}

/// Fits a log; see the [crate](self).
///
/// # Errors
/// If no job arrived with its time.
pub fn fit(log: &JobLog) -> Result<Fit, NothingArrived> {
    let (split, correlations, mut notes) = split(log);
    let jobs = timed(log, split);
    if !jobs.iter().any(|job| job.cut.is_none()) {
        return Err(NothingArrived { jobs: log.jobs.len() });
    }
    let clients = log.clients.len();
    let closing = rounds::closing(&jobs);
    let all_rounds = rounds::rounds(&jobs, closing);
    let (groups, criteria) = model(&jobs, clients).ok_or(NothingArrived { jobs: log.jobs.len() })?;
    let mut sizes: Vec<usize> = all_rounds.iter().map(|round| round.cohort.len()).collect();
    sizes.sort_unstable();
    notes.extend(too_little(&groups, &jobs, clients));
    let found = Fit {
        clients: log.clients.clone(),
        jobs: log.jobs.len(),
        untimed: log.jobs.len() - jobs.len(),
        rounds: log.rounds.len(),
        cohort: sizes[sizes.len() / 2],
        split,
        closing,
        longest: jobs.iter().map(TimedJob::total).fold(0.0, f64::max),
        correlations,
        groups,
        criteria,
        held_out: Err(String::new()),
        notes,
    };
    // The fleet is built as a run builds it, so that one that no run could read is never written.
    population::built(&found.groups);
    Ok(Fit { held_out: held_out(&jobs, clients, &all_rounds, closing), ..found })
}

/// Whether phases can be told apart, the dependences between them, and sentences about it.
fn split(log: &JobLog) -> (Split, Vec<Correlation>, Vec<String>) {
    let courses = || log.jobs.iter().filter_map(|job| Some((job.ending, job.course()?)));
    if !courses().any(|(_, course)| course.has_phases) {
        return (Split::Total, Vec::new(), vec!["no job has phases: all time counts as computing".to_owned()]);
    }
    let without = courses().filter(|(_, course)| !course.has_phases).count();
    if without > 0 {
        let message = format!(
            "{without} jobs have no phases, so that phases cannot be told apart without leaving them out: all time \
             counts as computing"
        );
        return (Split::Total, Vec::new(), vec![message]);
    }
    let cut = courses().any(|(ending, _)| ending != Ending::Arrived);
    let found = correlations(&timed(log, Split::Phases), log.clients.len(), cut);
    let matter: Vec<String> = found
        .iter()
        .filter(|one| one.matters)
        .map(|one| format!("{} and {}: {:.2}", one.one, one.other, one.r))
        .collect();
    if matter.is_empty() {
        return (Split::Phases, found, Vec::new());
    }
    let message = format!(
        "phases of a job depend on each other (correlation of {}), and those of a scenario do not: all time counts as \
         computing, which keeps how long jobs take and loses the phases",
        matter.join(", ")
    );
    (Split::Total, found, vec![message])
}

/// The groups of clients, and the criterion by their number; of a median per client at last, with which all are one
/// group.
fn model(jobs: &[TimedJob], clients: usize) -> Option<(Vec<GroupFit>, Criteria)> {
    let Grouping { of, count, criteria } = grouping(jobs, clients, MOST_GROUPS);
    let group = |group: usize| {
        let members = (0..clients).filter(|client| of[*client] == group).map(ClientId::from_index).collect();
        let own: Vec<&TimedJob> = jobs.iter().filter(|job| of[job.client.index()] == group).collect();
        fit_group(members, &own, jobs)
    };
    let apart = personal(jobs, clients);
    let by_number = Criteria { by_number: criteria, personal: apart.criterion };
    let least = by_number.by_number.iter().copied().fold(f64::INFINITY, f64::min);
    let is_enough = jobs.len() >= FEWEST_OF_CLIENT * clients;
    if is_enough && apart.criterion < least && apart.phases.iter().any(Option::is_some) {
        let everyone = (0..clients).map(ClientId::from_index).collect();
        let mut whole = fit_group(everyone, &jobs.iter().collect::<Vec<_>>(), jobs)?;
        whole.phases.iter_mut().zip(apart.phases).for_each(|(phase, personal)| phase.personal = personal);
        return Some((vec![whole], by_number));
    }
    Some(((0..count).map(group).collect::<Option<Vec<GroupFit>>>()?, by_number))
}

/// Sentences on what the log has too little of.
fn too_little(groups: &[GroupFit], jobs: &[TimedJob], clients: usize) -> Vec<String> {
    let mut notes = Vec::new();
    let mut seen = vec![false; clients];
    jobs.iter().for_each(|job| seen[job.client.index()] = true);
    let unseen = seen.iter().filter(|seen| !**seen).count();
    if unseen > 0 {
        notes.push(format!("{unseen} clients have no job with a known time, and are in the first group"));
    }
    for (number, group) in (1..).zip(groups) {
        for (phase, fit) in fedgenie_core::record::Phase::ALL.into_iter().zip(&group.phases) {
            let seen = fit.choice.seen;
            if fit.is_borrowed {
                notes.push(format!("no job of group {number} ended its {phase}: the law is that of all clients"));
            } else if let Some(personal) = fit.personal.as_ref().filter(|personal| personal.unseen > 0) {
                let unseen = personal.unseen;
                notes.push(format!("no job of {unseen} clients ended its {phase}: they have the median of all"));
            } else if seen < FEWEST_DURATIONS && fit.choice.best.family != law::Family::Constant {
                notes.push(format!(
                    "the log is short: group {number} has {seen} durations of its {phase}; with fewer than \
                     {FEWEST_DURATIONS} laws can hardly be told apart"
                ));
            }
        }
    }
    notes
}

/// Fits the first four fifths of the rounds and replays the others.
fn held_out(
    jobs: &[TimedJob],
    clients: usize,
    all: &[rounds::LoggedRound],
    closing: Closing,
) -> Result<HeldOut, String> {
    if all.len() < FEWEST_ROUNDS {
        let found = all.len();
        return Err(format!(
            "the log is short: it has {found} rounds, and at least {FEWEST_ROUNDS} are needed to hold some out"
        ));
    }
    let first = all.len() * 4 / 5;
    let until: Round = all[first].round;
    let early: Vec<TimedJob> = jobs.iter().filter(|job| job.round < until).copied().collect();
    if !early.iter().any(|job| job.cut.is_none()) {
        return Err("no job of the first four fifths of the rounds arrived".to_owned());
    }
    let Some((groups, _)) = model(&early, clients) else {
        return Err("the first four fifths of the rounds are too few jobs for a fleet".to_owned());
    };
    let fleet = population::built(&groups);
    let places = population::places(&groups, clients);
    let mut is_known = vec![false; clients];
    early.iter().for_each(|job| is_known[job.client.index()] = true);
    let place = |client: ClientId| is_known[client.index()].then(|| places[client.index()]);
    let replayed = held_out::replay(&fleet, &all[first..], closing, place);
    replayed.ok_or_else(|| "each later round has a client without a job in the first four fifths".to_owned())
}

#[cfg(test)]
mod tests;
