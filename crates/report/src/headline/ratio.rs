//! Ratios of policies' means, and their intervals.

use crate::folders::Pairing;
use crate::study::Study;
use fedgenie_core::math::statistics::survival::Arrival;
use fedgenie_core::math::statistics::{Estimate, estimate};
use fedgenie_experiment::experiment::RunSummary;
use fedgenie_experiment::experiment::sample::Sample;
use fedgenie_experiment::experiment::until::is_until;

/// The ratio of a policy's value to another's at the same point of the same folder.
pub(super) fn ratio(study: &Study<'_>, (arm, point): (usize, usize), key: &str, to: &str) -> Option<Estimate> {
    let of_folder = |other: &usize| study.arms[*other].folder == study.arms[arm].folder;
    let is_called = |other: &usize| study.arms[*other].label == to || study.arms[*other].policy == to;
    let all = || 0..study.arms.len();
    let own = all().filter(of_folder).find(is_called);
    let against = own.or_else(|| all().find(|&other| study.arms[other].label == to))?;
    let [mine, theirs] = [arm, against].map(|arm| study.estimate(arm, point, key).filter(|found| found.mean > 0.0));
    let (mine, theirs) = (mine?, theirs?);
    if against == arm {
        return Some(Estimate { mean: 1.0, ci95: None, n: mine.n });
    }
    let pairs = pairs(study, [arm, against], point, key)?;
    Some(Estimate { mean: mine.mean / theirs.mean, ci95: limits(&pairs), n: pairs.len() })
}

/// The values of two policies in common seeds, up to the horizon; none if they have medians or share no draws; `None`
/// if the two are not fairly watched.
fn pairs(study: &Study<'_>, arms: [usize; 2], point: usize, key: &str) -> Option<Vec<[Arrival; 2]>> {
    let [one, other] = arms.map(|arm| study.sample(arm, point, key));
    let horizon = study.follow_up(point, key).horizon_of(Sample::follow_up([&one, &other]))?;
    if study.is_median(point, key) || study.pairing(arms, key) != Pairing::Paired {
        return Some(Vec::new());
    }
    let value = |run: &RunSummary| match is_until(key) {
        true => run.arrival(key),
        false => run.number(key).map(Arrival::at),
    };
    let [mine, theirs] = arms.map(|arm| &study.arms[arm].runs[point]);
    let cut = |arrival: Arrival| {
        let (time, since) = (arrival.time.min(horizon), arrival.since.min(horizon));
        Arrival { time, since, ..arrival }
    };
    let pair = |(seed, run): (&u64, &&RunSummary)| Some([cut(value(run)?), cut(value(theirs.get(seed)?)?)]);
    Some(mine.iter().filter_map(pair).collect())
}

/// Fieller's limits of the ratio of means of pairs, from the earliest possible times of one and the latest of the
/// other; `None` if the other's mean is not told from 0.
fn limits(pairs: &[[Arrival; 2]]) -> Option<[f64; 2]> {
    let of = |left: fn(&Arrival) -> f64, right: fn(&Arrival) -> f64| {
        fieller(&pairs.iter().map(|[one, other]| (left(one), right(other))).collect::<Vec<_>>())
    };
    let low = of(|one| one.since, |other| other.time)?[0];
    let high = of(|one| one.time, |other| other.since)?[1];
    Some([low, high])
}

/// The ratios `r` for which the mean of `x − r·y` is not told from 0 by Student's interval.
fn fieller(pairs: &[(f64, f64)]) -> Option<[f64; 2]> {
    let of = |pick: fn(&(f64, f64)) -> f64| {
        let found = estimate(&pairs.iter().map(pick).collect::<Vec<_>>())?;
        Some((found.mean, found.half_width()?))
    };
    // Squares of half widths are variances of means, times a common factor.
    let ((x, half_x), (y, half_y), (_, half_sum)) =
        (of(|pair| pair.0)?, of(|pair| pair.1)?, of(|pair| pair.0 + pair.1)?);
    let (xx, yy) = (half_x * half_x, half_y * half_y);
    let xy = (half_sum * half_sum - xx - yy) / 2.0;
    let (a, b) = (y * y - yy, x * y - xy);
    // b² − a·(x² − xx), without the difference of large numbers: nothing if nothing varies.
    let root = (x * x * yy - 2.0 * x * y * xy + y * y * xx + xy * xy - xx * yy).max(0.0).sqrt();
    (a > 0.0).then(|| [(b - root) / a, (b + root) / a])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At each end of the interval, Student's interval of `x − r·y` ends at 0; with the interval of a time that is
    /// known to its evaluation alone, the interval is wider.
    #[test]
    fn a_ratio_has_an_interval_at_whose_ends_the_difference_touches_nothing() {
        let values = [(2.1, 1.0), (3.8, 2.0), (6.3, 3.0), (5.0, 2.4)];
        let [low, high] = fieller(&values).unwrap();
        assert!(low < 17.2 / 8.4 && 17.2 / 8.4 < high);
        for (ratio, end) in [(low, 0), (high, 1)] {
            let minus: Vec<f64> = values.iter().map(|(x, y)| x - ratio * y).collect();
            let ends = estimate(&minus).unwrap().ci95.unwrap();
            assert!(ends[end].abs() < 1e-12, "{ratio}: {ends:?}");
        }
        let same = fieller(&[(20.0, 10.0), (22.0, 11.0), (24.0, 12.0)]).unwrap();
        assert!(same.iter().all(|end| (end - 2.0).abs() < 1e-6), "{same:?}");
        assert_eq!(fieller(&[(2.0, 1.0), (4.0, -2.0), (6.0, 0.5)]), None, "the other is not told from 0");
        assert_eq!(fieller(&[(2.0, 1.0)]), None);
        let fixed = fieller(&[(5400.0, 5404.0); 3]).unwrap();
        assert!(fixed[0] == fixed[1] && (fixed[0] - 5400.0 / 5404.0).abs() < 1e-15, "{fixed:?}");
        let pair = |(x, y): &(f64, f64)| [Arrival { since: x - 0.1, ..Arrival::at(*x) }, Arrival::at(*y)];
        let wide = limits(&values.iter().map(pair).collect::<Vec<_>>()).unwrap();
        assert!(wide[0] < low && wide[1] == high, "{wide:?}");
    }
}
