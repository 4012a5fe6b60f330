//! The exact solver beside a plain sort of as many pairs, in one run, so that the ratio survives a noisy machine.
//!
//! `cargo bench --bench solver`. Independent speeds and gains, weighted as in BSFL with α = 3; then, at a million
//! candidates, the unfavourable case in which the fast gain little, and the one in which all gains are equal.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the wall clock")]

use fedgenie::oracle::{Instance, bottleneck::Exact};
use fedgenie::rng::{Purpose, Streams};
use std::hint::black_box;
use std::time::Instant;

/// How gains relate to speeds.
#[derive(Clone, Copy, Debug)]
enum Gains {
    Independent,
    AntiCorrelated,
    Equal,
}

/// Different worlds per size, so that no branch predictor learns one by heart.
fn worlds(candidates: usize, cohort: usize, gains: Gains) -> Vec<(Vec<f64>, Vec<f64>)> {
    let weight = 3.0 / cohort as f64;
    (0..(200_000 / candidates).clamp(1, 1_000) as u32)
        .map(|world| {
            let mut rng = Streams::new(1).stream(Purpose::Solver, 0, world);
            let speed: Vec<f64> = (0..candidates).map(|_| rng.uniform()).collect();
            let gain = speed.iter().map(|&speed| match gains {
                Gains::Independent => weight * (rng.uniform() - 0.5),
                Gains::AntiCorrelated => weight * (0.5 - speed + 0.01 * rng.uniform()),
                Gains::Equal => weight * 0.5,
            });
            let gain = gain.collect();
            (speed, gain)
        })
        .collect()
}

/// Nanoseconds of one call, averaged over a batch.
fn time(batch: usize, mut call: impl FnMut(usize)) -> f64 {
    let start = Instant::now();
    (0..batch).for_each(&mut call);
    start.elapsed().as_nanos() as f64 / batch as f64
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}

fn compare(candidates: usize, cohort: usize, gains: Gains) {
    let worlds = worlds(candidates, cohort, gains);
    let batch = worlds.len();
    let repetitions = if candidates < 100_000 { 41 } else { 15 };
    let (mut exact, mut set) = (Exact::new(), Vec::new());
    let mut pairs: Vec<(f64, f64)> = Vec::new();
    let (mut solver, mut sort, mut copy) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..repetitions {
        solver.push(time(batch, |world| {
            let (speed, gain) = &worlds[world];
            let instance = Instance { speed, gain, cohort, take: cohort };
            black_box(exact.maximise(black_box(&instance), &mut set));
        }));
        let fill = |world: usize, pairs: &mut Vec<(f64, f64)>| {
            let (speed, gain) = &worlds[world];
            pairs.clear();
            pairs.extend(speed.iter().copied().zip(gain.iter().copied()));
            black_box(&pairs);
        };
        copy.push(time(batch, |world| fill(world, &mut pairs)));
        sort.push(time(batch, |world| {
            fill(world, &mut pairs);
            pairs.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
            black_box(&pairs);
        }));
    }
    // The pairs must be written before they can be sorted; that is not the sort's.
    let (solver, sort) = (median(&mut solver), median(&mut sort) - median(&mut copy));
    let gains = format!("{gains:?}");
    println!("{candidates:>9} {cohort:>6}  {gains:<15}{solver:>14.0}{sort:>14.0}{:>9.3}", solver / sort);
}

fn main() {
    println!("{:>9} {:>6}  {:<15}{:>14}{:>14}{:>9}", "K", "m", "gains", "solver, ns", "sort, ns", "ratio");
    for (candidates, cohort) in [(20, 5), (500, 25), (10_000, 100), (1_000_000, 1_000)] {
        compare(candidates, cohort, Gains::Independent);
    }
    compare(1_000_000, 1_000, Gains::AntiCorrelated);
    compare(1_000_000, 1_000, Gains::Equal);
}
