//! FLIPS: every selection found again from the clusters, and what is refused.

use super::fedacs::{ids, numbers, rounds};
use super::support::{SCENARIO, Workplace, changed};

/// Twelve clients with one class each of three, some of whom are away.
const WORLD: &str = r#"
name = "flips"
seeds = 1
[stop]
rounds = 40
[population]
clients = 12
interrupted = "run-on"
[population.latency]
download = { constant = "0.1 s" }
compute = { exponential = { mean = { uniform = ["0.2 s", "2 s"] }, shift = "0.05 s" } }
upload = { constant = "0.15 s" }
[task.softmax-regression]
data = { synthetic = { classes = 3, height = 3, width = 3, train = 240, test = 40 } }
partition = { label-shards = { shards_per_client = 1 } }
[training]
batch = 8
optimizer = { sgd = { lr = 0.05 } }
[protocol.synchronous]
cohort = 4
[policy.flips]
"#;

const AWAY: &str = "[population.availability]\non-off = { on = { exponential = { mean = \"8 s\" } }, \
                    off = { exponential = { mean = \"4 s\" } } }\n[task.softmax-regression]";

/// Plays 40 rounds and finds each selection again. Returns the selections of each client, and of each cluster.
fn found_again(scenario: &str) -> (Vec<usize>, Vec<usize>) {
    let mut picks = vec![0_usize; 12];
    let mut clusters = [usize::MAX; 12];
    for round in rounds(scenario, 1, 40) {
        let said = &round["explain"][0];
        let candidates = ids(&said["clients"]);
        for (&client, (cluster, before)) in
            candidates.iter().zip(numbers(&said["cluster"]).into_iter().zip(numbers(&said["picks"])))
        {
            assert!(clusters[client] == usize::MAX || clusters[client] == cluster as usize, "clusters stay");
            clusters[client] = cluster as usize;
            assert_eq!(before, picks[client] as f64, "{round}");
        }
        let mut expected: Vec<usize> = Vec::new();
        for _ in 0..candidates.len().min(4) {
            let left = candidates.iter().copied().filter(|client| !expected.contains(client));
            // Clients never seen as candidates have no selections.
            let of_cluster = |cluster: usize| -> usize {
                (0..12).filter(|&client| clusters[client] == cluster).map(|client| picks[client]).sum()
            };
            let next =
                left.min_by_key(|&client| (of_cluster(clusters[client]), clusters[client], picks[client], client));
            expected.extend(next);
            picks[next.unwrap()] += 1;
        }
        assert_eq!(ids(&round["selected"]), expected, "{round}");
    }
    let count = clusters.iter().max().unwrap() + 1;
    let of = |cluster| (0..12).filter(|&client| clusters[client] == cluster).map(|client| picks[client]).sum();
    (picks.clone(), (0..count).map(of).collect())
}

#[test]
fn every_selection_follows_from_clusters_and_counts() {
    let (_, by_elbow) = found_again(WORLD);
    assert_eq!(by_elbow.len(), 3, "a cluster for each class");
    let (most, least) = (by_elbow.iter().max().unwrap(), by_elbow.iter().min().unwrap());
    assert!(most - least <= 1, "{by_elbow:?}");
    let (_, two) = found_again(&format!("{WORLD}clusters = 2\n"));
    assert_eq!(two.len(), 2);
    found_again(&changed(WORLD, "[task.softmax-regression]", AWAY));
    let (picks, one) = found_again(&format!("{WORLD}clusters = 1\n"));
    assert_eq!(one, [160]);
    assert!(picks.iter().all(|&picks| picks == 13 || picks == 14), "in turn: {picks:?}");
}

#[test]
fn what_does_not_fit_is_refused() {
    let refused = |scenario: &str, words: &str| {
        let answer = Workplace::with(scenario).fedgenie(&["run", SCENARIO]);
        assert!(answer.code == 2 && answer.stderr.contains(words), "{words}: {}", answer.stderr);
    };
    refused(&format!("{WORLD}clusters = 0\n"), "policy.flips.clusters: found 0");
    refused(&format!("{WORLD}clusters = 13\n"), "policy.flips.clusters: found 13");
    let from = WORLD.find("[task").unwrap();
    let to = WORLD.find("[training]").unwrap();
    let task = "[task.linear-regression]\nexamples = 300\n";
    refused(&format!("{}{task}{}", &WORLD[..from], &WORLD[to..]), "flips groups clients by classes");
}
