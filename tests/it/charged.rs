//! Evaluations that clients are charged for: bytes, time, computing, and where that is not defined.

use super::little::{EXAMPLES, MODEL_BYTES, Settings, TWO, UPDATE_BYTES, play, refused, text, world};
use super::support::{SETTINGS, Script, line_of};
use fedgenie::policy::Policy;
use fedgenie::run::{Evaluations, Run, RunSettings};

const CHARGED: Settings = Settings { has_noise: false, charges: true, answers: false, has_slope: false };
const SECOND: u64 = 1_000_000_000;

/// Client 0 takes 1 + 8 + 1 s and client 3 8 + 4 + 1 s. Asked for an evaluation, clients 0, 1, 3, 4, 5 download and
/// make a pass of a quarter of their job: 1 + 2, 2 + 4, 8 + 1, 4 + 1, 1 + 2 s. Client 2, with 40 s to download, has no
/// examples.
#[test]
fn all_with_examples_download_and_the_slowest_is_waited_for() {
    let clients = EXAMPLES.iter().filter(|examples| **examples > 0).count() as u64;
    assert_eq!(clients, 5);
    let turns: &[&[u32]] = &[&[0], &[0, 3], &[0]];
    let (plain, without) = play(&world(TWO, "", Settings::default()), turns, 3).unwrap();
    let (charged, with) = play(&world(TWO, "", CHARGED), turns, 3).unwrap();
    let times = |rounds: &[super::little::Round]| {
        rounds.iter().map(|round| (round.opened / SECOND, round.closed / SECOND)).collect::<Vec<_>>()
    };
    assert_eq!(times(&plain), [(0, 10), (10, 23), (23, 33)]);
    assert_eq!(times(&charged), [(0, 10), (19, 32), (41, 51)]);
    for (number, (plain, charged)) in (1..).zip(plain.iter().zip(&charged)) {
        let [down, up] = plain.bytes;
        assert_eq!(charged.bytes, [down + number * clients * MODEL_BYTES, up + number * clients * 8]);
        assert_eq!(charged.metrics, plain.metrics, "nothing but time and traffic changes");
    }
    assert_eq!(plain[2].bytes, [4 * MODEL_BYTES, 4 * UPDATE_BYTES]);
    assert_eq!(with.compute, without.compute);
    assert_eq!((without.probe_compute.0, with.probe_compute.0), (0, u128::from(3 * (2 + 4 + 1 + 1 + 2) * SECOND)));
}

/// Only evaluated rounds are charged: of five, the second and the fourth.
#[test]
fn what_is_not_evaluated_is_not_charged() {
    let world = world(TWO, "", CHARGED);
    let settings = RunSettings { evaluate: Evaluations::every(2), ..SETTINGS };
    let mut seen = super::little::Rounds::default();
    let policy: Box<dyn Policy> = Box::new(Script::new(&[&[0]]));
    let mut run = Run::new(&world, "script", policy, settings, &mut seen);
    (0..5).for_each(|_| run.step().unwrap());
    let (_, accounts) = run.finish().unwrap();
    assert_eq!(accounts.down_bytes, 5 * MODEL_BYTES + 2 * 5 * MODEL_BYTES);
    let opened: Vec<u64> = seen.0.iter().map(|round| round.opened / SECOND).collect();
    assert_eq!(opened, [0, 10, 29, 39, 58]);
}

/// A late job of round 1 arrives while clients evaluate, and joins round 2.
#[test]
fn late_jobs_go_on_meanwhile() {
    let deadline = "[protocol.deadline]\ncohort = 2\ndeadline = \"10 s\"\nlate = { carry = {} }\n";
    let (rounds, accounts) = play(&world(deadline, "", CHARGED), &[&[0, 3], &[0]], 2).unwrap();
    // Client 3 arrives at 13, before the next round begins at 19.
    let times: Vec<_> = rounds.iter().map(|round| (round.opened / SECOND, round.closed / SECOND)).collect();
    assert_eq!(times, [(0, 10), (19, 29)]);
    assert_eq!(accounts.up_bytes, 3 * UPDATE_BYTES + 2 * 5 * 8);
}

#[test]
fn where_there_are_no_rounds_of_one_server_or_a_budget_it_is_refused() {
    let budget = "[budget]\ntraffic = \"1 MB\"\n";
    for (protocol, more, said) in [
        ("[protocol.buffered]\nconcurrency = 2\nbuffer = 2\n", "", "are charged between rounds of one server"),
        ("[protocol.hierarchical]\nedges = 2\ncohort = 1\n", "", "are charged between rounds of one server"),
        (TWO, budget, "a budget pays for jobs and probes, and not for evaluations of all clients"),
    ] {
        let message = refused(protocol, more, CHARGED);
        assert!(
            message.starts_with("the program: task.own.charge_evaluation: ") && message.contains(said),
            "{message}"
        );
        world(protocol, more, Settings::default());
    }
    // A budget that limits no traffic has nothing to say.
    world(TWO, "[budget]\nleast = 2\n", CHARGED);
    assert!(line_of(&text(TWO, budget), "traffic") > 1);
}
