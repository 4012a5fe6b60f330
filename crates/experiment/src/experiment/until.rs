//! Spending of runs until they reach a target or converge: virtual time, rounds, bytes, computing, energy of jobs.
//!
//! The names are `QUANTITY.TARGET`, such as `time_to.test_accuracy >= 0.8`. A run that never arrives is not left out:
//! it is known to need more than its spending at its end. `fedgenie_core::math::statistics::survival` has the
//! estimators.
//!
//! # Fair watches
//! The *horizon* of runs is the earliest end of one that does not arrive: up to it every run is known, and differences
//! of means are means of differences. A policy that is quick about its rounds ends its watch early, when these are used
//! up; to count the others up to there alone would tell who was watched, not who arrives. So runs are *fairly watched*
//! if those that end without arriving before others arrive were meant to be watched no longer: they ended by the limit
//! of the very quantity, virtual time for times. Runs that are not fairly watched are not compared: those of one policy
//! have a mean if they are fairly watched by themselves, and else the least mean that they can have.

use super::summary::RunSummary;
use super::watch::CONVERGENCE;
use super::{Ended, EnergySummary, Reached, number};
use fedgenie_core::math::statistics::survival::{self, Arrival};
use serde::Serialize;
use std::collections::BTreeMap;

/// The quantities spent until then.
const SPENT: [&str; 6] = ["time_to", "rounds_to", "bytes_to", "compute_to", "probe_compute_to", "joules_to"];

/// How long some runs were watched until a target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FollowUp {
    /// The earliest end of a run that does not arrive; infinite if all arrive.
    pub horizon: f64,
    /// The same of runs that ended by another limit than that of the quantity.
    pub cut_short: f64,
    /// The latest arrival; 0 if no run arrives.
    pub latest: f64,
}

/// What is known of a run, and whether it ended by the limit of the quantity.
pub type Followed = (Arrival, bool);

impl FollowUp {
    /// The watch of quantities that are no spending until a target.
    pub const ENDLESS: Self = Self { horizon: f64::INFINITY, cut_short: f64::INFINITY, latest: 0.0 };

    /// The watch of these runs.
    pub fn of(runs: impl IntoIterator<Item = Followed>) -> Self {
        let mut found = Self::ENDLESS;
        for (Arrival { time, has_arrived, .. }, is_at_limit) in runs {
            match has_arrived {
                true => found.latest = found.latest.max(time),
                false => found.horizon = found.horizon.min(time),
            }
            if !has_arrived && !is_at_limit {
                found.cut_short = found.cut_short.min(time);
            }
        }
        found
    }

    /// Whether no run arrives after the end of one that was cut short.
    pub fn is_fair(self) -> bool {
        self.latest <= self.cut_short
    }

    /// Up to its horizon alone, whatever comes after it.
    #[must_use]
    pub const fn cut(self) -> Self {
        Self { latest: 0.0, ..self }
    }

    /// The horizon of some of these runs, whose own watch is `own`: that of all, or, where these are not fairly
    /// watched, their own; `None` if that is not fair either.
    pub fn horizon_of(self, own: Self) -> Option<f64> {
        [self, own].into_iter().find(|follow_up| follow_up.is_fair()).map(|follow_up| follow_up.horizon)
    }
}

/// Runs of one policy at one point, by seed.
pub type BySeed<'a> = BTreeMap<u64, &'a RunSummary>;

/// Spending of runs of a policy at a point until a target, beside the mean.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Until {
    /// Runs that arrive.
    pub arrived: usize,
    /// All runs.
    pub runs: usize,
    /// The largest spending that counts; `None` if all compared runs arrive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub horizon: Option<f64>,
    /// Where the runs are not fairly watched, the least mean that they can have: that of arrivals and ends of
    /// watches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// The median over runs, of Kaplan and Meier's curve; `None` where fewer than half of them are known to arrive.
    pub median: Option<f64>,
    /// The ends of its 95 % interval; `None` where one is not known.
    pub median_ci95: [Option<f64>; 2],
    /// The mean distance from the previous evaluation to the one at which the target was reached; 0 if each is exact.
    pub grid: f64,
}

impl Until {
    /// Where there is no mean: what the runs are known to spend at least.
    pub fn least(&self) -> Option<f64> {
        self.at_least.or(self.horizon.filter(|_| self.arrived == 0))
    }

    /// In words, where there is no mean: `> 5400`, or `> 1200 (2/3)` if two of three runs arrive.
    pub fn beyond(&self) -> Option<String> {
        let arrived = if self.arrived == 0 { String::new() } else { format!(" ({}/{})", self.arrived, self.runs) };
        Some(format!("> {}{arrived}", number(self.least()?)))
    }
}

/// The parts of a name.
fn parts(name: &str) -> Option<(&str, &str)> {
    name.split_once('.').filter(|(what, _)| SPENT.contains(what))
}

/// Whether a name is of spending until a run arrives.
pub fn is_until(name: &str) -> bool {
    parts(name).is_some()
}

impl RunSummary {
    /// The spending of the run until it arrived, by a name such as `time_to.test_loss <= 0.3`; `None` if it has no such
    /// target.
    pub fn arrival(&self, name: &str) -> Option<Arrival> {
        let (what, target) = parts(name)?;
        if what == "joules_to" && self.energy.is_none() {
            return None;
        }
        let at_end = Arrival::after(self.spent(what));
        if target == CONVERGENCE {
            let Some(converged) = self.converged.as_ref()? else { return Some(at_end) };
            let found = converged.numbers().find(|(number, _)| number == name);
            return found.map(|(_, value)| Arrival::at(value));
        }
        let reached = self.reached.iter().find(|reached| reached.name() == target)?;
        Some(if reached.round.is_some() { reached.arrival(what)? } else { at_end })
    }

    /// The same, and whether the run ended by the limit of the quantity.
    pub fn followed(&self, name: &str) -> Option<Followed> {
        let limit = match parts(name)?.0 {
            "time_to" => Some(Ended::VirtualTime),
            "rounds_to" => Some(Ended::Rounds),
            // A budget that pays for no further round has been spent.
            "bytes_to" => self.ended.filter(|ended| ended.is_of_bytes()),
            _ => None,
        };
        Some((self.arrival(name)?, limit.is_some() && self.ended == limit))
    }

    /// Its spending at the end.
    fn spent(&self, what: &str) -> f64 {
        match what {
            "time_to" => self.virtual_time_s,
            "rounds_to" => f64::from(self.rounds),
            // The rest of a budget pays for no further round.
            "bytes_to" => match (self.ended, self.budget_bytes) {
                (Some(Ended::Budget), Some(budget)) => budget as f64,
                _ => self.traffic.down_bytes.saturating_add(self.traffic.up_bytes) as f64,
            },
            "compute_to" => self.compute_s,
            "joules_to" => self.energy.as_ref().map_or(0.0, EnergySummary::of_jobs_j),
            _ => self.probe_compute_s,
        }
    }
}

impl Reached {
    /// The spending of the run at the evaluation, and its lower limit. If the round before was evaluated too, the
    /// arrival is exact.
    fn arrival(&self, what: &str) -> Option<Arrival> {
        let round = self.round?;
        let is_exact = self.since_round.is_none_or(|since| since.saturating_add(1) >= round);
        let since_bytes = self.since_bytes.map(|bytes| bytes as f64);
        let (time, since) = match what {
            "time_to" => (self.time_s?, self.since_s),
            "rounds_to" => (f64::from(round), self.since_round.map(|since| f64::from(since) + 1.0)),
            "bytes_to" => (self.bytes()? as f64, since_bytes),
            "joules_to" => (self.energy_j?, self.since_energy_j),
            _ => return None,
        };
        Some(Arrival { time, since: since.filter(|_| !is_exact).unwrap_or(time).min(time), has_arrived: true })
    }
}

/// The arrivals of all runs that have such a target.
fn arrivals(name: &str, runs: &BySeed<'_>) -> Vec<Arrival> {
    runs.values().filter_map(|run| run.arrival(name)).collect()
}

/// The watch of runs that are shown side by side.
pub fn follow_up<'a>(name: &str, runs: impl IntoIterator<Item = &'a RunSummary>) -> FollowUp {
    FollowUp::of(runs.into_iter().filter_map(|run| run.followed(name)))
}

/// The number of arrivals, and the median time; `None` if no run has such a target.
pub fn until(name: &str, runs: &BySeed<'_>, follow_up: FollowUp) -> Option<Until> {
    let all = arrivals(name, runs);
    let horizon = follow_up.horizon_of(self::follow_up(name, runs.values().copied()));
    let arrived: Vec<&Arrival> = all.iter().filter(|arrival| arrival.has_arrived).collect();
    let sum = || all.iter().fold(0.0, |sum, arrival| sum + arrival.time);
    let distances = arrived.iter().map(|arrival| arrival.time - arrival.since);
    let grid = distances.fold(0.0, |sum, distance| sum + distance) / arrived.len().max(1) as f64;
    let median = survival::median(&all);
    (!all.is_empty()).then(|| Until {
        arrived: arrived.len(),
        runs: all.len(),
        horizon: horizon.filter(|horizon| horizon.is_finite()),
        at_least: horizon.is_none().then(|| sum() / all.len() as f64),
        median: median.value,
        median_ci95: median.ci95,
        grid,
    })
}

/// The share of runs that have arrived, of Kaplan and Meier's curve: times, and the share from each on.
pub fn course(name: &str, runs: &BySeed<'_>) -> Vec<(f64, f64)> {
    survival::kaplan_meier(&arrivals(name, runs)).into_iter().map(|step| (step.time, 1.0 - step.survival)).collect()
}

/// The names of spending until targets, in the order of the scenario, and until convergence if the scenario asks for
/// it.
pub fn names(run: &RunSummary) -> Vec<String> {
    let of_targets = run.reached.iter().flat_map(|reached| {
        let name = reached.name();
        let of_jobs = run.energy.as_ref().map(|_| &"joules_to");
        SPENT[..3].iter().chain(of_jobs).map(move |what| format!("{what}.{name}"))
    });
    let of_convergence = SPENT[..5].iter().map(|what| format!("{what}.{CONVERGENCE}"));
    of_targets.chain(of_convergence.filter(|_| run.converged.is_some())).collect()
}

#[cfg(test)]
mod tests;
