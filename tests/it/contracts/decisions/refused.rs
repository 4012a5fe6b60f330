//! Decisions out of bounds: the run fails with policy, round, client and remedy.

use super::{FOUR, SYNCHRONOUS, decision, play_in, told, world_of};
use crate::support::changed;
use fedgenie::policy::Selection;
use fedgenie::run::RunError;

fn message(text: &str, decisions: Vec<Selection>, rounds: u32) -> String {
    let error = play_in(&world_of(text), &told(decisions), rounds).unwrap_err();
    let message = error.to_string();
    assert!(matches!(error, RunError::BadSelection { .. }), "{message}");
    assert!(message.starts_with("policy \"double\"") && message.contains(&format!("in round {rounds}: ")), "{message}");
    message
}

#[track_caller]
fn refused(protocol: &str, of: Selection, said: &[&str]) {
    let message = message(&format!("{FOUR}{protocol}"), vec![of], 1);
    said.iter().for_each(|part| assert!(message.contains(part), "{part:?} should be said in {message:?}"));
}

#[test]
fn weights_are_one_for_each_finite_and_not_all_zero() {
    let weighed = |clients: &[u32], weights: &[f64]| decision(clients, weights, &[], None);
    refused(SYNCHRONOUS, weighed(&[0, 1], &[1.0]), &["gave 1 weights to 2 clients; give one for each, or none"]);
    refused(SYNCHRONOUS, weighed(&[0, 3], &[1.0, f64::NAN]), &["gave client 3 the weight NaN; weights are finite"]);
    refused(SYNCHRONOUS, weighed(&[0, 0], &[f64::MAX, f64::MAX]), &["gave client 0 the weight inf"]);
    refused(SYNCHRONOUS, weighed(&[2, 3], &[0.0, 0.0]), &["client 2 and all others the weight 0; give a client"]);
    refused(SYNCHRONOUS, weighed(&[1, 1], &[0.5, -0.5]), &["client 1 and all others the weight 0"]);
    refused(SYNCHRONOUS, decision(&[1, 1], &[], &[], None), &["selected client 1 twice"]);
    let trimmed = format!("{SYNCHRONOUS}[algorithm.trimmed-mean]\n");
    refused(&trimmed, weighed(&[3, 0], &[0.5, 1.0]), &["gave client 3 a weight", "take plain averaging"]);
    let work = decision(&[1, 2, 1], &[1.0; 3], &[1, 1, 2], None);
    refused(SYNCHRONOUS, work, &["gave client 1 several jobs with different work"]);
}

#[test]
fn work_is_whole_epochs_within_the_most() {
    let work = |clients: &[u32], work: &[u32]| decision(clients, &[], work, None);
    refused(
        SYNCHRONOUS,
        work(&[0, 2], &[1, 7]),
        &["client 2 7 epochs; expected between 1 and 6, or raise [training] most_epochs"],
    );
    refused(SYNCHRONOUS, work(&[3], &[0]), &["client 3 0 epochs; expected between 1 and 6"]);
    refused(SYNCHRONOUS, work(&[0, 2], &[1]), &["gave 1 numbers of epochs to 2 clients"]);
    let buffered = "[protocol.buffered]\nconcurrency = 2\nbuffer = 1\n";
    refused(buffered, work(&[0], &[9]), &["client 0 9 epochs"]);
    let edges = "[protocol.hierarchical]\nedges = 2\ncohort = 2\n";
    refused(edges, work(&[0, 3], &[1, 9]), &["of edge server 1", "client 3 9 epochs"]);
    let steps = changed(FOUR, "epochs = 2\nmost_epochs = 6", "steps = 3");
    let said = message(&format!("{steps}{SYNCHRONOUS}"), vec![work(&[2], &[1])], 1);
    assert!(said.contains("gave client 2 1 epochs, and jobs are counted in steps"), "{said}");
    let usual = changed(FOUR, "most_epochs = 6\n", "");
    let said = message(&format!("{usual}{SYNCHRONOUS}"), vec![work(&[2], &[3])], 1);
    assert!(said.contains("client 2 3 epochs; expected between 1 and 2"), "{said}");
}

#[test]
fn sizes_and_deadlines_are_within_bounds() {
    let protocol = "[protocol.deadline]\ncohort = 2\nmost = 3\ndeadline = \"20 s\"\ndeadline_least = \"3 s\"\n";
    let four = decision(&[0, 1, 2, 3], &[], &[], None);
    refused(protocol, four.clone(), &["selected 4 clients; expected between 1 and 3: leave out client 3", "raise"]);
    refused("[protocol.synchronous]\ncohort = 2\n", four, &["between 1 and 2: leave out client 2"]);
    let until = |deadline| decision(&[1], &[], &[], Some(deadline));
    refused(
        protocol,
        until(2.9),
        &["a deadline of 2.9 s for client 1", "expected between 3 s and 20 s", "deadline_least"],
    );
    refused(protocol, until(20.1), &["a deadline of 20.1 s", "expected between 3 s and 20 s"]);
    let fixed = "[protocol.deadline]\ncohort = 2\ndeadline = \"20 s\"\n";
    refused(fixed, until(20.0), &["none may be chosen here; give [protocol.deadline] deadline_least"]);
    refused(SYNCHRONOUS, until(5.0), &["none may be chosen here"]);
    refused("[protocol.buffered]\nconcurrency = 1\nbuffer = 1\n", until(5.0), &["none may be chosen here"]);
}

#[test]
fn nobody_is_selected_where_that_is_declared_and_defined() {
    let nobody = || decision(&[], &[], &[], None);
    refused("[protocol.buffered]\nconcurrency = 1\nbuffer = 1\n", nobody(), &["selected nobody", "one by one"]);
    let undeclared = super::Told { decisions: vec![nobody()], can_be_empty: false, capabilities: Default::default() };
    let world = world_of(&format!("{FOUR}{SYNCHRONOUS}"));
    let error = play_in(&world, &super::source(undeclared), 1).unwrap_err().to_string();
    assert!(error.contains("selected 0 clients; expected between 1 and 4"), "{error}");
}

/// Where updates of several selections may meet, all have weights or none.
#[test]
fn weights_are_not_mixed_with_none() {
    let late = "late = { carry = {} }\n";
    let protocol = format!("{FOUR}[protocol.deadline]\ncohort = 2\ndeadline = \"5 s\"\n{late}");
    let with = decision(&[0, 1], &[0.5, 0.5], &[1, 3], None);
    let without = decision(&[2], &[], &[], None);
    let said = message(&protocol, vec![with.clone(), without.clone()], 2);
    assert!(said.contains("gave no weights, and the update of client 1, selected in round 1, has one"), "{said}");
    assert!(said.contains("give weights in all selections, or in none"), "{said}");
    let bare = decision(&[0, 1], &[], &[1, 3], None);
    let said = message(&protocol, vec![bare, decision(&[2], &[1.0], &[], None)], 2);
    assert!(said.contains("gave weights, and the update of client 1, selected in round 1, has none"), "{said}");
    let buffered = format!("{FOUR}[protocol.buffered]\nconcurrency = 2\nbuffer = 1\n");
    let said = message(&buffered, vec![decision(&[0], &[1.0], &[], None), decision(&[1], &[], &[], None)], 1);
    assert!(said.contains("the update of client 0, selected in round 1, has one"), "{said}");
}

/// Regret supposes rounds of one size, one deadline, usual work and clients.
#[test]
fn regret_is_not_defined_of_what_policies_decide() {
    let regret = "[regret]\ntau_min = \"1 s\"\n";
    let build = |protocol: &str| {
        let experiment = super::experiment_of(&format!("{FOUR}{protocol}{regret}"), std::path::Path::new("."));
        experiment.world(0, 1, &fedgenie::task::DataCache::default()).map(|_| ()).map_err(|error| error.to_string())
    };
    assert!(build(SYNCHRONOUS).unwrap_err().contains("and most of the protocol lets policies decide that"));
    let choosable = "[protocol.deadline]\ncohort = 2\ndeadline = \"20 s\"\ndeadline_least = \"3 s\"\n";
    assert!(build(choosable).unwrap_err().contains("and deadline_least of the protocol"));
    let plain = format!("[protocol.synchronous]\ncohort = 2\n{regret}");
    refused(
        &plain,
        decision(&[2, 3], &[], &[2, 3], None),
        &["client 3 3 epochs, and regret compares jobs of 2; give 2"],
    );
    refused(&plain, decision(&[], &[], &[], None), &["selected nobody, and regret is not defined"]);
    // Weights and the usual work change no speed.
    let usual = vec![decision(&[2, 3], &[0.5, 0.5], &[2, 2], None)];
    play_in(&world_of(&format!("{FOUR}{plain}")), &told(usual), 1).unwrap();
}
