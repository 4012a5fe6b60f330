//! Availability of a million clients: the first answer for each, and a pass over all of them once per round.
//!
//! Goals on two cores of a current server: the first answer for a million clients in at most 1 s, and a pass in at most
//! 5 ms where few states change. Beside each, a pass over the same bytes as plain numbers.
//! `cargo bench --bench availability`

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the wall clock")]

use fedgenie::experiment::Experiment;
use fedgenie::scenario::tree;
use fedgenie::task::DataCache;
use fedgenie::time::VirtualTime;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

const CLIENTS: usize = 1_000_000;

fn scenario(availability: &str) -> String {
    format!(
        r#"
        name = "bench"
        seeds = 1
        stop.rounds = 1
        population.clients = {CLIENTS}
        population.latency.download.constant = "25 ms"
        population.latency.upload.constant = "25 ms"
        population.latency.compute.constant = "1 s"
        population.availability = {{ {availability} }}
        [protocol.synchronous]
        cohort = 1000
        [policy.random]
        "#
    )
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    println!("{:<44} {:>10} {:>12} {:>12} {:>12}", "a million clients", "there", "first, s", "pass, ms", "plain, ms");
    let plain: Vec<u64> = (0..CLIENTS * 21 / 8).map(|place| place as u64).collect();
    for (name, availability) in [
        (
            "exponential, 1 h on, 2 h off",
            r#"on-off = { on = { exponential = { mean = "1 h" } }, off = { exponential = { mean = "2 h" } } }"#,
        ),
        (
            "lognormal, shared",
            r#"on-off = { on = { lognormal = { median = "1 h", sigma = 1 } }, off = { lognormal = { median = "2 h", sigma = 1 } } }"#,
        ),
        (
            "exponential, means of their own",
            r#"on-off = { on = { exponential = { mean = { uniform = ["30 min", "2 h"] } } }, off = { exponential = { mean = "2 h" } } }"#,
        ),
        (
            "diurnal",
            r#"diurnal = { hourly = [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.2, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.2, 0.3, 0.4], mean_on = "1 h", phase = { uniform = ["0 h", "24 h"] } }"#,
        ),
    ] {
        let text = scenario(availability);
        let root = tree::parse(Path::new("bench.toml"), &text).expect("the scenario is TOML");
        let experiment = Experiment::from_tree(&root, Path::new("."), None).expect("the scenario is good");
        let world = experiment.world(0, 1, &DataCache::default()).expect("the world can be built");
        let cursors = world.population.availability().cursors(&world.streams);
        let mut there = Vec::new();
        let began = Instant::now();
        cursors.available_clients(VirtualTime::START, &mut there);
        let first = began.elapsed().as_secs_f64();
        let (mut passes, mut plains) = (Vec::new(), Vec::new());
        // A round a second: one client in some thousands comes or goes.
        for round in 1..100 {
            let began = Instant::now();
            cursors.available_clients(VirtualTime(round * 1_000_000_000), &mut there);
            passes.push(began.elapsed().as_secs_f64() * 1e3);
            let began = Instant::now();
            black_box(plain.iter().fold(0_u64, |sum, number| sum.wrapping_add(*number)));
            plains.push(began.elapsed().as_secs_f64() * 1e3);
        }
        println!("{name:<44} {:>10} {first:>12.3} {:>12.2} {:>12.2}", there.len(), median(passes), median(plains));
    }
}
