//! The exact solver against enumeration, and its filtered path against its plain one.

use super::*;
use crate::oracle::brute;
use crate::rng::{Purpose, Streams};

fn stream(index: u32) -> StreamRng {
    Streams::new(2026).stream(Purpose::Solver, 0, index)
}

#[test]
fn a_hand_worked_example() {
    // Descending speeds 0.9, 0.8, 0.5, 0.2 with gains 0.1, 0.2, 0.4, 0.6. Pairs in walk order:
    // 0.8 + 0.1 + 0.2 = 1.1; 0.5 + 0.2 + 0.4 = 1.1; 0.2 + 0.4 + 0.6 = 1.2.
    let mut instance = Instance { speed: &[0.2, 0.5, 0.8, 0.9], gain: &[0.6, 0.4, 0.2, 0.1], cohort: 2, take: 2 };
    let (mut exact, mut set) = (Exact::new(), Vec::new());
    assert_eq!(exact.maximise(&instance, &mut set), 1.2);
    assert_eq!(set, [0, 1]);
    // Without client 0 the first two tie up to rounding, and {0, 1} of the rest precedes {1, 2}.
    instance = Instance { speed: &[0.5, 0.8, 0.9], gain: &[0.4, 0.2, 0.1], cohort: 2, take: 2 };
    exact.maximise(&instance, &mut set);
    assert_eq!(set, [0, 1]);
    // One above −∞ is not enough for a pair, one +∞ does not make a pair infinite, two do.
    let (up, down) = (f64::INFINITY, f64::NEG_INFINITY);
    let gain = &[0.0, 1.0, 2.0];
    assert_eq!(exact.maximise(&Instance { speed: &[down, down, 1.0], gain, cohort: 2, take: 2 }, &mut set), down);
    assert_eq!(set, [0, 1]);
    assert_eq!(exact.maximise(&Instance { speed: &[up, 0.5, 0.25], gain, cohort: 2, take: 2 }, &mut set), 3.25);
    assert_eq!(set, [1, 2]);
    assert_eq!(exact.maximise(&Instance { speed: &[up, 0.5, up], gain, cohort: 2, take: 2 }, &mut set), up);
    assert_eq!(set, [0, 2]);
}

#[test]
fn agrees_with_enumeration_on_every_cohort_and_take() {
    let mut rng = stream(0);
    let mut solvers = [Exact::new(), Exact::with_filters(0, usize::MAX), Exact::with_filters(0, 0)];
    let mut set = Vec::new();
    for case in 0..4_000 {
        let (speed, gain) = brute::arrays(1 + case % 8 + usize::from(case % 97 == 0), &mut rng);
        for cohort in 1..=speed.len() {
            for take in 1..=cohort {
                let instance = Instance { speed: &speed, gain: &gain, cohort, take };
                let expected = brute::solve(&instance);
                for solver in &mut solvers {
                    let value = solver.maximise(&instance, &mut set);
                    assert_eq!((value, &set), (expected.0, &expected.1), "{instance:?}");
                }
            }
        }
    }
}

/// As from round to round: all speeds change a little, and those of a few much.
#[test]
fn the_order_of_the_call_before_changes_nothing() {
    let mut rng = stream(3);
    let mut plain = Exact::with_filters(usize::MAX, usize::MAX);
    let (mut expected, mut set) = (Vec::new(), Vec::new());
    for size in [5, 20, 60, 300, 3_000] {
        let mut recent = Exact::new();
        let (mut speed, mut gain) = brute::arrays(size, &mut rng);
        for _ in 0..60 {
            speed.iter_mut().for_each(|speed| *speed += 1e-3 * rng.uniform());
            (0..size.div_ceil(20)).for_each(|_| speed[rng.below(size as u64) as usize] = rng.uniform());
            gain.iter_mut().for_each(|gain| *gain = rng.uniform() / 8.0);
            let cohort = 1 + size / 8;
            let instance = Instance { speed: &speed, gain: &gain, cohort, take: cohort };
            let value = plain.maximise(&instance, &mut expected);
            assert_eq!((recent.maximise(&instance, &mut set), &set), (value, &expected), "{size}");
        }
    }
}

#[test]
fn the_filters_change_nothing() {
    let mut rng = stream(1);
    let mut plain = Exact::with_filters(usize::MAX, usize::MAX);
    let mut solvers = [Exact::new(), Exact::with_filters(0, usize::MAX), Exact::with_filters(0, 0)];
    let (mut expected, mut set) = (Vec::new(), Vec::new());
    for case in 0..1_500 {
        let candidates = 1 + rng.below([40, 300, 3_000][case % 3]) as usize;
        let (speed, mut gain) = brute::arrays(candidates, &mut rng);
        if case % 5 == 0 {
            // Anti-correlated: no candidate is dominated.
            let weight = rng.uniform();
            gain = speed.iter().map(|s| if s.is_finite() { -s * weight } else { 0.5 }).collect();
        }
        let cohort = 1 + rng.below(1 + candidates as u64 / [1, 4, 30][case % 7 % 3]) as usize;
        let instance =
            Instance { speed: &speed, gain: &gain, cohort: cohort.min(candidates), take: cohort.min(candidates) };
        let value = plain.maximise(&instance, &mut expected);
        for solver in &mut solvers {
            assert_eq!(solver.maximise(&instance, &mut set), value);
            assert_eq!(set, expected, "case {case} with {candidates} candidates, cohort {cohort}");
        }
    }
}

#[test]
fn over_selection_of_everybody_that_is_waited_for_is_the_ordinary_case() {
    let mut rng = stream(2);
    let (mut exact, mut over, mut exchange) = (Exact::new(), OverSelection::default(), Exchange::default());
    let (mut expected, mut set) = (Vec::new(), Vec::new());
    for _ in 0..300 {
        // A candidate so slow that the round never waits for it, and so valuable that it is always in.
        let (mut speed, mut gain) = brute::arrays(2 + rng.below(200) as usize, &mut rng);
        let cohort = 1 + rng.below(speed.len() as u64) as usize;
        let instance = Instance { speed: &speed, gain: &gain, cohort, take: cohort };
        if !exact.maximise(&instance, &mut expected).is_finite() {
            continue;
        }
        expected.push(speed.len() as u32);
        speed.push(f64::NEG_INFINITY);
        gain.push(16.0);
        set.clear();
        over.solve(&Instance { speed: &speed, gain: &gain, cohort: cohort + 1, take: cohort }, &mut exchange, &mut set);
        assert_eq!(set, expected);
    }
}
