//! Protocols on constant latencies, worked out by hand and exact to the nanosecond; and laws that hold in every world.

use super::support::{Played, Script, SeenRound, changed, labelled, play, world};
use fedgenie::experiment::Experiment;
use fedgenie::id::{ClientId, JobNumber, Round};
use fedgenie::policy::Policy;
use fedgenie::record::{Outcome, Phase};
use fedgenie::scenario::tree;
use fedgenie::time::{Span, TotalTime};
use fedgenie::trainer::{Trainer, TrainingJob, Update};
use fedgenie::world::World;
use std::collections::BTreeSet;
use std::path::Path;

/// ```text
/// client   download  compute  upload   total
///      0        1 s     10 s     1 s    12 s
///      1        2 s     20 s     1 s    23 s
///      2        4 s      4 s    10 s    18 s
///      3       20 s      1 s     1 s    22 s
///      4        4 s      4 s    10 s    18 s, as client 2
/// ```
pub const CLIENTS: &str = r#"
name = "by-hand"
seeds = 1
[stop]
rounds = 100
[population]
clients = 5
[population.latency]
download = { constant = { each = ["1 s", "2 s", "4 s", "20 s", "4 s"] } }
compute = { constant = { each = ["10 s", "20 s", "4 s", "1 s", "4 s"] } }
upload = { constant = { each = ["1 s", "1 s", "10 s", "1 s", "10 s"] } }
[task.none]
payload = "1 kB"
[policy.random]
"#;

pub const SECOND: u64 = 1_000_000_000;

pub fn scenario(protocol: &str) -> String {
    format!("{CLIENTS}{protocol}")
}

/// Plays one round for each selection.
pub fn play_by_hand(protocol: &str, selections: &[&[u32]]) -> (Played, Vec<Vec<u32>>) {
    let script = Script::new(selections);
    let available = script.available.clone();
    let played = play(&world(&scenario(protocol), 1), Box::new(script), selections.len() as u32).unwrap();
    let available = available.lock().unwrap().clone();
    (played, available)
}

/// A round as worked out by hand: instants in seconds, traffic so far in bytes.
pub fn round(
    [opened, closed]: [u64; 2],
    selected: &[u32],
    arrived: &[u32],
    late: &[u32],
    [down_bytes, up_bytes]: [u64; 2],
) -> SeenRound {
    SeenRound {
        opened: opened * SECOND,
        closed: closed * SECOND,
        selected: selected.to_vec(),
        arrived: arrived.to_vec(),
        late: late.to_vec(),
        down_bytes,
        up_bytes,
        ..SeenRound::default()
    }
}

pub fn joined(joined: &[(u32, u32)], round: SeenRound) -> SeenRound {
    SeenRound { joined: joined.to_vec(), ..round }
}

pub fn assert_compute(played: &Played, compute_s: u64, wasted_s: u64) {
    let found = (played.accounts.compute, played.accounts.wasted_compute);
    assert_eq!(
        found,
        (Span(compute_s * SECOND).into(), Span(wasted_s * SECOND).into()),
        "computing, and the wasted part of it"
    );
}

/// Bytes down and up of jobs whose update was never used.
pub fn assert_wasted_bytes(played: &Played, [down, up]: [u64; 2]) {
    let found = (played.accounts.wasted_down_bytes, played.accounts.wasted_up_bytes);
    assert_eq!(found, (down, up), "wasted bytes down and up");
}

const SYNCHRONOUS: &str = "[protocol.synchronous]\ncohort = 4\n";
const TIMEOUT: &str = "[protocol.synchronous]\ncohort = 4\ntimeout = \"15 s\"\n";
const OVER_SELECTION: &str = "[protocol.over-selection]\nask = 3\ntake = 2\n";
const DEADLINE: &str = "[protocol.deadline]\ncohort = 3\ndeadline = \"18 s\"\n";
const CARRY: &str = "[protocol.deadline]\ncohort = 3\ndeadline = \"15 s\"\nlate = { carry = {} }\n";

#[test]
fn synchronous_waits_for_the_slowest() {
    let (played, available) = play_by_hand(SYNCHRONOUS, &[&[0, 1], &[2, 0]]);
    assert_eq!(
        played.seen.rounds,
        [
            round([0, 23], &[0, 1], &[0, 1], &[], [2_000, 2_000]),
            // Dispatched in the order of the selection, arrived in that of time.
            round([23, 41], &[2, 0], &[0, 2], &[], [4_000, 4_000]),
        ]
    );
    assert_compute(&played, 10 + 20 + 4 + 10, 0);
    assert_wasted_bytes(&played, [0, 0]);
    assert_eq!(available, [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]);
    // Opened, three phases and an outcome for each of two jobs, closed; twice.
    assert_eq!(played.seen.times.len(), 20);
    let seconds: Vec<u64> = played.seen.times[..10].iter().map(|time| time / SECOND).collect();
    assert_eq!(seconds, [0, 1, 2, 11, 12, 12, 22, 23, 23, 23]);
}

#[test]
fn a_timeout_calls_off_whoever_is_too_slow() {
    let (played, available) = play_by_hand(TIMEOUT, &[&[3, 0, 1, 2], &[3], &[0]]);
    assert_eq!(
        played.seen.rounds,
        [
            // Client 3 has downloaded for 15 s of 20 s, client 1 computed for 13 s of 20 s, client 2 uploaded for 7 s
            // of 10 s.
            round([0, 15], &[3, 0, 1, 2], &[0], &[3, 1, 2], [3_750, 1_700]),
            round([15, 30], &[3], &[], &[3], [4_500, 1_700]),
            round([30, 42], &[0], &[0], &[], [5_500, 2_700]),
        ]
    );
    assert_compute(&played, 10 + 13 + 4 + 10, 13 + 4);
    // Client 3's downloads, 1's, 2's and the bytes that 2 had uploaded.
    assert_wasted_bytes(&played, [750 + 1_000 + 1_000 + 750, 700]);
    assert_eq!(available[1], [0, 1, 2, 3, 4], "a job that was called off keeps nobody busy");
}

#[test]
fn over_selection_closes_at_the_last_update_it_takes() {
    let (played, available) = play_by_hand(OVER_SELECTION, &[&[1, 0, 2], &[3, 1, 0]]);
    assert_eq!(
        played.seen.rounds,
        [
            // 12 s and 18 s; by then client 1 has computed for 16 s.
            round([0, 18], &[1, 0, 2], &[0, 2], &[1], [3_000, 2_000]),
            // 12 s and 22 s; by then client 1 has just begun to upload.
            round([18, 40], &[3, 1, 0], &[0, 3], &[1], [6_000, 4_000]),
        ]
    );
    assert_compute(&played, (16 + 10 + 4) + (1 + 20 + 10), 16 + 20);
    assert_eq!(available[1], [0, 1, 2, 3, 4]);
}

#[test]
fn over_selection_takes_no_more_than_it_waits_for_when_updates_arrive_together() {
    for tied in [[2, 4], [4, 2]] {
        let [first, second] = tied;
        let (played, _) = play_by_hand(OVER_SELECTION, &[&[first, 0, second]]);
        // Clients 2 and 4 are alike; the one dispatched first is taken. The other's transfer is over, its work is not
        // used.
        let expected = round([0, 18], &[first, 0, second], &[0, first], &[second], [3_000, 3_000]);
        assert_eq!(played.seen.rounds, [expected]);
        assert_compute(&played, 10 + 4 + 4, 4);
    }
}

#[test]
fn over_selection_with_a_timeout_or_few_clients_takes_what_there_is() {
    let timeout = format!("{OVER_SELECTION}timeout = \"15 s\"\n");
    let (played, _) = play_by_hand(&timeout, &[&[1, 0, 2]]);
    assert_eq!(played.seen.rounds, [round([0, 15], &[1, 0, 2], &[0], &[1, 2], [3_000, 1_700])]);
    // A policy may ask fewer than the protocol would take: then the round waits for all of them.
    let (played, _) = play_by_hand(OVER_SELECTION, &[&[1]]);
    assert_eq!(played.seen.rounds, [round([0, 23], &[1], &[1], &[], [1_000, 1_000])]);
}

#[test]
fn an_arrival_exactly_at_the_deadline_counts() {
    let (played, _) = play_by_hand(DEADLINE, &[&[1, 2, 0]]);
    assert_eq!(played.seen.rounds, [round([0, 18], &[1, 2, 0], &[0, 2], &[1], [3_000, 2_000])]);
    assert_compute(&played, 16 + 4 + 10, 16);
    assert_wasted_bytes(&played, [1_000, 0]);
    let too_short = changed(DEADLINE, "18 s", "17.999999999 s");
    let (played, _) = play_by_hand(&too_short, &[&[1, 2, 0]]);
    let [only] = &played.seen.rounds[..] else { panic!("one round was played") };
    assert_eq!((only.closed, &only.arrived[..], &only.late[..]), (18 * SECOND - 1, &[0][..], &[1, 2][..]));
    assert_eq!(only.up_bytes, 1_999, "of the 1000 bytes of client 2 all but the last nanosecond's, rounded down");
}

#[test]
fn a_deadline_drops_late_jobs_and_closes_early_when_all_are_there() {
    let (played, available) = play_by_hand(DEADLINE, &[&[3, 1], &[0]]);
    assert_eq!(
        played.seen.rounds,
        [
            // Client 3 has downloaded for 18 s of 20 s.
            round([0, 18], &[3, 1], &[], &[3, 1], [1_900, 0]),
            round([18, 30], &[0], &[0], &[], [2_900, 1_000]),
        ]
    );
    assert_compute(&played, 16 + 10, 16);
    assert_eq!(available[1], [0, 1, 2, 3, 4]);
}

#[test]
fn a_carried_job_goes_on_keeps_its_client_busy_and_joins_a_later_aggregation() {
    let (played, available) = play_by_hand(CARRY, &[&[0, 1], &[2, 3], &[0, 1], &[0]]);
    assert_eq!(
        played.seen.rounds,
        [
            round([0, 15], &[0, 1], &[0], &[1], [2_000, 1_000]),
            // Client 1's update of round 1 arrives at 23 s.
            joined(&[(1, 1)], round([15, 30], &[2, 3], &[], &[2, 3], [3_000, 2_000])),
            // Client 2's of round 2 at 33 s, client 3's at 37 s; the deadline rings at 45 s.
            joined(&[(2, 2), (3, 2)], round([30, 45], &[0, 1], &[0], &[1], [6_000, 5_000])),
            // Client 1's of round 3 arrives at 53 s.
            joined(&[(1, 3)], round([45, 57], &[0], &[0], &[], [7_000, 7_000])),
        ]
    );
    assert_compute(&played, (10 + 20) + (4 + 1) + (10 + 20) + 10, 0);
    assert_wasted_bytes(&played, [0, 0]);
    assert_eq!(available, [&[0, 1, 2, 3, 4][..], &[0, 2, 3, 4], &[0, 1, 4], &[0, 2, 3, 4]]);
}

#[test]
fn computing_that_is_under_way_when_the_run_ends_is_wasted() {
    let (played, _) = play_by_hand(CARRY, &[&[0, 1]]);
    // Client 1 has computed for 13 s of 20 s and will not be waited for.
    assert_compute(&played, 10 + 13, 13);
    assert_wasted_bytes(&played, [1_000, 0]);
}

#[test]
fn when_everyone_is_busy_time_passes_until_somebody_is_free() {
    let carry = changed(&changed(CARRY, "15 s", "5 s"), "cohort = 3", "cohort = 5");
    let (played, available) = play_by_hand(&carry, &[&[0, 1, 2, 3, 4], &[0], &[4, 2]]);
    assert_eq!(
        played.seen.rounds,
        [
            round([0, 5], &[0, 1, 2, 3, 4], &[], &[0, 1, 2, 3, 4], [4_000, 0]),
            // Client 0 is free at 12 s, and with a deadline at 17 s late again.
            joined(&[(0, 1)], round([5, 17], &[0], &[], &[0], [5_000, 1_000])),
            // Clients 2 and 4 are free at 18 s, both. Client 3 delivers at 22 s, client 1 at 23 s, the very deadline.
            joined(&[(2, 1), (4, 1), (3, 1), (1, 1)], round([17, 23], &[4, 2], &[], &[4, 2], [8_000, 5_000])),
        ]
    );
    assert_eq!(available, [&[0, 1, 2, 3, 4][..], &[0], &[2, 4]]);
    assert_eq!(played.seen.selected_at, [0, 12 * SECOND, 18 * SECOND]);
}

#[test]
fn a_carried_job_that_delivers_at_the_very_end_of_a_round_joins_it() {
    // Client 1 takes 24 s in all, and client 0 ends the second round, at its deadline, after 12 s + 12 s.
    let scenario = changed(&scenario(&changed(CARRY, "15 s", "12 s")), "\"10 s\", \"20 s\"", "\"10 s\", \"21.5 s\"");
    let scenario = changed(&scenario, "[\"1 s\", \"1 s\", \"10 s\"", "[\"1 s\", \"0.5 s\", \"10 s\"");
    let script = Script::new(&[&[0, 1], &[0], &[1]]);
    let available = script.available.clone();
    let played = play(&world(&scenario, 1), Box::new(script), 2).unwrap();
    assert_eq!(
        played.seen.rounds,
        [
            round([0, 12], &[0, 1], &[0], &[1], [2_000, 1_000]),
            joined(&[(1, 1)], round([12, 24], &[0], &[0], &[], [3_000, 3_000])),
        ]
    );
    assert_eq!(*available.lock().unwrap(), [&[0, 1, 2, 3, 4][..], &[0, 2, 3, 4]]);
    assert_eq!(played.accounts.compute, Span(41_500_000_000).into());
    assert_eq!(played.accounts.wasted_compute, TotalTime::ZERO);
}

#[test]
fn a_stale_update_counts_with_its_weight() {
    let protocol = changed(CARRY, "{ carry = {} }", "{ carry = { staleness = { polynomial = { exponent = 1.0 } } } }");
    let task = "[task.linear-regression]\nexamples = 700\npartition = { gamma-sized = { minimum = 8 } }\n\
                [training]\nbatch = 8\noptimizer = { sgd = { lr = 0.05 } }\n";
    let scenario = changed(&scenario(&protocol), "[task.none]\npayload = \"1 kB\"\n", task);
    let world = world(&scenario, 1);
    let played = play(&world, Box::new(Script::new(&[&[0, 1], &[0]])), 2).unwrap();
    assert_eq!(played.seen.rounds[1].joined, [(1, 1)]);

    let learner = labelled(&world);
    let trained = |client: u32, round: u32, start: &[f32]| {
        let (client, round) = (ClientId(client), Round(round));
        let job = TrainingJob {
            client,
            round,
            number: JobNumber(round.0),
            start,
            examples: &learner.partition.client(client),
        };
        let mut updates = [Update::default()];
        Trainer {
            model: &*learner.model,
            data: &learner.data.train,
            settings: &world.training.local,
            streams: &world.streams,
        }
        .train(&[job], false, &mut updates);
        let [update] = updates;
        update.parameters
    };
    let start = world.task.as_ref().unwrap().initial_model(0, &world.streams);
    let after_one = trained(0, 1, &start);
    assert_eq!(played.seen.models[0], after_one, "one update alone replaces the model");
    let (fresh, stale) = (trained(0, 2, &after_one), trained(1, 1, &start));
    // Client 1's update is one round old and was computed from the model before; it counts half, and in its change
    // only.
    let sizes = [0, 1].map(|client| learner.partition.size(ClientId(client)) as f64);
    assert_ne!(sizes[0], sizes[1]);
    let weights = [sizes[0], 0.5 * sizes[1]];
    for place in 0..start.len() {
        let [global, before, fresh, stale] =
            [after_one[place], start[place], fresh[place], stale[place]].map(f64::from);
        let change = weights[0] * (fresh - global) + weights[1] * (stale - before);
        let expected = global + change / (weights[0] + weights[1]);
        let found = f64::from(played.seen.models[1][place]);
        assert!((found - expected).abs() < 1e-6, "parameter {place}: {found}, by hand {expected}");
    }
}

#[test]
fn probes_cost_time_and_traffic() {
    // Power-of-choice asks all five: the slowest downloads for 20 s and infers for a third of 1 s, client 1 takes
    // longer: 2 s + 20 s / 3 is shorter than that.
    let task = "[task.linear-regression]\nfeatures = 2\nexamples = 700\n\
                [training]\nepochs = 2\noptimizer = { sgd = { lr = 0.05 } }\n";
    let scenario = changed(&scenario(SYNCHRONOUS), "[task.none]\npayload = \"1 kB\"\n", task);
    let scenario = changed(&scenario, "[policy.random]", "[policy.power-of-choice]\ncandidates = 5");
    let played = played(&scenario, 1, 2);
    // A third of an epoch, and a job is two of them: 1 s / 6, cut to whole nanoseconds.
    let probe = 20 * SECOND + SECOND / 6;
    assert_eq!(played.seen.selected_at[0], probe);
    let [first, second] = &played.seen.rounds[..] else { panic!("two rounds were played") };
    assert_eq!((first.opened, second.opened), (0, first.closed));
    assert_eq!(played.seen.selected_at[1], first.closed + probe);
    // Three parameters of four bytes go to five candidates, and again to the four that train; a loss has eight bytes.
    assert_eq!((first.down_bytes, first.up_bytes), (12 * (5 + 4), 8 * 5 + 12 * 4));
}

// ---------------------------------------------------------------------------------------------- every world

/// The scenario's first policy.
pub fn first_policy(scenario: &str, world: &World) -> Box<dyn Policy> {
    let root = tree::parse(Path::new("scenario.toml"), scenario).unwrap();
    let experiment = Experiment::from_tree(&root, Path::new("."), None).unwrap();
    world.policy(&experiment.first().arms[0].policy).unwrap()
}

/// Plays the scenario's first policy.
fn played(scenario: &str, seed: u64, rounds: u32) -> Played {
    let world = world(scenario, seed);
    play(&world, first_policy(scenario, &world), rounds).unwrap()
}

const RANDOM: &str = r#"
name = "any-world"
seeds = 1
[stop]
rounds = 100
[population]
clients = 12
[population.latency]
download = { uniform = ["0.1 s", "0.4 s"] }
compute = { lognormal = { median = { uniform = ["0.5 s", "3 s"] }, sigma = 0.8 } }
upload = { exponential = { mean = "0.5 s" } }
[population.dropout]
download = "0.2 /s"
compute = "0.1 /s"
upload = "0.2 /s"
[task.none]
payload = "1 kB"
[policy.random]
"#;

#[test]
fn every_job_has_exactly_one_outcome_time_never_goes_back_and_totals_add_up() {
    let protocols = [
        "[protocol.synchronous]\ncohort = 5\ntimeout = \"4 s\"",
        "[protocol.over-selection]\nask = 6\ntake = 3\ntimeout = \"4 s\"",
        "[protocol.deadline]\ncohort = 5\ndeadline = \"2 s\"",
        "[protocol.deadline]\ncohort = 5\ndeadline = \"1 s\"\nlate = { carry = {} }",
        "[protocol.deadline]\ncohort = 12\ndeadline = \"0.2 s\"\nlate = { carry = {} }",
    ];
    let mut outcomes = [0; 3];
    for protocol in protocols {
        for seed in 1..=10 {
            let played = played(&format!("{RANDOM}{protocol}"), seed, 60);
            assert_consistent(&played, &mut outcomes, &format!("{protocol}, seed {seed}"));
        }
    }
    assert!(outcomes.iter().all(|&count| count > 100), "arrived, late and dropped all happen: {outcomes:?}");
}

fn assert_consistent(played: &Played, outcomes: &mut [u64; 3], context: &str) {
    let seen = &played.seen;
    assert!(seen.times.is_sorted(), "time goes back: {context}");
    let mut ended = seen.ended.iter();
    let mut previous = SeenRound::default();
    let (mut dispatched, mut arrived) = (0, 0);
    let mut carried: BTreeSet<(u32, u32)> = BTreeSet::new();
    for (round, now) in (1..).zip(&seen.rounds) {
        let context = format!("{context}, round {round}: {now:?}");
        assert_eq!(now.opened, previous.closed, "{context}");
        assert!(now.closed >= now.opened, "{context}");
        assert!(now.down_bytes >= previous.down_bytes && now.up_bytes >= previous.up_bytes, "{context}");

        // Selected = arrived ∪ late ∪ dropped, and nobody stands in two of them.
        let dropped = now.dropped.iter().map(|(client, _)| client);
        let mut parts: Vec<u32> = now.arrived.iter().chain(&now.late).chain(dropped).copied().collect();
        let mut selected = now.selected.clone();
        parts.sort_unstable();
        selected.sort_unstable();
        assert_eq!(parts, selected, "{context}");
        assert!(selected.windows(2).all(|pair| pair[0] < pair[1]), "{context}");

        // The records say the same, job by job: first the arrivals, then the others in dispatch order.
        let records: Vec<_> = ended.by_ref().take(selected.len()).collect();
        let with = |wanted: fn(&Outcome) -> bool| -> Vec<u32> {
            records.iter().filter(|(_, _, outcome)| wanted(outcome)).map(|&&(_, client, _)| client).collect()
        };
        assert!(records.iter().all(|&&(of, ..)| of == round), "{context}");
        assert_eq!(with(|outcome| *outcome == Outcome::Arrived), now.arrived, "{context}");
        assert_eq!(with(|outcome| *outcome == Outcome::Late), now.late, "{context}");
        let lost: Vec<u32> = now.dropped.iter().map(|&(client, _)| client).collect();
        assert_eq!(with(|outcome| matches!(outcome, Outcome::Dropped { .. })), lost, "{context}");

        // Only a job that was late can join, and only once; a client at work is not selected again.
        for &(client, of) in &now.joined {
            assert!(carried.remove(&(client, of)), "{context}");
        }
        carried.extend(now.late.iter().map(|&client| (client, round)));
        dispatched += selected.len() as u64;
        arrived += now.arrived.len() as u64;
        outcomes[0] += now.arrived.len() as u64;
        outcomes[1] += now.late.len() as u64;
        outcomes[2] += now.dropped.len() as u64;
        previous = now.clone();
    }
    assert_eq!(ended.next(), None, "{context}");
    let accounts = &played.accounts;
    let found = (accounts.rounds, accounts.dispatched, accounts.arrived);
    assert_eq!(found, (seen.rounds.len() as u64, dispatched, arrived), "{context}");
    assert_eq!((accounts.down_bytes, accounts.up_bytes), (previous.down_bytes, previous.up_bytes), "{context}");
    assert!(accounts.wasted_compute <= accounts.compute, "{context}: {accounts:?}");
    assert!(accounts.down_bytes <= 1_000 * dispatched && accounts.up_bytes <= accounts.down_bytes, "{context}");
    assert!(accounts.up_bytes >= 1_000 * arrived, "{context}: {accounts:?}");
    assert!(accounts.wasted_down_bytes <= accounts.down_bytes, "{context}: {accounts:?}");
    assert!(accounts.wasted_up_bytes <= accounts.up_bytes, "{context}: {accounts:?}");
}

#[test]
fn a_synchronous_round_without_losses_costs_what_its_draws_say() {
    let scenario =
        RANDOM.replace("[population.dropout]\ndownload = \"0.2 /s\"\ncompute = \"0.1 /s\"\nupload = \"0.2 /s\"\n", "");
    let scenario = format!("{scenario}[protocol.synchronous]\ncohort = 5");
    let world = world(&scenario, 3);
    let played = played(&scenario, 3, 40);
    let mut compute = Span::ZERO;
    for (number, round) in (1..).zip(&played.seen.rounds) {
        let draws = round.selected.iter().map(|&client| {
            let purpose = fedgenie::rng::Purpose::Latency;
            world.population.draw(&world.streams, purpose, ClientId(client), JobNumber(number), [1.0; 2]).unwrap()
        });
        let draws: Vec<_> = draws.collect();
        let longest = draws.iter().map(|draw| draw.total().0).max().unwrap();
        assert_eq!(round.closed - round.opened, longest);
        compute += draws.iter().map(|draw| draw.phases[Phase::Compute.index()]).sum();
    }
    assert_eq!((played.accounts.compute, played.accounts.wasted_compute), (compute.into(), TotalTime::ZERO));
    assert_eq!((played.accounts.down_bytes, played.accounts.up_bytes), (200_000, 200_000));
}
