//! The best set of at most `m` clients, (16): estimated contributions, less the price of the slowest.

use fedgenie_core::oracle::{Exact, Instance, TIE, free_size};

/// The solver, with its buffers.
#[derive(Debug, Default)]
pub(super) struct Joint {
    exact: Exact,
}

impl Joint {
    /// Writes positions to `chosen`, ascending. Clients with infinite contributions are taken first, by position, and
    /// the best of the others fill the places left.
    pub fn solve(
        &mut self,
        scores: &[f64],
        times: &[f64],
        price: f64,
        most: usize,
        is_greedy: bool,
        chosen: &mut Vec<u32>,
    ) {
        chosen.clear();
        let infinite = (0..).zip(scores).filter(|(_, score)| score.is_infinite()).map(|(position, _)| position);
        chosen.extend(infinite.take(most));
        let others: Vec<u32> =
            (0..).zip(scores).filter(|(_, score)| score.is_finite()).map(|(position, _)| position).collect();
        if chosen.len() == most || others.is_empty() {
            return;
        }
        // A client that is faster than one taken anyway costs nothing.
        let least = chosen.iter().map(|&position| times[position as usize]).fold(0.0, f64::max);
        let scores: Vec<f64> = others.iter().map(|&position| scores[position as usize]).collect();
        let times: Vec<f64> = others.iter().map(|&position| (times[position as usize] - least).max(0.0)).collect();
        let left = most - chosen.len();
        let (value, set) = match is_greedy {
            true => free_size::greedy(&scores, &times, price, left),
            false => self.at_most(&scores, &times, price, left),
        };
        if chosen.is_empty() || value > TIE {
            chosen.extend(set.iter().map(|&index| others[index as usize]));
            chosen.sort_unstable();
        }
    }

    /// The best of all sets of one to `most` clients.
    fn at_most(&mut self, scores: &[f64], times: &[f64], price: f64, most: usize) -> (f64, Vec<u32>) {
        let speeds: Vec<f64> = times.iter().map(|time| -price * time).collect();
        let mut found: Option<(f64, Vec<u32>)> = None;
        for size in 1..=most.min(scores.len()) {
            let mut set = Vec::new();
            let value =
                self.exact.maximise(&Instance { speed: &speeds, gain: scores, cohort: size, take: size }, &mut set);
            let is_better =
                found.as_ref().is_none_or(|(best, first)| value > best + TIE || value >= best - TIE && set < *first);
            if is_better {
                found = Some((value, set));
            }
        }
        found.expect("a set has one member at least")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedgenie_core::oracle::brute;
    use fedgenie_core::rng::{Purpose, Streams};

    fn solve(scores: &[f64], times: &[f64], price: f64, most: usize, is_greedy: bool) -> Vec<u32> {
        let mut chosen = Vec::new();
        Joint::default().solve(scores, times, price, most, is_greedy, &mut chosen);
        chosen
    }

    #[test]
    fn the_best_set_and_the_first_of_equals() {
        let mut rng = Streams::new(9).stream(Purpose::Solver, 0, 0);
        for _ in 0..500 {
            let clients = 1 + rng.below(8) as u32;
            let most = 1 + rng.below(u64::from(clients)) as usize;
            // Coarse numbers, so that ties occur; none above 0 now and then.
            let shift = rng.below(3) as f64;
            let scores: Vec<f64> = (0..clients).map(|_| rng.below(5) as f64 * 0.25 - shift).collect();
            let times: Vec<f64> = (0..clients).map(|_| rng.below(4) as f64 * 0.5).collect();
            let price = rng.below(4) as f64 * 0.5;
            let sets = (1..=most).flat_map(|size| brute::subsets(clients as usize, size));
            let valued: Vec<(f64, Vec<u32>)> =
                sets.map(|set| (free_size::value(&scores, &times, price, &set), set)).collect();
            let best = valued.iter().map(|(value, _)| *value).fold(f64::NEG_INFINITY, f64::max);
            let first = valued.iter().filter(|(value, _)| *value >= best - TIE).map(|(_, set)| set).min().unwrap();
            assert_eq!(solve(&scores, &times, price, most, false), *first, "{scores:?} {times:?} {price} {most}");
            let greedy = solve(&scores, &times, price, most, true);
            assert!((1..=most).contains(&greedy.len()));
            assert!(free_size::value(&scores, &times, price, &greedy) <= best + TIE);
        }
    }

    /// Clients 1 and 3 were never seen. Client 0 is worth its time beside client 3, which is slow anyway; client 2 is
    /// worth nothing.
    #[test]
    fn who_was_never_seen_comes_first() {
        let (scores, times) = ([0.1, f64::INFINITY, -0.5, f64::INFINITY], [3.0, 1.0, 1.0, 4.0]);
        assert_eq!(solve(&scores, &times, 1.0, 1, false), [1]);
        assert_eq!(solve(&scores, &times, 1.0, 2, true), [1, 3]);
        for is_greedy in [false, true] {
            assert_eq!(solve(&scores, &times, 1.0, 4, is_greedy), [0, 1, 3]);
        }
        assert_eq!(solve(&scores[..3], &times[..3], 1.0, 3, false), [1], "0.1 does not pay for two more units of time");
    }
}
