//! Selection by classes and latencies: every set found again by a search of its own, a case by hand, and tasks without
//! classes.

use super::fedacs::{ids, numbers, rounds};
use super::support::{SCENARIO, Workplace, changed, labelled, world};
use fedgenie::id::ClientId;

/// Eight clients with a few classes each, on devices that differ.
const WORLD: &str = r#"
name = "harmony-style"
seeds = 1
[stop]
rounds = 20
[population]
clients = 8
interrupted = "run-on"
[population.latency]
download = { constant = "0.1 s" }
compute = { exponential = { mean = { each = [
    "0.2 s", "0.3 s", "0.5 s", "0.8 s", "1 s", "1.5 s", "0.4 s", "0.6 s",
] }, shift = "0.05 s" } }
upload = { constant = "0.15 s" }
[task.softmax-regression]
data = { synthetic = { classes = 4, height = 3, width = 3, train = 240, test = 40 } }
partition = { dirichlet = { alpha = 0.3 } }
[training]
batch = 8
optimizer = { sgd = { lr = 0.05 } }
[protocol.synchronous]
cohort = 3
[policy.harmony-style]
"#;
const MEANS: [f64; 8] = [0.2, 0.3, 0.5, 0.8, 1.0, 1.5, 0.4, 0.6];

fn shares(counts: &[f64]) -> Vec<f64> {
    let all: f64 = counts.iter().sum();
    counts.iter().map(|count| if all > 0.0 { count / all } else { 0.0 }).collect()
}

/// Half the sum of differences of shares.
fn distance(some: &[f64], all: &[f64]) -> f64 {
    shares(some).iter().zip(shares(all)).map(|(some, all)| (some - all).abs()).sum::<f64>() / 2.0
}

/// Plays a scenario and finds each set again.
fn assert_found_again(scenario: &str, lambda: f64) {
    let world = world(scenario, 1);
    let task = labelled(&world);
    let (classes, count) = task.data.train.classes().unwrap();
    let mut counts = vec![vec![0.0; count]; 8];
    for (client, counts) in counts.iter_mut().enumerate() {
        for &example in &*task.partition.client(ClientId::from_index(client)) {
            counts[usize::from(classes[example as usize])] += 1.0;
        }
    }
    let sum = |lists: &[&Vec<f64>]| -> Vec<f64> {
        (0..count).map(|class| lists.iter().map(|list| list[class]).sum()).collect()
    };
    let all = sum(&counts.iter().collect::<Vec<_>>());
    let mut trained: Vec<usize> = Vec::new();
    let mut seen: Vec<Vec<f64>> = vec![Vec::new(); 8];
    for round in rounds(scenario, 1, 20) {
        let latency: Vec<f64> = (0..8)
            .map(|client| match seen[client].len() {
                0 => 0.3 + MEANS[client] * 2.0_f64.ln(),
                count => seen[client].iter().sum::<f64>() / count as f64,
            })
            .collect();
        let slowest = latency.iter().copied().fold(0.0, f64::max);
        let said = &round["explain"][0];
        let available = ids(&said["clients"]);
        let cost = |set: &[usize]| {
            let lists: Vec<&Vec<f64>> = trained.iter().chain(set).map(|&client| &counts[client]).collect();
            let slow = set.iter().map(|&client| latency[client]).fold(0.0, f64::max) / slowest;
            (lambda * distance(&sum(&lists), &all) + (1.0 - lambda) * slow, distance(&sum(&lists), &all), slow)
        };
        for (client, (found, first)) in
            available.iter().zip(numbers(&said["latency_s"]).into_iter().zip(numbers(&said["cost"])))
        {
            assert!((found - latency[*client]).abs() < 1e-9);
            assert!((first - cost(&[*client]).0).abs() < 1e-9, "{first}");
        }
        let mut set: Vec<usize> = Vec::new();
        for _ in 0..available.len().min(3) {
            let with = |client: usize| cost(&[&set[..], &[client]].concat()).0;
            let free = || available.iter().copied().filter(|client| !set.contains(client));
            let least = free().map(with).fold(f64::INFINITY, f64::min);
            let added = free().find(|&client| with(client) <= least + 1e-12).unwrap();
            set.push(added);
        }
        assert_eq!(ids(&round["selected"]), set, "{round}");
        let (_, apart, slow) = cost(&set);
        assert!((said["distance"].as_f64().unwrap() - apart).abs() < 1e-9);
        assert!((said["slowest"].as_f64().unwrap() - slow).abs() < 1e-9);
        let updates = &round["updates"];
        for (client, latency) in ids(&updates["clients"]).into_iter().zip(numbers(&updates["latency_s"])) {
            trained.push(client);
            seen[client].push(latency);
        }
    }
    assert!(seen.iter().filter(|seen| !seen.is_empty()).count() >= 4);
}

#[test]
fn every_set_is_found_again() {
    assert_found_again(WORLD, 0.5);
    assert_found_again(&format!("{WORLD}lambda = 0.9\n"), 0.9);
    let late = "[protocol.deadline]\ncohort = 3\ndeadline = \"0.8 s\"\nlate = { carry = {} }\n";
    let away = "[population.availability]\non-off = { on = { exponential = { mean = \"8 s\" } }, \
                off = { exponential = { mean = \"4 s\" } } }\n[task.softmax-regression]";
    let scenario = changed(WORLD, "[protocol.synchronous]\ncohort = 3\n", late);
    assert_found_again(&changed(&scenario, "[task.softmax-regression]", away), 0.5);
}

/// Three clients, one at a time, with 1, 2 and 4 s, without regard to classes: the first, always. With regard to
/// nothing but classes and one client for each of three classes: each in turn, because trained examples count.
#[test]
fn the_two_ends_by_hand() {
    let base = changed(WORLD, "clients = 8", "clients = 3");
    let from = base.find("[population.latency]").unwrap();
    let to = base.find("[task").unwrap();
    let latency = "[population.latency]\ndownload = { constant = \"0 s\" }\nupload = { constant = \"0 s\" }\n\
                   compute = { constant = { each = [\"1 s\", \"2 s\", \"4 s\"] } }\n";
    let base = changed(&format!("{}{latency}{}", &base[..from], &base[to..]), "cohort = 3", "cohort = 1");
    let partition = "partition = { label-shards = { shards_per_client = 1 } }";
    let base = changed(&base, "partition = { dirichlet = { alpha = 0.3 } }", partition);
    let base = changed(
        &base,
        "classes = 4, height = 3, width = 3, train = 240",
        "classes = 3, height = 3, width = 3, train = 180",
    );
    let selected = |lambda: &str| -> Vec<usize> {
        rounds(&format!("{base}lambda = {lambda}\n"), 1, 6).iter().map(|round| ids(&round["selected"])[0]).collect()
    };
    assert_eq!(selected("0.0"), [0; 6]);
    assert_eq!(selected("1.0"), [0, 1, 2, 0, 1, 2]);
    // After client 0, client 0 again costs ½·⅔ + ½·¼, client 1 ½·⅓ + ½·½, client 2 ½·⅓ + ½.
    let found = rounds(&format!("{base}lambda = 0.5\n"), 1, 2);
    let costs = numbers(&found[1]["explain"][0]["cost"]);
    for (cost, expected) in costs.iter().zip([1.0 / 3.0 + 0.125, 1.0 / 6.0 + 0.25, 1.0 / 6.0 + 0.5]) {
        assert!((cost - expected).abs() < 1e-12, "{costs:?}");
    }
    assert_eq!(ids(&found[1]["selected"]), [1]);
}

#[test]
fn tasks_without_classes_are_refused() {
    let from = WORLD.find("[task").unwrap();
    let to = WORLD.find("[training]").unwrap();
    let task = "[task.linear-regression]\nexamples = 300\n";
    let numbers = format!("{}{task}{}", &WORLD[..from], &WORLD[to..]);
    for (scenario, part) in
        [(numbers, "classes or categories"), (format!("{WORLD}lambda = 1.5\n"), "policy.harmony-style.lambda")]
    {
        let answer = Workplace::with(&scenario).fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
        assert_eq!(answer.code, 2, "{answer:?}");
        assert!(answer.stderr.contains("harmony-style") && answer.stderr.contains(part), "{}", answer.stderr);
    }
}
