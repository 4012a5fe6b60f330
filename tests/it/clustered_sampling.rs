//! Clustered sampling: every distribution, draw and weight recomputed from a run's records, distributions worked out by
//! hand, and settings that are refused.

use super::fedacs::{ids, numbers, rounds};
use super::support::{SCENARIO, Workplace, changed};
use fedgenie::rng::{Purpose, Streams};
use serde_json::Value;
use std::cmp::Reverse;
use std::iter::repeat_n;

/// Twelve clients, one of which has nearly a third of all examples, and three of which have equally many.
const WORLD: &str = r#"
name = "clustered-sampling"
seeds = 1
[stop]
rounds = 40
[population]
clients = 12
interrupted = "run-on"
data_size = { each = [5, 40, 10, 25, 30, 130, 20, 40, 45, 12, 8, 40] }
[population.latency]
download = { constant = "0.1 s" }
compute = { exponential = { mean = { uniform = ["0.2 s", "1.5 s"] }, shift = "0.05 s" } }
upload = { constant = "0.15 s" }
[task.scripted]
values = [0.5]
[protocol.synchronous]
cohort = 5
[policy.clustered-sampling]
"#;
const SIZES: [usize; 12] = [5, 40, 10, 25, 30, 130, 20, 40, 45, 12, 8, 40];

const AWAY: &str = "[population.availability]\non-off = { on = { exponential = { mean = \"8 s\" } }, \
                    off = { exponential = { mean = \"4 s\" } } }\n";
const LATE: &str = "[protocol.deadline]\ncohort = 5\ndeadline = \"0.9 s\"\nlate = { carry = {} }\n";

/// What happened in a run.
#[derive(Debug, Default)]
struct Seen {
    /// Selections in which a client was drawn more than once.
    repeated: usize,
    /// Clients with units in two distributions or more, over all selections.
    divided: usize,
    /// Selections among fewer than all clients.
    among_some: usize,
}

/// The distributions of a selection, each with the units of every candidate.
fn distributions(said: &Value) -> Vec<Vec<f64>> {
    said["distributions"].as_array().unwrap().iter().map(numbers).collect()
}

/// Each client once, at its first place, and how often it stands in the list.
fn counted(drawn: &[usize]) -> Vec<(usize, usize)> {
    let is_first = |(place, client): &(usize, &usize)| !drawn[..*place].contains(client);
    let times = |(_, &client): (usize, &usize)| (client, drawn.iter().filter(|&&other| other == client).count());
    drawn.iter().enumerate().filter(is_first).map(times).collect()
}

/// Compares the selection and the weights of a round with what was drawn.
fn assert_weighed(round: &Value, drawn: &[usize]) {
    let expected = counted(drawn);
    assert_eq!(ids(&round["selected"]), expected.iter().map(|counted| counted.0).collect::<Vec<_>>(), "{round}");
    let weights = numbers(&round["weights"]);
    assert_eq!(weights.len(), expected.len());
    for (weight, (_, times)) in weights.iter().zip(&expected) {
        assert!((weight - *times as f64 / drawn.len() as f64).abs() < 1e-12, "{round}");
    }
    assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{round}");
}

fn check(round: &Value, turn: u32, seen: &mut Seen) {
    let said = &round["explain"][0];
    let candidates = ids(&said["clients"]);
    let count = candidates.len().min(5);
    let all: usize = candidates.iter().map(|&client| SIZES[client]).sum();
    let mut falling = candidates.clone();
    falling.sort_by_key(|&client| (Reverse(SIZES[client]), client));
    // All units in the order of filling, each the number of its client.
    let units: Vec<usize> = falling.iter().flat_map(|&client| repeat_n(client, count * SIZES[client])).collect();
    let filled: Vec<&[usize]> = units.chunks(all).collect();
    assert_eq!(filled.len(), count);

    let found = distributions(said);
    assert_eq!(found.len(), count, "selection {turn}");
    for (found, filled) in found.iter().zip(&filled) {
        let of = |&client: &usize| filled.iter().filter(|&&owner| owner == client).count() as f64;
        assert_eq!(*found, candidates.iter().map(of).collect::<Vec<_>>(), "selection {turn}");
    }
    let mut rng = Streams::new(1).stream(Purpose::Policy, 0, turn);
    let drawn: Vec<usize> = filled.iter().map(|filled| filled[rng.below(all as u64) as usize]).collect();
    assert_eq!(ids(&said["drawn"]), drawn, "selection {turn}");
    assert_weighed(round, &drawn);

    seen.repeated += usize::from(counted(&drawn).len() < drawn.len());
    let parts = |client: &&usize| filled.iter().filter(|filled| filled.contains(*client)).count();
    seen.divided += candidates.iter().filter(|client| parts(client) > 1).count();
    seen.among_some += usize::from(candidates.len() < 12);
}

/// Plays 40 rounds and compares each with the rules.
fn checked(scenario: &str) -> Seen {
    let mut seen = Seen::default();
    let lines = rounds(scenario, 1, 40);
    assert_eq!(lines.len(), 40);
    lines.iter().zip(1..).for_each(|(round, turn)| check(round, turn, &mut seen));
    seen
}

fn worlds() -> [String; 4] {
    let late = changed(WORLD, "[protocol.synchronous]\ncohort = 5\n", LATE);
    let away = |scenario: &str| changed(scenario, "[task.scripted]", &format!("{AWAY}[task.scripted]"));
    [WORLD.to_owned(), away(WORLD), away(&late), late]
}

#[test]
fn every_selection_follows_from_the_records() {
    let [plain, others @ ..] = worlds();
    let seen = checked(&plain);
    assert!(seen.repeated >= 5 && seen.divided >= 80 && seen.among_some == 0, "{seen:?}");
    assert_eq!(seen.divided % 40, 0, "among the same candidates the distributions are the same");
    for scenario in others {
        let seen = checked(&scenario);
        assert!(seen.repeated >= 3 && seen.divided >= 40 && seen.among_some >= 20, "{seen:?}");
    }
    checked(&format!("{plain}algorithm = \"size\"\n"));
}

/// The expected weight of a client is the sum of its units over `m·Σn`: its share of the examples, if the sum is
/// `m·n`.
#[test]
fn on_average_a_client_weighs_its_share_of_the_examples() {
    for scenario in worlds() {
        for round in rounds(&scenario, 1, 40) {
            let said = &round["explain"][0];
            let (candidates, found) = (ids(&said["clients"]), distributions(said));
            let all: usize = candidates.iter().map(|&client| SIZES[client]).sum();
            for distribution in &found {
                assert_eq!(distribution.iter().sum::<f64>(), all as f64, "{round}");
            }
            for (place, &client) in candidates.iter().enumerate() {
                let units: f64 = found.iter().map(|distribution| distribution[place]).sum();
                assert_eq!(units, (found.len() * SIZES[client]) as f64, "client {client}: {round}");
            }
        }
    }
}

/// A few clients of given sizes, so many at a time.
fn few(sizes: &[usize], cohort: usize) -> String {
    let sizes_of_all = "data_size = { each = [5, 40, 10, 25, 30, 130, 20, 40, 45, 12, 8, 40] }";
    let scenario = changed(WORLD, sizes_of_all, &format!("data_size = {{ each = {sizes:?} }}"));
    let scenario = changed(&scenario, "clients = 12", &format!("clients = {}", sizes.len()));
    changed(&scenario, "cohort = 5", &format!("cohort = {cohort}"))
}

/// Of 7, 5, 4, 3 and 1 examples and three places there are 21, 15, 12, 9 and 3 units, 20 in each distribution: 20;
/// 1 + 15 + 4; 8 + 9 + 3. Units of a distribution stand in that order.
#[test]
fn five_clients_by_hand() {
    let filled = [vec![(0, 0..20)], vec![(0, 0..1), (1, 1..16), (2, 16..20)], vec![(2, 0..8), (3, 8..17), (4, 17..20)]];
    // Number of each client in the order of falling sizes; distributions in the order of the clients.
    for (sizes, order, expected) in [
        (
            [7, 5, 4, 3, 1],
            [0, 1, 2, 3, 4],
            [[20.0, 0.0, 0.0, 0.0, 0.0], [1.0, 15.0, 4.0, 0.0, 0.0], [0.0, 0.0, 8.0, 9.0, 3.0]],
        ),
        (
            [3, 7, 1, 5, 4],
            [1, 3, 4, 0, 2],
            [[0.0, 20.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 15.0, 4.0], [9.0, 0.0, 3.0, 0.0, 8.0]],
        ),
    ] {
        let mut repeated = 0;
        for (round, turn) in rounds(&few(&sizes, 3), 1, 30).iter().zip(1..) {
            let said = &round["explain"][0];
            assert_eq!(distributions(said), expected);
            let mut rng = Streams::new(1).stream(Purpose::Policy, 0, turn);
            let draw = |parts: &Vec<(usize, std::ops::Range<u64>)>| {
                let unit = rng.below(20);
                order[parts.iter().find(|part| part.1.contains(&unit)).unwrap().0]
            };
            let drawn: Vec<usize> = filled.iter().map(draw).collect();
            assert_eq!(ids(&said["drawn"]), drawn);
            assert_eq!(drawn[0], order[0], "the first distribution has nobody else");
            assert_weighed(round, &drawn);
            repeated += usize::from(ids(&round["selected"]).len() < 3);
        }
        assert!(repeated >= 1, "some client was drawn twice");
    }
}

/// Equal sizes are filled in by ascending number; a client with more than all of one place has all of it.
#[test]
fn other_sizes_by_hand() {
    for (sizes, cohort, expected) in [
        (vec![4, 4, 4], 2, vec![vec![8.0, 4.0, 0.0], vec![0.0, 4.0, 8.0]]),
        (vec![1, 2, 1, 2], 2, vec![vec![0.0, 4.0, 0.0, 2.0], vec![2.0, 0.0, 2.0, 2.0]]),
        (vec![1, 8, 1], 2, vec![vec![0.0, 10.0, 0.0], vec![2.0, 6.0, 2.0]]),
        (vec![1, 2, 3], 1, vec![vec![1.0, 2.0, 3.0]]),
        (vec![2, 6], 2, vec![vec![0.0, 8.0], vec![4.0, 4.0]]),
    ] {
        let round = &rounds(&few(&sizes, cohort), 1, 1)[0];
        assert_eq!(distributions(&round["explain"][0]), expected, "{sizes:?}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    for (more, part) in [("algorithm = \"colour\"", "algorithm"), ("clusters = 3", "clusters")] {
        let answer = Workplace::with(&format!("{WORLD}{more}\n")).fedgenie(&["run", SCENARIO]);
        assert_eq!(answer.code, 2, "{more}: {answer:?}");
        let words = ["clustered-sampling", part];
        assert!(words.iter().all(|word| answer.stderr.contains(word)), "{more}: {}", answer.stderr);
    }
}
