//! What policies take for a round, beyond random selection in the same world: 10,000 clients, 100 a round, where losses
//! are looked up or clients train a small model; and a million clients. Goal: at most 10 ms with 10,000. For policies
//! that compare pairs (`divfl`, `clustered-sampling` by similarity, `fedcor`) or for which everybody trains
//! (`optimal-sampling`), a curve over the number of clients. `cargo bench --bench policies`

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the wall clock")]

use fedgenie::experiment::Experiment;
use fedgenie::recorder::NoSink;
use fedgenie::run::{Evaluations, Run, RunSettings};
use fedgenie::scenario::tree;
use fedgenie::task::DataCache;
use std::path::Path;
use std::time::Instant;

/// What a policy is measured in.
#[derive(Clone, Copy)]
enum Learning {
    /// Losses are looked up.
    Told,
    /// A linear regression of 20 numbers.
    Linear,
    /// A softmax regression on drawn images, of which clients have different classes.
    Labelled,
}

/// A policy's section, with what its world needs beside that of `random`.
#[derive(Clone, Copy)]
struct Entry {
    name: &'static str,
    section: &'static str,
    learning: Learning,
    /// More of `[population]`.
    population: &'static str,
    /// More of `[training]`.
    training: &'static str,
    /// More of the protocol.
    protocol: &'static str,
}

const fn entry(name: &'static str, section: &'static str, learning: Learning) -> Entry {
    Entry { name, section, learning, population: "", training: "", protocol: "" }
}

const fn told(name: &'static str) -> Entry {
    entry(name, name, Learning::Told)
}

const BATTERY: &str = "[population.battery]\ncapacity = \"40 kJ\"\nlevel = \"seen\"\nidle = \"50 mW\"\nreceive = \"400 mW\"\n\
                       compute = \"2 W\"\nsend = \"800 mW\"\n";

/// Those of which a selection is about linear in the number of clients.
const LINEAR: [Entry; 18] = [
    told("age"),
    told("afl"),
    told("fedcs"),
    // Without the accuracies of tiers, for which it asks.
    entry("tifl", "tifl]\ninterval = 10_000\n[report", Learning::Labelled),
    told("clustered-sampling"),
    told("refl"),
    told("e3cs"),
    told("ucb-cs"),
    told("oort"),
    told("pisces"),
    Entry { population: BATTERY, ..told("eafl") },
    entry("power-of-choice", "power-of-choice]\nlosses = \"mini-batch\"\n[report", Learning::Linear),
    Entry { training: "epochs = 1\nmost_epochs = 3\n", ..entry("pyramidfl", "pyramidfl", Learning::Linear) },
    Entry { protocol: "most = 200\n", ..entry("critical-fl", "critical-fl", Learning::Linear) },
    entry("delta", "delta", Learning::Linear),
    entry("gpfl", "gpfl", Learning::Labelled),
    entry("flips", "flips", Learning::Labelled),
    entry("haccs", "haccs]\nclusters = 10\n[report", Learning::Labelled),
];

impl Learning {
    fn task(self, clients: usize) -> String {
        match self {
            Self::Told => {
                let losses: Vec<String> = (0..clients).map(|client| format!("{}.5", client * 7 % 10)).collect();
                format!("[task.scripted]\nvalues = [0.5]\nclient_losses = [{}]\n", losses.join(", "))
            }
            Self::Linear => format!("[task.linear-regression]\nexamples = {}\n", clients * 20),
            Self::Labelled => "[task.softmax-regression]\ndata = { synthetic = { train = 2_000, test = 200 } }\n\
                               partition = { overlapping = { size = 20, alpha = 0.3 } }\n"
                .to_owned(),
        }
    }

    const fn training(self) -> &'static str {
        match self {
            Self::Told => "",
            Self::Linear | Self::Labelled => "[training]\noptimizer = { sgd = { lr = 0.01 } }\n",
        }
    }
}

impl Entry {
    /// The policy of this section in the world of the entry.
    fn scenario(&self, clients: usize, cohort: usize, policy: &str) -> String {
        let Self { learning, population, training, protocol, .. } = *self;
        format!(
            "name = \"bench\"\nseeds = 1\n[stop]\nrounds = 1000\n[population]\nclients = {clients}\n\
             [population.forecast]\nhorizon = \"1 h\"\n{population}[population.latency]\n\
             download = {{ constant = \"25 ms\" }}\n\
             compute = {{ lognormal = {{ median = {{ uniform = [\"0.1 s\", \"1 s\"] }}, sigma = 0.3 }} }}\n\
             upload = {{ constant = \"25 ms\" }}\n{}{}{training}[protocol.deadline]\ndeadline = \"20 s\"\n\
             cohort = {cohort}\n{protocol}\n[policy.{policy}]\n",
            learning.task(clients),
            learning.training(),
        )
    }

    /// Milliseconds of a round beyond those of `random`, after some rounds.
    fn more(&self, clients: usize, cohort: usize, before: u32, rounds: u32) -> f64 {
        let of = |policy: &str| milliseconds(&self.scenario(clients, cohort, policy), before, rounds);
        of(self.section) - of("random")
    }
}

/// Milliseconds of a round after some others, the least of five series that follow one another.
fn milliseconds(scenario: &str, before: u32, rounds: u32) -> f64 {
    let root = tree::parse(Path::new("bench.toml"), scenario).expect("the scenario is TOML");
    let experiment = Experiment::from_tree(&root, Path::new("."), None).expect("the scenario is good");
    let world = experiment.world(0, 1, &DataCache::default()).expect("the world can be built");
    let policies = world.policies(&experiment.first().arms[0].policy).expect("the policy fits");
    let never = before + 5 * rounds + 1;
    let settings = RunSettings {
        evaluate: Evaluations::every(never),
        record_every: never,
        parallel: false,
        explain: false,
        updates: false,
        battery: false,
    };
    let mut run = Run::new(&world, "bench", policies, settings, NoSink);
    (0..before).for_each(|_| run.step().expect("a round goes well"));
    let mut least = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        (0..rounds).for_each(|_| run.step().expect("a round goes well"));
        least = least.min(start.elapsed().as_secs_f64() * 1e3 / f64::from(rounds));
    }
    least
}

fn main() {
    for (clients, rounds) in [(10_000, 30), (1_000_000, 3)] {
        println!("{clients} clients, 100 a round, ms more than random:");
        for one in LINEAR {
            // `linear-regression` has an example of its own for each client, and 20 million of them are too many.
            if clients > 10_000 && matches!(one.learning, Learning::Linear) {
                let labelled = Entry { learning: Learning::Labelled, ..one };
                println!("{:<20} {:>9.3}", one.name, labelled.more(clients, 100, 1, rounds));
            } else {
                println!("{:<20} {:>9.3}", one.name, one.more(clients, 100, 1, rounds));
            }
        }
    }
    for clients in [100, 300, 1_000, 3_000] {
        println!("{clients} clients, 20 a round, ms more than random:");
        // Everybody has been asked once before.
        let before = clients as u32 / 20;
        let everybody = format!("most = {clients}\n");
        for (name, section, most) in [
            ("divfl", "divfl", 3_000),
            ("similarity", "clustered-sampling]\nalgorithm = \"similarity\"\n[report", 1_000),
            ("fedcor", "fedcor]\nwarmup = 2\n[report", 3_000),
            ("shapley", "shapley", 3_000),
        ] {
            // A tree of 3,000 clients takes minutes.
            if clients > most {
                continue;
            }
            let more = entry(name, section, Learning::Linear).more(clients, 20, before, 5);
            println!("{name:<20} {more:>9.3}");
        }
        let optimal = entry("optimal-sampling", "optimal-sampling", Learning::Linear);
        let scenario = optimal.scenario(clients, 20, optimal.section);
        let scenario = scenario.replace("cohort = 20\n", &format!("cohort = 20\n{everybody}"));
        let more = milliseconds(&scenario, 1, 5) - milliseconds(&optimal.scenario(clients, 20, "random"), 1, 5);
        println!("{:<20} {more:>9.3}", optimal.name);
    }
}
