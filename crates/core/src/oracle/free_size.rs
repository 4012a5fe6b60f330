//! The selection problem of MAB-FRS: a sum of utilities less a price for the slowest, over sets of any size.
//!
//! # Definition
//! ```text
//! max over non-empty sets N of  Σ_{i∈N} S_i − κ·max_{i∈N} T_i
//! ```
//! [`maximise`] walks the clients by rising time and keeps the sum of positive utilities seen so far: the best set
//! whose slowest client is `i` holds `i` and all faster clients of positive utility. [`greedy`] is the paper's rule: it
//! adds, one at a time, the client with the largest `S_i − κ·ΔT` until none is positive.
//!
//! # Inputs
//! Utilities and times (not negative), one per client, finite; price `κ ≥ 0`.
//!
//! # Source
//! MAB-FRS (16) and the paragraph below it: Liu, Goudarzi, Toosi 2025. The paper has a time budget besides, without a
//! value; there is none here.
//!
//! # Deviations
//! The paper calls the exact solution NP-hard. It is a sort and a walk. Ties: the smallest last client in (time, id)
//! wins.
//!
//! # Cost
//! `maximise`: O(K log K). `greedy`: O(K·|N|).

use super::TIE;

/// The best set, ascending, and its value.
///
/// # Panics
/// If the lists differ in length, are empty, or hold a NaN.
pub fn maximise(utilities: &[f64], times: &[f64], price: f64) -> (f64, Vec<u32>) {
    assert_eq!(utilities.len(), times.len(), "a utility and a time per client");
    assert!(!times.is_empty(), "a set has members");
    assert!(utilities.iter().chain(times).all(|number| number.is_finite()), "utilities and times are finite");
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.sort_by(|&one, &two| times[one].total_cmp(&times[two]).then(one.cmp(&two)));
    let mut sum = 0.0;
    let (mut best, mut last) = (f64::NEG_INFINITY, 0);
    for (place, &client) in order.iter().enumerate() {
        // This client is in the set whatever its utility: it is the slowest.
        let value = sum + utilities[client] - price * times[client];
        if value > best {
            (best, last) = (value, place);
        }
        sum += utilities[client].max(0.0);
    }
    let mut set: Vec<u32> =
        order[..last].iter().filter(|&&client| utilities[client] > 0.0).map(|&client| client as u32).collect();
    set.push(order[last] as u32);
    set.sort_unstable();
    (best, set)
}

/// The set of at most `most` clients that the greedy rule ends with, ascending, and its value. It begins with the best
/// single client; among clients that are worth the same within [`TIE`] the first is added.
///
/// # Panics
/// As [`maximise`]; if `most` is 0.
pub fn greedy(utilities: &[f64], times: &[f64], price: f64, most: usize) -> (f64, Vec<u32>) {
    assert!(most > 0, "a set has members");
    assert_eq!(utilities.len(), times.len(), "a utility and a time per client");
    assert!(!times.is_empty(), "a set has members");
    let (mut set, mut slowest) = (Vec::new(), 0.0_f64);
    let mut left: Vec<usize> = (0..times.len()).collect();
    while !left.is_empty() && set.len() < most {
        let marginal = |client: usize| utilities[client] - price * (times[client] - slowest).max(0.0);
        let best = left.iter().map(|&client| marginal(client)).fold(f64::NEG_INFINITY, f64::max);
        if best <= 0.0 && !set.is_empty() {
            break;
        }
        let place = left.iter().position(|&client| marginal(client) >= best - TIE).expect("the best is one of them");
        let client = left.remove(place);
        slowest = slowest.max(times[client]);
        set.push(client as u32);
    }
    set.sort_unstable();
    (value(utilities, times, price, &set), set)
}

/// The value of a non-empty set.
pub fn value(utilities: &[f64], times: &[f64], price: f64, set: &[u32]) -> f64 {
    let slowest = set.iter().map(|&client| times[client as usize]).fold(f64::NEG_INFINITY, f64::max);
    set.iter().map(|&client| utilities[client as usize]).sum::<f64>() - price * slowest
}

/// The best value over all non-empty sets, by enumeration.
///
/// # Panics
/// If there are more than 25 clients.
pub fn enumerate(utilities: &[f64], times: &[f64], price: f64) -> f64 {
    assert!(times.len() <= 25, "{} clients have too many sets", times.len());
    let members =
        |mask: u32| (0..times.len() as u32).filter(move |client| mask >> client & 1 == 1).collect::<Vec<u32>>();
    let values = (1..1_u32 << times.len()).map(|mask| value(utilities, times, price, &members(mask)));
    values.fold(f64::NEG_INFINITY, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Streams};

    #[test]
    fn the_walk_finds_what_enumeration_finds() {
        let streams = Streams::new(3);
        for instance in 0..400 {
            let mut rng = streams.stream(Purpose::Resampling, instance, 0);
            let clients = 1 + rng.below(9) as usize;
            // Coarse numbers, so that ties occur.
            let utilities: Vec<f64> = (0..clients).map(|_| rng.below(9) as f64 * 0.25 - 1.0).collect();
            let times: Vec<f64> = (0..clients).map(|_| rng.below(5) as f64 * 0.5).collect();
            let price = rng.below(4) as f64 * 0.4;
            let (best, set) = maximise(&utilities, &times, price);
            approx::assert_relative_eq!(best, enumerate(&utilities, &times, price), epsilon = 1e-12);
            approx::assert_relative_eq!(best, value(&utilities, &times, price, &set), epsilon = 1e-12);
            let (found, set) = greedy(&utilities, &times, price, clients);
            assert!(found <= best + 1e-12 && !set.is_empty());
        }
    }

    /// Two slow clients pay together and neither does alone: greedy search stops before them.
    #[test]
    fn greedy_misses_what_pays_only_together() {
        let (utilities, times) = ([0.1, 0.6, 0.6], [0.0, 1.0, 1.0]);
        assert_eq!(maximise(&utilities, &times, 1.0).1, [0, 1, 2]);
        assert_eq!(greedy(&utilities, &times, 1.0, 3).1, [0]);
    }
}
