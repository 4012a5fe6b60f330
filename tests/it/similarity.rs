//! Clustered sampling by similarity: every angle, group, distribution and draw recomputed from jobs that are trained
//! apart, groups worked out by hand, and settings that are refused.

use super::divfl::change;
use super::fedacs::{ids, numbers, rounds};
use super::mini_batch::sent;
use super::support::{SCENARIO, Workplace, changed, labelled, world};
use fedgenie::id::ClientId;
use fedgenie::rng::{Purpose, Streams};
use serde_json::Value;
use std::collections::BTreeMap;

/// Ten clients of different sizes and classes, four at a time.
const WORLD: &str = r#"
name = "similarity"
seeds = 1
stop.rounds = 25
[population]
clients = 10
interrupted = "run-on"
latency.download.constant = "0.1 s"
latency.compute.exponential = { mean.uniform = ["0.2 s", "1.5 s"], shift = "0.05 s" }
latency.upload.constant = "0.15 s"
[task.softmax-regression]
data = { synthetic = { classes = 4, height = 3, width = 3, train = 300, test = 40 } }
partition = { dirichlet = { alpha = 0.3 } }
[training]
batch = 8
optimizer.sgd.lr = 0.05
[protocol.synchronous]
cohort = 4
[policy.clustered-sampling]
algorithm = "similarity"
"#;

const AWAY: &str = "[population.availability]\non-off = { on = { exponential = { mean = \"9 s\" } }, \
                    off = { exponential = { mean = \"5 s\" } } }\n[task.softmax-regression]";
const LATE: &str = "[protocol.deadline]\ncohort = 4\ndeadline = \"0.8 s\"\nlate = { carry = {} }\n";

/// Groups under way by their first client: members.
type Groups = BTreeMap<usize, Vec<usize>>;

/// The groups of some clients with these rests, by the rule; `apart` are distances of pairs. Returns also by how much
/// the closest decision was decided, as a difference of distances.
fn grouped(rests: &BTreeMap<usize, u64>, apart: impl Fn(usize, usize) -> f64, limit: u64) -> (Vec<Vec<usize>>, f64) {
    let mut groups: Groups = rests.keys().map(|&client| (client, vec![client])).collect();
    let mut distances: BTreeMap<(usize, usize), f64> = BTreeMap::new();
    for &one in rests.keys() {
        for &other in rests.keys().filter(|&&other| other > one) {
            distances.insert((one, other), apart(one, other));
        }
    }
    let pair = |one: usize, other: usize| (one.min(other), one.max(other));
    let weight = |members: &[usize]| members.iter().map(|client| rests[client]).sum::<u64>();
    let mut all: Vec<Vec<usize>> = groups.values().cloned().collect();
    let mut margin = f64::INFINITY;
    while groups.len() > 1 {
        let mut sorted: Vec<((usize, usize), f64)> = distances.clone().into_iter().collect();
        sorted.sort_by(|one, other| one.1.total_cmp(&other.1).then(one.0.cmp(&other.0)));
        let ((one, other), closest) = sorted[0];
        if let Some(second) = sorted.get(1).filter(|second| second.1 > closest) {
            margin = margin.min(second.1 - closest);
        }
        let (left, right) = (groups.remove(&one).unwrap(), groups.remove(&other).unwrap());
        for (&third, members) in &groups {
            let [a, b, c] = [&left, &right, members].map(|group| group.len() as f64);
            let [to_left, to_right] = [one, other].map(|place| distances[&pair(place, third)]);
            let square = ((a + c) * to_left.powi(2) + (b + c) * to_right.powi(2) - c * closest.powi(2)) / (a + b + c);
            distances.insert(pair(one, third), square.max(0.0).sqrt());
        }
        distances.retain(|&(first, second), _| first != other && second != other && (first, second) != (one, other));
        let mut joined = [left, right].concat();
        joined.sort_unstable();
        all.push(joined.clone());
        groups.insert(one, joined);
    }
    // Of all subtrees those that are light enough, and are in no larger one that is.
    let light: Vec<Vec<usize>> = all.into_iter().filter(|set| set.len() == 1 || weight(set) <= limit).collect();
    let is_largest = |set: &Vec<usize>| !light.iter().any(|other| other.len() > set.len() && other.contains(&set[0]));
    let mut found: Vec<Vec<usize>> = light.iter().filter(|set| is_largest(set)).cloned().collect();
    found.sort_by(|one, other| weight(other).cmp(&weight(one)).then(one.cmp(other)));
    (found, margin)
}

/// The units of the distributions, in the order in which they are filled.
fn filled(units: &BTreeMap<usize, u64>, groups: &[Vec<usize>], count: usize, all: u64) -> Vec<Vec<(usize, u64)>> {
    let mut found: Vec<Vec<(usize, u64)>> = Vec::new();
    for (&client, units) in units {
        found.extend((0..units / all).map(|_| vec![(client, all)]));
    }
    let alone = found.len();
    let rest = |client: &usize| (*client, units[client] % all);
    found.extend(groups.iter().take(count - alone).map(|group| group.iter().map(rest).collect()));
    let mut at = alone;
    for (client, mut left) in groups.iter().skip(count - alone).flatten().map(rest) {
        while left > 0 {
            let room = all - found[at].iter().map(|part| part.1).sum::<u64>();
            if room == 0 {
                at += 1;
                continue;
            }
            found[at].push((client, room.min(left)));
            left -= room.min(left);
        }
    }
    found
}

/// What happened in a run.
#[derive(Debug, Default)]
struct Seen {
    /// Groups of several clients.
    several: usize,
    /// Clients that filled distributions alone.
    alone: usize,
    unknown: usize,
    /// The closest decision between two joins.
    margin: f64,
}

fn checked(scenario: &str) -> Seen {
    let world = world(scenario, 1);
    let sizes: Vec<u64> = (0..10).map(|client| labelled(&world).partition.size(ClientId(client)) as u64).collect();
    let (lines, mut models) = (rounds(scenario, 1, 25), sent(scenario, &world, 25).into_iter());
    let mut sent = vec![models.next().unwrap()];
    let mut known: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    let mut seen = Seen { margin: f64::INFINITY, ..Seen::default() };
    for (turn, round) in (1_usize..).zip(&lines) {
        let said = &round["explain"][0];
        let candidates = ids(&said["clients"]);
        let count = candidates.len().min(4);
        let all: u64 = candidates.iter().map(|&client| sizes[client]).sum();
        let units: BTreeMap<usize, u64> =
            candidates.iter().map(|&client| (client, count as u64 * sizes[client])).collect();
        let rests: BTreeMap<usize, u64> =
            units.iter().map(|(&client, units)| (client, units % all)).filter(|rest| rest.1 > 0).collect();
        let angle = |one: usize, other: usize| {
            let (Some(one), Some(other)) = (known.get(&one), known.get(&other)) else { return 0.0 };
            let product = |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(a, b)| a * b).sum::<f64>();
            (product(one, other) / (product(one, one) * product(other, other)).sqrt()).clamp(-1.0, 1.0).acos()
        };
        let (groups, margin) = grouped(&rests, angle, all);
        seen.margin = seen.margin.min(margin);
        let number = |client: &usize| {
            groups.iter().position(|group| group.contains(client)).map_or(f64::NAN, |number| number as f64)
        };
        let expected: Vec<f64> = candidates.iter().map(number).collect();
        let found = numbers(&said["group"]);
        let is_same = |(one, other): (&f64, &f64)| one == other || one.is_nan() && other.is_nan();
        assert!(found.iter().zip(&expected).all(is_same), "{turn}: {found:?}, {expected:?}, {margin}");
        let unknown: Vec<usize> = candidates.iter().copied().filter(|client| !known.contains_key(client)).collect();
        assert_eq!(ids(&said["unknown"]), unknown, "{turn}");

        let filled = filled(&units, &groups, count, all);
        let lists = said["distributions"].as_array().unwrap();
        assert_eq!((lists.len(), filled.len()), (count, count), "{turn}");
        let mut rng = Streams::new(1).stream(Purpose::Policy, 0, turn as u32);
        let mut drawn = Vec::new();
        for (list, parts) in lists.iter().zip(&filled) {
            let of =
                |client: &usize| parts.iter().filter(|part| part.0 == *client).map(|part| part.1).sum::<u64>() as f64;
            assert_eq!(numbers(list), candidates.iter().map(of).collect::<Vec<_>>(), "{turn}");
            assert_eq!(parts.iter().map(|part| part.1).sum::<u64>(), all, "{turn}");
            let mut unit = rng.below(all);
            let mut owners = parts.iter().filter(|part| {
                let is_here = unit < part.1;
                unit = unit.wrapping_sub(if is_here { 0 } else { part.1 });
                is_here
            });
            drawn.push(owners.next().unwrap().0);
        }
        assert_eq!(ids(&said["drawn"]), drawn, "{turn}");
        // Over draws, everybody weighs its share.
        for (place, client) in candidates.iter().enumerate() {
            let sum: f64 = lists.iter().map(|list| numbers(list)[place]).sum();
            assert_eq!(sum, units[client] as f64, "{turn}");
        }
        let selected = ids(&round["selected"]);
        for (client, weight) in selected.iter().zip(numbers(&round["weights"])) {
            let times = drawn.iter().filter(|other| *other == client).count();
            assert!((weight - times as f64 / count as f64).abs() < 1e-12, "{turn}");
        }
        seen.several += groups.iter().filter(|group| group.len() > 1).count();
        seen.alone += units.values().filter(|&&units| units >= all).count();
        seen.unknown += unknown.len();

        let whole = |value: &Value| value.as_u64().unwrap() as usize;
        let joined = round["joined"].as_array().into_iter().flatten();
        let mut of: BTreeMap<usize, usize> =
            joined.map(|late| (whole(&late["client"]), whole(&late["round"]))).collect();
        of.extend(ids(&round["arrived"]).into_iter().map(|client| (client, turn)));
        for (&client, &round) in &of {
            known.extend(change(&world, client, round, &sent[round - 1]).map(|change| (client, change)));
        }
        let has_updates = !ids(&round["updates"]["clients"]).is_empty();
        sent.push(if has_updates { models.next().unwrap() } else { sent[turn - 1].clone() });
    }
    seen
}

#[test]
fn every_distribution_follows_from_angles() {
    let seen = checked(WORLD);
    assert!(seen.several >= 20 && seen.unknown >= 10 && seen.margin > 1e-7, "{seen:?}");
    let few = changed(WORLD, "alpha = 0.3", "alpha = 0.05, minimum = 0");
    let seen = checked(&few);
    assert!(seen.alone >= 10, "{seen:?}");
    for scenario in [
        changed(WORLD, "[task.softmax-regression]", AWAY),
        changed(WORLD, "[protocol.synchronous]\ncohort = 4\n", LATE),
    ] {
        let seen = checked(&scenario);
        assert!(seen.several >= 10 && seen.margin > 1e-7, "{seen:?}");
    }
}

/// Sizes of 7, 5, 4, 3 and 1 and three places: 21, 15, 12, 9 and 3 units, 20 in each distribution. Client 0 fills one
/// alone, and has 1 left. On a line, the others are at 0 (client 0), 1, 1.5, 4 and 5 (client 4): 1 and 2 are nearest,
/// and too heavy together (27), so that both are alone. 3 and 4 have 12. Client 0 is √((2·1 + 2·2.25 − 0.25)/3) = 1.44
/// from 1 and 2, and joins those; it is alone. So groups are 1 (15), 2 and 3 + 4 (12 each; 2 has the smaller id), 0
/// (1); two of them have a distribution of their own, and the others fill: 3 takes 5 beside 1, then 4 beside 2, 4 takes
/// 3, and 0 its 1.
#[test]
fn five_clients_by_hand() {
    let at = [0.0, 1.0, 1.5, 4.0, 5.0];
    let units: BTreeMap<usize, u64> = [21, 15, 12, 9, 3].into_iter().enumerate().collect();
    let rests: BTreeMap<usize, u64> = units.iter().map(|(&client, units)| (client, units % 20)).collect();
    let (groups, _) = grouped(&rests, |one, other| f64::abs(at[one] - at[other]), 20);
    assert_eq!(groups, [vec![1], vec![2], vec![3, 4], vec![0]]);
    let expected = [vec![(0, 20)], vec![(1, 15), (3, 5)], vec![(2, 12), (3, 4), (4, 3), (0, 1)]];
    assert_eq!(filled(&units, &groups, 3, 20), expected);
}

#[test]
fn what_does_not_fit_is_refused() {
    let learned = &WORLD[WORLD.find("[task").unwrap()..WORLD.find("[protocol").unwrap()];
    for (from, to, part) in [
        (learned, "[task.scripted]\nvalues = [0.5]\n", "changes"),
        ("algorithm = \"similarity\"", "algorithm = \"gradient\"", "algorithm"),
    ] {
        let answer = Workplace::with(&changed(WORLD, from, to)).fedgenie(&["run", SCENARIO]);
        assert_eq!(answer.code, 2, "{to}: {answer:?}");
        assert!(
            ["clustered-sampling", part].iter().all(|word| answer.stderr.contains(word)),
            "{to}: {}",
            answer.stderr
        );
    }
    let many = changed(WORLD, "clients = 10", "clients = 40_000");
    let many = changed(
        &many,
        learned,
        "[task.linear-regression]\nfeatures = 2\nexamples = 50_000\n[training]\noptimizer.sgd.lr = 0.05\n",
    );
    let answer = Workplace::with(&many).fedgenie(&["run", SCENARIO]);
    assert!(answer.code == 2 && answer.stderr.contains("11 GiB, and 8 GiB is the most"), "{answer:?}");
}
