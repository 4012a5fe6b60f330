//! A million devices: time of a round of the scenarios in `scenarios/scale`, on one thread, without the building of the
//! world.
//!
//! Goals on two cores of a current server: random selection of 1,000 among devices that come and go, 1,000 rounds in 5
//! s; BSFL on the same at most 20 ms a round; buffered with 10,000 places at least 10⁶ events a second (ends of phases,
//! selections). In the same run, the same number of job latencies is drawn, as a measure of the machine.
//! `cargo bench --bench scale`

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the wall clock")]

use fedgenie::experiment::{Experiment, Overrides};
use fedgenie::id::{ClientId, JobNumber};
use fedgenie::recorder::NoSink;
use fedgenie::rng::Purpose;
use fedgenie::run::{Evaluations, Run, RunSettings};
use fedgenie::task::DataCache;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

fn main() {
    println!(
        "{:<20} {:>8} {:>12} {:>16} {:>18}",
        "scenario", "rounds", "ms a round", "events a second", "ms for the draws"
    );
    for (name, rounds) in [("on_off_random", 1_000u32), ("on_off_bsfl", 50), ("buffered", 500)] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("scenarios/scale/{name}.toml"));
        let experiment = Experiment::load(&path, &Overrides::default()).expect("the scenario is good");
        let world = experiment.world(0, 1, &DataCache::default()).expect("the world can be built");
        let policies = world.policies(&experiment.first().arms[0].policy).expect("the policy fits");
        let settings = RunSettings {
            evaluate: Evaluations::every(1),
            record_every: rounds,
            parallel: false,
            explain: false,
            updates: false,
            battery: false,
        };
        let mut run = Run::new(&world, name, policies, settings, NoSink);
        let start = Instant::now();
        for _ in 0..rounds {
            run.step().expect("a round goes well");
        }
        let seconds = start.elapsed().as_secs_f64();
        let jobs = run.accounts().dispatched;
        black_box(run.digests().timeline.hex());
        let start = Instant::now();
        let clients = world.population.len() as u64;
        for job in 0..jobs {
            let client = ClientId::from_index((job % clients) as usize);
            let draw = world.population.draw(
                &world.streams,
                Purpose::Latency,
                client,
                JobNumber((job / clients) as u32),
                [1.0; 2],
            );
            black_box(draw.expect("a latency is a duration"));
        }
        let drawn = start.elapsed().as_secs_f64();
        let per_round = 1e3 / f64::from(rounds);
        // Selection and three phases.
        let events = 4.0 * jobs as f64 / seconds;
        println!("{name:<20} {rounds:>8} {:>12.3} {events:>16.0} {:>18.3}", seconds * per_round, drawn * per_round);
    }
}
