//! HACCS: every selection found again from labels, latencies, losses and draws; a case by hand; and refusals.

use super::fedacs::{ids, numbers, rounds};
use super::support::{SCENARIO, Workplace, changed, labelled, world};
use fedgenie::id::ClientId;
use fedgenie::rng::{Purpose, Streams};
use std::collections::BTreeMap;

/// Twelve clients with a few classes each, on devices that differ.
const WORLD: &str = r#"
name = "haccs"
seeds = 1
[stop]
rounds = 40
[population]
clients = 12
interrupted = "run-on"
[population.latency]
download = { constant = "0.1 s" }
compute = { exponential = { mean = { each = [
    "0.2 s", "0.3 s", "0.5 s", "0.8 s", "1 s", "1.5 s", "0.4 s", "0.6 s", "0.7 s", "0.9 s", "0.3 s", "2 s",
] }, shift = "0.05 s" } }
upload = { constant = "0.15 s" }
[task.softmax-regression]
data = { synthetic = { classes = 4, height = 3, width = 3, train = 480, test = 40 } }
partition = { label-shards = { shards_per_client = 2 } }
[training]
batch = 8
optimizer = { sgd = { lr = 0.05 } }
[protocol.synchronous]
cohort = 4
[policy.haccs]
"#;
const MEANS: [f64; 12] = [0.2, 0.3, 0.5, 0.8, 1.0, 1.5, 0.4, 0.6, 0.7, 0.9, 0.3, 2.0];

const AWAY: &str = "[population.availability]\non-off = { on = { exponential = { mean = \"8 s\" } }, \
                    off = { exponential = { mean = \"4 s\" } } }\n[task.softmax-regression]";

/// The shares of classes of each client.
fn shares(scenario: &str) -> Vec<Vec<f64>> {
    let world = world(scenario, 1);
    let task = labelled(&world);
    let (classes, count) = task.data.train.classes().unwrap();
    let of = |client: usize| {
        let mut shares = vec![0.0; count];
        let examples = task.partition.client(ClientId::from_index(client));
        examples.iter().for_each(|&example| shares[usize::from(classes[example as usize])] += 1.0);
        shares.iter_mut().for_each(|share| *share /= examples.len() as f64);
        shares
    };
    (0..12).map(of).collect()
}

/// Clusters by labels that spread over all pairs that are near, until nothing changes.
fn clusters_by_chains(shares: &[Vec<f64>], distance: f64) -> Vec<usize> {
    let near = |one: usize, other: usize| {
        let squared: f64 = shares[one].iter().zip(&shares[other]).map(|(one, other)| (one - other).powi(2)).sum();
        squared.sqrt() <= distance
    };
    let mut label: Vec<usize> = (0..shares.len()).collect();
    for _ in 0..shares.len() {
        for one in 0..shares.len() {
            for other in 0..shares.len() {
                if near(one, other) {
                    label[one] = label[one].min(label[other]);
                }
            }
        }
    }
    let mut smallest = label.clone();
    smallest.sort_unstable();
    smallest.dedup();
    label.iter().map(|label| smallest.binary_search(label).unwrap()).collect()
}

/// What is settled beside the world.
#[derive(Clone, Copy)]
struct Rules {
    rho: f64,
    quasi: bool,
}

/// Plays 40 rounds and finds each selection again; clusters are those that are given, or that are said. Returns the
/// clusters, and the number of selections of each client.
fn found_again(scenario: &str, clusters: Option<&[usize]>, rules: Rules) -> (Vec<usize>, Vec<usize>) {
    let latency = |client: usize| 0.3 + MEANS[client] * 2.0_f64.ln();
    let mut known: BTreeMap<usize, f64> = BTreeMap::new();
    let mut of: Vec<usize> = clusters.map_or(vec![usize::MAX; 12], <[usize]>::to_vec);
    let mut picks = vec![0; 12];
    for (turn, round) in (1..).zip(rounds(scenario, 1, 40)) {
        let said = &round["explain"][0];
        let candidates = ids(&said["clients"]);
        for (&client, cluster) in candidates.iter().zip(ids_of_numbers(&numbers(&said["cluster"]))) {
            assert!(of[client] == usize::MAX || of[client] == cluster, "{client} is in another cluster: {round}");
            of[client] = cluster;
        }
        let count = numbers(&said["theta"]).len();
        let members = |cluster: usize| -> Vec<usize> {
            candidates.iter().copied().filter(|&client| of[client] == cluster).collect()
        };
        let largest = candidates.iter().filter_map(|client| known.get(client)).copied().fold(0.0, f64::max);
        let loss = |client: usize| known.get(&client).copied().unwrap_or(if largest > 0.0 { largest } else { 1.0 });
        let mean = |clients: &[usize], value: &dyn Fn(usize) -> f64| {
            clients.iter().map(|&client| value(client)).sum::<f64>() / clients.len() as f64
        };
        let there: Vec<usize> = (0..count).filter(|&cluster| !members(cluster).is_empty()).collect();
        let speed = |cluster: usize| mean(&members(cluster), &latency);
        let squared = |cluster: usize| mean(&members(cluster), &|client| loss(client).powi(2));
        let slowest = there.iter().map(|&cluster| speed(cluster)).fold(0.0, f64::max);
        let losses: f64 = there.iter().map(|&cluster| squared(cluster)).sum();
        let theta: Vec<f64> = (0..count)
            .map(|cluster| match there.contains(&cluster) {
                true => rules.rho * (1.0 - speed(cluster) / slowest) + (1.0 - rules.rho) * squared(cluster) / losses,
                false => 0.0,
            })
            .collect();
        for (found, expected) in numbers(&said["theta"]).iter().zip(&theta) {
            assert!((found - expected).abs() < 1e-12, "{found} beside {expected} in {round}");
        }
        // The selection: with k-means in the first round its draws come before, and clusters are as said.
        let drawn = ids_of_numbers(&numbers(&said["drawn"]));
        let mut left: Vec<Vec<usize>> = (0..count).map(members).collect();
        for members in &mut left {
            members.sort_by(|&one, &other| latency(other).total_cmp(&latency(one)).then(other.cmp(&one)));
        }
        let mut expected = Vec::new();
        let all: f64 = theta.iter().sum();
        if rules.quasi {
            for cluster in 0..count {
                let sure = (theta[cluster] / all * 4.0 + 1e-9).floor() as usize;
                (0..sure.min(left[cluster].len())).for_each(|_| expected.push((cluster, left[cluster].pop().unwrap())));
            }
        }
        let mut rng = Streams::new(1).stream(Purpose::Policy, 0, turn);
        let is_drawn = clusters.is_some() || turn > 1;
        while expected.len() < candidates.len().min(4) {
            let open: Vec<usize> = (0..count).filter(|&cluster| !left[cluster].is_empty()).collect();
            let sum: f64 = open.iter().map(|&cluster| theta[cluster]).sum();
            let cluster = if is_drawn {
                let point = rng.uniform() * sum;
                let until = |place: usize| open[..=place].iter().map(|&cluster| theta[cluster]).sum::<f64>();
                open[(0..open.len()).find(|&place| point < until(place)).unwrap_or(open.len() - 1)]
            } else {
                drawn[expected.len()]
            };
            expected.push((cluster, left[cluster].pop().unwrap()));
        }
        assert_eq!(drawn, expected.iter().map(|place| place.0).collect::<Vec<_>>(), "{round}");
        assert_eq!(ids(&round["selected"]), expected.iter().map(|place| place.1).collect::<Vec<_>>(), "{round}");
        expected.iter().for_each(|place| picks[place.1] += 1);
        let losses = numbers(&round["updates"]["loss"]);
        ids(&round["updates"]["clients"]).into_iter().zip(losses).for_each(|(client, loss)| {
            known.insert(client, loss);
        });
    }
    (of, picks)
}

fn ids_of_numbers(numbers: &[f64]) -> Vec<usize> {
    numbers.iter().map(|number| *number as usize).collect()
}

#[test]
fn every_selection_follows_from_labels_latencies_and_losses() {
    let plain = Rules { rho: 0.5, quasi: false };
    let of = shares(WORLD);
    let by_default = clusters_by_chains(&of, 0.25);
    assert!((3..12).contains(&(by_default.iter().max().unwrap() + 1)), "{by_default:?}");
    found_again(WORLD, Some(&by_default), plain);
    let away = changed(WORLD, "[task.softmax-regression]", AWAY);
    found_again(&away, Some(&by_default), plain);
    let wide = clusters_by_chains(&of, 0.75);
    assert_ne!(wide, by_default);
    let (_, picks) =
        found_again(&format!("{away}distance = 0.75\nrho = 0.9\n"), Some(&wide), Rules { rho: 0.9, quasi: false });
    assert!(picks[11] < picks[0], "the slowest of all is hardly selected: {picks:?}");
    found_again(&format!("{away}draws = \"quasi-random\"\n"), Some(&by_default), Rules { rho: 0.5, quasi: true });
    let (three, _) = found_again(&format!("{WORLD}clusters = 3\n"), None, plain);
    assert_eq!(three.iter().max(), Some(&2));
    assert_eq!(three[0], 0, "clusters are numbered by their smallest ids");
}

/// Everybody is asked: the first model knows nothing and is as bad for everybody, the second one is not, also where
/// nobody was selected yet, which losses of updates alone cannot tell.
#[test]
fn fresh_losses_are_asked_for_and_charged() {
    let clusters = clusters_by_chains(&shares(WORLD), 0.25);
    let count = clusters.iter().max().unwrap() + 1;
    let latency = |client: usize| 0.3 + MEANS[client] * 2.0_f64.ln();
    let members = |cluster: usize| (0..12).filter(|&client| clusters[client] == cluster).collect::<Vec<usize>>();
    let speed: Vec<f64> = (0..count)
        .map(|cluster| members(cluster).into_iter().map(latency).sum::<f64>() / members(cluster).len() as f64)
        .collect();
    let slowest = speed.iter().copied().fold(0.0, f64::max);
    // The part of each weight that is of losses, of clusters that have not been selected in the first round.
    let losses = |rounds: &[serde_json::Value], turn: usize| -> Vec<f64> {
        let heard = numbers(&rounds[0]["explain"][0]["drawn"]);
        let theta = numbers(&rounds[turn]["explain"][0]["theta"]);
        let is_unheard = |cluster: &usize| turn == 0 || !heard.contains(&(*cluster as f64));
        (0..count).filter(is_unheard).map(|cluster| theta[cluster] - 0.5 * (1.0 - speed[cluster] / slowest)).collect()
    };
    let alike = |parts: &[f64]| parts.iter().all(|part| (part - parts[0]).abs() < 1e-6);
    let (fresh, known) = (rounds(&format!("{WORLD}losses = \"fresh\"\n"), 1, 2), rounds(WORLD, 1, 2));
    assert!(alike(&losses(&fresh, 0)) && (losses(&fresh, 0)[0] - 0.5 / count as f64).abs() < 1e-6);
    for (rounds, is_alike) in [(&known, true), (&fresh, false)] {
        let unheard = losses(rounds, 1);
        assert!(unheard.len() > 1 && alike(&unheard) == is_alike, "{unheard:?}");
    }
    let closed = |rounds: &[serde_json::Value]| rounds[0]["closed_s"].as_f64().unwrap();
    assert!(closed(&fresh) > closed(&known), "answers take their time");
}

#[test]
fn what_does_not_fit_is_refused() {
    let refused = |scenario: &str, words: &str| {
        let answer = Workplace::with(scenario).fedgenie(&["run", SCENARIO]);
        assert!(answer.code == 2 && answer.stderr.contains(words), "{words}: {}", answer.stderr);
    };
    refused(&format!("{WORLD}clusters = 0\n"), "policy.haccs.clusters: found 0");
    refused(&format!("{WORLD}clusters = 13\n"), "policy.haccs.clusters: found 13");
    refused(&format!("{WORLD}clusters = 3\ndistance = 0.1\n"), "policy.haccs.distance: stands beside clusters");
    refused(&format!("{WORLD}distance = -0.1\n"), "policy.haccs.distance: found -0.1");
    refused(&format!("{WORLD}rho = 1.5\n"), "policy.haccs.rho: found 1.5");
    let from = WORLD.find("[task").unwrap();
    let to = WORLD.find("[training]").unwrap();
    let task = "[task.linear-regression]\nexamples = 300\n";
    refused(&format!("{}{task}{}", &WORLD[..from], &WORLD[to..]), "haccs groups clients by classes");
    let many = changed(WORLD, "clients = 12", "clients = 100_001");
    let means = many.find("{ each = [").unwrap();
    let end = many[means..].find("] }").unwrap() + means + 3;
    let many = format!("{}\"0.5 s\"{}", &many[..means], &many[end..]);
    let shards = "partition = { label-shards = { shards_per_client = 2 } }";
    let many = changed(&many, shards, "partition = { overlapping = { size = 5, alpha = 0.3 } }");
    refused(&many, "haccs compares all pairs of clients, and 100001 clients are too many");
}
