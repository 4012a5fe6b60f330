//! A policy whose decision breaks the rules ends its run with an error that names the policy, the round and the rule.

use super::support::{Script, play, world};
use fedgenie::error::Error;
use fedgenie::id::Round;
use fedgenie::run::RunError;

/// Four clients; client 3 is so slow that a round does not wait for it, and it stays busy.
const SCENARIO: &str = r#"
name = "bad-policy"
seeds = 1
[stop]
rounds = 10
[population]
clients = 4
[population.latency]
download = { constant = "1 s" }
compute = { constant = { each = ["1 s", "1 s", "1 s", "100 s"] } }
upload = { constant = "1 s" }
[protocol.deadline]
cohort = 2
deadline = "5 s"
late = { carry = {} }
[policy.random]
"#;

/// Plays three rounds, of which the third has to be refused.
fn refused(rounds: &[&[u32]], expected: &str) {
    let error = play(&world(SCENARIO, 1), Box::new(Script::new(rounds)), 3).unwrap_err();
    match &error {
        RunError::BadSelection { policy, round, what, .. } => {
            assert_eq!((policy.as_str(), *round, what.as_str()), ("\"double\"", Round(3), expected));
        }
        other => panic!("expected a bad selection, found {other:?}"),
    }
    let error = Error::Run { run: "double-s1".to_owned(), source: error };
    assert_eq!(error.exit_code(), 3);
    let text = error.to_string();
    for part in ["double-s1", "policy \"double\"", "round 3", expected] {
        assert!(text.contains(part), "{part:?} is missing in {text:?}");
    }
}

#[test]
fn an_unavailable_client() {
    refused(&[&[0, 3], &[0, 1], &[2, 3]], "selected client 3, which is not available");
}

#[test]
fn a_client_that_does_not_exist() {
    refused(&[&[0], &[0], &[0, 4]], "selected client 4, which is not available");
}

#[test]
fn a_repeated_client() {
    refused(&[&[0, 1], &[1, 2], &[1, 1]], "selected client 1 twice");
}

#[test]
fn nobody() {
    refused(&[&[0, 1], &[1, 2], &[]], "selected 0 clients; expected between 1 and 2: select more of those available");
}

#[test]
fn too_many() {
    refused(
        &[&[0, 1], &[1, 2], &[0, 1, 2]],
        "selected 3 clients; expected between 1 and 2: leave out client 2 and those after it, or raise the protocol's most",
    );
}

#[test]
fn fewer_than_asked_for_is_allowed() {
    let played = play(&world(SCENARIO, 1), Box::new(Script::new(&[&[2]])), 3).unwrap();
    assert!(played.seen.rounds.iter().all(|round| round.arrived == [2]));
}
