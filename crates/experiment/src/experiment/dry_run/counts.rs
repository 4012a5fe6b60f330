//! How often a run does what: rounds, trainings, evaluations, and how far that is known beforehand.

use super::super::Experiment;
use super::super::pace::end_of;
use super::facts::Facts;
use super::trial::Tried;
use crate::scenario::{EvaluateConfig, Sections, StopConfig};
use fedgenie_core::time::VirtualTime;
use fedgenie_learning::trainer::Length;
use fedgenie_simulator::run::End;
use serde::Serialize;
use std::iter::Sum;

/// How far a number is known beforehand; of a sum, as its worst part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// The scenario says it.
    Known,
    /// It may be less: a target or a plateau may end a run before.
    AtMost,
    /// The trial suggests it.
    Estimated,
}

/// A number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Count {
    /// The number.
    pub value: f64,
    /// How far it is known.
    pub basis: Basis,
}

impl Count {
    /// So many for certain.
    pub(super) const fn known(value: f64) -> Self {
        Self { value, basis: Basis::Known }
    }

    /// So many times as much.
    pub(super) fn times(self, factor: f64) -> Self {
        Self { value: self.value * factor, ..self }
    }

    /// The same number, known no better than this.
    fn from(self, basis: Basis) -> Self {
        Self { basis: self.basis.max(basis), ..self }
    }
}

impl Sum for Count {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::known(0.0), |sum, next| Self {
            value: sum.value + next.value,
            basis: sum.basis.max(next.basis),
        })
    }
}

/// Numbers of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    pub rounds: Count,
    pub client_trainings: Count,
    pub evaluations: Count,
    pub evaluations_for_policy: Count,
}

/// Means over the runs that were tried, per round.
struct Round {
    virtual_s: f64,
    bytes: f64,
    jobs: f64,
}

impl Round {
    fn of(tried: &[Tried]) -> Self {
        let rounds: f64 = tried.iter().map(|tried| f64::from(tried.seen.rounds)).sum();
        let mean = |of: &dyn Fn(&Tried) -> f64| tried.iter().map(of).sum::<f64>() / rounds.max(1.0);
        let jobs = |tried: &Tried| match tried.seen.training.jobs {
            0 => tried.seen.arrived as f64,
            jobs => jobs as f64,
        };
        Self {
            virtual_s: mean(&|tried| tried.seen.virtual_s),
            bytes: mean(&|tried| tried.seen.bytes as f64),
            jobs: mean(&jobs),
        }
    }
}

/// Rounds of a run that ends so.
fn rounds((stop, end): (&StopConfig, &End), round: &Round) -> Count {
    let of_time = end.time.map(|time| (time - VirtualTime::START).seconds() / round.virtual_s);
    let of_bytes = end.bytes.map(|bytes| bytes / round.bytes);
    let most = end.rounds.map_or(f64::INFINITY, f64::from);
    // A round that moves nothing in no time says nothing about the end.
    let found = [of_time, of_bytes].into_iter().flatten().filter(|rounds| rounds.is_finite()).reduce(f64::min);
    let is_bound = found.is_none_or(|found| found >= most);
    let basis = match found {
        Some(_) if !is_bound => Basis::Estimated,
        // Time or traffic may still end it, and are not expected to.
        Some(_) => Basis::AtMost,
        None if stop.target.is_some() || stop.plateau.is_some() => Basis::AtMost,
        None if end.rounds.is_some() => Basis::Known,
        None => Basis::Estimated,
    };
    let value = found.map_or(most, |found| found.ceil().max(1.0).min(most));
    Count { value: if value.is_finite() { value } else { 1.0 }, basis }
}

/// Evaluations of a run with so many rounds of so many virtual seconds.
fn evaluations(evaluate: &EvaluateConfig, rounds: Count, (end, virtual_s): (&End, f64)) -> Count {
    let ended_s = end.time.map_or(f64::INFINITY, |time| (time - VirtualTime::START).seconds());
    let ended_s = ended_s.min(rounds.value * virtual_s);
    let of_period = evaluate.period.map_or(0.0, |period| (ended_s / period.0.seconds().max(virtual_s)).floor());
    let of_instants = evaluate.at.iter().filter(|at| at.0.seconds() <= ended_s).count() as f64;
    let every = evaluate.every.map_or(0.0, |every| (rounds.value / f64::from(every)).floor());
    let is_timed = evaluate.period.is_some() || !evaluate.at.is_empty();
    let is_last_due = evaluate.every.is_some_and(|every| rounds.value % f64::from(every) == 0.0)
        || evaluate.period.is_some_and(|period| ended_s % period.0.seconds() == 0.0);
    let last = if is_last_due { 0.0 } else { 1.0 };
    let value = (every + of_period + of_instants + last).min(rounds.value);
    Count { value, basis: rounds.basis }.from(if is_timed { Basis::Estimated } else { Basis::Known })
}

/// Evaluations of a policy's own: of the model after each round, or of each update.
fn of_policy(facts: &Facts, rounds: Count, evaluations: Count, trainings: Count) -> Count {
    let none = Count::known(0.0);
    let of_models = Count { value: rounds.value - evaluations.value + 1.0, basis: rounds.basis };
    let of_models = if facts.asks_of_model { of_models } else { none };
    [of_models, if facts.asks_of_updates { trainings } else { none }].into_iter().sum()
}

/// The numbers of a run, whose like was tried.
pub(super) fn counted(sections: &Sections, tried: &[Tried]) -> Counted {
    let (facts, round) = (tried[0].facts, Round::of(tried));
    let end = end_of(sections, facts.budget);
    let rounds = rounds((&sections.stop, &end), &round);
    if !facts.trains {
        let none = Count::known(0.0);
        return Counted { rounds, client_trainings: none, evaluations: none, evaluations_for_policy: none };
    }
    let evaluations = evaluations(&sections.evaluate, rounds, (&end, round.virtual_s));
    let client_trainings = Count { value: (round.jobs * rounds.value).round(), basis: Basis::Estimated };
    let evaluations_for_policy = of_policy(&facts, rounds, evaluations, client_trainings);
    Counted { rounds, client_trainings, evaluations, evaluations_for_policy }
}

/// Epochs of a training, if they are the same everywhere.
pub(super) fn epochs(experiment: &Experiment) -> Option<u32> {
    let plans = || experiment.points.iter().flat_map(|(_, scenario)| scenario.plans());
    if plans().any(|plan| plan.lengths.is_some()) {
        return None;
    }
    let mut lengths = plans().map(|plan| plan.training.length);
    let first = lengths.next()?;
    match first {
        Length::Epochs(epochs) if lengths.all(|length| length == first) => Some(epochs),
        Length::Epochs(_) | Length::Steps(_) => None,
    }
}
