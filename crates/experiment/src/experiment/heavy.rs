//! Times under laws of infinite mean or variance: medians over seeds instead of means.
//!
//! # Definition
//! Where a client's latency has an infinite variance and rounds wait for it for ever, Student's interval of a mean time
//! promises too much. Times then have a median over seeds, and differences the median of the differences of pairs. The
//! 95 % interval lies between two order statistics, `x₍ᵣ₎` and `x₍ₙ₊₁₋ᵣ₎` with the largest `r` for which a binomial
//! variate (n, ½) is below `r` with probability 2.5 % at most: it is exact for any law. Fewer than six seeds have none.
//! Of times to a target, which count with the horizon at most, the ends are those of the earliest and of the latest
//! possible times.
//!
//! # Source
//! W. R. Thompson, *On confidence ranges for the median*, Annals of Mathematical Statistics 7 (1936).
//!
//! # Deviations from the source
//! Above 1000 seeds `r` is that of the normal approximation.

use super::{ROUNDING, RunSummary};
use fedgenie_core::math::float::{floor, sqrt};
use fedgenie_core::math::special::normal_quantile;
use fedgenie_core::math::statistics::survival::Arrival;
use fedgenie_core::math::statistics::{Estimate, Miss, quantile};
use serde::Serialize;

/// A median over seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MedianOf {
    /// The median.
    pub median: f64,
    /// The ends of its 95 % interval; `None` for fewer than six values.
    pub ci95: Option<[f64; 2]>,
    /// Number of values.
    pub n: usize,
}

impl From<MedianOf> for Estimate {
    /// The median in the place of the mean.
    fn from(MedianOf { median, ci95, n }: MedianOf) -> Self {
        Self { mean: median, ci95, n }
    }
}

/// Whether a number of runs is a time that latencies decide.
pub fn is_time(name: &str) -> bool {
    let times = ["virtual_time_s", "compute_s", "wasted_compute_s", "probe_compute_s"];
    times.contains(&name) || ["time_to.", "compute_to.", "probe_compute_to."].iter().any(|what| name.starts_with(what))
}

/// Whether runs met latencies without a variance, and nothing limited how long they waited.
pub fn are_heavy<'a>(runs: impl IntoIterator<Item = &'a RunSummary>) -> bool {
    runs.into_iter().any(|run| !run.heavy_tails.is_empty())
}

/// The place from either end of the order statistics that bound the median; 0 where there are too few.
fn rank(n: usize, miss: Miss) -> usize {
    const MOST: usize = 1000;
    if n > MOST {
        let half = if miss == Miss::USUAL { 0.98 } else { normal_quantile(1.0 - miss.share() / 2.0) / 2.0 };
        return floor(n as f64 / 2.0 - half * sqrt(n as f64)) as usize;
    }
    let (mut term, mut sum, mut rank) = ((0..n).fold(1.0, |power, _| power / 2.0), 0.0, 0);
    while sum + term <= miss.share() / 2.0 {
        sum += term;
        term *= (n - rank) as f64 / (rank + 1) as f64;
        rank += 1;
    }
    rank
}

/// The median of the latest possible values, with the interval from the earliest to the latest; `None` without values,
/// or where one is not finite.
pub(super) fn median_of(earliest: Vec<f64>, latest: Vec<f64>) -> Option<MedianOf> {
    median_at(earliest, latest, Miss::USUAL)
}

fn median_at(mut earliest: Vec<f64>, mut latest: Vec<f64>, miss: Miss) -> Option<MedianOf> {
    if latest.is_empty() || earliest.iter().chain(&latest).any(|value| !value.is_finite()) {
        return None;
    }
    earliest.sort_by(f64::total_cmp);
    latest.sort_by(f64::total_cmp);
    let (n, rank) = (latest.len(), rank(latest.len(), miss));
    let ci95 = (rank > 0).then(|| [earliest[rank - 1], latest[n - rank]]);
    Some(MedianOf { median: quantile(&latest, 0.5), ci95, n })
}

/// The median of the differences of pairs; `None` where no run arrives.
pub(super) fn difference_of(pairs: &[(Arrival, Arrival)], horizon: f64, miss: Miss) -> Option<MedianOf> {
    if !pairs.iter().any(|(mine, theirs)| mine.is_by(horizon) || theirs.is_by(horizon)) {
        return None;
    }
    let minus = |left: f64, right: f64| {
        let (left, right) = (left.min(horizon), right.min(horizon));
        if (left - right).abs() <= ROUNDING * left.abs().max(right.abs()) { 0.0 } else { left - right }
    };
    let of = |pick: fn(&Arrival, &Arrival) -> (f64, f64)| -> Vec<f64> {
        let ends = pairs.iter().map(|(mine, theirs)| pick(mine, theirs));
        ends.map(|(left, right)| minus(left, right)).collect()
    };
    let middle = of(|mine, theirs| (mine.time, theirs.time));
    let middle = median_at(middle.clone(), middle, miss)?;
    let earliest = of(|mine, theirs| (mine.since, theirs.time));
    let ci95 = median_at(earliest, of(|mine, theirs| (mine.time, theirs.since)), miss)?.ci95;
    Some(MedianOf { ci95, ..middle })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Binomial tables: with 5 values even the extremes miss the median in 6.25 %; of 6 to 8 they are the ends, of 9 to
    /// 11 the second from either end, of 20 the sixth (P(B < 6) = 0.0207), of 100 the 40th.
    #[test]
    fn ranks_of_the_table() {
        let ranks = [5, 6, 8, 9, 11, 12, 20, 100].map(|n| rank(n, Miss::USUAL));
        assert_eq!(ranks, [0, 1, 1, 2, 2, 3, 6, 40]);
        let (table, approximated) = (rank(1000, Miss::USUAL), floor(500.0 - 0.98 * sqrt(1000.0)) as usize);
        assert!(table.abs_diff(approximated) <= 1, "{table} and {approximated}");
    }

    #[test]
    fn one_huge_value_moves_no_median() {
        let values = vec![3.0, 1.0, 2.0, 5.0, 4.0, 1e300];
        let found = median_of(values.clone(), values).unwrap();
        assert_eq!(found, MedianOf { median: 3.5, ci95: Some([1.0, 1e300]), n: 6 });
        assert_eq!(median_of(vec![1.0; 5], vec![2.0; 5]).unwrap().ci95, None);
        assert_eq!(median_of(vec![1.0; 6], vec![2.0; 6]).unwrap().ci95, Some([1.0, 2.0]));
        assert_eq!(median_of(vec![], vec![]), None);
    }

    #[test]
    fn times_are_what_latencies_decide() {
        assert!(is_time("virtual_time_s") && is_time("time_to.test_loss <= 1"));
        assert!(!is_time("rounds") && !is_time("final.test_loss") && !is_time("bytes_to.test_loss <= 1"));
    }
}
