//! A quantity of some runs, by seed: its estimate, and the comparison of two.
//!
//! # Definition
//! | quantity | over seeds | difference |
//! |---|---|---|
//! | spending [until] a target | restricted mean to the horizon | the same of pairs |
//! | a time, where latencies have no variance ([`heavy`]) | median | median of the differences of pairs |
//! | share of runs that reach a target | share with Wilson's interval | Newcombe's interval of pairs |
//! | any other | mean with Student's interval | the same of pairs |
//!
//! Samples that are compared have one [`FollowUp`]; where that is not fair, they have no difference, and each of them
//! its own estimate, if its own watch is fair. As independent samples, times until a target have Welch's interval from
//! the earliest possible times of one and the latest of the other.

use super::estimates::{difference_at, estimate_of};
use super::heavy::{self, MedianOf};
use super::until::{self, BySeed, FollowUp};
use super::{ROUNDING, RunSummary};
use fedgenie_core::math::statistics::survival::{self, Arrival};
use fedgenie_core::math::statistics::{Estimate, Miss, independent_difference};
use std::collections::{BTreeMap, BTreeSet};

/// One of [`RunSummary::numbers`], or spending until a target, by seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    key: String,
    /// Numbers that are not spending until a target are exact arrivals.
    values: BTreeMap<u64, Arrival>,
    /// Seeds whose run ended by the limit of the quantity.
    at_limit: BTreeSet<u64>,
    has_medians: bool,
}

impl Sample {
    /// The sample of some runs.
    pub fn of(key: &str, runs: &BySeed<'_>) -> Self {
        let number = |run: &RunSummary| run.number(key).map(Arrival::at);
        let value = |run: &RunSummary| if until::is_until(key) { run.arrival(key) } else { number(run) };
        let values = runs.iter().filter_map(|(&seed, run)| Some((seed, value(run)?))).collect();
        let is_at_limit = |run: &RunSummary| run.followed(key).is_some_and(|(_, is_at_limit)| is_at_limit);
        let at_limit = runs.iter().filter(|(_, run)| is_at_limit(run)).map(|(&seed, _)| seed).collect();
        let has_medians = heavy::is_time(key) && heavy::are_heavy(runs.values().copied());
        Self { key: key.to_owned(), values, at_limit, has_medians }
    }

    /// A sample of exact numbers.
    pub fn of_numbers(key: &str, values: impl IntoIterator<Item = (u64, f64)>) -> Self {
        let values = values.into_iter().map(|(seed, value)| (seed, Arrival::at(value))).collect();
        Self { key: key.to_owned(), values, at_limit: BTreeSet::new(), has_medians: false }
    }

    /// A sample of spending until a target.
    pub(super) fn of_arrivals(key: &str, values: BTreeMap<u64, Arrival>) -> Self {
        Self { key: key.to_owned(), values, at_limit: BTreeSet::new(), has_medians: false }
    }

    /// The same, with a median where samples beside it have one.
    #[must_use]
    pub fn with_medians(self, has_medians: bool) -> Self {
        Self { has_medians, ..self }
    }

    /// Samples that are compared: all have medians if one has them, since a mean says nothing beside a median.
    #[must_use]
    pub fn alike(samples: &[Self]) -> Vec<Self> {
        let has_medians = samples.iter().any(|sample| sample.has_medians);
        samples.iter().map(|sample| sample.clone().with_medians(has_medians)).collect()
    }

    /// Number of seeds.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether all values are known and 0.
    pub fn is_zero(&self) -> bool {
        !self.is_empty() && self.values.values().all(|value| value.has_arrived && value.time == 0.0)
    }

    /// Whether no run has the quantity.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// How many runs arrive.
    pub fn arrived(&self) -> usize {
        self.values.values().filter(|value| value.has_arrived).count()
    }

    fn arrives_by(&self, horizon: f64) -> bool {
        self.values.values().any(|value| value.is_by(horizon))
    }

    /// The seeds.
    pub fn seeds(&self) -> impl Iterator<Item = u64> {
        self.values.keys().copied()
    }

    /// The common watch of samples that are compared.
    pub fn follow_up<'a>(samples: impl IntoIterator<Item = &'a Self>) -> FollowUp {
        let of =
            |sample: &'a Self| sample.values.iter().map(|(seed, &arrival)| (arrival, sample.at_limit.contains(seed)));
        FollowUp::of(samples.into_iter().flat_map(of))
    }

    /// The horizon of this sample among those of a watch.
    fn horizon(&self, follow_up: FollowUp) -> Option<f64> {
        follow_up.horizon_of(Self::follow_up([self]))
    }

    /// The estimate; `None` without values, and for spending until a target if no run arrives, or the watch is not
    /// fair.
    pub fn estimate(&self, follow_up: FollowUp) -> Option<Estimate> {
        let horizon = self.horizon(follow_up)?;
        if self.has_medians && self.arrives_by(horizon) {
            return self.median(follow_up).map(Estimate::from);
        }
        match until::is_until(&self.key) {
            // It lies between 0 and the horizon; Student's interval may not.
            true => {
                survival::restricted_mean(&self.values.values().copied().collect::<Vec<_>>(), horizon).map(|found| {
                    let ci95 = found.ci95.map(|[low, high]| [low.max(0.0), high.min(horizon)]);
                    Estimate { ci95, ..found }
                })
            }
            false => estimate_of(&self.key, &self.ends(horizon, |value| value.time)),
        }
    }

    fn ends(&self, horizon: f64, of: fn(&Arrival) -> f64) -> Vec<f64> {
        self.values.values().map(|value| of(value).min(horizon)).collect()
    }

    /// Its median; `None` without values, if no run arrives, or the watch is not fair.
    pub fn median(&self, follow_up: FollowUp) -> Option<MedianOf> {
        let horizon = self.horizon(follow_up)?;
        let ends = [self.ends(horizon, |value| value.since), self.ends(horizon, |value| value.time)];
        let [earliest, latest] = Some(ends).filter(|_| self.arrives_by(horizon))?;
        heavy::median_of(earliest, latest)
    }

    /// The values of common seeds.
    fn pairs(&self, other: &Self) -> Vec<(Arrival, Arrival)> {
        let pair = |(seed, &value): (&u64, &Arrival)| Some((value, *other.values.get(seed)?));
        self.values.iter().filter_map(pair).collect()
    }

    /// The horizon of this and another sample among those of a watch.
    fn horizon_with(&self, other: &Self, follow_up: FollowUp) -> Option<f64> {
        follow_up.horizon_of(Self::follow_up([self, other]))
    }

    /// The median of this minus another, paired by seed; `None` if no run arrives, or the watch of the two is not fair.
    pub fn median_minus(&self, other: &Self, follow_up: FollowUp) -> Option<MedianOf> {
        self.median_minus_at(other, follow_up, Miss::USUAL)
    }

    fn median_minus_at(&self, other: &Self, follow_up: FollowUp, miss: Miss) -> Option<MedianOf> {
        heavy::difference_of(&self.pairs(other), self.horizon_with(other, follow_up)?, miss)
    }

    /// This minus another, paired by common seeds; `None` if there are none, or the watch of the two is not fair.
    pub fn minus(&self, other: &Self, follow_up: FollowUp) -> Option<Estimate> {
        self.minus_at(other, follow_up, Miss::USUAL)
    }

    /// The same, with an interval that misses the difference more or less often.
    pub fn minus_at(&self, other: &Self, follow_up: FollowUp, miss: Miss) -> Option<Estimate> {
        if self.has_medians || other.has_medians {
            return self.median_minus_at(other, follow_up, miss).map(Estimate::from);
        }
        let horizon = self.horizon_with(other, follow_up)?;
        let pairs = self.pairs(other);
        if until::is_until(&self.key) {
            return survival::restricted_difference_at(&pairs, horizon, ROUNDING, miss);
        }
        let pairs: Vec<(f64, f64)> = pairs.iter().map(|(one, other)| (one.time, other.time)).collect();
        difference_at(&self.key, &pairs, miss)
    }

    /// This minus another, as if no draw were shared: Welch's interval.
    pub fn minus_independent(&self, other: &Self, follow_up: FollowUp) -> Option<Estimate> {
        let horizon = self.horizon_with(other, follow_up)?;
        let all = |sample: &Self, of: fn(&Arrival) -> f64| -> Vec<f64> {
            sample.values.values().map(|value| of(value).min(horizon)).collect()
        };
        if until::is_until(&self.key) && !(self.arrives_by(horizon) || other.arrives_by(horizon)) {
            return None;
        }
        let earliest = |sample: &Self| all(sample, |value| value.since);
        let latest = |sample: &Self| all(sample, |value| value.time);
        let middle = independent_difference(&latest(self), &latest(other))?;
        let low = independent_difference(&earliest(self), &latest(other))?;
        let high = independent_difference(&latest(self), &earliest(other))?;
        let ci95 = low.ci95.zip(high.ci95).map(|([low, _], [_, high])| [low, high]);
        Some(Estimate { ci95, ..middle })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn until(values: &[(f64, f64, bool)]) -> Sample {
        let arrival = |&(since, time, has_arrived): &(f64, f64, bool)| Arrival { time, since, has_arrived };
        let values = (1..).zip(values.iter().map(arrival)).collect();
        Sample { key: "time_to.x".to_owned(), values, at_limit: BTreeSet::new(), has_medians: false }
    }

    /// 1, 1 and 30: mean 32/3, s = 16.743, half-width 41.59; a time is at least 0.
    #[test]
    fn a_restricted_mean_lies_between_nothing_and_the_horizon() {
        let few = until(&[(1.0, 1.0, true), (1.0, 1.0, true), (30.0, 30.0, true)]);
        let [low, high] = few.estimate(FollowUp::ENDLESS).unwrap().ci95.unwrap();
        assert!(low == 0.0 && (high - 52.26).abs() < 0.01, "{low} to {high}");
    }

    /// Ends 10, 20 and never, watched to 50; and 8, 16, 24: restricted to 50, means 80/3 and 16; differences 2, 4, 26.
    #[test]
    fn a_run_that_never_arrives_counts_with_the_horizon() {
        let one = until(&[(10.0, 10.0, true), (20.0, 20.0, true), (50.0, 50.0, false)]);
        let other = until(&[(8.0, 8.0, true), (16.0, 16.0, true), (24.0, 24.0, true)]);
        let follow_up = Sample::follow_up([&one, &other]);
        assert_eq!(
            (follow_up, one.arrived(), other.arrived()),
            (FollowUp { horizon: 50.0, cut_short: 50.0, latest: 24.0 }, 2, 3)
        );
        assert!((one.estimate(follow_up).unwrap().mean - 80.0 / 3.0).abs() < 1e-12);
        let [paired, independent] = [one.minus(&other, follow_up), one.minus_independent(&other, follow_up)];
        assert!([paired, independent].iter().all(|found| (found.unwrap().mean - 32.0 / 3.0).abs() < 1e-12));
        let never = until(&[(50.0, 50.0, false); 3]);
        assert_eq!((never.estimate(follow_up), never.minus_independent(&never, follow_up)), (None, None));
    }

    /// Seen up to 4 later than it was: the interval of independent samples is that of exact ones, extended by 4 below.
    #[test]
    fn intervals_reach_back_to_the_evaluation_before() {
        let exact = until(&[(10.0, 10.0, true), (12.0, 12.0, true), (14.0, 14.0, true)]);
        let late = until(&[(6.0, 10.0, true), (8.0, 12.0, true), (10.0, 14.0, true)]);
        let base = until(&[(1.0, 1.0, true), (2.0, 2.0, true), (3.0, 3.0, true)]);
        let interval = |sample: &Sample| sample.minus_independent(&base, FollowUp::ENDLESS).unwrap().ci95.unwrap();
        let ([low, high], [lower, same]) = (interval(&exact), interval(&late));
        assert!((low - lower - 4.0).abs() < 1e-9 && (high - same).abs() < 1e-9);
    }

    #[test]
    fn medians_of_pairs_where_tails_are_heavy() {
        let values = |add: f64| (1..=7).map(move |seed| (seed, seed as f64 * seed as f64 + add));
        let one = Sample::of_numbers("virtual_time_s", values(3.0)).with_medians(true);
        let other = Sample::of_numbers("virtual_time_s", values(0.0));
        assert_eq!(one.estimate(FollowUp::ENDLESS).unwrap().mean, 19.0);
        assert_eq!(one.minus(&other, FollowUp::ENDLESS).unwrap().mean, 3.0);
        // The mean of 1, 4, … 49 is 20, the median 16: beside a median it has one as well.
        assert_eq!(other.estimate(FollowUp::ENDLESS).unwrap().mean, 20.0);
        assert_eq!(Sample::alike(&[one, other])[1].estimate(FollowUp::ENDLESS).unwrap().mean, 16.0);
    }
}
