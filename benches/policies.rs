//! What policies take for a round, beyond random selection in the same world: 10,000 clients, 100 a round, losses that
//! are looked up. Goal: at most 10 ms. For `divfl`, which compares pairs, and `optimal-sampling`, for which everybody
//! trains, a curve over the number of clients, with a linear regression of 20 numbers. `cargo bench --bench policies`

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the wall clock")]

use fedgenie::experiment::Experiment;
use fedgenie::recorder::NoSink;
use fedgenie::run::{Evaluations, Run, RunSettings};
use fedgenie::scenario::tree;
use fedgenie::task::DataCache;
use std::path::Path;
use std::time::Instant;

/// A task whose losses are looked up.
fn told(clients: usize) -> String {
    let losses: Vec<String> = (0..clients).map(|client| format!("{}.5", client * 7 % 10)).collect();
    format!("[task.scripted]\nvalues = [0.5]\nclient_losses = [{}]\n", losses.join(", "))
}

/// A task that trains.
fn trained(clients: usize) -> String {
    format!(
        "[task.linear-regression]\nexamples = {}\n[training]\noptimizer = {{ sgd = {{ lr = 0.01 }} }}\n",
        clients * 20
    )
}

fn scenario(clients: usize, task: &str, protocol: &str, policy: &str) -> String {
    format!(
        "name = \"bench\"\nseeds = 1\n[stop]\nrounds = 1000\n[population]\nclients = {clients}\n\
         [population.forecast]\nhorizon = \"1 h\"\n[population.latency]\ndownload = {{ constant = \"25 ms\" }}\n\
         compute = {{ lognormal = {{ median = {{ uniform = [\"0.1 s\", \"1 s\"] }}, sigma = 0.3 }} }}\n\
         upload = {{ constant = \"25 ms\" }}\n{task}[protocol.deadline]\ndeadline = \"20 s\"\n{protocol}\n\
         [policy.{policy}]\n"
    )
}

/// Milliseconds of a round after some others, the least of five series.
fn milliseconds(scenario: &str, before: u32, rounds: u32) -> f64 {
    let root = tree::parse(Path::new("bench.toml"), scenario).expect("the scenario is TOML");
    let experiment = Experiment::from_tree(&root, Path::new("."), None).expect("the scenario is good");
    let world = experiment.world(0, 1, &DataCache::default()).expect("the world can be built");
    let mut least = f64::INFINITY;
    for _ in 0..5 {
        let policies = world.policies(&experiment.first().arms[0].policy).expect("the policy fits");
        let settings = RunSettings {
            evaluate: Evaluations::every(rounds + 1),
            record_every: rounds + 1,
            parallel: false,
            explain: false,
            updates: false,
            battery: false,
        };
        let mut run = Run::new(&world, "bench", policies, settings, NoSink);
        (0..before).for_each(|_| run.step().expect("a round goes well"));
        let start = Instant::now();
        (0..rounds).for_each(|_| run.step().expect("a round goes well"));
        least = least.min(start.elapsed().as_secs_f64() * 1e3 / f64::from(rounds));
    }
    least
}

fn main() {
    let task = told(10_000);
    let of = |policy: &str| milliseconds(&scenario(10_000, &task, "cohort = 100", policy), 1, 30);
    let random = of("random");
    println!("10,000 clients, 100 a round; random: {random:.3} ms a round");
    for policy in ["age", "afl", "fedcs", "tifl", "clustered-sampling", "refl", "e3cs", "ucb-cs", "oort", "pisces"] {
        println!("{policy:<20} {:>8.3} ms more", of(policy) - random);
    }
    for clients in [100, 300, 1_000, 3_000] {
        let task = trained(clients);
        // Everybody has been asked once before.
        let before = clients as u32 / 20;
        let least = |protocol: &str, policy: &str| milliseconds(&scenario(clients, &task, protocol, policy), before, 5);
        let random = least("cohort = 20", "random");
        let divfl = least("cohort = 20", "divfl") - random;
        let protocol = format!("cohort = 20\nmost = {clients}");
        let optimal = milliseconds(&scenario(clients, &task, &protocol, "optimal-sampling"), 1, 5) - random;
        println!(
            "{clients:>5} clients, 20 a round: divfl {divfl:>9.3} ms more, optimal-sampling {optimal:>9.3} ms more"
        );
        // Those that look at updates, or select more.
        let larger = "cohort = 20\nmost = 40";
        for (protocol, name, policy) in [
            ("cohort = 20", "similarity", "clustered-sampling]\nalgorithm = \"similarity\"\n[report"),
            ("cohort = 20", "mini-batch", "power-of-choice]\nlosses = \"mini-batch\"\n[report"),
            ("cohort = 20", "shapley", "shapley"),
            ("cohort = 20", "gpfl", "gpfl"),
            ("cohort = 20", "delta", "delta"),
            ("cohort = 20", "fedcor", "fedcor]\nwarmup = 2\n[report"),
            (larger, "critical-fl", "critical-fl"),
        ] {
            println!("{:>27} {name:<12} {:>9.3} ms more", "", least(protocol, policy) - random);
        }
    }
}
