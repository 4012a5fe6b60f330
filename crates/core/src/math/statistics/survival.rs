//! Times of events that some runs end without: restricted means, medians, and their intervals.
//!
//! # Definition
//! For each run the time of the event is known, with the last observation before it; or the end of the run without the
//! event (right censoring). Up to the *horizon*, the earliest end of a run without the event, every run is known: its
//! restricted time is `min(T, horizon)`. The restricted mean is the mean of these, which is the area under Kaplan and
//! Meier's curve up to the horizon. Differences are those of restricted times, paired by run, over all pairs. A run
//! without the event thus counts with the horizon and is never left out.
//!
//! *Between observations.* The event came after one observation and not after the next. The interval of a mean is
//! therefore the union of Student's intervals of the earliest and of the latest possible times. It contains the mean of
//! the true times at least as often as each alone, and is never narrower than the mean distance between observations. A
//! difference lies between earliest minus latest and latest minus earliest.
//!
//! *Few arrivals.* Where only some runs arrive, Student's interval of a mean is too narrow: it takes the share of
//! arrivals for known. The mean is the horizon less that share of the mean time saved by an arrival; the interval is
//! widened to that of Wilson's interval of the share, and ends at the horizon. With fewer than three arrivals the
//! saving is not known, and there is no interval.
//!
//! *Median.* The first time at which Kaplan and Meier's curve is at most one half; where it is one half up to the next
//! event, the middle between the two. Its interval has the times at which the 95 % limits of the curve pass one half,
//! on the scale `ln(−ln S)` with Greenwood's variance. An end that they never pass is not known.
//!
//! # Source
//! E. L. Kaplan and P. Meier, JASA 53 (1958); P. Royston and M. K. B. Parmar, BMC Medical Research Methodology 13:152
//! (2013), restricted means; R. Brookmeyer and J. Crowley, Biometrics 38 (1982), intervals of medians; J. D.
//! Kalbfleisch and R. L. Prentice (1980), the scale; C. F. Manski, *Partial Identification* (2003), intervals of
//! quantities known up to bounds.
//!
//! # Deviations from the source
//! The interval between observations has both of Student's ends and is a little wider than needed.
//!
//! # Cost
//! O(n log n) for n runs.
//!
//! # Determinism
//! A function of its values, in their order.

use super::{Estimate, Miss, estimate, estimate_at, proportion};
use crate::math::float::{exp, ln, sqrt};

/// Time of an event, as far as it was observed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival {
    /// The first observation at which it had happened, or the end of a watch without it.
    pub time: f64,
    /// It can have happened at any time after this one; `time` itself if that is exact, or if it never happened.
    pub since: f64,
    /// Whether it happened.
    pub has_arrived: bool,
}

impl Arrival {
    /// At a time that is known exactly.
    pub const fn at(time: f64) -> Self {
        Self { time, since: time, has_arrived: true }
    }

    /// After the end of the watch, if at all.
    pub const fn after(end: f64) -> Self {
        Self { time: end, since: end, has_arrived: false }
    }

    /// Whether it happened up to the horizon.
    pub fn is_by(&self, horizon: f64) -> bool {
        self.has_arrived && self.time <= horizon
    }
}

/// Time up to which every run is known: the earliest end of a run that has not arrived; infinite if all have.
pub fn horizon<'a>(arrivals: impl IntoIterator<Item = &'a Arrival>) -> f64 {
    let ends = arrivals.into_iter().filter(|arrival| !arrival.has_arrived).map(|arrival| arrival.time);
    ends.fold(f64::INFINITY, f64::min)
}

/// The interval from the lower end of the earliest times to the upper end of the latest, around the mean of the latest.
fn between(earliest: &[f64], latest: &[f64], miss: Miss) -> Option<Estimate> {
    let (low, high) = (estimate_at(earliest, miss)?, estimate_at(latest, miss)?);
    let ci95 = low.ci95.zip(high.ci95).map(|([lowest, _], [_, highest])| [lowest, highest]);
    Some(Estimate { ci95, ..high })
}

/// Arrivals that an interval of a restricted mean needs, unless every run arrives.
const FEW: usize = 3;

/// The restricted mean to a horizon; `None` if no run arrives by then. No run without the event ends before the
/// horizon.
pub fn restricted_mean(arrivals: &[Arrival], horizon: f64) -> Option<Estimate> {
    if !arrivals.iter().any(|arrival| arrival.is_by(horizon)) {
        return None;
    }
    let of =
        |time: fn(&Arrival) -> f64| -> Vec<f64> { arrivals.iter().map(|arrival| time(arrival).min(horizon)).collect() };
    let mut found = between(&of(|arrival| arrival.since), &of(|arrival| arrival.time), Miss::USUAL)?;
    let arrived = arrivals.iter().filter(|arrival| arrival.is_by(horizon)).count();
    if arrived < FEW.min(arrivals.len()) {
        found.ci95 = None;
    } else if let Some([low, high]) = found.ci95.as_mut().filter(|_| arrived < arrivals.len()) {
        let share = proportion(arrived as u64, arrivals.len() as u64);
        let [least, most] = share.ci95.unwrap_or([share.mean; 2]);
        let saved = (horizon - found.mean) / share.mean;
        *low = low.min(horizon - most * saved);
        *high = high.max(horizon - least * saved).min(horizon);
    }
    Some(found)
}

/// The mean difference of restricted times, left minus right, over all pairs; `None` if no run arrives by the horizon.
/// Times that differ by less than the share `rounding` are the same.
pub fn restricted_difference(pairs: &[(Arrival, Arrival)], horizon: f64, rounding: f64) -> Option<Estimate> {
    restricted_difference_at(pairs, horizon, rounding, Miss::USUAL)
}

/// The same, with an interval that misses the difference more or less often.
pub fn restricted_difference_at(
    pairs: &[(Arrival, Arrival)],
    horizon: f64,
    rounding: f64,
    miss: Miss,
) -> Option<Estimate> {
    if !pairs.iter().any(|(left, right)| left.is_by(horizon) || right.is_by(horizon)) {
        return None;
    }
    let minus = |left: f64, right: f64| {
        let (left, right) = (left.min(horizon), right.min(horizon));
        if (left - right).abs() <= rounding * left.abs().max(right.abs()) { 0.0 } else { left - right }
    };
    let of = |pick: &dyn Fn(&Arrival, &Arrival) -> f64| -> Vec<f64> {
        pairs.iter().map(|(left, right)| pick(left, right)).collect()
    };
    let (low, high) =
        (of(&|left, right| minus(left.since, right.time)), of(&|left, right| minus(left.time, right.since)));
    let earliest = between(&low, &high, miss)?;
    let latest = estimate(&of(&|left, right| minus(left.time, right.time)))?;
    Some(Estimate { ci95: earliest.ci95, ..latest })
}

/// A step of Kaplan and Meier's curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// When it falls.
    pub time: f64,
    /// The share of runs that arrive later.
    pub survival: f64,
    /// Greenwood's sum `Σ d/(n (n − d))` up to here: the variance of `ln S`; infinite where no run is left.
    pub greenwood: f64,
}

impl Step {
    /// The 95 % limits of the share; `None` where it is 0.
    fn limits(&self) -> Option<[f64; 2]> {
        const Z: f64 = 1.959_963_984_540_054;
        let log = ln(self.survival);
        let half = Z * sqrt(self.greenwood) / log.abs();
        let limit = |power: f64| exp(log * exp(power));
        (self.survival > 0.0).then(|| [limit(half), limit(-half)])
    }
}

/// Kaplan and Meier's curve: the steps at which it falls, in order. Runs whose watch ends when others arrive have not
/// arrived by then.
pub fn kaplan_meier(arrivals: &[Arrival]) -> Vec<Step> {
    let mut sorted = arrivals.to_vec();
    sorted.sort_by(|one, other| one.time.total_cmp(&other.time));
    let (mut steps, mut survival, mut greenwood) = (Vec::new(), 1.0, 0.0);
    let mut from = 0;
    while from < sorted.len() {
        let time = sorted[from].time;
        let same = sorted[from..].iter().take_while(|arrival| arrival.time == time);
        let (count, arrived) =
            same.fold((0, 0), |(all, arrived), one| (all + 1, arrived + usize::from(one.has_arrived)));
        let (left, arrived) = ((sorted.len() - from) as f64, arrived as f64);
        if arrived > 0.0 {
            survival *= 1.0 - arrived / left;
            greenwood += arrived / (left * (left - arrived));
            steps.push(Step { time, survival, greenwood });
        }
        from += count;
    }
    steps
}

/// A median, and the ends of its 95 % interval; none where it is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Median {
    /// The median.
    pub value: Option<f64>,
    /// The ends of its interval.
    pub ci95: [Option<f64>; 2],
}

/// One half, with room for rounding.
const HALF: f64 = 0.5 + 1e-9;

/// The median of runs some of which never arrive.
pub fn median(arrivals: &[Arrival]) -> Median {
    let latest = kaplan_meier(arrivals);
    let since = |arrival: &Arrival| Arrival { time: arrival.since, ..*arrival };
    let earliest = kaplan_meier(&arrivals.iter().map(since).collect::<Vec<_>>());
    let passes = |steps: &[Step], end: usize| {
        let first = steps.iter().find(|step| step.limits().is_some_and(|limits| limits[end] <= HALF));
        first.map(|step| step.time)
    };
    let value = latest.iter().position(|step| step.survival <= HALF).map(|place| {
        let is_half = latest[place].survival > 1.0 - HALF;
        let next = latest.get(place + 1).filter(|_| is_half);
        next.map_or(latest[place].time, |next| (latest[place].time + next.time) / 2.0)
    });
    Median { value, ci95: [passes(&earliest, 0), passes(&latest, 1)] }
}

#[cfg(test)]
mod tests;
