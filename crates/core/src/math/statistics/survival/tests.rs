//! Intervals by hand, of the literature, and against truths that are known.

use super::*;
use crate::math::statistics::paired_difference;
use crate::rng::{Purpose, Streams};

/// Weeks of remission of 21 patients (Freireich et al. 1963): arrivals, and watches that ended without one.
fn remissions() -> Vec<Arrival> {
    let arrived = [6.0, 6.0, 6.0, 7.0, 10.0, 13.0, 16.0, 22.0, 23.0].map(Arrival::at);
    let ended = [6.0, 9.0, 10.0, 11.0, 17.0, 19.0, 20.0, 25.0, 32.0, 32.0, 34.0, 35.0].map(Arrival::after);
    arrived.into_iter().chain(ended).collect()
}

/// The textbook's curve: 18/21, 16/17, 14/15, … multiplied; median 23 weeks, its interval from 13 on without an end.
#[test]
fn a_curve_of_the_literature() {
    let steps = kaplan_meier(&remissions());
    let expected =
        [(6.0, 0.8571), (7.0, 0.8067), (10.0, 0.7529), (13.0, 0.6902), (16.0, 0.6275), (22.0, 0.5378), (23.0, 0.4482)];
    assert_eq!(steps.len(), expected.len());
    for (step, (time, survival)) in steps.iter().zip(expected) {
        assert_eq!(step.time, time);
        approx::assert_abs_diff_eq!(step.survival, survival, epsilon = 5e-5);
    }
    // Greenwood's standard error at 10 weeks is 0.0963.
    approx::assert_abs_diff_eq!(steps[2].survival * sqrt(steps[2].greenwood), 0.0963, epsilon = 5e-5);
    assert_eq!(median(&remissions()), Median { value: Some(23.0), ci95: [Some(13.0), None] });
}

/// The placebo group of the same trial, without censoring: median 8 weeks, from 4 to 11.
#[test]
fn a_median_of_the_literature() {
    let weeks = [
        1.0, 1.0, 2.0, 2.0, 3.0, 4.0, 4.0, 5.0, 5.0, 8.0, 8.0, 8.0, 8.0, 11.0, 11.0, 12.0, 12.0, 15.0, 17.0, 22.0, 23.0,
    ];
    let found = median(&weeks.map(Arrival::at));
    assert_eq!(found, Median { value: Some(8.0), ci95: [Some(4.0), Some(11.0)] });
}

#[test]
fn medians_by_hand() {
    let value = |arrivals: &[Arrival]| median(arrivals).value;
    let at = |times: &[f64]| times.iter().map(|&time| Arrival::at(time)).collect::<Vec<_>>();
    assert_eq!(value(&at(&[3.0, 1.0, 2.0])), Some(2.0));
    assert_eq!(value(&at(&[1.0, 2.0, 4.0, 9.0])), Some(3.0));
    let two_of_five =
        [Arrival::at(1.0), Arrival::at(2.0), Arrival::after(9.0), Arrival::after(9.0), Arrival::after(9.0)];
    assert_eq!(value(&two_of_five), None);
    // Of four, the half that arrives ends at 2; nothing is known of the next.
    assert_eq!(value(&[Arrival::at(1.0), Arrival::at(2.0), Arrival::after(9.0), Arrival::after(9.0)]), Some(2.0));
    // A run that left at 1.5 takes its share along: 3/4, then 3/4 · 1/2.
    let left = [Arrival::at(1.0), Arrival::after(1.5), Arrival::at(2.0), Arrival::after(9.0)];
    assert_eq!(value(&left), Some(2.0));
    assert_eq!(median(&[]), Median::default());
}

/// Times 2, 4, 4 and one that never comes within 6: min(T, 6) is 2, 4, 4, 6, mean 4, s² = 8/3, t(0.975, 3) = 3.182446.
/// The upper end would be beyond the horizon.
#[test]
fn a_restricted_mean_by_hand() {
    let arrivals = [Arrival::at(2.0), Arrival::at(4.0), Arrival::at(4.0), Arrival::after(6.0)];
    assert_eq!(horizon(&arrivals), 6.0);
    let found = restricted_mean(&arrivals, 6.0).unwrap();
    let [low, high] = found.ci95.unwrap();
    assert_eq!((found.mean, found.n, high), (4.0, 4, 6.0));
    approx::assert_relative_eq!(4.0 - low, 3.182_446_3 * (2.0 / 3.0_f64).sqrt(), max_relative = 1e-7);
    assert_eq!(restricted_mean(&[Arrival::after(6.0), Arrival::at(7.0)], 6.0), None, "nobody arrives by 6");
    assert_eq!(horizon(&[Arrival::at(2.0)]), f64::INFINITY);
}

/// Three of twenty arrive, all at 2: they save 4. Wilson's interval of 3 of 20 is 0.05237 to 0.36042, wider than
/// Student's 0.15 (1 ± 1.143166).
#[test]
fn few_arrivals_have_a_wide_interval_or_none() {
    let of = |arrived: usize| {
        let never = std::iter::repeat_n(Arrival::after(6.0), 20 - arrived);
        restricted_mean(&never.chain(std::iter::repeat_n(Arrival::at(2.0), arrived)).collect::<Vec<_>>(), 6.0).unwrap()
    };
    let [low, high] = of(3).ci95.unwrap();
    approx::assert_abs_diff_eq!((6.0 - low) / 4.0, 0.36042, epsilon = 1e-5);
    assert!(high > 6.0 - 0.0524 * 4.0 && high <= 6.0, "{high}");
    assert_eq!((of(2).mean, of(2).ci95), (5.6, None));
    assert!(of(20).ci95.is_some(), "all arrive");
}

/// The area under the curve up to the horizon is the mean of restricted times.
#[test]
fn the_restricted_mean_is_an_area() {
    let mut arrivals = [0.5, 3.0, 3.0, 4.25, 7.0].map(Arrival::at).to_vec();
    arrivals.extend([5.0, 8.0].map(Arrival::after));
    let to = horizon(&arrivals);
    let (mut area, mut from, mut height) = (0.0, 0.0, 1.0);
    for step in kaplan_meier(&arrivals).into_iter().filter(|step| step.time < to) {
        area += height * (step.time - from);
        (from, height) = (step.time, step.survival);
    }
    area += height * (to - from);
    approx::assert_relative_eq!(restricted_mean(&arrivals, to).unwrap().mean, area, max_relative = 1e-12);
}

/// Three seeds cross at one evaluation, 180 s after the one before: the mean is that, the interval the grid.
#[test]
fn an_interval_is_never_narrower_than_the_grid() {
    let seen = Arrival { time: 5404.0, since: 5224.0, has_arrived: true };
    let found = restricted_mean(&[seen; 3], f64::INFINITY).unwrap();
    assert_eq!((found.mean, found.ci95), (5404.0, Some([5224.0, 5404.0])));
    let other = Arrival { time: 5044.0, since: 4864.0, has_arrived: true };
    let found = restricted_difference(&[(seen, other); 3], f64::INFINITY, 1e-12).unwrap();
    assert_eq!((found.mean, found.ci95), (360.0, Some([180.0, 540.0])));
    // Both at the same evaluation: either may have been first.
    let found = restricted_difference(&[(seen, seen); 3], f64::INFINITY, 1e-12).unwrap();
    assert_eq!((found.mean, found.ci95), (0.0, Some([-180.0, 180.0])));
}

/// Every seed is in the difference: min(T, 10) of 4, 6, 10 less those of 10, 5, 8 are −6, 1, 2.
#[test]
fn differences_are_over_all_pairs() {
    let left = [Arrival::at(4.0), Arrival::at(6.0), Arrival::after(10.0)];
    let right = [Arrival::after(12.0), Arrival::at(5.0), Arrival::at(8.0)];
    let pairs: Vec<_> = left.into_iter().zip(right).collect();
    let to = horizon(left.iter().chain(&right));
    assert_eq!(to, 10.0);
    let found = restricted_difference(&pairs, to, 1e-12).unwrap();
    assert_eq!(Some(found), paired_difference(&[-6.0, 1.0, 2.0], &[0.0; 3]));
    let means = [left, right].map(|side| restricted_mean(&side, to).unwrap().mean);
    approx::assert_relative_eq!(found.mean, means[0] - means[1], max_relative = 1e-12);
    assert_eq!(restricted_difference(&[(Arrival::after(3.0), Arrival::after(5.0))], 3.0, 1e-12), None);
}

const REPLICATIONS: u32 = 1_000;
const SEEDS: u32 = 12;

/// How often a statement holds in replications of a trial with seeds that both sides share. Of 1000 replications 950
/// should be right; three standard deviations (binomial) less are 929.
fn holds(until: f64, period: f64, longer: f64, is_right: impl Fn(&[(Arrival, Arrival)]) -> bool) -> u32 {
    let streams = Streams::new(7);
    let replication = |number: u32| {
        let mut rng = streams.stream(Purpose::Resampling, number, 0);
        let pair = |_| {
            let [shared, mine, theirs] = [rng.uniform(), rng.uniform(), rng.uniform()];
            let of = |own, scale: f64| watched(scale * time(shared, own), until, period);
            (of(mine, longer), of(theirs, 1.0))
        };
        u32::from(is_right(&(0..SEEDS).map(pair).collect::<Vec<_>>()))
    };
    (0..REPLICATIONS).map(replication).sum()
}

/// A time that is the world's (shared by both sides) plus the policy's own, each exponential with mean 1; the mean of
/// min(T, h) is 2 − (2 + h) e^(−h).
fn time(shared: f64, own: f64) -> f64 {
    -(1.0 - shared).ln() - (1.0 - own).ln()
}

/// Observation of a time until the end of the run, every `period`, or at every instant if that is 0.
fn watched(time: f64, until: f64, period: f64) -> Arrival {
    let seen = if period > 0.0 { (time / period).ceil() * period } else { time };
    if seen > until {
        return Arrival::after(until);
    }
    Arrival { time: seen, since: if period > 0.0 { seen - period } else { time }, has_arrived: true }
}

fn contains(found: Option<Estimate>, truth: f64) -> bool {
    found.and_then(|found| found.ci95).is_none_or(|[low, high]| low <= truth && truth <= high)
}

/// Equal policies, with no run, a quarter or nine in ten that never arrive: at most 5 % are told apart.
#[test]
fn equal_policies_are_seldom_told_apart() {
    for (until, period) in [(f64::INFINITY, 0.0), (2.7, 0.0), (2.7, 0.3), (0.6, 0.0)] {
        let right = holds(until, period, 1.0, |pairs| {
            let to = horizon(pairs.iter().flat_map(|(left, right)| [left, right]));
            contains(restricted_difference(pairs, to, 1e-12), 0.0)
        });
        assert!(right >= 929, "watched until {until} every {period}: {right} of {REPLICATIONS}");
    }
}

/// A policy that takes 1 % longer, or three times as long, watched to a fixed horizon: the true difference of
/// restricted means is inside the interval in 95 %, and so is each restricted mean.
#[test]
fn true_differences_and_means_lie_inside_their_intervals() {
    const UNTIL: f64 = 2.7;
    let mean = |h: f64| 2.0 - (2.0 + h) * (-h).exp();
    for (longer, period) in [(1.01, 0.0), (1.01, 0.3), (3.0, 0.0)] {
        let truth = longer * mean(UNTIL / longer) - mean(UNTIL);
        let right = holds(UNTIL, period, longer, |pairs| contains(restricted_difference(pairs, UNTIL, 1e-12), truth));
        let of_mean = holds(UNTIL, period, longer, |pairs| {
            let left: Vec<Arrival> = pairs.iter().map(|pair| pair.0).collect();
            contains(restricted_mean(&left, UNTIL), longer * mean(UNTIL / longer))
        });
        assert!(right >= 929 && of_mean >= 929, "{longer}, every {period}: {right} and {of_mean} of {REPLICATIONS}");
    }
}

/// The median of all times, where a quarter never arrives: S(t) = (1 + t) e^(−t) is one half at 1.678347.
#[test]
fn true_medians_lie_inside_their_intervals() {
    let right = holds(2.7, 0.0, 1.0, |pairs| {
        let found = median(&pairs.iter().map(|pair| pair.0).collect::<Vec<_>>());
        found.ci95[0].is_none_or(|low| low <= 1.678_347) && found.ci95[1].is_none_or(|high| 1.678_347 <= high)
    });
    assert!(right >= 929, "{right} of {REPLICATIONS}");
}
