//! Tasks and policies of the systems to come, thin, from outside the library: each under every protocol.

mod additive;
mod assignments;
mod clusters;
mod decisions;
mod graphs;
mod proxies;
mod refused;
mod statistics;

use super::support::SCENARIO;
use fedgenie::experiment::{Experiment, Summary, Threads};
use fedgenie::scenario::tree;
use std::path::Path;

/// The protocols, and more that a scenario of them has.
pub const PROTOCOLS: [(&str, &str); 5] = [
    ("synchronous", "[protocol.synchronous]\ncohort = 3\n"),
    ("over-selection", "[protocol.over-selection]\nask = 4\ntake = 2\n"),
    ("deadline", "[protocol.deadline]\ncohort = 4\ndeadline = \"1.2 s\"\nlate = { carry = {} }\n"),
    ("buffered", "[protocol.buffered]\nconcurrency = 4\nbuffer = 3\n"),
    ("hierarchical", "[protocol.hierarchical]\nedges = 3\ncohort = 2\nedge_rounds = 2\n"),
];

/// Twelve clients of different speeds.
const TWELVE: &str = r#"
name = "contracts"
seeds = 2
[stop]
rounds = 12
[population]
clients = 12
[population.latency]
download = { constant = "0.1 s" }
compute = { exponential = { mean = { uniform = ["0.2 s", "2 s"] } } }
upload = { constant = "0.1 s" }
[training]
batch = 4
optimizer = { sgd = { lr = 0.1 } }
"#;

/// The experiment under a protocol, without policies of its own but `random`.
pub fn experiment(protocol: &str, more: &str) -> Experiment {
    // Where nobody learns, `[training]` has no effect and is refused.
    let learns = !more.contains("[task.none]");
    let training = TWELVE.find("[training]").unwrap();
    let text = format!("{}{protocol}{more}[policy.random]\n", if learns { TWELVE } else { &TWELVE[..training] });
    let root = tree::parse(Path::new(SCENARIO), &text).unwrap();
    Experiment::from_tree(&root, Path::new("."), None).unwrap()
}

/// All runs, on one thread and on three: the digests are the same.
pub fn run(experiment: &Experiment) -> Summary {
    let [one, three] = [1, 3].map(|threads| experiment.run(&Threads::new(threads).unwrap()).unwrap());
    let digests = |summary: &Summary| summary.runs.iter().map(|run| run.digest.clone()).collect::<Vec<_>>();
    assert_eq!(digests(&one), digests(&three));
    one
}
