//! The problem by enumeration of all sets, and random instances that provoke ties: the reference of the tests.

use super::{Instance, TIE};
use crate::rng::StreamRng;

/// All `size`-subsets of `0..candidates` in lexicographic order.
pub fn subsets(candidates: usize, size: usize) -> Vec<Vec<u32>> {
    fn extend(from: u32, candidates: u32, size: usize, set: &mut Vec<u32>, all: &mut Vec<Vec<u32>>) {
        if set.len() == size {
            all.push(set.clone());
            return;
        }
        for next in from..candidates {
            set.push(next);
            extend(next + 1, candidates, size, set, all);
            set.pop();
        }
    }
    let mut all = Vec::new();
    extend(0, candidates as u32, size, &mut Vec::new(), &mut all);
    all
}

/// The first set, in lexicographic order, whose value is within [`TIE`] of the maximum.
pub fn solve(instance: &Instance<'_>) -> (f64, Vec<u32>) {
    let sets = subsets(instance.speed.len(), instance.cohort);
    let values: Vec<f64> = sets.iter().map(|set| instance.value(set)).collect();
    let best = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let winner = values.iter().position(|&value| value >= best - TIE).expect("the maximum itself is within the tie");
    (values[winner], sets[winner].clone())
}

/// One random number of the given style; the styles differ in how often values coincide.
///
/// No sum of differences of them is exactly [`TIE`], where rounding would decide.
pub fn draw(style: u64, rng: &mut StreamRng) -> f64 {
    match style {
        0 => rng.uniform() * 2.0 - 1.0,
        1 => rng.below(4) as f64,
        2 => rng.below(9) as f64 * 0.25 - 1.0,
        3 => rng.below(40) as f64 * 0.05 - 1.0,
        4 => 0.3,
        5 => 0.7 + rng.below(4) as f64 * 0.4e-12,
        6 => 0.1 * rng.below(3) as f64 + rng.below(5) as f64 * 0.4e-12,
        7 => -rng.uniform(),
        _ => rng.uniform() * 3e-12,
    }
}

/// How many styles [`draw`] knows.
pub const STYLES: u64 = 9;

/// Random speeds, sometimes with infinities, and random gains.
pub fn arrays(candidates: usize, rng: &mut StreamRng) -> (Vec<f64>, Vec<f64>) {
    let (speed_style, gain_style, odd) = (rng.below(STYLES), rng.below(STYLES), rng.below(6));
    let speed = (0..candidates)
        .map(|_| match (odd, rng.below(3)) {
            (0 | 2, 0) => f64::INFINITY,
            (1 | 2, 1) => f64::NEG_INFINITY,
            _ => draw(speed_style, rng),
        })
        .collect();
    let gain = (0..candidates).map(|_| draw(gain_style, rng)).collect();
    (speed, gain)
}
