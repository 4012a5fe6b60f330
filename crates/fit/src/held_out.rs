//! Rounds that were held out: how long they took, and how long the fleet takes for the same cohorts.
//!
//! # Definition
//! The fleet is fitted to the first four fifths of the rounds. Each later round whose clients are all in that fleet is
//! replayed 200 times with its cohort, by the draws of seeds 1 to 200 (purpose latency, client, round), and ends as the
//! log's rounds end. The place of the log's duration among the replays is the share of shorter ones, ties counted half.
//!
//! # Determinism
//! The draws are those that a run with that seed, client and round has.

use crate::goodness::{Goodness, p_value};
use crate::rounds::{Closing, LoggedRound};
use fedgenie_core::id::JobNumber;
use fedgenie_core::math::statistics::quantile;
use fedgenie_core::rng::{Purpose, Streams};
use fedgenie_core::time::Span;
use fedgenie_simulator::population::{JobDraw, Population};

/// How often each round is replayed.
pub(crate) const REPLAYS: u64 = 200;

/// Durations of rounds that were held out, against those of the fleet.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldOut {
    /// How many rounds were replayed.
    pub rounds: usize,
    /// How many were not, because a client of theirs has no job in the rounds before.
    pub left_out: usize,
    /// Mean duration in the log, in seconds.
    pub logged: f64,
    /// Mean duration of the replays, in seconds.
    pub replayed: f64,
    /// How many of the log's durations lie between the 5 % and the 95 % quantile of their replays.
    pub within: usize,
    /// Distance of their places among the replays from uniform ones.
    pub goodness: Goodness,
}

/// Replays rounds. `place` maps a client of the log to one of the fleet, if it is there.
pub(crate) fn replay(
    population: &Population,
    rounds: &[LoggedRound],
    closing: Closing,
    place: impl Fn(fedgenie_core::id::ClientId) -> Option<fedgenie_core::id::ClientId>,
) -> Option<HeldOut> {
    let (mut places, mut within) = (Vec::new(), 0);
    let (mut logged, mut replayed) = (0.0, 0.0);
    for round in rounds {
        let Some(cohort) = round.cohort.iter().map(|&client| place(client)).collect::<Option<Vec<_>>>() else {
            continue;
        };
        let number = JobNumber(round.round.0);
        let once = |seed: u64| {
            let streams = Streams::new(seed);
            let draw = |&client| population.draw(&streams, Purpose::Latency, client, number, [1.0; 2]).ok();
            cohort.iter().map(draw).collect::<Option<Vec<JobDraw>>>().map(|jobs| duration(&jobs, round, closing))
        };
        let mut all: Vec<f64> = (1..=REPLAYS).filter_map(once).collect();
        if all.is_empty() {
            continue;
        }
        all.sort_unstable_by(f64::total_cmp);
        let (below, up_to) =
            (all.partition_point(|x| *x < round.duration - 1e-9), all.partition_point(|x| *x <= round.duration + 1e-9));
        places.push((below + up_to) as f64 / (2 * all.len()) as f64);
        let is_within = (quantile(&all, 0.05) - 1e-9..=quantile(&all, 0.95) + 1e-9).contains(&round.duration);
        within += usize::from(is_within);
        logged += round.duration;
        replayed += all.iter().sum::<f64>() / all.len() as f64;
    }
    if places.is_empty() {
        return None;
    }
    let n = places.len() as f64;
    Some(HeldOut {
        rounds: places.len(),
        left_out: rounds.len() - places.len(),
        logged: logged / n,
        replayed: replayed / n,
        within,
        goodness: from_uniform(places),
    })
}

/// How long a round with these jobs takes, in seconds. A lost job ends with the timeout; without one, when it was lost.
fn duration(jobs: &[JobDraw], round: &LoggedRound, closing: Closing) -> f64 {
    let until = |job: &JobDraw| match (job.loss, closing) {
        (None, _) => job.total().seconds(),
        (Some(_), Closing::Timeout(timeout)) => timeout,
        (Some((phase, after)), _) => (job.phases[..phase.index()].iter().copied().sum::<Span>() + after).seconds(),
    };
    let mut ends: Vec<f64> = jobs.iter().map(until).collect();
    ends.sort_unstable_by(f64::total_cmp);
    let last = ends[ends.len() - 1];
    match closing {
        Closing::Last => last,
        Closing::Timeout(timeout) => last.min(timeout),
        Closing::Count => ends[round.arrived.clamp(1, ends.len()) - 1],
    }
}

/// The largest distance between the distribution of places and the uniform one.
fn from_uniform(mut places: Vec<f64>) -> Goodness {
    places.sort_unstable_by(f64::total_cmp);
    let n = places.len() as f64;
    let apart = |(index, place): (usize, &f64)| {
        let (below, up_to) = (index as f64 / n, (index + 1) as f64 / n);
        (place - below).abs().max((place - up_to).abs())
    };
    let distance = places.iter().enumerate().map(apart).fold(0.0, f64::max);
    Goodness { distance, p_value: p_value(distance, n) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedgenie_core::id::Round;
    use fedgenie_core::record::Phase;

    #[test]
    fn rounds_end_with_the_last_job_a_timeout_or_enough_updates() {
        let job =
            |seconds: u64| JobDraw { phases: [Span(seconds * 1_000_000_000), Span::ZERO, Span::ZERO], loss: None };
        let jobs = [job(3), job(1), job(2)];
        let round = LoggedRound { round: Round(1), cohort: Vec::new(), arrived: 2, duration: 0.0 };
        assert_eq!(duration(&jobs, &round, Closing::Last), 3.0);
        assert_eq!(duration(&jobs, &round, Closing::Timeout(2.5)), 2.5);
        assert_eq!(duration(&jobs, &round, Closing::Timeout(4.0)), 3.0);
        assert_eq!(duration(&jobs, &round, Closing::Count), 2.0);
        let lost = [JobDraw { loss: Some((Phase::Download, Span(500_000_000))), ..job(3) }];
        assert_eq!(duration(&lost, &round, Closing::Timeout(4.0)), 4.0);
        assert_eq!(duration(&lost, &round, Closing::Last), 0.5);
    }

    #[test]
    fn places_are_compared_with_uniform_ones() {
        assert!((from_uniform(vec![0.5]).distance - 0.5).abs() < 1e-15);
        assert!((from_uniform(vec![0.9, 0.8]).distance - 0.8).abs() < 1e-15);
    }
}
