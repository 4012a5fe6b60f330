//! Selection by age: every age and every set found again from a run's records, also where updates come late or never,
//! and two cases by hand.

use super::fedacs::{ids, numbers, rounds};
use super::support::{SCENARIO, Workplace, changed, line_of};
use serde_json::Value;
use std::cmp::Reverse;

/// Nine clients on devices that differ.
const WORLD: &str = r#"
name = "age"
seeds = 1
[stop]
rounds = 40
[population]
clients = 9
interrupted = "run-on"
[population.latency]
download = { constant = "0.1 s" }
compute = { exponential = { mean = { each = [
    "0.2 s", "0.3 s", "0.5 s", "0.8 s", "1 s", "1.5 s", "0.4 s", "0.6 s", "0.9 s",
] }, shift = "0.05 s" } }
upload = { constant = "0.15 s" }
[task.scripted]
values = [0.5]
[protocol.synchronous]
cohort = 3
[policy.age]
"#;

const AWAY: &str = r#"[population.availability.on-off]
start = "on"
on = { constant = { each = ["3 s", "4 s", "2 s", "5 s", "3 s", "2.5 s", "6 s", "4.5 s", "1.5 s"] } }
off = { constant = { each = ["3 s", "4 s", "7 s", "5 s", "6 s", "2.5 s", "2 s", "5.5 s", "4.5 s"] } }
[task.scripted]"#;

/// How often the rules came to their special cases.
#[derive(Default)]
struct Found {
    /// Late updates that made their clients younger.
    late: usize,
    /// Candidates whose last selection brought no update.
    unheard: usize,
    oldest: usize,
    /// Rounds in which fewer clients than a cohort could be asked.
    small: usize,
    /// Candidates that were not asked although another one of the same age was.
    tied: usize,
}

/// Plays 40 rounds and compares each with the rule.
fn checked(scenario: &str) -> Found {
    let mut found = Found::default();
    // The last selection of each client, and the last one whose update arrived.
    let (mut asked, mut heard) = ([0_usize; 9], [0_usize; 9]);
    for (round, turn) in rounds(scenario, 1, 40).iter().zip(1_usize..) {
        let said = &round["explain"][0];
        let candidates = ids(&said["clients"]);
        assert!(candidates.is_sorted() && !candidates.is_empty(), "round {turn}");
        let ages: Vec<usize> = candidates.iter().map(|&client| turn - heard[client]).collect();
        assert_eq!(numbers(&said["age"]), ages.iter().map(|&age| age as f64).collect::<Vec<_>>(), "round {turn}");
        let mut oldest = candidates.clone();
        oldest.sort_by_key(|&client| (Reverse(turn - heard[client]), client));
        let (first, others) = oldest.split_at(oldest.len().min(3));
        assert_eq!(ids(&round["selected"]), first, "round {turn}");
        found.small += usize::from(first.len() < 3);
        found.oldest = found.oldest.max(turn - heard[first[0]]);
        found.unheard += candidates.iter().filter(|&&client| asked[client] > heard[client]).count();
        found.tied += others.iter().filter(|&&client| heard[client] == heard[first[first.len() - 1]]).count();
        first.iter().for_each(|&client| asked[client] = turn);
        ids(&round["arrived"]).into_iter().for_each(|client| heard[client] = turn);
        for (client, of) in joined(round) {
            assert!(of < turn, "round {turn}");
            found.late += usize::from(of > heard[client]);
            heard[client] = heard[client].max(of);
        }
    }
    found
}

/// Client and selection of each late update.
fn joined(round: &Value) -> Vec<(usize, usize)> {
    let number = |value: &Value| value.as_u64().unwrap() as usize;
    let updates = round["joined"].as_array().into_iter().flatten();
    updates.map(|update| (number(&update["client"]), number(&update["round"]))).collect()
}

fn with_deadline(more: &str) -> String {
    let deadline = format!("[protocol.deadline]\ncohort = 3\ndeadline = \"0.7 s\"\n{more}");
    changed(WORLD, "[protocol.synchronous]\ncohort = 3\n", &deadline)
}

#[test]
fn every_age_is_found_again() {
    let plain = checked(WORLD);
    assert!(plain.late == 0 && plain.unheard == 0 && plain.oldest == 3, "nine clients, three at a time");
    assert!(plain.tied > 0);
    let dropped = checked(&with_deadline(""));
    assert!(dropped.late == 0 && dropped.unheard > 20 && dropped.oldest > 5, "{} rounds", dropped.oldest);
    let carried = checked(&with_deadline("late = { carry = {} }\n"));
    assert!(carried.late > 20, "{} late updates", carried.late);
}

#[test]
fn clients_that_are_away_grow_older() {
    for scenario in [WORLD, &with_deadline(""), &with_deadline("late = { carry = {} }\n")] {
        let found = checked(&changed(scenario, "[task.scripted]", AWAY));
        assert!(found.small > 0 && found.oldest > 5, "{} rounds", found.oldest);
    }
}

/// Four clients, two at a time, in rounds of 1 s. Updates of the third take 1.5 s, those of the others 0.5 s.
const BY_HAND: &str = r#"
name = "by-hand"
seeds = 1
[stop]
rounds = 6
[population]
clients = 4
[population.latency]
download = { constant = "0 s" }
compute = { constant = { each = ["0.5 s", "0.5 s", "1.5 s", "0.5 s"] } }
upload = { constant = "0 s" }
[task.scripted]
values = [0.5]
[protocol.deadline]
cohort = 2
deadline = "1 s"
full_window = true
[policy.age]
"#;

/// Compares candidates, ages and selections of six rounds.
fn assert_rounds(scenario: &str, expected: [(&[usize], &[f64], [usize; 2]); 6]) {
    for (round, (candidates, ages, selected)) in rounds(scenario, 1, 6).iter().zip(expected) {
        let said = &round["explain"][0];
        assert_eq!(ids(&said["clients"]), candidates, "{round}");
        assert_eq!(numbers(&said["age"]), ages, "{round}");
        assert_eq!(ids(&round["selected"]), selected, "{round}");
    }
}

/// Where late updates are lost, client 2 is never heard: it is `t` rounds old in selection `t`, and from the third on
/// it is the oldest. The other place goes round: client 0 in selection 3 (2 rounds old, as client 1), client 1 in 4
/// (3 rounds), client 3 in 5 (heard in 2), client 0 in 6 (heard in 3).
#[test]
fn a_client_that_is_always_late_stays_the_oldest() {
    let all: &[usize] = &[0, 1, 2, 3];
    let expected: [(&[usize], &[f64], [usize; 2]); 6] = [
        (all, &[1.0, 1.0, 1.0, 1.0], [0, 1]),
        (all, &[1.0, 1.0, 2.0, 2.0], [2, 3]),
        (all, &[2.0, 2.0, 3.0, 1.0], [2, 0]),
        (all, &[1.0, 3.0, 4.0, 2.0], [2, 1]),
        (all, &[2.0, 1.0, 5.0, 3.0], [2, 3]),
        (all, &[3.0, 2.0, 6.0, 1.0], [2, 0]),
    ];
    assert_rounds(BY_HAND, expected);
}

/// Where late updates join the next round, that of client 2 from selection 2 comes in round 3, in which client 2 is
/// busy, and belongs to selection 2: in selection 4 the client is 2 rounds old, as old as client 3, and not 1.
#[test]
fn a_late_update_is_as_old_as_its_selection() {
    let (all, others): (&[usize], &[usize]) = (&[0, 1, 2, 3], &[0, 1, 3]);
    let expected: [(&[usize], &[f64], [usize; 2]); 6] = [
        (all, &[1.0, 1.0, 1.0, 1.0], [0, 1]),
        (all, &[1.0, 1.0, 2.0, 2.0], [2, 3]),
        (others, &[2.0, 2.0, 1.0], [0, 1]),
        (all, &[1.0, 1.0, 2.0, 2.0], [2, 3]),
        (others, &[2.0, 2.0, 1.0], [0, 1]),
        (all, &[1.0, 1.0, 2.0, 2.0], [2, 3]),
    ];
    let carried = changed(BY_HAND, "full_window = true\n", "full_window = true\nlate = { carry = {} }\n");
    assert_rounds(&carried, expected);
}

#[test]
fn it_has_no_parameters() {
    let scenario = format!("{WORLD}gamma = 0.5\n");
    let answer = Workplace::with(&scenario).fedgenie(&["run", SCENARIO]);
    assert_eq!(answer.code, 2, "{answer:?}");
    let at = format!("{SCENARIO}:{}", line_of(&scenario, "gamma = 0.5"));
    assert!(answer.stderr.contains("gamma") && answer.stderr.contains(&at), "{}", answer.stderr);
}
