//! Rounds per second of BSFL with the exact solver, drawn latencies, events and record, without training.
//!
//! Goals on two cores of a current server: K = 20, m = 5 at most 5 µs a round without meters and 6 µs with `mean`; K =
//! 500, m = 25 at most 40 µs with `mean`. In the same run, the same number of log-normal job latencies is drawn and
//! sorted, as a measure of the machine. `cargo bench --bench rounds`

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the wall clock")]

use fedgenie::experiment::Experiment;
use fedgenie::id::{ClientId, JobNumber};
use fedgenie::recorder::NoSink;
use fedgenie::rng::Purpose;
use fedgenie::run::{Evaluations, Run, RunSettings};
use fedgenie::scenario::tree;
use fedgenie::task::DataCache;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

fn scenario(clients: usize, cohort: usize, meters: &str) -> String {
    format!(
        r#"
        name = "bench"
        seeds = 1
        stop.rounds = 1
        population.clients = {clients}
        population.latency.download.constant = "25 ms"
        population.latency.upload.constant = "25 ms"
        [population.latency.compute.lognormal]
        median = {{ uniform = ["0.1 s", "1 s"] }}
        sigma = 0.3
        [protocol.synchronous]
        cohort = {cohort}
        [regret]
        tau_min = "50 ms"
        meters = [{meters}]
        [policy.bsfl]
        "#
    )
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    println!("{:>5} {:>4} {:<34} {:>12} {:>22}", "K", "m", "meters", "µs a round", "µs for m draws + sort");
    for (clients, cohort, rounds) in [(20, 5, 100_000u32), (500, 25, 10_000)] {
        for meters in ["", "\"mean\"", "\"mean\", \"realised\", \"expected\""] {
            let text = scenario(clients, cohort, meters);
            let root = tree::parse(Path::new("bench.toml"), &text).expect("the scenario is TOML");
            let experiment = Experiment::from_tree(&root, Path::new("."), None).expect("the scenario is good");
            let world = experiment.world(0, 1, &DataCache::default()).expect("the world can be built");
            let arm = &experiment.first().arms[0];
            let (mut played, mut drawn) = (Vec::new(), Vec::new());
            for _ in 0..5 {
                let policy = world.policy(&arm.policy).expect("the policy fits");
                let settings = RunSettings {
                    evaluate: Evaluations::every(1),
                    record_every: 1,
                    parallel: false,
                    explain: false,
                    updates: false,
                    battery: false,
                };
                let mut run = Run::new(&world, "bsfl", policy, settings, NoSink);
                let start = Instant::now();
                for _ in 0..rounds {
                    run.step().expect("a round goes well");
                }
                played.push(start.elapsed().as_secs_f64() * 1e6 / f64::from(rounds));
                black_box(run.digests().timeline.hex());
                let start = Instant::now();
                let mut latencies = Vec::with_capacity(cohort);
                for round in 0..rounds {
                    latencies.clear();
                    for client in (0..cohort).map(ClientId::from_index) {
                        let draw =
                            world.population.draw(&world.streams, Purpose::Latency, client, JobNumber(round), [1.0; 2]);
                        latencies.push(draw.expect("a latency is a duration").total());
                    }
                    latencies.sort_unstable();
                    black_box(&latencies);
                }
                drawn.push(start.elapsed().as_secs_f64() * 1e6 / f64::from(rounds));
            }
            println!("{clients:>5} {cohort:>4} {meters:<34} {:>12.2} {:>22.2}", median(played), median(drawn));
        }
    }
}
