//! Weights of clients, under every protocol.

use super::{SYNCHRONOUS, decision, played};
use serde_json::json;

/// Client 0 is drawn twice, trains once, and has both weights: 0.5·2 + 0.5·6 = 4, then 1.5·4 + 0.25·8 = 8.
#[test]
fn weights_are_coefficients_in_synchronous_rounds() {
    let first = decision(&[0, 2, 0], &[0.125, 0.5, 0.375], &[], None);
    let course = played(SYNCHRONOUS, &[first, decision(&[1, 3], &[1.5, 0.25], &[], None)], 2);
    course.assert(&[6.0, 12.0], &[4.0, 12.0]);
    assert_eq!(course.column("selected"), [json!([0, 2]), json!([1, 3])]);
    assert_eq!(course.column("weights"), [json!([0.5, 0.5]), json!([1.5, 0.25])]);
    assert_eq!(course.column("work"), [json!(null), json!(null)]);
}

/// A round with weights beside one without: by data size, (2·4 + 4·8)/6.
#[test]
fn rounds_with_and_without_weights_follow_each_other() {
    let course =
        played(SYNCHRONOUS, &[decision(&[0, 1], &[-1.0, 0.5], &[], None), decision(&[1, 3], &[], &[], None)], 2);
    course.assert(&[6.0, 12.0], &[0.0, 40.0 / 6.0]);
    assert_eq!(course.column("weights"), [json!([-1.0, 0.5]), json!(null)]);
}

/// The sum is the mean change of every server: multiplied by `lr` of `average`, the velocity of `momentum`.
#[test]
fn server_rules_take_the_sum_for_the_mean_change() {
    let decisions = [decision(&[0, 2], &[0.5, 0.5], &[], None), decision(&[1], &[2.0], &[], None)];
    let of = |aggregation: &str| played(&format!("{SYNCHRONOUS}[aggregation]\n{aggregation}"), &decisions, 2);
    of("server = { average = { lr = 0.5 } }\n").assert(&[6.0, 12.0], &[2.0, 6.0]);
    of("server = { momentum = { momentum = 0.5 } }\n").assert(&[6.0, 12.0], &[4.0, 14.0]);
    of("weighting = \"uniform\"\n").assert(&[6.0, 12.0], &[4.0, 12.0]);
    of("weighting = \"total-size\"\n").assert(&[6.0, 12.0], &[4.0, 12.0]);
    of("normalise = true\n").assert(&[6.0, 12.0], &[4.0, 8.0]);
}

/// (3·2 + 1·4)/4; then the weights of those that arrive add up to 0, and nothing changes.
#[test]
fn normalised_weights_are_divided_by_their_sum() {
    let decisions = [decision(&[0, 1], &[3.0, 1.0], &[], None), decision(&[0, 1], &[1.0, -1.0], &[], None)];
    let course = played(&format!("{SYNCHRONOUS}[aggregation]\nnormalise = true\n"), &decisions, 2);
    course.assert(&[6.0, 12.0], &[2.5, 2.5]);
}

/// Jobs of 1, 2 and 3 epochs take 4, 6 and 8 s; the third is called off, and its weight is lost: 0.5·1 + 0.25·4.
#[test]
fn over_selection_loses_the_weight_of_a_job_that_is_called_off() {
    let decisions = [decision(&[0, 1, 2], &[0.5, 0.25, 8.0], &[1, 2, 3], None)];
    let course = played("[protocol.over-selection]\nask = 3\ntake = 2\n", &decisions, 1);
    course.assert(&[6.0], &[1.5]);
    assert_eq!(course.column("late"), [json!([2])]);
}

/// Client 1 misses the deadline of 5 s and joins at 8 s, one round old: 0.5·1; then 0.25·½·6 + 1·3.
#[test]
fn staleness_multiplies_the_weight_of_a_late_update() {
    let late = "late = { carry = { staleness = { polynomial = { exponent = 1.0 } } } }\n";
    let protocol = format!("[protocol.deadline]\ncohort = 2\ndeadline = \"20 s\"\ndeadline_least = \"3 s\"\n{late}");
    let first = decision(&[0, 1], &[0.5, 0.25], &[1, 3], Some(5.0));
    let course = played(&protocol, &[first, decision(&[2], &[1.0], &[1], None)], 2);
    course.assert(&[5.0, 9.0], &[0.5, 4.25]);
    assert_eq!(course.column("deadline_s"), [json!(5.0), json!(null)]);
    assert_eq!(course.column("joined"), [json!(null), json!([{ "client": 1, "round": 1 }])]);
}

/// Jobs end at 4 and 8 s: 0.5·1 + 0.25·6. Then at 10 s, one model old, and at 12 s: 0.5·½·6 + 0.25·4.
#[test]
fn buffered_updates_have_their_weights() {
    let protocol =
        "[protocol.buffered]\nconcurrency = 2\nbuffer = 2\nstaleness = { polynomial = { exponent = 1.0 } }\n";
    let of = |client, weight, work| decision(&[client], &[weight], &[work], None);
    let decisions = [of(0, 0.5, 1), of(1, 0.25, 3), of(2, 0.5, 2), of(3, 0.25, 1), of(0, 1.0, 6)];
    let course = played(protocol, &decisions, 2);
    course.assert(&[8.0, 12.0], &[2.0, 4.5]);
    assert_eq!(course.column("weights"), [json!([0.5, 0.25, 0.5]), json!([0.25, 1.0])]);
    assert_eq!(course.column("work"), [json!([1, 3, 2]), json!([1, 6])]);
}

/// Servers' models move by 0.5·2 + 0.25·4 = 2 and by 0.5·6 + 0.25·8 = 5; the cloud weighs them by 3 and 7 examples.
#[test]
fn edge_servers_take_weights_for_coefficients() {
    let protocol = "[protocol.hierarchical]\nedges = 2\ncohort = 2\n";
    let decisions = [decision(&[0, 1, 2, 3], &[0.5, 0.25, 0.5, 0.25], &[], None)];
    let course = played(protocol, &decisions, 1);
    course.assert(&[6.0], &[4.1]);
    assert_eq!(course.column("weights"), [json!([0.5, 0.25, 0.5, 0.25])]);
    let arrivals = played(&format!("{protocol}cloud = {{ buffer = 2 }}\n"), &decisions, 1);
    arrivals.assert(&[6.0], &[4.1]);
}
