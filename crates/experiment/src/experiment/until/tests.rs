//! Known spending of runs with targets, by hand.

use super::*;
use crate::experiment::sample::Sample;
use serde_json::{Value, json};

const TARGET: &str = "test_loss <= 0.3";

/// A run of 100 rounds of 10 s that moved 5 kB each way.
fn run(seed: u64, reached: Value) -> RunSummary {
    let mut target = json!({ "metric": "test_loss", "at_most": 0.3 });
    target.as_object_mut().unwrap().extend(reached.as_object().unwrap().clone());
    let written = json!({
        "arm": "random", "seed": seed, "point": 0, "rounds": 100, "virtual_time_s": 1000.0,
        "digest": { "timeline": "", "model": "" }, "final": {}, "regret": {},
        "traffic": { "down_bytes": 5000, "up_bytes": 5000 }, "compute_s": 7.0, "wasted_compute_s": 0.0,
        "dispatched": 1, "arrived": 1, "unique_clients": 1, "jain": 1.0, "reached": [target]
    });
    serde_json::from_value(written).unwrap()
}

/// Reached at a round, and not at that of the evaluation before.
fn at(seed: u64, round: u32, since: u32) -> RunSummary {
    let s = |round: u32| 10.0 * f64::from(round);
    run(
        seed,
        json!({
            "round": round, "time_s": s(round), "down_bytes": 50 * round, "up_bytes": 50 * round,
            "since_round": since, "since_s": s(since), "since_bytes": 100 * since
        }),
    )
}

fn never(seed: u64) -> RunSummary {
    run(seed, json!({ "round": null, "time_s": null, "since_round": 100, "since_s": 1000.0, "since_bytes": 10_000 }))
}

fn by_seed(runs: &[RunSummary]) -> BySeed<'_> {
    runs.iter().map(|run| (run.seed, run)).collect()
}

fn names_of(what: &str) -> String {
    format!("{what}.{TARGET}")
}

/// Between evaluations of rounds 20 and 30 the target was reached in one of rounds 21 to 30; after those of 29 and 30
/// in round 30.
#[test]
fn what_is_known_of_a_run() {
    let arrival = |run: &RunSummary, what: &str| run.arrival(&names_of(what)).unwrap();
    let seen = |time: f64, since: f64| Arrival { time, since, has_arrived: true };
    assert_eq!(arrival(&at(1, 30, 20), "time_to"), seen(300.0, 200.0));
    assert_eq!(arrival(&at(1, 30, 20), "rounds_to"), seen(30.0, 21.0));
    assert_eq!(arrival(&at(1, 30, 20), "bytes_to"), seen(3000.0, 2000.0));
    for what in ["time_to", "rounds_to", "bytes_to"] {
        let exact = arrival(&at(1, 30, 29), what);
        assert_eq!(exact, Arrival::at(exact.time));
    }
    assert_eq!(arrival(&never(1), "time_to"), Arrival::after(1000.0));
    assert_eq!(arrival(&never(1), "rounds_to"), Arrival::after(100.0));
    assert_eq!(arrival(&never(1), "bytes_to"), Arrival::after(10_000.0));
    assert_eq!(never(1).arrival("time_to.test_loss <= 0.2"), None);
    assert_eq!(never(1).arrival("final.test_loss"), None);
    // Files of earlier versions know nothing of evaluations before.
    let old = run(1, json!({ "round": 30, "time_s": 300.0 }));
    assert_eq!(arrival(&old, "time_to"), Arrival::at(300.0));
}

/// Both fail in another seed. Without the failures one would be 500 s faster than the other in the mean of its own
/// seeds, and 100 s slower in the seed that both reach.
#[test]
fn means_and_differences_are_over_the_same_seeds() {
    let mine = [at(1, 30, 29), at(2, 40, 39), never(3)];
    let theirs = [at(1, 20, 19), never(2), never(3)];
    let (mine, theirs) = (by_seed(&mine), by_seed(&theirs));
    let name = names_of("time_to");
    let to = follow_up(&name, mine.values().chain(theirs.values()).copied());
    assert_eq!(to, FollowUp { horizon: 1000.0, cut_short: 1000.0, latest: 400.0 });
    let samples = [&mine, &theirs].map(|runs| Sample::of(&name, runs));
    let [one, other] = [0, 1].map(|index| samples[index].estimate(to).unwrap());
    let found = samples[0].minus(&samples[1], to).unwrap();
    assert!((one.mean - 1700.0 / 3.0).abs() < 1e-9 && (other.mean - 2200.0 / 3.0).abs() < 1e-9);
    assert!((found.mean - (one.mean - other.mean)).abs() < 1e-9 && found.n == 3, "{found:?}");
    let described = until(&name, &mine, to).unwrap();
    assert_eq!((described.arrived, described.runs, described.horizon), (2, 3, Some(1000.0)));
    assert_eq!((described.median, described.grid), (Some(400.0), 0.0));
    assert_eq!(until(&name, &theirs, to).unwrap().median, None);
    let course = course(&name, &theirs);
    assert!(course.len() == 1 && course[0].0 == 200.0 && (course[0].1 - 1.0 / 3.0).abs() < 1e-12, "{course:?}");
}

#[test]
fn nobody_arrives() {
    let runs = [never(1), never(2)];
    let (runs, name) = (by_seed(&runs), names_of("time_to"));
    let to = follow_up(&name, runs.values().copied());
    let sample = Sample::of(&name, &runs);
    assert_eq!((sample.estimate(to), sample.minus(&sample, to)), (None, None));
    assert_eq!(until(&name, &runs, to).unwrap().beyond().as_deref(), Some("> 1000"));
    assert_eq!((sample.median(to), sample.median_minus(&sample, to)), (None, None));
    assert_eq!(Sample::of("virtual_time_s", &runs).median(to).unwrap().median, 1000.0);
}
