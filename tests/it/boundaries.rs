//! Variants of the boundary of a round, worked out by hand: a window that is always full, a quorum, late updates under
//! over-selection; and the order of simultaneous events.

use super::protocols::{assert_compute, assert_wasted_bytes, joined, play_by_hand, round, scenario};
use super::support::{SeenRound, Workplace, changed};

const DEADLINE: &str = "[protocol.deadline]\ncohort = 3\ndeadline = \"18 s\"\n";

#[test]
fn a_full_window_lasts_until_the_deadline() {
    let (played, _) = play_by_hand(&format!("{DEADLINE}full_window = true\n"), &[&[0], &[0, 2, 1]]);
    assert_eq!(
        played.seen.rounds,
        [
            // There at 12.
            round([0, 18], &[0], &[0], &[], [1_000, 1_000]),
            // Client 2 delivers at the very deadline.
            round([18, 36], &[0, 2, 1], &[0, 2], &[1], [4_000, 3_000]),
        ]
    );
    assert_compute(&played, 10 + 10 + 4 + 16, 16);
    let (early, _) = play_by_hand(DEADLINE, &[&[0]]);
    assert_eq!(early.seen.rounds, [round([0, 12], &[0], &[0], &[], [1_000, 1_000])]);
}

#[test]
fn a_round_without_its_quorum_is_abandoned() {
    let protocol = format!("{}quorum = 2\n", changed(DEADLINE, "18 s", "15 s"));
    let (played, _) = play_by_hand(&protocol, &[&[0, 1, 2], &[0]]);
    let abandoned = SeenRound { is_abandoned: true, ..round([0, 15], &[0, 1, 2], &[0], &[1, 2], [3_000, 1_700]) };
    let alone = SeenRound { is_abandoned: true, ..round([15, 27], &[0], &[0], &[], [4_000, 2_700]) };
    assert_eq!(played.seen.rounds, [abandoned, alone]);
    assert_compute(&played, 10 + 13 + 4 + 10, 10 + 13 + 4 + 10);
    assert_wasted_bytes(&played, [4_000, 2_700]);
}

#[test]
fn over_selection_may_wait_for_its_stragglers() {
    let protocol = "[protocol.over-selection]\nask = 3\ntake = 2\nlate = { carry = {} }\n";
    let (played, available) = play_by_hand(protocol, &[&[1, 0, 2], &[0, 2]]);
    assert_eq!(
        played.seen.rounds,
        [
            round([0, 18], &[1, 0, 2], &[0, 2], &[1], [3_000, 2_000]),
            // Client 1 delivers at 23, within the second round.
            joined(&[(1, 1)], round([18, 36], &[0, 2], &[0, 2], &[], [5_000, 5_000])),
        ]
    );
    assert_eq!(available[1], [0, 2, 3, 4]);
    assert_compute(&played, 10 + 4 + 20 + 10 + 4, 0);
}

/// Clients 2 and 4 are alike; with the order of simultaneous events shuffled, the one dispatched last is taken for some
/// seeds, and the run can be replayed.
#[test]
fn shuffled_ties_change_what_is_tied_and_can_be_replayed() {
    let text = changed(
        &scenario("[protocol.over-selection]\nask = 2\ntake = 1\n[record]\nevery = 1\n"),
        "[policy.random]",
        "[policy.round-robin]",
    );
    let alike = "[\"4 s\", \"4 s\", \"4 s\", \"4 s\", \"4 s\"]";
    let text = changed(&text, "[\"1 s\", \"2 s\", \"4 s\", \"20 s\", \"4 s\"]", alike);
    let text = changed(&text, "[\"10 s\", \"20 s\", \"4 s\", \"1 s\", \"4 s\"]", alike);
    let text = changed(&text, "[\"1 s\", \"1 s\", \"10 s\", \"1 s\", \"10 s\"]", alike);
    let place = Workplace::with(&text);
    place.run_into("fifo", &[]);
    place.run_into("same", &["--ties", "fifo"]);
    place.run_into("shuffled", &["--ties", "shuffle:1"]);
    assert_eq!(place.digests("fifo"), place.digests("same"));
    assert_ne!(place.digests("fifo"), place.digests("shuffled"));
    let first_taken = |folder: &str| {
        let rounds = place.lines(&format!("{folder}/runs/round-robin-s1/rounds.jsonl"));
        rounds.iter().filter(|round| round["arrived"][0] == round["selected"][0]).count()
    };
    assert_eq!(first_taken("fifo"), 100);
    assert!((20..80).contains(&first_taken("shuffled")), "about half of a hundred");
    let answer = place.fedgenie(&["verify", "shuffled"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    let answer = place.fedgenie(&["run", "scenario.toml", "--ties", "random"]);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("expected fifo, or shuffle:SEED"), "{answer:?}");
}
