//! Buffered aggregation on constant latencies, worked out by hand, and its models against hand-made averages.

use super::protocols::{SECOND, assert_compute, assert_wasted_bytes, play_by_hand, round, scenario};
use super::support::{Played, Script, SeenRound, Workplace, changed, labelled, play, world};
use fedgenie::id::{ClientId, JobNumber, Round};
use fedgenie::run::RunError;
use fedgenie::time::TotalTime;
use fedgenie::trainer::{Trainer, TrainingJob, Update};
use fedgenie::world::World;

/// A place each for two clients, a model every two updates.
const BUFFERED: &str = "[protocol.buffered]\nconcurrency = 2\nbuffer = 2\n";

/// Plays so many rounds; each selection is of one client.
fn buffered(protocol: &str, selections: &[u32], rounds: u32) -> Played {
    let selections: Vec<Vec<u32>> = selections.iter().map(|&client| vec![client]).collect();
    let script = Script { rounds: selections, ..Script::default() };
    play(&world(&scenario(protocol), 1), Box::new(script), rounds).unwrap()
}

/// Clients 0 and 1 begin; 0 delivers at 12, 1 at 23. Client 2 takes 0's place at 12 and delivers at 30, when client 4
/// takes over; client 0 takes 1's place at 23 and delivers at 35.
#[test]
fn places_are_filled_as_they_become_free() {
    let played = buffered(BUFFERED, &[0, 1, 2, 0, 4], 2);
    assert_eq!(
        played.seen.rounds,
        [
            round([0, 23], &[0, 1, 2], &[0, 1], &[], [3_000, 2_000]),
            round([23, 35], &[0, 4], &[2, 0], &[], [5_000, 4_000]),
        ]
    );
    // Client 4 has downloaded by 34 and computes since.
    assert_compute(&played, 10 + 20 + 4 + 10 + 1, 1);
    assert_eq!(played.accounts.dispatched, 5);
    assert_eq!(played.accounts.arrived, 4);
}

/// Clients 2 and 4 deliver at 18, the same instant. The first fills the buffer; the second belongs to the next round,
/// and both places are filled afterwards, with the new model.
#[test]
fn updates_that_arrive_together_belong_to_successive_rounds() {
    let protocol = changed(BUFFERED, "concurrency = 2", "concurrency = 3");
    let played = buffered(&protocol, &[2, 4, 0, 1, 3, 0], 2);
    assert_eq!(
        played.seen.rounds,
        [
            // The last byte of client 4 comes after the round.
            round([0, 18], &[2, 4, 0, 1], &[0, 2], &[], [4_000, 2_000]),
            round([18, 30], &[3, 0], &[4, 0], &[], [5_000, 4_000]),
        ]
    );
    let seconds: Vec<u64> = played.seen.selected.iter().map(|(time, _)| time / SECOND).collect();
    assert_eq!(seconds, [0, 0, 0, 12, 18, 18]);
}

/// Client 2's update, sent in round 1, arrives in round 2: one model has been made since.
#[test]
fn an_update_that_is_too_old_is_late() {
    let played = buffered(&format!("{BUFFERED}max_staleness = 0\n"), &[0, 1, 2, 0, 4, 3], 2);
    assert_eq!(
        played.seen.rounds,
        [
            round([0, 23], &[0, 1, 2], &[0, 1], &[], [3_000, 2_000]),
            // 0 delivers at 35, when 3 takes its place; 4 at 48. Client 3 downloads until 55.
            SeenRound { late: vec![2], ..round([23, 48], &[0, 4, 3], &[0, 4], &[2], [5_000, 5_000]) },
        ]
    );
    assert_compute(&played, 10 + 20 + 4 + 10 + 4, 4);
    assert_wasted_bytes(&played, [1_000, 1_000]);
    let fits = buffered(&format!("{BUFFERED}max_staleness = 1\n"), &[0, 1, 2, 0, 4], 2);
    assert_eq!(fits.seen.rounds[1].late, [] as [u32; 0]);
}

/// Client 1 would take 23 s.
#[test]
fn the_server_gives_up_and_fills_the_place() {
    let protocol = "[protocol.buffered]\nconcurrency = 1\nbuffer = 1\ntimeout = \"15 s\"\n";
    let played = buffered(protocol, &[1, 0, 3], 1);
    assert_eq!(played.seen.rounds, [round([0, 27], &[1, 0], &[0], &[1], [2_000, 1_000])]);
    assert_compute(&played, 13 + 10, 13);
    assert_wasted_bytes(&played, [1_000, 0]);
}

/// An update that arrives at the very instant at which the server would give up counts.
#[test]
fn an_arrival_at_the_timeout_counts() {
    let protocol = "[protocol.buffered]\nconcurrency = 1\nbuffer = 1\ntimeout = \"23 s\"\n";
    assert_eq!(buffered(protocol, &[1, 0], 1).seen.rounds, [round([0, 23], &[1], &[1], &[], [1_000, 1_000])]);
}

#[test]
fn a_place_per_update_and_equal_clients_are_synchronous_rounds() {
    // Clients 2 and 4 are alike.
    let pair = "[protocol.buffered]\nconcurrency = 2\nbuffer = 2\n";
    let asynchronous = buffered(pair, &[2, 4, 2, 4], 2);
    let (synchronous, _) = play_by_hand("[protocol.synchronous]\ncohort = 2\n", &[&[2, 4], &[2, 4]]);
    assert_eq!(asynchronous.seen.rounds, synchronous.seen.rounds);
    assert_eq!(asynchronous.accounts, synchronous.accounts);
}

const LEARNING: &str = "[task.linear-regression]\nexamples = 700\npartition = { gamma-sized = { minimum = 8 } }\n\
                        [training]\nbatch = 8\noptimizer = { sgd = { lr = 0.05 } }\n";

fn learning(protocol: &str) -> World {
    world(&changed(&scenario(protocol), "[task.none]\npayload = \"1 kB\"\n", LEARNING), 1)
}

/// The answer of a client that was sent `start`, as its `ticket`-th job.
fn trained(world: &World, client: u32, round: u32, ticket: u32, start: &[f32]) -> Vec<f32> {
    let learner = labelled(world);
    let (client, round, number) = (ClientId(client), Round(round), JobNumber(ticket));
    let job = TrainingJob { client, round, number, start, examples: &learner.partition.client(client) };
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
}

fn assert_model(found: &[f32], expected: impl Fn(usize) -> f64) {
    for (place, &found) in found.iter().enumerate() {
        let expected = expected(place);
        assert!((f64::from(found) - expected).abs() < 1e-6, "parameter {place}: {found}, by hand {expected}");
    }
}

/// `FedAsync`: x ← (1 − α s) x + α s x_k with α = 0.6; client 1's update is one round old, s = (1 + 1)^−1.
#[test]
fn buffer_one_of_models_is_fedasync() {
    let protocol = "[protocol.buffered]\nconcurrency = 2\nbuffer = 1\ncombine = \"models\"\n\
                    staleness = { polynomial = { exponent = 1.0 } }\n[aggregation]\nserver = { average = { lr = 0.6 } }\n";
    let world = learning(protocol);
    let script = Script { rounds: [0, 1, 2].map(|client| vec![client]).to_vec(), ..Script::default() };
    let played = play(&world, Box::new(script), 2).unwrap();
    assert_eq!(played.seen.rounds.iter().map(|round| round.closed).collect::<Vec<_>>(), [12 * SECOND, 23 * SECOND]);
    let start = world.task.as_ref().unwrap().initial_model(0, &world.streams);
    let (fresh, old) = (trained(&world, 0, 1, 1, &start), trained(&world, 1, 1, 1, &start));
    let mix = |share: f64, before: f32, sent: f32| (1.0 - share) * f64::from(before) + share * f64::from(sent);
    let [first, second] = &played.seen.models[..] else { panic!("two models were made") };
    assert_model(first, |place| mix(0.6, start[place], fresh[place]));
    assert_model(second, |place| mix(0.3, first[place], old[place]));
}

/// `FedBuff`: the sum of the discounted changes, over the number of them. Client 0's second job has numbers of its own.
#[test]
fn a_buffer_of_changes_is_fedbuff() {
    let protocol = format!(
        "{BUFFERED}staleness = {{ hinge = {{ slope = 3.0, grace = 0 }} }}\n[aggregation]\nweighting = \"uniform\"\n"
    );
    let world = learning(&protocol);
    let script = Script { rounds: [0, 1, 2, 0, 4].map(|client| vec![client]).to_vec(), ..Script::default() };
    let played = play(&world, Box::new(script), 2).unwrap();
    let start = world.task.as_ref().unwrap().initial_model(0, &world.streams);
    let (zero, one) = (trained(&world, 0, 1, 1, &start), trained(&world, 1, 1, 1, &start));
    let [first, second] = &played.seen.models[..] else { panic!("two models were made") };
    let change = |sent: &[f32], start: &[f32], place: usize| f64::from(sent[place]) - f64::from(start[place]);
    assert_model(first, |place| {
        f64::from(start[place]) + (change(&zero, &start, place) + change(&one, &start, place)) / 2.0
    });
    // Client 2 was sent the first model and is one round late: a quarter. Client 0 is fresh.
    let (two, again) = (trained(&world, 2, 1, 1, &start), trained(&world, 0, 2, 2, first));
    assert_model(second, |place| {
        f64::from(first[place]) + (0.25 * change(&two, &start, place) + change(&again, first, place)) / 2.0
    });
}

/// With places for half of a hundred clients, whatever happens: the checks of the run hold, and time spent adds up.
#[test]
fn many_clients_with_losses() {
    let scenario = r#"
        name = "many"
        seeds = 1
        [stop]
        rounds = 200
        [population]
        clients = 100
        [population.latency]
        download = { uniform = ["0.1 s", "0.4 s"] }
        compute = { lognormal = { median = { uniform = ["0.5 s", "3 s"] }, sigma = 0.8 } }
        upload = { exponential = { mean = "0.5 s" } }
        [population.dropout]
        compute = "0.1 /s"
        [protocol.buffered]
        concurrency = 50
        buffer = 7
        max_staleness = 3
        timeout = "8 s"
        [policy.random]
    "#;
    for seed in 1..=5 {
        let world = world(scenario, seed);
        let script = super::protocols::first_policy(scenario, &world);
        let played = play(&world, script, 200).unwrap();
        let count = |of: fn(&SeenRound) -> usize| played.seen.rounds.iter().map(of).sum::<usize>() as u64;
        assert_eq!(count(|round| round.arrived.len()), 200 * 7, "each round takes as many as the buffer holds");
        assert_eq!(played.accounts.arrived, 1_400);
        let ended = played.accounts.arrived + count(|round| round.late.len()) + count(|round| round.dropped.len());
        assert!((ended..=ended + 50).contains(&played.accounts.dispatched), "at most 50 are under way at the end");
        assert!(count(|round| round.dropped.len()) > 0 && count(|round| round.late.len()) > 0);
        assert!(played.accounts.wasted_compute > TotalTime::ZERO);
    }
}

/// No job takes less than 12 s: every job times out, and the run says so instead of going on for ever; or ends with the
/// run's virtual time, its round without a model.
#[test]
fn a_timeout_shorter_than_every_job_ends_the_run() {
    let protocol = "[protocol.buffered]\nconcurrency = 1\nbuffer = 1\ntimeout = \"5 s\"\n";
    let script = Script { rounds: vec![vec![0]], ..Script::default() };
    let error = play(&world(&scenario(protocol), 1), Box::new(script), 1).unwrap_err();
    assert!(matches!(error, RunError::NoUpdates { jobs: 10_101, .. }), "{error}");
    assert!(error.to_string().contains("a longer timeout"), "{error}");

    let place = Workplace::with(&changed(&scenario(protocol), "rounds = 100", "virtual_time = \"1 min\""));
    place.run_into("out", &[]);
    let rounds = place.lines("out/runs/random-s1/rounds.jsonl");
    let [only] = &rounds[..] else { panic!("one round, found {rounds:?}") };
    assert_eq!((&only["abandoned"], &only["closed_s"]), (&true.into(), &60.0.into()));
    assert_eq!(only["late"].as_array().unwrap().len(), 12, "one every 5 s, up to the last instant");
    assert_eq!(place.fedgenie(&["verify", "out"]).code, 0);
}

/// Policies that ask first have nobody to ask in the cloud, and everywhere else they run, with replay.
#[test]
fn only_in_the_cloud_policies_that_probe_are_refused() {
    let cloud = "[protocol.hierarchical]\nedges = 2\ncohort = 1\ncloud = { cohort = 1, policy = { rbcs-f = {} } }\n";
    let answer = Workplace::with(&scenario(cloud)).fedgenie(&["run", "scenario.toml"]);
    assert_eq!(answer.code, 2, "{answer:?}");
    assert!(answer.stderr.contains("edge servers have no answers"), "{answer:?}");
    let edges = "[protocol.hierarchical]\nedges = 2\ncohort = 1\n";
    for protocol in [BUFFERED, edges] {
        let place = Workplace::with(&changed(&scenario(protocol), "[policy.random]", "[policy.rbcs-f]"));
        place.run_into("out", &[]);
        assert_eq!(place.fedgenie(&["verify", "out"]).code, 0);
    }
}
