//! A reassignment of 1,000 edge servers to 100 clusters by LinUCB, beside the smallest loss and a plain walk over the
//! losses, in one run.
//!
//! `cargo bench --bench clusters`. Losses are drawn anew for each of 20 assignments; servers move to their best
//! clusters, so that LinUCB has been rewarded for several of each server.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the wall clock")]

use fedgenie::clusters::{AssignmentRequest, ClustersConfig};
use fedgenie::id::{EdgeId, Round};
use fedgenie::rng::{Purpose, Streams};
use std::hint::black_box;
use std::time::Instant;

const SERVERS: usize = 1_000;
const CLUSTERS: usize = 100;
const ASSIGNMENTS: u32 = 20;

fn losses(assignment: u32) -> Vec<f64> {
    let mut rng = Streams::new(1).stream(Purpose::Example, 0, assignment);
    (0..SERVERS * CLUSTERS).map(|_| 0.5 + rng.uniform()).collect()
}

/// Milliseconds of an assignment, the median of all.
fn time(mut assign: impl FnMut(Round, &dyn Fn(EdgeId, u32) -> f64)) -> f64 {
    let mut times: Vec<f64> = (1..=ASSIGNMENTS)
        .map(|assignment| {
            let losses = losses(assignment);
            let loss = |edge: EdgeId, cluster: u32| losses[edge.index() * CLUSTERS + cluster as usize];
            let start = Instant::now();
            assign(Round(20 * assignment), &loss);
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}

fn rule(name: &str) -> f64 {
    let text = format!("count = {CLUSTERS}\nassign = {{ {name} = {{}} }}");
    let config: ClustersConfig = toml::from_str(&text).expect("the table is good");
    let clusters = config.clusters(SERVERS, Some(20 * ASSIGNMENTS)).expect("the settings are good");
    let (mut policy, mut assignment) = (clusters.policy(), clusters.initial.clone());
    time(|round, loss| {
        let mut rng = Streams::new(1).stream(Purpose::Policy, u32::MAX - 1, round.0);
        let ask = AssignmentRequest { round, clusters: CLUSTERS as u32, loss };
        policy.assign(&ask, &mut rng, black_box(&mut assignment)).expect("the rule does not fail");
    })
}

fn main() {
    let walk = time(|_, loss| {
        for edge in (0..SERVERS).map(EdgeId::from_index) {
            let losses = (0..CLUSTERS as u32).map(|cluster| loss(edge, cluster));
            black_box(losses.fold(f64::INFINITY, f64::min));
        }
    });
    println!("{SERVERS} servers, {CLUSTERS} clusters, ms per assignment");
    println!("smallest of all losses  {walk:>8.3}");
    for name in ["loss", "linucb"] {
        println!("{name:<23} {:>8.3}", rule(name));
    }
}
