//! Edge servers: whose data they have, and what is measured of their models.

use super::support::{SCENARIO, Workplace, changed, line_of, world};
use fedgenie::id::EdgeId;

/// Three edge servers with 5, 4 and 4 clients, who learn from data that are spread by owner.
const TIERS: &str = r#"
name = "servers"
seeds = 1
[stop]
rounds = 6
[population]
clients = 13
[population.latency]
download = { constant = "0.1 s" }
compute = { exponential = { mean = { uniform = ["0.2 s", "1 s"] } } }
upload = { constant = "0.1 s" }
[task.classification]
data = { synthetic = { height = 4, width = 4, train = 260, test = 90 } }
model = { mlp = { hidden = [6] } }
partition = { dirichlet-two-level = { servers = 3, alpha_server = 0.5, alpha_client = 0.5, law = "by-owner" } }
[training]
batch = 8
optimizer = { sgd = { lr = 0.1 } }
[protocol.hierarchical]
edges = 3
participation = 0.6
[policy.random]
"#;

#[test]
fn test_examples_that_are_drawn_belong_to_one_server_each() {
    for seed in 0..5 {
        let world = world(TIERS, seed);
        let mut all: Vec<u32> = (0..3).flat_map(|server| world.test_of(EdgeId(server)).unwrap().to_vec()).collect();
        all.sort_unstable();
        assert_eq!(all, (0..90).collect::<Vec<u32>>());
    }
}

#[test]
fn edge_servers_are_those_of_the_partition() {
    for (from, to, path, words) in [
        ("edges = 3", "edges = 4", "edges", "found 4; the partition dirichlet-two-level deals to servers = 3"),
        ("edges = 3", "edges = 3\nassign = \"cyclic\"", "assign", "take assign = \"blocks\""),
    ] {
        let scenario = changed(TIERS, from, to);
        let answer = Workplace::with(&scenario).fedgenie(&["run", SCENARIO, "--quiet"]);
        let line = line_of(&scenario, to.lines().last().unwrap());
        let start = format!("fedgenie: error: {SCENARIO}:{line}: protocol.hierarchical.{path}: ");
        assert!(answer.code == 2 && answer.stderr.starts_with(&start), "{start}\n{}", answer.stderr);
        assert!(answer.stderr.contains(words), "{}", answer.stderr);
    }
    // Without edge servers, the partition's servers are its own affair; one edge server has everybody.
    let flat = changed(TIERS, "hierarchical]\nedges = 3\nparticipation = 0.6", "synchronous]\ncohort = 4");
    Workplace::with(&flat).run_into("out", &[]);
    let one = changed(&changed(TIERS, "edges = 3", "edges = 1\nassign = \"cyclic\""), "servers = 3", "servers = 1");
    Workplace::with(&one).run_into("out", &[]);
}
