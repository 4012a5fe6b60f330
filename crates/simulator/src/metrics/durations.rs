//! How long rounds take: exact extremes and mean, and a histogram whose bins are equally wide on a logarithmic scale.
//!
//! # Definition
//! Bin 0 counts durations of zero. Bin `i ≥ 1` counts those of at least `e(i − 1)` and less than `e(i)`, with `e(i)`
//! the whole number of nanoseconds nearest to `10^(i/20)`: bins are 12 % wide. Rounds that take exactly as long as the
//! shortest or the longest are counted besides: where a deadline closes rounds, most of them take the same time to the
//! nanosecond.

use fedgenie_core::math::float;
use fedgenie_core::state::Stateful;
use fedgenie_core::time::Span;
use serde::{Deserialize, Serialize};

/// Bins per factor of ten.
pub const BINS_PER_DECADE: usize = 20;

/// Bins that cover all spans of time: 2⁶⁴ ns are less than 10^19.3 ns.
const BINS: usize = 387;

const NANOSECOND: f64 = 1e-9;

/// Durations of a run's rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Durations {
    /// How many rounds.
    pub rounds: u64,
    /// The shortest, in seconds.
    pub min_s: f64,
    /// The longest, in seconds.
    pub max_s: f64,
    /// The mean, in seconds.
    pub mean_s: f64,
    /// Number and count of each bin that is not empty, ascending.
    pub bins: Vec<(u16, u64)>,
    /// How many rounds take exactly the shortest time; 0 where that is not known.
    #[serde(default)]
    pub at_min: u64,
    /// How many rounds take exactly the longest time; 0 where that is not known.
    #[serde(default)]
    pub at_max: u64,
}

impl Durations {
    /// Takes in the rounds of another run. Of two shortest times the longer loses its count, and likewise of two
    /// longest.
    pub fn merge(&mut self, other: &Self) {
        if other.rounds == 0 {
            return;
        }
        if self.rounds == 0 {
            self.clone_from(other);
            return;
        }
        let (mine, theirs) = (self.rounds as f64, other.rounds as f64);
        self.mean_s = (self.mean_s * mine + other.mean_s * theirs) / (mine + theirs);
        if other.min_s < self.min_s {
            (self.min_s, self.at_min) = (other.min_s, 0);
        }
        if other.max_s > self.max_s {
            (self.max_s, self.at_max) = (other.max_s, 0);
        }
        self.at_min += if other.min_s == self.min_s { other.at_min } else { 0 };
        self.at_max += if other.max_s == self.max_s { other.at_max } else { 0 };
        self.rounds += other.rounds;
        for &(bin, count) in &other.bins {
            match self.bins.binary_search_by_key(&bin, |&(bin, _)| bin) {
                Ok(index) => self.bins[index].1 += count,
                Err(index) => self.bins.insert(index, (bin, count)),
            }
        }
    }

    /// The distribution function: durations in seconds, ascending, and the share of rounds that take at most (at an
    /// edge of a bin: less than) so long. It is exact at every point; the first is the shortest round, the last the
    /// longest. Two points of one duration are a jump: so many rounds take exactly that long.
    pub fn distribution(&self) -> Vec<(f64, f64)> {
        if self.rounds == 0 {
            return Vec::new();
        }
        if self.min_s >= self.max_s {
            return vec![(self.min_s, 0.0), (self.max_s, 1.0)];
        }
        let edges = edges();
        let share = |count: u64| count as f64 / self.rounds as f64;
        let mut points = vec![(self.min_s, 0.0), (self.min_s, share(self.at_min))];
        let mut below = 0;
        for &(bin, count) in &self.bins {
            let bin = usize::from(bin).min(BINS - 1);
            let mut add = |edge: u64, below: u64| {
                let duration = edge as f64 * NANOSECOND;
                if self.min_s < duration && duration < self.max_s {
                    points.push((duration, share(below)));
                }
            };
            if bin > 0 {
                add(edges[bin - 1], below);
            }
            below += count;
            add(edges[bin], below);
        }
        points.extend([(self.max_s, share(self.rounds - self.at_max)), (self.max_s, 1.0)]);
        points.dedup();
        points
    }

    /// The duration that a share of rounds do not exceed, interpolated inside a bin; none without rounds.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let points = self.distribution();
        let after = points.partition_point(|&(_, below)| below < share);
        let (Some(&(end, high)), Some(&(start, low))) = (points.get(after), points.get(after.saturating_sub(1))) else {
            return points.last().map(|&(longest, _)| longest);
        };
        if high <= low { Some(end) } else { Some(start + (end - start) * (share - low) / (high - low)) }
    }
}

/// Where bins end, in nanoseconds.
fn edges() -> Vec<u64> {
    let edge = |bin: usize| float::floor(float::power(10.0, bin as f64 / BINS_PER_DECADE as f64) + 0.5) as u64;
    (0..BINS).map(edge).collect()
}

/// Durations while a run goes on.
#[derive(Debug, Stateful)]
#[state(check = Self::is_sound)]
pub(super) struct DurationFold {
    #[state(skip = "constant")]
    edges: Vec<u64>,
    #[state(each)]
    counts: Vec<u64>,
    rounds: u64,
    sum: u128,
    range: (u64, u64),
    /// Rounds exactly at the two ends of the range.
    at_ends: (u64, u64),
    /// The bin of the last round, where the next one is looked for first.
    last: usize,
}

impl Default for DurationFold {
    fn default() -> Self {
        Self {
            edges: edges(),
            counts: vec![0; BINS],
            rounds: 0,
            sum: 0,
            range: (u64::MAX, 0),
            at_ends: (0, 0),
            last: 1,
        }
    }
}

impl DurationFold {
    fn is_sound(&self) -> bool {
        (1..BINS).contains(&self.last)
    }

    pub fn add(&mut self, duration: Span) {
        let duration = duration.0;
        self.rounds += 1;
        self.sum += u128::from(duration);
        if duration < self.range.0 {
            (self.range.0, self.at_ends.0) = (duration, 0);
        }
        if duration > self.range.1 {
            (self.range.1, self.at_ends.1) = (duration, 0);
        }
        self.at_ends.0 += u64::from(duration == self.range.0);
        self.at_ends.1 += u64::from(duration == self.range.1);
        if !(self.edges[self.last - 1]..self.edges[self.last]).contains(&duration) {
            let bin = self.edges.partition_point(|&edge| edge <= duration).min(BINS - 1);
            if bin == 0 {
                self.counts[0] += 1;
                return;
            }
            self.last = bin;
        }
        self.counts[self.last] += 1;
    }

    pub fn finish(self) -> Durations {
        if self.rounds == 0 {
            return Durations::default();
        }
        let filled = self.counts.iter().enumerate().filter(|&(_, &count)| count > 0);
        Durations {
            rounds: self.rounds,
            min_s: Span(self.range.0).seconds(),
            max_s: Span(self.range.1).seconds(),
            mean_s: self.sum as f64 / self.rounds as f64 * NANOSECOND,
            bins: filled.map(|(bin, &count)| (bin as u16, count)).collect(),
            at_min: self.at_ends.0,
            at_max: self.at_ends.1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(durations: &[u64]) -> Durations {
        let mut fold = DurationFold::default();
        durations.iter().for_each(|&duration| fold.add(Span(duration)));
        fold.finish()
    }

    /// 10^(20/20) = 10, 10^(21/20) = 11.2 and 10^(19/20) = 8.9, to the nearest nanosecond: 10 ns lie in bin 21, 11 ns
    /// in bin 22, 9 ns in bin 20.
    #[test]
    fn bins_by_hand() {
        let found = folded(&[10, 0, 9, 11, 10, 1, u64::MAX]);
        assert_eq!(
            found.bins,
            [(0, 1), (4, 1), (20, 1), (21, 2), (22, 1), (386, 1)],
            "one is the edge of four bins at once"
        );
        assert_eq!((found.rounds, found.min_s, found.max_s), (7, 0.0, u64::MAX as f64 * 1e-9));
        let found = folded(&[1_000_000_000, 3_000_000_000]);
        assert_eq!(found.bins, [(181, 1), (190, 1)], "a second is an edge: 10^(180/20) ns");
        assert_eq!((found.min_s, found.max_s, found.mean_s), (1.0, 3.0, 2.0));
        assert_eq!(folded(&[]), Durations::default());
    }

    #[test]
    fn two_runs_are_one() {
        let (one, other) = ([5, 70_000, 5_000_000, 3], [70_001, 0, 9_999_999_999]);
        let mut merged = folded(&one);
        merged.merge(&folded(&other));
        let all = folded(&[&one[..], &other].concat());
        assert_eq!(Durations { mean_s: all.mean_s, ..merged.clone() }, all);
        approx::assert_relative_eq!(merged.mean_s, all.mean_s, max_relative = 1e-12);
        let mut none = Durations::default();
        none.merge(&all);
        none.merge(&Durations::default());
        assert_eq!(none, all);
    }

    #[test]
    fn the_distribution_rises_from_none_to_all() {
        let found = folded(&(1..=1_000).map(|step| step * 1_000_000).collect::<Vec<_>>());
        let points = found.distribution();
        assert_eq!((points[0], *points.last().unwrap()), ((0.001, 0.0), (1.0, 1.0)));
        assert!(points.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1));
        // 100 ms is an edge: exactly 99 rounds are shorter.
        assert!(points.iter().any(|&(duration, share)| (duration - 0.1).abs() < 1e-12 && share == 0.099));
        approx::assert_relative_eq!(found.quantile(0.5).unwrap(), 0.5, max_relative = 0.01);
        approx::assert_relative_eq!(found.quantile(1.0).unwrap(), 1.0, max_relative = 1e-12);
        assert_eq!(folded(&[]).quantile(0.5), None);
        let constant = folded(&[7; 30]);
        assert_eq!(constant.distribution(), [(constant.min_s, 0.0), (constant.min_s, 1.0)]);
        let zeros = folded(&[0, 0, 5, 5]).distribution();
        assert_eq!((zeros[1], zeros[zeros.len() - 2]), ((0.0, 0.5), (5e-9, 0.5)));
    }

    /// 360 s lie inside of a bin that begins at 354.8 s: of 100 rounds 76 take that long.
    #[test]
    fn a_deadline_is_a_jump() {
        let seconds = |second: u64| second * 1_000_000_000;
        let mut durations: Vec<u64> = (1..=24).map(|step| seconds(10 * step + 100)).collect();
        durations.extend([seconds(360); 76]);
        let mut found = folded(&durations);
        assert_eq!((found.at_min, found.at_max), (1, 76));
        for _ in 0..2 {
            assert_eq!([0.25, 0.5, 0.95].map(|share| found.quantile(share).unwrap()), [360.0; 3]);
            assert!(found.quantile(0.2).unwrap() < 355.0);
            let points = found.distribution();
            assert_eq!(points[points.len() - 2..], [(360.0, 0.24), (360.0, 1.0)]);
            found.merge(&folded(&durations));
        }
        assert_eq!((found.at_min, found.at_max), (3, 228));
        let unknown = Durations { at_min: 0, at_max: 0, ..found };
        assert!(unknown.quantile(0.5).unwrap() < 360.0, "of older records the rounds are spread over their bin");
    }
}
